//! The Plan page: a question, its answer for each GPU type, all plans in a chart, and the best layouts. The program of
//! `pages/details` draws the shown plan below them.

pub(crate) mod amounts;
mod answer;
mod bar;
mod cards;
mod deadline_rule;
mod findings;
mod front;
pub(crate) mod handover;
mod headline;
mod import;
mod layouts;
pub(crate) mod locks;
mod most_tokens;
mod plan_chart;
pub(crate) mod question;
mod report;
mod saved;
mod search;
pub(crate) mod state;
mod trust;
mod undo;
mod verdict;

use crate::address::{Address, name_page};
use crate::components::field::{AddressProblems, Problems};
use crate::message::search::FoundPlan;
use findings::Findings;
use handover::BestPlan;
use leptos::prelude::*;
use question::{has_scenario, is_in_bar};
use search::Search;
use state::PlanState;
use trainplan_shared::benchmarks::with_named_models;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::planning::Outline;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// The state that the parts of the page share.
#[derive(Clone, Copy)]
struct Planner {
    state: PlanState,
    address: Address,
    question: Memo<Spec>,
    search: Search,
    /// Whether a report that the user requested is not printed yet.
    wants_print: RwSignal<bool>,
    /// Whether the cards show all figures.
    more_figures: RwSignal<bool>,
    /// Whether the last GPU type was removed from the bar, and none was added yet.
    lacks_gpu: RwSignal<bool>,
    /// The GPUs of the shown plan; none while the first search runs, and if the plan can't run.
    shown: Memo<Option<ShownGpus>>,
}

/// The GPUs of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ShownGpus {
    /// The id of the GPU type.
    id: String,
    /// Its name.
    name: String,
    count: u32,
}

impl ShownGpus {
    fn of(plan: &Spec) -> Option<ShownGpus> {
        let Outline { gpu, gpus, .. } = plan.outline()?;
        Some(ShownGpus { id: gpu.id.clone(), name: gpu.name.clone(), count: gpus })
    }
}

impl Planner {
    fn of_page() -> Planner {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Plan page provides its question")
    }

    fn provide() -> Planner {
        let mut search = None;
        let find_best = |question| {
            let started = *search.insert(Search::start(question));
            Memo::new(move |_| {
                started.findings.with(|findings| {
                    let plan = findings.best_plan()?.query.clone();
                    Some(BestPlan { question: findings.query.clone(), plan })
                })
            })
        };
        let checked = handover::checked_plan();
        let can_run = move |plan: &Spec| {
            if plan.outline().is_none() {
                return Some(false);
            }
            let query = link::write(&plan.only_scenario());
            checked.with(|checked| Some(checked.as_ref().filter(|checked| checked.plan == query)?.can_run))
        };
        let state = PlanState::provide(find_best, can_run);
        let search = search.unwrap_or_else(|| Search::start(state.question));
        let problems = Memo::new(move |_| {
            let has_scenario = state.address.with_spec(has_scenario);
            let problems = search.findings.with(|findings| findings.problems.clone()).into_iter();
            // Below a plan of the address, the details show the problems of its fields.
            problems.filter(|problem| !has_scenario || !problem.field.is_of_scenario()).collect()
        });
        provide_context(Problems(problems));
        let wants_print = RwSignal::new(false);
        let planner = Planner {
            state,
            address: state.address,
            question: state.question,
            search,
            wants_print,
            more_figures: RwSignal::new(false),
            lacks_gpu: RwSignal::new(false),
            shown: Memo::new(move |_| {
                // Until the details say otherwise, a plan is assumed to run. Without that, tables and cards would lose it for a moment
                // whenever another one is chosen, and with it the focus.
                let may_run = !state.is_waiting() && state.can_run.get() != Some(false);
                may_run.then(|| state.spec.with(ShownGpus::of)).flatten()
            }),
        };
        provide_context(planner);
        planner
    }

    /// Returns the problem of a field.
    fn problem(self, field: Field) -> Option<Problem> {
        let Problems(problems) = use_context()?;
        problems.with(|problems| problems.iter().find(|problem| problem.field == field).cloned())
    }

