//! The published measurements of the recipe's model over GPU counts.

use super::{CatalogEntry, Plan};
use crate::address::Address;
use crate::components::chart::{Chart, ChartLine, LineChart};
use crate::components::numbers::{Numbers, Table};
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Facet, RecipeId};
use trainplan_shared::convention::Convention;
use trainplan_shared::field::Field;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::scaling::{Quantity, ScalingSeries, SeriesPoint, series};
use trainplan_shared::units::{group_digits, readable_days, significant};

/// The chart over GPU counts and its table.
#[component]
pub(super) fn Scaling() -> impl IntoView {
    let plan = Plan::of_page();
    let quantity = Memo::new(move |_| {
        plan.spec.with(|spec| spec.parse(Field::Quantity).ok().flatten()).unwrap_or(Quantity::TokensPerS)
    });
    let tokens = Memo::new(move |_| plan.spec.with(|spec| spec.tokens().ok()));
    let measured = Memo::new(move |_| {
        plan.recipe.get().map_or(Vec::new(), |CatalogEntry(recipe)| related(&recipe.id, tokens.get()))
    });
    let chart = Signal::derive(move || {
        measured.with(|measured| chart(measured, quantity.get(), mark(plan, quantity.get())).into())
    });
    let summary = Signal::derive(move || measured.with(|measured| summary(measured, quantity.get())));
    let nothing = move || measured.with(Vec::is_empty);
    view! {
        <Show
            when=move || is_of_recipe(plan)
            fallback=|| view! { <p>"No recipe is chosen. Start from a recipe under All settings to see how its model scales."</p> }
        >
            <section class="scaling" aria-label="Scaling">
                <Show when=move || !nothing() fallback=move || view! { <p>{nothing_measured(plan)}</p> }>
                    <QuantityChoice quantity />
                    <Chart chart summary />
                    <SeriesTable measured=measured.into() quantity=quantity.into() />
                </Show>
            </section>
        </Show>
    }
}

/// Whether the plan trains the recipe's model: its measurements say nothing about another one.
fn is_of_recipe(plan: Plan) -> bool {
    plan.recipe.get().is_some_and(|CatalogEntry(recipe)| {
        plan.scenario
            .with(|scenario| scenario.as_ref().map_or(true, |scenario| scenario.model.id == recipe.id.model))
    })
}

/// Returns the measured series of the recipe's model on its GPU type.
fn related(id: &RecipeId, tokens: Option<f64>) -> Vec<ScalingSeries> {
    let related =
        |other: &RecipeId| other.model == id.model && other.gpu == id.gpu && other.strong == id.strong;
    series(Catalog::embedded().recipes().iter().filter(|recipe| related(&recipe.id)), tokens)
}

fn nothing_measured(plan: Plan) -> String {
    plan.recipe.get().map_or(String::new(), |CatalogEntry(recipe)| {
        let counts = Catalog::embedded().choices(&recipe.id, Facet::Gpus);
        let counts: Vec<String> = counts.into_iter().map(|choice| choice.title).collect();
        format!("No measurements are published for these recipes. They use {} GPUs.", counts.join(", "))
    })
}

/// Returns the name, GPU count and value of the plan's own point, if it has a value to compare with the
/// lines.
fn mark(plan: Plan, quantity: Quantity) -> Option<(String, f64, f64)> {
    let metrics = plan.step.get()?.metrics;
    let gpus = plan.scenario.with(|scenario| Some(f64::from(scenario.as_ref().ok()?.layout.gpus())))?;
    Some(("This plan".to_string(), gpus, marked(&metrics, gpus, quantity)?))
}

/// Returns the value of a quantity; an MFU only if it is counted by the convention of the lines.
fn marked(metrics: &Metrics, gpus: f64, quantity: Quantity) -> Option<f64> {
    let mfu = |convention| metrics.mfu.filter(|_| metrics.convention == Some(convention));
    match quantity {
        Quantity::TokensPerS => Some(metrics.tokens_per_s),
        Quantity::TokensPerSPerGpu => Some(metrics.tokens_per_s / gpus),
        Quantity::StepTime => Some(metrics.step_time_s),
        Quantity::Days => metrics.time_to_train_days,
        Quantity::MfuFull => mfu(Convention::Full).map(|mfu| mfu * 100.0),
        Quantity::MfuRecipe => mfu(Convention::Recipe).map(|mfu| mfu * 100.0),
    }
}

