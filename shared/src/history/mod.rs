//! The same run over time: when it became slower or faster, and whether the newest one is a regression.
//!
//! A [`TimeLine`] holds what is expected to take the same time: one recipe, or one scenario of your own, on one cluster. Its
//! change points are found as Hunter does, and its newest point is judged by each of the [`Thresholds`].
//!
//! ```
//! use trainplan_shared::history::{Key, Point, Thresholds, time_lines};
//!
//! let key = Key { recipe: Some("llama3.1-8b/h100/fp8/8@25.04".into()), ..Key::default() };
//! let point = |day: u32, step_time_s: f64| Point {
//!     id: day.to_string(),
//!     at: format!("2026-01-{day:02}T06:00:00Z"),
//!     step_time_s: Some(step_time_s),
//!     comparable: true,
//!     baseline_step_time_s: Some(9.33),
//!     ..Point::default()
//! };
//! let nights = [9.4, 9.41, 9.39, 9.4, 9.42, 9.4, 10.1];
//! let points = nights.iter().enumerate().map(|(day, time)| (key.clone(), point(day as u32 + 1, *time)));
//! let lines = time_lines(points, &Thresholds::default());
//! assert_eq!(lines[0].alerts.len(), 3);
//! assert_eq!(lines[0].alerts[0].text, "10.1 s is 92.4 % of the published speed, below 95 %");
//! ```

mod change;
mod judge;
#[cfg(test)]
mod tests;
mod thresholds;

pub use change::ChangePoint;
pub use judge::{Alert, Check, Kind, Outcome};
pub use thresholds::{ThresholdError, Thresholds};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the runs of a time line have in common. What is none is not known, and alike in all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// The published recipe; runs of one have the same scenario.
    pub recipe: Option<String>,
    /// The scenario of runs that are none of a recipe: the query of a link to it.
    pub scenario: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The GPU type.
    pub gpu: Option<String>,
    /// How many GPUs.
    pub gpus: Option<u32>,
    /// The precision.
    pub dtype: Option<String>,
    /// The cluster.
    pub cluster: Option<String>,
}

impl Key {
    /// Whether runs under it are known to be of one scenario.
    #[must_use]
    pub fn is_one_scenario(&self) -> bool {
        self.recipe.is_some() || self.scenario.is_some()
    }

    /// What to call the time line.
    #[must_use]
    pub fn label(&self) -> String {
        let own =
            || self.scenario.as_deref().unwrap_or_default().trim_start_matches("v=1&").replace('&', ", ");
        let what = self.recipe.clone().unwrap_or_else(own);
        match &self.cluster {
            Some(cluster) => format!("{what} on {cluster}"),
            None => what,
        }
    }
}

/// One run of a time line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The result's id.
    pub id: String,
    /// When, as RFC 3339 in UTC, all in one form: the order of the texts is the order of time.
    pub at: String,
    /// Mean seconds per step; none of a run that was not scored.
    pub step_time_s: Option<f64>,
    /// Their standard deviation.
    pub std_s: Option<f64>,
    /// How many steps.
    pub n: u64,
    /// Whether its time can stand beside others.
    pub comparable: bool,
    /// The recipe's published seconds per step.
    pub baseline_step_time_s: Option<f64>,
}

impl Point {
    /// Its step time, where that can stand beside others.
    #[must_use]
    pub fn measured_s(&self) -> Option<f64> {
        self.step_time_s.filter(|time| self.comparable && time.is_finite() && *time > 0.0)
    }
}

/// The same run over time, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeLine {
    /// What its runs have in common.
    pub key: Key,
    /// What to call it.
    pub label: String,
    /// The runs, oldest first.
    pub points: Vec<Point>,
    /// Where the step time changed for good, oldest first.
    pub change_points: Vec<ChangePoint>,
    /// The newest run by every threshold.
    pub checks: Vec<Check>,
    /// Those by which it is a regression.
    pub alerts: Vec<Alert>,
}

impl TimeLine {
    /// Judges runs under one key, in any order; what is there twice counts once.
    #[must_use]
    pub fn of(key: Key, mut points: Vec<Point>, thresholds: &Thresholds) -> Self {
        points.sort_by(|one, other| (&one.at, &one.id).cmp(&(&other.at, &other.id)));
        points.dedup_by(|one, other| one.id == other.id);
        let change_points = change::find(&points, thresholds.margin_percent);
        let checks = judge::checks(&points, &change_points, thresholds);
        let alerts = points.last().map_or(Vec::new(), |newest| judge::alerts(newest, &checks));
        Self { label: key.label(), key, points, change_points, checks, alerts }
    }

    /// Whether any threshold could judge its newest run.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.checks.iter().any(|check| check.outcome != Outcome::NotJudged)
    }
}

/// The time lines of runs, by their keys in order. A run of no known scenario belongs to none.
#[must_use]
pub fn time_lines(points: impl IntoIterator<Item = (Key, Point)>, thresholds: &Thresholds) -> Vec<TimeLine> {
    let mut lines: BTreeMap<Key, Vec<Point>> = BTreeMap::new();
    for (key, point) in points.into_iter().filter(|(key, _)| key.is_one_scenario()) {
        lines.entry(key).or_default().push(point);
    }
    lines.into_iter().map(|(key, points)| TimeLine::of(key, points, thresholds)).collect()
}
