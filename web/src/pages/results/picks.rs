//! Selects runs to compare. The address has the selection.

use super::identify::IdentifyPicked;
use super::{PICKS, Results};
use crate::address::Address;
use crate::components::run_table::compare_href;
use crate::message::Row;
use leptos::prelude::*;

/// Returns the ids of the selected runs.
pub(super) fn picks(address: Address) -> Vec<String> {
    address.own(PICKS).split(',').filter(|id| !id.is_empty()).map(str::to_string).collect()
}

/// The checkbox that selects a run; none for a row without an id.
pub(super) fn pick(address: Address, row: &Row) -> AnyView {
    if row.id.is_empty() {
        return ().into_any();
    }
    let id = row.id.clone();
    let picked = Results::of_page().picked;
    let is_picked = {
        let id = id.clone();
        move || picked.with(|picked| picked.contains(&id))
    };
    let change = move |event| {
        let mut all = picked.get_untracked();
        all.retain(|other| *other != id);
        if event_target_checked(&event) {
            all.push(id.clone());
        }
        address.set_own(PICKS, all.join(","));
    };
    view! {
        <label>
            <input type="checkbox" prop:checked=is_picked on:change=change />
            <span class="visually-hidden">{format!("Select {}", row.path)}</span>
        </label>
    }
    .into_any()
}

/// The link to the comparison of the selected runs.
#[component]
pub(super) fn ComparePicked() -> impl IntoView {
    let address = Address::of_page();
    let picked = Results::of_page().picked;
    let label = move || match picked.with(Vec::len) {
        1 => "Compare 1 run with its plan".to_string(),
        count => format!("Compare {count} runs"),
    };
    view! {
        <Show when=move || !picked.with(Vec::is_empty)>
            <div class="picked" role="region" aria-label="Selected runs">
                <a class="action primary" href=move || compare_href(address, &picked.get())>{label}</a>
                <button type="button" class="action" on:click=move |_| address.set_own(PICKS, "")>"Clear selection"</button>
                <IdentifyPicked picked />
            </div>
        </Show>
    }
}
