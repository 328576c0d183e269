//! Judges the all-reduce that nccl-tests measured on each node.

use super::super::answers::{Answers, CommandOutput};
use super::super::{Finding, shortened};
use super::failure;
use trainplan_shared::catalog::Gpu;
use trainplan_shared::probe::ProbeFigureKind;

/// The time limit of the all-reduce in `gpus.sh`, in seconds.
const ALL_REDUCE_S: u32 = 120;

/// Judges the all-reduce of each node's GPUs by what a node in good order reaches (`shared/data/probe.csv`: about 60 % of NVLink's
/// bandwidth, 0.9 of what the estimate assumes).
pub(super) fn all_reduce(gpu: Option<&Gpu>, nodes: &[String], answers: &Answers) -> Finding {
    const CHECK: &str = "all-reduce";
    let limit = gpu.and_then(|gpu| ProbeFigureKind::Nvlink.limit(gpu));
    let (mut rates, mut slow) = (Vec::new(), Vec::new());
    let (mut failed, mut unstarted) = (Vec::new(), Vec::new());
    for node in nodes {
        let Some(said) = answers.output(&format!("{node} all-reduce")) else { continue };
        let why = || format!("{node}: {}", failure(said, ALL_REDUCE_S));
        match bus_bandwidth(said) {
            Some(rate) => {
                rates.push(rate);
                slow.extend(limit.filter(|limit| rate < *limit).map(|_| format!("{node}: {rate:.0} GB/s")));
            }
            // The program is missing, or one of its libraries.
            None if said.code == 127 => unstarted.push(why()),
            None => failed.push(why()),
        }
    }
    if !failed.is_empty() {
        return Finding::problem(
            CHECK,
            shortened(&failed),
            "nccl-tests' all_reduce_perf fails on these nodes. Repair the driver, NVLink or NCCL there, or leave the nodes out \
             with exclude.",
        );
    }
    if let Some(limit) = limit.filter(|_| !slow.is_empty()) {
        return Finding::warning(
            CHECK,
            shortened(&slow),
            format!(
                "A healthy node reaches at least {limit:.0} GB/s. Check `nvidia-smi nvlink --status` and the fabric manager \
                 there, or leave the nodes out with exclude."
            ),
        );
    }
    if !unstarted.is_empty() {
        return Finding::warning(
            CHECK,
            shortened(&unstarted),
            "In the profile's env, set ALL_REDUCE_PERF to the path of nccl-tests' all_reduce_perf on the nodes, and \
             LD_LIBRARY_PATH to the folder of its libraries.",
        );
    }
    match (rates.into_iter().reduce(f64::min), limit) {
        (None, _) => Finding::ok(CHECK, "not measured: it needs nccl-tests' all_reduce_perf and two GPUs"),
        (Some(least), Some(limit)) => {
            Finding::ok(CHECK, format!("{least:.0} GB/s or more, at least {limit:.0} expected"))
        }
        (Some(least), None) => Finding::ok(CHECK, format!("{least:.0} GB/s or more, not compared")),
    }
}

/// Returns the bus bandwidth in GB/s that `all_reduce_perf` prints. `None` if it failed.
fn bus_bandwidth(said: CommandOutput) -> Option<f64> {
    let average = |line: &String| {
        let (name, number) = line.split_once(':')?;
        name.contains("Avg bus bandwidth").then(|| number.trim().parse::<f64>().ok()).flatten()
    };
    let rate = said.lines.iter().find_map(average).filter(|_| said.code == 0);
    rate.filter(|rate| rate.is_finite() && *rate > 0.0)
}
