//! The store does not grow by what nobody needs: pieces of abandoned uploads, old reports, refused and repeated requests.

use crate::harness::{
    Client, Kind, Made, Place, SOON, Server, carried, digest, file_of, on_every_store, progress, wait_for,
};
use crate::services::{change, execute};
use serde_json::{Value, json};
use std::fs::File;
use std::thread;
use std::time::{Duration, SystemTime};
use uuid::Uuid;

on_every_store! {
    abandoned_uploads_and_logs_without_runs_are_deleted
    old_reports_changes_and_links_are_deleted
    a_deleted_run_leaves_one_row_whatever_is_sent_later
    repeated_and_refused_requests_store_nothing
    small_pieces_and_reports_use_up_a_quota
    a_creator_has_a_limited_number_of_share_links
}

/// Returns the number of rows of each table.
fn rows(place: &Place) -> Vec<(&'static str, i64)> {
    let tables = [
        "runs",
        "results",
        "scores",
        "progress",
        "unjudged",
        "alerts",
        "deliveries",
        "shares",
        "deletions",
        "changes",
        "uploaded",
        "tokens",
    ];
    tables.map(|table| (table, place.number(&format!("SELECT count(*) FROM {table}")))).into()
}

/// Returns the number of rows of a table.
fn count(place: &Place, table: &str) -> i64 {
    place.number(&format!("SELECT count(*) FROM {table}"))
}

/// Returns the names of the files of logs and pieces, in order.
fn blobs(place: &Place) -> Vec<String> {
    let mut blobs = place.blobs();
    blobs.sort();
    blobs
}

/// Waits until all runs are judged: judging stores alerts.
fn wait_for_judgement(place: &Place) {
    wait_for("judgement", SOON, || (count(place, "unjudged") == 0).then_some(()));
}

/// Returns the time of this many days ago, as the store writes it.
fn days_ago(days: i64) -> String {
    format!("{:.6}", jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days))
}

/// Makes the files whose names contain a text this many days old.
fn age(place: &Place, text: &str, days: u64) {
    let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
    let names: Vec<String> = place.blobs().into_iter().filter(|name| name.contains(text)).collect();
    assert!(!names.is_empty(), "no file of {text}");
    for name in names {
        let file = File::options().write(true).open(place.blob_folder().join(name)).unwrap();
        file.set_modified(then).unwrap();
    }
}

fn has_blob(place: &Place, text: &str) -> bool {
    place.blobs().iter().any(|name| name.contains(text))
}

fn abandoned_uploads_and_logs_without_runs_are_deleted(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let [abandoned, recent, stored, lost, unnamed] =
        [10.0, 11.0, 12.0, 13.0, 14.0].map(|seconds| carried(seconds, "eos"));
    let owner = server.owner();
    for made in [&abandoned, &recent] {
        assert_eq!(owner.put(&made.run).status, 201);
        assert_eq!(owner.put_log(made.run.id, 0, false, &made.log[..500]).status, 200);
    }
    for made in [&stored, &lost, &unnamed] {
        owner.put_all(made);
    }
    wait_for_judgement(&server.place);
    // As after an interrupted deletion.
    change(&server.place.address(), &format!("DELETE FROM runs WHERE id = '{}'", lost.run.id));
    // The result of this run still names its log.
    let update = format!("UPDATE runs SET log_sha256 = NULL WHERE id = '{}'", unnamed.run.id);
    change(&server.place.address(), &update);
    for (text, days) in [
        (abandoned.run.id.to_string(), 8),
        (recent.run.id.to_string(), 6),
        (stored.run.source.sha256.clone(), 100),
        (lost.run.source.sha256.clone(), 2),
        (unnamed.run.source.sha256.clone(), 2),
    ] {
        age(&server.place, &text, days);
    }
    let server = server.again();
    let (owner, place) = (server.owner(), &server.place);
    wait_for("end of the pieces", SOON, || (owner.offset(abandoned.run.id) == Some(0)).then_some(()));
    wait_for("end of the log", SOON, || (!has_blob(place, &lost.run.source.sha256)).then_some(()));
    assert!(!has_blob(place, &abandoned.run.id.to_string()), "{:?}", place.blobs());
    for kept in [&stored, &unnamed] {
        assert_eq!(owner.get(&format!("/runs/{}/log", kept.run.id)).body, kept.log);
    }
    // The other upload continues, and the abandoned one restarts.
    assert_eq!(owner.offset(recent.run.id), Some(500));
    assert_eq!(owner.put_log(recent.run.id, 500, true, &recent.log[500..]).status, 200);
    assert_eq!(owner.put_log(abandoned.run.id, 0, true, &abandoned.log).status, 200);
    assert_eq!(place.blobs().len(), 4);
}

