//! `trainplan estimate`: predicts step time and memory.

use super::fields::field_args;
use super::output::{self, Format, FormatArg};
use super::recipes::BaselineRow;
use super::scenario::ScenarioArgs;
use super::{Failure, note};
use serde::Serialize;
use serde_json::{Map, Value, json};
use trainplan_shared::batch::Batch;
use trainplan_shared::catalog::ParameterCounts;
use trainplan_shared::convention::Convention;
use trainplan_shared::cost::{PriceSource, RunCost};
use trainplan_shared::estimate::{
    Anchor, Breakdown, Estimate, Evidence, Interval, MemoryEstimate, MemoryVerdict, StageMemory,
};
use trainplan_shared::field::{Field, FieldGroup};
use trainplan_shared::layout::Layout;
use trainplan_shared::message::Message;
use trainplan_shared::options::{Recompute, TrainingOptions};
use trainplan_shared::planning::{Predicted, Remedy, RunPlan};
use trainplan_shared::range::ValueRange;
use trainplan_shared::scenario::Scenario;
use trainplan_shared::tables::cells;
use trainplan_shared::units::{
    duration_range, group_digits, percent, readable, readable_days, readable_range, short_count, signed,
    signed_percent, significant, time_unit,
};

/// Predict step time and memory of any model, GPU and layout
///
/// The step time comes from a physical model that was fitted to measured runs. The prediction is then corrected
/// with measurements of similar runs of the same model. Its interval is wide enough to contain 80 % of measurements
/// (docs/accuracy.md). The memory estimate adds up the sizes of the tensors; nothing in it is fitted.
///
/// The section "whole run" adds failures, checkpoints, cost and energy. It rests on published failure rates, prices and
/// power, which the flags under "Whole run" replace.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan estimate --recipe llama3.1-405b/h100/fp8/512 --tokens 15T
  trainplan estimate --recipe llama3.1-70b/h100/fp8/256 --tp 8 --pp 2
  trainplan estimate --recipe llama3.1-70b/h100/fp8/256 --tokens 15T --price 1.99..2.95 --restart-time 5m
  trainplan estimate --model qwen3-30b-a3b --gpu h100:hbm_gb=96 --gpus 64 --ep 8 --gbs 512
  trainplan estimate --model llama3.1-8b --gpu gb200 --gpus 64 --dtype mxfp8 --gbs 512 --mbs 2

Exit codes: 0 fits, or is too close to call; 2 invalid input; 3 does not fit (the result is printed).")]
pub(super) struct Args {
    /// Tokens to train, from 1M to 1,000T, such as 15T
    #[arg(long, value_name = "N", default_value = "1T")]
    tokens: String,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    whole_run: WholeRunArgs,
    #[command(flatten)]
    format: FormatArg,
}

field_args! {
    /// Failures, checkpoints, prices and power.
    WholeRunArgs, "Whole run", Field::of_group(FieldGroup::Goal).filter(|field| field.is_of_whole_run())
}

/// The JSON output of this command: the prediction and the whole run.
#[derive(Debug, Serialize)]
struct EstimateOutput<'a> {
    #[serde(flatten)]
    prediction: Output<'a>,
    /// Null for a proxy.
    whole_run: Option<&'a RunPlan>,
}

/// The prediction in JSON.
#[derive(Debug, Serialize)]
pub(super) struct Output<'a> {
    step_time_s: Interval,
    tokens_per_s: f64,
    tokens_per_s_per_gpu: Option<f64>,
    mfu: Option<f64>,
    convention: Option<Convention>,
    peak_tflops: Option<f64>,
    tflops_per_gpu: Option<f64>,
    tokens: f64,
    /// Without failures; `whole_run.days` counts them.
    time_to_train_days: Option<Interval>,
    breakdown: BreakdownOutput<'a>,
    memory: MemoryOutput<'a>,
    /// Whether it fits by the estimate, however small the margin.
    fits: bool,
    /// Whether it fits, if the estimate may be off by `memory.error_bytes`.
    verdict: MemoryVerdict,
    basis: &'a Evidence,
    /// The published measurement of this scenario, as `recipes` prints it.
    baseline: Option<BaselineRow>,
    recipe: Option<String>,
    /// Predicted over published step time, minus 1.
    difference_from_baseline: Option<f64>,
    /// The error of the prediction of the published run without any measurement of its mapping.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out_error: Option<f64>,
    scenario: ScenarioOutput<'a>,
    /// Changes that make it fit; empty if it fits.
    remedies: Vec<RemedyOutput>,
    warnings: &'a [Message],
}

