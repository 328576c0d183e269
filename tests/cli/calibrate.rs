use crate::{json, refusal};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use trainplan_tests::trainplan;

const HEADER: &str = "id,model,gpu,precision,framework,gpus,seq_len,tp,pp,cp,mbs,gbs,step_time_s";
/// Runs of a cluster, without their step times.
const RUNS: [&str; 4] = [
    "a,llama3.1-8b,H100,BF16,NeMo2,16,8192,1,1,2,1,128",
    "b,llama3.1-70b,H100,BF16,NeMo2,64,8192,4,4,2,1,128",
    "c,qwen3-14b,H100,FP8-CS,NeMo2,32,4096,2,1,1,1,256",
    "d,gpt3-175b,H100,FP8-DS,NeMo2,128,2048,4,8,1,1,256",
];

/// A file of those runs with these step times.
fn runs(seconds: &[f64]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let mut text = format!("{HEADER}\n");
    for (run, seconds) in RUNS.iter().zip(seconds) {
        writeln!(text, "{run},{seconds}").unwrap();
    }
    fs::write(&path, text).unwrap();
    (folder, path)
}

/// The predicted step times of those runs, s.
fn predicted() -> Vec<f64> {
    let (_folder, path) = runs(&[1.0; 4]);
    let validation = json(&["validate", path.to_str().unwrap()]);
    validation["rows"].as_array().unwrap().iter().map(|row| row["predicted_s"].as_f64().unwrap()).collect()
}

fn factor(seconds: &[f64]) -> Value {
    let (_folder, path) = runs(seconds);
    json(&["calibrate", "--cluster", path.to_str().unwrap()])
}

#[test]
fn a_slower_cluster_gets_a_factor_for_its_estimates() {
    let slower: Vec<f64> = predicted().iter().map(|seconds| seconds * 1.2).collect();
    let cluster = factor(&slower);
    let [low, middle, high] = ["low", "factor", "high"].map(|key| cluster[key].as_f64().unwrap());
    assert_eq!(cluster["n"], 4);
    // Four runs outweigh most of the prior.
    assert!(1.1 < middle && middle < 1.2 && low < middle && middle < high, "{cluster}");

    let recipe = ["estimate", "--recipe", "llama3.1-8b/h100/bf16/8@25.04"];
    let with = json(&[&recipe[..], &["--cluster-factor", &middle.to_string()]].concat());
    let without = json(&recipe);
    for end in ["low", "mid", "high"] {
        let ratio =
            with["step_time_s"][end].as_f64().unwrap() / without["step_time_s"][end].as_f64().unwrap();
        assert!((ratio / middle - 1.0).abs() < 1e-12, "{end}: {ratio}");
    }
}

#[test]
fn fewer_runs_change_the_factor_less() {
    let slower: Vec<f64> = predicted().iter().map(|seconds| seconds * 1.2).collect();
    let (one, four) = (factor(&slower[..1]), factor(&slower));
    assert!(one["factor"].as_f64() < four["factor"].as_f64());
    let width = |factor: &Value| factor["high"].as_f64().unwrap() / factor["low"].as_f64().unwrap();
    assert!(width(&one) > width(&four));
}

#[test]
fn a_cluster_needs_timed_runs() {
    let (_folder, path) = runs(&[]);
    assert!(refusal(&["calibrate", "--cluster", path.to_str().unwrap()]).contains("no rows"));
    fs::write(&path, format!("{HEADER}\n{},\n", RUNS[0])).unwrap();
    let untimed = trainplan(["calibrate", "--cluster", path.to_str().unwrap()]);
    assert_eq!(untimed.code, Some(4), "{}", untimed.stderr);
    assert!(untimed.stderr.contains("a: step_time_s is missing"), "{}", untimed.stderr);
    assert!(refusal(&["calibrate", "--cluster"]).contains("FILE"));
}

#[test]
fn own_measurements_are_fitted_into_files() {
    let (folder, path) = runs(&predicted());
    let output = folder.path().join("fit");
    let fitted = json(&["calibrate", path.to_str().unwrap(), "--output", output.to_str().unwrap()]);
    assert_eq!((&fitted["rows"], fitted["held_out"].as_array().unwrap().len()), (&4.into(), 3));
    assert!(fitted["constants"]["gemm_hopper"].is_f64(), "{fitted}");
    for name in
        ["calibration.csv", "anchors.csv", "intervals.csv", "held_out.csv", "accuracy.md", "accuracy.svg"]
    {
        assert!(fs::metadata(output.join(name)).unwrap().len() > 0, "{name}");
    }
}

#[test]
fn what_is_no_file_of_runs_is_refused() {
    let missing = trainplan(["calibrate", "/nowhere/runs.csv"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    fs::write(&path, "model\nmy-gpt\n").unwrap();
    let said = refusal(&["calibrate", path.to_str().unwrap()]);
    assert!(said.contains("runs.csv: No row with a step time can be predicted."), "{said}");
    assert!(said.contains("`trainplan validate` shows the reasons."), "{said}");
}
