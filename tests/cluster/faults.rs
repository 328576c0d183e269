//! Faults: nothing is submitted twice, lost or reported wrongly.

use crate::cluster::wait_for;
use crate::laptop::{Events, Laptop, accounted, assert_submitted_once};
use crate::{Cluster, Daemon, Options, Site};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
const SMALL: Options = Options { nodes: 4, accounting: true, slurm_conf: &[] };
const EIGHT: &str = "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"\n";

/// Writes a campaign of one run on eight GPUs, with variables for the stand-in.
fn one(laptop: &Laptop, env: &str) {
    laptop.campaign("one", &[("a", &format!("{EIGHT}env = {{ {env} }}"))]);
}

fn of<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

fn summary(events: &Events) -> &Value {
    of(events, "summary").first().unwrap_or_else(|| panic!("{events:?}"))
}

/// Returns the states of a run's jobs in the order of events.
fn states(events: &[Value]) -> Vec<String> {
    of(events, "observed").iter().map(|event| event["state"].to_string()).collect()
}

fn is_running(event: &Value) -> bool {
    event["state"] == "running"
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_runner_killed_at_any_event_continues_and_submits_once() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.03"), ("WORKLOAD_DELAY", "0.2")]);
    let laptop = Laptop::new(&cluster, &site);
    // At once after each event, or a little later, when the next action is in progress or done but not
    // recorded.
    thread::scope(|scope| {
        for pause_ms in [0, 40, 300] {
            let laptop = &laptop;
            scope.spawn(move || kill_at_every_event(laptop, pause_ms));
        }
    });
    // If a campaign was over when its runner was killed, the next one started a new round.
    let runs = laptop.json(&["jobs", "list", "--all"]).as_array().unwrap().len();
    assert!(runs >= 3 * MOMENTS.len(), "{runs}");
    assert_submitted_once(&cluster, runs);
}

