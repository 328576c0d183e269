use crate::check::store;
use crate::compare::log;
use crate::terminal::on_terminal;
use crate::{csv, json, refusal};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use tempfile::TempDir;
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
    assert!(wrong.contains("no stored run has the id 0000") && wrong.contains("eight digits"), "{wrong}");
    assert_eq!(ids(&list(&[])), all);
    let deleted = json(&["results", "delete", &all[0][..8], "--data-dir", &data]);
    assert_eq!(ids(&deleted), all[..1]);
    assert_eq!(ids(&list(&[])), all[1..]);
    let last_digits = &all[1][all[1].len() - 8..];
    assert_eq!(ids(&json(&["results", "delete", last_digits, "--data-dir", &data])), all[1..2]);
    assert_eq!(ids(&json(&["results", "restore", last_digits, "--data-dir", &data])), all[1..2]);
}

#[test]
fn runs_are_listed_beside_what_was_published_and_predicted() {
    let (_place, data) = store(&[9400]);
    let run = json(&["results", "list", "--data-dir", &data])[0].clone();
    let estimate = json(&["estimate", "--recipe", "llama3.1-8b/h100/fp8/8@25.04"]);
    assert_eq!(run["prediction"]["step_time_s"], estimate["step_time_s"]);
    // Release 25.04 scores one step, so the mean of all steps judges the run.
    let [scored, judged, published, predicted] = [
        &run["step_time_s"]["mean"],
        &run["judged_s"],
        &run["baseline"]["step_time_s"],
        &run["prediction"]["step_time_s"]["mid"],
    ]
    .map(|seconds| seconds.as_f64().unwrap());
    let error = run["prediction"]["error"].as_f64().unwrap();
    assert!((scored / judged - 1.0).abs() > 1e-6, "{run}");
    assert!((error - (judged / predicted - 1.0)).abs() < 1e-12, "{run}");
    // Both are speeds in percent: below 100 for a run that is slower than published or predicted.
    let speeds =
        ["baseline", "prediction"].map(|reference| run[reference]["speed_percent"].as_f64().unwrap());
    for (speed, reference) in speeds.into_iter().zip([published, predicted]) {
        assert!((speed - 100.0 * reference / judged).abs() < 1e-9 && speed < 100.0, "{run}");
    }
    let scored_speeds =
        ["baseline", "prediction"].map(|reference| run[reference]["scored_speed_percent"].as_f64().unwrap());
    for (speed, reference) in scored_speeds.into_iter().zip([published, predicted]) {
        assert!((speed - 100.0 * reference / scored).abs() < 1e-9, "{run}");
    }

    let (header, rows) = csv(&["results", "list", "--data-dir", &data]);
    let cell = |title: &str| -> f64 {
        let place = header.iter().position(|known| known == title).unwrap();
        rows[0][place].parse().unwrap()
    };
    assert_eq!(["speed_percent", "predicted_speed_percent"].map(cell), speeds);
    assert_eq!(["scored_speed_percent", "scored_predicted_speed_percent"].map(cell), scored_speeds);
    let times = ["step_time_s_mean", "judged_s", "published_step_time_s", "predicted_step_time_s"].map(cell);
    assert_eq!((times, cell("prediction_error")), ([scored, judged, published, predicted], error));
    assert!(cell("predicted_low_s") < predicted && predicted < cell("predicted_high_s"));
}

#[test]
fn a_list_says_what_ran_and_fits_into_80_columns() {
    const RECIPE: &str = "llama3.1-8b/h100/fp8/8@25.04";
    let (_place, data) = store(&[9400, 9410]);
    let list = |columns| {
        on_terminal(columns, &format!("\"$TRAINPLAN\" results list --data-dir '{data}' 2>/dev/null"))
    };
    for columns in [80, 250] {
        let text = list(columns);
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        assert!(text.contains("recipe or model") && text.matches(RECIPE).count() == 2, "{text}");
    }
    assert!(list(250).contains("speed % of predicted"), "{}", list(250));
    // The beginning of an id is enough for other commands.
    let runs = json(&["results", "list", "--data-dir", &data]);
    let id = runs[0]["id"].as_str().unwrap();
    assert!(list(80).contains(&format!(" {}  ", &id[..13])) && !list(80).contains(id));
    assert_eq!(ids(&json(&["results", "delete", &id[..13], "--data-dir", &data])), [id]);

    let (header, rows) = csv(&["results", "list", "--data-dir", &data]);
    let cell = |title: &str| &rows[0][header.iter().position(|known| known == title).unwrap()];
    let known = ["recipe", "model", "gpu", "gpus", "dtype", "software"].map(cell);
    assert_eq!(known, [RECIPE, "llama3.1-8b", "h100", "8", "fp8", "NeMo 2 (2025)"]);
    assert!(list(250).contains("NeMo 2 (2025)"), "{}", list(250));
    assert_eq!(runs[0]["software"], "NeMo 2 (2025)");
}

