//! The prediction: how long a step takes and what a GPU must hold, from the inputs alone.
//!
//! The step time follows from a physical model with few constants, fitted to measurements ([`Breakdown`]). Where runs of
//! the same shape on the same GPUs are published, they correct it ([`Anchors`]). The interval comes from how far
//! predictions of rows that the fit had not seen were off ([`Interval`]). Memory is counted, not fitted ([`Memory`]).

mod anchors;
mod inputs;
mod interval;
mod memory;
mod step_time;

pub use anchors::{Anchor, Anchors, Basis, BasisKind, Features, Kinship, Known};
pub use inputs::Inputs;
pub use interval::{Class, Interval, Spread};
pub use memory::{Memory, StageMemory, fits, peak_bytes};
pub use step_time::{Breakdown, Constant, Constants};

use crate::scenario::Scenario;

/// What is predicted of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Seconds per step; four of five measurements are expected to lie between its ends.
    pub step_time_s: Interval,
    /// Where the seconds of the middle go.
    pub breakdown: Breakdown,
    /// What a GPU holds.
    pub memory: Memory,
    /// What the step time rests on.
    pub basis: Basis,
}

impl Estimate {
    /// Predicts a scenario.
    pub fn of(scenario: &Scenario) -> Estimate {
        Estimate::from_embedded(&scenario.inputs())
    }

    /// Predicts from inputs, by what this program carries.
    pub fn from_embedded(inputs: &Inputs<'_>) -> Estimate {
        Estimate::from_inputs(inputs, Constants::embedded(), Anchors::embedded())
    }

    /// Predicts from inputs, under `constants`, corrected by `anchors`.
    pub fn from_inputs(inputs: &Inputs<'_>, constants: &Constants, anchors: &Anchors) -> Estimate {
        let modelled = Breakdown::of(inputs, constants);
        let basis = anchors.basis(inputs, modelled.step_time_s());
        let breakdown = modelled.scaled(basis.correction * inputs.options.cluster_factor.unwrap_or(1.0));
        Estimate {
            step_time_s: Spread::embedded().of(inputs, &basis).around(breakdown.step_time_s()),
            breakdown,
            memory: Memory::of(inputs),
            basis,
        }
    }
}
