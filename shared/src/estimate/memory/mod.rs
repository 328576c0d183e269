//! What a GPU must hold, in closed form: every number here is the size of a tensor that has a name, and none is fitted.
//!
//! A step is at its fullest where the backward pass begins: every micro batch in flight has saved its activations, and
//! either the head or the last layer adds what its own gradients take. That moment is told stage by stage; the fullest
//! stage decides.
//!
//! Sources: Megatron-LM's `theoretical_memory_usage.py`, Megatron-Bridge's memory estimator, arXiv:2205.05198, ZeRO
//! (arXiv:1910.02054), SimuMax's list of what Transformer Engine keeps, and the code of Megatron-Core itself.

mod activations;
mod blocks;
mod reserve;
mod schedule;
mod state;

use super::Inputs;
use activations::Run;
use blocks::Blocks;
use schedule::Stage;
use serde::Serialize;
use state::State;

/// Bytes of a BF16 number, of an FP32 number.
const BF16: f64 = 2.0;
const FP32: f64 = 4.0;

/// What a GPU of one pipeline stage holds where it holds most, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StageMemory {
    /// Weights that stay, with their copies in lower precision.
    pub weights: f64,
    /// Gradients that are accumulated.
    pub gradients: f64,
    /// State of the optimizer: master weights and moments.
    pub optimizer: f64,
    /// What forward passes saved, of every micro batch in flight.
    pub activations: f64,
    /// What the loss adds, on the last stage, if it adds more than the backward pass of a layer.
    pub logits: f64,
    /// What comes and goes: gradients on their way, gathered weights, workspaces.
    pub buffers: f64,
}

impl StageMemory {
    const NOTHING: StageMemory = StageMemory {
        weights: 0.0,
        gradients: 0.0,
        optimizer: 0.0,
        activations: 0.0,
        logits: 0.0,
        buffers: 0.0,
    };

    /// Bytes in all.
    pub fn total(&self) -> f64 {
        self.weights + self.gradients + self.optimizer + self.activations + self.logits + self.buffers
    }
}

/// What the GPUs of a step must hold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// By pipeline stage, first to last.
    pub stages: Vec<StageMemory>,
    /// The fullest of them.
    pub peak_stage: usize,
    /// What a GPU has, bytes.
    pub capacity_bytes: f64,
    /// What is taken besides tensors, bytes: contexts, communicators, fragments.
    pub reserved_bytes: f64,
}

impl Memory {
    /// The memory of a step.
    pub fn of(inputs: &Inputs<'_>) -> Memory {
        let terms = Terms::of(inputs);
        let stages: Vec<StageMemory> =
            schedule::stages(inputs).map(|stage| terms.on(&stage, inputs)).collect();
        let mut peak_stage = 0;
        let mut peak = 0.0;
        for (index, stage) in stages.iter().enumerate() {
            if stage.total() > peak {
                (peak_stage, peak) = (index, stage.total());
            }
        }
        Memory {
            stages,
            peak_stage,
            capacity_bytes: reserve::capacity(inputs.gpu),
            reserved_bytes: reserve::reserved(inputs, peak),
        }
    }

    /// The fullest stage.
    pub fn peak(&self) -> &StageMemory {
        self.stages.get(self.peak_stage).unwrap_or(&StageMemory::NOTHING)
    }

    /// Tensors of the fullest GPU, bytes: what PyTorch calls max allocated.
    pub fn total_bytes(&self) -> f64 {
        self.peak().total()
    }

    /// What is left on the fullest GPU, bytes; negative if it does not fit.
    pub fn margin_bytes(&self) -> f64 {
        self.capacity_bytes - self.reserved_bytes - self.total_bytes()
    }

    /// Whether the fullest GPU holds it all.
    pub fn fits(&self) -> bool {
        self.margin_bytes() >= 0.0
    }
}

/// [`Memory::total_bytes`], bytes, without writing the stages down.
pub fn peak_bytes(inputs: &Inputs<'_>) -> f64 {
    let terms = Terms::of(inputs);
    let mut peak = 0.0;
    let mut before: Option<Stage> = None;
    for stage in schedule::stages(inputs) {
        // In the middle of a pipeline, a stage of the same layers as the one before has fewer micro batches in flight.
        let less = before.is_some_and(|before| stage.is_within(&before));
        if !less {
            let total = terms.on(&stage, inputs).total();
            if total > peak {
                peak = total;
            }
        }
        before = Some(stage);
    }
    peak
}

/// [`Memory::fits`], without writing the stages down.
pub fn fits(inputs: &Inputs<'_>) -> bool {
    let peak = peak_bytes(inputs);
    reserve::capacity(inputs.gpu) - reserve::reserved(inputs, peak) - peak >= 0.0
}

/// All that the stages share.
struct Terms {
    run: Run,
    blocks: Blocks,
    state: State,
}

impl Terms {
    fn of(inputs: &Inputs<'_>) -> Terms {
        let run = Run::of(inputs);
        Terms { blocks: Blocks::of(inputs, &run), state: State::of(inputs), run }
    }

    /// What a GPU of `stage` holds.
    fn on(&self, stage: &Stage, inputs: &Inputs<'_>) -> StageMemory {
        let (run, blocks, state) = (&self.run, &self.blocks, &self.state);
        let (dense, routed) = blocks.weights(stage);
        // The first stage looks words up, the last multiplies with them: even tied, those are one tensor only where they
        // meet. Multi-token prediction looks words up on the last stage.
        let mtp_embedding = stage.is_last && !stage.is_first && run.mtp > 0.0;
        let tied = inputs.architecture.tied_embeddings && stage.is_first && stage.is_last;
        let words = run.vocab * run.hidden;
        let head = f64::from(stage.is_last) * words;
        let embeddings = head + f64::from((stage.is_first && !tied) || mtp_embedding) * words;

        // Transformer Engine adds gradients up as it multiplies, and gives PyTorch an empty one of each shape, which it
        // keeps. The head's is there as long as the backward pass goes.
        let standing = if state.fuses_gradients { BF16 * (blocks.shapes(stage) + head) } else { 0.0 };
        // The gradient that the stage before is still being sent.
        let sent = if stage.is_first { 0.0 } else { BF16 * run.hidden * run.shared_tokens };
        // The backward pass begins with the loss, and goes on with the last layer.
        let (loss, layer) = (if stage.is_last { run.loss() } else { 0.0 }, blocks.backward(stage));
        let (logits, layer) = if loss > layer { (loss, 0.0) } else { (0.0, layer) };
        StageMemory {
            weights: state.weights(dense, routed, embeddings),
            gradients: state.gradients(dense + embeddings, routed),
            optimizer: state.optimizer(dense + embeddings, routed),
            activations: stage.in_flight * blocks.saved(stage),
            logits,
            buffers: layer
                + standing
                + sent
                + state.gathered(blocks.largest(stage), dense + routed, embeddings)
                + run.workspaces(stage.is_last),
        }
    }
}

#[cfg(test)]
mod tests;
