//! Reports: a result seen with one view, beside the published number.

mod comparisons;
mod known_scenario;

pub use comparisons::{
    BaselineComparison, MOST_SPEED_PERCENT, PlanComparison, Publication, RunStepTimes, TOO_FAST, much_faster,
    speed_percent,
};

use super::slowdown::Slowdown;
use super::steady::{SteadyMean, judged_s};
use super::switched_software::as_switched;
use super::{Comparability, Identity, JobSettings, RunResult, Scoring, fields};
use crate::catalog::Baseline;
use crate::convention::Convention;
use crate::field::Field;
use crate::log::{
    CheckpointAction, Ending, Failure, Format, Log, Nccl, PARSER_VERSION, Score, Span, Stat, Status, StdKind,
    Window, score,
};
use crate::metrics::{DEFAULT_TOKENS, Metrics};
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::spec::Spec;
use crate::stack::{Software, Stack};
use known_scenario::KnownScenario;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// How a result is scored and what is known about it beyond its log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The window; by default the release's.
    pub window: Option<Window>,
    /// The FLOPs convention; by default the one of the recipe's document.
    pub convention: Option<Convention>,
    /// Scenario fields that the user sets. If there are any, they replace those set when the log was read.
    pub spec: Spec,
}

impl View {
    /// Returns the view of these fields and this window. Missing fields may be in the logs.
    ///
    /// # Errors
    /// Returns every field that is invalid or contradicts the others.
    pub fn of(mut spec: Spec, window: Option<Window>) -> Result<Self, Vec<Problem>> {
        let convention = spec.parse(Field::Convention).map_err(|problem| vec![problem])?;
        spec.set(Field::Convention, "");
        let mut problems = spec.scenario().err().unwrap_or_default();
        problems.retain(|problem| !problem.given.is_empty());
        if problems.is_empty() { Ok(Self { window, convention, spec }) } else { Err(problems) }
    }
}