/// A log that does not tell what it is a run of, put into a store with its raw log: the place, the data directory, its id.
fn a_log_of_nothing_known() -> (TempDir, String, String) {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let (results, data) = (path("results"), path("data"));
    fs::write(path("train.log"), log(128, 9400)).unwrap();
    assert_eq!(trainplan(["parse", &path("train.log"), "--save", &results]).code, Some(0));
    let saved = fs::read_dir(&results).unwrap().next().unwrap().unwrap().path();
    let id = saved.file_name().unwrap().to_str().unwrap().split('.').next().unwrap().to_owned();
    let packed = zstd::encode_all(log(128, 9400).as_bytes(), 1).unwrap();
    fs::write(format!("{results}/{id}.log.zst"), packed).unwrap();
    assert_eq!(trainplan(["import", &results, "--data-dir", &data]).code, Some(0));
    (place, data, id)
}

#[test]
fn what_a_log_is_a_run_of_can_be_said_later_and_goes_with_a_backup() {
    const RECIPE: &str = "llama3.1-8b/h100/fp8/8@25.04";
    let (place, data, id) = a_log_of_nothing_known();
    let list = |data: &str| json(&["results", "list", "--data-dir", data])[0].clone();
    let before = list(&data);
    assert_eq!((&before["recipe"], &before["baseline"]), (&Value::Null, &Value::Null));

    let reparse =
        |more: &[&str]| json(&[&["reparse", &id[..13], "--data-dir", &data], more].concat())[0].clone();
    assert_eq!(reparse(&[])["outcome"], "same");
    let reparsed = reparse(&["--recipe", "llama3.1-8b/h100/fp8/16@25.04"]);
    assert_eq!(reparsed["outcome"], "changed");
    // The log says what speaks against it.
    let reason = reparsed["reason"].as_str().unwrap();
    assert!(reason.contains("GBS 128 instead of 256"), "{reason}");
    let reparsed = reparse(&["--recipe", RECIPE]);
    assert_eq!((&reparsed["id"], &reparsed["outcome"]), (&id.as_str().into(), &"changed".into()));
    let reason = reparsed["reason"].as_str().unwrap();
    assert!(reason.contains("rests on one step"), "{reason}");
    let after = list(&data);
    assert_eq!((&after["recipe"], &after["ran_at"]), (&RECIPE.into(), &before["ran_at"]));
    assert!(after["baseline"]["speed_percent"].as_f64().unwrap() > 90.0, "{after}");
    // It stays so when it is read again.
    assert_eq!(reparse(&[])["outcome"], "same");

    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let (backup, other) = (path("backup"), path("other"));
    for _ in 0..2 {
        assert_eq!(trainplan(["export", &backup, "--data-dir", &data]).code, Some(0));
        assert_eq!(trainplan(["import", &backup, "--data-dir", &other]).code, Some(0));
    }
    let files: BTreeSet<_> = fs::read_dir(&backup).unwrap().map(|file| file.unwrap().file_name()).collect();
    let ended = ["log.zst", "result.json", "score.json"].map(|ending| format!("{id}.{ending}").into());
    assert_eq!(files, BTreeSet::from(ended));
    let moved = list(&other);
    for same in ["id", "recipe", "step_time_s", "baseline", "ran_at", "has_log"] {
        assert_eq!(moved[same], after[same], "{same}");
    }
    // What came first is kept beside it as it came, log and all.
    let came = fs::read(format!("{backup}/{id}.result.json")).unwrap();
    assert_eq!(came, fs::read(format!("{}/{id}.result.json", path("results"))).unwrap());
    let raw = zstd::decode_all(fs::File::open(format!("{backup}/{id}.log.zst")).unwrap()).unwrap();
    assert_eq!(raw, log(128, 9400).as_bytes());

    // What is said anew goes with the next backup, and an older backup does not take it back.
    assert_eq!(trainplan(["export", &path("older"), "--data-dir", &data]).code, Some(0));
    assert_eq!(reparse(&["--recipe", "llama3.1-8b/h100/bf16/8@25.04"])["outcome"], "changed");
    for (folder, written) in
        [(&backup, "0 results, 0 raw logs and 1 later score to"), (&backup, "and 0 later scores")]
    {
        let export = trainplan(["export", folder, "--data-dir", &data]);
        assert!(export.stderr.contains(written), "{}", export.stderr);
    }
    for folder in [&backup, &path("older")] {
        assert_eq!(trainplan(["import", folder, "--data-dir", &other]).code, Some(0));
        assert_eq!(list(&other)["recipe"], "llama3.1-8b/h100/bf16/8@25.04");
    }
    // A recipe without a release is the one that it means everywhere.
    let named = json(&["results", "list", "--recipe", "llama3.1-8b/h100/bf16/8", "--data-dir", &data]);
    assert_eq!(named.as_array().unwrap().len(), 1);

    fs::write(format!("{backup}/{id}.score.json"), "{}").unwrap();
    let torn = trainplan(["import", &backup, "--data-dir", &path("third")]);
    assert!(torn.code == Some(1) && torn.stdout.contains(".score.json"), "{}", torn.stdout);
}

