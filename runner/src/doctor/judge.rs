//! Judges the answers.

use super::answers::{Answers, CommandOutput};
use super::{Finding, LinkMeasurements, Scope};
use std::time::Duration;
use trainplan_shared::campaign::{Cluster, Installation, UsedPath};

/// Above these the connection counts as slow.
const SLOW_CONNECTING: Duration = Duration::from_secs(10);
const SLOW_ROUND_TRIP: Duration = Duration::from_secs(2);

/// Above this difference, times of the queue and of logs can't be compared with ours.
const MUCH_SKEW_S: f64 = 5.0;

/// Free space below which there is a warning: in the home directory for the files of runs, and in an
/// installation for results.
const HOME_KIB: u64 = 1 << 20;
const INSTALL_KIB: u64 = 20 << 20;

/// Free space below which a file system counts as full: not even a job's script and log fit.
const FULL_KIB: u64 = 1 << 10;

/// Without accounting, a shorter MinJobAge gives a warning.
const SHORT_MEMORY_S: u32 = 60;

/// Returns all findings about a cluster, in the order in which to act on them.
pub(super) fn of_cluster(
    cluster: &Cluster,
    scope: &Scope,
    measured: &LinkMeasurements,
    answers: &Answers,
) -> Vec<Finding> {
    let mut found = Vec::new();
    connection(measured, answers, &mut found);
    machine(answers, &mut found);
    if let Some(config) = slurm(answers, true, &mut found) {
        if scope.partitions.is_empty() {
            default_partition(cluster, answers, &mut found);
        }
        for name in &scope.partitions {
            if partition(name, "", answers, &mut found) {
                nodes(name, answers, &mut found);
                gpus_of_nodes(name, cluster, answers, &mut found);
            }
        }
        job_history(config, answers, &mut found);
        accounts(scope, config, answers, &mut found);
        found.push(comments(answers));
    }
    installations(scope, answers, &mut found);
    let mut paths = (0..scope.installations.len()).map(|index| format!("{} install", key(index)));
    let is_in_profile = paths.any(|key| answers.one(&key) == answers.one("llmb"));
    found.extend(llmb_run(is_in_profile, answers));
    found
}

/// Returns the findings about what the jobs of some runs depend on.
pub(super) fn of_runs(scope: &Scope, answers: &Answers) -> Vec<Finding> {
    let mut found = Vec::new();
    machine(answers, &mut found);
    let mut of_slurm = Vec::new();
    let config = slurm(answers, false, &mut of_slurm);
    // A controller that does not answer now may be up when jobs are submitted, which is tried several times.
    let is_installed = answers.all("lacks-slurm").is_empty();
    let softened = |finding: Finding| if is_installed { finding.into_warning() } else { finding };
    found.extend(of_slurm.into_iter().map(softened));
    if let Some(config) = config {
        for name in &scope.partitions {
            let mut of_nodes = Vec::new();
            if partition(name, "", answers, &mut found) {
                nodes(name, answers, &mut of_nodes);
            }
            // Jobs wait for their nodes, for example during maintenance.
            found.extend(of_nodes.into_iter().map(Finding::into_warning));
        }
        accounts(scope, config, answers, &mut found);
    }
    installations(scope, answers, &mut found);
    found
}

/// Returns how an installation is named in keys.
pub(super) fn key(index: usize) -> String {
    format!("place{index}")
}

/// Returns how the directory of a model's recipe is named in keys.
pub(super) fn recipe_kind(model: &str) -> String {
    format!("recipe:{model}")
}

/// Returns how a path is named in keys.
pub(super) fn used_kind(used: UsedPath) -> &'static str {
    match used {
        UsedPath::Venv => "venv",
        UsedPath::Image => "container",
        UsedPath::Mount => "mount",
        UsedPath::Checkpoint => "checkpoint",
    }
}

fn connection(measured: &LinkMeasurements, answers: &Answers, found: &mut Vec<Finding>) {
    let LinkMeasurements { connecting, round_trip, skew_s, sftp } = *measured;
    let seen = format!(
        "{} on {}, connected in {}, {} per command",
        answers.one("user").unwrap_or("?"),
        answers.one("host").unwrap_or("?"),
        time(connecting),
        time(round_trip)
    );
    found.push(if connecting > SLOW_CONNECTING || round_trip > SLOW_ROUND_TRIP {
        Finding::warning(
            "ssh",
            seen,
            "The login node is slow or far away. Every step takes at least this long. Try another login \
             node.",
        )
    } else {
        Finding::ok("ssh", seen)
    });
    found.push(match sftp {
        true => Finding::ok("sftp", "offered"),
        false => Finding::warning(
            "sftp",
            "not offered",
            "No action needed. Files are transferred through the shell, which is slower.",
        ),
    });
    found.push(match skew_s {
        None => Finding::warning(
            "clock",
            "`date +%s` does not work",
            "Check the `date` command on the login node.",
        ),
        Some((skew, unsure)) if skew.abs() - unsure > MUCH_SKEW_S => Finding::warning(
            "clock",
            format!("{:.1} s {} this machine's", skew.abs(), if skew > 0.0 { "ahead of" } else { "behind" }),
            "Correct the wrong clock (NTP). Until then, times of the queue and of logs don't match this \
             machine's.",
        ),
        Some((_, unsure)) => Finding::ok(
            "clock",
            format!("agrees with this machine's within {:.1} s", (unsure * 10.0).ceil().max(1.0) / 10.0),
        ),
    });
}

