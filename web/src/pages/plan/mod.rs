//! The Plan page: from a recipe, through what someone changes, to step time, MFU, days and the launch command.

mod answers;
mod changes;
mod launch;
mod recipe;
pub(crate) mod scaling;

use crate::address::Address;
use crate::components::field::{ProblemText, Problems};
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Recipe};
use trainplan_shared::launch::Launch;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::problem::{Field, Problem};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::{Basis, Spec, StepTime};

/// The recipe that an address without one means: the largest that most people know.
const FIRST_RECIPE: &str = "llama3.1-405b/h100/fp8/512@25.04";

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
    /// Its launch; none where there is no scenario.
    launch: Memo<Option<Result<Launch, Vec<Problem>>>>,
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
    /// Whether the assumption is the page's own: the recipe's published MFU.
    assumed_by_page: bool,
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
        let outcome = Memo::new(move |_| {
            spec.with(|spec| scenario.with(|scenario| outcome(spec, scenario.as_ref().ok()?).ok().flatten()))
        });
        let launch = Memo::new(move |_| {
            spec.with(|spec| scenario.with(|scenario| Some(launch::launched(spec, scenario.as_ref().ok()?))))
        });
        let problems = Memo::new(move |_| {
            let mut problems = spec.with(typing_problems);
            problems.extend(scenario.with(|scenario| scenario.as_ref().err().cloned().unwrap_or_default()));
            // What a release refuses of a scenario is said in the launch panel: the scenario itself can be planned.
            let refused =
                launch.with(|launch| launch.as_ref().and_then(|launch| launch.as_ref().err().cloned()));
            problems.extend(refused.into_iter().flatten().filter(|problem| !problem.field.is_of_scenario()));
            problems
        });
        provide_context(Problems(problems));
        let plan = Plan { address, spec, recipe, scenario, outcome, launch, problems };
        provide_context(plan);
        plan
    }
}

fn nearest_recipe(id: &str) -> &'static Recipe {
    let catalog = Catalog::embedded();
    let nearest = |problem: Problem| problem.nearest.first().and_then(|id| catalog.recipe(id).ok());
    catalog
        .recipe(id)
        .or_else(|problem| nearest(problem).ok_or(()))
        .or_else(|()| catalog.recipe(FIRST_RECIPE))
        .unwrap_or(&catalog.recipes()[0])
}

/// What can be said of the scenario's step time: given, published, or what it would be at the recipe's MFU.
fn outcome(spec: &Spec, scenario: &Scenario) -> Result<Option<Outcome>, Vec<Problem>> {
    let given: Option<StepTime> = spec.parse(Field::StepTime).map_err(|problem| vec![problem])?;
    let published = scenario.baseline().map(|baseline| StepTime::Seconds(baseline.step_time_s));
    let assumed = scenario.recipe_mfu().map(StepTime::Mfu);
    let (step_time, basis) = match (given, published, assumed) {
        (Some(given @ StepTime::Seconds(_)), ..) => (given, Basis::Given),
        (Some(given @ StepTime::Mfu(_)), ..) => (given, Basis::AssumedMfu),
        (None, Some(published), _) => (published, Basis::Published),
        (None, None, Some(assumed)) => (assumed, Basis::AssumedMfu),
        (None, None, None) => return Ok(None),
    };
    let metrics = spec.metrics_at(scenario, step_time)?;
    Ok(Some(Outcome { metrics, basis, assumed_by_page: given.is_none() && basis == Basis::AssumedMfu }))
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
                <scaling::Scaling />
                <launch::LaunchPanel />
            </div>
        </div>
    }
}

/// What of the address could not be understood, and a recipe that is none.
#[component]
pub(crate) fn AddressProblems(address: Address) -> impl IntoView {
    let recipe = move || {
        let problems: Option<Problems> = use_context();
        problems
            .and_then(|problems| problems.0.get().into_iter().find(|problem| problem.field == Field::Recipe))
    };
    view! {
        <div aria-live="polite">
            {move || address.problems().into_iter().map(|problem| view! { <p class="notice wrong">{problem}</p> }).collect_view()}
            {move || recipe().map(|problem| view! { <p class="notice wrong"><ProblemText problem address /></p> })}
        </div>
    }
}