/// Seconds that add up to the predicted step time.
#[derive(Debug, Serialize)]
struct BreakdownOutput<'a> {
    /// The parts by the physical model.
    #[serde(flatten)]
    parts: &'a Breakdown,
    /// What measured runs add to their sum; negative if they are faster.
    correction: f64,
}

/// Memory of the fullest GPU, in bytes.
#[derive(Debug, Serialize)]
struct MemoryOutput<'a> {
    /// All tensors: PyTorch's max allocated.
    total_bytes: f64,
    capacity_bytes: f64,
    /// CUDA context, NCCL buffers and fragmentation.
    reserved_bytes: f64,
    /// Free memory; negative if it does not fit.
    margin_bytes: f64,
    /// How far the need may be off.
    error_bytes: f64,
    weights: f64,
    gradients: f64,
    optimizer: f64,
    activations: f64,
    /// Logits and buffers.
    other: f64,
    /// The fullest pipeline stage, counted from 0.
    stage: usize,
    stages: &'a [StageMemory],
}

/// Changes that make it fit, and the step time with them.
#[derive(Debug, Serialize)]
struct RemedyOutput {
    flags: String,
    step_time_s: f64,
}

impl From<&Remedy> for RemedyOutput {
    fn from(remedy: &Remedy) -> RemedyOutput {
        RemedyOutput { flags: remedy.changes(" ").to_string(), step_time_s: remedy.step_time_s }
    }
}

#[derive(Debug, Serialize)]
struct ScenarioOutput<'a> {
    model: &'a str,
    gpu: &'a str,
    dtype: String,
    gpus: u32,
    layout: &'a Layout,
    dp: u32,
    seq_len: u32,
    mbs: u32,
    gbs: u32,
    ga: u32,
    layers: u32,
    parameters: ParameterCounts,
    options: Map<String, Value>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let scenario = self.scenario.spec()?.with(Field::Tokens, &self.tokens);
        let spec = self.whole_run.0.iter().fold(scenario, |spec, (field, text)| spec.with(field, text));
        let (predicted, plan) = spec.estimate_run()?;
        let output = || EstimateOutput { prediction: contract(&predicted), whole_run: plan.as_ref() };
        let never_ends = plan.as_ref().and_then(|plan| plan.never_ends.as_ref());
        predicted.warnings.iter().chain(never_ends).for_each(|warning| note(&warning.to_string()));
        match self.format.choose() {
            Format::Json => output::json(&output())?,
            Format::Csv => output::csv(["metric", "value"], flat(&output()))?,
            Format::Table => table(&predicted, plan.as_ref())?,
        }
        match predicted.estimate.memory.verdict() {
            MemoryVerdict::Fits | MemoryVerdict::TooClose => Ok(()),
            MemoryVerdict::DoesNotFit => Err(Failure::DoesNotFit),
        }
    }
}

pub(super) fn contract(predicted: &Predicted) -> Output<'_> {
    let Predicted { scenario, estimate, metrics, .. } = predicted;
    let memory = &estimate.memory;
    let peak = memory.peak();
    let batch: &Batch = &scenario.batch;
    Output {
        step_time_s: estimate.step_time_s,
        tokens_per_s: metrics.tokens_per_s,
        tokens_per_s_per_gpu: metrics.tokens_per_s_per_gpu,
        mfu: metrics.mfu,
        convention: metrics.convention,
        peak_tflops: metrics.peak_tflops,
        tflops_per_gpu: metrics.tflops_per_gpu,
        tokens: metrics.tokens,
        time_to_train_days: predicted.time_to_train_days,
        breakdown: BreakdownOutput { parts: &estimate.breakdown, correction: estimate.correction_s() },
        memory: MemoryOutput {
            total_bytes: memory.total_bytes(),
            capacity_bytes: memory.capacity_bytes,
            reserved_bytes: memory.reserved_bytes,
            margin_bytes: memory.margin_bytes(),
            error_bytes: memory.error_bytes,
            weights: peak.weights,
            gradients: peak.gradients,
            optimizer: peak.optimizer,
            activations: peak.activations,
            other: peak.logits + peak.buffers,
            stage: memory.peak_stage,
            stages: &memory.stages,
        },
        fits: memory.fits(),
        verdict: memory.verdict(),
        basis: &estimate.evidence,
        baseline: predicted.published.map(|(_, baseline)| BaselineRow::new(baseline, scenario)),
        recipe: predicted.published.map(|(recipe, _)| recipe.id.to_string()),
        difference_from_baseline: predicted.off_published(),
        held_out_error: predicted.held_out_error(),
        scenario: ScenarioOutput {
            model: &scenario.model.id,
            gpu: &scenario.gpu.id,
            dtype: scenario.dtype.to_string(),
            gpus: scenario.layout.gpus(),
            layout: &scenario.layout,
            dp: scenario.layout.dp(),
            seq_len: batch.seq_len(),
            mbs: batch.mbs(),
            gbs: batch.gbs(),
            ga: batch.ga(),
            layers: scenario.architecture.layers,
            parameters: scenario.model.parameters_of(&scenario.architecture),
            options: options(&scenario.options),
        },
        remedies: predicted.remedies.iter().map(RemedyOutput::from).collect(),
        warnings: &predicted.warnings,
    }
}

