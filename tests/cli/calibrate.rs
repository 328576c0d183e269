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

fn cluster(seconds: &[f64]) -> Value {
    let (_folder, path) = runs(seconds);
    json(&["calibrate", "--cluster", path.to_str().unwrap()])
}

#[test]
fn a_slower_cluster_gets_factors_for_its_estimates() {
    let slower: Vec<f64> = predicted().iter().map(|seconds| seconds * 1.2).collect();
    let cluster = cluster(&slower);
    assert_eq!(cluster["n"], 4);
    let error = |key: &str| cluster[key].as_f64().unwrap();
    assert!(error("error_left_out") < error("error_before") / 2.0, "{cluster}");

    let recipe = ["estimate", "--recipe", "llama3.1-8b/h100/bf16/8@25.04"];
    let factors = cluster["cluster_factor"].as_str().unwrap();
    let with = json(&[&recipe[..], &["--cluster-factor", factors]].concat());
    let without = json(&recipe);
    let ratio =
        with["step_time_s"]["mid"].as_f64().unwrap() / without["step_time_s"]["mid"].as_f64().unwrap();
    assert!(1.1 < ratio && ratio < 1.25, "{ratio}: {factors}");
    assert_eq!(with["scenario"]["options"]["cluster_factor"], factors);
}

