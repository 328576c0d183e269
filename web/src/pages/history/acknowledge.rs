//! The alert of a regression: who acknowledged it and why, or the form to do so.

use crate::components::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Question, RequestError, RunAlert, Scope};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;

/// The longest reason that the server takes, in bytes.
const LONGEST_REASON: &str = "1000";

/// What is known about the alert of a time line's newest comparable run; nothing if it has none.
#[component]
pub(super) fn AlertNote(alert: Memo<Option<RunAlert>>) -> impl IntoView {
    let desk = Desk::of_app();
    let may = desk.may(Scope::Upload, move || alert.with(Option::is_some));
    let reason = RwSignal::new(String::new());
    let failed = RwSignal::new(None::<RequestError>);
    let ask = move |reason: Option<String>| {
        let Some(RunAlert { run, .. }) = alert.get_untracked() else { return };
        desk.ask(Question::Acknowledge { run, reason }, move |answer| {
            failed.set(answer.err());
            desk.ask_again();
        });
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let text = reason.get_untracked().trim().to_string();
        if !text.is_empty() {
            ask(Some(text));
        }
    };
    let acknowledged = Memo::new(move |_| alert.with(|alert| alert.as_ref()?.acknowledged.clone()));
    let is_open = move || alert.with(Option::is_some) && acknowledged.with(Option::is_none) && may.get();
    view! {
        <Show when=move || acknowledged.with(Option::is_some)>
            <div class="buttons">
                <p>{acknowledged}</p>
                <Show when=move || may.get()>
                    <button type="button" class="action" on:click=move |_| ask(None)>"Withdraw"</button>
                </Show>
            </div>
        </Show>
        <Show when=is_open>
            <form class="identify" on:submit=submit>
                <label>
                    "Why it was slow, or what is being done about it "
                    <input
                        type="text"
                        autocomplete="off"
                        required
                        maxlength=LONGEST_REASON
                        prop:value=reason
                        on:input=move |event| reason.set(event_target_value(&event))
                    />
                </label>
                <button type="submit" class="action">"Acknowledge"</button>
            </form>
        </Show>
        <RequestErrorNote trouble=failed />
    }
}
