//! The Trainplan web app. It runs in the browser, and each page keeps its state in the URL.
//!
//! There are several programs, so that a page loads only the code it needs: [`planner`] for a plan, [`finder`] for the
//! search of one, [`results`] for runs, [`worker`] for large or slow computations of plans and runs, and
//! [`search_worker`], which searches. A link between pages of different programs loads a new page.

#![allow(unreachable_pub, reason = "a component's generated items are public, whatever its own visibility")]

mod address;
mod components;
mod desk;
mod files;
mod message;
mod pages;
mod reader;
mod search_worker;
mod worker;

use components::frame::Frame;
use components::share::Guest;
use desk::Desk;
use leptos::prelude::*;
use leptos_router::components::{Route, Routes};
use leptos_router::path;
use pages::{
    compare::ComparePage,
    history::HistoryPage,
    not_found::NotFound,
    plan::PlanPage,
    recipes::RecipesPage,
    results::{ResultsPage, intake::Entries},
    run::RunPage,
    search::SearchPage,
};
use std::panic::PanicHookInfo;

/// Starts the program of the Plan and Recipes pages.
pub fn planner() {
    start(|| {
        view! {
            <Frame pages=["/", "/recipes"]>
                <Routes fallback=NotFound>
                    <Route path=path!("/") view=PlanPage />
                    <Route path=path!("/recipes") view=RecipesPage />
                </Routes>
            </Frame>
        }
    });
}

/// Starts the program of the Search page.
pub fn finder() {
    start(|| {
        view! {
            <Frame pages=["/search"]>
                <Routes fallback=NotFound>
                    <Route path=path!("/search") view=SearchPage />
                </Routes>
            </Frame>
        }
    });
}

/// Starts the program of the Results, Compare, Run and History pages.
pub fn results() {
    start(|| {
        Entries::provide(Desk::provide());
        view! {
            <Frame pages=["/results", "/compare", "/history"]>
                <Guest />
                <Routes fallback=NotFound>
                    <Route path=path!("/results") view=ResultsPage />
                    <Route path=path!("/compare") view=ComparePage />
                    <Route path=path!("/run") view=RunPage />
                    <Route path=path!("/history") view=HistoryPage />
                </Routes>
            </Frame>
        }
    });
}

/// Starts the worker.
pub fn worker() {
    worker::start();
}

/// Starts the worker that searches for plans.
pub fn search_worker() {
    search_worker::start();
}

fn start<V: IntoView + 'static>(app: impl FnOnce() -> V + 'static) {
    std::panic::set_hook(Box::new(report_crash));
    mount_to_body(app);
}

/// Logs the panic to the console and shows the hidden notice of `index.html`, because the page no longer
/// responds after a panic.
fn report_crash(info: &PanicHookInfo<'_>) {
    console_error_panic_hook::hook(info);
    if let Some(notice) = document().get_element_by_id("crash") {
        // A failure here can't be reported.
        let _ = notice.remove_attribute("hidden");
    }
}
