//! Damaged and missing raw logs: found, refused, reported and replaced.

use crate::harness::{
    Client, Kind, Made, Place, SOON, Server, carried, file_of, log, made, on_every_store, wait_for,
};
use crate::services::{self, POSTGRES};
use serde_json::{Value, json};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use trainplan_shared::field::Field;
use trainplan_shared::result::{Intake, RunResult};
use trainplan_shared::spec::Spec;
use trainplan_tests::Run;
use uuid::Uuid;

on_every_store! {
    damaged_logs_are_refused_reported_and_replaced
    missing_logs_are_refused_reported_and_replaced
    a_log_with_the_content_of_another_is_not_scored
    an_upload_replaces_damage_that_nobody_noticed
    a_new_run_of_a_damaged_log_brings_the_log_again
    stored_logs_have_checksums
    exports_contain_everything_that_is_sound
    exports_name_runs_with_invalid_ids_and_times
    the_store_is_verified
    impossible_times_of_checks_do_not_count
    stored_results_are_verified_and_replaced
    altered_results_are_not_served_compared_or_exported
    the_result_of_another_run_is_damage
    damaged_results_are_replaced_by_uploads_and_imports
    a_damaged_result_is_replaced_as_a_whole
    a_late_reader_does_not_mark_a_replaced_result
    rows_with_invalid_values_are_shown_and_replaced
    text_that_is_not_utf_8_damages_only_itself
    runs_with_invalid_ids_do_not_end_lists
    runs_without_an_id_or_of_a_newer_version_are_named
    rows_of_runs_that_are_lost_are_made_again
    a_run_whose_row_is_lost_keeps_its_log_when_another_run_with_that_log_is_deleted
    damaged_results_whose_rows_are_lost_are_replaced
    an_invalid_hash_of_a_log_is_damage
    a_run_whose_row_lost_its_log_gets_it_again
    the_log_of_another_run_is_not_served_or_scored
    lines_of_a_replaced_log_are_not_shown
    a_log_is_not_read_on_for_a_client_that_left
    an_imported_run_gets_a_log_that_the_store_has
    rows_that_disagree_with_their_results_are_computed_again
    old_results_are_imported_as_far_as_they_are_sound
    a_log_beside_a_result_has_a_maximum
}

/// Returns the file of a run's log.
pub(crate) fn blob(place: &Place, made: &Made) -> PathBuf {
    let name = place.blobs().into_iter().find(|name| name.contains(&made.run.source.sha256)).unwrap();
    place.blob_folder().join(name)
}

/// Writes a compressed log of some 250 GB of zeros, which no test waits for.
pub(crate) fn write_endless(path: &Path) {
    fs::write(path, zstd::encode_all(&vec![0; 64 << 20][..], 1).unwrap().repeat(4000)).unwrap();
}

/// Changes one bit in the middle of a log's file.
fn flip(place: &Place, made: &Made) {
    let path = blob(place, made);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

fn uploaded(server: &Server, step_time_s: f64) -> Made {
    let made = carried(step_time_s, "eos");
    server.owner().put_all(&made);
    made
}

fn fault(owner: &Client, made: &Made) -> serde_json::Value {
    owner.json(&format!("/runs/{}/summary", made.run.id))["log_fault"].clone()
}

fn metric(owner: &Client, fault: &str) -> String {
    metric_of(owner, "bad_logs", fault)
}

pub(crate) fn metric_of(owner: &Client, what: &str, fault: &str) -> String {
    let metrics = owner.get("//metrics").text();
    let name = format!("trainplan_{what}{{fault=\"{fault}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap().to_owned()
}

fn damaged_logs_are_refused_reported_and_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), uploaded(&server, 9.37));
    let path = format!("/runs/{}/log", made.run.id);
    assert_eq!((fault(&owner, &made), metric(&owner, "damaged").as_str()), (().into(), "0"));
    flip(&server.place, &made);
    for refused in [
        owner.get(&path),
        owner.ask("GET", &path, &[("accept-encoding", "zstd")], None),
        owner.get(&format!("{path}/lines")),
        owner.ask("POST", &format!("/runs/{}/scores", made.run.id), &[], Some(b"")),
    ] {
        let detail = refused.problem(500);
        assert!(detail.contains(&made.run.source.sha256) && detail.contains("is damaged"), "{detail}");
        assert!(detail.contains("Upload that log again"), "{detail}");
    }
    assert_eq!((fault(&owner, &made), metric(&owner, "damaged").as_str()), ("damaged".into(), "1"));
    assert_eq!(owner.json("/runs")["items"][0]["log_fault"], "damaged");

    // The result is known, and its log is wanted again.
    let known = owner.put(&made.run).json();
    assert_eq!((&known["outcome"], &known["log"]["complete"]), (&"known".into(), &false.into()));
    assert_eq!(owner.offset(made.run.id), Some(0));
    let half = made.log.len() / 2;
    assert_eq!(owner.put_log(made.run.id, 0, false, &made.log[..half]).json()["complete"], false);
    assert_eq!(owner.put_log(made.run.id, half, true, &made.log[half..]).json()["complete"], true);
    assert_eq!((fault(&owner, &made), metric(&owner, "damaged").as_str()), (().into(), "0"));
    assert_eq!((owner.offset(made.run.id), owner.get(&path).body), (None, made.log));
}

fn missing_logs_are_refused_reported_and_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), uploaded(&server, 9.37));
    fs::remove_file(blob(&server.place, &made)).unwrap();
    let path = format!("/runs/{}/log", made.run.id);
    assert_eq!(owner.offset(made.run.id), Some(0));
    let detail = owner.get(&path).problem(500);
    assert!(detail.contains("is missing"), "{detail}");
    assert_eq!((fault(&owner, &made), metric(&owner, "missing").as_str()), ("missing".into(), "1"));
    assert_eq!(owner.put(&made.run).json()["log"]["complete"], false);
    assert_eq!(owner.put_log(made.run.id, 0, true, &made.log).json()["complete"], true);
    assert_eq!((fault(&owner, &made), owner.get(&path).body), (().into(), made.log));
}

fn a_log_with_the_content_of_another_is_not_scored(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), uploaded(&server, 9.37));
    fs::write(blob(&server.place, &made), zstd::encode_all(&log(4.98, 50)[..], 3).unwrap()).unwrap();
    let scores = format!("/runs/{}/scores", made.run.id);
    owner.ask("POST", &scores, &[], Some(b"")).problem(500);
    let again = owner.json(&scores);
    assert_eq!(again["items"].as_array().unwrap().len(), 1);
    assert_eq!(again["items"][0]["report"]["step_time_s"]["mean"], 9.37);
    assert_eq!(fault(&owner, &made), "damaged");
}

fn an_upload_replaces_damage_that_nobody_noticed(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), uploaded(&server, 9.37));
    flip(&server.place, &made);
    assert_eq!(owner.put_log(made.run.id, 0, true, &made.log).json()["complete"], true);
    assert_eq!(owner.get(&format!("/runs/{}/log", made.run.id)).body, made.log);
}

fn a_new_run_of_a_damaged_log_brings_the_log_again(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, first) = (server.owner(), uploaded(&server, 9.37));
    let second = made(9.37);
    assert_eq!(second.run.source.sha256, first.run.source.sha256);
    flip(&server.place, &first);
    owner.get(&format!("/runs/{}/log", first.run.id)).problem(500);
    assert_eq!(owner.put(&second.run).json()["log"]["complete"], false);
    assert_eq!(owner.put_log(second.run.id, 0, true, &second.log).status, 200);
    for run in [&first, &second] {
        assert_eq!(fault(&owner, run), serde_json::Value::Null);
        assert_eq!(owner.get(&format!("/runs/{}/log", run.run.id)).body, first.log);
    }
}

