//! The estimate: predicted figures beside the published ones, the measurements behind them, time and memory
//! by part.

use super::step_time::StepTimeSource;
use super::steppers::Steppers;
use super::{BROKEN, Plan};
use crate::components::chart::{BarChart, BarKind, Chart};
use crate::components::numbers::{Numbers, Table};
use crate::message::{Bars, EvidenceRun, FieldChange, Prediction, Remedy, Warning};
use leptos::prelude::*;
use trainplan_shared::assumption::Assumption;
use trainplan_shared::estimate::{Closeness, MeasuredRun, MemoryVerdict};
use trainplan_shared::field::Field;
use trainplan_shared::goodput::checkpoint_bytes;
use trainplan_shared::launch::WarningTopic;
use trainplan_shared::metrics::Metrics;
use trainplan_shared::planning::StepTime;
use trainplan_shared::range::ValueRange;
use trainplan_shared::units::{
    capacity, format_count, group_three_digits, one_decimal, percent, readable, readable_days,
    readable_range, short_seconds, signed_percent, significant,
};

/// The frame of an estimate's panel. It stays visible, in grey, until the next estimate is ready.
#[component]
fn EstimateFrame(title: &'static str, children: ChildrenFn) -> impl IntoView {
    let plan = Plan::of_page();
    let prediction = plan.calculator.prediction;
    let is_predicting = move || plan.calculator.is_predicting();
    let instead = move || match plan.calculator.is_broken() {
        true => BROKEN,
        false if is_predicting() || plan.state.is_waiting() => "Predicting …",
        false => "Fix the layout above to see an estimate.",
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
            <div class:charts=is_compared>
                <Show when=is_compared>
                    <div class="panel"><Numbers table=Signal::derive(move || compared.get().unwrap_or_default()) /></div>
                </Show>
                <div class="panel">
                    <BarsPanel title="Where the time goes" chart=Signal::derive(move || time(latest(plan))) />
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
            <BarsPanel title="Memory per GPU" chart=Signal::derive(move || memory(latest(plan))) />
            <p class="basis"><small>{checkpoint}</small></p>
        </EstimateFrame>
    }
}

/// The measurements behind the estimate.
#[component]
pub(super) fn EvidencePanel() -> impl IntoView {
    let plan = Plan::of_page();
    let is_predicted = move || {
        let source = plan.step.with(|step| step.as_ref().map(|step| step.source));
        matches!(source, Some(StepTimeSource::Predicted { .. }))
    };
    view! {
        <EstimateFrame title="Evidence">
            // The sentence above the tabs says it of a predicted step time.
            <Show when=move || !is_predicted()>
                <p>{move || latest(plan).basis}</p>
            </Show>
            <EvidenceTable />
        </EstimateFrame>
    }
}

fn latest(plan: Plan) -> Prediction {
    plan.calculator.prediction.latest().map_or_else(Prediction::default, |prediction| (*prediction).clone())
}

/// Returns what memory a plan lacks that doesn't fit, as a sentence; none if it may fit.
pub(super) fn lack(plan: Plan) -> Option<String> {
    let prediction = plan.calculator.prediction.latest()?;
    (prediction.memory_verdict == MemoryVerdict::DoesNotFit).then(|| prediction.fit.clone())
}

/// The sign of a verdict about memory.
fn sign(verdict: MemoryVerdict) -> &'static str {
    match verdict {
        MemoryVerdict::Fits => "✓ ",
        MemoryVerdict::TooClose => "≈ ",
        MemoryVerdict::DoesNotFit => "✕ ",
    }
}

/// Whether the scenario fits its GPUs, in words, by a sign and by colour; only in words for a plan that is shown no more.
#[component]
pub(super) fn Fit() -> impl IntoView {
    let plan = Plan::of_page();
    let verdict = move || latest(plan).memory_verdict;
    view! {
        <Show when=move || plan.calculator.prediction.latest().is_some()>
            <p
                class="fit"
                class:stale=move || plan.is_outdated()
                class:outdated=move || plan.cannot_run()
                class:wrong=move || verdict() == MemoryVerdict::DoesNotFit
                class:doubtful=move || verdict() == MemoryVerdict::TooClose
                data-memory=move || verdict().id()
                aria-live="polite"
            >
                {move || match plan.cannot_run() {
                    true => view! { "The previous plan: " }.into_any(),
                    false => view! { <span aria-hidden="true">{sign(verdict())}</span> }.into_any(),
                }}
                {move || latest(plan).fit}
            </p>
            <Show when=move || !latest(plan).remedies.is_empty()>
                <div class="chips">
                    <span class="label">"Changes that make it fit"</span>
                    {move || latest(plan).remedies.into_iter().map(|remedy| view! {
                        <RemedyChip remedy />
                    }).collect_view()}
                </div>
            </Show>
        </Show>
    }
}

