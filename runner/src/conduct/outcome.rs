//! The outcome of a run: its result, compared with its plan and with the published number.

use super::log_copy::{LogCopy, is_worth_keeping};
use crate::journal::{Event, Phase, Round, Run};
use crate::slurm::{End, State};
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;
use trainplan_shared::log::{FailureKind, Status};
use trainplan_shared::result::{CampaignRun, Report, RunResult, SlurmJob, View, sentence};
use uuid::Uuid;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunOutcome {
    /// The run is not over.
    Open,
    /// Its log has a score.
    Scored,
    /// It has no score. The result, or the run's failure, says why.
    Failed,
}

impl RunOutcome {
    /// Returns the outcome of a run.
    pub(crate) fn of(run: &Run) -> RunOutcome {
        let scored = |event: &Event| matches!(event, Event::Parsed { status: Status::Scored, .. });
        match (run.status.phase, &run.status.parsed) {
            (Phase::Stored, Some(parsed)) if scored(parsed) => RunOutcome::Scored,
            (Phase::Stored | Phase::Failed, _) => RunOutcome::Failed,
            _ => RunOutcome::Open,
        }
    }
}

/// Returns whether a run is to be tried again: it has no score because a node failed or its job was preempted, its plan
/// allows it, and nobody cancelled it. Any other failure would recur.
pub(super) fn may_be_retried(run: &Run) -> bool {
    let end = run.status.jobs.first().and_then(|(_, seen)| seen.as_ref()).map(|seen| &seen.state);
    let passes = matches!(end, Some(State::Ended(End::NodeFail | End::Preempted)));
    RunOutcome::of(run) == RunOutcome::Failed
        && run.plan.retry < run.plan.retries
        && run.status.cancel.is_none()
        && passes
}

/// Parses the copy of a run's log.
pub(super) fn parsed(run: &Run, copy: Option<&LogCopy>, round: &Round) -> Event {
    let Some((result, _)) = make(run, copy, round) else {
        return Event::Parsed {
            status: Status::NoData,
            reason: Some("no log was found".into()),
            step_time_s: None,
            judged_s: None,
            mfu: None,
            speed_percent: None,
            error: None,
            within: None,
        };
    };
    let report = Report::of(&result, &View::default());
    let step_time_s = report.step_time_s.map(|stat| stat.mean);
    Event::Parsed {
        reason: reason(run, &report),
        status: report.status,
        step_time_s,
        judged_s: report.judged_s,
        mfu: report.mfu,
        speed_percent: report.baseline.and_then(|baseline| baseline.scored_speed_percent),
        error: step_time_s.zip(report.plan).map(|(scored_s, plan)| scored_s / plan.step_time_s.mid - 1.0),
        within: report.plan.and_then(|plan| plan.scored_within),
    }
}

/// Returns the result to store and the compressed copy of its log; none if the log has no data.
pub(super) fn result(run: &Run, copy: Option<&LogCopy>, round: &Round) -> Option<(RunResult, PathBuf)> {
    let (result, log) = make(run, copy, round)?;
    let report = Report::of(&result, &View::default());
    is_worth_keeping(report.status).then_some((result, log))
}

/// Returns why a run has no score: how its job ended, unless it completed, and what the log says.
fn reason(run: &Run, report: &Report) -> Option<String> {
    let reason = report.reason.clone();
    let Some(ended) = ended(run).filter(|_| report.status != Status::Scored) else { return reason };
    Some(match (report.status, reason) {
        // The log alone could be that of a job that still runs.
        (Status::Incomplete, _) | (_, None) => {
            format!("{ended} after {} of {} steps", report.steps, run.plan.launched.steps)
        }
        (_, Some(reason)) if names_end(run, report) => reason,
        (_, Some(reason)) => format!("{ended}. {}", sentence(&reason)),
    })
}

/// Returns whether the cause that the log names is how the job ended.
fn names_end(run: &Run, report: &Report) -> bool {
    let last = report.failures.iter().filter(|failure| failure.after_last_step);
    let cause = last.min_by_key(|failure| failure.kind).map(|failure| failure.kind);
    match run.status.jobs.first().and_then(|(_, seen)| seen.as_ref()).map(|seen| &seen.state) {
        Some(State::Ended(End::Cancelled)) => cause == Some(FailureKind::Cancelled),
        Some(State::Ended(End::TimeLimit)) => cause == Some(FailureKind::TimeLimit),
        Some(State::Ended(End::NodeFail)) => cause == Some(FailureKind::NodeFailure),
        Some(State::Ended(End::Preempted)) => cause == Some(FailureKind::Preempted),
        _ => false,
    }
}

/// Returns how the measured job ended, unless it completed.
pub(crate) fn ended(run: &Run) -> Option<String> {
    let seen = run.status.jobs.first()?.1.as_ref()?;
    let State::Ended(end) = seen.state else { return None };
    Some(match (end, seen.exit_code) {
        (End::Completed, _) => return None,
        (End::Failed, Some(code)) => format!("the job failed with exit code {code}"),
        (End::Failed, None) => "the job failed".into(),
        (End::Cancelled, _) => "the job was cancelled".into(),
        (End::TimeLimit, _) => "the job reached its time limit".into(),
        (End::NodeFail, _) => "the job lost a node".into(),
        (End::OutOfMemory, _) => "the job ran out of memory".into(),
        (End::Preempted, _) => "the job was preempted".into(),
        (End::Unknown, _) => "the job ended, and Slurm no longer knows how".into(),
    })
}

