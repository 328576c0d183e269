//! Step times over time.

use serde::{Deserialize, Serialize};

/// The step times of one scenario on one cluster over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimeLine {
    /// A unique key.
    pub(crate) key: String,
    /// The title.
    pub(crate) title: String,
    /// The recipe and the cluster, if known.
    pub(crate) recipe: Option<String>,
    pub(crate) cluster: Option<String>,
    /// The runs, the oldest first.
    pub(crate) points: Vec<TimePoint>,
    /// The published step time, if there is one.
    pub(crate) published_s: Option<f64>,
    /// By how much the newest run with a comparable step time is slower, as a sentence; none if it is not a regression.
    pub(crate) slower: Option<String>,
    /// That run's id, if it is a regression.
    pub(crate) slow_run: Option<String>,
    /// The newest run with a comparable step time, judged by the thresholds that could judge it.
    pub(crate) checks: Vec<CheckLine>,
    /// Why the newest run has no comparable step time, as sentences; none if it has one.
    pub(crate) not_judged: Option<String>,
    /// What the server keeps about the regression.
    pub(crate) alert: Option<RunAlert>,
}

/// The alerts that the server sent about a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunAlert {
    /// The run's id.
    pub(crate) run: String,
    /// Who acknowledged them, when and why, as a sentence; none if nobody did.
    pub(crate) acknowledged: Option<String>,
}

impl TimeLine {
    /// Returns whether the newest run with a comparable step time is a regression.
    pub(crate) fn is_regression(&self) -> bool {
        self.slow_run.is_some()
    }

    /// Returns whether it is a regression that nobody acknowledged.
    pub(crate) fn is_open(&self) -> bool {
        self.is_regression() && self.alert.as_ref().is_none_or(|alert| alert.acknowledged.is_none())
    }
}

/// The newest comparable run of a time line judged by a threshold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckLine {
    /// The outcome with its numbers, as a clause.
    pub(crate) text: String,
    /// Whether it is a regression.
    pub(crate) is_regression: bool,
    /// The id of the first run after the lasting change that the threshold judges.
    pub(crate) first_changed: Option<String>,
}

/// A run in a time line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimePoint {
    pub(crate) id: String,
    /// When, in milliseconds since 1970, and in words.
    pub(crate) at_ms: f64,
    pub(crate) at: String,
    /// None if the run was not scored or is not comparable.
    pub(crate) step_time_s: Option<f64>,
    /// Whether the run was scored.
    pub(crate) is_scored: bool,
    /// Why it was not scored or is not comparable, as sentences.
    pub(crate) reason: Option<String>,
    /// The scored step time, in words, if few steps are scored and the steady mean, which is compared, is not like it.
    pub(crate) scored: Option<String>,
    /// The usual step time around it, if the time line has a change.
    pub(crate) usual_s: Option<f64>,
    /// The change of the step time at this run, in words.
    pub(crate) change: Option<String>,
    /// Whether it is a regression.
    pub(crate) is_alert: bool,
}
