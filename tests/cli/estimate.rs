//! `trainplan estimate` through the binary.

use crate::{csv, json, refusal};
use serde_json::Value;
use trainplan_tests::trainplan;

const RECIPE: [&str; 3] = ["estimate", "--recipe", "llama3.1-405b/h100/fp8/512@25.04"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&RECIPE[..], more].concat()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_field_of_the_contract_is_there_and_adds_up() {
    let estimate = json(&with(&["--tokens", "15T"]));
    for range in ["step_time_s", "time_to_train_days"] {
        let [low, mid, high] = ["low", "mid", "high"].map(|end| number(&estimate[range][end]));
        assert!(0.0 < low && low < mid && mid < high, "{range}");
    }
    let step_time_s = number(&estimate["step_time_s"]["mid"]);
    let parts: f64 = estimate["breakdown"].as_object().unwrap().values().map(number).sum();
    assert!((parts / step_time_s - 1.0).abs() < 1e-9);
    let days = 15e12 / number(&estimate["tokens_per_s"]) / 86_400.0;
    assert!((days / number(&estimate["time_to_train_days"]["mid"]) - 1.0).abs() < 1e-9);

    let memory = &estimate["memory"];
    let held: f64 = ["weights", "gradients", "optimizer", "activations", "other"]
        .map(|part| number(&memory[part]))
        .iter()
        .sum();
    assert!((held / number(&memory["total_bytes"]) - 1.0).abs() < 1e-9);
    let left = number(&memory["capacity_bytes"]) - number(&memory["reserved_bytes"]) - held;
    assert!((left - number(&memory["margin_bytes"])).abs() < 1.0);
    assert_eq!(memory["stages"].as_array().unwrap().len(), 8);
    assert!(memory["stage"].as_u64().unwrap() < 8);
    assert_eq!((&estimate["fits"], &estimate["convention"]), (&true.into(), &"recipe".into()));
    assert!(number(&estimate["mfu"]) > 0.0 && number(&estimate["peak_tflops"]) == 1979.0);
    assert!(estimate["warnings"].as_array().unwrap().is_empty());
    assert_eq!(estimate["basis"]["kind"], "published");
    assert_eq!(number(&estimate["baseline"]["step_time_s"]), 12.37);
}

#[test]
fn every_published_recipe_is_predicted_near_its_measurement() {
    for recipe in json(&["recipes"]).as_array().unwrap() {
        let Some(published) = recipe["baseline"]["step_time_s"].as_f64() else { continue };
        let id = recipe["id"].as_str().unwrap();
        let estimate = json(&["estimate", "--recipe", id]);
        let off = number(&estimate["step_time_s"]["mid"]) / published - 1.0;
        assert!(off.abs() < 0.15, "{id}: {off}");
        assert_eq!(estimate["fits"], true, "{id} ran");
    }
}

#[test]
fn a_change_moves_what_it_should() {
    let before = json(&RECIPE);
    let after = json(&with(&["--recompute", "full"]));
    assert!(number(&after["memory"]["activations"]) < 0.5 * number(&before["memory"]["activations"]));
    assert!(number(&after["breakdown"]["matmul"]) > 1.2 * number(&before["breakdown"]["matmul"]));
    assert!(after["baseline"].is_null(), "it is not the published run any more");
    let slower = json(&with(&["--cluster-factor", "1.1"]));
    let ratio = number(&slower["step_time_s"]["mid"]) / number(&before["step_time_s"]["mid"]);
    assert!((1.05..1.2).contains(&ratio), "{ratio}");
    let weaker = json(&with(&["--gemm-tflops", "500"]));
    assert!(number(&weaker["breakdown"]["matmul"]) > number(&before["breakdown"]["matmul"]));
}

#[test]
fn what_does_not_fit_is_printed_and_exits_with_3() {
    let scenario =
        ["estimate", "--model", "llama3.1-70b", "--gpu", "h100", "--gpus", "64", "--tp", "2", "--gbs", "128"];
    let run = trainplan(scenario);
    assert_eq!(run.code, Some(3));
    let estimate: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(estimate["fits"], false);
    assert!(number(&estimate["memory"]["margin_bytes"]) < 0.0);
    assert!(run.stderr.contains("it would fit with"), "{}", run.stderr);
}

#[test]
fn own_models_and_own_gpus_are_predicted() {
    let model = "own:layers=32,hidden=4096,ffn=14336,heads=32,kv_heads=8,head_dim=128,vocab=128256,gated=1,\
                 tied_embeddings=0,seq_len=8192";
    let of = |gpu| {
        let scenario = ["--gpu", gpu, "--gpus", "8", "--gbs", "128", "--cp", "2", "--fsdp", "on"];
        number(&json(&[&["estimate", "--model", model], &scenario[..]].concat())["step_time_s"]["mid"])
    };
    assert!(of("h100:hbm_tbps=2.0") > of("h100"));
}

#[test]
fn a_table_of_numbers_by_path() {
    let (_, rows) = csv(&RECIPE);
    let paths: Vec<&str> = rows.iter().map(|row| &*row[0]).collect();
    assert!(paths.contains(&"step_time_s.mid") && paths.contains(&"memory.stages.7.weights"), "{paths:?}");
}

#[test]
fn a_wrong_option_is_refused_with_what_is_allowed() {
    assert!(refusal(&with(&["--recompute", "some"])).contains("none, selective, full"));
    assert!(refusal(&with(&["--stack", "nemo"])).contains("nemo-1"));
}
