//! Calibration: fits the constants of the estimate to measurements, and computes its errors on held-out rows.
//!
//! Call [`Calibrator::fit`], then [`Fold::judge`] for each of [`Calibrator::folds`] (folds are independent,
//! so a caller can judge them in parallel), then [`Calibrator::finish`] for the files.

pub mod cluster;
mod files;
pub mod fit;
mod held_out;
mod intervals;
mod own_runs;
mod regret;
mod report;
mod split;
mod summary;
pub mod validate;

pub use crate::statistics::quantile;
pub use files::CalibrationFiles;
pub(crate) use files::table;
pub(crate) use held_out::thousandth;
pub use held_out::{Fold, HeldOutError, HeldOutErrors, HeldOutRow};
pub use intervals::{DistantRows, FittedInterval, intervals};
pub use regret::Regret;
pub use split::{FrozenSplit, Grouping};
pub use summary::ErrorSummary;

use crate::catalog::Catalog;
use crate::estimate::{
    Anchors, Constant, Constants, Covariance, Distance, MemoryEstimate, MemoryVerdict, Record, Residual,
};
use crate::measurements::{Measurement, MeasurementUse, Outcome};
use files::{
    anchor_runs_file, anchors_file, constants_file, extent_file, five, held_out_file, intervals_file, seven,
};
use fit::FitPoint;
use std::collections::BTreeMap;

/// Fits the constants to rows, and judges the result.
pub struct Calibrator<'a> {
    all: Vec<Constant>,
    points: Vec<FitPoint<'a>>,
    split: FrozenSplit,
}

impl<'a> Calibrator<'a> {
    /// Returns a calibrator for the rows that are usable for fitting: complete, timed pre-training runs.
    pub fn new(rows: &'a [Measurement]) -> Calibrator<'a> {
        let good = rows.iter().filter(|row| row.is_for_fitting() || row.usage.is_none());
        Calibrator { all: Constant::all(), points: fit::points(good), split: FrozenSplit::embedded() }
    }

    /// Returns the number of fitted rows.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is no row to fit.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// Returns the constants that fit all rows best, to seven digits, starting from the priors.
    pub fn fit(&self) -> Vec<f64> {
        let priors: Vec<f64> = self.all.iter().map(|constant| constant.prior).collect();
        let values = fit::fit(&self.all, &priors, &self.points, fit::ROUNDS);
        values.into_iter().map(|value| seven(value).parse().unwrap_or(value)).collect()
    }

    /// Pairs values with the names of their constants.
    pub fn named(&self, values: &[f64]) -> impl Iterator<Item = (&str, f64)> {
        self.all.iter().map(|constant| &*constant.name).zip(values.iter().copied())
    }

    /// Returns the folds to judge.
    pub fn folds(&self, by: Grouping) -> Vec<Fold<'a>> {
        held_out::folds(&self.points, &self.split, by)
    }

    /// Returns the folds of rows that are that far from all others.
    pub fn distant_folds(&self, distance: Distance) -> Vec<Fold<'a>> {
        held_out::distant_folds(&self.points, distance)
    }

    /// Predicts the rows of a fold by a fit to all others, which starts from the values of the whole fit.
    pub fn judge(&self, fold: &Fold<'a>, values: &[f64]) -> Vec<HeldOutRow<'a>> {
        fold.judge(&self.all, values, &self.split)
    }

    /// Returns the anchors with these constants. Each carries its held-out error.
    fn anchors(&self, constants: &Constants, errors: &HeldOutErrors) -> Anchors {
        // A run corrects predictions for its own model only. Tiny models on one node resemble no real plan, and nobody plans the
        // unnamed shapes and sweeps that the catalog doesn't have, so anchors.csv leaves them out.
        let catalog = Catalog::embedded();
        let is_planned = |row: &Measurement| !row.is_tiny() && catalog.model(&row.model).is_ok();
        let planned: Vec<FitPoint<'_>> =
            self.points.iter().filter(|point| is_planned(point.row)).copied().collect();
        let mut residuals = held_out::residuals(&planned, constants);
        for (residual, point) in residuals.iter_mut().zip(&planned) {
            if let Record::Own(configuration) = &mut residual.record {
                for run in &mut configuration.runs {
                    run.url = point.row.source_url();
                    run.held_out_error = errors.get(&point.row.id).map(|error| error.mapping);
                }
            }
            residual.surprise = errors.surprise(&point.row.id);
            residual.log_ratio = five(residual.log_ratio).parse().unwrap_or(residual.log_ratio);
        }
        Anchors::new(Covariance::embedded(), merged(residuals))
    }

    /// Returns the files of a calibration with these values. `judged` has the rows of all folds in the order
    /// of [`Grouping::ALL`], `distant` those of [`Distance::ALL`]; `rows` also contains the rows that are not fitted but
    /// have memory figures.
    pub fn finish(
        &self,
        values: &[f64],
        judged: &[Vec<HeldOutRow<'a>>; 3],
        distant: &DistantRows<'a>,
        rows: &[Measurement],
    ) -> CalibrationFiles {
        let constants = Constants::from_values(&self.all, values);
        let errors = HeldOutErrors::of(judged);
        let anchors = self.anchors(&constants, &errors);
        let intervals = intervals(judged, distant);
        CalibrationFiles {
            constants: constants_file(&self.all, values),
            anchors: anchors_file(&anchors),
            anchor_runs: anchor_runs_file(&anchors),
            intervals: intervals_file(&intervals),
            extent: extent_file(&self.points),
            held_out: held_out_file(&errors),
            regret: regret::file(judged),
            report: report::markdown(
                judged,
                distant,
                &intervals,
                &own_runs::of(&self.all, values, &self.points),
                rows,
            ),
            scatter: report::scatter(judged),
        }
    }
}

/// Merges repeated measurements of one run into their mean.
fn merged(residuals: Vec<Residual>) -> Vec<Residual> {
    let mut merged: Vec<(Residual, f64)> = Vec::new();
    for one in residuals {
        match merged.iter_mut().find(|(other, _)| other.features == one.features) {
            Some((other, count)) => {
                other.log_ratio = (other.log_ratio * *count + one.log_ratio) / (*count + 1.0);
                other.surprise = (other.surprise * *count + one.surprise) / (*count + 1.0);
                if let Record::Own(configuration) = &mut other.record {
                    configuration.runs.extend_from_slice(&one.record.configuration().runs);
                }
                *count += 1.0;
            }
            None => merged.push((one, 1.0)),
        }
    }
    merged.into_iter().map(|(residual, _)| residual).collect()
}

/// Whether a row's model routes tokens to experts.
pub(crate) fn is_routed(row: &Measurement) -> bool {
    row.scenario.as_ref().is_ok_and(|scenario| scenario.architecture.moe.is_some())
}

/// Whether a row was measured with NVIDIA's software on Megatron-Core.
fn is_nvidia(row: &Measurement) -> bool {
    row.scenario.as_ref().is_ok_and(|scenario| scenario.options.software.is_nvidia_megatron())
}

/// What the estimate says of the memory of runs that worked, and of those that ran out of memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FitCounts {
    /// Runs that worked, in the order of [`MemoryVerdict::ALL`].
    pub worked: [usize; MemoryVerdict::ALL.len()],
    /// Runs that ran out of memory, in the same order.
    pub ran_out: [usize; MemoryVerdict::ALL.len()],
    /// The shares of the runs that ran out of memory, in the same order, if each layout counts once: a sweep tries several
    /// micro batch sizes of a layout. 0 without such runs.
    pub ran_out_by_layout: [f64; MemoryVerdict::ALL.len()],
}

