//! The headline: the shown plan in a sentence, and whether it is the best one.

use super::amounts::{limit_text, money};
use super::findings::{Findings, effect_on};
use super::handover::{self, PlanFigures};
use super::question::has_scenario;
use super::verdict::{Verdict, alone, at_measured_speed, reserved_beyond, script_sentence, terms, verdict};
use super::{Planner, ShownGpus};
use crate::message::search::ScriptEffect;
use crate::message::search::{AskedGoal, AskedGpu, FoundPlan, Spread};
use leptos::prelude::*;
use trainplan_shared::estimate::Interval;
use trainplan_shared::link;
use trainplan_shared::question::{as_measured, chance_text, gpus_of_type, in_time_of_ten};

/// The headline of the page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Headline {
    /// The shown plan; empty while the first search runs.
    pub(super) lead: String,
    /// What it depends on, and what the best plan is if another one is shown; may be empty.
    pub(super) rest: String,
    /// What the costs depend on, and what further GPU types take; may be empty.
    pub(super) more: String,
    /// Whether the shown plan is not the best one.
    pub(super) is_other: bool,
}

/// The words between a plan of the user's and the best one.
const PREFERRED: &str = "You chose this plan; the search prefers another one:";

/// The words if the user's plan takes no longer, for example because its speed was published.
const AS_FAST: &str = "The best plan of the search:";

/// A plan of the address that is not the best one.
#[derive(Debug, Clone, PartialEq)]
struct OtherPlan {
    /// The id of the GPU type.
    id: String,
    /// Its name.
    gpu: String,
    gpus: u32,
    /// The GPUs to pay for; none if the search didn't find the plan.
    paid_gpus: Option<u32>,
    /// None while they are calculated.
    figures: Option<PlanFigures>,
    /// Whether it is the best one if the deadline had to be met with the other chance.
    is_with_other_chance: bool,
    /// A sentence on the measured software of its figures, or on its days at the throughput of the fastest measured run if the plan
    /// is predicted to be clearly faster; may be empty.
    as_measured: String,
    /// How its launch script differs from the plan.
    script: Option<ScriptEffect>,
}

/// Returns the headline. While figures are calculated, it stays that of the previous plan.
pub(super) fn headline(plan: Planner) -> Memo<Headline> {
    let told = handover::shown_figures();
    Memo::new(move |before: Option<&Headline>| {
        plan.search.findings.with(|findings| {
            let Some(best) = verdict(findings) else { return Headline::default() };
            let is_chosen = plan.address.with_spec(has_scenario);
            if is_chosen && plan.cannot_run() {
                return impossible();
            }
            let query = plan.state.spec.with(link::write);
            let told = told.get().filter(|figures| figures.plan == query);
            let other = is_chosen.then(|| other_plan(plan, findings, query, told)).flatten();
            let Some(other) = other else { return of_best(best) };
            match (&other.figures, before) {
                (None, Some(before)) if !before.lead.is_empty() => before.clone(),
                _ => of_other(&other, findings, &best),
            }
        })
    })
}

/// Returns the plan of the address; none if it is the best one.
fn other_plan(
    plan: Planner,
    findings: &Findings,
    query: String,
    told: Option<PlanFigures>,
) -> Option<OtherPlan> {
    if findings.best_plan().is_some_and(|best| plan.is_shown(best)) {
        return None;
    }
    let ShownGpus { id, name: gpu, count: gpus } = plan.shown.get()?;
    let mut alike = findings.plans().filter(|(offer, found)| offer.gpu.id == id && found.gpus == gpus);
    let found = alike.find(|(_, found)| plan.is_shown(found));
    let is_measured = found.is_some_and(|(_, found)| found.measured_software.is_some());
    let as_measured = found.map_or(String::new(), |(offer, found)| match &found.measured_software {
        Some(software) => format!("These figures are {}.", as_measured(Some(software))),
        None => findings
            .as_measured_days(offer, found)
            .map_or(String::new(), |days| at_measured_speed(&gpu, days)),
    });
    let paid_gpus = found.map(|(_, found)| found.paid_gpus);
    let found = found.map(|(_, found)| PlanFigures {
        plan: query,
        days: Some(found.days),
        cost: found.cost,
        lack: None,
    });
    let others = findings.offers.iter().filter_map(|offer| offer.answer.as_ref()?.with_other_chance.as_ref());
    let is_with_other_chance = others.into_iter().any(|other| plan.is_shown(other));
    let script = plan.shown_query().and_then(|query| effect_on(&findings.scripts, &query));
    let script = script.filter(|effect| !effect.is_none() && !is_measured);
    // The details have the figures of the launch script, those of the search may have others.
    let figures = if script.is_some() { told.or(found) } else { found.or(told) };
    Some(OtherPlan { id, gpu, gpus, paid_gpus, figures, is_with_other_chance, as_measured, script })
}

