//! Campaigns on a healthy cluster.

use crate::cluster::wait_for;
use crate::laptop::{Laptop, assert_submitted_once};
use crate::{Cluster, Options, Site};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

const WITH_ACCOUNTING: Options = Options { nodes: 64, accounting: true, slurm_conf: &[] };

/// Runs of every release and every launch style.
const TWELVE: [(&str, &str); 11] = [
    (
        "n4-340b-2411",
        "recipe = \"nemotron4-340b/h100/bf16/256@24.11\"\nenv = { WORKLOAD_STEP_TIME = \"4.70\" }",
    ),
    (
        "n4-340b-128",
        "recipe = \"nemotron4-340b/h100/bf16/128@24.11\"\nenv = { WORKLOAD_STEP_TIME = \"4.65\" }",
    ),
    ("n4-15b-bf16", "recipe = \"nemotron4-15b/h100/bf16/64@25.04\"\nenv = { WORKLOAD_STEP_TIME = \"2.70\" }"),
    ("n4-15b-fp8", "recipe = \"nemotron4-15b/h100/fp8/16@25.04\"\nenv = { WORKLOAD_STEP_TIME = \"2.00\" }"),
    (
        "n4-340b-fp8",
        "recipe = \"nemotron4-340b/h100/fp8/256@25.04\"\nenv = { WORKLOAD_STEP_TIME = \"2.95\" }",
    ),
    (
        "llama-8b",
        "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"\nrepeats = 2\nenv = { WORKLOAD_STEP_TIME = \"12.30\" }",
    ),
    ("llama-70b", "recipe = \"llama3.1-70b/h100/fp8/64@25.04\"\nenv = { WORKLOAD_STEP_TIME = \"9.90\" }"),
    (
        "llama-405b",
        "recipe = \"llama3.1-405b/h100/fp8/512@25.04\"\nafter = [\"llama-8b\"]\nenv = { WORKLOAD_STEP_TIME = \"12.39\" }",
    ),
    (
        "nemotron-h",
        "recipe = \"nemotron-h-56b/h100/fp8/256@25.05\"\nenv = { WORKLOAD_STEP_TIME = \"15.90\" }",
    ),
    ("n4-2512", "recipe = \"nemotron4-340b/h100/fp8/256@25.12\"\nenv = { WORKLOAD_STEP_TIME = \"3.10\" }"),
    (
        "n4-2512-sh",
        "recipe = \"nemotron4-340b/h100/bf16/256@25.12\"\nstyle = \"launch-sh\"\nenv = { WORKLOAD_STEP_TIME = \"4.40\" }",
    ),
];

#[test]
#[ignore = "needs root and Slurm"]
fn twelve_runs_of_five_releases_are_scored_compared_and_stored() {
    let cluster = Cluster::start(&WITH_ACCOUNTING);
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign("nightly", &TWELVE);
    let (code, events) = laptop.start("nightly", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    let summaries: Vec<&Value> = events.iter().filter(|event| event["event"] == "summary").collect();
    assert_eq!(summaries.len(), 12);
    for summary in &summaries {
        assert_eq!(summary["outcome"], "scored", "{summary:#}");
        assert!(summary["step_time_s"].as_f64().unwrap() > 1.0);
        assert!(summary["error"].as_f64().unwrap().abs() < 1.0, "{summary:#}");
        assert_eq!(summary["result"], summary["id"]);
    }
    // Runs with a published number are compared with it.
    let of = |run: &str| summaries.iter().find(|summary| summary["run"] == run).unwrap();
    assert_eq!(of("llama-405b")["published_step_time_s"], 12.37);
    let speed = of("llama-405b")["speed_percent"].as_f64().unwrap();
    assert!((speed - 100.0 * 12.37 / 12.39).abs() < 0.1, "{speed}");
    assert_submitted_once(&cluster, 12);
    // The large run started after both repeats were over.
    let at = |run: &str, event: &str| {
        events
            .iter()
            .filter(|e| e["run"] == run && e["event"] == event)
            .map(|e| e["at"].as_str().unwrap())
            .max()
            .unwrap()
    };
    assert!(at("llama-405b", "intended") > at("llama-8b", "stored"));
    // No file on either machine contains the secret.
    for folder in [laptop.path("."), cluster.folder().join("home")] {
        let grep =
            std::process::Command::new("grep").args(["-rla", "hf_sesame"]).arg(folder).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&grep.stdout), "");
    }
    assert_eq!(laptop.runs().len(), 12);
    // The server has the results with their plans.
    let page = laptop.get("/api/v1/runs?campaign=nightly");
    let items = page["items"].as_array().unwrap();
    assert_eq!(items.len(), 12);
    let large = items.iter().find(|item| item["run"] == "llama-405b").unwrap();
    assert_eq!(
        (&large["step_time_s"]["mean"], &large["plan"]["within"]),
        (&Value::from(12.39), &Value::from(true))
    );
    let whole = laptop.get(&format!("/api/v1/runs/{}", large["id"].as_str().unwrap()));
    assert_eq!(whole["carried"]["jobs"][0]["state"], "COMPLETED");
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_cluster_is_certified_by_the_best_references() {
    let cluster = Cluster::start(&WITH_ACCOUNTING);
    let site = Site::install(&cluster, &[("WORKLOAD_STEP_TIME", "20")]);
    let laptop = Laptop::new(&cluster, &site);
    let certify = ["certify", "--cluster", "loop", "--gpus", "64", "--interval", "0.5"];
    let run = laptop.run(&[&certify[..], &["--format", "table", "--report", "report.md"]].concat());
    assert_eq!(run.code, Some(6), "{}{}", run.stdout, run.stderr);
    let certificate = laptop.json(&certify);
    let runs = certificate["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 8);
    for run in runs {
        assert_eq!(run["step_times_s"], Value::from(vec![20.0]), "{run:#}");
    }
    let of = |name: &str| runs.iter().find(|run| run["run"] == name).unwrap();
    // Published: 1,664 and 5,984 tokens/s per GPU.
    let passed = of("llama3.1-70b-fp8");
    assert_eq!((&passed["verdict"], &passed["reference"]["kind"]), (&"passed".into(), &"published".into()));
    assert!((passed["speed_percent"].as_f64().unwrap() - 98.46).abs() < 0.01, "{passed:#}");
    assert_eq!(of("gpt-oss-120b-bf16")["verdict"], "slow");
    assert_eq!(of("llama3.1-8b-bf16")["reference"]["kind"], "predicted");
    // llmb-run launches one container here; the release has another one for this model, with which the number was measured.
    assert_eq!(of("gpt-oss-120b-bf16")["container"], "nemo:26.04.01");
    assert_eq!(of("gpt-oss-120b-bf16")["source"]["container"], "nemo:26.02.01");
    // The report names what was compared with what, and nothing ran twice.
    let report = fs::read_to_string(laptop.path("report.md")).unwrap();
    assert!(report.contains("| llama3.1-70b-fp8 | 20 s | 19.69 s, published | 98.5 | passed |"), "{report}");
    assert!(report.contains("Not tested because the release has no recipe for 64 GPUs: "), "{report}");
    assert_eq!(certificate["untested"].as_array().unwrap().len(), 5);
    assert_submitted_once(&cluster, 8);
}

#[test]
#[ignore = "needs root and Slurm"]
fn campaigns_work_without_accounting() {
    let cluster = Cluster::start(&Options { nodes: 4, ..Options::default() });
    let site = Site::install(&cluster, &[]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign(
        "small",
        &[
            ("a", "recipe = \"llama3.1-8b/h100/bf16/8@25.04\""),
            ("b", "recipe = \"nemotron4-15b/h100/fp8/16@25.04\""),
        ],
    );
    let (code, events) = laptop.start("small", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    let ended = events
        .iter()
        .find(|event| event["event"] == "observed" && !event["state"]["ended"].is_null())
        .unwrap();
    assert_eq!(ended["state"]["ended"], "completed");
    assert_ne!(ended["source"], "sacct");
}

/// A scenario without a recipe, for Megatron-LM.
const OWN: &str = "model = \"llama3.1-8b\"\ngpu = \"h100\"\ngpus = 16\ntp = 2\nmbs = 1\ngbs = 64\nseq-len = 8192\nstyle = \"megatron-lm\"";

#[test]
#[ignore = "needs root and Slurm"]
fn the_end_of_a_megatron_lm_job_is_known_from_its_own_record() {
    // Slurm forgets a job after two seconds and has no accounting: only the job's own record has its end
    // state.
    let cluster = Cluster::start(&Options { nodes: 2, accounting: false, slurm_conf: &["MinJobAge=2"] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.1")]);
    let laptop = Laptop::new(&cluster, &site);
    let checkout = cluster.folder().join("megatron-lm");
    fs::create_dir(&checkout).unwrap();
    laptop.profile(&format!("[cluster.loop.megatron-lm]\ninstall-path = \"{}\"\n", checkout.display()));
    laptop
        .campaign("own", &[("good", OWN), ("bad", &format!("{OWN}\nenv = {{ WORKLOAD_FAULT = \"exit\" }}"))]);
    let mut runner = laptop.start("own", &[]);
    runner.wait_for("observed", |event| event["run"] == "bad" && event["state"] == "running");
    runner.kill();
    wait_for("oblivion", Duration::from_secs(60), || {
        cluster.text("squeue -h -t all").is_empty().then_some(())
    });
    let (code, events) = laptop.start("own", &[]).end();
    assert_eq!(code, Some(4), "{}{events:?}", laptop.errors());
    let last =
        |run: &str| laptop.events(run).into_iter().rfind(|event| event["event"] == "observed").unwrap();
    assert_eq!(last("bad")["source"], "job", "{events:?}");
    assert_eq!(
        (&last("bad")["state"]["ended"], &last("bad")["exit_code"]),
        (&Value::from("failed"), &Value::from(7))
    );
    let summary = |run: &str| events.iter().find(|e| e["event"] == "summary" && e["run"] == run).unwrap();
    assert_eq!(summary("good")["outcome"], "scored", "{events:?}");
    assert_eq!(summary("good")["step_time_s"], 12.0);
    assert_eq!(summary("bad")["outcome"], "failed");
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_profiled_run_has_two_jobs() {
    let cluster = Cluster::start(&Options { nodes: 4, accounting: true, slurm_conf: &[] });
    let site = Site::install(&cluster, &[]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign("two", &[("a", "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"\nprofile = true")]);
    let (code, events) = laptop.start("two", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    let summary = events.iter().find(|event| event["event"] == "summary").unwrap();
    assert_eq!(summary["jobs"].as_array().unwrap().len(), 2);
    // The job without the profiler is the measured one.
    let found = events.iter().find(|event| event["event"] == "found").unwrap();
    assert!(!found["path"].as_str().unwrap().contains("nsys"), "{found}");
    let whole = laptop.get(&format!("/api/v1/runs/{}", summary["id"].as_str().unwrap()));
    let jobs = whole["carried"]["jobs"].as_array().unwrap();
    assert!(jobs[1]["name"].as_str().unwrap().ends_with("_nsys"), "{jobs:?}");
    assert_eq!(
        (&jobs[0]["state"], &jobs[1]["state"]),
        (&Value::from("COMPLETED"), &Value::from("COMPLETED"))
    );
    assert_submitted_once(&cluster, 2);
}

#[test]
#[ignore = "needs root and Slurm"]
fn at_once_and_queue_budget_are_observed() {
    let cluster = Cluster::start(&Options { nodes: 4, accounting: true, slurm_conf: &[] });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    const SMALL: &str = "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"";
    // One at a time: each starts after the previous one is over.
    laptop.campaign(
        "few",
        &[("a", &format!("{SMALL}\nrepeats = 2")), ("b", "recipe = \"nemotron4-15b/h100/bf16/16@25.04\"")],
    );
    let (code, events) = laptop.start("few", &["--at-once", "1"]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    let mut active: Vec<&Value> = Vec::new();
    for event in events.iter() {
        match event["event"].as_str().unwrap() {
            "intended" => active.push(&event["id"]),
            "observed" if event["state"]["ended"].is_string() => active.retain(|id| **id != event["id"]),
            _ => {}
        }
        assert!(active.len() <= 1, "{events:?}");
    }
    // Only the run that waits for longer than its budget is cancelled.
    let blocker = cluster.text("sbatch --parsable --exclusive --nodes=4 --wrap='sleep 600'");
    laptop.campaign("late", &[("a", &format!("{SMALL}\nqueue-budget = \"00:00:05\""))]);
    let (code, events) = laptop.start("late", &[]).end();
    assert_eq!(code, Some(4), "{}{events:?}", laptop.errors());
    assert!(
        events.iter().any(
            |event| event["event"] == "cancel_asked" && event["why"].as_str().unwrap().contains("budget")
        )
    );
    let states = cluster.text("squeue -h -o '%i %T'");
    assert_eq!(states, format!("{blocker} RUNNING"));
}

#[test]
#[ignore = "needs root and Slurm"]
fn files_of_a_run_are_fetched_and_an_interrupted_fetch_continues() {
    let cluster = Cluster::start(&Options { nodes: 4, ..Options::default() });
    let site = Site::install(&cluster, &[]);
    let laptop = Laptop::new(&cluster, &site);
    laptop.campaign("files", &[("a", "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"\nrepeats = 2")]);
    let (code, events) = laptop.start("files", &[]).end();
    assert_eq!(code, Some(0), "{}{events:?}", laptop.errors());
    let found = events.iter().find(|event| event["event"] == "found" && event["repeat"] == 1).unwrap();
    let log = Path::new(found["path"].as_str().unwrap());
    let folder = log.ancestors().nth(2).unwrap();
    // A name with special characters, a large file, and files that are not fetched by default.
    let odd = folder.join("it's $(odd) \u{e9}.bin");
    let bytes: Vec<u8> = (0..20_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(&odd, &bytes).unwrap();
    fs::create_dir_all(folder.join("code/checkpoints")).unwrap();
    fs::write(folder.join("code/checkpoints/weights.distcp"), "large").unwrap();
    fs::write(folder.join("profile.nsys-rep"), "larger").unwrap();
    let job = found["job"].as_str().unwrap();
    let here = laptop.path(format!("a-1-{job}"));
    // A file of an interrupted fetch.
    fs::create_dir_all(&here).unwrap();
    fs::write(here.join(odd.file_name().unwrap()).with_extension("bin.part"), &bytes[..7_000_000]).unwrap();
    let fetched = laptop.json(&["jobs", "fetch", "a#1"]);
    assert_eq!(fs::read(here.join(odd.file_name().unwrap())).unwrap(), bytes);
    let all = fetched["bytes"].as_u64().unwrap();
    assert_eq!(all - fetched["fetched_bytes"].as_u64().unwrap(), 7_000_000, "{fetched}");
    let of_log = here.join(log.strip_prefix(folder).unwrap());
    assert_eq!(fs::read(of_log).unwrap(), fs::read(log).unwrap());
    assert!(!here.join("code/checkpoints").exists() && !here.join("profile.nsys-rep").exists());
    // The next fetch transfers only the files that were left out.
    let more = laptop.json(&["jobs", "fetch", "a#1", "--checkpoints", "--profiles"]);
    assert_eq!(more["fetched_bytes"], 11, "{more}");
    // The other repeat has another folder.
    let other = laptop.json(&["jobs", "fetch", "a#2"]);
    assert_ne!(other["from"], fetched["from"]);
}
