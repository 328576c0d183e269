//! The outcome of a run: its result, compared with its plan and with the published number.

use super::log_copy::{LogCopy, is_worth_keeping};
use crate::journal::{Event, Phase, Round, Run};
use crate::slurm::{End, State};
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;
use trainplan_shared::log::Status;
use trainplan_shared::result::{CampaignRun, Report, RunResult, SlurmJob, View};
use uuid::Uuid;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunOutcome {
    /// The run is not over.
    Open,
    /// Its log has a score.
    Scored,
    /// Somebody cancelled it, and it has no score.
    Cancelled,
    /// It has no score. The result, or the run's failure, says why.
    Failed,
}

impl RunOutcome {
    /// Returns the outcome of a run.
    pub(crate) fn of(run: &Run) -> RunOutcome {
        match (run.status.phase, &run.status.parsed) {
            (Phase::Stored, Some(Event::Parsed { status: Status::Scored, .. })) => RunOutcome::Scored,
            (Phase::Stored, Some(Event::Parsed { status: Status::Cancelled, .. })) => RunOutcome::Cancelled,
            (Phase::Failed, _) if is_cancelled(run) => RunOutcome::Cancelled,
            (Phase::Stored | Phase::Failed, _) => RunOutcome::Failed,
            _ => RunOutcome::Open,
        }
    }
}

/// Returns whether somebody cancelled a run that has no result. A run that waited in the queue for longer than its budget was
/// not cancelled by anybody.
fn is_cancelled(run: &Run) -> bool {
    let mut seen = run.status.jobs.iter().filter_map(|(_, seen)| seen.as_ref());
    let ran = seen.any(|seen| seen.started.is_some() && seen.started != seen.ended);
    match run.status.jobs.first() {
        None => run.status.cancel.is_some(),
        Some((_, Some(seen))) if seen.state == State::Ended(End::Cancelled) => {
            ran || run.plan.queue_budget_s.is_none()
        }
        Some(_) => false,
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
        status: report.status,
        reason: report.reason.clone(),
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

/// Returns how the measured job ended, unless it completed.
pub(super) fn ended(run: &Run) -> Option<String> {
    let seen = run.status.jobs.first()?.1.as_ref()?;
    let State::Ended(end) = seen.state else { return None };
    let job = SlurmJob { state: end.word().into(), exit_code: seen.exit_code, ..SlurmJob::default() };
    job.early_end().map(|(clause, _)| clause)
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
        round: Some(round.number).filter(|number| *number > 0),
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

    #[test]
    fn a_cancelled_run_has_not_failed() {
        let of = |plan: Plan, status: RunStatus| {
            let run = Run { id: "a".into(), round: "r".into(), plan, status };
            RunOutcome::of(&run)
        };
        let ended = |end: End, started: Option<i64>| {
            let sighting = Sighting {
                state: State::Ended(end),
                source: StateSource::Sacct,
                reason: String::new(),
                exit_code: None,
                submitted: Some(1),
                started,
                ended: Some(9),
                nodes: None,
            };
            let jobs = vec![("7".into(), Some(sighting))];
            RunStatus { phase: Phase::Failed, jobs, ..RunStatus::default() }
        };
        let usual = plan("llama-8b");
        assert_eq!(of(usual.clone(), ended(End::Cancelled, None)), RunOutcome::Cancelled);
        assert_eq!(of(usual.clone(), ended(End::Failed, Some(2))), RunOutcome::Failed);
        // The runner itself cancels a run that waits for too long.
        let impatient = Plan { queue_budget_s: Some(1), ..usual.clone() };
        assert_eq!(of(impatient.clone(), ended(End::Cancelled, None)), RunOutcome::Failed);
        assert_eq!(of(impatient, ended(End::Cancelled, Some(2))), RunOutcome::Cancelled);
        let unsubmitted = |cancel| RunStatus { phase: Phase::Failed, cancel, ..RunStatus::default() };
        assert_eq!(of(usual.clone(), unsubmitted(Some(("asked".into(), false)))), RunOutcome::Cancelled);
        assert_eq!(of(usual, unsubmitted(None)), RunOutcome::Failed);
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
