use crate::compare::log;
use crate::{csv, json, refusal};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;
use trainplan_tests::{Run, trainplan};

/// A store with a run of the 8B for each of these milliseconds per step, in this order; no two alike, or they are one log.
pub(crate) fn store(times_ms: &[u32]) -> (TempDir, String) {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let (results, data) = (path("results"), path("data"));
    for (job, ms) in times_ms.iter().enumerate() {
        let name = path(&format!("log-acct.pretrain_llama3.1_8b_fp8_8_{job}_0.out"));
        fs::write(&name, log(128, *ms)).unwrap();
        let _ = fs::remove_dir_all(&results);
        assert_eq!(trainplan(["parse", &name, "--save", &results]).code, Some(0));
        assert_eq!(trainplan(["import", &results, "--data-dir", &data]).code, Some(0));
    }
    (place, data)
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
    assert!(run.stderr.contains("1 of 1 series became slower"), "{}", run.stderr);
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
    assert!(run.stderr.contains("1 of 1 series is too far below the published speed."), "{}", run.stderr);
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
fn wrong_thresholds_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().to_string_lossy().into_owned();
    let refused = |more: [&str; 2]| refusal(&["check", "--data-dir", &data, more[0], more[1]]);
    assert!(refused(["--sigma", "-1"]).contains("sigma: '-1' is invalid; use a number above 0, or off"));
    let previous = refused(["--previous", "0"]);
    assert!(previous.contains("previous: '0' is invalid; use a whole number from 1 to 1000"), "{previous}");
    assert!(refused(["--since", "yesterday"]).contains("use a date or a time, such as 2026-03-01"));
}
