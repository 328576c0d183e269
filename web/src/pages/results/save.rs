//! Taking results out of the page.

use super::intake::Entries;
use leptos::prelude::*;

/// Buttons that save what the page shows.
#[component]
pub(super) fn SaveButtons() -> impl IntoView {
    let entries = Entries::of_app();
    let save = move |form: &'static str| move |_| entries.save(form);
    view! {
        <div class="buttons">
            <button type="button" class="action" on:click=save("csv")>"Save as CSV"</button>
            <button type="button" class="action" on:click=save("json")>"Save as JSON"</button>
            <button type="button" class="action" on:click=save("results") title="A *.result.json for each log; several come as a tar archive">"Save result files"</button>
            {move || entries.save_failed().then(|| view! { <span class="error" role="status">"There was nothing that could be saved."</span> })}
        </div>
    }
}
