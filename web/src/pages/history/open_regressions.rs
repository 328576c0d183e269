//! The regressions that nobody acknowledged, at the top of the page.

use super::acknowledge::AlertNote;
use super::{TITLE, line_of};
use crate::address::Address;
use crate::components::run_table::{history_href, run_href};
use crate::desk::Desk;
use crate::message::{Scope, TimeLine};
use leptos::prelude::*;
use leptos_router::components::A;
use std::sync::Arc;

/// The open regressions among the time lines; nothing without one.
#[component]
pub(super) fn OpenRegressions(lines: Memo<Arc<Vec<TimeLine>>>) -> impl IntoView {
    let open = move || {
        let is_open = |line: &&TimeLine| line.is_open();
        lines.with(|lines| lines.iter().filter(is_open).map(|line| line.key.clone()).collect::<Vec<_>>())
    };
    let count = Memo::new(move |_| open().len());
    let heading = move || match count.get() {
        1 => "1 open regression".to_string(),
        count => format!("{count} open regressions"),
    };
    view! {
        <Show when=move || { count.get() > 0 }>
            <section class="notice wrong" aria-label="Open regressions">
                <p><strong>{heading}</strong></p>
                // Keyed, so that a reason that is being typed stays when runs arrive.
                <ul class="plain">
                    <For each=open key=String::clone children=move |key| view! { <OpenRegression line=line_of(lines, key) /> } />
                </ul>
            </section>
        </Show>
    }
}

/// A regression with its run and, for those who may, the form to acknowledge it.
#[component]
fn OpenRegression(line: Memo<TimeLine>) -> impl IntoView {
    let address = Address::of_page();
    let alert = Memo::new(move |_| line.with(|line| line.alert.clone()));
    let may = Desk::of_app().may(Scope::Upload, move || alert.with(Option::is_some));
    view! {
        <li>
            <p>{move || line.with(|line| told(address, line))}</p>
            <Show when=move || may.get() && alert.with(Option::is_some)>
                <details><summary>"Acknowledge"</summary><AlertNote alert then=TITLE /></details>
            </Show>
        </li>
    }
}

/// By how much which run is slower.
fn told(address: Address, line: &TimeLine) -> impl IntoView + use<> {
    let text = format!(": {} ", line.slower.as_deref().unwrap_or_default());
    let run = line.slow_run.as_ref().map(|id| {
        let run = format!("Run {}", id.get(..8).unwrap_or_default());
        view! { <A href=run_href(address, id)>{run}</A> }
    });
    let title = line.title.clone();
    view! { <A href=history_href(line)>{title}</A> {text} {run} }
}
