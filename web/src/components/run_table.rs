//! Runs below each other: whether each was scored, what it measured, and how far that is from the published number and
//! from its plan.

use crate::address::{Address, query};
use crate::message::Row;
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::field::Field;
use trainplan_shared::spec::Spec;

/// A column that the worker fills: its title, and whether it holds numbers.
pub(crate) type Column = (&'static str, bool);

/// What people look for first: it stands above the rest of a run where the window is narrow.
const MAIN: [&str; 4] = ["Step time, s", "Against reference", "MFU, %", "Of published, %"];

/// Runs and their figures. Styles hide the last column while no row has a plan; where the window is narrow they make a
/// card of each row.
#[component]
pub(crate) fn RunTable(
    /// What it is a table of.
    label: &'static str,
    /// What the rows are.
    first: &'static str,
    /// The other columns, after name and status.
    columns: &'static [Column],
    /// How a column's head is made where it is more than its title.
    #[prop(optional)]
    head: Option<fn(Column) -> AnyView>,
    /// The rows.
    #[prop(into)]
    rows: Signal<Vec<Arc<Row>>>,
    /// What stands beside the name of a row.
    #[prop(into)]
    more: ViewFnOf,
    /// Whether that stands below the name.
    #[prop(optional)]
    below: bool,
) -> impl IntoView {
    view! {
        <div class="scroll" tabindex="0" role="region" aria-label=label>
            <table class="reports cards">
                <thead>
                    <tr>
                        <th scope="col">{first}</th>
                        <th scope="col">"Status"</th>
                        {columns.iter().map(|column| head.unwrap_or(plain_head)(*column)).collect_view()}
                    </tr>
                </thead>
                <tbody>
                    <For each=move || rows.get() key=|row| (row.id.clone(), row.number, Arc::as_ptr(row).addr()) let(row)>
                        <RunRow row first columns more=more.clone() below />
                    </For>
                </tbody>
            </table>
        </div>
    }
}

fn plain_head((title, number): Column) -> AnyView {
    view! { <th scope="col" class:number=number>{title}</th> }.into_any()
}

/// What a page adds to a row.
#[derive(Clone)]
pub(crate) struct ViewFnOf(Arc<dyn Fn(&Row) -> AnyView + Send + Sync>);

impl<F: Fn(&Row) -> AnyView + Send + Sync + 'static> From<F> for ViewFnOf {
    fn from(make: F) -> Self {
        ViewFnOf(Arc::new(make))
    }
}

/// One run.
#[component]
fn RunRow(
    row: Arc<Row>,
    first: &'static str,
    columns: &'static [Column],
    more: ViewFnOf,
    below: bool,
) -> impl IntoView {
    let address = Address::of_page();
    let (folder, file) = split(&row.path);
    let name = match row.id.is_empty() {
        true => file.into_any(),
        false => {
            let id = row.id.clone();
            view! { <a href=move || run_href(address, &id)>{file}</a> }.into_any()
        }
    };
    let cell = |(index, (label, number)): (usize, &'static Column)| {
        let cell = row.cells.get(index).cloned().unwrap_or_default();
        let is_none = cell.text.is_empty();
        let text = if is_none { "–".into() } else { cell.text };
        view! { <td data-label=*label class:number=*number class:none=is_none class:main=MAIN.contains(label)>{text}{small(cell.more)}</td> }
    };
    view! {
        <tr data-status=row.status.clone()>
            <th scope="row" data-label=first>
                {(!below).then(|| (more.0)(&row))}
                {name}
                {small(folder)}
                {row.remarks.iter().map(|remark| view! { <small class="remark">{remark.clone()}</small> }).collect_view()}
                {below.then(|| (more.0)(&row))}
            </th>
            <td data-label="Status"><span class="status">{row.status.replace('_', " ")}</span></td>
            {columns.iter().enumerate().map(cell).collect_view()}
        </tr>
    }
}

/// Where a run is shown, looked at as it is here.
pub(crate) fn run_href(address: Address, id: &str) -> String {
    format!("/run?{}", query(&view_of(address), &[("id", id.to_string())]))
}

/// Where runs stand beside each other, looked at as here.
pub(crate) fn compare_href(address: Address, ids: &[String]) -> String {
    format!("/compare?{}", query(&view_of(address), &[("ids", ids.join(","))]))
}

/// How the page looks at runs.
pub(crate) fn view_of(address: Address) -> Spec {
    let spec = address.spec();
    let mut view = Spec::default();
    for field in [Field::Window, Field::Convention, Field::Recipe] {
        view.set(field, spec.raw(field));
    }
    view
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
