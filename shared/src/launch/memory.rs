//! Whether what is launched fits into the GPUs: worth a word before a night in the queue.

use super::{Style, Warning};
use crate::estimate::{Inputs, MemoryEstimate};
use crate::options::{Options, Stack};
use crate::scenario::Scenario;

/// That a scenario does not fit by the estimate; nothing of what was published, since that ran.
pub(super) fn warning(scenario: &Scenario, style: Style) -> Option<Warning> {
    let by_megatron_lm = style == Style::MegatronLm;
    if scenario.baseline().is_some() && !by_megatron_lm {
        return None;
    }
    // The script sets none of what NVIDIA's recipes do to save memory.
    let stack = if by_megatron_lm { Stack::MegatronLm014 } else { scenario.options.stack };
    let options = Options { stack, ..scenario.options };
    let memory = MemoryEstimate::of(&Inputs { options: &options, ..scenario.inputs() });
    if memory.fits() {
        return None;
    }
    let gib = |bytes: f64| bytes / f64::from(1 << 30);
    let why =
        if by_megatron_lm { ", gradients and optimizer as Megatron-LM has them by default," } else { "" };
    Some(Warning {
        text: format!(
            "By the estimate this does not fit: stage {} of {}{why} needs {:.1} GiB where the {} has {:.1}.",
            memory.peak_stage + 1,
            memory.stages.len(),
            gib(memory.total_bytes() + memory.reserved_bytes),
            scenario.gpu.name,
            gib(memory.capacity_bytes),
        ),
        fix: format!("Plan it with `--stack {stack}`: the estimate names changes that make it fit."),
    })
}
