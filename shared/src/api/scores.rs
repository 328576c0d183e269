//! Scores of one run by several parser versions.

use crate::log::{Stat, Status};
use crate::result::Report;
use serde::{Deserialize, Serialize};

/// A run's score by one parser version. The server writes whole reports; the web app reads a [`ScoreSummary`]
/// of each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScoreVersion<R = Report> {
    /// The parser's version.
    pub parser_version: u32,
    /// When the log was scored; null for the uploaded result.
    pub scored_at: Option<String>,
    /// The report.
    pub report: R,
}

/// All scores of a run.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScoreVersions<R = Report> {
    /// The scores, newest first; the last one is the uploaded result.
    pub items: Vec<ScoreVersion<R>>,
}

/// The parts of a report in which the scores of one run differ. The server sends the whole report, as
/// `trainplan parse --format json` prints it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ScoreSummary {
    /// Whether the log could be scored.
    pub status: Status,
    /// The recipe that the run matches.
    pub recipe: Option<String>,
    /// Seconds per step.
    pub step_time_s: Option<Stat>,
    /// Model FLOPs utilization, as a fraction.
    pub mfu: Option<f64>,
}
