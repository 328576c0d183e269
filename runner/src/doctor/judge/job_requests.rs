//! Judges whether the partitions can run the runs' jobs. Slurm refuses other jobs, or never starts them.

use super::super::answers::{Answers, CommandOutput};
use super::super::scope::{RunsRequest, Scope};
use super::super::{Finding, shortened};
use super::accounts::enforces;
use super::partitions::PartitionLimits;
use trainplan_shared::launch::TimeLimit;

/// Why a partition can't run a job.
enum Obstacle {
    TimeLimit(String),
    Nodes(String),
    Gpus(String),
    Account(String),
    Qos(String),
}

/// What to do about an account or a QOS that a partition refuses.
const OTHER_ACCOUNT: &str = "Set another account, or a partition that allows this one. `scontrol show partition` lists the accounts \
                             that a partition allows or denies.";
const OTHER_QOS: &str = "Correct qos in slurm-params, or set another partition.";

/// Judges every job. A job with several partitions needs only one that can run it.
pub(super) fn job_requests(
    scope: &Scope,
    config: CommandOutput,
    answers: &Answers,
    found: &mut Vec<Finding>,
) {
    let (mut times, mut nodes, mut gpus) = (Vec::new(), Vec::new(), Vec::new());
    let (mut accounts, mut qos) = (Vec::new(), Vec::new());
    for asked in &scope.requests {
        let limits = asked.partitions.iter().map(|name| PartitionLimits::read(name, answers));
        // There is a finding about an unknown partition already.
        let Some(limits) = limits.collect::<Option<Vec<_>>>() else { continue };
        let why = |partition| obstacle(asked, partition, config, answers);
        let Some(obstacles) = limits.iter().map(why).collect::<Option<Vec<_>>>() else { continue };
        for obstacle in obstacles {
            match obstacle {
                Obstacle::TimeLimit(text) => times.push(text),
                Obstacle::Nodes(text) => nodes.push(text),
                Obstacle::Gpus(text) => gpus.push(text),
                Obstacle::Account(text) => accounts.push(text),
                Obstacle::Qos(text) => qos.push(text),
            }
        }
    }
    let kinds = [
        ("time limit", times, "Lower time-limit, or set a partition or a QOS that allows more."),
        ("nodes", nodes, "Use fewer GPUs, or set a partition with more nodes."),
        (
            "GPUs per node",
            gpus,
            "Correct gpus-per-node, use fewer GPUs, or set another partition. `sinfo -o '%P %D %G'` lists nodes and GPUs.",
        ),
        ("account", accounts, OTHER_ACCOUNT),
        ("QOS", qos, OTHER_QOS),
    ];
    let kinds = kinds.into_iter().filter(|(_, texts, _)| !texts.is_empty());
    found.extend(
        kinds.map(|(check, texts, what_to_do)| Finding::problem(check, texts.join("; "), what_to_do)),
    );
}

/// Judges whether the partitions of a profile allow its account and its QOS. Jobs run in one of the partitions.
pub(super) fn profile(scope: &Scope, config: CommandOutput, answers: &Answers, found: &mut Vec<Finding>) {
    let limits = scope.partitions.iter().map(|name| PartitionLimits::read(name, answers));
    let Some(limits) = limits.collect::<Option<Vec<_>>>() else { return };
    let account = scope.accounts.first().map(String::as_str);
    let qos: Vec<String> = scope.qos.iter().map(|used| used.name.clone()).collect();
    let why = |partition| refusal(account, &qos, "", partition, config, answers);
    for refused in limits.iter().map(why).collect::<Option<Vec<_>>>().unwrap_or_default() {
        found.extend(match refused {
            Obstacle::Account(text) => Some(Finding::problem("account", text, OTHER_ACCOUNT)),
            Obstacle::Qos(text) => Some(Finding::problem("QOS", text, OTHER_QOS)),
            _ => None,
        });
    }
}

