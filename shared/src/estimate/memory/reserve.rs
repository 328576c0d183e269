//! The memory of a GPU type, and the part that is reserved for other purposes than tensors.

use crate::catalog::Gpu;
use crate::estimate::Inputs;

const GIB: f64 = 1_073_741_824.0;

/// Returns the memory of a GPU, in bytes.
///
/// Data sheets write GB for GiB: nvidia-smi shows 81,559 MiB for the H100 with 80 GB, 143,771 for the H200
/// with 141 and 183,359 for the B200 with 180. The missing half percent belongs to the driver; see
/// [`reserved`].
pub(crate) fn capacity_bytes(gpu: &Gpu) -> f64 {
    gpu.hbm_gb * GIB
}

/// Returns the reserved memory, in bytes, beside `peak` bytes of tensors.
///
/// It is the sum of 0.5 % for the driver, 1 GiB for the CUDA context and its kernels, 1 GiB for NCCL's
/// buffers (a few hundred MiB for each communicator), and the software's fragmentation.
pub(super) fn reserved(inputs: &Inputs<'_>, peak: f64) -> f64 {
    let fragments = inputs.options.software.properties().fragmentation;
    let communicators = if inputs.layout.gpus() > 1 { 1.0 } else { 0.0 };
    0.005 * capacity_bytes(inputs.gpu) + (1.0 + communicators) * GIB + fragments * peak
}
