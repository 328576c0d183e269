//! CUDA graphs: Transformer Engine records each layer once and replays it.

use super::job::MegatronJob;
use super::support::ALLOCATOR;
use crate::launch::word::ShellWord;

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
