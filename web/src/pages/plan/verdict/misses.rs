//! Plans that miss the goal: the nearest one if none reaches it, and those of some GPU types.

use super::launch_scripts::by_script;
use super::{Verdict, all_of, in_words, sentences};
use crate::message::search::{AskedGoal, FoundAnswer};
use crate::pages::plan::amounts::{cost_text, count_text, limit_text, money};
use crate::pages::plan::findings::Findings;
use trainplan_shared::question::{LimitsInWords, PlanInWords, Unmet};
use trainplan_shared::units::group_digits;

/// Returns the sentence for a goal that no plan reaches: about the plan that comes nearest, which the page shows.
pub(super) fn unreached(findings: &Findings, currency: &str) -> Verdict {
    let nearest = findings.best().and_then(|index| {
        let offer = &findings.offers[index];
        let answer = offer.answer.as_ref()?;
        Some((offer, answer, answer.plan.as_ref()?, answer.unmet?))
    });
    let (time, budget) =
        (findings.most_days().map(limit_text), findings.budget().map(|budget| money(budget, currency)));
    let lead = match nearest {
        Some((offer, answer, plan, unmet)) => {
            let enough = match unmet {
                Unmet::TooExpensive { tokens, gpus, .. } if tokens > 0.0 => Some(enough_for(tokens, gpus)),
                _ => None,
            };
            let limits = LimitsInWords {
                time: time.as_deref(),
                has_deadline: matches!(findings.goal(), AskedGoal::Deadline(_)),
                budget: budget.as_deref(),
                by_slow_end: findings.is_by_slow_end(),
                cost: &|cost| cost_text(cost, currency),
                enough: enough.as_deref(),
            };
            let is_most = offer.points.last().is_some_and(|point| point.gpus == plan.gpus);
            let measured_software = answer.measured_software();
            PlanInWords { measured_software, ..in_words(&offer.gpu, plan) }.misses(unmet, is_most, &limits)
        }
        None => "No layout of this model works on these GPUs. The cards say what to change.".to_string(),
    };
    Verdict { lead, rest: sentences([by_script(findings), unpriced(findings)]), more: String::new() }
}

/// Returns for how many tokens a budget is enough, and with how many GPUs: `enough for 220B tokens on 40 GPUs`.
pub(in crate::pages::plan) fn enough_for(tokens: f64, gpus: u32) -> String {
    format!("enough for {} tokens on {} GPUs", count_text(tokens), group_digits(gpus.into()))
}

/// Returns the GPU types that need a price but have none, as a sentence.
fn unpriced(findings: &Findings) -> String {
    of_types(findings, &|unmet, _| matches!(unmet, Unmet::NoPrice), "No price is known for {}.")
}

/// Returns a sentence with the names of the GPU types whose answers have a property in the place of `{}`; empty if there are none.
fn of_types(findings: &Findings, has: &dyn Fn(&Unmet, &FoundAnswer) -> bool, says: &str) -> String {
    let is_one = |answer: &FoundAnswer| answer.unmet.as_ref().is_some_and(|unmet| has(unmet, answer));
    let offers = findings.offers.iter().filter(|offer| offer.answer.as_ref().is_some_and(is_one));
    let names: Vec<&str> = offers.map(|offer| offer.gpu.name.as_str()).collect();
    if names.is_empty() { String::new() } else { says.replace("{}", &all_of(&names)) }
}

