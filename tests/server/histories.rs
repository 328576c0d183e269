//! Histories are kept, and are never out of date.

use crate::harness::{
    Client, Kind, Made, Place, Server, carried, encoded, file_of, log, made_of, on_every_store, progress,
};
use crate::services::{POSTGRES, change, change_after};
use serde_json::Value;
use std::fs;
use trainplan_shared::result::Intake;
use trainplan_shared::spec::Spec;
use uuid::Uuid;

on_every_store! {
    a_history_shows_every_change_by_any_server
    a_history_is_not_made_again_while_no_run_changes
    a_regression_stands_while_later_runs_are_not_scored
    runs_of_the_same_time_are_in_the_order_of_their_jobs
}

/// Returns the step times of all runs in a history, by time line and time.
fn step_times(client: &Client, query: &str) -> Vec<Option<f64>> {
    let history = client.json(&format!("/history{query}"));
    let items = |value: &Value| value.as_array().unwrap().clone();
    let points = items(&history["series"]).into_iter().flat_map(|line| items(&line["points"]));
    points.map(|point| point["step_time_s"].as_f64()).collect()
}

fn a_history_shows_every_change_by_any_server(kind: Kind) {
    let place = Place::new(kind);
    let servers = [Server::at(&place), Server::at(&place)];
    let [first, second] = [servers[0].owner(), servers[1].owner()];
    let shows = |query: &str, expected: &[Option<f64>]| {
        for client in [&first, &second] {
            assert_eq!(step_times(client, query), expected, "{query}");
        }
    };
    shows("", &[]);
    let old = carried(12.0, "eos").run;
    assert_eq!(first.put(&old).status, 201);
    shows("", &[Some(12.0)]);
    assert_eq!(second.put(&carried(11.0, "eos").run).status, 201);
    shows("", &[Some(12.0), Some(11.0)]);
    shows("?cluster=alpha", &[]);
    assert_eq!(second.put(&carried(10.0, "alpha").run).status, 201);
    shows("?cluster=alpha", &[Some(10.0)]);
    // By another program.
    let (folder, imported) = (tempfile::tempdir().unwrap(), carried(9.0, "alpha").run);
    fs::write(folder.path().join(imported.file_name()), file_of(&imported)).unwrap();
    assert_eq!(place.trainplan(&["import", folder.path().to_str().unwrap()]).code, Some(0));
    shows("?cluster=alpha", &[Some(10.0), Some(9.0)]);
    shows("?cluster=eos", &[Some(12.0), Some(11.0)]);
    assert_eq!(first.delete(&format!("/runs/{}", old.id)).status, 204);
    shows("?cluster=eos", &[Some(11.0)]);
    // A run whose recipe becomes known.
    let log = log(8.0, 50);
    let mut intake = Intake::new("train.log", &Spec::default());
    intake.feed(&log);
    let unknown = intake.finish();
    assert_eq!(first.put(&unknown).status, 201);
    assert_eq!(first.put_log(unknown.id, 0, true, &log).status, 200);
    shows("?limit=1", &[]);
    let path = format!("/runs/{}/scores?recipe={}", unknown.id, encoded("llama3.1-8b/h100/fp8/8@25.04"));
    assert_eq!(second.ask("POST", &path, &[], None).status, 200);
    shows("?limit=1", &[Some(8.0)]);
}