/// Returns why a partition can't run a job; `None` without a known reason.
fn obstacle(
    asked: &RunsRequest,
    partition: &PartitionLimits,
    config: CommandOutput,
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
    if let Some(wanted) = job.time_limit.filter(|_| enforces(config, "limits"))
        && let Some((qos, most)) = longest(&job.qos, partition.own_qos, answers)
        && wanted > most
    {
        return Some(Obstacle::TimeLimit(format!(
            "{wanted} for {runs}, but QOS {qos} allows at most {most}"
        )));
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
    // Nodes that Slurm lists without GPUs may have some.
    let fits = |gpus: u32| gpus >= job.gpus_per_node || (gpus == 0 && !job.asks_for_gpus);
    if let Some(fitting) = partition.count_nodes(fits).filter(|fitting| job.nodes > *fitting) {
        return Some(Obstacle::Gpus(format!(
            "{} on {} for {runs}, but Slurm lists {fitting} such nodes in {name}",
            job.gpus_per_node,
            if job.nodes == 1 { "1 node".to_string() } else { format!("{} nodes", job.nodes) },
        )));
    }
    refusal(asked.account.as_deref(), &job.qos, &format!(" for {runs}"), partition, config, answers)
}

/// Returns why a partition refuses an account or one of these qualities of service; `None` without a known reason. `use_of`
/// says what they are for.
fn refusal(
    account: Option<&str>,
    qos: &[String],
    use_of: &str,
    partition: &PartitionLimits,
    config: CommandOutput,
    answers: &Answers,
) -> Option<Obstacle> {
    if let Some(account) = account.filter(|_| enforces(config, "associations")) {
        let above = answers.all(&format!("above {account}"));
        let accounts: Vec<&str> = [account].into_iter().chain(above.iter().map(String::as_str)).collect();
        if let Some(why) = partition.accounts.refusal(partition.name, &accounts) {
            return Some(Obstacle::Account(format!("{account}{use_of}, but {why}")));
        }
    }
    let mut qos = qos.iter().filter(|_| enforces(config, "qos"));
    qos.find_map(|name| {
        let why = partition.qos.refusal(partition.name, &[name.as_str()])?;
        Some(Obstacle::Qos(format!("{name}{use_of}, but {why}")))
    })
}

/// Returns the longest time limit of a job with these qualities of service, and which of them sets it; `None` without a limit.
/// The partition's own one comes first, unless a flag of the job's says otherwise.
fn longest<'a>(
    of_job: &'a [String],
    of_partition: Option<&'a str>,
    answers: &Answers,
) -> Option<(&'a str, TimeLimit)> {
    let limit = |name: &'a str| Some((name, max_wall(name, answers)?));
    // A job with several runs with one of them.
    let limits: Option<Vec<_>> = of_job.iter().map(|name| limit(name)).collect();
    let own = limits.into_iter().flatten().max_by_key(|(_, most)| *most);
    let partition = of_partition.and_then(limit);
    match of_job.iter().any(|name| has_flag(name, "OverPartQOS", answers)) {
        true => own.or(partition),
        false => partition.or(own),
    }
}