fn of_best(Verdict { lead, rest, more }: Verdict) -> Headline {
    Headline { lead, rest, more, is_other: false }
}

/// Returns the headline of a plan that can't run.
fn impossible() -> Headline {
    Headline {
        lead: "This plan can't run.".into(),
        rest: "Fix the marked field.".into(),
        more: String::new(),
        is_other: true,
    }
}

fn of_other(other: &OtherPlan, findings: &Findings, best: &Verdict) -> Headline {
    let goal = findings.goal();
    let currency = findings.asked.as_ref().map_or("", |asked| asked.currency.as_str());
    let figures = other.figures.as_ref();
    let has_best = !findings.reaching().is_empty();
    if let Some(lack) = figures.and_then(|figures| figures.lack.as_ref()) {
        let lead = format!("Your plan on {} doesn't fit in memory.", gpus_of_type(other.gpus, &other.gpu));
        let prefers = if has_best { PREFERRED } else { "" };
        let rest = format!("{lack} {prefers} {}", best.lead);
        return Headline { lead, rest, more: String::new(), is_other: true };
    }
    let offer = findings.offers.iter().find(|offer| offer.gpu.id == other.id);
    let plan = figures.and_then(|figures| {
        let (days, cost) = (figures.days?, figures.cost);
        let paid_gpus = other.paid_gpus.unwrap_or_default();
        Some(FoundPlan { gpus: other.gpus, paid_gpus, days, cost, ..FoundPlan::default() })
    });
    let by_script = other.script.filter(|_| plan.is_some());
    let by_script = by_script.map_or(String::new(), script_sentence);
    let lead = match &plan {
        Some(plan) => {
            let gpu = offer.map_or_else(
                || AskedGpu { name: other.gpu.clone(), ..AskedGpu::default() },
                |offer| offer.gpu.clone(),
            );
            alone(&gpu, plan, (goal, findings.budget()), currency)
        }
        None => format!("Your plan on {}.", gpus_of_type(other.gpus, &other.gpu)),
    };
    let reaches = figures.map_or(String::new(), |figures| reaches_goal(figures, goal, currency));
    let best_plan = findings.best_plan();
    let is_as_fast = figures.and_then(|figures| figures.days).is_some_and(|days| {
        best_plan.is_some_and(|best| best.gpus == other.gpus && days.mid <= best.days.mid * 1.01)
    });
    let why = match (other.is_with_other_chance, findings.is_by_slow_end()) {
        // The sentence says that there is none.
        _ if !has_best => "",
        _ if is_as_fast => AS_FAST,
        (true, true) => "A plan that meets it 9 times in 10:",
        (true, false) => "The plan with the fewest GPUs may miss it:",
        (false, _) => PREFERRED,
    };
    let cost = figures.and_then(|figures| figures.cost);
    let days = figures.and_then(|figures| figures.days).map_or(f64::INFINITY, |days| days.mid);
    let (budget, paid_gpus) = (findings.budget(), other.paid_gpus);
    let [terms, reserved] = offer.map_or_else(Default::default, |offer| {
        let terms = terms(&offer.gpu, cost, paid_gpus, budget, currency);
        [terms, reserved_beyond(&offer.gpu, days, paid_gpus, budget, currency)]
    });
    let parts = [by_script.as_str(), &reaches, &reserved, &other.as_measured, why, &best.lead];
    let rest = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    Headline { lead, rest, more: terms, is_other: true }
}