/// Returns the warnings of the launch, without one about memory that would only repeat what the estimate says.
pub(super) fn launch_warnings(plan: Plan) -> Vec<Warning> {
    let launched = plan.calculator.launch.latest();
    let Some(launch) = launched.as_ref().and_then(|launched| launched.launch.as_ref()) else {
        return Vec::new();
    };
    let repeats = launch.memory == latest(plan).memory_verdict;
    let is_new = |warning: &&Warning| !(repeats && warning.topic == WarningTopic::Memory);
    launch.warnings.iter().filter(is_new).cloned().collect()
}

/// Returns the warning that the plan doesn't fit with the software of its launch, although it fits by the estimate, or that its steps
/// take longer there.
pub(super) fn launch_misfit(plan: Plan) -> Option<Warning> {
    if latest(plan).memory_verdict == MemoryVerdict::DoesNotFit {
        return None;
    }
    let is_slower = plan.calculator.launch.latest()?.launch.as_ref()?.slowdown.is_some();
    let warnings = launch_warnings(plan);
    let of = |topic: WarningTopic| warnings.iter().find(|warning| warning.topic == topic);
    of(WarningTopic::Memory).or_else(|| of(WarningTopic::Software).filter(|_| is_slower)).cloned()
}

/// A warning if the launch uses other software than the estimate, in which the plan doesn't fit or is slower.
#[component]
pub(super) fn LaunchFit() -> impl IntoView {
    let plan = Plan::of_page();
    let warning = Memo::new(move |_| launch_misfit(plan));
    let change = move |_| {
        if let Some(warning) = warning.get_untracked() {
            plan.address.update(|spec| {
                for (flag, value) in &warning.settings {
                    if let Some(field) = Field::from_flag(flag) {
                        spec.set(field, value.as_str());
                    }
                }
            });
        }
    };
    view! {
        {move || warning.get().map(|warning| view! {
            <p
                class="fit launch-fit"
                class:wrong=warning.topic == WarningTopic::Memory
                class:doubtful=warning.topic != WarningTopic::Memory
                role="status"
            >
                <span aria-hidden="true">{if warning.topic == WarningTopic::Memory { "✕ " } else { "! " }}</span>
                {warning.text} " "
                <button type="button" class="chip" on:click=change>"Plan with the script's software"</button>
            </p>
        })}
    }
}

/// A button that makes a change with which the scenario fits.
#[component]
fn RemedyChip(remedy: Remedy) -> impl IntoView {
    let plan = Plan::of_page();
    let Remedy { title, changes } = remedy;
    let change = move |_| {
        plan.address.update(|spec| {
            for FieldChange { field, value } in &changes {
                spec.set(*field, value.clone());
            }
        });
    };
    view! { <button type="button" class="chip" on:click=change>{title}</button> }
}

/// The table of the measured runs behind the estimate.
#[component]
fn EvidenceTable() -> impl IntoView {
    let plan = Plan::of_page();
    /// The rows that are shown at first, nearest first.
    const FIRST: usize = 8;
    let runs = move || grouped(latest(plan).evidence);
    let is_whole = RwSignal::new(false);
    let shown = move || if is_whole.get() { usize::MAX } else { FIRST };
    let is_cut = move || runs().len() > shown();
    view! {
        <Show when=move || !runs().is_empty()>
            <div class="scroll" tabindex="0" role="region" aria-labelledby="evidence-title">
                <table class="cards evidence">
                    <caption id="evidence-title">"Nearest measured runs"</caption>
                    <thead>
                        <tr>
                            <th scope="col">"Run and layout"</th>
                            <th scope="col">"Measured by"</th>
                            <th scope="col" class="number">"Measured"</th>
                            <th scope="col" class="number">"Predicted without it"</th>
                            <th scope="col">"Similarity"</th>
                        </tr>
                    </thead>
                    <tbody>{move || runs().into_iter().take(shown()).filter_map(evidence_row).collect_view()}</tbody>
                </table>
            </div>
            <Show when=is_cut>
                <button type="button" class="link" on:click=move |_| is_whole.set(true)>
                    {move || format!("Show all {} rows", runs().len())}
                </button>
            </Show>
            <p class="basis">
                "Runs that differ only in their layouts share a row. "
                "Predicted without it: the step time that is predicted with every measurement of that run left out, and its error. "
                "A dash means that the run was not used to test predictions."
            </p>
        </Show>
    }
}

