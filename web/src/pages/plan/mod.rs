//! The Plan page: a recipe and changes to it, then step time, memory, MFU, days and the launch script.

mod answers;
mod calculator;
mod changes;
mod edits;
mod estimate;
mod launch;
mod own;
mod recipe;
pub(crate) mod scaling;
mod step_time;

use crate::address::Address;
use crate::components::field::{AddressProblems, Problems};
use calculator::Calculator;
use leptos::prelude::*;
use step_time::PlannedStep;
use trainplan_shared::catalog::{Catalog, Recipe};
use trainplan_shared::field::Field;
use trainplan_shared::flops::ModelFlops;
use trainplan_shared::link;
use trainplan_shared::metrics::PeakTflops;
use trainplan_shared::planning::StepTime;
use trainplan_shared::problem::Problem;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::readable;

/// The recipe of an address that names neither a recipe nor a model: the largest well-known one.
const FIRST_RECIPE: &str = "llama3.1-405b/h100/fp8/512@25.04";

/// The message for a worker that did not start or stopped.
const BROKEN: &str = "The calculator failed to start. Reload the page.";

/// The state that the parts of the page share.
#[derive(Clone, Copy)]
struct Plan {
    address: Address,
    /// The typed fields, with [`FIRST_RECIPE`] where the address names neither recipe nor model.
    spec: Memo<Spec>,
    /// The recipe that the plan starts from; for an unknown id, the most similar one.
    recipe: Memo<Option<CatalogEntry<Recipe>>>,
    scenario: Memo<Result<Scenario, Vec<Problem>>>,
    /// The step time with the figures that follow from it; none until there is one.
    step: Memo<Option<PlannedStep>>,
    calculator: Calculator,
    /// The problems of all fields; each field shows its own.
    problems: Memo<Vec<Problem>>,
}

/// An entry of the catalog. The catalog holds each entry once, so entries are equal if their addresses are.
struct CatalogEntry<T: 'static>(&'static T);

impl<T> Clone for CatalogEntry<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for CatalogEntry<T> {}
impl<T> PartialEq for CatalogEntry<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Plan {
    fn of_page() -> Plan {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Plan page provides its plan")
    }

    fn provide() -> Plan {
        let address = Address::provide("/");
        let spec = Memo::new(move |_| {
            let spec = address.spec();
            match spec.get(Field::Recipe).is_none() && spec.get(Field::Model).is_none() {
                true => spec.with(Field::Recipe, FIRST_RECIPE),
                false => spec,
            }
        });
        let recipe = Memo::new(move |_| {
            spec.with(|spec| spec.get(Field::Recipe).map(nearest_recipe).map(CatalogEntry))
        });
        let scenario = Memo::new(move |_| spec.with(Spec::scenario));
        let query = move |query: fn(&Spec) -> String| {
            Memo::new(move |_| scenario.with(Result::is_ok).then(|| spec.with(query)))
        };
        let calculator =
            Calculator::start(query(|spec| link::write(&scenario_fields(spec))), query(link::write));
        let step = Memo::new(move |before: Option<&Option<PlannedStep>>| {
            let state = calculator.prediction_state();
            let before = before.cloned().flatten();
            spec.with(|spec| {
                scenario.with(|scenario| step_time::plan_step(spec, scenario.as_ref().ok()?, state, before))
            })
        });
        let problems = Memo::new(move |_| {
            let mut problems = spec.with(typing_problems);
            problems.extend(scenario.with(|scenario| scenario.as_ref().err().cloned().unwrap_or_default()));
            // The launch panel shows which scenario fields a release refuses: such a scenario can still be
            // planned.
            let launched = calculator.launch.latest();
            let refused = launched.iter().flat_map(|launched| launched.refusals.clone()).map(Problem::from);
            problems.extend(refused.filter(|problem| !problem.field.is_of_scenario()));
            problems
        });
        provide_context(Problems(problems));
        let plan = Plan { address, spec, recipe, scenario, step, calculator, problems };
        provide_context(plan);
        plan
    }

    /// Returns the label of an MFU, with its FLOPs convention and the peak that it divides by.
    fn mfu_label(self) -> String {
        self.scenario.with(|scenario| {
            let Ok(scenario) = scenario else { return "MFU".to_string() };
            let convention = ModelFlops::of(scenario).convention;
            let peak = readable(PeakTflops::of(scenario).tflops);
            format!("MFU (convention: {convention}, peak: {peak} TFLOPS)")
        })
    }
}

fn nearest_recipe(id: &str) -> &'static Recipe {
    let catalog = Catalog::embedded();
    let nearest = |problem: Problem| problem.closest.and_then(|id| catalog.recipe(&id).ok());
    catalog
        .recipe(id)
        .or_else(|problem| nearest(problem).ok_or(()))
        .or_else(|()| catalog.recipe(FIRST_RECIPE))
        .unwrap_or(&catalog.recipes()[0])
}

/// Returns the fields that describe the scenario, without those of its launch and of the page.
fn scenario_fields(spec: &Spec) -> Spec {
    let fields = spec.iter().filter(|(field, _)| field.is_of_scenario());
    fields.fold(Spec::default(), |spec, (field, text)| spec.with(field, text))
}

/// Returns the problems of the token count and the step time, which are not part of the scenario.
fn typing_problems(spec: &Spec) -> Vec<Problem> {
    let step_time = spec.parse::<StepTime>(Field::StepTime).err();
    spec.tokens().err().into_iter().chain(step_time).collect()
}

/// The Plan page.
#[component]
pub(crate) fn PlanPage() -> impl IntoView {
    let plan = Plan::provide();
    view! {
        <div class="plan">
            <section class="inputs" aria-label="Scenario">
                <recipe::RecipePicker />
                <changes::Changes />
            </section>
            <div class="results">
                <AddressProblems address=plan.address />
                <answers::Answers />
                <estimate::EstimatePanel />
                <scaling::Scaling />
                <launch::LaunchPanel />
            </div>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_recipe_is_replaced_by_the_most_similar_one() {
        assert_eq!(nearest_recipe("llama3.1-405b/h100/fp8/500@25.04").id.to_string(), FIRST_RECIPE);
        assert_eq!(nearest_recipe("?").id.to_string(), FIRST_RECIPE);
        assert_eq!(nearest_recipe(FIRST_RECIPE).id.to_string(), FIRST_RECIPE);
    }

    #[test]
    fn a_prediction_depends_on_the_fields_of_the_scenario_only() {
        let typed = link::read("r=llama3.1-405b/h100/fp8/512@25.04&n=1024&t=15T&acc=research").spec;
        assert_eq!(link::write(&scenario_fields(&typed)), "v=1&r=llama3.1-405b/h100/fp8/512@25.04&n=1024");
    }

    #[test]
    fn the_tokens_and_the_step_time_have_problems_of_their_own() {
        let typed = link::read("r=llama3.1-405b/h100/fp8/512@25.04&t=many&st=10 s").spec;
        let fields: Vec<Field> = typing_problems(&typed).iter().map(|problem| problem.field).collect();
        assert_eq!(fields, [Field::Tokens, Field::StepTime]);
    }
}
