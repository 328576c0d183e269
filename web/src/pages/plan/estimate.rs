//! The prediction: beside the published number, with what it rests on, where the time goes, and what GPUs hold.

use super::answers::{days_text, mfu_label};
use super::{BROKEN, Basis, Plan};
use crate::components::chart::{BarChart, BarKind, Chart, Drawing};
use crate::components::numbers::{Numbers, Table};
use crate::message::{Bars, Prediction, Remedy};
use leptos::prelude::*;
use trainplan_shared::field::Field;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::StepTime;
use trainplan_shared::units::{format_count, group_digits, significant};

/// The prediction. While the next one is made, this one stands, dimmed.
#[component]
pub(super) fn EstimatePanel() -> impl IntoView {
    let plan = Plan::of_page();
    let question = plan.helper.prediction;
    let of = move |value: fn(Prediction) -> String| Signal::derive(move || value(latest(plan)));
    let is_open = move || plan.helper.is_predicting();
    let instead = move || match plan.helper.is_broken() {
        true => BROKEN,
        false if is_open() => "Predicting …",
        false => "There is no prediction for a scenario that can't run.",
    };
    view! {
        <section class="estimate" class:stale=is_open aria-busy=move || is_open().to_string() aria-labelledby="estimate-title">
            <h2 id="estimate-title">"Estimate"</h2>
            <Show when=move || question.latest().is_some() fallback=move || view! { <p role="status">{instead}</p> }>
                <Numbers table=Signal::derive(move || comparison(plan)) />
                <p>{of(|prediction| prediction.basis)}</p>
                <Anchors />
                <div class="charts">
                    <BarsPanel title="Where the time goes" chart=Signal::derive(move || time(latest(plan))) />
                    <BarsPanel title="What a GPU holds" chart=Signal::derive(move || memory(latest(plan))) />
                </div>
            </Show>
        </section>
    }
}

fn latest(plan: Plan) -> Prediction {
    plan.helper.prediction.latest().map_or_else(Prediction::default, |prediction| (*prediction).clone())
}

/// Whether the scenario fits its GPUs, said by word, sign and colour.
#[component]
pub(super) fn Fit() -> impl IntoView {
    let plan = Plan::of_page();
    let fits = move || latest(plan).fits;
    view! {
        <Show when=move || plan.helper.prediction.latest().is_some()>
            <p class="fit" class:stale=move || plan.helper.is_predicting() class:wrong=move || !fits() data-fits=move || fits().to_string() aria-live="polite">
                <span aria-hidden="true">{move || if fits() { "✓ " } else { "✕ " }}</span>
                {move || latest(plan).fit}
            </p>
            <Show when=move || !latest(plan).remedies.is_empty()>
                <div class="chips">
                    <span class="label">"It would fit with"</span>
                    {move || latest(plan).remedies.into_iter().map(|remedy| view! { <RemedyChip remedy /> }).collect_view()}
                </div>
            </Show>
        </Show>
    }
}

/// A change with which it would fit; a press makes it.
#[component]
fn RemedyChip(remedy: Remedy) -> impl IntoView {
    let plan = Plan::of_page();
    let Remedy { title, flags, values } = remedy;
    let change = move |_| {
        plan.address.update(|spec| {
            for (field, value) in flags.iter().zip(&values) {
                if let Some(field) = Field::from_flag(field) {
                    spec.set(field, value.clone());
                }
            }
        });
    };
    view! { <button type="button" class="chip" on:click=change>{title}</button> }
}

/// The measurements that the prediction rests on.
#[component]
fn Anchors() -> impl IntoView {
    let plan = Plan::of_page();
    let anchors = move || latest(plan).anchors;
    view! {
        <Show when=move || !anchors().is_empty()>
            <details>
                <summary>"The measurements that it rests on"</summary>
                <ul class="plain">{move || anchors().into_iter().map(|anchor| view! { <li>{anchor}</li> }).collect_view()}</ul>
            </details>
        </Show>
    }
}

