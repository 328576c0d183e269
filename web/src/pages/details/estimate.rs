//! The estimate: predicted figures beside the published ones, and time and memory by part.

use super::figures::{whole_days, whole_run};
use super::predicted_for::predicted_for;
use super::step_time::StepTimeSource;
use super::steppers::Steppers;
use super::{BROKEN, Plan};
use crate::components::chart::{BarChart, BarKind, Chart};
use crate::components::numbers::{Numbers, Table};
use crate::message::{Bars, Prediction, RunAsMeasured};
use crate::pages::plan::amounts::time_text;
use leptos::prelude::*;
use trainplan_shared::assumption::Assumption;
use trainplan_shared::estimate::Closeness;
use trainplan_shared::goodput::checkpoint_bytes;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::planning::StepTime;
use trainplan_shared::range::ValueRange;
use trainplan_shared::units::{
    capacity, format_count, group_three_digits, one_decimal, percent, readable, readable_days,
    readable_range, seconds, short_seconds, signed_percent, significant,
};

/// The frame of an estimate's panel. It stays visible, in grey, until the next estimate is ready.
#[component]
pub(super) fn EstimateFrame(title: &'static str, children: ChildrenFn) -> impl IntoView {
    let plan = Plan::of_page();
    let prediction = plan.calculator.prediction;
    let is_predicting = move || plan.calculator.is_predicting();
    let instead = move || match plan.calculator.is_broken() {
        true => BROKEN,
        false if is_predicting() || plan.state.is_waiting() => "Predicting …",
        false => "Fix the marked field to see an estimate.",
    };
    view! {
        <section
            class="estimate"
            class:stale=move || plan.is_outdated()
            aria-busy=move || is_predicting().to_string()
            aria-label=title
        >
            <Show
                when=move || prediction.latest().is_some()
                fallback=move || view! { <p role="status">{instead}</p> }
            >
                {children()}
            </Show>
        </section>
    }
}

/// Where the time goes: predicted figures beside those of a published, typed or measured run, and the parts of a step.
#[component]
pub(super) fn TimePanel() -> impl IntoView {
    let plan = Plan::of_page();
    let compared = Memo::new(move |_| comparison(plan));
    let is_compared = move || compared.with(Option::is_some);
    view! {
        <EstimateFrame title="Time">
            {predicted_for(plan, move |measured| time_as_measured(plan, measured))}
            <div class:charts=is_compared>
                <Show when=is_compared>
                    <div class="panel"><Numbers table=Signal::derive(move || compared.get().unwrap_or_default()) /></div>
                </Show>
                <div class="panel">
                    <BarsPanel title="Where the time goes" chart=Signal::derive(move || time(plan.prediction())) />
                    <p class="basis"><small>
                        "The parts and their shares are those of the physical model. “Correction” is what measured runs add to their sum or take "
                        "from it; the Evidence tab lists these runs. "
                        "“Slowest GPU” is the wait for the slowest of all GPUs: equal GPUs differ a little in speed, and each step ends "
                        "when the last one is done. The share grows with every doubling of the GPU count and is fitted to measured runs."
                    </small></p>
                </div>
            </div>
        </EstimateFrame>
    }
}

/// The memory of each pipeline stage.
#[component]
pub(super) fn MemoryPanel() -> impl IntoView {
    let plan = Plan::of_page();
    let checkpoint = move || {
        let bytes = plan.scenario.with(|scenario| {
            let scenario = scenario.as_ref().ok()?;
            Some(checkpoint_bytes(scenario.architecture.parameters()))
        });
        bytes.map(|bytes| {
            format!(
                "A checkpoint takes up {} GB: {} bytes per parameter, for BF16 weights, FP32 weights and two FP32 moments.",
                group_three_digits(bytes / 1e9),
                significant(Assumption::CheckpointSize.value(), 3)
            )
        })
    };
    view! {
        <Steppers />
        <EstimateFrame title="Memory">
            // Whether it fits is judged for this software only.
            {predicted_for(plan, |_| None)}
            <BarsPanel title="Memory per GPU" chart=Signal::derive(move || memory(plan.prediction())) />
            <p class="basis"><small>{checkpoint}</small></p>
        </EstimateFrame>
    }
}

