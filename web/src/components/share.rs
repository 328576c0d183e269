//! Share links: creating and revoking them, and the note for a guest.

use super::copy::CopyButton;
use super::trouble::RequestErrorNote;
use crate::desk::Desk;
use crate::message::{Answer, Question, RequestError, Share};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

/// The choices for the number of days until a link expires.
const DAYS: [u32; 4] = [1, 7, 30, 365];

/// Creates and revokes share links to this page.
#[component]
pub(crate) fn ShareLinks(
    /// The runs that a link shows.
    #[prop(into)]
    ids: Signal<Vec<String>>,
    /// The address of the page, without the secret.
    #[prop(into)]
    to: Signal<String>,
) -> impl IntoView {
    let desk = Desk::of_app();
    let (is_open, days) = (RwSignal::new(false), RwSignal::new(7_u32));
    // The id and the secret of the link that was just created.
    let (made, trouble) = (RwSignal::new(None::<(String, String)>), RwSignal::new(None::<RequestError>));
    let changes = RwSignal::new(0_u32);
    // A new selection of runs needs a new link.
    Effect::new(move |_| {
        let _ = ids.get();
        made.set(None);
    });
    let shares = desk.answer(
        move || {
            changes.track();
            is_open.get().then_some(Question::Shares)
        },
        |answer| if let Answer::Shares(shares) = answer { Some(shares) } else { None },
    );
    let heard = move |answer: Result<Answer, RequestError>| {
        match answer {
            Ok(Answer::Shared { id, secret }) => made.set(Some((id, secret))),
            Ok(_) => {}
            Err(wrong) => trouble.set(Some(wrong)),
        }
        changes.update(|count| *count += 1);
    };
    let make = move |_| {
        trouble.set(None);
        desk.ask(Question::Share { ids: ids.get_untracked(), days: days.get_untracked() }, heard);
    };
    let link = Signal::derive(move || {
        let secret = made.get().map(|(_, secret)| secret).unwrap_or_default();
        format!("{}#share={secret}", to.get())
    });
    // The list of links already asks for a missing token.
    let wrong = Signal::derive(move || {
        let of_change = trouble.get().filter(|trouble| !matches!(trouble, RequestError::SignIn(_)));
        of_change.or_else(|| shares.trouble())
    });
    let row = move |share: Share| {
        let id = share.id.clone();
        let revoke = move |_| {
            let id = id.clone();
            trouble.set(None);
            desk.ask(Question::Revoke { id: id.clone() }, move |answer| {
                // Hide a link that was just revoked.
                if answer.is_ok()
                    && made.with_untracked(|made| made.as_ref().is_some_and(|made| made.0 == id))
                {
                    made.set(None);
                }
                heard(answer);
            });
        };
        view! {
            <li>
                {format!("{}, expires {} ", runs(&share), share.expires_at)}
                <button type="button" class="action" on:click=revoke>"Revoke"</button>
            </li>
        }
    };
    view! {
        <details class="share" on:toggle=move |_| is_open.set(true)>
            <summary>"Share with an expiring link"</summary>
            <p class="basis">"Anyone with the link can view these runs and their logs, nothing else, until it expires or you revoke it."</p>
            <Show when=move || shares.get().is_some()>
                <div class="buttons">
                    <label class="label" for="share-days">"Days"</label>
                    <select id="share-days" on:change=move |event| days.set(event_target_value(&event).parse().unwrap_or(7))>
                        {DAYS.map(|count| view! { <option value=count.to_string() prop:selected=move || days.get() == count>{count}</option> }).collect_view()}
                    </select>
                    <button type="button" class="action primary" on:click=make>"Create link"</button>
                </div>
            </Show>
            <RequestErrorNote trouble=wrong />
            <Show when=move || made.with(Option::is_some)>
                <p class="notice">
                    <code class="secret">{link}</code>
                    " Copy it now; it won't be shown again. "
                    <CopyButton text=link label="Copy the link" />
                </p>
            </Show>
            {move || shares.get().filter(|shares| !shares.is_empty()).map(|shares| view! {
                <h3>"Active links"</h3>
                <ul class="plain">{shares.iter().cloned().map(row).collect_view()}</ul>
            })}
        </details>
    }
}

/// Tells a guest what the share link shows, and until when.
#[component]
pub(crate) fn Guest() -> impl IntoView {
    let desk = Desk::of_app();
    let opened = desk.answer(
        move || desk.shared().map(|_| Question::Opened),
        |answer| if let Answer::Opened(share) = answer { Some(share) } else { None },
    );
    let location = use_location();
    let here = move || format!("{}?{}", location.pathname.get(), location.search.get());
    let said = move || match (opened.get(), opened.trouble()) {
        (Some(share), _) => {
            format!("Shared view: {} until {}.", runs(&share), share.expires_at)
        }
        (None, Some(RequestError::SignIn(_))) => {
            "This share link has expired or was revoked. Ask the sender for a new one.".to_string()
        }
        _ => "Shared view.".to_string(),
    };
    view! {
        {move || desk.shared().map(|path| {
            let to = if path.starts_with("/compare") { "Back to the comparison" } else { "Back to the run" };
            view! {
                <div class="notice guest buttons">
                    <p role="status">{said}</p>
                    {(here() != path).then(|| view! { <a class="action primary" href=path>{to}</a> })}
                    <button type="button" class="action" on:click=move |_| desk.sign_out()>"Leave shared view"</button>
                </div>
            }
        })}
    }
}

fn runs(share: &Share) -> String {
    if share.runs == 1 { "1 run".to_string() } else { format!("{} runs", share.runs) }
}
