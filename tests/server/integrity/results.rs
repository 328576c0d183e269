//! Damaged and missing files of results.

use super::{metric_of, replace_file, uploaded, value, verified};
use crate::harness::{Kind, Made, Place, SOON, Server, carried, file_of, log, on_every_store, wait_for};
use crate::services;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use trainplan_shared::field::Field;
use trainplan_shared::result::{Intake, RunResult};
use trainplan_shared::spec::Spec;
use trainplan_tests::Run;

on_every_store! {
    stored_results_are_verified_and_replaced
    altered_results_are_not_served_compared_or_exported
    the_result_of_another_run_is_damage
    damaged_results_are_replaced_by_uploads_and_imports
    a_damaged_result_is_replaced_as_a_whole
    a_late_reader_does_not_mark_a_replaced_result
    old_results_are_imported_as_far_as_they_are_sound
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
    let refused = owner.put(&of_other_log).problem(422);
    assert!(refused.contains("id must be that of the log"), "{refused}");
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
        (with_log, "remade", "recreated from its log, because log.steps.step_time_s must be"),
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
