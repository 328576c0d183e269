//! Plans that are faster than the best one, and why they are not the best.

use crate::message::search::{AskedGoal, FoundFamily, FoundPlan};
use crate::pages::plan::amounts::{cost_text, time_text};
use crate::pages::plan::findings::{Findings, OfferFindings, is_within};
use trainplan_shared::question::{CLEARLY_FASTER, Objective};
use trainplan_shared::units::{duration, group_digits};

/// Returns which layout is expected to be clearly faster than the best one, which is best because its range ends earlier, as a
/// sentence. With a deadline, the number of GPUs follows from the range.
pub(super) fn faster_layout(goal: AskedGoal, offer: &OfferFindings) -> String {
    let Some(answer) = offer.answer.as_ref().filter(|_| !matches!(goal, AskedGoal::Deadline(_))) else {
        return String::new();
    };
    let limit = answer.plan.as_ref().map_or(0.0, |plan| plan.days.mid * CLEARLY_FASTER);
    let faster = answer.layouts.iter().flat_map(FoundFamily::plans).filter(|plan| plan.days.mid <= limit);
    let faster = faster.min_by(|one, other| one.days.mid.total_cmp(&other.days.mid));
    faster.map_or(String::new(), |plan| {
        format!(
            "With the layout {}, the run may take only {}, but that prediction is less certain.",
            plan.layout,
            time_text(plan.days)
        )
    })
}

/// Returns why a plan spends only a part of a budget, as a sentence, if faster plans are left out because of their cost.
pub(super) fn unspent(
    findings: &Findings,
    offer: &OfferFindings,
    plan: &FoundPlan,
    currency: &str,
) -> String {
    let objective = findings.asked.as_ref().and_then(|asked| asked.objective);
    let (AskedGoal::Budget(_), Some(Objective::Worthwhile)) = (findings.goal(), objective) else {
        return String::new();
    };
    let is_faster = |point: &&FoundPlan| {
        point.days.mid < plan.days.mid && is_within(point, findings.budget(), findings.is_by_slow_end())
    };
    let faster = offer.points.iter().filter(is_faster);
    let fastest = faster.min_by(|one, other| one.days.mid.total_cmp(&other.days.mid));
    let named = fastest.and_then(|point| Some((point, point.cost?)));
    named.map_or(String::new(), |(point, cost)| {
        format!(
            "Faster plans cost more than 1.25 times as much as the cheapest: {} GPUs would take {}, for {}.",
            group_digits(point.gpus.into()),
            duration(point.days.mid),
            cost_text(cost.mid, currency)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{for_budget, lead};
    use super::*;
    use crate::pages::plan::findings::tests::plan;

    #[test]
    fn a_plan_that_spends_a_part_of_the_budget_says_what_the_rest_would_buy() {
        let mut findings = for_budget(plan(512, 60.0, 1.2e6));
        findings.asked.as_mut().expect("a question").objective = Some(Objective::Worthwhile);
        let is_said = |findings: &Findings| lead(findings).1.contains("Faster plans");
        assert!(!is_said(&findings));
        // The last one may exceed the budget.
        findings.offers[0].points =
            vec![plan(512, 60.0, 1.2e6), plan(2048, 20.0, 2e6), plan(8192, 10.0, 9e6)];
        let (_, rest) = lead(&findings);
        let expected = "Faster plans cost more than 1.25 times as much as the cheapest: 2,048 GPUs would take 20 days, for $2.00M.";
        assert!(rest.contains(expected), "{rest}");
    }
}
