//! Why the store refuses or fails.

use super::BlobError;
use tokio::task::JoinError;
use trainplan_shared::api::LogFault;
use trainplan_shared::result::{FileError, InvalidResult, Report, RunResult, View};
use uuid::Uuid;

/// Why the store refused or failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// A newer program created the database or brought it up to date.
    #[error(
        "The store {store} has version {version}; this trainplan supports versions up to {newest}. Use a newer trainplan or \
         another store."
    )]
    Newer {
        /// The database.
        store: String,
        /// Its version.
        version: i64,
        /// The newest version that this program supports.
        newest: usize,
    },
    /// Another program keeps the database locked.
    #[error("Another program has locked the store {store}. Stop that program, or try again.")]
    Locked {
        /// The database.
        store: String,
    },
    /// The disk is full.
    #[error("The disk of the store {store} is full. Free some space, and try again.")]
    Full {
        /// The database, or the place of the logs.
        store: String,
    },
    /// The database accepts no changes at the moment.
    #[error(
        "The store {store} is read-only: PostgreSQL accepts no changes, for example during a failover. Make it writable, or \
         try again."
    )]
    ReadOnly {
        /// The database.
        store: String,
    },
    /// The database has no number left for a change.
    #[error(
        "The store {store} has run out of numbers for its changes, so nothing can be written. A server resets them by itself. \
         Otherwise, run `trainplan verify-store`. Then try again."
    )]
    Exhausted {
        /// The database.
        store: String,
    },
    /// The database file has no content.
    #[error(
        "The store {store} is an empty file: it lost its content. Restore it from a backup, or move it away to begin \
         with an empty store."
    )]
    Emptied {
        /// The database.
        store: String,
    },
    /// The database can't be reached at the moment.
    #[error("The store {store} does not answer: {error}. Check that it runs, and try again.")]
    Gone {
        /// The database.
        store: String,
        /// The database's error.
        error: sqlx::Error,
    },
    /// PostgreSQL grants no further connection.
    #[error(
        "PostgreSQL grants no further connection to {store}: {error}. Every program needs {needed}. Raise max_connections or \
         the limit of the user (ALTER ROLE ... CONNECTION LIMIT), or start servers with fewer (--database-connections)."
    )]
    Refused {
        /// The database.
        store: String,
        /// The database's error.
        error: sqlx::Error,
        /// The fewest connections of a program.
        needed: u32,
    },
    /// The address of the database is invalid.
    #[error("{url} is not a valid database address. {what}.")]
    Address {
        /// The address, without a password.
        url: String,
        /// What is wrong or expected, as a sentence without its full stop.
        what: String,
    },
    /// The database failed.
    #[error("The store {store} failed: {error}.")]
    Database {
        /// The database.
        store: String,
        /// The database's error.
        error: sqlx::Error,
    },
    /// Another result has the same id.
    #[error("{}", kept.refusal(*id))]
    Conflict {
        /// The id.
        id: Uuid,
        /// The stored result.
        kept: KeptResult,
    },
    /// The run was deleted.
    #[error("Run {id} was deleted here on {}.", at.get(..10).unwrap_or(at))]
    Deleted {
        /// The id.
        id: Uuid,
        /// When it was deleted.
        at: String,
    },
    /// The run's recipe is known from its campaign.
    #[error("The recipe of run {id} can't be changed, because the campaign {campaign} launched it.")]
    Carried {
        /// The id.
        id: Uuid,
        /// The campaign.
        campaign: String,
    },
    /// The raw log can't be stored or read.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The stored log is not what it was.
    #[error(
        "The stored log {sha256} {}. Upload that log again: this replaces it.",
        match fault { LogFault::Missing => "is missing", LogFault::Damaged => "is damaged" }
    )]
    BadLog {
        /// Its hash.
        sha256: String,
        /// What is wrong with it.
        fault: LogFault,
    },
    /// The result is not accepted.
    #[error("The result is not accepted: {0}")]
    Invalid(#[from] InvalidResult),
    /// The result can't be written as a file.
    #[error(transparent)]
    Result(#[from] FileError),
    /// The system has no randomness for secrets.
    #[error("The system provides no random bytes: {0}.")]
    NoRandomness(#[from] getrandom::Error),
    /// A stored result was changed by other means.
    #[error(
        "The stored result {id} is damaged: {what}. Upload its log or its result file again, or import the file: this replaces it."
    )]
    Damaged {
        /// The id.
        id: Uuid,
        /// What is wrong with it.
        what: String,
    },
    /// A stored result was not read to its end.
    #[error("The stored result {id} could not be read: {error}. Try again.")]
    Interrupted {
        /// The id.
        id: Uuid,
        /// What happened to the task that read it.
        error: JoinError,
    },
    /// A stored score was changed by other means.
    #[error("The stored score of run {id} is damaged: {what}. Score its log again: this replaces it.")]
    DamagedScore {
        /// The id.
        id: Uuid,
        /// What is wrong with it.
        what: String,
    },
}

/// A stored result that stays, although another one with its id was to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeptResult {
    /// It is sound. The text says what it is, and how it differs.
    Sound(String),
    /// It is damaged, and the other one is of another log.
    Damaged,
}

impl KeptResult {
    /// Returns a sound stored result, with how it differs from another one with its id.
    pub(super) fn sound(kept: &RunResult, other: &RunResult) -> Self {
        if kept.source.sha256 != other.source.sha256 {
            return Self::Sound("the result of another log".into());
        }
        if let (Some(cluster), Some(other)) = (kept.cluster(), &other.source.cluster)
            && cluster != other
        {
            return Self::Sound(format!("this log as a run on cluster {cluster}, not {other},"));
        }
        let read_as = |run: &RunResult| match Report::of(run, &View::default()).recipe {
            Some(recipe) => format!("as a run of {recipe}"),
            None => "as a run without a recipe".into(),
        };
        let (kept, other) = (read_as(kept), read_as(other));
        Self::Sound(if kept == other {
            "this log with other details".into()
        } else {
            format!("this log {kept}, not {other},")
        })
    }

    /// Returns why the other result is not stored, and what to do.
    fn refusal(&self, id: Uuid) -> String {
        match self {
            KeptResult::Sound(what) => format!(
                "The store already has {what} under the id {id}, and stored results never change. To correct its recipe, use the run's \
                 page or `trainplan reparse {id} --recipe ...` where the store is. To replace it, delete it first: \
                 `trainplan results delete {id}`."
            ),
            KeptResult::Damaged => format!(
                "The stored result {id} is damaged, and the new one is not its replacement: it was made from another log. Upload the \
                 result of the same log, or delete the stored one first: `trainplan results delete {id}`."
            ),
        }
    }
}
