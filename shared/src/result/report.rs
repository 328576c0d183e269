//! A row of the results: what one view of a run shows of it, beside what is published.

use super::{Comparable, Identity, Predicted, RunResult, Scoring, fields};
use crate::catalog::{Baseline, Catalog, Recipe};
use crate::convention::Convention;
use crate::estimate::Interval;
use crate::field::Field;
use crate::log::{
    CheckpointAction, Failure, Format, Log, PARSER_VERSION, Score, Span, Stat, Status, StdKind, Window, score,
};
use crate::message::Front;
use crate::metrics::DEFAULT_TOKENS;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::releases::{LoggedTflops, Release};
use crate::scenario::Scenario;
use crate::spec::Spec;
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;

/// How to look at a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The steps that count; by default as its release has it.
    pub window: Option<Window>,
    /// How model FLOPs are counted; by default as its recipe's document does.
    pub convention: Option<Convention>,
    /// Scenario fields that are known to be true; where there are any, they take the place of whatever was said when the
    /// log was read.
    pub spec: Spec,
}

impl View {
    /// The view that these fields and this window ask for. What is missing may stand in the logs.
    ///
    /// # Errors
    /// Every field that can't be read or does not fit the others.
    pub fn of(mut spec: Spec, window: Option<Window>) -> Result<Self, Vec<Problem>> {
        let convention = spec.parse(Field::Convention).map_err(|problem| vec![problem])?;
        spec.set(Field::Convention, "");
        let mut problems = spec.scenario().err().unwrap_or_default();
        problems.retain(|problem| !problem.given.is_empty());
        if problems.is_empty() { Ok(Self { window, convention, spec }) } else { Err(problems) }
    }
}

/// What a run measured, by a view. Everything that is not known is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The log's path as given.
    pub path: String,
    /// The result's id; none where the log tells nothing that is worth keeping.
    pub id: Option<String>,
    /// Whether there is a measurement.
    pub status: Status,
    /// Why there is none and what to do, or what to know about it.
    pub reason: Option<String>,
    /// Who wrote the steps.
    pub format: Option<Format>,
    /// How many steps the log has.
    pub steps: u64,
    /// The window that was measured, by the labels that the log prints: `35-44`.
    #[serde(serialize_with = "as_text")]
    pub window: Option<Span>,
    /// Seconds per step.
    pub step_time_s: Option<Stat>,
    /// TFLOPS per GPU as the log prints them: the framework's way of counting.
    pub tflops_per_gpu: Option<Stat>,
    /// TFLOPS per GPU as the convention counts them.
    pub model_tflops_per_gpu: Option<f64>,
    /// Tokens per second of all GPUs.
    pub tokens_per_s: Option<f64>,
    /// Model FLOPs utilization, a fraction.
    pub mfu: Option<f64>,
    /// How the MFU's FLOPs are counted.
    pub convention: Option<Convention>,
    /// The peak that the MFU divides by.
    pub peak_tflops: Option<f64>,
    /// The published recipe that it is a run of, if it is one.
    pub recipe: Option<String>,
    /// What is known of its scenario: a recipe and what differs from it, or else single fields.
    #[serde(serialize_with = "fields::serialize")]
    pub scenario: Spec,
    /// The recipe's published measurement.
    pub baseline: Option<Against>,
    /// What was predicted of it, where we carried it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<AgainstPlan>,
    /// Whether its times can stand beside others.
    pub comparable: Comparable,
    /// What is not known and what to say to change that, and what else to know of the numbers.
    pub notes: Vec<String>,
    /// What went wrong, whether or not it did harm.
    pub failures: Vec<Failure>,
    /// Checkpoints saved and loaded.
    pub checkpoint: Checkpoints,
    /// GPU memory, on the rank that prints it.
    pub memory: Memory,
    /// The loss, at both ends of the log.
    pub loss: Loss,
    /// Sequences in a step, as the log has it.
    pub global_batch_size: Option<u64>,
    /// What made these numbers.
    pub parser_version: u32,
}

/// A run beside the published measurement of its recipe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Against {
    /// Seconds per step, as published.
    pub step_time_s: f64,
    /// The run's speed in percent of the published one, above 100 being faster; none where the two can't be compared.
    pub speed_percent: Option<f64>,
}

