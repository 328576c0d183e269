//! What a URL that names no page shows.

use crate::address::name_page;
use leptos::prelude::*;
use leptos_router::components::A;

/// Says that the URL names no page, and leads to one that exists.
#[component]
pub(crate) fn NotFound() -> impl IntoView {
    name_page(|| "No such page".into());
    view! {
        <h1>"No such page"</h1>
        <p>"This address names no page. " <A href="/">"Go to Plan"</A></p>
    }
}
