//! The Plan page: from a recipe, through what someone changes, to step time, memory, MFU, days and the launch command.

mod answers;
mod changes;
mod estimate;
mod helper;
mod launch;
mod own;
mod recipe;
pub(crate) mod scaling;

use crate::address::Address;
use crate::components::field::{AddressProblems, Problems, problem};
use helper::Helper;
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Recipe};
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::problem::Problem;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::{Spec, StepTime};

/// The recipe that an address without one means: the largest that most people know.
const FIRST_RECIPE: &str = "llama3.1-405b/h100/fp8/512@25.04";

/// What to say where the worker does not work.
const BROKEN: &str = "Nothing can be predicted or launched: the program that does it did not start, or broke down. Reload the page to start it again.";

/// What the parts of the page share.
#[derive(Clone, Copy)]
struct Plan {
    address: Address,
    /// What was typed, with the recipe that counts where none was.
    spec: Memo<Spec>,
    /// The recipe it starts from; where an unknown one was typed, the nearest.
    recipe: Memo<Option<Of<Recipe>>>,
    /// The scenario that it describes.
    scenario: Memo<Result<Scenario, Vec<Problem>>>,
    /// What its step time means.
    outcome: Memo<Option<Outcome>>,
    /// What predicts and launches it.
    helper: Helper,
    /// What is wrong with the fields, each beside its own.
    problems: Memo<Vec<Problem>>,
}

/// Something of the catalog, compared by its address: the catalog holds everything once.
struct Of<T: 'static>(&'static T);

impl<T> Clone for Of<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Of<T> {}
impl<T> PartialEq for Of<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

/// A step time with its meaning, and what it rests on.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    metrics: Metrics,
    basis: Basis,
    /// Whether it is that of the scenario before, which stands until this one is predicted.
    is_stale: bool,
}

/// What a step time rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Basis {
    /// A document publishes it.
    Published,
    /// Someone gave it.
    Given,
    /// It follows from an MFU that someone gave.
    GivenMfu,
    /// It is predicted, and may be off by these factors.
    Predicted {
        /// The lower end of the interval.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// Where nothing predicts: it follows from the recipe's published MFU.
    RecipeMfu,
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
        let recipe =
            Memo::new(move |_| spec.with(|spec| spec.get(Field::Recipe).map(nearest_recipe).map(Of)));
        let scenario = Memo::new(move |_| spec.with(Spec::scenario));
        let query = move |query: fn(&Spec) -> String| {
            Memo::new(move |_| scenario.with(Result::is_ok).then(|| spec.with(query)))
        };
        let helper = Helper::start(query(|spec| link::write(&scenario_of(spec))), query(link::write));
        let outcome = Memo::new(move |before: Option<&Option<Outcome>>| {
            let before = || before.cloned().flatten().map(|before| Outcome { is_stale: true, ..before });
            spec.with(|spec| scenario.with(|scenario| outcome(spec, scenario.as_ref().ok()?, helper, before)))
        });
        let problems = Memo::new(move |_| {
            let mut problems = spec.with(typing_problems);
            problems.extend(scenario.with(|scenario| scenario.as_ref().err().cloned().unwrap_or_default()));
            // What a release refuses of a scenario is said in the launch panel: the scenario itself can be planned.
            let launched = helper.launch.latest();
            let refused = launched.iter().flat_map(|launched| &launched.refusals).filter_map(problem);
            problems.extend(refused.filter(|problem| !problem.field.is_of_scenario()));
            problems
        });
        provide_context(Problems(problems));
        let plan = Plan { address, spec, recipe, scenario, outcome, helper, problems };
        provide_context(plan);
        plan
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

/// The fields that describe the scenario, without those that say what to do with it.
fn scenario_of(spec: &Spec) -> Spec {
    let fields = spec.iter().filter(|(field, _)| field.is_of_scenario());
    fields.fold(Spec::default(), |spec, (field, text)| spec.with(field, text))
}

/// What the scenario's step time is: given, published, or predicted. Until it is predicted, what was `before` stands;
/// where nothing predicts, it is what it would be at the recipe's MFU.
fn outcome(
    spec: &Spec,
    scenario: &Scenario,
    helper: Helper,
    before: impl FnOnce() -> Option<Outcome>,
) -> Option<Outcome> {
    let given: Option<StepTime> = spec.parse(Field::StepTime).ok()?;
    let published = scenario.baseline().map(|baseline| StepTime::Seconds(baseline.step_time_s));
    let (step_time, basis) = match (given, published) {
        (Some(given @ StepTime::Seconds(_)), _) => (given, Basis::Given),
        (Some(given @ StepTime::Mfu(_)), _) => (given, Basis::GivenMfu),
        (None, Some(published)) => (published, Basis::Published),
        (None, None) if helper.is_broken() => (StepTime::Mfu(scenario.recipe_mfu()?), Basis::RecipeMfu),
        (None, None) if helper.prediction.is_open() => return before(),
        (None, None) => {
            let predicted = helper.prediction.latest()?;
            let (low, high) = (predicted.low_s / predicted.mid_s, predicted.high_s / predicted.mid_s);
            (StepTime::Seconds(predicted.mid_s), Basis::Predicted { low, high })
        }
    };
    let metrics = spec.metrics_at(scenario, step_time).ok()?;
    Some(Outcome { metrics, basis, is_stale: false })
}

/// What can't be read of the fields beside the scenario's.
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
            <section class="inputs" aria-label="What to plan">
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
