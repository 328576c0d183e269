//! The newest run of a time line, by each threshold.

use super::{ChangePoint, Point, Thresholds};
use crate::choices::choices;
use crate::statistics::quantile;
use crate::units::{minute, significant};
use serde::{Deserialize, Serialize};

/// The standard deviation of normal numbers, in medians of their distances from their median.
const DEVIATION_OF_MAD: f64 = 1.4826;

choices! {
    /// What a run is judged by.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ThresholdKind))]
    Kind {
        /// The published speed.
        Baseline "baseline",
        /// The median of the runs before it.
        Previous "previous",
        /// How far those lie apart: median and median absolute deviation.
        Sigma "sigma",
        /// A change point among the newest runs.
        Change "change",
    }
}

choices! {
    /// What came out.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Outcome {
        /// It is within the limit.
        Fine "fine",
        /// It is beyond.
        Regression "regression",
        /// There is nothing to judge it by.
        NotJudged "not_judged",
    }
}

/// The newest run by one threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Check {
    /// Which.
    pub kind: Kind,
    /// What came out.
    pub outcome: Outcome,
    /// Seconds per step that were measured; so the next two.
    pub measured_s: Option<f64>,
    /// That were to be expected.
    pub expected_s: Option<f64>,
    /// From which on it is a regression.
    pub limit_s: Option<f64>,
    /// It as a sentence.
    pub text: String,
}

/// A regression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Regression))]
pub struct Alert {
    /// By which threshold.
    pub kind: Kind,
    /// The run's id.
    pub point: String,
    /// When.
    pub at: String,
    /// Seconds per step that were measured.
    pub measured_s: f64,
    /// That were to be expected.
    pub expected_s: f64,
    /// From which on it is a regression.
    pub limit_s: f64,
    /// It as a sentence.
    pub text: String,
}

/// The newest of the points, by every threshold that is set.
pub(super) fn checks(points: &[Point], changes: &[ChangePoint], thresholds: &Thresholds) -> Vec<Check> {
    let Some((newest, before)) = points.split_last() else { return Vec::new() };
    let wanted = [
        (Kind::Baseline, thresholds.baseline_percent.is_some()),
        (Kind::Previous, thresholds.previous_percent.is_some()),
        (Kind::Sigma, thresholds.sigma.is_some()),
        (Kind::Change, thresholds.change),
    ];
    let kinds = wanted.into_iter().filter_map(|(kind, wanted)| wanted.then_some(kind));
    let Some(measured_s) = newest.measured_s() else {
        let text = match newest.step_time_s {
            None => "the newest run was not scored",
            Some(_) => "the newest run's time can't stand beside others",
        };
        return kinds.map(|kind| Check::not_judged(kind, newest.step_time_s, text.to_owned())).collect();
    };
    let mut previous: Vec<f64> =
        before.iter().rev().filter_map(Point::measured_s).take(thresholds.previous).collect();
    previous.sort_unstable_by(f64::total_cmp);
    let newest = Newest { measured_s, point: newest, previous, changes, points, thresholds };
    kinds.map(|kind| newest.by(kind)).collect()
}

/// Those that are regressions, of this point.
pub(super) fn alerts(newest: &Point, checks: &[Check]) -> Vec<Alert> {
    let regressions = checks.iter().filter(|check| check.outcome == Outcome::Regression);
    let alert = |check: &Check| {
        Some(Alert {
            kind: check.kind,
            point: newest.id.clone(),
            at: newest.at.clone(),
            measured_s: check.measured_s?,
            expected_s: check.expected_s?,
            limit_s: check.limit_s?,
            text: check.text.clone(),
        })
    };
    regressions.filter_map(alert).collect()
}

struct Newest<'a> {
    measured_s: f64,
    point: &'a Point,
    /// The measured times of the runs before it, the shortest first.
    previous: Vec<f64>,
    changes: &'a [ChangePoint],
    points: &'a [Point],
    thresholds: &'a Thresholds,
}

