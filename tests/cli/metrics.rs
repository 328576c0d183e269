use crate::{csv, json, refusal};
use serde_json::Value;

fn days(metrics: &Value) -> String {
    format!("{:.2}", metrics["time_to_train_days"].as_f64().unwrap())
}

#[test]
fn a_recipes_published_step_time_is_taken_where_none_is_given() {
    let metrics = json(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/512"]);
    assert_eq!(metrics["recipe"], "llama3.1-405b/h100/fp8/512@25.04");
    assert_eq!(metrics["step_time_basis"], "published");
    assert_eq!(format!("{:.0}", metrics["tokens_per_s"].as_f64().unwrap()), "169535");
    assert_eq!(format!("{:.4}", metrics["mfu"].as_f64().unwrap()), "0.4435");
    assert_eq!((&metrics["convention"], metrics["peak_tflops"].as_f64()), (&"recipe".into(), Some(1979.0)));
    assert_eq!(days(&metrics), "68.27");
    let fifteen = json(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/512", "--tokens", "15T"]);
    assert_eq!(days(&fifteen), "1024.04");
}

#[test]
fn the_worked_example_of_llama() {
    let metrics = json(&["metrics", "--recipe", "llama3.1-8b/h100/fp8/8@25.04", "--step-time", "12.39"]);
    assert_eq!(metrics["step_time_basis"], "given");
    assert_eq!(format!("{:.0}", metrics["tokens_per_s"].as_f64().unwrap()), "84631");
    assert_eq!(format!("{:.2}", metrics["mfu"].as_f64().unwrap() * 100.0), "30.93");
    assert_eq!(days(&metrics), "136.76");
}

#[test]
fn tokens_per_second_need_neither_model_nor_gpus() {
    let metrics = json(&["metrics", "--seq-len", "4096", "--gbs", "256", "--step-time", "2.693"]);
    assert_eq!(format!("{:.0}", metrics["tokens_per_s"].as_f64().unwrap()), "389371");
    assert!(metrics["mfu"].is_null() && metrics["peak_tflops"].is_null());
}

#[test]
fn an_own_scenario_counts_fully_unless_told_otherwise() {
    let own = [
        "metrics",
        "--model",
        "llama3.1-8b",
        "--gpu",
        "h100",
        "--gpus",
        "8",
        "--gbs",
        "128",
        "--step-time",
        "12.27",
    ];
    let metrics = json(&own);
    assert_eq!((&metrics["convention"], metrics["peak_tflops"].as_f64()), (&"full".into(), Some(989.0)));
    let causal = json(&[own.as_slice(), &["--convention", "causal"]].concat());
    assert!(causal["mfu"].as_f64() < metrics["mfu"].as_f64());
}

#[test]
fn every_figure_says_how_it_was_made() {
    let metrics = json(&["metrics", "--recipe", "llama3.1-8b/h100/bf16/8@25.04"]);
    let explain = metrics["explain"].as_array().unwrap();
    let mfu = explain.iter().find(|line| line["name"] == "MFU").unwrap();
    assert_eq!(mfu["numbers"], "128 · 4.74e14 / 12.27 / 8 / 989.5·10¹²");
    assert!(mfu["note"].as_str().unwrap().contains("imply 989.5 although it states 989"));
}

#[test]
fn an_unpublished_change_offers_its_recipes_mfu() {
    let change = ["metrics", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--gpus", "4096"];
    let said = refusal(&change);
    assert!(said.contains("--step-time") && said.contains("44.35%"), "{said}");
    let metrics = json(&[change.as_slice(), &["--step-time", "44.35%"]].concat());
    assert_eq!(metrics["step_time_basis"], "assumed_mfu");
}

#[test]
fn a_proxy_has_no_days_and_a_step_faster_than_the_peak_is_pointed_out() {
    let proxy = json(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/64@25.04"]);
    assert!(proxy["time_to_train_days"].is_null() && proxy["mfu"].is_f64());
    let wild = json(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--step-time", "0.1"]);
    assert!(wild["warnings"][0].as_str().unwrap().contains("above the GPU's peak"), "{wild}");
}

#[test]
fn what_does_not_divide_names_the_nearest_that_does() {
    let said = refusal(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--gpus", "500"]);
    assert!(
        said.contains("groups of 128 (TP 8 × PP 8 × CP 2)") && said.contains("Use 384 or 512."),
        "{said}"
    );
    let said = refusal(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--gbs", "250"]);
    assert!(said.contains("multiple of 4 (MBS 1 × DP 4)") && said.contains("248 or 252"), "{said}");
    let said = refusal(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/512@25.04", "--tp", "7"]);
    assert!(said.contains("128") && said.contains("Use 4 or 8."), "{said}");
}

#[test]
fn what_experts_do_not_divide_names_counts_that_work() {
    let moe = [
        "metrics",
        "--model",
        "qwen3-30b-a3b",
        "--gpu",
        "h100",
        "--gpus",
        "250",
        "--gbs",
        "250",
        "--step-time",
        "10",
        "--ep",
    ];
    let said = |ep| refusal(&[&moe[..], &[ep]].concat());
    assert!(said("8").contains("groups of 8 (expert TP 1 × EP 8 × PP 1). Use 248 or 256."), "{}", said("8"));
    assert!(said("7").contains("128 experts can't be divided by EP 7. Use 2."), "{}", said("7"));
}

#[test]
fn the_peak_of_a_document_without_a_family_reads_well() {
    let metrics = json(&["metrics", "--recipe", "deepseek-v3/gb300/mxfp8/256@bridge-main"]);
    let explain = metrics["explain"].to_string();
    assert!(explain.contains("peak: the document of release bridge-main"), "{explain}");
}

#[test]
fn a_recipe_of_another_size_is_scaled_with_gpus() {
    let said = refusal(&["metrics", "--recipe", "llama3.1-405b/h100/fp8/1500@25.04"]);
    let scale =
        "To scale a recipe to 1,500 GPUs, set --gpus 1500. Did you mean llama3.1-405b/h100/fp8/2048@25.04?";
    assert!(said.contains(scale), "{said}");
}

#[test]
fn wrong_numbers_say_what_is_allowed() {
    let recipe = ["metrics", "--recipe", "llama3.1-8b/h100/fp8/8@25.04"];
    for (flag, value) in
        [("--step-time", "fast"), ("--step-time", "-1"), ("--tokens", "many"), ("--gpus", "8.5")]
    {
        let said = refusal(&[recipe.as_slice(), &[&format!("{flag}={value}")]].concat());
        assert!(said.contains(flag) && said.contains(value), "{said}");
    }
}

#[test]
fn csv_is_rectangular() {
    let (header, rows) = csv(&["metrics", "--seq-len", "4096", "--gbs", "256", "--step-time", "2.693"]);
    assert_eq!(header, ["metric", "value"]);
    assert!(rows.iter().any(|row| row[0] == "mfu" && row[1].is_empty()));
}
