//! Checks the GPUs of some nodes: a short job runs `gpus.sh` on them, and its answers are judged here.

use super::Finding;
use super::answers::{Answers, CommandOutput};
use crate::probe::{self, ProbeError, SubmittedProbe};
use std::time::Duration;
use trainplan_shared::campaign::{Cluster, VariableValue};
use trainplan_shared::catalog::Gpu;
use trainplan_shared::launch::{EnvOverrides, ShellWord};
use trainplan_shared::probe::{GpuCheckJob, ProbeFigureKind};
use trainplan_shared::problem::Problem;

/// The name of the finding about the job itself.
const JOB: &str = "GPU job";

/// Time limits of `gpus.sh`, in seconds.
const SMI_S: u32 = 60;
const ALL_REDUCE_S: u32 = 120;

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

/// The most nodes or GPUs that a finding names.
const SHOWN: usize = 8;

/// A check of the GPUs of some nodes.
#[derive(Debug)]
pub(crate) struct GpuCheck {
    job: GpuCheckJob,
    /// The variables of the profile, as shell commands.
    exports: String,
    /// The GPU type of the profile; none if the catalog does not know it.
    gpu: Option<&'static Gpu>,
}

impl GpuCheck {
    /// Returns the check of so many nodes of a cluster.
    ///
    /// # Errors
    /// Fields of the profile are invalid.
    pub(crate) fn new(cluster: &Cluster, nodes: u32) -> Result<GpuCheck, Vec<Problem>> {
        // The check needs no secrets.
        let texts = cluster.env.0.iter().filter_map(|(name, value)| match value {
            VariableValue::Text(text) => Some(format!("{name}={text}\n")),
            VariableValue::Secret(_) => None,
        });
        let variables = texts.collect::<String>().parse::<EnvOverrides>().map_err(|problem| vec![problem])?;
        let export = |(name, value): (&str, &ShellWord)| format!("export {name}={}\n", value.shell());
        Ok(GpuCheck {
            job: GpuCheckJob::new(&cluster.spec, nodes, cluster.gpus_per_node())?,
            exports: variables.iter().map(export).collect(),
            gpu: cluster.gpu_type(),
        })
    }

    /// Returns the number of nodes.
    pub(crate) fn nodes(&self) -> u32 {
        self.job.nodes
    }

    /// Submits the job. The id must be new: it names the folder on the cluster.
    ///
    /// # Errors
    /// The cluster can't be reached, or Slurm refuses the job.
    pub(crate) async fn submit(&self, cluster: &Cluster, id: String) -> Result<SubmittedProbe, ProbeError> {
        let script = format!("#!/bin/sh\n{}{}", self.exports, include_str!("gpus.sh"));
        probe::submit_script(cluster, "", script, &self.job.sbatch_arguments(), id).await
    }

    /// Judges the result of the job.
    pub(crate) fn judge(&self, result: &str) -> Vec<Finding> {
        let answers = Answers::read(result);
        // They answer in any order.
        let mut nodes = answers.all("node").to_vec();
        nodes.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
        let nodes = nodes.as_slice();
        let wanted = self.job.nodes as usize;
        let mut found = vec![if nodes.len() < wanted {
            Finding::problem(
                JOB,
                format!("{} of {wanted} nodes answered: {}", nodes.len(), shortened(nodes)),
                "Repeat the command. If a node doesn't answer again, leave it out of runs with exclude.",
            )
        } else {
            Finding::ok(JOB, format!("ran on {}", shortened(nodes)))
        }];
        let mut gpus = Vec::new();
        let (mut listing, mut silent) = (Vec::new(), Vec::new());
        for node in nodes {
            let said = answers.output(&format!("{node} smi"));
            let lines = said.map_or(&[] as &[String], |said| said.lines);
            gpus.extend(lines.iter().filter_map(|line| SeenGpu::read(node, line)));
            match said {
                Some(said) if said.code == 0 => listing.push(node.as_str()),
                Some(said) => silent.push(format!("{node}: {}", failure(said, SMI_S))),
                None => silent.push(format!("{node}: no answer")),
            }
        }
        if !silent.is_empty() {
            found.push(Finding::problem(
                "nvidia-smi",
                shortened(&silent),
                "Check NVIDIA's driver on these nodes, and that nvidia-smi is in PATH there.",
            ));
        }
        found.extend(count(&listing, self.job.gpus_per_node, &gpus));
        if gpus.is_empty() {
            return found;
        }
        found.extend([
            gpu_type(self.gpu, &gpus),
            clocks(&gpus),
            power(&gpus),
            memory(&gpus),
            errors(&gpus),
            slowdowns(&gpus),
            all_reduce(self.gpu, nodes, &answers),
        ]);
        found
    }