fn stored_logs_have_checksums(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made = uploaded(&server, 9.37);
    // RFC 8878: the third bit of the descriptor after the magic number.
    assert_eq!(fs::read(blob(&server.place, &made)).unwrap()[4] & 4, 4);
}

fn exports_contain_everything_that_is_sound(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made: Vec<Made> = (0..12).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    flip(&server.place, &made[2]);
    fs::remove_file(blob(&server.place, &made[5])).unwrap();
    let (backup, other) = (tempfile::tempdir().unwrap(), Place::new(kind));
    let folder = backup.path().to_str().unwrap();
    let export = server.place.trainplan(&["export", folder]);
    assert_eq!(export.code, Some(1));
    assert!(export.stderr.contains("wrote 12 results, 10 raw logs"), "{}", export.stderr);
    for (bad, what) in [(&made[2], "is damaged"), (&made[5], "is missing")] {
        let line = export.stderr.lines().find(|line| line.contains(&bad.run.id.to_string())).unwrap();
        assert!(line.contains(&bad.run.source.sha256) && line.contains(what), "{line}");
    }
    assert_eq!(fault(&server.owner(), &made[2]), "damaged");

    // A log that was damaged in the folder does not refuse its result.
    fs::write(backup.path().join(format!("{}.log.zst", made[7].run.id)), "no log").unwrap();
    let import = other.trainplan(&["import", folder, "--format", "json"]);
    assert_eq!(import.code, Some(1), "{}", import.stderr);
    let rows: serde_json::Value = serde_json::from_str(&import.stdout).unwrap();
    let bad: Vec<_> = rows.as_array().unwrap().iter().filter(|row| row["outcome"] == "bad_log").collect();
    assert_eq!((bad.len(), &bad[0]["id"]), (1, &made[7].run.id.to_string().into()));
    let restored = Server::at(&other);
    assert_eq!(restored.owner().all("").len(), 12);
    let logs = made.iter().filter(|made| restored.owner().offset(made.run.id).is_none()).count();
    assert_eq!(logs, 9);
}

fn exports_name_runs_with_invalid_ids_and_times(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made: Vec<Made> = (0..4).map(|run| carried(10.0 + f64::from(run), "eos")).collect();
    for made in &made {
        assert_eq!(server.owner().put(&made.run).status, 201);
    }
    let export = || {
        let backup = tempfile::tempdir().unwrap();
        let export = server.place.trainplan(&["export", backup.path().to_str().unwrap()]);
        let is_written = |made: &Made| backup.path().join(made.run.file_name()).exists();
        (export.code, export.stderr, made.iter().map(is_written).collect::<Vec<_>>())
    };
    assert_eq!(export().0, Some(0));
    let spoil = |sql: &str, made: &Made| {
        services::change(
            &server.place.address(),
            &format!("UPDATE runs SET {sql} WHERE id = '{}'", made.run.id),
        );
    };
    spoil("received_at = ''", &made[0]);
    let (code, said, written) = export();
    assert!(said.contains("1 run with an unreadable time"), "{said}");
    // Nothing is left out.
    assert_eq!((code, written), (Some(0), vec![true; 4]), "{said}");
    // PostgreSQL accepts no values of another type, and compares references.
    if kind == Kind::Local {
        spoil("received_at = X'00'", &made[0]);
        for (damage, made) in ["id = NULL", "id = X'00'", "id = upper(id)"].iter().zip(&made[1..]) {
            let sql =
                format!("PRAGMA foreign_keys = OFF; UPDATE runs SET {damage} WHERE id = '{}'", made.run.id);
            services::execute(&server.place.address(), &sql).unwrap();
        }
        let (code, said, written) = export();
        assert!(said.contains("3 runs left out") && said.contains("1 run with an unreadable time"), "{said}");
        assert_eq!((code, written), (Some(1), vec![true, false, false, false]), "{said}");
    }
}

fn the_store_is_verified(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let made: Vec<Made> = (0..4).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    let verify = |more: &[&str]| -> (Run, serde_json::Value) {
        let run = server.place.trainplan(&[&["verify-store", "--format", "json"], more].concat());
        let rows = serde_json::from_str(&run.stdout).unwrap_or_default();
        (run, rows)
    };
    let (run, rows) = verify(&[]);
    assert_eq!((run.code, rows), (Some(0), serde_json::json!([])));
    assert!(run.stderr.contains("checked 4 results and 4 logs; 0 faults"), "{}", run.stderr);
    // What was just checked is not checked again, as after an interruption.
    assert!(verify(&[]).0.stderr.contains("and 0 logs"));

    flip(&server.place, &made[1]);
    fs::remove_file(blob(&server.place, &made[3])).unwrap();
    let (run, rows) = verify(&["--skip-checked", "0"]);
    assert_eq!(run.code, Some(1));
    let mut found: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| (&row["fault"], &row["runs"][0])).collect();
    found.sort_by_key(|(fault, _)| fault.as_str().map(str::to_owned));
    let id = |made: &Made| serde_json::Value::from(made.run.id.to_string());
    assert_eq!(found, [(&"damaged".into(), &id(&made[1])), (&"missing".into(), &id(&made[3]))]);
    assert_eq!((metric(&owner, "damaged"), metric(&owner, "missing")), ("1".into(), "1".into()));
    // Faults are checked again each time, until they are gone.
    assert!(verify(&[]).0.stderr.contains("checked 4 results and 2 logs; 2 faults found"));
    for bad in [&made[1], &made[3]] {
        assert_eq!(owner.put_log(bad.run.id, 0, true, &bad.log).json()["complete"], true);
    }
    assert_eq!(verify(&["--skip-checked", "0"]).0.code, Some(0));
}

fn impossible_times_of_checks_do_not_count(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    uploaded(&server, 10.0);
    let checked = || server.place.trainplan(&["verify-store"]).stderr;
    assert!(checked().contains("and 1 log;"));
    let times: &[&str] = match kind {
        Kind::Local => &["'2999-01-01T00:00:00.000000Z'", "'soon'", "'2'", "''", "X'00'"],
        Kind::Shared => &["'2999-01-01T00:00:00.000000Z'", "'soon'", "'2'", "''"],
    };
    for at in times {
        services::change(&server.place.address(), &format!("UPDATE runs SET log_checked_at = {at}"));
        let said = checked();
        assert!(said.contains("and 1 log;"), "{at}: {said}");
        // This check counts.
        let said = checked();
        assert!(said.contains("and 0 logs;"), "{at}: {said}");
    }
}

#[test]
fn a_killed_check_continues_where_it_was_on_sqlite() {
    a_killed_check_continues_where_it_was(&Place::local());
}

#[test]
fn a_killed_check_continues_where_it_was_on_postgres() {
    a_killed_check_continues_where_it_was(&Place::local().with_database(POSTGRES.database()));
}

