//! Which files of a folder are logs or saved results.

use super::FILE_ENDING;
use crate::log::{Name, Role};

/// The endings of what training writes its log to, and of what we save.
const LOG_ENDINGS: [&str; 4] = [".out", ".log", ".txt", FILE_ENDING];

/// Whether a file of a folder looks like a log or a saved result. What someone names is read whatever it looks like.
#[must_use]
pub fn is_log_name(path: &str) -> bool {
    LOG_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// What a batch script printed is of no interest beside the training log of the same job.
#[must_use]
pub fn is_told_elsewhere(name: &Name, beside: &[Name]) -> bool {
    let of_same_job = |other: &Name| other.role == Role::Training && other.job_id == name.job_id;
    name.role == Role::Batch && beside.iter().any(of_same_job)
}
