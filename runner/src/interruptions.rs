//! Interruptions of the journal's jobs: how long jobs ran, how they ended and how long they waited.

use crate::journal::{Event, Phase, Run};
use crate::slurm::{End, State};
use crate::suspect_nodes::NodeTally;
use serde::Serialize;
use std::collections::BTreeMap;
use trainplan_shared::goodput::ObservedFailures;
use trainplan_shared::log::{FailureKind, Log};
use trainplan_shared::result::MOST_OF_JOB;

/// How a start of a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartEnd {
    NodeFailure,
    GpuError,
    /// A collective operation failed or hung.
    Communication,
    Preempted,
    /// Slurm put the job back into the queue, and no poll saw why.
    Requeued,
    /// The program failed after its first step, for another or an unknown reason.
    AfterFirstStep,
    BeforeFirstStep,
    OutOfMemory,
    /// The job had no GPUs, its downloads were rejected, or a file system was full.
    Environment,
    /// The job failed, and its log is not in the store.
    FailedWithoutLog,
    TimeLimit,
    Cancelled,
    /// Slurm no longer knows how, and neither does the log.
    Unknown,
    Completed,
    /// It had not ended when the queue last answered.
    Running,
}

impl StartEnd {
    /// Returns whether it is an unplanned interruption, as the published studies count them: by hardware, the cluster or
    /// software in a run that was able to train.
    pub(crate) fn is_interruption(self) -> bool {
        self <= StartEnd::AfterFirstStep
    }

    /// Returns it in words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            StartEnd::NodeFailure => "lost a node",
            StartEnd::GpuError => "failed with a GPU error",
            StartEnd::Communication => "failed in communication between GPUs",
            StartEnd::Preempted => "was preempted",
            StartEnd::Requeued => "was requeued, cause not recorded",
            StartEnd::AfterFirstStep => "failed after its first step, other cause",
            StartEnd::BeforeFirstStep => "failed before its first step",
            StartEnd::OutOfMemory => "ran out of memory",
            StartEnd::Environment => "lacked GPUs, downloads or disk space",
            StartEnd::FailedWithoutLog => "failed, log not in the store",
            StartEnd::TimeLimit => "hit its time limit",
            StartEnd::Cancelled => "was cancelled",
            StartEnd::Unknown => "ended, Slurm no longer knows how",
            StartEnd::Completed => "completed",
            StartEnd::Running => "is running",
        }
    }

    /// Returns how a failed job ended, by its log; of a job whose end Slurm no longer knows, as far as the log shows it.
    fn by_log(end: End, log: &Log, planned_steps: u32) -> StartEnd {
        if log.is_complete() || log.steps.len() >= planned_steps as usize {
            return StartEnd::Completed;
        }
        let kind = log.cause().map(|failure| failure.kind);
        match kind {
            Some(FailureKind::OutOfMemory | FailureKind::HostOutOfMemory) => StartEnd::OutOfMemory,
            Some(FailureKind::NoGpus | FailureKind::RateLimited | FailureKind::DiskFull) => {
                StartEnd::Environment
            }
            Some(FailureKind::NodeFailure) => StartEnd::NodeFailure,
            Some(FailureKind::Preempted) => StartEnd::Preempted,
            Some(FailureKind::TimeLimit) => StartEnd::TimeLimit,
            Some(FailureKind::Cancelled) => StartEnd::Cancelled,
            None if end == End::Unknown => StartEnd::Unknown,
            // A wrong launch fails early, with any of the errors below.
            _ if log.steps.is_empty() => StartEnd::BeforeFirstStep,
            Some(FailureKind::Cuda) => StartEnd::GpuError,
            Some(
                FailureKind::Nccl
                | FailureKind::CollectiveTimeout
                | FailureKind::UserBuffers
                | FailureKind::DeepEp,
            ) => StartEnd::Communication,
            _ => StartEnd::AfterFirstStep,
        }
    }
}

