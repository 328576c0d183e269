//! CUDA graphs: Transformer Engine records each layer once and replays it.

use super::job::MegatronJob;
use super::precision;
use crate::launch::options::LaunchOptions;
use crate::launch::word::ShellWord;
use crate::options::{Modules, Recompute};
use crate::precision::Dtype;
use crate::scenario::Scenario;
use crate::stack::StackProperties;

/// The variable of PyTorch's allocator.
const ALLOCATOR: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// Returns what prevents `--cuda-graph-impl transformer_engine` in a scenario, as a clause; none if it works with all versions since
/// Megatron-Core 0.15.
///
/// - Recomputation: transformer_config.py of 0.15 raises "CUDA graphs not supported with activation recomputation".
/// - FSDP: graphs need gradients at fixed addresses, which Megatron-FSDP does not keep (Megatron-LM pull request 4663).
/// - Overlapped tensor parallelism: Transformer Engine's test of it turns graphs off for whole layers
///   (run_layer_with_overlap.py).
/// - Context parallelism, hybrids and block scaling: no recipe or test of NVIDIA that we know combines them with these graphs.
/// - Expandable segments: arguments.py of 0.15 asserts that they are off.
pub(super) fn obstacle(
    scenario: &Scenario,
    options: &LaunchOptions,
    own: &StackProperties,
) -> Option<&'static str> {
    let (layout, training) = (&scenario.layout, &scenario.options);
    [
        (
            training.recompute != Recompute::None || training.modules != Modules::default(),
            "activations are recomputed",
        ),
        (training.fsdp, "Megatron-FSDP doesn't support them"),
        (
            training.overlap && own.overlaps_tp && layout.tp() > 1,
            "the overlap of tensor parallelism is not tested with them",
        ),
        (layout.cp() > 1, "context parallelism is not tested with them"),
        (scenario.architecture.mamba.is_some(), "hybrids are not tested with them"),
        (precision::format(scenario) == Dtype::Fp8Block, "block scaling is not tested with them"),
        (expands_segments(options), "PYTORCH_CUDA_ALLOC_CONF turns on expandable segments"),
    ]
    .into_iter()
    .find_map(|(prevents, why)| prevents.then_some(why))
}

/// Returns whether the user's variables turn on expandable segments.
fn expands_segments(options: &LaunchOptions) -> bool {
    let given = options.env.iter().find(|(name, _)| *name == ALLOCATOR);
    given.is_some_and(|(_, value)| value.to_string().contains("expandable_segments:True"))
}

pub(super) fn apply(job: &mut MegatronJob) {
    let architecture = &job.scenario.architecture;
    if !job.training().uses_cuda_graphs(architecture) {
        return;
    }
    job.group("CUDA graphs");
    job.set("--cuda-graph-impl", "transformer_engine");
    // Without a scope, all versions capture whole layers. The number of tokens of an expert changes from step to step, so that an MoE
    // layer is captured only up to the exchange.
    if architecture.moe.is_some() {
        let scope = ["attn", "moe_router", "moe_preprocess"];
        job.words("--cuda-graph-scope", scope.into_iter().map(ShellWord::of).collect());
        job.warn(
            "CUDA graphs of MoE layers (--cuda-graph-scope) need Megatron-Core 0.16 or later.",
            "Update the checkout, or remove the flags under \"CUDA graphs\" from the script.",
        );
    }
    job.flag("--te-rng-tracker");
    // Segments that can grow are unsafe with graphs, and an image may have turned them on. Newer versions allow them if NCCL
    // doesn't register the buffers of graphs.
    job.export_default(ALLOCATOR, "expandable_segments:False");
    job.export_default("NCCL_GRAPH_REGISTER", 0);
}
