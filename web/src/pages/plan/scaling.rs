//! How the chosen recipe's model scales over the published GPU counts.

use super::{Of, Plan};
use crate::components::chart::{Chart, ChartLine, LineChart};
use crate::components::numbers::{Numbers, Table};
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, RecipeId};
use trainplan_shared::field::Field;
use trainplan_shared::scaling::{Point, Quantity, Series, series};
use trainplan_shared::units::{group_digits, significant};

/// The chart over GPU counts, and its table.
#[component]
pub(super) fn Scaling() -> impl IntoView {
    let plan = Plan::of_page();
    let quantity = Memo::new(move |_| {
        plan.spec.with(|spec| spec.parse(Field::Quantity).ok().flatten()).unwrap_or(Quantity::TokensPerS)
    });
    let tokens = Memo::new(move |_| plan.spec.with(|spec| spec.tokens().ok()));
    let measured = Memo::new(move |_| {
        plan.recipe.get().map_or(Vec::new(), |Of(recipe)| related(&recipe.id, tokens.get()))
    });
    let chart = Signal::derive(move || {
        measured.with(|measured| chart(measured, quantity.get(), mark(plan, quantity.get())).into())
    });
    let summary = Signal::derive(move || measured.with(|measured| summary(measured, quantity.get())));
    let nothing = move || measured.with(Vec::is_empty);
    view! {
        <Show when=move || is_of_recipe(plan)>
            <section class="scaling" aria-labelledby="scaling-title">
                <h2 id="scaling-title">"How it scales"</h2>
                <Show when=move || !nothing() fallback=move || view! { <p>{nothing_measured(plan)}</p> }>
                    <QuantityChoice quantity />
                    <Chart chart summary />
                    <SeriesTable measured=measured.into() quantity=quantity.into() />
                </Show>
            </section>
        </Show>
    }
}

/// Whether the plan is of its recipe's model, about which alone the recipe's measurements say something.
fn is_of_recipe(plan: Plan) -> bool {
    plan.recipe.get().is_some_and(|Of(recipe)| {
        plan.scenario
            .with(|scenario| scenario.as_ref().map_or(true, |scenario| scenario.model.id == recipe.id.model))
    })
}

/// The measured series of the recipe's model on its GPU type.
fn related(id: &RecipeId, tokens: Option<f64>) -> Vec<Series> {
    let related =
        |other: &RecipeId| other.model == id.model && other.gpu == id.gpu && other.strong == id.strong;
    series(Catalog::embedded().recipes().iter().filter(|recipe| related(&recipe.id)), tokens)
}

fn nothing_measured(plan: Plan) -> String {
    plan.recipe.get().map_or(String::new(), |Of(recipe)| {
        let counts = Catalog::embedded().choices(&recipe.id, trainplan_shared::catalog::Facet::Gpus);
        let counts: Vec<String> = counts.into_iter().map(|choice| choice.title).collect();
        format!("No measurement is published for these recipes. They exist for {} GPUs.", counts.join(", "))
    })
}

/// The point of the scenario at hand, if it has one.
fn mark(plan: Plan, quantity: Quantity) -> Option<(String, f64, f64)> {
    let outcome = plan.outcome.get()?;
    plan.scenario.with(|scenario| {
        let scenario = scenario.as_ref().ok()?;
        let gpus = f64::from(scenario.layout.gpus());
        let metrics = &outcome.metrics;
        let value = match quantity {
            Quantity::TokensPerS => metrics.tokens_per_s,
            Quantity::TokensPerSPerGpu => metrics.tokens_per_s / gpus,
            Quantity::StepTime => metrics.step_time_s,
            Quantity::Days => metrics.time_to_train_days?,
            // Marked only where it is counted as the lines are.
            Quantity::MfuFull if metrics.convention == Some(trainplan_shared::flops::Convention::Full) => {
                metrics.mfu? * 100.0
            }
            Quantity::MfuRecipe
                if metrics.convention == Some(trainplan_shared::flops::Convention::Recipe) =>
            {
                metrics.mfu? * 100.0
            }
            Quantity::MfuFull | Quantity::MfuRecipe => return None,
        };
        Some(("This plan".to_string(), gpus, value))
    })
}

