//! Stores that older programs made.

use crate::harness::{Place, SOON, Server, carried, wait_for};
use crate::services::execute;
use serde_json::Value;
use std::time::Duration;
use std::{fs, thread};

/// Two runs, as the program before the server's time kept them.
const VERSION_1: &[u8] = include_bytes!("fixtures/store-version-1.sqlite");
const FIRST: &str = "1bd42e64-a37c-81a1-a605-f2835b77109b";
const SECOND: &str = "0199a5a2-0000-7000-8000-000000000001";

fn version_1() -> Place {
    let place = Place::local();
    fs::write(place.dir().join("store.sqlite"), VERSION_1).unwrap();
    place
}

fn version(place: &Place) -> i64 {
    place.number("SELECT user_version FROM pragma_user_version")
}

/// That the server shows both runs as they were, with what later versions add.
fn shows_both(server: &Server) {
    let page = server.anyone().json("/runs");
    let [second, first] = page["items"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!((first["id"].as_str(), second["id"].as_str()), (Some(FIRST), Some(SECOND)));
    assert_eq!(first["received_at"], "2026-10-01T08:00:00.000000Z");
    assert_eq!((first["comparable"].as_bool(), second["comparable"].as_bool()), (Some(true), Some(false)));
    assert_eq!((&first["has_log"], &first["status"]), (&Value::Bool(false), &"scored".into()));
    assert!(first["line"].as_str().unwrap().contains("llama3.1-8b"), "{first}");
    let (measured, prediction) = (&first["step_time_s"]["mean"], &first["prediction"]);
    let error = measured.as_f64().unwrap() / prediction["step_time_s"]["mid"].as_f64().unwrap() - 1.0;
    assert!((prediction["error"].as_f64().unwrap() - error).abs() < 1e-12, "{first}");
    let file = server.anyone().json(&format!("/runs/{FIRST}"));
    assert_eq!(file["log"]["steps"]["label"], serde_json::json!([47, 48, 49]));
    assert_eq!(server.anyone().all("sort=step_time_s&limit=1").len(), 2);
}

#[test]
fn a_store_of_version_1_is_migrated() {
    let place = version_1();
    assert_eq!(version(&place), 1);
    let server = Server::at(&place);
    shows_both(&server);
    assert!(version(&place) > 1);
    server.owner().put_all(&carried(12.0, "eos"));
    assert_eq!(server.owner().delete(&format!("/runs/{SECOND}")).status, 204);
    let server = server.again();
    assert_eq!(server.anyone().all("").len(), 2);
    assert_eq!(server.owner().delete(&format!("/runs/{FIRST}")).status, 204);
}

#[test]
fn a_failed_migration_changes_nothing() {
    let place = version_1();
    // A table of a later step already exists.
    execute(&place.address(), "CREATE TABLE deliveries (x TEXT)").unwrap();
    let said = Server::try_with(&place, &crate::harness::Options::default()).unwrap_err();
    assert!(said.contains("deliveries"), "{said}");
    assert_eq!(version(&place), 1);
    assert_eq!(place.number("SELECT count(*) FROM runs WHERE comparable IN (0, 1)"), 2);
    assert_eq!(
        place.number("SELECT count(*) FROM sqlite_schema WHERE name IN ('scores', 'tokens', 'changes')"),
        0
    );
    // It succeeds once that table is gone.
    execute(&place.address(), "DROP TABLE deliveries").unwrap();
    shows_both(&Server::at(&place));
}

#[test]
fn a_killed_migration_leaves_one_version_or_the_other() {
    let mut seen = [0, 0];
    for _ in 0..12 {
        let place = version_1();
        let mut child = std::process::Command::new(trainplan_tests::binary())
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(place.dir())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // At any moment after the file is opened: the write-ahead log is written first.
        let log = place.dir().join("store.sqlite-wal");
        wait_for("opening of the store", SOON, || log.exists().then_some(()));
        thread::sleep(Duration::from_micros(fastrand::u64(..20_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let is_new = version(&place) > 1;
        seen[usize::from(is_new)] += 1;
        let column = if is_new { "is_comparable" } else { "comparable" };
        assert_eq!(place.number(&format!("SELECT count(*) FROM runs WHERE {column} IN (0, 1)")), 2);
        shows_both(&Server::at(&place));
    }
    println!("killed before the step was taken: {}, after it: {}", seen[0], seen[1]);
}
