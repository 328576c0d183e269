//! The header of each page, with the navigation.

use crate::components::theme::{Theme, ThemeButton};
use crate::desk::{Desk, shared};
use leptos::prelude::*;
use leptos_router::components::{A, Router};

/// The pages in the navigation. A guest with a share link sees [`PLANNER`] and the shared page only.
const PAGES: [(&str, &str); 6] = [
    ("/", "Plan"),
    ("/search", "Search"),
    ("/recipes", "Recipes"),
    ("/results", "Results"),
    ("/compare", "Compare"),
    ("/history", "History"),
];

/// The pages that need no server.
const PLANNER: [&str; 3] = ["/", "/search", "/recipes"];

/// The header and the router of a program. Links to pages of the other program load that page.
#[component]
pub(crate) fn Frame<const N: usize>(
    /// The paths of the program's own pages.
    pages: [&'static str; N],
    /// The routes.
    children: Children,
) -> impl IntoView {
    Theme::provide();
    let desk = use_context::<Desk>();
    let link = move |(path, title): (&'static str, &'static str)| match pages.contains(&path) {
        true => view! { <A href=path exact={path == "/"}>{title}</A> }.into_any(),
        false => view! { <a href=path rel="external">{title}</a> }.into_any(),
    };
    view! {
        <Router>
            <header>
                <a class="skip" href="#main">"Skip to content"</a>
                <span class="brand"><img src="/icon.svg" alt="" width="24" height="24" />"Trainplan"</span>
                <nav aria-label="Pages">{move || {
                    let shared = desk.map_or_else(shared, Desk::shared);
                    let is_open = |(path, _): &(&str, &str)| shared.is_none() || PLANNER.contains(path);
                    view! {
                        {PAGES.into_iter().filter(is_open).map(link).collect_view()}
                        {shared.clone().map(|path| view! {
                            <a href=path rel=(desk.is_none()).then_some("external")>"Shared with you"</a>
                        })}
                    }
                }}</nav>
                <ThemeButton />
            </header>
            <main id="main" tabindex="-1">{children()}</main>
        </Router>
    }
}
