//! The page for an unknown address.

use crate::address::name_page;
use leptos::prelude::*;

/// The page for an unknown address, with a link to the Plan page.
#[component]
pub(crate) fn NotFound() -> impl IntoView {
    name_page(|| "Page not found".into());
    view! {
        <div class="empty-page">
            <h1>"Page not found"</h1>
            <p>"There is nothing at this address. It may be mistyped, or from an older version."</p>
            <p class="buttons">
                <a class="action primary" href="/" rel="external">"Go to Plan"</a>
                <a class="action" href="/benchmarks" rel="external">"Benchmarks"</a>
                <a class="action" href="/results" rel="external">"Results"</a>
            </p>
        </div>
    }
}
