//! `trainplan certify`, on journals that the tests write.

use crate::compare::log;
use crate::jobs::{OwnJournal, stored};
use serde_json::{Value, json as value};
use std::fs;
use trainplan_tests::{Run, trainplan};

const CLUSTERS: &str = r#"version = 1

[cluster.alpha]
ssh = "alpha-login"
account = "research"
partition = "batch"
gpu = "h100"

[cluster.alpha.release."26.06.01"]
install-path = "/lustre/llmb"
"#;

/// Four runs of a certification that is over: two repeats of one, a slow one, and one that failed.
fn certification() -> OwnJournal {
    let mut journal = OwnJournal::new();
    journal.ended_round("certify-h100-64-26.06.01", "alpha");
    // The log is of another recipe. It says why a step of that one is slow.
    let launched = "container_info:\n  images:\n  - nvcr.io#nvidia/nemo:26.06\n";
    journal.beside_log("llmb-config_7.yaml", launched);
    let slow = journal.result(&log(128, 20_000));
    let mut add = |id: &str, name: &str, recipe: &str, [repeat, repeats]: [u32; 2], events: &[Value]| {
        let recipe = format!("{recipe}/64@26.06.01");
        let plan = value!({
            "name": name, "recipe": recipe, "gpus": 64, "repeat": repeat, "repeats": repeats,
        });
        journal.run_of_plan("alpha", id, plan, &[], events);
    };
    let scored = |seconds: f64, id: &str| {
        let parsed = value!({ "event": "parsed", "status": "scored", "step_time_s": seconds });
        [vec![parsed], stored(id)].concat()
    };
    let failed = [value!({ "event": "failed", "why": "the log ends in <b>noise" })];
    let llama = "llama3.1-70b/h100/fp8";
    add("one", "llama3.1-70b-fp8", llama, [1, 2], &scored(20.0, "one"));
    add("two", "llama3.1-70b-fp8", llama, [2, 2], &scored(20.2, "two"));
    add(&slow, "gpt-oss-120b-bf16", "gpt-oss-120b/h100/bf16", [1, 1], &scored(25.0, &slow));
    add("lost", "llama3.1-8b-<i>bf16", "llama3.1-8b/h100/bf16", [1, 1], &failed);
    journal.write();
    journal
}

/// Writes the report of a certification to a file with this name, and returns it.
fn report(journal: &OwnJournal, name: &str) -> (Run, String) {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    fs::write(path("clusters.toml"), CLUSTERS).unwrap();
    let (clusters, data, file) = (path("clusters.toml"), journal.data(), path(name));
    let run = trainplan([
        "certify",
        "--cluster",
        "alpha",
        "--gpus",
        "64",
        "--clusters",
        &clusters,
        "--data-dir",
        &data,
        "--report",
        &file,
    ]);
    // One run has no score.
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    (run, fs::read_to_string(file).unwrap())
}

const AGAIN: &str = "trainplan certify --cluster alpha --gpus 64 --release 26.06.01 --repeats 2 --new";

#[test]
fn a_certification_is_written_as_a_page_to_hand_on() {
    let journal = certification();
    let (_, html) = report(&journal, "alpha.html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"), "{html}");
    for text in [
        "<h1>Certification of alpha</h1>",
        "1 of 3 runs passed, 1 is slow, 1 was not scored.",
        "<th scope=\"row\">llama3.1-70b-fp8<small>llama3.1-70b/h100/fp8/64@26.06.01</small></th>",
        "20.1 s<small>mean of 2, 20–20.2 s</small>",
        "19.69 s<small>exact: Megatron-Bridge 26.04.01, nemo:26.04.01</small>",
        "<li><b>gpt-oss-120b-bf16</b>: It uses nemo:26.06, but its reference was measured in nemo:26.02.01.",
        "<th scope=\"row\">gpt-oss-120b-bf16<small>",
        "<li><b>gpt-oss-120b-bf16</b>: ",
        " longer than predicted (",
        "<th scope=\"row\">llama3.1-8b-&lt;i&gt;bf16<small>",
        "<b class=\"not-scored\">not scored</b><small>The log ends in &lt;b&gt;noise.</small>",
        "<li>Not tested because the release has no recipe for 64 GPUs: ",
        AGAIN,
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    for external in ["http://", "https://", "src=", "href=", "<script", "<link", "@import", "<i>", "<b>noise"]
    {
        assert!(!html.contains(external), "{external}: {html}");
    }
}

