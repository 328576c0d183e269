//! The header of each page, with the navigation.

use crate::components::theme::{Theme, ThemeButton};
use crate::desk::{Desk, shared};
use leptos::prelude::*;

/// The pages in the navigation. A guest with a share link sees [`PLANNER`] and the shared page only.
const PAGES: [(&str, &str); 5] = [
    ("/", "Plan"),
    ("/benchmarks", "Benchmarks"),
    ("/results", "Results"),
    ("/compare", "Compare"),
    ("/history", "History"),
];

/// The pages that need no server.
const PLANNER: [&str; 2] = ["/", "/benchmarks"];

/// The header of a page, and the page below it.
#[component]
pub(crate) fn Frame<const N: usize>(
    /// The paths of the pages between which the program's router switches. Links to all others load the page.
    routed: [&'static str; N],
    /// The path of the open page.
    #[prop(into)]
    path: Signal<String>,
    /// What the program adds to the header.
    #[prop(optional)]
    tools: Option<AnyView>,
    children: Children,
) -> impl IntoView {
    Theme::provide();
    let desk = use_context::<Desk>();
    let link = move |(to, title): (&'static str, &'static str)| {
        // A run is one of the results.
        let is_open = move || {
            path.with(|path| match path.trim_end_matches('/') {
                "/run" => to == "/results",
                path => path == to.trim_end_matches('/'),
            })
        };
        view! {
            <a
                href=to
                rel=(!routed.contains(&to)).then_some("external")
                aria-current=move || is_open().then_some("page")
            >
                {title}
            </a>
        }
    };
    view! {
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
            {tools}
            <ThemeButton />
        </header>
        <main id="main" tabindex="-1">{children()}</main>
    }
}
