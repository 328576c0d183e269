//! A row for every log: whether it was scored, what it measured, and how far that is from the published number and from
//! its plan.

use super::Results;
use crate::message::Row;
use leptos::prelude::*;
use std::sync::Arc;

/// The columns that the worker fills, and whether they hold numbers.
const COLUMNS: [(&str, bool); 8] = [
    ("Recipe", false),
    ("Steps", true),
    ("Window", false),
    ("Step time, s", true),
    ("Tokens/s", true),
    ("MFU, %", true),
    ("Of published, %", true),
    // Styles hide the last one while no row has a plan.
    ("Planned, s", true),
];

/// The reports of all files.
#[component]
pub(super) fn ReportTable() -> impl IntoView {
    let results = Results::of_page();
    view! {
        <div class="scroll" tabindex="0" role="region" aria-label="Results">
            <table class="reports cards">
                <thead>
                    <tr>
                        <th scope="col">"Log"</th>
                        <th scope="col">"Status"</th>
                        {COLUMNS.map(|(label, number)| view! { <th scope="col" class:number=number>{label}</th> }).collect_view()}
                    </tr>
                </thead>
                <tbody>
                    <For each=move || results.rows.get() key=|(row, _)| (row.number, Arc::as_ptr(row).addr()) let((row, _))>
                        <ReportRow row />
                    </For>
                </tbody>
            </table>
        </div>
    }
}

/// One log.
#[component]
fn ReportRow(row: Arc<Row>) -> impl IntoView {
    let (folder, file) = split(&row.path);
    let cell = |(index, (label, number)): (usize, (&'static str, bool))| {
        let cell = row.cells.get(index).cloned().unwrap_or_default();
        let text = if cell.text.is_empty() { "–".into() } else { cell.text };
        view! { <td data-label=label class:number=number>{text}{small(cell.more)}</td> }
    };
    view! {
        <tr data-status=row.status.clone()>
            <th scope="row" data-label="Log">
                {file}
                {small(folder)}
                {row.remarks.iter().map(|remark| view! { <small class="remark">{remark.clone()}</small> }).collect_view()}
            </th>
            <td data-label="Status"><span class="status">{row.status.replace('_', " ")}</span></td>
            {COLUMNS.into_iter().enumerate().map(cell).collect_view()}
        </tr>
    }
}

fn small(text: String) -> impl IntoView {
    (!text.is_empty()).then(|| view! { <small>{text}</small> })
}

/// A path's folder and file.
fn split(path: &str) -> (String, String) {
    match path.rsplit_once('/') {
        Some((folder, file)) => (format!("{folder}/"), file.to_string()),
        None => (String::new(), path.to_string()),
    }
}
