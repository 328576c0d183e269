//! A run in progress: its state from the journal, and what only this process knows.

use super::error::ConductError;
use super::log_copy::{Continuation, LogCopy, LogProgress};
use super::outcome;
use crate::journal::{Copied, Event, Journal, LogRestart, Phase, Round, Run};
use crate::secrets::{self, SecretError};
use crate::slurm::{
    ClusterView, End, LogChunk, LogSearch, LogTail, PollRequest, Sighting, State, StateSource,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trainplan_shared::api::{RunProgress, RunState};
use trainplan_shared::campaign::Upload;
use trainplan_shared::catalog::Release;
use trainplan_shared::link;
use trainplan_shared::spec::Spec;
use uuid::Uuid;

/// A run with its running tasks.
pub(crate) struct LiveRun {
    pub(crate) run: Run,
    /// The progress of training, from the log so far.
    pub(crate) progress: LogProgress,
    /// The copy of the measured job's log.
    pub(super) copy: Option<LogCopy>,
    /// How far the files beside the log are read.
    pub(super) settings: SettingsState,
    /// Whether a task stages or launches it.
    pub(super) busy: bool,
    /// When the next task for its launch may start.
    pub(super) not_before: Instant,
    /// Failed tries at staging, or at reading its secrets.
    pub(super) tries: u32,
    /// What was last said about a failed try.
    pub(super) trouble: Option<String>,
    /// Its secrets, from shortly before a launch until it is known what the launcher did.
    pub(super) secrets: Option<Result<Vec<(String, String)>, SecretError>>,
    /// The values of its secrets that this process knows, which are hidden in the copy of its log.
    hidden: Vec<String>,
    /// Whether the task that makes it busy only reads its secrets.
    pub(super) reads_secrets: bool,
    /// Whether this process wrote the intent of the present attempt, and has not sent it to the cluster yet.
    pub(super) may_start: bool,
    /// When the launcher was first seen to be over.
    pub(super) launcher_over: Option<Instant>,
    /// Whether a task calls scancel for it.
    pub(super) cancelling: bool,
    /// When scancel may be called again.
    pub(super) cancel_not_before: Instant,
    /// Whether the copy has more than the journal lists.
    pub(super) grown: bool,
    /// Jobs that are no longer in the queue, since when, and in how many polls.
    missing: Vec<(String, Instant, u32)>,
    /// When its jobs were seen to be over, and how many polls since then found no more of the log.
    over: Option<(Instant, u32)>,
    /// When the last step was seen.
    last_step: Option<Instant>,
    running_since: Option<Instant>,
    /// When the lack of steps was reported.
    quiet_since: Option<Instant>,
    /// When steps were first seen, and how many there were.
    first_step: Option<(Instant, u64)>,
    /// Seconds per step, by the arrival of steps here.
    pace_s: Option<f64>,
    /// When its progress was last reported to its server.
    last_report: Option<Instant>,
    /// The folder of the copies of its logs.
    logs: PathBuf,
}

/// How far the files beside a log are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SettingsState {
    /// Nobody asked for them in this process.
    Unasked,
    /// A task reads them.
    Asked,
    /// The copy of the log has what they say. If the cluster didn't answer, that is nothing: they are worth no delay.
    Known,
}

/// The least time between two progress reports of a run.
const REPORT_INTERVAL: Duration = Duration::from_secs(15);

/// A job counts as over after this many polls without it, over at least [`MISSING`].
const MISSING_POLLS: u32 = 3;
const MISSING: Duration = Duration::from_secs(20);
/// How late the accounting may be.
const LAG: Duration = Duration::from_secs(120);
/// How late a log may appear after the end of its job.
const LATE_LOG: Duration = Duration::from_secs(60);
/// A log is complete after this many polls without new content.
const DRAINED_POLLS: u32 = 2;

impl LiveRun {
    /// Takes up a run where the journal has it.
    pub(super) async fn take_up(journal: &Journal, run: Run) -> Result<LiveRun, ConductError> {
        let now = Instant::now();
        let logs = journal.logs().join(&run.id);
        let mut live = LiveRun {
            progress: LogProgress::default(),
            copy: None,
            settings: SettingsState::Unasked,
            busy: false,
            not_before: now,
            tries: 0,
            trouble: None,
            secrets: None,
            hidden: secrets::of_environment(&run.plan.secrets),
            reads_secrets: false,
            may_start: false,
            launcher_over: None,
            cancelling: false,
            cancel_not_before: now,
            grown: false,
            missing: Vec::new(),
            over: None,
            last_step: None,
            running_since: None,
            quiet_since: None,
            first_step: None,
            pace_s: None,
            last_report: None,
            logs,
            run,
        };
        if matches!(live.run.status.phase, Phase::Stored | Phase::Failed) {
            return Ok(live);
        }
        let copied = journal.copied(&live.run.id).await?;
        let job = live.first_job().unwrap_or_default();
        let known = live.run.status.logs.get(&job).cloned();
        let copied = copied.into_iter().find(|copied| copied.job == job);
        if let Some(copied) = copied {
            live.open_copy(copied)?;
        }
        if let Some(path) = known
            && live.copy.as_ref().is_none_or(|copy| copy.copied.path != path)
        {
            live.begin_copy(&job, &path)?;
        }
        live.update_progress();
        Ok(live)
    }

