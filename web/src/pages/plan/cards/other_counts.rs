//! Plans on other numbers of GPUs than the best one, and more tokens that the limits would train.

use crate::message::search::{AskedGoal, FoundAnswer, FoundPlan};
use crate::pages::plan::Planner;
use crate::pages::plan::amounts::{cost_text, rounded_count};
use crate::pages::plan::findings::{Findings, OfferFindings, is_within};
use leptos::prelude::*;
use trainplan_shared::units::{duration, group_digits, group_three_digits};

/// How many times the tokens are worth a word that the budget is enough for.
const WORTH_MORE_TOKENS: f64 = 1.1;

/// The share of a deadline below which the slow end of a plan's range doesn't come near it. Tokens that are rounded down leave up to a
/// tenth of it.
const EARLY: f64 = 0.85;

/// How many times the cost of the best plan is hardly more.
const LITTLE_MORE: f64 = 1.05;

/// The share of the days of the best plan that is much faster.
const MUCH_FASTER: f64 = 0.8;

/// Returns a button that shows a plan, named by its number of GPUs.
pub(super) fn count_button(plan: Planner, found: &FoundPlan) -> AnyView {
    let (title, query) = (format!("{} GPUs", group_digits(found.gpus.into())), found.query.clone());
    let show = move |_| plan.state.choose(&query);
    view! { <button type="button" class="link" on:click=show>{title}</button> }.into_any()
}

/// Returns the fastest plan on more GPUs that is much faster than the best one for hardly more money, and within the budget.
pub(super) fn faster_for_little<'a>(
    offer: &'a OfferFindings,
    best: &FoundPlan,
    budget: Option<f64>,
    by_slow_end: bool,
) -> Option<&'a FoundPlan> {
    let cost = best.cost?.mid;
    let is_little = |plan: &&FoundPlan| {
        let is_cheap = plan.cost.is_some_and(|its| its.mid <= cost * LITTLE_MORE);
        is_cheap
            && is_within(plan, budget, by_slow_end)
            && plan.gpus > best.gpus
            && plan.days.mid <= best.days.mid * MUCH_FASTER
    };
    offer.points.iter().filter(is_little).min_by(|one, other| one.days.mid.total_cmp(&other.days.mid))
}

/// Returns how many tokens the budget and the deadline would train, on the GPUs of the best plan unless the most tokens are asked
/// for, as a sentence; none if that is hardly more.
pub(super) fn more_tokens(findings: &Findings, answer: &FoundAnswer, currency: &str) -> Option<String> {
    let (tokens, plan) = answer.most_tokens.as_ref()?;
    let asked = findings.asked.as_ref().map_or(f64::INFINITY, |asked| asked.tokens);
    // Slower, measured software may limit them, which no range counts.
    let is_early = matches!((findings.goal(), findings.budget()), (AskedGoal::Deadline(limit), None)
        if plan.days.high < limit * EARLY);
    (*tokens >= asked * WORTH_MORE_TOKENS && !is_early).then(|| {
        let cost = plan.cost.map_or(String::new(), |cost| format!(", for {}", cost_text(cost.mid, currency)));
        let limit = match (findings.goal(), findings.budget()) {
            (AskedGoal::Deadline(_), Some(_)) => "Within the limits",
            (AskedGoal::Deadline(_), None) => "By the deadline",
            _ => "Within the budget",
        };
        let gpus = match answer.plan.as_ref().is_some_and(|best| best.gpus == plan.gpus) {
            true => "these GPUs".to_string(),
            false => format!("{} GPUs", group_three_digits(plan.gpus.into())),
        };
        format!(
            "{limit}, {gpus} can train at least {} tokens, in {}{cost}",
            rounded_count(*tokens),
            duration(plan.days.mid)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::plan::findings::tests::{answered, plan};

    #[test]
    fn tokens_by_a_deadline_are_those_of_a_plan_that_takes_as_long() {
        let says = |days: f64| {
            let mut findings = answered(&[("B200", Some(plan(640, 40.0, 2e6)))]);
            let most_tokens = Some((2e13, plan(640, days, 3e6)));
            let answer = FoundAnswer { most_tokens, ..FoundAnswer::default() };
            findings.asked.as_mut().expect("a question").tokens = 1e13;
            more_tokens(&findings, &answer, "USD")
        };
        assert!(
            says(53.0).is_some_and(
                |text| text.starts_with("By the deadline, 640 GPUs can train at least 20T tokens")
            )
        );
        assert_eq!(says(40.0), None);
    }
}
