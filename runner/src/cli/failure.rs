//! Why a command ends without its result.

use super::exit::Exit;
use super::parse::SaveError;
use crate::conduct::ConductError;
use crate::data::DataDirError;
use crate::fetch::FetchError;
use crate::journal::JournalError;
use crate::probe::ProbeError;
use crate::secrets::SecretError;
use crate::serve::ServeError;
use crate::ssh::{KeptError, LinkError};
use crate::store::StoreError;
use std::io;
use std::path::PathBuf;
use trainplan_shared::benchmarks::with_named_models;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::history::ThresholdError;
use trainplan_shared::message::Front;
use trainplan_shared::problem::Problem;

/// Further lines are indented by the width of `error: `.
const NEXT_LINE: &str = "\n       ";

/// Why a command ends without its result; [`Failure::exit`] gives its exit code.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Invalid flags, or values in them.
    #[error("{}", lines(.0))]
    Invalid(Vec<Problem>),
    /// The same for a search, which has other names for its flags.
    #[error("{}", search_lines(.0))]
    InvalidSearch(Vec<Problem>),
    /// The server did not start, or stopped by an error.
    #[error(transparent)]
    Serve(ServeError),
    /// Standard output can't be written. A reader that has left (`trainplan recipes | head`) counts as
    /// success.
    #[error("Can't write the result: {0}")]
    Output(#[from] io::Error),
    /// A result that the output format can't hold.
    #[error("Can't write the result: {0}")]
    Format(String),
    /// A file that can't be read or written.
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// A file with invalid contents.
    #[error("{}: {what}", path.display())]
    Contents {
        path: PathBuf,
        /// What is wrong, and what to write instead.
        what: String,
    },
    /// Several files with invalid contents.
    #[error("{}", lines(.0))]
    Several(Vec<Failure>),
    /// A combination of arguments that is not supported, or a missing setting.
    #[error("{0}")]
    Refused(&'static str),
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// How many of how many results were not stored. The rows of the result have the reasons.
    #[error("{0} of {1} results could not be stored completely. Each row says why.")]
    NotStored(usize, usize),
    /// How many results and logs in the store are damaged. Notes name them.
    #[error("{} could not be exported. The notes above say why.", files(*.0))]
    NotExported(usize),
    /// Everything was exported, but indexes of the SQLite file are damaged.
    #[error(
        "The database file is damaged. Its results were exported: import them into a new data directory."
    )]
    DamagedDatabase,
    /// How many stored results and logs have a fault. The rows of the result name them.
    #[error(
        "{} in the store. Each row says which. Uploading a missing or damaged log or result again replaces it.",
        faults(*.0)
    )]
    StoreFaults(usize),
    /// How many of how many results were not uploaded. The rows of the result have the reasons.
    #[error("{0} of {1} results could not be uploaded. Each row says why.")]
    NotUploaded(usize, usize),
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The result says by how much.
    #[error("The plan does not fit in GPU memory.")]
    DoesNotFit,
    /// These runs of a campaign; the notes say by how much.
    #[error("Not enough GPU memory for {}.", .0.join(", "))]
    RunsDoNotFit(Vec<String>),
    /// The time limits of these runs end before their last step; each text names a run and a limit that works.
    #[error(
        "These jobs are not submitted, because they are expected to reach their time limit before their last step:\n       {}\n       \
         To submit them regardless, add --anyway.",
        lines(.0)
    )]
    ShortTimeLimits(Vec<String>),
    /// These problems of the runs of a certification, or of the cluster's profile.
    #[error("The recipes of the certification can't run:\n       {}", lines(.0))]
    Uncertifiable(Vec<String>),
    /// No GPU type has a plan; the result says why, and what would help.
    #[error("No plan fits, or none reaches the goal.")]
    NoPlan,
    #[error("No log could be scored. Each row says why.")]
    NothingScored,
    /// No run could be compared with earlier ones.
    #[error("{0}")]
    NothingJudged(&'static str),
    /// In how many of all timelines the newest run was not scored. The rows of the result have the reasons.
    #[error("The newest run of {not_scored} of {all} timelines was not scored. Each row says why.")]
    NewestNotScored { not_scored: usize, all: usize },
    /// How many timelines became slower, or are slower than published, as a sentence; the rows of the result have the figures.
    #[error("{0} Each row says by how much.")]
    Regression(String),
    /// How many of all runs are slower than their reference. The report has the figures.
    #[error("{slow} of {all} runs are slower than their reference. The table says by how much.")]
    Slow { slow: usize, all: usize },
    #[error("--{0}")]
    Threshold(#[from] ThresholdError),
    /// A run, campaign or result that does not exist, or an ambiguous name.
    #[error("{0}")]
    NoRun(String),
    /// The campaign file differs from the one whose round is still open.
    #[error(
        "Campaign {campaign} was changed, but its round of {since} is not finished.\n       \
         Finish that round with `trainplan jobs follow {campaign}`, or start another one with --new."
    )]
    Changed {
        campaign: String,
        /// When the open round was started.
        since: String,
    },
    /// A new round would leave jobs of the unfinished one without a process that follows them.
    #[error(
        "The unfinished round of {campaign} has jobs: {}. A new round would not follow them.\n       Finish that round \
         with `trainplan jobs follow {campaign}`, cancel its runs with `trainplan jobs cancel RUN`, or add --abandon.",
        runs.join(", ")
    )]
    WouldAbandon { campaign: String, runs: Vec<String> },
    /// Runs of older rounds are not over, so whether they failed is unknown.
    #[error(
        "These runs are not over: {}. Nothing was submitted.\n       Wait for them with `trainplan jobs follow ROUND`, or \
         cancel them with `trainplan jobs cancel RUN`.",
        runs.join(", ")
    )]
    NotOver { runs: Vec<String> },
    /// Detached from a campaign before all of its runs were over.
    #[error(
        "Detached {}. To continue, use `trainplan run` or `trainplan jobs follow {campaign}`.",
        unfinished(*open, *all, *submitted)
    )]
    Left {
        open: usize,
        all: usize,
        /// How many of the unfinished runs were submitted.
        submitted: usize,
        campaign: String,
    },
    /// The process that carried a campaign out, and that this one watched, has ended.
    #[error(
        "The process that was running {campaign} has ended. To continue, use `trainplan jobs follow \
         {campaign}`."
    )]
    Abandoned { campaign: String },
    /// A run of the campaign has no score; the table has the reason.
    #[error("Not every run was scored. The table says why.")]
    RunFailed,
    /// The number of problems that would make runs on the cluster fail.
    #[error("{} found. See \"What to do\".", problems(*.0))]
    Unfit(usize),
    /// The jobs of a campaign would fail on the cluster, for these reasons. Nothing was submitted.
    #[error(
        "Nothing was submitted: {} found on cluster {cluster}.\n       {}\n       Then repeat the command. To submit anyway, \
         add --skip-checks.",
        problems(reasons.len()),
        lines(reasons)
    )]
    NotReady { cluster: String, reasons: Vec<String> },
    /// The cluster does not answer.
    #[error(transparent)]
    Unreachable(#[from] LinkError),
    /// The cluster or the server did not answer for too long.
    #[error("{0}")]
    OutOfReach(String),
    /// `trainplan connect` did not connect.
    #[error(transparent)]
    Unconnected(#[from] KeptError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Conduct(ConductError),
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The file of a probe can't be written. The result is kept elsewhere.
    #[error(
        "{}: {error}.\n       {}The cluster keeps the result. To copy it: {copy}",
        path.display(),
        printed(*is_printed)
    )]
    ProbeFile {
        path: PathBuf,
        error: io::Error,
        /// Whether standard output has the file's text.
        is_printed: bool,
        /// A command that copies the file from the cluster.
        copy: String,
    },
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl Failure {
    /// Returns the exit code.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Failure::Invalid(_)
            | Failure::InvalidSearch(_)
            | Failure::Contents { .. }
            | Failure::Several(_)
            | Failure::Refused(_)
            | Failure::NoRun(_)
            | Failure::Threshold(_)
            | Failure::ShortTimeLimits(_)
            | Failure::Uncertifiable(_)
            | Failure::Changed { .. }
            | Failure::WouldAbandon { .. }
            | Failure::NotOver { .. }
            | Failure::DataDir(DataDirError::Missing(_))
            | Failure::Serve(ServeError::NoProxy | ServeError::Webhook(_))
            | Failure::Store(StoreError::Address { .. })
            | Failure::Secret(_) => Exit::Invalid,
            Failure::DoesNotFit | Failure::RunsDoNotFit(_) | Failure::NoPlan => Exit::NoPlan,
            Failure::NothingScored
            | Failure::NothingJudged(_)
            | Failure::NewestNotScored { .. }
            | Failure::RunFailed => Exit::NotScored,
            Failure::Unreachable(_)
            | Failure::OutOfReach(_)
            | Failure::Unconnected(_)
            | Failure::Fetch(FetchError::Link(_))
            | Failure::Probe(ProbeError::Link(_))
            | Failure::Store(StoreError::Gone { .. } | StoreError::Refused { .. }) => Exit::Unreachable,
            Failure::Regression(..) | Failure::Slow { .. } => Exit::Regression,
            Failure::Serve(_)
            | Failure::DataDir(_)
            | Failure::Store(_)
            | Failure::NotStored(..)
            | Failure::NotUploaded(..)
            | Failure::NotExported(_)
            | Failure::DamagedDatabase
            | Failure::StoreFaults(_)
            | Failure::File { .. }
            | Failure::Output(_)
            | Failure::Format(_)
            | Failure::Save(_)
            | Failure::Unfit(_)
            | Failure::NotReady { .. }
            | Failure::Left { .. }
            | Failure::Abandoned { .. }
            | Failure::Journal(_)
            | Failure::Conduct(_)
            | Failure::Probe(_)
            | Failure::ProbeFile { .. }
            | Failure::Fetch(_) => Exit::Failed,
        }
    }
}

