//! Step time and loss over the steps, run beside run.

use super::Results;
use crate::components::chart::{Chart, ChartLine, LineChart};
use crate::components::numbers::{Numbers, Table};
use crate::message;
use leptos::prelude::*;
use trainplan_shared::units::significant;

/// Lines that still can be told apart.
const MOST: usize = 8;

/// What a curve shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Curve {
    StepTime,
    Loss,
}

impl Curve {
    fn title(self) -> &'static str {
        match self {
            Curve::StepTime => "Step time, s",
            Curve::Loss => "Loss",
        }
    }

    fn values(self, curve: &message::Curve) -> &[Option<f64>] {
        match self {
            Curve::StepTime => &curve.step_time_s,
            Curve::Loss => &curve.loss,
        }
    }
}

/// Both charts, each with its table.
#[component]
pub(super) fn Curves() -> impl IntoView {
    let results = Results::of_page();
    let lines = move |curve: Curve| Memo::new(move |_| lines(results, curve));
    let (times, losses) = (lines(Curve::StepTime), lines(Curve::Loss));
    let more = move || results.rows.with(Vec::len).saturating_sub(MOST);
    view! {
        <div class="curves">
            <CurveChart curve=Curve::StepTime lines=times />
            <CurveChart curve=Curve::Loss lines=losses />
        </div>
        <Show when=move || { more() > 0 }>
            <p class="basis">{format!("The charts show the first {MOST} logs with steps.")}</p>
        </Show>
    }
}

/// The curves of the first logs, in the order of the table.
fn lines(results: Results, curve: Curve) -> Vec<ChartLine> {
    results.rows.with(|rows| {
        let lines = rows.iter().map(|(row, steps)| line(&row.path, steps, curve));
        let lines = lines.filter(|line| !line.points.is_empty()).take(MOST);
        lines.enumerate().map(|(index, line)| ChartLine { group: index, style: index, ..line }).collect()
    })
}

fn line(path: &str, steps: &message::Curve, curve: Curve) -> ChartLine {
    let points =
        steps.labels.iter().zip(curve.values(steps)).filter_map(|(label, value)| Some((*label, (*value)?)));
    let name = path.rsplit('/').next().unwrap_or_default().to_string();
    ChartLine { name, group: 0, style: 0, points: points.collect() }
}

/// A chart and the table of its numbers.
#[component]
fn CurveChart(curve: Curve, lines: Memo<Vec<ChartLine>>) -> impl IntoView {
    let chart = Signal::derive(move || LineChart::over_steps(lines.get(), curve.title()).into());
    let table = Signal::derive(move || lines.with(|lines| table(curve, lines)));
    let summary = Signal::derive(move || lines.with(|lines| summary(curve, lines)));
    let id = if curve == Curve::StepTime { "curve-step-time" } else { "curve-loss" };
    view! {
        <Show when=move || lines.with(|lines| !lines.is_empty())>
            <section class="scaling" aria-labelledby=id>
                <h2 id=id>{curve.title()}</h2>
                <Chart chart summary />
                <details>
                    <summary>"The chart's numbers"</summary>
                    <Numbers table by_number=true tall=true />
                </details>
            </section>
        </Show>
    }
}

fn summary(curve: Curve, lines: &[ChartLine]) -> String {
    let ends = lines.iter().filter_map(|line| {
        let (first, last) = (line.points.first()?, line.points.last()?);
        let at = |(step, value): &(f64, f64)| format!("{} at step {step}", significant(*value, 5));
        Some(format!("{}: {} to {}", line.name, at(first), at(last)))
    });
    format!("Chart of {} over steps. {}.", curve.title(), ends.collect::<Vec<_>>().join("; "))
}

/// A row for every step.
fn table(curve: Curve, lines: &[ChartLine]) -> Table {
    let mut steps: Vec<u64> =
        lines.iter().flat_map(|line| &line.points).map(|point| point.0 as u64).collect();
    steps.sort_unstable();
    steps.dedup();
    let cell = |line: &ChartLine, step: u64| {
        let point = line.points.iter().find(|point| point.0 as u64 == step);
        point.map_or("–".to_string(), |point| significant(point.1, 6))
    };
    let row = |step: u64| {
        let cells = lines.iter().map(|line| cell(line, step));
        std::iter::once(step.to_string()).chain(cells).collect()
    };
    let names = lines.iter().map(|line| line.name.clone());
    Table {
        caption: format!("{} by step", curve.title()),
        head: std::iter::once("Step".to_string()).chain(names).collect(),
        rows: steps.into_iter().map(row).collect(),
    }
}
