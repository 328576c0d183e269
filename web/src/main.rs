//! The Trainplan web app: it runs in the browser alone, and every page keeps its state in the URL.

#![allow(unreachable_pub, reason = "`#[component]` writes public items, whatever the function's visibility")]

mod address;
mod components;
mod files;
mod message;
mod pages;
mod reader;

use std::panic::PanicHookInfo;

use leptos::prelude::*;
use leptos_router::components::{A, Route, Router, Routes};
use leptos_router::path;

use components::theme::{Theme, ThemeButton};
use pages::{
    not_found::NotFound,
    plan::PlanPage,
    recipes::RecipesPage,
    results::{ResultsPage, intake::Entries},
};

fn main() {
    std::panic::set_hook(Box::new(report_crash));
    mount_to_body(App);
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

/// The frame around every page: the way between pages, and the page that the URL names.
#[component]
fn App() -> impl IntoView {
    Theme::provide();
    Entries::provide();
    view! {
        <Router>
            <header>
                <a class="skip" href="#main">"Skip to content"</a>
                <span class="brand"><img src="/icon.svg" alt="" width="24" height="24" />"Trainplan"</span>
                <nav aria-label="Pages">
                    <A href="/" exact=true>"Plan"</A>
                    <A href="/recipes">"Recipes"</A>
                    <A href="/results">"Results"</A>
                </nav>
                <ThemeButton />
            </header>
            <main id="main" tabindex="-1">
                <Routes fallback=NotFound>
                    <Route path=path!("/") view=PlanPage />
                    <Route path=path!("/recipes") view=RecipesPage />
                    <Route path=path!("/results") view=ResultsPage />
                </Routes>
            </main>
        </Router>
    }
}
