//! The memory of a GPU, in closed form: every term is the size of a known tensor, and none is fitted.
//!
//! Memory peaks where the backward pass begins: every micro batch in flight has saved its activations, and
//! either the head or the last layer adds its own gradients. That moment is computed for each stage; the
//! fullest stage decides.
//!
//! Sources: Megatron-LM's `theoretical_memory_usage.py`, Megatron-Bridge's memory estimator,
//! arXiv:2205.05198, ZeRO (arXiv:1910.02054), SimuMax's list of the tensors that Transformer Engine keeps,
//! and the code of Megatron-Core.

mod activations;
mod blocks;
mod reserve;
mod schedule;
mod state;
mod verdict;

use super::Inputs;
use activations::MicroBatch;
use blocks::{BlockSizes, StageSizes};
pub(crate) use reserve::capacity_bytes;
use schedule::StageBlocks;
use serde::Serialize;
use state::WeightState;
pub use verdict::{MemoryMargin, MemoryVerdict};

/// Bytes of a BF16 number.
const BF16: f64 = 2.0;
/// Bytes of an FP32 number.
const FP32: f64 = 4.0;

/// Peak memory of a GPU in one pipeline stage, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StageMemory {
    /// Weights, including copies in lower precision.
    pub weights: f64,
    /// Accumulated gradients.
    pub gradients: f64,
    /// Optimizer state: master weights and moments.
    pub optimizer: f64,
    /// Activations saved for the backward pass, of every micro batch in flight.
    pub activations: f64,
    /// Logits and loss on the last stage, if they take more than the backward pass of a layer.
    pub logits: f64,
    /// Temporary buffers: gradients in transit, gathered weights, workspaces.
    pub buffers: f64,
}

/// A part of a GPU's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPart {
    /// Weights, including copies in lower precision.
    Weights,
    /// Accumulated gradients.
    Gradients,
    /// Optimizer state.
    Optimizer,
    /// Saved activations.
    Activations,
    /// Logits and loss.
    Logits,
    /// Temporary buffers.
    Buffers,
}

impl MemoryPart {
    /// Every part, in the order in which they are shown.
    pub const ALL: [MemoryPart; 6] = [
        MemoryPart::Weights,
        MemoryPart::Gradients,
        MemoryPart::Optimizer,
        MemoryPart::Activations,
        MemoryPart::Logits,
        MemoryPart::Buffers,
    ];

    /// Returns the title that charts show.
    pub const fn title(self) -> &'static str {
        match self {
            MemoryPart::Weights => "Weights",
            MemoryPart::Gradients => "Gradients",
            MemoryPart::Optimizer => "Optimizer",
            MemoryPart::Activations => "Activations",
            MemoryPart::Logits => "Logits",
            MemoryPart::Buffers => "Buffers",
        }
    }
}

impl StageMemory {
    /// Returns the total, in bytes.
    pub fn total(&self) -> f64 {
        self.weights + self.gradients + self.optimizer + self.activations + self.logits + self.buffers
    }

    /// Returns one part, in bytes.
    pub fn part(&self, part: MemoryPart) -> f64 {
        match part {
            MemoryPart::Weights => self.weights,
            MemoryPart::Gradients => self.gradients,
            MemoryPart::Optimizer => self.optimizer,
            MemoryPart::Activations => self.activations,
            MemoryPart::Logits => self.logits,
            MemoryPart::Buffers => self.buffers,
        }
    }
}

/// The memory that a step needs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryEstimate {
    /// Memory of a GPU by pipeline stage, first to last.
    pub stages: Vec<StageMemory>,
    /// Index of the fullest stage.
    pub peak_stage: usize,
    /// Memory of the GPU type, bytes.
    pub capacity_bytes: f64,
    /// Reserved memory, bytes: CUDA context, NCCL buffers, fragmentation.
    pub reserved_bytes: f64,
    /// How far the need may be off, bytes: a share of it that depends on the software.
    pub error_bytes: f64,
}

/// Neighbouring pipeline stages that need about the same memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageGroup {
    /// Index of the first stage.
    pub first: usize,
    /// Index of the last stage.
    pub last: usize,
    /// Stages of the whole pipeline.
    pub stages: usize,
    /// Memory of the fullest stage in the group.
    pub memory: StageMemory,
}

impl StageGroup {
    /// Returns the title that tables and charts show: "Stage 1", "Stages 2–5", or "Every GPU" without a
    /// pipeline.
    pub fn title(&self) -> String {
        match (self.first + 1, self.last + 1) {
            _ if self.stages == 1 => "Every GPU".to_string(),
            (first, last) if first == last => format!("Stage {first}"),
            (first, last) => format!("Stages {first}–{last}"),
        }
    }
}