/// The prediction with its interval, beside the published number, or else the one that was given.
fn comparison(plan: Plan) -> Table {
    let Prediction { low_s, mid_s, high_s, .. } = latest(plan);
    let published = plan.scenario.with(|scenario| {
        scenario.as_ref().ok().and_then(Scenario::baseline).map(|baseline| baseline.step_time_s)
    });
    let given = plan.outcome.with(|outcome| {
        let outcome = outcome.as_ref().filter(|outcome| outcome.basis == Basis::Given)?;
        Some(outcome.metrics.step_time_s)
    });
    let beside = published.map(|step| ("Published", step)).or(given.map(|step| ("Yours", step)));
    let metrics = |step_time_s: f64| {
        plan.scenario.with(|scenario| {
            let step_time = StepTime::Seconds(step_time_s);
            plan.spec.with(|spec| spec.metrics_at(scenario.as_ref().ok()?, step_time).ok())
        })
    };
    let columns = [Some(mid_s), Some(low_s), Some(high_s), beside.map(|(_, step)| step)];
    let columns = columns.map(|step| step.and_then(metrics));
    let Some(tokens) = columns[0].as_ref().map(|metrics| format_count(metrics.tokens)) else {
        return Table::default();
    };
    let row = |name: String, value: fn(&Metrics) -> Option<f64>, text: fn(f64) -> String| {
        let [mid, low, high, beside] = columns.each_ref().map(|metrics| metrics.as_ref().and_then(value));
        let (mid, low, high) = (mid?, low?, high?);
        let mut cells = vec![name, text(mid), format!("{} – {}", text(low.min(high)), text(low.max(high)))];
        if let Some(beside) = beside {
            // Without a sign before what is rounded to nothing.
            let percent = (mid / beside - 1.0) * 100.0;
            let percent = if percent.abs() < 0.05 { "0.0 %".to_string() } else { format!("{percent:+.1} %") };
            cells.extend([text(beside), percent]);
        }
        Some(cells)
    };
    let rows = [
        row("Step time, s".into(), |metrics| Some(metrics.step_time_s), |value| significant(value, 4)),
        row("Tokens per second".into(), |metrics| Some(metrics.tokens_per_s), group_digits),
        row("MFU, %".into(), |metrics| Some(metrics.mfu? * 100.0), |value| format!("{value:.2}")),
        row(format!("Days for {tokens} tokens"), |metrics| metrics.time_to_train_days, days_text),
    ];
    let mut head = vec!["", "Predicted", "80 % interval"];
    if let Some((name, _)) = beside {
        head.extend([name, "Off by"]);
    }
    Table {
        caption: format!("Predicted; {}", mfu_label(plan)),
        head: head.into_iter().map(str::to_string).collect(),
        rows: rows.into_iter().flatten().collect(),
    }
}

fn time(prediction: Prediction) -> BarChart {
    BarChart { bars: prediction.time, unit: "seconds", kind: BarKind::Waterfall }
}

fn memory(prediction: Prediction) -> BarChart {
    let limit = prediction.capacity_gib;
    let kind = BarKind::Stacked { name: format!("{limit:.0} GiB"), limit };
    BarChart { bars: prediction.memory, unit: "GiB", kind }
}

/// A chart of bars with its table.
#[component]
fn BarsPanel(title: &'static str, chart: Signal<BarChart>) -> impl IntoView {
    let table = Signal::derive(move || chart.with(|chart| table(title, chart)));
    let summary = Signal::derive(move || {
        table.with(|table| {
            let last = |row: &Vec<String>| Some(format!("{} {}", row.first()?, row.last()?));
            let bars: Vec<String> = table.rows.iter().filter_map(last).collect();
            format!("Chart: {title}, in {}. {}.", chart.with(|chart| chart.unit), bars.join(", "))
        })
    });
    view! {
        <div class="panel">
            <h3>{title}</h3>
            <Chart chart=Signal::derive(move || Drawing::Bars(chart.get())) summary />
            <details>
                <summary>"The chart's numbers"</summary>
                <Numbers table />
            </details>
        </div>
    }
}

/// A row for every bar. Where bars have one part each, a column of shares takes the place of the columns of parts.
fn table(title: &str, chart: &BarChart) -> Table {
    let Bars { labels, parts } = &chart.bars;
    let of = |bar: usize| parts.iter().map(move |part| part.values[bar]);
    let whole: f64 = (0..labels.len()).flat_map(of).sum();
    let is_waterfall = chart.kind == BarKind::Waterfall;
    let row = |(bar, label): (usize, &String)| {
        let total: f64 = of(bar).sum();
        let mut cells = vec![label.clone()];
        match is_waterfall {
            true => cells.extend([format!("{:.1} %", total / whole * 100.0), format!("{total:.3}")]),
            false => cells.extend(of(bar).chain([total]).map(|value| format!("{value:.1}"))),
        }
        cells
    };
    let columns = match is_waterfall {
        true => vec!["Part".to_string(), "Share".to_string(), "Seconds".to_string()],
        false => {
            let parts = parts.iter().map(|part| part.name.clone());
            ["".to_string()].into_iter().chain(parts).chain(["Together".to_string()]).collect()
        }
    };
    Table {
        caption: format!("{title}, in {}", chart.unit),
        head: columns,
        rows: labels.iter().enumerate().map(row).collect(),
    }
}
