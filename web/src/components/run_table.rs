//! The table of runs: status, step time, and the difference from the published number and from the plan.
//!
//! Every change of the view redraws every row, so a long table starts with its first rows. A remark that most rows share is above the
//! table, once.

use crate::address::{Address, query};
use crate::message::{Row, TimeLine};
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::field::Field;
use trainplan_shared::sorting::sorted;
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::PageHeading;

/// How many rows a table starts with, and how many more a press adds.
const ROWS_AT_ONCE: usize = 100;

/// Runs and their figures. On a narrow screen each row is a card.
#[component]
pub(crate) fn RunTable(
    /// What it is a table of.
    label: &'static str,
    /// What the rows are.
    first: &'static str,
    /// The other columns, after name and status.
    columns: Vec<PageHeading>,
    /// Draws the heading of a column; by default its title.
    #[prop(optional)]
    heading: Option<fn(PageHeading) -> AnyView>,
    /// The rows.
    #[prop(into)]
    rows: Signal<Vec<Arc<Row>>>,
    /// What the page adds to a row: the checkbox that selects it.
    #[prop(into)]
    more: ViewFnOf,
    /// Whether it adds buttons below the name instead. The remarks, longer than the names, are then below the table.
    #[prop(optional)]
    below: bool,
    /// What the page adds below the remarks of a row.
    #[prop(optional, into)]
    remedy: Option<ViewFnOf>,
) -> impl IntoView {
    let address = Address::of_page();
    let view = Memo::new(move |_| view_of(address));
    let rows = Memo::new(move |_| rows.get());
    let most = RwSignal::new(ROWS_AT_ONCE);
    let drawn = move || rows.with(|rows| rows.iter().take(most.get()).cloned().collect::<Vec<_>>());
    let more_rows = move || rows.with(Vec::len).saturating_sub(most.get());
    let columns = Memo::new(move |_| {
        // A column that sorts stays, because the next page may have values.
        let is_shown = |column: &PageHeading| {
            (column.order.is_some() && !column.is_optional)
                || rows.with(|rows| rows.iter().any(|row| row.text(column.key).is_some()))
        };
        columns.iter().copied().filter(is_shown).collect::<Vec<_>>()
    });
    let shared = Memo::new(move |_| rows.with(|rows| shared_remarks(rows)));
    let noun = if first == "Log" { "logs" } else { "runs" };
    let shared_line = move |(remark, count): (String, usize)| {
        view! { <p class="basis">{format!("{count} {noun}: {remark}")}</p> }
    };
    let of_row = move |row: Arc<Row>| {
        let remarks = own_remarks(&row, shared).join(" ");
        (!remarks.is_empty()).then(|| view! { <li><strong>{row.path.clone()}</strong>": " {remarks}</li> })
    };
    let below_table = move || {
        let items: Vec<_> = rows.get().into_iter().filter_map(of_row).collect();
        (!items.is_empty()).then(|| view! { <ul class="plain basis">{items}</ul> })
    };
    view! {
        {move || shared.get().into_iter().map(shared_line).collect_view()}
        <div class="scroll" tabindex="0" role="region" aria-label=label>
            <table class="reports cards">
                <thead>
                    <tr>
                        {(!below).then(|| view! { <th scope="col"><span class="visually-hidden">"Select"</span></th> })}
                        <th scope="col">{first}</th>
                        <th scope="col">"Status"</th>
                        {move || columns.get().into_iter().map(heading.unwrap_or(title)).collect_view()}
                    </tr>
                </thead>
                <tbody>
                    <For each=drawn key=|row| (row.id.clone(), row.number, Arc::as_ptr(row).addr()) let(row)>
                        <RunRow row first columns view shared more=more.clone() below remedy=remedy.clone() />
                    </For>
                </tbody>
            </table>
        </div>
        {below.then_some(below_table)}
        <Show when=move || { more_rows() > 0 }>
            <div class="buttons">
                <button type="button" class="action" on:click=move |_| most.update(|most| *most += ROWS_AT_ONCE)>
                    {move || format!("Show {} more", more_rows().min(ROWS_AT_ONCE))}
                </button>
                <button type="button" class="action" on:click=move |_| most.set(usize::MAX)>
                    {move || format!("Show all {}", rows.with(Vec::len))}
                </button>
            </div>
        </Show>
    }
}

fn title(PageHeading { title, is_number, hint, .. }: PageHeading) -> AnyView {
    view! { <th scope="col" class:number=is_number title=hint>{with_unit(title)}</th> }.into_any()
}

/// Returns the title of a column with its unit on the line of the last word: `Step time, s`.
pub(crate) fn with_unit(title: &str) -> String {
    title.replace(", ", ",\u{a0}")
}

