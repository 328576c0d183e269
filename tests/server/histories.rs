//! Histories are kept, and are never out of date.

use crate::harness::{
    Client, Kind, Made, Place, Server, carried, encoded, file_of, log, on_every_store, progress,
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
