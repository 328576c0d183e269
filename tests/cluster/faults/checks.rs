//! What jobs would fail on is found before the first is submitted.

use super::{EIGHT, SMALL, SOON, one};
use crate::cluster::wait_for;
use crate::laptop::{Laptop, assert_submitted_once};
use crate::{Cluster, Daemon, Site};
use std::fs;
use std::thread;
use std::time::Duration;

#[test]
#[ignore = "needs root and Slurm"]
fn what_jobs_would_fail_on_is_found_before_the_first_is_submitted() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.02")]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.profile(
        "[cluster.loop.megatron-lm]\ninstall-path = \"/tmp\"\ncontainer-image = \"/lost/nemo.sqsh\"\nmounts = [\"/lost-disk\"]\n",
    );
    let wrong = "model = \"llama3.1-8b\"\ngpu = \"h100\"\ngpus = 16\ntp = 2\nmbs = 1\ngbs = 64\nseq-len = 8192\n\
                 style = \"megatron-lm\"\npartition = \"nowhere\"\n";
    laptop.campaign("early", &[("good", EIGHT), ("bad", wrong)]);
    let refused = laptop.run(&["run", "early.campaign.toml"]);
    println!("{}", refused.stderr);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    for said in [
        "2 problems found on cluster loop",
        "partition: nowhere: ",
        "Megatron-LM: not found: /lost/nemo.sqsh. ",
        "note: Megatron-LM: not on the login node: /lost-disk. ",
        "--skip-checks",
    ] {
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    // Nothing was begun, here or there, so that the corrected campaign just runs.
    assert_eq!(laptop.runs().len(), 0);
    assert_eq!(cluster.text("ls -d ~/.trainplan 2>/dev/null || echo none"), "none");
    laptop.campaign("early", &[("good", EIGHT)]);
    let (code, events) = laptop.start("early", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_submitted_once(&cluster, 1);

    // A partition that is down holds its jobs back.
    laptop.campaign("down", &[("a", EIGHT)]);
    cluster.text("scontrol update partitionname=batch state=down");
    let refused = laptop.run(&["run", "down.campaign.toml"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("partition: batch: down"), "{}", refused.stderr);
    let mut runner = laptop.start("down", &["--skip-checks"]);
    runner.wait_for("submitted", |_| true);
    // The round has a job now, so nothing is checked when it continues.
    runner.kill();
    let runner = laptop.start("down", &[]);
    thread::sleep(Duration::from_secs(5));
    cluster.text("scontrol update partitionname=batch state=up");
    assert_eq!(runner.end().0, Some(0), "{}", laptop.errors());
    assert_submitted_once(&cluster, 2);
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_round_waits_for_a_cluster_that_could_not_be_checked() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.02")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    laptop.campaign("bad", &[("a", &format!("{EIGHT}partition = \"nowhere\""))]);
    cluster.stop(Daemon::Sshd);
    let runners = ["one", "bad"].map(|campaign| laptop.start(campaign, &[]));
    wait_for("notes", SOON, || (laptop.errors().matches("can't be reached").count() >= 2).then_some(()));
    // Nothing is begun before the check.
    assert_eq!(laptop.runs().len(), 0);
    cluster.start_again(Daemon::Sshd);
    assert_eq!(runners.map(|runner| runner.end().0), [Some(0), Some(1)], "{}", laptop.errors());
    assert!(laptop.errors().contains("partition: nowhere: "), "{}", laptop.errors());
    assert_submitted_once(&cluster, 1);
    // One that stays away is waited for as long as the user says.
    cluster.stop(Daemon::Sshd);
    let (code, _) = laptop.start("bad", &["--patience", "0"]).end();
    assert_eq!(code, Some(5), "{}", laptop.errors());
}

#[test]
#[ignore = "needs root and Slurm"]
fn jobs_that_their_partition_or_qos_does_not_allow_are_found_before_the_first_is_submitted() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.02")]);
    let laptop = Laptop::new(&cluster, &site);
    let refused = |name: &str, run: &str, said: &[&str]| {
        laptop.campaign(name, &[("good", EIGHT), ("bad", run)]);
        let refused = laptop.run(&["run", &format!("{name}.campaign.toml")]);
        println!("{}", refused.stderr);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
        for said in said {
            assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
        }
    };
    let megatron_lm = |gpus: u32, more: &str| {
        format!(
            "model = \"llama3.1-8b\"\ngpu = \"h100\"\ngpus = {gpus}\ntp = 2\nmbs = 1\ngbs = 64\nseq-len = 8192\n\
             style = \"megatron-lm\"\ninstall-path = \"/tmp\"\n{more}"
        )
    };
    refused("large", &megatron_lm(64, ""), &["1 problem found", "nodes: 8 for bad, but batch has 4. "]);
    cluster.text("scontrol update partitionname=batch maxtime=04:00:00 maxnodes=2");
    refused("wide", &megatron_lm(32, ""), &["nodes: 4 for bad, but batch allows at most 2 per job. "]);
    let long = megatron_lm(16, "time-limit = \"05:00:00\"\n");
    refused("long", &long, &["time limit: 05:00:00 for bad, but batch allows at most 04:00:00. "]);
    cluster.text("scontrol update partitionname=batch maxnodes=unlimited");
    refused(
        "dense",
        &megatron_lm(16, "gpus-per-node = 16\n"),
        &["GPUs per node: 16 on 1 node for bad, but Slurm lists 0 such nodes in batch. "],
    );

    // Slurm knows the cluster in its accounting by now, and checks QOS from its next start on.
    let account = Site::ACCOUNT;
    for add in [
        "qos usual maxwall=03:00:00".to_string(),
        "qos other".to_string(),
        "account physics".to_string(),
        format!("account {account} qos=normal,usual"),
        format!("user root account={account} qos=normal,usual"),
    ] {
        cluster.text(&format!("sacctmgr --immediate add {add}"));
    }
    cluster.stop(Daemon::Slurmctld);
    let conf = cluster.folder().join("slurm.conf");
    let enforcing = fs::read_to_string(&conf).unwrap() + "AccountingStorageEnforce=associations,limits,qos\n";
    fs::write(&conf, enforcing).unwrap();
    cluster.start_again(Daemon::Slurmctld);
    let with_qos = |name: &str| format!("{EIGHT}slurm-params = \"qos={name}\"\n");
    refused("lost", &with_qos("lost"), &["QOS: lost does not exist. "]);
    refused("barred", &with_qos("other"), &[&format!("QOS: you may not use other with account {account}. ")]);
    let for_long = |limit: &str| format!("{}time-limit = \"{limit}\"\n", with_qos("usual"));
    let most = "time limit: 04:00:00 for bad, but QOS usual allows at most 03:00:00. ";
    refused("slow", &for_long("04:00:00"), &[most]);
    cluster.text("scontrol update partitionname=batch allowaccounts=physics");
    let closed = format!("account: {account} for good, bad, but batch allows only physics. ");
    refused("closed", EIGHT, &[&closed]);
    cluster.text("scontrol update partitionname=batch allowaccounts=ALL");
    assert_eq!(laptop.runs().len(), 0);
    laptop.campaign("fine", &[("a", &for_long("03:00:00"))]);
    let (code, events) = laptop.start("fine", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_submitted_once(&cluster, 1);
}