fn machine(answers: &Answers, found: &mut Vec<Finding>) {
    found.push(Finding::ok(
        "system",
        format!(
            "{}, login shell {}",
            answers.one("system").unwrap_or("unknown"),
            answers.one("shell").unwrap_or("unknown")
        ),
    ));
    let lacks = answers.all("lacks");
    found.push(if lacks.is_empty() {
        Finding::ok("tools", "all found")
    } else {
        Finding::problem(
            "tools",
            format!("missing: {}", lacks.join(", ")),
            "Ask for coreutils and util-linux to be installed, or add them to PATH for shells other than \
             login shells.",
        )
    });
    let home = answers.one("home").unwrap_or("?");
    let free = answers.one("home-free").and_then(|free| free.parse::<u64>().ok());
    found.push(match (answers.one("home-refuses"), free) {
        (Some(refusal), _) => Finding::problem(
            "home",
            format!("can't write to {home}: {refusal}"),
            "Free some of your quota, or correct the permissions. Every run keeps its files there.",
        ),
        (None, Some(free)) if free < FULL_KIB => Finding::problem(
            "home",
            format!("{home} is full: {} free", size(free)),
            "Free some space. Every run keeps its script and its records there.",
        ),
        (None, Some(free)) if free < HOME_KIB => Finding::warning(
            "home",
            format!("{home} has only {} free", size(free)),
            "Free some space. Every run keeps its script and its records there.",
        ),
        (None, Some(free)) => Finding::ok("home", format!("{home}, writable, {} free", size(free))),
        (None, None) => Finding::ok("home", format!("{home}, writable")),
    });
}

/// Judges whether Slurm answers. Returns its configuration if it does.
fn slurm<'a>(answers: &'a Answers, is_whole: bool, found: &mut Vec<Finding>) -> Option<CommandOutput<'a>> {
    let lacks = answers.all("lacks-slurm");
    if !lacks.is_empty() {
        found.push(Finding::problem(
            "Slurm",
            format!("missing: {}", lacks.join(", ")),
            "If this is not a login node, set ssh in the profile to one. Otherwise add Slurm's directory \
             to PATH in your ~/.bash_profile there.",
        ));
        return None;
    }
    if is_whole {
        found.push(match answers.output("version") {
            Some(said) if said.code == 0 => Finding::ok("Slurm", said.text()),
            said => Finding::problem("Slurm", seen(said), "Check that `sbatch --version` works there."),
        });
    }
    let controller = answers.output("controller");
    let Some(config) = answers.output("config") else {
        found.push(Finding::problem(
            "slurmctld",
            seen(controller),
            "Wait until Slurm's controller is up again. Until then, jobs can't be submitted or queried.",
        ));
        return None;
    };
    found.push(Finding::ok("slurmctld", seen(controller)));
    Some(config)
}

/// Judges whether a held job kept its comment.
fn comments(answers: &Answers) -> Finding {
    const WITHOUT: &str = "If an answer of sbatch is lost, Trainplan looks for the job by its name and the time, and \
                           doesn't launch the run again. Don't give the names of runs to other jobs of yours.";
    let refused = answers.output("probe").filter(|said| said.code != 0);
    match (answers.output("comment"), answers.one("mark"), refused) {
        (_, _, Some(said)) => Finding::warning(
            "comments",
            format!("can't be tested, because Slurm refused a held job: {}", said.text()),
            "Check that `sbatch --hold --wrap=true` works there with the account and partition of the profile.",
        ),
        (Some(said), Some(mark), None) if said.code == 0 => {
            match said.lines.iter().any(|line| line == mark) {
                true => Finding::ok("comments", "kept by a held job, which was cancelled"),
                false => Finding::warning(
                    "comments",
                    format!(
                        "a held job got the comment \"{}\"",
                        said.lines.first().map_or("", String::as_str)
                    ),
                    WITHOUT,
                ),
            }
        }
        (said, ..) => Finding::warning("comments", seen(said), WITHOUT),
    }
}