/// A result seen with one view. Unknown values are null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The log's path as given.
    pub path: String,
    /// The result's id; none if the log has nothing worth keeping.
    pub id: Option<String>,
    /// Whether the log was scored.
    pub status: Status,
    /// Why it was not scored and what to do, or what to know about the measurement.
    pub reason: Option<String>,
    /// The framework that wrote the steps.
    pub format: Option<Format>,
    /// The number of steps in the log.
    pub steps: u64,
    /// The scored window, by the numbers in the log: `35-44`.
    #[serde(serialize_with = "as_text")]
    pub window: Option<Span>,
    /// Seconds per step in that window.
    pub step_time_s: Option<Stat>,
    /// The seconds per step by which the run is judged: the mean of a window that the user chose, otherwise as [`judged_s`] says; null
    /// if `step_time_s` is.
    pub judged_s: Option<f64>,
    /// The step time over all steps after the warm-up, whatever was scored; null if the run was not scored, if the log has fewer
    /// than 10 such steps, or if their batch size changes.
    pub steady: Option<SteadyMean>,
    /// TFLOPS per GPU in the log, as the framework counts them.
    pub tflops_per_gpu: Option<Stat>,
    /// Tokens per second and GPU in the log; null if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged_tokens_per_s_per_gpu: Option<Stat>,
    /// MFU in the log, as a fraction and as the framework counts FLOPs; null if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logged_mfu: Option<Stat>,
    /// TFLOPS per GPU as the convention counts them.
    pub model_tflops_per_gpu: Option<f64>,
    /// Tokens per second, over all GPUs.
    pub tokens_per_s: Option<f64>,
    /// Model FLOPs utilization, as a fraction.
    pub mfu: Option<f64>,
    /// How the MFU's FLOPs are counted.
    pub convention: Option<Convention>,
    /// The peak TFLOPS per GPU that the MFU is relative to.
    pub peak_tflops: Option<f64>,
    /// The published recipe that the run matches; null if it matches none.
    pub recipe: Option<String>,
    /// The known part of the scenario: a recipe and the differences from it, or single fields. Assumed software is part of it,
    /// unless it is the default.
    #[serde(serialize_with = "fields::serialize")]
    pub scenario: Spec,
    /// The recipe's published measurement.
    pub baseline: Option<BaselineComparison>,
    /// Whether a measurement is published for the scenario.
    #[serde(skip)]
    pub publication: Publication,
    /// How the run ended before its last step; null if it didn't, or if the log doesn't say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// How the run ended early, as a clause such as `hung after step 60`; null if it didn't, or if the log doesn't say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<String>,
    /// Which steps took clearly longer than the others for a while, as a sentence; null if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_steps: Option<String>,
    /// The line of the failure that ended the run; none if it did not fail.
    #[serde(skip)]
    pub failure_line: Option<u64>,
    /// The comparison with the prediction; null if no campaign launched the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanComparison>,
    /// The comparison with the prediction for its scenario; null if there is a plan, if parts of the scenario are unknown, or if
    /// the run was not scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction: Option<PlanComparison>,
    /// The software that the prediction is for, if neither the log nor the user says which ran; null without a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_software: Option<Stack>,
    /// What could explain that its steps took longer than predicted; null if they did not, or if the run is not comparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Slowdown>,
    /// Whether its step times can be compared with other runs.
    pub comparable: Comparability,
    /// Sentences on unknown settings, and on anything else that matters for the numbers.
    pub notes: Vec<String>,
    /// The settings that the files beside the log list.
    #[serde(skip_serializing_if = "JobSettings::is_empty")]
    pub settings: JobSettings,
    /// The failures in the log, harmful or not.
    pub failures: Vec<Failure>,
    /// The checkpoints that were saved and loaded.
    pub checkpoint: Checkpoints,
    /// NCCL's communicators, its network and its calls; null if the log has no such lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nccl: Option<Nccl>,
    /// GPU memory, of the rank that logs it.
    pub memory: MemoryPeaks,
    /// The first and the last loss.
    pub loss: LossEnds,
    /// The number of sequences per step in the log.
    pub global_batch_size: Option<u64>,
    /// The version of the parser.
    pub parser_version: u32,
}

/// Why a run without a score is not comparable.
pub(crate) const NOT_SCORED: &str = "It was not scored.";

/// Returns why a run with this status can't be compared, if it was not scored.
fn not_scored(status: Status) -> Option<String> {
    (status != Status::Scored).then(|| NOT_SCORED.to_owned())
}

/// The checkpoints of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Checkpoints {
    /// The number of saves.
    pub saves: u64,
    /// The duration of the last timed save, in seconds.
    pub save_s: Option<f64>,
    /// The number of loads.
    pub loads: u64,
    /// The duration of the last timed load, in seconds.
    pub load_s: Option<f64>,
}

/// The peaks of GPU memory in a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryPeaks {
    /// The largest peak, in bytes.
    pub peak_bytes: Option<f64>,
    /// The largest allocation at the time of a log line, in bytes.
    pub allocated_bytes: Option<f64>,
}

/// The loss at both ends of a log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LossEnds {
    /// The first loss.
    pub first: Option<f64>,
    /// The last loss.
    pub last: Option<f64>,
}

impl Report {
    /// Returns the report of a result with a view.
    #[must_use]
    pub fn of(run: &RunResult, view: &View) -> Self {
        ViewedRun::of(run, view).report
    }

    /// Returns the run's step times; none if it was not scored.
    pub(super) fn times(&self) -> Option<RunStepTimes> {
        Some(RunStepTimes { scored_s: self.step_time_s?.mean, judged_s: self.judged_s? })
    }

    /// Returns the steps by whose mean the run is judged; none if it was not scored.
    pub(super) fn judged_steps(&self) -> Option<Span> {
        let (window, times) = (self.window?, self.times()?);
        let steady = self.steady.filter(|_| times.judged_s.total_cmp(&times.scored_s).is_ne());
        Some(steady.map_or(window, |steady| Span { first: steady.first, last: steady.last }))
    }
}

