//! Judging the estimate by rows that its constants and anchors have not seen.

use super::fit::{self, Point};
use super::split::{By, Split};
use crate::estimate::{Anchors, BasisKind, Constant, Constants, Features, Kinship, Known};
use crate::measurements::Measurement;

/// A row as it was predicted without itself.
#[derive(Debug, Clone)]
pub struct HeldOut<'a> {
    /// The row.
    pub row: &'a Measurement,
    /// Its step time, s.
    pub step_time_s: f64,
    /// What the physical model says, s.
    pub modelled_s: f64,
    /// What it says after the correction by other rows, s.
    pub anchored_s: f64,
    /// What that correction rests on.
    pub kind: BasisKind,
}

/// A fold: what was fitted without it, and the rows in it.
pub struct Fold<'a> {
    /// Its name.
    pub name: String,
    train: Vec<Point<'a>>,
    test: Vec<Point<'a>>,
}

/// The folds of `points`, in order of their names.
pub(super) fn folds<'a>(points: &[Point<'a>], split: &Split, by: By) -> Vec<Fold<'a>> {
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
    /// Predicts the rows of the fold by what was fitted to all others, from the values `start` on.
    pub fn judge(&self, all: &[Constant], start: &[f64]) -> Vec<HeldOut<'a>> {
        let values = fit::fit(all, start, &self.train, fit::ROUNDS_FROM_NEAR);
        let constants = Constants::from_values(all, &values);
        let anchors = Anchors::new(Kinship::embedded(), known(&self.train, &constants));
        let judged = self.test.iter().filter_map(|point| {
            let inputs = point.row.subject.as_ref().ok()?.inputs();
            let modelled_s = fit::predict(point.row, &constants)?;
            let basis = anchors.basis(&inputs, modelled_s);
            Some(HeldOut {
                row: point.row,
                step_time_s: point.step_time_s,
                modelled_s,
                anchored_s: modelled_s * basis.correction,
                kind: basis.kind,
            })
        });
        judged.collect()
    }
}

/// What the model misses of each row.
pub(super) fn known(points: &[Point<'_>], constants: &Constants) -> Vec<Known> {
    let known = points.iter().filter_map(|point| {
        let inputs = point.row.subject.as_ref().ok()?.inputs();
        let modelled_s = fit::predict(point.row, constants)?;
        Some(Known {
            what: point.row.in_words(),
            features: Features::of(&inputs),
            missed: libm::log(point.step_time_s / modelled_s),
        })
    });
    known.collect()
}
