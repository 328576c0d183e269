//! A row for every log: whether it was scored, what it measured, and how far that is from the published number.

use super::Results;
use crate::message::Row;
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::units::{group_digits, significant};

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
                        <th scope="col">"Recipe"</th>
                        <th scope="col" class="number">"Steps"</th>
                        <th scope="col">"Window"</th>
                        <th scope="col" class="number">"Step time, s"</th>
                        <th scope="col" class="number">"Tokens/s"</th>
                        <th scope="col" class="number">"MFU, %"</th>
                        <th scope="col" class="number">"Of published, %"</th>
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
    let dash = |text: Option<String>| text.unwrap_or_else(|| "–".into());
    view! {
        <tr data-status=row.status.clone()>
            <th scope="row" data-label="Log">
                {file}
                {(!folder.is_empty()).then(|| view! { <small>{folder}</small> })}
                {row.remarks.iter().map(|remark| view! { <small class="remark">{remark.clone()}</small> }).collect_view()}
            </th>
            <td data-label="Status"><span class="status">{row.status.replace('_', " ")}</span></td>
            <td data-label="Recipe">{dash(row.recipe.clone())}</td>
            <td data-label="Steps" class="number">{group_digits(row.steps)}</td>
            <td data-label="Window">{dash(row.window.clone())}</td>
            <td data-label="Step time, s" class="number">
                {dash(step_time(&row))}
                {row.std_kind.clone().map(|kind| view! { <small title="Kind of standard deviation">{kind}</small> })}
            </td>
            <td data-label="Tokens/s" class="number">{dash(row.tokens_per_s.map(group_digits))}</td>
            <td data-label="MFU, %" class="number">
                {dash(row.mfu.map(|mfu| format!("{:.2}", mfu * 100.0)))}
                {row.convention.clone().map(|convention| view! { <small>{convention}</small> })}
            </td>
            <td data-label="Of published, %" class="number">
                {dash(row.speed_percent.map(|percent| format!("{percent:.1}")))}
            </td>
        </tr>
    }
}

/// Mean and standard deviation.
fn step_time(row: &Row) -> Option<String> {
    let spread = row.step_time_std_s.map_or(String::new(), |std| format!(" ± {}", significant(std, 2)));
    Some(format!("{}{spread}", significant(row.step_time_s?, 5)))
}

/// A path's folder and file.
fn split(path: &str) -> (String, String) {
    match path.rsplit_once('/') {
        Some((folder, file)) => (format!("{folder}/"), file.to_string()),
        None => (String::new(), path.to_string()),
    }
}
