//! The printed report: what the page's question was, when and where it was answered.

use super::Planner;
use super::bar::summary;
use leptos::prelude::*;
use leptos::web_sys::js_sys::Date;

/// A button that prints the answer on a page.
#[component]
pub(super) fn PrintButton() -> impl IntoView {
    // If the browser doesn't print, nothing happens.
    let print = move |_| {
        let _ = window().print();
    };
    view! { <button type="button" class="link" on:click=print>"Print a report"</button> }
}

/// What only the printed page shows above the answer.
#[component]
pub(super) fn ReportHead() -> impl IntoView {
    let planner = Planner::of_page();
    let question = move || planner.question.with(summary);
    let date = || String::from(Date::new_0().to_iso_string()).chars().take(10).collect::<String>();
    let link = move || {
        planner.address.spec();
        window().location().href().unwrap_or_default()
    };
    view! {
        <div class="printed">
            <p><strong>"Trainplan"</strong> " · " {date}</p>
            <p>"Question: " {question}</p>
            <p><small>{link}</small></p>
        </div>
    }
}
