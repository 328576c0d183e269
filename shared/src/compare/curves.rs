//! Curves of step times and losses, thinned without losing peaks.

use super::{ComparisonOptions, RunFigures};
use crate::estimate::Interval;
use crate::log::{Column, Steps};
use crate::result::{PlanComparison, RunResult, ViewedRun};
use serde::{Deserialize, Serialize};

/// The curves of all runs, and the levels to draw beside them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Curves {
    /// Seconds per step.
    pub step_time_s: Vec<Curve>,
    /// The training loss.
    pub loss: Vec<Curve>,
    /// TFLOPS per GPU in the log.
    pub tflops_per_gpu: Vec<Curve>,
    /// The planned, predicted and published step times, drawn as horizontal lines.
    pub levels: Vec<ReferenceLevel>,
}

/// A quantity of a run by step. The two columns have the same length; steps without a value are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Curve {
    /// The index of the run among the items.
    pub item: usize,
    /// The step numbers in the log.
    pub steps: Vec<u64>,
    /// The values.
    pub values: Vec<f64>,
}

/// A step time to compare a run with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReferenceLevel {
    /// The index of the run among the items.
    pub item: usize,
    /// Where it comes from.
    pub kind: ReferenceLevelKind,
    /// Seconds per step.
    pub step_time_s: f64,
    /// The lower end of its interval; null without one.
    pub low_s: Option<f64>,
    /// The upper end of its interval; null without one.
    pub high_s: Option<f64>,
}

/// The source of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReferenceLevelKind {
    /// Predicted before the run started.
    Plan,
    /// Predicted for its scenario.
    Prediction,
    /// Published for the recipe.
    Published,
}

impl Curves {
    pub(super) fn of(
        seen: &[(&RunResult, ViewedRun<'_>)],
        items: &[RunFigures],
        options: &ComparisonOptions,
    ) -> Self {
        let mut curves = Self::default();
        for (item, (_, seen)) in seen.iter().enumerate() {
            let steps = &seen.log.steps;
            let curve = |column: &Column| Curve::of(item, steps, column, options.points);
            curves.step_time_s.extend(curve(&steps.step_time_s));
            curves.loss.extend(curve(&steps.loss));
            // The report leaves out values that are known to be wrong.
            if seen.report.tflops_per_gpu.is_some() {
                curves.tflops_per_gpu.extend(curve(&steps.tflops_per_gpu));
            }
        }
        for (place, item) in items.iter().enumerate() {
            let predicted = |kind, compared: Option<PlanComparison>| {
                let Interval { low, mid, high } = compared?.step_time_s;
                let (low_s, high_s) = (Some(low), Some(high));
                Some(ReferenceLevel { item: place, kind, step_time_s: mid, low_s, high_s })
            };
            curves.levels.extend(predicted(ReferenceLevelKind::Plan, item.plan));
            curves.levels.extend(predicted(ReferenceLevelKind::Prediction, item.prediction));
            curves.levels.extend(item.baseline.map(|baseline| ReferenceLevel {
                item: place,
                kind: ReferenceLevelKind::Published,
                step_time_s: baseline.step_time_s,
                low_s: None,
                high_s: None,
            }));
        }
        curves
    }
}

impl Curve {
    /// Returns the curve of a column with at most `points` points, or two; none if no step has a value.
    fn of(item: usize, steps: &Steps, column: &Column, points: usize) -> Option<Self> {
        let all = (0..steps.len()).filter_map(|row| Some((*steps.label.get(row)?, column.get(row)?)));
        let kept = thin(all.collect(), points);
        let (steps, values): (Vec<u64>, Vec<f64>) = kept.into_iter().unzip();
        (!steps.is_empty()).then_some(Self { item, steps, values })
    }
}

/// Returns the largest value that three consecutive points of a curve reach or exceed; none with fewer points. A chart shows
/// it, while it may leave out larger values: one or two points far above the others, such as the first step.
#[must_use]
pub fn sustained_peak(values: &[f64]) -> Option<f64> {
    let least = |points: &[f64]| points.iter().copied().fold(f64::INFINITY, f64::min);
    values.windows(3).map(least).max_by(f64::total_cmp)
}

/// Returns the smallest and the largest value of each section, with as many sections as fit.
fn thin(all: Vec<(u64, f64)>, points: usize) -> Vec<(u64, f64)> {
    let sections = (points / 2).max(1);
    if all.len() <= 2 * sections {
        return all;
    }
    let mut kept = Vec::with_capacity(2 * sections);
    for section in all.chunks(all.len().div_ceil(sections)) {
        let least = section.iter().min_by(|one, other| one.1.total_cmp(&other.1));
        // The first of equal values, as for the smallest.
        let greatest = section.iter().rev().max_by(|one, other| one.1.total_cmp(&other.1));
        let (Some(least), Some(greatest)) = (least, greatest) else { continue };
        let mut pair = [*least, *greatest];
        pair.sort_by_key(|(step, _)| *step);
        kept.push(pair[0]);
        if pair[1].0 != pair[0].0 {
            kept.push(pair[1]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_curves_are_not_thinned() {
        let all: Vec<(u64, f64)> = (0..10).map(|step| (step, 1.0)).collect();
        assert_eq!(thin(all.clone(), 10), all);
        assert_eq!(thin(all, 9), [(0, 1.0), (3, 1.0), (6, 1.0), (9, 1.0)]);
        assert_eq!(thin(Vec::new(), 0), []);
    }

    #[test]
    fn a_peak_is_sustained_by_three_points() {
        assert_eq!(sustained_peak(&[9.0, 1.0, 8.0, 7.0, 1.0, 5.0, 6.0, 5.5, 1.0]), Some(5.0));
        assert_eq!(sustained_peak(&[9.0, 8.0]), None);
    }

    proptest! {
        #[test]
        fn a_thinned_curve_keeps_its_extremes_and_ascending_steps(
            values in prop::collection::vec(-1e3..1e3_f64, 1..500),
            points in 0..200_usize,
        ) {
            let all: Vec<(u64, f64)> =
                values.iter().enumerate().map(|(step, value)| (step as u64 * 3, *value)).collect();
            let kept = thin(all.clone(), points);
            prop_assert!(kept.len() <= points.max(2));
            prop_assert!(kept.is_sorted_by(|one, next| one.0 < next.0));
            prop_assert!(kept.iter().all(|point| all.contains(point)));
            let ends = |points: &[(u64, f64)]| {
                let values = points.iter().map(|point| point.1);
                (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
            };
            prop_assert_eq!(ends(&kept), ends(&all));
        }
    }
}
