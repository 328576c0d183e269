//! The Search page: a question, its answer for each GPU type, all plans in a chart, and the best layouts. A plan opens on
//! the Plan page.

mod bar;
mod cards;
mod findings;
mod front;
mod layouts;
mod plan_chart;
mod question;
mod verdict;

use crate::address::Address;
use crate::components::field::{AddressProblems, Problems};
use crate::message::search::FoundPlan;
use findings::Search;
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// The key of the address for the GPU type whose layouts are listed.
const LISTED_KEY: &str = "show";

/// The state that the parts of the page share.
#[derive(Clone, Copy)]
struct Planner {
    address: Address,
    /// The question: the typed fields with those that are assumed.
    question: Memo<Spec>,
    search: Search,
    /// The plan whose layouts are listed: the best one of a GPU type.
    shown: Memo<Option<FoundPlan>>,
}

impl Planner {
    fn of_page() -> Planner {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Search page provides its question")
    }

    fn provide() -> Planner {
        let keys = &[LISTED_KEY, front::Y_KEY, layouts::ORDER_KEY];
        let address = Address::provide_with("/search", keys);
        let question = Memo::new(move |_| question::question(&address.spec()));
        let search = Search::start(question);
        let shown = Memo::new(move |_| {
            let listed = address.own(LISTED_KEY);
            search.findings.with(|findings| {
                let of_listed = findings.offers.iter().find(|offer| offer.gpu.id == listed);
                let offer = of_listed.or(findings.best().and_then(|best| findings.offers.get(best)))?;
                offer.answer.as_ref()?.plan.clone()
            })
        });
        let problems = Memo::new(move |_| search.findings.with(|findings| findings.problems.clone()));
        provide_context(Problems(problems));
        let planner = Planner { address, question, search, shown };
        provide_context(planner);
        planner
    }

    /// Returns the problem of a field.
    fn problem(self, field: Field) -> Option<Problem> {
        let findings = self.search.findings;
        findings.with(|findings| findings.problems.iter().find(|problem| problem.field == field).cloned())
    }

    /// Whether the layouts of this plan's GPU type are listed.
    fn is_shown(self, found: &FoundPlan) -> bool {
        self.shown.with(|shown| shown.as_ref().is_some_and(|shown| shown.query == found.query))
    }

    /// Changes the question.
    fn ask(self, changes: &[(Field, &str)]) {
        self.address.turn_to(|spec| {
            for (field, value) in changes {
                spec.set(*field, *value);
            }
        });
    }
}

/// Returns the address of a plan on the Plan page.
fn plan_address(query: &str) -> String {
    format!("/?{query}")
}

/// Opens a plan on the Plan page, which is another program.
fn open_plan(query: &str) {
    // If the browser refuses, this page stays.
    let _ = window().location().assign(&plan_address(query));
}

/// The Search page.
#[component]
pub(crate) fn SearchPage() -> impl IntoView {
    let planner = Planner::provide();
    view! {
        <div class="search-page">
            <bar::QuestionBar />
            <AddressProblems address=planner.address />
            <cards::Answer />
            <div class="pair">
                <front::Front />
                <layouts::Layouts />
            </div>
        </div>
    }
}