/// A report with the parts that it was made of.
pub(crate) struct ViewedRun<'a> {
    pub(crate) report: Report,
    /// The log, with step times computed from tokens per second where it has no others.
    pub(crate) log: Cow<'a, Log>,
    /// The run's identity.
    pub(crate) identity: Cow<'a, Identity>,
    /// The scenario, if it is completely known.
    pub(crate) scenario: Option<Scenario>,
}

impl<'a> ViewedRun<'a> {
    pub(crate) fn of(run: &'a RunResult, view: &View) -> Self {
        let identity = match view.spec.iter().next() {
            Some(_) => {
                let (path, settings) = (&run.source.path, &run.job.settings);
                Cow::Owned(Identity::of(path, &run.name, &run.log, settings, &view.spec))
            }
            None => Cow::Borrowed(&run.identity),
        };
        let assumed = run.assumed_settings(&identity.scenario);
        let mut spec = identity.scenario.clone();
        let software = assumed.software.map(|stack| as_switched(stack, &run.log.arguments));
        if let Some(software) = software.filter(|software| *software != Software::default()) {
            spec.set(Field::Stack, software.to_string());
        }
        if is_sharded(&spec) {
            spec.set(Field::Fsdp, "on");
        }
        let known = KnownScenario::of(&identity, spec.clone(), view.convention);
        let mut log = known.with_step_times(&run.log);
        if !run.job.failures.is_empty() && !log.is_complete() {
            run.job.complete(log.to_mut());
        }
        let scoring = Scoring::of(view.window, identity.release);
        let window = scoring.window;
        let score = score(&log, window, log.format.map_or(StdKind::Sample, Format::std_kind));
        // A recipe may score other steps than the log alone.
        let rule = score.labels.filter(|_| score.status == Status::Incomplete).and_then(|labels| {
            scoring.missed(identity.scenario.get(Field::Recipe), log.planned_last, labels)
        });
        let reason: Vec<String> = score.reason.iter().cloned().chain(rule).collect();
        let reason = reason.join(" ");
        let of_job = run.carried.as_ref().and_then(|run| run.without_score(&log, score.status, &reason));
        let (status, reason) = of_job.unwrap_or((score.status, reason));

        let steady = score.step_time_s.and_then(|_| SteadyMean::of(&log.steps));
        let judged_s = score.step_time_s.map(|scored| {
            let steady = steady.filter(|_| view.window.is_none());
            judged_s(scored.mean, scored.n, steady.map(|steady| steady.mean_s))
        });

        let mut reasons = run.comparable.reasons.clone();
        reasons.extend(identity.conflicts.iter().cloned());
        reasons.extend(not_scored(status));
        let mut report = Report {
            id: (!matches!(status, Status::NoData | Status::Unreadable)).then(|| run.id.to_string()),
            status,
            reason: (!reason.is_empty()).then_some(reason),
            format: run.framework(),
            steps: log.steps.len() as u64,
            window: score.window,
            step_time_s: score.step_time_s,
            judged_s,
            steady,
            tflops_per_gpu: score.tflops_per_gpu,
            logged_tokens_per_s_per_gpu: score.tokens_per_s_per_gpu,
            logged_mfu: score.mfu,
            recipe: known.recipe.map(|recipe| recipe.id.to_string()),
            comparable: Comparability::unless(reasons),
            settings: run.job.settings.clone(),
            failures: log.failures.clone(),
            ending: log.ending(),
            ended_early: log.ended_early(),
            failure_line: log.cause().filter(|failure| failure.file.is_none()).map(|failure| failure.line),
            publication: known.publication.clone(),
            checkpoint: Checkpoints::of(&log),
            nccl: log.nccl.clone(),
            memory: MemoryPeaks {
                peak_bytes: score.memory_peak_bytes,
                allocated_bytes: score.memory_allocated_bytes,
            },
            loss: LossEnds { first: score.loss_first, last: score.loss_last },
            global_batch_size: score.global_batch_size,
            scenario: spec,
            ..Report::without(&run.source.path, status, None)
        };
        let carried = run.carried.as_ref();
        report.plan = carried.map(|carried| PlanComparison::of(carried.plan.step_time_s, report.times()));
        report.measure(&score, &known, &identity.conflicts);
        let of_release = Scoring::of(None, identity.release).window;
        if window != of_release {
            let (window, usual) = (window.words(), of_release.words());
            report.notes.push(match identity.release {
                Some(_) => format!("The window is {window}, but the release scores {usual}."),
                None => format!("The window is {window} instead of the default, {usual}."),
            });
        }
        if let Some(carried) = &run.carried {
            report.notes.extend(carried.retry_note());
            // Joined logs are those of several starts of the job.
            report.notes.extend(carried.impossible_steps_note(&log).filter(|_| run.job.parts.is_empty()));
        }
        report.notes.extend(run.job.notes(&log));
        report.notes.extend(identity.differences.iter().cloned());
        // The time between the logs of a restarted job has its own note.
        report.notes.extend(log.pause_note().filter(|_| run.job.parts.is_empty()));
        if let Some(gpus) = known.gpus() {
            let version = run.provenance.parser_version;
            report.notes.extend(log.failures.iter().filter_map(|failure| failure.silence(gpus, version)));
        }
        let is_over = log.is_complete() || log.hang().is_some();
        report.notes.extend(log.nccl.iter().flat_map(|nccl| nccl.notes(is_over)));
        report.compare(known.baseline);
        let slow = report.warn(&log, known.scenario.as_ref(), scoring, view.window.is_some());
        report.predict(&log, known.scenario.as_ref(), assumed, &slow);
        Self { report, scenario: known.scenario, log, identity }
    }
}

