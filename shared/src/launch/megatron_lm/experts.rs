//! The exchange of tokens between experts: its kernels, and its overlap with another micro batch.

use super::job::MegatronJob;
use super::support::{Dispatcher, can_hide_experts};
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::stack::{Software, StackProperties};

/// Chooses the kernels of the exchange, and overlaps it, as the job's software does.
pub(super) fn dispatch(job: &mut MegatronJob) {
    let (scenario, properties) = (job.scenario, *job.software.properties());
    match dispatcher(job) {
        None => job.set("--moe-token-dispatcher-type", "alltoall"),
        Some(dispatcher) => flexible(job, dispatcher),
    }
    let hides = job.training().hides_experts(&scenario.layout) && properties.hides_experts;
    if hides && can_hide_experts(scenario) {
        job.flag("--overlap-moe-expert-parallel-comm");
        job.export_default("CUDA_DEVICE_MAX_CONNECTIONS", 32);
    }
}

/// Returns the kernels that the script uses instead of NCCL's exchange.
pub(super) fn dispatcher(job: &MegatronJob) -> Option<Dispatcher> {
    let wanted = job.training().sends_once_per_domain();
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