/// Returns the runs in groups that differ only in their layouts, each in the order of the runs.
fn grouped(runs: Vec<EvidenceRun>) -> Vec<Vec<EvidenceRun>> {
    let mut groups: Vec<Vec<EvidenceRun>> = Vec::new();
    for run in runs {
        let is_its = |group: &&mut Vec<EvidenceRun>| {
            let of = &group[0];
            of.what == run.what && of.closeness == run.closeness && releases(of) == releases(&run)
        };
        match groups.iter_mut().find(is_its) {
            Some(group) => group.push(run),
            None => groups.push(vec![run]),
        }
    }
    groups
}

/// Returns the releases that measured a run, each once.
fn releases(run: &EvidenceRun) -> Vec<&str> {
    let mut releases: Vec<&str> = run.runs.iter().map(|one| &*one.release).collect();
    releases.dedup();
    releases
}

/// The row of measured runs that differ only in their layouts, nearest first.
fn evidence_row(group: Vec<EvidenceRun>) -> Option<impl IntoView> {
    let [times, tokens] = measured(&group)?;
    let [without, error] = predicted_without(&group).unwrap_or_else(|| ["–".to_string(), String::new()]);
    let likeness = ValueRange::around(group.iter().map(|run| run.likeness))?;
    let (least, most) = (percent(likeness.low), percent(likeness.high));
    let similarity = if least == most { most } else { format!("{least} to {most}") };
    let mut runs = group.into_iter();
    let nearest = runs.next()?;
    let other_layouts: Vec<EvidenceRun> = runs.collect();
    let others = (!other_layouts.is_empty()).then(|| {
        let title = match other_layouts.len() {
            1 => "1 more layout".to_string(),
            count => format!("{count} more layouts"),
        };
        let line = |other: EvidenceRun| view! { <li>{other.layout} ": " {linked_times(other.runs)}</li> };
        view! {
            <details>
                <summary>{title}</summary>
                <ul class="plain">{other_layouts.into_iter().map(line).collect_view()}</ul>
            </details>
        }
    });
    Some(view! {
        <tr>
            <th scope="row">{nearest.what} " " <small>{nearest.layout}</small> {others}</th>
            <td data-label="Measured by">{linked_releases(nearest.runs)}</td>
            <td data-label="Measured" class="number">{times} " " <small>{tokens}</small></td>
            <td data-label="Predicted without it" class="number">{without} " " <small>{error}</small></td>
            <td data-label="Similarity">{similarity} " · " <small>{nearest.closeness.title()}</small></td>
        </tr>
    })
}

/// Returns the releases that measured a run, as links to their sources; with the step time if there are several.
fn linked_releases(runs: Vec<MeasuredRun>) -> AnyView {
    let is_one = runs.len() == 1;
    let mut lines = runs.into_iter().map(|run| {
        let time = (!is_one).then(|| format!(": {}", step_times(ValueRange::of(run.step_time_s))));
        view! { {linked(run.url, run.release)} {time} }
    });
    match is_one {
        true => lines.next().into_any(),
        false => {
            let lines = lines.map(|line| view! { <li>{line}</li> }).collect_view();
            view! { <ul class="plain">{lines}</ul> }.into_any()
        }
    }
}

/// Returns the step times of a run as links to their sources.
fn linked_times(runs: Vec<MeasuredRun>) -> impl IntoView {
    let times = runs.into_iter().enumerate().map(|(place, run)| {
        let comma = (place > 0).then_some(", ");
        view! { {comma} {linked(run.url, step_times(ValueRange::of(run.step_time_s)))} }
    });
    times.collect_view()
}

/// Returns a text as a link to a source, if its address is known.
fn linked(url: Option<String>, text: String) -> AnyView {
    match url {
        Some(url) => view! { <a href=url rel="external noopener noreferrer">{text}</a> }.into_any(),
        None => view! { <span>{text}</span> }.into_any(),
    }
}

/// Returns step times for people, with four digits, so that readers find the number in the source.
fn step_times(range: ValueRange) -> String {
    format!("{}\u{a0}s", range.readable(|seconds| significant(seconds, 4)))
}

