//! The programs that draw pages.

use crate::address;
use crate::components::frame::Frame;
use crate::components::share::Guest;
use crate::components::trouble::SignOut;
use crate::desk::Desk;
use crate::pages::{
    benchmarks::{self, BenchmarksPage},
    compare::ComparePage,
    details::PlanDetails,
    history::HistoryPage,
    not_found::NotFound,
    plan::{PlanPage, handover},
    results::{ResultsPage, intake::Entries},
    run::RunPage,
};
use leptos::mount::mount_to;
use leptos::prelude::*;
use leptos::web_sys::HtmlElement;
use leptos_router::components::{Route, Router, Routes};
use leptos_router::hooks::use_location;
use leptos_router::path;
use std::panic::PanicHookInfo;

/// Starts the program of the Plan page: the question, and its answers.
pub fn planner() {
    // The question once had its own page. Links to it still work.
    if address::browser_path() == "/search" {
        address::move_to("/");
    }
    let path = address::browser_path();
    start(move || {
        let page = match path.as_str() {
            "/" => PlanPage.into_any(),
            _ => NotFound.into_any(),
        };
        view! { <Frame routed=[] path>{page}</Frame> }
    });
}

/// Starts the program of the Plan page's details, which [`planner`] loads after its first answers.
pub fn details() {
    if let Some(element) = handover::details_element() {
        start_in(element, PlanDetails);
    }
}

/// Starts the program of the Benchmarks page.
pub fn benchmarks() {
    // The page was called Recipes; its links still work.
    if address::browser_path() != benchmarks::PATH {
        address::move_to(benchmarks::PATH);
    }
    start(|| view! { <Frame routed=[] path=benchmarks::PATH><BenchmarksPage /></Frame> });
}

/// Starts the program of the Results, Compare, Run and History pages.
pub fn results() {
    start(|| {
        Entries::provide(Desk::provide());
        view! { <Router><RoutedPages /></Router> }
    });
}

#[component]
fn RoutedPages() -> impl IntoView {
    let path = use_location().pathname;
    let tools = view! { <SignOut /> }.into_any();
    view! {
        <Frame routed=["/results", "/compare", "/history"] path tools>
            <Guest />
            <Routes fallback=NotFound>
                <Route path=path!("/results") view=ResultsPage />
                <Route path=path!("/compare") view=ComparePage />
                <Route path=path!("/run") view=RunPage />
                <Route path=path!("/history") view=HistoryPage />
            </Routes>
        </Frame>
    }
}

fn start<V: IntoView + 'static>(app: impl FnOnce() -> V + 'static) {
    std::panic::set_hook(Box::new(report_crash));
    mount_to_body(app);
}

/// Starts a program that draws a part of the page.
fn start_in<V: IntoView + 'static>(element: HtmlElement, app: impl FnOnce() -> V + 'static) {
    std::panic::set_hook(Box::new(report_crash));
    mount_to(element, app).forget();
}

/// Logs the panic to the console and shows the hidden notice of `index.html`, because the page no longer
/// responds after a panic.
fn report_crash(info: &PanicHookInfo<'_>) {
    leptos::logging::error!("{info}");
    if let Some(notice) = document().get_element_by_id("crash") {
        // A failure here can't be reported.
        let _ = notice.remove_attribute("hidden");
    }
}
