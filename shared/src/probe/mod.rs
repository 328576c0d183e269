//! What a cluster reaches, as `trainplan probe` measures it, and how the estimate is adjusted to that.
//!
//! The constants of the estimate come from machines in good order. A probe that matches such a machine leaves them unchanged,
//! because the benchmark can't show more. A lower figure becomes a factor of `--cluster-factor`.

mod figures;
mod file;
mod job;
mod kinds;
mod slow_gpus;

pub use figures::{ProbeFactor, ProbeFigure, ProbeReport, ProbeVerdict};
pub use file::{
    AttentionRate, CollectiveRate, FreeMemory, MatmulRate, Probe, ProbePrecision, ProbeScope, RankRate,
    SkippedMeasurement,
};
pub use job::{GpuCheckJob, ProbeJob};
pub use kinds::ProbeFigureKind;
pub use slow_gpus::{SlowGpu, SlowNode};