/// The time from a start of a job to its end. A requeued job starts more than once. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq)]
struct JobStart {
    /// When the job was submitted, if this is its first start.
    submitted: Option<i64>,
    started: i64,
    /// When it ended; none while it is not known to have ended.
    ended: Option<i64>,
    /// Slurm's word for its end; none if the job was requeued or is not over.
    end: Option<End>,
    /// Its nodes, as Slurm lists them.
    nodes: Option<String>,
}

/// Returns the starts of a job by its run's events. A job that ended in the queue has none.
fn starts(job: &str, events: &[(i64, i64, Event)]) -> Vec<JobStart> {
    let mut starts: Vec<JobStart> = Vec::new();
    // When the job was submitted for its last start. Slurm resubmits a requeued job.
    let mut submission = None;
    for (_, at_ms, event) in events {
        let sighting = match event {
            Event::Observed { job: other, sighting } if other == job => sighting,
            _ => continue,
        };
        // The runner's clock, up to one poll late.
        let at = at_ms / 1000;
        // A waiting job still has the time of its earlier start.
        let started = sighting.started.filter(|_| sighting.state != State::Pending);
        let (is_first, mut last) = (starts.is_empty(), starts.last_mut());
        let is_same = submission.is_some() && submission == sighting.submitted;
        let is_new = match (&mut last, started) {
            (Some(last), Some(started)) if is_same && last.ended.is_none() => {
                // Slurm corrects a start by seconds while it prepares the nodes.
                last.started = started;
                false
            }
            (Some(last), Some(started)) => {
                started > last.started && last.ended.is_none_or(|end| started >= end)
            }
            (Some(last), None) => {
                matches!(sighting.state, State::Running | State::Suspended) && last.ended.is_some()
            }
            (None, _) => true,
        };
        if let Some(last) = last {
            if !is_new && sighting.state != State::Pending && sighting.nodes.is_some() {
                last.nodes.clone_from(&sighting.nodes);
            }
            if sighting.state == State::Pending || is_new {
                let requeued = sighting.submitted.filter(|time| (last.started..=at).contains(time));
                last.ended = last.ended.or(requeued.or(started)).or(Some(at));
            } else if let (State::Ended(end), true) =
                (&sighting.state, last.end.is_some() || last.ended.is_none())
            {
                last.ended = sighting.ended.or(last.ended).or(Some(at));
                last.end = Some(*end);
            }
        }
        let submitted = sighting.submitted.filter(|_| is_first);
        match sighting.state {
            State::Running | State::Suspended if is_new => {
                let started = started.unwrap_or(at);
                starts.push(JobStart {
                    submitted,
                    started,
                    ended: None,
                    end: None,
                    nodes: sighting.nodes.clone(),
                });
            }
            State::Ended(end) if is_new => {
                // A job that is cancelled in the queue starts and ends at once.
                let ended = sighting.ended.unwrap_or(at);
                if let Some(started) = started.filter(|started| *started < ended) {
                    let nodes = sighting.nodes.clone();
                    starts.push(JobStart { submitted, started, ended: Some(ended), end: Some(end), nodes });
                }
            }
            _ => {}
        }
        if is_new {
            submission = sighting.submitted;
        }
    }
    starts
}

/// The mean of some times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct MeanTime {
    /// In seconds.
    pub(crate) mean_s: f64,
    /// Number of times.
    pub(crate) n: usize,
}

impl MeanTime {
    /// Returns the mean; none of no times.
    fn of(times_s: &[f64]) -> Option<MeanTime> {
        let n = times_s.len();
        (n > 0).then(|| MeanTime { mean_s: times_s.iter().sum::<f64>() / n as f64, n })
    }
}

/// How the GPU-hours were used of the jobs that completed and whose logs are known, and of those that an interruption ended.
/// A job's time goes from its first start to its end, with the waits for its requeued starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct MeasuredGoodput {
    /// The share that went into steps that count: the goodput, as the planner defines it.
    pub(crate) share: f64,
    /// Steps that count.
    pub(crate) training_gpu_hours: f64,
    /// Start-up, checkpoints and shutdown.
    pub(crate) outside_steps_gpu_hours: f64,
    /// Steps that ran again after a restart.
    pub(crate) repeated_gpu_hours: f64,
    /// From an interruption to the requeued start.
    pub(crate) requeue_gpu_hours: f64,
    /// Jobs that an interruption ended.
    pub(crate) lost_gpu_hours: f64,
}