#[test]
fn the_name_of_a_report_chooses_its_format() {
    let journal = certification();
    let (run, markdown) = report(&journal, "alpha.md");
    assert!(markdown.starts_with("# Certification of alpha\n"), "{markdown}");
    assert!(markdown.contains("| 20.1 s, mean of 2 | 19.69 s, published |"), "{markdown}");
    assert!(markdown.contains("\n- gpt-oss-120b-bf16: A step took "), "{markdown}");
    let origin = "| gpt-oss-120b-bf16 | exact | Megatron-Bridge 26.02.01 | nemo:26.02.01 | nemo:26.06 |";
    assert!(markdown.contains(origin), "{markdown}");
    let (_, json) = report(&journal, "alpha.json");
    let certificate: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(certificate["command"], AGAIN);
    assert_eq!(certificate["runs"][0]["judged_times_s"], value!([20.0, 20.2]));
    assert_eq!(certificate["runs"][0]["results"], value!(["one", "two"]));
    assert!(certificate["runs"][1]["cause"].as_str().unwrap().contains(" longer than predicted ("), "{json}");
    assert_eq!(certificate["runs"][0]["cause"], Value::Null);
    let source = value!({ "publication": "Megatron-Bridge 26.04.01", "container": "nemo:26.04.01" });
    assert_eq!(certificate["runs"][0]["source"], source);
    assert_eq!(certificate["runs"][1]["container"], "nemo:26.06");
    let printed: Value = serde_json::from_str(run.stdout.trim()).unwrap();
    assert_eq!(printed["runs"], certificate["runs"]);
}

#[test]
fn a_cluster_is_certified_from_logs_of_runs_that_are_over() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    fs::create_dir(path("logs")).unwrap();
    for (gpus, job, seconds) in [(8, 1, 9.4), (8, 2, 9.5), (16, 3, 9.4)] {
        let step =
            |step| format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {seconds} |\n");
        let log: String = (0..50).map(step).collect();
        fs::write(path(&format!("logs/log-acct.pretrain_llama3.1_8b_fp8_{gpus}_{job}_0.out")), log).unwrap();
    }
    let certify = |more: &[&str]| {
        let logs = path("logs");
        let args = ["certify", "--cluster", "alpha", "--gpus", "8", "--from", &logs, "--gpu", "h100"];
        trainplan(args.iter().chain(more))
    };
    let run = certify(&["--format", "json"]);
    // Other recipes have no log.
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(
        run.stderr.contains("_16_3_0.out: It ran llama3.1-8b/h100/fp8/16@25.04, which"),
        "{}",
        run.stderr
    );
    let certificate: Value = serde_json::from_str(run.stdout.trim()).unwrap();
    assert_eq!((&certificate["cluster"], &certificate["release"]), (&value!("alpha"), &value!("25.04")));
    let runs = certificate["runs"].as_array().unwrap();
    let (own, others): (Vec<&Value>, Vec<&Value>) =
        runs.iter().partition(|run| run["recipe"] == "llama3.1-8b/h100/fp8/8@25.04");
    assert_eq!((own.len(), &own[0]["verdict"], &own[0]["repeats"]), (1, &value!("passed"), &value!(2)));
    assert_eq!(own[0]["reference"]["step_time_s"], 9.33);
    assert!(!others.is_empty());
    for other in others {
        assert_eq!(other["verdict"], "not_scored");
        assert_eq!(other["reasons"], value!(["No log of this recipe was found."]));
    }
    let report = path("alpha.html");
    assert_eq!(certify(&["--report", &report]).code, Some(4));
    assert!(fs::read_to_string(report).unwrap().contains("<h1>Certification of alpha</h1>"));
    assert_eq!(certify(&["--dry-run"]).code, Some(2));
}
