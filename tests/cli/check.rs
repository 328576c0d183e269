use crate::compare::log;
use crate::terminal::on_terminal;
use crate::{csv, json, refusal};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;
use trainplan_tests::{Run, trainplan};

/// A store with a run of the 8B for each of these milliseconds per step, in this order; no two alike, or they are one log.
pub(crate) fn store(times_ms: &[u32]) -> (TempDir, String) {
    let place = tempfile::tempdir().unwrap();
    for (job, ms) in times_ms.iter().enumerate() {
        add(&place, &format!("fp8_8_{job}"), &log(128, *ms));
    }
    let data = place.path().join("data").to_string_lossy().into_owned();
    (place, data)
}

/// Adds a run of the 8B to the store: its precision, GPUs and job, such as `fp8_8_1`, and its log.
fn add(place: &TempDir, run: &str, log: &str) {
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let name = path(&format!("log-acct.pretrain_llama3.1_8b_{run}_0.out"));
    let (results, data) = (path("results"), path("data"));
    fs::write(&name, log).unwrap();
    let _ = fs::remove_dir_all(&results);
    // 4: the log was not scored. It is saved all the same.
    assert!(matches!(trainplan(["parse", &name, "--save", &results]).code, Some(0 | 4)));
    assert_eq!(trainplan(["import", &results, "--data-dir", &data]).code, Some(0));
}

fn check(data: &str, more: &[&str]) -> Run {
    trainplan([&["check", "--data-dir", data], more].concat())
}

fn checks(run: &Run) -> Vec<(String, String)> {
    let judged: Value = serde_json::from_str(&run.stdout).unwrap();
    let checks = judged["series"][0]["checks"].as_array().unwrap();
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    checks.iter().map(|check| (text(check, "kind"), text(check, "outcome"))).collect()
}

#[test]
fn a_regression_ends_with_6() {
    let (_place, data) = store(&[9400, 9410, 9390, 9401, 9420, 9402, 10_100]);
    let run = check(&data, &["--format", "json"]);
    assert_eq!(run.code, Some(6), "{}", run.stderr);
    assert!(run.stderr.contains("1 of 1 timelines became slower"), "{}", run.stderr);
    let told = |pairs: [(&str, &str); 4]| pairs.map(|(kind, outcome)| (kind.to_owned(), outcome.to_owned()));
    assert_eq!(
        checks(&run),
        told([
            ("baseline", "regression"),
            ("previous", "regression"),
            ("sigma", "regression"),
            ("change", "fine")
        ])
    );
    let table = check(&data, &["--format", "table"]);
    assert!(table.stdout.contains("of the published speed, below 95 %"), "{}", table.stdout);
    assert!(table.stdout.contains("llama3.1-8b/h100/fp8/8@25.04"), "{}", table.stdout);

    let lenient =
        ["--baseline-percent", "90", "--previous-percent", "10", "--sigma", "off", "--change", "off"];
    let (header, rows) = csv(&[&["check", "--data-dir", &data][..], &lenient].concat());
    assert_eq!((header[0].as_str(), rows.len()), ("outcome", 2));
    assert!(rows.iter().all(|row| row[0] == "fine"), "{rows:?}");
}

#[test]
fn a_series_that_was_always_slower_than_published_did_not_become_slower() {
    let (_place, data) = store(&[12_000]);
    let run = check(&data, &["--format", "json"]);
    assert_eq!(run.code, Some(6), "{}", run.stderr);
    assert!(run.stderr.contains("1 of 1 timelines is too far below the published speed."), "{}", run.stderr);
}

#[test]
fn the_repeats_of_the_newest_round_are_judged_together() {
    let check_of = |rounds: &[&[u32]]| {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
        let (results, data) = (path("results"), path("data"));
        let runs = rounds.iter().enumerate().flat_map(|(round, times_ms)| {
            times_ms.iter().enumerate().map(move |(place, ms)| (round, place + 1, *ms))
        });
        for (round, repeat, ms) in runs {
            let name = path(&format!("log-acct.pretrain_llama3.1_8b_fp8_8_{round}{repeat}_0.out"));
            fs::write(&name, log(128, ms)).unwrap();
            let _ = fs::remove_dir_all(&results);
            assert_eq!(trainplan(["parse", &name, "--save", &results]).code, Some(0));
            let mut files = fs::read_dir(&results).unwrap().map(|entry| entry.unwrap().path());
            let file = files.find(|path| path.to_string_lossy().ends_with(".result.json")).unwrap();
            let mut result: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
            result["carried"] = serde_json::json!({
                "campaign": "nightly", "run": "llama", "repeat": repeat, "cluster": "alpha",
                "jobs": [{
                    "id": format!("{round}{repeat}"), "name": "pretrain", "state": "COMPLETED", "exit_code": 0,
                    "started": format!("2026-11-0{}T0{repeat}:00:00Z", round + 1), "nodes": "n1",
                }],
                "launch": {
                    "release": "25.04", "style": "launch-sh", "script_sha256": "0".repeat(64), "steps": 50,
                    "comparable": { "yes": true, "reasons": [] },
                },
                "plan": {
                    "step_time_s": { "low": 9.0, "mid": 9.4, "high": 10.0 }, "memory_bytes": 6e10,
                    "capacity_bytes": 8e10, "basis": "published", "calibration": "trainplan 0.1.0",
                },
            });
            fs::write(&file, serde_json::to_vec(&result).unwrap()).unwrap();
            let import = trainplan(["import", &results, "--data-dir", &data]);
            assert_eq!(import.code, Some(0), "{}", import.stderr);
        }
        check(&data, &["--format", "json"])
    };
    let before: [&[u32]; 2] = [&[9400, 9410, 9390], &[9401, 9420, 9402]];
    let slow = check_of(&[before[0], before[1], &[10_250, 10_260, 9403]]);
    assert_eq!(slow.code, Some(6), "{}{}", slow.stdout, slow.stderr);
    assert!(slow.stdout.contains("mean of 3 repeats: "), "{}", slow.stdout);
    // One slow repeat is not enough, and the newest run is judged alone.
    let fine = check_of(&[before[0], before[1], &[9600, 9411, 9403]]);
    assert_eq!(fine.code, Some(0), "{}{}", fine.stdout, fine.stderr);
    assert!(!fine.stdout.contains("mean of"), "{}", fine.stdout);
}