    /// Returns the compressed copy of its log, and how many of its bytes the journal lists.
    pub(crate) fn log_copy(&self) -> Option<(&Path, u64)> {
        self.copy.as_ref().map(|copy| (copy.file(), copy.copied.kept))
    }

    /// Returns the progress report that is due, with the server and the run's id.
    pub(super) fn progress_report(&mut self, round: &Round) -> Option<(Upload, Uuid, RunProgress)> {
        let upload = self.run.plan.upload.as_ref().filter(|upload| upload.progress)?;
        let Run { plan, status, .. } = &self.run;
        match status.phase {
            // A stored result replaces the report. A failed run has no result, so its last report says that
            // it is over.
            Phase::Planned | Phase::Staged | Phase::Stored => return None,
            Phase::Failed => drop(self.last_report.take()?),
            _ if self.last_report.is_some_and(|last| last.elapsed() < REPORT_INTERVAL) => return None,
            _ => self.last_report = Some(Instant::now()),
        }
        let state = match (status.phase, &status.unseen, status.jobs.first()) {
            (Phase::Failed, ..) => RunState::Failed,
            (Phase::Intended, ..) => RunState::Submitting,
            (Phase::Drained | Phase::Parsed, ..) => RunState::LogCopied,
            (_, Some(_), _) => RunState::Unknown,
            (.., Some((_, Some(seen)))) => RunState::from(&seen.state),
            _ => RunState::Submitted,
        };
        let progress = RunProgress {
            campaign: round.campaign.clone(),
            run: plan.name.clone(),
            repeat: plan.repeat,
            cluster: round.cluster.clone(),
            recipe: plan.recipe.clone(),
            state,
            step: Some(self.progress.steps),
            steps: Some(plan.launched.steps.into()),
            step_time_s: self.progress.step_time_s,
            planned_s: Some(plan.predicted.step_time_s.mid),
            jobs: status.jobs.iter().map(|(job, _)| job.clone()).collect(),
            at: jiff::Timestamp::now().to_string(),
        };
        Some((upload.clone(), Uuid::parse_str(&self.run.id).ok()?, progress))
    }

    /// Returns its scenario, for the parser of its log.
    fn scenario(&self) -> Spec {
        link::read(&self.run.plan.scenario).spec
    }

    /// Returns the measured job.
    pub(super) fn first_job(&self) -> Option<String> {
        self.run.status.jobs.first().map(|(job, _)| job.clone())
    }

    /// Returns the jobs that are not known to be over.
    pub(super) fn open_jobs(&self) -> impl Iterator<Item = String> {
        let open =
            |(_, seen): &&(String, Option<Sighting>)| seen.as_ref().is_none_or(|seen| !seen.state.is_over());
        self.run.status.jobs.iter().filter(open).map(|(job, _)| job.clone())
    }

    /// Delays the next task for its launch.
    pub(super) fn wait(&mut self, pause: Duration) {
        self.not_before = Instant::now() + pause;
    }

    /// Adds this run's questions to a poll.
    pub(super) fn add_to(&self, key: u64, request: &mut PollRequest) {
        let missing = self.missing.iter().map(|(job, ..)| job.clone());
        // The queue may list a job as over without its exit code.
        let ended = self.run.status.jobs.iter().filter(|(_, seen)| {
            seen.as_ref().is_some_and(|seen| seen.state.is_over() && seen.exit_code.is_none())
        });
        request.ask.extend(missing.chain(ended.map(|(job, _)| job.clone())));
        let over = self.run.status.phase == Phase::Ended;
        if let Some(job) = self.first_job()
            && (self.copy.is_none() || self.run.status.was_requeued() || over)
        {
            let pattern = self.run.below_its_folder(&self.run.plan.log_glob);
            let release = self.run.plan.launched.release.as_deref();
            let release: Option<Release> = release.and_then(|release| release.parse().ok());
            let counted = release.is_none_or(|release| release.contract().logs_count_restarts);
            request.searches.push(LogSearch { key, job, counted, pattern });
        }
        if self.run.plan.is_job && self.missing.iter().any(|(_, _, polls)| *polls > 0) {
            request.states.push((key, self.run.id.clone()));
        }
        if let Some(copy) = &self.copy {
            let Copied { inode, offset, path, .. } = copy.copied.clone();
            request.tails.push(LogTail { key, force: over, inode, offset, overlap: copy.overlap(), path });
        }
    }