    /// Whether the page shows this plan.
    fn is_shown(self, found: &FoundPlan) -> bool {
        let own = link::read(&found.query).spec;
        let is_of_plan = |(field, _): &(Field, &str)| field.is_of_scenario();
        self.state.spec.with(|spec| spec.iter().filter(is_of_plan).eq(own.iter().filter(is_of_plan)))
    }

    /// Returns the query of the scenario of the plan that the page shows; none if there is none.
    fn shown_query(self) -> Option<String> {
        let is_shown = self.shown.with(Option::is_some);
        is_shown.then(|| self.state.spec.with(|spec| link::write(&spec.only_scenario())))
    }

    /// Returns the problems of the fields of the question bar, and of the locks.
    fn bar_problems(self) -> Vec<Problem> {
        let Some(Problems(problems)) = use_context() else { return Vec::new() };
        // Locks don't have a separate field.
        let is_of_bar = |problem: &&Problem| {
            is_in_bar(problem.field) || matches!(problem.field, Field::Chance | Field::Lock)
        };
        problems.with(|problems| problems.iter().filter(is_of_bar).cloned().map(with_named_models).collect())
    }

    /// Whether the page doesn't show the answer to the typed question, because a search runs or a field has a problem.
    fn is_outdated(self) -> bool {
        self.search.findings.with(|findings| findings.is_behind)
            || self.cannot_run()
            || self.lacks_gpu.get()
            || most_tokens::are_sought(self)
    }

    /// Whether the address describes a plan that can't run.
    fn cannot_run(self) -> bool {
        self.state.can_run.get() == Some(false)
    }

    /// Whether the search found no plan, so that there are no details to show.
    fn has_no_plan(self) -> bool {
        let found_none = |findings: &Findings| findings.is_answered() && findings.best_plan().is_none();
        !self.address.with_spec(has_scenario) && self.search.findings.with(found_none)
    }

    /// Whether the first question has a problem and can't be answered.
    fn has_no_answer(self) -> bool {
        self.search.findings.with(|findings| findings.offers.is_empty() && !findings.problems.is_empty())
    }

    /// Whether the first question can't be answered, and only the bar says why. Other fields are in the details.
    fn is_about_the_bar(self) -> bool {
        let is_of_bar =
            |findings: &Findings| findings.problems.iter().all(|problem| is_in_bar(problem.field));
        self.has_no_answer() && self.search.findings.with(is_of_bar)
    }

    /// Loads the program of the details after the first answer, and passes it the best plan.
    fn hand_over(self) {
        Effect::new(move |_| handover::name_best(self.state.best.get()));
        Effect::new(move |is_loaded: Option<bool>| {
            if is_loaded == Some(true) {
                return true;
            }
            let findings = self.search.findings;
            let is_answered = findings.with(|findings| findings.is_answered() || findings.is_done);
            let is_due = is_answered || self.search.is_broken() || self.address.with_spec(has_scenario);
            // Without the program's script, the page has no details.
            is_due && handover::load_details().is_ok()
        });
    }
}

/// The Plan page.
#[component]
pub(crate) fn PlanPage() -> impl IntoView {
    name_page(|| "Plan".into());
    let planner = Planner::provide();
    planner.hand_over();
    most_tokens::fill_in(planner);
    report::print_when_answered(planner);
    undo::undo_by_keys();
    saved::SavedPlans::provide(planner.address);
    saved::compare_scripts(planner);
    view! {
        <div class="plan">
            <report::ReportHead />
            <bar::QuestionBar />
            <AddressProblems address=planner.address recipe=true />
            <answer::Answer />
            <div class="pair" hidden=move || planner.has_no_answer()>
                <front::Front />
                <layouts::Layouts />
            </div>
            <saved::SavedPanel />
            <div
                id=handover::DETAILS_ID
                class="details"
                class:stale=move || planner.is_outdated()
                hidden=move || planner.has_no_plan() || planner.is_about_the_bar()
            ></div>
        </div>
    }
}
