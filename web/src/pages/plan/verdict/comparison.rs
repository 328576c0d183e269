//! How the best GPU type compares with the next one, and what further ones take.

use crate::message::search::{AskedGoal, FoundPlan, Spread};
use crate::pages::plan::amounts::cost_text;
use crate::pages::plan::findings::{OfferFindings, contender};
use trainplan_shared::question::Objective;
use trainplan_shared::units::{difference, duration, group_digits, is_same};

/// Returns the comparison of the best GPU type with the second one.
pub(super) fn compared(
    (best, plan): (&OfferFindings, &FoundPlan),
    (second, other): (&OfferFindings, &FoundPlan),
    goal: AskedGoal,
    objective: Option<Objective>,
) -> String {
    let (name, against) = (&best.gpu.name, &second.gpu.name);
    // GPUs needed are proportional to the days that a plan takes, and so is their uncertainty.
    let needed = |plan: &FoundPlan| plan.days.times(f64::from(plan.gpus) / plan.days.mid);
    // On as many GPUs, only the time differs.
    let is_by_gpus = matches!(goal, AskedGoal::Deadline(_)) && plan.gpus != other.gpus;
    let (verb, one, than, words) = match is_by_gpus {
        true => ("needs", f64::from(plan.gpus), f64::from(other.gpus), GPU_WORDS),
        false => ("takes", plan.days.mid, other.days.mid, TIME_WORDS),
    };
    let first = format!("{name} {verb} {} {against}", difference(one, than, words));
    let is_sure = |one: Spread, other: Spread| !one.overlaps(other);
    let first_is_sure = match is_by_gpus {
        true => is_sure(needed(plan), needed(other)),
        false => is_sure(plan.days, other.days),
    };
    let cost_is_sure = plan.cost.zip(other.cost).map(|(one, other)| is_sure(one, other));
    let what = if is_by_gpus { "GPUs" } else { "time" };
    let is_alike = (first_is_sure, cost_is_sure) == (true, Some(false));
    let cost = plan.cost.zip(other.cost).map(|(cost, than)| {
        let compared = difference(cost.mid, than.mid, COST_WORDS);
        match is_alike && !is_same(cost.mid, than.mid) {
            true => format!(" and probably costs {compared}, though the ranges overlap"),
            false => format!(" and costs {compared}"),
        }
    });
    let rest = match (first_is_sure, cost_is_sure) {
        (true, Some(true)) => " Both differences are larger than the uncertainty.".to_string(),
        (true, None) => " The difference is larger than the uncertainty.".to_string(),
        (true, Some(false)) => String::new(),
        (false, Some(true)) => format!(" The difference in {what} is within the uncertainty."),
        (false, Some(false)) => " Both differences are within the uncertainty.".to_string(),
        (false, None) => " The difference is within the uncertainty.".to_string(),
    };
    let why = objective.and_then(|objective| {
        objective.why_first(&contender(&best.gpu.id, plan), &contender(&second.gpu.id, other))
    });
    let why = why.map_or(String::new(), |why| format!(" {name} comes first because {why}."));
    // No line breaks between a number and its unit.
    format!("{first}{}.{rest}{why}", cost.unwrap_or_default()).replace(" %", "\u{a0}%")
}

/// How numbers of GPUs, times and costs are compared, for [`difference`].
const GPU_WORDS: [&str; 4] =
    ["fewer GPUs than", "more GPUs than", "times as many GPUs as", "as many GPUs as"];
const TIME_WORDS: [&str; 4] = ["less time than", "more time than", "times as long as", "as long as"];
const COST_WORDS: [&str; 4] = ["less", "more", "times as much", "the same"];

/// Returns what the plans of further GPU types take, as sentences.
pub(super) fn others(others: &[(&OfferFindings, &FoundPlan)], currency: &str) -> String {
    let each = others.iter().map(|(offer, plan)| {
        let cost = plan.cost.map_or(String::new(), |cost| format!(" and {}", cost_text(cost.mid, currency)));
        let gpus = group_digits(plan.gpus.into());
        format!("{} would take {gpus} GPUs, {}{cost}.", offer.gpu.name, duration(plan.days.mid))
    });
    each.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::lead;
    use crate::pages::plan::findings::tests::{answered, plan};

    #[test]
    fn two_types_are_compared_with_their_uncertainty() {
        let findings =
            answered(&[("H100", Some(plan(1000, 58.0, 4e6))), ("B200", Some(plan(500, 59.0, 3.6e6)))]);
        let (lead, rest) = lead(&findings);
        assert_eq!(lead, "500 B200 GPUs take about 59 days and cost $3.60M.");
        assert_eq!(
            rest,
            "At the slow end of their ranges, B200 and H100 miss the deadline. B200 needs 50\u{a0}% fewer GPUs than H100 and \
             probably costs 10\u{a0}% less, though the ranges overlap."
        );
    }

    #[test]
    fn equal_values_are_not_compared_in_percent() {
        let findings =
            answered(&[("H100", Some(plan(500, 40.0, 3e6))), ("B200", Some(plan(500, 40.0, 3e6)))]);
        assert!(lead(&findings).1.starts_with("H100 takes as long as B200 and costs the same."));
    }
}
