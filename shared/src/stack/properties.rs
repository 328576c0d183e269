//! What a training software does, as far as it decides time and memory.

use super::Stack;
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use std::sync::LazyLock;

choices! {
    /// How attention is computed.
    AttentionKernels {
        /// By batched products that store all scores.
        Unfused "unfused",
        /// By one kernel that runs on every GPU, such as FlashAttention-2.
        Fused "fused",
        /// By one kernel that is written for each GPU: cuDNN, FlashAttention-3.
        Tuned "tuned",
    }
}

choices! {
    /// Which kernels CUDA graphs launch, unless the run says otherwise.
    CudaGraphs {
        /// None.
        None "none",
        /// Those of dense models.
        Dense "dense",
        /// All.
        All "all",
    }
}

choices! {
    /// How the kernels of routed experts are fused.
    ExpertKernels {
        /// Neither routing nor casts are fused, as in NVIDIA's releases before 25.09.
        Early "early",
        /// Routing is fused; casts and activation functions are kernels of their own.
        Separate "separate",
        /// Grouped multiplications cast and activate, as in NVIDIA's releases from 26.06.
        Fused "fused",
    }
}

choices! {
    /// How a layer's weights are stored.
    WeightStorage {
        /// In FP32, and converted to BF16 for use.
        Fp32 "fp32",
        /// In BF16.
        Bf16 "bf16",
        /// In BF16, and in the run's precision beside it.
        Beside "beside",
        /// In the run's precision alone.
        Alone "alone",
    }
}

const MIB: f64 = 1_048_576.0;

/// What a training software does. Times follow from these properties; what remains is one factor for each known software.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StackProperties {
    /// How attention is computed.
    pub attention: AttentionKernels,
    /// Share that each further tensor-parallel rank adds to the host's time in a pipeline; none if as little as without one.
    pub host_tp_in_pipelines: Option<f64>,
    /// Whether a fused kernel computes attention with sinks and a window.
    pub fuses_sinks: bool,
    /// Whether norms, activation functions and casts are single PyTorch operations, neither fused by hand nor compiled.
    pub eager: bool,
    /// Whether the layers are those of Megatron-Core on Transformer Engine.
    pub transformer_engine: bool,
    /// Whether pipelines and selective recomputation are PyTorch's rather than Megatron's.
    pub pytorch: bool,
    /// Whether tensor parallelism divides the sequence outside matrix multiplications, unless the run says otherwise.
    pub sequence_parallel: bool,
    /// Whether the backward pass keeps the sequence that tensor-parallel ranks gathered, rather than gather it again.
    pub saves_gathered: bool,
    /// Whether tensor parallelism's communication overlaps with computation.
    pub overlaps_tp: bool,
    /// Whether the exchange of gradients and weights overlaps with computation.
    pub overlaps_dp: bool,
    /// Whether that overlap is the poorer one of NVIDIA's releases before 25.04.
    pub early_dp: bool,
    /// Which kernels CUDA graphs launch.
    pub cuda_graphs: CudaGraphs,
    /// How the kernels of routed experts are fused.
    pub experts: ExpertKernels,
    /// Whether a token is sent once to each NVLink domain for all experts there (DeepEP, HybridEP).
    pub sends_once_per_domain: bool,
    /// Whether the exchange between experts overlaps with another micro batch in interleaved pipelines.
    pub hides_experts: bool,
    /// Whether it is first software for Blackwell.
    pub early_blackwell: bool,
    /// Whether an interleaved schedule needs a gradient accumulation that is a multiple of PP.
    pub whole_rounds: bool,
    /// Whether data-parallel ranks share the optimizer's state (ZeRO-1), also without FSDP.
    pub shares_optimizer: bool,
    /// Whether they share the work of its step. Most software that shares the state does.
    pub shares_optimizer_step: bool,
    /// Bytes of a gradient in the exchange between data-parallel ranks.
    pub exchanged_gradient_bytes: f64,
    /// Bytes of gradients in one exchange; none if they are so many that latency doesn't matter.
    pub bucket_bytes: Option<f64>,
    /// How a layer's weights are stored.
    pub weights: WeightStorage,
    /// Bytes of a gradient.
    pub gradient_bytes: f64,
    /// Bytes of a weight's optimizer state in BF16 runs.
    pub optimizer_bytes: f64,
    /// Bytes of a weight's optimizer state in runs of lower precision.
    pub narrow_optimizer_bytes: f64,
    /// Bytes of logits and of the loss's intermediate results, per token and word.
    pub logits_bytes: f64,
    /// Share of the tensors' memory that fragmentation adds.
    pub fragmentation: f64,
}

