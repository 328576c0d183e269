//! What the launch scripts of all plans on the page do otherwise than planned.

use super::SavedPlans;
use crate::pages::plan::findings::{Findings, effect_on};
use crate::pages::plan::question::has_scenario;
use crate::pages::plan::{Planner, handover};
use leptos::prelude::*;

/// Asks the program of the details what the launch scripts of all plans on the page do otherwise than planned, and keeps its answers.
pub(in crate::pages::plan) fn compare_scripts(planner: Planner) {
    let saved = SavedPlans::of_page();
    let findings = planner.search.findings;
    let named = Memo::new(move |_| {
        let of_page = findings.with(Findings::queries_to_launch).into_iter();
        let kept =
            saved.plans.with(|plans| plans.iter().map(|saved| saved.plan.query.clone()).collect::<Vec<_>>());
        let shown = planner.address.with_spec(has_scenario).then(|| planner.shown_query()).flatten();
        of_page.chain(kept).chain(shown).collect::<Vec<_>>().join(" ")
    });
    Effect::new(move |_| handover::name_plans(named.get()));
    let told = handover::named_scripts();
    Effect::new(move |_| {
        let scripts = told.with(|told| told.as_deref().map_or(Vec::new(), handover::read_scripts));
        saved.plans.maybe_update(|plans| {
            let mut has_changed = false;
            for plan in plans.iter_mut() {
                let script = effect_on(&scripts, &plan.plan.query).or(plan.script);
                let script = script.filter(|_| plan.plan.measured_software.is_none());
                has_changed |= plan.script != script;
                plan.script = script;
            }
            has_changed
        });
        findings.update(|findings| findings.scripts = scripts);
    });
    let asked = Memo::new(move |_| findings.with(Findings::by_scripts));
    Effect::new(move |_| handover::ask_by_scripts(asked.get()));
    handover::hear_by_scripts(move |found| {
        // `try_`: the page may have been left meanwhile.
        findings.try_update(|findings| findings.hear_by_scripts(found));
    });
}