impl MemoryEstimate {
    /// Returns the memory of a step.
    pub fn of(inputs: &Inputs<'_>) -> MemoryEstimate {
        let (terms, state) = (MicroBatchMemory::of(inputs), WeightState::of(inputs));
        let stages: Vec<StageMemory> =
            schedule::stages(inputs).map(|stage| terms.on(&stage, &state, inputs)).collect();
        let mut peak_stage = 0;
        let mut peak = 0.0;
        for (index, stage) in stages.iter().enumerate() {
            if stage.total() > peak {
                (peak_stage, peak) = (index, stage.total());
            }
        }
        let capacity_bytes = capacity_bytes(inputs.gpu);
        let reserved_bytes = reserve::reserved(inputs, peak);
        let free_bytes = capacity_bytes - reserved_bytes - peak;
        let MemoryMargin { error_bytes, .. } =
            MemoryMargin::new(inputs.gpu, inputs.options.software, free_bytes);
        MemoryEstimate { stages, peak_stage, capacity_bytes, reserved_bytes, error_bytes }
    }

    /// Returns the memory of the fullest stage.
    pub fn peak(&self) -> StageMemory {
        self.stages.get(self.peak_stage).copied().unwrap_or_default()
    }

    /// Returns the tensors of the fullest GPU, in bytes: PyTorch's max allocated.
    pub fn total_bytes(&self) -> f64 {
        self.peak().total()
    }

    /// Returns the need of the fullest GPU, in bytes: tensors and reserved memory.
    pub fn needed_bytes(&self) -> f64 {
        self.total_bytes() + self.reserved_bytes
    }

    /// Returns the free memory of the fullest GPU, in bytes; negative if the scenario does not fit.
    pub fn margin_bytes(&self) -> f64 {
        self.capacity_bytes - self.reserved_bytes - self.total_bytes()
    }

    /// Returns whether the scenario fits, or that its margin is smaller than the error of the estimate.
    pub fn verdict(&self) -> MemoryVerdict {
        MemoryMargin { free_bytes: self.margin_bytes(), error_bytes: self.error_bytes }.verdict()
    }

    /// Returns the verdict with its figures as a sentence, on GPUs with this name; none if the scenario fits.
    pub fn shortage(&self, gpu: &str) -> Option<String> {
        let [needed, capacity, error] = [self.needed_bytes(), self.capacity_bytes, self.error_bytes]
            .map(|bytes| bytes / f64::from(1 << 30));
        let place = match self.stages.len() {
            1 => "every GPU".to_string(),
            stages => format!("stage {} of {stages}", self.peak_stage + 1),
        };
        let needs = format!("{place} needs {needed:.1} GiB, the {gpu} has {capacity:.1} GiB");
        match self.verdict() {
            MemoryVerdict::Fits => None,
            MemoryVerdict::TooClose => Some(format!(
                "Memory is too close to call: {needs}, and the estimate may be off by {error:.1} GiB."
            )),
            MemoryVerdict::DoesNotFit => Some(format!("Does not fit: {needs}.")),
        }
    }

    /// Whether the fullest GPU has enough memory, given the accuracy of the estimate.
    pub fn fits(&self) -> bool {
        self.margin_bytes() >= 0.0
    }

    /// Returns the stages in groups of neighbours whose totals differ by at most the fraction `tolerance`.
    pub fn stage_groups(&self, tolerance: f64) -> Vec<StageGroup> {
        let mut groups: Vec<StageGroup> = Vec::new();
        for (index, memory) in self.stages.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if (memory.total() / group.memory.total() - 1.0).abs() <= tolerance => {
                    group.last = index;
                    if memory.total() > group.memory.total() {
                        group.memory = *memory;
                    }
                }
                _ => groups.push(StageGroup {
                    first: index,
                    last: index,
                    stages: self.stages.len(),
                    memory: *memory,
                }),
            }
        }
        groups
    }
}

/// Returns [`MemoryEstimate::total_bytes`] without storing the stages.
pub fn peak_bytes(inputs: &Inputs<'_>) -> f64 {
    MicroBatchMemory::of(inputs).totals(inputs).fold(0.0, f64::max)
}

/// Returns [`MemoryEstimate::fits`] without storing the stages.
pub fn fits(inputs: &Inputs<'_>) -> bool {
    MicroBatchMemory::of(inputs).margin_bytes(inputs, 0.0).is_some()
}

/// Returns a lower bound of the memory that a GPU needs in any layout on `gpus` GPUs, in bytes: its share of weights,
/// gradients and optimizer state if nothing is stored twice.
///
/// `inputs` may have any layout and batch.
pub(crate) fn least_bytes(inputs: &Inputs<'_>, gpus: u32) -> f64 {
    // Norms and biases are parameters, but not counted as memory: less than a fiftieth.
    let counted = 0.98 * inputs.architecture.parameters();
    counted * WeightState::of(inputs).least_bytes_per_weight() / f64::from(gpus)
}

