//! Cancellation: takes in requests, calls scancel, and waits until Slurm confirms that the jobs are over.

use super::conductor::{Conductor, Observer, SHORT, TaskResult, fresh_mark};
use super::error::ConductError;
use crate::journal::{Event, Phase};
use crate::slurm;
use crate::ssh::ScriptOutput;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The pause before scancel is called again for the same run.
const PAUSE: Duration = Duration::from_secs(15);

impl Conductor<'_> {
    /// Takes in the requests that `trainplan jobs cancel` left in the journal.
    pub(super) async fn take_in_cancel_requests(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        for run in self.journal.cancel_requests().await? {
            let Some(index) = self.runs.iter().position(|live| live.run.id == run) else { continue };
            self.ask_to_cancel(index, "requested by `trainplan jobs cancel`", observer).await?;
        }
        Ok(())
    }

    pub(super) async fn ask_to_cancel_all(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        for index in 0..self.runs.len() {
            self.ask_to_cancel(index, "requested at the terminal", observer).await?;
        }
        Ok(())
    }

    /// Records that a run is to be cancelled, unless that is known or its jobs are over.
    pub(super) async fn ask_to_cancel(
        &mut self,
        index: usize,
        why: &str,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let status = &self.runs[index].run.status;
        if status.cancel.is_some() || status.phase >= Phase::Ended {
            return Ok(());
        }
        self.record(index, Event::CancelAsked { why: why.to_string() }, observer).await
    }

    /// Calls scancel for all runs that are to be cancelled and whose jobs are not over.
    pub(super) async fn cancel(
        &mut self,
        tasks: &mut JoinSet<TaskResult>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let (mut jobs, mut runs) = (Vec::new(), Vec::new());
        for index in 0..self.runs.len() {
            let live = &mut self.runs[index];
            let is_due = live.cancel_not_before <= Instant::now();
            if live.run.status.cancel.is_none() || live.cancelling || !is_due {
                continue;
            }
            match live.run.status.phase {
                // A launch that was never sent to the cluster did not happen.
                Phase::Planned | Phase::Staged if !live.busy || live.reads_secrets => {
                    let why = "cancelled before it was submitted".to_string();
                    self.record(index, Event::Failed { why }, observer).await?;
                }
                Phase::Intended if live.may_start && !live.busy => {
                    let why = "cancelled before it was submitted".to_string();
                    self.record(index, Event::Failed { why }, observer).await?;
                }
                Phase::Submitted => {
                    live.cancelling = true;
                    jobs.extend(live.open_jobs());
                    runs.push(index);
                }
                _ => {}
            }
        }
        if !runs.is_empty() {
            let (link, mark) = (self.link.clone(), fresh_mark());
            let script = slurm::cancel(&jobs, &mark);
            tasks.spawn(async move {
                let result = link.run(&script, SHORT).await;
                TaskResult::Cancelled { runs, mark, result }
            });
        }
        Ok(())
    }

    /// Records the answer of scancel, once a run. The state of the jobs confirms it; until then scancel is
    /// called again.
    pub(super) async fn take_in_cancelled(
        &mut self,
        runs: &[usize],
        mark: &str,
        output: Option<&ScriptOutput>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let answers = output.map(|output| slurm::cancel_answers(&output.stdout, mark));
        for &index in runs {
            let live = &mut self.runs[index];
            live.cancelling = false;
            live.cancel_not_before = Instant::now() + PAUSE;
            let is_first = live.run.status.cancel.as_ref().is_some_and(|(_, sent)| !sent);
            let Some(answers) = answers.as_ref().filter(|_| is_first) else { continue };
            let refused = answers.iter().filter(|answer| {
                answer.code != 0 && live.run.status.jobs.iter().any(|(job, _)| *job == answer.job)
            });
            let refused: Vec<String> =
                refused.map(|answer| format!("job {}: {}", answer.job, answer.message)).collect();
            self.record(index, Event::CancelSent { answer: refused.join("\n") }, observer).await?;
        }
        self.poll_soon();
        Ok(())
    }
}