/// Returns whether a plan reaches the goal, as a sentence; empty if there is no goal.
fn reaches_goal(figures: &PlanFigures, goal: AskedGoal, currency: &str) -> String {
    match (goal, figures.days, figures.cost) {
        (AskedGoal::Deadline(limit), Some(days), _) => {
            let deadline = format!("the deadline of {}", limit_text(limit));
            let Spread { low, mid, high } = days;
            let of_ten = in_time_of_ten(Interval { low, mid, high }, limit);
            match mid > limit {
                true if of_ten == 0 => format!("The plan misses {deadline}."),
                true => format!("The plan meets {deadline} only {}.", chance_text(of_ten)),
                false => format!("The plan meets {deadline} {}.", chance_text(of_ten)),
            }
        }
        (AskedGoal::Budget(limit), _, Some(cost)) => {
            let budget = format!("the budget of {}", money(limit, currency));
            match (cost.mid > limit, cost.high > limit) {
                (true, _) => format!("The plan exceeds {budget}."),
                (false, true) => format!("At the expensive end of its range, the plan exceeds {budget}."),
                (false, false) => {
                    format!("The plan stays within {budget} even at the expensive end of its range.")
                }
            }
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan, spread};
    use super::*;

    fn of(days: Option<f64>, cost: Option<f64>) -> Headline {
        let (days, cost) = (days.map(spread), cost.map(spread));
        of_figures(PlanFigures { plan: String::new(), days, cost, lack: None }, false)
    }

    fn of_figures(figures: PlanFigures, is_with_other_chance: bool) -> Headline {
        let findings = answered(&[("H100", Some(plan(1024, 58.0, 4e6)))]);
        let other = OtherPlan {
            id: "b200".into(),
            gpu: "B200".into(),
            gpus: 576,
            paid_gpus: None,
            figures: Some(figures),
            is_with_other_chance,
            as_measured: String::new(),
            script: None,
        };
        let best = verdict(&findings).expect("a verdict");
        of_other(&other, &findings, &best)
    }

    #[test]
    fn another_plan_than_the_best_one_is_described_with_the_best_one_beside_it() {
        let headline = of(Some(50.0), Some(3e6));
        assert_eq!(headline.lead, "576 B200 GPUs take about 50 days and cost $3.00M.");
        assert_eq!(
            headline.rest,
            "The plan meets the deadline of 60 days more than 9 times in 10. You chose this plan; the search prefers \
             another one: 1,024 H100 GPUs take about 58 days and cost $4.00M."
        );
        assert!(headline.is_other);
        let rest = |days: f64| of(Some(days), None).rest;
        assert!(rest(58.0).starts_with("The plan meets the deadline of 60 days about 7 times in 10."));
        assert!(rest(62.0).starts_with("The plan meets the deadline of 60 days only about 3 times in 10."));
        assert!(rest(70.0).starts_with("The plan misses the deadline of 60 days."));
    }

    #[test]
    fn a_plan_that_does_not_fit_has_no_days() {
        let lack = Some("Doesn't fit: a GPU needs 320 GiB; it has 180 GiB.".to_string());
        let figures = PlanFigures { plan: String::new(), days: Some(spread(50.0)), cost: None, lack };
        let headline = of_figures(figures, false);
        assert_eq!(headline.lead, "Your plan on 576 B200 GPUs doesn't fit in memory.");
        assert!(headline.rest.starts_with("Doesn't fit: a GPU needs 320 GiB"), "{}", headline.rest);
    }

    #[test]
    fn the_safe_plan_is_not_argued_against() {
        let days = Some(spread(50.0));
        let figures = PlanFigures { plan: String::new(), days, cost: None, lack: None };
        let rest = of_figures(figures, true).rest;
        assert!(rest.contains("The plan with the fewest GPUs may miss it: 1,024 H100 GPUs"), "{rest}");
    }

    #[test]
    fn a_plan_without_figures_is_named() {
        assert_eq!(of(None, None).lead, "Your plan on 576 B200 GPUs.");
    }
}
