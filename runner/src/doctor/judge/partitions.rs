//! Judges partitions and their nodes.

use super::super::Finding;
use super::super::answers::{Answers, CommandOutput};
use super::super::scope::Scope;
use super::seen;
use trainplan_shared::campaign::Cluster;
use trainplan_shared::launch::TimeLimit;
use trainplan_shared::problem::one_of;

/// Judges the partitions of a profile, or Slurm's default partition for a profile without one.
pub(super) fn of_cluster(cluster: &Cluster, scope: &Scope, answers: &Answers, found: &mut Vec<Finding>) {
    let (names, origin) = match (scope.partitions.as_slice(), answers.one("partition-default")) {
        ([], Some(default)) => (vec![default], " (the default)"),
        (named, _) => (named.iter().map(String::as_str).collect(), ""),
    };
    if names.is_empty() {
        found.push(Finding::problem(
            "partition",
            "the profile has no partition, and Slurm has no default",
            "Set partition in the profile. `sinfo` lists the partitions.",
        ));
    }
    for name in names {
        if partition(name, origin, answers, found) {
            nodes(name, answers, found);
            gpus_of_nodes(name, cluster, answers, found);
        }
    }
}

/// Judges the partitions of some runs.
pub(super) fn of_runs(scope: &Scope, answers: &Answers, found: &mut Vec<Finding>) {
    for name in &scope.partitions {
        let mut of_nodes = Vec::new();
        if partition(name, "", answers, found) {
            nodes(name, answers, &mut of_nodes);
        }
        // Jobs wait for their nodes, for example during maintenance.
        found.extend(of_nodes.into_iter().map(Finding::into_warning));
    }
}

/// Judges a partition. Returns whether it exists, so that its nodes can be judged.
fn partition(name: &str, origin: &str, answers: &Answers, found: &mut Vec<Finding>) -> bool {
    let said = answers.output(&format!("partition {name}"));
    if said.is_some_and(CommandOutput::is_late) {
        let seen = format!("{name}: {}", seen(said));
        found.push(Finding::warning("partition", seen, "Slurm is slow. Check `sinfo` there."));
        return false;
    }
    let state = said.and_then(|said| Some((said, said.word("State").filter(|_| said.code == 0)?)));
    let Some((said, state)) = state else {
        found.push(Finding::problem(
            "partition",
            format!("{name}: {}", seen(said)),
            "Set partition to one that exists. `sinfo` lists the partitions that you may use.",
        ));
        return false;
    };
    let of_it = |what| said.word(what).unwrap_or("?");
    let seen = format!(
        "{name}{origin}: {}, {} nodes, jobs up to {}",
        state.to_lowercase(),
        of_it("TotalNodes"),
        match of_it("MaxTime") {
            "UNLIMITED" => "any length",
            limit => limit,
        }
    );
    found.push(match state {
        "UP" => Finding::ok("partition", seen),
        _ => Finding::problem("partition", seen, "Wait until the partition is up, or set another one."),
    });
    true
}

/// Returns the number, state and generic resources of a partition's nodes; `None` without an answer.
fn rows<'a>(partition: &str, answers: &'a Answers) -> Option<Vec<(&'a str, &'a str, &'a str)>> {
    let said = answers.output(&format!("nodes {partition}")).filter(|said| said.code == 0)?;
    let row = |line: &'a String| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?, words.next()?))
    };
    Some(said.lines.iter().filter_map(row).collect())
}

/// What a partition allows a job.
pub(super) struct PartitionLimits<'a> {
    pub(super) name: &'a str,
    /// The longest time limit; `None` without a limit.
    pub(super) max_time: Option<TimeLimit>,
    /// The most nodes of a job; `None` without a limit.
    pub(super) max_nodes: Option<u32>,
    /// How many nodes it has with how many GPUs each; `None` if Slurm did not list them.
    nodes: Option<Vec<(u32, u32)>>,
    /// Which qualities of service it allows.
    pub(super) qos: Admitted<'a>,
    /// Which accounts it allows.
    pub(super) accounts: Admitted<'a>,
    /// Its own quality of service, whose limits hold for all its jobs.
    pub(super) own_qos: Option<&'a str>,
}

