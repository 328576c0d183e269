//! The facets: the values of each property with the number of runs, to select some.

use super::Benchmarks;
use crate::address::Address;
use leptos::prelude::*;
use trainplan_shared::benchmarks::{BenchmarkFacet, FacetCount};
use trainplan_shared::units::group_digits;

/// The width in CSS pixels above which the facets are open from the start.
const WIDE: f64 = 720.0;

/// The facets, column by column: short lists share one.
const COLUMNS: [&[BenchmarkFacet]; 7] = [
    &[BenchmarkFacet::Kind, BenchmarkFacet::Measured],
    &[BenchmarkFacet::Model],
    &[BenchmarkFacet::Gpu],
    &[BenchmarkFacet::Gpus],
    &[BenchmarkFacet::Precision, BenchmarkFacet::Series],
    &[BenchmarkFacet::Source],
    &[BenchmarkFacet::Release],
];

/// Returns whether the window is wide enough for tables with many columns.
pub(super) fn is_wide() -> bool {
    window().inner_width().ok().and_then(|width| width.as_f64()).is_none_or(|width| width > WIDE)
}

/// All facets. On a phone they are behind a button.
#[component]
pub(super) fn Facets() -> impl IntoView {
    let state = Benchmarks::of_page();
    let selected = move || {
        let count =
            state.filter.with(|filter| BenchmarkFacet::ALL.map(|facet| filter.count_of(facet)).iter().sum());
        match count {
            0_usize => "Filters".to_string(),
            count => format!("Filters ({count} selected)"),
        }
    };
    view! {
        <details class="facets" open=is_wide()>
            <summary>{selected}</summary>
            <div role="group" aria-label="Filters">
                {COLUMNS.into_iter().map(|facets| view! {
                    <div class="facet-column">{facets.iter().map(|facet| view! { <FacetBox facet=*facet /> }).collect_view()}</div>
                }).collect_view()}
            </div>
        </details>
    }
}

/// One facet.
#[component]
fn FacetBox(facet: BenchmarkFacet) -> impl IntoView {
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
    let title_id = format!("facet-{}", facet.id());
    let label_id = title_id.clone();
    view! {
        <fieldset class="facet" data-facet=facet.id() aria-labelledby=label_id>
            <h2 id=title_id>{facet.title()}</h2>
            <ul tabindex="0" aria-label=facet.title()>
                <For each=move || values.get() key=|(value, _)| value.clone() let((value, title))>
                    {
                        let (of_box, of_count, of_row) = (value.clone(), value.clone(), value.clone());
                        view! {
                            <li class:none=move || of(&of_row).is_none_or(|count| count.count == 0 && !count.is_selected)>
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
        </fieldset>
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_facet_is_in_one_column() {
        let mut shown: Vec<BenchmarkFacet> = COLUMNS.concat();
        shown.sort_unstable();
        assert_eq!(shown, BenchmarkFacet::ALL);
    }
}
