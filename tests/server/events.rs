//! Progress of unfinished runs, and the event stream.

use crate::harness::{Kind, Place, SOON, Server, carried, made, on_every_store, progress, wait_for};
use crate::services::{POSTGRES, change, change_after};
use serde_json::json;
use std::time::{Duration, Instant};
use uuid::Uuid;

on_every_store! {
    progress_is_listed_until_the_result_is_stored
    ended_runs_without_a_result_are_over
    watchers_receive_events_and_can_resume
    watchers_who_missed_too_much_are_told_to_reload
    watchers_ahead_of_the_server_are_told_to_reload
    watchers_who_change_servers_get_no_event_twice
    watchers_whose_next_events_are_deleted_are_told_to_reload
    watchers_are_told_to_reload_for_a_damaged_change
    an_event_stream_ends_with_its_token
    event_streams_have_a_limit_for_each_caller_and_for_all
}

fn progress_is_listed_until_the_result_is_stored(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    let path = format!("/runs/{}/progress", made.run.id);
    for step in [1, 7] {
        assert_eq!(owner.post(&path, &progress(step)).status, 204);
    }
    let live = owner.json("/progress");
    assert_eq!(live["items"].as_array().unwrap().len(), 1);
    assert_eq!(live["items"][0]["id"], made.run.id.to_string());
    assert_eq!(live["items"][0]["step"], 7);
    assert_eq!(owner.put(&made.run).status, 201);
    assert_eq!(owner.json("/progress")["items"], json!([]));
    // Late reports about a finished run are ignored.
    assert_eq!(owner.post(&path, &progress(8)).status, 204);
    assert_eq!(owner.json("/progress")["items"], json!([]));
}

fn ended_runs_without_a_result_are_over(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    for (state, is_over) in
        [("running", false), ("unknown", false), ("cancelled", true), ("out_of_memory", true)]
    {
        let mut word = progress(7);
        word["state"] = json!(state);
        assert_eq!(owner.post(&format!("/runs/{}/progress", Uuid::now_v7()), &word).status, 204);
        let live = owner.json("/progress");
        assert_eq!(
            (&live["items"][0]["state"], &live["items"][0]["is_over"]),
            (&json!(state), &json!(is_over))
        );
    }
}

fn watchers_receive_events_and_can_resume(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), carried(10.0, "eos"));
    let id = made.run.id.to_string();
    let mut events = owner.watch(None);
    let of = |kind: &str| (kind.to_owned(), id.clone());
    assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(1)).status, 204);
    let (first, kind, _) = events.next().unwrap();
    assert_eq!(kind, "progress");
    assert_eq!(owner.put(&made.run).status, 201);
    assert_eq!(events.told(), of("run"));
    assert_eq!(owner.put_log(made.run.id, 0, true, &made.log).status, 200);
    assert_eq!(events.told(), of("run"));
    // Earlier changes are not events.
    assert_eq!(owner.put(&made.run).status, 200);
    assert_eq!(owner.delete(&format!("/runs/{id}")).status, 204);
    assert_eq!(events.told(), of("deleted"));
    let other = carried(10.0, "eos").run;
    assert_eq!(owner.put(&other).status, 201);
    assert_eq!(events.told(), ("run".to_owned(), other.id.to_string()));

    let mut back = owner.watch(Some(first));
    let missed: Vec<(String, String)> = (0..4).map(|_| back.told()).collect();
    assert_eq!(missed, [of("run"), of("run"), of("deleted"), ("run".to_owned(), other.id.to_string())]);
    // Later events follow.
    assert_eq!(owner.delete(&format!("/runs/{}", other.id)).status, 204);
    assert_eq!(back.told(), ("deleted".to_owned(), other.id.to_string()));
    server.tell_to_end();
    // The streams end with the server.
    for events in [&mut back, &mut events] {
        while events.next().is_some() {}
    }
    assert!(server.wait());
}

