//! Why a round stops before its end.

use crate::journal::JournalError;
use crate::store::StoreError;
use std::io;
use std::path::PathBuf;

/// Why a round stops before its end. What was done is in the journal, and the next `trainplan run` continues.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConductError {
    /// The journal can't be written. Going on could submit a run twice.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store refuses a result. The copy of its log stays.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The copy of a log can't be written.
    #[error(
        "Can't save the copy of a log in {}: {error}. Submitted jobs keep running. Free some space, then use \
         `trainplan run` to continue.",
        path.display()
    )]
    Copy { path: PathBuf, error: io::Error },
    /// The cluster can't be reached.
    #[error("{0}\n       Submitted jobs keep running. Repeat the command to continue.")]
    Unreachable(String),
}