fn a_history_is_not_made_again_while_no_run_changes(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, Made { run, log }) = (server.owner(), carried(12.0, "eos"));
    assert_eq!(owner.put(&run).status, 201);
    let shows = |queries: &[&str], expected: &[f64]| {
        let expected: Vec<_> = expected.iter().copied().map(Some).collect();
        for query in queries {
            assert_eq!(step_times(&owner, query), expected, "{query}");
        }
    };
    let queries = ["", "?cluster=eos", "?sigma=off"];
    shows(&queries, &[12.0]);
    // Behind the server's back, so that it shows whether the store is read again.
    let set = format!("UPDATE runs SET step_time_s = 13.0 WHERE id = '{}'", run.id);
    change(&server.place.address(), &set);
    shows(&queries, &[12.0]);
    shows(&["?limit=7"], &[13.0]);
    // A report of an unfinished run changes no history.
    assert_eq!(owner.post(&format!("/runs/{}/progress", Uuid::now_v7()), &progress(1)).status, 204);
    shows(&queries, &[12.0]);
    // Only the new run is read.
    assert_eq!(owner.put(&carried(14.0, "eos").run).status, 201);
    shows(&queries, &[12.0, 14.0]);
    // A run that changed is read again.
    assert_eq!(owner.put_log(run.id, 0, true, &log).status, 200);
    shows(&queries, &[13.0, 14.0]);
}

fn a_regression_stands_while_later_runs_are_not_scored(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let slow = carried(10.5, "eos").run;
    assert_eq!(owner.put(&slow).status, 201);
    let mut log = String::from_utf8(log(9.4, 50)).unwrap();
    log = log.replacen("reduced_train_loss: 11.0", "reduced_train_loss: nan", 1);
    let failed = made_of(log.into_bytes()).run.of_run(Uuid::now_v7(), slow.carried.clone().unwrap());
    assert_eq!(owner.put(&failed).status, 201);
    let line = || owner.json("/history")["series"][0].clone();
    let open = line();
    assert_eq!(open["alerts"], serde_json::json!([]));
    assert_eq!(open["last_comparable"]["alerts"][0]["point"], slow.id.to_string());
    let why = "The loss is NaN or infinite at step 0";
    let [points, checks] = ["points", "checks"].map(|key| open[key].as_array().unwrap());
    assert!(points[1]["reason"].as_str().unwrap().starts_with(why), "{open}");
    assert_eq!((&points[0]["reason"], &points[1]["step_time_s"]), (&Value::Null, &Value::Null));
    assert!(checks[0]["text"].as_str().unwrap().contains(why), "{open}");
    // A run within the limits ends it.
    assert_eq!(owner.put(&carried(9.4, "eos").run).status, 201);
    let over = line();
    assert_eq!((&over["alerts"], &over["last_comparable"]), (&serde_json::json!([]), &Value::Null));
    assert_eq!(over["checks"][0]["outcome"], "fine");
}

fn runs_of_the_same_time_are_in_the_order_of_their_jobs(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    for (job, step_time_s) in [("1002", 12.0), ("998", 11.0), ("1001", 13.0)] {
        let mut run = carried(step_time_s, "eos").run;
        let slurm = &mut run.carried.as_mut().unwrap().jobs[0];
        slurm.id = job.into();
        slurm.started = Some("2026-05-10T10:00:00Z".into());
        assert_eq!(owner.put(&run).status, 201);
    }
    assert_eq!(step_times(&owner, ""), [Some(11.0), Some(13.0), Some(12.0)]);
}

/// In SQLite, changes are committed in the order of their numbers.
#[test]
fn a_history_has_changes_that_are_committed_late() {
    let server = Server::at(&Place::local().with_database(POSTGRES.database()));
    let (owner, run) = (server.owner(), carried(12.0, "eos").run);
    assert_eq!(owner.put(&run).status, 201);
    assert_eq!(step_times(&owner, ""), [Some(12.0)]);
    let update = format!("UPDATE runs SET step_time_s = 15.0 WHERE id = '{}'", run.id);
    let change = format!(
        "INSERT INTO changes (at, kind, id) VALUES ('2199-01-01T00:00:00.000000Z', 'run', '{}')",
        run.id
    );
    let meanwhile = || {
        assert_eq!(owner.put(&carried(13.0, "eos").run).status, 201);
        assert_eq!(step_times(&owner, ""), [Some(12.0), Some(13.0)]);
    };
    change_after(&server.place.address(), &["BEGIN", &update, &change], meanwhile, "SELECT 1");
    assert_eq!(step_times(&owner, ""), [Some(15.0), Some(13.0)]);
}