fn a_killed_check_continues_where_it_was(place: &Place) {
    let server = Server::at(place);
    let mut made: Vec<Made> = (0..7).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    // Logs are checked in the order of their hashes.
    made.sort_by(|one, other| one.run.source.sha256.cmp(&other.run.source.sha256));
    let [_, damaged, _, held, _, missing, _] = &made[..] else { unreachable!() };
    flip(place, damaged);
    fs::remove_file(blob(place, missing)).unwrap();
    // So that the check stays at this log.
    let (log, aside) = (blob(place, held), place.dir().join("aside"));
    fs::rename(&log, &aside).unwrap();
    write_endless(&log);
    let mut check =
        place.command(&["verify-store"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let count = |what: &str| place.number(&format!("SELECT count(*) FROM runs WHERE {what} IS NOT NULL"));
    wait_for("check of two sound logs", SOON, || (count("log_checked_at") == 2).then_some(()));
    assert_eq!(check.try_wait().unwrap(), None, "it ended before it was killed");
    check.kill().unwrap();
    check.wait().unwrap();
    fs::remove_file(&log).unwrap();
    fs::rename(&aside, &log).unwrap();
    assert_eq!((count("log_checked_at"), count("log_fault")), (2, 1));

    // The next check reads the logs that were not checked, and those with a fault.
    let verify = || -> (Run, Vec<(String, String)>) {
        let run = place.trainplan(&["verify-store", "--format", "json"]);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&run.stdout).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let mut rows: Vec<_> = rows.iter().map(|row| (text(&row["fault"]), text(&row["runs"][0]))).collect();
        rows.sort();
        (run, rows)
    };
    let (run, rows) = verify();
    assert!(run.stderr.contains("checked 7 results and 5 logs; 2 faults found"), "{}", run.stderr);
    let of = |fault: &str, made: &Made| (fault.to_owned(), made.run.id.to_string());
    assert_eq!((run.code, rows), (Some(1), vec![of("damaged", damaged), of("missing", missing)]));
    for bad in [damaged, missing] {
        assert_eq!(server.owner().put_log(bad.run.id, 0, true, &bad.log).json()["complete"], true);
    }
    let (run, rows) = verify();
    assert!(run.stderr.contains("checked 7 results and 2 logs; 0 faults found"), "{}", run.stderr);
    assert_eq!((run.code, rows), (Some(0), Vec::new()));
}

/// Runs `verify-store`; returns the rows of its output, each with its fault and its run.
pub(crate) fn verified(place: &Place) -> Vec<(String, String, String)> {
    let run = place.trainplan(&["verify-store", "--format", "json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(run.code, Some(i32::from(!rows.is_empty())), "{}", run.stderr);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    rows.iter().map(|row| (text(&row["fault"]), text(&row["runs"][0]), text(&row["detail"]))).collect()
}

fn stored_results_are_verified_and_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let made: Vec<Made> = (0..4).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    assert_eq!(verified(&server.place), []);
    let change = |sql: &str, made: &Made| {
        services::change(&server.place.address(), &format!("{sql} WHERE id = '{}'", made.run.id));
    };
    // Another run's file, one without content, and none.
    let other = format!("(SELECT file FROM results WHERE id = '{}')", made[0].run.id);
    change(&format!("UPDATE results SET file = {other}"), &made[1]);
    change("UPDATE results SET file = substr(file, 1, 20)", &made[2]);
    change("DELETE FROM results", &made[3]);
    let mut found = verified(&server.place);
    found.sort_by_key(|(_, run, _)| made.iter().position(|made| made.run.id.to_string() == *run));
    let said = ["is not the file that was uploaded", "can't be decompressed", "is missing"];
    assert_eq!(found.len(), 3, "{found:?}");
    for (((fault, run, detail), made), said) in found.iter().zip(&made[1..]).zip(said) {
        assert_eq!((fault.as_str(), run), ("damaged_result", &made.run.id.to_string()));
        assert!(detail.contains(said), "{detail}");
    }
    // The same uploads bring the files back.
    for made in &made {
        assert_eq!(owner.put(&made.run).json()["outcome"], "known");
        assert_eq!(owner.json(&format!("/runs/{}", made.run.id))["id"], made.run.id.to_string());
    }
    assert_eq!(verified(&server.place), []);
}

/// Returns bytes as a value in SQL.
fn value(kind: Kind, bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match kind {
        Kind::Local => format!("X'{digits}'"),
        Kind::Shared => format!("decode('{digits}', 'hex')"),
    }
}

/// Changes the stored file of a result.
fn replace_file(place: &Place, made: &Made, file: &str) {
    let update = format!("UPDATE results SET file = {file} WHERE id = '{}'", made.run.id);
    services::change(&place.address(), &update);
}

fn altered_results_are_not_served_compared_or_exported(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let made: Vec<Made> = (0..5).map(|run| uploaded(&server, 10.5 + f64::from(run))).collect();
    let [sound, altered, swapped, torn, missing] = &made[..] else { unreachable!() };
    // A valid result, but not the uploaded one.
    let other = String::from_utf8(file_of(&altered.run)).unwrap().replace("11.5", "5.5");
    replace_file(place, altered, &value(kind, &zstd::bulk::compress(other.as_bytes(), 3).unwrap()));
    replace_file(place, swapped, &format!("(SELECT file FROM results WHERE id = '{}')", sound.run.id));
    replace_file(place, torn, "substr(file, 1, 200)");
    services::change(&place.address(), &format!("DELETE FROM results WHERE id = '{}'", missing.run.id));
    for (bad, what) in [
        (altered, "its SHA-256 differs"),
        (swapped, "its SHA-256 differs"),
        (torn, "can't be decompressed"),
        (missing, "is missing"),
    ] {
        let path = format!("/runs/{}", bad.run.id);
        for refused in [
            owner.get(&path),
            owner.get(&format!("{path}?upload")),
            owner.ask("GET", &path, &[("accept-encoding", "zstd")], None),
            owner.get(&format!("{path}/scores")),
            owner.ask("POST", &format!("{path}/scores"), &[], Some(b"")),
            owner.get(&format!("/compare?ids={},{}", sound.run.id, bad.run.id)),
        ] {
            let detail = refused.problem(500);
            assert!(detail.contains(&bad.run.id.to_string()) && detail.contains(what), "{detail}");
        }
        let said = format!("The stored result {} is damaged", bad.run.id);
        wait_for("output about the damage", SOON, || server.output().contains(&said).then_some(()));
    }
    let bad_results = || ["damaged", "missing"].map(|fault| metric_of(&owner, "bad_results", fault));
    assert_eq!(bad_results(), ["3", "1"]);
    let result_faults = || -> Vec<Value> {
        let summaries = made.iter().map(|made| owner.json(&format!("/runs/{}/summary", made.run.id)));
        summaries.map(|summary| summary["result_fault"].clone()).collect()
    };
    let bad = [json!(null), json!("damaged"), json!("damaged"), json!("damaged"), json!("missing")];
    assert_eq!(result_faults(), bad);
    assert_eq!(owner.json("/runs")["items"][0]["result_fault"], "missing");
    assert_eq!(owner.get(&format!("/runs/{}", sound.run.id)).body, file_of(&sound.run));

    let backup = tempfile::tempdir().unwrap();
    let export = place.trainplan(&["export", backup.path().to_str().unwrap()]);
    assert_eq!(export.code, Some(1), "{}", export.stderr);
    assert!(export.stderr.contains("wrote 1 result, 5 raw logs"), "{}", export.stderr);
    for bad in &made[1..] {
        assert!(export.stderr.contains(&format!("run {}: ", bad.run.id)), "{}", export.stderr);
        assert!(!backup.path().join(bad.run.file_name()).exists());
    }
    assert_eq!(fs::read(backup.path().join(sound.run.file_name())).unwrap(), file_of(&sound.run));
    for made in &made {
        assert_eq!(owner.put(&made.run).json()["outcome"], "known");
        assert_eq!(owner.get(&format!("/runs/{}", made.run.id)).body, file_of(&made.run));
    }
    assert_eq!(bad_results(), ["0", "0"]);
    assert!(result_faults().iter().all(Value::is_null));
}

fn the_result_of_another_run_is_damage(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [bad, other] = [10.0, 11.0].map(|step_time_s| uploaded(&server, step_time_s));
    replace_file(place, &bad, &format!("(SELECT file FROM results WHERE id = '{}')", other.run.id));
    // The row has the hash of that file, too.
    let hash = format!("(SELECT sha256 FROM runs WHERE id = '{}')", other.run.id);
    let update = format!("UPDATE runs SET sha256 = {hash} WHERE id = '{}'", bad.run.id);
    services::change(&place.address(), &update);
    let (path, what) =
        (format!("/runs/{}", bad.run.id), format!("is the result of another run, {}", other.run.id));
    for refused in [
        owner.get(&path),
        owner.get(&format!("{path}/scores")),
        owner.get(&format!("/compare?ids={},{}", bad.run.id, other.run.id)),
    ] {
        let detail = refused.problem(500);
        assert!(detail.contains(&bad.run.id.to_string()) && detail.contains(&what), "{detail}");
    }
    assert_eq!(owner.json(&format!("{path}/summary"))["result_fault"], "damaged");
    let backup = tempfile::tempdir().unwrap();
    let export = place.trainplan(&["export", backup.path().to_str().unwrap()]);
    assert_eq!(export.code, Some(1), "{}", export.stderr);
    assert!(export.stderr.contains(&format!("run {}: ", bad.run.id)), "{}", export.stderr);
    assert!(!backup.path().join(bad.run.file_name()).exists());
    assert_eq!(owner.put(&bad.run).json()["outcome"], "known");
    assert_eq!(owner.get(&path).body, file_of(&bad.run));
    assert_eq!(verified(place), []);
}

fn damaged_results_are_replaced_by_uploads_and_imports(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [empty, other_hash] = [uploaded(&server, 10.0), uploaded(&server, 11.0)];
    let folder = tempfile::tempdir().unwrap();
    for is_upload in [true, false] {
        replace_file(place, &empty, &value(kind, b""));
        let id = other_hash.run.id;
        let update = format!("UPDATE runs SET sha256 = '{}' WHERE id = '{id}'", "0".repeat(64));
        services::change(&place.address(), &update);
        assert_eq!(verified(place).len(), 2);
        for made in [&empty, &other_hash] {
            let path = format!("/runs/{}", made.run.id);
            owner.get(&path).problem(500);
            owner.get(&format!("/compare?ids={}", made.run.id)).problem(500);
            if is_upload {
                assert_eq!(owner.put(&made.run).json()["outcome"], "known");
            } else {
                fs::write(folder.path().join(made.run.file_name()), file_of(&made.run)).unwrap();
                let import = place.trainplan(&["import", folder.path().to_str().unwrap()]);
                assert_eq!(import.code, Some(0), "{}", import.stderr);
            }
            assert_eq!(owner.get(&path).body, file_of(&made.run));
            assert_eq!(owner.get(&format!("/compare?ids={}", made.run.id)).status, 200);
        }
        assert_eq!(verified(place), []);
    }
}

fn a_damaged_result_is_replaced_as_a_whole(kind: Kind) {
    const RECIPE: &str = "llama3.1-8b/h100/fp8/8@25.04";
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let log = log(9.4, 50);
    let read_as = |said: &Spec| {
        let mut intake = Intake::new("train.log", said);
        intake.feed(&log);
        intake.finish()
    };
    let run = read_as(&Spec::default());
    let corrected = RunResult { id: run.id, ..read_as(&Spec::default().with(Field::Recipe, RECIPE)) };
    let path = format!("/runs/{}", run.id);
    let lose = || services::change(&place.address(), &format!("DELETE FROM results WHERE id = '{}'", run.id));
    assert_eq!(owner.put(&run).status, 201);
    assert_eq!(owner.put_log(run.id, 0, true, &log).status, 200);
    assert!(owner.put(&corrected).problem(409).contains(RECIPE));

    lose();
    let mut of_other_log = corrected.clone();
    of_other_log.source.sha256 = "0".repeat(64);
    let refused = owner.put(&of_other_log).problem(409);
    assert!(refused.contains("is damaged") && refused.contains("another log"), "{refused}");
    assert!(!refused.contains("recipe"), "{refused}");
    assert_eq!(owner.put(&corrected).json()["outcome"], "known");
    assert_eq!(owner.get(&path).body, file_of(&corrected));
    assert_eq!(owner.json(&format!("{path}/summary"))["recipe"], RECIPE);
    assert_eq!(verified(place), []);

    // A later score still counts.
    assert_eq!(owner.post(&format!("{path}/scores?model=llama3.1-8b"), &json!({})).status, 200);
    let scored = owner.json(&format!("{path}/summary"));
    assert_eq!(scored["recipe"], Value::Null);
    lose();
    assert_eq!(owner.put(&run).json()["outcome"], "known");
    assert_eq!(owner.get(&format!("{path}?upload")).body, file_of(&run));
    assert_eq!(owner.json(&format!("{path}/summary")), scored);
    assert_eq!(verified(place), []);
}

fn a_late_reader_does_not_mark_a_replaced_result(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place, made) = (server.owner(), &server.place, uploaded(&server, 9.37));
    let path = format!("/runs/{}", made.run.id);
    replace_file(place, &made, "substr(file, 1, 200)");
    let sound = value(kind, &zstd::bulk::compress(&file_of(&made.run), 3).unwrap());
    let replace = format!("UPDATE results SET file = {sound} WHERE id = '{}'", made.run.id);
    let lock: &[&str] = match kind {
        Kind::Local => &["BEGIN IMMEDIATE"],
        Kind::Shared => &["BEGIN", "SELECT id FROM runs FOR UPDATE"],
    };
    thread::scope(|scope| {
        let read = || {
            // The reader finds the damage and can't record it yet.
            scope.spawn(|| owner.get(&path));
            thread::sleep(Duration::from_secs(1));
        };
        services::change_after(&place.address(), lock, read, &replace);
    });
    assert_eq!(owner.json(&format!("{path}/summary"))["result_fault"], Value::Null);
    assert_eq!(owner.get(&path).body, file_of(&made.run));
}

fn rows_with_invalid_values_are_shown_and_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [bad, sound] = [10.0, 11.0].map(|step_time_s| uploaded(&server, step_time_s));
    let [id, sound] = [&bad, &sound].map(|made| made.run.id.to_string());
    let summary = || {
        let mut summary = owner.json(&format!("/runs/{id}/summary"));
        // A damaged time can't be restored.
        summary["received_at"] = Value::Null;
        summary["ran_at"] = Value::Null;
        summary
    };
    let before = summary();
    // PostgreSQL accepts no values of another type.
    let damages: &[&str] = match kind {
        Kind::Local => &[
            "gpus = 'abc'",
            "step_time_s = 'abc'",
            "campaign = X'00'",
            "received_at = X'00'",
            "received_at = 'soon'",
            "ran_at = ''",
            "step_time_s = -5",
            "step_time_s = 1e308",
            "mfu = 1e308",
            "gpus = 0",
            "is_comparable = 5",
            "status = 'x'",
            "convention = 'x'",
            "path = hex(zeroblob(10000))",
            "run = hex(zeroblob(500))",
            "dtype = hex(zeroblob(50000))",
            "step_time_std_kind = 'x'",
            "result_fault = 'x'",
            "sha256 = X'00'",
            "log_fault = X'00'",
            "log_sha256 = 'abc'",
            "summary_version = 'abc'",
        ],
        Kind::Shared => &[
            "log_sha256 = 'abc'",
            "received_at = 'soon'",
            "ran_at = ''",
            "step_time_s = -5",
            "step_time_s = 1e308",
            "step_time_s = 'NaN'",
            "mfu = 'Infinity'",
            "gpus = 0",
            "is_comparable = 5",
            "status = 'x'",
            "convention = 'x'",
            "path = repeat('x', 20000)",
            "run = repeat('x', 1000)",
            "dtype = repeat('x', 100000)",
            "step_time_std_kind = 'x'",
            "result_fault = 'x'",
        ],
    };
    for damage in damages {
        let spoil =
            || services::change(&place.address(), &format!("UPDATE runs SET {damage} WHERE id = '{id}'"));
        spoil();
        for query in ["limit=1", "sort=received_at&limit=1", "sort=step_time_s", "sort=-step_time_s&limit=1"]
        {
            assert!(owner.all(query).contains(&sound), "{damage}: {query}");
        }
        assert_eq!(owner.all("sort=tokens_per_s").len(), 2, "{damage}");
        assert_eq!(summary()["result_fault"], "damaged", "{damage}");
        assert_eq!(owner.get("//metrics").status, 200, "{damage}");
        let found = verified(place);
        assert_eq!((found.len(), &found[0].1), (1, &id), "{damage}: {found:?}");
        spoil();
        assert_eq!(owner.put(&bad.run).json()["outcome"], "known", "{damage}");
        assert_eq!(summary(), before, "{damage}");
        assert_eq!(owner.all("").len(), 2, "{damage}");
        assert_eq!(verified(place), [], "{damage}");
        // Also if a server starts that computes the row again.
        spoil();
        services::change(&place.address(), &format!("UPDATE runs SET summary_version = 1 WHERE id = '{id}'"));
        drop(Server::at(place));
        assert_eq!(owner.put(&bad.run).json()["outcome"], "known", "{damage}");
        assert_eq!(summary(), before, "{damage}");
    }
}

