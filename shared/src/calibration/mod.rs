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
    Anchors, Constant, Constants, Covariance, Distance, MeasuredConfiguration, MemoryEstimate, MemoryVerdict,
    Record, Residual,
};
use crate::measurements::{Measurement, MeasurementUse, Outcome};
use crate::stack::Stack;
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
        let rows = planned.iter().map(|point| point.row);
        Anchors::new(Covariance::embedded(), merged(residuals.into_iter().zip(rows)))
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

/// Merges the measurements of one run with one software. The newest release of each collection counts: a generation of software has
/// several releases, later ones are up to a tenth faster, and users of that software run the newest. Collections are different
/// clusters, so their mean counts.
fn merged<'a>(measured: impl Iterator<Item = (Residual, &'a Measurement)>) -> Vec<Residual> {
    let mut runs: Vec<Vec<(Residual, &Measurement)>> = Vec::new();
    for (residual, row) in measured {
        // Software that trains a model alike has the same features. Its measurements are separate, because a release of one
        // doesn't replace those of the other.
        let known = runs.iter_mut().find(|run| {
            run.first().is_some_and(|(other, of)| {
                other.features == residual.features && software(of) == software(row)
            })
        });
        match known {
            Some(run) => run.push((residual, row)),
            None => runs.push(vec![(residual, row)]),
        }
    }
    runs.into_iter().filter_map(newest).collect()
}

/// Returns the mean of the newest measurements of a run, with the records of all; none without measurements.
fn newest(run: Vec<(Residual, &Measurement)>) -> Option<Residual> {
    let is_newest = |row: &Measurement| {
        let mut others = run.iter().map(|(_, other)| other);
        !others.any(|other| other.source == row.source && version(&other.release) > version(&row.release))
    };
    let counted: Vec<&Residual> =
        run.iter().filter(|(_, row)| is_newest(row)).map(|(residual, _)| residual).collect();
    let mean = |value: fn(&Residual) -> f64| {
        counted.iter().map(|residual| value(residual)).sum::<f64>() / counted.len() as f64
    };
    let (log_ratio, surprise) = (mean(|residual| residual.log_ratio), mean(|residual| residual.surprise));
    let runs = run.iter().flat_map(|(residual, _)| residual.record.configuration().runs.clone()).collect();
    let (first, _) = run.into_iter().next()?;
    let what = first.record.configuration().what.clone();
    let record = Record::Own(MeasuredConfiguration { what, runs });
    Some(Residual { record, log_ratio, surprise, ..first })
}

fn software(row: &Measurement) -> Option<Stack> {
    row.scenario.as_ref().ok()?.options.software.known()
}

/// Returns the numbers by which releases of a collection are in order: `26.04.01` is later than `26.04`, and `24.07` than `2023`.
fn version(release: &str) -> Vec<u32> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let name = release.split(' ').find(|word| word.contains(is_digit)).unwrap_or_default();
    let numbers =
        name.split(|letter: char| !is_digit(letter)).filter_map(|number| number.parse::<u32>().ok());
    numbers.map(|number| if number >= 2000 { number - 2000 } else { number }).collect()
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

    fn rows_of<const N: usize>(ids: [&str; N]) -> [&'static Measurement; N] {
        ids.map(|id| crate::measurements::embedded().iter().find(|row| row.id == id).unwrap())
    }

    #[test]
    fn the_newest_release_of_each_software_counts() {
        // Llama 3.1 405B on 1,024 H100 with Megatron-Bridge 26.06, 26.04.01 and 26.02.
        let rows = rows_of(["r0038", "r0086", "r0213"]);
        let residuals = held_out::residuals(&fit::points(rows.into_iter()), Constants::embedded());
        assert!(residuals.iter().all(|residual| residual.features == residuals[0].features));
        let merged = merged(residuals.clone().into_iter().zip(rows));
        let [later, earlier] = &*merged else { panic!("{merged:?}") };
        assert_eq!([later.log_ratio, earlier.log_ratio], [0, 1].map(|place| residuals[place].log_ratio));
        let count = |residual: &Residual| residual.record.configuration().runs.len();
        assert_eq!([count(later), count(earlier)], [1, 2]);
    }

    #[test]
    fn runs_of_one_release_and_of_two_collections_count_alike() {
        // DeepSeek-V3 on 256 GB200 with Megatron-Bridge 26.08, 26.06.01 and 26.06, and its verification card of 26.08.
        let rows = rows_of(["r0001", "r0019", "r0041", "mc00001"]);
        let residuals = held_out::residuals(&fit::points(rows.into_iter()), Constants::embedded());
        let mean = (residuals[0].log_ratio + residuals[3].log_ratio) / 2.0;
        let merged = merged(residuals.into_iter().zip(rows));
        let [one] = &*merged else { panic!("{merged:?}") };
        assert!((one.log_ratio - mean).abs() < 1e-12, "{mean} {one:?}");
        assert_eq!(one.record.configuration().runs.len(), 4);
    }

    #[test]
    fn releases_are_in_the_order_of_their_numbers() {
        for (earlier, later) in [
            ("26.04", "26.04.01"),
            ("26.04.01", "26.06"),
            ("25.11", "26.02.01"),
            ("2023", "24.07-first-snapshot"),
            ("MLPerf v5.0", "MLPerf v5.1"),
        ] {
            assert!(version(earlier) < version(later), "{earlier} {later}");
        }
        assert_eq!(version("26.08 (2026-08-18)"), version("26.08"));
    }

    #[test]
    fn the_embedded_anchors_follow_from_the_embedded_constants() {
        let calibrator = Calibrator::new(crate::measurements::embedded());
        let anchors = calibrator.anchors(Constants::embedded(), &HeldOutErrors::embedded());
        assert!(anchors_file(&anchors) == include_str!("../../data/anchors.csv"));
        assert!(anchor_runs_file(&anchors) == include_str!("../../data/anchor_runs.csv"));
    }
}
