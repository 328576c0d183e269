//! Calibration: fits the constants of the estimate to measurements, and computes its errors on held-out rows.
//!
//! Call [`Calibrator::fit`], then [`Fold::judge`] for each of [`Calibrator::folds`] (folds are independent,
//! so a caller can judge them in parallel), then [`Calibrator::finish`] for the files.

pub mod cluster;
pub mod fit;
mod held_out;
mod own_runs;
mod regret;
mod report;
mod split;
mod summary;
pub mod validate;

pub use crate::statistics::quantile;
pub(crate) use held_out::thousandth;
pub use held_out::{Fold, HeldOutError, HeldOutErrors, HeldOutRow};
pub use regret::Regret;
pub use split::{FrozenSplit, Grouping};
pub use summary::ErrorSummary;

use crate::catalog::Catalog;
use crate::estimate::{
    Anchors, Constant, Constants, Covariance, Distance, EvidenceKind, IntervalClass, MeasuredConfiguration,
    MeasuredRun, MemoryEstimate, MemoryVerdict, Record, Residual, distant_share,
};
use crate::measurements::{Measurement, MeasurementUse, Outcome};
use crate::units::significant;
use fit::FitPoint;
use std::collections::{BTreeMap, BTreeSet};

/// Fits the constants to rows, and judges the result.
pub struct Calibrator<'a> {
    all: Vec<Constant>,
    points: Vec<FitPoint<'a>>,
    split: FrozenSplit,
}

/// The files that a calibration writes: data files and the report.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationFiles {
    /// `calibration.csv`: the fitted constants.
    pub constants: String,
    /// `anchors.csv`: the model's error on published runs.
    pub anchors: String,
    /// `anchor_runs.csv`.
    pub anchor_runs: String,
    /// `intervals.csv`: the intervals of held-out predictions.
    pub intervals: String,
    /// `measured_extent.csv`: what was measured of each software on each GPU type.
    pub extent: String,
    /// `held_out.csv`: the error of the prediction of each held-out run.
    pub held_out: String,
    /// `regret.csv`: what trusting a search costs.
    pub regret: String,
    /// `accuracy.md`: the report.
    pub report: String,
    /// `accuracy.svg`: predicted versus measured step times.
    pub scatter: String,
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

/// Share of measurements that an interval should cover.
const COVERAGE: f64 = 0.8;
/// Step by which the tails are narrowed, starting at a tenth.
const TAIL_STEP: f64 = 0.0025;
/// Steps that are tried.
const TAIL_STEPS: u32 = 37;

/// The interval of one class of predictions, from held-out rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedInterval {
    /// The class of predictions.
    pub class: IntervalClass,
    /// Number of held-out rows.
    pub n: usize,
    /// Lower end of measured over predicted.
    pub low: f64,
    /// Upper end of measured over predicted.
    pub high: f64,
    /// How many times the doubt about its correction ([`Evidence::doubt`](crate::estimate::Evidence::doubt)) widens the interval.
    pub per_doubt: f64,
    /// How the interval grows with the distance to the nearest run: the exponent of
    /// [`distant_share`](crate::estimate::distant_share); 0 of classes that are not interpolated.
    pub growth: f64,
    /// Share of rows within an interval computed from the rows of all other folds.
    pub coverage: f64,
}

/// The rows of each distance, in the order of [`Distance::ALL`], with the names of their folds.
pub type DistantRows<'a> = [Vec<(String, Vec<HeldOutRow<'a>>)>; Distance::ALL.len()];

