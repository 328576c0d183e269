//! Submission: stages a run's script on the cluster, starts its launcher, and finds the jobs that it
//! submitted.

use super::conductor::{AttemptFailure, Conductor, Observer, SHORT, TaskResult, fresh_mark, printed};
use super::decide::{self, LaunchEvidence, LaunchVerdict, NextStep};
use super::error::ConductError;
use crate::journal::{Event, Phase, now_ms};
use crate::secrets::{self, SecretError};
use crate::slurm::{self, Attempt, AttemptOrder, AttemptReport, Launcher};
use crate::ssh::{LinkError, ScriptOutput};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The longest that one remote command waits for a launcher, in seconds.
const LAUNCHER_WAIT_S: u64 = 20;

/// Launches that are started at the same time.
const LAUNCHES_AT_ONCE: usize = 3;

/// How often staging, or reading secrets, is tried.
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
                NextStep::Fail { why } => self.record(index, Event::Failed { why }, observer).await?,
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

    /// Starts an attempt, or asks how far it is. The secrets come first: without them nothing is launched, and with
    /// them the launcher's output can be kept.
    async fn launch(
        &mut self,
        index: usize,
        attempt: u32,
        tasks: &mut JoinSet<TaskResult>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let live = &mut self.runs[index];
        let Some(secrets) = live.secrets.clone() else {
            (live.busy, live.reads_secrets) = (true, true);
            let wanted = live.run.plan.secrets.clone();
            tasks.spawn(async move { TaskResult::Secrets(index, secrets::find_all(&wanted).await) });
            return Ok(());
        };
        if live.run.status.phase == Phase::Staged {
            let token = slurm::token(&live.run.id, attempt);
            self.record(index, Event::Intended { attempt, token }, observer).await?;
            self.runs[index].may_start = true;
        }
        let live = &mut self.runs[index];
        live.busy = true;
        let starts = live.may_start && secrets.is_ok() && live.run.status.cancel.is_none();
        let order = if starts { AttemptOrder::Start } else { AttemptOrder::Examine };
        let (link, mark, run) = (self.link.clone(), fresh_mark(), &live.run);
        let token = slurm::token(&run.id, attempt);
        let excluded = [run.plan.exclude.as_deref(), self.options.exclude.as_deref()];
        let excluded: Vec<&str> = excluded.into_iter().flatten().collect();
        let of_run =
            Attempt { run: &run.id, is_job: run.plan.is_job, number: attempt, exclude: &excluded.join(",") };
        let mut script = slurm::submit(of_run, order, LAUNCHER_WAIT_S, &mark);
        if let (AttemptOrder::Start, Ok(secrets)) = (order, &secrets) {
            script = secrets.iter().fold(script, |script, (name, value)| script.secret(name, value.clone()));
        }
        tasks.spawn(async move {
            let report = match link.run(&script, SHORT).await {
                Ok(output) if output.code == 0 => {
                    let report = AttemptReport::read(&output.stdout, &mark, &token);
                    let output = match &secrets {
                        Ok(secrets) => {
                            secrets::redact(&report.output, secrets.iter().map(|(_, value)| value.as_str()))
                        }
                        Err(error) => format!("(not shown, because it may contain a secret: {error})"),
                    };
                    Ok(AttemptReport { output, ..report })
                }
                Ok(output) => Err(AttemptFailure::Remote(printed(&output))),
                Err(error) => Err(AttemptFailure::Link(error)),
            };
            TaskResult::Attempted(index, report)
        });
        Ok(())
    }

    pub(super) async fn take_in_secrets(
        &mut self,
        index: usize,
        secrets: Result<Vec<(String, String)>, SecretError>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let live = &mut self.runs[index];
        (live.busy, live.reads_secrets) = (false, false);
        match (live.run.status.phase, secrets) {
            (Phase::Staged, Err(error)) => {
                self.retry_or_fail(index, error.to_string().trim_end_matches('.'), observer).await
            }
            (_, secrets) => {
                live.take_secrets(secrets);
                Ok(())
            }
        }
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
                (self.runs[index].tries, self.runs[index].trouble) = (0, None);
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
        report: Result<AttemptReport, AttemptFailure>,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let live = &mut self.runs[index];
        live.busy = false;
        let report = match report {
            Ok(report) => report,
            // Whatever happened on the cluster, the same attempt is examined again and never started twice.
            Err(AttemptFailure::Link(error)) => {
                live.may_start &= !matches!(error, LinkError::Lost { .. });
                live.wait(Duration::from_secs(5));
                return self.not_reached(None, &error, observer).await;
            }
            // The cluster answers, so this is about the run alone.
            Err(AttemptFailure::Remote(why)) => {
                live.tries += 1;
                live.wait(Duration::from_secs(u64::from(live.tries * 5).min(60)));
                self.complain(index, &why, observer);
                return Ok(());
            }
        };
        live.may_start = false;
        if report.launcher != Launcher::Running {
            live.launcher_over.get_or_insert_with(Instant::now);
        }
        self.reached(observer);
        if report.queue_asked {
            self.seen_ms = Some(now_ms());
        }
        let run = &self.runs[index].run;
        let known = LaunchEvidence {
            marks_survive: self.marks_survive,
            claimed: &self.journal.jobs_of_others(&self.round.cluster, &run.id).await?,
            contested: &self.journal.names_being_launched(&self.round.cluster, &run.id).await?,
            over_for: self.runs[index].launcher_over.map_or(Duration::ZERO, |over| over.elapsed()),
            now_ms: now_ms(),
        };
        let verdict = decide::judge_attempt(run, &report, known);
        let live = &mut self.runs[index];
        let event = match verdict {
            LaunchVerdict::Unknown => {
                live.wait(Duration::from_secs(2));
                return Ok(());
            }
            LaunchVerdict::Jobs { jobs, by_name } => {
                self.marks_survive = report.marked.unwrap_or(self.marks_survive);
                self.poll_soon();
                Event::Submitted { jobs, launcher: report.launcher, marked: report.marked, by_name }
            }
            LaunchVerdict::NoJob { why, again } => {
                let pause_s = if report.launcher == Launcher::Withheld { 0 } else { 10 };
                live.wait(Duration::from_secs(pause_s));
                Event::NotSubmitted { why, again }
            }
        };
        let live = &mut self.runs[index];
        (live.secrets, live.launcher_over, live.tries, live.trouble) = (None, None, 0, None);
        self.record(index, event, observer).await
    }

    /// Lets a step before the launch be tried again, up to [`TRIES`] times in all.
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
        self.complain(index, why, observer);
        Ok(())
    }

    /// Says why a step of a run failed and will be tried again, once for each cause.
    fn complain(&mut self, index: usize, why: &str, observer: &mut dyn Observer) {
        let live = &mut self.runs[index];
        if live.trouble.as_deref() != Some(why) {
            observer.note(&format!("{}: {why}. Trying again.", live.run.plan.title()));
            live.trouble = Some(why.to_string());
        }
    }
}
