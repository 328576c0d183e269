//! The Recipes page: what is published, to filter, sort, compare and open in the planner.

use crate::address::{Address, href, name_page};
use crate::components::chart::{Chart, ChartLine, LineChart};
use crate::components::field::{AddressProblems, ChoiceField, Problems, SwitchField};
use crate::pages::details::scaling::{QuantityChoice, SeriesTable, summary};
use leptos::prelude::*;
use std::cmp::Ordering;
use trainplan_shared::catalog::{Catalog, Filter, Recipe, Release};
use trainplan_shared::field::Field;
use trainplan_shared::precision::Dtype;
use trainplan_shared::problem::Problem;
use trainplan_shared::scaling::{Quantity, ScalingSeries, series};
use trainplan_shared::spec::Spec;
use trainplan_shared::tables::{PageCell, PageHeading, RecipeColumn};

/// The Recipes page.
#[component]
pub(crate) fn RecipesPage() -> impl IntoView {
    let address = Address::provide_single("/recipes", &[]);
    name_page(|| "Recipes".into());
    let filter = Memo::new(move |_| Filter::from_spec(&address.spec()));
    let sort = Memo::new(move |_| address.spec().parse::<Sort>(Field::Sort));
    let problems = Memo::new(move |_| {
        let mut problems = filter.with(|filter| filter.as_ref().err().cloned().unwrap_or_default());
        problems.extend(sort.get().err());
        problems
    });
    provide_context(Problems(problems));
    let rows = Memo::new(move |_| {
        let filter = filter.with(|filter| filter.clone().unwrap_or_default());
        let mut rows: Vec<ListedRecipe> = Catalog::embedded()
            .recipes()
            .iter()
            .filter(|recipe| filter.keeps(recipe))
            .map(ListedRecipe)
            .collect();
        let sort = sort.get().ok().flatten();
        rows.sort_by(|a, b| match sort {
            Some(sort) => sort.order(*a, *b),
            // In the order of the documents, measured recipes first.
            None => b.is_measured().cmp(&a.is_measured()),
        });
        rows
    });
    view! {
        <div class="recipes">
            <h1>"Published recipes"</h1>
            <p>
                "Layouts, batches and measurements of NVIDIA's pre-training recipes over their releases. "
                "MFU is as published. FLOP counting differs between releases, so compare within a release, or use “MFU (same counting)” in the chart."
            </p>
            <AddressProblems address />
            <Filters />
            <p aria-live="polite"><strong>{move || rows.with(Vec::len)}</strong> " of 123 recipes"</p>
            <Matrix rows sort />
            <Measurements rows />
        </div>
    }
}

