//! Every job is submitted once: whatever kills the runner, whatever sbatch and launchers answer, whatever the clock says.

use super::{EIGHT, OTHERS, SMALL, of, one, summary, summary_of};
use crate::laptop::{Laptop, accounted, assert_submitted_once};
use crate::{Cluster, Options, Site};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

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
    // No sbatch was called, but this can't be known.
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