/// Counts the runs of each collection that worked, as shown by a step time, or ran out of memory.
pub fn fitting(rows: &[Measurement]) -> BTreeMap<&str, FitCounts> {
    let mut counts: BTreeMap<&str, FitCounts> = BTreeMap::new();
    // The number of runs of each layout that ran out of memory, by verdict.
    let mut layouts: BTreeMap<(&str, String), [usize; MemoryVerdict::ALL.len()]> = BTreeMap::new();
    for row in rows {
        let Ok(scenario) = &row.scenario else { continue };
        let has_run_out = row.outcome == Outcome::OutOfMemory;
        if !has_run_out && (row.step_time_s.is_none() || row.usage == Some(MeasurementUse::Exclude)) {
            continue;
        }
        let counts = counts.entry(&*row.source).or_default();
        let verdict = MemoryEstimate::of(&scenario.inputs()).verdict() as usize;
        if has_run_out {
            counts.ran_out[verdict] += 1;
            let layout =
                format!("{} {:?} {:?}", scenario.shape, scenario.layout, scenario.options.zero_group);
            layouts.entry((&*row.source, layout)).or_default()[verdict] += 1;
        } else {
            counts.worked[verdict] += 1;
        }
    }
    for (source, counts) in &mut counts {
        let own = layouts.iter().filter(|((of, _), _)| of == source);
        let shares: Vec<[f64; MemoryVerdict::ALL.len()]> =
            own.map(|(_, runs)| runs.map(|count| count as f64 / runs.iter().sum::<usize>() as f64)).collect();
        for (verdict, share) in counts.ran_out_by_layout.iter_mut().enumerate() {
            *share = shares.iter().map(|layout| layout[verdict]).sum::<f64>() / shares.len().max(1) as f64;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Coordinate, Features};

    #[test]
    fn few_mixtures_of_experts_were_measured_with_what_counts_as_rare() {
        let calibrator = Calibrator::new(crate::measurements::embedded());
        let routed = calibrator.points.iter().filter(|point| is_routed(point.row));
        let rare: Vec<u32> = routed
            .filter_map(|point| Some(Features::of(&point.row.scenario.as_ref().ok()?.inputs()).rare()))
            .collect();
        assert!(rare.len() > 200, "{}", rare.len());
        for (place, kind) in Coordinate::RARE.iter().rev().enumerate() {
            let users = rare.iter().filter(|bits| *bits >> place & 1 == 1).count();
            assert!(users * 10 < rare.len(), "{kind:?}: {users} of {}", rare.len());
        }
    }

    #[test]
    fn the_embedded_anchors_follow_from_the_embedded_constants() {
        let calibrator = Calibrator::new(crate::measurements::embedded());
        let anchors = calibrator.anchors(Constants::embedded(), &HeldOutErrors::embedded());
        assert!(anchors_file(&anchors) == include_str!("../../data/anchors.csv"));
        assert!(anchor_runs_file(&anchors) == include_str!("../../data/anchor_runs.csv"));
    }
}
