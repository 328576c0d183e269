//! Damaged, lost and misplaced rows of runs.

use super::{blob, execute_unchecked, replace_file, uploaded, verified};
use crate::harness::{Kind, Made, Place, SOON, Server, carried, file_of, on_every_store, wait_for};
use crate::services;
use serde_json::Value;
use std::fs;
use trainplan_shared::result::RunResult;
use uuid::Uuid;

on_every_store! {
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
    rows_that_disagree_with_their_results_are_computed_again
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
            "gpus = 5.5",
            "gpus = 9e999",
            "repeat = X'00'",
            "mfu = X'00'",
            "step_time_s = 9e999",
            "campaign = X'00'",
            "received_at = X'00'",
            "received_at = 'soon'",
            "ran_at = ''",
            "step_time_s = -5",
            "step_time_s = 1e308",
            "judged_s = 'abc'",
            "judged_s = 9e999",
            "judged_s = -5",
            "job = -1",
            "reason = hex(zeroblob(5000))",
            "mfu = 1e308",
            "gpus = 0",
            "is_comparable = 5",
            "status = 'x'",
            "convention = 'x'",
            "path = hex(zeroblob(10000))",
            "run = hex(zeroblob(500))",
            "dtype = hex(zeroblob(50000))",
            "step_time_std_kind = 'x'",
            "ending = 'x'",
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
            "judged_s = 'NaN'",
            "judged_s = -5",
            "job = -1",
            "reason = repeat('x', 5000)",
            "mfu = 'Infinity'",
            "gpus = 0",
            "is_comparable = 5",
            "status = 'x'",
            "convention = 'x'",
            "path = repeat('x', 20000)",
            "run = repeat('x', 1000)",
            "dtype = repeat('x', 100000)",
            "step_time_std_kind = 'x'",
            "ending = 'x'",
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
        let listed = owner.json("/runs?sort=tokens_per_s");
        let listed = listed["items"].as_array().unwrap();
        assert_eq!(listed.len(), 2, "{damage}");
        let listed = listed.iter().find(|run| run["id"] == id);
        assert_eq!(listed, Some(&owner.json(&format!("/runs/{id}/summary"))), "{damage}");
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
        assert!(export.stderr.contains("1 run left out: no row"), "{damage}: {}", export.stderr);
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
