//! Predicts the step time and the memory of a training run from its scenario.
//!
//! The step time comes from a physical model with a few constants, fitted to measurements ([`Breakdown`]).
//! Published runs of the same model correct it ([`Anchors`]). The interval comes from the errors of
//! predictions for runs that the fit had not seen ([`IntervalTable`]). Memory is counted, not fitted
//! ([`MemoryEstimate`]).

mod anchors;
mod evidence;
mod inputs;
mod interval;
mod kinds;
mod memory;
mod step_time;

pub use anchors::{Anchors, Covariance, Features, Residual};
pub(crate) use anchors::{Coordinate, Nearness, SimilarRuns};
pub use evidence::{
    Anchor, Closeness, Confidence, Evidence, EvidenceKind, MUCH_BY_SOFTWARE, MeasuredConfiguration,
    MeasuredRun, Record,
};
pub use inputs::Inputs;
pub(crate) use interval::LayoutIntervals;
pub use interval::{Distance, FAR, Interval, IntervalClass, IntervalTable};
#[cfg(feature = "calibrate")]
pub(crate) use interval::{OF_80_PERCENT, distant_share};
pub use memory::{
    MemoryEstimate, MemoryMargin, MemoryPart, MemoryVerdict, StageGroup, StageMemory, fits, peak_bytes,
};
pub(crate) use memory::{MicroBatchMemory, capacity_bytes, least_bytes};
pub use step_time::{Breakdown, Constant, Constants, StepPart, StepPartGroup};
pub(crate) use step_time::{MicroBatchCosts, straggling};

use crate::cluster_factors::ClusterFactor;
use crate::range::ValueRange;
use crate::scenario::Scenario;

/// The prediction for a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Seconds per step, with the 80 % interval.
    pub step_time_s: Interval,
    /// The parts of the step time by the physical model. With [`Estimate::correction_s`] they add up to the predicted step time.
    pub breakdown: Breakdown,
    /// The memory of every pipeline stage.
    pub memory: MemoryEstimate,
    /// The measurements behind the step time.
    pub evidence: Evidence,
}

impl Estimate {
    /// Returns the prediction for a scenario. The interval of a recipe as published contains the step time that its release published: it
    /// may have been measured with an older container than the newest run of the same software, towards which the prediction is corrected.
    pub fn of(scenario: &Scenario) -> Estimate {
        let estimate = Estimate::from_embedded(&scenario.inputs());
        // Without a recipe, the release of the software is not known. Another cluster or other settings are not what was measured.
        let is_measured = scenario.recipe.is_some() && estimate.evidence.kind == EvidenceKind::Published;
        let published = is_measured.then(|| scenario.baseline()).flatten();
        let published = published.map(|baseline| ValueRange::of(baseline.step_time_s));
        Estimate { step_time_s: estimate.step_time_s.containing(published), ..estimate }
    }

    /// Returns the prediction by the embedded constants and measurements.
    pub fn from_embedded(inputs: &Inputs<'_>) -> Estimate {
        Estimate::from_inputs(inputs, Constants::embedded(), Anchors::embedded())
    }

    /// Returns the prediction by `constants`, corrected by `anchors`.
    pub fn from_inputs(inputs: &Inputs<'_>, constants: &Constants, anchors: &Anchors) -> Estimate {
        let modelled = Breakdown::of(inputs, constants);
        let evidence = anchors.evidence(inputs, modelled.step_time_s());
        let of_cluster = inputs.options.cluster.of(ClusterFactor::Step);
        // The same sum as in a search, to the last bit.
        let step_time_s = modelled.scaled(evidence.correction * of_cluster).step_time_s();
        Estimate {
            step_time_s: IntervalTable::embedded().around(step_time_s, inputs, &evidence),
            breakdown: modelled.scaled(of_cluster),
            memory: MemoryEstimate::of(inputs),
            evidence,
        }
    }

    /// Returns by how many seconds measured runs correct the physical model's step time. The breakdown doesn't
    /// contain it, because measurements don't say which parts the model gets wrong.
    pub fn correction_s(&self) -> f64 {
        self.step_time_s.mid - self.breakdown.step_time_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Baseline, Catalog};
    use crate::field::Field;
    use crate::spec::Spec;

    /// Returns every recipe with a published result of its own release, as a scenario, with that result.
    fn published() -> Vec<(String, Scenario, &'static Baseline)> {
        let recipes = Catalog::embedded().recipes().iter();
        let published = recipes.filter_map(|recipe| {
            let baseline = Catalog::embedded().baseline(&recipe.id)?;
            let id = recipe.id.to_string();
            let scenario = Spec::default().with(Field::Recipe, &*id).scenario().unwrap();
            Some((id, scenario, baseline))
        });
        published.collect()
    }

    #[test]
    fn the_interval_of_a_published_recipe_contains_its_published_step_time() {
        let mut measured = 0;
        for (id, scenario, baseline) in published() {
            let Estimate { step_time_s: Interval { low, mid, high }, evidence, .. } = Estimate::of(&scenario);
            if evidence.kind == EvidenceKind::Published {
                measured += 1;
                let own_s = baseline.step_time_s;
                assert!((low..=high).contains(&own_s), "{id}: {own_s} s is not within {low}..{mid}..{high}");
            }
        }
        assert!(measured >= 100, "{measured}");
    }

    #[test]
    fn predictions_of_measured_layouts_go_through_the_newest_measurement() {
        // Of nearly all, the newest measurement is the published one. GPT-OSS was published with an older container, and Nemotron-4 340B on
        // 256 GPUs was measured on two clusters.
        let published = published();
        let estimates = published.iter().map(|(_, scenario, baseline)| {
            (Estimate::from_embedded(&scenario.inputs()), baseline.step_time_s)
        });
        let measured: Vec<bool> = estimates
            .filter(|(estimate, _)| estimate.evidence.kind == EvidenceKind::Published)
            .map(|(estimate, own_s)| {
                let Interval { low, high, .. } = estimate.step_time_s;
                (low..=high).contains(&own_s)
            })
            .collect();
        let within = measured.iter().filter(|is_within| **is_within).count();
        assert!(within * 100 >= measured.len() * 90, "{within} of {}", measured.len());
    }
}
