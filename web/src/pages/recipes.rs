//! The Recipes page: what is published, to filter, sort, compare and open in the planner.

use crate::address::{Address, href, name_page};
use crate::components::chart::{Chart, ChartLine, LineChart};
use crate::components::field::{AddressProblems, ChoiceField, Problems, SwitchField};
use crate::pages::plan::scaling::{QuantityChoice, SeriesTable, summary};
use leptos::prelude::*;
use leptos_router::components::A;
use std::cmp::Ordering;
use trainplan_shared::catalog::{Baseline, Catalog, Filter, Recipe, Release};
use trainplan_shared::field::Field;
use trainplan_shared::precision::Dtype;
use trainplan_shared::problem::Problem;
use trainplan_shared::scaling::{Quantity, Series, series};
use trainplan_shared::spec::Spec;
use trainplan_shared::units::group_digits;

/// The Recipes page.
#[component]
pub(crate) fn RecipesPage() -> impl IntoView {
    let address = Address::provide("/recipes");
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
        let mut rows: Vec<Row> =
            Catalog::embedded().recipes().iter().filter(|recipe| filter.keeps(recipe)).map(Row).collect();
        let sort = sort.get().ok().flatten();
        rows.sort_by(|a, b| match sort {
            Some(sort) => sort.order(*a, *b),
            // As the documents list them, what was measured first.
            None => b.is_measured().cmp(&a.is_measured()),
        });
        rows
    });
    view! {
        <div class="recipes">
            <h1>"Published recipes"</h1>
            <p>
                "Layouts, batches and measurements of NVIDIA's pre-training recipes over their releases. "
                "MFU stands as each document prints it; documents count FLOPs differently, so compare it within one release only, or let the chart count alike."
            </p>
            <AddressProblems address />
            <Filters />
            <p aria-live="polite"><strong>{move || rows.with(Vec::len)}</strong> " of 123 recipes"</p>
            <Matrix rows sort />
            <Measurements rows />
        </div>
    }
}

