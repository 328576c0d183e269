//! Predictions of rows that the constants and anchors have not seen.

use super::fit::{self, FitPoint};
use super::split::{FrozenSplit, Grouping};
use crate::estimate::{Anchors, Constant, Constants, Covariance, EvidenceKind, Features, Residual};
use crate::measurements::Measurement;

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
}

/// Rows that are held out together, and all other rows.
pub struct Fold<'a> {
    /// Name of the fold.
    pub name: String,
    train: Vec<FitPoint<'a>>,
    test: Vec<FitPoint<'a>>,
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
            Fold { train: of(false), test: of(true), name: name.clone() }
        })
        .collect()
}

impl<'a> Fold<'a> {
    /// Predicts the rows of the fold by a fit to all others, which starts from the values `start`.
    pub fn judge(&self, all: &[Constant], start: &[f64]) -> Vec<HeldOutRow<'a>> {
        let values = fit::fit(all, start, &self.train, fit::ROUNDS_FROM_NEAR);
        let constants = Constants::from_values(all, &values);
        let anchors = Anchors::new(Covariance::embedded(), residuals(&self.train, &constants));
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
            })
        });
        judged.collect()
    }
}

/// Returns the model's error on each row.
pub(super) fn residuals(points: &[FitPoint<'_>], constants: &Constants) -> Vec<Residual> {
    let residuals = points.iter().filter_map(|point| {
        let inputs = point.row.scenario.as_ref().ok()?.inputs();
        let modelled_s = fit::predict(point.row, constants)?;
        Some(Residual {
            what: point.row.title(),
            features: Features::of(&inputs),
            log_ratio: libm::log(point.step_time_s / modelled_s),
        })
    });
    residuals.collect()
}
