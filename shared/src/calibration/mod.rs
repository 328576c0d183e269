//! Calibration: fitting the constants of the estimate to measurements, and judging it by rows that it has not seen.
//!
//! The order of work is [`Calibrator::fit`], [`Calibrator::folds`] with [`Fold::judge`] (folds know nothing of each
//! other, so that a caller may judge them side by side), and [`Calibrator::finish`], which gives the files.

pub mod cluster;
pub mod fit;
mod held_out;
mod report;
mod split;
mod summary;
pub mod validate;

pub use crate::statistics::quantile;
pub use held_out::{Fold, HeldOut};
pub use split::{By, Split};
pub use summary::Summary;

use crate::estimate::{Anchors, BasisKind, Class, Constant, Constants, Kinship, fits};
use crate::measurements::Measurement;
use fit::Point;

/// Fits and judges.
pub struct Calibrator<'a> {
    all: Vec<Constant>,
    points: Vec<Point<'a>>,
    split: Split,
}

/// What a calibration is made of: the data files and the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Files {
    /// `calibration.csv`: the constants.
    pub constants: String,
    /// `anchors.csv`: what the model misses of published runs.
    pub anchors: String,
    /// `intervals.csv`: how far off held-out predictions were.
    pub intervals: String,
    /// `accuracy.md`.
    pub report: String,
    /// `accuracy.svg`: predicted against measured.
    pub scatter: String,
}

impl<'a> Calibrator<'a> {
    /// For the rows that are good for fitting: whole pre-training runs that were timed.
    pub fn new(rows: &'a [Measurement]) -> Calibrator<'a> {
        let good = rows.iter().filter(|row| matches!(&*row.usage, "fit" | "small" | ""));
        Calibrator { all: Constant::all(), points: fit::points(good), split: Split::embedded() }
    }

    /// Rows that are fitted.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The constants that fit all rows best, from the priors on, to seven digits.
    pub fn fit(&self) -> Vec<f64> {
        let priors: Vec<f64> = self.all.iter().map(|constant| constant.prior).collect();
        let values = fit::fit(&self.all, &priors, &self.points, fit::ROUNDS);
        values.into_iter().map(|value| seven(value).parse().unwrap_or(value)).collect()
    }

    /// Values by the names of their constants.
    pub fn named(&self, values: &[f64]) -> impl Iterator<Item = (&str, f64)> {
        self.all.iter().map(|constant| &*constant.name).zip(values.iter().copied())
    }

    /// The folds to judge.
    pub fn folds(&self, by: By) -> Vec<Fold<'a>> {
        held_out::folds(&self.points, &self.split, by)
    }

