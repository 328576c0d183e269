//! The table of benchmarks.

use super::Benchmarks;
use super::facets::is_wide;
use crate::address::query;
use crate::pages::plan::state::{MEASURED_KEY, MeasuredStep};
use leptos::prelude::*;
use std::cmp::Ordering;
use trainplan_shared::benchmarks::{Benchmark, PlanObstacle};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::problem::Problem;
use trainplan_shared::tables::{BenchmarkColumn, PageCell, PageHeading};
use trainplan_shared::units::group_digits;

/// The order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sort {
    column: BenchmarkColumn,
    descending: bool,
}

impl Default for Sort {
    fn default() -> Sort {
        // Model FLOPs compare runs of any model, precision and GPU type. By tokens per second, the smallest models would be first.
        Sort::best_first(BenchmarkColumn::Tflops)
    }
}

impl Sort {
    /// Returns the order that puts the best values of a column first, or the newest runs.
    fn best_first(column: BenchmarkColumn) -> Sort {
        let descending = matches!(
            column,
            BenchmarkColumn::TokensPerGpu
                | BenchmarkColumn::Tflops
                | BenchmarkColumn::Mfu
                | BenchmarkColumn::Tokens
                | BenchmarkColumn::Release
        );
        Sort { column, descending }
    }

    /// Recipes that nobody measured come last, and before them proxies: with a few of the model's layers, they are faster than any
    /// run of the model.
    pub(super) fn order(self, a: &Benchmark, b: &Benchmark) -> Ordering {
        let by_value = match (self.column.sort_value(a), self.column.sort_value(b)) {
            (Some(a), Some(b)) => a.order(&b, self.descending),
            _ => Ordering::Equal,
        };
        let last = |row: &Benchmark| (row.tokens_per_s_per_gpu.is_none(), row.is_proxy());
        last(a).cmp(&last(b)).then(by_value)
    }

    /// Returns the order in words.
    fn in_words(self) -> Option<String> {
        let PageHeading { title, is_number, .. } = self.column.page_heading()?;
        let (ascending, descending) = match self.column {
            BenchmarkColumn::Release => ("oldest first", "newest first"),
            _ if is_number => ("lowest first", "highest first"),
            _ => ("from A to Z", "from Z to A"),
        };
        let order = if self.descending { descending } else { ascending };
        Some(format!("Sorted by {title}, {order}."))
    }

    fn id(self) -> String {
        format!("{}{}", if self.descending { "-" } else { "" }, self.column.key())
    }
}

