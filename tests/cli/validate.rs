use crate::{csv, json, refusal};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tempfile::TempDir;
use trainplan_tests::trainplan;

/// Every measured row of the repository.
const MEASUREMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/measurements.csv");

/// A file of measured runs: a catalog model, a custom model, an unknown model, an invalid layout, and an untimed run.
const RUNS: &str = "\
id,model,gpu,precision,framework,gpus,seq_len,tp,pp,cp,mbs,gbs,layers,hidden,heads,vocab,step_time_s
known,llama3.1-8b,H100,BF16,NeMo2,8,8192,1,1,2,1,128,,,,,12
own,my-gpt,A100,BF16,Megatron-LM 2022,64,2048,8,2,1,4,512,48,8192,64,51200,25
unknown,my-other,H100,BF16,NeMo2,8,8192,1,1,2,1,128,,,,,12
uneven,llama3.1-8b,H100,BF16,NeMo2,8,8192,3,1,2,1,128,,,,,12
untimed,llama3.1-8b,H100,BF16,NeMo2,8,8192,1,1,2,1,128,,,,,
";

fn file(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn validated(text: &str) -> Value {
    let (_folder, path) = file(text);
    json(&["validate", path.to_str().unwrap()])
}

#[test]
fn each_row_is_predicted_or_has_a_reason() {
    let validation = validated(RUNS);
    let rows = validation["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    for row in &rows[..2] {
        let [measured, predicted, error] =
            ["step_time_s", "predicted_s", "error"].map(|key| row[key].as_f64().unwrap());
        assert!((predicted / measured - 1.0 - error).abs() < 1e-12 && error.abs() < 0.5, "{row}");
        assert!(row["reason"].is_null(), "{row}");
    }
    let reasons: Vec<&str> = rows[2..].iter().map(|row| row["reason"].as_str().unwrap()).collect();
    assert_eq!(
        reasons[0],
        "The architecture of \"my-other\" is unknown: name a model of the catalog, or fill in the columns layers, hidden, heads, ffn and vocab."
    );
    assert!(reasons[1].contains("TP 3"), "{}", reasons[1]);
    assert_eq!(reasons[2], "step_time_s is missing.");
    // An untimed run is predicted too, and counts in no summary.
    assert!(
        rows[3]["predicted_s"].is_null() && rows[4]["predicted_s"].is_f64() && rows[4]["error"].is_null()
    );
    assert_eq!(validation["summary"]["n"], 2);
}

#[test]
fn errors_are_summarized_over_all_rows_and_in_groups() {
    let validation = validated(RUNS);
    let errors: Vec<f64> =
        validation["rows"].as_array().unwrap().iter().filter_map(|row| row["error"].as_f64()).collect();
    let mean = errors.iter().map(|error| error.abs()).sum::<f64>() / 2.0;
    let summary = &validation["summary"];
    assert!((summary["mape"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!(["median", "p90", "bias"].iter().all(|figure| summary[figure].is_f64()), "{summary}");
    let groups: Vec<&String> = validation["by"].as_object().unwrap().keys().collect();
    assert_eq!(groups, ["gpu", "model", "precision", "software", "source", "use"]);
    assert_eq!(validation["by"]["gpu"]["H100"]["n"], 1);
    assert_eq!(validation["by"]["model"]["my-gpt"]["mape"].as_f64(), Some(errors[1].abs()));
}

#[test]
fn a_custom_architecture_is_a_gpt_of_that_shape() {
    let predicted = |text: &str| validated(text)["rows"][1]["predicted_s"].as_f64().unwrap();
    let deeper = predicted(&RUNS.replace(",48,8192,64,", ",96,8192,64,"));
    let ratio = deeper / predicted(RUNS);
    assert!((1.8..2.05).contains(&ratio), "twice the layers take {ratio} times as long");
}

#[test]
fn memory_is_compared_as_the_row_counts_it() {
    let row = |kind: &str| {
        let header = "model,gpu,precision,framework,gpus,seq_len,tp,pp,cp,gbs,memory_gib,memory_kind";
        let text = format!("{header}\nllama3.1-8b,H100,BF16,NeMo2,8,8192,1,1,2,128,60,{kind}\n");
        let mut validation = validated(&text);
        assert_eq!((&validation["memory"]["n"], &validation["summary"]), (&1.into(), &Value::Null));
        validation["rows"][0].take()
    };
    let (tensors, all) = (row("max_allocated"), row("nvidia-smi max"));
    let bytes = |row: &Value| row["predicted_memory_bytes"].as_f64().unwrap();
    assert_eq!(tensors["memory_bytes"].as_f64(), Some(60.0 * 1_073_741_824.0));
    assert!(
        (bytes(&tensors) / 60.0 / 1_073_741_824.0 - 1.0 - tensors["memory_error"].as_f64().unwrap()).abs()
            < 1e-12
    );
    assert!(bytes(&all) > bytes(&tensors), "the second includes reserved memory");
}

#[test]
fn every_published_row_is_predicted_or_has_a_reason() {
    let validation = json(&["validate", MEASUREMENTS]);
    let rows = validation["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3415);
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for row in rows.iter().filter(|row| row["predicted_s"].is_null()) {
        *reasons.entry(row["reason"].as_str().unwrap()).or_default() += 1;
    }
    // Every GPU, precision and software of the file is known. Some models have no published architecture or layout.
    for reason in reasons.keys() {
        let expected =
            [" is unknown", " is missing", " is not pre-training", " EP ", "GBS ", "be split", "can't fill"];
        assert!(expected.iter().any(|part| reason.contains(part)), "{reasons:#?}");
    }
    assert!(reasons.values().sum::<usize>() < 130, "{reasons:#?}");
}

#[test]
fn csv_is_rectangular() {
    let (_folder, path) = file(RUNS);
    let (header, rows) = csv(&["validate", path.to_str().unwrap()]);
    assert_eq!((header[0].as_str(), header[9].as_str(), rows.len()), ("id", "reason", 5));
}

#[test]
fn no_text_is_a_formula_in_a_spreadsheet() {
    let (_folder, path) = file(&RUNS.replace("\nknown,", "\n=1+1,").replace("\nown,", "\n-,"));
    let arguments = ["validate", path.to_str().unwrap()];
    let (_, rows) = csv(&arguments);
    assert_eq!([&rows[0][0], &rows[1][0]], ["'=1+1", "-"]);
    // JSON is exact.
    assert_eq!(json(&arguments)["rows"][0]["id"], "=1+1");
}

#[test]
fn a_file_without_runs_is_refused() {
    let missing = trainplan(["validate", "/nowhere/runs.csv"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(1), ""));
    assert!(missing.stderr.contains("/nowhere/runs.csv"), "{}", missing.stderr);
    for text in ["", "id,model\n", "id,model\n1,2,3\n"] {
        let (_folder, path) = file(text);
        let said = refusal(&["validate", path.to_str().unwrap()]);
        assert!(said.contains("runs.csv"), "{said}");
    }
}
