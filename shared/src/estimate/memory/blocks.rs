//! The weights, saved activations and gradients of each kind of block on one rank.
//!
//! Symbols: h hidden width, H heads, K key-value groups, d head width, f FFN width, s sequence length, t TP.

use super::activations::{MicroBatch, SavedOutputs};
use super::schedule::StageBlocks;
use super::{BF16, FP32};
use crate::architecture::{
    Architecture, Attention, AttentionKind, CONVOLUTION, LinearAttention, Mamba, Mlp, Moe,
};
use crate::estimate::Inputs;
use crate::estimate::kinds::PerKind;
use crate::layout::Layout;
use crate::options::{Modules, Recompute};

/// Tokens that a Mamba-2 scan processes at once, unless the model's chunk size is published.
const CHUNK: f64 = 128.0;
/// Tokens that linear attention processes at once in the kernels of flash-linear-attention, which every framework uses.
const LINEAR_CHUNK: f64 = 64.0;

/// The sizes of one block on one rank.
#[derive(Debug, Clone, Copy, Default)]
struct BlockSize {
    /// Weights outside routed experts.
    dense: f64,
    /// Weights of routed experts.
    routed: f64,
    /// Weights of one matrix of each shape.
    shapes: f64,
    /// Bytes that its forward pass saves per micro batch.
    saved: f64,
    /// Bytes of recomputed activations during its backward pass.
    again: f64,
    /// Peak bytes of temporary gradients during its backward pass.
    gradients: f64,
}

/// The sizes of every kind of block of a model.
pub(super) struct BlockSizes {
    kinds: PerKind<BlockSize>,
    /// A layer of multi-token prediction, without its blocks.
    mtp: BlockSize,
    /// Whether a layer has one block instead of attention and an MLP.
    hybrid: bool,
}

/// The sizes of all blocks of a stage on one rank.
pub(super) struct StageSizes {
    /// Weights outside routed experts.
    pub(super) dense: f64,
    /// Weights of routed experts.
    pub(super) routed: f64,
    /// Bytes that its forward pass saves per micro batch.
    pub(super) saved: f64,
}

impl BlockSizes {
    pub(super) fn of(inputs: &Inputs<'_>, run: &MicroBatch) -> BlockSizes {
        let Architecture { attention, linear, mlp, moe, mamba, .. } = inputs.architecture;
        let modules = inputs.options.modules;
        let mut kinds = PerKind {
            attention: attention_block(attention, run, modules),
            mlp: mlp.as_ref().map_or(BlockSize::default(), |mlp| mlp_block(mlp, run, modules)),
            moe: moe.as_ref().map_or(BlockSize::default(), |moe| moe_block(moe, run, modules, inputs.layout)),
            mamba: mamba.as_ref().map_or(BlockSize::default(), |mamba| mamba_block(mamba, run)),
            linear: linear.as_ref().map_or(BlockSize::default(), |linear| linear_block(linear, run)),
        };
        let hybrid = mamba.is_some();
        if run.recompute == Recompute::Full {
            recompute_layers(&mut kinds, BF16 * run.hidden * run.shared_tokens, hybrid);
        }
        // Two norms, and a projection of their concatenated outputs back to h.
        let mtp = BlockSize {
            dense: 2.0 * run.hidden * run.hidden / run.tp,
            saved: 4.0 * BF16 * run.hidden * run.shared_tokens,
            ..BlockSize::default()
        };
        BlockSizes { kinds, mtp, hybrid }
    }

    /// Returns the sizes of all blocks of `stage`.
    pub(super) fn sizes(&self, stage: &StageBlocks) -> StageSizes {
        let mut sizes = StageSizes { dense: 0.0, routed: 0.0, saved: 0.0 };
        let mut add = |block: &BlockSize, count: f64| {
            sizes.dense += block.dense * count;
            sizes.routed += block.routed * count;
            sizes.saved += block.saved * count;
        };
        for (block, count) in self.kinds.all().into_iter().zip(stage.blocks.all()) {
            add(block, *count);
        }
        add(&self.mtp, stage.mtp);
        sizes
    }

