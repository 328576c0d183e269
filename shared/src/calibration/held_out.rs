//! Predictions of rows that the constants and anchors have not seen.

use super::fit::{self, FitPoint};
use super::split::{FrozenSplit, Grouping};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::estimate::{
    Anchors, Constant, Constants, Covariance, Distance, EvidenceKind, FAR, Features, MeasuredConfiguration,
    MeasuredRun, Record, Residual,
};
use crate::measurements::{MeasuredScenario, Measurement};
use crate::stack::Stack;
use std::collections::{BTreeMap, BTreeSet};

/// A row with its prediction by a fit that has not seen it.
#[derive(Debug, Clone)]
pub struct HeldOutRow<'a> {
    /// The row.
    pub row: &'a Measurement,
    /// Measured step time, s.
    pub step_time_s: f64,
    /// Step time by the physical model, s.
    pub modelled_s: f64,
    /// Step time by the physical model, corrected by other rows, s.
    pub corrected_s: f64,
    /// How close those rows are.
    pub kind: EvidenceKind,
    /// How much of the correction may not apply: see [`Evidence::doubt`](crate::estimate::Evidence::doubt).
    pub doubt: f64,
    /// See [`Evidence::unlike`](crate::estimate::Evidence::unlike).
    pub unlike: f64,
    /// See [`Evidence::is_rare`](crate::estimate::Evidence::is_rare).
    pub is_rare: bool,
}

/// The error of a row's prediction by fits that have not seen it: predicted over measured step time, minus 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HeldOutError {
    /// Corrected by measured runs, none of them of the row's mapping.
    pub mapping: f64,
    /// By the physical model, fitted without any run of the row's model.
    pub model: f64,
}

/// The held-out errors by the id of the row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeldOutErrors(BTreeMap<String, HeldOutError>);

/// A row of `held_out.csv`.
struct ErrorRow(String, HeldOutError);

impl FromRow for ErrorRow {
    fn from_row(row: &Row<'_>) -> Result<ErrorRow, DataError> {
        let error = HeldOutError { mapping: row.number("mapping")?, model: row.number("model")? };
        Ok(ErrorRow(row.string("id")?, error))
    }
}

impl HeldOutErrors {
    /// Returns the errors of the embedded measurements (`held_out.csv`).
    pub fn embedded() -> HeldOutErrors {
        let rows: Vec<ErrorRow> = embedded!("held_out.csv");
        HeldOutErrors(rows.into_iter().map(|ErrorRow(id, error)| (id, error)).collect())
    }

    /// Returns the errors of judged rows, which are in the order of [`Grouping::ALL`], rounded to a thousandth.
    pub fn of(judged: &[Vec<HeldOutRow<'_>>; 3]) -> HeldOutErrors {
        let [by_model, _, by_mapping] = judged;
        let rounded = |predicted: f64, measured: f64| {
            thousandth(predicted / measured - 1.0).parse().unwrap_or(f64::NAN)
        };
        let models: BTreeMap<&str, f64> =
            by_model.iter().map(|one| (&*one.row.id, rounded(one.modelled_s, one.step_time_s))).collect();
        let errors = by_mapping.iter().map(|one| {
            let model = models.get(&*one.row.id).copied().unwrap_or(f64::NAN);
            let mapping = rounded(one.corrected_s, one.step_time_s);
            (one.row.id.clone(), HeldOutError { mapping, model })
        });
        HeldOutErrors(errors.collect())
    }

    /// Returns the errors of the row with an id.
    pub fn get(&self, id: &str) -> Option<HeldOutError> {
        self.0.get(id).copied()
    }

    /// Returns how far the prediction of the row with an id is off without its mapping, as a logarithm without its sign; 0 if that is
    /// not known.
    pub(super) fn surprise(&self, id: &str) -> f64 {
        self.get(id).map_or(0.0, |error| libm::log(1.0 + error.mapping).abs())
    }

    /// Iterates over the errors by id.
    pub fn iter(&self) -> impl Iterator<Item = (&str, HeldOutError)> {
        self.0.iter().map(|(id, error)| (&**id, *error))
    }
}

/// Formats an error as in the data files.
pub(crate) fn thousandth(error: f64) -> String {
    format!("{error:.3}")
}

/// Rows that are held out together, and all other rows.
pub struct Fold<'a> {
    /// Name of the fold.
    pub name: String,
    train: Vec<FitPoint<'a>>,
    test: Vec<FitPoint<'a>>,
    /// A GPU type of whose speed nothing is known.
    unknown_gpu: Option<&'a str>,
}

/// Returns the folds of `points`, sorted by name.
pub(super) fn folds<'a>(points: &[FitPoint<'a>], split: &FrozenSplit, by: Grouping) -> Vec<Fold<'a>> {
    let names: Vec<String> = points.iter().map(|point| split.fold(point.row, by)).collect();
    let mut distinct = names.clone();
    distinct.sort();
    distinct.dedup();
    distinct
        .into_iter()
        .map(|name| {
            let of = |inside: bool| {
                let pairs = points.iter().zip(&names);
                pairs.filter(|(_, fold)| (**fold == name) == inside).map(|(point, _)| *point).collect()
            };
            Fold { train: of(false), test: of(true), name: name.clone(), unknown_gpu: None }
        })
        .collect()
}

