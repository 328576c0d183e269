//! A run that is being carried out: what the journal knows of it, and what only matters while this process lives.

use super::copy::{Copy, Joins, Progress};
use super::{ConductError, outcome};
use crate::journal::{Copied, Event, Journal, Phase, Round, Run};
use crate::serve;
use crate::slurm::{Chunk, End, Find, Look, Sighting, Source, State, Tail, View};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trainplan_shared::campaign::Upload;
use trainplan_shared::catalog::Release;
use trainplan_shared::link;
use trainplan_shared::spec::Spec;
use uuid::Uuid;

/// A run and what is under way for it.
pub(crate) struct Live {
    pub(crate) run: Run,
    /// What its log tells so far.
    pub(crate) progress: Progress,
    /// The copy of the measured job's log.
    pub(super) copy: Option<Copy>,
    /// Whether its launch is being staged or started.
    pub(super) busy: bool,
    pub(super) not_before: Instant,
    pub(super) tries: u32,
    pub(super) cancelling: bool,
    pub(super) cancel_not_before: Instant,
    /// Whether the copy has more than the journal says.
    pub(super) grown: bool,
    /// Jobs that the queue answered without, since when and how many times.
    missing: Vec<(String, Instant, u32)>,
    /// Since its jobs are over: when that was seen, and how many looks found no more of the log.
    over: Option<(Instant, u32)>,
    /// When the last step came.
    last_step: Option<Instant>,
    running_since: Option<Instant>,
    /// When it was said that no step came.
    quiet_since: Option<Instant>,
    /// When the first were seen, and how many they were.
    first_step: Option<(Instant, u64)>,
    /// Seconds that steps take, as they come here.
    pace_s: Option<f64>,
    /// When its server was last told where it is.
    told: Option<Instant>,
    /// The folder of the copies of its logs.
    logs: PathBuf,
}

/// A server is told where a run is no more often than this.
const TOLD_APART: Duration = Duration::from_secs(15);

/// The queue answers without a job so many times, for so long, before it counts as over.
const MISSING_LOOKS: u32 = 3;
const MISSING: Duration = Duration::from_secs(20);
/// The accounting may lag by so much.
const LAG: Duration = Duration::from_secs(120);
/// A log may appear so late where it is looked for.
const LATE_LOG: Duration = Duration::from_secs(60);
/// Looks at a log that found nothing more after the end.
const DRAINED_LOOKS: u32 = 2;

