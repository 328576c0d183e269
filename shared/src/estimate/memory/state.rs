//! Weights, gradients and optimizer state: bytes per weight, and over how many ranks they are shared.

use super::{BF16, FP32};
use crate::estimate::Inputs;
use crate::options::Stack;
use crate::precision::Dtype;

/// Bytes of Adam's two moments, FP32 each.
const MOMENTS: f64 = 2.0 * FP32;
/// An MXFP8 number with its share of a scale for 32 of them, an NVFP4 number with that of a scale for 16.
const MXFP8: f64 = 1.0 + 1.0 / 32.0;
const NVFP4: f64 = 0.5 + 1.0 / 16.0;

/// Bytes per weight of a rank, before they are shared.
pub(super) struct State {
    /// A weight of a layer; the embeddings stay in `embedding`.
    weight: f64,
    embedding: f64,
    gradient: f64,
    optimizer: f64,
    /// Ranks that share the optimizer state of the dense weights and of the routed experts.
    dense_ranks: f64,
    routed_ranks: f64,
    /// Whether weights and gradients are shared as well, and dropped after the forward pass.
    fsdp: bool,
    reshard: bool,
    /// Whether matrix multiplications add their gradients up themselves, as Megatron's do.
    pub(super) fuses_gradients: bool,
}

impl State {
    pub(super) fn of(inputs: &Inputs<'_>) -> State {
        let (layout, options) = (inputs.layout, inputs.options);
        let (fsdp, stack) = (options.fsdp, options.stack);
        let [weight, gradient, optimizer] = per_weight(inputs);
        let shares = fsdp || shares_optimizer(stack);
        let group = |ranks: f64| match options.zero_group {
            _ if !shares => 1.0,
            Some(group) => ranks.min(f64::from(group.max(1))),
            None => ranks,
        };
        let experts = layout.pp() * layout.ep() * layout.expert_tp();
        State {
            weight,
            embedding: if keeps_fp32_weights(stack) { FP32 } else { BF16 },
            gradient,
            optimizer,
            // Context-parallel ranks hold the same weights as data-parallel ones.
            dense_ranks: group(f64::from(layout.dp() * layout.cp())),
            routed_ranks: group(f64::from(layout.gpus()) / f64::from(experts)),
            fsdp,
            reshard: options.reshard,
            fuses_gradients: runs_transformer_engine(stack) && !fsdp,
        }
    }

    pub(super) fn weights(&self, dense: f64, routed: f64, embeddings: f64) -> f64 {
        if self.fsdp {
            (self.weight * dense + self.embedding * embeddings) / self.dense_ranks
                + self.weight * routed / self.routed_ranks
        } else {
            self.weight * (dense + routed) + self.embedding * embeddings
        }
    }

    pub(super) fn gradients(&self, dense: f64, routed: f64) -> f64 {
        if self.fsdp { self.shared(self.gradient, dense, routed) } else { self.gradient * (dense + routed) }
    }

    pub(super) fn optimizer(&self, dense: f64, routed: f64) -> f64 {
        self.shared(self.optimizer, dense, routed)
    }

    /// What FSDP has gathered where it holds most: the layer at work and the one after it, the gradient of the one
    /// before until it is shared, and the embeddings, which are units of their own.
    pub(super) fn gathered(&self, largest: f64, all: f64, embeddings: f64) -> f64 {
        match (self.fsdp, self.reshard) {
            (false, _) => 0.0,
            (true, true) => BF16 * (2.0 * largest + largest + 2.0 * embeddings),
            (true, false) => BF16 * (all + largest + 2.0 * embeddings),
        }
    }

    fn shared(&self, bytes: f64, dense: f64, routed: f64) -> f64 {
        bytes * dense / self.dense_ranks + bytes * routed / self.routed_ranks
    }
}

