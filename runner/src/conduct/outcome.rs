//! What a run comes to: its result, beside its prediction and what is published.

use super::copy::is_worth_keeping;
use super::live::Live;
use crate::journal::{Event, Phase, Round, Run};
use crate::slurm::{End, State};
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;
use trainplan_shared::log::Status;
use trainplan_shared::result::{Carried, Job, Report, RunResult, View};
use uuid::Uuid;

/// What became of a run, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// It is not over.
    Open,
    /// It was measured.
    Scored,
    /// It was not; its result says why.
    Failed,
}

impl Outcome {
    /// Of a run.
    pub(crate) fn of(run: &Run) -> Outcome {
        let scored =
            |event: &Event| matches!(event, Event::Parsed { status, .. } if status == Status::Scored.id());
        match (run.status.phase, &run.status.parsed) {
            (Phase::Stored, Some(parsed)) if scored(parsed) => Outcome::Scored,
            (Phase::Stored | Phase::Failed, _) => Outcome::Failed,
            _ => Outcome::Open,
        }
    }
}

/// What a copied log tells.
pub(super) fn parsed(live: &Live, round: &Round) -> Event {
    let Some((result, _)) = make(live, round) else {
        return Event::Parsed {
            status: Status::NoData.id().into(),
            reason: Some("there is no log".into()),
            step_time_s: None,
            mfu: None,
            speed_percent: None,
            error: None,
            within: None,
        };
    };
    let report = Report::of(&result, &View::default());
    Event::Parsed {
        reason: reason(&live.run, &report),
        status: report.status.id().into(),
        step_time_s: report.step_time_s.map(|stat| stat.mean),
        mfu: report.mfu,
        speed_percent: report.baseline.and_then(|baseline| baseline.speed_percent),
        error: report.plan.and_then(|plan| plan.error),
        within: report.plan.and_then(|plan| plan.within),
    }
}

/// The result to keep, with its log's compressed copy; none where the log tells nothing.
pub(super) fn result(live: &Live, round: &Round) -> Option<(RunResult, PathBuf)> {
    let (result, log) = make(live, round)?;
    let report = Report::of(&result, &View::default());
    is_worth_keeping(report.status).then_some((result, log))
}

/// Why a run has no score: how its job ended, where it did not complete, and what the log tells.
fn reason(run: &Run, report: &Report) -> Option<String> {
    let told = report.reason.clone();
    let Some(ended) = ended(run).filter(|_| report.status != Status::Scored) else { return told };
    Some(match (report.status, told) {
        // The log alone could as well be of a job that still runs.
        (Status::Incomplete, _) | (_, None) => {
            format!("{ended} after {} of {} steps", report.steps, run.plan.launched.steps)
        }
        (_, Some(told)) => format!("{ended}; {told}"),
    })
}

/// How the measured job ended, unless it completed.
pub(crate) fn ended(run: &Run) -> Option<String> {
    let seen = run.status.jobs.first()?.1.as_ref()?;
    let State::Ended(end) = seen.state else { return None };
    Some(match (end, seen.exit_code) {
        (End::Completed, _) => return None,
        (End::Failed, Some(code)) => format!("its job failed with exit code {code}"),
        (End::Failed, None) => "its job failed".into(),
        (End::Cancelled, _) => "its job was cancelled".into(),
        (End::TimeLimit, _) => "its job was ended by its time limit".into(),
        (End::NodeFail, _) => "its job lost a node".into(),
        (End::OutOfMemory, _) => "its job ran out of memory".into(),
        (End::Preempted, _) => "its job was preempted".into(),
        (End::Unknown, _) => "its job ended, Slurm no longer says how".into(),
    })
}

/// Why there is nothing to keep.
pub(super) fn nothing_to_keep(run: &Run) -> String {
    match &run.status.parsed {
        Some(Event::Parsed { reason: Some(reason), .. }) => reason.clone(),
        _ => "its log tells nothing".into(),
    }
}

fn make(live: &Live, round: &Round) -> Option<(RunResult, PathBuf)> {
    let copy = live.copy.as_ref()?;
    let run = &live.run;
    let id = Uuid::parse_str(&run.id).ok()?;
    let mut result = copy.result().of_run(id, carried(run, round));
    result.comparable.reasons.extend(run.status.remarks.iter().cloned());
    result.comparable.reasons.extend(run.plan.launched.comparable.reasons.iter().cloned());
    result.comparable.yes = result.comparable.reasons.is_empty();
    Some((result, copy.file().to_path_buf()))
}

/// What is known of it besides its log.
fn carried(run: &Run, round: &Round) -> Carried {
    let time = |seconds: Option<i64>| {
        seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).map(|time| time.to_string())
    };
    let jobs = run.status.jobs.iter().enumerate().map(|(place, (id, seen))| {
        let seen = seen.as_ref();
        Job {
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
        }
    });
    Carried {
        campaign: round.campaign.clone(),
        run: run.plan.name.clone(),
        repeat: run.plan.repeat,
        cluster: round.cluster.clone(),
        jobs: jobs.collect(),
        launch: run.plan.launched.clone(),
        plan: run.plan.predicted.clone(),
    }
}
