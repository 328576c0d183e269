//! A run of a comparison with its numbers.

use super::ComparisonOptions;
use crate::convention::Convention;
use crate::field::Field;
use crate::log::{Ending, Log, Span, Stat, Status};
use crate::result::{
    BaselineComparison, Comparability, LossEnds, MemoryPeaks, NOT_SCORED, PlanComparison, Publication,
    RunResult, Slowdown, ViewedRun,
};
use crate::stack::Stack;
use crate::statistics::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A run of a comparison, with the names of a report. Unknown values are null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunFigures {
    /// The run's label, unique in the comparison.
    pub label: String,
    /// The result's id.
    pub id: String,
    /// The log's path, as given.
    pub path: String,
    /// The campaign; null, like the next three, if no campaign launched the run.
    pub campaign: Option<String>,
    /// The run's name in the campaign.
    pub run: Option<String>,
    /// The number of the repeat, from 1.
    pub repeat: Option<u32>,
    /// The cluster.
    pub cluster: Option<String>,
    /// The published recipe that the run matches.
    pub recipe: Option<String>,
    /// The release that launched it, or whose log format it has.
    pub release: Option<String>,
    /// The number of GPUs.
    pub gpus: Option<u32>,
    /// Whether the log was scored.
    pub status: Status,
    /// Why it was not scored and what to do, or what to know about the measurement.
    pub reason: Option<String>,
    /// The number of steps in the log.
    pub steps: u64,
    /// The scored window, by the numbers in the log: `35-44`.
    pub window: Option<String>,
    /// Seconds per step in that window.
    pub step_time_s: Option<Stat>,
    /// The seconds per step by which the run is judged: those of the scored steps, or of all steps after the warm-up if fewer than 5
    /// are scored and the user did not choose the window; null if the run was not scored.
    #[serde(default)]
    pub judged_s: Option<f64>,
    /// The steps that differences are taken over: those after the warm-up, or the chosen window.
    pub steady: Option<SteadySteps>,
    /// Tokens per second, over all GPUs.
    pub tokens_per_s: Option<f64>,
    /// Tokens per second per GPU.
    pub tokens_per_s_per_gpu: Option<f64>,
    /// Tokens per second per GPU in the log; null if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_tokens_per_s_per_gpu: Option<f64>,
    /// Model FLOPs utilization, as a fraction.
    pub mfu: Option<f64>,
    /// MFU in the log, as a fraction and as the framework counts FLOPs; null if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_mfu: Option<f64>,
    /// How the MFU's FLOPs are counted.
    pub convention: Option<Convention>,
    /// The peak TFLOPS per GPU that the MFU is relative to.
    pub peak_tflops: Option<f64>,
    /// TFLOPS per GPU as the convention counts them.
    pub model_tflops_per_gpu: Option<f64>,
    /// TFLOPS per GPU in the log, as the framework counts them.
    pub tflops_per_gpu: Option<f64>,
    /// The first and the last loss.
    pub loss: LossEnds,
    /// GPU memory, of the rank that logs it.
    pub memory: MemoryPeaks,
    /// The comparison with the prediction made before the run; null if no campaign launched it.
    pub plan: Option<PlanComparison>,
    /// The run compared with the prediction for its scenario. Null for a run with a plan, for one that was not scored, and where
    /// parts of the scenario are unknown.
    #[serde(default)]
    pub prediction: Option<PlanComparison>,
    /// The software that the prediction is for, if neither the log nor the user says which ran; null without a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed_software: Option<Stack>,
    /// What could explain that its steps took longer than predicted; null if they did not, or if the run is not comparable.
    #[serde(default)]
    pub slowdown: Option<Slowdown>,
    /// The comparison with the published measurement.
    pub baseline: Option<BaselineComparison>,
    /// Whether its step times can be compared with other runs.
    pub comparable: Comparability,
    /// Whether a measurement is published for the scenario.
    #[serde(default)]
    pub publication: Publication,
    /// How the run ended before its last step; null if it didn't, or if the log doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// How the run ended early, as a clause such as `hung after step 60`; null if it didn't, or if the log doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// Which steps took clearly longer than the others for a while, as a sentence; null if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_steps: Option<String>,
    /// The line of the failure that ended the run; null if it did not fail.
    #[serde(default)]
    pub failure_line: Option<u64>,
    /// Notes on the numbers, as sentences.
    pub notes: Vec<String>,
    /// The version of the parser.
    pub parser_version: u32,
}

/// The steps of a run that differences are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SteadySteps {
    /// The number of the first step in the log.
    pub first: u64,
    /// The number of the last step.
    pub last: u64,
    /// The seconds per step.
    pub step_time_s: Sample,
}

impl SteadySteps {
    fn of(log: &Log, scored: Option<Span>, options: &ComparisonOptions) -> Option<Self> {
        let span = match options.view.window {
            Some(_) => scored?,
            None => log.steps.after_warm_up(options.warm_up_steps)?,
        };
        let rows = log.steps.rows(span);
        let times: Vec<f64> = log.steps.step_time_s.values(rows).collect();
        Some(Self { first: span.first, last: span.last, step_time_s: Sample::of(&times)? })
    }
}