    /// Returns whether a log is to be read instead of the present one: its name has a later restart of the
    /// job.
    pub(super) fn is_better_log(&self, path: &str) -> bool {
        self.copy.as_ref().is_none_or(|copy| (path.len(), path) > (copy.copied.path.len(), &copy.copied.path))
    }

    /// Sets its secrets, as they were read for a launch.
    pub(super) fn take_secrets(&mut self, secrets: Result<Vec<(String, String)>, SecretError>) {
        if let Ok(secrets) = &secrets {
            self.hidden = secrets.iter().map(|(_, value)| value.clone()).collect();
        }
        self.secrets = Some(secrets);
    }

    /// Returns the values of its secrets that this process knows.
    pub(super) fn known_secrets(&self) -> &[String] {
        &self.hidden
    }

    /// Starts to copy a log. The copy of an earlier one is kept beside it.
    pub(super) fn begin_copy(&mut self, job: &str, path: &str) -> Result<(), ConductError> {
        if let Some(copy) = self.copy.take() {
            let kept =
                (1..).map(|n| copy.file().with_extension(format!("{n}.zst"))).find(|path| !path.exists());
            if let Some(kept) = kept {
                std::fs::rename(copy.file(), &kept)
                    .map_err(|error| ConductError::Copy { path: kept.clone(), error })?;
            }
        }
        self.open_copy(Copied { job: job.to_string(), path: path.to_string(), inode: 0, offset: 0, kept: 0 })
    }

    fn open_copy(&mut self, copied: Copied) -> Result<(), ConductError> {
        let mut copy = LogCopy::open(&self.logs, copied, &self.scenario())
            .map_err(|error| ConductError::Copy { path: self.logs.clone(), error })?;
        copy.hide(self.hidden.iter().map(String::as_str));
        self.copy = Some(copy);
        Ok(())
    }

    /// Removes the copy of its log, which the store has. Failing to do so is harmless.
    pub(super) fn drop_copy(&mut self) {
        if let Some(copy) = self.copy.take() {
            let removed = std::fs::remove_file(copy.file());
            tracing::debug!(?removed, file = %copy.file().display(), "removed the copy of a stored log");
            // Fails if the folder holds copies of other logs.
            let _ = std::fs::remove_dir(&self.logs);
        }
    }

    /// Appends to the copy of its log. Returns why the log started again, if it did.
    pub(super) fn append(&mut self, chunk: &LogChunk) -> Result<Option<LogRestart>, ConductError> {
        let Some(copy) = &mut self.copy else { return Ok(None) };
        let had = copy.copied.clone();
        let continuation = copy
            .append(&chunk.bytes, chunk.inode, chunk.from)
            .map_err(|error| ConductError::Copy { path: self.logs.clone(), error })?;
        if copy.copied != had {
            self.grown = true;
            self.over = self.over.map(|(since, _)| (since, 0));
        }
        Ok(match continuation {
            Continuation::Extends | Continuation::Stale => None,
            Continuation::Restarts(why) => Some(why),
        })
    }

    /// Updates the progress from the copy of the log.
    pub(super) fn update_progress(&mut self) {
        let Some(copy) = &self.copy else { return };
        let progress = copy.progress();
        if progress.steps > self.progress.steps {
            let now = Instant::now();
            let (since, steps) = *self.first_step.get_or_insert((now, progress.steps));
            let more = progress.steps - steps;
            self.pace_s = (more > 0).then(|| since.elapsed().as_secs_f64() / more as f64);
            self.last_step = Some(now);
        }
        self.progress = progress;
    }

    /// Returns the seconds per step, 0 if unknown.
    pub(super) fn step_s(&self) -> f64 {
        self.pace_s.or(self.progress.step_time_s).unwrap_or(0.0)
    }

