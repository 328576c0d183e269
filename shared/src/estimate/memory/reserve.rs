//! What a GPU has, and what is taken from it besides tensors.

use super::state::runs_transformer_engine;
use crate::catalog::Gpu;
use crate::estimate::Inputs;

const GIB: f64 = 1_073_741_824.0;

/// Bytes of a GPU's memory.
///
/// What data sheets call GB are GiB in every GPU of the catalog: nvidia-smi says 81,559 MiB for an H100 of 80 GB,
/// 143,771 for an H200 of 141, 183,359 for a B200 of 180. Half a percent is the driver's, in [`reserved`].
pub(super) fn capacity(gpu: &Gpu) -> f64 {
    gpu.hbm_gb * GIB
}

/// Bytes that are taken besides `peak` bytes of tensors.
///
/// The driver's half percent; 1 GiB for the CUDA context with its kernels; 1 GiB for NCCL's buffers, of which each
/// communicator of several GPUs takes some hundred MiB; and what PyTorch's allocator can't reuse: with expandable
/// segments, which all of NVIDIA's recipes set, 2 % of the tensors, otherwise up to 8 %.
pub(super) fn reserved(inputs: &Inputs<'_>, peak: f64) -> f64 {
    let fragments = if runs_transformer_engine(inputs.options.stack) { 0.02 } else { 0.08 };
    let communicators = if inputs.layout.gpus() > 1 { 1.0 } else { 0.0 };
    0.005 * capacity(inputs.gpu) + (1.0 + communicators) * GIB + fragments * peak
}