    /// Returns the weights of one matrix of each shape on `stage`.
    pub(super) fn shapes(&self, stage: &StageBlocks) -> f64 {
        self.present(stage).map(|block| block.shapes).sum()
    }

    /// Returns the weights of the largest layer of `stage`.
    pub(super) fn largest(&self, stage: &StageBlocks) -> f64 {
        let weights = self.kinds.map(|block| block.dense + block.routed);
        let mut largest = 0.0_f64;
        for (count, weights) in stage.blocks.after_attention().into_iter().zip(weights.after_attention()) {
            if *count > 0.0 {
                largest = largest.max(*weights);
            }
        }
        if self.hybrid {
            return largest.max(weights.attention);
        }
        let linear = if stage.blocks.linear > 0.0 { weights.linear } else { 0.0 };
        largest + weights.attention.max(linear)
    }

    /// Returns the peak bytes that the backward pass of the last layer adds.
    ///
    /// It runs through the MLP first; the MLP's saved activations are free when attention begins.
    pub(super) fn backward(&self, stage: &StageBlocks) -> f64 {
        let of = |block: &BlockSize| block.again + block.gradients;
        let linear = if stage.blocks.linear > 0.0 { of(&self.kinds.linear) } else { 0.0 };
        let mixer = of(&self.kinds.attention).max(linear);
        let mut most = 0.0_f64;
        for (count, mlp) in stage.blocks.after_attention().into_iter().zip(self.kinds.after_attention()) {
            if *count > 0.0 {
                let freed = if self.hybrid { 0.0 } else { mlp.saved };
                most = most.max(of(mlp)).max(mixer - freed);
            }
        }
        most
    }

    /// Iterates over the kinds of blocks on `stage`.
    fn present<'a>(&'a self, stage: &'a StageBlocks) -> impl Iterator<Item = &'a BlockSize> {
        let blocks = self.kinds.all().into_iter().zip(stage.blocks.all());
        blocks.filter(|(_, count)| **count > 0.0).map(|(block, _)| block)
    }
}

/// Applies full recomputation: each layer saves only its input, and recomputes the rest in the backward pass.
fn recompute_layers(kinds: &mut PerKind<BlockSize>, input: f64, hybrid: bool) {
    let PerKind { attention, mlp, moe, mamba, linear } = kinds;
    let layer = if hybrid { 0.0 } else { attention.saved.max(linear.saved) };
    for block in [mlp, moe, mamba] {
        block.again = (block.saved + layer - input).max(0.0);
        block.saved = if hybrid { input } else { 0.0 };
    }
    for mixer in [attention, linear] {
        mixer.again = (mixer.saved - input).max(0.0);
        mixer.saved = mixer.saved.min(input);
    }
}

