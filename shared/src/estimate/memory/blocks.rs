//! Block by block: its weights on a rank, what its forward pass saves, what its backward pass takes besides.
//!
//! h hidden, H heads, K groups of keys and values, d head width, f FFN width, s sequence, t tensor parallel.

use super::activations::{Kept, Run};
use super::schedule::{KINDS, Stage};
use super::{BF16, FP32};
use crate::architecture::{Architecture, Attention, AttentionKind, Mamba, Mlp, Moe};
use crate::estimate::Inputs;
use crate::layout::Layout;
use crate::options::{Modules, Recompute};

/// Tokens that a Mamba-2 block's convolution spans, and that its scan takes at once where nothing is published.
const CONVOLUTION: f64 = 4.0;
const CHUNK: f64 = 128.0;

/// The numbers of one block on one rank.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Weights, those of routed experts apart.
    dense: f64,
    routed: f64,
    /// Weights of one matrix of each distinct shape.
    shapes: f64,
    /// Bytes that its forward pass saves of a micro batch.
    saved: f64,
    /// Bytes that are there again while its backward pass runs, because they are recomputed.
    again: f64,
    /// Bytes of gradients on their way where its backward pass holds most, besides what it saved.
    gradients: f64,
}

/// All kinds of blocks of a model.
pub(super) struct Blocks {
    kinds: [Block; KINDS],
    /// A layer of multi-token prediction, besides its blocks.
    mtp: Block,
    /// Whether each layer holds one block, so that any kind can be the last.
    hybrid: bool,
}

impl Blocks {
    pub(super) fn of(inputs: &Inputs<'_>, run: &Run) -> Blocks {
        let Architecture { attention, mlp, moe, mamba, .. } = inputs.architecture;
        let modules = inputs.options.modules;
        let mut kinds = [
            attention_block(attention, run, modules),
            mlp.as_ref().map_or(Block::default(), |mlp| mlp_block(mlp, run, modules)),
            moe.as_ref().map_or(Block::default(), |moe| moe_block(moe, run, modules, inputs.layout)),
            mamba.as_ref().map_or(Block::default(), |mamba| mamba_block(mamba, run)),
        ];
        let hybrid = mamba.is_some();
        if run.recompute == Recompute::Full {
            recompute_layers(&mut kinds, BF16 * run.hidden * run.shared_tokens, hybrid);
        }
        // Two norms, and a projection of both of their outputs side by side back to h.
        let mtp = Block {
            dense: 2.0 * run.hidden * run.hidden / run.tp,
            saved: 4.0 * BF16 * run.hidden * run.shared_tokens,
            ..Block::default()
        };
        Blocks { kinds, mtp, hybrid }
    }

    /// Weights on a rank of `stage`, dense ones and those of routed experts.
    pub(super) fn weights(&self, stage: &Stage) -> (f64, f64) {
        let sum = |of: fn(&Block) -> f64| self.sum(stage, of) + stage.mtp * of(&self.mtp);
        (sum(|block| block.dense), sum(|block| block.routed))
    }

    /// Bytes that a micro batch leaves on `stage`.
    pub(super) fn saved(&self, stage: &Stage) -> f64 {
        self.sum(stage, |block| block.saved) + stage.mtp * self.mtp.saved
    }

    /// Weights of one matrix of each shape on `stage`.
    pub(super) fn shapes(&self, stage: &Stage) -> f64 {
        self.there(stage).map(|block| block.shapes).sum()
    }

    /// Weights of the largest layer of `stage`.
    pub(super) fn largest(&self, stage: &Stage) -> f64 {
        let [attention, others @ ..] = self.kinds.map(|block| block.dense + block.routed);
        let mut largest = 0.0_f64;
        for (count, weights) in stage.blocks.iter().skip(1).zip(others) {
            if *count > 0.0 {
                largest = largest.max(weights);
            }
        }
        if self.hybrid { largest.max(attention) } else { largest + attention }
    }

    /// Bytes that the backward pass of the last layer takes where it holds most.
    ///
    /// It goes through the MLP first; when it comes to attention, what the MLP saved is gone.
    pub(super) fn backward(&self, stage: &Stage) -> f64 {
        let [attention, mlps @ ..] = &self.kinds;
        let of = |block: &Block| block.again + block.gradients;
        let mut most = 0.0_f64;
        for (count, mlp) in stage.blocks.iter().skip(1).zip(mlps) {
            if *count > 0.0 {
                let gone = if self.hybrid { 0.0 } else { mlp.saved };
                most = most.max(of(mlp)).max(of(attention) - gone);
            }
        }
        most
    }

