//! `trainplan estimate`: how long a step takes, and what a GPU must hold.

use super::output::{self, Format, FormatArg};
use super::recipes::BaselineRow;
use super::scenario::ScenarioArgs;
use super::{Failure, note};
use serde::Serialize;
use serde_json::{Map, Value};
use trainplan_shared::batch::Batch;
use trainplan_shared::estimate::{Basis, BasisKind, Breakdown, Interval, Memory, StageMemory};
use trainplan_shared::field::Field;
use trainplan_shared::flops::Convention;
use trainplan_shared::layout::Layout;
use trainplan_shared::options::{Options, Recompute};
use trainplan_shared::scenario::Scenario;
use trainplan_shared::spec::{Predicted, Remedy};
use trainplan_shared::units::{format_count, group_digits};

/// Predict step time and memory of any model, GPU and layout
///
/// The step time comes from a physical model fitted to measured runs, moved by measurements nearby where there are any;
/// four of five measurements are expected within its interval (docs/accuracy.md). Memory is counted, not fitted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan estimate --recipe llama3.1-405b/h100/fp8/512 --tokens 15T
  trainplan estimate --recipe llama3.1-70b/h100/fp8/256 --tp 8 --pp 2
  trainplan estimate --model qwen3-30b-a3b --gpu h100:hbm_gb=96 --gpus 64 --ep 8 --gbs 512
  trainplan estimate --model llama3.1-8b --gpu gb200 --gpus 64 --dtype mxfp8 --gbs 512 --mbs 2

Exit codes: 0 it fits; 2 invalid input; 3 it does not fit (the result is printed all the same).")]
pub(super) struct Args {
    /// Tokens to train
    #[arg(long, value_name = "N", default_value = "1T", allow_hyphen_values = true)]
    tokens: String,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// The contract of the command.
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
    time_to_train_days: Option<Interval>,
    /// Seconds; they add up to the middle of the step time.
    breakdown: &'a Breakdown,
    memory: MemoryOutput<'a>,
    fits: bool,
    basis: &'a Basis,
    /// What is published of this very scenario, as `recipes` prints it.
    baseline: Option<BaselineRow>,
    recipe: Option<String>,
    /// Predicted over published step time, less one.
    difference_from_baseline: Option<f64>,
    scenario: ScenarioOutput<'a>,
    /// Changes with which it would fit; none where it does.
    remedies: Vec<RemedyOutput>,
    warnings: &'a [String],
}

/// Bytes of the fullest GPU.
#[derive(Debug, Serialize)]
struct MemoryOutput<'a> {
    /// All tensors: what PyTorch calls max allocated.
    total_bytes: f64,
    capacity_bytes: f64,
    /// Taken besides tensors.
    reserved_bytes: f64,
    /// Left over; negative if it does not fit.
    margin_bytes: f64,
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

/// A change with which it would fit, and what a step then takes.
#[derive(Debug, Serialize)]
struct RemedyOutput {
    flags: String,
    step_time_s: f64,
}

impl From<&Remedy> for RemedyOutput {
    fn from(remedy: &Remedy) -> RemedyOutput {
        RemedyOutput { flags: remedy.to_string(), step_time_s: remedy.step_time_s }
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
    options: Map<String, Value>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let spec = self.scenario.spec()?.with(Field::Tokens, &self.tokens);
        let predicted = spec.estimate()?;
        predicted.warnings.iter().for_each(|warning| note(warning));
        match self.format.choose() {
            Format::Json => output::json(&contract(&predicted))?,
            Format::Csv => output::csv(["metric", "value"], flat(&predicted))?,
            Format::Table => table(&predicted)?,
        }
        if predicted.estimate.memory.fits() { Ok(()) } else { Err(Failure::DoesNotFit) }
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
        breakdown: &estimate.breakdown,
        memory: MemoryOutput {
            total_bytes: memory.total_bytes(),
            capacity_bytes: memory.capacity_bytes,
            reserved_bytes: memory.reserved_bytes,
            margin_bytes: memory.margin_bytes(),
            weights: peak.weights,
            gradients: peak.gradients,
            optimizer: peak.optimizer,
            activations: peak.activations,
            other: peak.logits + peak.buffers,
            stage: memory.peak_stage,
            stages: &memory.stages,
        },
        fits: memory.fits(),
        basis: &estimate.basis,
        baseline: predicted.published.map(|(_, baseline)| BaselineRow::new(baseline, scenario)),
        recipe: predicted.published.map(|(recipe, _)| recipe.id.to_string()),
        difference_from_baseline: predicted.off_published(),
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
            options: options(&scenario.options),
        },
        remedies: predicted.remedies.iter().map(RemedyOutput::from).collect(),
        warnings: &predicted.warnings,
    }
}