/// Attention with its norm and projections.
fn attention_block(attention: &Attention, run: &MicroBatch, modules: Modules) -> BlockSize {
    let heads = f64::from(attention.heads);
    let lse = if run.scores == 0.0 { FP32 * heads } else { 0.0 };
    let scores = run.scores * heads;
    let (matrices, values, queries_and_keys, stream): ([(f64, f64); 5], _, _, _) = match attention.kind {
        AttentionKind::Gqa { kv_heads, head_dim } => {
            // A rank holds whole groups, replicated if there are fewer than ranks.
            let groups = f64::from(kv_heads).max(run.tp);
            let width = f64::from(head_dim);
            let matrices = [
                (run.hidden, ((heads + 2.0 * groups) * width + attention.gate_width()) / run.tp),
                (heads * width / run.tp, run.hidden),
                (0.0, 0.0),
                (0.0, 0.0),
                (0.0, 0.0),
            ];
            // The norm's input, and its output as the operand of the fused projection.
            let stream = (BF16 + run.operand) * run.hidden;
            (matrices, [groups * width, heads * width], (heads + groups) * width, stream)
        }
        AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
            let [q, kv, nope, rope, value] = [q_lora, kv_lora, qk_nope, qk_rope, v_head].map(f64::from);
            let queries = heads * (nope + rope);
            let matrices = [
                (run.hidden, if q_lora == 0 { queries / run.tp } else { q }),
                (q, queries / run.tp),
                (run.hidden, kv + rope),
                (kv, heads * (nope + value) / run.tp),
                (heads * value / run.tp, run.hidden),
            ];
            // Each low-rank projection is normed: the norm saves its input, the next projection its operand.
            let ranks = BF16 * (q + kv + rope) + run.operand * (q + kv);
            // Two projections read the first norm, which saves one BF16 output or two operands.
            let norm = if modules.layernorm { BF16 } else { BF16 + (2.0 * run.operand).min(BF16) };
            (matrices, [heads * value, heads * value], 2.0 * queries, norm * run.hidden + ranks)
        }
    };
    let [value, output] = values;
    // The output projection's operand, if it multiplies in a lower precision.
    let own_copy = if run.operand < BF16 { run.operand * output } else { 0.0 };
    // Context parallelism by exchange of heads saves its output before and after; assumed for every kind.
    let both_sides = if run.context { BF16 * output } else { 0.0 };
    let expanded = BF16 * (queries_and_keys + value);
    // The rotary embedding saves queries and keys before and after.
    let rotated = if run.eager { BF16 * queries_and_keys } else { 0.0 };
    // The gate, and the output before it.
    let gate = 2.0 * BF16 * attention.gate_width();
    let core = expanded + rotated + BF16 * output + lse + scores + own_copy + both_sides + gate;
    let stream = (stream + run.mask * run.hidden) * run.shared_tokens + run.saved_gathered;
    let all = stream + core * run.cut_tokens;
    // Gradients of the stream and of the output, FP32 sums for queries and keys, and BF16 gradients of all
    // three.
    let gradients = BF16 * run.hidden * run.shared_tokens
        + (BF16 * output + FP32 * queries_and_keys + expanded) * run.cut_tokens
        + if scores > 0.0 { 2.0 * BF16 * run.scores / 5.0 * heads * run.cut_tokens } else { 0.0 };
    let weights = matrices.iter().map(|(rows, columns)| rows * columns).sum();
    let is_mla = matches!(attention.kind, AttentionKind::Mla { .. });
    // The layer's input and attention's output.
    let least = BF16 * run.hidden * run.shared_tokens + (BF16 * output + lse) * run.cut_tokens;
    let saved = match (run.recompute, run.kept) {
        (_, Some(SavedOutputs::Attention)) => least,
        (_, Some(SavedOutputs::EveryOther)) => least + BF16 * (output + value) * run.cut_tokens,
        (Recompute::Selective, None) => all - scores * run.cut_tokens,
        _ => all,
    };
    let saved = if modules.mla_up_proj && is_mla { saved - expanded * run.cut_tokens } else { saved };
    BlockSize {
        dense: weights,
        routed: 0.0,
        shapes: distinct(&matrices),
        saved,
        again: all - saved,
        gradients,
    }
}

