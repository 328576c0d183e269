//! Step time and loss over the steps of dropped logs, run beside run.

use super::Results;
use crate::components::plots::PlotSection;
use crate::message::{LogCurve, Plot, PlotLine};
use leptos::prelude::*;

/// Lines that still can be told apart.
const MOST: usize = 8;

/// Both charts, each with its table.
#[component]
pub(super) fn Curves() -> impl IntoView {
    let results = Results::of_page();
    let plot = move |values: fn(&LogCurve) -> &[Option<f64>]| Memo::new(move |_| plot(results, values));
    let more = move || results.rows.with(Vec::len).saturating_sub(MOST);
    view! {
        <div class="curves">
            <PlotSection id="curve-step-time" title="Step time, s" plot=plot(|curve| &curve.step_time_s) />
            <PlotSection id="curve-loss" title="Loss" plot=plot(|curve| &curve.loss) />
        </div>
        <Show when=move || { more() > 0 }>
            <p class="basis">{format!("The charts show the first {MOST} logs with steps.")}</p>
        </Show>
    }
}

/// The curves of the first logs, in the order of the table.
fn plot(results: Results, values: fn(&LogCurve) -> &[Option<f64>]) -> Plot {
    let line = |path: &str, curve: &LogCurve| {
        let points =
            curve.labels.iter().zip(values(curve)).filter_map(|(label, value)| Some((*label, (*value)?)));
        let (steps, values) = points.unzip();
        PlotLine { name: path.rsplit('/').next().unwrap_or_default().to_string(), steps, values }
    };
    results.rows.with(|rows| {
        let lines = rows.iter().map(|(row, curve)| line(&row.path, curve));
        let lines = lines.filter(|line| !line.steps.is_empty()).take(MOST);
        Plot { lines: lines.collect(), ..Plot::default() }
    })
}