/// Returns the longest time limit that a quality of service allows: the last of the columns Name, Flags and MaxWall, which is empty
/// without a limit.
fn max_wall(qos: &str, answers: &Answers) -> Option<TimeLimit> {
    let said = answers.output(&format!("qos {qos}")).filter(|said| said.code == 0)?;
    said.lines.first()?.split('|').nth(2)?.parse().ok()
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
        RunsRequest { runs: vec!["a".into()], partitions, account: Some("research".into()), job }
    }

    /// Returns the checks that found a problem and what they saw.
    fn judged(asked: RunsRequest, enforce: &str) -> Vec<(String, String)> {
        let answers = Answers::read(&format!(
            "config!\t0\nconfig\tAccountingStorageEnforce = {enforce}\n\
             partition batch!\t0\npartition batch\tPartitionName=batch AllowQos=ALL MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP\n\
             nodes batch!\t0\nnodes batch\t4 idle gpu:8\nnodes batch\t4 mix gpu:4(S:0)\n\
             partition short!\t0\npartition short\tPartitionName=short AllowQos=normal,high MaxNodes=2 MaxTime=00:30:00 State=UP\n\
             nodes short!\t0\nnodes short\t4 idle (null)\n\
             partition own!\t0\npartition own\tPartitionName=own AllowGroups=ALL DenyAccounts=guests DenyQos=debug,long AllocNodes=ALL \
             Default=NO QoS=brief MaxNodes=UNLIMITED MaxTime=1-00:00:00 State=UP\n\
             partition closed!\t0\npartition closed\tPartitionName=closed AllowGroups=ALL AllowAccounts=ops,product AllowQos=ALL \
             AllocNodes=ALL Default=NO QoS=N/A MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP\n\
             qos long!\t0\nqos long\tlong|DenyOnLimit,PartitionTimeLimit|\n\
             qos brief!\t0\nqos brief\tbrief||00:20:00\n\
             qos day!\t0\nqos day\tday||1-00:00:00\n\
             qos first!\t0\nqos first\tfirst|OverPartQOS|00:40:00\n\
             above team\tproduct\nabove team\troot\n"
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
    fn the_longest_time_of_a_qos_holds_for_its_jobs() {
        let time = |partition: &str, wanted: &str, qos: &[&str]| {
            let asked = request(&[partition], |job| {
                job.time_limit = wanted.parse().ok();
                job.qos = qos.iter().map(ToString::to_string).collect();
            });
            judged(asked, "associations,limits,qos").into_iter().map(|(_, seen)| seen).collect::<Vec<_>>()
        };
        let none: [String; 0] = [];
        let refused = |text: &str| [text.to_string()];
        assert_eq!(time("batch", "1-00:00:00", &["day"]), none);
        assert_eq!(
            time("batch", "1-06:00:00", &["day"]),
            refused("1-06:00:00 for a, but QOS day allows at most 1-00:00:00")
        );
        // One of two is enough, and one without a limit allows everything.
        assert_eq!(time("batch", "01:00:00", &["brief", "day"]), none);
        assert_eq!(time("batch", "2-00:00:00", &["day", "long"]), none);
        // The partition's own comes first, unless the job's is above it.
        for qos in [&[][..], &["day"]] {
            let text = "01:00:00 for a, but QOS brief allows at most 00:20:00";
            assert_eq!(time("own", "01:00:00", qos), refused(text));
        }
        assert_eq!(time("own", "00:40:00", &["first"]), none);
        assert_eq!(
            time("own", "00:41:00", &["first"]),
            refused("00:41:00 for a, but QOS first allows at most 00:40:00")
        );
        let unchecked = request(&["own"], |_| {});
        assert_eq!(judged(unchecked, "associations,qos"), [] as [(String, String); 0]);
    }

    #[test]
    fn partitions_refuse_accounts_and_qualities_of_service() {
        let refused = |partition: &str, account: Option<&str>, qos: &[&str], enforce: &str| {
            let asked = request(&[partition], |job| {
                job.time_limit = None;
                job.qos = qos.iter().map(ToString::to_string).collect();
            });
            judged(RunsRequest { account: account.map(Into::into), ..asked }, enforce)
        };
        let none: [(String, String); 0] = [];
        let found = |check: &str, seen: &str| [(check.to_string(), seen.to_string())];
        let all = "associations,limits,qos";
        assert_eq!(
            refused("closed", Some("research"), &[], all),
            found("account", "research for a, but closed allows only ops, product")
        );
        assert_eq!(
            refused("own", Some("guests"), &[], all),
            found("account", "guests for a, but own refuses guests")
        );
        assert_eq!(
            refused("own", Some("research"), &["debug"], all),
            found("QOS", "debug for a, but own refuses debug, long")
        );
        // The account `team` is below `product`, and nothing is known of the default account.
        for account in [Some("OPS"), Some("team"), None] {
            assert_eq!(refused("closed", account, &["debug"], all), none);
        }
        assert_eq!(refused("closed", Some("research"), &[], "none"), none);
        assert_eq!(refused("own", Some("research"), &["debug"], "associations"), none);
    }

    #[test]
    fn a_profile_whose_partitions_all_refuse_its_account_is_a_problem() {
        let text = "config!\t0\nconfig\tAccountingStorageEnforce = associations\n\
                    partition a!\t0\npartition a\tPartitionName=a AllowAccounts=ops AllowQos=ALL QoS=N/A State=UP\n\
                    partition b!\t0\npartition b\tPartitionName=b DenyAccounts=research AllowQos=ALL QoS=N/A State=UP\n\
                    partition c!\t0\npartition c\tPartitionName=c AllowAccounts=ALL AllowQos=ALL QoS=N/A State=UP\n";
        let answers = Answers::read(text);
        let judged = |partitions: &[&str]| {
            let partitions = partitions.iter().map(ToString::to_string).collect();
            let scope = Scope { partitions, accounts: vec!["research".into()], ..Scope::default() };
            let mut found = Vec::new();
            profile(&scope, answers.output("config").unwrap(), &answers, &mut found);
            found.into_iter().map(|finding| (finding.verdict, finding.seen)).collect::<Vec<_>>()
        };
        let problem = |seen: &str| (Verdict::Problem, seen.to_string());
        assert_eq!(
            judged(&["a", "b"]),
            [problem("research, but a allows only ops"), problem("research, but b refuses research")]
        );
        assert!(judged(&["a", "c"]).is_empty() && judged(&[]).is_empty());
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