/// Returns whether a scenario leaves it open whether weights are sharded, and its software always shards them.
fn is_sharded(spec: &Spec) -> bool {
    let is_open = [Field::Recipe, Field::Fsdp].into_iter().all(|field| spec.get(field).is_none());
    let software = spec.parse::<Software>(Field::Stack).ok().flatten();
    is_open && software.is_some_and(|software| software.base() == Stack::Torchtitan)
}

impl Report {
    /// Returns the report of something without a result, such as a path that can't be read.
    #[must_use]
    pub fn without(path: &str, status: Status, reason: Option<String>) -> Self {
        Self {
            path: path.to_owned(),
            id: None,
            status,
            reason,
            format: None,
            steps: 0,
            window: None,
            step_time_s: None,
            judged_s: None,
            steady: None,
            tflops_per_gpu: None,
            logged_tokens_per_s_per_gpu: None,
            logged_mfu: None,
            model_tflops_per_gpu: None,
            tokens_per_s: None,
            mfu: None,
            convention: None,
            peak_tflops: None,
            recipe: None,
            scenario: Spec::default(),
            baseline: None,
            publication: Publication::default(),
            ending: None,
            ended_early: None,
            slow_steps: None,
            failure_line: None,
            plan: None,
            prediction: None,
            assumed_software: None,
            slowdown: None,
            comparable: Comparability::unless(not_scored(status).into_iter().collect()),
            notes: Vec::new(),
            settings: JobSettings::default(),
            failures: Vec::new(),
            checkpoint: Checkpoints::default(),
            nccl: None,
            memory: MemoryPeaks::default(),
            loss: LossEnds::default(),
            global_batch_size: None,
            parser_version: PARSER_VERSION,
        }
    }

