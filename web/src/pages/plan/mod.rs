//! The Plan page: a question, its answer for each GPU type, all plans in a chart, and the best layouts. The program of
//! `pages/details` draws the shown plan below them.

mod bar;
mod cards;
mod deadline_rule;
mod findings;
mod front;
pub(crate) mod handover;
mod import;
mod layouts;
pub(crate) mod locks;
mod palette;
mod plan_chart;
pub(crate) mod question;
mod report;
mod saved;
pub(crate) mod state;
mod trust;
pub(crate) mod verdict;

use crate::address::{Address, name_page};
use crate::components::field::{AddressProblems, Problems};
use crate::message::search::FoundPlan;
use findings::Search;
use leptos::prelude::*;
use question::has_scenario;
use state::PlanState;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// The state that the parts of the page share.
#[derive(Clone, Copy)]
struct Planner {
    state: PlanState,
    address: Address,
    question: Memo<Spec>,
    search: Search,
}

impl Planner {
    fn of_page() -> Planner {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Plan page provides its question")
    }

    fn provide() -> Planner {
        let mut search = None;
        let state = PlanState::provide(|question| {
            let started = *search.insert(Search::start(question));
            Memo::new(move |before: Option<&Option<String>>| {
                started.findings.with(|findings| match findings.is_searching() || !findings.is_answered() {
                    true => before.cloned().flatten(),
                    false => findings.best_plan().map(|plan| plan.query.clone()),
                })
            })
        });
        let search = search.unwrap_or_else(|| Search::start(state.question));
        let problems = Memo::new(move |_| {
            let has_scenario = state.address.with_spec(has_scenario);
            let problems = search.findings.with(|findings| findings.problems.clone()).into_iter();
            // Below a plan of the address, the details show the problems of its fields.
            problems.filter(|problem| !has_scenario || !problem.field.is_of_scenario()).collect()
        });
        provide_context(Problems(problems));
        let planner = Planner { state, address: state.address, question: state.question, search };
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

    /// Loads the program of the details once something is answered, and tells it the best plan.
    fn hand_over(self) {
        Effect::new(move |_| handover::name_best(self.state.best.get().as_deref()));
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
    saved::SavedPlans::provide();
    view! {
        <palette::Palette />
        <div class="plan">
            <report::ReportHead />
            <bar::QuestionBar />
            <AddressProblems address=planner.address />
            <cards::Answer />
            <div class="pair">
                <front::Front />
                <layouts::Layouts />
            </div>
            <saved::SavedPanel />
            <div
                id=handover::DETAILS_ID
                class="details"
                class:stale=move || planner.search.findings.with(|findings| findings.is_behind)
            ></div>
        </div>
    }
}
