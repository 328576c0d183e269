//! Judges whether the partitions of runs can run what their jobs ask for. Slurm refuses other jobs, or never starts them.

use super::super::answers::{Answers, CommandOutput};
use super::super::scope::{RunsRequest, Scope};
use super::super::{Finding, shortened};
use super::accounts::enforces_qos;
use super::partitions::PartitionLimits;

/// Why a partition can't run a job.
enum Obstacle {
    TimeLimit(String),
    Nodes(String),
    Gpus(String),
    Qos(String),
}

/// Judges every job. A job with several partitions runs in one of them.
pub(super) fn job_requests(
    scope: &Scope,
    config: CommandOutput,
    answers: &Answers,
    found: &mut Vec<Finding>,
) {
    let (mut times, mut nodes, mut gpus, mut qos) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for asked in &scope.requests {
        let limits = asked.partitions.iter().map(|name| PartitionLimits::read(name, answers));
        // There is a finding about an unknown partition already.
        let Some(limits) = limits.collect::<Option<Vec<_>>>() else { continue };
        let why = |partition| obstacle(asked, partition, enforces_qos(config), answers);
        let Some(obstacles) = limits.iter().map(why).collect::<Option<Vec<_>>>() else { continue };
        for obstacle in obstacles {
            match obstacle {
                Obstacle::TimeLimit(text) => times.push(text),
                Obstacle::Nodes(text) => nodes.push(text),
                Obstacle::Gpus(text) => gpus.push(text),
                Obstacle::Qos(text) => qos.push(text),
            }
        }
    }
    let kinds = [
        ("time limit", times, "Lower time-limit, or set a partition that allows more."),
        ("nodes", nodes, "Use fewer GPUs, or set a partition with more nodes."),
        (
            "GPUs per node",
            gpus,
            "Correct gpus-per-node, use fewer GPUs, or set another partition. `sinfo -o '%P %D %G'` lists nodes and GPUs.",
        ),
        ("QOS", qos, "Correct qos in slurm-params, or set another partition."),
    ];
    let kinds = kinds.into_iter().filter(|(_, texts, _)| !texts.is_empty());
    found.extend(
        kinds.map(|(check, texts, what_to_do)| Finding::problem(check, texts.join("; "), what_to_do)),
    );
}

/// Returns why a partition can't run a job; `None` if it can, as far as is known.
fn obstacle(
    asked: &RunsRequest,
    partition: &PartitionLimits,
    enforces_qos: bool,
    answers: &Answers,
) -> Option<Obstacle> {
    let (job, name, runs) = (&asked.job, partition.name, shortened(&asked.runs));
    // A QOS may lift a limit of the partition.
    let is_lifted = |flag: &str| job.qos.iter().any(|qos| has_flag(qos, flag, answers));
    if let (Some(wanted), Some(most)) = (job.time_limit, partition.max_time)
        && wanted > most
        && !is_lifted("PartitionTimeLimit")
    {
        return Some(Obstacle::TimeLimit(format!("{wanted} for {runs}, but {name} allows at most {most}")));
    }
    if let Some(most) =
        partition.max_nodes.filter(|most| job.nodes > *most && !is_lifted("PartitionMaxNodes"))
    {
        return Some(Obstacle::Nodes(format!(
            "{} for {runs}, but {name} allows at most {most} per job",
            job.nodes
        )));
    }
    if let Some(all) = partition.count_nodes(|_| true).filter(|all| job.nodes > *all) {
        return Some(Obstacle::Nodes(format!("{} for {runs}, but {name} has {all}", job.nodes)));
    }
    // Slurm may not know of the GPUs of nodes for which it lists none.
    let fits = |gpus: u32| gpus >= job.gpus_per_node || (gpus == 0 && !job.asks_for_gpus);
    if let Some(fitting) = partition.count_nodes(fits).filter(|fitting| job.nodes > *fitting) {
        return Some(Obstacle::Gpus(format!(
            "{} on {} for {runs}, but Slurm lists {fitting} such nodes in {name}",
            job.gpus_per_node,
            if job.nodes == 1 { "1 node".to_string() } else { format!("{} nodes", job.nodes) },
        )));
    }
    let allowed = partition.qos.as_ref().filter(|_| enforces_qos)?;
    let refused = job.qos.iter().find(|qos| !allowed.contains(&qos.as_str()))?;
    let allowed = allowed.join(", ");
    Some(Obstacle::Qos(format!("{refused} for {runs}, but {name} allows only {allowed}")))
}

