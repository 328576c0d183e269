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

/// Returns whether the script's run fits, with a warning if the estimate is that it doesn't. A published run fits. `of_release` is the
/// software that a release's script runs; none for a script with Megatron-LM.
pub(super) fn check(
    scenario: &Scenario,
    options: &LaunchOptions,
    of_release: Option<Software>,
) -> (MemoryVerdict, Option<LaunchWarning>) {
    if scenario.reference().is_some() && of_release.is_some() {
        return (MemoryVerdict::Fits, None);
    }
    let (software, is_planned) = match of_release {
        Some(software) => (software, true),
        None => {
            let script = ScriptSoftware::of(scenario, options);
            (script.software, !script.differs())
        }
    };
    let training = scenario.options.with_software(software);
    let memory = MemoryEstimate::of(&Inputs { options: &training, ..scenario.inputs() });
    let verdict = memory.verdict();
    let Some(mut text) = memory.shortage(&scenario.gpu.name).filter(|_| !memory.fits()) else {
        return (verdict, None);
    };
    // Megatron-LM's defaults, unless the plan is for software that stores less.
    if of_release.is_none() && software.properties().gradient_bytes > 2.0 {
        text += " The script has Megatron-LM's default FP32 gradients and optimizer.";
    } else if !is_planned {
        text += " That is with the software of the script.";
    }
    let fix = match is_planned {
        false => message![
            "Plan with ",
            Setting::new(Field::Stack, software),
            ": the estimate suggests changes that fit."
        ],
        true => message!["The estimate suggests changes that fit."],
    };
    (verdict, Some(LaunchWarning { topic: WarningTopic::Memory, text: text.into(), fix }))
}
