//! How the plan of a card holds the limits of the question.

use crate::message::search::{AskedGoal, FoundAnswer, FoundPlan};
use crate::pages::plan::amounts::{cost_text, limit_text, money, time_text};
use crate::pages::plan::findings::{Findings, OfferFindings, is_within};
use crate::pages::plan::verdict::enough_for;
use trainplan_shared::question::{Objective, Unmet, as_measured};

/// Returns which limits the plan of an answer doesn't hold, as sentences; none if it holds them.
pub(super) fn missed(
    findings: &Findings,
    answer: &FoundAnswer,
    found: &FoundPlan,
    currency: &str,
) -> Option<String> {
    let unmet = answer.unmet?;
    if unmet == Unmet::NoPrice {
        return Some("No price is known. Enter one per GPU-hour.".to_string());
    }
    let late = findings.most_days().filter(|_| matches!(unmet, Unmet::TooSlow { .. })).map(|most| {
        let has_deadline = matches!(findings.goal(), AskedGoal::Deadline(_));
        let misses = match (found.days.mid <= most, has_deadline) {
            (true, true) => "May miss the deadline of",
            (false, true) => "Misses the deadline of",
            (true, false) => "May take longer than",
            (false, false) => "Takes longer than",
        };
        format!("{misses} {}", limit_text(most))
    });
    let is_over = |budget: &f64| {
        matches!(unmet, Unmet::TooExpensive { .. })
            || !is_within(found, Some(*budget), findings.is_by_slow_end())
    };
    let over = findings.budget().filter(is_over).map(|budget| {
        let verb = match (is_within(found, Some(budget), false), late.is_some()) {
            (true, true) => "may exceed",
            (true, false) => "May exceed",
            (false, true) => "exceeds",
            (false, false) => "Exceeds",
        };
        format!("{verb} the budget of {}", money(budget, currency))
    });
    let limits: Vec<String> = late.into_iter().chain(over).collect();
    let limits = limits.join(" and ");
    let takes = |plan: &FoundPlan| {
        let cost = plan.cost.map_or(String::new(), |cost| format!(", {}", cost_text(cost.mid, currency)));
        time_text(plan.days) + &cost
    };
    let measured = answer.judged().and_then(|judged| Some((judged.measured_software.as_ref()?, judged)));
    Some(match (measured, unmet) {
        (Some((software, judged)), _) => {
            let measured = as_measured(Some(software));
            format!("{limits}. At the predicted speed: {}; {measured}: {}.", takes(found), takes(judged))
        }
        // The button below names the same number.
        (None, Unmet::TooExpensive { tokens, gpus, .. }) if tokens > 0.0 => {
            format!("{limits}, which is {}.", enough_for(tokens, gpus))
        }
        _ => format!("{limits}."),
    })
}

/// Whether fewer GPUs would not do for the plan of an answer: it is too slow, or has the fewest GPUs that meet the deadline.
pub(super) fn needs_its_gpus(findings: &Findings, offer: &OfferFindings) -> bool {
    let Some(answer) = &offer.answer else { return false };
    let wants_fewest =
        findings.asked.as_ref().and_then(|asked| asked.objective) == Some(Objective::FewestGpus);
    let has_deadline = matches!(findings.goal(), AskedGoal::Deadline(_));
    let gpus = answer.plan.as_ref().map_or(0, |plan| plan.gpus);
    match answer.unmet {
        Some(unmet) => matches!(unmet, Unmet::TooSlow { .. }),
        // Fewer were searched.
        None => wants_fewest && has_deadline && offer.points.iter().any(|point| point.gpus < gpus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::search::FoundFamily;
    use crate::pages::plan::findings::tests::{answered, plan};

    #[test]
    fn a_card_names_the_limits_that_its_own_plan_misses() {
        let judged = |budget: f64, days: f64, unmet: Unmet, judged: Option<FoundPlan>| {
            let found = plan(640, days, 2.3e6);
            let mut findings = answered(&[("B200", Some(found.clone()))]);
            findings.asked.as_mut().expect("a question").max_cost = Some(budget);
            let measured_software = Some("NeMo 2".to_string());
            let judged = judged.map(|best| FoundPlan { measured_software, ..best });
            let layouts = judged.map(|best| FoundFamily { best, others: Vec::new() });
            let layouts = layouts.into_iter().collect();
            let answer = FoundAnswer { unmet: Some(unmet), layouts, ..FoundAnswer::default() };
            missed(&findings, &answer, &found, "USD").expect("a sentence")
        };
        let text = |budget: f64, days: f64, unmet: Unmet| judged(budget, days, unmet, None);
        let expensive = |cost: f64, tokens: f64| Unmet::TooExpensive { cost, tokens, gpus: 40 };
        assert_eq!(
            text(5e4, 49.0, expensive(2.53e6, 2.2e11)),
            "Exceeds the budget of $50k, which is enough for 220B tokens on 40 GPUs."
        );
        // With the software that was measured, it may cost more than the end of its range.
        assert_eq!(
            judged(2.55e6, 49.0, expensive(2.57e6, 0.0), Some(plan(640, 52.0, 2.57e6))),
            "May exceed the budget of $2.55M. At the predicted speed: 49 days (44–54), $2.30M; \
             at the measured speed of NeMo 2: 52 days (47–57), $2.57M."
        );
        assert_eq!(
            text(5e4, 70.0, Unmet::TooSlow { days: 77.0 }),
            "Misses the deadline of 60 days and exceeds the budget of $50k."
        );
        assert_eq!(
            judged(9e6, 49.0, Unmet::TooSlow { days: 61.0 }, Some(plan(640, 61.0, 2.86e6))),
            "May miss the deadline of 60 days. At the predicted speed: 49 days (44–54), $2.30M; \
             at the measured speed of NeMo 2: 61 days (55–67), $2.86M."
        );
        assert_eq!(text(5e4, 70.0, Unmet::NoPrice), "No price is known. Enter one per GPU-hour.");
    }

    #[test]
    fn the_plan_with_the_fewest_gpus_in_time_needs_them() {
        let mut findings = answered(&[("B200", Some(plan(640, 50.0, 2e6)))]);
        let needs = |findings: &Findings| needs_its_gpus(findings, &findings.offers[0]);
        assert!(!needs(&findings));
        findings.offers[0].points = vec![plan(320, 90.0, 2e6), plan(640, 50.0, 2e6)];
        assert!(needs(&findings));
        findings.asked.as_mut().expect("a question").objective = Some(Objective::Fastest);
        assert!(!needs(&findings));
        findings.offers[0].answer.as_mut().expect("an answer").unmet = Some(Unmet::TooSlow { days: 70.0 });
        assert!(needs(&findings));
    }
}
