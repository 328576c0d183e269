//! Judges what nvidia-smi reports about the GPUs of some nodes.

use super::super::{Finding, shortened};
use super::seen_gpu::SeenGpu;
use trainplan_shared::catalog::Gpu;

/// The most memory in use on an idle GPU, in MiB: the driver keeps less than 1 GiB, and a process that is left over from training
/// many times as much.
const IDLE_MIB: f64 = 2048.0;

/// A power limit that is lower by less than this is only rounded, in watts.
const ROUNDED_W: f64 = 0.5;

/// The reasons for lower clocks that point to a fault, as bits of nvidia-smi's `clocks_event_reasons.active` (in NVML's
/// nvml.h, `nvmlClocksEventReason…`). The others are normal: an idle GPU, or one at its power limit.
const SLOWDOWNS: [(u64, &str); 4] = [
    (0x08, "hardware slowdown"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "power brake"),
];

/// Judges the number of GPUs on the nodes whose nvidia-smi works. `None` without such a node.
pub(super) fn count(nodes: &[&str], wanted: u32, gpus: &[SeenGpu]) -> Option<Finding> {
    let wanted = wanted as usize;
    let counts: Vec<(&str, usize)> =
        nodes.iter().map(|node| (*node, gpus.iter().filter(|gpu| gpu.node == *node).count())).collect();
    let unlike: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count != wanted)
        .map(|(node, count)| format!("{node}: {count} instead of {wanted}"))
        .collect();
    if counts.is_empty() {
        None
    } else if counts.iter().any(|(_, count)| *count < wanted) {
        Some(Finding::problem(
            "GPU count",
            shortened(&unlike),
            "If the nodes have fewer GPUs, correct gpus-per-node in the profile. Otherwise, ask the site to repair these nodes, \
             and leave them out of runs with exclude.",
        ))
    } else {
        let what = "Correct gpus-per-node in the profile, so that runs use all GPUs.";
        Some(unless_fine("GPU count", &unlike, format!("{wanted} per node"), what))
    }
}

/// Judges the names of the GPUs.
pub(super) fn gpu_type(expected: Option<&Gpu>, gpus: &[SeenGpu]) -> Finding {
    const CHECK: &str = "GPU type";
    let mut names: Vec<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let seen = shortened(&names);
    match expected {
        Some(gpu) if names.iter().any(|name| !gpu.may_be(name)) => Finding::warning(
            CHECK,
            format!("{seen}; the profile has {}", gpu.id),
            "Correct gpu in the profile, or set another partition. Recipes and predictions depend on the GPU type.",
        ),
        _ if names.len() > 1 => Finding::warning(
            CHECK,
            seen,
            "A run is as slow as its slowest GPU. Set a partition with one GPU type, or leave nodes out with exclude.",
        ),
        Some(_) => Finding::ok(CHECK, seen),
        None => {
            Finding::ok(CHECK, format!("{seen}; not compared, because the profile has no known GPU type"))
        }
    }
}

/// Judges the highest clocks.
pub(super) fn clocks(gpus: &[SeenGpu]) -> Finding {
    const CHECK: &str = "GPU clocks";
    let Some(most) = gpus.iter().filter_map(|gpu| gpu.max_clock_mhz).reduce(f64::max) else {
        return Finding::ok(CHECK, "not reported");
    };
    let low = faults(gpus, |gpu| {
        let clock = gpu.max_clock_mhz.filter(|clock| *clock < most)?;
        Some(format!("up to {clock:.0} of {most:.0} MHz"))
    });
    unless_fine(
        CHECK,
        &low,
        format!("up to {most:.0} MHz"),
        "A run is as slow as its slowest GPU. Ask the site why these GPUs have lower clocks, or leave the nodes out with exclude.",
    )
}