fn old_reports_changes_and_links_are_deleted(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(12.0, "eos"));
    let uploader = server.by(&server.place.token("upload", &[]));
    assert_eq!(uploader.put(&made.run).status, 201);
    wait_for_judgement(&server.place);
    let [old, recent] = [Uuid::now_v7(), Uuid::now_v7()];
    for id in [old, recent] {
        assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(1)).status, 204);
    }
    let share = || owner.post("/shares", &json!({ "ids": [made.run.id], "expires_in_days": 1 })).json();
    let [expired, active] = [share(), share()].map(|share| share["id"].as_str().unwrap().to_owned());
    let (address, past) = (server.place.address(), days_ago(2));
    change(&address, &format!("UPDATE progress SET received_at = '{past}' WHERE id = '{old}'"));
    change(&address, &format!("UPDATE shares SET expires_at = '{past}' WHERE id = '{expired}'"));
    change(&address, &format!("UPDATE uploaded SET day = '{}'", &past[..10]));
    let newest = server.place.number("SELECT max(seq) FROM changes");
    execute(&address, &format!("UPDATE changes SET at = '{past}'")).unwrap();

    let server = server.again();
    let (owner, place) = (server.owner(), &server.place);
    wait_for("end of the report", SOON, || (count(place, "progress") == 1).then_some(()));
    wait_for("end of the link", SOON, || (count(place, "shares") == 1).then_some(()));
    wait_for("end of the day", SOON, || (count(place, "uploaded") == 0).then_some(()));
    // The newest change may stay, so that later ones have larger numbers.
    let old_changes = format!("SELECT count(*) FROM changes WHERE at = '{past}'");
    wait_for("end of the changes", SOON, || (place.number(&old_changes) <= 1).then_some(()));
    assert_eq!(owner.json("/progress")["items"][0]["id"], recent.to_string());
    assert_eq!(owner.json("/shares")["items"][0]["id"], active);
    let mut events = owner.watch(Some(newest));
    assert_eq!(owner.post(&format!("/runs/{recent}/progress"), &progress(2)).status, 204);
    let (seq, ..) = events.next().unwrap();
    assert!(seq > newest, "{seq} after {newest}");
}

/// Asserts that requests change no table and no file.
fn assert_stores_nothing(server: &Server, requests: impl Fn()) {
    wait_for_judgement(&server.place);
    let before = (rows(&server.place), blobs(&server.place));
    for _ in 0..5 {
        requests();
    }
    wait_for_judgement(&server.place);
    assert_eq!((rows(&server.place), blobs(&server.place)), before);
}

fn a_deleted_run_leaves_one_row_whatever_is_sent_later(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(12.0, "eos"));
    let path = format!("/runs/{}", made.run.id);
    owner.put_all(&made);
    wait_for_judgement(&server.place);
    for round in 1..=2 {
        assert_eq!(owner.delete(&path).status, 204);
        for (table, count) in rows(&server.place) {
            match table {
                "changes" => {}
                "deletions" => assert_eq!(count, 1, "round {round}"),
                _ => assert_eq!(count, 0, "{table}, round {round}"),
            }
        }
        assert_stores_nothing(&server, || {
            owner.put(&made.run).problem(410);
            owner.put_log(made.run.id, 0, true, &made.log).problem(410);
            owner.post(&format!("{path}/scores"), &json!({})).problem(404);
            owner.delete(&path).problem(404);
            // What was never stored leaves nothing.
            let other = format!("/runs/{}", Uuid::now_v7());
            owner.delete(&other).problem(404);
            owner.post(&format!("{other}/restore"), &Value::Null).problem(404);
        });
        assert_eq!(owner.post(&format!("{path}/restore"), &Value::Null).status, 204);
        assert_eq!(count(&server.place, "deletions"), 0);
        owner.put_all(&made);
        wait_for_judgement(&server.place);
    }
}