#[test]
fn the_runs_of_a_cluster_are_listed_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reversed.csv");
    let rows: String =
        RUNS.iter().zip(predicted()).rev().map(|(run, seconds)| format!("{run},{seconds}\n")).collect();
    fs::write(&path, format!("{HEADER}\n{rows}")).unwrap();
    let fit = json(&["calibrate", "--cluster", path.to_str().unwrap()]);
    let names: Vec<&str> =
        fit["runs"].as_array().unwrap().iter().map(|run| run["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
}

#[test]
fn the_table_says_how_the_factor_follows_from_the_runs() {
    let slower: Vec<f64> = predicted().iter().map(|seconds| seconds * 1.2).collect();
    let (_folder, path) = runs(&slower);
    let table = trainplan(["calibrate", "--cluster", path.to_str().unwrap(), "--format", "table"]).stdout;
    assert!(
        table.contains(" (median of 4 runs). The factor is shrunk from there towards 1, because"),
        "{table}"
    );
    let factors = table.trim_end().rsplit(' ').next().unwrap();
    let estimate = trainplan([
        "estimate",
        "--recipe",
        "llama3.1-8b/h100/bf16/8@25.04",
        "--cluster-factor",
        factors,
        "--format",
        "table",
    ]);
    let (factor, own_runs) = factors.split_once(',').unwrap();
    assert!(own_runs.starts_with("runs=4,scatter="), "{own_runs}");
    let named = format!("Calibrated with your cluster factor of {factor}. Nearest: ");
    assert!(estimate.stdout.contains(&named), "{}", estimate.stdout);
}

#[test]
fn own_runs_narrow_the_interval_of_software_that_nobody_measured() {
    const OWN: &str = "nanotron:overlaps_tp=yes";
    const LAYOUTS: [&str; 4] = ["16,4096,2", "32,4096,4", "64,4096,2", "128,4096,4"];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let path = path.to_str().unwrap();
    let write = |seconds: &[f64]| {
        let mut text = format!("{HEADER}\n");
        for (place, (layout, seconds)) in LAYOUTS.iter().zip(seconds).enumerate() {
            writeln!(text, "{place},llama3.1-8b,H100,BF16,own,{layout},1,1,1,256,{seconds}").unwrap();
        }
        fs::write(path, text).unwrap();
    };
    write(&[1.0; LAYOUTS.len()]);
    let validation = json(&["validate", path, "--stack", OWN]);
    let rows = validation["rows"].as_array().unwrap();
    let predicted: Vec<f64> = rows.iter().map(|row| row["predicted_s"].as_f64().unwrap()).collect();
    // Runs that are alternately slower and faster than predicted.
    let calibrated = |scatter: f64| {
        let off = [1.0 + scatter, 1.0 - scatter].into_iter().cycle();
        write(&predicted.iter().zip(off).map(|(seconds, off)| seconds * off).collect::<Vec<f64>>());
        let fit = json(&["calibrate", "--cluster", path, "--stack", OWN]);
        fit["cluster_factor"].as_str().unwrap().to_owned()
    };
    // Of the slow end over the prediction.
    let reach = |factors: &str, stack: &str| {
        let scenario =
            ["estimate", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "64", "--seq-len", "4096"];
        let layout = ["--dtype", "bf16", "--tp", "4", "--gbs", "256", "--stack", stack];
        let estimate = json(&[&scenario[..], &layout, &["--cluster-factor", factors]].concat());
        let [mid, high] = ["mid", "high"].map(|end| estimate["step_time_s"][end].as_f64().unwrap());
        high / mid
    };
    let (alike, apart) = (calibrated(0.01), calibrated(0.1));
    let [none, of_alike, of_apart] = ["1.01", &alike, &apart].map(|factors| reach(factors, OWN));
    assert!(
        of_alike < of_apart && of_alike < none - 0.05,
        "{alike}: {of_alike}, {apart}: {of_apart}, none: {none}"
    );
    // They tell nothing of other software.
    assert!((reach(&alike, "nemo-2") / reach("1.01", "nemo-2") - 1.0).abs() < 1e-12);
}

#[test]
fn a_factor_on_the_step_time_scales_the_estimate() {
    let recipe = ["estimate", "--recipe", "llama3.1-8b/h100/bf16/8@25.04"];
    let with = json(&[&recipe[..], &["--cluster-factor", "1.08"]].concat());
    let without = json(&recipe);
    for end in ["low", "mid", "high"] {
        let ratio =
            with["step_time_s"][end].as_f64().unwrap() / without["step_time_s"][end].as_f64().unwrap();
        assert!((ratio / 1.08 - 1.0).abs() < 1e-12, "{end}: {ratio}");
    }
    let refused = refusal(&[&recipe[..], &["--cluster-factor", "1.08,hots=2"]].concat());
    assert!(refused.contains("Unknown factor \"hots\"") && refused.contains("host"), "{refused}");
}

#[test]
fn one_run_fits_the_step_time_only() {
    let slower: Vec<f64> = predicted().iter().map(|seconds| seconds * 1.2).collect();
    let one = cluster(&slower[..1]);
    let fitted = one["factors"].as_array().unwrap().iter().filter(|factor| !factor["interval"].is_null());
    assert_eq!(fitted.map(|factor| factor["factor"].as_str().unwrap()).collect::<Vec<_>>(), ["step"]);
    assert!(one["error_left_out"].is_null());
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
fn only_scored_runs_show_how_a_cluster_differs() {
    let folder = tempfile::tempdir().unwrap();
    let write = |job: u32, log: String| {
        let name = format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out");
        fs::write(folder.path().join(name), log).unwrap();
    };
    let log = crate::compare::log(128, 9400);
    write(1, log.clone());
    write(2, log.replace("reduced_train_loss: 11.96", "reduced_train_loss: nan"));
    write(3, log.lines().take(20).map(|line| format!("{line}\n")).collect());
    let fit = trainplan(["calibrate", "--cluster", folder.path().to_str().unwrap(), "--format", "json"]);
    assert_eq!(fit.code, Some(0), "{}", fit.stderr);
    let cluster: Value = serde_json::from_str(&fit.stdout).unwrap();
    assert_eq!(cluster["n"], 1, "{cluster}");
    let why =
        "fp8_8_2_0.out: The run was left out, because its status is invalid. The loss is NaN or infinite";
    let count = "note: 2 of 3 logs were left out: 1 incomplete, 1 invalid.\n";
    assert!(fit.stderr.contains(why) && fit.stderr.contains(count), "{}", fit.stderr);
}

#[test]
fn a_log_and_its_saved_result_count_as_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let calibrate = || {
        let fit = trainplan(["calibrate", "--cluster", place, "--format", "json"]);
        assert_eq!(fit.code, Some(0), "{}", fit.stderr);
        let cluster: Value = serde_json::from_str(&fit.stdout).unwrap();
        (cluster, fit.stderr)
    };
    let log = path("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out");
    fs::write(&log, crate::compare::log(128, 9400)).unwrap();
    let (alone, said) = calibrate();
    assert_eq!((&alone["n"], said.contains("same run")), (&1.into(), false), "{said}");
    assert_eq!(trainplan(["parse", &log, "--save", place]).code, Some(0));
    let (both, said) = calibrate();
    assert_eq!(both, alone);
    let count =
        "note: 1 of 2 logs and saved results belongs to the same run as another. The run counts once.\n";
    assert!(said.contains(count), "{said}");

    // The saved result knows the GPU type, which the log lacks.
    let log = path("train.log");
    fs::write(&log, crate::golden::megatron_lm(18_900)).unwrap();
    assert_eq!(trainplan(["parse", &log, "--gpu", "h100", "--save", place]).code, Some(0));
    let (two, said) = calibrate();
    assert_eq!(two["n"], 2, "{two}");
    let count =
        "note: 2 of 4 logs and saved results belong to the same runs as others. Each run counts once.\n";
    assert!(said.contains(count) && !said.contains("left out"), "{said}");
}

#[test]
fn a_run_that_stalls_beside_its_scored_step_counts_with_its_steady_mean() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out");
    // Every eighth step takes 19 s, but not step 49, which release 25.04 scores.
    let step = |step: u32| {
        let seconds = if u32::is_multiple_of(step, 8) { 19.0 } else { 11.0 };
        format!(
            "Training epoch 0, iteration {step}/49 | global_batch_size: 128 | train_step_timing in s: {seconds}\n"
        )
    };
    fs::write(&path, (0..50).map(step).collect::<String>()).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(json(&["parse", path])[0]["step_time_s"]["mean"], 11.0);
    // The mean of steps 10 to 49. Five of these 40 stall.
    let measured = &json(&["calibrate", "--cluster", path])["runs"][0]["measured_s"];
    assert!((measured.as_f64().unwrap() - 12.0).abs() < 1e-9, "{measured}");
}

