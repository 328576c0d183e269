//! The charts of step time and loss by step, each with its table and as an image.

use super::chart::{Chart, Drawing, LineChart, png};
use super::copy::save_address;
use super::numbers::{Numbers, Table};
use crate::address::Address;
use crate::message::{Compared, Plot};
use leptos::prelude::*;
use leptos::task::spawn_local;
use std::collections::BTreeMap;
use std::sync::Arc;
use trainplan_shared::units::significant;

/// The most rows of a table.
const ROWS: usize = 1000;

/// The address's key of the charts' scale.
pub(crate) const SCALE: &str = "y";

/// Step time and loss of a comparison.
#[component]
pub(crate) fn Plots(
    /// The comparison.
    #[prop(into)]
    compared: Signal<Arc<Compared>>,
) -> impl IntoView {
    let address = Address::of_page();
    let scale = move |title: &'static str, value: &'static str| {
        view! {
            <button
                type="button"
                class="chip"
                aria-pressed=move || (address.own(SCALE) == value).to_string()
                on:click=move |_| address.set_own(SCALE, value)
            >
                {title}
            </button>
        }
    };
    let step_time = Memo::new(move |_| compared.with(|compared| compared.step_time.clone()));
    let loss = Memo::new(move |_| compared.with(|compared| compared.loss.clone()));
    view! {
        <div class="chips" role="group" aria-label="Scale of the charts">
            {scale("Linear", "")} {scale("Logarithmic", "log")}
        </div>
        <div class="curves">
            <PlotSection id="curve-step-time" title="Step time, s" plot=step_time />
            <PlotSection id="curve-loss" title="Loss" plot=loss />
        </div>
    }
}

/// A chart and the table of its numbers.
#[component]
pub(crate) fn PlotSection(id: &'static str, title: &'static str, plot: Memo<Plot>) -> impl IntoView {
    let address = Address::of_page();
    let is_log = Memo::new(move |_| address.own(SCALE) == "log");
    let chart: Signal<Drawing> =
        Signal::derive(move || plot.with(|plot| LineChart::of_plot(plot, title, is_log.get()).into()));
    let summary = Signal::derive(move || plot.with(|plot| summary(title, plot)));
    let png_failed = RwSignal::new(false);
    let save_png = move |_| {
        let chart = chart.get_untracked();
        let heading = plot.with_untracked(|plot| match plot.lines.first() {
            // The legend contains only what distinguishes the runs.
            Some(run) => format!("{title} · {}", run.name),
            None => title.to_string(),
        });
        spawn_local(async move {
            let name = format!("{id}.png");
            let saved = png(&chart, &heading).await.and_then(|image| save_address(&image, &name));
            // `try_set`: the page may have been left meanwhile.
            png_failed.try_set(saved.is_err());
        });
    };
    view! {
        <Show when=move || plot.with(|plot| !plot.lines.is_empty())>
            <section class="scaling" aria-labelledby=id>
                <h2 id=id>{title}</h2>
                <Chart chart summary />
                <Above plot is_log />
                <div class="chart-foot">
                    <NumbersOf title plot />
                    <button type="button" class="link" on:click=save_png>
                        {move || if png_failed.get() { "Saving failed" } else { "Save as PNG" }}
                    </button>
                </div>
            </section>
        </Show>
    }
}

/// The number of points above the chart, whose scale ignores outliers: the first step often takes ten times as long.
#[component]
fn Above(plot: Memo<Plot>, is_log: Memo<bool>) -> impl IntoView {
    let text = move || {
        let (_, top) = plot.with(LineChart::range).filter(|_| !is_log.get())?;
        let count = plot.with(|plot| {
            plot.lines.iter().flat_map(|line| &line.values).filter(|value| **value > top).count()
        });
        let outliers = match count {
            0 => return None,
            1 => "1 outlier is".to_string(),
            _ => format!("{count} outliers are"),
        };
        Some(
            view! { <p class="basis">{format!("{outliers} off the scale. Show data lists all values.")}</p> },
        )
    };
    view! { {text} }
}

/// The table of the numbers, made when it is opened.
#[component]
fn NumbersOf(title: &'static str, plot: Memo<Plot>) -> impl IntoView {
    let is_open = RwSignal::new(false);
    let table = Signal::derive(move || plot.with(|plot| table(title, plot)));
    view! {
        <details on:toggle=move |_| is_open.set(true)>
            <summary>"Show data"</summary>
            <Show when=move || is_open.get()>
                <Numbers table by_number=true tall=true />
            </Show>
        </details>
    }
}

fn summary(title: &str, plot: &Plot) -> String {
    let lines = plot.lines.iter().filter_map(|line| {
        let at = |index: usize| {
            Some(format!("{} at step {}", significant(*line.values.get(index)?, 5), line.steps.get(index)?))
        };
        Some(format!("{}: {} to {}", line.name, at(0)?, at(line.values.len().checked_sub(1)?)?))
    });
    let levels = plot.levels.iter().map(|level| format!("{}: {}", level.name, significant(level.value, 5)));
    let all: Vec<String> = lines.chain(levels).collect();
    format!("Chart of {title} over steps. {}.", all.join("; "))
}

/// Returns a row for each step, or for every n-th step of a long run.
fn table(title: &str, plot: &Plot) -> Table {
    let mut steps: BTreeMap<u64, Vec<Option<f64>>> = BTreeMap::new();
    for (index, line) in plot.lines.iter().enumerate() {
        for (step, value) in line.steps.iter().zip(&line.values) {
            let row = steps.entry(*step as u64).or_insert_with(|| vec![None; plot.lines.len()]);
            row[index] = Some(*value);
        }
    }
    let every = steps.len().div_ceil(ROWS).max(1);
    let left_out =
        if every > 1 { format!(", one row in {every}; result files have all") } else { String::new() };
    let levels: String =
        plot.levels.iter().map(|level| format!("; {} {}", level.name, significant(level.value, 5))).collect();
    let row = |(step, values): (u64, Vec<Option<f64>>)| {
        let cell = |value: Option<f64>| value.map_or("–".to_string(), |value| significant(value, 6));
        std::iter::once(step.to_string()).chain(values.into_iter().map(cell)).collect()
    };
    Table {
        caption: format!("{title} by step{left_out}{levels}"),
        head: std::iter::once("Step".into()).chain(plot.lines.iter().map(|line| line.name.clone())).collect(),
        rows: steps.into_iter().step_by(every).map(row).collect(),
    }
}
