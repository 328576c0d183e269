//! Logs and disks: odd logs are copied whole, and full disks and removed folders lose no results.

use super::{EIGHT, OTHERS, SMALL, SOON, of, one, summary, summary_of};
use crate::cluster::wait_for;
use crate::laptop::{Laptop, accounted, assert_submitted_once};
use crate::{Cluster, Site};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs root and Slurm"]
fn a_removed_folder_on_the_cluster_is_named_as_the_cause() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.5")]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign(
        "purge",
        &[("healthy", EIGHT), ("gone", &format!("{}env = {{ WORKLOAD_DELAY = \"20\" }}", OTHERS[0]))],
    );
    let mut runner = laptop.start("purge", &[]);
    runner.wait_for("intended", |event| event["run"] == "gone");
    wait_for("launcher", SOON, || {
        let found = cluster.text("ls ~/.trainplan/runs/*/attempt-1/process | wc -l");
        (found == "2").then_some(())
    });
    // In this order: the end of a launcher is noted in the folder.
    cluster.text("rm -rf ~/.trainplan/runs/*; pkill -KILL -f '[l]aunch 25.04 nemotron4'");
    let (code, events) = runner.end();
    assert_eq!(code, Some(4), "{events:?}");
    let why = summary_of(&events, "gone")["why"].as_str().unwrap();
    assert!(why.contains("was removed from the cluster") && why.contains("squeue --me"), "{why}");
    assert_eq!(of(&events, "unseen").len(), 0, "{events:?}");
    assert_eq!(summary_of(&events, "healthy")["outcome"], "scored", "{events:?}");
    assert_eq!(accounted(&cluster).len(), 1);
}

#[test]
#[ignore = "needs root and Slurm"]
fn late_truncated_replaced_and_binary_logs_are_copied() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.3"), ("WORKLOAD_FAULT_STEP", "40")]);
    let laptop = Laptop::new(&cluster, &site);
    let run = |more: &str| format!("{EIGHT}env = {{ {more} }}");
    laptop.campaign(
        "logs",
        &[
            ("late", &run("WORKLOAD_LATE = \"6\"")),
            ("truncate", &run("WORKLOAD_FAULT = \"truncate\"")),
            ("rotate", &run("WORKLOAD_FAULT = \"rotate\"")),
            ("bytes", &run("")),
        ],
    );
    let mut runner = laptop.start("logs", &[]);
    let found = runner.wait_for("found", |event| event["run"] == "bytes");
    let log = fs::File::options().append(true).open(found["path"].as_str().unwrap());
    std::io::Write::write_all(&mut log.unwrap(), b"\xff\xfe\x00\x1b]0;pwned\x07\x80\n").unwrap();
    let (code, events) = runner.end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    for run in ["truncate", "rotate"] {
        let restarted = of(&events, "restarted").iter().any(|event| event["run"] == run);
        assert!(restarted, "{run}: {events:?}");
    }
    // No step is lost.
    for summary in of(&events, "summary") {
        assert_eq!(summary["outcome"], "scored", "{summary:#}");
    }
    assert_submitted_once(&cluster, 4);
}

#[test]
#[ignore = "needs root and Slurm"]
fn logs_are_printed_and_a_command_runs_once_at_the_end_of_each_run() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.2")]);
    let laptop = Laptop::new(&cluster, &site);
    let oom = "env = { WORKLOAD_FAULT = \"oom\" }";
    laptop.campaign("two", &[("good", EIGHT), ("bad", &format!("{EIGHT}{oom}"))]);
    let command = "echo \"$TRAINPLAN_CAMPAIGN $TRAINPLAN_CLUSTER $TRAINPLAN_RUN $TRAINPLAN_OUTCOME ${TRAINPLAN_STEP_TIME_S:+timed} \
                   $TRAINPLAN_WHY\" >>ends; echo printed; exit 3";
    let mut runner = laptop.start("two", &["--log", "--on-end", command]);
    runner.wait_for("found", |_| true);
    // It watches, and prints both logs from their last lines on.
    let watching = laptop.run(&["jobs", "follow", "--log", "--on-end", "echo \"$TRAINPLAN_RUN\" >>seen"]);
    assert!(watching.stdout.contains("\"event\":\"log\""), "{}{}", watching.stdout, watching.stderr);
    let (code, events) = runner.end();
    assert_eq!(code, Some(4), "{}", laptop.errors());
    let steps =
        of(&events, "log").iter().filter(|line| line["line"].as_str().unwrap().contains("iteration")).count();
    assert!(steps > 20, "{steps} lines with steps: {events:?}");
    let mut ends: Vec<String> =
        fs::read_to_string(laptop.path("ends")).unwrap().lines().map(String::from).collect();
    ends.sort();
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert!(ends[0].starts_with("two@1 loop bad failed") && ends[0].contains("memory"), "{ends:?}");
    assert!(ends[1].starts_with("two@1 loop good scored timed"), "{ends:?}");
    let mut seen: Vec<String> =
        fs::read_to_string(laptop.path("seen")).unwrap().lines().map(String::from).collect();
    seen.sort();
    assert_eq!(seen, ["bad", "good"]);
    // Its output doesn't mix with the events, and a note reports its failure.
    let errors = laptop.errors();
    assert!(
        errors.contains("printed") && errors.contains("The command of --on-end failed for good"),
        "{errors}"
    );
}

/// A file system of a few megabytes, mounted over a folder.
struct Tight<'a>(&'a Path);

impl<'a> Tight<'a> {
    fn over(folder: &'a Path, size: &str) -> Tight<'a> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder)
            .status();
        assert!(mounted.unwrap().success());
        Tight(folder)
    }
}

impl Drop for Tight<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0).status());
    }
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_full_local_disk_loses_no_results() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.1")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    let data = laptop.path(".local/share/trainplan");
    let tight = Tight::over(&data, "3m");
    let mut runner = laptop.start("one", &[]);
    runner.wait_for("found", |_| true);
    let fill = data.join("fill");
    drop(fs::write(&fill, vec![0; 4 << 20]));
    let (code, events) = runner.end();
    assert_eq!(code, Some(1), "{}{events:?}", laptop.errors());
    fs::remove_file(&fill).unwrap();
    let (code, events) = laptop.start("one", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_eq!(summary(&events)["outcome"], "scored");
    assert_submitted_once(&cluster, 1);
    drop(tight);
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_full_disk_on_the_cluster_is_reported_and_tried_again() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.02")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    // The cluster's home directory is full.
    cluster.text("mkdir -p ~/.trainplan && mount -t tmpfs -o size=16k tmpfs ~/.trainplan && head -c 1m /dev/zero >~/.trainplan/fill || true");
    let mut runner = laptop.start("one", &[]);
    wait_for("complaint", SOON, || laptop.errors().contains("No space left").then_some(()));
    cluster.text("umount ~/.trainplan");
    let event = runner.wait_for("stored", |_| true);
    assert!(event["result"].is_string());
    assert_eq!(runner.end().0, Some(0));
    assert_submitted_once(&cluster, 1);
}