fn text_that_is_not_utf_8_damages_only_itself(kind: Kind) {
    // PostgreSQL accepts no such text.
    if kind == Kind::Shared {
        return;
    }
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [bad, sound] = [10.0, 11.0].map(|step_time_s| uploaded(&server, step_time_s));
    let [id, sound] = [&bad, &sound].map(|made| made.run.id.to_string());
    for column in ["campaign", "received_at", "sha256", "id"] {
        let spoil = || {
            let sql = format!(
                "PRAGMA foreign_keys = OFF; UPDATE runs SET {column} = CAST(X'32FF' AS TEXT) WHERE id = '{id}'"
            );
            services::execute(&place.address(), &sql).unwrap();
        };
        spoil();
        // The first request may fail.
        let listed = || owner.get("/runs?limit=10").status == 200;
        wait_for("list", SOON, || listed().then_some(()));
        assert!(owner.all("").contains(&sound), "{column}");
        assert!(server.output().contains(&format!("{column} of row ")), "{column}");
        let sums_up = |server: &Server| server.output().contains("1 text of the store ");
        wait_for("number of texts", SOON, || sums_up(&server).then_some(()));
        if column == "id" {
            break;
        }
        assert_eq!(owner.json(&format!("/runs/{id}/summary"))["result_fault"], "damaged", "{column}");
        assert_eq!(owner.put(&bad.run).json()["outcome"], "known", "{column}");
        assert_eq!(verified(place), [], "{column}");
        spoil();
        let restarted = Server::at(place);
        // The first server may have met other texts before.
        assert!(column != "campaign" || sums_up(&restarted), "{}", restarted.output());
        assert_eq!(restarted.owner().all("sort=tokens_per_s").len(), 2, "{column}");
        drop(restarted);
        assert_eq!(verified(place).len(), 1, "{column}");
    }
    let last = Server::at(place);
    assert_eq!(last.owner().all(""), [sound]);
}