#[test]
fn what_a_log_is_a_run_of_is_said_of_runs_that_are_named() {
    let (_place, data, id) = a_log_of_nothing_known();
    let said = refusal(&["reparse", "--recipe", "llama3.1-8b/h100/fp8/8", "--data-dir", &data]);
    assert!(said.contains("trainplan results list"), "{said}");
    let said = refusal(&["reparse", &id, "--recipe", "lama3.1-8b/h100/fp8/8", "--data-dir", &data]);
    assert!(said.contains("llama3.1-8b/h100/fp8/8"), "{said}");
}

#[test]
fn what_an_older_parser_made_is_made_again() {
    let (place, data, id) = a_log_of_nothing_known();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    // As if an older one had read no step but the last.
    let file = format!("{}/{id}.result.json", path("results"));
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    run["provenance"]["parser_version"] = 0.into();
    run["identity"]["scenario"]["gbs"] = "64".into();
    fs::write(&file, run.to_string()).unwrap();
    let old = path("old");
    assert_eq!(trainplan(["import", &path("results"), "--data-dir", &old]).code, Some(0));
    let rows = json(&["reparse", "--data-dir", &old]);
    assert_eq!((rows.as_array().unwrap().len(), &rows[0]["outcome"]), (1, &"changed".into()));
    let listed = &json(&["results", "list", "--data-dir", &old])[0];
    assert_eq!(listed["parser_version"], trainplan_shared::log::PARSER_VERSION);
    // Nothing is left that an older one made; and in the other store nothing ever was.
    for data in [&old, &data] {
        assert_eq!(json(&["reparse", "--data-dir", data]), Value::Array(Vec::new()));
    }
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
        assert!(said.contains("does not exist") && said.contains("typo"), "{command:?}: {said}");
    }
    assert!(!place.path().join("typo").exists());
    let made = trainplan(["token", "create", "--name", "x", "--scope", "read", "--data-dir", &data]);
    assert!(
        made.code == Some(0)
            && made.stderr.contains("created the new, empty data directory")
            && made.stderr.contains("typo"),
        "{}",
        made.stderr
    );
}

#[test]
fn a_recipe_that_nobody_published_is_no_recipe_without_runs() {
    let (_place, data) = store(&[9400]);
    let said = refusal(&["check", "--recipe", "lama3.1-8b/h100/fp8/8", "--data-dir", &data]);
    assert!(said.contains("llama3.1-8b/h100/fp8/8"), "{said}");
    let other = trainplan(["check", "--recipe", "llama3.1-405b/h100/fp8/512", "--data-dir", &data]);
    assert_eq!(other.code, Some(4), "{}", other.stderr);
}