/// A dense MLP with its norm.
fn mlp_block(mlp: &Mlp, run: &MicroBatch, modules: Modules) -> BlockSize {
    let (width, wide) = (f64::from(mlp.ffn), if mlp.gated { 2.0 } else { 1.0 });
    let matrices = [(run.hidden, wide * width / run.tp), (width / run.tp, run.hidden)];
    let input = BF16 * run.hidden * run.shared_tokens;
    // The product of the gate and the values saves the activated gate.
    let activated_gate = if run.eager && mlp.gated { BF16 } else { 0.0 };
    let all = input
        + (run.operand + run.mask) * run.hidden * run.shared_tokens
        + run.saved_gathered
        + (BF16 * wide + activated_gate + run.operand) * width * run.cut_tokens;
    // The stream's gradient exists throughout. The backward pass of the second projection gathers it and
    // writes the gradient of its input. Then its operand is freed, and the activation function writes the
    // gradient of its own input. The first projection reads that gradient and its gathered input, and writes
    // the stream's gradient.
    let gathered = if run.gathers { BF16 * run.hidden * run.tokens } else { 0.0 };
    let activated = BF16 * width * run.cut_tokens;
    let second = gathered + activated;
    let activation = wide * activated + activated - run.operand * width * run.cut_tokens;
    let first = gathered + BF16 * run.hidden * run.tokens - run.operand * width * run.cut_tokens;
    let saved = match run.kept {
        Some(SavedOutputs::Attention) => 0.0,
        Some(SavedOutputs::EveryOther) => {
            BF16 * width * run.cut_tokens + BF16 * run.hidden * run.shared_tokens
        }
        None if modules.mlp => input,
        None => all,
    };
    BlockSize {
        dense: matrices.iter().map(|(rows, columns)| rows * columns).sum(),
        routed: 0.0,
        shapes: distinct(&matrices),
        saved,
        again: all - saved,
        gradients: input + second.max(activation).max(first),
    }
}

/// A routed MLP with its norm, router and shared experts, with balanced routing.
fn moe_block(moe: &Moe, run: &MicroBatch, modules: Modules, layout: &Layout) -> BlockSize {
    let wide = if moe.gated { 2.0 } else { 1.0 };
    let [experts, top_k, ffn, shared_ffn] = [moe.experts, moe.top_k, moe.ffn, moe.shared_ffn].map(f64::from);
    let expert_tp = f64::from(layout.expert_tp());
    let latent = moe.latent.map(f64::from);
    let width = latent.unwrap_or(run.hidden);
    let expert = [(width, wide * ffn / expert_tp), (ffn / expert_tp, width)];
    let shared = [(run.hidden, wide * shared_ffn / run.tp), (shared_ffn / run.tp, run.hidden)];
    let down = (run.hidden, latent.unwrap_or(0.0));
    let up = (latent.unwrap_or(0.0), run.hidden);
    let size = |matrices: &[(f64, f64)]| matrices.iter().map(|(rows, columns)| rows * columns).sum::<f64>();

    // Tokens that the experts of this rank process. Tensor-parallel experts each see the tokens of all their
    // ranks.
    let visits = top_k * run.cut_tokens * expert_tp;
    let input = BF16 * run.hidden * run.shared_tokens;
    // Router and dispatcher use BF16 in every precision; scores and chosen experts take FP32 each.
    let normed = BF16 * run.hidden * run.shared_tokens;
    let routing = 2.0 * FP32 * experts * run.shared_tokens;
    let between = run.operand * latent.unwrap_or(0.0) * run.shared_tokens;
    let activated = run.operand * ffn / expert_tp * visits;
    let dispatched = run.operand * width * visits + BF16 * wide * ffn / expert_tp * visits + activated;
    let shared_copy = if run.operand < BF16 && shared_ffn > 0.0 {
        run.operand * run.hidden * run.shared_tokens
    } else {
        0.0
    };
    let shared_experts = shared_copy + (BF16 * wide + run.operand) * shared_ffn * run.cut_tokens;
    let all = input + normed + routing + between + dispatched + shared_experts;
    let dropped = |is: bool, bytes: f64| if is { bytes } else { 0.0 };
    let kept = if modules.moe {
        input + normed
    } else if run.kept.is_some() {
        // PyTorch's list keeps the output of the token exchange.
        normed + routing + run.operand * width * visits
    } else {
        all - dropped(modules.moe_act, activated) - dropped(modules.shared_experts, shared_experts)
    };
    let saved = kept - dropped(modules.layernorm, normed);
    // The backward pass writes a tensor in each of four steps (weighting, exchange, sorting, experts), and
    // the gradient of the activation function. None is counted as freed, which matches measured runs of
    // DeepSeek-V2 and -V3.
    let gradients = input + 4.0 * BF16 * width * visits + BF16 * wide * ffn / expert_tp * visits;
    BlockSize {
        dense: run.hidden * experts + size(&shared) + size(&[down, up]),
        routed: experts / f64::from(layout.ep()) * size(&expert),
        shapes: distinct(&[expert[0], expert[1], shared[0], shared[1], down, up]),
        saved,
        again: all - saved,
        gradients,
    }
}