    /// Computes tokens per second and MFU from the step time, if enough of the scenario is known.
    fn measure(&mut self, score: &Score, known: &KnownScenario, conflicts: &[String]) {
        let per_gpu = score.tokens_per_s_per_gpu.map(|stat| stat.mean);
        if self.step_time_s.is_none() && per_gpu.is_none() {
            return;
        }
        self.notes.clone_from(&known.notes);
        if known.has_wrong_tflops && self.tflops_per_gpu.take().is_some() {
            self.notes.push(
                "The log's TFLOPS are left out, because the release's document calls them invalid for Nemotron-H."
                    .into(),
            );
        }
        let whole = |field| known.spec.whole(field).ok().flatten();
        let step_time_s = self.step_time_s.map(|stat| stat.mean);
        let metrics = known
            .scenario
            .as_ref()
            .zip(step_time_s)
            .map(|(scenario, step_time_s)| Metrics::new(scenario, step_time_s, DEFAULT_TOKENS));
        let impossible = metrics
            .as_ref()
            .and_then(Metrics::warning)
            .or_else(|| self.impossible_tflops(known.scenario.as_ref()?));
        if !conflicts.is_empty() || impossible.is_some() {
            let advice = "Correct the recipe and the fields that you set, or the file's name.";
            self.call_implausible(conflicts, impossible, advice);
            return;
        }
        // A computed MFU divides by the right peak.
        if let (None, Some(impossible)) = (&metrics, self.impossible_mfu()) {
            let advice =
                "Set the model, the GPU type and what else the log lacks, so that the MFU can be computed.";
            self.call_implausible(&[], Some(impossible), advice);
            return;
        }
        if let Some(metrics) = metrics {
            self.tokens_per_s = Some(metrics.tokens_per_s);
            self.mfu = metrics.mfu;
            self.convention = metrics.convention;
            self.peak_tflops = metrics.peak_tflops;
            self.model_tflops_per_gpu = metrics.tflops_per_gpu;
        } else if let (Some(seq_len), Some(gbs), Some(step_time_s)) =
            (whole(Field::SeqLen), whole(Field::Gbs), step_time_s)
        {
            let metrics = Metrics::of_tokens(seq_len, gbs, step_time_s, DEFAULT_TOKENS);
            self.tokens_per_s = Some(metrics.tokens_per_s);
        } else if let (Some(per_gpu), Some(gpus)) = (per_gpu, whole(Field::Gpus)) {
            self.tokens_per_s = Some(per_gpu * f64::from(gpus));
        }
        self.note_logged();
        self.need_step_time(&known.spec);
    }

    /// Marks the measurement as implausible, with advice: its settings contradict the log, or no GPU is that fast. It has no
    /// tokens per second and no FLOPs, because they would be wrong.
    fn call_implausible(&mut self, conflicts: &[String], impossible: Option<String>, advice: &str) {
        if let Some(impossible) = &impossible {
            self.comparable = Comparability::unless(
                [self.comparable.reasons.as_slice(), std::slice::from_ref(impossible)].concat(),
            );
        }
        self.status = Status::Implausible;
        let contradictions = conflicts.iter().cloned().chain(impossible);
        let reasons: Vec<String> =
            contradictions.chain([advice.to_owned()]).chain(self.reason.take()).collect();
        self.reason = Some(reasons.join(" "));
    }

    /// Compares the run with the published number.
    fn compare(&mut self, baseline: Option<&Baseline>) {
        let (Some(baseline), Some(times)) = (baseline, self.times()) else { return };
        let may = self.status == Status::Scored && self.comparable.yes;
        self.baseline = Some(BaselineComparison::of(baseline.step_time_s, may.then_some(times)));
    }
}

impl Checkpoints {
    fn of(log: &Log) -> Self {
        let mut checkpoints = Self::default();
        for checkpoint in &log.checkpoints {
            let (count, seconds) = match checkpoint.action {
                CheckpointAction::Save => (&mut checkpoints.saves, &mut checkpoints.save_s),
                CheckpointAction::Load => (&mut checkpoints.loads, &mut checkpoints.load_s),
            };
            *count += 1;
            *seconds = checkpoint.duration_s.or(*seconds);
        }
        checkpoints
    }
}

fn as_text<S: Serializer>(window: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
    match window {
        Some(window) => serializer.collect_str(window),
        None => serializer.serialize_none(),
    }
}
