//! Weights, gradients and optimizer state: bytes per weight, and the ranks that share them.

use super::{BF16, FP32};
use crate::catalog::Generation;
use crate::estimate::Inputs;
use crate::precision::Dtype;
use crate::stack::WeightStorage;

/// Bytes of an MXFP8 number with its share of the scale of 32 numbers.
const MXFP8: f64 = 1.0 + 1.0 / 32.0;
/// Bytes of an NVFP4 number with its share of the scale of 16 numbers.
const NVFP4: f64 = 0.5 + 1.0 / 16.0;

/// Bytes per weight, and the ranks that share them.
pub(super) struct WeightState {
    /// Bytes of a layer's weight.
    weight: f64,
    /// Bytes of an embedding's weight.
    embedding: f64,
    /// Bytes of a gradient.
    gradient: f64,
    /// Bytes of the optimizer state of a weight.
    optimizer: f64,
    /// Ranks that share the optimizer state of dense weights.
    dense_ranks: f64,
    /// Ranks that share the optimizer state of routed experts.
    routed_ranks: f64,
    /// Whether weights and gradients are sharded too.
    fsdp: bool,
    /// Whether gathered weights are discarded after the forward pass.
    reshard: bool,
    /// Whether matrix multiplications accumulate gradients themselves, as in Megatron.
    pub(super) fuses_gradients: bool,
}

impl WeightState {
    pub(super) fn of(inputs: &Inputs<'_>) -> WeightState {
        let (layout, options) = (inputs.layout, inputs.options);
        let (fsdp, software) = (options.fsdp, options.software.properties());
        let shares = fsdp || software.shares_optimizer;
        let group = |ranks: f64| match options.zero_group {
            _ if !shares => 1.0,
            Some(group) => ranks.min(f64::from(group.max(1))),
            None => ranks,
        };
        let experts = layout.pp() * layout.ep() * layout.expert_tp();
        WeightState {
            weight: match software.weights {
                WeightStorage::Fp32 => FP32,
                WeightStorage::Bf16 => BF16,
                WeightStorage::Beside => quantized(inputs, false),
                WeightStorage::Alone => quantized(inputs, true),
            },
            embedding: if software.weights == WeightStorage::Fp32 { FP32 } else { BF16 },
            gradient: software.gradient_bytes,
            optimizer: match inputs.dtype {
                Dtype::Bf16 => software.optimizer_bytes,
                _ => software.narrow_optimizer_bytes,
            },
            // Context-parallel ranks hold the same weights as data-parallel ones.
            dense_ranks: group(f64::from(layout.dp() * layout.cp())),
            routed_ranks: group(f64::from(layout.gpus()) / f64::from(experts)),
            fsdp,
            reshard: options.reshard,
            fuses_gradients: software.transformer_engine && !fsdp,
        }
    }

    /// Returns the bytes of a weight with its gradient and optimizer state, if each is stored once.
    pub(super) fn least_bytes_per_weight(&self) -> f64 {
        self.weight.min(self.embedding) + self.gradient + self.optimizer
    }

    /// Returns the bytes of weights on a rank.
    pub(super) fn weights(&self, dense: f64, routed: f64, embeddings: f64) -> f64 {
        if self.fsdp {
            (self.weight * dense + self.embedding * embeddings) / self.dense_ranks
                + self.weight * routed / self.routed_ranks
        } else {
            self.weight * (dense + routed) + self.embedding * embeddings
        }
    }

    /// Returns the bytes of gradients on a rank.
    pub(super) fn gradients(&self, dense: f64, routed: f64) -> f64 {
        if self.fsdp { self.shared(self.gradient, dense, routed) } else { self.gradient * (dense + routed) }
    }

    /// Returns the bytes of optimizer state on a rank.
    pub(super) fn optimizer(&self, dense: f64, routed: f64) -> f64 {
        self.shared(self.optimizer, dense, routed)
    }

    /// Returns the peak bytes that FSDP has gathered: the current layer and the next one, one layer's
    /// gradient before it is scattered, and the embeddings, which are separate units.
    pub(super) fn gathered(&self, largest: f64, all: f64, embeddings: f64) -> f64 {
        match (self.fsdp, self.reshard) {
            (false, _) => 0.0,
            (true, true) => BF16 * (2.0 * largest + largest + 2.0 * embeddings),
            (true, false) => BF16 * (all + largest + 2.0 * embeddings),
        }
    }

    /// Returns the bytes on a rank of a state that data-parallel ranks share.
    fn shared(&self, bytes: f64, dense: f64, routed: f64) -> f64 {
        bytes * dense / self.dense_ranks + bytes * routed / self.routed_ranks
    }
}

/// Returns the bytes of a layer's weight, with the copies that matrix multiplications read.
///
/// `alone`: whether the BF16 weight is dropped where the precision allows it (`fp8_param_gather`).
fn quantized(inputs: &Inputs<'_>, alone: bool) -> f64 {
    let bf16_weight = if alone { 0.0 } else { BF16 };
    // Hopper multiplies FP8 only row by row, and keeps a transposed copy for the backward pass.
    let hopper = inputs.gpu.generation < Generation::Blackwell;
    match inputs.dtype {
        Dtype::Bf16 => BF16,
        Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed => bf16_weight + if hopper { 2.0 } else { 1.0 },
        // Both keep BF16 weights, and one copy by rows and one by columns.
        Dtype::Fp8Block => BF16 + 2.0,
        Dtype::Nvfp4 => BF16 + 2.0 * NVFP4,
        Dtype::Mxfp8 => bf16_weight + 2.0 * MXFP8,
    }
}

/// Returns the bytes per number of an activation that a matrix multiplication saves for its weight's
/// gradient.
///
/// Transformer Engine saves the operand in the precision of the multiplication; PyTorch's FP8 saves BF16.
pub(super) fn operand(inputs: &Inputs<'_>) -> f64 {
    match inputs.dtype {
        _ if !inputs.options.software.properties().transformer_engine => BF16,
        Dtype::Bf16 => BF16,
        Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed | Dtype::Fp8Block => 1.0,
        Dtype::Mxfp8 => MXFP8,
        Dtype::Nvfp4 => NVFP4,
    }
}