impl std::str::FromStr for Sort {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Sort, Problem> {
        let (descending, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        let sortable = || BenchmarkColumn::ALL.iter().copied().filter(|column| column.is_sortable());
        match sortable().find(|column| column.key() == name) {
            Some(column) => Ok(Sort { column, descending }),
            None => Err(Problem::unknown(Field::Sort, text, sortable().map(BenchmarkColumn::key))),
        }
    }
}

/// The table, a page at a time.
#[component]
pub(super) fn BenchmarkTable() -> impl IntoView {
    let state = Benchmarks::of_page();
    // A row is a card on a narrow screen, ten times as tall.
    let page = if is_wide() { 50 } else { 15 };
    let count = RwSignal::new(page);
    Effect::new(move |before: Option<()>| {
        state.shown.track();
        if before.is_some() {
            count.set(page);
        }
    });
    let all = move || state.shown.with(Vec::len);
    let rows = move || state.shown.with(|shown| shown.iter().take(count.get()).copied().collect::<Vec<_>>());
    let more = move || all().saturating_sub(count.get());
    let exceeds = move || {
        let is_above = |place: &usize| {
            state.with_row(*place, Benchmark::mfu_of_bf16).flatten().is_some_and(|mfu| mfu > 1.0)
        };
        state.shown.with(|shown| shown.iter().any(is_above))
    };
    view! {
        <section aria-label="Table of runs" class="runs">
            <details class="basis">
                <summary>"About the columns and their order"</summary>
                "TFLOPS/GPU counts the model FLOPs of a GPU per second, with full attention. It compares runs of all models and precisions, so the "
                "table starts with the highest. Tokens/s/GPU compares runs of the same model only, because smaller models process more tokens. "
                "MFU divides the same FLOPs by the GPU’s BF16 peak whatever the precision, so that "
                "precisions compare. The peak is that of NVIDIA’s recipes, or else the datasheet’s. “Printed” is the MFU that the recipe’s document states. "
                "Dollars are at the price of a reserved GPU, or of the cheapest form with a known price. "
                "Prediction error is predicted over measured step time, with every run of the same configuration held out; "
                "a dash means that the run was not used to test predictions. Proxies, which have fewer layers than their model, come after other runs, and recipes that nobody measured come last."
            </details>
            <SortChoice />
            {move || state.sort.get().unwrap_or_default().in_words().map(|text| view! { <p class="basis">{text}</p> })}
            <Show when=exceeds>
                <p class="basis">"An MFU above 100 % exceeds the GPU’s BF16 peak, as runs in FP8 and NVFP4 can."</p>
            </Show>
            <div class="scroll" tabindex="0" role="region" aria-label="Runs">
                <table class="matrix cards">
                    <thead>
                        <tr>
                            {BenchmarkColumn::ALL.iter().filter_map(|column| heading(*column)).collect_view()}
                            <th scope="col"><span class="visually-hidden">"Open"</span></th>
                        </tr>
                    </thead>
                    <tbody>
                        <For each=rows key=|place| *place let(place)>
                            {state.with_row(place, |row| benchmark_row(row, place, state))}
                        </For>
                    </tbody>
                </table>
            </div>
            <Show when=move || more() != 0>
                <p class="buttons">
                    <button type="button" class="action" on:click=move |_| count.update(|count| *count += page)>
                        {move || format!("Show {} more", more().min(page))}
                    </button>
                    <small>{move || format!("{} of {} shown", count.get(), group_digits(all() as f64))}</small>
                </p>
            </Show>
        </section>
    }
}

fn heading(column: BenchmarkColumn) -> Option<AnyView> {
    let PageHeading { title, is_number, .. } = column.page_heading()?;
    Some(match column.is_sortable() {
        true => view! { <Sortable column title is_number /> }.into_any(),
        false => view! { <th scope="col" class:number=is_number>{title}</th> }.into_any(),
    })
}

/// The heading of a column: a press sorts by it, the best first; another one reverses the order.
#[component]
fn Sortable(column: BenchmarkColumn, title: &'static str, is_number: bool) -> impl IntoView {
    let state = Benchmarks::of_page();
    let current = move || {
        Some(state.sort.get().unwrap_or_default())
            .filter(|sort| sort.column == column)
            .map(|sort| sort.descending)
    };
    let order = move || match current() {
        None => "none",
        Some(false) => "ascending",
        Some(true) => "descending",
    };
    let press = move |_| {
        let sort = match current() {
            None => Sort::best_first(column),
            Some(descending) => Sort { column, descending: !descending },
        };
        state.address.set(Field::Sort, sort.id());
    };
    let arrow = move || match current() {
        None => "",
        Some(false) => " ↑",
        Some(true) => " ↓",
    };
    view! {
        <th scope="col" class:number=is_number aria-sort=order>
            <button type="button" on:click=press>{title}<span aria-hidden="true">{arrow}</span></button>
        </th>
    }
}

/// The choice of the column to sort by, on screens that show cards without headings.
#[component]
fn SortChoice() -> impl IntoView {
    let state = Benchmarks::of_page();
    let option = |column: &BenchmarkColumn| {
        let column = *column;
        let title = column.page_heading().filter(|_| column.is_sortable())?.title;
        let is_chosen = move || state.sort.get().unwrap_or_default().column == column;
        Some(view! { <option value=Sort::best_first(column).id() prop:selected=is_chosen>{title}</option> })
    };
    view! {
        <div class="field inline sort-choice">
            <label for="sort">"Sort by"</label>
            <select id="sort" on:change=move |event| state.address.set(Field::Sort, event_target_value(&event))>
                {BenchmarkColumn::ALL.iter().filter_map(option).collect_view()}
            </select>
        </div>
    }
}

/// A run or a recipe.
fn benchmark_row(row: &Benchmark, place: usize, state: Benchmarks) -> AnyView {
    let cell = |column: BenchmarkColumn| {
        let PageHeading { key, title, is_number, is_main, .. } = column.page_heading()?;
        // On a phone, the other cells are folded.
        let is_main = move || is_main || state.sort.get().unwrap_or_default().column == column;
        let PageCell { text, detail, .. } = column.page_cell(row)?;
        let text = if text.is_empty() { "–".to_string() } else { text };
        let detail = (!detail.is_empty()).then(|| view! { <small class="detail">{detail}</small> });
        Some(match column {
            // The first column names its row.
            BenchmarkColumn::Model => {
                view! { <th scope="row" data-label=title>{text}{detail}</th> }.into_any()
            }
            BenchmarkColumn::Release => {
                let url = row.source_url().unwrap_or_default().to_string();
                let name = format!("Source: {text}");
                let whole = text.clone();
                view! {
                    <td data-label=title class="origin-cell" class:main=is_main title=whole><a href=url rel="external noreferrer" aria-label=name>{text}</a>{detail}</td>
                }
                .into_any()
            }
            BenchmarkColumn::Error => {
                let hint = not_judged(row);
                view! { <td data-label=title class="number" class:main=is_main title=hint>{text}</td> }.into_any()
            }
            _ => view! {
                <td data-label=title class:number=is_number class:layout={key == "layout"} class:main=is_main>{text}{detail}</td>
            }
            .into_any(),
        })
    };
    let is_picked = move || state.picked.get() == Some(place);
    let is_unfolded = RwSignal::new(false);
    let word = move || if is_unfolded.get() { "Less" } else { "More" };
    // Other rows have such a button too.
    let title = row.title();
    view! {
        <tr class:picked-row=is_picked class:unfolded=move || is_unfolded.get()>
            {BenchmarkColumn::ALL.iter().filter_map(|column| cell(*column)).collect_view()}
            <td class="open">
                <button
                    type="button"
                    class="action unfold"
                    aria-expanded=move || is_unfolded.get().to_string()
                    aria-label=move || format!("{}: {title}", word())
                    on:click=move |_| is_unfolded.update(|unfolded| *unfolded = !*unfolded)
                >
                    {word}
                </button>
                {plan_link(row)}
            </td>
        </tr>
    }
    .into_any()
}

/// Returns why no prediction was judged on a run; none if one was.
fn not_judged(row: &Benchmark) -> Option<String> {
    match (row.held_out_error, row.step_time_s, &*row.note) {
        (Some(_), ..) => None,
        (None, None, _) => Some("Nobody measured this recipe.".to_string()),
        (None, Some(_), "") => Some("The same configuration was measured with another release.".to_string()),
        (None, Some(_), note) => Some(format!("Left out of the fit: {note}.")),
    }
}

/// Returns the link that opens a run in the planner, or why there is none.
pub(super) fn plan_link(row: &Benchmark) -> AnyView {
    match row.spec() {
        Some(spec) => {
            let title =
                row.recipe.map_or_else(|| row.title(), |recipe| Catalog::embedded().title(&recipe.id));
            let name = format!("Plan {title}");
            let hint = match row.recipe.map(|recipe| &recipe.id) {
                Some(id) if id.release.id() != row.release => {
                    Some(format!("Opens {id}, the recipe of this run."))
                }
                None if row.is_approximate => {
                    Some("Opens without settings that Plan has no field for.".to_string())
                }
                _ => None,
            };
            let measured = match (row.step_time_s, row.recipe) {
                // Plan knows what was published of a recipe.
                (Some(step_time_s), None) => {
                    MeasuredStep { step_time_s, source: row.source_title() }.text(&spec)
                }
                _ => String::new(),
            };
            let link = format!("/?{}", query(&spec, &[(MEASURED_KEY, measured)]));
            view! { <a href=link rel="external" class="action" aria-label=name title=hint>"Plan"</a> }
                .into_any()
        }
        None => {
            let reason = row.obstacle.map_or("", PlanObstacle::title);
            view! {
                <small title=reason><span aria-hidden="true">"no plan"</span><span class="visually-hidden">{reason}</span></small>
            }
            .into_any()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::benchmarks::parse;

    #[test]
    fn the_best_comes_first_then_proxies_then_recipes_without_a_measurement() {
        assert_eq!(Sort::best_first(BenchmarkColumn::TokensPerGpu).id(), "-tokens-per-gpu");
        assert_eq!(Sort::best_first(BenchmarkColumn::StepTime).id(), "step-time");
        assert_eq!(Sort::default().in_words().as_deref(), Some("Sorted by TFLOPS/GPU, highest first."));
        let rows = parse(include_str!("../../../../shared/data/benchmarks.csv")).expect("the file");
        let is_measured = |row: &&Benchmark| row.tokens_per_s_per_gpu.is_some();
        let proxy = rows.iter().filter(is_measured).find(|row| row.is_proxy()).expect("a measured proxy");
        let best = Sort::default();
        let others: Vec<_> = rows.iter().filter(|row| !row.is_proxy()).collect();
        assert!(others.iter().any(&is_measured) && !others.iter().all(is_measured));
        for row in others {
            let expected = if is_measured(&row) { Ordering::Less } else { Ordering::Greater };
            assert_eq!(best.order(row, proxy), expected, "{}", row.id);
        }
    }

    #[test]
    fn an_order_reads_back_from_a_link() {
        for text in ["-mfu", "step-time", "-error"] {
            assert_eq!(text.parse::<Sort>().map(Sort::id), Ok(text.to_string()));
        }
        assert!("layout".parse::<Sort>().is_err());
    }
}