impl Newest<'_> {
    fn by(&self, kind: Kind) -> Check {
        let judged = match kind {
            Kind::Baseline => self.by_baseline(),
            Kind::Previous => self.by_previous(),
            Kind::Sigma => self.by_sigma(),
            Kind::Change => self.by_change(),
        };
        match judged {
            Ok(Judged { expected_s, limit_s, regression, text }) => Check {
                kind,
                outcome: if regression { Outcome::Regression } else { Outcome::Fine },
                measured_s: Some(self.measured_s),
                expected_s: Some(expected_s),
                limit_s: Some(limit_s),
                text,
            },
            Err(why) => Check::not_judged(kind, Some(self.measured_s), why),
        }
    }

    fn by_baseline(&self) -> Result<Judged, String> {
        let baseline_s = self.point.baseline_step_time_s.filter(|time| *time > 0.0);
        let (Some(baseline_s), Some(least)) = (baseline_s, self.thresholds.baseline_percent) else {
            return Err("nothing is published for it".to_owned());
        };
        let judged = self.judged(baseline_s, baseline_s * 100.0 / least);
        let percent = 100.0 * baseline_s / self.measured_s;
        let side = if judged.regression { "below" } else { "not below" };
        Ok(judged.told(format!(
            "{} s is {percent:.1} % of the published speed, {side} {least} %",
            significant(self.measured_s, 4)
        )))
    }

    fn by_previous(&self) -> Result<Judged, String> {
        let median_s = self.median()?;
        let most = self.thresholds.previous_percent.unwrap_or_default();
        let judged = self.judged(median_s, median_s * (1.0 + most / 100.0));
        Ok(judged.told(format!(
            "{} s is {:+.1} % against the median of the last {} runs, {}; {most} % more is allowed",
            significant(self.measured_s, 4),
            100.0 * (self.measured_s / median_s - 1.0),
            self.previous.len(),
            significant(median_s, 4),
        )))
    }

    /// By the robust score of Iglewicz and Hoaglin (1993). Runs that are nearly equal would make a regression of
    /// anything, so it must matter too.
    fn by_sigma(&self) -> Result<Judged, String> {
        let median_s = self.median()?;
        let mut distances: Vec<f64> = self.previous.iter().map(|time| (time - median_s).abs()).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let deviation_s = DEVIATION_OF_MAD * quantile(&distances, 0.5);
        let sigma = self.thresholds.sigma.unwrap_or_default();
        let reach_s = (sigma * deviation_s).max(median_s * self.thresholds.margin_percent / 100.0);
        let judged = self.judged(median_s, median_s + reach_s);
        Ok(judged.told(format!(
            "{} s; the last {} runs took {} ± {} s, and up to {} s ({sigma} deviations, {} % at least) is allowed",
            significant(self.measured_s, 4),
            self.previous.len(),
            significant(median_s, 4),
            significant(deviation_s, 2),
            significant(median_s + reach_s, 4),
            self.thresholds.margin_percent,
        )))
    }

    /// By the newest change point, while it is among the runs that are looked at.
    fn by_change(&self) -> Result<Judged, String> {
        self.median()?;
        let since = self.points.len().saturating_sub(self.thresholds.previous + 1);
        match self.changes.last().filter(|change| change.index >= since) {
            Some(change) => {
                let limit_s = change.before_s * (1.0 + self.thresholds.margin_percent / 100.0);
                let judged = self.judged(change.before_s, limit_s);
                // A run that is fast again ends the matter, even before there are enough of them for another change.
                let judged = Judged { regression: judged.regression && change.percent > 0.0, ..judged };
                let is_over = change.percent > 0.0 && !judged.regression;
                let newest = match is_over {
                    true => format!("; the newest took {} s, as before", significant(self.measured_s, 4)),
                    false => String::new(),
                };
                Ok(judged.told(format!(
                    "runs {} {:+.1} % since {}: {} s before, {} s from then on{newest}",
                    if is_over { "took" } else { "take" },
                    change.percent,
                    minute(&change.at),
                    significant(change.before_s, 4),
                    significant(change.after_s, 4),
                )))
            }
            None => {
                let median_s = self.median()?;
                let fine = Judged {
                    expected_s: median_s,
                    limit_s: median_s,
                    regression: false,
                    text: String::new(),
                };
                Ok(fine.told(format!("no lasting change in the last {} runs", self.previous.len() + 1)))
            }
        }
    }

    /// The median of the runs before it, if there are enough of them.
    fn median(&self) -> Result<f64, String> {
        let (n, least) = (self.previous.len(), self.thresholds.minimum.min(self.thresholds.previous));
        if n < least {
            let came = if n == 1 { "run came" } else { "runs came" };
            return Err(format!("only {n} {came} before it, and it takes {least} to judge it by"));
        }
        Ok(quantile(&self.previous, 0.5))
    }

    fn judged(&self, expected_s: f64, limit_s: f64) -> Judged {
        Judged { expected_s, limit_s, regression: self.measured_s > limit_s, text: String::new() }
    }
}

struct Judged {
    expected_s: f64,
    limit_s: f64,
    regression: bool,
    text: String,
}

impl Judged {
    fn told(self, text: String) -> Self {
        Self { text, ..self }
    }
}

impl Check {
    fn not_judged(kind: Kind, measured_s: Option<f64>, text: String) -> Self {
        Self { kind, outcome: Outcome::NotJudged, measured_s, expected_s: None, limit_s: None, text }
    }
}