    /// Returns the finding about a check without a result.
    pub(crate) fn without_result(error: &ProbeError) -> Finding {
        match error {
            ProbeError::Submission(said) => Finding::problem(
                JOB,
                format!("Slurm did not accept it: {}", last_lines(said.lines())),
                "Correct account, partition, gpus-per-node, gres or slurm-params in the profile.",
            ),
            ProbeError::Job { job, id, log } => Finding::problem(
                JOB,
                match last_lines(log.lines()) {
                    end if end.is_empty() => format!("job {job} ended without a result"),
                    end => format!("job {job} ended without a result: {end}"),
                },
                format!("Read the job's log on the cluster: ~/.trainplan/probes/{id}/job.log."),
            ),
            ProbeError::Link(_) | ProbeError::Result { .. } => {
                let said = error.to_string();
                Finding::problem(JOB, said.trim_end_matches('.'), "Repeat the command.")
            }
        }
    }

    /// Returns the finding about a job that did not start.
    pub(crate) fn not_started(job: u64, waited: Duration) -> Finding {
        Finding::warning(
            JOB,
            format!("job {job} waited in the queue for {} minutes and was canceled", waited.as_secs() / 60),
            "Repeat the command when nodes are idle. `sinfo` lists them.",
        )
    }
}

/// A GPU as nvidia-smi lists it. What it doesn't report is `None`.
#[derive(Debug, Clone, PartialEq)]
struct SeenGpu<'a> {
    node: &'a str,
    index: &'a str,
    name: String,
    clock_mhz: Option<f64>,
    max_clock_mhz: Option<f64>,
    power_w: Option<f64>,
    default_power_w: Option<f64>,
    temperature_c: Option<f64>,
    used_mib: Option<f64>,
    total_mib: Option<f64>,
    uncorrected: Option<f64>,
    reasons: Option<u64>,
}

impl<'a> SeenGpu<'a> {
    /// Reads a line with the fields that `gpus.sh` asks for. `None` if it is something else, such as an error.
    fn read(node: &'a str, line: &'a str) -> Option<SeenGpu<'a>> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [
            index,
            ref name @ ..,
            clock,
            max_clock,
            power,
            default_power,
            temperature,
            used,
            total,
            uncorrected,
            reasons,
        ] = cells[..]
        else {
            return None;
        };
        if name.is_empty() || index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Such as `[N/A]`.
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        Some(SeenGpu {
            node,
            index,
            name: name.join(", "),
            clock_mhz: number(clock),
            max_clock_mhz: number(max_clock),
            power_w: number(power),
            default_power_w: number(default_power),
            temperature_c: number(temperature),
            used_mib: number(used),
            total_mib: number(total),
            uncorrected: number(uncorrected),
            reasons: reasons.strip_prefix("0x").and_then(|bits| u64::from_str_radix(bits, 16).ok()),
        })
    }

    fn label(&self) -> String {
        format!("{} GPU {}", self.node, self.index)
    }
}

