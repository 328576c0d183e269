//! Judges the answers.

mod accounts;
mod installations;
mod job_requests;
mod login_node;
mod partitions;
mod slurm;

use super::answers::{Answers, CommandOutput};
use super::scope::{Scope, key};
use super::{Finding, LinkMeasurements};
use trainplan_shared::campaign::Cluster;

/// Free space below which a file system counts as full: not even a job's script and log fit.
const FULL_KIB: u64 = 1 << 10;

/// Returns all findings about a cluster, in the order in which to act on them.
pub(super) fn of_cluster(
    cluster: &Cluster,
    scope: &Scope,
    measured: &LinkMeasurements,
    answers: &Answers,
) -> Vec<Finding> {
    let mut found = Vec::new();
    login_node::connection(measured, answers, &mut found);
    login_node::machine(answers, &mut found);
    if let Some(config) = slurm::slurm(answers, true, &mut found) {
        partitions::of_cluster(cluster, scope, answers, &mut found);
        slurm::job_history(config, answers, &mut found);
        accounts::accounts(scope, config, answers, &mut found);
        accounts::qos(scope, config, answers, &mut found);
        job_requests::profile(scope, config, answers, &mut found);
        found.push(slurm::comments(answers));
    }
    installations::installations(scope, answers, &mut found);
    let mut paths = (0..scope.installations.len()).map(|index| format!("{} install", key(index)));
    let is_in_profile = paths.any(|key| answers.one(&key) == answers.one("llmb"));
    found.extend(installations::llmb_run(is_in_profile, answers));
    found
}

/// Returns the findings about what the jobs of some runs depend on.
pub(super) fn of_runs(scope: &Scope, answers: &Answers) -> Vec<Finding> {
    let mut found = Vec::new();
    login_node::machine(answers, &mut found);
    let mut of_slurm = Vec::new();
    let config = slurm::slurm(answers, false, &mut of_slurm);
    // A controller that does not answer now may be up when jobs are submitted, which is tried several times.
    let is_installed = answers.all("lacks-slurm").is_empty();
    let softened = |finding: Finding| if is_installed { finding.into_warning() } else { finding };
    found.extend(of_slurm.into_iter().map(softened));
    if let Some(config) = config {
        partitions::of_runs(scope, answers, &mut found);
        accounts::accounts(scope, config, answers, &mut found);
        accounts::qos(scope, config, answers, &mut found);
        job_requests::job_requests(scope, config, answers, &mut found);
    }
    installations::installations(scope, answers, &mut found);
    found
}

fn seen(output: Option<CommandOutput>) -> String {
    output.map_or_else(|| "no answer".to_string(), CommandOutput::text)
}

/// Returns an amount in a fitting unit.
fn size(kib: u64) -> String {
    match kib {
        0..1024 => format!("{kib} KiB"),
        1024..1_048_576 => format!("{} MiB", kib >> 10),
        1_048_576..1_073_741_824 => format!("{} GiB", kib >> 20),
        _ => format!("{} TiB", kib >> 30),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use trainplan_shared::campaign::{Installation, UsedPath};

    #[test]
    fn answers_are_read_by_key() {
        let text = "partition!\t0\npartition\tPartitionName=h100 State=UP MaxTime=1-00:00:00 TotalNodes=8\n\
                    config!\t0\nconfig\tMinJobAge               = 300 sec\nnoise\nnodes!\t124\nnodes\t\n";
        let answers = Answers::read(text);
        assert_eq!(answers.output("partition").and_then(|said| said.word("TotalNodes")), Some("8"));
        assert_eq!(answers.output("config").and_then(|said| said.setting("MinJobAge")), Some("300 sec"));
        assert_eq!(
            answers.output("nodes").map(CommandOutput::text).as_deref(),
            Some("no answer within 15 s")
        );
        assert!(answers.output("sacct").is_none());
    }

    /// What a login node answers before a round, in which one thing is not in order.
    fn answers_of_runs(more: &str) -> Answers {
        Answers::read(&format!(
            "home\t/home/me\nhome-free\t9000000\ncontroller!\t0\ncontroller\tSlurmctld is UP\nconfig!\t0\n\
             config\tAccountingStorageEnforce = associations,limits\n{more}"
        ))
    }

    #[test]
    fn runs_are_stopped_by_what_their_jobs_would_fail_on() {
        let place = Installation {
            release: None,
            install_path: Some("/lustre/megatron".into()),
            recipe_dirs: Vec::new(),
            used: vec![(UsedPath::Image, "/lustre/nemo.sqsh".into()), (UsedPath::Mount, "/raid".into())],
        };
        let scope = Scope {
            partitions: vec!["batch".into()],
            accounts: vec!["research".into()],
            installations: vec![place],
            ..Scope::default()
        };
        const PARTITION: &str = "partition batch!\t0\npartition batch\tPartitionName=batch State=UP\n";
        const ACCOUNT: &str = "account research!\t0\naccount research\tresearch|\n";
        let judged = |more: &str| -> Vec<(Verdict, String, String)> {
            let found = of_runs(&scope, &answers_of_runs(more)).into_iter();
            let found = found.filter(|finding| finding.verdict != Verdict::Ok);
            found.map(|finding| (finding.verdict, finding.check, finding.seen)).collect()
        };
        assert!(judged(&format!("{PARTITION}{ACCOUNT}")).is_empty());
        let cases = [
            (
                "partition batch!\t1\npartition batch\tPartition batch not found\naccount research!\t0\n",
                vec![
                    (Verdict::Problem, "partition", "batch: Partition batch not found"),
                    (Verdict::Problem, "account", "you may not use research"),
                ],
            ),
            (
                "place0 container lacks\t/lustre/nemo.sqsh\nplace0 mount lacks\t/raid\n",
                vec![
                    (Verdict::Warning, "Megatron-LM", "not on the login node: /raid"),
                    (Verdict::Problem, "Megatron-LM", "not found: /lustre/nemo.sqsh"),
                ],
            ),
            ("nodes batch!\t0\nnodes batch\t8 maint gpu:8\n", vec![(Verdict::Warning, "nodes", "8 maint")]),
            (
                "partition batch!\t124\npartition batch\t\naccount research!\t0\naccount research\tresearch|\n",
                vec![(Verdict::Warning, "partition", "batch: no answer within 15 s")],
            ),
            (
                "home-refuses\tDisk quota exceeded\n",
                vec![(Verdict::Problem, "home", "can't write to /home/me: Disk quota exceeded")],
            ),
        ];
        for (more, wanted) in cases {
            let whole = match more.starts_with("partition") {
                true => more.to_string(),
                false => format!("{PARTITION}{ACCOUNT}{more}"),
            };
            let found = judged(&whole);
            let found: Vec<_> = found
                .iter()
                .map(|(verdict, check, seen)| (*verdict, check.as_str(), seen.as_str()))
                .collect();
            assert_eq!(found, wanted, "{more}");
        }
    }

    #[test]
    fn sizes_have_a_fitting_unit() {
        assert_eq!([1, 2048, 3 << 20, 5 << 30].map(size), ["1 KiB", "2 MiB", "3 GiB", "5 TiB"]);
    }
}