impl Failure {
    /// Returns the failure of a search with these problems.
    pub(super) fn in_search(problems: Vec<Problem>) -> Failure {
        Failure::InvalidSearch(problems.into_iter().map(with_named_models).collect())
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Invalid(vec![with_named_models(problem)])
    }
}

impl From<Vec<Problem>> for Failure {
    fn from(problems: Vec<Problem>) -> Failure {
        let catalog = Catalog::embedded();
        let with_nearest = |problem| catalog.with_nearest_size(with_named_models(problem));
        Failure::Invalid(problems.into_iter().map(with_nearest).collect())
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Failure {
        match error {
            ServeError::DataDir(error) => Failure::DataDir(error),
            ServeError::Store(error) => Failure::Store(error),
            error => Failure::Serve(error),
        }
    }
}

impl From<ConductError> for Failure {
    fn from(error: ConductError) -> Failure {
        match error {
            error @ ConductError::Unreachable(_) => Failure::OutOfReach(error.to_string()),
            ConductError::Journal(error) => Failure::Journal(error),
            error => Failure::Conduct(error),
        }
    }
}

fn problems(count: usize) -> String {
    if count == 1 { "1 problem".into() } else { format!("{count} problems") }
}

fn unfinished(open: usize, all: usize, submitted: usize) -> String {
    match (all, submitted) {
        (1, 0) => "before the run was submitted".into(),
        (1, _) => "with the run unfinished. Its job keeps running".into(),
        (_, 0) => format!("with {open} of {all} runs unfinished, none of them submitted"),
        _ => format!(
            "with {open} of {all} runs unfinished, {submitted} of them submitted. Submitted jobs keep running"
        ),
    }
}

fn printed(is_printed: bool) -> &'static str {
    if is_printed { "The file was printed instead. " } else { "" }
}

fn files(count: usize) -> String {
    if count == 1 { "1 result or log".into() } else { format!("{count} results or logs") }
}

fn faults(count: usize) -> String {
    if count == 1 { "1 fault found".into() } else { format!("{count} faults found") }
}

fn search_lines(problems: &[Problem]) -> String {
    lines(&problems.iter().map(|problem| problem.text(Front::Search)).collect::<Vec<_>>())
}

fn lines<T: ToString>(texts: &[T]) -> String {
    texts.iter().map(ToString::to_string).collect::<Vec<_>>().join(NEXT_LINE)
}
