//! A note above the bottom of the window that disappears by itself, or when it is dismissed.

use leptos::prelude::*;
use std::time::Duration;

/// How long the note stays.
const STAYS: Duration = Duration::from_secs(5);

/// The note. It is shown whenever `text` gets one.
#[component]
pub(crate) fn PassingNote(
    text: RwSignal<Option<String>>,
    /// The title of the button beside the text.
    title: &'static str,
    /// What the button does.
    act: Callback<()>,
) -> impl IntoView {
    let until = StoredValue::new(None::<TimeoutHandle>);
    Effect::new(move |_| {
        let timer = match text.with(Option::is_some) {
            // `try_`: the page may have been left meanwhile.
            true => set_timeout_with_handle(move || drop(text.try_set(None)), STAYS).ok(),
            false => None,
        };
        if let Some(earlier) = until.try_update_value(|until| std::mem::replace(until, timer)).flatten() {
            earlier.clear();
        }
    });
    let go = move |_| {
        text.set(None);
        act.run(());
    };
    let dismiss = move |_| text.set(None);
    let keys = window_event_listener(leptos::ev::keydown, move |event| {
        // An open list takes the first one.
        if event.key() == "Escape" && !event.default_prevented() && text.with_untracked(Option::is_some) {
            // Settings below it take the next one.
            event.prevent_default();
            text.set(None);
        }
    });
    on_cleanup(move || keys.remove());
    view! {
        <div class="passing" role="status">
            {move || text.get().map(|text| view! {
                <p>
                    {text} " " <button type="button" class="link" on:click=go>{title}</button> " "
                    <button type="button" class="dismiss" aria-label="Dismiss" title="Dismiss" on:click=dismiss>"✕"</button>
                </p>
            })}
        </div>
    }
}
