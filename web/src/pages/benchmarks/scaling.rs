//! The published measurements of the shown recipes over GPU counts.

use super::Benchmarks;
use crate::address::Address;
use crate::components::chart::{Chart, ChartLine, LineChart};
use crate::pages::details::scaling::{QuantityChoice, SeriesTable, summary};
use leptos::prelude::*;
use trainplan_shared::catalog::{Catalog, Recipe, Release};
use trainplan_shared::field::Field;
use trainplan_shared::precision::Dtype;
use trainplan_shared::scaling::{Quantity, ScalingSeries, series};

/// The chart of the shown recipes' measurements by GPU count. It is left out if none of them is part of a series.
#[component]
pub(super) fn Scaling() -> impl IntoView {
    let state = Benchmarks::of_page();
    let address = Address::of_page();
    let quantity = Memo::new(move |_| {
        address.spec().parse(Field::Quantity).ok().flatten().unwrap_or(Quantity::TokensPerSPerGpu)
    });
    // In the catalog's order, so that sorting the table does not change the chart.
    let measured = Memo::new(move |_| {
        let shown: Vec<&'static Recipe> = state.rows.with(|rows| {
            state.shown.with(|shown| shown.iter().filter_map(|place| rows[*place].recipe).collect())
        });
        let is_shown = |recipe: &&'static Recipe| shown.iter().any(|shown| std::ptr::eq(*shown, *recipe));
        series(Catalog::embedded().recipes().iter().filter(is_shown), None)
    });
    let chart = Signal::derive(move || measured.with(|measured| chart(measured, quantity.get()).into()));
    let summary = Signal::derive(move || measured.with(|measured| summary(measured, quantity.get())));
    view! {
        <Show when=move || measured.with(|measured| !measured.is_empty())>
            <section class="scaling" aria-labelledby="measured-title">
                <h2 id="measured-title">"How published recipes scale"</h2>
                <QuantityChoice quantity />
                <Chart chart summary />
                <details>
                    <summary>"Show data"</summary>
                    <SeriesTable measured=measured.into() quantity=quantity.into() />
                </details>
            </section>
        </Show>
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
            usize::from(id.dtype != Dtype::Bf16) + if id.release == Release::R24_11 { 2 } else { 0 }
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
    // The models differ in size by orders of magnitude, so that only an MFU and a linear axis go together.
    let is_mfu = matches!(quantity, Quantity::MfuFull | Quantity::MfuRecipe);
    LineChart::over_gpus(lines.collect(), quantity.axis(), !is_mfu)
        .of_days(quantity == Quantity::Days)
        .with_labels()
}
