//! Which files of a folder are logs or saved results.

use super::FILE_ENDING;
use crate::log::{LogName, Role};

/// The endings of training logs and of saved results.
const LOG_ENDINGS: [&str; 4] = [".out", ".log", ".txt", FILE_ENDING];

/// Returns whether a file in a folder is read as a log or a saved result. A file that the user names is always read.
#[must_use]
pub fn is_log_name(path: &str) -> bool {
    LOG_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// Returns whether a file is the batch script's output beside the training log of the same job, which has all of it.
#[must_use]
pub fn is_told_elsewhere(name: &LogName, beside: &[LogName]) -> bool {
    let of_same_job = |other: &LogName| other.role == Role::Training && other.job_id == name.job_id;
    name.role == Role::Batch && beside.iter().any(of_same_job)
}