/// The name of an event, and what distinguishes events of that name.
type Moment = (&'static str, fn(&Value) -> bool);

/// The events of every successful run, independent of the cluster's speed.
const MOMENTS: [Moment; 9] = [
    ("staged", |_| true),
    ("intended", |_| true),
    ("submitted", |_| true),
    ("observed", |_| true),
    ("found", |_| true),
    ("observed", |event| event["state"].get("ended").is_some()),
    ("drained", |_| true),
    ("parsed", |_| true),
    ("stored", |_| true),
];

/// Runs a campaign for each event, kills the runner there and continues.
fn kill_at_every_event(laptop: &Laptop, pause_ms: u64) {
    for (place, (moment, holds)) in MOMENTS.into_iter().enumerate() {
        let name = format!("k{pause_ms}-{place}");
        laptop.campaign(&name, &[("a", EIGHT)]);
        let mut runner = laptop.start(&name, &[]);
        runner.wait_for(moment, holds);
        thread::sleep(Duration::from_millis(pause_ms));
        runner.kill();
        let (code, events) = laptop.start(&name, &[]).end();
        assert_eq!(code, Some(0), "killed {pause_ms} ms after {moment}: {}{events:?}", laptop.errors());
        assert_eq!(summary(&events)["outcome"], "scored");
        assert_eq!(summary(&events)["jobs"].as_array().unwrap().len(), 1);
    }
}

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

/// Wraps the cluster's sbatch, as some sites do.
fn wrap_sbatch(cluster: &Cluster, text: &str) {
    let path = cluster.folder().join("bin/sbatch");
    fs::write(&path, format!("#!/bin/bash\n{text}")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
#[ignore = "needs root and Slurm"]
fn jobs_are_submitted_once_whatever_sbatch_answers() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.02")]);
    let laptop = Laptop::new(&cluster, &site);
    // sbatch is slow: another run is followed meanwhile.
    wrap_sbatch(&cluster, "sleep 8; exec /usr/bin/sbatch \"$@\"\n");
    laptop.campaign("slow", &[("a", EIGHT)]);
    assert_eq!(laptop.start("slow", &[]).end().0, Some(0), "{}", laptop.errors());
    assert_submitted_once(&cluster, 1);
    // It submits the job, and its answer is lost.
    wrap_sbatch(
        &cluster,
        "/usr/bin/sbatch \"$@\" >/dev/null\n\
         echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1\n",
    );
    laptop.campaign("mute", &[("a", EIGHT)]);
    let (code, events) = laptop.start("mute", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    // The launcher does not notice: the sbatch that it calls finds the job by its mark.
    assert_eq!(of(&events, "submitted")[0]["launcher"]["ended"], 0);
    assert_submitted_once(&cluster, 2);
    // It submits the job, and is killed with its callers, as if the login node had crashed.
    wrap_sbatch(
        &cluster,
        "/usr/bin/sbatch \"$@\" >/dev/null; kill -KILL -- -$(ps -o pgid= -p $$ | tr -d ' ')\n",
    );
    laptop.campaign("gone", &[("a", EIGHT)]);
    let (code, events) = laptop.start("gone", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_submitted_once(&cluster, 3);
    // It fails temporarily: it is tried again, since certainly no job was submitted.
    let flag = cluster.folder().join("tmp/failed");
    wrap_sbatch(
        &cluster,
        &format!(
            "[ -e {0} ] && exec /usr/bin/sbatch \"$@\"\ntouch {0}\n\
             echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)' >&2; exit 1\n",
            flag.display()
        ),
    );
    laptop.campaign("passing", &[("a", EIGHT)]);
    let (code, events) = laptop.start("passing", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_eq!(of(&events, "not_submitted")[0]["again"], true);
    assert_submitted_once(&cluster, 4);
    // It rejects the job.
    wrap_sbatch(&cluster, "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1\n");
    laptop.campaign("refused", &[("a", EIGHT)]);
    let (code, events) = laptop.start("refused", &[]).end();
    assert_eq!(code, Some(4), "{}{events:?}", laptop.errors());
    assert!(summary(&events)["why"].as_str().unwrap().contains("Invalid account"), "{events:?}");
    assert_submitted_once(&cluster, 4);
}

const OTHERS: [&str; 3] = [
    "recipe = \"nemotron4-15b/h100/fp8/16@25.04\"\n",
    "recipe = \"nemotron4-15b/h100/bf16/16@25.04\"\n",
    "recipe = \"llama3.1-8b/h100/fp8/8@25.04\"\n",
];

/// Returns the summary of a run.
fn summary_of<'a>(events: &'a Events, run: &str) -> &'a Value {
    let is_it = |event: &&&Value| event["run"] == run;
    of(events, "summary").iter().find(is_it).unwrap_or_else(|| panic!("{events:?}"))
}

#[test]
#[ignore = "needs root and Slurm"]
fn launchers_that_pass_by_the_sbatch_in_their_path_submit_once() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.02")]);
    let laptop = Laptop::new(&cluster, &site);
    let run = |recipe: &str, env: &str| format!("{recipe}env = {{ {env} }}");
    let full = "WORKLOAD_SBATCH = \"/usr/bin/sbatch\"";
    // A launcher whose job has its mark, so that marks are known to survive.
    one(&laptop, "");
    let (code, events) = laptop.start("one", &[]).end();
    assert_eq!((code, &of(&events, "submitted")[0]["marked"]), (Some(0), &true.into()), "{events:?}");
    laptop.campaign(
        "vices",
        &[
            ("path", &run(EIGHT, "WORKLOAD_PATH = \"/usr/bin\"")),
            ("mute", &run(OTHERS[0], &format!("{full}, WORKLOAD_SUBMIT = \"timeout\""))),
            ("killed", &run(OTHERS[1], &format!("{full}, WORKLOAD_SUBMIT = \"killed\""))),
            ("none", &run(OTHERS[2], "WORKLOAD_SUBMIT = \"lost\"")),
        ],
    );
    let (code, events) = laptop.start("vices", &[]).end();
    assert_eq!(code, Some(4), "{}{events:?}", laptop.errors());
    let submitted = |run: &str| {
        let all: Vec<&Value> =
            of(&events, "submitted").into_iter().filter(|event| event["run"] == run).collect();
        assert_eq!(all.len(), 1, "{run}: {events:?}");
        all[0].clone()
    };
    assert_eq!(submitted("path")["marked"], false);
    for name in ["mute", "killed"] {
        assert_eq!(submitted(name)["by_name"], true, "{events:?}");
        assert_eq!(submitted(name)["jobs"].as_array().unwrap().len(), 1);
    }
    for name in ["path", "mute", "killed"] {
        assert_eq!(summary_of(&events, name)["outcome"], "scored", "{events:?}");
    }
    // No sbatch was called, but nobody can know that.
    let why = summary_of(&events, "none")["why"].as_str().unwrap();
    assert!(why.contains("Socket timed out") && why.contains("not launched again"), "{why}");
    assert_eq!(of(&events, "intended").len(), 4, "{events:?}");
    assert_eq!(accounted(&cluster).len(), 4);
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_site_that_replaces_comments_gets_every_job_once() {
    let cluster = Cluster::start(&Options { slurm_conf: &["JobSubmitPlugins=lua"], ..SMALL });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.02")]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign("plain", &[("a", EIGHT)]);
    let (code, events) = laptop.start("plain", &[]).end();
    assert_eq!((code, &of(&events, "submitted")[0]["marked"]), (Some(0), &false.into()), "{events:?}");
    // sbatch submits the job, and its answer is lost.
    let error = "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1\n";
    wrap_sbatch(&cluster, &format!("/usr/bin/sbatch \"$@\" >/dev/null\n{error}"));
    laptop.campaign("mute", &[("a", EIGHT)]);
    let (code, events) = laptop.start("mute", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_eq!(of(&events, "submitted")[0]["by_name"], true);
    // It fails before there is a job. Elsewhere, that would be certain.
    wrap_sbatch(&cluster, error);
    laptop.campaign("lost", &[("a", EIGHT)]);
    let (code, events) = laptop.start("lost", &[]).end();
    assert_eq!((code, of(&events, "intended").len()), (Some(4), 1), "{}{events:?}", laptop.errors());
    let why = summary(&events)["why"].as_str().unwrap();
    assert!(why.contains("keep their marks") && why.contains("squeue --me"), "{why}");
    assert_eq!(accounted(&cluster).len(), 2);
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_secret_that_a_launcher_prints_stays_on_the_cluster() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "WORKLOAD_PRINT = \"HF_TOKEN\", WORKLOAD_SUBMIT = \"refuse\"");
    let (code, events) = laptop.start("one", &[]).end();
    assert_eq!(code, Some(4), "{events:?}");
    let why = summary(&events)["why"].as_str().unwrap();
    assert!(why.contains("HF_TOKEN=(secret)"), "{why}");
    let grep = Command::new("grep").args(["-rla", "hf_sesame"]).arg(laptop.path(".")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&grep.stdout), "");
    assert!(!format!("{events:?}").contains("hf_sesame"));
}

#[test]
#[ignore = "needs root and Slurm"]
fn nothing_is_launched_before_its_intent_is_on_disk() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[]);
    let laptop = Laptop::new(&cluster, &site);
    assert_eq!(laptop.runs().len(), 0);
    // The journal takes seconds over an intent, and refuses it.
    let journal = laptop.path(".local/share/trainplan/journal.sqlite3");
    let slow = "CREATE TRIGGER slow BEFORE INSERT ON event WHEN NEW.event LIKE '%\"intended\"%' BEGIN SELECT \
                length(hex(randomblob(300000000))); SELECT RAISE(ABORT, 'no intent'); END";
    sqlx::any::install_default_drivers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        use sqlx::{Connection as _, Executor as _};
        let mut journal =
            sqlx::AnyConnection::connect(&format!("sqlite:{}", journal.display())).await.unwrap();
        journal.execute(slow).await.unwrap();
    });
    one(&laptop, "");
    let (code, events) = laptop.start("one", &[]).end();
    assert_eq!(code, Some(1), "{events:?}");
    assert!(laptop.errors().contains("no intent"), "{}", laptop.errors());
    assert_eq!(cluster.text("ls -d ~/.trainplan/runs/*/attempt-1 2>/dev/null || echo none"), "none");
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_secret_that_can_not_be_read_concerns_its_run_only() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.5")]);
    let laptop = Laptop::new(&cluster, &site);
    let locked =
        "env = { HF_TOKEN = { command = [\"sh\", \"-c\", \"test ! -e locked && echo hf_sesame\"] } }";
    laptop.campaign(
        "keys",
        &[
            ("long", EIGHT),
            ("later", &format!("{}{locked}", OTHERS[0])),
            ("never", &format!("{}{locked}", OTHERS[1])),
        ],
    );
    // One run at a time is submitted; then the keys are locked.
    let mut runner = laptop.start("keys", &["--at-once", "1"]);
    runner.wait_for("found", |event| event["run"] == "long");
    runner.kill();
    laptop.write("locked", "");
    let refused = laptop.run(&["run", "keys.campaign.toml"]);
    assert!(refused.stderr.contains("Can't get HF_TOKEN"), "{}", refused.stderr);
    let runner = laptop.follow("keys");
    let others = ["later", "never"];
    let told = |run: &str| laptop.errors().matches(&format!("{run}: Can't get HF_TOKEN")).count();
    wait_for("complaint", SOON, || others.iter().all(|run| told(run) > 0).then_some(()));
    // Cancelling does not wait for the key.
    let cancelled = laptop.run(&["jobs", "cancel", "later", "never"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    let (_, events) = runner.end();
    assert_eq!(summary_of(&events, "long")["outcome"], "scored", "{events:?}");
    assert_eq!(of(&events, "unseen").len(), 0, "{events:?}");
    for run in others {
        assert!(summary_of(&events, run)["why"].as_str().unwrap().contains("cancelled before"), "{events:?}");
        assert_eq!(told(run), 1, "{}", laptop.errors());
    }
    assert_submitted_once(&cluster, 1);
}

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
fn a_new_round_does_not_lose_the_jobs_of_the_last_one() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "WORKLOAD_PACE = \"10\"");
    let mut runner = laptop.start("one", &[]);
    let job = runner.wait_for("found", |_| true)["job"].as_str().unwrap().to_string();
    runner.kill();
    one(&laptop, "");
    let refused = laptop.run(&["run", "one.campaign.toml", "--new"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let said = format!("one@1/a (job {job})");
    assert!(refused.stderr.contains(&said) && refused.stderr.contains("--abandon"), "{}", refused.stderr);
    assert_eq!(laptop.runs().len(), 1);
    let (code, events) = laptop.start("one", &["--new", "--abandon"]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    assert_eq!(cluster.text("squeue -h -o %i"), job, "the job of the first round goes on");
    // Both rounds are reachable; a name alone is the run that is not over.
    let [first, second] = ["one@1/a", "one@2/a"].map(|run| laptop.json(&["jobs", "show", run]));
    assert_eq!((&first["jobs"][0], &second["outcome"]), (&job.clone().into(), &"scored".into()));
    let cancelled = laptop.run(&["jobs", "cancel", "one/a"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
    assert_eq!(cluster.text("squeue -h -o %i"), "");
    assert_eq!(laptop.json(&["jobs", "show", "one@1/a"])["state"], "cancelled");
    assert_submitted_once(&cluster, 2);
    // The newest round is over, so the next one is another.
    let (code, _) = laptop.start("one", &[]).end();
    assert_eq!(code, Some(0));
    assert_eq!(laptop.json(&["jobs", "show", "one@3/a"])["outcome"], "scored");
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
    // Each try has events and a result of its own.
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
fn a_second_runner_of_a_campaign_is_refused() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.2")]);
    let laptop = Laptop::new(&cluster, &site);
    one(&laptop, "");
    let mut first = laptop.start("one", &[]);
    first.wait_for("staged", |_| true);
    let second = laptop.run(&["run", "one.campaign.toml"]);
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(second.stderr.contains(&first.process().to_string()), "{}", second.stderr);
    // `jobs follow` can watch.
    let watching = laptop.run(&["jobs", "follow", "--format", "json"]);
    assert_eq!(watching.code, Some(0), "{}", watching.stderr);
    assert!(watching.stdout.contains("\"event\":\"stored\""));
    assert_eq!(first.end().0, Some(0));
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
    // No process observes the job: its state is unknown.
    let told = laptop.runs()[0]["state"].as_str().unwrap().to_string();
    assert!(told.starts_with("unknown, last seen") && told.contains("running"), "{told}");
    let followed = laptop.run(&["jobs", "follow", "--format", "json"]);
    assert_eq!(followed.code, Some(0), "{}", followed.stderr);
    assert_eq!(laptop.runs()[0]["outcome"], "scored");
    assert_submitted_once(&cluster, 1);
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
fn a_wrong_clock_does_not_matter() {
    let cluster = Cluster::start(&SMALL);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    for (name, skew) in [("ahead", "+5h"), ("behind", "-5h")] {
        laptop.campaign(name, &[("a", EIGHT)]);
        let file = format!("{name}.campaign.toml");
        let command = laptop.trainplan(&["run", &file, "--format", "json", "--interval", "0.5"]);
        let mut faked = Command::new("faketime");
        faked
            .args(["-f", skew])
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(laptop.path(""));
        faked.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run = trainplan_tests::run_of(&faked.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").output().unwrap());
        assert_eq!(run.code, Some(0), "{skew}: {}{}", run.stdout, run.stderr);
    }
    assert_submitted_once(&cluster, 2);
}