/// A run beside what was predicted before it started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgainstPlan {
    /// Seconds per step, as predicted.
    pub step_time_s: Interval,
    /// By how much it took longer than the middle of the prediction, as a fraction of that; none where it was not scored.
    pub error: Option<f64>,
    /// Whether it lies within the interval.
    pub within: Option<bool>,
}

impl AgainstPlan {
    fn of(plan: &Predicted, measured_s: Option<f64>) -> Self {
        let Interval { low, mid, high } = plan.step_time_s;
        Self {
            step_time_s: plan.step_time_s,
            error: measured_s.map(|measured| measured / mid - 1.0),
            within: measured_s.map(|measured| (low..=high).contains(&measured)),
        }
    }
}

/// The checkpoints of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Checkpoints {
    /// How many were saved.
    pub saves: u64,
    /// Seconds that the last save took whose time is told.
    pub save_s: Option<f64>,
    /// How many were loaded.
    pub loads: u64,
    /// Seconds that the last load took whose time is told.
    pub load_s: Option<f64>,
}

/// The most memory that a log tells of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Memory {
    /// The largest peak.
    pub peak_bytes: Option<f64>,
    /// The most that was allocated when a line was printed.
    pub allocated_bytes: Option<f64>,
}

/// The loss of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Loss {
    /// The first that the log prints.
    pub first: Option<f64>,
    /// The last.
    pub last: Option<f64>,
}

impl Report {
    /// What a view shows of a run.
    #[must_use]
    pub fn of(run: &RunResult, view: &View) -> Self {
        Seen::of(run, view).report
    }
}

/// A run by a view: what it shows, and what that was made of.
pub(crate) struct Seen<'a> {
    pub(crate) report: Report,
    /// What the log tells, with the step times that follow from its tokens per second.
    pub(crate) log: Cow<'a, Log>,
    /// What it is a run of, as far as that is known.
    pub(crate) identity: Cow<'a, Identity>,
    /// Its scenario, where nothing of it is in doubt.
    pub(crate) scenario: Option<Scenario>,
}

impl<'a> Seen<'a> {
    pub(crate) fn of(run: &'a RunResult, view: &View) -> Self {
        let identity = match view.spec.iter().next() {
            Some(_) => Cow::Owned(Identity::of(&run.source.path, &run.name, &run.log, &view.spec)),
            None => Cow::Borrowed(&run.identity),
        };
        let known = Known::of(&identity, view.convention);
        let log = known.with_step_times(&run.log);
        let window = Scoring::of(view.window, identity.release).window;
        let score = score(&log, window, log.format.map_or(StdKind::Sample, Format::std_kind));

        let mut reasons = run.comparable.reasons.clone();
        reasons.extend(identity.conflicts.iter().cloned());
        if score.status != Status::Scored {
            reasons.push("it was not scored".into());
        }
        let mut report = Report {
            id: (!matches!(score.status, Status::NoData | Status::Unreadable)).then(|| run.id.to_string()),
            status: score.status,
            reason: score.reason.clone(),
            format: log.format,
            steps: log.steps.len() as u64,
            window: score.window,
            step_time_s: score.step_time_s,
            tflops_per_gpu: score.tflops_per_gpu,
            recipe: known.recipe.map(|recipe| recipe.id.to_string()),
            comparable: Comparable::unless(reasons),
            failures: log.failures.clone(),
            checkpoint: Checkpoints::of(&log),
            memory: Memory {
                peak_bytes: score.memory_peak_bytes,
                allocated_bytes: score.memory_allocated_bytes,
            },
            loss: Loss { first: score.loss_first, last: score.loss_last },
            global_batch_size: score.global_batch_size,
            plan: run
                .carried
                .as_ref()
                .map(|carried| AgainstPlan::of(&carried.plan, score.step_time_s.map(|stat| stat.mean))),
            scenario: identity.scenario.clone(),
            ..Report::without(&run.source.path, score.status, None)
        };
        report.measure(&score, &known);
        let of_release = Scoring::of(None, identity.release).window;
        if window != of_release {
            report.notes.push(format!("scored by window {window}; its release scores by {of_release}"));
        }
        report.compare(known.baseline);
        Self { report, scenario: known.scenario, log, identity }
    }
}