/// A row of `stacks.csv`.
struct StackRow {
    stack: String,
    properties: StackProperties,
}

impl FromRow for StackRow {
    fn from_row(row: &Row<'_>) -> Result<StackRow, DataError> {
        Ok(StackRow { stack: row.string("stack")?, properties: StackProperties::from_row(row)? })
    }
}

/// Returns the choice of a column.
fn choice<T: Copy>(
    row: &Row<'_>,
    column: &str,
    all: &[T],
    id: fn(T) -> &'static str,
) -> Result<T, DataError> {
    let text = row.text(column)?;
    all.iter().copied().find(|choice| id(*choice) == text).ok_or_else(|| {
        let ids: Vec<&str> = all.iter().map(|choice| id(*choice)).collect();
        row.error(format!("{column} \"{text}\" is not one of {}", ids.join(", ")))
    })
}

impl FromRow for StackProperties {
    fn from_row(row: &Row<'_>) -> Result<StackProperties, DataError> {
        Ok(StackProperties {
            attention: choice(row, "attention", &AttentionKernels::ALL, AttentionKernels::id)?,
            host_tp_in_pipelines: row.optional_number("host_tp_in_pipelines")?,
            fuses_sinks: row.yes("fuses_sinks")?,
            eager: row.yes("eager")?,
            transformer_engine: row.yes("transformer_engine")?,
            pytorch: row.yes("pytorch")?,
            sequence_parallel: row.yes("sequence_parallel")?,
            saves_gathered: row.yes("saves_gathered")?,
            overlaps_tp: row.yes("overlaps_tp")?,
            overlaps_dp: row.yes("overlaps_dp")?,
            early_dp: row.yes("early_dp")?,
            cuda_graphs: choice(row, "cuda_graphs", &CudaGraphs::ALL, CudaGraphs::id)?,
            experts: choice(row, "experts", &ExpertKernels::ALL, ExpertKernels::id)?,
            sends_once_per_domain: row.yes("sends_once_per_domain")?,
            hides_experts: row.yes("hides_experts")?,
            early_blackwell: row.yes("early_blackwell")?,
            whole_rounds: row.yes("whole_rounds")?,
            shares_optimizer: row.yes("shares_optimizer")?,
            shares_optimizer_step: row.yes("shares_optimizer_step")?,
            exchanged_gradient_bytes: row.number("exchanged_gradient_bytes")?,
            bucket_bytes: row.optional_number("bucket_mib")?.map(|mib| mib * MIB),
            weights: choice(row, "weights", &WeightStorage::ALL, WeightStorage::id)?,
            gradient_bytes: row.number("gradient_bytes")?,
            optimizer_bytes: row.number("optimizer_bytes")?,
            narrow_optimizer_bytes: row.number("narrow_optimizer_bytes")?,
            logits_bytes: row.number("logits_bytes")?,
            fragmentation: row.number("fragmentation")?,
        })
    }
}

impl StackProperties {
    /// Returns the properties of a software.
    pub(super) fn of(stack: Stack) -> &'static StackProperties {
        static ALL: LazyLock<Vec<StackProperties>> = LazyLock::new(|| {
            let rows: Vec<StackRow> = embedded!("stacks.csv");
            let of = |stack: Stack| {
                let row = rows.iter().find(|row| row.stack == stack.id());
                row.or(rows.last()).map(|row| row.properties)
            };
            Stack::ALL.into_iter().filter_map(of).collect()
        });
        &ALL[stack as usize]
    }

    /// Whether attention is fused, so that its scores are never stored.
    pub fn fuses_attention(&self) -> bool {
        self.attention != AttentionKernels::Unfused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_software_has_a_row_in_the_order_of_the_list() {
        let rows: Vec<StackRow> = embedded!("stacks.csv");
        let ids: Vec<&str> = rows.iter().map(|row| &*row.stack).collect();
        let known = Stack::ALL.map(Stack::id);
        assert_eq!(ids, known);
    }
}
