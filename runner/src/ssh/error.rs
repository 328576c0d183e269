//! Why a remote script gave no output.

use std::time::Duration;

/// Why a remote script gave no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LinkError {
    /// The host can't be reached. The script was not started, so it is safe to try again.
    #[error("{why}.")]
    Unreachable {
        why: String,
        /// A new try within this time gives the same error at once.
        retry_after: Duration,
    },
    /// The connection broke. The script may have run, or may still be running.
    #[error("{why}. The command may have run, or may still be running.")]
    Lost { why: String },
    /// The host does not accept the user, or can't run scripts: a new try fails too until the user acts.
    #[error("{why}. {what_to_do}")]
    Refused {
        why: String,
        /// What the user can do, as whole sentences.
        what_to_do: String,
    },
}
