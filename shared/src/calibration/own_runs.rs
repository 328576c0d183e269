//! Tests how well a few runs of the user's own predict unmeasured software, by treating widely measured software as
//! unmeasured.

use super::ErrorSummary;
use super::cluster::{ClusterFit, ClusterRun};
use super::fit::{self, FitPoint};
use crate::cluster_factors::{ClusterFactor, ClusterFactors};
use crate::estimate::{Anchors, Breakdown, Constant, Constants, Covariance, Inputs};
use crate::options::TrainingOptions;
use crate::stack::Stack;

/// The collection whose runs stand in for those of unmeasured software.
const COLLECTION: &str = "nanotron-ultrascale";
/// How a user might describe that software: by all its properties, or as the plain software that comes nearest.
const DESCRIBED: [(Stack, &str); 2] =
    [(Stack::Nanotron, "by its properties"), (Stack::Pytorch, "as plain PyTorch")];
/// Numbers of own runs.
const RUNS: [usize; 3] = [5, 10, 20];
/// Draws of each number.
const DRAWS: usize = 10;

/// Errors of predictions for software that nobody measured, before and after a user's own runs correct them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OwnRuns {
    /// How the software is described.
    pub described: &'static str,
    /// Number of all runs.
    pub n: usize,
    /// Mean absolute error without own runs.
    pub before: f64,
    /// For each number of own runs, the mean absolute error of all other runs: the mean over all draws, and the worst draw.
    pub after: Vec<(usize, f64, f64)>,
}

/// Returns the errors of a fit that has not seen the collection, which starts from the values `start`; none if no row is of the
/// collection.
pub(super) fn of(all: &[Constant], start: &[f64], points: &[FitPoint<'_>]) -> Vec<OwnRuns> {
    let (own, others): (Vec<FitPoint<'_>>, Vec<FitPoint<'_>>) =
        points.iter().copied().partition(|point| point.row.source == COLLECTION);
    if own.is_empty() {
        return Vec::new();
    }
    let constants = Constants::from_values(all, &fit::fit(all, start, &others, fit::ROUNDS_FROM_NEAR));
    DESCRIBED
        .into_iter()
        .filter_map(|(stack, described)| described_as(stack, described, &own, &constants))
        .collect()
}

fn described_as(
    stack: Stack,
    described: &'static str,
    own: &[FitPoint<'_>],
    constants: &Constants,
) -> Option<OwnRuns> {
    let scenarios: Vec<_> =
        own.iter().filter_map(|point| Some((point.row.scenario.as_ref().ok()?, point.step_time_s))).collect();
    let options: Vec<TrainingOptions> = scenarios
        .iter()
        .map(|(scenario, _)| TrainingOptions { software: stack.into(), ..scenario.options })
        .collect();
    let runs: Vec<ClusterRun<'_>> = scenarios
        .iter()
        .zip(&options)
        .map(|((scenario, step_time_s), options)| ClusterRun {
            name: "",
            inputs: Inputs { options, ..scenario.inputs() },
            step_time_s: *step_time_s,
        })
        .collect();
    // No other collection measured these models.
    let anchors = Anchors::new(Covariance::embedded(), Vec::new());
    let error = |run: &ClusterRun<'_>, factors: ClusterFactors| {
        let options = TrainingOptions { cluster: factors, ..*run.inputs.options };
        let inputs = Inputs { options: &options, ..run.inputs };
        let predicted = Breakdown::of(&inputs, constants).step_time_s() * factors.of(ClusterFactor::Step);
        predicted / run.step_time_s - 1.0
    };
    let before = ErrorSummary::of(runs.iter().map(|run| error(run, ClusterFactors::default())))?.mape;
    let after = RUNS.map(|count| {
        let errors: Vec<f64> = (0..DRAWS)
            .filter_map(|draw| {
                let drawn = drawn(draw, count, runs.len());
                let few: Vec<ClusterRun<'_>> = drawn.iter().map(|place| runs[*place]).collect();
                let factors = ClusterFit::of(&few, constants, &anchors)?.factors();
                let rest = runs.iter().enumerate().filter(|(place, _)| !drawn.contains(place));
                Some(ErrorSummary::of(rest.map(|(_, run)| error(run, factors)))?.mape)
            })
            .collect();
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        (count, mean, errors.into_iter().fold(0.0, f64::max))
    });
    Some(OwnRuns { described, n: runs.len(), before, after: after.into() })
}

/// Returns the places of a draw of `count` runs among all.
fn drawn(draw: usize, count: usize, all: usize) -> Vec<usize> {
    // Knuth's multiplier spreads the places.
    let place = |run: usize| ((draw * count + run + 1) as u64).wrapping_mul(2_654_435_761) >> 7;
    (0..count).map(|run| (place(run) % all as u64) as usize).collect()
}