/// The options by flag.
fn options(options: &TrainingOptions) -> Map<String, Value> {
    let named = [
        (Field::Recompute, options.recompute.to_string().into()),
        (Field::OffloadLayers, options.offload_layers.into()),
        (Field::Fsdp, options.fsdp.into()),
        (Field::Overlap, options.overlap.into()),
        (Field::Stack, options.software.to_string().into()),
        (Field::GemmTflops, options.gemm_tflops.into()),
        (Field::ClusterFactor, (!options.cluster.is_default()).then(|| options.cluster.to_string()).into()),
    ];
    let switches = ("switches".to_owned(), json!(options.switches));
    let named =
        named.into_iter().map(|(field, value): (Field, Value)| (field.flag().replace('-', "_"), value));
    named.chain([switches]).collect()
}

/// Every value of the JSON output under its path, without derivations.
fn flat(output: &EstimateOutput<'_>) -> Vec<[String; 2]> {
    fn walk(path: &str, value: &Value, rows: &mut Vec<[String; 2]>) {
        let below = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match value {
            Value::Object(fields) => {
                let fields = fields.iter().filter(|(name, _)| *name != "explain");
                fields.for_each(|(name, value)| walk(&below(name), value, rows));
            }
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(index, item)| walk(&below(&index.to_string()), item, rows));
            }
            Value::Null => rows.push([path.to_string(), String::new()]),
            Value::String(text) => rows.push([path.to_string(), text.clone()]),
            other => rows.push([path.to_string(), other.to_string()]),
        }
    }
    let mut rows = Vec::new();
    walk("", &serde_json::to_value(output).unwrap_or_default(), &mut rows);
    rows
}

fn table(predicted: &Predicted, plan: Option<&RunPlan>) -> Result<(), Failure> {
    let Predicted { scenario, estimate, .. } = predicted;
    output::prose(&format!("{}\n", in_words(scenario)))?;
    output::table(["estimate", "", ""], &[1], headline(predicted, plan))?;
    output::prose(&format!("\n{}\n", evidence(&estimate.evidence)))?;
    output::table(["step time", "seconds", "share"], &[1, 2], step_parts(estimate))?;
    output::text_line("")?;
    memory(&estimate.memory)?;
    let Some(plan) = plan else { return Ok(()) };
    output::text_line("")?;
    output::table(["whole run", "", ""], &[1], whole_run(plan, &scenario.gpu.name))
}

/// Name, seconds and share of each part of the step time by the physical model, then how measured runs correct their sum. Shares
/// are those of the model's step time, so that the last one is the correction that the evidence names.
fn step_parts(estimate: &Estimate) -> Vec<[String; 3]> {
    let modelled_s = estimate.breakdown.step_time_s();
    let is_shown = |seconds: f64| seconds.abs() >= 0.0005 * modelled_s;
    let parts = estimate.breakdown.parts().into_iter().filter(|(_, seconds)| is_shown(*seconds));
    let mut lines: Vec<[String; 3]> = parts
        .map(|(part, seconds)| {
            let share = format!("{:.1} %", seconds / modelled_s * 100.0);
            [part.title().to_string(), format!("{seconds:.3}"), share]
        })
        .collect();
    let correction_s = estimate.correction_s();
    if is_shown(correction_s) {
        let share = signed_percent(correction_s / modelled_s);
        lines.push(["Correction by measured runs".to_string(), signed(correction_s, 3), share]);
    }
    lines
}