#[test]
fn results_do_not_keep_the_window_but_calibrate_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (log, results) = (path("log-acct.pretrain_llama3.1_8b_fp8_8_1_0.out"), path("results"));
    let step = |step: u32| {
        let seconds = if (35..=44).contains(&step) { 10.0 } else { 9.5 };
        format!(
            "Training epoch 0, iteration {step}/49 | global_batch_size: 128 | train_step_timing in s: {seconds}\n"
        )
    };
    fs::write(&log, (0..50).map(step).collect::<String>()).unwrap();
    let parse = trainplan(["parse", &log, "--window", "35-44", "--save", &results]);
    let advice = "The window is not saved, because results keep all steps of a log. Give --window 35-44 to";
    assert!(parse.stderr.contains(advice), "{}", parse.stderr);
    let measured = |more: &[&str]| {
        let fit = json(&[&["calibrate", "--cluster", &results][..], more].concat());
        fit["runs"][0]["measured_s"].as_f64().unwrap()
    };
    // The mean of steps 10 to 49, because the release scores only step 49.
    assert!((measured(&[]) - 9.625).abs() < 1e-9, "{}", measured(&[]));
    assert!((measured(&["--window", "35-44"]) - 10.0).abs() < 1e-9);
    assert!(refusal(&["calibrate", "--window", "35-44"]).contains("--cluster"));
}

#[test]
fn the_gpu_type_of_logs_is_named_as_missing_and_can_be_given() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("train.log"), crate::golden::megatron_lm(18_900)).unwrap();
    let path = folder.path().to_str().unwrap();
    let lacking = trainplan(["calibrate", "--cluster", path]);
    assert_eq!(lacking.code, Some(4), "{}", lacking.stderr);
    let why = "The run was left out, because its log doesn't name the GPU type. Set it with --gpu.";
    assert!(lacking.stderr.contains(why), "{}", lacking.stderr);
    assert!(lacking.stderr.contains("The log was left out: without GPU type."), "{}", lacking.stderr);
    assert_eq!(json(&["calibrate", "--cluster", path, "--gpu", "h100"])["n"], 1);
    assert!(refusal(&["calibrate", "--cluster", path, "--gpu", "h10"]).contains("h100"));
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
