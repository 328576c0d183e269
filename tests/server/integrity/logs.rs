//! Damaged and missing raw logs.

use super::{blob, fault, flip, metric, uploaded, verified, write_endless};
use crate::harness::{
    Kind, Made, Place, SOON, Server, carried, file_of, log, made, on_every_store, wait_for,
};
use std::fs;
use std::io::Write;
use std::process::Command;
use std::thread;
use std::time::Duration;

on_every_store! {
    damaged_logs_are_refused_reported_and_replaced
    missing_logs_are_refused_reported_and_replaced
    a_log_with_the_content_of_another_is_not_scored
    an_upload_replaces_damage_that_nobody_noticed
    a_new_run_of_a_damaged_log_brings_the_log_again
    stored_logs_have_checksums
    lines_of_a_replaced_log_are_not_shown
    a_log_is_not_read_on_for_a_client_that_left
    an_imported_run_gets_a_log_that_the_store_has
    a_log_beside_a_result_has_a_maximum
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
    // The files in the folder may belong to someone.
    let beside = fs::read_dir(places[1].parent().unwrap()).unwrap().flatten();
    let moved: Vec<_> =
        beside.filter(|entry| entry.file_name().to_string_lossy().contains(".moved-")).collect();
    assert!(moved.len() == 1 && moved[0].path().join("other").is_dir(), "{moved:?}");
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
