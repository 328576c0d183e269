//! What an estimate depends on, whether it comes from a scenario or from a row of measurements.

use crate::architecture::Architecture;
use crate::batch::Batch;
use crate::catalog::Gpu;
use crate::layout::Layout;
use crate::options::Options;
use crate::precision::Dtype;
use crate::scenario::Scenario;

/// What an estimate depends on.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The model's shape.
    pub architecture: &'a Architecture,
    /// GPU type.
    pub gpu: &'a Gpu,
    /// Precision.
    pub dtype: Dtype,
    /// How the model is spread over the GPUs.
    pub layout: &'a Layout,
    /// What a step takes.
    pub batch: &'a Batch,
    /// Recomputation, sharding, software.
    pub options: &'a Options,
}

impl Scenario {
    /// What its estimate depends on.
    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            architecture: &self.architecture,
            gpu: &self.gpu,
            dtype: self.dtype,
            layout: &self.layout,
            batch: &self.batch,
            options: &self.options,
        }
    }
}
