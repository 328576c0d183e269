//! The answer in a few sentences: what the best plan takes, what its risks are, and how it compares with other GPU types.

mod certainty;
mod comparison;
mod faster;
mod launch_scripts;
mod misses;
mod price;

pub(super) use certainty::at_measured_speed;
pub(super) use launch_scripts::script_sentence;
pub(super) use misses::enough_for;
pub(super) use price::{beyond_budget, needs_reservation, reserved_beyond, terms};

use super::amounts::cost_text;
use super::findings::Findings;
use crate::message::search::{AskedGoal, AskedGpu, FoundPlan, Spread};
use certainty::{late, overspent};
use comparison::{compared, others};
use faster::{faster_layout, unspent};
use launch_scripts::by_script;
use misses::{missed, unreached};
use price::shared_price;
use trainplan_shared::estimate::Interval;
use trainplan_shared::question::{PlanInWords, cost_in_words};

/// The answer in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The answer.
    pub(super) lead: String,
    /// The risk, and the comparison with the next GPU type; may be empty.
    pub(super) rest: String,
    /// What the costs depend on, and what further GPU types take; may be empty.
    pub(super) more: String,
}

/// Returns the verdict, once every GPU type is answered.
pub(super) fn verdict(findings: &Findings) -> Option<Verdict> {
    if findings.offers.is_empty() || findings.offers.iter().any(|offer| offer.answer.is_none()) {
        return None;
    }
    let mut reaching = findings.reaching().into_iter().filter_map(|index| {
        let offer = &findings.offers[index];
        Some((offer, offer.answer.as_ref()?.plan.as_ref()?))
    });
    let (first, second) = (reaching.next(), reaching.next());
    let goal = findings.goal();
    let currency = findings.asked.as_ref().map_or("", |asked| asked.currency.as_str());
    Some(match (first, second) {
        (None, _) => unreached(findings, currency),
        (Some((offer, plan)), second) => {
            let (budget, days, paid_gpus) = (findings.budget(), plan.days.mid, Some(plan.paid_gpus));
            let objective = findings.asked.as_ref().and_then(|asked| asked.objective);
            let compared =
                second.map_or(String::new(), |second| compared((offer, plan), second, goal, objective));
            Verdict {
                lead: alone(&offer.gpu, plan, (goal, budget), currency),
                // The risk first.
                rest: sentences([
                    by_script(findings),
                    missed(findings),
                    late(findings),
                    reserved_beyond(&offer.gpu, days, paid_gpus, budget, currency),
                    faster_layout(goal, offer),
                    overspent(findings),
                    unspent(findings, offer, plan, currency),
                    compared,
                ]),
                more: sentences([
                    others(reaching.collect::<Vec<_>>().as_slice(), currency),
                    terms(&offer.gpu, plan.cost, paid_gpus, budget, currency),
                    shared_price(findings),
                ]),
            }
        }
    })
}

/// Returns what a plan takes, as a sentence. The budget may be the goal, or a limit beside it.
pub(super) fn alone(
    gpu: &AskedGpu,
    plan: &FoundPlan,
    (goal, budget): (AskedGoal, Option<f64>),
    currency: &str,
) -> String {
    let text = |cost: Spread| cost_text(cost.mid, currency);
    let cost = plan.cost.map(|cost| {
        let on_demand = gpu.on_demand_factor.map(|factor| text(cost.product(factor)));
        let beyond = beyond_budget(gpu, plan, budget);
        cost_in_words(text(cost), gpu.purchase.as_deref(), on_demand, beyond)
    });
    in_words(gpu, plan).finishes(matches!(goal, AskedGoal::Deadline(_)), cost)
}

fn in_words<'a>(gpu: &'a AskedGpu, plan: &FoundPlan) -> PlanInWords<'a> {
    let Spread { low, mid, high } = plan.days;
    PlanInWords {
        gpus: plan.gpus,
        gpu: &gpu.name,
        days: Interval { low, mid, high },
        most_cost: plan.cost.map(|cost| cost.high),
        measured_software: None,
    }
}

fn sentences<const N: usize>(sentences: [String; N]) -> String {
    sentences.into_iter().filter(|sentence| !sentence.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns "a", "a and b", "a, b and c".
fn all_of(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::tests::{answered, plan};
    use super::*;

    /// Returns what the verdict says first, and the risk with the comparison.
    pub(super) fn lead(findings: &Findings) -> (String, String) {
        let Verdict { lead, rest, .. } = verdict(findings).expect("a verdict");
        (lead, rest)
    }

    /// Returns the findings of a question with a budget of 4 million for a single plan with reserved GPUs.
    pub(super) fn for_budget(plan: FoundPlan) -> Findings {
        let mut findings = answered(&[("B200", Some(plan))]);
        let gpu = &mut findings.offers[0].gpu;
        gpu.price = Some((2.9, 2.9));
        gpu.purchase = Some("reserved for 3 years".into());
        gpu.whole_term = Some((76_263.0, 76_263.0));
        gpu.on_demand_factor = Some(Spread { low: 2.0, mid: 2.5, high: 3.0 });
        let asked = findings.asked.as_mut().expect("a question");
        asked.goal = AskedGoal::Budget(4e6);
        asked.longest_days = Some(180.0);
        findings
    }

    #[test]
    fn a_short_run_takes_hours() {
        let findings = answered(&[("B200", Some(plan(64, 0.5, 1e4)))]);
        assert_eq!(lead(&findings).0, "64 B200 GPUs take about 12 hours and cost $10.0k.");
    }
}
