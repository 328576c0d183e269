//! Saved plans in links: the query of each, with the question that finds it again.

use super::{SavedPlan, saved_plan};
use crate::address;
use crate::message::search::FoundPlan;
use crate::pages::plan::findings::Findings;
use crate::pages::plan::question::{self, with_plan};
use crate::pages::plan::state::PLANS_KEY;
use leptos::prelude::window;
use trainplan_shared::link;
use trainplan_shared::spec::Spec;

/// Returns the query of a plan with the question that it answers.
pub(super) fn link_of(findings: &Findings, plan: &FoundPlan) -> String {
    let [question, plan] = [&findings.query, &plan.query].map(|query| link::read(query).spec);
    link::write(&with_plan(&question, &question, &plan))
}

/// Returns the question in the query of a plan.
pub(super) fn question_of(query: &str) -> Spec {
    let spec = link::read(query).spec;
    question::question(&spec, spec.outline().as_ref())
}

/// Returns the plan of a query, if the search has found it.
pub(super) fn found_again(findings: &Findings, query: &str) -> Option<SavedPlan> {
    let (offer, plan) = findings.plans().find(|(_, plan)| link_of(findings, plan) == query)?;
    Some(saved_plan(findings, offer, plan))
}

/// Returns the link to plans side by side. The page shows the first one.
pub(super) fn comparison_link(plans: &[SavedPlan]) -> String {
    let shown = link::read(plans.first().map(SavedPlan::query).unwrap_or_default()).spec;
    let origin = window().location().origin().unwrap_or_default();
    format!("{origin}/?{}", address::query(&shown, &[(PLANS_KEY, queries(plans))]))
}

/// Returns the queries of plans, as an address names them.
pub(super) fn queries(plans: &[SavedPlan]) -> String {
    plans.iter().map(SavedPlan::query).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::plan::findings::tests::{answered, plan};

    #[test]
    fn the_query_of_a_plan_names_its_whole_question_and_finds_the_plan_again() {
        let query = "m=llama3.1-70b&gpu=h100&n=1024&tp=4&gbs=1024".to_string();
        let mut findings =
            answered(&[("H100", Some(FoundPlan { query, ..plan(1024, 58.0, 4e6) })), ("B200", None)]);
        findings.query = "m=llama3.1-70b&t=10T&gs=h100,b200&by=60d&odds=even&price=3".into();
        let query = link_of(&findings, findings.best_plan().expect("a plan"));
        assert_eq!(question_of(&query), link::read(&findings.query).spec);
        assert_eq!(found_again(&findings, &query).map(|saved| saved.link), Some(query));
        assert_eq!(found_again(&findings, "m=llama3.1-8b"), None);
    }
}
