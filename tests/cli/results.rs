use crate::check::store;
use crate::{csv, json, refusal};
use serde_json::Value;
use trainplan_tests::trainplan;

fn ids(runs: &Value) -> Vec<String> {
    runs.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn runs_are_listed_and_deleted() {
    let (_place, data) = store(&[9400, 9410, 9390]);
    let list = |more: &[&str]| json(&[&["results", "list", "--data-dir", &data], more].concat());
    let runs = list(&[]);
    let all = ids(&runs);
    assert_eq!((all.len(), &runs[0]["recipe"]), (3, &"llama3.1-8b/h100/fp8/8@25.04".into()));
    assert_eq!(ids(&list(&["--recipe", "*8B*", "--limit", "2"])), all[..2]);
    assert_eq!(ids(&list(&["--recipe", "*70b*"])), [""; 0]);
    let (header, rows) = csv(&["results", "list", "--data-dir", &data]);
    let place = header.iter().position(|name| name == "id").unwrap();
    assert_eq!(rows.iter().map(|row| row[place].clone()).collect::<Vec<_>>(), all);

    // All of them or none.
    let wrong = refusal(&["results", "delete", &all[0], "0000", "--data-dir", &data]);
    assert!(wrong.contains("0000 names no run") && wrong.contains("eight digits"), "{wrong}");
    assert_eq!(ids(&list(&[])), all);
    let deleted = json(&["results", "delete", &all[0][..8], "--data-dir", &data]);
    assert_eq!(ids(&deleted), all[..1]);
    assert_eq!(ids(&list(&[])), all[1..]);
}

#[test]
fn what_only_reads_makes_no_store_where_a_name_is_mistyped() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("typo").to_string_lossy().into_owned();
    let backup = place.path().join("backup").to_string_lossy().into_owned();
    for command in [
        &["results", "list"][..],
        &["export", &backup],
        &["check"],
        &["reparse"],
        &["token", "list"],
        &["compare", "12345678"],
    ] {
        let said = refusal(&[command, &["--data-dir", &data]].concat());
        assert!(said.contains("there is no folder") && said.contains("typo"), "{command:?}: {said}");
    }
    assert!(!place.path().join("typo").exists());
    let made = trainplan(["token", "create", "--name", "x", "--scope", "read", "--data-dir", &data]);
    assert!(made.code == Some(0) && made.stderr.contains("typo is new"), "{}", made.stderr);
}

#[test]
fn a_recipe_that_nobody_published_is_no_recipe_without_runs() {
    let (_place, data) = store(&[9400]);
    let said = refusal(&["check", "--recipe", "lama3.1-8b/h100/fp8/8", "--data-dir", &data]);
    assert!(said.contains("llama3.1-8b/h100/fp8/8"), "{said}");
    let other = trainplan(["check", "--recipe", "llama3.1-405b/h100/fp8/512", "--data-dir", &data]);
    assert_eq!(other.code, Some(4), "{}", other.stderr);
}