/// Returns the step times of measured runs, and their tokens per second of each GPU; none without measurements.
fn measured(runs: &[EvidenceRun]) -> Option<[String; 2]> {
    let all = || runs.iter().flat_map(|run| &run.runs);
    let times = ValueRange::around(all().map(|run| run.step_time_s))?;
    let tokens = ValueRange::around(all().map(|run| run.tokens_per_s_per_gpu))?;
    Some([step_times(times), format!("{} tokens/s per GPU", tokens.readable(group_three_digits))])
}

/// Returns the step times that were predicted without the runs themselves, and their errors; none if no prediction was judged on
/// the runs.
fn predicted_without(runs: &[EvidenceRun]) -> Option<[String; 2]> {
    let judged = || {
        let all = runs.iter().flat_map(|run| &run.runs);
        all.filter_map(|run| Some((run.step_time_s, run.held_out_error?)))
    };
    let times = ValueRange::around(judged().map(|(measured_s, error)| measured_s * (1.0 + error)))?;
    let errors = ValueRange::around(judged().map(|(_, error)| error))?;
    let (low, high) = (signed_percent(errors.low), signed_percent(errors.high));
    Some([step_times(times), if low == high { low } else { format!("{low} to {high}") }])
}

/// Returns the predicted figures with their intervals, beside the published ones, else those of a typed step time, else those of the
/// measured run that was opened; none without any of these.
fn comparison(plan: Plan) -> Option<Table> {
    plan.scenario.with(|scenario| {
        let scenario = scenario.as_ref().ok()?;
        let latest = latest(plan);
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
    use crate::message::Part;
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

    fn evidence(what: &str, layout: &str, measured: &[(&str, f64, Option<f64>)]) -> EvidenceRun {
        let run = |(release, step_time_s, held_out_error): &(&str, f64, Option<f64>)| MeasuredRun {
            release: (*release).into(),
            step_time_s: *step_time_s,
            tokens_per_s_per_gpu: 40_960.0 / step_time_s,
            url: None,
            held_out_error: *held_out_error,
        };
        EvidenceRun {
            what: what.into(),
            layout: layout.into(),
            runs: measured.iter().map(run).collect(),
            closeness: Closeness::Distant,
            likeness: 0.04,
        }
    }

    #[test]
    fn measured_step_times_are_shown_beside_the_predictions_without_them() {
        let one = |error| [evidence("405B", "TP 4", &[("DGX Cloud 25.04", 12.374, error)])];
        assert_eq!(measured(&one(None)).unwrap(), ["12.37\u{a0}s", "3,310 tokens/s per GPU"]);
        assert_eq!(predicted_without(&one(None)), None);
        assert_eq!(predicted_without(&one(Some(0.0311))).unwrap(), ["12.76\u{a0}s", "+3.1 %"]);
        let several = [
            evidence("405B", "TP 4", &[("MLPerf 5.0", 10.0, Some(0.02)), ("MLPerf 5.1", 8.0, None)]),
            evidence("405B", "TP 8", &[("MLPerf 5.0", 12.5, Some(-0.02))]),
        ];
        assert_eq!(measured(&several).unwrap(), ["8–12.5\u{a0}s", "3,280–5,120 tokens/s per GPU"]);
        assert_eq!(predicted_without(&several).unwrap(), ["10.2–12.25\u{a0}s", "−2.0 % to +2.0 %"]);
    }

    #[test]
    fn runs_that_differ_only_in_their_layouts_share_a_row() {
        let once = [("MLPerf 5.0", 10.0, None)];
        let twice = [("MLPerf 5.0", 10.0, None), ("MLPerf 5.0", 11.0, None)];
        let groups = grouped(vec![
            evidence("405B on 512 B200", "TP 4", &once),
            evidence("70B on 64 B200", "TP 2", &once),
            evidence("405B on 512 B200", "TP 8", &twice),
            evidence("405B on 512 B200", "TP 1", &[("MLPerf 5.1", 10.0, None)]),
        ]);
        let layouts = |group: &Vec<EvidenceRun>| -> Vec<String> {
            group.iter().map(|run| run.layout.clone()).collect()
        };
        let layouts: Vec<Vec<String>> = groups.iter().map(layouts).collect();
        assert_eq!(layouts, [vec!["TP 4", "TP 8"], vec!["TP 2"], vec!["TP 1"]]);
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
