//! Contact with the cluster breaks off: runs go on, and what is unknown is shown as unknown.

use super::{SMALL, is_running, of, one, summary};
use crate::laptop::{Laptop, assert_submitted_once};
use crate::{Cluster, Daemon, Site};
use std::process::Command;
use std::thread;
use std::time::Duration;

#[test]
#[ignore = "needs root and Slurm"]
fn the_link_is_made_again_after_every_kind_of_break() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.6")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    let mut runner = laptop.start("one", &[]);
    runner.wait_for("found", |_| true);
    // All connections are killed at the cluster's end.
    cluster.hang_up();
    thread::sleep(Duration::from_secs(2));
    // The master is killed at the user's end.
    let masters = format!("-M -S {}", laptop.path("").display());
    assert!(
        Command::new("pkill")
            .args(["-KILL", "-f", "--", masters.trim_end_matches('/')])
            .status()
            .unwrap()
            .success()
    );
    thread::sleep(Duration::from_secs(3));
    // sshd stops and starts again.
    cluster.stop(Daemon::Sshd);
    let unseen = runner.wait_for("unseen", |_| true);
    assert!(!unseen["why"].as_str().unwrap().is_empty());
    let told = laptop.runs();
    assert!(told[0]["state"].as_str().unwrap().starts_with("unknown, last seen"), "{told:#?}");
    cluster.start_again(Daemon::Sshd);
    runner.wait_for("seen_again", |_| true);
    // sshd is frozen for a minute, as if the network were down.
    cluster.freeze(Daemon::Sshd);
    runner.wait_for("unseen", |_| true);
    thread::sleep(Duration::from_secs(60));
    cluster.thaw(Daemon::Sshd);
    let (code, events) = runner.end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_eq!(of(&events, "failed").len(), 0);
    assert_submitted_once(&cluster, 1);
}

#[test]
#[ignore = "needs root and Slurm"]
fn last_seen_is_the_time_of_the_last_answer() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "1")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    let mut runner = laptop.start("one", &[]);
    runner.wait_for("found", |_| true);
    // The machine sleeps, and the cluster is gone when it wakes up.
    runner.signal("STOP");
    let asleep = jiff::Timestamp::now();
    cluster.stop(Daemon::Sshd);
    thread::sleep(Duration::from_secs(25));
    runner.signal("CONT");
    let unseen = runner.wait_for("unseen", |_| true);
    let last = jiff::Timestamp::from_millisecond(unseen["last_seen_ms"].as_i64().unwrap()).unwrap();
    let earlier_s = (asleep - last).total(jiff::Unit::Second).unwrap();
    assert!((-1.0..15.0).contains(&earlier_s), "{earlier_s} s before it fell asleep");
    let shown = last.to_zoned(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string();
    let told = laptop.runs()[0]["state"].as_str().unwrap().to_string();
    assert!(told.starts_with(&format!("unknown, last seen {shown}")), "{told} at {shown}");
    cluster.start_again(Daemon::Sshd);
    runner.wait_for("seen_again", |_| true);
    assert_eq!(runner.end().0, Some(0));
}

#[test]
#[ignore = "needs root and Slurm"]
fn runs_survive_restarts_of_slurmctld_and_slurmdbd() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.4")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    let mut runner = laptop.start("one", &[]);
    runner.wait_for("observed", is_running);
    cluster.stop(Daemon::Slurmctld);
    runner.wait_for("unseen", |_| true);
    cluster.start_again(Daemon::Slurmctld);
    runner.wait_for("seen_again", |_| true);
    cluster.stop(Daemon::Slurmdbd);
    let (code, events) = runner.end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    cluster.start_again(Daemon::Slurmdbd);
    assert_submitted_once(&cluster, 1);
}

#[test]
#[ignore = "needs root and Slurm"]
fn jobs_go_on_after_detaching() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.2")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "WORKLOAD_PACE = \"1\"");
    let mut runner = laptop.start("one", &[]);
    runner.wait_for("found", |_| true);
    runner.signal("INT");
    let (code, events) = runner.end();
    assert_eq!(code, Some(1), "{}", laptop.errors());
    assert_eq!(summary(&events)["outcome"], "open");
    assert_eq!(cluster.text("squeue -h -o %T"), "RUNNING");
    // The cluster can be reached, but no process observes the job.
    let told = laptop.runs()[0]["state"].as_str().unwrap().to_string();
    assert!(told.starts_with("not followed since") && told.contains("running"), "{told}");
    let followed = laptop.run(&["jobs", "follow", "--format", "json"]);
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    assert_eq!(laptop.runs()[0]["outcome"], "scored");
    assert_submitted_once(&cluster, 1);
}