/// What to show.
#[component]
fn Filters() -> impl IntoView {
    let catalog = Catalog::embedded();
    let values = |value: fn(&Recipe) -> (String, String)| {
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
    let models = values(|recipe| (recipe.id.model.clone(), model_title(recipe)));
    let gpus = values(|recipe| (recipe.id.gpu.clone(), gpu_name(recipe)));
    let dtypes = values(|recipe| (recipe.id.dtype.to_string(), recipe.id.dtype.title()));
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

/// A recipe of the table; recipes stand in the catalog once.
#[derive(Clone, Copy)]
struct Row(&'static Recipe);

impl PartialEq for Row {
    fn eq(&self, other: &Row) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Row {
    fn is_measured(self) -> bool {
        Catalog::embedded().baseline(&self.0.id).is_some()
    }

    fn number(self, column: Column) -> Option<f64> {
        let Row(recipe) = self;
        let baseline = Catalog::embedded().baseline(&recipe.id);
        match column {
            Column::Gpus => Some(recipe.id.gpus.into()),
            Column::Gbs => Some(recipe.gbs.into()),
            Column::StepTime => baseline.map(|baseline| baseline.step_time_s),
            Column::Tokens => baseline.and_then(Baseline::printed_tokens),
            Column::Mfu => baseline.and_then(Baseline::printed_mfu),
            Column::Days => baseline.and_then(Baseline::printed_days),
            Column::Model | Column::Gpu | Column::Dtype | Column::Release => None,
        }
    }

    fn text(self, column: Column) -> String {
        let Row(recipe) = self;
        match column {
            Column::Model => model_title(recipe),
            Column::Gpu => gpu_name(recipe),
            Column::Dtype => recipe.id.dtype.title(),
            Column::Release => recipe.id.release.to_string(),
            _ => String::new(),
        }
    }
}

fn model_title(recipe: &Recipe) -> String {
    Catalog::embedded().model(&recipe.id.model).map_or(recipe.id.model.clone(), |model| model.title.clone())
}

fn gpu_name(recipe: &Recipe) -> String {
    Catalog::embedded().gpu(&recipe.id.gpu).map_or(recipe.id.gpu.clone(), |gpu| gpu.name.clone())
}

/// A column that the table can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Model,
    Gpu,
    Gpus,
    Dtype,
    Gbs,
    StepTime,
    Tokens,
    Mfu,
    Days,
    Release,
}

impl Column {
    const ALL: [(Column, &str); 10] = [
        (Column::Model, "model"),
        (Column::Gpu, "gpu"),
        (Column::Gpus, "gpus"),
        (Column::Dtype, "dtype"),
        (Column::Gbs, "gbs"),
        (Column::StepTime, "step-time"),
        (Column::Tokens, "tokens"),
        (Column::Mfu, "mfu"),
        (Column::Days, "days"),
        (Column::Release, "release"),
    ];

    fn id(self) -> &'static str {
        Column::ALL.iter().find(|(column, _)| *column == self).map_or("", |(_, id)| id)
    }
}

/// The order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sort {
    column: Column,
    descending: bool,
}

impl Sort {
    fn order(self, a: Row, b: Row) -> Ordering {
        let numbers = (a.number(self.column), b.number(self.column));
        let order = match numbers {
            (Some(a), Some(b)) => a.total_cmp(&b),
            // What was not measured comes last either way.
            (Some(_), None) => return Ordering::Less,
            (None, Some(_)) => return Ordering::Greater,
            (None, None) => a.text(self.column).cmp(&b.text(self.column)),
        };
        if self.descending { order.reverse() } else { order }
    }

    fn id(self) -> String {
        format!("{}{}", if self.descending { "-" } else { "" }, self.column.id())
    }
}

impl std::str::FromStr for Sort {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Sort, Problem> {
        let (descending, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        let known = Column::ALL.iter().find(|(_, id)| *id == name);
        let column =
            known.ok_or_else(|| Problem::unknown(Field::Sort, text, Column::ALL.map(|(_, id)| id)))?.0;
        Ok(Sort { column, descending })
    }
}

/// The matrix of recipes with their measurements.
#[component]
fn Matrix(rows: Memo<Vec<Row>>, sort: Memo<Result<Option<Sort>, Problem>>) -> impl IntoView {
    view! {
        <div class="scroll" tabindex="0" role="region" aria-label="Recipes">
            <table class="matrix cards">
                <thead>
                    <tr>
                        <Sortable column=Column::Model title="Model" sort />
                        <Sortable column=Column::Gpu title="GPU" sort />
                        <Sortable column=Column::Gpus title="GPUs" sort number=true />
                        <Sortable column=Column::Dtype title="Precision" sort />
                        <th scope="col">"Layout"</th>
                        <Sortable column=Column::Gbs title="GBS" sort number=true />
                        <th scope="col" class="number">"MBS · GA"</th>
                        <Sortable column=Column::StepTime title="Step, s" sort number=true />
                        <Sortable column=Column::Tokens title="Tokens/s" sort number=true />
                        <Sortable column=Column::Mfu title="MFU, %" sort number=true />
                        <Sortable column=Column::Days title="Days for 1T" sort number=true />
                        <Sortable column=Column::Release title="Release" sort />
                        <th scope="col"><span class="visually-hidden">"Open"</span></th>
                    </tr>
                </thead>
                <tbody>
                    <For each=move || rows.get() key=|row| row.0.id.to_string() let(row)><RecipeRow row /></For>
                </tbody>
            </table>
        </div>
        <Show when=move || rows.with(Vec::is_empty)>
            <p class="notice">"No recipe is all of this. " <A href="/recipes">"Show all recipes"</A></p>
        </Show>
    }
}

/// The head of a column; a press sorts by it, another turns the order round.
#[component]
fn Sortable(
    column: Column,
    title: &'static str,
    sort: Memo<Result<Option<Sort>, Problem>>,
    #[prop(optional)] number: bool,
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
        <th scope="col" class:number=number aria-sort=order>
            <button type="button" on:click=press>{title}<span aria-hidden="true">{arrow}</span></button>
        </th>
    }
}

/// One recipe.
#[component]
fn RecipeRow(row: Row) -> impl IntoView {
    let Row(recipe) = row;
    let catalog = Catalog::embedded();
    let degrees = &recipe.degrees;
    let baseline = catalog.baseline(&recipe.id);
    let printed = move |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or("–".into());
    let mut layout =
        format!("TP {} · PP {} · CP {} · DP {}", degrees.tp, degrees.pp, degrees.cp, recipe.printed_dp);
    if degrees.vp > 1 {
        layout += &format!(" · VP {}", degrees.vp);
    }
    let proxy = catalog.is_proxy(recipe).then(|| format!(" proxy, {} layers", recipe.layers));
    let strong = recipe.id.strong.then_some(" strong scaling");
    let open = href("/", &Spec::default().with(Field::Recipe, recipe.id.to_string()));
    let name = format!("Plan {}", catalog.title(&recipe.id));
    view! {
        <tr>
            <th scope="row" data-label="Model">{model_title(recipe)}{proxy.map(|text| view! { <small class="tag">{text}</small> })}</th>
            <td data-label="GPU">{gpu_name(recipe)}</td>
            <td data-label="GPUs" class="number">{recipe.id.gpus}</td>
            <td data-label="Precision">{recipe.id.dtype.title()}{strong.map(|text| view! { <small class="tag">{text}</small> })}</td>
            <td data-label="Layout" class="layout">{layout}</td>
            <td data-label="GBS" class="number">{recipe.gbs}</td>
            <td data-label="MBS · GA" class="number">{format!("{} · {}", recipe.mbs, recipe.printed_ga)}</td>
            <td data-label="Step, s" class="number">{printed(baseline.map(|baseline| baseline.step_time_s.to_string()))}</td>
            <td data-label="Tokens/s" class="number">{printed(baseline.and_then(Baseline::printed_tokens).map(group_digits))}</td>
            <td data-label="MFU, %" class="number">{printed(baseline.map(|baseline| baseline.printed_mfu_pct.clone()))}</td>
            <td data-label="Days for 1T" class="number">{printed(baseline.map(|baseline| baseline.printed_days_1t.clone()))}</td>
            <td data-label="Release">{recipe.id.release.to_string()}</td>
            <td class="open"><A href=open attr:class="action" attr:aria-label=name>"Plan"</A></td>
        </tr>
    }
}

/// The measurements of the recipes in sight, over GPU counts.
#[component]
fn Measurements(rows: Memo<Vec<Row>>) -> impl IntoView {
    let address = Address::of_page();
    let quantity =
        Memo::new(move |_| address.spec().parse(Field::Quantity).ok().flatten().unwrap_or(Quantity::MfuFull));
    // In the matrix's own order, so that sorting the table leaves the chart alone.
    let measured = Memo::new(move |_| {
        let rows = rows.get();
        let in_sight = Catalog::embedded().recipes().iter().filter(|recipe| rows.contains(&Row(recipe)));
        series(in_sight, None)
    });
    let chart = Signal::derive(move || measured.with(|measured| chart(measured, quantity.get()).into()));
    let summary = Signal::derive(move || measured.with(|measured| summary(measured, quantity.get())));
    view! {
        <section class="scaling" aria-labelledby="measured-title">
            <h2 id="measured-title">"What was measured, over GPU counts"</h2>
            <Show
                when=move || measured.with(|measured| !measured.is_empty())
                fallback=|| view! { <p>"None of these recipes has a published measurement of its whole model."</p> }
            >
                <QuantityChoice quantity />
                <Chart chart summary />
                <SeriesTable measured=measured.into() quantity=quantity.into() />
            </Show>
        </section>
    }
}

/// A colour for every model, a style for every precision and release.
fn chart(measured: &[Series], quantity: Quantity) -> LineChart {
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