/// Judges the number of GPUs on the nodes whose nvidia-smi works. `None` without such a node.
fn count(nodes: &[&str], wanted: u32, gpus: &[SeenGpu]) -> Option<Finding> {
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
fn gpu_type(expected: Option<&Gpu>, gpus: &[SeenGpu]) -> Finding {
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
fn clocks(gpus: &[SeenGpu]) -> Finding {
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
fn power(gpus: &[SeenGpu]) -> Finding {
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
fn memory(gpus: &[SeenGpu]) -> Finding {
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
fn errors(gpus: &[SeenGpu]) -> Finding {
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
fn slowdowns(gpus: &[SeenGpu]) -> Finding {
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

/// Judges the all-reduce of each node's GPUs by what a node in good order reaches (`shared/data/probe.csv`: about 60 % of NVLink's
/// bandwidth, 0.9 of what the estimate assumes).
fn all_reduce(gpu: Option<&Gpu>, nodes: &[String], answers: &Answers) -> Finding {
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
                "A node in good order reaches at least {limit:.0} GB/s. Check `nvidia-smi nvlink --status` and the fabric manager \
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

/// Returns why a command failed.
fn failure(said: CommandOutput, limit_s: u32) -> String {
    if matches!(said.code, 124 | 137) {
        return format!("no answer within {limit_s} s");
    }
    match last_lines(said.lines.iter().map(String::as_str)) {
        text if text.is_empty() => format!("exit code {}", said.code),
        text => text,
    }
}

/// Returns the last two lines with text as one, without the `#` with which nccl-tests begins lines.
fn last_lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines = lines.map(|line| line.trim_matches(|c: char| c == '#' || c.is_whitespace()));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(2)..].join("; ")
}

/// Returns what is wrong with each GPU for which `fault` returns something.
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

/// Returns the first of these texts, and how many there are in addition.
fn shortened<T: AsRef<str>>(texts: &[T]) -> String {
    let first: Vec<&str> = texts.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match texts.len().saturating_sub(SHOWN) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use proptest::prelude::*;
    use trainplan_shared::campaign::Clusters;
    use trainplan_shared::catalog::Catalog;
    use trainplan_shared::spec::Spec;

    const GPU: &str = "NVIDIA H100 80GB HBM3, 345, 1980, 700.00, 700.00, 31, 4, 81559, 0, 0x0000000000000001";

    fn check(nodes: u32, gpu: Option<&str>) -> GpuCheck {
        let gpu = gpu.and_then(|id| Catalog::embedded().gpu(id).ok());
        let job = GpuCheckJob::new(&Spec::default(), nodes, 4).unwrap();
        GpuCheck { job, exports: String::new(), gpu }
    }

    /// What `gpus.sh` says of a node whose all-reduce reaches a rate.
    fn healthy(node: &str, rate: f64) -> String {
        let gpus: String = (0..4).map(|index| format!("{node} smi\t{index}, {GPU}\n")).collect();
        format!(
            "node\t{node}\n{node} smi!\t0\n{gpus}{node} all-reduce!\t0\n\
             {node} all-reduce\t# Out of bounds values : 0 OK\n{node} all-reduce\t# Avg bus bandwidth    : {rate}\n"
        )
    }

    /// Returns the findings that are not ok: verdict, check and what was seen.
    fn judged(check: &GpuCheck, result: &str) -> Vec<(Verdict, String, String)> {
        let found = check.judge(result).into_iter().filter(|finding| finding.verdict != Verdict::Ok);
        found.map(|finding| (finding.verdict, finding.check, finding.seen)).collect()
    }

    #[test]
    fn healthy_nodes_pass_every_check() {
        let text = healthy("n2", 440.2) + &healthy("n1", 445.6);
        let found = check(2, Some("h100")).judge(&text);
        let seen: Vec<(&str, &str)> =
            found.iter().map(|finding| (finding.check.as_str(), finding.seen.as_str())).collect();
        let all_reduce = "440 GB/s or more, at least 302 expected"; // 0.67 of 450 GB/s
        assert_eq!(
            seen,
            [
                ("GPU job", "ran on n1, n2"),
                ("GPU count", "4 per node"),
                ("GPU type", "NVIDIA H100 80GB HBM3"),
                ("GPU clocks", "up to 1980 MHz"),
                ("GPU power", "limit of 700 W"),
                ("GPU memory", "free"),
                ("GPU errors", "no uncorrected ECC errors"),
                ("GPU slowdown", "none"),
                ("all-reduce", all_reduce),
            ]
        );
        assert!(found.iter().all(|finding| finding.verdict == Verdict::Ok), "{found:?}");
    }

    #[test]
    fn every_fault_names_its_gpu() {
        let third = format!("n1 smi\t2, {GPU}");
        let replaced = |old: &str, new: &str| {
            let changed = third.replace(old, new);
            assert_ne!(changed, third);
            healthy("n1", 445.6).replace(&third, &changed)
        };
        let one = |verdict, check: &str, seen: &str| vec![(verdict, check.to_string(), seen.to_string())];
        let cases = [
            (
                replaced(" 1980,", " 1755,"),
                one(Verdict::Warning, "GPU clocks", "n1 GPU 2: up to 1755 of 1980 MHz"),
            ),
            (
                replaced(" 700.00, 700", " 500.00, 700"),
                one(Verdict::Warning, "GPU power", "n1 GPU 2: limit of 500 instead of 700 W"),
            ),
            (
                replaced(" 4, 81559", " 40960, 81559"),
                one(Verdict::Warning, "GPU memory", "n1 GPU 2: 40.0 of 80 GiB in use"),
            ),
            (replaced(", 0, 0x", ", 3, 0x"), one(Verdict::Problem, "GPU errors", "n1 GPU 2: 3 uncorrected")),
            (
                replaced("0x0000000000000001", "0x0000000000000048"),
                one(
                    Verdict::Warning,
                    "GPU slowdown",
                    "n1 GPU 2: hardware slowdown and hardware thermal slowdown at 31 °C, 345 MHz",
                ),
            ),
            (
                healthy("n1", 445.6).replace(&format!("{third}\n"), ""),
                one(Verdict::Problem, "GPU count", "n1: 3 instead of 4"),
            ),
            (healthy("n1", 210.0), one(Verdict::Warning, "all-reduce", "n1: 210 GB/s")),
            (
                healthy("n1", 445.6).replace("all-reduce!\t0", "all-reduce!\t1"),
                one(
                    Verdict::Problem,
                    "all-reduce",
                    "n1: Out of bounds values : 0 OK; Avg bus bandwidth    : 445.6",
                ),
            ),
            (
                healthy("n1", 445.6).replace("all-reduce!\t0", "all-reduce!\t124"),
                one(Verdict::Problem, "all-reduce", "n1: no answer within 120 s"),
            ),
        ];
        for (result, wanted) in cases {
            assert_eq!(judged(&check(1, Some("h100")), &result), wanted, "{result}");
        }
    }

    #[test]
    fn a_low_power_limit_of_all_gpus_is_compared_with_the_default() {
        let text = healthy("n1", 445.6).replace(" 700.00, 700", " 500.00, 700");
        let found = judged(&check(1, None), &text);
        assert_eq!((found.len(), found[0].1.as_str()), (1, "GPU power"), "{found:?}");
    }

    #[test]
    fn another_gpu_type_is_reported() {
        let seen = |gpu| judged(&check(1, Some(gpu)), &healthy("n1", 445.6)).into_iter().map(|found| found.2);
        assert_eq!(seen("a100").collect::<Vec<_>>(), ["NVIDIA H100 80GB HBM3; the profile has a100"]);
        assert_eq!(seen("h100-500w").count(), 0);
    }

    #[test]
    fn nodes_without_nvidia_smi_or_an_answer_are_problems() {
        let text = "node\tn1\nn1 smi!\t127\nn1 smi\tnot found\nnode\tn2\n";
        let found = judged(&check(3, Some("h100")), text);
        let wanted =
            [("GPU job", "2 of 3 nodes answered: n1, n2"), ("nvidia-smi", "n1: not found, n2: no answer")];
        let wanted = wanted.map(|(check, seen)| (Verdict::Problem, check.to_string(), seen.to_string()));
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_nvidia_smi_does_not_report_is_not_judged() {
        let gpu = "node\tn1\nn1 smi!\t0\nn1 smi\t0, NVIDIA, Inc. H100, [N/A], [N/A], [N/A], [N/A], 31, [N/A], [N/A], [N/A], [N/A]\n";
        let mut one = check(1, Some("h100"));
        one.job.gpus_per_node = 1;
        let found = judged(&one, gpu);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn the_job_has_the_variables_of_the_profile() {
        let text = "version = 1\n[cluster.alpha]\nssh = \"alpha\"\n\
                    env = { ALL_REDUCE_PERF = \"/opt/nccl tests/all_reduce_perf\", HF_TOKEN = { env = \"HF_TOKEN\" } }\n";
        let clusters = Clusters::parse(text).unwrap();
        let check = GpuCheck::new(clusters.get(&"alpha".parse().unwrap()).unwrap(), 1).unwrap();
        assert_eq!(check.exports, "export ALL_REDUCE_PERF='/opt/nccl tests/all_reduce_perf'\n");
    }

    proptest! {
        #[test]
        fn no_result_stops_the_judgement(
            lines in prop::collection::vec("(node|n1 smi!?|n1 all-reduce!?)\t(n1|-?[0-9]{1,20}|[0-9a-fx\\[\\]., é:#]{0,60}|PICK)", 0..20),
        ) {
            let text = lines.join("\n").replace("PICK", &format!("0, {GPU}"));
            prop_assert!(!check(1, Some("h100")).judge(&text).is_empty());
        }
    }
}
