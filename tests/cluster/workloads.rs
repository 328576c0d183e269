//! The stand-in for the recipes, launched by the script of `trainplan launch` and parsed by `trainplan
//! parse`.

use crate::cluster::wait_for;
use crate::{Cluster, Options, Site};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trainplan_tests::{Run, trainplan};

const SOON: Duration = Duration::from_secs(30);

/// Returns the JSON of `trainplan launch`.
fn plan(arguments: &[&str]) -> Value {
    let run = trainplan([&["launch", "--format", "json", "--recipe"], arguments].concat());
    assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Runs a launch's script on the login node, after other commands.
fn launch(cluster: &Cluster, plan: &Value, before: &str) -> Run {
    fs::write(cluster.folder().join("launch"), format!("{before}{}", plan["script"].as_str().unwrap()))
        .unwrap();
    cluster.run(&format!("sh {}", cluster.folder().join("launch").display()))
}

/// Returns the files of a launch's log pattern.
fn logs(cluster: &Cluster, plan: &Value, before: &str) -> Vec<PathBuf> {
    let pattern = plan["outputs"]["log_glob"].as_str().unwrap();
    let found = cluster.text(&format!("{before}ls {pattern} 2>/dev/null || true"));
    found.lines().map(PathBuf::from).collect()
}

/// Waits until the queue is empty.
fn wait_for_jobs(cluster: &Cluster) {
    wait_for("end of all jobs", SOON, || cluster.text("squeue --noheader").is_empty().then_some(()));
}

/// Returns the row of `trainplan parse` for a log.
fn parse(log: &Path) -> Value {
    let run = trainplan(["parse".as_ref(), "--format".as_ref(), "json".as_ref(), log.as_os_str()]);
    let rows: Vec<Value> = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}", run.stderr));
    rows.into_iter().next().unwrap()
}

#[test]
#[ignore = "needs root and Slurm"]
fn every_release_launches_and_logs() {
    let cluster = Cluster::start(&Options::default());
    let site = Site::install(&cluster, &[]);
    let launches: [(&str, &str, &[&str], &str); 7] = [
        ("24.11", "nemotron", &["nemotron4-340b/h100/bf16/256@24.11"], "Submitted batch job "),
        ("25.04", "nemotron", &["nemotron4-15b/h100/bf16/64@25.04"], "- Job id: "),
        ("25.04", "llama3.1", &["llama3.1-405b/h100/fp8/512@25.04"], "- Job id: "),
        ("25.05", "nemotronh", &["nemotron-h-56b/h100/fp8/256@25.05"], "JobID: "),
        ("25.05", "nemotronh", &["nemotron-h-56b/h100/fp8/64@25.05", "--style", "launch-sh"], "- Job id: "),
        ("25.12", "nemotron4-340b", &["nemotron4-340b/h100/fp8/256@25.12"], "JobID: "),
        (
            "25.12",
            "nemotron4-340b",
            &["nemotron4-340b/h100/bf16/512@25.12", "--style", "launch-sh"],
            "- Job id: ",
        ),
    ];
    for (release, directory, recipe, said) in launches {
        let plan = plan(recipe);
        let exports = site.exports(release, directory);
        let run = launch(&cluster, &plan, &exports);
        assert_eq!(run.code, Some(0), "{recipe:?}: {}{}", run.stdout, run.stderr);
        let job = run.stdout.split(said).nth(1).unwrap_or_else(|| panic!("{recipe:?}: {}", run.stdout));
        let job: String = job.chars().take_while(char::is_ascii_digit).collect();
        wait_for_jobs(&cluster);
        let logs = logs(&cluster, &plan, &exports);
        let [log] = logs.as_slice() else { panic!("{recipe:?}: {logs:?}") };
        assert!(log.to_str().unwrap().contains(&format!("_{job}")), "{log:?} of job {job}");
        let row = parse(log);
        assert_eq!((&row["status"], &row["steps"]), (&"scored".into(), &50.into()), "{recipe:?}: {row}");
        assert_eq!(row["step_time_s"]["mean"], 12.39);
    }
}

#[test]
#[ignore = "needs root and Slurm"]
fn faults_show_in_the_log() {
    let cluster = Cluster::start(&Options { nodes: 8, ..Options::default() });
    let site = Site::install(&cluster, &[]);
    let plan = plan(&["nemotron4-15b/h100/bf16/64@25.04"]);
    let exports = site.exports("25.04", "nemotron");
    let faults = [
        ("oom", "failed"),
        ("watchdog", "failed"),
        ("exit", "failed"),
        ("nan", "invalid"),
        ("noise", "scored"),
        ("truncate", "scored"),
        ("rotate", "scored"),
    ];
    let known = |log: &PathBuf| logs(&cluster, &plan, &exports).contains(log);
    for (fault, status) in faults {
        let before = logs(&cluster, &plan, &exports);
        let run = launch(&cluster, &plan, &format!("{exports}export WORKLOAD_FAULT={fault}\n"));
        assert_eq!(run.code, Some(0), "{fault}: {}{}", run.stdout, run.stderr);
        wait_for_jobs(&cluster);
        let log = logs(&cluster, &plan, &exports).into_iter().find(|log| !before.contains(log)).unwrap();
        let row = parse(&log);
        assert_eq!(row["status"], status, "{fault}: {row}");
        if fault == "rotate" {
            assert!(known(&log) && log.with_extension("out.1").exists());
        }
    }

    // It hangs until it is cancelled.
    let run = launch(&cluster, &plan, &format!("{exports}export WORKLOAD_FAULT=hang WORKLOAD_LATE=2\n"));
    let job = run.stdout.split("- Job id: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let log = wait_for("log", SOON, || {
        logs(&cluster, &plan, &exports)
            .into_iter()
            .find(|log| log.to_str().unwrap().contains(&format!("_{job}_")))
    });
    wait_for("step", SOON, || fs::read_to_string(&log).unwrap().contains("iteration 19/49").then_some(()));
    assert_eq!(cluster.text("squeue --noheader --format='%i %T'"), format!("{job} RUNNING"));
    cluster.text(&format!("scancel {job}"));
    wait_for_jobs(&cluster);
    // Slurm may write this after the job has left the queue, and loses the step's message if srun dies first. The
    // batch script's message is in the file beside the log.
    wait_for("cancellation", SOON, || {
        let files = fs::read_dir(log.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
        files
            .filter(|file| file.extension().is_some_and(|kind| kind == "out"))
            .find(|file| fs::read_to_string(file).unwrap().contains("CANCELLED AT"))
    });

    let run = launch(&cluster, &plan, &format!("{exports}export WORKLOAD_SUBMIT=refuse\n"));
    assert!(run.code == Some(1) && run.stderr.contains("invalid partition"), "{}", run.stderr);
    let run =
        launch(&cluster, &plan, &format!("{exports}export WORKLOAD_SUBMIT=silent WORKLOAD_DELAY=0.1\n"));
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert_ne!(cluster.text("squeue --noheader"), "", "it was submitted all the same");
}