impl MeasuredGoodput {
    /// Adds a job with its number of GPUs, how it ended, and its log. Returns false, and adds nothing, if the steps in its log take
    /// longer than it ran.
    fn add(&mut self, gpus: u32, ran_s: f64, requeue_s: f64, end: StartEnd, log: Option<&Log>) -> bool {
        let hours = |seconds: f64| seconds * f64::from(gpus) / 3600.0;
        if end.is_interruption() {
            self.lost_gpu_hours += hours(ran_s + requeue_s);
            return true;
        }
        let Some(log) = log.filter(|_| end == StartEnd::Completed) else { return true };
        let Some(steps_s) = training_s(log) else { return true };
        if steps_s > MOST_OF_JOB * ran_s {
            return false;
        }
        let steps_s = steps_s.min(ran_s);
        // Several ranks may print a step, too.
        let repeated = if log.restarts > 0 { log.duplicates } else { 0 };
        let step_s = steps_s / log.steps.len().max(1) as f64;
        let repeated_s = (repeated as f64 * step_s).min(ran_s - steps_s);
        self.training_gpu_hours += hours(steps_s);
        self.repeated_gpu_hours += hours(repeated_s);
        self.outside_steps_gpu_hours += hours(ran_s - steps_s - repeated_s);
        self.requeue_gpu_hours += hours(requeue_s);
        true
    }

    /// Returns all GPU-hours.
    pub(crate) fn gpu_hours(&self) -> f64 {
        self.training_gpu_hours
            + self.outside_steps_gpu_hours
            + self.repeated_gpu_hours
            + self.requeue_gpu_hours
            + self.lost_gpu_hours
    }
}

/// What jobs did, over all runs that were added.
#[derive(Debug, Default)]
pub(crate) struct JobTally {
    /// Number of runs.
    pub(crate) runs: usize,
    /// Number of jobs that started.
    pub(crate) jobs: usize,
    /// Number of jobs that are not part of the goodput because the steps in their logs take longer than they ran.
    pub(crate) implausible: usize,
    gpu_hours: f64,
    ends: BTreeMap<StartEnd, u64>,
    queue_s: Vec<f64>,
    requeue_s: Vec<f64>,
    outside_steps_s: Vec<f64>,
    goodput: MeasuredGoodput,
    nodes: NodeTally,
}

impl JobTally {
    /// Adds a run with its events, with the log of its result, and with the time in milliseconds at which its cluster's
    /// queue last answered.
    pub(crate) fn add(
        &mut self,
        run: &Run,
        events: &[(i64, i64, Event)],
        log: Option<&Log>,
        seen_ms: Option<i64>,
    ) {
        self.runs += 1;
        let seen_ms =
            if run.status.is_over() { run.status.at_ms } else { seen_ms.unwrap_or(run.status.at_ms) };
        for (place, (job, _)) in run.status.jobs.iter().enumerate() {
            let starts = starts(job, events);
            self.jobs += usize::from(!starts.is_empty());
            let (mut all_ran_s, mut requeue_s, mut last_end) = (0.0, 0.0, None);
            for (number, start) in starts.iter().enumerate() {
                let ended = start.ended.unwrap_or(seen_ms / 1000).max(start.started);
                let ran_s = (ended - start.started) as f64;
                self.gpu_hours += ran_s * f64::from(run.plan.gpus) / 3600.0;
                // Only the first job's log is read, and a requeued job's last log.
                let is_logged = place == 0 && number + 1 == starts.len();
                let log = log.filter(|_| is_logged);
                let end = end_of(run, start, is_logged, log);
                *self.ends.entry(end).or_default() += 1;
                let is_telling = end.is_interruption() || end == StartEnd::Completed;
                if let Some(nodes) = start.nodes.as_deref().filter(|_| is_telling) {
                    self.nodes.add(nodes, end.is_interruption());
                }
                let waited = start.submitted.map(|submitted| (start.started - submitted) as f64);
                self.queue_s.extend(waited.filter(|waited| *waited >= 0.0));
                let next = starts.get(number + 1);
                let requeued_s = next.map(|next| (next.started - ended).max(0) as f64);
                self.requeue_s.extend(requeued_s);
                let steps_s = log.filter(|log| log.restarts == 0).and_then(training_s);
                if let (StartEnd::Completed, 1, Some(steps_s)) = (end, starts.len(), steps_s) {
                    self.outside_steps_s.extend(Some(ran_s - steps_s).filter(|rest| *rest >= 0.0));
                }
                all_ran_s += ran_s;
                requeue_s += requeued_s.unwrap_or_default();
                last_end = Some(end);
            }
            if let (0, Some(end)) = (place, last_end) {
                let is_plausible = self.goodput.add(run.plan.gpus, all_ran_s, requeue_s, end, log);
                self.implausible += usize::from(!is_plausible);
            }
        }
    }