fn chart(measured: &[Series], quantity: Quantity, mark: Option<(String, f64, f64)>) -> LineChart {
    let lines = measured.iter().enumerate().map(|(index, series)| ChartLine {
        name: short_title(series),
        group: index,
        style: index,
        points: series
            .points
            .iter()
            .map(|point| (point.recipe.id.gpus.into(), point.value(quantity)))
            .collect(),
        is_level: false,
    });
    LineChart::over_gpus(lines.collect(), quantity.axis(), quantity.spans_decades()).with_mark(mark)
}

/// The title without model and GPU, which the page says already.
fn short_title(series: &Series) -> String {
    series.points.first().map_or(series.title.clone(), |point| {
        let id = &point.recipe.id;
        format!("{}, release {}", id.dtype.title(), id.release)
    })
}

/// A chart in a sentence.
pub(crate) fn summary(measured: &[Series], quantity: Quantity) -> String {
    let lines = measured.iter().filter_map(|series| {
        let (first, last) = (series.points.first()?, series.points.last()?);
        let at = |point: &Point| format!("{} at {} GPUs", shown(point, quantity), point.recipe.id.gpus);
        Some(format!("{}: {} to {}", series.title, at(first), at(last)))
    });
    format!("Chart of {} over GPU counts. {}.", quantity.title(), lines.collect::<Vec<_>>().join("; "))
}

/// A point's value as people read it.
pub(crate) fn shown(point: &Point, quantity: Quantity) -> String {
    let value = point.value(quantity);
    match quantity {
        Quantity::TokensPerS | Quantity::TokensPerSPerGpu => group_digits(value),
        Quantity::StepTime => significant(value, 5),
        Quantity::MfuFull | Quantity::MfuRecipe | Quantity::Days => format!("{value:.2}"),
    }
}

/// What the chart shows.
#[component]
pub(crate) fn QuantityChoice(quantity: Memo<Quantity>) -> impl IntoView {
    let address = crate::address::Address::of_page();
    view! {
        <div class="field inline">
            <label for="quantity">"Show"</label>
            <select id="quantity" on:change=move |event| address.set(Field::Quantity, event_target_value(&event))>
                {Quantity::ALL.map(|each| view! { <option value=each.id() selected=move || quantity.get() == each>{each.title()}</option> }).collect_view()}
            </select>
        </div>
    }
}

/// The numbers of a chart: a row for every GPU count, a column for every line.
#[component]
pub(crate) fn SeriesTable(measured: Signal<Vec<Series>>, quantity: Signal<Quantity>) -> impl IntoView {
    let table = Signal::derive(move || measured.with(|measured| table(measured, quantity.get())));
    view! { <Numbers table by_number=true /> }
}

fn table(measured: &[Series], quantity: Quantity) -> Table {
    let points = measured.iter().flat_map(|series| &series.points);
    let mut counts: Vec<u32> = points.map(|point| point.recipe.id.gpus).collect();
    counts.sort_unstable();
    counts.dedup();
    let cell = |series: &Series, gpus: u32| {
        let point = series.points.iter().find(|point| point.recipe.id.gpus == gpus);
        point.map_or("–".to_string(), |point| shown(point, quantity))
    };
    let row = |gpus: u32| {
        let cells = measured.iter().map(|series| cell(series, gpus));
        std::iter::once(gpus.to_string()).chain(cells).collect()
    };
    let titles = measured.iter().map(|series| series.title.clone());
    Table {
        caption: quantity.title().to_string(),
        head: std::iter::once("GPUs".to_string()).chain(titles).collect(),
        rows: counts.into_iter().map(row).collect(),
    }
}
