//! Whether a launch fits into the GPUs' memory, by the estimate.

use super::megatron_lm::ScriptSoftware;
use super::options::LaunchOptions;
use super::{LaunchWarning, WarningTopic};
use crate::estimate::{Inputs, MemoryEstimate, MemoryVerdict};
use crate::field::Field;
use crate::message;
use crate::message::Setting;
use crate::scenario::Scenario;
use crate::stack::Software;
use crate::units::significant;

/// Returns a warning if the scenario doesn't fit, unless its run was published. `of_release` is the software that a release's script
/// runs; none for a script with Megatron-LM.
pub(super) fn warning(
    scenario: &Scenario,
    options: &LaunchOptions,
    of_release: Option<Software>,
) -> Option<LaunchWarning> {
    if scenario.reference().is_some() && of_release.is_some() {
        return None;
    }
    let (software, is_planned) = match of_release {
        Some(software) => (software, true),
        None => {
            let script = ScriptSoftware::of(scenario, options);
            (script.software, !script.differs())
        }
    };
    // Megatron-LM's defaults, unless the plan is for software that stores less.
    let by_default = of_release.is_none() && software.properties().gradient_bytes > 2.0;
    let training = scenario.options.with_software(software);
    let memory = MemoryEstimate::of(&Inputs { options: &training, ..scenario.inputs() });
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
    let fix = match is_planned {
        false => message![
            "Plan with ",
            Setting::new(Field::Stack, software),
            ": the estimate suggests changes that fit."
        ],
        true => message!["The estimate suggests changes that fit."],
    };
    Some(LaunchWarning { topic: WarningTopic::Memory, text: text.into(), fix })
}