/// Returns the step time and the days with measured software beside the predicted ones, as a clause.
fn time_as_measured(plan: Plan, measured: &RunAsMeasured) -> Option<String> {
    let run = whole_run(plan)?;
    let step_time_s = plan.step.with(|step| step.as_ref().map(|step| step.metrics.step_time_s))?;
    let [slow_step, step] = [measured.step_time_s, step_time_s].map(seconds);
    let [slow_run, run] = [&measured.run, &run].map(|run| time_text(whole_days(run)));
    Some(format!("a step takes {slow_step} instead of {step}, and the run {slow_run} instead of {run}"))
}

/// Returns the predicted figures with their intervals, beside the published ones; otherwise those of a typed step time, or of the
/// opened measured run. None without any of these.
fn comparison(plan: Plan) -> Option<Table> {
    plan.scenario.with(|scenario| {
        let scenario = scenario.as_ref().ok()?;
        let latest = plan.prediction();
        let published = scenario.baseline().map(|baseline| Beside {
            name: "Published",
            step_time_s: baseline.step_time_s,
            held_out: latest.held_out,
        });
        let typed = plan.step.with(|step| {
            let step = step.as_ref().filter(|step| step.source == StepTimeSource::Typed)?;
            Some(Beside { name: "Yours", step_time_s: step.metrics.step_time_s, held_out: None })
        });
        let measured = plan.measured().map(|measured| {
            let own = latest.evidence.iter().find(|run| run.closeness == Closeness::Same);
            let errors = own.into_iter().flat_map(|run| &run.runs).filter_map(|run| run.held_out_error);
            let held_out = ValueRange::around(errors).filter(|errors| errors.low == errors.high);
            let held_out = held_out.map(|errors| errors.low);
            Beside { name: "Measured", step_time_s: measured.step_time_s, held_out }
        });
        let beside = published.or(typed).or(measured)?;
        plan.spec.with(|spec| {
            let metrics = |step_time_s| spec.metrics_at(scenario, StepTime::Seconds(step_time_s)).ok();
            comparison_table(&latest, beside, metrics, &plan.mfu_label())
        })
    })
}

/// A step time beside the predicted one.
struct Beside {
    name: &'static str,
    step_time_s: f64,
    /// The error of the prediction without this run, if the run corrects the prediction.
    held_out: Option<f64>,
}

/// Returns the table of predicted figures beside those of another step time. `metrics` computes the figures of a step time
/// in seconds.
///
/// A run that corrects the prediction says nothing about its accuracy, so it is compared with the prediction without it.
fn comparison_table(
    prediction: &Prediction,
    Beside { name, step_time_s, held_out }: Beside,
    metrics: impl Fn(f64) -> Option<Metrics>,
    mfu_label: &str,
) -> Option<Table> {
    let Prediction { low_s, mid_s, high_s, .. } = *prediction;
    let (mid, low, high) = (metrics(mid_s)?, metrics(low_s)?, metrics(high_s)?);
    let beside = metrics(step_time_s)?;
    let compared = held_out.map_or(Some(mid.clone()), |error| metrics(step_time_s * (1.0 + error)))?;
    let row = |title: String, value: fn(&Metrics) -> Option<f64>, write: fn(f64) -> String| {
        let range = readable_range((value(&low)?, value(&high)?), write);
        let difference = signed_percent(value(&compared)? / value(&beside)? - 1.0);
        Some(vec![title, write(value(&mid)?), range, write(value(&beside)?), difference])
    };
    let rows = [
        row("Step time, s".into(), |metrics| Some(metrics.step_time_s), readable),
        row("Tokens per second".into(), |metrics| Some(metrics.tokens_per_s), group_three_digits),
        row("MFU, %".into(), |metrics| Some(metrics.mfu? * 100.0), readable),
        row(
            format!("Days for {} tokens, without failures", format_count(mid.tokens)),
            |metrics| metrics.time_to_train_days,
            readable_days,
        ),
    ];
    let difference = if held_out.is_some() { "Predicted without this run" } else { "Difference" };
    Some(Table {
        caption: format!("Predicted figures; {mfu_label}"),
        head: ["", "Predicted", "80\u{a0}% interval", name, difference].map(str::to_string).into(),
        rows: rows.into_iter().flatten().collect(),
    })
}

fn time(prediction: Prediction) -> BarChart {
    let kind = BarKind::Waterfall { whole: prediction.modelled_s };
    BarChart { bars: prediction.time, unit: "seconds", kind }
}

fn memory(prediction: Prediction) -> BarChart {
    let limit = prediction.capacity_gib;
    let kind = BarKind::Stacked { name: capacity(limit), limit };
    BarChart { bars: prediction.memory, unit: "GiB", kind }
}

