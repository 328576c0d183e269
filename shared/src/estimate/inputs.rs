//! The inputs of an estimate, from a scenario or from a measured run.

use crate::architecture::Architecture;
use crate::batch::Batch;
use crate::catalog::Gpu;
use crate::layout::Layout;
use crate::options::TrainingOptions;
use crate::precision::Dtype;
use crate::scenario::Scenario;

/// Everything that an estimate depends on.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The model's shape.
    pub architecture: &'a Architecture,
    /// GPU type.
    pub gpu: &'a Gpu,
    /// Precision.
    pub dtype: Dtype,
    /// Parallelism: the degrees and the layers of each pipeline stage.
    pub layout: &'a Layout,
    /// Sequence length and batch sizes.
    pub batch: &'a Batch,
    /// Recomputation, sharding and software.
    pub options: &'a TrainingOptions,
}

impl Scenario {
    /// Returns the inputs of its estimate.
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