/// Bytes of a weight, of its gradient and of its optimizer state.
fn per_weight(inputs: &Inputs<'_>) -> [f64; 3] {
    let stack = inputs.options.stack;
    // Beside BF16 weights, the optimizers of NVIDIA's recipes store only what FP32 has more: the other 16 bits
    // (`store_param_remainders`, of Apex in NeMo 1, of the precision-aware optimizer and of AutoModel since).
    let remainder = BF16 + MOMENTS;
    let master = FP32 + MOMENTS;
    match stack {
        // PyTorch's own mixed precision: the weights are the FP32 master, and so are their gradients.
        _ if keeps_fp32_weights(stack) => [FP32, FP32, MOMENTS],
        Stack::AutoModel => [BF16, BF16, remainder],
        // DeepSpeed's BF16 optimizer: gradients in BF16, and added up in FP32.
        Stack::MegatronDeepSpeed => [BF16, BF16 + FP32, master],
        // Gradients in BF16; the optimizer takes its share of them in FP32.
        Stack::InternEvo => [BF16, BF16, master + FP32],
        Stack::MegatronLm2021 | Stack::MegatronLm2022 | Stack::Meta => [BF16, FP32, master],
        // As distributed, Megatron-LM keeps BF16 weights beside those of lower precision, and FP32 gradients.
        Stack::MegatronLm014 => [quantized(inputs, false), FP32, master],
        // NVIDIA's recipes train on the quantized weights alone, and set `grad_reduce_in_fp32` to false.
        _ if inputs.dtype == Dtype::Bf16 => [BF16, BF16, remainder],
        _ => [quantized(inputs, true), BF16, master],
    }
}

/// Bytes of a layer's weight, with the copies that matrix multiplications read.
///
/// `alone`: without a BF16 weight beside, where the precision allows it (`fp8_param_gather`).
fn quantized(inputs: &Inputs<'_>, alone: bool) -> f64 {
    let beside = if alone { 0.0 } else { BF16 };
    // Hopper multiplies FP8 by rows alone, and keeps a transposed copy for the backward pass.
    let hopper = inputs.gpu.nvfp4_tflops.is_none();
    match inputs.dtype {
        Dtype::Bf16 => BF16,
        Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed => beside + if hopper { 2.0 } else { 1.0 },
        // Neither trains on quantized weights alone: BF16, and a copy by rows and one by columns.
        Dtype::Fp8Block => BF16 + 2.0,
        Dtype::Nvfp4 => BF16 + 2.0 * NVFP4,
        Dtype::Mxfp8 => beside + 2.0 * MXFP8,
    }
}

/// Bytes per number of an activation that a matrix multiplication saves for its weight's gradient.
///
/// Transformer Engine saves what it multiplied, in the precision it multiplied in; PyTorch's own FP8 keeps BF16.
pub(super) fn operand(inputs: &Inputs<'_>) -> f64 {
    match inputs.dtype {
        _ if !runs_transformer_engine(inputs.options.stack) => BF16,
        Dtype::Bf16 => BF16,
        Dtype::Fp8 | Dtype::Fp8Current | Dtype::Fp8Delayed | Dtype::Fp8Block => 1.0,
        Dtype::Mxfp8 => MXFP8,
        Dtype::Nvfp4 => NVFP4,
    }
}

/// Whether the layers are Megatron-Core's on Transformer Engine.
pub(super) fn runs_transformer_engine(stack: Stack) -> bool {
    stack.is_nvidia_megatron() || stack == Stack::MegatronLm014
}

/// Whether data and pipeline parallelism are PyTorch's own.
pub(super) fn is_pytorch(stack: Stack) -> bool {
    keeps_fp32_weights(stack) || stack == Stack::AutoModel
}

/// Whether weights are kept in FP32, and made BF16 as they are gathered.
fn keeps_fp32_weights(stack: Stack) -> bool {
    matches!(stack, Stack::Composer | Stack::Torchtitan | Stack::PytorchFsdp)
}

/// Whether data-parallel ranks share the optimizer state without FSDP.
fn shares_optimizer(stack: Stack) -> bool {
    !is_pytorch(stack) && !matches!(stack, Stack::MegatronLm2021 | Stack::MegatronLm2022)
}
