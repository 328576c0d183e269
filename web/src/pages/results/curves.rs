//! Step time and loss over the steps of dropped logs, run beside run.

use super::Results;
use crate::components::plots::PlotSection;
use crate::message::{LogCurve, Plot, PlotLine, Row};
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::sorting::order;

/// The most lines that can be distinguished.
const MOST: usize = 8;

/// How many of them are the slowest logs, unless logs are selected.
const SLOWEST: usize = 4;

/// Both charts, each with its table.
#[component]
pub(super) fn Curves() -> impl IntoView {
    let results = Results::of_page();
    let step_time = Memo::new(move |_| Plot { is_time: true, ..plot(results, |curve| &curve.step_time_s) });
    let loss = Memo::new(move |_| plot(results, |curve| &curve.loss));
    let is_part = move || {
        let with_steps = results.rows.with(|rows| rows.iter().filter(|row| has_steps(row)).count());
        with_steps > MOST && shown(results).len() == MOST
    };
    view! {
        <div class="curves">
            <PlotSection id="curve-step-time" title="Step time, s" plot=step_time />
            <PlotSection id="curve-loss" title="Loss" plot=loss />
        </div>
        <Show when=is_part>
            <p class="basis">
                {format!("The charts show {MOST} logs: the selected ones, or if none are selected, the {SLOWEST} slowest and the last ones by name.")}
            </p>
        </Show>
    }
}

type LogRow = (Arc<Row>, Arc<LogCurve>);

fn has_steps((_, curve): &LogRow) -> bool {
    !curve.labels.is_empty()
}

/// Returns the mean step time of the second half of a log, in which the warm-up is over.
fn typical_s((_, curve): &LogRow) -> f64 {
    let times = &curve.step_time_s[curve.step_time_s.len() / 2..];
    times.iter().flatten().sum::<f64>() / times.len().max(1) as f64
}

/// Returns the logs of the charts, by path: those that are selected, or else the slowest ones and the last ones, which usually are the
/// newest. A log that is selected alone may be one to identify, so that the others stay if there is room for all.
fn shown(results: Results) -> Vec<LogRow> {
    results.rows.with(|rows| {
        let with_steps: Vec<&LogRow> = rows.iter().filter(|row| has_steps(row)).collect();
        let picked = results.picked.get();
        let is_picked = |row: &&&LogRow| picked.contains(&row.0.id);
        let selected: Vec<LogRow> =
            with_steps.iter().filter(is_picked).take(MOST).map(|row| (**row).clone()).collect();
        if selected.len() > 1 || (!selected.is_empty() && with_steps.len() > MOST) {
            return selected;
        }
        let times: Vec<f64> = with_steps.iter().copied().map(typical_s).collect();
        let by_time = order(times.len(), &|one, other| times[other].total_cmp(&times[one]));
        let slowest: Vec<usize> = by_time.into_iter().take(SLOWEST).collect();
        let others: Vec<usize> = (0..times.len()).filter(|place| !slowest.contains(place)).collect();
        let last = &others[others.len().saturating_sub(MOST - SLOWEST)..];
        let is_shown = |place: &usize| slowest.contains(place) || last.contains(place);
        (0..times.len()).filter(is_shown).map(|place| with_steps[place].clone()).collect()
    })
}

/// Returns the name of a log's file.
fn file((row, _): &LogRow) -> &str {
    row.path.rsplit('/').next().unwrap_or_default()
}

/// The curves of the shown logs.
fn plot(results: Results, values: fn(&LogCurve) -> &[Option<f64>]) -> Plot {
    let shown = shown(results);
    let line = |log: &LogRow| {
        let (row, curve) = log;
        let points =
            curve.labels.iter().zip(values(curve)).filter_map(|(label, value)| Some((*label, (*value)?)));
        let (steps, values) = points.unzip();
        // Logs of several folders may have one name.
        let is_only = shown.iter().filter(|other| file(other) == file(log)).count() == 1;
        let name = if is_only { file(log) } else { row.path.as_str() };
        PlotLine { name: name.to_string(), steps, values }
    };
    let lines = shown.iter().map(line);
    Plot { lines: lines.filter(|line| !line.steps.is_empty()).collect(), ..Plot::default() }
}