fn repeated_and_refused_requests_store_nothing(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made, half) = (server.owner(), carried(12.0, "eos"), carried(11.0, "eos"));
    owner.put_all(&made);
    assert_eq!(owner.put(&half.run).status, 201);
    let (id, path) = (made.run.id, format!("/runs/{}", made.run.id));
    let other = carried(13.0, "eos").run.of_run(id, made.run.carried.clone().unwrap());
    let put =
        |body: &[u8], digest: &str| owner.ask("PUT", &path, &[("content-digest", digest)], Some(body)).status;
    // The first new score may differ from the upload.
    assert_eq!(owner.post(&format!("{path}/scores"), &json!({})).status, 200);
    assert_stores_nothing(&server, || {
        // Repeated.
        assert_eq!(owner.put(&made.run).json()["outcome"], "known");
        assert_eq!(owner.put_log(id, 0, true, &made.log).json()["complete"], true);
        assert_eq!(owner.post(&format!("{path}/scores"), &json!({})).status, 200);
        assert_eq!(owner.post(&format!("{path}/progress"), &progress(1)).status, 204);
        // Refused.
        owner.put(&other).problem(409);
        assert_eq!(put(&file_of(&made.run), &digest(b"")), 400);
        assert_eq!(put(b"{}", &digest(b"{}")), 422);
        // The pieces of another log are discarded.
        owner.put_log(half.run.id, 0, true, &made.log).problem(422);
        owner.put_log(half.run.id, 9, true, &half.log).problem(409);
        owner.put_log(Uuid::now_v7(), 0, true, &made.log).problem(404);
        owner.post("/tokens", &json!({ "name": "", "scope": "read" })).problem(422);
        owner.post("/shares", &json!({ "ids": [Uuid::now_v7()], "expires_in_days": 1 })).problem(404);
        server.anyone().put(&carried(14.0, "eos").run).problem(401);
    });
}

/// Returns the number of requests until one is refused because the quota is used up.
fn until_used_up(what: &str, mut ask: impl FnMut() -> crate::harness::Answer) -> usize {
    for taken in 0..20 {
        let answer = ask();
        if answer.status >= 300 {
            assert!(answer.problem(429).contains("per day"), "{what}");
            assert!(answer.header("retry-after").is_some(), "{what}");
            return taken;
        }
    }
    panic!("{what} use up no quota");
}

/// A piece of a log counts with the block that its file occupies, and a report with its bytes.
fn small_pieces_and_reports_use_up_a_quota(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let Made { run, log } = carried(12.0, "eos");
    assert_eq!(server.owner().put(&run).status, 201);
    let with =
        |bytes: &str| -> Client { server.by(&server.place.token("upload", &["--quota-bytes", bytes])) };
    let token = with("20000");
    let mut sent = 0;
    let pieces = until_used_up("pieces", || {
        sent += 1;
        token.put_log(run.id, sent - 1, false, &log[sent - 1..sent])
    });
    assert_eq!(pieces, 4);
    let before = blobs(&server.place);
    for _ in 0..5 {
        let offset = server.owner().offset(run.id).unwrap();
        token.put_log(run.id, offset, false, &log[offset..=offset]).problem(429);
    }
    assert_eq!(blobs(&server.place), before);

    let token = with("2000");
    let report = || token.post(&format!("/runs/{}/progress", Uuid::now_v7()), &progress(1));
    let reports = until_used_up("reports", report);
    assert_eq!(count(&server.place, "progress"), reports as i64);
}

fn a_creator_has_a_limited_number_of_share_links(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, run) = (server.owner(), carried(12.0, "eos").run);
    assert_eq!(owner.put(&run).status, 201);
    let share = |client: &Client| client.post("/shares", &json!({ "ids": [run.id], "expires_in_days": 1 }));
    let reader = server.by(&server.place.token("read", &[]));
    let (now, later, address) = (days_ago(0), days_ago(-1), server.place.address());
    let many = format!(
        "INSERT INTO shares (id, sha256, runs, created_by, created_at, expires_at) \
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999) \
         SELECT 'share' || n, 'hash' || n, '{}', 'owner', '{now}', '{later}' FROM numbers",
        run.id
    );
    execute(&address, &many).unwrap();
    // Of several requests at once, one is the last.
    let statuses: Vec<u16> = thread::scope(|scope| {
        let requests = [0; 8].map(|_| scope.spawn(|| share(&owner).status));
        requests.into_iter().map(|request| request.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1, "{statuses:?}");
    assert!(share(&owner).problem(409).contains("1000 active share links"));
    assert_eq!(share(&reader).status, 201);
    assert_eq!(count(&server.place, "shares"), 1001);
    // Expired links don't count.
    execute(&address, &format!("UPDATE shares SET expires_at = '{now}' WHERE id LIKE 'share%'")).unwrap();
    assert_eq!(share(&owner).status, 201);
}
