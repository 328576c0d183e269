//! What the server allows, what it received and what it reports: uploads, unfinished runs and share links.

use serde::{Deserialize, Serialize};
use trainplan_shared::api::RunState;

/// What a user may do. Each scope includes the ones before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    #[default]
    None,
    Read,
    Upload,
    Admin,
}

/// The outcome of an upload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UploadSummary {
    /// The number of new results.
    pub(crate) new: usize,
    /// The number of results that the server had.
    pub(crate) known: usize,
    /// The number of results that the server had under another scenario and corrected.
    pub(crate) corrected: usize,
    /// The rejected files, each with the reason.
    pub(crate) refused: Vec<String>,
    /// The paths of new or corrected results whose scenario is unknown, so that History can't show them.
    pub(crate) without_scenario: Vec<String>,
    /// The labels of the fields that their scenarios lack.
    pub(crate) lacking: Vec<String>,
}

/// The progress of an upload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UploadProgress {
    /// The number of the current file, from 1, and of all files.
    pub(crate) file: usize,
    pub(crate) files: usize,
    /// The percentage of the logs' bytes that arrived.
    pub(crate) percent: u32,
    /// Whether the connection is lost and the upload retries.
    pub(crate) is_broken: bool,
}

/// What changed on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerChange {
    /// Runs were added or deleted.
    Runs,
    /// An unfinished run made progress.
    Live,
}

/// A run that has no result yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Its cluster, its jobs.
    pub(crate) place: String,
    pub(crate) recipe: String,
    pub(crate) state: RunState,
    pub(crate) step: Option<f64>,
    pub(crate) steps: Option<f64>,
    pub(crate) step_time: String,
    pub(crate) planned: String,
    /// Whether it ended.
    pub(crate) is_over: bool,
    /// The time of the last report, or of the end.
    pub(crate) seen: String,
}

/// A share link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) id: String,
    /// The number of runs that it shows.
    pub(crate) runs: usize,
    pub(crate) expires_at: String,
}
