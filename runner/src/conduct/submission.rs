//! Submission: stages a run's script on the cluster, starts its launcher, and finds the jobs that it
//! submitted.

use super::conductor::{Conductor, Observer, SHORT, TaskResult, fresh_mark, printed};
use super::decide::{self, LaunchVerdict, NextStep};
use super::error::ConductError;
use crate::journal::{Event, Phase, now_ms};
use crate::secrets;
use crate::slurm::{self, AttemptReport};
use crate::ssh::{LinkError, ScriptOutput};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The longest that one remote command waits for a launcher, in seconds.
const LAUNCHER_WAIT_S: u64 = 20;

/// Launches that are started at the same time.
const LAUNCHES_AT_ONCE: usize = 3;

/// How often staging is tried.
const TRIES: u32 = 5;

impl Conductor<'_> {
    /// Starts the next step of every run that has no job yet.
    pub(super) async fn submit(
        &mut self,
        tasks: &mut JoinSet<TaskResult>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        for index in 0..self.runs.len() {
            if self.runs[index].busy || self.runs[index].not_before > Instant::now() {
                continue;
            }
            if self.runs.iter().filter(|live| live.busy).count() >= LAUNCHES_AT_ONCE {
                return Ok(());
            }
            match decide::next(&self.runs, index, self.options.at_once, self.quitting) {
                NextStep::Wait => {}
                NextStep::Stage => self.stage(index, tasks),
                NextStep::Launch { attempt } => self.launch(index, attempt, tasks, observer).await?,
            }
        }
        Ok(())
    }

    fn stage(&mut self, index: usize, tasks: &mut JoinSet<TaskResult>) {
        let live = &mut self.runs[index];
        live.busy = true;
        let (link, script) = (self.link.clone(), slurm::stage(&live.run.id, &live.run.plan.script));
        tasks.spawn(async move { TaskResult::Staged(index, link.run(&script, SHORT).await) });
    }

    async fn launch(
        &mut self,
        index: usize,
        attempt: u32,
        tasks: &mut JoinSet<TaskResult>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        if self.runs[index].run.status.phase == Phase::Staged {
            let token = slurm::token(&self.runs[index].run.id, attempt);
            self.record(index, Event::Intended { attempt, token }, observer).await?;
        }
        let live = &mut self.runs[index];
        live.busy = true;
        let (link, mark, run) = (self.link.clone(), fresh_mark(), &live.run);
        let script = slurm::submit(&run.id, run.plan.is_job, attempt, LAUNCHER_WAIT_S, &mark);
        let secrets = run.plan.secrets.clone();
        tasks.spawn(async move {
            let secrets = match secrets::find_all(&secrets).await {
                Ok(secrets) => secrets,
                Err(error) => return TaskResult::Attempted(index, Err(error.to_string())),
            };
            let script =
                secrets.iter().fold(script, |script, (name, value)| script.secret(name, value.clone()));
            let report = match link.run(&script, SHORT).await {
                Ok(output) if output.code == 0 => {
                    let report = AttemptReport::read(&output.stdout, &mark);
                    let values = secrets.iter().map(|(_, value)| value.as_str());
                    Ok(AttemptReport { output: secrets::redact(&report.output, values), ..report })
                }
                Ok(output) => Err(printed(&output)),
                Err(error) => Err(error.to_string()),
            };
            TaskResult::Attempted(index, report)
        });
        Ok(())
    }

    pub(super) async fn take_in_staged(
        &mut self,
        index: usize,
        result: Result<ScriptOutput, LinkError>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        self.runs[index].busy = false;
        match result {
            Ok(output) if output.code == 0 => {
                self.reached(observer);
                let folder = String::from_utf8_lossy(&output.stdout).trim().to_string();
                let sha256 = slurm::sha256(&self.runs[index].run.plan.script);
                self.record(index, Event::Staged { sha256, folder }, observer).await
            }
            Ok(output) => {
                let why = format!("can't write its script on the cluster: {}", printed(&output));
                self.retry_or_fail(index, &why, observer).await
            }
            Err(error) => self.not_reached(Some(index), &error, observer).await,
        }
    }

    pub(super) async fn take_in_attempt(
        &mut self,
        index: usize,
        report: Result<AttemptReport, String>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        self.runs[index].busy = false;
        let report = match report {
            Ok(report) => report,
            Err(why) => {
                // Whatever happened on the cluster, the same attempt is examined again and never started
                // twice.
                self.runs[index].wait(Duration::from_secs(5));
                tracing::warn!("{}: {why}", self.runs[index].run.plan.title());
                return self.unreachable(&why, observer).await;
            }
        };
        self.reached(observer);
        let live = &mut self.runs[index];
        match decide::judge_attempt(&live.run.status, &report, now_ms()) {
            LaunchVerdict::Unknown => {
                live.wait(Duration::from_secs(2));
                Ok(())
            }
            LaunchVerdict::Jobs(jobs) => {
                self.poll_soon();
                self.record(index, Event::Submitted { jobs, launcher: report.launcher }, observer).await
            }
            LaunchVerdict::NoJob { why, again } => {
                live.wait(Duration::from_secs(10));
                self.record(index, Event::NotSubmitted { why, again }, observer).await
            }
        }
    }

    /// Lets staging be tried again, up to [`TRIES`] times in all.
    async fn retry_or_fail(
        &mut self,
        index: usize,
        why: &str,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let live = &mut self.runs[index];
        live.tries += 1;
        if live.tries >= TRIES {
            return self.record(index, Event::Failed { why: why.to_string() }, observer).await;
        }
        live.wait(Duration::from_secs(5 * u64::from(live.tries)));
        observer.note(&format!("{}: {why}. Trying again.", self.runs[index].run.plan.title()));
        Ok(())
    }
}