/// Returns the share of the saved activations that stays on the GPU while CPU memory keeps those of some layers. Offloaded
/// layers are spread over the model, and the copy of the last one hasn't ended when the backward pass begins.
fn kept_share(inputs: &Inputs<'_>) -> f64 {
    let layers = f64::from(inputs.architecture.layers);
    1.0 - f64::from(inputs.options.offload_layers.saturating_sub(1)) / layers
}

/// Returns the bytes of a micro batch's activations that go to CPU memory and back. A model with offloaded layers has one
/// pipeline stage.
pub(super) fn offloaded_bytes(inputs: &Inputs<'_>) -> f64 {
    let terms = MicroBatchMemory::of(inputs);
    let saved: f64 = schedule::stages(inputs).map(|stage| terms.blocks.sizes(&stage).saved).sum();
    saved * f64::from(inputs.options.offload_layers) / f64::from(inputs.architecture.layers)
}

/// The sizes of a micro batch in every kind of block. They depend on precision, recomputation, micro batch size, TP, CP,
/// EP and expert TP only, so a search computes them once for many layouts.
pub(crate) struct MicroBatchMemory {
    run: MicroBatch,
    blocks: BlockSizes,
}

impl MicroBatchMemory {
    pub(crate) fn of(inputs: &Inputs<'_>) -> MicroBatchMemory {
        let run = MicroBatch::of(inputs);
        MicroBatchMemory { blocks: BlockSizes::of(inputs, &run), run }
    }

    /// Returns [`MemoryEstimate::margin_bytes`] without storing the stages; none if it is less than `least`.
    pub(crate) fn margin_bytes(&self, inputs: &Inputs<'_>, least: f64) -> Option<f64> {
        let margin = |peak: f64| capacity_bytes(inputs.gpu) - reserve::reserved(inputs, peak) - peak;
        let mut peak = 0.0_f64;
        for total in self.totals(inputs) {
            peak = peak.max(total);
            if margin(peak) < least {
                return None;
            }
        }
        Some(margin(peak))
    }

    /// Iterates over the totals of the stages, without those that can't be the fullest.
    fn totals(&self, inputs: &Inputs<'_>) -> impl Iterator<Item = f64> {
        let state = WeightState::of(inputs);
        let mut before: Option<StageBlocks> = None;
        schedule::stages(inputs).filter_map(move |stage| {
            // A middle stage with the same layers as the previous one has fewer micro batches in flight.
            let is_less = before.replace(stage).is_some_and(|before| stage.is_within(&before));
            (!is_less).then(|| self.on(&stage, &state, inputs).total())
        })
    }

    /// Returns the memory of a GPU in `stage`.
    fn on(&self, stage: &StageBlocks, state: &WeightState, inputs: &Inputs<'_>) -> StageMemory {
        let (run, blocks) = (&self.run, &self.blocks);
        let StageSizes { dense, routed, saved } = blocks.sizes(stage);
        // The first stage holds the embedding, the last the head. Tied weights are one tensor only if both
        // are on one stage. Multi-token prediction needs the embedding on the last stage as well.
        let mtp_embedding = stage.is_last && !stage.is_first && run.mtp > 0.0;
        let tied = inputs.architecture.tied_embeddings && stage.is_first && stage.is_last;
        let words = run.vocab * run.hidden;
        let head = f64::from(stage.is_last) * words;
        let embeddings = head + f64::from((stage.is_first && !tied) || mtp_embedding) * words;

        // Transformer Engine accumulates gradients while it multiplies, and returns to PyTorch a cached dummy
        // gradient of each shape. The head's dummy exists during the whole backward pass.
        let dummies = if state.fuses_gradients { BF16 * (blocks.shapes(stage) + head) } else { 0.0 };
        // The gradient in transit to the previous stage.
        let sent = if stage.is_first { 0.0 } else { BF16 * run.hidden * run.shared_tokens };
        // The backward pass begins with the loss and continues with the last layer.
        let (loss, layer) = (if stage.is_last { run.loss() } else { 0.0 }, blocks.backward(stage));
        let (logits, layer) = if loss > layer { (loss, 0.0) } else { (0.0, layer) };
        StageMemory {
            weights: state.weights(dense, routed, embeddings),
            gradients: state.gradients(dense + embeddings, routed),
            optimizer: state.optimizer(dense + embeddings, routed),
            activations: stage.in_flight * saved * kept_share(inputs),
            logits,
            buffers: layer
                + dummies
                + sent
                + state.gathered(blocks.largest(stage), dense + routed, embeddings)
                + run.workspaces(stage.is_last),
        }
    }
}

#[cfg(test)]
mod tests;
