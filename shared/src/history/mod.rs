//! Step times over time: when they changed, and whether the newest run is a regression.
//!
//! A [`TimeLine`] has the runs that should take the same time: one recipe, or one custom scenario, on one cluster. Its
//! change points are found as Hunter does, and its newest point is judged by the [`Thresholds`]. If few steps are scored, runs are
//! judged by their steady means.
//!
//! ```
//! use trainplan_shared::history::{Thresholds, TimeLineKey, TimeLinePoint, time_lines};
//!
//! let recipe = Some("llama3.1-8b/h100/fp8/8@25.04".into());
//! let key = TimeLineKey { recipe, ..TimeLineKey::default() };
//! let point = |day: u32, step_time_s: f64| TimeLinePoint {
//!     id: day.to_string(),
//!     at: format!("2026-01-{day:02}T06:00:00Z"),
//!     step_time_s: Some(step_time_s),
//!     comparable: true,
//!     baseline_step_time_s: Some(9.33),
//!     ..TimeLinePoint::default()
//! };
//! let nights = [9.4, 9.41, 9.39, 9.4, 9.42, 9.4, 10.1];
//! let points = nights.iter().enumerate().map(|(day, time)| (key.clone(), point(day as u32 + 1, *time)));
//! let lines = time_lines(points, &Thresholds::default());
//! assert_eq!(lines[0].alerts.len(), 3);
//! assert_eq!(lines[0].alerts[0].text, "10.1 s is 92.4 % of the published speed, below 95 %");
//! ```

mod change;
mod judge;
mod key;
#[cfg(test)]
mod tests;
mod thresholds;

pub use change::ChangePoint;
pub use judge::{CheckOutcome, LastComparableRun, Regression, ThresholdCheck, ThresholdKind};
pub use key::TimeLineKey;
pub use thresholds::{ThresholdError, Thresholds};

use crate::result::judged_s;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run of a time line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimeLinePoint {
    /// The result's id.
    pub id: String,
    /// When the run ran, as RFC 3339 in UTC in one format, so that the texts sort by time.
    pub at: String,
    /// The mean seconds per scored step; null if the run was not scored.
    pub step_time_s: Option<f64>,
    /// The standard deviation.
    pub std_s: Option<f64>,
    /// The number of scored steps.
    pub n: u64,
    /// The mean seconds per step over all steps after the warm-up; null if the run has too few of them.
    #[serde(default)]
    pub steady_mean_s: Option<f64>,
    /// Whether its step time can be compared with other runs.
    pub comparable: bool,
    /// The published seconds per step.
    pub baseline_step_time_s: Option<f64>,
    /// Why the run was not scored, or why its step time can't be compared with others, as sentences; null if it can be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The name of the run, if a campaign lists it: `nightly@3/llama-8b#2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The number of Slurm's job, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u64>,
    /// The name of the log, which orders runs of the same time.
    #[serde(skip)]
    pub name: String,
}

impl TimeLinePoint {
    /// Returns the run's place in a time line: runs of the same time are in the order of their jobs, then of their names. The id
    /// makes the order total.
    #[must_use]
    pub fn place(&self) -> (&str, Option<u64>, &str, &str) {
        (&self.at, self.job, &self.name, &self.id)
    }

    /// Returns the scored step time if it can be compared.
    #[must_use]
    pub fn scored_s(&self) -> Option<f64> {
        self.step_time_s.filter(|time| self.comparable && is_time(*time))
    }

    /// Returns the seconds per step by which the run is judged (see [`judged_s`]), if it can be compared.
    #[must_use]
    pub fn measured_s(&self) -> Option<f64> {
        Some(judged_s(self.scored_s()?, self.n, self.steady_mean_s))
    }
}

fn is_time(seconds: f64) -> bool {
    seconds.is_finite() && seconds > 0.0
}

/// The runs of one scenario on one cluster over time, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TimeLine {
    /// What the runs have in common.
    pub key: TimeLineKey,
    /// The label for people, in which a scenario without a recipe is readable. The key has the exact values.
    pub label: String,
    /// The runs, oldest first.
    pub points: Vec<TimeLinePoint>,
    /// The lasting changes of the step time, oldest first.
    pub change_points: Vec<ChangePoint>,
    /// The newest run judged by every threshold.
    pub checks: Vec<ThresholdCheck>,
    /// The checks that the newest run failed.
    pub alerts: Vec<Regression>,
    /// The newest run with a comparable step time, judged; null if it is the newest run, or if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_comparable: Option<LastComparableRun>,
}

impl TimeLine {
    /// Judges the runs of one key, in any order. A repeated run counts once.
    #[must_use]
    pub fn of(key: TimeLineKey, mut points: Vec<TimeLinePoint>, thresholds: &Thresholds) -> Self {
        points.sort_by(|one, other| one.place().cmp(&other.place()));
        points.dedup_by(|one, other| one.id == other.id);
        let change_points = change::find(&points, thresholds.margin_percent);
        let checks = judge::checks(&points, &change_points, thresholds);
        let alerts = points.last().map_or(Vec::new(), |newest| judge::alerts(newest, &checks));
        let last_comparable = judge::last_comparable(&points, &change_points, thresholds);
        Self { label: key.label(), key, points, change_points, checks, alerts, last_comparable }
    }

    /// Returns how the newest run with a comparable step time was judged by every threshold. Later runs without one don't end a
    /// regression. Without any such run, these are the checks of the newest run.
    #[must_use]
    pub fn standing_checks(&self) -> &[ThresholdCheck] {
        self.last_comparable.as_ref().map_or(&self.checks, |run| &run.checks)
    }

    /// Returns the checks that the newest run with a comparable step time failed.
    #[must_use]
    pub fn regressions(&self) -> &[Regression] {
        self.last_comparable.as_ref().map_or(&self.alerts, |run| &run.alerts)
    }

    /// Returns whether any threshold could judge the newest run.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.checks.iter().any(|check| check.outcome != CheckOutcome::NotJudged)
    }
}

/// Returns the time lines of runs, in the order of their keys. Runs of unknown scenarios are left out.
#[must_use]
pub fn time_lines(
    points: impl IntoIterator<Item = (TimeLineKey, TimeLinePoint)>,
    thresholds: &Thresholds,
) -> Vec<TimeLine> {
    let mut lines: BTreeMap<TimeLineKey, Vec<TimeLinePoint>> = BTreeMap::new();
    for (key, point) in points.into_iter().filter(|(key, _)| key.is_one_scenario()) {
        lines.entry(key).or_default().push(point);
    }
    lines.into_iter().map(|(key, points)| TimeLine::of(key, points, thresholds)).collect()
}
