//! Whether a launch fits into the GPUs' memory, by the estimate.

use super::{LaunchWarning, WarningTopic};
use crate::catalog::Release;
use crate::estimate::{Inputs, MemoryEstimate, MemoryVerdict};
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::options::TrainingOptions;
use crate::scenario::Scenario;
use crate::stack::Stack;
use crate::units::significant;

/// Returns a warning if the scenario doesn't fit, unless its run was published.
pub(super) fn warning(scenario: &Scenario, release: Option<Release>) -> Option<LaunchWarning> {
    if scenario.baseline().is_some() && release.is_some() {
        return None;
    }
    let planned = scenario.options.software;
    // Megatron-LM saves memory as NVIDIA's recipes do if the plan is for their software. Otherwise it runs with its defaults.
    let by_default = release.is_none() && !planned.is_nvidia_megatron();
    let software = match release {
        Some(release) => release.contract().stack.into(),
        None if by_default => Stack::MegatronLm014.into(),
        None => planned,
    };
    let options = TrainingOptions { software, ..scenario.options };
    let memory = MemoryEstimate::of(&Inputs { options: &options, ..scenario.inputs() });
    if memory.fits() {
        return None;
    }
    let gib = |bytes: f64| significant(bytes / f64::from(1 << 30), 3);
    let text = format!(
        "{} fit{}: stage {} of {} needs {} GiB, the {} has {}.",
        if memory.verdict() == MemoryVerdict::DoesNotFit { "Won't" } else { "May not" },
        if by_default { " with Megatron-LM's default FP32 gradients and optimizer" } else { "" },
        memory.peak_stage + 1,
        memory.stages.len(),
        gib(memory.total_bytes() + memory.reserved_bytes),
        scenario.gpu.name,
        gib(memory.capacity_bytes),
    );
    let fix = match by_default {
        true => message![
            "Plan with ",
            Setting::new(Field::Stack, software),
            ": the estimate suggests changes that fit."
        ],
        false => message!["The estimate suggests changes that fit."],
    };
    Some(LaunchWarning { topic: WarningTopic::Memory, text: text.into(), fix })
}
