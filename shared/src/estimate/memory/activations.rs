//! The terms that all blocks share: the tokens of a micro batch, how parallelism divides them, and the loss.

use super::BF16;
use super::state::operand;
use crate::catalog::Generation;
use crate::estimate::Inputs;
use crate::options::Recompute;
use crate::precision::Dtype;

/// Bytes in a MiB.
const MIB: f64 = 1_048_576.0;

/// The outputs that PyTorch's selective recomputation keeps, as torchtitan lists them (`_save_list`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SavedOutputs {
    /// Attention and every other matrix multiplication: queries, values, the MLP's first and last.
    EveryOther,
    /// Attention only: the list has no FP8 multiplication.
    Attention,
}

/// The sizes of a micro batch on one rank.
pub(super) struct MicroBatch {
    /// Width of the residual stream.
    pub(super) hidden: f64,
    /// Vocabulary per tensor-parallel rank.
    pub(super) vocab: f64,
    /// Layers of multi-token prediction.
    pub(super) mtp: f64,
    /// Tokens of a micro batch on a rank.
    pub(super) tokens: f64,
    /// `tokens` divided by TP. A full width `w` that tensor parallelism splits takes `w · cut_tokens`.
    pub(super) cut_tokens: f64,
    /// Tokens of the residual stream, divided by TP with sequence parallelism.
    pub(super) shared_tokens: f64,
    /// Whether matrix multiplications gather the sequence (sequence parallelism).
    pub(super) gathers: bool,
    /// Degree of tensor parallelism.
    pub(super) tp: f64,
    /// Bytes of a gathered sequence that each column-parallel projection saves; 0 if the backward pass gathers it again.
    pub(super) saved_gathered: f64,
    /// Whether each PyTorch operation saves its own operands.
    pub(super) eager: bool,
    /// Whether context parallelism divides the sequence.
    pub(super) context: bool,
    /// Bytes per number of a saved operand of a matrix multiplication.
    pub(super) operand: f64,
    /// Whether the layers are Megatron-Core's on Transformer Engine.
    pub(super) transformer_engine: bool,
    /// Bytes of attention scores saved per token and head; 0 with fused attention.
    pub(super) scores: f64,
    /// Bytes of the dropout mask per token and number; 0 without dropout, as in every newer model.
    pub(super) mask: f64,
    pub(super) recompute: Recompute,
    /// Outputs kept by PyTorch's selective recomputation; `None` for Megatron's, which recomputes modules.
    pub(super) kept: Option<SavedOutputs>,
    /// Bytes of logits and of the loss's intermediate results, per token and word.
    logits: f64,
    /// Number of cuBLAS workspaces.
    workspaces: f64,
    /// Bytes of one workspace.
    workspace: f64,
}

impl MicroBatch {
    pub(super) fn of(inputs: &Inputs<'_>) -> MicroBatch {
        let (architecture, layout, batch, options) =
            (inputs.architecture, inputs.layout, inputs.batch, inputs.options);
        let software = options.software.properties();
        let tp = f64::from(layout.tp());
        let shares = options.shares_sequence() && layout.tp() > 1;
        let tokens = f64::from(batch.mbs()) * f64::from(batch.seq_len()) / f64::from(layout.cp());
        let fused = software.fuses_attention();
        let transformer_engine = software.transformer_engine;
        MicroBatch {
            hidden: f64::from(architecture.hidden),
            vocab: f64::from(architecture.vocab) / tp,
            mtp: f64::from(architecture.mtp_layers),
            tokens,
            cut_tokens: tokens / tp,
            shared_tokens: if shares { tokens / tp } else { tokens },
            gathers: shares,
            saved_gathered: match shares && software.saves_gathered {
                true => BF16 * f64::from(architecture.hidden) * tokens * (1.0 - 1.0 / tp),
                false => 0.0,
            },
            eager: software.eager,
            tp,
            context: layout.cp() > 1,
            operand: operand(inputs),
            transformer_engine,
            // Softmax, its copy after dropout, and a mask of one byte: 5 bytes, arXiv:2205.05198 eq. 2.
            scores: if fused { 0.0 } else { 5.0 * f64::from(batch.seq_len()) / f64::from(layout.cp()) },
            mask: if fused { 0.0 } else { 1.0 },
            recompute: options.recompute,
            kept: (options.recompute == Recompute::Selective && software.pytorch).then_some(
                match inputs.dtype {
                    Dtype::Bf16 => SavedOutputs::EveryOther,
                    _ => SavedOutputs::Attention,
                },
            ),
            logits: software.logits_bytes,
            // One for PyTorch, one for Transformer Engine, and one for each of its four expert streams.
            workspaces: 1.0
                + f64::from(transformer_engine)
                + if transformer_engine && architecture.moe.is_some() { 4.0 } else { 0.0 },
            // 32 MiB from Hopper on; PyTorch uses 8 MiB before.
            workspace: MIB * if inputs.gpu.generation >= Generation::Hopper { 32.0 } else { 8.0 },
        }
    }

    /// Returns the peak bytes of the loss: logits, the normed stream before them, and its gradient.
    pub(super) fn loss(&self) -> f64 {
        let logits = self.logits * (1.0 + self.mtp) * self.vocab * self.tokens;
        let norm = 2.0 * BF16 * self.hidden * self.shared_tokens;
        let gradient = BF16 * self.hidden * self.tokens;
        let scattered = if self.gathers { BF16 * self.hidden * self.shared_tokens } else { 0.0 };
        logits + norm + gradient + scattered
    }

    /// Returns the bytes of permanent buffers: cuBLAS workspaces, and the gathered sequence of Megatron's
    /// head.
    pub(super) fn workspaces(&self, is_last: bool) -> f64 {
        let gathered = is_last && self.gathers && self.transformer_engine;
        self.workspace * self.workspaces + if gathered { BF16 * self.hidden * self.tokens } else { 0.0 }
    }
}