/// Name, range and source of what the whole run takes.
fn whole_run(plan: &RunPlan, gpu: &str) -> Vec<[String; 3]> {
    let line = |name: &str, value: String, comment: String| [name.to_string(), value, comment];
    let time = &plan.time;
    let undisturbed = time.days_undisturbed;
    let whole = |range: ValueRange| range.readable(readable);
    let minutes = ValueRange::between(time.low.save_interval_s, time.high.save_interval_s).times(1.0 / 60.0);
    let terabytes = significant(time.checkpoint_bytes / 1e12, 3);
    let (without, of_day) = time_unit(undisturbed.mid);
    let (with, time_with, range) = expected_time(plan);
    let mut lines = vec![
        line(
            &format!("{without} without failures"),
            readable_days(undisturbed.mid * of_day),
            duration_range(undisturbed.mid, (undisturbed.low, undisturbed.high)),
        ),
        line(
            &format!("{with} with failures"),
            time_with,
            format!("{range}; goodput {} %", whole(plan.goodput.times(100.0))),
        ),
        line("failures", plan.failures.readable(rough), plan.failure_rate_source.clone()),
        line(
            "minutes between saves",
            minutes.readable(rough),
            format!("{terabytes} TB in {} s each", readable(time.save_s)),
        ),
    ];
    lines.extend(plan.costs.iter().map(|cost| cost_line(cost, &plan.currency)));
    if plan.costs.is_empty() {
        let comment = format!("no published price of the {gpu}: set --price");
        lines.push(line("cost", "unknown".to_string(), comment));
    }
    let energy = format!("{} MWh", whole(plan.energy.mwh));
    lines.push(line("energy", energy, plan.energy.power.note()));
    lines
}

/// The unit that suits the expected time with failures, and the time and its range in this unit. The time is infinite if a failure
/// precedes every save.
fn expected_time(plan: &RunPlan) -> (&'static str, String, String) {
    let (unit, of_day) = time_unit(plan.expected_days);
    let text = |range: ValueRange| range.times(of_day).readable(readable_days);
    (unit, text(ValueRange::of(plan.expected_days)), text(plan.days))
}

/// An expected count or a coarse time: two significant digits below 10, whole numbers above.
fn rough(value: f64) -> String {
    if value >= 10.0 { group_digits(value) } else { significant(value, 2) }
}

/// An amount below a million, in whole thousands from 100,000 on.
fn thousands(value: f64) -> String {
    group_digits(if value >= 1e5 { (value / 1e3).round() * 1e3 } else { value })
}

/// The cost at one price, with its source.
fn cost_line(cost: &RunCost, currency: &str) -> [String; 3] {
    let name = match cost.price.source {
        PriceSource::Assumed { form, .. } => format!("cost, {}", form.title().to_lowercase()),
        PriceSource::Yours => "cost".to_string(),
    };
    let total = match cost.total.high >= 1e6 {
        true => format!("{} million {currency}", cost.total.times(1e-6).readable(readable)),
        false => format!("{} {currency}", cost.total.readable(thousands)),
    };
    let price = cost.price.per_gpu_hour.readable(|price| format!("{price:.2}"));
    let quotes = if cost.price.is_single_quote() { " (one quote)" } else { "" };
    [name, total, format!("{price} per GPU-hour{quotes}, {}", cost.price.note())]
}

/// The scenario in one line, including derived values.
pub(super) fn in_words(scenario: &Scenario) -> String {
    let Scenario { model, gpu, dtype, layout, batch, options, .. } = scenario;
    let degrees = [
        ("TP", layout.tp()),
        ("PP", layout.pp()),
        ("VP", layout.vp()),
        ("CP", layout.cp()),
        ("EP", layout.ep()),
        ("expert TP", layout.expert_tp()),
    ];
    let gpu = if gpu.id.contains(':') { &gpu.id } else { &gpu.name };
    let parameters = model.parameters_of(&scenario.architecture);
    let mut words =
        vec![format!("{} ({parameters}) on {} × {gpu}, {}", model.title, layout.gpus(), dtype.title())];
    words.extend(degrees.into_iter().filter(|(_, of)| *of > 1).map(|(name, of)| format!("{name} {of}")));
    words.push(format!("DP {}", layout.dp()));
    words.push(format!("MBS {}, GBS {}, GA {}", batch.mbs(), batch.gbs(), batch.ga()));
    words.push(format!("{} tokens, {} layers", batch.seq_len(), scenario.architecture.layers));
    words.extend((options.recompute != Recompute::None).then(|| format!("recompute {}", options.recompute)));
    words.extend(options.memory_savings());
    words.push(options.software.title());
    words.extend(options.switches.in_words().map(str::to_owned));
    let factors = options.cluster.with_own_runs(None);
    words.extend((!factors.is_neutral()).then(|| format!("cluster factors {factors}")));
    format!("{}.", words.join(", "))
}