/// The filters.
#[component]
fn Filters() -> impl IntoView {
    let catalog = Catalog::embedded();
    let values = |value: fn(&'static Recipe) -> (String, String)| {
        let mut values: Vec<(String, String)> = Vec::new();
        for recipe in catalog.recipes() {
            let value = value(recipe);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.sort_by(|a, b| a.1.cmp(&b.1));
        values
    };
    let models = values(|recipe| (recipe.id.model.clone(), text(RecipeColumn::Model, recipe)));
    let gpus = values(|recipe| (recipe.id.gpu.clone(), text(RecipeColumn::Gpu, recipe)));
    let dtypes = values(|recipe| (recipe.id.dtype.to_string(), recipe.id.dtype.title().to_string()));
    let scaling = vec![("weak".to_string(), "weak".to_string()), ("strong".into(), "strong".into())];
    let releases: Vec<_> =
        Release::ALL.into_iter().map(|release| (release.to_string(), release.to_string())).collect();
    view! {
        <div class="controls" role="group" aria-label="Filter">
            <ChoiceField field=Field::Model options=models default="all" />
            <ChoiceField field=Field::Gpu options=gpus default="all" />
            <ChoiceField field=Field::Dtype options=dtypes default="all" />
            <ChoiceField field=Field::Scaling options=scaling default="all" />
            <ChoiceField field=Field::Release options=releases default="all" />
            <SwitchField field=Field::Measured />
        </div>
    }
}

/// Returns what a recipe shows in a column.
fn text(column: RecipeColumn, recipe: &'static Recipe) -> String {
    column.page_cell(&recipe).map(|cell| cell.text).unwrap_or_default()
}

/// A recipe of the table. The catalog has each recipe once.
#[derive(Clone, Copy)]
struct ListedRecipe(&'static Recipe);

impl PartialEq for ListedRecipe {
    fn eq(&self, other: &ListedRecipe) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl ListedRecipe {
    fn is_measured(self) -> bool {
        Catalog::embedded().baseline(&self.0.id).is_some()
    }
}

/// The order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sort {
    column: RecipeColumn,
    descending: bool,
}

impl Sort {
    fn order(self, a: ListedRecipe, b: ListedRecipe) -> Ordering {
        match (self.column.sort_value(&a.0), self.column.sort_value(&b.0)) {
            (Some(a), Some(b)) => a.order(&b, self.descending),
            _ => Ordering::Equal,
        }
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
        let sortable = || RecipeColumn::ALL.iter().copied().filter(|column| column.is_sortable());
        match sortable().find(|column| column.key() == name) {
            Some(column) => Ok(Sort { column, descending }),
            None => Err(Problem::unknown(Field::Sort, text, sortable().map(RecipeColumn::key))),
        }
    }
}

/// The matrix of recipes with their measurements.
#[component]
fn Matrix(rows: Memo<Vec<ListedRecipe>>, sort: Memo<Result<Option<Sort>, Problem>>) -> impl IntoView {
    view! {
        <div class="scroll" tabindex="0" role="region" aria-label="Recipes">
            <table class="matrix cards">
                <thead>
                    <tr>
                        {RecipeColumn::ALL.iter().map(|column| heading(*column, sort)).collect_view()}
                        <th scope="col"><span class="visually-hidden">"Open"</span></th>
                    </tr>
                </thead>
                <tbody>
                    <For each=move || rows.get() key=|row| row.0.id.to_string() let(row)><RecipeRow row /></For>
                </tbody>
            </table>
        </div>
        <Show when=move || rows.with(Vec::is_empty)>
            <p class="notice">"No recipes match these filters. " <a href="/recipes">"Show all recipes"</a></p>
        </Show>
    }
}

fn heading(column: RecipeColumn, sort: Memo<Result<Option<Sort>, Problem>>) -> Option<AnyView> {
    let PageHeading { title, is_number, .. } = column.page_heading()?;
    Some(match column.is_sortable() {
        true => view! { <Sortable column title is_number sort /> }.into_any(),
        false => view! { <th scope="col" class:number=is_number>{title}</th> }.into_any(),
    })
}

/// The heading of a column: a press sorts by it, another one reverses the order.
#[component]
fn Sortable(
    column: RecipeColumn,
    title: &'static str,
    is_number: bool,
    sort: Memo<Result<Option<Sort>, Problem>>,
) -> impl IntoView {
    let address = Address::of_page();
    let current =
        move || sort.get().ok().flatten().filter(|sort| sort.column == column).map(|sort| sort.descending);
    let order = move || match current() {
        None => "none",
        Some(false) => "ascending",
        Some(true) => "descending",
    };
    let press = move |_| {
        let descending = current() == Some(false);
        address.set(Field::Sort, Sort { column, descending }.id());
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

/// One recipe.
#[component]
fn RecipeRow(row: ListedRecipe) -> impl IntoView {
    let ListedRecipe(recipe) = row;
    let open = href("/", &Spec::default().with(Field::Recipe, recipe.id.to_string()));
    let name = format!("Plan {}", Catalog::embedded().title(&recipe.id));
    let cell = |column: RecipeColumn| {
        let PageHeading { key, title, is_number, .. } = column.page_heading()?;
        let PageCell { text, detail, .. } = column.page_cell(&recipe)?;
        let text = if text.is_empty() { "–".to_string() } else { text };
        let detail =
            (!detail.is_empty()).then(|| view! { <small class="tag">{format!(" {detail}")}</small> });
        Some(match column {
            // The first column names its row.
            RecipeColumn::Model => view! { <th scope="row" data-label=title>{text}{detail}</th> }.into_any(),
            _ => view! {
                <td data-label=title class:number=is_number class:layout={key == "layout"}>{text}{detail}</td>
            }
            .into_any(),
        })
    };
    view! {
        <tr>
            {RecipeColumn::ALL.iter().filter_map(|column| cell(*column)).collect_view()}
            <td class="open"><a href=open rel="external" class="action" aria-label=name>"Plan"</a></td>
        </tr>
    }
}

/// The chart of the listed recipes' measurements by GPU count.
#[component]
fn Measurements(rows: Memo<Vec<ListedRecipe>>) -> impl IntoView {
    let address = Address::of_page();
    let quantity =
        Memo::new(move |_| address.spec().parse(Field::Quantity).ok().flatten().unwrap_or(Quantity::MfuFull));
    // In the catalog's order, so that sorting the table does not change the chart.
    let measured = Memo::new(move |_| {
        let rows = rows.get();
        let in_sight =
            Catalog::embedded().recipes().iter().filter(|recipe| rows.contains(&ListedRecipe(recipe)));
        series(in_sight, None)
    });
    let chart = Signal::derive(move || measured.with(|measured| chart(measured, quantity.get()).into()));
    let summary = Signal::derive(move || measured.with(|measured| summary(measured, quantity.get())));
    view! {
        <section class="scaling" aria-labelledby="measured-title">
            <h2 id="measured-title">"Measurements by GPU count"</h2>
            <Show
                when=move || measured.with(|measured| !measured.is_empty())
                fallback=|| view! { <p>"These recipes have no published measurement of the whole model."</p> }
            >
                <QuantityChoice quantity />
                <Chart chart summary />
                <SeriesTable measured=measured.into() quantity=quantity.into() />
            </Show>
        </section>
    }
}

/// A colour for every model, a style for every precision and release.
fn chart(measured: &[ScalingSeries], quantity: Quantity) -> LineChart {
    let mut models: Vec<&str> = Vec::new();
    let lines = measured.iter().map(|series| {
        let group = models.iter().position(|model| *model == series.model).unwrap_or_else(|| {
            models.push(&series.model);
            models.len() - 1
        });
        let id = series.points.first().map(|point| &point.recipe.id);
        let style = id.map_or(0, |id| {
            usize::from(id.dtype != Dtype::Bf16) + if id.release == Release::ALL[0] { 2 } else { 0 }
        });
        ChartLine {
            name: series.title.clone(),
            group,
            style,
            points: series
                .points
                .iter()
                .map(|point| (point.recipe.id.gpus.into(), point.value(quantity)))
                .collect(),
            is_level: false,
        }
    });
    LineChart::over_gpus(lines.collect(), quantity.axis(), quantity.spans_decades())
}