/// Returns the folds that show how far predictions are off at a distance from all measurements, sorted by name. Tiny models on
/// one node are fitted, but not predicted.
pub(super) fn distant_folds<'a>(points: &[FitPoint<'a>], distance: Distance) -> Vec<Fold<'a>> {
    fn of<'a>(point: &FitPoint<'a>) -> Option<&'a MeasuredScenario> {
        point.row.scenario.as_ref().ok().map(|scenario| &**scenario)
    }
    type RowChoice<'c> = &'c dyn Fn(&MeasuredScenario) -> bool;
    let fold = |name: String, is_trained: RowChoice<'_>, is_tested: RowChoice<'_>| {
        let chosen = |choose: RowChoice<'_>| -> Vec<FitPoint<'a>> {
            points.iter().copied().filter(|point| of(point).is_some_and(choose)).collect()
        };
        let mut test = chosen(is_tested);
        test.retain(|point| !point.row.is_tiny());
        Fold { train: chosen(is_trained), test, name, unknown_gpu: None }
    };
    let mut folds: Vec<Fold<'a>> = match distance {
        Distance::Gpu => {
            let ids: BTreeSet<&'a str> =
                points.iter().filter_map(|point| Some(&*of(point)?.gpu.id)).collect();
            let without = |id: &'a str| {
                let is_of = |scenario: &MeasuredScenario| scenario.gpu.id == id;
                Fold { unknown_gpu: Some(id), ..fold(id.to_string(), &|scenario| !is_of(scenario), &is_of) }
            };
            ids.into_iter().map(without).collect()
        }
        Distance::Release | Distance::Software => {
            let pair = |scenario: &MeasuredScenario| {
                let stack = scenario.options.software.known()?;
                let is_of_distance = Distance::of_software(&scenario.options.software) == distance;
                is_of_distance.then(|| format!("{} {}", family(stack).id(), scenario.gpu.generation.id()))
            };
            let pairs: BTreeSet<String> = points.iter().filter_map(|point| pair(of(point)?)).collect();
            let without = |name: String| {
                let is_of = |scenario: &MeasuredScenario| pair(scenario).as_deref() == Some(&*name);
                fold(name.clone(), &|scenario| !is_of(scenario), &is_of)
            };
            pairs.into_iter().map(without).collect()
        }
        Distance::Scale => {
            let beyond = |most: &u32| {
                let is_far = |gpus: u32| gpus > most * FAR && gpus <= most * FAR * 8;
                let gpus = |scenario: &MeasuredScenario| scenario.layout.gpus();
                fold(format!("{most:05}"), &|scenario| gpus(scenario) <= *most, &|scenario| {
                    is_far(gpus(scenario))
                })
            };
            SCALES.iter().map(beyond).collect()
        }
    };
    for fold in &mut folds {
        // A row that is also far in another way would show the effect of both.
        let gpu = |scenario: &MeasuredScenario| scenario.gpu.id.clone();
        let pair = |scenario: &MeasuredScenario| {
            (scenario.options.software.known().map(family), scenario.gpu.generation)
        };
        let trained: Vec<&MeasuredScenario> = fold.train.iter().filter_map(of).collect();
        let is_gpu_known =
            |scenario: &MeasuredScenario| trained.iter().any(|other| gpu(other) == gpu(scenario));
        let is_pair_known =
            |scenario: &MeasuredScenario| trained.iter().any(|other| pair(other) == pair(scenario));
        fold.test.retain(|point| {
            of(point).is_some_and(|scenario| match distance {
                Distance::Gpu => is_pair_known(scenario),
                Distance::Release | Distance::Software => is_gpu_known(scenario),
                Distance::Scale => is_gpu_known(scenario) && is_pair_known(scenario),
            })
        });
    }
    folds.retain(|fold| !fold.test.is_empty());
    folds
}

/// The most GPUs of the runs that larger runs are predicted from.
const SCALES: [u32; 3] = [16, 64, 256];

/// Returns the software that stands for all versions with the same properties, because they show how it behaves.
fn family(stack: Stack) -> Stack {
    match stack {
        Stack::Nanotron2024 => Stack::Nanotron,
        Stack::MegatronLm2021 => Stack::MegatronLm2022,
        stack => stack,
    }
}