/// A bar chart with its table.
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
            <Chart chart=Signal::derive(move || chart.get().into()) summary />
            <details>
                <summary>"Show data"</summary>
                <Numbers table />
            </details>
        </div>
    }
}

/// Returns a row for each bar: for a waterfall its share and its length, otherwise its parts and their total.
fn table(title: &str, chart: &BarChart) -> Table {
    let Bars { labels, parts } = &chart.bars;
    let of = |bar: usize| parts.iter().map(move |part| part.values[bar]);
    let whole = match chart.kind {
        BarKind::Waterfall { whole } => Some(whole),
        BarKind::Stacked { .. } => None,
    };
    let row = |(bar, label): (usize, &String)| {
        let total: f64 = of(bar).sum();
        let mut cells = vec![label.clone()];
        match whole {
            Some(whole) => {
                cells.extend([percent(total / whole).replace('-', "−"), short_seconds(total)]);
            }
            None => cells.extend(of(bar).chain([total]).map(one_decimal)),
        }
        cells
    };
    let columns = match whole {
        Some(_) => vec!["Part".to_string(), "Share".to_string(), "Time".to_string()],
        None => {
            let parts = parts.iter().map(|part| part.name.clone());
            ["".to_string()].into_iter().chain(parts).chain(["Total".to_string()]).collect()
        }
    };
    Table {
        caption: if whole.is_some() { title.to_string() } else { format!("{title}, in {}", chart.unit) },
        head: columns,
        rows: labels.iter().enumerate().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Bars, Part};
    use trainplan_shared::link;

    #[test]
    fn predicted_figures_are_compared_with_the_published_ones() {
        let spec = link::read("r=llama3.1-405b/h100/fp8/512@25.04").spec;
        let scenario = spec.scenario().expect("a recipe");
        let metrics = |step_time_s| spec.metrics_at(&scenario, StepTime::Seconds(step_time_s)).ok();
        let prediction = Prediction { low_s: 11.0, mid_s: 12.0, high_s: 14.0, ..Prediction::default() };
        let table = |held_out| {
            let published = Beside { name: "Published", step_time_s: 12.37, held_out };
            comparison_table(&prediction, published, metrics, "MFU").expect("figures")
        };
        let corrected = table(Some(0.02));
        let table = table(None);
        assert_eq!(table.head, ["", "Predicted", "80\u{a0}% interval", "Published", "Difference"]);
        assert_eq!(table.rows[0], ["Step time, s", "12.0", "11.0–14.0", "12.4", "−3.0 %"]);
        assert_eq!(table.rows[1][2], "150,000–191,000");
        assert_eq!(table.rows[3], ["Days for 1T tokens, without failures", "66", "61–77", "68", "−3.0 %"]);
        assert_eq!(corrected.head[4], "Predicted without this run");
        assert_eq!(corrected.rows[0], ["Step time, s", "12.0", "11.0–14.0", "12.4", "+2.0 %"]);
        assert_eq!(corrected.rows[1][4], "−2.0 %");
    }

    fn bars(kind: BarKind) -> BarChart {
        let part = |name: &str, values: [f64; 2]| Part { name: name.into(), values: values.into() };
        let parts = vec![part("Weights", [1.0, 0.0]), part("Logits", [0.0, 3.0])];
        let bars = Bars { labels: vec!["Stage 1".into(), "Stage 2".into()], parts };
        BarChart { bars, unit: "GiB", kind }
    }

    #[test]
    fn a_table_of_bars_lists_shares_or_parts() {
        let waterfall = table("Time", &bars(BarKind::Waterfall { whole: 4.0 }));
        assert_eq!(
            waterfall.rows,
            [["Stage 1", "25.0 %", "1.00\u{a0}s"], ["Stage 2", "75.0 %", "3.00\u{a0}s"]]
        );
        let mut corrected = bars(BarKind::Waterfall { whole: 4.0 });
        corrected.bars.parts[1].values[1] = -0.184;
        assert_eq!(table("Time", &corrected).rows[1], ["Stage 2", "−4.60 %", "−0.184\u{a0}s"]);
        let stacked = table("Memory", &bars(BarKind::Stacked { name: "80 GiB".into(), limit: 80.0 }));
        assert_eq!(stacked.head, ["", "Weights", "Logits", "Total"]);
        assert_eq!(stacked.rows[1], ["Stage 2", "0.0", "3.0", "3.0"]);
    }
}