/// In SQLite, changes are committed in the order of their numbers.
#[test]
fn a_resumed_stream_has_changes_that_are_committed_late() {
    let server = Server::at(&Place::local().with_database(POSTGRES.database()));
    let (owner, [first, second]) = (server.owner(), [0; 2].map(|_| carried(12.0, "eos").run));
    let mut events = owner.watch(None);
    assert_eq!(owner.put(&first).status, 201);
    let (seq, ..) = events.next().unwrap();
    let late = "INSERT INTO changes (at, kind, id) VALUES ('2199-01-01T00:00:00.000000Z', 'run', 'late')";
    let mut resumed = None;
    let resume = || {
        assert_eq!(owner.put(&second).status, 201);
        let mut events = owner.watch(Some(seq));
        assert_eq!(events.told(), ("run".to_owned(), second.id.to_string()));
        resumed = Some(events);
    };
    change_after(&server.place.address(), &["BEGIN", late], resume, "SELECT 1");
    for events in [&mut events, &mut resumed.unwrap()] {
        wait_for("the late change", SOON, || (events.told().1 == "late").then_some(()));
    }
}

/// The change is committed after the watcher left with the id of a later one, and before it comes back.
#[test]
fn a_watcher_who_comes_back_gets_what_was_committed_late() {
    let server = Server::at(&Place::local().with_database(POSTGRES.database()));
    let (owner, [first, second, third]) = (server.owner(), [0; 3].map(|_| carried(12.0, "eos").run));
    assert_eq!(owner.put(&first).status, 201);
    let late = "INSERT INTO changes (at, kind, id) VALUES ('2199-01-01T00:00:00.000000Z', 'run', 'late')";
    let mut last = 0;
    let leave = || {
        let mut events = owner.watch(None);
        assert_eq!(owner.put(&second).status, 201);
        let told = wait_for("the second run", SOON, || {
            events.next().filter(|(_, _, id)| *id == second.id.to_string())
        });
        last = told.0;
    };
    change_after(&server.place.address(), &["BEGIN", late], leave, "SELECT 1");
    assert_eq!(owner.put(&third).status, 201);
    let mut others = owner.watch(None);
    assert_eq!(owner.put(&carried(12.0, "eos").run).status, 201);
    // Open streams have had the late change by now.
    assert!(others.next().is_some());
    let mut events = owner.watch(Some(last));
    wait_for("the late change", SOON, || (events.told().1 == "late").then_some(()));
    wait_for("the third run", SOON, || (events.told().1 == third.id.to_string()).then_some(()));
}

fn watchers_who_missed_too_much_are_told_to_reload(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, id) = (server.owner(), Uuid::now_v7());
    for step in 0..1005 {
        assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(step)).status, 204);
    }
    let mut events = owner.watch(Some(0));
    assert_eq!(events.told(), ("again".to_owned(), String::new()));
    assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(2000)).status, 204);
    assert_eq!(events.told(), ("progress".to_owned(), id.to_string()));
}

fn watchers_ahead_of_the_server_are_told_to_reload(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, first) = (server.owner(), carried(12.0, "eos").run);
    assert_eq!(owner.put(&first).status, 201);
    let too_large = ["1000000", "9223372036854775807", "9223372036854775808", "99999999999999999999999"];
    for last in too_large.into_iter().chain(["x", "1.5", "-1", "+1", "-9223372036854775808"]) {
        let mut events = owner.watch_after(Some(last));
        assert_eq!(events.told(), ("again".to_owned(), String::new()), "{last}");
        let run = carried(12.0, "eos").run;
        assert_eq!(owner.put(&run).status, 201);
        // The server may have read the first run's change after the stream began.
        wait_for("the next run", SOON, || (events.told().1 == run.id.to_string()).then_some(()));
    }
}

fn watchers_who_change_servers_get_no_event_twice(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let other = Server::at(&server.place);
    let (owner, id) = (server.owner(), Uuid::now_v7());
    let mut events = owner.watch(None);
    for round in 0..5 {
        let mut report = |step| {
            assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(step)).status, 204);
            events.next().unwrap().0
        };
        let [.., last] = [0, 1, 2].map(|step| report(10 * round + step));
        // The other server looks for changes every second, so it did not read these yet.
        let mut resumed = other.owner().watch(Some(last));
        let next = report(10 * round + 3);
        assert_eq!(resumed.next().unwrap().0, next);
    }
}

