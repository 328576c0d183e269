//! Errors of requests to the server, with what to do.

use crate::desk::Desk;
use crate::message::RequestError;
use leptos::ev::SubmitEvent;
use leptos::html::Input;
use leptos::prelude::*;
use trainplan_shared::result::sentence;

/// Shows an error, or asks for a missing token.
#[component]
pub(crate) fn RequestErrorNote(
    /// The error, if any.
    #[prop(into)]
    trouble: Signal<Option<RequestError>>,
    /// The text to show without a server.
    #[prop(optional)]
    alone: &'static str,
) -> impl IntoView {
    let desk = Desk::of_app();
    move || match trouble.get() {
        None => ().into_any(),
        Some(RequestError::NoServer) if alone.is_empty() => ().into_any(),
        Some(RequestError::NoServer) => view! { <p class="notice">{alone}</p> }.into_any(),
        // The request is repeated, and the old data stays.
        Some(RequestError::NoNetwork) => {
            view! { <p class="basis" role="status">"The server does not answer. Retrying…"</p> }.into_any()
        }
        // The frame already says that the share link has expired.
        Some(RequestError::SignIn(_)) if desk.shared().is_some() => ().into_any(),
        Some(RequestError::SignIn(why)) => view! { <SignIn why /> }.into_any(),
        Some(RequestError::Other(why)) => {
            view! { <p class="error" role="alert">{sentence(&why)}</p> }.into_any()
        }
    }
}

/// The form for a token.
#[component]
fn SignIn(why: String) -> impl IntoView {
    let desk = Desk::of_app();
    let input = NodeRef::<Input>::new();
    let stays = RwSignal::new(false);
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if let Some(input) = input.get_untracked() {
            desk.sign_in(input.value().trim(), stays.get_untracked());
        }
    };
    view! {
        <form class="notice sign-in" on:submit=submit>
            <p role="status">{sentence(&why)} " Ask the server's administrator for one."</p>
            <div class="field">
                <label for="token">"Token"</label>
                <input id="token" type="password" autocomplete="off" spellcheck="false" node_ref=input placeholder="tp_…" />
                <div class="field-note">
                    {move || if stays.get() { "Kept in this browser until you sign out" } else { "Kept until you close this tab" }}
                    ", and sent to this server only."
                </div>
            </div>
            <div class="switch">
                <label>
                    <input type="checkbox" prop:checked=stays on:change=move |event| stays.set(event_target_checked(&event)) />
                    "Stay signed in on this browser"
                </label>
            </div>
            <div class="buttons"><button type="submit" class="action primary">"Sign in"</button></div>
        </form>
    }
}

/// The button to sign out.
#[component]
pub(crate) fn SignOut() -> impl IntoView {
    let desk = Desk::of_app();
    view! {
        <Show when=move || desk.is_signed_in()>
            <button type="button" class="theme" on:click=move |_| desk.sign_out()>"Sign out"</button>
        </Show>
    }
}