/// The options by the names of their flags.
fn options(options: &Options) -> Map<String, Value> {
    let named = [
        (Field::Recompute, options.recompute.to_string().into()),
        (Field::Fsdp, options.fsdp.into()),
        (Field::Overlap, options.overlap.into()),
        (Field::Stack, options.stack.to_string().into()),
        (Field::GemmTflops, options.gemm_tflops.into()),
        (Field::ClusterFactor, options.cluster_factor.into()),
    ];
    named.into_iter().map(|(field, value): (Field, Value)| (field.flag().replace('-', "_"), value)).collect()
}

/// Every number of the contract under a path of names.
fn flat(predicted: &Predicted) -> Vec<[String; 2]> {
    fn walk(path: &str, value: &Value, rows: &mut Vec<[String; 2]>) {
        let below = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, value)| walk(&below(name), value, rows)),
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
    // What serializes to a file serializes to a value.
    walk("", &serde_json::to_value(contract(predicted)).unwrap_or_default(), &mut rows);
    rows
}

fn table(predicted: &Predicted) -> Result<(), Failure> {
    let Predicted { scenario, estimate, .. } = predicted;
    output::text_line(&format!("{}\n", in_words(scenario)))?;
    output::table(["estimate", "", ""], &[1], headline(predicted))?;
    output::text_line(&format!("\n{}\n", basis(&estimate.basis)))?;
    let step_time_s = estimate.breakdown.step_time_s();
    let shares = estimate.breakdown.parts().map(|(part, seconds)| (part, seconds, seconds / step_time_s));
    let shown = shares.into_iter().filter(|(_, _, share)| *share >= 0.0005);
    output::table(
        ["where the step goes", "seconds", "share"],
        &[1, 2],
        shown.map(|(part, seconds, share)| {
            [part.to_string(), format!("{seconds:.3}"), format!("{:.1} %", share * 100.0)]
        }),
    )?;
    output::text_line("")?;
    memory(&estimate.memory)
}

/// The scenario in a line: what is meant, with all that follows from what was given.
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
    let mut words = vec![format!("{} on {} × {gpu}, {}", model.title, layout.gpus(), dtype.title())];
    words.extend(degrees.into_iter().filter(|(_, of)| *of > 1).map(|(name, of)| format!("{name} {of}")));
    words.push(format!("DP {}", layout.dp()));
    words.push(format!("MBS {}, GBS {}, GA {}", batch.mbs(), batch.gbs(), batch.ga()));
    words.push(format!("{} tokens, {} layers", batch.seq_len(), scenario.architecture.layers));
    words.extend((options.recompute != Recompute::None).then(|| format!("recompute {}", options.recompute)));
    words.extend(options.fsdp.then(|| "FSDP".to_string()));
    words.push(options.stack.title().to_string());
    format!("{}.", words.join(", "))
}