fn watchers_whose_next_events_are_deleted_are_told_to_reload(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, id) = (server.owner(), Uuid::now_v7());
    let mut events = owner.watch(None);
    let seqs: Vec<i64> = (0..6)
        .map(|step| {
            assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(step)).status, 204);
            events.next().unwrap().0
        })
        .collect();
    // The clock of the server that made the third change was behind.
    let old = format!("UPDATE changes SET at = '2000-01-01T00:00:00.000000Z' WHERE seq = {}", seqs[2]);
    change(&server.place.address(), &old);
    let server = server.again();
    wait_for("the end of the old changes", SOON, || {
        (server.place.number("SELECT min(seq) FROM changes") == seqs[3]).then_some(())
    });
    let owner = server.owner();
    for (step, seq) in (6..).zip([0, seqs[0], seqs[1]]) {
        let mut events = owner.watch(Some(seq));
        assert_eq!(events.told(), ("again".to_owned(), String::new()), "{seq}");
        // Later events follow.
        assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(step)).status, 204);
        assert_eq!(events.told().0, "progress");
    }
    for (seq, next) in [(seqs[2], seqs[3]), (seqs[3], seqs[4])] {
        assert_eq!(owner.watch(Some(seq)).next().unwrap().0, next);
    }
}

fn watchers_are_told_to_reload_for_a_damaged_change(kind: Kind) {
    let mut server = Server::at(&Place::new(kind));
    // PostgreSQL accepts no values of another type.
    let damages: &[&str] = match kind {
        Kind::Local => &["kind = X'00'", "id = X'00'", "kind = 'new'"],
        Kind::Shared => &["kind = 'new'"],
    };
    for damage in damages {
        let owner = server.owner();
        let [first, second, third] = [0; 3].map(|_| carried(12.0, "eos").run);
        let mut events = owner.watch(None);
        assert_eq!(owner.put(&first).status, 201);
        let (seq, ..) = events.next().unwrap();
        assert_eq!(owner.put(&second).status, 201);
        let of_second = format!("WHERE kind = 'run' AND id = '{}'", second.id);
        change(&server.place.address(), &format!("UPDATE changes SET {damage} {of_second}"));
        // After a restart too.
        server = server.again();
        let owner = server.owner();
        let mut events = owner.watch(Some(seq));
        wait_for("the damaged change", SOON, || (events.told().0 == "again").then_some(()));
        assert_eq!(owner.put(&third).status, 201);
        wait_for("the next run", SOON, || (events.told().1 == third.id.to_string()).then_some(()));
        assert_eq!(owner.get("/history").status, 200, "{damage}");
    }
}

fn an_event_stream_ends_with_its_token(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let token = server.by(&server.place.token("read", &[]));
    let mut events = token.watch(None);
    assert_eq!(server.owner().put(&made(12.39).run).status, 201);
    assert_eq!(events.told().0, "run");
    assert_eq!(server.place.trainplan(&["token", "revoke", "read"]).code, Some(0));
    let begun = Instant::now();
    while let Some((_, kind, _)) = events.next() {
        assert_eq!(kind, "alert");
    }
    // Its connection is closed too.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

fn event_streams_have_a_limit_for_each_caller_and_for_all(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let tokens: Vec<_> = (0..16).map(|_| server.by(&server.place.token("read", &[]))).collect();
    let mut open: Vec<_> = (0..32).map(|_| tokens[0].watch(None)).collect();
    let refused = tokens[0].get("/events");
    assert!(refused.problem(429).contains("32 event streams") && refused.header("retry-after").is_some());
    // Other requests and other callers are served.
    assert_eq!(tokens[0].get("/runs").status, 200);
    for token in &tokens[1..] {
        open.extend((0..32).map(|_| token.watch(None)));
    }
    let refused = server.anyone().get("/events");
    assert!(refused.problem(503).contains("512 event streams") && refused.header("retry-after").is_some());
    drop(open);
    wait_for("place", SOON, || {
        let metrics = server.anyone().get("//metrics").text();
        metrics.lines().any(|line| line == "trainplan_watchers 0").then_some(())
    });
    tokens[0].watch(None);
}