    /// Returns how often starts of jobs ended in each way, interruptions first.
    pub(crate) fn ends(&self) -> impl Iterator<Item = (StartEnd, u64)> {
        self.ends.iter().map(|(end, times)| (*end, *times))
    }

    /// Returns the GPU-hours and the interruptions.
    pub(crate) fn observed(&self) -> ObservedFailures {
        let interruptions =
            self.ends().filter(|(end, _)| end.is_interruption()).map(|(_, times)| times).sum();
        ObservedFailures { gpu_hours: self.gpu_hours, interruptions }
    }

    /// Returns the jobs by node.
    pub(crate) fn nodes(&self) -> &NodeTally {
        &self.nodes
    }

    /// Returns the mean time from the submission of a job to its start.
    pub(crate) fn queue(&self) -> Option<MeanTime> {
        MeanTime::of(&self.queue_s)
    }

    /// Returns the mean time from the end of a start to the next start of the same job.
    pub(crate) fn requeue(&self) -> Option<MeanTime> {
        MeanTime::of(&self.requeue_s)
    }

    /// Returns how the GPU-hours were used; none if no job completed with a known log or was interrupted.
    pub(crate) fn goodput(&self) -> Option<MeasuredGoodput> {
        let all = self.goodput.gpu_hours();
        let share = self.goodput.training_gpu_hours / all;
        (all > 0.0).then_some(MeasuredGoodput { share, ..self.goodput })
    }

    /// Returns the mean time that a completed job ran without training: start-up, saves and shutdown.
    pub(crate) fn outside_steps(&self) -> Option<MeanTime> {
        MeanTime::of(&self.outside_steps_s)
    }
}

/// Returns how a start ended.
fn end_of(run: &Run, start: &JobStart, is_logged: bool, log: Option<&Log>) -> StartEnd {
    let Some(end) = start.end else {
        return match start.ended {
            Some(_) => StartEnd::Requeued,
            None if run.status.is_over() => StartEnd::Unknown,
            None => StartEnd::Running,
        };
    };
    match (end, log) {
        (End::Completed, _) => StartEnd::Completed,
        (End::Cancelled, _) => StartEnd::Cancelled,
        (End::TimeLimit, _) => StartEnd::TimeLimit,
        (End::NodeFail, _) => StartEnd::NodeFailure,
        (End::OutOfMemory, _) => StartEnd::OutOfMemory,
        (End::Preempted, _) => StartEnd::Preempted,
        (End::Failed | End::Unknown, Some(log)) => StartEnd::by_log(end, log, run.plan.launched.steps),
        (End::Unknown, None) => StartEnd::Unknown,
        // A job without a result had no log, or a log without steps.
        (End::Failed, None) if is_logged && run.status.phase == Phase::Failed => StartEnd::BeforeFirstStep,
        (End::Failed, None) => StartEnd::FailedWithoutLog,
    }
}