/// Name, value and what belongs to it.
fn headline(predicted: &Predicted) -> Vec<[String; 3]> {
    let Predicted { estimate, metrics, .. } = predicted;
    let ends = |interval: Interval| format!("{} to {}", rounded(interval.low), rounded(interval.high));
    let line = |name: &str, value: String, beside: String| [name.to_string(), value, beside];
    let step = estimate.step_time_s;
    let mut lines = vec![line("step time", format!("{} s", rounded(step.mid)), ends(step))];
    if let (Some((recipe, baseline)), Some(off)) = (predicted.published, predicted.off_published()) {
        let published = format!("{} s", rounded(baseline.step_time_s));
        lines.push(line("published", published, format!("{}: {}", recipe.id, percent(off))));
    }
    let per_gpu =
        metrics.tokens_per_s_per_gpu.map_or(String::new(), |per_gpu| format!("{per_gpu:.0} per GPU"));
    lines.push(line("tokens per second", group_digits(metrics.tokens_per_s), per_gpu));
    if let (Some(mfu), Some(convention), Some(peak)) = (metrics.mfu, metrics.convention, metrics.peak_tflops)
    {
        let counted = format!("convention {convention}, of {peak} TFLOPS");
        lines.push(line("MFU", format!("{:.1} %", mfu * 100.0), counted));
    }
    if let Some(days) = predicted.time_to_train_days {
        let name = format!("days for {} tokens", format_count(metrics.tokens));
        lines.push(line(&name, rounded(days.mid), ends(days)));
    }
    lines
}

/// A difference in percent, without a sign where it shows as 0.
fn percent(difference: f64) -> String {
    let percent = format!("{:+.1} %", difference * 100.0);
    if percent.trim_start_matches(['+', '-']) == "0.0 %" { "0.0 %".into() } else { percent }
}

/// A time with as many decimals as it is worth.
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

/// What the step time rests on, as a sentence.
fn basis(basis: &Basis) -> String {
    let moved = percent(basis.correction - 1.0);
    let nearest: Vec<&str> = basis.anchors.iter().take(2).map(|anchor| &*anchor.what).collect();
    let nearest = nearest.join("; ");
    match (basis.kind, nearest.is_empty()) {
        (BasisKind::Published, _) => {
            format!("Rests on measurements of this very mapping, which move the model by {moved}: {nearest}.")
        }
        (BasisKind::Interpolated, _) => {
            format!(
                "Rests on measurements of this shape on such GPUs, which move the model by {moved}; nearest: {nearest}."
            )
        }
        (BasisKind::Modelled, false) => {
            format!(
                "Rests on the physical model, moved by {moved} by measurements of this shape that are further off: {nearest}."
            )
        }
        (BasisKind::Modelled, true) => {
            "Rests on the physical model alone: nobody measured this shape.".into()
        }
    }
}

/// GiB by stage, those that are alike together.
fn memory(memory: &Memory) -> Result<(), Failure> {
    let gib = |bytes: f64| format!("{:.2}", bytes / f64::from(1 << 30));
    let mut rows: Vec<(usize, usize, &StageMemory)> = Vec::new();
    for (index, stage) in memory.stages.iter().enumerate() {
        match rows.last_mut() {
            Some((_, last, alike)) if **alike == *stage => *last = index,
            _ => rows.push((index, index, stage)),
        }
    }
    let lines = rows.into_iter().map(|(first, last, stage)| {
        let fullest = (first..=last).contains(&memory.peak_stage);
        let name = match last - first {
            _ if memory.stages.len() == 1 => "every GPU".to_string(),
            0 => format!("{}", first + 1),
            _ => format!("{}–{}", first + 1, last + 1),
        };
        [
            if fullest && memory.stages.len() > 1 { format!("{name}, fullest") } else { name },
            gib(stage.weights),
            gib(stage.gradients),
            gib(stage.optimizer),
            gib(stage.activations),
            gib(stage.logits + stage.buffers),
            gib(stage.total()),
        ]
    });
    let header = ["stage, GiB", "weights", "gradients", "optimizer", "activations", "other", "total"];
    output::table(header, &[1, 2, 3, 4, 5, 6], lines)?;
    let (reserved, capacity) = (gib(memory.reserved_bytes), gib(memory.capacity_bytes));
    let margin = memory.margin_bytes();
    let verdict = if memory.fits() {
        format!("fits, {} GiB to spare", gib(margin))
    } else {
        format!("does not fit, {} GiB too much", gib(-margin))
    };
    output::text_line(&format!("\n{reserved} GiB are taken besides, of {capacity} GiB: {verdict}."))
}
