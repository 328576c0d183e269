//! A lower bound of the correction of many layouts, for a search.

use super::features::{Place, Shared};
use super::{Anchors, Coordinate, Features};
use crate::estimate::Inputs;
use crate::estimate::evidence::SIMILAR;

/// Less than rounding could add.
const FLOOR: f64 = 1.0 - 1e-9;

/// A lower bound of the correction of layouts of one model, GPU, precision and software.
///
/// The covariance with a measured run is a product over the coordinates, so each coordinate that becomes known makes the bound
/// tighter.
#[derive(Debug, Clone)]
pub(crate) struct CorrectionBound<'a> {
    /// Logarithm of the correction that is the same for all layouts.
    log_common: f64,
    /// Distance at which the similarity has fallen to 1/e.
    reach: f64,
    /// The measured runs to which a layout can be similar.
    runs: Vec<SimilarRun<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct SimilarRun<'a> {
    place: &'a Place,
    /// What it adds to the logarithm of the correction of a layout that equals it in every coordinate not yet known.
    log_most: f64,
    /// The likeness of such a layout: the part that all layouts have, and the part that falls with the distance.
    likeness: (f64, f64),
}

impl<'a> CorrectionBound<'a> {
    /// Returns the bound for all layouts of the model, GPU, precision and software in `inputs`.
    pub(super) fn new(anchors: &'a Anchors, inputs: &Inputs<'_>) -> CorrectionBound<'a> {
        let features = Features::of(inputs);
        let parts = &anchors.covariance;
        let variance = features.covariance(&features, parts);
        let mut bound = CorrectionBound { log_common: 0.0, reach: parts.reach, runs: Vec::new() };
        for run in anchors.of_shape(&features) {
            let Shared { always, similar } = run.features.shared(&features, parts);
            bound.log_common += always * run.weight;
            if similar > 0.0 {
                bound.runs.push(SimilarRun {
                    place: &run.features.place,
                    log_most: similar * run.weight,
                    likeness: (always / variance, similar / variance),
                });
            }
        }
        bound
    }

    /// Returns the bound for those layouts that have these coordinates of `inputs`. Each coordinate may be given once.
    pub(crate) fn given(&self, known: &[Coordinate], inputs: &Inputs<'_>) -> CorrectionBound<'a> {
        let known: Vec<(Coordinate, f64)> = known.iter().map(|each| (*each, each.of(inputs))).collect();
        let nearer = |run: &SimilarRun<'a>| {
            let apart = |(coordinate, own): &(Coordinate, f64)| (own - run.place[*coordinate as usize]).abs();
            let distance: f64 = known.iter().map(apart).sum();
            let nearness = libm::exp(-distance / self.reach);
            let (always, similar) = run.likeness;
            SimilarRun { log_most: run.log_most * nearness, likeness: (always, similar * nearness), ..*run }
        };
        CorrectionBound { runs: self.runs.iter().map(nearer).collect(), ..*self }
    }

    /// Returns the lower bound.
    pub(crate) fn least(&self) -> f64 {
        let least: f64 = self.runs.iter().map(|run| run.log_most.min(0.0)).sum();
        libm::exp(self.log_common + least) * FLOOR
    }

    /// Whether any of the layouts may be similar to a measured run.
    pub(crate) fn may_be_similar(&self) -> bool {
        self.runs.iter().any(|run| run.likeness.0 + run.likeness.1 >= SIMILAR * FLOOR)
    }

    /// Returns the lower bound when every coordinate was given: the correction itself, apart from rounding.
    pub(crate) fn least_of_known(&self) -> f64 {
        let log_similar: f64 = self.runs.iter().map(|run| run.log_most).sum();
        libm::exp(self.log_common + log_similar) * FLOOR
    }
}