/// Returns the GPU types that miss the goal, as a sentence.
pub(super) fn missed(findings: &Findings) -> String {
    let of = |has: &dyn Fn(&Unmet, &FoundAnswer) -> bool, says| of_types(findings, has, says);
    // Whether the best plan is certainly too slow.
    let is_slow = |unmet: &Unmet, answer: &FoundAnswer| {
        let Unmet::TooSlow { .. } = unmet else { return None };
        let limit = findings.most_days()?;
        Some(!findings.is_by_slow_end() || answer.plan.as_ref().is_some_and(|plan| plan.days.low > limit))
    };
    sentences([
        of(&|unmet, _| matches!(unmet, Unmet::NoLayout), "No layout works on {}."),
        of(&|unmet, answer| is_slow(unmet, answer) == Some(true), "{} can't finish in time."),
        of(&|unmet, answer| is_slow(unmet, answer) == Some(false), "{} may not finish in time."),
        of(&|unmet, _| matches!(unmet, Unmet::TooExpensive { .. }), "{} would cost more than the budget."),
        unpriced(findings),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::tests::lead;
    use super::*;
    use crate::pages::plan::findings::tests::{answered, plan};
    use trainplan_shared::question::Chance;

    #[test]
    fn the_only_type_that_finishes_in_time_is_named() {
        let mut findings =
            answered(&[("H100", Some(plan(16_384, 82.0, 4e6))), ("B200", Some(plan(512, 59.0, 3e6)))]);
        findings.offers[0].answer.as_mut().unwrap().unmet = Some(Unmet::TooSlow { days: 82.0 });
        let (first, _) = lead(&findings);
        assert_eq!(first, "512 B200 GPUs take about 59 days and cost $3.00M.");
        findings.offers[1].answer.as_mut().unwrap().with_other_chance = Some(plan(576, 52.0, 3.1e6));
        let (_, rest) = lead(&findings);
        let late = "At the slow end of its range, B200 misses the deadline. 576 B200 GPUs would meet the deadline 9 times in 10.";
        assert_eq!(rest, format!("H100 can't finish in time. {late}"));
        findings.offers[1].answer.as_mut().unwrap().unmet = Some(Unmet::TooSlow { days: 90.0 });
        let expected =
            "No plan finishes within 60 days. The nearest takes about 82 days, on 16,384 H100 GPUs.";
        assert_eq!(lead(&findings).0, expected);
    }

    #[test]
    fn a_goal_that_no_plan_reaches_is_explained_by_the_plan_that_is_shown() {
        let mut findings =
            answered(&[("H100", Some(plan(1392, 52.0, 2.4e6))), ("B200", Some(plan(640, 49.0, 2.5e6)))]);
        let enough = [(2.74e6, 64), (2.57e6, 40)];
        for (offer, (cost, gpus)) in findings.offers.iter_mut().zip(enough) {
            let answer = offer.answer.as_mut().expect("an answer");
            answer.unmet = Some(Unmet::TooExpensive { cost, tokens: 2.2e11, gpus });
        }
        let asked = findings.asked.as_mut().expect("a question");
        asked.max_cost = Some(5e4);
        asked.chance = Some(Chance::NineInTen);
        assert_eq!(
            lead(&findings).0,
            "No plan finishes within 60 days for at most $50k 9 times in 10. The cheapest that finishes in time costs up to \
             $2.57M, on 640 B200 GPUs."
        );
        assert_eq!(findings.best_plan().map(|plan| plan.gpus), Some(640));
        let asked = findings.asked.as_mut().expect("a question");
        (asked.goal, asked.max_cost, asked.longest_days) = (AskedGoal::Budget(5e4), None, Some(180.0));
        assert_eq!(
            lead(&findings).0,
            "$50k is not enough. The cheapest plan within 180 days costs up to $2.57M, on 640 B200 GPUs; the budget is enough \
             for 220B tokens on 40 GPUs."
        );
        // The largest number of GPUs that was searched, with software that nobody measured.
        findings.asked.as_mut().expect("a question").goal = AskedGoal::Budget(5e6);
        findings.offers[1].points = vec![plan(640, 49.0, 2.5e6)];
        for offer in &mut findings.offers {
            offer.answer.as_mut().expect("an answer").unmet = Some(Unmet::TooSlow { days: 190.0 });
        }
        findings.offers[1].answer.as_mut().expect("an answer").unmet = Some(Unmet::TooSlow { days: 185.0 });
        assert_eq!(
            lead(&findings).0,
            "No plan finishes within 180 days both at the predicted speed, 9 times in 10, and at the measured speed. The nearest is \
             predicted to take about 49 days (44–54), but would take 185 days at the measured speed, on 640 B200 GPUs, the largest \
             number searched."
        );
    }
}