    /// Returns its jobs with a new state, by the view.
    pub(super) fn changed_jobs(&mut self, key: u64, view: &ClusterView) -> Vec<(String, Sighting)> {
        let now = Instant::now();
        let mut news = Vec::new();
        for (job, known) in &self.run.status.jobs {
            let seen = view.sighting(job, known.as_ref());
            if seen.is_some() {
                self.missing.retain(|(other, ..)| other != job);
            }
            let over = known.as_ref().is_some_and(|known| known.state.is_over());
            let own =
                || view.own(key, job).map(|own| known.as_ref().map_or(own.clone(), |known| own.after(known)));
            let seen = match seen.or_else(|| own().filter(|_| !over)) {
                Some(seen) => Some(seen),
                None if over => None,
                None => {
                    let (_, since, polls) = match self.missing.iter_mut().find(|(other, ..)| other == job) {
                        Some(missing) => missing,
                        None => {
                            self.missing.push((job.clone(), now, 0));
                            continue;
                        }
                    };
                    *polls += 1;
                    // If the accounting answers, it will know how the job ended, but may be late.
                    let patience = if matches!(view.accounting, Some(Ok(_))) { LAG } else { MISSING };
                    (*polls >= MISSING_POLLS && since.elapsed() >= patience).then(|| {
                        let gone = Sighting::new(State::Ended(End::Unknown), StateSource::Absence);
                        known.as_ref().map_or(gone.clone(), |known| gone.after(known))
                    })
                }
            };
            let is_news = |seen: &Sighting| known.as_ref().is_none_or(|known| !seen.says_the_same(known));
            if let Some(seen) = seen.filter(is_news) {
                news.push((job.clone(), seen));
            }
        }
        news
    }

    /// Returns jobs that were missing from the queue more than once, unless that is recorded.
    pub(super) fn newly_missing(&self) -> Vec<String> {
        let known = &self.run.status.missing;
        let twice = self.missing.iter().filter(|(_, _, polls)| *polls > 0).map(|(job, ..)| job);
        twice.filter(|job| !known.contains(job)).cloned().collect()
    }

    /// Returns an event once if no step has come for much longer than steps take, and once when there is
    /// another step.
    pub(super) fn quiet(&mut self, least_s: u64) -> Option<Event> {
        const TIMES: f64 = 10.0;
        /// Before the first step, containers are fetched and graphs compiled.
        const BEFORE_THE_FIRST_S: u64 = 30 * 60;
        let status = &self.run.status;
        let running = matches!(status.jobs.first(), Some((_, Some(seen))) if seen.state == State::Running);
        if !running || status.cancel.is_some() {
            self.running_since = None;
            return None;
        }
        let begun = *self.running_since.get_or_insert_with(Instant::now);
        if status.quiet.is_some() {
            return (self.last_step > self.quiet_since).then_some(Event::Moving);
        }
        let limit_s = match self.last_step {
            Some(_) => (TIMES * self.step_s()).max(least_s as f64),
            None => BEFORE_THE_FIRST_S.max(least_s) as f64,
        };
        // The time restarts for a job that was suspended or queued since its last step.
        let since = self.last_step.map_or(begun, |step| step.max(begun)).elapsed();
        if since.as_secs_f64() <= limit_s {
            return None;
        }
        self.quiet_since = Some(Instant::now());
        Some(Event::Quiet { for_s: since.as_secs(), steps: self.progress.steps })
    }

    /// Returns why it is to be cancelled, if it has been in the queue for longer than its budget.
    pub(super) fn over_queue_budget(&self, now_ms: i64) -> Option<String> {
        let budget_s = self.run.plan.queue_budget_s?;
        let waiting = |(_, seen): &(String, Option<Sighting>)| {
            seen.as_ref().is_some_and(|seen| seen.state == State::Pending)
        };
        let since_s = (now_ms - self.run.status.submitted_ms?) / 1000;
        (self.run.status.jobs.iter().all(waiting) && since_s > budget_s as i64)
            .then(|| format!("it was in the queue for longer than its budget of {budget_s} s"))
    }

    /// Returns an event once the copy of its log is complete, or no log has appeared.
    pub(super) fn drained(&mut self) -> Option<Event> {
        let (since, polls) = self.over.get_or_insert((Instant::now(), 0));
        *polls += 1;
        if let Some(copy) = &self.copy {
            // The first poll after the end may have been started before it.
            return (*polls > DRAINED_POLLS).then_some(Event::Drained { bytes: copy.copied.offset });
        }
        let never_ran = self.run.status.jobs.iter().all(|(_, seen)| {
            seen.as_ref().is_some_and(|seen| seen.started.is_none() || seen.started == seen.ended)
        });
        let ended = outcome::ended(&self.run).unwrap_or_else(|| "the job completed".into());
        let enough = if never_ran { *polls > DRAINED_POLLS } else { since.elapsed() > LATE_LOG };
        enough.then(|| {
            let detail = if never_ran {
                "before it started".into()
            } else {
                format!("and no log was found at {}", self.run.below_its_folder(&self.run.plan.log_glob))
            };
            Event::Failed { why: format!("{ended} {detail}") }
        })
    }
}