impl<'a> Fold<'a> {
    /// Predicts the rows of the fold by a fit to all others, which starts from the values `start`.
    pub fn judge(&self, all: &[Constant], start: &[f64], split: &FrozenSplit) -> Vec<HeldOutRow<'a>> {
        let values = fit::fit(all, start, &self.train, fit::ROUNDS_FROM_NEAR);
        let mut constants = Constants::from_values(all, &values);
        if let Some(id) = self.unknown_gpu {
            constants.forget_gpu(id);
        }
        let mut residuals = residuals(&self.train, &constants);
        let surprises = self.surprises(&residuals, split);
        for (residual, surprise) in residuals.iter_mut().zip(surprises) {
            residual.surprise = surprise;
        }
        let anchors = Anchors::new(Covariance::embedded(), residuals);
        let judged = self.test.iter().filter_map(|point| {
            let inputs = point.row.scenario.as_ref().ok()?.inputs();
            let modelled_s = fit::predict(point.row, &constants)?;
            let evidence = anchors.evidence(&inputs, modelled_s);
            Some(HeldOutRow {
                row: point.row,
                step_time_s: point.step_time_s,
                modelled_s,
                corrected_s: modelled_s * evidence.correction,
                kind: evidence.kind,
                doubt: evidence.doubt,
                unlike: evidence.unlike,
                is_rare: evidence.is_rare,
            })
        });
        judged.collect()
    }

    /// Returns the surprise of each training row, given the rows' residuals: how far its prediction from the rows of other folds of
    /// mappings is off, as in `held_out.csv`. So no surprise knows the rows to judge, whose intervals it widens. The constants are not
    /// fitted again, because a twelfth of the rows moves them little. 0 for models that the fold doesn't judge.
    fn surprises(&self, residuals: &[Residual], split: &FrozenSplit) -> Vec<f64> {
        let judged: Vec<Features> = self
            .test
            .iter()
            .filter_map(|point| Some(Features::of(&point.row.scenario.as_ref().ok()?.inputs())))
            .collect();
        let known: Vec<(usize, String)> = residuals
            .iter()
            .enumerate()
            .filter(|(_, residual)| judged.iter().any(|own| residual.features.has_shape_of(own)))
            .map(|(place, _)| (place, split.fold(self.train[place].row, Grouping::Mapping)))
            .collect();
        let folds: BTreeSet<&str> = known.iter().map(|(_, fold)| &**fold).collect();
        let mut surprises = vec![0.0; residuals.len()];
        for fold in folds {
            let others = known.iter().filter(|(_, of)| of != fold);
            let others = others.map(|(place, _)| residuals[*place].clone()).collect();
            let anchors = Anchors::new(Covariance::embedded(), others);
            for (place, _) in known.iter().filter(|(_, of)| of == fold) {
                let Ok(scenario) = &self.train[*place].row.scenario else { continue };
                let correction = anchors.correction(&scenario.inputs()).factor;
                surprises[*place] = (residuals[*place].log_ratio - libm::log(correction)).abs();
            }
        }
        surprises
    }
}

/// Returns the model's error on each row.
pub(super) fn residuals(points: &[FitPoint<'_>], constants: &Constants) -> Vec<Residual> {
    let residuals = points.iter().filter_map(|point| {
        let inputs = point.row.scenario.as_ref().ok()?.inputs();
        let modelled_s = fit::predict(point.row, constants)?;
        Some(Residual {
            record: Record::Own(MeasuredConfiguration {
                what: point.row.title(),
                runs: vec![MeasuredRun {
                    release: point.row.release_title(),
                    step_time_s: point.step_time_s,
                    tokens_per_s_per_gpu: inputs.batch.tokens()
                        / f64::from(inputs.layout.gpus())
                        / point.step_time_s,
                    url: None,
                    held_out_error: None,
                }],
            }),
            features: Features::of(&inputs),
            log_ratio: libm::log(point.step_time_s / modelled_s),
            // It takes predictions from other rows.
            surprise: 0.0,
        })
    });
    residuals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurements;

    #[test]
    fn the_surprise_of_a_run_is_its_error_without_its_mapping_and_the_judged_rows() {
        let rows = measurements::embedded().iter();
        let points = fit::points(rows.filter(|row| row.is_for_fitting() && row.model == "llama3.1-8b"));
        let split = FrozenSplit::embedded();
        let fold = folds(&points, &split, Grouping::Mapping).swap_remove(0);
        let known = residuals(&fold.train, Constants::embedded());
        let surprises = fold.surprises(&known, &split);
        let surprised = surprises.iter().filter(|surprise| **surprise > 0.0).count();
        assert!(surprised > 10 && surprises.iter().all(|surprise| *surprise < 0.5), "{surprises:?}");

        // Rows of one fold have no influence on each other's predictions, so a shift of all shifts their errors by as much.
        let shifted_fold = split.fold(fold.train[0].row, Grouping::Mapping);
        let is_shifted: Vec<bool> =
            fold.train.iter().map(|point| split.fold(point.row, Grouping::Mapping) == shifted_fold).collect();
        let mut shifted = known;
        for (residual, is_shifted) in shifted.iter_mut().zip(&is_shifted) {
            residual.log_ratio += if *is_shifted { 1.0 } else { 0.0 };
        }
        let after = fold.surprises(&shifted, &split);
        for ((before, after), is_shifted) in surprises.iter().zip(&after).zip(&is_shifted) {
            // The shift is larger than any error, whose sign is not known.
            let is_moved = [after - before, after + before].iter().any(|shift| (shift - 1.0).abs() < 1e-9);
            assert!(is_moved || !is_shifted, "{before} {after}");
        }
        // Rows of models that are not judged need none.
        let others = Fold { test: Vec::new(), ..fold };
        assert!(others.surprises(&shifted, &split).iter().all(|surprise| *surprise == 0.0));
    }
}
