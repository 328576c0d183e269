//! Locks: values that the search must use.

use super::Planner;
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::problem::one_of;
use trainplan_shared::search::{Lock, Locks};

/// Returns the locks of a text; none if it has a problem.
pub(crate) fn read(text: &str) -> Locks {
    Locks::parse(text, Field::Lock).unwrap_or_default()
}

/// Returns the values that a lock leaves to the search: `8`, `4 or 8` or `not full`.
pub(crate) fn lock_text(lock: &Lock) -> String {
    format!("{}{}", if lock.excludes { "not " } else { "" }, one_of(&lock.values))
}

/// Returns the locks in words: `TP 8, PP 2`.
pub(super) fn summary(locks: &Locks) -> String {
    let each = locks.0.iter().map(|lock| format!("{} {}", lock.field.label(), lock_text(lock)));
    each.collect::<Vec<_>>().join(", ")
}

/// The locks of the question; a click removes one.
#[component]
pub(super) fn LockChips() -> impl IntoView {
    let plan = Planner::of_page();
    let locks = Memo::new(move |_| plan.question.with(|question| question.raw(Field::Lock).to_string()));
    view! {
        <Show when=move || locks.with(|locks| !read(locks).0.is_empty())>
            <p class="chips locks">
                <span>"Locked:"</span>
                {move || read(&locks.get()).0.into_iter().map(|lock| {
                    let field = lock.field;
                    let text = format!("{} {}", field.label(), lock_text(&lock));
                    let remove = move |_| {
                        let text = read(&locks.get_untracked()).without(field).to_string();
                        plan.state.refine(Field::Lock, &text);
                    };
                    view! {
                        <button type="button" class="chip removable" title="Remove the lock" on:click=remove>
                            {text} <span aria-hidden="true">" ×"</span>
                        </button>
                    }
                }).collect_view()}
            </p>
        </Show>
    }
}
