//! The time of matrix multiplications, attention and memory-bound kernels on a GPU.

use super::constants::Constants;
use crate::catalog::Generation;
use crate::cluster_factors::ClusterFactor;
use crate::estimate::Inputs;
use crate::precision::{Dtype, Width};
use crate::stack::AttentionKernels;

/// Rows and columns of the tile that one multiprocessor computes at a time.
const TILE: (f64, f64) = (128.0, 256.0);

/// The rates of a GPU, in FLOP per second and bytes per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Speed {
    /// Large matrix multiplications in the run's precision.
    linear: f64,
    /// Large matrix multiplications in BF16.
    bf16: f64,
    /// Fused attention with wide heads.
    attention: f64,
    attention_head: f64,
    /// Bytes of an operand's element in the run's precision.
    pub(super) operand_bytes: f64,
    /// Memory bandwidth.
    pub(super) hbm: f64,
    /// Additional passes over activations for casting.
    pub(super) cast_passes: f64,
    gemm_traffic: f64,
    gemm_start_s: f64,
    gemm_waves: f64,
    multiprocessors: f64,
}

impl Speed {
    pub(super) fn new(inputs: &Inputs<'_>, constants: &Constants) -> Speed {
        let (gpu, dtype, gemm_tflops) = (inputs.gpu, inputs.dtype, inputs.options.gemm_tflops);
        let generation = gpu.generation;
        let (gemm, attention) = match generation {
            Generation::Ampere => (constants.gemm_ampere, constants.attention_ampere),
            Generation::Hopper
                if inputs.options.software.properties().attention == AttentionKernels::Tuned =>
            {
                (constants.gemm_hopper, constants.attention_hopper)
            }
            Generation::Hopper => (constants.gemm_hopper, constants.attention_hopper_old),
            Generation::Blackwell | Generation::Rubin => {
                (constants.gemm_blackwell, constants.attention_blackwell)
            }
        };
        let peak = gpu.bf16_tflops * 1e12;
        let of_type = constants.gpu(gpu);
        // If the user measured the machine, all multiplications scale with that measurement.
        let usual = gemm * peak * of_type;
        let own = gemm_tflops.map_or(1.0, |tflops| tflops * 1e12 / usual)
            * inputs.options.cluster.of(ClusterFactor::Matmul);
        let factor = of_type * own;
        let fp8 = gpu.fp8_tflops.unwrap_or(2.0 * gpu.bf16_tflops) * 1e12;
        let fp8 = fp8
            * match generation {
                Generation::Blackwell | Generation::Rubin => constants.gemm_fp8_blackwell,
                _ => constants.gemm_fp8_hopper,
            };
        let of_fp8 = inputs.options.cluster.of(ClusterFactor::Fp8);
        let (linear, operand_bytes) = match dtype.width() {
            Width::Bf16 => (gemm * peak, 2.0),
            Width::Fp8 => (of_fp8 * fp8, 1.0),
            Width::Nvfp4 => {
                let nvfp4 = gpu.nvfp4_tflops.unwrap_or_default().max(1.0) * 1e12;
                (of_fp8 * nvfp4 * constants.gemm_nvfp4, 0.5)
            }
        };
        let cast_passes = match dtype {
            Dtype::Bf16 => 0.0,
            Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed => constants.passes_fp8,
            Dtype::Mxfp8 => constants.passes_mxfp8,
            // Block scales are computed in software, in addition to the casts.
            Dtype::Fp8Block => constants.passes_fp8 + constants.passes_mxfp8,
            Dtype::Nvfp4 => constants.passes_nvfp4,
        };
        Speed {
            linear: linear * factor,
            bf16: gemm * peak * factor,
            attention: attention * peak * of_type,
            attention_head: constants.attention_head,
            operand_bytes,
            hbm: gpu.hbm_tbps * 1e12 * inputs.options.cluster.of(ClusterFactor::Memory),
            cast_passes,
            gemm_traffic: constants.gemm_traffic,
            gemm_start_s: constants.gemm_start_s,
            gemm_waves: constants.gemm_waves,
            multiprocessors: match generation {
                Generation::Ampere => 108.0,
                Generation::Hopper => 132.0,
                Generation::Blackwell => 148.0,
                Generation::Rubin => 224.0,
            },
        }
    }

    /// Returns the same rates for matrix multiplications of any shape, each as fast as the largest: a lower bound.
    pub(super) fn of_largest_gemms(&self) -> Speed {
        Speed { gemm_traffic: 0.0, gemm_start_s: 0.0, gemm_waves: 0.0, ..*self }
    }

    /// Returns the seconds of multiplying m×k by k×n in the run's precision.
    pub(super) fn gemm_s(&self, m: f64, n: f64, k: f64) -> f64 {
        self.product_s(m, n, k, self.linear, self.operand_bytes)
    }

    /// Returns the seconds of multiplying m×k by k×n in BF16.
    pub(super) fn gemm_bf16_s(&self, m: f64, n: f64, k: f64) -> f64 {
        self.product_s(m, n, k, self.bf16, 2.0)
    }

    fn product_s(&self, m: f64, n: f64, k: f64, rate: f64, bytes: f64) -> f64 {
        let traffic = bytes * (m * k + n * k) + 2.0 * m * n;
        let tiles = (m / TILE.0).ceil() * (n / TILE.1).ceil();
        let full = tiles * TILE.0 * TILE.1 / (m * n);
        let waves = tiles / self.multiprocessors;
        let idle = waves.ceil() / waves * full - 1.0;
        2.0 * m * n * k / rate * (1.0 + self.gemm_waves * idle)
            + self.gemm_traffic * traffic / self.hbm
            + self.gemm_start_s
    }

    /// Returns the seconds of `flops` of fused attention with heads `head_dim` wide.
    pub(super) fn attention_s(&self, flops: f64, head_dim: f64) -> f64 {
        flops / self.attention * (1.0 + self.attention_head / head_dim)
    }

    /// Returns the seconds of `flops` of batched BF16 products, as in unfused attention.
    pub(super) fn batched_s(&self, flops: f64) -> f64 {
        flops / self.bf16
    }

    /// Returns the seconds to move `bytes` through memory.
    pub(super) fn memory_s(&self, bytes: f64) -> f64 {
        bytes / self.hbm
    }
}