fn runs_with_invalid_ids_do_not_end_lists(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let upload = |run: u32| {
        let made = carried(10.0 + f64::from(run), "eos");
        assert_eq!(owner.put(&made.run).status, 201);
        made.run.id.to_string()
    };
    let ids: Vec<String> = (0..20).map(upload).collect();
    wait_for("judgement", SOON, || (place.number("SELECT count(*) FROM unjudged") == 0).then_some(()));
    // More in a row than a page has. PostgreSQL accepts no values of another type.
    for (place_of, id) in ids.iter().enumerate().filter(|(place_of, _)| (5..15).contains(place_of)) {
        let damage = match (kind, place_of % 2) {
            (Kind::Local, 0) => format!("X'{place_of:02}'"),
            _ => format!("'run {place_of}'"),
        };
        // The files refer to the id.
        let files = format!("DELETE FROM results WHERE id = '{id}'");
        services::change(&place.address(), &files);
        services::execute(&place.address(), &format!("DELETE FROM alerts WHERE run = '{id}'")).unwrap();
        let update = format!("UPDATE runs SET id = {damage} WHERE id = '{id}'");
        services::change(&place.address(), &update);
    }
    let mut sound: Vec<&String> = ids[..5].iter().chain(&ids[15..]).collect();
    sound.sort();
    for query in [
        "",
        "limit=1",
        "limit=3",
        "limit=3&sort=received_at",
        "limit=1&sort=-step_time_s",
        "limit=2&sort=mfu",
    ] {
        let all = owner.all(query);
        let mut found: Vec<&String> = all.iter().collect();
        found.sort();
        assert_eq!(found, sound, "{query}");
    }
}

fn runs_without_an_id_or_of_a_newer_version_are_named(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let made: Vec<Made> = (0..4).map(|run| uploaded(&server, 10.0 + f64::from(run))).collect();
    wait_for("judgement", SOON, || (place.number("SELECT count(*) FROM unjudged") == 0).then_some(()));
    let id = made[0].run.id.to_string();
    let summary = owner.json(&format!("/runs/{id}/summary"));
    let newer = "UPDATE runs SET summary_version = 1000000, gpus = 7 WHERE id =";
    services::change(&place.address(), &format!("{newer} '{id}'"));
    let found = verified(place);
    assert_eq!((found.len(), found[0].0.as_str(), &found[0].1), (1, "wrong_row", &id), "{found:?}");
    assert!(found[0].2.contains("gpus") && found[0].2.contains("summary_version"), "{found:?}");
    assert_eq!(owner.json(&format!("/runs/{id}/summary")), summary);
    assert_eq!(verified(place), []);
    // PostgreSQL accepts no values of another type.
    let damages: &[&str] = match kind {
        Kind::Local => &["''", "NULL", "X'00'"],
        Kind::Shared => &["''"],
    };
    for (count, (damage, made)) in (1..).zip(damages.iter().zip(&made[1..])) {
        let id = made.run.id;
        // The files refer to the id.
        services::change(&place.address(), &format!("DELETE FROM results WHERE id = '{id}'"));
        services::execute(&place.address(), &format!("DELETE FROM alerts WHERE run = '{id}'")).unwrap();
        services::change(&place.address(), &format!("UPDATE runs SET id = {damage} WHERE id = '{id}'"));
        let found = verified(place);
        assert_eq!(found.len(), count, "{damage}: {found:?}");
        for (fault, run, detail) in found {
            assert_eq!((fault.as_str(), run.as_str()), ("damaged_result", ""), "{damage}");
            assert!(detail.contains("no valid id") && detail.contains("Its path is "), "{detail}");
        }
    }
}

/// Runs SQL without the checks of references between tables.
fn execute_unchecked(place: &Place, kind: Kind, sql: &str) {
    let unchecked = match kind {
        Kind::Local => "PRAGMA foreign_keys = OFF",
        Kind::Shared => "SET session_replication_role = replica",
    };
    services::execute(&place.address(), &format!("{unchecked}; {sql}")).unwrap();
}