/// Returns why a run has no result.
pub(super) fn no_result(run: &Run) -> String {
    match &run.status.parsed {
        Some(Event::Parsed { reason: Some(reason), .. }) => reason.clone(),
        _ => "the log has no data".into(),
    }
}

fn make(run: &Run, copy: Option<&LogCopy>, round: &Round) -> Option<(RunResult, PathBuf)> {
    let copy = copy?;
    let id = Uuid::parse_str(&run.id).ok()?;
    let mut result = copy.result().of_run(id, carried(run, round));
    result.comparable.reasons.extend(run.status.disturbances.iter().map(ToString::to_string));
    result.comparable.reasons.extend(run.plan.launched.comparable.reasons.iter().cloned());
    result.comparable.yes = result.comparable.reasons.is_empty();
    Some((result, copy.file().to_path_buf()))
}

/// Returns what is known of a run apart from its log.
fn carried(run: &Run, round: &Round) -> CampaignRun {
    let time = |seconds: Option<i64>| {
        seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).map(|time| time.to_string())
    };
    let is_retried = run.plan.retries > 0;
    let jobs = run.status.jobs.iter().enumerate().map(|(place, (id, seen))| {
        let seen = seen.as_ref();
        SlurmJob {
            id: id.clone(),
            name: run.plan.job_names.get(place).cloned().unwrap_or_default(),
            state: match seen.map(|seen| &seen.state) {
                Some(State::Ended(end)) => end.word().into(),
                _ => End::Unknown.word().into(),
            },
            exit_code: seen.and_then(|seen| seen.exit_code),
            submitted: time(seen.and_then(|seen| seen.submitted)),
            started: time(seen.and_then(|seen| seen.started)),
            ended: time(seen.and_then(|seen| seen.ended)),
            nodes: seen.and_then(|seen| seen.nodes.clone()),
            attempt: is_retried.then(|| run.plan.retry.saturating_add(1)),
            attempts: is_retried.then(|| run.plan.retries.saturating_add(1)),
        }
    });
    CampaignRun {
        campaign: round.campaign.clone(),
        run: run.plan.name.clone(),
        repeat: run.plan.repeat,
        cluster: round.cluster.clone(),
        jobs: jobs.collect(),
        launch: run.plan.launched.clone(),
        plan: run.plan.predicted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::{plan, round};
    use crate::journal::{Plan, RunStatus};
    use crate::slurm::{Sighting, StateSource};
    use trainplan_shared::result::Intake;
    use trainplan_shared::spec::Spec;

    #[test]
    fn how_a_job_ended_is_said_once() {
        let reason_of = |end: End, log: &str| {
            let sighting = Sighting {
                state: State::Ended(end),
                source: StateSource::Sacct,
                reason: String::new(),
                exit_code: None,
                submitted: None,
                started: None,
                ended: None,
                nodes: None,
            };
            let status = RunStatus { jobs: vec![("7".into(), Some(sighting))], ..RunStatus::default() };
            let run = Run { id: "a".into(), round: "r".into(), plan: plan("llama-8b"), status };
            let mut intake = Intake::new("log-a.pretrain_llama3.1_8b_fp8_8_7_0.out", &Spec::default());
            intake.feed(log.as_bytes());
            let report = Report::of(&intake.finish(), &View::default());
            assert_eq!(report.status, Status::Failed);
            reason(&run, &report).unwrap()
        };
        let log = "Training epoch 0, iteration 0/49 | global_batch_size: 128 | global_step: 0 | train_step_timing in s: 9.4\n\
            slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***\n";
        let cancelled = reason_of(End::Cancelled, log);
        assert_eq!(cancelled.matches("the job was cancelled").count(), 1, "{cancelled}");
        let preempted = reason_of(End::Preempted, log);
        assert!(preempted.starts_with("the job was preempted. The log ends at step "), "{preempted}");
    }

    #[test]
    fn a_result_says_which_attempt_it_is_where_retries_are_allowed() {
        let attempt = |retries: u32, retry: u32| {
            let status = RunStatus { jobs: vec![("7".into(), None)], ..RunStatus::default() };
            let plan = Plan { retries, retry, ..plan("llama-8b") };
            let words = plan.attempt_words();
            let run = Run { id: "a".into(), round: "r".into(), plan, status };
            let job = carried(&run, &round("r")).jobs.remove(0);
            (job.attempt, job.attempts, words)
        };
        assert_eq!(attempt(0, 0), (None, None, None));
        assert_eq!(attempt(2, 0), (Some(1), Some(3), None));
        assert_eq!(attempt(2, 1), (Some(2), Some(3), Some("attempt 2 of 3".into())));
    }
}
