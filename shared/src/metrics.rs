//! Metrics: tokens per second, MFU and days to train from a step time, with the arithmetic of the documents.

use crate::catalog::Catalog;
use crate::convention::Convention;
use crate::explain::Line;
use crate::flops::ModelFlops;
use crate::scenario::Scenario;
use crate::units::{DAY_S, TERA, format_count, group_digits, significant};
use serde::Serialize;

/// Tokens to train where none are given: 10¹².
pub const DEFAULT_TOKENS: f64 = 1e12;

/// The dense peak that an MFU divides by, and its source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PeakTflops {
    /// TFLOPS.
    pub tflops: f64,
    /// The source, for people.
    pub source: String,
}

impl PeakTflops {
    /// Returns the peak in the recipe's document, or of published recipes on that GPU, or of the datasheet.
    pub fn of(scenario: &Scenario) -> PeakTflops {
        let Scenario { gpu, dtype, .. } = scenario;
        let document = scenario.recipe.and_then(|recipe| {
            Catalog::embedded()
                .document_peak(recipe.id.release, &scenario.model.id, &gpu.id, *dtype)
                .map(|peak| (recipe, peak))
        });
        if let Some((recipe, peak)) = document {
            // A document of every model has no family.
            let family = if peak.family.is_empty() { String::new() } else { format!("{} ", peak.family) };
            let mut source = format!("the {family}document of release {}", recipe.id.release);
            if peak.stated_tflops != peak.used_tflops {
                source += &format!(
                    ", whose results imply {} although it states {}",
                    peak.used_tflops, peak.stated_tflops
                );
            }
            return PeakTflops { tflops: peak.used_tflops, source };
        }
        let tflops = gpu.mfu_tflops(*dtype);
        let source = match (gpu.recipe_tflops(*dtype), gpu.datasheet_tflops(*dtype)) {
            (Some(_), Some(datasheet)) if datasheet != tflops => {
                format!("NVIDIA's published recipes; the datasheet has {}", group_digits(datasheet))
            }
            (Some(_), _) => "NVIDIA's published recipes".to_string(),
            (None, Some(_)) => "the datasheet, dense".to_string(),
            (None, None) => "the datasheet's BF16 peak".to_string(),
        };
        PeakTflops { tflops, source }
    }
}

/// The metrics of a step time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    /// Seconds per step.
    pub step_time_s: f64,
    /// Tokens per second of all GPUs.
    pub tokens_per_s: f64,
    /// Tokens per second of one GPU.
    pub tokens_per_s_per_gpu: Option<f64>,
    /// Model FLOPs utilization, a fraction.
    pub mfu: Option<f64>,
    /// How its FLOPs are counted.
    pub convention: Option<Convention>,
    /// The peak it divides by, TFLOPS.
    pub peak_tflops: Option<f64>,
    /// Model FLOPs per second and GPU, in TFLOPS.
    pub tflops_per_gpu: Option<f64>,
    /// Tokens to train.
    pub tokens: f64,
    /// Days to train them without interruption; none for a proxy.
    pub time_to_train_days: Option<f64>,
    /// The derivation.
    pub explain: Vec<Line>,
}

impl Metrics {
    /// Returns the metrics of a scenario's step time and a number of tokens to train.
    pub fn new(scenario: &Scenario, step_time_s: f64, tokens: f64) -> Metrics {
        let (batch, gpus) = (&scenario.batch, f64::from(scenario.layout.gpus()));
        let mut metrics = Metrics::of_tokens(batch.seq_len(), batch.gbs(), step_time_s, tokens);
        let flops = ModelFlops::of(scenario);
        let peak = PeakTflops::of(scenario);
        let per_sequence = flops.for_mfu();
        let gbs = f64::from(batch.gbs());

        let tokens_per_s_per_gpu = metrics.tokens_per_s / gpus;
        let tflops_per_gpu = gbs * per_sequence / step_time_s / gpus / TERA;
        let mfu = gbs * per_sequence / step_time_s / gpus / (peak.tflops * TERA);
        let (flops_text, step_text) = (significant(per_sequence, 6), significant(step_time_s, 6));
        metrics.explain.extend(flops.explain.last().cloned());
        if let Some(document) = &flops.document {
            metrics.explain.push(
                Line::new("model FLOPs of the document", "", "", document.value, "FLOPs/sequence")
                    .note("what the document divides by"),
            );
        }
        metrics.explain.extend([
            Line::new(
                "tokens per second and GPU",
                "tokens per second / GPUs",
                format!("{} / {gpus}", group_digits(metrics.tokens_per_s)),
                tokens_per_s_per_gpu,
                "tokens/s",
            ),
            Line::new(
                "TFLOPS per GPU",
                "GBS · model FLOPs / step time / GPUs / 10¹²",
                format!("{gbs} · {flops_text} / {step_text} / {gpus} / 10¹²"),
                tflops_per_gpu,
                "TFLOPS",
            ),
            Line::new(
                "MFU",
                "GBS · model FLOPs / step time / GPUs / peak",
                format!("{gbs} · {flops_text} / {step_text} / {gpus} / {}·10¹²", peak.tflops),
                mfu * 100.0,
                "%",
            )
            .note(format!("convention: {}; peak: {}", flops.convention, peak.source)),
        ]);
        if scenario.is_proxy() {
            metrics.time_to_train_days = None;
            metrics.explain.retain(|line| line.unit != "days");
        }
        Metrics {
            tokens_per_s_per_gpu: Some(tokens_per_s_per_gpu),
            mfu: Some(mfu),
            convention: Some(flops.convention),
            peak_tflops: Some(peak.tflops),
            tflops_per_gpu: Some(tflops_per_gpu),
            ..metrics
        }
    }

    /// What can be said without knowing model and GPUs.
    pub fn of_tokens(seq_len: u32, gbs: u32, step_time_s: f64, tokens: f64) -> Metrics {
        let tokens_per_s = f64::from(seq_len) * f64::from(gbs) / step_time_s;
        let time_to_train_days = tokens / tokens_per_s / DAY_S;
        let explain = vec![
            Line::new(
                "tokens per second",
                "s · GBS / step time",
                format!("{seq_len} · {gbs} / {}", significant(step_time_s, 6)),
                tokens_per_s,
                "tokens/s",
            ),
            Line::new(
                "days to train",
                "tokens / tokens per second / 86400",
                format!("{} / {} / 86400", format_count(tokens), group_digits(tokens_per_s)),
                time_to_train_days,
                "days",
            ),
        ];
        Metrics {
            step_time_s,
            tokens_per_s,
            tokens_per_s_per_gpu: None,
            mfu: None,
            convention: None,
            peak_tflops: None,
            tflops_per_gpu: None,
            tokens,
            time_to_train_days: Some(time_to_train_days),
            explain,
        }
    }

    /// Returns a warning if the step time is impossible.
    pub fn warning(&self) -> Option<String> {
        let mfu = self.mfu.filter(|mfu| *mfu > 1.0)?;
        let step_time_s = significant(self.step_time_s, 6);
        Some(format!(
            "A step time of {step_time_s} s is impossible: its MFU would be {:.0} %, above the GPU's peak.",
            mfu * 100.0
        ))
    }

    /// Returns the step time, in seconds, at which a scenario has an MFU (a fraction).
    pub fn step_time_at(scenario: &Scenario, mfu: f64) -> f64 {
        let (gbs, gpus) = (f64::from(scenario.batch.gbs()), f64::from(scenario.layout.gpus()));
        gbs * ModelFlops::of(scenario).for_mfu() / gpus / (PeakTflops::of(scenario).tflops * TERA) / mfu
    }
}
