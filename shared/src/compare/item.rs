//! One run of a comparison, with its figures.

use super::Options;
use crate::convention::Convention;
use crate::field::Field;
use crate::log::{Log, Span, Stat, Status};
use crate::result::{Against, AgainstPlan, Comparable, Loss, Memory, RunResult, Seen};
use crate::statistics::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A run, under the names that a report has for its figures. Everything that is not known is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Item {
    /// What to call it: no other run of the comparison has the same.
    pub label: String,
    /// The result's id.
    pub id: String,
    /// The log's path as given.
    pub path: String,
    /// The campaign that lists it, where we carried it out; so the next three.
    pub campaign: Option<String>,
    /// Its name there.
    pub run: Option<String>,
    /// Which of its repeats, from 1.
    pub repeat: Option<u32>,
    /// The cluster.
    pub cluster: Option<String>,
    /// The published recipe that it is a run of, if it is one.
    pub recipe: Option<String>,
    /// The release that made it, or whose rules its log follows.
    pub release: Option<String>,
    /// How many GPUs.
    pub gpus: Option<u32>,
    /// Whether there is a measurement.
    pub status: Status,
    /// Why there is none and what to do, or what to know about it.
    pub reason: Option<String>,
    /// How many steps the log has.
    pub steps: u64,
    /// The window that was scored, by the labels that the log prints: `35-44`.
    pub window: Option<String>,
    /// Seconds per step in that window.
    pub step_time_s: Option<Stat>,
    /// The steps that differences are taken of: after the warm-up, or of the window that was asked for.
    pub steady: Option<Steady>,
    /// Tokens per second of all GPUs.
    pub tokens_per_s: Option<f64>,
    /// Tokens per second of one GPU.
    pub tokens_per_s_per_gpu: Option<f64>,
    /// Model FLOPs utilization, a fraction.
    pub mfu: Option<f64>,
    /// How the MFU's FLOPs are counted.
    pub convention: Option<Convention>,
    /// The peak that the MFU divides by.
    pub peak_tflops: Option<f64>,
    /// TFLOPS per GPU as the convention counts them.
    pub model_tflops_per_gpu: Option<f64>,
    /// TFLOPS per GPU as the log prints them: the framework's way of counting.
    pub tflops_per_gpu: Option<f64>,
    /// The loss, at both ends of the log.
    pub loss: Loss,
    /// GPU memory, on the rank that prints it.
    pub memory: Memory,
    /// What was predicted of it, where we carried it out.
    pub plan: Option<AgainstPlan>,
    /// The recipe's published measurement.
    pub baseline: Option<Against>,
    /// Whether its times can stand beside others.
    pub comparable: Comparable,
    /// What else to know of the numbers.
    pub notes: Vec<String>,
    /// What read its steps.
    pub parser_version: u32,
}

/// The steps of a run that differences are taken of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Steady {
    /// The label of the first, as the log prints it.
    pub first: u64,
    /// The label of the last.
    pub last: u64,
    /// Their seconds per step.
    pub step_time_s: Sample,
}

impl Steady {
    fn of(log: &Log, scored: Option<Span>, options: &Options) -> Option<Self> {
        let span = match options.view.window {
            Some(_) => scored?,
            None => {
                let whole = log.steps.span()?;
                let warm_up = options.warm_up_steps.min(whole.count() / 2);
                Span { first: whole.first.saturating_add(warm_up), ..whole }
            }
        };
        let rows = log.steps.rows(span);
        let times: Vec<f64> = log.steps.step_time_s.values(rows).collect();
        Some(Self { first: span.first, last: span.last, step_time_s: Sample::of(&times)? })
    }
}

impl Item {
    fn of(run: &RunResult, seen: &Seen<'_>, options: &Options) -> Self {
        let Seen { report, log, identity, scenario } = seen;
        let carried = run.carried.as_ref();
        let gpus = scenario.as_ref().map(|scenario| scenario.layout.gpus());
        let gpus = gpus.or_else(|| report.scenario.whole(Field::Gpus, 1).ok().flatten());
        Self {
            label: label(run),
            id: run.id.to_string(),
            path: report.path.clone(),
            campaign: carried.map(|carried| carried.campaign.clone()),
            run: carried.map(|carried| carried.run.clone()),
            repeat: carried.map(|carried| carried.repeat),
            cluster: carried.map(|carried| carried.cluster.clone()),
            recipe: report.recipe.clone(),
            release: identity.release.map(|release| release.id().to_owned()),
            gpus,
            status: report.status,
            reason: report.reason.clone(),
            steps: report.steps,
            window: report.window.map(|window| window.to_string()),
            step_time_s: report.step_time_s,
            steady: Steady::of(log, report.window, options),
            tokens_per_s: report.tokens_per_s,
            tokens_per_s_per_gpu: report
                .tokens_per_s
                .zip(gpus)
                .map(|(tokens, gpus)| tokens / f64::from(gpus)),
            mfu: report.mfu,
            convention: report.convention,
            peak_tflops: report.peak_tflops,
            model_tflops_per_gpu: report.model_tflops_per_gpu,
            tflops_per_gpu: report.tflops_per_gpu.map(|stat| stat.mean),
            loss: report.loss,
            memory: report.memory,
            plan: report.plan,
            baseline: report.baseline,
            comparable: report.comparable.clone(),
            notes: report.notes.clone(),
            parser_version: report.parser_version,
        }
    }

    /// Tokens of a step that fall on one GPU.
    pub(super) fn tokens_per_gpu(&self) -> Option<f64> {
        Some(self.tokens_per_s_per_gpu? * self.step_time_s?.mean)
    }
}

/// The runs as items, no two under the same label: what is called alike is told apart by its job, and so is a run alone from
/// those of its name that are not here.
pub(super) fn all(seen: &[(&RunResult, Seen<'_>)], options: &Options) -> Vec<Item> {
    let plain: Vec<String> = seen.iter().map(|(run, _)| label(run)).collect();
    let mut items: Vec<Item> = Vec::with_capacity(seen.len());
    for (place, (run, view)) in seen.iter().enumerate() {
        let mut item = Item::of(run, view, options);
        let alike = || seen.iter().zip(&plain).filter(|(_, other)| **other == plain[place]);
        let jobs: BTreeSet<Option<String>> = alike().map(|((run, _), _)| job(run)).collect();
        let tell = seen.len() == 1 || jobs.len() > 1;
        if let (Some(job), true) = (job(run), tell) {
            item.label = format!("{} (job {job})", plain[place]);
        }
        let own = item.label.clone();
        let mut count = 1;
        while items.iter().any(|other| other.label == item.label) {
            count += 1;
            item.label = format!("{own} ({count})");
        }
        items.push(item);
    }
    items
}

/// The job that ran it, as far as that is known.
fn job(run: &RunResult) -> Option<String> {
    let carried = run.carried.as_ref().and_then(|carried| carried.jobs.first()).map(|job| job.id.clone());
    carried.or_else(|| run.name.job_id.map(|job| job.to_string()))
}

/// What people call a run: by its campaign, as the command line takes it, else by its experiment, else by its file.
fn label(run: &RunResult) -> String {
    if let Some(carried) = &run.carried {
        return format!("{}/{}#{}", carried.campaign, carried.run, carried.repeat);
    }
    let file = run.source.path.rsplit(['/', '\\']).next().unwrap_or_default();
    let names = [run.name.experiment.as_str(), file];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or("run").to_owned()
}
