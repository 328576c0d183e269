//! Checks the GPUs of some nodes: a short job runs `gpus.sh` on them, and its answers are judged here.

mod all_reduce;
mod seen_gpu;
mod state;

use super::answers::{Answers, CommandOutput};
use super::{Finding, shortened};
use crate::probe::{self, ProbeError, SubmittedProbe};
use all_reduce::all_reduce;
use seen_gpu::SeenGpu;
use std::time::Duration;
use trainplan_shared::campaign::{Cluster, VariableValue};
use trainplan_shared::catalog::Gpu;
use trainplan_shared::launch::{EnvOverrides, ShellWord};
use trainplan_shared::probe::GpuCheckJob;
use trainplan_shared::problem::Problem;

/// The name of the finding about the job itself.
const JOB: &str = "GPU job";

/// The time limit of nvidia-smi in `gpus.sh`, in seconds.
const SMI_S: u32 = 60;

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
    /// Returns the check of this many nodes of a cluster.
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
        let script = format!("#!/bin/sh\n{}{}", self.exports, include_str!("../gpus.sh"));
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
        found.extend(state::count(&listing, self.job.gpus_per_node, &gpus));
        if gpus.is_empty() {
            return found;
        }
        found.extend([
            state::gpu_type(self.gpu, &gpus),
            state::clocks(&gpus),
            state::power(&gpus),
            state::memory(&gpus),
            state::errors(&gpus),
            state::slowdowns(&gpus),
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
            format!("job {job} waited in the queue for {} minutes and was cancelled", waited.as_secs() / 60),
            "Repeat the command when nodes are idle. `sinfo` lists them.",
        )
    }
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

/// Returns the last two lines with text as one, without the `#` that begins lines of nccl-tests.
fn last_lines<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let lines = lines.map(|line| line.trim_matches(|c: char| c == '#' || c.is_whitespace()));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(2)..].join("; ")
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
