//! What Megatron-LM's flags can turn on for a scenario.

use crate::architecture::AttentionKind;
use crate::catalog::Generation;
use crate::launch::options::LaunchOptions;
use crate::options::{Modules, Recompute};
use crate::precision::Dtype;
use crate::scenario::Scenario;
use crate::stack::StackProperties;

/// Returns the number format of a scenario's script. "FP8" alone is that of the recipe's release, otherwise current scaling.
pub(super) fn format(scenario: &Scenario) -> Dtype {
    match (scenario.dtype, scenario.recipe) {
        (Dtype::Fp8, Some(recipe)) => recipe.runs(),
        (Dtype::Fp8, None) => Dtype::Fp8Current,
        (dtype, _) => dtype,
    }
}

/// Bytes of a gradient with `--grad-reduce-in-bf16`.
pub(super) const NARROW_GRADIENT: f64 = 2.0;
/// Bytes of a weight's optimizer state with `--use-precision-aware-optimizer`.
pub(super) const NARROW_OPTIMIZER: f64 = 10.0;

/// Returns whether Megatron-LM can overlap tensor-parallel communication with matrix multiplications: in dense layers, within
/// a node, and in the formats for which Transformer Engine tests that (tests/pytorch/distributed/test_comm_gemm_overlap.py).
pub(super) fn can_overlap_tp(scenario: &Scenario, per_node: u32) -> bool {
    let architecture = &scenario.architecture;
    let is_plain = matches!(architecture.attention.kind, AttentionKind::Gqa { .. })
        && architecture.moe.is_none()
        && architecture.linear.is_none()
        && architecture.mamba.is_none();
    let format = match format(scenario) {
        Dtype::Bf16 | Dtype::Fp8Delayed | Dtype::Fp8Current => true,
        Dtype::Mxfp8 => has_aligned_blocks(scenario),
        Dtype::Fp8 | Dtype::Fp8Block | Dtype::Nvfp4 => false,
    };
    scenario.layout.tp() <= per_node && is_plain && format && !scenario.options.fsdp
}

/// Returns whether the matrices of a tensor-parallel rank have dimensions that are multiples of 128. Transformer Engine overlaps
/// only such ones in MXFP8 (pull request 1711).
fn has_aligned_blocks(scenario: &Scenario) -> bool {
    let (layout, batch, architecture) = (&scenario.layout, &scenario.batch, &scenario.architecture);
    let tp = layout.tp();
    let AttentionKind::Gqa { kv_heads, head_dim } = architecture.attention.kind else { return false };
    let tokens = batch.seq_len() / layout.cp() * batch.mbs();
    let heads = architecture.attention.heads;
    let ffn = architecture.mlp.as_ref().map_or(0, |mlp| mlp.ffn);
    let divided = [tokens, (heads + 2 * kv_heads) * head_dim, heads * head_dim, ffn];
    divided.into_iter().all(|size| size.is_multiple_of(128 * tp)) && architecture.hidden.is_multiple_of(128)
}

/// Kernels that send a token once to each NVLink domain, for all experts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dispatcher {
    /// DeepEP, for domains within a node.
    DeepEp,
    /// HybridEP, for domains of several nodes, since Megatron-Core 0.16.
    HybridEp,
}

/// Ranks for which DeepEP has settings (`get_dispatch_config` in deep_ep/buffer.py) and that fill nodes of 8.
const DEEP_EP_RANKS: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];

/// The most ranks of HybridEP within a domain: those of NVIDIA's recipes for an NVL72.
const HYBRID_EP_RANKS: u32 = 64;

impl Dispatcher {
    /// Returns the kernels for a scenario's experts, if there are some that are known to work there.
    pub(super) fn of(scenario: &Scenario, per_node: u32) -> Option<Dispatcher> {
        let (gpu, layout, architecture) = (&scenario.gpu, &scenario.layout, &scenario.architecture);
        let (ep, domain) = (layout.ep(), gpu.nvlink_domain);
        // The kernels copy a token in pieces; all models of NVIDIA's recipes with these kernels but gpt-oss have such widths.
        if ep < 2 || layout.expert_tp() > 1 || !architecture.hidden.is_multiple_of(512) {
            return None;
        }
        if domain == per_node && domain == 8 && gpu.generation >= Generation::Hopper {
            return DEEP_EP_RANKS.contains(&ep).then_some(Dispatcher::DeepEp);
        }
        let spans_nodes = domain > per_node && gpu.generation >= Generation::Blackwell;
        (spans_nodes && ep <= HYBRID_EP_RANKS && ep.is_power_of_two()).then_some(Dispatcher::HybridEp)
    }
}

/// Returns whether Megatron-LM can overlap the exchange with another micro batch. `__post_init__` of transformer_config.py decides
/// most of it, under `overlap_moe_expert_parallel_comm`. It also takes no pipeline, but then an estimate of the script's software would
/// lack the overlap, because only recipes of known software turn it on.
pub(super) fn can_hide_experts(scenario: &Scenario) -> bool {
    let (layout, architecture) = (&scenario.layout, &scenario.architecture);
    let is_interleaved = layout.ep() > 1 && layout.pp() > 1 && layout.vp() > 1;
    // combined_1f1b.py: only a GPTModel. Its prediction layers are at most one.
    let is_gpt = architecture.mamba.is_none() && architecture.mtp_layers <= 1;
    // Before Blackwell, tensor and context parallelism need one queue (CUDA_DEVICE_MAX_CONNECTIONS=1), and this overlap many.
    let has_queues = scenario.gpu.generation >= Generation::Blackwell || layout.tp() == 1 && layout.cp() == 1;
    // Its schedule (fine_grained_callables.py) calls the parts of an MoE layer one by one, so that none is recomputed as a whole.
    let modules = scenario.options.modules;
    let keeps = scenario.options.recompute != Recompute::Full
        && !modules.moe
        && !modules.shared_experts
        && !scenario.options.fsdp;
    is_interleaved && is_gpt && has_queues && keeps
}

/// The variable of PyTorch's allocator.
pub(super) const ALLOCATOR: &str = "PYTORCH_CUDA_ALLOC_CONF";

/// Returns what prevents `--cuda-graph-impl transformer_engine` in a scenario, as a clause; none if it works with all versions since
/// Megatron-Core 0.15.
///
/// - Recomputation: transformer_config.py of 0.15 raises "CUDA graphs not supported with activation recomputation".
/// - Overlapped tensor parallelism: Transformer Engine's test of it turns graphs off for whole layers
///   (run_layer_with_overlap.py).
/// - Context parallelism, hybrids, linear attention and block scaling: no recipe or test of NVIDIA that we know combines them with these graphs.
/// - Expandable segments: arguments.py of 0.15 asserts that they are off.
pub(super) fn graph_obstacle(
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
        (
            training.overlap && own.overlaps_tp && layout.tp() > 1,
            "the overlap of tensor parallelism is not tested with them",
        ),
        (layout.cp() > 1, "context parallelism is not tested with them"),
        (scenario.architecture.mamba.is_some(), "hybrids are not tested with them"),
        (scenario.architecture.linear.is_some(), "linear attention is not tested with them"),
        (format(scenario) == Dtype::Fp8Block, "block scaling is not tested with them"),
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
