//! The goal of the most tokens: the page fills in how many the limits of the question allow.

use super::Planner;
use super::amounts::count_text;
use super::question::{GoalKind, has_scenario};
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::link;
use trainplan_shared::units::format_count;

/// Whether the question asks for the most tokens, and the page has yet to fill them in.
pub(super) fn are_sought(plan: Planner) -> bool {
    let is_open = plan.address.with_spec(|spec| spec.get(Field::Tokens).is_none() && !has_scenario(spec));
    let seeks_tokens = plan.question.with(|question| GoalKind::of(question).seeks_tokens());
    // Without a layout or a price, there are none.
    let finds_none = || {
        let answered = plan.search.findings.with(|findings| findings.is_answered() && !findings.is_behind);
        answered && most(plan).is_none()
    };
    is_open && seeks_tokens && !finds_none()
}

/// Returns the most tokens that a GPU type can train within the limits of the question; none before it is answered.
fn most(plan: Planner) -> Option<f64> {
    let query = plan.question.with(link::write);
    plan.search.findings.with(|findings| {
        let is_current = findings.query == query && findings.is_answered();
        let all = findings.offers.iter().filter_map(|offer| offer.answer.as_ref()?.most_tokens.as_ref());
        let most = all.map(|(tokens, _)| *tokens).fold(0.0, f64::max);
        (is_current && most > 0.0).then_some(most)
    })
}

/// Fills the most tokens into the address of a question that asks for them, once it is answered.
pub(super) fn fill_in(plan: Planner) {
    let found = Memo::new(move |_| if are_sought(plan) { most(plan) } else { None });
    Effect::new(move |_| {
        if let Some(tokens) = found.get() {
            plan.address.update(|spec| spec.set(Field::Tokens, format_count(tokens)));
        }
    });
}

/// Returns that the tokens of the question are the most, as a sentence; empty if they are not sought.
pub(super) fn sentence(plan: Planner) -> String {
    let seeks_tokens = plan.question.with(|question| GoalKind::of(question).seeks_tokens());
    let asked = plan.search.findings.with(|findings| findings.asked.as_ref().map(|asked| asked.tokens));
    match (most(plan).filter(|_| seeks_tokens), asked) {
        (Some(most), Some(asked)) if (most / asked - 1.0).abs() < 0.01 => {
            format!("The limits allow {} tokens, rounded down. ", count_text(most))
        }
        _ => String::new(),
    }
}