    fn sum(&self, stage: &Stage, of: fn(&Block) -> f64) -> f64 {
        self.kinds.iter().zip(&stage.blocks).map(|(block, count)| of(block) * count).sum()
    }

    fn there<'a>(&'a self, stage: &'a Stage) -> impl Iterator<Item = &'a Block> {
        self.kinds.iter().zip(&stage.blocks).filter(|(_, count)| **count > 0.0).map(|(block, _)| block)
    }
}

/// Leaves of each layer its input alone; all else is there again while its backward pass runs.
fn recompute_layers(kinds: &mut [Block; KINDS], input: f64, hybrid: bool) {
    let [attention, mlps @ ..] = kinds;
    let layer = if hybrid { 0.0 } else { attention.saved };
    for block in mlps {
        block.again = (block.saved + layer - input).max(0.0);
        block.saved = if hybrid { input } else { 0.0 };
    }
    attention.again = attention.saved - input;
    attention.saved = input;
}

/// Attention with its norm and projections.
fn attention_block(attention: &Attention, run: &Run, modules: Modules) -> Block {
    let heads = f64::from(attention.heads);
    let lse = if run.scores == 0.0 { FP32 * heads } else { 0.0 };
    let scores = run.scores * heads;
    let (matrices, values, queries_and_keys, stream): ([(f64, f64); 5], _, _, _) = match attention.kind {
        AttentionKind::Gqa { kv_heads, head_dim } => {
            // A rank holds whole groups, if need be a copy of one.
            let groups = f64::from(kv_heads).max(run.tp);
            let width = f64::from(head_dim);
            let matrices = [
                (run.hidden, (heads + 2.0 * groups) * width / run.tp),
                (heads * width / run.tp, run.hidden),
                (0.0, 0.0),
                (0.0, 0.0),
                (0.0, 0.0),
            ];
            // Input of the norm; its output, of which the projection is fused and saves its own operand.
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
            // Each rank down from h is normed, and its norm saves its input as the projection up does its operand.
            let ranks = BF16 * (q + kv + rope) + run.operand * (q + kv);
            // Two projections read the first norm, which keeps one BF16 output or two operands.
            let norm = if modules.layernorm { BF16 } else { BF16 + (2.0 * run.operand).min(BF16) };
            (matrices, [heads * value, heads * value], 2.0 * queries, norm * run.hidden + ranks)
        }
    };
    let [value, output] = values;
    // The projection's own copy of what attention put out, where it multiplies in another precision.
    let own_copy = if run.operand < BF16 { run.operand * output } else { 0.0 };
    // Context parallelism that exchanges heads keeps its output on both sides; taken for any.
    let both_sides = if run.context { BF16 * output } else { 0.0 };
    let expanded = BF16 * (queries_and_keys + value);
    let core = expanded + BF16 * output + lse + scores + own_copy + both_sides;
    let stream = (stream + run.mask * run.hidden) * run.shared_tokens;
    let all = stream + core * run.cut_tokens;
    // Gradients of the stream and of the output; FP32 sums of the queries' and keys', and all three of them in BF16.
    let gradients = BF16 * run.hidden * run.shared_tokens
        + (BF16 * output + FP32 * queries_and_keys + expanded) * run.cut_tokens
        + if scores > 0.0 { 2.0 * BF16 * run.scores / 5.0 * heads * run.cut_tokens } else { 0.0 };
    let weights = matrices.iter().map(|(rows, columns)| rows * columns).sum();
    let is_mla = matches!(attention.kind, AttentionKind::Mla { .. });
    // The layer's input, and what attention put out.
    let least = BF16 * run.hidden * run.shared_tokens + (BF16 * output + lse) * run.cut_tokens;
    let saved = match (run.recompute, run.kept) {
        (_, Some(Kept::Attention)) => least,
        (_, Some(Kept::EveryOther)) => least + BF16 * (output + value) * run.cut_tokens,
        (Recompute::Selective, None) => all - scores * run.cut_tokens,
        _ => all,
    };
    let saved = if modules.mla_up_proj && is_mla { saved - expanded * run.cut_tokens } else { saved };
    Block { dense: weights, routed: 0.0, shapes: distinct(&matrices), saved, again: all - saved, gradients }
}

