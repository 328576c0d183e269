//! Plans that the user saved in this browser, or that came with a link, side by side.

mod facts;
mod launch_scripts;
mod links;
mod panel;
mod save_button;
mod tables;

pub(super) use launch_scripts::compare_scripts;
pub(super) use panel::SavedPanel;
pub(super) use save_button::SaveButton;

use super::amounts::price_text;
use super::findings::{Findings, OfferFindings, effect_on};
use super::search::Search;
use super::state::PLANS_KEY;
use crate::address::Address;
use crate::components::gpu_mark::GpuMark;
use crate::message::search::{AskedGoal, FoundPlan, ScriptEffect, Spread};
use crate::storage::Kept;
use leptos::prelude::*;
use links::{found_again, link_of, queries, question_of};
use serde::{Deserialize, Serialize};
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::question::in_time_of_ten;
use trainplan_shared::spec::Spec;
use trainplan_shared::units::group_digits;

/// Where the browser stores the plans. Another name for another format.
const KEY: &str = "plans-1";

/// The most plans that are kept, so that they can be read side by side.
const MOST: usize = 4;

/// A plan with what it trains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct SavedPlan {
    /// The title of the model.
    model: String,
    tokens: f64,
    /// The name of the GPU type.
    gpu: String,
    software: String,
    currency: String,
    /// The price of a GPU-hour, as people read it.
    #[serde(default)]
    price: Option<String>,
    /// How many times as much it costs on demand as reserved.
    #[serde(default)]
    on_demand_factor: Option<Spread>,
    /// What a GPU costs for the whole term of a reservation.
    #[serde(default)]
    whole_term: Option<(f64, f64)>,
    /// Days at the throughput of the fastest measured run, if the plan is predicted to be clearly faster.
    #[serde(default)]
    as_measured_days: Option<f64>,
    /// What the launch script does otherwise than planned; none if that is not known, or if the figures are those of measured software.
    #[serde(default)]
    script: Option<ScriptEffect>,
    /// The deadline of the question, in days.
    #[serde(default)]
    limit_days: Option<f64>,
    /// The plan with the question that it answers, as a query; empty if an older version of the page saved it.
    #[serde(default)]
    link: String,
    plan: FoundPlan,
}

impl SavedPlan {
    /// Returns its GPUs: `512 × H100`.
    fn name(&self) -> String {
        format!("{} × {}", group_digits(self.plan.gpus.into()), self.gpu)
    }

    /// Returns the query that opens it. Two plans are the same if it is.
    fn query(&self) -> &str {
        if self.link.is_empty() { &self.plan.query } else { &self.link }
    }

    fn mark(&self) -> GpuMark {
        GpuMark::of(link::read(&self.plan.query).spec.raw(Field::Gpu))
    }

    /// Returns the days with the software of the launch script.
    fn days_by_script(&self) -> Spread {
        self.plan.days.times(self.script.map_or(1.0, |script| script.slowdown))
    }

    /// Returns how many of ten such runs, by the launch script, end within the time of the question; none if it has none.
    fn in_time_of_ten(&self) -> Option<u32> {
        let Spread { low, mid, high } = self.days_by_script();
        self.limit_days.map(|limit| in_time_of_ten(Interval { low, mid, high }, limit))
    }

    /// Returns the cost on demand instead of that of a reservation; none if another price is used or that on demand is unknown.
    fn on_demand_cost(&self) -> Option<Spread> {
        Some(self.plan.cost?.product(self.on_demand_factor?))
    }
}

/// Returns a plan of a GPU type with what it trains.
fn saved_plan(findings: &Findings, offer: &OfferFindings, plan: &FoundPlan) -> SavedPlan {
    let asked = findings.asked.clone().unwrap_or_default();
    let measured = plan.measured_software.clone();
    let is_planned = measured.is_none();
    SavedPlan {
        model: asked.model,
        tokens: asked.tokens,
        gpu: offer.gpu.name.clone(),
        software: measured.unwrap_or_else(|| offer.gpu.software.clone()),
        price: price_text(&offer.gpu, &asked.currency),
        on_demand_factor: offer.gpu.on_demand_factor,
        whole_term: offer.gpu.whole_term,
        as_measured_days: findings.as_measured_days(offer, plan),
        script: effect_on(&findings.scripts, &plan.query).filter(|_| is_planned),
        limit_days: match asked.goal {
            AskedGoal::Deadline(limit) => Some(limit),
            AskedGoal::Budget(_) | AskedGoal::Open => None,
        },
        link: link_of(findings, plan),
        currency: asked.currency,
        // With the planned software, since its own script is counted.
        plan: plan.slowed(1.0 / offer.script.filter(|_| is_planned).map_or(1.0, |effect| effect.slowdown)),
    }
}

