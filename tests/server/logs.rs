//! Raw logs: uploaded in pieces, and read.

use crate::harness::{
    Kind, Place, SOON, Server, carried, encoded, log, made, made_long, made_of, on_every_store, wait_for,
};
use serde_json::{Value, json};
use std::io::Write;
use std::thread;
use uuid::Uuid;

on_every_store! {
    log_uploads_survive_broken_connections
    a_piece_at_another_offset_is_refused_with_the_servers_offset
    refused_pieces_are_answered
    logs_that_do_not_match_the_result_are_discarded
    concurrent_uploads_of_one_log_leave_one_log
    lines_are_read_and_searched
    long_lines_are_searched_to_their_end
    a_log_stays_while_another_run_has_it
    the_state_of_a_log_is_told_alike
}

fn log_uploads_survive_broken_connections(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    // More than two pieces, so that some cuts are within pieces and some between.
    let (owner, made) = (server.owner(), made_long(20 << 20));
    let (id, all) = (made.run.id, &made.log);
    assert_eq!(owner.put(&made.run).status, 201);
    assert_eq!(owner.offset(id), Some(0));
    for cut in 0..12 {
        let offset = owner.offset(id).unwrap();
        let rest = &all[offset..];
        let sent = fastrand::usize(..=rest.len().min(4 << 20));
        if cut % 3 == 0 {
            // The decoded part of a broken frame is kept.
            let frame = zstd::encode_all(rest, 1).unwrap();
            let headers = [
                ("upload-offset", &*offset.to_string()),
                ("upload-complete", "?0"),
                ("content-encoding", "zstd"),
            ];
            let answer = owner.ask(
                "PUT",
                &format!("/runs/{id}/log"),
                &headers,
                Some(&frame[..sent.min(frame.len() / 2)]),
            );
            assert_eq!(answer.json()["offset"].as_u64(), owner.offset(id).map(|offset| offset as u64));
            continue;
        }
        let mut wire = server.wire();
        write!(
            wire,
            "PUT /api/v1/runs/{id}/log HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Upload-Offset: {offset}\r\nUpload-Complete: ?1\r\nContent-Length: {}\r\n\r\n",
            server.owner,
            rest.len() + 1
        )
        .unwrap();
        wire.write_all(&rest[..sent]).unwrap();
        drop(wire);
        wait_for("all that was sent", SOON, || (owner.offset(id) == Some(offset + sent)).then_some(()));
    }
    let offset = owner.offset(id).unwrap();
    assert!(offset > 0, "something is there");
    let last = owner.put_log(id, offset, true, &all[offset..]);
    assert_eq!(last.json(), json!({ "offset": all.len(), "complete": true }));
    assert_eq!(owner.offset(id), None);
    assert!(owner.get(&format!("/runs/{id}/log")).body == *all, "it is the log");
    assert_eq!(server.place.blobs().len(), 1, "no piece is left");
    // A complete log is not received again.
    assert_eq!(owner.put_log(id, 0, true, b"").json()["complete"], true);
    assert_eq!(owner.put(&made.run).json()["log"]["complete"], true);
}

fn a_piece_at_another_offset_is_refused_with_the_servers_offset(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), made(12.39));
    let id = made.run.id;
    assert_eq!(owner.put_log(id, 0, false, b"x").status, 404);
    assert_eq!(owner.put(&made.run).status, 201);
    assert_eq!(
        owner.put_log(id, 0, false, &made.log[..100]).json(),
        json!({ "offset": 100, "complete": false })
    );
    for offset in [0, 99, 101, 1 << 40] {
        let refused = owner.put_log(id, offset, false, b"x");
        refused.problem(409);
        assert_eq!(refused.header("upload-offset"), Some("100"));
    }
    let path = format!("/runs/{id}/log");
    for (offset, complete) in [("", "?1"), ("-1", "?1"), ("100", ""), ("100", "1"), ("1e2", "?0")] {
        let headers = [("upload-offset", offset), ("upload-complete", complete)];
        owner.ask("PUT", &path, &headers, Some(b"x")).problem(400);
    }
    // Empty pieces are allowed.
    assert_eq!(owner.put_log(id, 100, false, b"").json()["offset"], 100);
    assert_eq!(owner.put_log(id, 100, true, &made.log[100..]).json()["complete"], true);
    assert_eq!(owner.get(&path).body, made.log);
}

/// A client that still sends its piece when the server refuses it gets the answer, not a broken connection.
fn refused_pieces_are_answered(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), made(12.39));
    let id = made.run.id;
    assert_eq!(owner.put(&made.run).status, 201);
    let piece = vec![b'x'; 6 << 20];
    for _ in 0..10 {
        owner.put_log(id, 7, false, &piece).problem(409);
        server.anyone().put_log(id, 0, false, &piece).problem(401);
        owner.put_log(Uuid::now_v7(), 0, false, &piece).problem(404);
    }
}

fn logs_that_do_not_match_the_result_are_discarded(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), made(12.39));
    let id = made.run.id;
    assert_eq!(owner.put(&made.run).status, 201);
    let refused = owner.put_log(id, 0, true, b"another log").problem(422);
    assert!(refused.contains(&made.run.source.sha256), "{refused}");
    assert_eq!(owner.offset(id), Some(0));
    assert_eq!(server.place.blobs(), [""; 0]);
    assert_eq!(owner.get(&format!("/runs/{id}/log")).status, 404);
    assert_eq!(owner.put_log(id, 0, true, &made.log).status, 200);
    assert_eq!(owner.get(&format!("/runs/{id}/log")).body, made.log);
}

