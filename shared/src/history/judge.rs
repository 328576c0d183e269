//! Judges the newest run of a time line by each threshold.

use super::{ChangePoint, Thresholds, TimeLinePoint};
use crate::choices::choices;
use crate::result::{much_faster, steady_difference};
use crate::statistics::quantile;
use crate::units::{minute, signed, significant};
use serde::{Deserialize, Serialize};

/// The ratio of the standard deviation to the median absolute deviation (MAD) of a normal distribution.
const DEVIATION_OF_MAD: f64 = 1.4826;

choices! {
    /// A threshold that the newest run is judged by.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    ThresholdKind {
        /// The speed relative to the published one.
        Baseline "baseline",
        /// The median of the previous runs.
        Previous "previous",
        /// The spread of the previous runs: their median and median absolute deviation.
        Sigma "sigma",
        /// A change point among the newest runs.
        Change "change",
    }
}

choices! {
    /// The outcome of a check.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    CheckOutcome {
        /// The run is within the limit.
        Fine "fine",
        /// The run is beyond the limit.
        Regression "regression",
        /// The run could not be judged.
        NotJudged "not_judged",
    }
}

/// The newest run judged by one threshold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ThresholdCheck {
    /// The threshold.
    pub kind: ThresholdKind,
    /// The outcome.
    pub outcome: CheckOutcome,
    /// The measured seconds per step.
    pub measured_s: Option<f64>,
    /// The expected seconds per step.
    pub expected_s: Option<f64>,
    /// The seconds per step above which a run is a regression.
    pub limit_s: Option<f64>,
    /// The outcome with its numbers, in words.
    pub text: String,
}

/// A regression: a check that the newest run failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Regression {
    /// The threshold.
    pub kind: ThresholdKind,
    /// The run's id.
    pub point: String,
    /// When the run ran.
    pub at: String,
    /// The measured seconds per step.
    pub measured_s: f64,
    /// The expected seconds per step.
    pub expected_s: f64,
    /// The seconds per step above which a run is a regression.
    pub limit_s: f64,
    /// The outcome with its numbers, in words.
    pub text: String,
}

/// The newest run with a comparable step time, judged as it would be without the later runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LastComparableRun {
    /// The run judged by every threshold.
    pub checks: Vec<ThresholdCheck>,
    /// The checks that the run failed.
    pub alerts: Vec<Regression>,
}

/// Judges the newest point with a comparable step time; none if it is the newest point, or if there is none.
pub(super) fn last_comparable(
    points: &[TimeLinePoint],
    changes: &[ChangePoint],
    thresholds: &Thresholds,
) -> Option<LastComparableRun> {
    let place = points.iter().rposition(|point| point.measured_s().is_some())?;
    let (until, later) = points.split_at(place + 1);
    let newest = until.last().filter(|_| !later.is_empty())?;
    let checks = checks(until, changes, thresholds);
    Some(LastComparableRun { alerts: alerts(newest, &checks), checks })
}

/// Judges the newest point by every threshold that is set.
pub(super) fn checks(
    points: &[TimeLinePoint],
    changes: &[ChangePoint],
    thresholds: &Thresholds,
) -> Vec<ThresholdCheck> {
    let Some((newest, before)) = points.split_last() else { return Vec::new() };
    let wanted = [
        (ThresholdKind::Baseline, thresholds.baseline_percent.is_some()),
        (ThresholdKind::Previous, thresholds.previous_percent.is_some()),
        (ThresholdKind::Sigma, thresholds.sigma.is_some()),
        (ThresholdKind::Change, thresholds.change),
    ];
    let kinds = wanted.into_iter().filter_map(|(kind, wanted)| wanted.then_some(kind));
    let Some((measured_s, scored_s)) = newest.measured_s().zip(newest.scored_s()) else {
        let text = match newest.step_time_s {
            None => "the newest run was not scored",
            Some(_) => "the newest run is not comparable with others",
        };
        let text = match &newest.reason {
            Some(reason) => format!("{text}. {reason}"),
            None => text.to_owned(),
        };
        return kinds
            .map(|kind| ThresholdCheck::not_judged(kind, newest.step_time_s, text.clone()))
            .collect();
    };
    let mut previous: Vec<f64> =
        before.iter().rev().filter_map(TimeLinePoint::measured_s).take(thresholds.previous).collect();
    previous.sort_unstable_by(f64::total_cmp);
    let newest = Newest { measured_s, scored_s, point: newest, previous, changes, points, thresholds };
    kinds.map(|kind| newest.by(kind)).collect()
}