/// The saved plans.
#[derive(Clone, Copy)]
pub(super) struct SavedPlans {
    plans: RwSignal<Vec<SavedPlan>>,
    /// What the last click on a star did.
    note: RwSignal<Option<String>>,
    /// Whether the address names the plans. It also keeps their changes: stored in the browser, they would replace the user's.
    are_linked: bool,
    /// The plans of the address that are still searched, as queries.
    sought: RwSignal<Vec<String>>,
    /// Whether the search no longer finds one of them.
    lacks_some: RwSignal<bool>,
}

impl SavedPlans {
    /// Provides the plans that the address names, or else those that this browser stored, and keeps every change of them there.
    pub(super) fn provide(address: Address) {
        let linked = untrack(|| address.own(PLANS_KEY));
        let linked: Vec<String> = linked.split_whitespace().take(MOST).map(str::to_string).collect();
        let are_linked = !linked.is_empty();
        let plans = if are_linked { Vec::new() } else { Kept::InBrowser.get(KEY).unwrap_or_default() };
        let saved = SavedPlans {
            plans: RwSignal::new(plans),
            note: RwSignal::new(are_linked.then(|| "The link compares plans side by side.".into())),
            are_linked,
            sought: RwSignal::new(linked),
            lacks_some: RwSignal::new(false),
        };
        provide_context(saved);
        if are_linked {
            saved.seek();
        }
        Effect::new(move |before: Option<()>| {
            let plans = saved.plans.get();
            // The address keeps the plans that are still searched, and those that the search no longer finds.
            let is_incomplete =
                untrack(|| !saved.sought.with(Vec::is_empty) || saved.lacks_some.get()) || before.is_none();
            match are_linked {
                _ if is_incomplete => {}
                true => {
                    let queries = queries(&plans);
                    // The plans also change when it is known what their scripts do.
                    if untrack(|| address.own(PLANS_KEY)) != queries {
                        address.set_own(PLANS_KEY, queries);
                    }
                }
                // Without access to storage, the plans stay until the page is left.
                false => Kept::InBrowser.set(KEY, &plans),
            }
        });
    }

    /// Searches for the plans of the address, one question at a time, so that all figures are those of the same estimate.
    fn seek(self) {
        let question = Memo::new(move |before: Option<&Spec>| {
            let next = self.sought.with(|sought| sought.first().map(|query| question_of(query)));
            next.or_else(|| before.cloned()).unwrap_or_default()
        });
        let search = Search::start(question);
        Effect::new(move |_| {
            let Some(query) = self.sought.with(|sought| sought.first().cloned()) else { return };
            let asked = question.with(link::write);
            let is_refused = search.findings.with(|found| found.is_done && !found.problems.is_empty());
            if is_refused || search.is_broken() {
                // Whether a later question was refused too can't be seen.
                self.lacks_some.set(true);
                return self.sought.set(Vec::new());
            }
            let found = search.findings.with(|findings| {
                let is_answered = findings.is_done && !findings.is_behind && findings.query == asked;
                is_answered.then(|| found_again(findings, &query))
            });
            let Some(found) = found else { return };
            match found {
                Some(plan) => self.plans.update(|plans| plans.push(plan)),
                None => self.lacks_some.set(true),
            }
            self.sought.update(|sought| drop(sought.remove(0)));
        });
    }

    fn of_page() -> SavedPlans {
        #[expect(clippy::expect_used, reason = "the page provides it before its parts are made")]
        use_context().expect("the Plan page provides the saved plans")
    }

    fn contains(self, query: &str) -> bool {
        self.plans.with(|plans| plans.iter().any(|saved| saved.query() == query))
    }

    fn is_full(self) -> bool {
        self.plans.with(|plans| plans.len() >= MOST)
    }

    fn remove(self, query: &str) {
        self.plans.update(|plans| plans.retain(|saved| saved.query() != query));
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan};
    use super::*;

    /// Returns the best plans of two GPU types.
    pub(super) fn two() -> Vec<SavedPlan> {
        let findings =
            answered(&[("H100", Some(plan(1000, 58.0, 4e6))), ("B200", Some(plan(500, 58.0, 3e6)))]);
        let saved = |offer: &OfferFindings| {
            saved_plan(
                &findings,
                offer,
                offer.answer.as_ref().and_then(|answer| answer.plan.as_ref()).expect("a plan"),
            )
        };
        findings.offers.iter().map(saved).collect()
    }
}