/// Name, value and interval or comment. The days are those of a search: with failures, unless it is a proxy, which has no whole run.
fn headline(predicted: &Predicted, plan: Option<&RunPlan>) -> Vec<[String; 3]> {
    let Predicted { estimate, metrics, .. } = predicted;
    let line = |name: &str, value: String, comment: String| [name.to_string(), value, comment];
    let step = estimate.step_time_s;
    let interval = readable_range((step.low, step.high), readable);
    let mut lines = vec![line("step time", format!("{} s", readable(step.mid)), interval)];
    if let (Some((recipe, baseline)), Some(off)) = (predicted.published, predicted.off_published()) {
        let published = format!("{} s", readable(baseline.step_time_s));
        let recipe = cells::recipe(&recipe.id);
        let comment = match predicted.held_out_error() {
            Some(error) => format!("{recipe}; predicted without this run: {}", signed_percent(error)),
            None => format!("{recipe}: {}", signed_percent(off)),
        };
        lines.push(line("published", published, comment));
    }
    let per_gpu = metrics
        .tokens_per_s_per_gpu
        .map_or(String::new(), |per_gpu| format!("{} per GPU", readable(per_gpu)));
    lines.push(line("tokens per second", group_digits(metrics.tokens_per_s), per_gpu));
    if let (Some(mfu), Some(convention), Some(peak)) = (metrics.mfu, metrics.convention, metrics.peak_tflops)
    {
        let comment = format!("convention {convention}, peak {peak} TFLOPS");
        lines.push(line("MFU", percent(mfu), comment));
    }
    let name = |unit: &str| format!("{unit} for {} tokens", short_count(metrics.tokens));
    match (plan, predicted.time_to_train_days) {
        (Some(plan), _) => {
            let (unit, time, range) = expected_time(plan);
            lines.push(line(&name(unit), time, format!("{range}, with failures")));
        }
        (None, Some(days)) => {
            let (unit, of_day) = time_unit(days.mid);
            let range = duration_range(days.mid, (days.low, days.high));
            let time = readable_days(days.mid * of_day);
            lines.push(line(&name(unit), time, format!("{range}, without failures")));
        }
        (None, None) => {}
    }
    lines
}

/// Formats a time with about four significant digits.
pub(super) fn rounded(value: f64) -> String {
    let decimals = match value {
        ..1.0 => 4,
        ..10.0 => 3,
        ..100.0 => 2,
        ..1000.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// The summary of the evidence, with the two nearest measurements and their held-out errors.
fn evidence(evidence: &Evidence) -> String {
    let nearest: Vec<String> = evidence.anchors.iter().take(2).map(Anchor::line).collect();
    match nearest.is_empty() {
        true => evidence.summary(),
        false => format!("{} Nearest: {}.", evidence.summary(), nearest.join("; ")),
    }
}

/// Prints the memory of each stage, equal neighbours together, and whether it fits.
fn memory(memory: &MemoryEstimate) -> Result<(), Failure> {
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    let lines = memory.stage_groups(0.0).into_iter().map(|group| {
        let is_fullest = group.stages > 1 && (group.first..=group.last).contains(&memory.peak_stage);
        let stage = &group.memory;
        let other = stage.logits + stage.buffers;
        let parts =
            [stage.weights, stage.gradients, stage.optimizer, stage.activations, other, stage.total()];
        let [weights, gradients, optimizer, activations, other, total] =
            parts.map(|bytes| format!("{:.2}", gib(bytes)));
        let title = if is_fullest { format!("{} (fullest)", group.title()) } else { group.title() };
        [title, weights, gradients, optimizer, activations, other, total]
    });
    let header = ["GiB per GPU", "weights", "gradients", "optimizer", "activations", "other", "total"];
    output::table(header, &[1, 2, 3, 4, 5, 6], lines)?;
    let margin = gib(memory.margin_bytes());
    let margin =
        if margin < 0.0 { format!("{:.1} GiB over", -margin) } else { format!("{margin:.1} GiB free") };
    let verdict = match memory.verdict() {
        MemoryVerdict::Fits => format!("fits, {margin}"),
        MemoryVerdict::TooClose => {
            format!("too close to call, {margin}, ± {:.1} GiB", gib(memory.error_bytes))
        }
        MemoryVerdict::DoesNotFit => format!("does not fit, {margin}"),
    };
    output::prose(&format!(
        "\nPlus {:.2} GiB reserved (CUDA, NCCL, fragmentation). Needs {:.1} of {:.1} GiB: {verdict}.",
        gib(memory.reserved_bytes),
        gib(memory.needed_bytes()),
        gib(memory.capacity_bytes),
    ))
}
