//! The facets: the values of each property with the number of runs, to select some. Lists of values are opened one at a time, so that the
//! runs start near the top of the page.

use super::{Benchmarks, PATH};
use crate::address::Address;
use leptos::ev::KeyboardEvent;
use leptos::html::Button;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsCast;
use leptos::web_sys::{Element, EventTarget};
use trainplan_shared::benchmarks::{BenchmarkFacet, BenchmarkFilter, FacetCount};
use trainplan_shared::units::group_digits;

/// The width in CSS pixels above which the rows of tables aren't cards. The styles have the same.
const WIDE: f64 = 1100.0;

/// The width in CSS pixels up to which the facets are folded. The styles have the same.
const PHONE: f64 = 720.0;

/// Returns whether the window is wide enough for tables with many columns.
pub(super) fn is_wide() -> bool {
    is_wider_than(WIDE)
}

fn is_wider_than(least: f64) -> bool {
    window().inner_width().ok().and_then(|width| width.as_f64()).is_none_or(|width| width > least)
}

/// All facets, each a button that opens its values, and the selected values. On a phone, the facets are folded at first, so that the
/// chart starts on the first screen.
#[component]
pub(super) fn Facets() -> impl IntoView {
    let state = Benchmarks::of_page();
    let open = RwSignal::new(None::<BenchmarkFacet>);
    // A list closes when the pointer or the focus goes elsewhere.
    let leave = move |target: Option<EventTarget>| {
        let element = target.and_then(|target| target.dyn_into::<Element>().ok());
        let stays = element.is_some_and(|element| element.closest(".facet").ok().flatten().is_some());
        if !stays && open.get_untracked().is_some() {
            open.set(None);
        }
    };
    let clicks = window_event_listener(leptos::ev::click, move |event| leave(event.target()));
    let focus = window_event_listener(leptos::ev::focusin, move |event| leave(event.target()));
    on_cleanup(move || {
        clicks.remove();
        focus.remove();
    });
    let selection = move || state.filter.with(BenchmarkFilter::selection);
    let chip = move |(facet, value, title): (BenchmarkFacet, String, String)| {
        let name = format!("Remove the filter {}: {title}", facet.title());
        view! {
            <button type="button" class="chip removable" aria-label=name on:click=move |_| toggle(state, facet, &value)>
                {title} <span aria-hidden="true">" ×"</span>
            </button>
        }
    };
    view! {
        <details class="facet-fold" open=is_wider_than(PHONE)>
            <summary>"Filters"</summary>
            <div class="facets" role="group" aria-label="Filters">
                {BenchmarkFacet::ALL.map(|facet| view! { <FacetBox facet open /> }).collect_view()}
            </div>
        </details>
        <div class="chips" aria-label="Selected filters" role="group">
            {move || selection().into_iter().map(chip).collect_view()}
            {move || state.filter.with(|filter| !filter.is_empty()).then(|| view! {
                <a href=PATH class="link">"Clear filters"</a>
            })}
        </div>
    }
}

/// A facet: its button, and the list of its values.
#[component]
fn FacetBox(facet: BenchmarkFacet, open: RwSignal<Option<BenchmarkFacet>>) -> impl IntoView {
    let state = Benchmarks::of_page();
    let counts =
        Memo::new(move |_| state.rows.with(|rows| state.filter.with(|filter| filter.counts(rows, facet))));
    // The order never changes, so that a value keeps its place under the pointer.
    let values = Memo::new(move |_| {
        counts.with(|counts| {
            counts.iter().map(|count| (count.value.clone(), count.title.clone())).collect::<Vec<_>>()
        })
    });
    let of = move |value: &str| -> Option<FacetCount> {
        counts.with(|counts| counts.iter().find(|count| count.value == value).cloned())
    };
    let is_none = |count: &FacetCount| count.count == 0 && !count.is_selected;
    // Values that the other facets leave without runs.
    let without =
        Memo::new(move |_| counts.with(|counts| counts.iter().filter(|count| is_none(count)).count()));
    let shows_all = RwSignal::new(false);
    let is_open = move || open.get() == Some(facet);
    let (button_id, list_id) = (format!("facet-{}", facet.id()), format!("facet-{}-list", facet.id()));
    let controls = list_id.clone();
    let button = NodeRef::<Button>::new();
    let key = move |event: KeyboardEvent| {
        if event.key() == "Escape" && is_open() {
            open.set(None);
            if let Some(button) = button.get_untracked() {
                // It fails only for elements that are gone.
                let _ = button.focus();
            }
        }
    };
    let label = move || match state.filter.with(|filter| filter.count_of(facet)) {
        0 => facet.title().to_string(),
        count => format!("{} ({count})", facet.title()),
    };
    view! {
        <div class="facet" data-facet=facet.id() on:keydown=key>
            <button
                type="button"
                class="action"
                id=button_id
                node_ref=button
                aria-expanded=move || is_open().to_string()
                aria-controls=controls
                on:click=move |_| open.update(|open| *open = Some(facet).filter(|_| *open != Some(facet)))
            >{label}</button>
            // It takes the focus of a click on a label, which must not leave the list.
            <fieldset id=list_id tabindex="-1" hidden=move || !is_open() aria-label=facet.title()>
                <ul>
                    <For each=move || values.get() key=|(value, _)| value.clone() let((value, title))>
                        {
                            let (of_box, of_count, of_row) = (value.clone(), value.clone(), value.clone());
                            let is_none = Memo::new(move |_| of(&of_row).is_none_or(|count| is_none(&count)));
                            view! {
                                <li class:none=is_none hidden=move || is_none.get() && !shows_all.get()>
                                    <label>
                                        <input
                                            type="checkbox"
                                            prop:checked=move || of(&of_box).is_some_and(|count| count.is_selected)
                                            on:change={
                                                let value = value.clone();
                                                move |_| toggle(state, facet, &value)
                                            }
                                        />
                                        <span>{title}</span>
                                        <small>{move || group_digits(of(&of_count).map_or(0, |count| count.count) as f64)}</small>
                                    </label>
                                </li>
                            }
                        }
                    </For>
                </ul>
                <button
                    type="button"
                    class="link"
                    hidden=move || without.get() == 0
                    on:click=move |_| shows_all.update(|all| *all = !*all)
                >
                    {move || match shows_all.get() {
                        true => "Hide values without runs".to_string(),
                        false => format!("Show {} more without runs", without.get()),
                    }}
                </button>
            </fieldset>
        </div>
    }
}

/// Selects a value, or no longer selects it.
fn toggle(state: Benchmarks, facet: BenchmarkFacet, value: &str) {
    let text = state.filter.with_untracked(|filter| filter.toggled(facet, value));
    let address: Address = state.address;
    match facet.field() {
        Some(field) => address.set(field, text),
        None => address.set_own(facet.id(), text),
    }
}