/// Returns the failed checks of the newest point.
pub(super) fn alerts(newest: &TimeLinePoint, checks: &[ThresholdCheck]) -> Vec<Regression> {
    let regressions = checks.iter().filter(|check| check.outcome == CheckOutcome::Regression);
    let alert = |check: &ThresholdCheck| {
        Some(Regression {
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
    /// The step time by which the run is judged.
    measured_s: f64,
    scored_s: f64,
    point: &'a TimeLinePoint,
    /// The step times of the previous runs, in ascending order.
    previous: Vec<f64>,
    changes: &'a [ChangePoint],
    points: &'a [TimeLinePoint],
    thresholds: &'a Thresholds,
}

impl Newest<'_> {
    fn by(&self, kind: ThresholdKind) -> ThresholdCheck {
        let judged = match kind {
            ThresholdKind::Baseline => self.by_baseline(),
            ThresholdKind::Previous => self.by_previous(),
            ThresholdKind::Sigma => self.by_sigma(),
            ThresholdKind::Change => self.by_change(),
        };
        match judged {
            Ok(Judgement { measured_s, expected_s, limit_s, regression, text }) => ThresholdCheck {
                kind,
                outcome: if regression { CheckOutcome::Regression } else { CheckOutcome::Fine },
                measured_s: Some(measured_s),
                expected_s: Some(expected_s),
                limit_s: Some(limit_s),
                text,
            },
            Err(why) => ThresholdCheck::not_judged(kind, Some(self.measured_s), why),
        }
    }

    fn by_baseline(&self) -> Result<Judgement, String> {
        let baseline_s = self.point.baseline_step_time_s.filter(|time| *time > 0.0);
        let (Some(baseline_s), Some(least)) = (baseline_s, self.thresholds.baseline_percent) else {
            return Err("no published number".to_owned());
        };
        let judged = self.judged(baseline_s, baseline_s * 100.0 / least);
        let percent = 100.0 * baseline_s / self.measured_s;
        let side = if judged.regression { "below" } else { "at or above" };
        let steady = steady_difference(self.scored_s, self.measured_s).map(|difference| {
            let scored_s = significant(self.scored_s, 4);
            format!("; this steady mean is {difference} than the scored step time, {scored_s} s")
        });
        let fast = much_faster(percent).map(|what| format!("; this is {what}"));
        Ok(judged.described(format!(
            "{} s is {percent:.1} % of the published speed, {side} {least} %{}{}",
            significant(self.measured_s, 4),
            steady.unwrap_or_default(),
            fast.unwrap_or_default()
        )))
    }

    fn by_previous(&self) -> Result<Judgement, String> {
        let median_s = self.median()?;
        let most = self.thresholds.previous_percent.unwrap_or_default();
        let judged = self.judged(median_s, median_s * (1.0 + most / 100.0));
        let percent = 100.0 * (self.measured_s / median_s - 1.0);
        let side = if percent < 0.0 { "below" } else { "above" };
        Ok(judged.described(format!(
            "{} s is {:.1} % {side} the median of the last {} runs ({} s); the limit is {most} %",
            significant(self.measured_s, 4),
            percent.abs(),
            self.previous.len(),
            significant(median_s, 4),
        )))
    }

    /// Uses the robust score of Iglewicz and Hoaglin (1993). If the previous runs are nearly equal, every run would be a
    /// regression, so the difference must also exceed the margin.
    fn by_sigma(&self) -> Result<Judgement, String> {
        let median_s = self.median()?;
        let mut distances: Vec<f64> = self.previous.iter().map(|time| (time - median_s).abs()).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let deviation_s = DEVIATION_OF_MAD * quantile(&distances, 0.5);
        let sigma = self.thresholds.sigma.unwrap_or_default();
        let reach_s = (sigma * deviation_s).max(median_s * self.thresholds.margin_percent / 100.0);
        let judged = self.judged(median_s, median_s + reach_s);
        Ok(judged.described(format!(
            "{} s; the median of the last {} runs is {} s (typical spread {} s), so the limit is {} s ({sigma} times this \
             spread above the median, at least {} %)",
            significant(self.measured_s, 4),
            self.previous.len(),
            significant(median_s, 4),
            significant(deviation_s, 2),
            significant(median_s + reach_s, 4),
            self.thresholds.margin_percent,
        )))
    }

    /// Uses the newest change point, while it is among the runs that are judged.
    fn by_change(&self) -> Result<Judgement, String> {
        self.median()?;
        let since = self.points.len().saturating_sub(self.thresholds.previous + 1);
        match self.changes.last().filter(|change| change.index >= since) {
            Some(change) => {
                let limit_s = change.before_s * (1.0 + self.thresholds.margin_percent / 100.0);
                let judged = self.judged(change.before_s, limit_s);
                // One fast run ends the regression, even before there are enough of them for another change point.
                let judged = Judgement { regression: judged.regression && change.percent > 0.0, ..judged };
                let is_over = change.percent > 0.0 && !judged.regression;
                let newest = match is_over {
                    true => {
                        format!(
                            "; a later run took {} s, as before the change",
                            significant(self.measured_s, 4)
                        )
                    }
                    false => String::new(),
                };
                Ok(judged.described(format!(
                    "step times changed by {} % on {}, from {} s to {} s{newest}",
                    signed(change.percent, 1),
                    minute(&change.at),
                    significant(change.before_s, 4),
                    significant(change.after_s, 4),
                )))
            }
            None => {
                let median_s = self.median()?;
                let fine = Judgement {
                    measured_s: self.measured_s,
                    expected_s: median_s,
                    limit_s: median_s,
                    regression: false,
                    text: String::new(),
                };
                Ok(fine.described(format!("no lasting change in the last {} runs", self.previous.len() + 1)))
            }
        }
    }

    /// Returns the median of the previous runs, or why there are too few.
    fn median(&self) -> Result<f64, String> {
        let (n, least) = (self.previous.len(), self.thresholds.minimum.min(self.thresholds.previous));
        if n < least {
            let few = match n {
                0 => "no previous runs".to_owned(),
                1 => "only 1 previous run".to_owned(),
                n => format!("only {n} previous runs"),
            };
            return Err(format!("{few}; {least} are needed"));
        }
        Ok(quantile(&self.previous, 0.5))
    }

    fn judged(&self, expected_s: f64, limit_s: f64) -> Judgement {
        Judgement::of(self.measured_s, expected_s, limit_s)
    }
}

struct Judgement {
    measured_s: f64,
    expected_s: f64,
    limit_s: f64,
    regression: bool,
    text: String,
}

impl Judgement {
    fn of(measured_s: f64, expected_s: f64, limit_s: f64) -> Self {
        Self { measured_s, expected_s, limit_s, regression: measured_s > limit_s, text: String::new() }
    }

    fn described(self, text: String) -> Self {
        Self { text, ..self }
    }
}

impl ThresholdCheck {
    fn not_judged(kind: ThresholdKind, measured_s: Option<f64>, text: String) -> Self {
        Self { kind, outcome: CheckOutcome::NotJudged, measured_s, expected_s: None, limit_s: None, text }
    }
}
