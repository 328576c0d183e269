//! A lower bound of the correction of many layouts, for a search.

use super::features::{Place, Shared};
use super::{Anchors, Coordinate, Features};
use crate::estimate::Inputs;
use crate::estimate::evidence::SIMILAR;
use std::cell::RefCell;
use std::rc::Rc;

/// Less than rounding could add.
const FLOOR: f64 = 1.0 - 1e-9;

/// The measured runs that the layouts of a search can be similar to: those of its model, GPU, precision and software.
///
/// The covariance with a measured run is a product over the coordinates. So it is computed once for each value of a coordinate, and the
/// layouts of a search multiply what they have in common.
#[derive(Debug)]
pub(crate) struct SimilarRuns<'a> {
    /// Logarithm of the correction that is the same for all layouts.
    log_common: f64,
    /// Distance at which the similarity has fallen to 1/e.
    reach: f64,
    /// Whether the model is a mixture of experts.
    is_routed: bool,
    runs: Vec<SimilarRun<'a>>,
    /// What each run adds at most to a lower bound of the logarithm of the correction.
    log_least: Vec<f64>,
    /// What was computed of each coordinate, by number.
    known: RefCell<[Vec<(u32, Nearness)>; Coordinate::ALL.len()]>,
}

#[derive(Debug)]
struct SimilarRun<'a> {
    place: &'a Place,
    /// What it adds to the logarithm of the correction of a layout that equals it in every coordinate.
    log_most: f64,
    /// The likeness of such a layout: the part that all layouts have, and the part that falls with the distance.
    likeness: (f64, f64),
}

/// How near layouts with some numbers are to each measured run: 1 if they are equal.
pub(crate) type Nearness = Rc<[f64]>;

impl<'a> SimilarRuns<'a> {
    /// Returns the runs for all layouts of the model, GPU, precision and software in `inputs`.
    pub(super) fn new(anchors: &'a Anchors, inputs: &Inputs<'_>) -> SimilarRuns<'a> {
        let features = Features::of(inputs);
        let parts = &anchors.covariance;
        let variance = features.covariance(&features, parts);
        let mut log_common = 0.0;
        let mut runs: Vec<SimilarRun<'_>> = Vec::new();
        for run in anchors.of_shape(&features) {
            let Shared { always, similar } = run.features.shared(&features, parts);
            log_common += always * run.weight;
            if similar > 0.0 {
                runs.push(SimilarRun {
                    place: &run.features.place,
                    log_most: similar * run.weight,
                    likeness: (always / variance, similar / variance),
                });
            }
        }
        let log_least = runs.iter().map(|run| run.log_most.min(0.0)).collect();
        let is_routed = inputs.architecture.moe.is_some();
        SimilarRuns { log_common, reach: parts.reach, is_routed, runs, log_least, known: RefCell::default() }
    }

    /// Whether layouts with one of these numbers use parallelism that is rarely measured of such models: see
    /// [`Evidence::is_rare`](crate::estimate::Evidence::is_rare).
    pub(crate) fn is_rare(&self, numbers: &[(Coordinate, u32)]) -> bool {
        self.is_routed && numbers.iter().any(|(coordinate, number)| coordinate.is_rare(*number))
    }

    /// Returns how near layouts with this number are to each run.
    pub(crate) fn nearness(&self, coordinate: Coordinate, number: u32) -> Nearness {
        let known = &mut self.known.borrow_mut()[coordinate as usize];
        let place = known.partition_point(|(each, _)| *each < number);
        if let Some((_, nearness)) = known.get(place).filter(|(each, _)| *each == number) {
            return Rc::clone(nearness);
        }
        let own = coordinate.of_number(number);
        let apart = |run: &SimilarRun<'_>| (own - run.place[coordinate as usize]).abs();
        let nearness: Nearness = self.runs.iter().map(|run| libm::exp(-apart(run) / self.reach)).collect();
        known.insert(place, (number, Rc::clone(&nearness)));
        nearness
    }

    /// Returns how near layouts with all of these numbers are to each run.
    pub(crate) fn nearness_in(&self, numbers: &[(Coordinate, u32)]) -> Nearness {
        self.nearer(&vec![1.0; self.runs.len()], numbers)
    }

    /// Returns the product of what is known of layouts and the nearness in further numbers.
    pub(crate) fn nearer(&self, known: &[f64], numbers: &[(Coordinate, u32)]) -> Nearness {
        let mut product = known.to_vec();
        for (coordinate, number) in numbers {
            for (product, nearness) in product.iter_mut().zip(&*self.nearness(*coordinate, *number)) {
                *product *= nearness;
            }
        }
        product.into()
    }

    /// Returns the least correction of layouts that are so near the runs in the coordinates which are known.
    pub(crate) fn least(&self, nearness: &[f64]) -> f64 {
        libm::exp(self.log_common + dot_product(&self.log_least, nearness)) * FLOOR
    }

    /// Whether any of these layouts may be similar to a measured run.
    pub(crate) fn may_be_similar(&self, nearness: &[f64]) -> bool {
        self.runs.iter().zip(nearness).any(|(run, nearness)| run.is_similar(*nearness))
    }

    /// Returns the correction of a layout, apart from rounding, and whether it may be similar to a measured run. Together, `blocks` and
    /// `pipeline` hold its nearness in every coordinate.
    pub(crate) fn of_layout(&self, blocks: &[f64], pipeline: [&[f64]; 3]) -> (f64, bool) {
        let [first, second, third] = pipeline;
        let mut log = self.log_common;
        let mut is_similar = false;
        for ((((run, blocks), first), second), third) in
            self.runs.iter().zip(blocks).zip(first).zip(second).zip(third)
        {
            let nearness = blocks * first * second * third;
            log += run.log_most * nearness;
            is_similar |= run.is_similar(nearness);
        }
        (libm::exp(log) * FLOOR, is_similar)
    }
}

impl SimilarRun<'_> {
    /// Whether a layout may be similar to it.
    fn is_similar(&self, nearness: f64) -> bool {
        let (always, similar) = self.likeness;
        always + similar * nearness >= SIMILAR * FLOOR
    }
}

/// Returns the sum of the products of two lists. It adds four sums, which a processor computes in parallel.
fn dot_product(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    for (one, other) in one.chunks(sums.len()).zip(other.chunks(sums.len())) {
        for ((sum, one), other) in sums.iter_mut().zip(one).zip(other) {
            *sum += one * other;
        }
    }
    sums.iter().sum()
}