/// Returns the sum of the step times of a log, each step once; none if a step or its time is missing.
fn training_s(log: &Log) -> Option<f64> {
    let span = log.steps.span()?;
    let is_whole = span.count() == log.steps.len() as u64;
    let times: Option<Vec<f64>> = (0..log.steps.len()).map(|row| log.steps.step_time_s.get(row)).collect();
    times.filter(|_| is_whole).map(|times| times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::{Sighting, StateSource};

    /// An observation at a time in seconds, with the times at which the job was submitted, started and ended.
    fn seen(at: i64, state: State, [submitted, started, ended]: [i64; 3]) -> (i64, i64, Event) {
        let time = |time: i64| Some(time).filter(|time| *time > 0);
        let sighting = Sighting {
            submitted: time(submitted),
            started: time(started),
            ended: time(ended),
            ..Sighting::new(state, StateSource::Squeue)
        };
        (at, at * 1000, Event::Observed { job: "7".into(), sighting })
    }

    fn start(submitted: Option<i64>, started: i64, ended: Option<i64>, end: Option<End>) -> JobStart {
        JobStart { submitted, started, ended, end, nodes: None }
    }

    #[test]
    fn a_job_starts_once_unless_it_is_requeued() {
        let events = [
            seen(101, State::Pending, [100, 0, 0]),
            seen(132, State::Running, [100, 130, 0]),
            seen(505, State::Ended(End::Failed), [100, 130, 500]),
            // The exit code comes later.
            seen(509, State::Ended(End::Failed), [100, 130, 500]),
        ];
        assert_eq!(starts("7", &events), [start(Some(100), 130, Some(500), Some(End::Failed))]);
        assert_eq!(starts("8", &events), []);
        // No poll saw it running.
        assert_eq!(starts("7", &events[2..]), [start(Some(100), 130, Some(500), Some(End::Failed))]);
        assert_eq!(starts("7", &events[..2]), [start(Some(100), 130, None, None)]);
        // It was suspended for a while.
        let suspended = [
            events[1].clone(),
            seen(200, State::Suspended, [100, 130, 0]),
            seen(300, State::Running, [100, 130, 0]),
        ];
        assert_eq!(starts("7", &suspended), [start(Some(100), 130, None, None)]);
        // Slurm corrected its start.
        let moved = seen(133, State::Running, [100, 131, 0]);
        let ended = seen(505, State::Ended(End::Failed), [100, 131, 500]);
        let expected = [start(Some(100), 131, Some(500), Some(End::Failed))];
        assert_eq!(starts("7", &[events[1].clone(), moved, ended]), expected);
    }

    #[test]
    fn a_job_that_ends_in_the_queue_never_started() {
        let waiting = seen(101, State::Pending, [100, 0, 0]);
        for cancelled in [[100, 0, 200], [100, 200, 200]] {
            let events = [waiting.clone(), seen(203, State::Ended(End::Cancelled), cancelled)];
            assert_eq!(starts("7", &events), []);
        }
    }

    #[test]
    fn a_requeued_job_starts_again() {
        let first = seen(132, State::Running, [100, 130, 0]);
        let again = seen(605, State::Running, [500, 600, 0]);
        let last = start(None, 600, None, None);
        // Its end was seen.
        let ended = seen(505, State::Ended(End::NodeFail), [100, 130, 500]);
        // A waiting job has the start and end that were known before.
        let waiting = seen(520, State::Pending, [500, 130, 0]);
        let with_end = [first.clone(), ended, waiting.clone(), again.clone()];
        let failed = start(Some(100), 130, Some(500), Some(End::NodeFail));
        assert_eq!(starts("7", &with_end), [failed, last.clone()]);
        // Only its return to the queue was seen, or only its next start.
        let requeued = start(Some(100), 130, Some(500), None);
        for events in [vec![first.clone(), waiting.clone(), again.clone()], vec![first.clone(), again]] {
            assert_eq!(starts("7", &events), [requeued.clone(), last.clone()], "{}", events.len());
        }
        // Cancelled before it started again.
        let cancelled = seen(703, State::Ended(End::Cancelled), [500, 130, 700]);
        assert_eq!(starts("7", &[first, waiting, cancelled]), [requeued]);
    }

    #[test]
    fn goodput_is_the_share_of_steps_that_count() {
        let step = |n| format!("Training epoch 0, iteration {n}/49 | train_step_timing in s: 36.0 |\n");
        let of = |steps: Vec<u32>| {
            trainplan_shared::log::parse(steps.into_iter().map(step).collect::<String>().as_bytes())
        };
        let mut goodput = MeasuredGoodput::default();
        // Half an hour of steps in an hour, and an hour in the queue for a requeued start.
        goodput.add(10, 3600.0, 3600.0, StartEnd::Completed, Some(&of((0..50).collect())));
        let shares = |goodput: &MeasuredGoodput| {
            [
                goodput.training_gpu_hours,
                goodput.outside_steps_gpu_hours,
                goodput.repeated_gpu_hours,
                goodput.requeue_gpu_hours,
                goodput.lost_gpu_hours,
            ]
        };
        assert_eq!(shares(&goodput), [5.0, 5.0, 0.0, 10.0, 0.0]);
        // Ten steps ran again after a restart.
        goodput.add(10, 3600.0, 0.0, StartEnd::Completed, Some(&of((0..30).chain(20..50).collect())));
        assert_eq!(shares(&goodput), [10.0, 9.0, 1.0, 10.0, 0.0]);
        goodput.add(10, 7200.0, 360.0, StartEnd::NodeFailure, None);
        // What the user ended, a wrong launch and a log that isn't known say nothing.
        for (end, log) in [
            (StartEnd::Cancelled, Some(of(vec![0]))),
            (StartEnd::BeforeFirstStep, None),
            (StartEnd::Completed, None),
        ] {
            goodput.add(10, 3600.0, 0.0, end, log.as_ref());
        }
        assert_eq!(shares(&goodput), [10.0, 9.0, 1.0, 10.0, 21.0]);
        // Half an hour of steps can't have run in twenty seconds.
        let log = of((0..50).collect());
        assert!(!goodput.add(10, 20.0, 0.0, StartEnd::Completed, Some(&log)));
        assert_eq!(shares(&goodput), [10.0, 9.0, 1.0, 10.0, 21.0]);
        let tally = JobTally { goodput, ..JobTally::default() };
        assert_eq!(tally.goodput().map(|goodput| goodput.share), Some(10.0 / 51.0));
        assert_eq!(JobTally::default().goodput(), None);
    }

    #[test]
    fn causes_are_read_from_the_log_of_a_failed_job() {
        let steps = |count: u64| -> String {
            let step = |n| format!("Training epoch 0, iteration {n}/49 | train_step_timing in s: 2.0 |\n");
            (0..count).map(step).collect()
        };
        let of =
            |end, text: String| StartEnd::by_log(end, &trainplan_shared::log::parse(text.as_bytes()), 50);
        let nccl = "RuntimeError: NCCL error in: socket\n";
        let memory = "torch.OutOfMemoryError: CUDA out of memory\n";
        assert_eq!(of(End::Failed, steps(5) + nccl), StartEnd::Communication);
        assert_eq!(of(End::Failed, nccl.into()), StartEnd::BeforeFirstStep);
        assert_eq!(of(End::Failed, steps(5) + "RuntimeError: CUDA error: unspecified\n"), StartEnd::GpuError);
        assert_eq!(of(End::Failed, steps(5) + memory), StartEnd::OutOfMemory);
        assert_eq!(of(End::Failed, steps(5) + "ValueError: x\n"), StartEnd::AfterFirstStep);
        assert_eq!(of(End::Failed, steps(5)), StartEnd::AfterFirstStep);
        assert_eq!(of(End::Failed, steps(50) + nccl), StartEnd::Completed);
        assert_eq!(of(End::Unknown, steps(5)), StartEnd::Unknown);
        assert_eq!(of(End::Unknown, steps(50)), StartEnd::Completed);
        assert_eq!(of(End::Unknown, steps(5) + nccl), StartEnd::Communication);
    }
}