    /// Judges a fold, from the values of the whole fit on.
    pub fn judge(&self, fold: &Fold<'a>, values: &[f64]) -> Vec<HeldOut<'a>> {
        fold.judge(&self.all, values)
    }

    /// The files of a calibration with these values, whose folds were judged in the order of [`By::ALL`]; `rows` are all
    /// rows, for those that are not fitted but listed.
    pub fn finish(&self, values: &[f64], judged: &[Vec<HeldOut<'a>>; 3], rows: &[Measurement]) -> Files {
        let constants = Constants::from_values(&self.all, values);
        // Tiny models on one node are half of all rows and near nobody's plan: programs need not carry them.
        let planned: Vec<Point<'_>> =
            self.points.iter().filter(|point| point.row.usage != "small").copied().collect();
        let mut known = held_out::known(&planned, &constants);
        for known in &mut known {
            known.missed = seven(known.missed).parse().unwrap_or(known.missed);
        }
        let anchors = Anchors::new(Kinship::embedded(), merged(known));
        let spreads = spreads(judged);
        Files {
            constants: constants_file(&self.all, values),
            anchors: anchors_file(&anchors),
            intervals: intervals_file(&spreads),
            report: report::markdown(judged, &spreads, rows),
            scatter: report::scatter(judged),
        }
    }
}

/// Repeated measurements of one run become one: the mean of what the model misses of them.
fn merged(known: Vec<crate::estimate::Known>) -> Vec<crate::estimate::Known> {
    let mut merged: Vec<(crate::estimate::Known, f64)> = Vec::new();
    for one in known {
        match merged.iter_mut().find(|(other, _)| other.features == one.features) {
            Some((other, count)) => {
                other.missed = (other.missed * *count + one.missed) / (*count + 1.0);
                *count += 1.0;
            }
            None => merged.push((one, 1.0)),
        }
    }
    merged.into_iter().map(|(known, _)| known).collect()
}

/// The share of measurements that an interval is to cover.
const COVERAGE: f64 = 0.8;
/// How tails are cut, from a tenth on.
const TAIL_STEP: f64 = 0.0025;
const TAIL_STEPS: u32 = 37;

/// How far off the predictions of a class were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassSpread {
    /// The class.
    pub class: Class,
    /// Held-out rows.
    pub n: usize,
    /// The lower end of measured over predicted.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Share of rows that lie in the interval which the other folds' rows would give.
    pub coverage: f64,
}

/// The spread of each class. Where a shape was measured on such GPUs, held-out mappings tell; where not, held-out models.
/// Tiny models on one node, which are half of all rows and no one's plan, tell nothing.
pub fn spreads(judged: &[Vec<HeldOut<'_>>; 3]) -> Vec<ClassSpread> {
    let [by_model, _, by_mapping] = judged;
    let split = Split::embedded();
    let counts = |row: &Measurement| row.usage != "small";
    Class::ALL
        .into_iter()
        .filter_map(|class| {
            let interpolated = matches!(class, Class::DenseInterpolated | Class::RoutedInterpolated);
            let routed = matches!(class, Class::RoutedInterpolated | Class::RoutedExtrapolated);
            let (rows, by) = if interpolated { (by_mapping, By::Mapping) } else { (by_model, By::Model) };
            let ratios: Vec<(String, f64)> = rows
                .iter()
                .filter(|one| counts(one.row) && (one.kind != BasisKind::Modelled) == interpolated)
                .filter(|one| is_routed(one.row) == routed)
                .map(|one| (split.fold(one.row, by), one.step_time_s / one.anchored_s))
                .collect();
            let ends = |without: Option<&str>, tail: f64| {
                let mut values: Vec<f64> = ratios
                    .iter()
                    .filter(|(fold, _)| Some(&**fold) != without)
                    .map(|(_, ratio)| *ratio)
                    .collect();
                values.sort_by(f64::total_cmp);
                (quantile(&values, tail), quantile(&values, 1.0 - tail))
            };
            let covered = |tail: f64| {
                let inside = ratios.iter().filter(|(fold, ratio)| {
                    let (low, high) = ends(Some(fold), tail);
                    (low..=high).contains(ratio)
                });
                inside.count() as f64 / ratios.len() as f64
            };
            // Rows of one fold err alike, so that the tenths of the others cover less than four of five of them: tails
            // are cut until they do.
            let mut tails = (0..TAIL_STEPS).map(|step| 0.1 - f64::from(step) * TAIL_STEP);
            let tail = tails.clone().find(|tail| covered(*tail) >= COVERAGE).or(tails.next_back())?;
            let (low, high) = ends(None, tail);
            let n = ratios.len();
            (n > 0).then(|| ClassSpread { class, n, low, high, coverage: covered(tail) })
        })
        .collect()
}

/// Whether a row's model routes tokens to experts.
pub(crate) fn is_routed(row: &Measurement) -> bool {
    row.subject.as_ref().is_ok_and(|subject| subject.architecture.moe.is_some())
}

/// Rows that were timed, and so ran, by whether the memory model says that they fit.
pub fn fitting(rows: &[Measurement]) -> (usize, usize) {
    let ran = rows.iter().filter(|row| row.step_time_s.is_some() && row.usage != "exclude");
    let said: Vec<bool> =
        ran.filter_map(|row| row.subject.as_ref().ok()).map(|subject| fits(&subject.inputs())).collect();
    let fit = said.iter().filter(|fits| **fits).count();
    (fit, said.len() - fit)
}

/// A number to seven digits, as the data files keep it.
pub(crate) fn seven(value: f64) -> String {
    format!("{value:.6e}")
}

fn constants_file(all: &[Constant], values: &[f64]) -> String {
    let mut text = String::from(
        "# Constants of the step time. `prior` and `spread` (the standard deviation of the logarithm) were believed before any\n\
         # run was looked at; `value` is fitted to measurements.csv by `trainplan calibrate`, which rewrites this file.\n",
    );
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
    let mut text = String::from(
        "# Published runs that correct the model: `missed` is the logarithm of measured over modelled, `pull` what a run counts.\n\
         # `shape` and `gpu` are hashes of what must be alike. Written by `trainplan calibrate`.\n",
    );
    let rows = anchors.iter().map(|(known, pull)| {
        let [shape, gpu, dtype, stack, place] = known.features.cells();
        [known.what.clone(), shape, gpu, dtype, stack, place, seven(known.missed), seven(pull)]
    });
    text += &table(["what", "shape", "gpu", "dtype", "stack", "place", "missed", "pull"], rows);
    text
}

fn intervals_file(spreads: &[ClassSpread]) -> String {
    let mut text = String::from(
        "# Where four of five measurements lay around held-out predictions, as measured over predicted, by class. `coverage`: share of\n\
         # rows inside the interval that the other folds give. Written by `trainplan calibrate`.\n",
    );
    let rows = spreads.iter().map(|spread| {
        [
            spread.class.id().to_string(),
            spread.n.to_string(),
            seven(spread.low),
            seven(spread.high),
            format!("{:.3}", spread.coverage),
        ]
    });
    text += &table(["class", "n", "low", "high", "coverage"], rows);
    text
}

/// A table as a data file holds it.
fn table<const N: usize>(header: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory can't fail, and what is written is text.
    let _ = writer.write_record(header);
    for row in rows {
        let _ = writer.write_record(row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}