/// Returns the interval of each class: of interpolated predictions from held-out mappings, of extrapolated
/// ones from held-out models, and of distant ones from the rows of their distance. Tiny models on one node are left out.
pub fn intervals(judged: &[Vec<HeldOutRow<'_>>; 3], distant: &DistantRows<'_>) -> Vec<FittedInterval> {
    let [by_model, _, by_mapping] = judged;
    let split = FrozenSplit::embedded();
    let per_doubt = per_doubt(by_mapping);
    let class_interval = |class: IntervalClass, extrapolated: Option<(&FittedInterval, f64)>| {
        let (rows, by) = match class.is_interpolated() {
            true => (by_mapping, Grouping::Mapping),
            false => (by_model, Grouping::Model),
        };
        let ratios: Vec<(String, f64)> = rows
            .iter()
            .filter(|one| class_of(one) == Some(class))
            .map(|one| (split.fold(one.row, by), unexplained(one, per_doubt, extrapolated)))
            .collect();
        // Errors within a fold are correlated, so the 10 % and 90 % quantiles of the other folds cover
        // less than 80 % of it. The tails are narrowed until they cover enough.
        let tails = (0..TAIL_STEPS).map(|step| (0.1 - f64::from(step) * TAIL_STEP, 1.0));
        let growth = extrapolated.map_or(0.0, |(_, growth)| growth);
        fitted(class, &ratios, tails).map(|interval| FittedInterval { per_doubt, growth, ..interval })
    };
    let pairs = [
        (IntervalClass::DenseInterpolated, IntervalClass::DenseExtrapolated),
        (IntervalClass::RoutedInterpolated, IntervalClass::RoutedExtrapolated),
        (IntervalClass::PlainInterpolated, IntervalClass::PlainExtrapolated),
    ];
    let wide: Vec<(IntervalClass, Option<FittedInterval>)> = pairs
        .into_iter()
        .map(|(interpolated, extrapolated)| (interpolated, class_interval(extrapolated, None)))
        .collect();
    let growth = growth(by_mapping, per_doubt, &wide);
    let near = wide.iter().flat_map(|(interpolated, extrapolated)| {
        [class_interval(*interpolated, extrapolated.as_ref().map(|wide| (wide, growth))), *extrapolated]
    });
    let mut near: Vec<FittedInterval> = near.flatten().collect();
    not_narrower_than_dense(&mut near);
    let far = Distance::ALL.into_iter().zip(distant).flat_map(|(distance, folds)| {
        [false, true].into_iter().filter_map(move |routed| {
            let ratios: Vec<(String, f64)> = folds
                .iter()
                .flat_map(|(fold, rows)| rows.iter().map(move |one| (fold, one)))
                .filter(|(_, one)| is_routed(one.row) == routed)
                .map(|(fold, one)| (fold.clone(), one.step_time_s / one.corrected_s))
                .collect();
            fitted(distance.class(routed), &ratios, stretches())
        })
    });
    near.into_iter().chain(far).chain(rare_interval(by_model, &split)).collect()
}

/// Returns the widths that are tried where few folds tell of errors, and the next may be unlike all of them. So their quantiles are
/// stretched, not replaced by their extremes.
fn stretches() -> impl DoubleEndedIterator<Item = (f64, f64)> + Clone {
    (0..STRETCHES).map(|step| (0.1, 1.0 + f64::from(step) * STRETCH_STEP))
}

/// Returns the interval of mixtures of experts with parallelism that is rarely measured, from the rows held out by model. They are so
/// few that it is chance on which side of the predictions most lie, so each counts on both.
fn rare_interval(by_model: &[HeldOutRow<'_>], split: &FrozenSplit) -> Option<FittedInterval> {
    let rows = by_model.iter().filter(|one| one.is_rare && class_of(one).is_some());
    let ratios: Vec<(String, f64)> = rows
        .flat_map(|one| {
            let fold = split.fold(one.row, Grouping::Model);
            let ratio = one.step_time_s / one.corrected_s;
            [(fold.clone(), ratio), (fold, 1.0 / ratio)]
        })
        .collect();
    let interval = fitted(IntervalClass::RoutedRare, &ratios, stretches())?;
    Some(FittedInterval { n: ratios.len() / 2, ..interval })
}

/// Widens the intervals of mixtures of experts to those of dense models: they are harder to predict. That the few interpolated ones
/// scatter less is chance.
fn not_narrower_than_dense(near: &mut [FittedInterval]) {
    let pairs = [
        (IntervalClass::RoutedInterpolated, IntervalClass::DenseInterpolated),
        (IntervalClass::RoutedExtrapolated, IntervalClass::DenseExtrapolated),
    ];
    for (routed, dense) in pairs {
        let ends = near.iter().find(|interval| interval.class == dense).map(|dense| (dense.low, dense.high));
        let routed = near.iter_mut().find(|interval| interval.class == routed);
        if let Some((routed, (low, high))) = routed.zip(ends) {
            (routed.low, routed.high) = (routed.low.min(low), routed.high.max(high));
        }
    }
}

/// Returns the class of a held-out row, if nothing but its model and layout is unmeasured; none of tiny models.
fn class_of(one: &HeldOutRow<'_>) -> Option<IntervalClass> {
    let scenario = one.row.scenario.as_ref().ok().filter(|_| !one.row.is_tiny())?;
    Some(IntervalClass::of(&scenario.inputs(), one.kind != EvidenceKind::Modelled))
}

/// Returns the ratio of measured to predicted step time, as far as the doubt about the correction does not explain it.
fn without_doubt(one: &HeldOutRow<'_>, per_doubt: f64) -> f64 {
    let error = libm::log(one.step_time_s / one.corrected_s);
    let explained = per_doubt * one.doubt;
    libm::exp(libm::copysign(((error * error - explained * explained).max(0.0)).sqrt(), error))
}

/// Returns the ratio of measured to predicted step time, as far as neither the doubt about the correction nor the distance of an
/// interpolated prediction to its nearest run explains it, by the interval of the extrapolated ones.
fn unexplained(one: &HeldOutRow<'_>, per_doubt: f64, extrapolated: Option<(&FittedInterval, f64)>) -> f64 {
    let ratio = without_doubt(one, per_doubt);
    let Some((FittedInterval { low, high, .. }, growth)) = extrapolated else { return ratio };
    let error = libm::log(ratio);
    let end = libm::log(if error < 0.0 { 1.0 / low } else { *high });
    // The rest of the interval is that of measured layouts, and none of it is left for the most distant ones.
    let share = distant_share(one.unlike, growth).min(MOST_DISTANT);
    let rest = (error * error - end * end * share).max(0.0) / (1.0 - share);
    libm::exp(libm::copysign(rest.sqrt(), error))
}

/// A share below 1, so that the rest of an error can be divided by what is left.
const MOST_DISTANT: f64 = 0.95;

/// Steps by which it is tried how late intervals grow with the distance to the nearest run.
const GROWTH_STEP: f64 = 0.25;
const GROWTH_STEPS: u32 = 24;

/// Returns how intervals grow with the distance to the nearest run: as late as they still contain as many of the third of the
/// held-out predictions with the least similar runs as of all. `wide` has the extrapolated interval beside each interpolated class.
fn growth(
    by_mapping: &[HeldOutRow<'_>],
    per_doubt: f64,
    wide: &[(IntervalClass, Option<FittedInterval>)],
) -> f64 {
    let mut rows: Vec<(IntervalClass, &HeldOutRow<'_>)> = by_mapping
        .iter()
        .filter_map(|one| Some((class_of(one).filter(|class| class.is_interpolated())?, one)))
        .collect();
    rows.sort_by(|(_, one), (_, other)| other.unlike.total_cmp(&one.unlike));
    let unlike = &rows[..rows.len() / 3];
    let covers = |growth: f64| {
        let inside = wide.iter().map(|(class, wide)| {
            let ratio =
                |one: &HeldOutRow<'_>| unexplained(one, per_doubt, wide.as_ref().map(|wide| (wide, growth)));
            let of_class = |rows: &[(IntervalClass, &HeldOutRow<'_>)]| -> Vec<f64> {
                rows.iter().filter(|(own, _)| own == class).map(|(_, one)| ratio(one)).collect()
            };
            let mut all = of_class(&rows);
            all.sort_by(f64::total_cmp);
            let range = quantile(&all, 0.1)..=quantile(&all, 0.9);
            of_class(unlike).into_iter().filter(|ratio| range.contains(ratio)).count()
        });
        inside.sum::<usize>() as f64 >= COVERAGE * unlike.len() as f64
    };
    let mut tried = (1..=GROWTH_STEPS).rev().map(|step| f64::from(step) * GROWTH_STEP);
    tried.clone().find(|growth| covers(*growth)).or(tried.next_back()).unwrap_or(1.0)
}

/// Step by which it is tried how much an interval widens with the doubt about a correction, and the steps.
const DOUBT_STEP: f64 = 0.05;
const DOUBT_STEPS: u32 = 80;

/// Returns how much intervals widen with the doubt about a correction: so much that they contain as many of the third of the
/// held-out predictions with the most doubtful corrections as of all.
fn per_doubt(by_mapping: &[HeldOutRow<'_>]) -> f64 {
    let mut rows: Vec<(IntervalClass, &HeldOutRow<'_>)> = by_mapping
        .iter()
        .filter_map(|one| Some((class_of(one).filter(|class| class.is_interpolated())?, one)))
        .collect();
    rows.sort_by(|(_, one), (_, other)| other.doubt.total_cmp(&one.doubt));
    let doubtful = &rows[..rows.len() / 3];
    let covers = |per_doubt: f64| {
        let ends: Vec<(IntervalClass, f64, f64)> = IntervalClass::ALL
            .into_iter()
            .filter(|class| class.is_interpolated())
            .map(|class| {
                let of = rows.iter().filter(|(own, _)| *own == class);
                let mut ratios: Vec<f64> = of.map(|(_, one)| without_doubt(one, per_doubt)).collect();
                ratios.sort_by(f64::total_cmp);
                (class, quantile(&ratios, 0.1), quantile(&ratios, 0.9))
            })
            .collect();
        let inside = doubtful.iter().filter(|(class, one)| {
            let ratio = without_doubt(one, per_doubt);
            ends.iter().any(|(own, low, high)| own == class && (*low..=*high).contains(&ratio))
        });
        inside.count() as f64 >= COVERAGE * doubtful.len() as f64
    };
    let mut tried = (0..DOUBT_STEPS).map(|step| f64::from(step) * DOUBT_STEP);
    tried.clone().find(|per_doubt| covers(*per_doubt)).or(tried.next_back()).unwrap_or_default()
}

/// Step by which the logarithms of quantiles are stretched.
const STRETCH_STEP: f64 = 0.01;
/// Steps that are tried.
const STRETCHES: u32 = 401;

/// Returns the interval of a class from the ratios of measured to predicted step time, each with its fold: the first of
/// `widths`, a tail and a stretch, that covers enough; none without rows.
fn fitted(
    class: IntervalClass,
    ratios: &[(String, f64)],
    mut widths: impl DoubleEndedIterator<Item = (f64, f64)> + Clone,
) -> Option<FittedInterval> {
    let folds: BTreeSet<&str> = ratios.iter().map(|(fold, _)| &**fold).collect();
    let sorted = |without: Option<&str>| {
        let others = ratios.iter().filter(|(fold, _)| Some(&**fold) != without);
        let mut values: Vec<f64> = others.map(|(_, ratio)| *ratio).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    // Of sorted ratios: their quantiles, with logarithms stretched from that of the median.
    let ends = |values: &[f64], (tail, stretch): (f64, f64)| {
        let (median, low) = (quantile(values, 0.5), quantile(values, tail));
        let high = quantile(values, 1.0 - tail);
        let more = |end: f64| libm::pow(end / median, stretch - 1.0);
        (low * more(low), high * more(high))
    };
    let others: Vec<(&str, Vec<f64>)> = folds.into_iter().map(|fold| (fold, sorted(Some(fold)))).collect();
    let covered = |width: (f64, f64)| {
        let inside = others.iter().map(|(fold, others)| {
            let (low, high) = ends(others, width);
            let own = ratios.iter().filter(|(own, _)| own == fold);
            own.filter(|(_, ratio)| (low..=high).contains(ratio)).count()
        });
        inside.sum::<usize>() as f64 / ratios.len() as f64
    };
    let width = widths.clone().find(|width| covered(*width) >= COVERAGE).or(widths.next_back())?;
    let (low, high) = ends(&sorted(None), width);
    let n = ratios.len();
    (n > 0).then(|| FittedInterval {
        class,
        n,
        low,
        high,
        per_doubt: 0.0,
        growth: 0.0,
        coverage: covered(width),
    })
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

/// Counts the runs of each collection that worked, for which a step time is the proof, or ran out of memory.
pub fn fitting(rows: &[Measurement]) -> BTreeMap<&str, FitCounts> {
    let mut counts: BTreeMap<&str, FitCounts> = BTreeMap::new();
    // Of each layout: the runs that ran out of memory, by verdict.
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

/// Formats the logarithm of a ratio with five digits.
fn five(value: f64) -> String {
    format!("{value:.4e}")
}

/// Formats a weight with two decimals, which moves a prediction by less than 0.1 %: anchors.csv is part of every program that
/// predicts, so its size counts.
fn hundredth(value: f64) -> String {
    format!("{value:.2}")
}

/// Formats a number with seven digits, as in the data files.
pub(crate) fn seven(value: f64) -> String {
    let text = format!("{value:.6e}");
    text.strip_suffix("e0").unwrap_or(&text).to_string()
}

const CONSTANTS_HEAD: &str = "\
# Constants of the step time. `prior` and `spread` (the standard deviation of the logarithm) were set before any run was
# examined. `value` is fitted to measurements.csv by `trainplan calibrate`, which rewrites this file.
";

const ANCHORS_HEAD: &str = "\
# Published runs that correct the model. `shape` and `gpu` are hashes of the architecture and of the GPU type. `place`: GPUs,
# TP, PP, CP, EP, expert TP, virtual pipeline, micro batch, gradient accumulation, sequence length, layers, recomputation (0 to
# 2), FSDP. `settings` is a hash of what else differs from the software's defaults. `pull` is the run's weight. `surprise`: by
# how many percent its prediction without its mapping was off, as a logarithm. Written by `trainplan calibrate`.
";

const ANCHOR_RUNS_HEAD: &str = "\
# The rows of anchors.csv in words. `releases` are those that measured the run. The other columns have a value for each of them,
# or `?`: seconds per step, tokens per second and GPU, the error of the prediction without the run's mapping, and where the run
# was published. Written by `trainplan calibrate`.
";

const HELD_OUT_HEAD: &str = "\
# The error of the prediction of each measured run: predicted over measured step time, minus 1. `mapping`: corrected by
# measured runs, none of them of the same mapping. `model`: by the physical model, fitted without any run of the model. As in
# docs/accuracy.md. Written by `trainplan calibrate`.
";

const INTERVALS_HEAD: &str = "\
# The interval of the ratio of measured to predicted step time that contains 80 % of the held-out rows of a class, if nothing is
# doubtful about their corrections. Otherwise the square of `per_doubt` times the doubt is added to those of the ends' logarithms.
# The larger `growth`, the later the interval of an interpolated prediction grows to that of an extrapolated one on the way from a
# measured layout to one that is hardly similar.
# `coverage` is the share of rows inside an interval computed from the other folds. Written by `trainplan calibrate`.
";

const EXTENT_HEAD: &str = "\
# What was measured of each software on each GPU type: the most GPUs of a run of a dense model and of a mixture of experts, 0
# without runs. Intervals are wider beyond it. Written by `trainplan calibrate`.
";

fn constants_file(all: &[Constant], values: &[f64]) -> String {
    let mut text = String::from(CONSTANTS_HEAD);
    let rows = all.iter().zip(values).map(|(constant, value)| {
        [
            constant.name.clone(),
            seven(*value),
            constant.prior.to_string(),
            constant.spread.to_string(),
            constant.unit.clone(),
            constant.source.clone(),
        ]
    });
    text += &table(["name", "value", "prior", "spread", "unit", "source"], rows);
    text
}

fn anchors_file(anchors: &Anchors) -> String {
    let mut text = String::from(ANCHORS_HEAD);
    let rows = anchors.runs().iter().map(|run| {
        let [shape, gpu, dtype, stack, place, settings] = run.features.cells();
        let surprise = match format!("{:.0}", run.surprise * 100.0) {
            none if none == "0" => String::new(),
            some => some,
        };
        [shape, gpu, dtype, stack, place, settings, hundredth(run.weight), surprise]
    });
    text += &table(["shape", "gpu", "dtype", "stack", "place", "settings", "pull", "surprise"], rows);
    text
}

fn anchor_runs_file(anchors: &Anchors) -> String {
    let mut text = String::from(ANCHOR_RUNS_HEAD);
    let rows = anchors.runs().iter().map(|run| {
        let MeasuredConfiguration { what, runs } = run.record.configuration();
        let releases: Vec<&str> = runs.iter().map(|run| &*run.release).collect();
        let values = |write: fn(&MeasuredRun) -> String| runs.iter().map(write).collect::<Vec<_>>().join(" ");
        [
            what.clone(),
            releases.join("; "),
            values(|run| significant(run.step_time_s, 5)),
            values(|run| significant(run.tokens_per_s_per_gpu, 5)),
            values(|run| run.held_out_error.map_or_else(|| "?".to_string(), thousandth)),
            values(|run| run.url.clone().unwrap_or_else(|| "?".to_string())),
        ]
    });
    text += &table(["what", "releases", "step_time_s", "tokens", "held_out", "urls"], rows);
    text
}

fn intervals_file(intervals: &[FittedInterval]) -> String {
    let mut text = String::from(INTERVALS_HEAD);
    let rows = intervals.iter().map(|interval| {
        [
            interval.class.title().to_string(),
            interval.n.to_string(),
            seven(interval.low),
            seven(interval.high),
            interval.per_doubt.to_string(),
            interval.growth.to_string(),
            format!("{:.3}", interval.coverage),
        ]
    });
    text += &table(["class", "n", "low", "high", "per_doubt", "growth", "coverage"], rows);
    text
}

/// Returns `measured_extent.csv`: of each GPU type and software, the most GPUs of a measured run.
fn extent_file(points: &[FitPoint<'_>]) -> String {
    let mut extents: BTreeMap<(&str, &str), [u32; 2]> = BTreeMap::new();
    for point in points {
        let Ok(scenario) = &point.row.scenario else { continue };
        let Some(stack) = scenario.options.software.known() else { continue };
        let most = &mut extents.entry((&scenario.gpu.id, stack.id())).or_default()
            [usize::from(is_routed(point.row))];
        *most = scenario.layout.gpus().max(*most);
    }
    let rows = extents.into_iter().map(|((gpu, stack), [dense, routed])| {
        [gpu.to_string(), stack.to_string(), dense.to_string(), routed.to_string()]
    });
    String::from(EXTENT_HEAD) + &table(["gpu", "stack", "dense_gpus", "routed_gpus"], rows)
}

fn held_out_file(errors: &HeldOutErrors) -> String {
    let mut text = String::from(HELD_OUT_HEAD);
    let rows =
        errors.iter().map(|(id, error)| [id.to_string(), thousandth(error.mapping), thousandth(error.model)]);
    text += &table(["id", "mapping", "model"], rows);
    text
}

/// Formats a table as CSV.
pub(crate) fn table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing text to memory can't fail.
    let _ = writer.write_record(header);
    for row in rows {
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{Coordinate, Features};

    #[test]
    fn the_embedded_files_begin_with_the_comments_that_calibrate_writes() {
        assert!(include_str!("../../data/calibration.csv").starts_with(CONSTANTS_HEAD));
        assert!(include_str!("../../data/anchors.csv").starts_with(ANCHORS_HEAD));
        assert!(include_str!("../../data/intervals.csv").starts_with(INTERVALS_HEAD));
        assert!(include_str!("../../data/held_out.csv").starts_with(HELD_OUT_HEAD));
    }

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
    fn held_out_errors_read_back_as_written() {
        let embedded = HeldOutErrors::embedded();
        let file = include_str!("../../data/held_out.csv");
        assert!(held_out_file(&embedded) == file);
        let first = file.lines().find_map(|line| line.strip_prefix("r0001,")).unwrap();
        let (mapping, model) = first.split_once(',').unwrap();
        let error = embedded.get("r0001").unwrap();
        assert_eq!([thousandth(error.mapping), thousandth(error.model)], [mapping, model]);
        // No prediction is judged on rows that are not fitted.
        assert_eq!(embedded.get("r0002"), None);
    }

    #[test]
    fn the_embedded_anchors_follow_from_the_embedded_constants() {
        let calibrator = Calibrator::new(crate::measurements::embedded());
        let anchors = calibrator.anchors(Constants::embedded(), &HeldOutErrors::embedded());
        assert!(anchors_file(&anchors) == include_str!("../../data/anchors.csv"));
        assert!(anchor_runs_file(&anchors) == include_str!("../../data/anchor_runs.csv"));
    }
}
