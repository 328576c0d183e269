//! Links by which others see runs of a server that they have no token for: making them, and coming by one.

use super::copy::CopyButton;
use super::trouble::TroubleNote;
use crate::desk::Desk;
use crate::message::{Answer, Question, Share, Trouble};
use leptos::prelude::*;
use leptos_router::hooks::use_location;

/// For how many days a link works.
const DAYS: [u32; 4] = [1, 7, 30, 365];

/// Makes links to this page that open `ids`, and takes them back.
#[component]
pub(crate) fn ShareLinks(
    /// The runs that it opens.
    #[prop(into)]
    ids: Signal<Vec<String>>,
    /// The page's address that it leads to, without the secret.
    #[prop(into)]
    to: Signal<String>,
) -> impl IntoView {
    let desk = Desk::of_app();
    let (is_open, days) = (RwSignal::new(false), RwSignal::new(7_u32));
    // The link that was made just now: its id and its secret.
    let (made, trouble) = (RwSignal::new(None::<(String, String)>), RwSignal::new(None::<Trouble>));
    let changes = RwSignal::new(0_u32);
    // A link to other runs is another one.
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
    let heard = move |answer: Result<Answer, Trouble>| {
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
    // A missing token is asked for once, by what lists the links.
    let wrong = Signal::derive(move || {
        let of_change = trouble.get().filter(|trouble| !matches!(trouble, Trouble::SignIn(_)));
        of_change.or_else(|| shares.trouble())
    });
    let row = move |share: Share| {
        let id = share.id.clone();
        let revoke = move |_| {
            let id = id.clone();
            trouble.set(None);
            desk.ask(Question::Revoke { id: id.clone() }, move |answer| {
                // Nobody should send a link on that opens nothing.
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
                {format!("{}, until {} ", runs(&share), share.expires_at)}
                <button type="button" class="action" on:click=revoke>"Revoke"</button>
            </li>
        }
    };
    view! {
        <details class="share" on:toggle=move |_| is_open.set(true)>
            <summary>"Share by a link that ends"</summary>
            <p class="basis">"Who has the link sees these runs and their logs, and nothing else, until it ends or you revoke it."</p>
            <Show when=move || shares.get().is_some()>
                <div class="buttons">
                    <label class="label" for="share-days">"Days"</label>
                    <select id="share-days" on:change=move |event| days.set(event_target_value(&event).parse().unwrap_or(7))>
                        {DAYS.map(|count| view! { <option value=count.to_string() selected=move || days.get() == count>{count}</option> }).collect_view()}
                    </select>
                    <button type="button" class="action primary" on:click=make>"Make a link"</button>
                </div>
            </Show>
            <TroubleNote trouble=wrong />
            <Show when=move || made.with(Option::is_some)>
                <p class="notice">
                    <code class="secret">{link}</code>
                    " It is shown only now. "
                    <CopyButton text=link label="Copy the link" />
                </p>
            </Show>
            {move || shares.get().filter(|shares| !shares.is_empty()).map(|shares| view! {
                <h3>"Links that work"</h3>
                <ul class="plain">{shares.iter().cloned().map(row).collect_view()}</ul>
            })}
        </details>
    }
}

/// Tells who came by a shared link what it opens, and until when.
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
            format!(
                "You came by a link that opens {} until {}, and nothing else here.",
                runs(&share),
                share.expires_at
            )
        }
        (None, Some(Trouble::SignIn(_))) => {
            "The link by which you came has ended or was revoked: ask whoever sent it for another one."
                .to_string()
        }
        _ => "You came by a link that opens some runs, and nothing else here.".to_string(),
    };
    view! {
        {move || desk.shared().map(|path| {
            let to = if path.starts_with("/compare") { "Back to the comparison" } else { "Back to the run" };
            view! {
                <div class="notice guest buttons">
                    <p role="status">{said}</p>
                    {(here() != path).then(|| view! { <a class="action primary" href=path>{to}</a> })}
                    <button type="button" class="action" on:click=move |_| desk.sign_out()>"Stop using this link"</button>
                </div>
            }
        })}
    }
}

fn runs(share: &Share) -> String {
    if share.runs == 1 { "1 run".to_string() } else { format!("{} runs", share.runs) }
}