/// Returns the remarks that at least half of the rows share, and how many rows have each; the most frequent first.
fn shared_remarks(rows: &[Arc<Row>]) -> Vec<(String, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for remark in rows.iter().flat_map(|row| &row.remarks) {
        match counts.iter_mut().find(|(known, _)| known == remark) {
            Some((_, count)) => *count += 1,
            None => counts.push((remark, 1)),
        }
    }
    counts.retain(|(_, count)| *count > 1 && 2 * *count >= rows.len());
    let counts = sorted(&counts, |one, other| other.1.cmp(&one.1));
    counts.into_iter().map(|(remark, count)| (remark.to_string(), count)).collect()
}

/// Returns the remarks of a row that the others don't share.
fn own_remarks(row: &Row, shared: Memo<Vec<(String, usize)>>) -> Vec<String> {
    let is_own = |remark: &&String| !shared.with(|shared| shared.iter().any(|(other, _)| other == *remark));
    row.remarks.iter().filter(is_own).cloned().collect()
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
    columns: Memo<Vec<PageHeading>>,
    view: Memo<Spec>,
    shared: Memo<Vec<(String, usize)>>,
    more: ViewFnOf,
    below: bool,
    remedy: Option<ViewFnOf>,
) -> impl IntoView {
    let (folder, file) = split(&row.path);
    let name = match row.id.is_empty() {
        true => breakable(&file, &PATH_SEPARATORS),
        false => {
            let id = row.id.clone();
            view! { <a href=move || view.with(|view| run_href_of(view, &id))>{breakable(&file, &PATH_SEPARATORS)}</a> }
                .into_any()
        }
    };
    let cells = {
        let row = row.clone();
        let cell = move |column: PageHeading| {
            let PageHeading { key, title, is_number, is_main, .. } = column;
            let cell = row.cell(key).cloned().unwrap_or_default();
            let is_none = cell.text.is_empty();
            let text = match cell.text.contains('/') {
                _ if is_none => "–".into_any(),
                // A recipe, whose numbers a narrow column would cut.
                true => breakable(&cell.text, &['/']),
                false => cell.text.into_any(),
            };
            view! {
                <td data-label=title class:number=is_number class:none=is_none class:main=is_main>
                    {text}{small(cell.detail)}
                </td>
            }
        };
        move || columns.get().into_iter().map(&cell).collect_view()
    };
    let remarks = {
        let row = row.clone();
        let remark = |remark: String| view! { <small class="remark">{remark}</small> };
        move || own_remarks(&row, shared).into_iter().map(remark).collect_view()
    };
    view! {
        <tr data-status=row.status.id()>
            {(!below).then(|| view! { <td class="pick">{(more.0)(&row)}</td> })}
            <th scope="row" data-label=first>
                {name}
                {(!folder.is_empty()).then(|| view! { <small>{breakable(&folder, &PATH_SEPARATORS)}</small> })}
                {(!below).then_some(remarks)}
                {remedy.map(|remedy| (remedy.0)(&row))}
                {below.then(|| (more.0)(&row))}
            </th>
            <td data-label="Status"><span class="status">{row.status.title()}</span></td>
            {cells}
        </tr>
    }
}

/// Returns the address of a run, with the window, convention and recipe of this page.
pub(crate) fn run_href(address: Address, id: &str) -> String {
    run_href_of(&view_of(address), id)
}

fn run_href_of(view: &Spec, id: &str) -> String {
    format!("/run?{}", query(view, &[("id", id.to_string())]))
}

/// Returns the address of the history of a time line's recipe and cluster.
pub(crate) fn history_href(line: &TimeLine) -> String {
    let or_any = |filter: &Option<String>| filter.clone().unwrap_or_default();
    let filters = [("recipe", or_any(&line.recipe)), ("cluster", or_any(&line.cluster))];
    format!("/history?{}", query(&Spec::default(), &filters))
}

/// Returns the address of a comparison, with the window, convention and recipe of this page.
pub(crate) fn compare_href(address: Address, ids: &[String]) -> String {
    format!("/compare?{}", query(&view_of(address), &[("ids", ids.join(","))]))
}

/// Returns the window, convention, recipe and GPU type of this page.
pub(crate) fn view_of(address: Address) -> Spec {
    let spec = address.spec();
    let mut view = Spec::default();
    for field in [Field::Window, Field::Convention, Field::Recipe, Field::Gpu] {
        view.set(field, spec.raw(field));
    }
    view
}

/// The characters after which lines break a path.
const PATH_SEPARATORS: [char; 4] = ['_', '/', '-', '.'];

/// Returns a text that lines break only after its separators.
fn breakable(text: &str, separators: &[char]) -> AnyView {
    let part = |part: &str| view! { {part.to_string()} <wbr /> };
    let parts = text.split_inclusive(separators).map(part).collect_view();
    view! { <span>{parts}</span> }.into_any()
}

fn small(text: String) -> impl IntoView {
    (!text.is_empty()).then(|| view! { <small>{text}</small> })
}

/// Splits a path into folder and file.
pub(crate) fn split(path: &str) -> (String, String) {
    match path.rsplit_once('/') {
        Some((folder, file)) => (format!("{folder}/"), file.to_string()),
        None => (String::new(), path.to_string()),
    }
}
