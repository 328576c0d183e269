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
    /// The first run after the lasting change by which it is a regression.
    pub(crate) first_changed: Option<String>,
    /// How many thresholds the newest run with a comparable step time exceeds, in words; none if no threshold could judge it.
    pub(crate) judged: Option<String>,
    /// What each of these thresholds says, as sentences, with the exceeded ones first.
    pub(crate) judgements: Vec<String>,
    /// The step times in words, for those who don't see the chart.
    pub(crate) summary: String,
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

/// A run in a time line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimePoint {
    pub(crate) id: String,
    /// The name of the run, or the end of its id if no campaign lists it.
    pub(crate) run: String,
    /// When, in milliseconds since 1970, and in words.
    pub(crate) at_ms: f64,
    pub(crate) at: String,
    /// None if the run was not scored or is not comparable.
    pub(crate) step_time_s: Option<f64>,
    /// The step time in seconds, or that there is none, in words.
    pub(crate) step_time: String,
    /// What else is known, in words: the change of the step time at this run; the scored step time, if few steps are scored and the
    /// steady mean, which is compared, is not like it; why it was not scored or is not comparable.
    pub(crate) notes: String,
    /// The usual step time around it, if the time line has a change.
    pub(crate) usual_s: Option<f64>,
    /// Whether the step time changes at this run.
    pub(crate) is_change: bool,
    /// Whether it is a regression.
    pub(crate) is_alert: bool,
}