/// Returns whether a quality of service has a flag.
fn has_flag(qos: &str, flag: &str, answers: &Answers) -> bool {
    let said = answers.output(&format!("qos {qos}")).filter(|said| said.code == 0);
    let mut words = said.into_iter().flat_map(|said| said.lines).flat_map(|line| line.split(['|', ',']));
    words.any(|word| word == flag)
}

#[cfg(test)]
mod tests {
    use super::super::super::Verdict;
    use super::*;
    use trainplan_shared::launch::JobRequest;

    fn request(partitions: &[&str], change: impl Fn(&mut JobRequest)) -> RunsRequest {
        let mut job = JobRequest {
            nodes: 4,
            gpus_per_node: 8,
            asks_for_gpus: true,
            time_limit: "01:00:00".parse().ok(),
            qos: Vec::new(),
        };
        change(&mut job);
        let partitions = partitions.iter().map(ToString::to_string).collect();
        RunsRequest { runs: vec!["a".into()], partitions, job }
    }

    /// Returns the checks that found a problem and what they saw.
    fn judged(asked: RunsRequest, enforce: &str) -> Vec<(String, String)> {
        let answers = Answers::read(&format!(
            "config!\t0\nconfig\tAccountingStorageEnforce = {enforce}\n\
             partition batch!\t0\npartition batch\tPartitionName=batch AllowQos=ALL MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP\n\
             nodes batch!\t0\nnodes batch\t4 idle gpu:8\nnodes batch\t4 mix gpu:4(S:0)\n\
             partition short!\t0\npartition short\tPartitionName=short AllowQos=normal,high MaxNodes=2 MaxTime=00:30:00 State=UP\n\
             nodes short!\t0\nnodes short\t4 idle (null)\n\
             qos long!\t0\nqos long\tlong|DenyOnLimit,PartitionTimeLimit\n"
        ));
        let scope = Scope { requests: vec![asked], ..Scope::default() };
        let mut found = Vec::new();
        job_requests(&scope, answers.output("config").unwrap(), &answers, &mut found);
        assert!(
            found.iter().all(|finding| finding.verdict == Verdict::Problem && !finding.what_to_do.is_empty())
        );
        found.into_iter().map(|finding| (finding.check, finding.seen)).collect()
    }

    #[test]
    fn jobs_that_no_partition_of_theirs_can_run_are_problems() {
        type Change = fn(&mut JobRequest);
        let cases: [(&[&str], Change, &str, &str); 6] = [
            (
                &["short"],
                |job| job.nodes = 1,
                "time limit",
                "01:00:00 for a, but short allows at most 00:30:00",
            ),
            (&["short"], |job| job.time_limit = None, "nodes", "4 for a, but short allows at most 2 per job"),
            (&["batch"], |job| job.nodes = 16, "nodes", "16 for a, but batch has 8"),
            (
                &["batch"],
                |job| job.nodes = 5,
                "GPUs per node",
                "8 on 5 nodes for a, but Slurm lists 4 such nodes in batch",
            ),
            (
                &["short"],
                |job| (job.nodes, job.time_limit) = (1, None),
                "GPUs per node",
                "8 on 1 node for a, but Slurm lists 0 such nodes in short",
            ),
            (
                &["short"],
                |job| {
                    *job = JobRequest {
                        nodes: 1,
                        gpus_per_node: 8,
                        asks_for_gpus: false,
                        time_limit: None,
                        qos: vec!["long".into()],
                    };
                },
                "QOS",
                "long for a, but short allows only normal, high",
            ),
        ];
        for (partitions, change, check, seen) in cases {
            let found = judged(request(partitions, change), "associations,limits,qos");
            assert_eq!(found, [(check.to_string(), seen.to_string())]);
        }
    }

    #[test]
    fn jobs_that_a_partition_can_run_pass() {
        let none: [(String, String); 0] = [];
        assert_eq!(judged(request(&["batch"], |_| {}), "none"), none);
        // One of two partitions is enough, and nothing is known of a third.
        assert_eq!(judged(request(&["short", "batch"], |_| {}), "none"), none);
        assert_eq!(judged(request(&["short", "nowhere"], |_| {}), "none"), none);
        let whole_node = |job: &mut JobRequest| {
            (job.nodes, job.time_limit, job.asks_for_gpus) = (1, "00:30:00".parse().ok(), false);
        };
        assert_eq!(judged(request(&["short"], whole_node), "none"), none);
        // Its QOS lifts the limit, and Slurm does not check which QOS a partition allows.
        let lifted = |job: &mut JobRequest| {
            (job.nodes, job.asks_for_gpus, job.qos) = (1, false, vec!["long".into()]);
        };
        assert_eq!(judged(request(&["short"], lifted), "associations"), none);
    }
}