impl RunFigures {
    fn of(run: &RunResult, seen: &ViewedRun<'_>, options: &ComparisonOptions) -> Self {
        let ViewedRun { report, log, identity, scenario } = seen;
        let carried = run.carried.as_ref();
        let (logged_tokens_per_s_per_gpu, logged_mfu) = report.logged();
        let gpus = scenario.as_ref().map(|scenario| scenario.layout.gpus());
        let gpus = gpus.or_else(|| report.scenario.whole(Field::Gpus).ok().flatten());
        Self {
            label: label(run),
            id: run.id.to_string(),
            path: report.path.clone(),
            campaign: carried.map(|carried| carried.campaign.clone()),
            run: carried.map(|carried| carried.run.clone()),
            repeat: carried.map(|carried| carried.repeat),
            cluster: run.cluster().map(str::to_owned),
            recipe: report.recipe.clone(),
            release: identity.release.map(|release| release.id().to_owned()),
            gpus,
            status: report.status,
            reason: report.reason.clone(),
            steps: report.steps,
            window: report.window.map(|window| window.to_string()),
            step_time_s: report.step_time_s,
            judged_s: report.judged_s,
            steady: SteadySteps::of(log, report.window, options),
            tokens_per_s: report.tokens_per_s,
            tokens_per_s_per_gpu: report
                .tokens_per_s
                .zip(gpus)
                .map(|(tokens, gpus)| tokens / f64::from(gpus)),
            logged_tokens_per_s_per_gpu,
            mfu: report.mfu,
            logged_mfu,
            convention: report.convention,
            peak_tflops: report.peak_tflops,
            model_tflops_per_gpu: report.model_tflops_per_gpu,
            tflops_per_gpu: report.tflops_per_gpu.map(|stat| stat.mean),
            loss: report.loss,
            memory: report.memory,
            plan: report.plan,
            prediction: report.prediction,
            assumed_software: report.assumed_software,
            slowdown: report.slowdown.clone(),
            baseline: report.baseline,
            comparable: report.comparable.clone(),
            publication: report.publication.clone(),
            ending: report.ending,
            ended_early: report.ended_early.clone(),
            slow_steps: report.slow_steps.clone(),
            failure_line: report.failure_line,
            notes: report.notes.clone(),
            parser_version: report.parser_version,
        }
    }

    /// Returns notes on the run as sentences, with the possible causes if it is slower than predicted.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        // Why it was not scored says that it was not.
        let is_said = |reason: &str| reason == NOT_SCORED && self.reason.is_some();
        let others = self.comparable.reasons.iter().filter(|reason| !is_said(reason));
        let reasons = self.reason.iter().chain(others).cloned();
        let slowdown = self.slowdown.as_ref().map(Slowdown::sentence);
        reasons.chain(slowdown).chain(self.notes.iter().cloned()).collect()
    }

    /// Returns the scored window for people: `35–44`, `49`.
    #[must_use]
    pub fn window_words(&self) -> Option<String> {
        self.scored_span().map(Span::words)
    }

    /// Returns the scored window.
    pub(crate) fn scored_span(&self) -> Option<Span> {
        let (first, last) = self.window.as_ref()?.split_once('-')?;
        Some(Span { first: first.parse().ok()?, last: last.parse().ok()? })
    }

    /// Returns the tokens per step and GPU.
    pub(super) fn tokens_per_gpu(&self) -> Option<f64> {
        Some(self.tokens_per_s_per_gpu? * self.step_time_s?.mean)
    }
}

/// Returns the runs as items with unique labels. Runs with the same name are labelled with their jobs, or by their files if they have
/// none. A run alone is labelled with its job, because other runs may have its name.
pub(super) fn all(seen: &[(&RunResult, ViewedRun<'_>)], options: &ComparisonOptions) -> Vec<RunFigures> {
    let plain: Vec<String> = seen.iter().map(|(run, _)| label(run)).collect();
    let mut items: Vec<RunFigures> = Vec::with_capacity(seen.len());
    for (place, (run, view)) in seen.iter().enumerate() {
        let mut item = RunFigures::of(run, view, options);
        let alike = || seen.iter().zip(&plain).filter(|(_, other)| **other == plain[place]);
        let jobs: BTreeSet<Option<String>> = alike().map(|((run, _), _)| job(run)).collect();
        let tell = seen.len() == 1 || jobs.len() > 1;
        if let (Some(job), true) = (job(run), tell) {
            item.label = format!("{} (job {job})", plain[place]);
        } else if run.carried.is_none() && job(run).is_none() {
            let files: BTreeSet<&str> = alike().map(|((run, _), _)| file_stem(run)).collect();
            if files.len() > 1 && files.len() == alike().count() {
                item.label = file_stem(run).to_owned();
            }
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

/// Returns the id of the run's job, if it is known.
fn job(run: &RunResult) -> Option<String> {
    let carried = run.carried.as_ref().and_then(|carried| carried.jobs.first()).map(|job| job.id.clone());
    carried.or_else(|| run.name.job_id.map(|job| job.to_string()))
}

/// Returns the label of a run: its campaign and name, as the command line accepts them, or else its experiment, or else
/// its file.
fn label(run: &RunResult) -> String {
    if let Some(carried) = &run.carried {
        return format!("{}/{}#{}", carried.campaign, carried.run, carried.repeat);
    }
    let names = [run.name.experiment.as_str(), file_name(run)];
    names.into_iter().find(|name| !name.is_empty()).unwrap_or("run").to_owned()
}

fn file_name(run: &RunResult) -> &str {
    run.source.path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// Returns the name of the run's file without its extension.
fn file_stem(run: &RunResult) -> &str {
    let file = file_name(run);
    file.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or(file, |(stem, _)| stem)
}