fn chart(measured: &[ScalingSeries], quantity: Quantity, mark: Option<(String, f64, f64)>) -> LineChart {
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

/// Returns the title without model and GPU, which the page's heading names.
fn short_title(series: &ScalingSeries) -> String {
    series.points.first().map_or(series.title.clone(), |point| {
        let id = &point.recipe.id;
        format!("{}, release {}", id.dtype.title(), id.release)
    })
}

/// Returns a description of the chart for screen readers.
pub(crate) fn summary(measured: &[ScalingSeries], quantity: Quantity) -> String {
    let lines = measured.iter().filter_map(|series| {
        let (first, last) = (series.points.first()?, series.points.last()?);
        let at = |point: &SeriesPoint| format!("{} at {} GPUs", shown(point, quantity), point.recipe.id.gpus);
        Some(format!("{}: {} to {}", series.title, at(first), at(last)))
    });
    format!("Chart of {} by GPU count. {}.", quantity.title(), lines.collect::<Vec<_>>().join("; "))
}

/// Returns a point's value: days rounded, everything else with the digits of the document.
pub(crate) fn shown(point: &SeriesPoint, quantity: Quantity) -> String {
    let value = point.value(quantity);
    match quantity {
        Quantity::TokensPerS | Quantity::TokensPerSPerGpu => group_digits(value),
        Quantity::StepTime => significant(value, 5),
        Quantity::MfuFull | Quantity::MfuRecipe => format!("{value:.2}"),
        Quantity::Days => readable_days(value),
    }
}

/// The choice of the quantity that the chart shows.
#[component]
pub(crate) fn QuantityChoice(quantity: Memo<Quantity>) -> impl IntoView {
    let address = Address::of_page();
    let choose = move |event| address.set(Field::Quantity, event_target_value(&event));
    view! {
        <div class="field inline">
            <label for="quantity">"Show"</label>
            <select id="quantity" on:change=choose>
                {Quantity::ALL.map(|each| view! {
                    <option value=each.id() selected=move || quantity.get() == each>{each.title()}</option>
                }).collect_view()}
            </select>
        </div>
    }
}

/// The chart's data: a row for each GPU count, a column for each line.
#[component]
pub(crate) fn SeriesTable(measured: Signal<Vec<ScalingSeries>>, quantity: Signal<Quantity>) -> impl IntoView {
    let table = Signal::derive(move || measured.with(|measured| table(measured, quantity.get())));
    view! { <Numbers table by_number=true /> }
}

fn table(measured: &[ScalingSeries], quantity: Quantity) -> Table {
    let points = measured.iter().flat_map(|series| &series.points);
    let mut counts: Vec<u32> = points.map(|point| point.recipe.id.gpus).collect();
    counts.sort_unstable();
    counts.dedup();
    let cell = |series: &ScalingSeries, gpus: u32| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::link;

    fn published() -> (RecipeId, Metrics) {
        let spec = link::read("r=llama3.1-405b/h100/fp8/512@25.04").spec;
        let scenario = spec.scenario().expect("a recipe");
        let step_time = scenario.baseline().expect("a measurement").step_time_s;
        let metrics = Metrics::new(&scenario, step_time, 1e12);
        (scenario.recipe.expect("a recipe").id.clone(), metrics)
    }

    #[test]
    fn a_chart_and_its_table_show_the_measurements_of_the_same_model_and_gpu() {
        let measured = related(&published().0, Some(1e12));
        let table = table(&measured, Quantity::StepTime);
        assert_eq!(table.head.len(), measured.len() + 1);
        let row = table.rows.iter().find(|row| row[0] == "512").expect("512 GPUs");
        assert!(row.contains(&"12.37".to_string()), "{row:?}");
        let summary = summary(&measured, Quantity::StepTime);
        assert!(summary.starts_with("Chart of Step time, s by GPU count. Llama 3.1 405B"), "{summary}");
    }

    #[test]
    fn a_plan_is_marked_with_an_mfu_only_if_the_convention_is_the_same() {
        let (_, metrics) = published();
        assert_eq!(metrics.convention, Some(Convention::Recipe));
        assert_eq!(marked(&metrics, 512.0, Quantity::StepTime), Some(12.37));
        assert_eq!(marked(&metrics, 512.0, Quantity::MfuFull), None);
        let mfu = marked(&metrics, 512.0, Quantity::MfuRecipe).expect("an MFU");
        assert!((mfu - 44.35).abs() < 0.01, "{mfu}");
    }
}