fn rows_of_runs_that_are_lost_are_made_again(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [made, _other] = [uploaded(&server, 9.37), uploaded(&server, 4.98)];
    wait_for("judgement", SOON, || (place.number("SELECT count(*) FROM unjudged") == 0).then_some(()));
    let id = made.run.id;
    let path = format!("/runs/{id}");
    let summary = |is_new: bool| {
        let mut summary = owner.json(&format!("{path}/summary"));
        if is_new {
            // A lost time can't be restored.
            summary["received_at"] = Value::Null;
            summary["ran_at"] = Value::Null;
        }
        summary
    };
    let is_whole = || {
        assert_eq!(owner.get(&path).body, file_of(&made.run));
        assert_eq!(owner.get(&format!("{path}/log")).body, made.log);
        assert_eq!(owner.all("").len(), 2);
        assert_eq!(verified(place), []);
    };
    for (table, damage) in [
        ("runs", format!("DELETE FROM runs WHERE id = '{id}'")),
        ("runs", format!("UPDATE runs SET id = 'x' WHERE id = '{id}'")),
        ("runs", format!("UPDATE runs SET id = '{}' WHERE id = '{id}'", Uuid::now_v7())),
        ("results", format!("UPDATE results SET id = 'x' WHERE id = '{id}'")),
    ] {
        let is_new = damage.starts_with("DELETE");
        let before = summary(is_new);
        execute_unchecked(place, kind, &damage);
        let backup = tempfile::tempdir().unwrap();
        let export = place.trainplan(&["export", backup.path().to_str().unwrap()]);
        assert_eq!(export.code, Some(1), "{damage}: {}", export.stderr);
        assert!(export.stderr.contains("1 run left out whose rows"), "{damage}: {}", export.stderr);
        let found = verified(place);
        assert_eq!(found.len(), 1, "{damage}: {found:?}");
        assert_eq!((found[0].0.as_str(), &found[0].1), ("lost_row", &id.to_string()), "{damage}");
        assert_eq!(summary(is_new), before, "{damage}");
        is_whole();
        if table == "runs" {
            execute_unchecked(place, kind, &damage);
            assert_eq!(owner.put(&made.run).json()["outcome"], "known", "{damage}");
            assert_eq!(summary(is_new), before, "{damage}");
            is_whole();
        }
    }
    // Another result does not take its place.
    execute_unchecked(place, kind, &format!("DELETE FROM runs WHERE id = '{id}'"));
    let other = RunResult { id, ..carried(3.0, "eos").run };
    assert!(owner.put(&other).problem(409).contains("another log"));
    is_whole();
    execute_unchecked(place, kind, &format!("DELETE FROM runs WHERE id = '{id}'"));
    assert_eq!(owner.delete(&path).status, 204);
    assert_eq!(owner.put(&made.run).status, 410);
    assert_eq!(verified(place), []);
}

fn a_run_whose_row_is_lost_keeps_its_log_when_another_run_with_that_log_is_deleted(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place, made) = (server.owner(), &server.place, uploaded(&server, 9.37));
    let twin = RunResult { id: Uuid::now_v7(), ..made.run.clone() };
    assert_eq!(owner.put(&twin).status, 201);
    assert_eq!(owner.put_log(twin.id, 0, true, &made.log).json()["complete"], true);
    wait_for("judgement", SOON, || (place.number("SELECT count(*) FROM unjudged") == 0).then_some(()));
    let id = made.run.id;
    execute_unchecked(place, kind, &format!("DELETE FROM runs WHERE id = '{id}'"));
    assert_eq!(owner.delete(&format!("/runs/{}", twin.id)).status, 204);
    assert_eq!(owner.get(&format!("/runs/{id}/log")).body, made.log);
    // A row with another id is the lost one.
    let other = Uuid::now_v7();
    execute_unchecked(place, kind, &format!("UPDATE runs SET id = '{other}' WHERE id = '{id}'"));
    assert_eq!(owner.delete(&format!("/runs/{other}")).status, 404);
    assert_eq!(owner.get(&format!("/runs/{id}/log")).body, made.log);
    assert_eq!(verified(place), []);
}

fn damaged_results_whose_rows_are_lost_are_replaced(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place, made) = (server.owner(), &server.place, uploaded(&server, 9.37));
    wait_for("judgement", SOON, || (place.number("SELECT count(*) FROM unjudged") == 0).then_some(()));
    let path = format!("/runs/{}", made.run.id);
    let spoil = || {
        replace_file(place, &made, "substr(file, 1, 100)");
        execute_unchecked(place, kind, "DELETE FROM runs");
        let found = verified(place);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].0.as_str(), &found[0].1), ("damaged_result", &made.run.id.to_string()));
        assert!(found[0].2.contains("Its row is lost"), "{found:?}");
    };
    spoil();
    assert_eq!(owner.put(&made.run).status, 201);
    assert_eq!(owner.get(&path).body, file_of(&made.run));
    assert_eq!(owner.get(&format!("{path}/log")).body, made.log);
    assert_eq!(verified(place), []);
    wait_for("judgement", SOON, || (place.number("SELECT count(*) FROM unjudged") == 0).then_some(()));
    spoil();
    assert_eq!(owner.delete(&path).status, 204);
    assert_eq!(verified(place), []);
}

fn an_invalid_hash_of_a_log_is_damage(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place, made) = (server.owner(), &server.place, uploaded(&server, 9.37));
    let path = format!("/runs/{}", made.run.id);
    let spoil = || services::change(&place.address(), "UPDATE runs SET log_sha256 = '../x'");
    spoil();
    for refused in [
        owner.get(&format!("{path}/log")),
        owner.get(&format!("{path}/log/lines")),
        owner.ask("POST", &format!("{path}/scores"), &[], Some(b"")),
    ] {
        let detail = refused.problem(500);
        assert!(detail.contains(&made.run.id.to_string()) && detail.contains("is damaged"), "{detail}");
    }
    assert_eq!(owner.put_log(made.run.id, 0, true, &made.log).json()["complete"], true);
    assert_eq!(owner.get(&format!("{path}/log")).body, made.log);
    assert_eq!(verified(place), []);
    spoil();
    assert_eq!(owner.delete(&path).status, 204);
}

fn a_run_whose_row_lost_its_log_gets_it_again(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place, made) = (server.owner(), &server.place, uploaded(&server, 9.37));
    let path = format!("/runs/{}/log", made.run.id);
    services::change(&place.address(), "UPDATE runs SET log_sha256 = NULL");
    owner.get(&path).problem(404);
    let found = verified(place);
    assert_eq!((found.len(), found[0].0.as_str()), (1, "wrong_row"), "{found:?}");
    assert!(found[0].2.ends_with("computed again: log_sha256."), "{found:?}");
    assert_eq!(owner.get(&path).body, made.log);
    assert_eq!(verified(place), []);
    // A run that never had its log has no fault.
    assert_eq!(owner.put(&carried(4.98, "eos").run).status, 201);
    assert_eq!(verified(place), []);
    // The log of another run is replaced by the run's own.
    let other = format!("UPDATE runs SET log_sha256 = '{}' WHERE id = '{}'", "a".repeat(64), made.run.id);
    services::change(&place.address(), &other);
    assert_eq!(verified(place).len(), 1);
    assert_eq!(owner.get(&path).body, made.log);
}