impl Live {
    /// Takes a run up where the journal has it.
    pub(super) async fn take_up(journal: &Journal, run: Run) -> Result<Live, ConductError> {
        let now = Instant::now();
        let logs = journal.logs().join(&run.id);
        let mut live = Live {
            progress: Progress::default(),
            copy: None,
            busy: false,
            not_before: now,
            tries: 0,
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
            told: None,
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
        live.see_progress();
        Ok(live)
    }

    /// What its server is to be told of it now, if anything.
    pub(super) fn word(&mut self, round: &Round) -> Option<(Upload, Uuid, serve::Progress)> {
        let upload = self.run.plan.upload.as_ref().filter(|upload| upload.progress)?;
        let Run { plan, status, .. } = &self.run;
        match status.phase {
            // A result says more. Of one that failed there is none, and no one else would say that it is over.
            Phase::Planned | Phase::Staged | Phase::Stored => return None,
            Phase::Failed => drop(self.told.take()?),
            _ if self.told.is_some_and(|told| told.elapsed() < TOLD_APART) => return None,
            _ => self.told = Some(Instant::now()),
        }
        let state = match (status.phase, &status.unseen, status.jobs.first()) {
            (Phase::Failed, ..) => "failed".into(),
            (Phase::Intended, ..) => "being submitted".into(),
            (Phase::Drained | Phase::Parsed, ..) => "log copied".into(),
            (_, Some(_), _) => "unknown".into(),
            (.., Some((_, Some(seen)))) => seen.state.to_string(),
            _ => "submitted".into(),
        };
        let progress = serve::Progress {
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

    /// What is known of its scenario, for whoever reads its log.
    fn said(&self) -> Spec {
        link::read(&self.run.plan.scenario).spec
    }

    /// The measured job.
    pub(super) fn first_job(&self) -> Option<String> {
        self.run.status.jobs.first().map(|(job, _)| job.clone())
    }

    /// Jobs that are not known to be over.
    pub(super) fn open_jobs(&self) -> impl Iterator<Item = String> {
        let open =
            |(_, seen): &&(String, Option<Sighting>)| seen.as_ref().is_none_or(|seen| !seen.state.is_over());
        self.run.status.jobs.iter().filter(open).map(|(job, _)| job.clone())
    }

    /// Lets some time pass before its launch is touched again.
    pub(super) fn wait(&mut self, pause: Duration) {
        self.not_before = Instant::now() + pause;
    }

    /// Adds to a look what is wanted of this run.
    pub(super) fn add_to(&self, key: u64, look: &mut Look) {
        let missing = self.missing.iter().map(|(job, ..)| job.clone());
        // How a job ended is asked for once more than the queue tells it.
        let ended = self.run.status.jobs.iter().filter(|(_, seen)| {
            seen.as_ref().is_some_and(|seen| seen.state.is_over() && seen.exit_code.is_none())
        });
        look.ask.extend(missing.chain(ended.map(|(job, _)| job.clone())));
        let over = self.run.status.phase == Phase::Ended;
        if let Some(job) = self.first_job() {
            // A job that was put back into the queue writes another log.
            let requeued =
                self.run.status.remarks.iter().any(|remark| remark.contains("back into the queue"));
            if self.copy.is_none() || requeued || over {
                let pattern = self.run.below_its_folder(&self.run.plan.log_glob);
                let release = self.run.plan.launched.release.as_deref();
                let release: Option<Release> = release.and_then(|release| release.parse().ok());
                let counted = release.is_none_or(|release| release.contract().logs_count_restarts);
                look.finds.push(Find { key, job, counted, pattern });
            }
        }
        if self.run.plan.is_job && self.missing.iter().any(|(_, _, looks)| *looks > 0) {
            look.states.push((key, self.run.id.clone()));
        }
        if let Some(copy) = &self.copy {
            let Copied { inode, offset, path, .. } = copy.copied.clone();
            look.tails.push(Tail { key, force: over, inode, offset, overlap: copy.overlap(), path });
        }
    }

    /// Whether a log is to be read in the place of the one that is: its name has a later restart of the job.
    pub(super) fn is_better_log(&self, path: &str) -> bool {
        self.copy.as_ref().is_none_or(|copy| (path.len(), path) > (copy.copied.path.len(), &copy.copied.path))
    }

    /// Begins to copy a log; an earlier one stays beside it.
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
        let copy = Copy::open(&self.logs, copied, &self.said())
            .map_err(|error| ConductError::Copy { path: self.logs.clone(), error })?;
        self.copy = Some(copy);
        Ok(())
    }

    /// Removes the copy of its log, which is kept elsewhere. One that stays harms nobody.
    pub(super) fn drop_copy(&mut self) {
        if let Some(copy) = self.copy.take() {
            let removed = std::fs::remove_file(copy.file());
            tracing::debug!(?removed, file = %copy.file().display(), "the copy is in the store");
            // With what else it holds it stays.
            let _ = std::fs::remove_dir(&self.logs);
        }
    }

    /// Takes in what its log grew by; says so where it began anew.
    pub(super) fn append(&mut self, chunk: &Chunk) -> Result<Option<String>, ConductError> {
        let Some(copy) = &mut self.copy else { return Ok(None) };
        let had = copy.copied.clone();
        let joins = copy
            .append(&chunk.bytes, chunk.inode, chunk.from)
            .map_err(|error| ConductError::Copy { path: self.logs.clone(), error })?;
        if copy.copied != had {
            self.grown = true;
            self.over = self.over.map(|(since, _)| (since, 0));
        }
        Ok(match joins {
            Joins::On | Joins::Not => None,
            Joins::Replaced => {
                Some("another file took the place of its log; what was read before is kept".into())
            }
            Joins::Cut => Some("its log was cut; what was read before is kept".into()),
        })
    }

    /// Sees how far the log is.
    pub(super) fn see_progress(&mut self) {
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

    /// Seconds between two steps.
    pub(super) fn step_s(&self) -> f64 {
        self.pace_s.or(self.progress.step_time_s).unwrap_or(0.0)
    }

    /// What the view says of its jobs that was not known.
    pub(super) fn news(&mut self, key: u64, view: &View) -> Vec<(String, Sighting)> {
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
                    let (_, since, looks) = match self.missing.iter_mut().find(|(other, ..)| other == job) {
                        Some(missing) => missing,
                        None => {
                            self.missing.push((job.clone(), now, 0));
                            continue;
                        }
                    };
                    *looks += 1;
                    // An accounting that answers has the last word, and may be late with it.
                    let patience = if matches!(view.accounting, Some(Ok(_))) { LAG } else { MISSING };
                    (*looks >= MISSING_LOOKS && since.elapsed() >= patience).then(|| {
                        let gone = Sighting::new(State::Ended(End::Unknown), Source::Absence);
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

    /// Jobs that the queue answered without, more than once, which nobody was told.
    pub(super) fn newly_missing(&self) -> Vec<String> {
        let told = &self.run.status.missing;
        let twice = self.missing.iter().filter(|(_, _, looks)| *looks > 0).map(|(job, ..)| job);
        twice.filter(|job| !told.contains(job)).cloned().collect()
    }

    /// That no step came for much longer than steps take, or that they come again; each once.
    pub(super) fn quiet(&mut self, least_s: u64) -> Option<Event> {
        const TIMES: f64 = 10.0;
        /// Until the first step containers are fetched and graphs compiled.
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
        let since = self.last_step.unwrap_or(begun).elapsed();
        if since.as_secs_f64() <= limit_s {
            return None;
        }
        self.quiet_since = Some(Instant::now());
        Some(Event::Quiet { for_s: since.as_secs(), steps: self.progress.steps })
    }

    /// Why it has waited in the queue for longer than it may.
    pub(super) fn waits_too_long(&self, now_ms: i64) -> Option<String> {
        let budget_s = self.run.plan.queue_budget_s?;
        let waiting = |(_, seen): &(String, Option<Sighting>)| {
            seen.as_ref().is_some_and(|seen| seen.state == State::Pending)
        };
        let since_s = (now_ms - self.run.status.submitted_ms?) / 1000;
        (self.run.status.jobs.iter().all(waiting) && since_s > budget_s as i64)
            .then(|| format!("it waited in the queue for longer than its budget of {budget_s} s"))
    }

    /// Once its jobs are over and no more comes: that its log is here, or that there is none.
    pub(super) fn drained(&mut self) -> Option<Event> {
        let (since, looks) = self.over.get_or_insert((Instant::now(), 0));
        *looks += 1;
        if let Some(copy) = &self.copy {
            // The first look after the end was asked for before it was known.
            return (*looks > DRAINED_LOOKS).then_some(Event::Drained { bytes: copy.copied.offset });
        }
        let never_ran = self.run.status.jobs.iter().all(|(_, seen)| {
            seen.as_ref().is_some_and(|seen| seen.started.is_none() || seen.started == seen.ended)
        });
        let ended = outcome::ended(&self.run).unwrap_or_else(|| "its job completed".into());
        let enough = if never_ran { *looks > DRAINED_LOOKS } else { since.elapsed() > LATE_LOG };
        enough.then(|| {
            let where_ = if never_ran {
                "it did not start".into()
            } else {
                format!("no log is at {}", self.run.below_its_folder(&self.run.plan.log_glob))
            };
            Event::Failed { why: format!("{ended}, and {where_}") }
        })
    }
}