/// Judges the power limits.
pub(super) fn power(gpus: &[SeenGpu]) -> Finding {
    const CHECK: &str = "GPU power";
    let Some(most) = gpus.iter().filter_map(|gpu| gpu.power_w).reduce(f64::max) else {
        return Finding::ok(CHECK, "not reported");
    };
    let low = faults(gpus, |gpu| {
        let normal = gpu.default_power_w.map_or(most, |default| default.max(most));
        let limit = gpu.power_w.filter(|limit| *limit < normal - ROUNDED_W)?;
        Some(format!("limit of {limit:.0} instead of {normal:.0} W"))
    });
    unless_fine(
        CHECK,
        &low,
        format!("limit of {most:.0} W"),
        "A run is as slow as its slowest GPU. Ask the site to raise these power limits, or leave the nodes out with exclude.",
    )
}

/// Judges the memory in use. The job asks for all GPUs of its nodes, and `gpus.sh` looks before it uses them.
pub(super) fn memory(gpus: &[SeenGpu]) -> Finding {
    let busy = faults(gpus, |gpu| {
        let used = gpu.used_mib.filter(|used| *used > IDLE_MIB)?;
        let total = gpu.total_mib.map_or(String::new(), |total| format!(" of {:.0}", total / 1024.0));
        Some(format!("{:.1}{total} GiB in use", used / 1024.0))
    });
    unless_fine(
        "GPU memory",
        &busy,
        unless_unreported(gpus, |gpu| gpu.used_mib.is_some(), "free"),
        "Another process uses these GPUs, perhaps one left over from an earlier job. Ask the site to end it, or leave the \
         nodes out with exclude.",
    )
}

/// Judges the memory errors since the driver was loaded.
pub(super) fn errors(gpus: &[SeenGpu]) -> Finding {
    const CHECK: &str = "GPU errors";
    let bad = faults(gpus, |gpu| {
        let count = gpu.uncorrected.filter(|count| *count > 0.0)?;
        Some(format!("{count:.0} uncorrected"))
    });
    if !bad.is_empty() {
        let what = "These GPUs' memory has ECC errors, on which runs fail. Ask the site to reset or replace the GPUs, and leave \
                    the nodes out with exclude until then.";
        return Finding::problem(CHECK, shortened(&bad), what);
    }
    Finding::ok(CHECK, unless_unreported(gpus, |gpu| gpu.uncorrected.is_some(), "no uncorrected ECC errors"))
}

/// Judges why the clocks are low.
pub(super) fn slowdowns(gpus: &[SeenGpu]) -> Finding {
    let slowed = faults(gpus, |gpu| {
        let bits = gpu.reasons?;
        let reasons: Vec<&str> =
            SLOWDOWNS.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, reason)| reason).collect();
        let state = [
            gpu.temperature_c.map(|temperature| format!(" at {temperature:.0} °C")),
            gpu.clock_mhz.map(|clock| format!(", {clock:.0} MHz")),
        ];
        let state: String = state.into_iter().flatten().collect();
        (!reasons.is_empty()).then(|| format!("{}{state}", reasons.join(" and ")))
    });
    unless_fine(
        "GPU slowdown",
        &slowed,
        unless_unreported(gpus, |gpu| gpu.reasons.is_some(), "none"),
        "Ask the site to check the cooling and power supply of these nodes, or leave them out with exclude.",
    )
}

/// Returns the fault of each GPU that `fault` finds one for.
fn faults(gpus: &[SeenGpu], fault: impl Fn(&SeenGpu) -> Option<String>) -> Vec<String> {
    gpus.iter().filter_map(|gpu| Some(format!("{}: {}", gpu.label(), fault(gpu)?))).collect()
}

/// Returns a warning, or that all is fine if nothing is at fault.
fn unless_fine(check: &str, faults: &[String], fine: impl Into<String>, what_to_do: &str) -> Finding {
    match faults {
        [] => Finding::ok(check, fine),
        faults => Finding::warning(check, shortened(faults), what_to_do),
    }
}

/// Returns a text, or that nvidia-smi doesn't report on what it is about.
fn unless_unreported(
    gpus: &[SeenGpu],
    is_reported: impl Fn(&SeenGpu) -> bool,
    fine: &'static str,
) -> &'static str {
    if gpus.iter().any(is_reported) { fine } else { "not reported" }
}