fn the_log_of_another_run_is_not_served_or_scored(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, place) = (server.owner(), &server.place);
    let [made, other] = [uploaded(&server, 9.37), uploaded(&server, 4.98)];
    let path = format!("/runs/{}", made.run.id);
    let swap = |sha256: &str| {
        let update = format!("UPDATE runs SET log_sha256 = '{sha256}' WHERE id = '{}'", made.run.id);
        services::change(&place.address(), &update);
    };
    let spoil = || {
        swap(&other.run.source.sha256);
        for refused in [
            owner.get(&format!("{path}/log")),
            owner.get(&format!("{path}/log/lines")),
            owner.ask("POST", &format!("{path}/scores"), &[], Some(b"")),
        ] {
            let detail = refused.problem(500);
            assert!(
                detail.contains(&made.run.id.to_string()) && detail.contains("another run's log"),
                "{detail}"
            );
            assert!(detail.contains("Upload its log or its result file again"), "{detail}");
        }
        let newest = owner.json(&format!("{path}/scores"))["items"][0]["report"].clone();
        assert_eq!(newest["step_time_s"]["mean"], 9.37);
        assert_eq!(owner.offset(made.run.id), Some(0));
    };
    let is_healed = || {
        assert_eq!(owner.get(&format!("{path}/log")).body, made.log);
        assert_eq!(owner.get(&format!("{path}/log/lines")).status, 200);
        assert_eq!(owner.ask("POST", &format!("{path}/scores"), &[], Some(b"")).status, 200);
        assert_eq!(owner.offset(made.run.id), None);
    };
    // The store still has the log of the run.
    spoil();
    let backup = tempfile::tempdir().unwrap();
    let export = place.trainplan(&["export", backup.path().to_str().unwrap()]);
    assert_eq!(export.code, Some(1), "{}", export.stderr);
    assert!(!backup.path().join(format!("{}.log.zst", made.run.id)).exists());
    assert_eq!(owner.put(&made.run).json()["log"]["complete"], true);
    is_healed();
    // The log alone heals it too, in pieces.
    spoil();
    let half = made.log.len() / 2;
    assert_eq!(owner.put_log(made.run.id, 0, false, &made.log[..half]).json()["complete"], false);
    assert_eq!(owner.put_log(made.run.id, half, true, &made.log[half..]).json()["complete"], true);
    is_healed();
    // The log of the run is gone.
    spoil();
    fs::remove_file(blob(place, &made)).unwrap();
    assert_eq!(owner.put(&made.run).json()["log"]["complete"], false);
    assert_eq!(owner.put_log(made.run.id, 0, true, &made.log).json()["complete"], true);
    is_healed();
    assert_eq!(owner.get(&format!("/runs/{}/log", other.run.id)).body, other.log);
}

fn lines_of_a_replaced_log_are_not_shown(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), uploaded(&server, 9.37));
    let path = format!("/runs/{}/log/lines?count=1", made.run.id);
    assert_eq!(owner.get(&path).status, 200);
    let other = String::from_utf8(made.log.clone()).unwrap().replace("9.37", "1.5");
    fs::write(blob(&server.place, &made), zstd::encode_all(other.as_bytes(), 3).unwrap()).unwrap();
    let detail = owner.get(&path).problem(500);
    assert!(detail.contains("is damaged"), "{detail}");
    assert_eq!(fault(&owner, &made), "damaged");
    assert_eq!(owner.put_log(made.run.id, 0, true, &made.log).json()["complete"], true);
    assert_eq!(owner.json(&path)["items"][0]["line"], 1);
}

fn a_log_is_not_read_on_for_a_client_that_left(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made = uploaded(&server, 10.0);
    write_endless(&blob(&server.place, &made));
    for path in ["log/lines?q=x", "log/lines?from=999999", "log"] {
        let mut wire = server.wire();
        let request = format!("GET /api/v1/runs/{}/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n", made.run.id);
        wire.write_all(request.as_bytes()).unwrap();
        let before = server.processor_ticks();
        wait_for("reading", SOON, || (server.processor_ticks() > before + 20).then_some(()));
        drop(wire);
        wait_for("end of reading", SOON, || {
            let before = server.processor_ticks();
            thread::sleep(Duration::from_millis(300));
            (server.processor_ticks() <= before + 2).then_some(())
        });
    }
}

fn an_imported_run_gets_a_log_that_the_store_has(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, first) = (server.owner(), uploaded(&server, 9.37));
    let folder = tempfile::tempdir().unwrap();
    let second = carried(9.37, "eos");
    assert_eq!(second.run.source.sha256, first.run.source.sha256);
    fs::write(folder.path().join(second.run.file_name()), file_of(&second.run)).unwrap();
    let import = server.place.trainplan(&["import", folder.path().to_str().unwrap()]);
    assert_eq!(import.code, Some(0), "{}", import.stderr);
    assert_eq!(owner.get(&format!("/runs/{}/log", second.run.id)).body, second.log);
}

#[test]
fn a_pipe_or_folder_in_the_place_of_a_log_is_no_log() {
    let server = Server::start();
    let owner = server.owner();
    let made = [uploaded(&server, 10.0), uploaded(&server, 11.0)];
    let places = [0, 1].map(|run| blob(&server.place, &made[run]));
    for place in &places {
        fs::remove_file(place).unwrap();
    }
    assert!(Command::new("mkfifo").arg(&places[0]).status().unwrap().success());
    fs::create_dir_all(places[1].join("other")).unwrap();
    for made in &made {
        let path = format!("/runs/{}/log", made.run.id);
        for path in [path.clone(), format!("{path}/lines")] {
            let detail = owner.get(&path).problem(500);
            assert!(detail.contains("is missing"), "{detail}");
        }
    }
    let faults: Vec<_> = verified(&server.place).into_iter().map(|(fault, ..)| fault).collect();
    assert_eq!(faults, ["missing", "missing"]);
    for made in &made {
        assert_eq!(owner.put_log(made.run.id, 0, true, &made.log).json()["complete"], true);
        assert_eq!(owner.get(&format!("/runs/{}/log", made.run.id)).body, made.log);
    }
    assert_eq!(verified(&server.place), []);
    // What was in the folder may be somebody's.
    let beside = fs::read_dir(places[1].parent().unwrap()).unwrap().flatten();
    let moved: Vec<_> =
        beside.filter(|entry| entry.file_name().to_string_lossy().contains(".moved-")).collect();
    assert!(moved.len() == 1 && moved[0].path().join("other").is_dir(), "{moved:?}");
}

/// Overwrites the first page of an index in an SQLite file that no program has open.
fn destroy_index(place: &Place, index: &str) {
    let page = place.number(&format!("SELECT rootpage FROM sqlite_schema WHERE name = '{index}'"));
    // The last connection that is closed moves all pages into the file.
    let size = place.number("SELECT page_size FROM pragma_page_size");
    let mut file = fs::OpenOptions::new().write(true).open(place.dir().join("store.sqlite")).unwrap();
    file.seek(SeekFrom::Start(u64::try_from((page - 1) * size).unwrap())).unwrap();
    file.write_all(&vec![0xff_u8; usize::try_from(size).unwrap()]).unwrap();
}

