//! Every end of a job is reported as what it was, retried if that can help, and known although Slurm forgets it.

use super::{EIGHT, OTHERS, SMALL, SOON, is_running, of, one, summary, summary_of};
use crate::cluster::wait_for;
use crate::laptop::{Laptop, accounted, assert_submitted_once};
use crate::{Cluster, Daemon, Options, Site};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Returns the states of a run's jobs in the order of events.
fn states(events: &[Value]) -> Vec<String> {
    of(events, "observed").iter().map(|event| event["state"].to_string()).collect()
}

/// Returns how often jobs ended in each way by `jobs failures`, and all that it says.
fn ends(laptop: &Laptop) -> (Vec<(String, u64)>, Value) {
    let failures = laptop.json(&["jobs", "failures"]);
    let row = |row: &Value| (row["end"].as_str().unwrap().to_string(), row["times"].as_u64().unwrap());
    (failures["ends"].as_array().unwrap().iter().map(row).collect(), failures)
}

#[test]
#[ignore = "needs root and Slurm"]
fn every_end_of_a_job_is_reported() {
    let cluster = Cluster::start(&Options { nodes: 8, accounting: true, slurm_conf: &["OverTimeLimit=0"] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    let run = |more: &str| format!("{EIGHT}{more}");
    let slow = "env = { WORKLOAD_PACE = \"2\" }";
    laptop.campaign(
        "ends",
        &[
            ("oom", &run("env = { WORKLOAD_FAULT = \"oom\" }")),
            ("exit", &run("env = { WORKLOAD_FAULT = \"exit\" }")),
            ("noise", &run("env = { WORKLOAD_FAULT = \"noise\" }")),
            ("nan", &run("env = { WORKLOAD_FAULT = \"nan\" }")),
            ("other", &run(slow)),
            ("node", &run(slow)),
            ("ours", &run(slow)),
            ("limit", &run("time-limit = \"00:01:00\"\nenv = { WORKLOAD_PACE = \"2\" }")),
        ],
    );
    // One run is meant to reach its time limit.
    let runner = laptop.start("ends", &["--hang-after", "5", "--anyway"]);
    let job = |run: &str| -> Option<String> {
        let runs = laptop.runs();
        let row = runs.iter().find(|row| row["run"] == run)?;
        let started = row["state"].as_str()?.contains("running");
        started.then(|| row["jobs"][0].as_str().unwrap().to_string())
    };
    let started = |run: &str| wait_for(run, SOON, || job(run));
    // Another user cancels one job, another job loses its node, and `jobs cancel` cancels the third.
    let other = started("other");
    cluster.text(&format!("scancel {other}"));
    let node_job = started("node");
    let node = cluster.text(&format!("squeue -h -j {node_job} -o %N"));
    let number: u16 = node.trim_start_matches('n').parse().unwrap();
    cluster.stop(Daemon::Node(number));
    cluster.text(&format!("scontrol update nodename={node} state=down reason=test"));
    started("ours");
    let cancelled = laptop.run(&["jobs", "cancel", "ours"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    let ours = job("ours");
    assert_eq!(ours, None);
    let (code, events) = runner.end();
    assert_eq!(code, Some(4));
    let of_run = |run: &str| events.iter().find(|e| e["event"] == "summary" && e["run"] == run).unwrap();
    let last_state = |run: &str| {
        let seen = events.iter().rev().find(|e| e["event"] == "observed" && e["run"] == run);
        seen.unwrap_or_else(|| panic!("{run}: {events:?}"))["state"]["ended"].as_str().unwrap().to_string()
    };
    assert_eq!(last_state("oom"), "failed");
    assert!(of_run("oom")["why"].as_str().unwrap().to_lowercase().contains("memory"), "{:#}", of_run("oom"));
    assert_eq!(last_state("exit"), "failed");
    // A failure after the last step does not affect the measurement.
    assert_eq!(
        (last_state("noise").as_str(), &of_run("noise")["outcome"]),
        ("failed", &Value::from("scored"))
    );
    assert_eq!(last_state("nan"), "completed");
    assert_eq!(of_run("nan")["outcome"], "failed");
    assert_eq!(last_state("other"), "cancelled");
    assert_eq!(last_state("node"), "node_fail");
    assert_eq!(last_state("ours"), "cancelled");
    assert_eq!(last_state("limit"), "time_limit");
    assert!(of_run("exit")["why"].as_str().unwrap().contains("exit code 7"), "{:#}", of_run("exit"));
    assert!(of_run("ours")["why"].as_str().unwrap().contains("was cancelled"), "{:#}", of_run("ours"));
    // Every run with steps is stored, scored or not.
    assert!(of_run("exit")["result"].is_string(), "{:#}", of_run("exit"));
    assert_submitted_once(&cluster, 8);
    // Only a lost node and a failure after the first step are interruptions.
    let (ends, failures) = ends(&laptop);
    let expected = [
        ("node_failure", 1),
        ("after_first_step", 1),
        ("out_of_memory", 1),
        ("time_limit", 1),
        ("cancelled", 2),
        ("completed", 2),
    ];
    assert_eq!(ends, expected.map(|(end, times)| (end.to_string(), times)));
    assert_eq!((&failures["jobs"], &failures["interruptions"]), (&8.into(), &2.into()));
    assert_eq!(failures["queue"]["n"], 8);
    // The job that hit its time limit ran for a minute on 8 GPUs.
    let hours = failures["gpu_hours"].as_f64().unwrap();
    assert!(hours > 8.0 / 60.0 && hours < 8.0, "{hours}");
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_run_that_lost_a_node_is_retried_and_others_wait_for_its_success() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.8")]);
    let laptop = Laptop::new(&cluster, &site);
    let oom = "retries = 2\nenv = { WORKLOAD_FAULT = \"oom\", WORKLOAD_PACE = \"0.05\" }";
    laptop.campaign(
        "tries",
        &[
            ("node", &format!("{EIGHT}retries = 1\n")),
            ("oom", &format!("{}{oom}", OTHERS[2])),
            (
                "then",
                &format!("{EIGHT}after = {{ run = \"node\", on = \"success\" }}\nexclude = \"n[1-3]\"\n"),
            ),
            ("never", &format!("{EIGHT}after = [\"node\", {{ run = \"oom\", on = \"success\" }}]\n")),
        ],
    );
    let mut runner = laptop.start("tries", &[]);
    runner.wait_for("stored", |event| event["run"] == "oom");
    let job = laptop.json(&["jobs", "show", "node"])["jobs"][0].as_str().unwrap().to_string();
    let node = cluster.text(&format!("squeue -h -j {job} -o %N"));
    cluster.stop(Daemon::Node(node.trim_start_matches('n').parse().unwrap()));
    cluster.text(&format!("scontrol update nodename={node} state=down reason=test"));
    // The programs of a lost node end with it.
    cluster.text("pkill -KILL -f '[w]orkload train'");
    let (code, events) = runner.end();
    assert_eq!(code, Some(4), "{}{events:?}", laptop.errors());
    let summaries = of(&events, "summary");
    let of_run = |run: &str| -> Vec<(u64, &str)> {
        let of_it = summaries.iter().filter(|summary| summary["run"] == run);
        of_it.map(|s| (s["retry"].as_u64().unwrap(), s["outcome"].as_str().unwrap())).collect()
    };
    assert_eq!(of_run("node"), [(0, "failed"), (1, "scored")], "{events:?}");
    // Memory would run out again.
    assert_eq!(of_run("oom"), [(0, "failed")]);
    assert_eq!((of_run("then"), of_run("never")), (vec![(0, "scored")], vec![(0, "failed")]));
    assert!(
        summary_of(&events, "never")["why"].as_str().unwrap().contains("oom was not scored"),
        "{events:?}"
    );
    // Each try has its own events and result.
    let [first, second] = ["tries/node", "tries/node~1"].map(|run| laptop.json(&["jobs", "show", run]));
    assert_ne!(first["id"], second["id"]);
    assert_eq!(second["result"], second["id"]);
    assert_eq!((&second["retry"], &second["retries"]), (&1.into(), &1.into()));
    let then = summary_of(&events, "then")["jobs"][0].as_str().unwrap();
    assert_eq!(cluster.text(&format!("sacct -X -n -P -j {then} --format=NodeList")), "n4");
    assert_submitted_once(&cluster, 4);
}

#[test]
#[ignore = "needs root and Slurm"]
fn requeued_and_hanging_jobs_are_reported() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign(
        "odd",
        &[
            ("hang", &format!("{EIGHT}env = {{ WORKLOAD_FAULT = \"hang\" }}")),
            ("again", &format!("{EIGHT}env = {{ WORKLOAD_PACE = \"0.5\" }}")),
        ],
    );
    let mut runner = laptop.start("odd", &["--hang-after", "4"]);
    // Jobs are not requeued, even if the launcher asks for it.
    runner.wait_for("found", |event| event["run"] == "again");
    let job = laptop.runs().iter().find(|run| run["run"] == "again").unwrap()["jobs"][0]
        .as_str()
        .unwrap()
        .to_string();
    assert!(cluster.text(&format!("scontrol show job {job}")).contains("Requeue=0"));
    // An administrator can requeue them all the same.
    cluster.text(&format!("scontrol update job={job} requeue=1; scontrol requeue {job}"));
    runner.wait_for("quiet", |event| event["run"] == "hang" && event["steps"] == 20);
    let cancelled = laptop.run(&["jobs", "cancel", "hang"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    let (_, events) = runner.end();
    let again = events.iter().find(|e| e["event"] == "summary" && e["run"] == "again").unwrap();
    assert_eq!(again["phase"], "stored", "{events:?}");
    let (ends, failures) = ends(&laptop);
    let expected = [("requeued", 1), ("cancelled", 1), ("completed", 1)];
    assert_eq!(ends, expected.map(|(end, times)| (end.to_string(), times)), "{events:?}");
    assert_eq!((&failures["jobs"], &failures["requeue"]["n"]), (&2.into(), &1.into()));
    let ids: BTreeSet<String> = accounted(&cluster).into_iter().map(|(id, _, _)| id).collect();
    assert_eq!(ids.len(), 2);
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_job_that_slurm_forgot_is_over_and_its_log_is_scored() {
    // Without accounting and with a short MinJobAge, a job vanishes between two polls.
    let cluster = Cluster::start(&Options { nodes: 2, accounting: false, slurm_conf: &["MinJobAge=2"] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.1")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    let mut runner = laptop.start("one", &[]);
    runner.wait_for("observed", is_running);
    runner.kill();
    wait_for("oblivion", SOON, || cluster.text("squeue -h -t all").is_empty().then_some(()));
    let (code, events) = laptop.start("one", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_eq!(states(&events).last().unwrap(), "{\"ended\":\"unknown\"}");
    assert_eq!(of(&events, "observed").last().unwrap()["source"], "absence");
    assert_eq!(summary(&events)["outcome"], "scored");
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_late_accounting_is_waited_for() {
    // The queue forgets a job after two seconds, and the accounting lists it as running for twenty more.
    let cluster = Cluster::start(&Options { nodes: 2, accounting: true, slurm_conf: &["MinJobAge=2"] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.1")]);
    let laptop = Laptop::new(&cluster, &site);
    let path = cluster.folder().join("bin/sacct");
    let late = "#!/bin/bash\nif [ \"$(squeue -h | wc -l)\" -gt 0 ]; then touch /run/busy; fi\n\
                if [ -n \"$(find /run/busy -newermt '-25 seconds' 2>/dev/null)\" ]; then\n\
                /usr/bin/sacct \"$@\" | sed 's/|COMPLETED|/|RUNNING|/'\nelse /usr/bin/sacct \"$@\"; fi\n";
    fs::write(&path, late).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    cluster.text("touch /run/busy");
    one(&laptop, "");
    let mut runner = laptop.start("one", &[]);
    runner.wait_for("observed", is_running);
    cluster.text("touch /run/busy");
    // The runner is away while the job ends and is forgotten, so that only the accounting knows.
    runner.signal("STOP");
    wait_for("oblivion", SOON, || cluster.text("squeue -h -t all").is_empty().then_some(()));
    cluster.text("touch /run/busy");
    runner.signal("CONT");
    runner.wait_for("missing", |_| true);
    assert!(laptop.runs()[0]["state"].as_str().unwrap().contains("left the queue"));
    let (code, events) = runner.end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    let last = of(&events, "observed").last().copied().unwrap().clone();
    assert_eq!(
        (&last["state"]["ended"], &last["source"]),
        (&Value::from("completed"), &Value::from("sacct"))
    );
    assert_submitted_once(&cluster, 1);
}

#[test]
#[ignore = "needs root and Slurm"]
fn only_what_failed_runs_again() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    let write = |env: &str| {
        let both = "after = [{ run = \"good\", on = \"success\" }, { run = \"oom\", on = \"success\" }]\n";
        let runs = [
            ("good", EIGHT),
            ("oom", &format!("{}env = {{ {env} }}\n", OTHERS[2])),
            ("then", &format!("{EIGHT}{both}")),
        ];
        laptop.campaign("again", &runs);
    };
    write("WORKLOAD_FAULT = \"oom\"");
    let (code, events) = laptop.start("again", &[]).end();
    assert_eq!(code, Some(4), "{}{events:?}", laptop.errors());
    // The cause is removed. Another process continues the round with the two runs.
    write("WORKLOAD_PACE = \"0.1\"");
    let mut killed = laptop.start("again", &["--failed"]);
    killed.wait_for("submitted", |_| true);
    killed.kill();
    let (code, events) = laptop.start("again", &[]).end();
    let errors = laptop.errors();
    assert_eq!(code, Some(0), "{errors}{events:?}");
    let ran: Vec<&str> = of(&events, "summary").iter().map(|run| run["run"].as_str().unwrap()).collect();
    assert_eq!(ran, ["oom", "then"], "{events:?}");
    for said in
        ["oom starts. again@1/oom has no score: ", "then starts. again@1/then has no score: oom was not"]
    {
        assert!(errors.contains(said), "{errors}");
    }
    assert!(!errors.contains("good starts."), "{errors}");
    let done = laptop.run(&["run", "again.campaign.toml", "--failed"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let nothing = "No run of again failed or is missing. Nothing was submitted.";
    assert!(done.stderr.contains(nothing), "{}", done.stderr);
    assert_submitted_once(&cluster, 4);
}
