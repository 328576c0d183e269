//! The alert of a regression: who acknowledged it and why, or the form to do so.

use crate::components::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Question, RequestError, RunAlert, Scope};
use leptos::ev::SubmitEvent;
use leptos::html::Input;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::{Element, HtmlElement};
use std::time::Duration;

/// The longest reason that the server takes, in bytes.
const LONGEST_REASON: &str = "1000";

/// What is known about the alert of a time line's newest comparable run; nothing if it has none.
#[component]
pub(super) fn AlertNote(alert: Memo<Option<RunAlert>>) -> impl IntoView {
    let desk = Desk::of_app();
    let may = desk.may(Scope::Upload, move || alert.with(Option::is_some));
    let reason = RwSignal::new(String::new());
    let failed = RwSignal::new(None::<RequestError>);
    let next = StoredValue::new_local(None::<HtmlElement>);
    let ask = move |reason: Option<String>, form: Option<Element>| {
        let Some(RunAlert { run, .. }) = alert.get_untracked() else { return };
        desk.ask(Question::Acknowledge { run, reason }, move |answer| {
            let has_focus = form.is_some_and(|form| matches!(form.matches(":focus-within"), Ok(true)));
            if answer.is_ok() && has_focus {
                next.set_value(leave_form());
            }
            failed.set(answer.err());
            desk.ask_again();
        });
    };
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        let text = reason.get_untracked().trim().to_string();
        if !text.is_empty() {
            ask(Some(text), event.target().and_then(|form| form.dyn_into().ok()));
        }
    };
    let field = NodeRef::<Input>::new();
    let is_withdrawn = StoredValue::new(false);
    let withdraw = move |_| {
        is_withdrawn.set_value(true);
        ask(None, None);
    };
    // The form takes the place of the button that had the focus.
    Effect::new(move |_| {
        let Some(field) = field.get() else { return };
        let is_lost = || document().active_element().is_none_or(|active| active.tag_name() == "BODY");
        if is_withdrawn.try_update_value(std::mem::take) == Some(true) && is_lost() {
            // It fails only for elements that are gone.
            let _ = field.focus();
        }
    });
    let acknowledged = Memo::new(move |_| alert.with(|alert| alert.as_ref()?.acknowledged.clone()));
    Effect::new(move |_| {
        if acknowledged.with(Option::is_none) {
            return;
        }
        if let Some(target) = next.try_update_value(Option::take).flatten() {
            // The time lines change places now, and an element that moves loses the focus.
            set_timeout(move || keep_focus(&target), Duration::ZERO);
        }
    });
    let is_open = move || alert.with(Option::is_some) && acknowledged.with(Option::is_none) && may.get();
    view! {
        <Show when=move || acknowledged.with(Option::is_some)>
            <div class="buttons">
                <p>{acknowledged}</p>
                <Show when=move || may.get()>
                    <button type="button" class="action" on:click=withdraw>"Withdraw"</button>
                </Show>
            </div>
        </Show>
        <Show when=is_open>
            <form class="identify" on:submit=submit>
                <label>
                    "Why it was slow, or what is being done about it "
                    <input
                        type="text"
                        node_ref=field
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

/// Moves the focus from a form that is about to disappear to the button of the next one, from the last one to that of the first, and
/// without another one to the page's heading. Returns the element that has it now.
fn leave_form() -> Option<HtmlElement> {
    let targets = [
        "section:focus-within ~ section .identify button",
        "section:not(:focus-within) .identify button",
        "h1",
    ];
    let target = targets.iter().find_map(|target| document().query_selector(target).ok().flatten());
    let target = target.and_then(|target| target.dyn_into::<HtmlElement>().ok());
    // It fails only for elements that are gone.
    target.inspect(|target| drop(target.focus()))
}

/// Gives an element the focus, unless another one has it.
fn keep_focus(target: &HtmlElement) {
    if matches!(document().query_selector(":focus"), Ok(None)) {
        let _ = target.focus();
    }
}