#[test]
fn what_can_not_be_judged_ends_with_4() {
    let (_place, data) = store(&[9400, 9401]);
    let run = check(&data, &["--baseline-percent", "off", "--format", "json"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(run.stdout.contains("only 1 previous run; 5 are needed"), "{}", run.stdout);
    for filter in
        [["--recipe", "llama3.1-70b/h100/fp8/64"], ["--cluster", "alpha"], ["--campaign", "nightly"]]
    {
        let run = check(&data, &filter);
        assert_eq!(run.code, Some(4), "{filter:?}: {}", run.stderr);
        assert!(run.stderr.contains("nothing to check"), "{}", run.stderr);
    }
    assert_eq!(check(&data, &["--since", "2999-01-01"]).code, Some(4));

    let judged =
        json(&["check", "--data-dir", &data, "--recipe", "llama3.1-8b/h100/fp8/8", "--since", "2001-01-01"]);
    assert_eq!((&judged["judged"], &judged["regressions"]), (&1.into(), &0.into()));
}

#[test]
fn a_newest_run_that_was_not_scored_ends_with_4_although_another_series_is_fine() {
    let (place, data) = store(&[9400, 9410, 9390, 9401, 9420, 9402]);
    add(&place, "bf16_8_50", &log(128, 12_300));
    // The second series can't be judged for lack of history, which does not count.
    let few = check(&data, &["--baseline-percent", "off", "--format", "json"]);
    assert_eq!(few.code, Some(0), "{}", few.stderr);
    assert!(few.stdout.contains("no previous runs; 5 are needed"), "{}", few.stdout);

    let nan = log(128, 9403).replace("reduced_train_loss: 11.96", "reduced_train_loss: nan");
    add(&place, "fp8_8_51", &nan);
    let run = check(&data, &["--format", "json"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(run.stderr.contains("The newest run of 1 of 2 timelines was not scored."), "{}", run.stderr);
    let judged: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        ["judged", "regressions", "not_scored"].map(|key| judged[key].as_u64()),
        [Some(1), Some(0), Some(1)]
    );
    let why = "the newest run was not scored. The loss is NaN or infinite at step 0";
    assert!(run.stdout.contains(why), "{}", run.stdout);
    let alone = check(&data, &["--recipe", "llama3.1-8b/h100/fp8/8"]);
    assert_eq!(alone.code, Some(4), "{}", alone.stderr);

    // A regression of the other series matters more.
    add(&place, "bf16_8_52", &log(128, 14_000));
    let both = check(&data, &["--format", "json"]);
    assert_eq!(both.code, Some(6), "{}", both.stderr);

    // An earlier run that was not scored is named with the reason, and doesn't count.
    add(&place, "fp8_8_53", &log(128, 9404));
    let later = check(&data, &["--recipe", "llama3.1-8b/h100/fp8/8", "--format", "table"]);
    assert_eq!(later.code, Some(0), "{}", later.stderr);
    let why = "UTC was not scored. The loss is NaN or infinite at step 0";
    assert!(later.stderr.contains(why), "{}", later.stderr);
    let command = format!("\"$TRAINPLAN\" check --data-dir '{data}' --recipe llama3.1-8b/h100/fp8/8");
    let shown = on_terminal(80, &format!("{command} 2>/dev/null"));
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let all = json(&["check", "--data-dir", &data, "--recipe", "llama3.1-8b/h100/fp8/8"]);
    let points = all["series"][0]["points"].as_array().unwrap();
    let reasons: Vec<_> = points.iter().filter_map(|point| point["reason"].as_str()).collect();
    assert!(matches!(reasons[..], [reason] if reason.starts_with("The loss is NaN")), "{reasons:?}");
}

#[test]
fn a_scenario_without_a_recipe_has_a_readable_label_and_an_exact_key() {
    let (place, data) = store(&[]);
    add(&place, "fp8_8_1", &log(64, 9400));
    let label = "llama3.1-8b/h100/fp8/8@25.04, GBS 64";
    let judged: Value = serde_json::from_str(&check(&data, &["--format", "json"]).stdout).unwrap();
    let series = &judged["series"][0];
    assert_eq!(series["label"], label);
    assert_eq!(series["key"]["scenario"], "v=1&r=llama3.1-8b/h100/fp8/8@25.04&gbs=64");
    let table = check(&data, &["--format", "table"]);
    assert!(table.stdout.contains("GBS 64") && !table.stdout.contains("gbs=64"), "{}", table.stdout);
}

#[test]
fn wrong_thresholds_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().to_string_lossy().into_owned();
    let refused = |more: [&str; 2]| refusal(&["check", "--data-dir", &data, more[0], more[1]]);
    assert!(refused(["--sigma", "-1"]).contains("sigma: '-1' is invalid; use a number above 0, or off"));
    let previous = refused(["--previous", "0"]);
    assert!(previous.contains("previous: '0' is invalid; use a whole number from 1 to 1000"), "{previous}");
    assert!(refused(["--since", "yesterday"]).contains("use a date or a time, such as 2026-03-01"));
}
