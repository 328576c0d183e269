use crate::{csv, json, refusal};
use serde_json::{Value, json};
use trainplan_tests::trainplan;

const FIELDS: [&str; 20] = [
    "id", "release", "model", "gpu", "dtype", "scaling", "gpus", "seq_len", "layers", "tp", "pp", "cp", "ep",
    "vp", "dp", "mbs", "gbs", "ga", "proxy", "source",
];

#[test]
fn all_987_recipes_come_with_every_field() {
    let recipes = json(&["recipes"]);
    let recipes = recipes.as_array().unwrap();
    assert_eq!(recipes.len(), 987);
    for recipe in recipes {
        for field in FIELDS.iter().chain(&["baseline", "container"]) {
            assert!(recipe.get(field).is_some(), "{field} of {}", recipe["id"]);
        }
        let product =
            ["tp", "pp", "cp", "dp"].map(|degree| recipe[degree].as_u64().unwrap()).iter().product::<u64>();
        assert_eq!(Some(product), recipe["gpus"].as_u64());
    }
    let measured: Vec<&Value> = recipes.iter().filter(|recipe| !recipe["baseline"].is_null()).collect();
    assert_eq!(measured.len(), 130);
    assert_eq!(
        measured.iter().filter(|recipe| !recipe["baseline"]["time_to_train_days"].is_null()).count(),
        69
    );
}

#[test]
fn the_405b_on_512_h100_in_fp8() {
    let filters = ["--model", "llama3.1-405b", "--gpus", "512", "--dtype", "fp8", "--release", "25.04"];
    let recipes = json(&[&["recipes"], &filters[..]].concat());
    let [recipe] = recipes.as_array().unwrap().as_slice() else { panic!("one recipe: {recipes}") };
    assert_eq!(recipe["id"], "llama3.1-405b/h100/fp8/512@25.04");
    let layout =
        ["tp", "pp", "cp", "ep", "vp", "dp", "mbs", "gbs", "ga", "layers"].map(|field| recipe[field].clone());
    assert_eq!(
        layout,
        [
            8.into(),
            8.into(),
            2.into(),
            Value::Null,
            8.into(),
            4.into(),
            1.into(),
            256.into(),
            64.into(),
            126.into()
        ]
    );
    assert_eq!((&recipe["proxy"], &recipe["container"]), (&false.into(), &"nemo:25.02.01".into()));
    let (_, rows) = csv(&[&["recipes"], &filters[..]].concat());
    let from_end = |place: usize| rows[0][rows[0].len() - place].as_str();
    assert_eq!((from_end(6), from_end(5)), ("nemo:25.02.01", ""));
    assert!((from_end(4).parse::<f64>().unwrap() - 0.4435).abs() < 5e-5);
    assert!((from_end(3).parse::<f64>().unwrap() - 68.27).abs() < 5e-3);
    assert_eq!((from_end(2), from_end(1)), ("false", "0"));
    let mut baseline = recipe["baseline"].clone();
    let computed = baseline.as_object_mut().unwrap().remove("computed").unwrap();
    assert_eq!(
        baseline,
        json!({"step_time_s": 12.37, "tokens_per_s": 169535.0, "mfu": 0.4435, "time_to_train_days": 68.27})
    );
    assert!((computed["mfu"].as_f64().unwrap() - 0.4435).abs() < 5e-5);
    assert_eq!(computed["convention"], "recipe");
}

#[test]
fn a_proxy_says_so_and_has_no_scaling_and_no_days() {
    let recipes = json(&["recipes", "--model", "llama3.1-405b", "--gpus", "64"]);
    for recipe in recipes.as_array().unwrap() {
        assert_eq!(
            (&recipe["proxy"], &recipe["layers"], &recipe["scaling"]),
            (&json!(true), &json!(30), &Value::Null)
        );
        assert!(recipe["baseline"]["time_to_train_days"].is_null());
    }
}

#[test]
fn filters_combine() {
    let count = |filters: &[&str]| json(&[&["recipes"], filters].concat()).as_array().unwrap().len();
    assert_eq!(count(&["--release", "25.12", "--scaling", "strong"]), 20);
    assert_eq!(count(&["--model", "nemotron4", "--measured"]), 34);
    assert_eq!(count(&["--gpu", "h100", "--release", "25.12", "--scaling", "strong"]), 0);
}

#[test]
fn csv_is_rectangular() {
    let (header, rows) = csv(&["recipes"]);
    assert_eq!(header[..FIELDS.len()], FIELDS);
    let added =
        ["container", "expert_tp", "computed_mfu", "computed_time_to_train_days", "fsdp", "offload_layers"];
    assert_eq!(header[header.len() - added.len()..], added);
    assert_eq!(rows.len(), 987);
}

