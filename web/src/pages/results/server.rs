//! What the server has, a page at a time.

use super::picks::pick;
use super::{AFTER, FILTERS};
use crate::address::Address;
use crate::components::run_table::{Column, RunTable};
use crate::components::trouble::{SignOut, TroubleNote};
use crate::desk::{Asked, Desk};
use crate::message::{Answer, Question, Row, Runs};
use leptos::prelude::*;
use std::sync::Arc;

const COLUMNS: [Column; 7] = [
    ("Recipe", false),
    ("Received", false),
    ("Step time, s", true),
    ("Tokens/s", true),
    ("MFU, %", true),
    ("Of published, %", true),
    ("Planned, s", true),
];

/// As the command line names them.
const STATUSES: [&str; 6] = ["scored", "incomplete", "invalid", "failed", "no_data", "unreadable"];

/// The page of runs that the address asks for.
pub(super) fn ask(address: Address) -> Asked<Runs> {
    let desk = Desk::of_app();
    let query = Memo::new(move |_| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (key, _) in FILTERS {
            let value = address.own(key);
            if !value.trim().is_empty() {
                query.append_pair(key, value.trim());
            }
        }
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

/// The runs of the server; nothing where there is none.
#[component]
pub(super) fn ServerRuns(runs: Asked<Runs>) -> impl IntoView {
    let address = Address::of_page();
    let rows = Memo::new(move |_| {
        let runs = runs.get();
        runs.map_or_else(Vec::new, |runs| runs.rows.iter().cloned().map(Arc::new).collect::<Vec<_>>())
    });
    let is_filtered = move || FILTERS.iter().any(|(key, _)| !address.own(key).is_empty());
    let next = move || runs.get().and_then(|runs| runs.next.clone());
    let nothing = move || {
        match is_filtered() {
        true => view! {
            <p class="notice">
                "No run is all of this. "
                <button type="button" class="action" on:click=move |_| clear(address)>"Show all runs"</button>
            </p>
        }.into_any(),
        false => view! {
            <p class="notice">"The server has no results yet: " <code>"trainplan run"</code> " brings them, " <code>"trainplan import"</code> " and " <code>"trainplan upload"</code> " do too."</p>
        }.into_any(),
    }
    };
    view! {
        <TroubleNote trouble=Signal::derive(move || runs.trouble()) />
        <Show when=move || runs.get().is_some()>
            <section class="server" aria-labelledby="server-runs">
                <div class="buttons">
                    <h2 id="server-runs">"On the server"</h2>
                    <SignOut />
                </div>
                <Filters rows />
                <Show when=move || !rows.with(Vec::is_empty) fallback=nothing>
                    <div class:stale=move || runs.is_open()>
                        <RunTable label="Results on the server" first="Run" columns=&COLUMNS rows more=move |row: &Row| pick(address, row) />
                    </div>
                </Show>
                <div class="buttons">
                    <Show when=move || !address.own(AFTER).is_empty()>
                        <button type="button" class="action" on:click=move |_| address.turn_to_own(&[(AFTER, String::new())])>"Newest runs"</button>
                    </Show>
                    {move || next().map(|next| view! {
                        <button type="button" class="action" on:click=move |_| address.turn_to_own(&[(AFTER, next.clone())])>"Older runs"</button>
                    })}
                </div>
            </section>
        </Show>
    }
}

/// What the server should list.
#[component]
fn Filters(rows: Memo<Vec<Arc<Row>>>) -> impl IntoView {
    let address = Address::of_page();
    // Another filter begins at its first page.
    let set = move |key: &'static str, value: String| {
        address.set_own(AFTER, "");
        address.set_own(key, value);
    };
    let field = move |(key, label): (&'static str, &'static str)| {
        let id = format!("filter-{key}");
        let input = match key {
            "status" => view! {
                <select id=id.clone() on:change=move |event| set(key, event_target_value(&event))>
                    <option value="" selected=move || address.own(key).is_empty()>"any"</option>
                    {STATUSES.map(|status| view! {
                        <option value=status selected=move || address.own(key) == status>{status.replace('_', " ")}</option>
                    }).collect_view()}
                </select>
            }.into_any(),
            _ => view! {
                <input
                    id=id.clone() type="text" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="any"
                    list=format!("{id}-known")
                    prop:value=move || address.own(key)
                    on:change=move |event| set(key, event_target_value(&event))
                />
                <datalist id=format!("{id}-known")>
                    {move || known(&rows.get(), key).into_iter().map(|value| view! { <option value=value></option> }).collect_view()}
                </datalist>
            }.into_any(),
        };
        view! { <div class="field" class:changed=move || !address.own(key).is_empty()><label for=id>{label}</label>{input}</div> }
    };
    view! { <div class="controls">{FILTERS.map(field).collect_view()}</div> }
}

/// What the listed runs have of it, each once.
fn known(rows: &[Arc<Row>], key: &str) -> Vec<String> {
    let of = |row: &Arc<Row>| match key {
        "recipe" => row.cells.first().map(|cell| cell.text.clone()),
        // A run that we carried out is called `campaign/run on cluster`.
        "campaign" => {
            row.path.split_once(" on ").and_then(|(name, _)| Some(name.rsplit_once('/')?.0.to_string()))
        }
        "cluster" => row
            .path
            .split_once(" on ")
            .map(|(_, cluster)| cluster.split_once(" #").map_or(cluster, |(cluster, _)| cluster).to_string()),
        _ => None,
    };
    let mut values: Vec<String> = rows.iter().filter_map(of).filter(|value| !value.is_empty()).collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn clear(address: Address) {
    let all: Vec<(&'static str, String)> = FILTERS.iter().map(|(key, _)| (*key, String::new())).collect();
    address.turn_to_own(&all);
}
