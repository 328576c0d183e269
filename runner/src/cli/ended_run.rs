//! What a command or a webhook learns of a run that ended.

use super::judged_run::JudgedRun;
use crate::conduct::RunOutcome;
use crate::journal::{Event, Run};
use serde::Serialize;

/// A run that ended, as a command or a webhook gets it.
#[derive(Debug, Serialize)]
pub(super) struct EndedRun {
    /// Its name, with its repeat and its retry.
    pub(super) run: String,
    pub(super) run_id: String,
    pub(super) outcome: &'static str,
    /// Why it has no score, or what to know about the measurement.
    pub(super) why: Option<String>,
    pub(super) step_time_s: Option<f64>,
    /// The step time by which it is judged.
    pub(super) judged_s: Option<f64>,
    #[serde(skip)]
    pub(super) judged: Option<JudgedRun>,
    pub(super) mfu: Option<f64>,
    /// The id of its result in the store.
    pub(super) result: Option<String>,
    /// Which attempt it is, from 1.
    attempt: u32,
    /// The most attempts that the campaign allows.
    attempts: u32,
}

impl EndedRun {
    /// Returns the run as its last event left it.
    pub(super) fn of(run: &Run, event: &Event) -> EndedRun {
        let outcome = match RunOutcome::of(run) {
            RunOutcome::Scored => "scored",
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Failed | RunOutcome::Open => "failed",
        };
        let mut ended = EndedRun {
            run: run.plan.title(),
            run_id: run.id.clone(),
            outcome,
            why: None,
            step_time_s: None,
            judged_s: None,
            judged: None,
            mfu: None,
            result: None,
            attempt: run.plan.retry.saturating_add(1),
            attempts: run.plan.retries.saturating_add(1),
        };
        if let Some(parsed @ Event::Parsed { reason, step_time_s, mfu, .. }) = &run.status.parsed {
            (ended.why, ended.step_time_s, ended.mfu) = (reason.clone(), *step_time_s, *mfu);
            ended.judged = JudgedRun::of(parsed, run.plan.predicted.step_time_s);
            ended.judged_s = ended.judged.map(|judged| judged.step_time_s);
        }
        match event {
            Event::Failed { why } => ended.why = Some(why.clone()),
            Event::Stored { result } => ended.result = Some(result.clone()),
            _ => {}
        }
        ended
    }
}
