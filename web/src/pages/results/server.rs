//! The runs on the server, a page at a time.

use super::picks::pick;
use super::{FILTERS, SORT};
use crate::address::Address;
use crate::components::filters::{AFTER, Filters, NothingFound, asked, is_any};
use crate::components::run_table::{RunTable, with_unit};
use crate::components::trouble::RequestErrorNote;
use crate::desk::{Asked, Desk};
use crate::message::{Answer, Question, Row, Runs};
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::tables::{PageHeading, StoredRunColumn};

/// The server's default order.
const NEWEST: &str = "-received_at";

/// Returns the order of the address, or the default one if it is unknown.
fn order(address: Address) -> String {
    let order = address.own(SORT);
    let mut known = StoredRunColumn::page_headings().into_iter().filter_map(|heading| heading.order);
    let is_known = known.any(|known| bare(known) == bare(&order));
    if is_known { order } else { NEWEST.into() }
}

/// Returns an order without its direction.
fn bare(order: &str) -> &str {
    order.strip_prefix('-').unwrap_or(order)
}

/// Asks for the page of runs of the address.
pub(super) fn ask(address: Address) -> Asked<Runs> {
    let desk = Desk::of_app();
    let query = Memo::new(move |_| {
        let mut query = form_urlencoded::Serializer::new(asked(address, &FILTERS));
        query.append_pair("sort", &order(address));
        let after = address.own(AFTER);
        if !after.is_empty() {
            query.append_pair("cursor", &after);
        }
        query.finish()
    });
    desk.answer(
        move || {
            desk.track_runs();
            Some(Question::Runs { query: query.get() })
        },
        |answer| if let Answer::Runs(runs) = answer { Some(runs) } else { None },
    )
}

/// The runs on the server; nothing without a server.
#[component]
pub(super) fn ServerRuns(runs: Asked<Runs>) -> impl IntoView {
    let address = Address::of_page();
    let rows = Memo::new(move |_| {
        let runs = runs.get();
        runs.map_or_else(Vec::new, |runs| runs.rows.iter().cloned().map(Arc::new).collect::<Vec<_>>())
    });
    let known = Callback::new(move |key| known(&rows.get(), key));
    let next = move || runs.get().and_then(|runs| runs.next.clone());
    let turn = move |after: String| address.turn_to_own(&[(AFTER, after)]);
    let is_newest = move || order(address) == NEWEST;
    let has_filters = move || is_any(address, &FILTERS);
    // The filters stay while the last one is cleared, because the user is still in its field.
    let has_any =
        Memo::new(move |before| before == Some(&true) || !rows.with(Vec::is_empty) || has_filters());
    let nothing = move || {
        view! { <Show when=has_filters fallback=begin><NothingFound filters=&FILTERS /></Show> }
    };
    view! {
        <RequestErrorNote trouble=Signal::derive(move || runs.trouble()) />
        <Show when=move || runs.get().is_some()>
            <section class="server" aria-labelledby="server-runs">
                <h2 id="server-runs">"On the server"</h2>
                <Show when=move || has_any.get()>
                    <Filters filters=&FILTERS known />
                </Show>
                <Show when=move || !rows.with(Vec::is_empty) fallback=nothing>
                    <div class:stale=move || runs.is_open()>
                        <RunTable label="Results on the server" first="Run" columns=StoredRunColumn::page_headings() heading=heading rows more=move |row: &Row| pick(address, row) />
                    </div>
                </Show>
                <div class="buttons">
                    <Show when=move || !address.own(AFTER).is_empty()>
                        <button type="button" class="action" on:click=move |_| turn(String::new())>
                            {move || if is_newest() { "Newest runs" } else { "First page" }}
                        </button>
                    </Show>
                    {move || next().map(|next| view! {
                        <button type="button" class="action" on:click=move |_| turn(next.clone())>
                            {move || if is_newest() { "Older runs" } else { "Next page" }}
                        </button>
                    })}
                </div>
            </section>
        </Show>
    }
}

/// What the page shows while the server has no runs.
fn begin() -> impl IntoView {
    view! {
        <p class="notice">
            "No runs on the server yet. Drop logs above and choose Upload."
        </p>
    }
}

/// The heading of a column: a press sorts by it on the server, another one reverses the order.
fn heading(column: PageHeading) -> AnyView {
    let PageHeading { is_number, hint, .. } = column;
    let title = with_unit(column.title);
    let Some(first) = column.order else {
        return view! { <th scope="col" class:number=is_number>{title}</th> }.into_any();
    };
    let address = Address::of_page();
    let current = move || Some(order(address)).filter(|order| bare(order) == bare(first));
    let press = move |_| {
        let next = match current() {
            None => first.to_string(),
            Some(order) if order.starts_with('-') => bare(first).to_string(),
            Some(order) => format!("-{order}"),
        };
        let next = if next == NEWEST { String::new() } else { next };
        address.turn_to_own(&[(SORT, next), (AFTER, String::new())]);
    };
    // The direction in words and as an arrow.
    let turned = move || match current() {
        None => ("none", ""),
        Some(order) if order.starts_with('-') => ("descending", " ↓"),
        Some(_) => ("ascending", " ↑"),
    };
    view! {
        <th scope="col" class:number=is_number aria-sort=move || turned().0>
            <button type="button" title=hint on:click=press>{title}<span aria-hidden="true">{move || turned().1}</span></button>
        </th>
    }
    .into_any()
}

/// Returns the recipes, campaigns or clusters of the listed runs, each once.
fn known(rows: &[Arc<Row>], key: &str) -> Vec<String> {
    let value = |row: &Arc<Row>| match key {
        "recipe" => row.recipe.clone(),
        "campaign" => row.campaign.clone(),
        "cluster" => row.cluster.clone(),
        _ => None,
    };
    let mut values: Vec<String> = rows.iter().filter_map(value).collect();
    values.sort_unstable();
    values.dedup();
    values
}
