//! Changes of the question with which a plan works.

use crate::message::search::FoundChange;
use crate::pages::plan::amounts::{count_text, money};
use crate::pages::plan::question::value_title;
use crate::pages::plan::{Planner, locks};
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::question::Chance;
use trainplan_shared::units::parse_count;

/// Changes of the question with which a plan works, to choose from.
#[component]
pub(super) fn Changes(
    changes: Vec<FoundChange>,
    /// Whether measured software decides that the plan misses the goal. It decides only for a chance of 9 times in 10.
    #[prop(optional)]
    is_by_measured: bool,
) -> impl IntoView {
    let plan = Planner::of_page();
    let currency = plan.search.findings.with_untracked(|findings| {
        findings.asked.as_ref().map_or(String::new(), |asked| asked.currency.clone())
    });
    let currency = StoredValue::new(currency);
    let button = move |change: FoundChange| {
        let FoundChange { key, value, reaches_goal } = change;
        let field = Field::from_key(&key)?;
        let note = match field {
            _ if !reaches_goal => " (misses the goal)",
            Field::Chance if is_by_measured => ", only at the predicted speed",
            _ => "",
        };
        let title = currency.with_value(|currency| change_title(field, &value, currency)) + note;
        let set = move |_| plan.state.ask(&[(field, &value)]);
        Some(view! { <button type="button" class="action" on:click=set>{title}</button> })
    };
    (!changes.is_empty()).then(
        || view! { <p class="card-changes">{changes.into_iter().filter_map(button).collect_view()}</p> },
    )
}

/// Returns what a change of the question does, in words.
fn change_title(field: Field, value: &str, currency: &str) -> String {
    let shown = value_title(field, value);
    match field {
        _ if value.is_empty() => format!("Clear {}", field.label().to_ascii_lowercase()),
        Field::Chance if value == Chance::Even.id() => {
            format!("Accept a chance of {}", Chance::Even.title())
        }
        Field::Chance => format!("Require a chance of {}", Chance::NineInTen.title()),
        Field::Deadline => format!("Allow {shown}"),
        Field::Budget => {
            format!("Allow {}", parse_count(value).map_or(shown, |amount| money(amount, currency)))
        }
        Field::Tokens => format!("Train on {} tokens", parse_count(value).map_or(shown, count_text)),
        Field::GpuRange => format!("Use {shown} GPUs"),
        Field::Gbs => format!("Use a global batch of {shown}"),
        Field::Lock => format!("Lock only {}", locks::summary(&locks::read(value))),
        _ => format!("Set {} to {shown}", field.label()),
    }
}