#[test]
fn a_damaged_index_of_sqlite_is_named_and_nothing_is_lost() {
    for index in ["runs_by_mfu", "runs_by_summary", "sqlite_autoindex_runs_1", "sqlite_autoindex_results_1"] {
        let server = Server::start();
        let place = server.place.clone();
        let made = [uploaded(&server, 10.0), uploaded(&server, 11.0)];
        drop(server);
        destroy_index(&place, index);
        let found = verified(&place);
        assert_eq!((found.len(), found[0].0.as_str()), (1, "database"), "{index}: {found:?}");
        assert!(found[0].2.contains("SQLite finds damage"), "{index}: {found:?}");
        assert!(found[0].2.contains("`trainplan export FOLDER`"), "{index}: {found:?}");

        let (backup, other) = (tempfile::tempdir().unwrap(), Place::local());
        let folder = backup.path().to_str().unwrap();
        let export = place.trainplan(&["export", folder]);
        assert_eq!(export.code, Some(1), "{index}: {}", export.stderr);
        assert!(export.stderr.contains("wrote 2 results, 2 raw logs"), "{index}: {}", export.stderr);
        assert!(export.stderr.contains("The database file is damaged"), "{index}: {}", export.stderr);
        // The copy of the tables is removed.
        assert_eq!(services::files(backup.path()).len(), 4, "{index}");
        let import = other.trainplan(&["import", folder]);
        assert_eq!(import.code, Some(0), "{index}: {}", import.stderr);
        let restored = Server::at(&other);
        for made in &made {
            let path = format!("/runs/{}", made.run.id);
            assert_eq!(restored.owner().get(&path).body, file_of(&made.run), "{index}");
            assert_eq!(restored.owner().get(&format!("{path}/log")).body, made.log, "{index}");
        }
    }
}

fn rows_that_disagree_with_their_results_are_computed_again(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), uploaded(&server, 9.37));
    let summary = owner.json(&format!("/runs/{}/summary", made.run.id));
    services::change(
        &server.place.address(),
        "UPDATE runs SET step_time_s = 1.5, campaign = 'other', mfu = NULL",
    );
    assert_ne!(owner.json(&format!("/runs/{}/summary", made.run.id)), summary);
    let found = verified(&server.place);
    assert_eq!((found.len(), found[0].0.as_str()), (1, "wrong_row"));
    assert!(found[0].2.contains("campaign, step_time_s, mfu"), "{found:?}");
    assert_eq!(owner.json(&format!("/runs/{}/summary", made.run.id)), summary);
    assert_eq!(verified(&server.place), []);
    // A log of another result is not this one's.
    let other = format!("UPDATE runs SET log_sha256 = '{}'", "a".repeat(64));
    services::change(&server.place.address(), &other);
    assert!(verified(&server.place)[0].2.contains("log_sha256"));
    assert_eq!(owner.put(&made.run).json()["log"]["complete"], true);
    assert_eq!(owner.get(&format!("/runs/{}/log", made.run.id)).body, made.log);
}

/// Writes a result of an older version, which accepted a step time of 0.
fn write_old(folder: &Path, made: &Made) -> PathBuf {
    let mut file: serde_json::Value = serde_json::from_slice(&file_of(&made.run)).unwrap();
    file["log"]["steps"]["step_time_s"][0] = 0.0.into();
    let path = folder.join(format!("{}.result.json", made.run.id));
    fs::write(&path, file.to_string()).unwrap();
    path
}

fn old_results_are_imported_as_far_as_they_are_sound(kind: Kind) {
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::new(kind));
    let folder = folder.path();
    let write_log = |made: &Made, log: &[u8]| {
        let path = folder.join(format!("{}.log.zst", made.run.id));
        fs::write(path, zstd::encode_all(log, 3).unwrap()).unwrap();
    };
    let made: Vec<Made> = (0..5).map(|run| carried(10.0 + f64::from(run), "eos")).collect();
    let [with_log, without_log, other_log, bad_score, sound] = &made[..] else { unreachable!() };
    for old in [with_log, without_log, other_log] {
        write_old(folder, old);
    }
    write_log(with_log, &with_log.log);
    write_log(other_log, &log(1.0, 50));
    for sound in [bad_score, sound] {
        fs::write(folder.join(sound.run.file_name()), file_of(&sound.run)).unwrap();
    }
    fs::copy(write_old(folder, bad_score), folder.join(format!("{}.score.json", bad_score.run.id))).unwrap();
    fs::write(folder.join(bad_score.run.file_name()), file_of(&bad_score.run)).unwrap();
    fs::write(folder.join("torn.result.json"), "{").unwrap();
    let import = || -> (Run, Vec<(String, String, String)>) {
        let run = place.trainplan(&["import", folder.to_str().unwrap(), "--format", "json"]);
        let rows: Vec<serde_json::Value> = serde_json::from_str(&run.stdout).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let rows = rows.iter().map(|row| (text(&row["id"]), text(&row["outcome"]), text(&row["reason"])));
        (run, rows.collect())
    };
    let (run, rows) = import();
    assert_eq!((run.code, rows.len()), (Some(1), 6), "{}", run.stderr);
    assert!(run.stderr.contains("3 of 6 results are in the store"), "{}", run.stderr);
    for (made, outcome, reason) in [
        (with_log, "remade", "made again from its log, because log.steps.step_time_s must be"),
        (without_log, "invalid", "log.steps.step_time_s must be"),
        (other_log, "invalid", "log.steps.step_time_s must be"),
        (bad_score, "bad_score", "stored without its later score"),
        (sound, "new", ""),
    ] {
        let (_, is, why) = rows.iter().find(|(id, ..)| *id == made.run.id.to_string()).unwrap();
        assert!(is == outcome && why.contains(reason), "{outcome}: {is} {why}");
    }
    let server = Server::at(&place);
    let owner = server.owner();
    let remade = owner.json(&format!("/runs/{}", with_log.run.id));
    assert_eq!(
        (&remade["carried"]["campaign"], &remade["log"]["steps"]["step_time_s"][0]),
        (&"nightly".into(), &10.0.into())
    );
    assert_eq!(owner.get(&format!("/runs/{}/log", with_log.run.id)).body, with_log.log);
    assert_eq!(owner.all("").len(), 3);
    let again = import().1;
    let known = again.iter().filter(|(_, outcome, _)| outcome == "known").count();
    assert_eq!((known, owner.all("").len()), (2, 3), "{again:?}");
}

fn a_log_beside_a_result_has_a_maximum(kind: Kind) {
    let (folder, place) = (tempfile::tempdir().unwrap(), Place::new(kind));
    let made = [carried(10.0, "eos"), carried(11.0, "eos")];
    let beside = |made: &Made| folder.path().join(format!("{}.log.zst", made.run.id));
    for made in &made {
        fs::write(folder.path().join(made.run.file_name()), file_of(&made.run)).unwrap();
        fs::write(beside(made), zstd::encode_all(&made.log[..], 3).unwrap()).unwrap();
    }
    // This frame claims that reading it takes 64 MiB of memory.
    let mut wide = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    wide.window_log(26).unwrap();
    wide.write_all(&made[1].log).unwrap();
    fs::write(beside(&made[1]), wide.finish().unwrap()).unwrap();
    let import = |most: &str| -> Vec<String> {
        let folder = folder.path().to_str().unwrap();
        let run = place.trainplan(&["import", folder, "--format", "json", "--max-log-bytes", most]);
        let rows: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        rows.as_array()
            .unwrap()
            .iter()
            .map(|row| row["reason"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    for reason in import("1000") {
        assert!(reason.contains("more than 1,000 bytes") || reason.contains("memory"), "{reason}");
    }
    assert_eq!(place.blobs(), [""; 0]);
    let reasons: Vec<_> = import("100000").into_iter().filter(|reason| !reason.is_empty()).collect();
    assert!(reasons.len() == 1 && reasons[0].contains("memory"), "{reasons:?}");
    assert_eq!(place.blobs().len(), 1);
    let server = Server::at(&place);
    assert_eq!((server.owner().all("").len(), server.owner().offset(made[0].run.id)), (2, None));
}