/// A Mamba-2 block with its norm.
fn mamba_block(mamba: &Mamba, run: &MicroBatch) -> BlockSize {
    let [heads, head_dim, state, groups] =
        [mamba.heads, mamba.head_dim, mamba.state, mamba.groups].map(f64::from);
    let inner = heads * head_dim;
    let convolved = inner + 2.0 * groups * state;
    let projected = inner + convolved + heads;
    let matrices = [(run.hidden, projected / run.tp), (inner / run.tp, run.hidden)];
    let input = BF16 * run.hidden * run.shared_tokens;
    // The fused scan saves its input and output; the projection saves its operand.
    let saved = input
        + run.operand * run.hidden * run.shared_tokens
        + (BF16 * (projected + inner) + run.operand * inner) * run.cut_tokens;
    // It recomputes the convolution, writes FP32 states between chunks, and the gradient of its input.
    let chunk = mamba.chunk.map_or(CHUNK, f64::from);
    let states = FP32 * inner * state / chunk;
    let gradients = input + (BF16 * (inner + convolved + projected) + states) * run.cut_tokens;
    BlockSize {
        dense: matrices.iter().map(|(rows, columns)| rows * columns).sum::<f64>()
            + (CONVOLUTION * convolved + 3.0 * heads) / run.tp,
        routed: 0.0,
        shapes: distinct(&matrices),
        saved,
        again: 0.0,
        gradients,
    }
}

/// A block of linear attention with its norm.
fn linear_block(linear: &LinearAttention, run: &MicroBatch) -> BlockSize {
    let (projected, convolved) = (linear.projected_width(), linear.convolved_width());
    let (keys, values, heads) =
        (linear.repeated_key_width(), linear.value_width(), f64::from(linear.value_heads));
    let matrices = [(run.hidden, projected / run.tp), (values / run.tp, run.hidden)];
    let input = BF16 * run.hidden * run.shared_tokens;
    // The convolution saves its input; the scan saves queries, keys, values and a square matrix of each chunk; the gated norm
    // saves its input, and the projection its operand.
    let scanned = 2.0 * keys + values;
    let saved = input
        + run.operand * run.hidden * run.shared_tokens
        + (BF16 * (projected + scanned + LINEAR_CHUNK * heads + values) + run.operand * values)
            * run.cut_tokens;
    // It computes the states between chunks again, and writes the gradients of all its inputs.
    let states = FP32 * keys * f64::from(linear.value_dim) / LINEAR_CHUNK;
    let gradients = input + (BF16 * (scanned + convolved + projected) + states) * run.cut_tokens;
    BlockSize {
        dense: matrices.iter().map(|(rows, columns)| rows * columns).sum::<f64>()
            + (CONVOLUTION * convolved + 2.0 * heads) / run.tp,
        routed: 0.0,
        shapes: distinct(&matrices),
        saved,
        again: 0.0,
        gradients,
    }
}

/// Returns the weights of one matrix of each shape.
fn distinct(matrices: &[(f64, f64)]) -> f64 {
    let mut weights = 0.0;
    for (index, shape) in matrices.iter().enumerate() {
        if !matrices.iter().take(index).any(|earlier| earlier == shape) {
            weights += shape.0 * shape.1;
        }
    }
    weights
}
