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
    /// Returns the prediction for a scenario.
    pub fn of(scenario: &Scenario) -> Estimate {
        Estimate::from_embedded(&scenario.inputs())
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