#[test]
fn a_table_shows_what_a_person_looks_for() {
    let run = trainplan(["recipes", "--model", "nemotron-h", "--format", "table"]);
    assert_eq!(run.stdout.lines().count(), 51);
    assert!(run.stdout.contains("nemotron-h-56b/h100/fp8/256@25.05"));
    assert!(run.stdout.contains("15.892"));
}

#[test]
fn a_table_shows_fsdp_and_offloading_where_recipes_use_them() {
    let filters = ["--model", "llama3.1-70b", "--gpu", "gb200", "--release", "26.06.01", "--dtype", "fp8"];
    let run = trainplan([&["recipes"], &filters[..], &["--format", "table"]].concat());
    assert!(run.stdout.contains("40 layers offloaded, FSDP"), "{}", run.stdout);
    let recipe = &json(&[&["recipes"], &filters[..]].concat())[0];
    assert_eq!((&recipe["fsdp"], &recipe["offload_layers"]), (&json!(true), &json!(40)));
    let run = trainplan(["recipes", "--model", "llama3.1-8b", "--release", "25.04", "--format", "table"]);
    assert!(!run.stdout.lines().next().unwrap().contains("memory"), "{}", run.stdout);
}

#[test]
fn a_table_has_expert_parallelism_and_computes_what_a_release_does_not_print() {
    let filters = ["--model", "deepseek-v3", "--release", "26.06.01", "--measured"];
    let run = trainplan([&["recipes"], &filters[..], &["--format", "table"]].concat());
    let header = run.stdout.lines().next().unwrap();
    assert!(header.contains(" EP ") && header.contains("MFU %"), "{}", run.stdout);
    assert!(run.stderr.contains("they are computed from it"), "{}", run.stderr);
    let recipes = json(&[&["recipes"], &filters[..]].concat());
    let recipe = &recipes[0];
    assert!(recipe["ep"].as_u64() > Some(1) && recipe["baseline"]["mfu"].is_null(), "{recipe}");
    let computed = &recipe["baseline"]["computed"];
    let row = run.stdout.lines().find(|line| line.contains(recipe["id"].as_str().unwrap())).unwrap();
    for text in [
        format!("{:.2}", 100.0 * computed["mfu"].as_f64().unwrap()),
        format!("{:.2}", computed["time_to_train_days"].as_f64().unwrap()),
    ] {
        assert!(row.contains(&text), "{text} {row}");
    }
    // All documents of 25.04 print both.
    let run = trainplan(["recipes", "--release", "25.04", "--measured", "--format", "table"]);
    assert!(!run.stderr.contains("computed"), "{}", run.stderr);
}

#[test]
fn the_latest_release_needs_no_number() {
    let latest = json(&["recipes", "--release", "latest", "--model", "llama3.1-8b"]);
    assert_eq!(latest, json(&["recipes", "--release", "26.06.01", "--model", "llama3.1-8b"]));
    assert!(!latest.as_array().unwrap().is_empty());
}

#[test]
fn a_wrong_filter_names_what_there_is() {
    let said = refusal(&["recipes", "--gpu", "h1000"]);
    assert!(said.contains("Unknown GPU \"h1000\". Did you mean h100?"), "{said}");
    let said = refusal(&["recipes", "--model", "lama3", "--dtype", "fp9"]);
    assert!(
        said.contains("model \"lama3\"") && said.contains("llama3.1") && said.contains("precision \"fp9\""),
        "{said}"
    );
    assert!(refusal(&["recipes", "--release", "25.4"]).contains("25.04"));
}

#[test]
fn models_and_gpus_are_listed() {
    assert!(json(&["models"]).as_array().unwrap().iter().any(|model| model["id"] == "llama3.1-70b"));
    assert!(json(&["gpus"]).as_array().unwrap().iter().any(|gpu| gpu["id"] == "h100"));
    assert!(csv(&["models"]).1.len() > 50 && csv(&["gpus"]).1.len() >= 10);
    let said = refusal(&["metrics", "--model", "llama-70b", "--gpu", "h100", "--gpus", "8", "--gbs", "8"]);
    assert!(said.contains("Unknown model \"llama-70b\". Did you mean llama3.1-70b or llama2-70b?"), "{said}");
    let said = refusal(&["search", "--model", "deepseek", "--gpu", "h100"]);
    assert!(said.contains("Did you mean deepseek-v3, deepseek-v2-lite or deepseek-v2?"), "{said}");
    assert!(said.contains("`trainplan models` lists all"), "{said}");
}
