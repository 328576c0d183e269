//! Scores of a log by newer parsers and for other recipes.

use crate::harness::{Client, Kind, Place, Server, carried, encoded, file_of, log, on_every_store};
use crate::integrity::{metric_of, verified};
use crate::services::change;
use serde_json::{Value, json};
use trainplan_shared::field::Field;
use trainplan_shared::result::{Intake, JobFiles, RunResult, SettingsFile};
use trainplan_shared::spec::Spec;

on_every_store! {
    scores_name_their_parser_version
    a_run_that_contradicts_its_recipe_is_not_scored
    recipes_can_be_corrected_later
    files_beside_a_log_complete_its_scenario_later
    a_damaged_score_is_named_and_replaced
    damaged_scores_are_marked_and_counted
    a_score_in_the_place_of_another_is_named_and_replaced
}

fn scores_name_their_parser_version(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    assert_eq!(owner.put(&made.run).status, 201);
    let scores = owner.json(&format!("/runs/{}/scores", made.run.id));
    let items = scores["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0]["parser_version"], made.run.provenance.parser_version);
    assert_eq!(items[0]["scored_at"], Value::Null);
    assert_eq!(items[0]["report"]["step_time_s"]["mean"], 12.39);
    let summary = owner.json(&format!("/runs/{}/summary", made.run.id));
    assert_eq!(summary["step_time_s"]["mean"], 12.39);
    assert_eq!(summary["cluster"], "eos");
}

fn a_run_that_contradicts_its_recipe_is_not_scored(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let name = "log-acct.pretrain_llama3.1_70b_fp8_256_12345_0.out";
    let mut intake = Intake::new(name, &Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04"));
    intake.feed(&log(9.4, 50));
    let run = intake.finish();
    assert_eq!(owner.put(&run).status, 201);
    assert_eq!(owner.all("status=scored"), Vec::<String>::new());
    assert_eq!(owner.all("status=implausible"), [run.id.to_string()]);
    let summary = owner.json(&format!("/runs/{}/summary", run.id));
    assert_eq!((&summary["status"], &summary["mfu"]), (&"implausible".into(), &Value::Null));
}

fn recipes_can_be_corrected_later(kind: Kind) {
    const RECIPE: &str = "llama3.1-8b/h100/fp8/8@25.04";
    let server = Server::at(&Place::new(kind));
    let (owner, uploader) = (server.owner(), server.by(&server.place.token("upload", &[])));
    let log = log(9.4, 50);
    let read_as = |name: &str, said: &Spec| {
        let mut intake = Intake::new(name, said);
        intake.feed(&log);
        intake.finish()
    };
    let run = read_as("train.log", &Spec::default());
    let path = format!("/runs/{}", run.id);
    let scores = format!("{path}/scores?recipe={}", encoded(RECIPE));
    owner.post(&scores, &json!({})).problem(404);
    assert_eq!(owner.put(&run).status, 201);
    assert!(owner.post(&scores, &json!({})).problem(409).contains("raw log"));
    assert_eq!(owner.put_log(run.id, 0, true, &log).status, 200);
    uploader.post(&scores, &json!({})).problem(403);
    assert!(owner.post(&format!("{path}/scores?recipe=lama"), &json!({})).problem(400).contains("lama"));
    assert!(owner.post(&format!("{path}/scores?colour=red"), &json!({})).problem(400).contains("colour"));
    let in_body = owner.post(&format!("{path}/scores"), &json!({ "recipe": RECIPE }));
    assert!(in_body.problem(400).contains("?recipe="));
    assert!(owner.post("/runs/70348a12/scores", &json!({})).problem(404).contains("whole id"));
    let summary = || owner.json(&format!("{path}/summary"));
    let before = summary();
    assert_eq!(before["recipe"], Value::Null);

    let answer = owner.post(&scores, &json!({}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let items = answer.json()["items"].as_array().unwrap().clone();
    let recipes: Vec<_> = items.iter().map(|score| score["report"]["recipe"].clone()).collect();
    assert_eq!(recipes, [RECIPE.into(), Value::Null]);
    let after = summary();
    assert_eq!((&after["recipe"], &after["ran_at"]), (&RECIPE.into(), &before["ran_at"]));
    assert_eq!(owner.all(&format!("recipe={}", encoded(RECIPE))), [run.id.to_string()]);
    // The first upload and one with the corrected recipe are both the same run.
    for again in [&run, &read_as("train.log", &Spec::default().with(Field::Recipe, RECIPE))] {
        assert_eq!(owner.put(again).status, 200);
    }
    let other = Spec::default().with(Field::Recipe, "llama3.1-8b/h100/bf16/8@25.04");
    assert!(owner.put(&read_as("train.log", &other)).problem(409).contains("reparse"));
    assert_eq!(owner.get(&format!("{path}?upload")).body, file_of(&run));

    let carried = carried(9.4, "eos");
    owner.put_all(&carried);
    let refused = owner.post(&format!("/runs/{}/scores?gpus=16", carried.run.id), &json!({}));
    assert!(refused.problem(409).contains("campaign nightly"));
}

fn files_beside_a_log_complete_its_scenario_later(kind: Kind) {
    const RECIPE: &str = "llama3.1-8b/h100/fp8/8@25.04";
    let server = Server::at(&Place::new(kind));
    let (owner, log) = (server.owner(), log(9.4, 50));
    let read_with = |job: JobFiles| {
        let mut intake = Intake::new("train.log", &Spec::default()).with_job(job);
        intake.feed(&log);
        intake.finish()
    };
    let launched = |scale: u32| {
        let text = format!(
            "workload_info:\n  gsw_version: '25.04'\nmodel_info:\n  model_name: llama3.1\n  model_size: 8b\n  dtype: fp8\n  \
             scale: {scale}\n  gpu_type: h100\n"
        );
        let file = SettingsFile::LlmbConfig;
        read_with(JobFiles::default().with(file, file.read(text.as_bytes())))
    };
    let (bare, complete) = (read_with(JobFiles::default()), launched(8));
    let path = format!("/runs/{}", bare.id);
    assert_eq!(owner.put(&bare).status, 201);
    assert_eq!(owner.put_log(bare.id, 0, true, &log).status, 200);
    let recipe = || owner.json(&format!("{path}/summary"))["recipe"].clone();
    assert_eq!(recipe(), Value::Null);
    let scores = || owner.json(&format!("{path}/scores"))["items"].as_array().unwrap().len();
    // Also if the same comes again, and the log without the files.
    for again in [&complete, &complete, &bare] {
        let answer = owner.put(again);
        assert_eq!((answer.status, answer.json()["outcome"].as_str()), (200, Some("known")));
        assert_eq!((recipe(), scores()), (RECIPE.into(), 2));
    }
    assert_eq!(owner.all(&format!("recipe={}", encoded(RECIPE))), [bare.id.to_string()]);
    assert_eq!(owner.get(&format!("{path}?upload")).body, file_of(&bare));
    assert_eq!(owner.json(&path)["job"]["settings"]["llmb_config"]["model_info.scale"], "8");
    // Files that contradict what is stored don't change it.
    assert!(owner.put(&launched(16)).problem(409).contains(RECIPE));
    // Another reading of the log keeps what the files say.
    assert_eq!(owner.post(&format!("{path}/scores"), &json!({})).status, 200);
    assert_eq!((recipe(), scores()), (RECIPE.into(), 2));
    assert_eq!(verified(&server.place), []);
}

/// Uploads a run and scores it again with a recipe; returns it with the path of these scores.
fn scored_again(owner: &Client) -> (RunResult, String) {
    let log = log(9.4, 50);
    let mut intake = Intake::new("train.log", &Spec::default());
    intake.feed(&log);
    let run = intake.finish();
    assert_eq!(owner.put(&run).status, 201);
    assert_eq!(owner.put_log(run.id, 0, true, &log).status, 200);
    let scores = format!("/runs/{}/scores?recipe={}", run.id, encoded("llama3.1-8b/h100/fp8/8@25.04"));
    assert_eq!(owner.post(&scores, &json!({})).status, 200);
    (run, scores)
}

fn damaged_scores_are_marked_and_counted(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let (run, scores) = scored_again(&owner);
    let path = format!("/runs/{}", run.id);
    let scored = owner.get(&path).body;
    let marked = || {
        let listed = owner.json("/runs")["items"][0]["result_fault"].clone();
        assert_eq!(owner.json(&format!("{path}/summary"))["result_fault"], listed);
        (listed, metric_of(&owner, "bad_scores", "damaged"))
    };
    assert_eq!(marked(), (Value::Null, "0".into()));
    // SQLite stores the second one as a text. The last one is a sound file, but not the stored one.
    for file in ["substr(file, 1, 100)", "'not a file'", "(SELECT file FROM results)"] {
        for is_read in [true, false] {
            change(&server.place.address(), &format!("UPDATE scores SET file = {file}"));
            if is_read {
                owner.get(&path).problem(500);
                assert_eq!(marked(), ("damaged".into(), "1".into()), "{file}");
            }
            let found = verified(&server.place);
            assert_eq!((found.len(), found[0].0.as_str()), (1, "damaged_result"), "{found:?}");
            assert!(found[0].2.contains("score by parser"), "{found:?}");
            assert_eq!(marked(), ("damaged".into(), "1".into()), "{file}");
            // The upload is sound, so it does not replace the score.
            assert_eq!(owner.put(&run).status, 200);
            assert_eq!(marked(), ("damaged".into(), "1".into()), "{file}");
            assert_eq!(owner.post(&scores, &json!({})).status, 200);
            assert_eq!(marked(), (Value::Null, "0".into()), "{file}");
            let again: Value = owner.json(&path);
            assert_eq!(again["identity"], serde_json::from_slice::<Value>(&scored).unwrap()["identity"]);
            assert_eq!(verified(&server.place), []);
        }
    }
    // Older programs stored no hash.
    change(&server.place.address(), "UPDATE scores SET sha256 = NULL");
    assert_eq!((owner.get(&path).status, verified(&server.place)), (200, vec![]));
    // Without a score there is nothing that could be damaged.
    change(&server.place.address(), "DELETE FROM scores");
    change(&server.place.address(), "UPDATE runs SET score_fault = 'damaged'");
    let found = verified(&server.place);
    assert!(found[0].2.contains("score_fault"), "{found:?}");
    assert_eq!((marked(), verified(&server.place)), ((Value::Null, "0".into()), vec![]));
}

fn a_damaged_score_is_named_and_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let (run, scores) = scored_again(&owner);
    let path = format!("/runs/{}", run.id);
    let scored = owner.get(&path).body;
    assert!(scored != file_of(&run), "it has the recipe");
    change(&server.place.address(), "UPDATE scores SET file = substr(file, 1, 100)");
    for refused in [
        owner.get(&path),
        owner.get(&format!("{path}/scores")),
        owner.get(&format!("/compare?ids={}", run.id)),
    ] {
        let detail = refused.problem(500);
        assert!(detail.starts_with("The stored score of run ") && detail.contains("Score its log again"));
    }
    assert_eq!(owner.get(&format!("{path}?upload")).body, file_of(&run));
    let backup = tempfile::tempdir().unwrap();
    let export = server.place.trainplan(&["export", backup.path().to_str().unwrap()]);
    assert!(
        export.code == Some(1) && export.stderr.contains("The stored score of run "),
        "{}",
        export.stderr
    );
    // Also if a later time or a newer parser is stored with it.
    for said in ["scored_at = '2199-01-01T00:00:00.000000Z'", "parser_version = 1000000"] {
        change(&server.place.address(), &format!("UPDATE scores SET file = substr(file, 1, 100), {said}"));
        assert_eq!(owner.post(&scores, &json!({})).status, 200);
        let again = owner.json(&path);
        assert_eq!(again["identity"], serde_json::from_slice::<Value>(&scored).unwrap()["identity"]);
        let versions = owner.json(&format!("{path}/scores"));
        assert_eq!(versions["items"].as_array().unwrap().len(), 2, "the upload and one score");
    }
}

/// Its file is sound and has its hash, but its row has another parser version or time.
fn a_score_in_the_place_of_another_is_named_and_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let (run, scores) = scored_again(&owner);
    let path = format!("/runs/{}", run.id);
    let scored = owner.json(&path)["identity"].clone();
    let versions = || owner.json(&format!("{path}/scores"))["items"].as_array().unwrap().len();
    let mut damages = vec![
        "parser_version = 1000000",
        "parser_version = 0",
        "scored_at = '2030-01-01T00:00:00.000000Z'",
        "scored_at = '2199-01-01T00:00:00.000000Z'",
        "scored_at = 'x'",
        "scored_at = ''",
    ];
    // PostgreSQL accepts no values of another type.
    if kind == Kind::Local {
        damages.extend([
            "parser_version = 'x'",
            "parser_version = X'00'",
            "parser_version = 1e300",
            "parser_version = 0.5",
            "scored_at = X'00'",
        ]);
    }
    for damage in damages {
        change(&place.address(), &format!("UPDATE scores SET {damage}"));
        // Nobody read it yet.
        let found = verified(place);
        assert_eq!((found.len(), found[0].0.as_str()), (1, "damaged_result"), "{damage}: {found:?}");
        assert_eq!(owner.json(&format!("{path}/summary"))["result_fault"], "damaged", "{damage}");
        let detail = owner.get(&path).problem(500);
        assert!(detail.contains("another parser or time"), "{damage}: {detail}");
        assert!(detail.contains("Score its log again"), "{damage}: {detail}");
        assert_eq!(owner.post(&scores, &json!({})).status, 200, "{damage}");
        assert_eq!(owner.json(&format!("{path}/summary"))["result_fault"], Value::Null, "{damage}");
        assert_eq!((owner.json(&path)["identity"].clone(), versions()), (scored.clone(), 2), "{damage}");
        assert_eq!(verified(place), [], "{damage}");
    }
    // One that is not the newest is deleted, also if the newest one stays the same.
    let older: &[&str] = if kind == Kind::Local { &["1", "0.5"] } else { &["1"] };
    for version in older {
        let older = format!(
            "INSERT INTO scores (id, parser_version, scored_at, file, sha256) \
            SELECT id, {version}, scored_at, file, sha256 FROM scores"
        );
        change(&place.address(), &older);
        assert_eq!(owner.json(&path)["identity"], scored);
        owner.get(&format!("{path}/scores")).problem(500);
        assert_eq!(verified(place).len(), 1, "{version}");
        assert_eq!(owner.post(&scores, &json!({})).status, 200);
        assert_eq!((versions(), verified(place)), (2, vec![]), "{version}");
    }
}