impl Report {
    /// The row of what gave no result: a path that can't be read, for one.
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
            tflops_per_gpu: None,
            model_tflops_per_gpu: None,
            tokens_per_s: None,
            mfu: None,
            convention: None,
            peak_tflops: None,
            recipe: None,
            scenario: Spec::default(),
            baseline: None,
            plan: None,
            comparable: Comparable::unless(Vec::new()),
            notes: Vec::new(),
            failures: Vec::new(),
            checkpoint: Checkpoints::default(),
            memory: Memory::default(),
            loss: Loss::default(),
            global_batch_size: None,
            parser_version: PARSER_VERSION,
        }
    }

    /// From step time to tokens per second and MFU, as far as the scenario is known.
    fn measure(&mut self, score: &Score, known: &Known) {
        let per_gpu = score.tokens_per_s_per_gpu.map(|stat| stat.mean);
        if self.step_time_s.is_none() && per_gpu.is_none() {
            return;
        }
        self.notes.clone_from(&known.notes);
        if known.has_wrong_tflops && self.tflops_per_gpu.take().is_some() {
            self.notes.push(
                "the TFLOPS in logs of Nemotron-H are not valid, as its own document says, and are left out"
                    .into(),
            );
        }
        let whole = |field| known.spec.whole(field, 1).ok().flatten();
        let step_time_s = self.step_time_s.map(|stat| stat.mean);
        if let (Some(scenario), Some(step_time_s)) = (&known.scenario, step_time_s) {
            let metrics = Metrics::new(scenario, step_time_s, DEFAULT_TOKENS);
            if let Some(impossible) = metrics.warning() {
                self.comparable.yes = false;
                self.comparable.reasons.push(format!("it can't be a run of this scenario: {impossible}"));
            }
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
    }

    /// Sets the run beside the published number.
    fn compare(&mut self, baseline: Option<&Baseline>) {
        let (Some(baseline), Some(measured)) = (baseline, self.step_time_s) else { return };
        let may = self.status == Status::Scored && self.comparable.yes;
        let speed_percent = may.then_some(100.0 * baseline.step_time_s / measured.mean);
        self.baseline = Some(Against { step_time_s: baseline.step_time_s, speed_percent });
    }
}

/// What is known of a run's scenario.
struct Known {
    spec: Spec,
    scenario: Option<Scenario>,
    recipe: Option<&'static Recipe>,
    baseline: Option<&'static Baseline>,
    has_wrong_tflops: bool,
    notes: Vec<String>,
}

impl Known {
    fn of(identity: &Identity, convention: Option<Convention>) -> Self {
        let mut spec = identity.scenario.clone();
        if let Some(convention) = convention {
            spec.set(Field::Convention, convention.id());
        }
        let mut notes = identity.doubts.clone();
        // While anything is in doubt, no default may stand in for it.
        let scenario = match spec.scenario() {
            _ if !notes.is_empty() => None,
            Ok(scenario) => Some(scenario),
            Err(problems) => {
                let told = |problem: &Problem| problem.text(Front::Page);
                notes.extend(problems.iter().map(told));
                None
            }
        };
        let recipe = scenario.as_ref().and_then(Scenario::published_as);
        let baseline = recipe.and_then(|recipe| Catalog::embedded().baseline(&recipe.id));
        if let (Some(scenario), None) = (&scenario, recipe)
            && let Some(base) = scenario.recipe
        {
            let changes: Vec<String> = scenario
                .changes
                .iter()
                .map(|change| format!("{} {} for {}", change.field.label(), change.to, change.from))
                .collect();
            notes.push(format!("nothing is published for {} with {}", base.id, changes.join(", ")));
        } else if let (Some(recipe), None) = (recipe, baseline) {
            notes.push(format!("no measurement of {} is published", recipe.id));
        }
        let of_model = |release: Release| {
            Some(release.contract().script_of(&scenario.as_ref()?.model.id)?.logged_tflops)
        };
        let has_wrong_tflops = identity.release.and_then(of_model) == Some(LoggedTflops::Invalid);
        Self { spec, scenario, recipe, baseline, has_wrong_tflops, notes }
    }

    /// The log with the step times that follow from its tokens per second, where it prints no other.
    fn with_step_times<'a>(&self, log: &'a Log) -> Cow<'a, Log> {
        match &self.scenario {
            Some(scenario)
                if log.steps.step_time_s.is_empty() && !log.steps.tokens_per_s_per_gpu.is_empty() =>
            {
                let mut log = log.clone();
                log.steps.fill_step_times(scenario.batch.tokens() / f64::from(scenario.layout.gpus()));
                Cow::Owned(log)
            }
            _ => Cow::Borrowed(log),
        }
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