/// Judges Slurm's default partition, for a profile without one.
fn default_partition(cluster: &Cluster, answers: &Answers, found: &mut Vec<Finding>) {
    let Some(name) = answers.one("partition-default") else {
        found.push(Finding::problem(
            "partition",
            "the profile has no partition, and Slurm has no default",
            "Set partition in the profile. `sinfo` lists the partitions.",
        ));
        return;
    };
    if partition(name, " (the default)", answers, found) {
        nodes(name, answers, found);
        gpus_of_nodes(name, cluster, answers, found);
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

/// Returns the nodes of a partition: how many, in which state, with which generic resources. `None` without an answer.
fn rows<'a>(partition: &str, answers: &'a Answers) -> Option<Vec<(&'a str, &'a str, &'a str)>> {
    let said = answers.output(&format!("nodes {partition}")).filter(|said| said.code == 0)?;
    let row = |line: &'a String| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?, words.next()?))
    };
    Some(said.lines.iter().filter_map(row).collect())
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
    let seen = format!("{} per node", kinds.join(" or "));
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

/// Judges how long Slurm knows how a job ended.
fn job_history(config: CommandOutput, answers: &Answers, found: &mut Vec<Finding>) {
    let sacct = answers.output("sacct");
    let accounts = sacct.is_some_and(|said| said.code == 0);
    let age = config.setting("MinJobAge").and_then(|age| age.split_whitespace().next()?.parse::<u32>().ok());
    let remembers = age.map_or("unknown".to_string(), |age| format!("{age} s"));
    found.push(match accounts {
        true => Finding::ok("accounting", "sacct answers"),
        false => Finding::warning(
            "accounting",
            seen(sacct),
            format!(
                "Runs work without accounting, but Slurm forgets how a job ended after {remembers}. If \
                 trainplan is not running in that time, the end state of a killed job may be unknown."
            ),
        ),
    });
    let seen = format!("Slurm keeps finished jobs for {remembers} (MinJobAge)");
    found.push(match age {
        Some(age) if age < SHORT_MEMORY_S && !accounts => Finding::warning(
            "job history",
            seen,
            "Ask the site for accounting, or for a MinJobAge of 300 s, the default.",
        ),
        _ => Finding::ok("job history", seen),
    });
}

fn accounts(scope: &Scope, config: CommandOutput, answers: &Answers, found: &mut Vec<Finding>) {
    let enforced =
        config.setting("AccountingStorageEnforce").is_some_and(|what| what.contains("associations"));
    if scope.accounts.is_empty() && scope.is_whole {
        found.push(match enforced {
            true => Finding::warning(
                "account",
                "the profile has no account, but this Slurm requires one",
                "Set account in the profile unless you want your default one. `sacctmgr show associations` \
                 lists your accounts.",
            ),
            false => Finding::ok("account", "none in the profile"),
        });
    }
    found.extend(scope.accounts.iter().map(|name| account(name, enforced, answers)));
}

/// Judges whether the user may use an account. `enforced` says whether Slurm checks that.
fn account(name: &str, enforced: bool, answers: &Answers) -> Finding {
    match answers.output(&format!("account {name}")) {
        Some(said) if said.code == 0 && said.lines.iter().any(|line| !line.is_empty()) => {
            Finding::ok("account", format!("you may use {name}"))
        }
        Some(said) if said.code == 0 && enforced => Finding::problem(
            "account",
            format!("you may not use {name}"),
            "Set account to one of yours. `sacctmgr show associations user=$USER` lists them.",
        ),
        said if enforced => Finding::warning(
            "account",
            format!("can't check {name}: {}", seen(said)),
            "Check that Slurm accepts it: `sbatch --test-only --account=... --wrap=true`",
        ),
        _ => Finding::ok("account", format!("{name} (this Slurm does not check accounts)")),
    }
}

fn installations(scope: &Scope, answers: &Answers, found: &mut Vec<Finding>) {
    for (index, place) in scope.installations.iter().enumerate() {
        installation(&key(index), place, scope.is_whole, answers, found);
    }
}

fn installation(
    name: &str,
    place: &Installation,
    is_whole: bool,
    answers: &Answers,
    found: &mut Vec<Finding>,
) {
    let check = match place.release {
        Some(release) => format!("release {}", release.id()),
        None => "Megatron-LM".to_string(),
    };
    let lacks = |kind: &str| answers.all(&format!("{name} {kind} lacks"));
    // Only nodes may have what is mounted, such as their own disks.
    if let [first, others @ ..] = lacks(used_kind(UsedPath::Mount)) {
        let paths = others.iter().fold(first.clone(), |paths, path| format!("{paths}, {path}"));
        found.push(Finding::warning(
            check.clone(),
            format!("not on the login node: {paths}"),
            "Check that the nodes have it, or correct mounts. A container does not start without its mounts.",
        ));
    }
    let kinds = ["install".to_string()].into_iter();
    let kinds = kinds.chain(place.recipe_dirs.iter().map(|(model, _)| recipe_kind(model)));
    let used =
        [UsedPath::Venv, UsedPath::Image, UsedPath::Checkpoint].map(|used| used_kind(used).to_string());
    let missing: Vec<&str> = kinds.chain(used).flat_map(|kind| lacks(&kind)).map(String::as_str).collect();
    if !missing.is_empty() {
        let what_to_do = "Correct the path where you set it, or install what is missing there.";
        found.push(Finding::problem(check, format!("not found: {}", missing.join(", ")), what_to_do));
        return;
    }
    // Its directories may be in variables of the cluster.
    if !is_whole && place.install_path.is_none() {
        return;
    }
    let path = answers.one(&format!("{name} install"));
    let launches = answers.all(&format!("{name} launch"));
    let workloads = answers.all(&format!("{name} workload"));
    let free = answers.one(&format!("{name} free")).and_then(|free| free.parse::<u64>().ok());
    let mut seen: Vec<String> = path.map(str::to_string).into_iter().collect();
    seen.extend(free.map(|free| format!("{} free", size(free))));
    if !place.recipe_dirs.is_empty() {
        let models: Vec<&str> = place.recipe_dirs.iter().map(|(model, _)| model.as_str()).collect();
        let models = models.join(", ");
        let models = if models.is_empty() { "every model" } else { &models };
        seen.push(format!("{} for {models}", place.launcher()));
    } else if !launches.is_empty() {
        let directories: Vec<&str> =
            launches.iter().map(|launch| launch.strip_suffix("/launch.sh").unwrap_or(".")).collect();
        seen.push(format!("launch.sh in {}", directories.join(", ")));
    }
    let images = answers.all(&format!("{name} image"));
    if !images.is_empty() {
        seen.push(format!("images {}", images.join(", ")));
    }
    if !workloads.is_empty() {
        seen.push(format!("workloads {}", workloads.join(", ")));
    }
    let seen = seen.join("; ");
    let is_release = place.release.is_some();
    found.push(if is_whole && is_release && launches.is_empty() && place.recipe_dirs.is_empty() {
        Finding::warning(
            check,
            format!("{seen}; no launch.sh found in it"),
            "Set recipe-dir in the profile to the directories of the recipes, or install the release there.",
        )
    } else if let ([read_only, ..], true) = (answers.all(&format!("{name} read-only")), is_release) {
        Finding::problem(
            check,
            format!("{read_only} is not writable for you"),
            "The release's scripts write results there. Install it in a writable place, and correct \
             install-path.",
        )
    } else if is_release && free.is_some_and(|free| free < FULL_KIB) {
        Finding::problem(
            check,
            format!("{seen}; the file system is full"),
            "Free some space. The release's scripts write results there.",
        )
    } else if free.is_some_and(|free| free < INSTALL_KIB) {
        Finding::warning(
            check,
            seen,
            "Free some space. Checkpoints and profiles of a run can take more than that.",
        )
    } else {
        Finding::ok(check, seen)
    });
}

/// Judges the installation that LLMB_INSTALL names, which llmb-run uses. `None` if the user's shell doesn't set it.
fn llmb_run(is_in_profile: bool, answers: &Answers) -> Option<Finding> {
    let path = answers.one("llmb")?;
    let Some(gpu) = answers.one("llmb-gpu") else {
        return Some(Finding::warning(
            "llmb-run",
            format!("LLMB_INSTALL is {path}, but there is no cluster_config.yaml with a gpu_type"),
            "Correct LLMB_INSTALL in your shell's startup file, or run the release's llmb-install again.",
        ));
    };
    let mut seen = match answers.all("llmb-workload") {
        [] => format!("{path} for {gpu}, no workloads"),
        workloads => format!("{path} for {gpu}, workloads {}", workloads.join(", ")),
    };
    if !is_in_profile {
        seen += "; the cluster file doesn't have this install-path";
    }
    Some(Finding::ok("llmb-run", seen))
}

fn seen(output: Option<CommandOutput>) -> String {
    output.map_or_else(|| "no answer".to_string(), CommandOutput::text)
}

fn time(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

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

    #[test]
    fn an_installation_of_llmb_run_is_named() {
        let judge = |text: &str| llmb_run(false, &Answers::read(text));
        assert_eq!(judge("user\tme"), None);
        let found = judge("llmb\t/lustre/llmb\nllmb-gpu\th100\nllmb-workload\tpretrain_llama3.1\n").unwrap();
        let seen = "/lustre/llmb for h100, workloads pretrain_llama3.1; the cluster file doesn't have this install-path";
        assert_eq!((found.verdict, found.seen.as_str()), (Verdict::Ok, seen));
        let missing = judge("llmb\t/lustre/llmb\nllmb-gpu\t\n").unwrap();
        assert_eq!(missing.verdict, Verdict::Warning);
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
            is_whole: false,
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
