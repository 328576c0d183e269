//! The exchange of tokens between experts: its kernels, and its overlap with another micro batch.

use super::job::MegatronJob;
use crate::catalog::Generation;
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::options::Recompute;
use crate::scenario::Scenario;
use crate::stack::{Software, StackProperties};

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
/// most of it, under `overlap_moe_expert_parallel_comm`; a script without interleaved pipeline plans no such overlap.
pub(super) fn can_hide(scenario: &Scenario) -> bool {
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

/// Chooses the kernels of the exchange, and overlaps it, as the job's software does.
pub(super) fn dispatch(job: &mut MegatronJob) {
    let (scenario, properties) = (job.scenario, *job.software.properties());
    match dispatcher(job) {
        None => job.set("--moe-token-dispatcher-type", "alltoall"),
        Some(dispatcher) => flexible(job, dispatcher),
    }
    let hides = job.training().hides_experts(scenario.layout.vp() > 1) && properties.hides_experts;
    if hides && can_hide(scenario) {
        job.flag("--overlap-moe-expert-parallel-comm");
        job.export_default("CUDA_DEVICE_MAX_CONNECTIONS", 32);
    }
}

/// Returns the kernels that the script uses instead of NCCL's exchange.
pub(super) fn dispatcher(job: &MegatronJob) -> Option<Dispatcher> {
    let wanted = job.software.properties().sends_once_per_domain;
    Dispatcher::of(job.scenario, job.of_node).filter(|_| wanted)
}

fn flexible(job: &mut MegatronJob, dispatcher: Dispatcher) {
    job.set("--moe-token-dispatcher-type", "flex");
    let (name, since) = match dispatcher {
        Dispatcher::DeepEp => {
            // The newer name, --moe-flex-dispatcher-backend deepep, is unknown to Megatron-Core 0.15.
            job.flag("--moe-enable-deepep");
            ("DeepEP", "")
        }
        Dispatcher::HybridEp => {
            job.set("--moe-flex-dispatcher-backend", "hybridep");
            job.export_default("NVLINK_DOMAIN_SIZE", job.scenario.gpu.nvlink_domain);
            job.export_default("USE_MNNVL", 1);
            job.export_default("NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN", job.scenario.layout.ep());
            ("HybridEP", " and Megatron-Core 0.16 or later")
        }
    };
    job.requires.push(name);
    let software = job.software;
    let without = StackProperties { sends_once_per_domain: false, ..*software.properties() };
    job.warn(
        format!("The script needs {name} (the Python package deep_ep) on every node{since}."),
        message![
            "Install it, or set ",
            Setting::new(Field::Stack, Software::new(software.base(), without)),
            " for a script without it."
        ],
    );
}
