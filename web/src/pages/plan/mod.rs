//! The Plan page: a question, its answer for each GPU type, and the plan that is shown with its step time, memory,
//! evidence and launch script.

mod answers;
mod bar;
mod calculator;
mod cards;
mod changes;
mod detail;
mod edits;
mod estimate;
mod front;
mod launch;
mod layouts;
mod locks;
mod own;
mod question;
mod recipe;
pub(crate) mod scaling;
mod search;
mod step_time;
mod verdict;

use crate::address::Address;
use crate::components::field::{AddressProblems, Problems};
use calculator::Calculator;
use leptos::prelude::*;
use question::has_scenario;
use search::Search;
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

/// The recipe of an address that describes a scenario, but names neither a recipe nor a model: the largest well-known
/// one.
const FIRST_RECIPE: &str = "llama3.1-405b/h100/fp8/512@25.04";

/// The message for a worker that did not start or stopped.
const BROKEN: &str = "The calculator failed to start. Reload the page.";

/// The state that the parts of the page share.
#[derive(Clone, Copy)]
struct Plan {
    address: Address,
    /// The question: the typed fields with those that are assumed.
    question: Memo<Spec>,
    search: Search,
    /// The fields of the shown plan: those of the address if it describes a scenario, with [`FIRST_RECIPE`] where it names
    /// neither recipe nor model; otherwise those of the best plan.
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
        let address = Address::provide_with("/", &[detail::TAB_KEY, front::Y_KEY, layouts::ORDER_KEY]);
        let question = Memo::new(move |before: Option<&Spec>| {
            let typed = address.spec();
            if !has_scenario(&typed) {
                return question::question(&typed, None);
            }
            let own = own_scenario(&typed);
            match (own.scenario(), before) {
                (Ok(scenario), _) => question::question(&own, Some(&scenario)),
                // While a value is being typed, the question stays.
                (Err(_), Some(before)) => before.clone(),
                (Err(_), None) => question::question(&own, None),
            }
        });
        let search = Search::start(question);
        let best = Memo::new(move |before: Option<&Option<String>>| {
            search.findings.with(|findings| match findings.is_searching() || !findings.is_answered() {
                true => before.cloned().flatten(),
                false => findings.best_plan().map(|plan| plan.query.clone()),
            })
        });
        let spec = Memo::new(move |_| {
            let typed = address.spec();
            if has_scenario(&typed) {
                return own_scenario(&typed);
            }
            let asked = question.get();
            let typed = typed.with(Field::Tokens, asked.raw(Field::Tokens));
            match best.get() {
                Some(query) => question::shown(&typed, &link::read(&query).spec),
                None => typed,
            }
        });
        address.complete_with(move |before, changed| {
            let shown = best.get_untracked().map(|_| spec.get_untracked());
            let asked = question.get_untracked();
            question::completed(before, changed, &asked, shown.as_ref())
        });
        let recipe = Memo::new(move |_| {
            spec.with(|spec| spec.get(Field::Recipe).map(nearest_recipe).map(CatalogEntry))
        });
        let scenario = Memo::new(move |_| {
            let is_waiting = best.with(Option::is_none) && !address.with_spec(has_scenario);
            // No problems: there is no plan yet.
            if is_waiting { Err(Vec::new()) } else { spec.with(Spec::scenario) }
        });
        let query = move |query: fn(&Spec) -> String| {
            Memo::new(move |_| scenario.with(Result::is_ok).then(|| spec.with(query)))
        };
        let calculator =
            Calculator::start(query(|spec| link::write(&scenario_fields(spec))), query(link::write));
        let step = Memo::new(move |before: Option<&Option<PlannedStep>>| {
            let state = calculator.prediction_state();
            let before = before.cloned().flatten();
            spec.with(|spec| {
                scenario.with(|scenario| match scenario {
                    Ok(scenario) => step_time::plan_step(spec, scenario, state, before),
                    Err(_) => before.map(|before| PlannedStep { is_stale: true, ..before }),
                })
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
            // Those of the question, unless the field has one already.
            let asked = search.findings.with(|findings| findings.problems.clone());
            let is_new = |problem: &Problem| problems.iter().all(|known| known.field != problem.field);
            let asked: Vec<Problem> = asked.into_iter().filter(is_new).collect();
            problems.extend(
                asked
                    .into_iter()
                    .filter(|problem| !problem.field.is_of_scenario() || !address.with_spec(has_scenario)),
            );
            problems
        });
        provide_context(Problems(problems));
        let plan = Plan { address, question, search, spec, recipe, scenario, step, calculator, problems };
        provide_context(plan);
        own::take_imports(plan);
        locks::provide(plan);
        plan
    }

    /// Whether there is no plan to show yet.
    fn is_waiting(self) -> bool {
        self.scenario.with(|scenario| scenario.as_ref().is_err_and(Vec::is_empty))
    }

    /// Returns the problem of a field.
    fn problem(self, field: Field) -> Option<Problem> {
        self.problems.with(|problems| problems.iter().find(|problem| problem.field == field).cloned())
    }

    /// Shows a plan that was found, given as a query.
    fn choose(self, query: &str) {
        let chosen = link::read(query).spec;
        let asked = self.question.get_untracked();
        self.address.turn_to(|spec| *spec = question::with_plan(spec, &asked, &chosen));
    }

    /// Asks another question, and leaves the plan that the address describes.
    fn ask(self, changes: &[(Field, &str)]) {
        let asked = self.question.get_untracked();
        let leaves = self.address.with_spec_untracked(has_scenario);
        let change = |spec: &mut Spec| {
            if leaves {
                *spec = question::without_plan(spec, &asked);
            }
            for (field, value) in changes {
                spec.set(*field, *value);
            }
        };
        self.address.turn_to(change);
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

/// Returns the fields of the scenario of an address.
fn own_scenario(typed: &Spec) -> Spec {
    match typed.get(Field::Recipe).is_none() && typed.get(Field::Model).is_none() {
        true => typed.clone().with(Field::Recipe, FIRST_RECIPE),
        false => typed.clone(),
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
    // An address with changes of its own opens them.
    let opened = plan.address.with_spec_untracked(|spec| {
        spec.iter().any(|(field, _)| field.is_of_scenario() && field != Field::Recipe)
            && spec.get(Field::GpuTypes).is_none()
    });
    view! {
        <div class="plan">
            <bar::QuestionBar />
            <AddressProblems address=plan.address />
            <cards::Answer />
            <div class="pair">
                <front::Front />
                <layouts::Layouts />
            </div>
            <div class="shown">
                <answers::Answers />
                <detail::Tabs />
            </div>
            <details class="drawer" open=opened>
                <summary>"All settings"</summary>
                <div class="inputs">
                    <div>
                        <recipe::RecipePicker />
                        <changes::RunFields />
                    </div>
                    <changes::Changes />
                </div>
            </details>
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
