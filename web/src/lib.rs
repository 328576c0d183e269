//! The Trainplan web app: it runs in the browser alone, and every page keeps its state in the URL.
//!
//! It is three programs, so that nobody waits for what another page needs: [`planner`] plans, [`results`] shows what ran,
//! and [`worker`] does for both what is large or takes long. A link from one to the other loads a page.

#![allow(unreachable_pub, reason = "`#[component]` writes public items, whatever the function's visibility")]

mod address;
mod components;
mod desk;
mod files;
mod message;
mod pages;
mod reader;
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
};
use std::panic::PanicHookInfo;

/// The pages that plan.
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

/// The pages that show what ran.
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

/// What works for a page, out of its way.
pub fn worker() {
    worker::start();
}

fn start<V: IntoView + 'static>(app: impl FnOnce() -> V + 'static) {
    std::panic::set_hook(Box::new(report_crash));
    mount_to_body(app);
}

/// Writes the panic to the console and shows the notice that `index.html` keeps hidden: after a panic the page no
/// longer answers, and someone who is not told would go on typing.
fn report_crash(info: &PanicHookInfo<'_>) {
    console_error_panic_hook::hook(info);
    if let Some(notice) = document().get_element_by_id("crash") {
        // Nothing is left to do if even this fails.
        let _ = notice.remove_attribute("hidden");
    }
}
