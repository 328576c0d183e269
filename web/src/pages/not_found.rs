//! The page for an unknown address.

use crate::address::name_page;
use leptos::prelude::*;

/// The page for an unknown address, with a link to the Plan page.
#[component]
pub(crate) fn NotFound() -> impl IntoView {
    name_page(|| "Page not found".into());
    view! {
        <h1>"Page not found"</h1>
        <p><a href="/" rel="external">"Go to Plan"</a></p>
    }
}
