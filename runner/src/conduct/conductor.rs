//! The state of a round in progress.

use super::error::ConductError;
use super::live::LiveRun;
use crate::journal::{Event, Journal, Round, Run, now_ms};
use crate::secrets::SecretError;
use crate::slurm::AttemptReport;
use crate::ssh::{Link, LinkError, ScriptOutput};
use crate::store::Store;
use crate::upload::{Outbox, ProgressReporter};
use std::time::{Duration, Instant};
use trainplan_shared::result::JobFiles;

/// Options of a round's execution.
#[derive(Debug, Clone)]
pub(crate) struct ConductOptions {
    /// Seconds between two polls of the cluster, at least.
    pub(crate) interval_s: f64,
    /// How many runs may be queued or running at once.
    pub(crate) at_once: usize,
    /// Seconds without a step after which a run may be reported as hanging, at least.
    pub(crate) hang_after_s: u64,
    /// Nodes that every job avoids, in addition to those of the plans.
    pub(crate) exclude: Option<String>,
    /// How long the cluster may be unreachable before the round stops; without limit if none.
    pub(crate) patience: Option<Duration>,
}

/// An order from the person at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Leave now. Submitted jobs keep running.
    Detach,
    /// Cancel every job.
    Cancel,
    /// Submit nothing more, and leave when the submitted runs are over.
    Quit,
}

/// Shows a person, or a program, what happens in a round.
pub(crate) trait Observer {
    /// Shows an event, which is in the journal already.
    fn event(&mut self, run: &Run, at_ms: i64, event: &Event);
    /// Updates what is shown of the runs; called at least every half second.
    fn tick(&mut self, runs: &[LiveRun]);
    /// Shows a line of a run's log.
    fn log_line(&mut self, run: &Run, line: &str);
    /// Shows a note.
    fn note(&mut self, text: &str);
}

/// What a round has cost the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RoundFigures {
    /// Polls of queue and logs.
    pub(crate) polls: u64,
    /// Seconds since this process took up the round.
    pub(crate) elapsed_s: f64,
}

/// How a round ended for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every run is over.
    Over,
    /// An order made this process leave.
    Left,
}

/// What a task returned, with the index of the run that it was for.
pub(super) enum TaskResult {
    Staged(usize, Result<ScriptOutput, LinkError>),
    Secrets(usize, Result<Vec<(String, String)>, SecretError>),
    Attempted(usize, Result<AttemptReport, AttemptFailure>),
    Polled(Result<ScriptOutput, LinkError>),
    /// What the files beside the log say.
    Settings(usize, JobFiles),
    /// For several runs at once.
    Cancelled {
        runs: Vec<usize>,
        mark: String,
        result: Result<ScriptOutput, LinkError>,
    },
}

/// Why there is no report on an attempt.
pub(super) enum AttemptFailure {
    Link(LinkError),
    /// The remote script failed, with this message.
    Remote(String),
}

/// Time limits of remote scripts.
pub(super) const SHORT: Duration = Duration::from_secs(60);
pub(super) const LONG: Duration = Duration::from_secs(120);

/// Runs a round, and keeps everything that is known about it.
pub(crate) struct Conductor<'a> {
    pub(super) journal: &'a Journal,
    pub(super) store: &'a Store,
    pub(super) link: Link,
    pub(super) round: Round,
    pub(super) options: ConductOptions,
    pub(super) runs: Vec<LiveRun>,
    /// Whether no more runs are submitted.
    pub(super) quitting: bool,
    /// The ids of the runs to wait for; empty means all of them.
    pub(super) only: Vec<String>,
    pub(super) outbox: Outbox,
    pub(super) reporter: ProgressReporter,
    /// The poll that is under way.
    pub(super) polling: Option<Polling>,
    pub(super) next_poll: Instant,
    pub(super) last_poll: Instant,
    /// When the queue last answered, this process or an earlier one.
    pub(super) seen_ms: Option<i64>,
    /// Whether the last jobs on this cluster kept their marks.
    pub(super) marks_survive: bool,
    /// Whether the cluster has answered this process.
    pub(super) reached_once: bool,
    /// Since when the cluster has been unreachable, and why.
    pub(super) out_of_reach: Option<(Instant, String)>,
    pub(super) figures: RoundFigures,
    pub(super) begun: Instant,
}

/// A poll that is under way.
pub(super) struct Polling {
    pub(super) mark: String,
    /// The most bytes that it reads of each log.
    pub(super) cap: u64,
}

impl<'a> Conductor<'a> {
    /// Takes up a round where the journal has it.
    pub(crate) async fn take_up(
        journal: &'a Journal,
        store: &'a Store,
        link: Link,
        round: Round,
        options: ConductOptions,
    ) -> Result<Conductor<'a>, ConductError> {
        let mut runs = Vec::new();
        for run in journal.runs(&round.id).await? {
            runs.push(LiveRun::take_up(journal, run).await?);
        }
        let now = Instant::now();
        Ok(Conductor {
            journal,
            store,
            link,
            options,
            runs,
            quitting: false,
            only: Vec::new(),
            outbox: Outbox::start(journal, store),
            reporter: ProgressReporter::start(),
            polling: None,
            next_poll: now,
            last_poll: now,
            seen_ms: round.seen_ms,
            marks_survive: journal.marks_survive(&round.cluster).await?,
            reached_once: false,
            out_of_reach: None,
            figures: RoundFigures::default(),
            begun: now,
            round,
        })
    }

    /// Makes it submit nothing and leave when these runs are over. An empty list changes nothing.
    pub(crate) fn until(self, only: Vec<String>) -> Conductor<'a> {
        Conductor { quitting: !only.is_empty(), only, ..self }
    }

    /// Returns what the round has cost the cluster so far.
    pub(crate) fn figures(&self) -> RoundFigures {
        self.figures
    }

    /// Writes an event to the journal, then applies and shows it.
    pub(super) async fn record(
        &mut self,
        index: usize,
        event: Event,
        observer: &mut dyn Observer,
    ) -> Result<(), ConductError> {
        let live = &mut self.runs[index];
        let at_ms = now_ms();
        self.journal.write(&live.run.id, at_ms, &event).await?;
        live.run.status.apply(at_ms, &event);
        observer.event(&live.run, at_ms, &event);
        Ok(())
    }
}

/// Returns a random word that marks lines of an answer: no log or output contains it by chance.
pub(super) fn fresh_mark() -> String {
    format!("trainplan-{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..))
}

/// Returns what a remote script printed, as the reason of its failure.
pub(super) fn printed(output: &ScriptOutput) -> String {
    let text = if output.stderr.trim().is_empty() {
        String::from_utf8_lossy(&output.stdout).into_owned()
    } else {
        output.stderr.clone()
    };
    let text = text.trim();
    if text.is_empty() { format!("exit code {}, without a message", output.code) } else { text.to_string() }
}