fn concurrent_uploads_of_one_log_leave_one_log(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let made = made_long(12 << 20);
    let id = made.run.id;
    assert_eq!(server.owner().put(&made.run).status, 201);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let owner = server.owner();
                wait_for("whole log", SOON, || {
                    let Some(offset) = owner.offset(id) else { return Some(()) };
                    let end = made.log.len().min(offset + (3 << 20));
                    let answer = owner.put_log(id, offset, end == made.log.len(), &made.log[offset..end]);
                    // The other client may be ahead.
                    assert!([200, 409].contains(&answer.status), "{}", answer.text());
                    None
                });
            });
        }
    });
    assert!(server.owner().get(&format!("/runs/{id}/log")).body == made.log, "it is the log");
    assert_eq!(server.place.blobs().len(), 1, "{:?}", server.place.blobs());
}

fn lines_are_read_and_searched(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), made(12.39));
    let path = format!("/runs/{}/log/lines", made.run.id);
    assert_eq!(owner.get(&path).status, 404);
    owner.put_all(&made);
    let text = String::from_utf8(made.log.clone()).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let whole = owner.json(&path);
    let read: Vec<&str> =
        whole["items"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(read, lines);
    assert_eq!((&whole["next"], &whole["total"]), (&Value::Null, &json!(50)));
    let some = owner.json(&format!("{path}?from=3&count=2"));
    assert_eq!(some["items"], json!([{ "line": 3, "text": lines[2] }, { "line": 4, "text": lines[3] }]));
    assert_eq!(some["next"], 5);
    let found = owner.json(&format!("{path}?q=ITERATION+4%2F"));
    assert_eq!(found["items"], json!([{ "line": 5, "text": lines[4] }]));
    assert_eq!(owner.json(&format!("{path}?q=nowhere"))["items"], json!([]));
    let too_long = owner.get(&format!("{path}?q={}", "a".repeat(1001))).problem(422);
    assert_eq!(too_long, "q has 1001 bytes; at most 1000 are accepted.");
    assert_eq!(owner.json(&format!("{path}?from=1000"))["items"], json!([]));
    // Line by line to the end.
    let (mut from, mut seen) = (json!(1), 0);
    while !from.is_null() {
        let page = owner.json(&format!("{path}?from={from}&count=7&q=iteration"));
        seen += page["items"].as_array().unwrap().len();
        from = page["next"].clone();
    }
    assert_eq!(seen, 50);
    for query in ["from=0", "from=x", "count=0", "what=1"] {
        owner.get(&format!("{path}?{query}")).problem(400);
    }
}

fn long_lines_are_searched_to_their_end(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let mut text = log(12.39, 50);
    // One text is where two pieces of the line meet.
    let long =
        ["a".repeat((64 << 10) - 3), "N\u{c4}DEL".into(), "b".repeat(200_000), "Ende\r\n".into()].concat();
    text.extend_from_slice(long.as_bytes());
    text.extend_from_slice(b"the last line\n");
    let made = made_of(text);
    owner.put_all(&made);
    let path = format!("/runs/{}/log/lines", made.run.id);
    for wanted in ["n\u{e4}del", "bbende", "AAAN\u{c4}D"] {
        let found = owner.json(&format!("{path}?q={}", encoded(wanted)));
        assert_eq!(
            found["items"],
            json!([{ "line": 51, "text": "a".repeat(4096), "is_cut": true }]),
            "{wanted}"
        );
    }
    for wanted in ["a\u{e4}", "endea", "nadel"] {
        assert_eq!(owner.json(&format!("{path}?q={}", encoded(wanted)))["items"], json!([]), "{wanted}");
    }
    let last = owner.json(&format!("{path}?q=LAST"));
    assert_eq!(last["items"], json!([{ "line": 52, "text": "the last line" }]));
}

fn a_log_stays_while_another_run_has_it(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, first, second) = (server.owner(), carried(12.39, "eos"), carried(12.39, "eos"));
    owner.put_all(&first);
    // The server already has the same log.
    assert_eq!(owner.put(&second.run).json()["log"]["complete"], true);
    assert_eq!(owner.delete(&format!("/runs/{}", first.run.id)).status, 204);
    assert_eq!(owner.get(&format!("/runs/{}/log", second.run.id)).body, second.log);
    assert_eq!(owner.delete(&format!("/runs/{}", second.run.id)).status, 204);
    assert_eq!(server.place.blobs(), [""; 0]);
}

fn the_state_of_a_log_is_told_alike(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), made(12.0));
    let path = format!("/runs/{}/log", made.run.id);
    let head = || owner.ask("HEAD", &path, &[], None);
    assert_eq!(head().status, 404);
    owner.put_log(made.run.id, 0, true, &made.log).problem(404);
    assert_eq!(owner.put(&made.run).status, 201);
    let state = |answer: &super::harness::Answer| {
        ["upload-offset", "upload-complete"].map(|name| answer.header(name).unwrap().to_owned())
    };
    assert_eq!(state(&head()), ["0", "?0"]);
    let half = made.log.len() / 2;
    let put = owner.put_log(made.run.id, 0, false, &made.log[..half]);
    assert_eq!((state(&put), put.json()), (state(&head()), json!({ "offset": half, "complete": false })));
    assert_eq!(owner.put_log(made.run.id, half, true, &made.log[half..]).status, 200);
    let again = owner.put_log(made.run.id, 0, true, &made.log);
    assert_eq!((state(&again), again.json()), (state(&head()), json!({ "offset": 0, "complete": true })));
}
