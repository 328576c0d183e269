//! A run beside the published measurement and beside a prediction.

use crate::estimate::Interval;
use serde::{Deserialize, Serialize};

/// Whether a measurement is published for a run's scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Publication {
    /// Parts of the scenario are unknown.
    #[default]
    Unknown,
    /// The scenario does not start from a recipe.
    Custom,
    /// The scenario differs from its recipe.
    Changed {
        /// The recipe.
        recipe: String,
        /// The changes: `GBS 256 instead of 512`.
        changes: Vec<String>,
    },
    /// The recipe is published without a measurement.
    Unmeasured {
        /// The recipe.
        recipe: String,
    },
    /// The recipe is published with a measurement.
    Measured,
    /// The same layout is published with a measurement at another GPU count.
    WeakScaled {
        /// The recipe.
        recipe: String,
        /// The GPU count of the measurement.
        gpus: u32,
    },
}

impl Publication {
    /// Returns a sentence that says why no measurement is published; none if one is, or if the scenario is unknown.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Unknown | Self::Custom | Self::Measured => None,
            Self::Changed { recipe, changes } => {
                Some(format!("No measurement is published for {recipe} with {}.", changes.join(", ")))
            }
            Self::Unmeasured { recipe } => Some(format!("No measurement is published for {recipe}.")),
            Self::WeakScaled { recipe, gpus } => Some(format!(
                "No measurement is published for {recipe}. With weak scaling, its step takes as long as the published one on {gpus} GPUs."
            )),
        }
    }
}

/// The speed, in percent of a reference's, above which a run gets a remark. The same recipe on the same GPUs differs from its
/// reference by a few percent, so a run that gains twice what it may lose probably did other work.
pub const MOST_SPEED_PERCENT: f64 = 110.0;

/// Returns what to do about a run that is much faster than its published speed, as a clause; none if it is not.
#[must_use]
pub fn much_faster(speed_percent: f64) -> Option<&'static str> {
    (speed_percent > MOST_SPEED_PERCENT).then_some(TOO_FAST)
}

/// What a speed above [`MOST_SPEED_PERCENT`] means, as a clause.
pub const TOO_FAST: &str = "more than a healthy cluster explains: check that it ran the whole model, batch and precision of the recipe";

/// The step times of a scored run, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunStepTimes {
    /// The mean of the scored steps.
    pub scored_s: f64,
    /// The step time by which the run is judged.
    pub judged_s: f64,
}

/// A run compared with the published measurement of its recipe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BaselineComparison {
    /// The published seconds per step.
    pub step_time_s: f64,
    /// The run's speed in percent of the published one, above 100 if it is faster, by the step time by which it is judged; null if
    /// the two can't be compared.
    pub speed_percent: Option<f64>,
    /// The same by the scored step time.
    #[serde(default)]
    pub scored_speed_percent: Option<f64>,
}

impl BaselineComparison {
    /// Returns the comparison of a run with the published seconds per step. A run that can't be compared has no times.
    #[must_use]
    pub fn of(step_time_s: f64, run: Option<RunStepTimes>) -> Self {
        let speed = |run_s: f64| 100.0 * step_time_s / run_s;
        Self {
            step_time_s,
            speed_percent: run.map(|run| speed(run.judged_s)),
            scored_speed_percent: run.map(|run| speed(run.scored_s)),
        }
    }
}

/// A run compared with its prediction, by the step time by which it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlanComparison {
    /// The predicted seconds per step.
    pub step_time_s: Interval,
    /// The run's speed in percent of the predicted one, above 100 if it is faster; null if the run was not scored.
    #[serde(default)]
    pub speed_percent: Option<f64>,
    /// By how much a step took longer than predicted, as a fraction; null if the run was not scored.
    pub error: Option<f64>,
    /// Whether the step time is within the interval.
    pub within: Option<bool>,
    /// The speed in percent of the predicted one by the scored step time.
    #[serde(default)]
    pub scored_speed_percent: Option<f64>,
    /// Whether the scored step time is within the interval.
    #[serde(default)]
    pub scored_within: Option<bool>,
}

impl PlanComparison {
    /// Returns the comparison of a run with a prediction. A run that was not scored has no times.
    #[must_use]
    pub fn of(step_time_s: Interval, run: Option<RunStepTimes>) -> Self {
        let Interval { low, mid, high } = step_time_s;
        let (judged_s, scored_s) = (run.map(|run| run.judged_s), run.map(|run| run.scored_s));
        let error = |run_s: f64| run_s / mid - 1.0;
        // A step of no time has no speed.
        let speed = |run_s: f64| Some(speed_percent(error(run_s))).filter(|percent| percent.is_finite());
        let within = |run_s: f64| (low..=high).contains(&run_s);
        Self {
            step_time_s,
            speed_percent: judged_s.and_then(speed),
            error: judged_s.map(error),
            within: judged_s.map(within),
            scored_speed_percent: scored_s.and_then(speed),
            scored_within: scored_s.map(within),
        }
    }
}

/// Returns the speed in percent of a predicted one, from the fraction by which a step took longer than predicted.
#[must_use]
pub fn speed_percent(error: f64) -> f64 {
    100.0 / (1.0 + error)
}