/// Which names a partition allows. Slurm shows either those that it allows or those that it refuses.
pub(super) enum Admitted<'a> {
    All,
    Only(Vec<&'a str>),
    AllBut(Vec<&'a str>),
}

impl<'a> Admitted<'a> {
    /// Reads the names of a kind, such as `Qos`, in a partition's description.
    fn read(said: CommandOutput<'a>, kind: &str) -> Admitted<'a> {
        let names = |verb: &str| {
            let list = said.word(&format!("{verb}{kind}")).filter(|list| *list != "ALL")?;
            Some(list.split(',').collect())
        };
        if let Some(allowed) = names("Allow") {
            return Admitted::Only(allowed);
        }
        names("Deny").map_or(Admitted::All, Admitted::AllBut)
    }

    /// Returns why a partition refuses the first of these names, for a sentence; `None` if it doesn't. The others include it, like the
    /// accounts above an account. A denied one of them does not count, because older Slurm compares only the first.
    pub(super) fn refusal(&self, partition: &str, names: &[&str]) -> Option<String> {
        let lists = |list: &[&str], name: &str| list.iter().any(|known| known.eq_ignore_ascii_case(name));
        match self {
            Admitted::Only(allowed) if !names.iter().any(|name| lists(allowed, name)) => {
                Some(format!("{partition} allows only {}", allowed.join(", ")))
            }
            Admitted::AllBut(denied) if names.first().is_some_and(|name| lists(denied, name)) => {
                Some(format!("{partition} refuses {}", denied.join(", ")))
            }
            _ => None,
        }
    }
}

impl<'a> PartitionLimits<'a> {
    /// Returns the limits; `None` if Slurm did not describe the partition.
    pub(super) fn read(name: &'a str, answers: &'a Answers) -> Option<PartitionLimits<'a>> {
        let said = answers.output(&format!("partition {name}")).filter(|said| said.code == 0)?;
        said.word("State")?;
        let number = |text: &str| text.parse::<u32>().ok();
        // Some sites don't show nodes to users. Without one of the numbers, the sums would be too small.
        let nodes = rows(name, answers).filter(|rows| !rows.is_empty()).and_then(|rows| {
            rows.iter().map(|&(count, _, gres)| Some((number(count)?, gpus(gres)))).collect()
        });
        // Where there is no limit, Slurm writes a word instead of a number.
        Some(PartitionLimits {
            name,
            max_time: said.word("MaxTime").and_then(|limit| limit.parse().ok()),
            max_nodes: said.word("MaxNodes").and_then(number),
            nodes,
            qos: Admitted::read(said, "Qos"),
            accounts: Admitted::read(said, "Accounts"),
            own_qos: said.word("QoS").filter(|name| *name != "N/A"),
        })
    }

    /// Returns the number of nodes whose GPUs satisfy `fits`; `None` if it is unknown.
    pub(super) fn count_nodes(&self, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let fitting = self.nodes.as_ref()?.iter().filter(|(_, gpus)| fits(*gpus));
        Some(fitting.map(|(count, _)| *count).sum())
    }
}

/// Judges the states of a partition's nodes.
fn nodes(partition: &str, answers: &Answers, found: &mut Vec<Finding>) {
    let Some(rows) = rows(partition, answers) else { return };
    let is_out = |state: &str| {
        ["down", "drain", "drng", "fail", "inval", "maint", "boot"].iter().any(|bad| state.starts_with(bad))
    };
    let mut states: Vec<String> = rows.iter().map(|(count, state, _)| format!("{count} {state}")).collect();
    states.dedup();
    let seen = states.join(", ");
    found.push(if rows.is_empty() || rows.iter().all(|(_, state, _)| is_out(state)) {
        let seen = if seen.is_empty() { "the partition has no nodes".to_string() } else { seen };
        Finding::problem("nodes", seen, "Ask the site. No node of the partition accepts jobs now.")
    } else {
        Finding::ok("nodes", seen)
    });
}

/// Judges the GPUs that Slurm lists for a partition's nodes.
fn gpus_of_nodes(partition: &str, cluster: &Cluster, answers: &Answers, found: &mut Vec<Finding>) {
    let Some(rows) = rows(partition, answers) else { return };
    let mut kinds: Vec<&str> = rows.iter().map(|(_, _, gres)| *gres).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let wanted = cluster.gpus_per_node();
    let counted: Vec<u32> = kinds.iter().map(|gres| gpus(gres)).collect();
    let seen = format!("{} per node", one_of(&kinds));
    found.push(if counted.iter().all(|count| *count == 0) {
        Finding::warning(
            "GPUs",
            "Slurm lists no GPUs for these nodes",
            "If the nodes have GPUs, jobs get them with the whole node. Slurm rejects jobs that request \
             GPUs with --gres, so remove gres from the profile.",
        )
    } else if counted.iter().all(|count| *count == wanted) {
        Finding::ok("GPUs", seen)
    } else {
        Finding::warning(
            "GPUs",
            seen,
            format!(
                "The profile expects {wanted} per node. Correct gpus-per-node, or set another partition."
            ),
        )
    });
}

/// Counts the GPUs in sinfo's generic resources, such as `gpu:h100:8(S:0-1),shard:32`.
fn gpus(gres: &str) -> u32 {
    let entries = gres.split(',').map(|entry| entry.split('(').next().unwrap_or_default());
    let counts = entries.filter(|entry| *entry == "gpu" || entry.starts_with("gpu:"));
    counts.filter_map(|entry| entry.rsplit(':').next()?.parse::<u32>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_in_every_form_of_gres() {
        let cases = [
            ("(null)", 0),
            ("gpu:8", 8),
            ("gpu:h100:8(S:0-1)", 8),
            ("gpu:a100:4(S:0),gpu:h100:4(S:1),shard:32", 8),
            ("gpu_mem:80,craynetwork:4", 0),
            ("gpu", 0),
        ];
        for (gres, count) in cases {
            assert_eq!(gpus(gres), count, "{gres}");
        }
    }
}