/// A dense MLP with its norm.
fn mlp_block(mlp: &Mlp, run: &Run, modules: Modules) -> Block {
    let (width, wide) = (f64::from(mlp.ffn), if mlp.gated { 2.0 } else { 1.0 });
    let matrices = [(run.hidden, wide * width / run.tp), (width / run.tp, run.hidden)];
    let input = BF16 * run.hidden * run.shared_tokens;
    let all = input
        + (run.operand + run.mask) * run.hidden * run.shared_tokens
        + (BF16 * wide + run.operand) * width * run.cut_tokens;
    // The stream's gradient is there all along. Going back, the second projection reads it gathered and writes the
    // gradient of its input; the activation function then writes that of its own, when the operand of the second
    // projection is gone; the first projection reads that and its input gathered, and writes the stream's.
    let gathered = if run.gathers { BF16 * run.hidden * run.tokens } else { 0.0 };
    let activated = BF16 * width * run.cut_tokens;
    let second = gathered + activated;
    let activation = wide * activated + activated - run.operand * width * run.cut_tokens;
    let first = gathered + BF16 * run.hidden * run.tokens - run.operand * width * run.cut_tokens;
    let saved = match run.kept {
        Some(Kept::Attention) => 0.0,
        Some(Kept::EveryOther) => BF16 * width * run.cut_tokens + BF16 * run.hidden * run.shared_tokens,
        None if modules.mlp => input,
        None => all,
    };
    Block {
        dense: matrices.iter().map(|(rows, columns)| rows * columns).sum(),
        routed: 0.0,
        shapes: distinct(&matrices),
        saved,
        again: all - saved,
        gradients: input + second.max(activation).max(first),
    }
}

/// A routed MLP with its norm, router and shared experts; tokens fall evenly on experts, as recipes force or train them.
fn moe_block(moe: &Moe, run: &Run, modules: Modules, layout: &Layout) -> Block {
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

    // Tokens that visit the experts of this rank; those of tensor-parallel experts each see the tokens of all.
    let visits = top_k * run.cut_tokens * expert_tp;
    let input = BF16 * run.hidden * run.shared_tokens;
    // BF16 for router and dispatcher, whatever the experts multiply in. FP32 scores and which experts they chose.
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
        // The exchange of tokens is listed.
        normed + routing + run.operand * width * visits
    } else {
        all - dropped(modules.moe_act, activated) - dropped(modules.shared_experts, shared_experts)
    };
    let saved = kept - dropped(modules.layernorm, normed);
    // The way back, each step into a tensor of its own: weighted, exchanged, sorted by expert, through the experts; and
    // the gradient of their activation function. None is counted as freed: measured runs of DeepSeek-V2 and -V3 hold as
    // much.
    let gradients = input + 4.0 * BF16 * width * visits + BF16 * wide * ffn / expert_tp * visits;
    Block {
        dense: run.hidden * experts + size(&shared) + size(&[down, up]),
        routed: experts / f64::from(layout.ep()) * size(&expert),
        shapes: distinct(&[expert[0], expert[1], shared[0], shared[1], down, up]),
        saved,
        again: all - saved,
        gradients,
    }
}

/// A Mamba-2 block with its norm.
fn mamba_block(mamba: &Mamba, run: &Run) -> Block {
    let [heads, head_dim, state, groups] =
        [mamba.heads, mamba.head_dim, mamba.state, mamba.groups].map(f64::from);
    let inner = heads * head_dim;
    let convolved = inner + 2.0 * groups * state;
    let projected = inner + convolved + heads;
    let matrices = [(run.hidden, projected / run.tp), (inner / run.tp, run.hidden)];
    let input = BF16 * run.hidden * run.shared_tokens;
    // The fused scan saves what was projected and what it put out; the projection its operand.
    let saved = input
        + run.operand * run.hidden * run.shared_tokens
        + (BF16 * (projected + inner) + run.operand * inner) * run.cut_tokens;
    // It convolves again, writes the states between its chunks in FP32, and the gradient of all that was projected.
    let chunk = mamba.chunk.map_or(CHUNK, f64::from);
    let states = FP32 * inner * state / chunk;
    let gradients = input + (BF16 * (inner + convolved + projected) + states) * run.cut_tokens;
    Block {
        dense: matrices.iter().map(|(rows, columns)| rows * columns).sum::<f64>()
            + (CONVOLUTION * convolved + 3.0 * heads) / run.tp,
        routed: 0.0,
        shapes: distinct(&matrices),
        saved,
        again: 0.0,
        gradients,
    }
}

/// Weights of one matrix of each shape.
fn distinct(matrices: &[(f64, f64)]) -> f64 {
    let mut weights = 0.0;
    for (index, shape) in matrices.iter().enumerate() {
        if !matrices.iter().take(index).any(|earlier| earlier == shape) {
            weights += shape.0 * shape.1;
        }
    }
    weights
}
