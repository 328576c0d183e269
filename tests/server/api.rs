//! The API, on every kind of store.

use crate::document::operations;
use crate::harness::{
    Client, Kind, Made, Options, Place, SOON, Server, carried, digest, encoded, file_of, ids, log, made,
    made_long, made_of, on_every_store, progress, read_all, read_head, wait_for,
};
use crate::services::change;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use trainplan_shared::field::Field;
use trainplan_shared::result::{Intake, RunResult};
use trainplan_shared::spec::Spec;
use uuid::Uuid;

on_every_store! {
    stored_results_never_change
    bodies_must_match_their_digest
    bodies_may_be_compressed
    invalid_results_are_refused
    filters_combine
    every_order_has_complete_pages
    pages_are_complete_while_runs_are_added
    runs_without_figures_sort_last
    log_uploads_survive_broken_connections
    a_piece_at_another_offset_is_refused_with_the_servers_offset
    refused_pieces_are_answered
    logs_that_do_not_match_the_result_are_discarded
    concurrent_uploads_of_one_log_leave_one_log
    lines_are_read_and_searched
    progress_is_listed_until_the_result_is_stored
    ended_runs_without_a_result_are_over
    watchers_receive_events_and_can_resume
    watchers_who_missed_too_much_are_told_to_reload
    scores_name_their_parser_version
    a_run_that_contradicts_its_recipe_is_not_scored
    recipes_can_be_corrected_later
    runs_are_compared
    deleted_runs_are_gone
    a_log_stays_while_another_run_has_it
    old_runs_are_deleted_if_configured
    a_clock_that_is_ahead_deletes_nothing
    an_event_stream_ends_with_its_token
    event_streams_have_a_limit_for_each_caller_and_for_all
    a_quota_counts_what_is_stored
    tokens_are_created_listed_and_revoked
    a_share_link_shows_its_runs_until_it_is_revoked
    a_deleted_run_that_returns_is_not_shared
    the_state_of_a_log_is_told_alike
    a_token_has_its_quota
    limits_health_and_metrics_are_reported
    callers_learn_their_name
    a_stopping_server_finishes_open_requests
    everything_survives_a_restart
    every_documented_operation_answers
}

fn start(kind: Kind) -> Server {
    Server::at(&Place::new(kind))
}

fn stored_results_never_change(kind: Kind) {
    let server = start(kind);
    let (owner, made) = (server.owner(), made(12.39));
    let (id, file) = (made.run.id, file_of(&made.run));
    let first = owner.put(&made.run);
    assert_eq!(first.status, 201);
    let log = json!({ "sha256": made.run.source.sha256, "offset": 0, "complete": false });
    assert_eq!(first.json(), json!({ "id": id, "outcome": "new", "log": log }));
    let again = owner.put(&made.run);
    assert_eq!((again.status, again.json()["outcome"].as_str()), (200, Some("known")));

    let path = format!("/runs/{id}");
    let put = |run: &RunResult| {
        let file = file_of(run);
        owner.ask("PUT", &path, &[("content-digest", &digest(&file))], Some(&file))
    };
    // A result of the same log at another path is the same; the first one stays.
    let mut run = made.run.clone();
    run.source.path = "elsewhere.out".into();
    let known = put(&run);
    assert_eq!((known.status, known.json()["outcome"].as_str()), (200, Some("known")));
    // With another recipe, it is another result.
    run.comparable.reasons.push("it was profiled".into());
    assert!(put(&run).problem(409).contains(&id.to_string()));
    assert_eq!(owner.get(&path).body, file);
    assert_eq!(owner.get(&format!("{path}?upload")).body, file);
    assert_eq!(owner.all(""), [id.to_string()]);

    let elsewhere = format!("/runs/{}", Uuid::now_v7());
    let refused = owner.ask("PUT", &elsewhere, &[("content-digest", &digest(&file))], Some(&file));
    assert!(refused.problem(422).contains(&id.to_string()));
    assert_eq!(owner.get(&elsewhere).status, 404);
}

fn bodies_must_match_their_digest(kind: Kind) {
    let server = start(kind);
    let (owner, run) = (server.owner(), made(12.39).run);
    let (path, file) = (format!("/runs/{}", run.id), file_of(&run));
    let refused = owner.ask("PUT", &path, &[], Some(&file));
    assert!(refused.problem(400).contains("Content-Digest"));
    let others = [
        digest(b"other"),
        "sha-256=:AAAA:".into(),
        "sha-256=::".into(),
        "sha-256=:!:".into(),
        "md5=:AAAA:".into(),
    ];
    for other in others {
        owner.ask("PUT", &path, &[("content-digest", &other)], Some(&file)).problem(400);
    }
    assert_eq!(owner.get(&path).status, 404);
    // Other algorithms are allowed beside it.
    let both = format!("sha-512=:AAAA:, {}", digest(&file));
    assert_eq!(owner.ask("PUT", &path, &[("content-digest", &both)], Some(&file)).status, 201);
}

fn bodies_may_be_compressed(kind: Kind) {
    let server = start(kind);
    let (owner, made) = (server.owner(), made(12.39));
    let (id, file) = (made.run.id, file_of(&made.run));
    let path = format!("/runs/{id}");
    let packed = zstd::encode_all(&file[..], 3).unwrap();
    let put = |coding, body: &[u8]| {
        owner.ask(
            "PUT",
            &path,
            &[("content-digest", &digest(body)), ("content-encoding", coding)],
            Some(body),
        )
    };
    assert!(put("gzip", &packed).problem(415).contains("zstd"));
    put("zstd", &packed[..packed.len() / 2]).problem(400);
    put("zstd", &file).problem(400);
    assert_eq!(put("zstd", &packed).status, 201);
    assert_eq!(owner.put(&made.run).json()["outcome"], "known");
    assert_eq!(owner.get(&path).body, file);
    let answer = owner.ask("GET", &path, &[("accept-encoding", "zstd")], None);
    assert_eq!(answer.header("content-encoding"), Some("zstd"));
    assert_eq!(zstd::decode_all(&answer.body[..]).unwrap(), file);

    let packed = zstd::encode_all(&made.log[..], 3).unwrap();
    let headers = [("upload-offset", "0"), ("upload-complete", "?1"), ("content-encoding", "zstd")];
    let answer = owner.ask("PUT", &format!("{path}/log"), &headers, Some(&packed));
    assert_eq!(answer.json(), json!({ "offset": made.log.len(), "complete": true }));
    assert_eq!(owner.get(&format!("{path}/log")).body, made.log);
    let answer = owner.ask("GET", &format!("{path}/log"), &[("accept-encoding", "zstd")], None);
    assert_eq!(zstd::decode_all(&answer.body[..]).unwrap(), made.log);
}

fn invalid_results_are_refused(kind: Kind) {
    let server = start(kind);
    let (owner, run) = (server.owner(), made(12.39).run);
    let path = format!("/runs/{}", run.id);
    let put = |body: &[u8]| owner.ask("PUT", &path, &[("content-digest", &digest(body))], Some(body));
    put(b"").problem(422);
    put(b"{}").problem(422);
    put(b"[1, 2]").problem(422);
    let text = String::from_utf8(file_of(&run)).unwrap();
    let newer = text.replacen("\"version\":1", "\"version\":2", 1);
    assert!(put(newer.as_bytes()).problem(422).contains("version 2"));
    let damaged = text.replacen("\"label\":[0,1,", "\"label\":[1,0,", 1);
    assert_ne!(damaged, text);
    assert!(put(damaged.as_bytes()).problem(422).contains("damaged"));
    let post = owner.ask("POST", &format!("{path}/progress"), &[], Some(b"{}"));
    assert!(post.problem(422).contains("campaign"));
    assert_eq!(owner.all(""), [""; 0]);
}

fn filters_combine(kind: Kind) {
    let server = start(kind);
    let owner = server.owner();
    let all = [made(12.0), carried(13.0, "eos"), carried(14.0, "dgx"), made(f64::NAN)];
    for made in &all {
        assert_eq!(owner.put(&made.run).status, 201);
    }
    let [own, eos, dgx, failed] = all.map(|made| made.run.id.to_string());
    let page = owner.json("/runs");
    let received = |id: &str| {
        let run = page["items"].as_array().unwrap().iter().find(|run| run["id"] == id).unwrap();
        encoded(run["received_at"].as_str().unwrap())
    };
    let line = encoded(page["items"][1]["line"].as_str().unwrap());
    let (recipe, short) = (encoded("llama3.1-8b/h100/fp8/8@25.04"), encoded("llama3.1-8b/h100/fp8/8@25.04"));
    let (since, until) = (received(&eos), received(&dgx));
    for (query, wanted) in [
        ("sort=received_at".to_owned(), vec![&own, &eos, &dgx, &failed]),
        (String::new(), vec![&failed, &dgx, &eos, &own]),
        (format!("recipe={recipe}"), vec![&failed, &dgx, &eos, &own]),
        (format!("recipe={short}&cluster=eos"), vec![&eos]),
        ("cluster=eos".into(), vec![&eos]),
        ("cluster=EOS".into(), vec![]),
        // * matches any text and ignores case; other characters are literal.
        ("cluster=EO*".into(), vec![&eos]),
        ("recipe=*LLAMA*fp8*".into(), vec![&failed, &dgx, &eos, &own]),
        ("recipe=*llama*&cluster=*g*&gpu=H100*".into(), vec![&dgx]),
        ("recipe=llama*fp8".into(), vec![]),
        ("cluster=e_s*".into(), vec![]),
        ("cluster=%25*".into(), vec![]),
        ("cluster=%5C*".into(), vec![]),
        ("campaign=*".into(), vec![&dgx, &eos]),
        ("campaign=nightly".into(), vec![&dgx, &eos]),
        ("campaign=nightly&cluster=dgx".into(), vec![&dgx]),
        ("status=scored".into(), vec![&dgx, &eos, &own]),
        ("status=incomplete".into(), vec![&failed]),
        ("model=llama3.1-8b".into(), vec![&failed, &dgx, &eos, &own]),
        ("model=llama3.1-70b".into(), vec![]),
        ("gpu=h100&gpus=8&dtype=fp8".into(), vec![&failed, &dgx, &eos, &own]),
        ("gpus=16".into(), vec![]),
        ("dtype=bf16".into(), vec![]),
        (format!("line={line}&cluster=dgx"), vec![&dgx]),
        (format!("since={since}"), vec![&failed, &dgx, &eos]),
        (format!("since={since}&until={until}"), vec![&eos]),
        (format!("until={since}&limit=1"), vec![&own]),
    ] {
        assert_eq!(owner.all(&query).iter().collect::<Vec<_>>(), wanted, "{query}");
    }
    for (query, told) in [
        ("limit=0", "1 to 1000"),
        ("limit=1001", "1 to 1000"),
        ("limit=many", "1 to 1000"),
        ("gpus=-1", "whole number"),
        ("gpus=99999999999", "whole number"),
        ("since=yesterday", "2026"),
        ("status=great", "scored"),
        ("sort=name", "step_time_s"),
        ("cursor=x", "next_cursor"),
        ("clutser=eos", "cluster"),
        (&format!("model=*{}", "a".repeat(500)), "500 bytes"),
    ] {
        let detail = owner.get(&format!("/runs?{query}")).problem(400);
        assert!(detail.contains(told), "{query}: {detail}");
    }
}

fn every_order_has_complete_pages(kind: Kind) {
    let server = start(kind);
    let owner = server.owner();
    // Some values are equal, and some are missing.
    let times = [11.0, 12.0, 12.0, 12.0, 10.5, 13.25];
    let mut runs: Vec<Made> = times.iter().map(|seconds| carried(*seconds, "eos")).collect();
    runs.extend((0..3).map(|steps| made_of([log(f64::NAN, 50), vec![b'\n'; steps]].concat())));
    for made in &runs {
        assert_eq!(owner.put(&made.run).status, 201);
    }
    for key in ["received_at", "step_time_s", "tokens_per_s", "mfu", "speed_percent", "plan_error"] {
        for sort in [key.to_owned(), format!("-{key}")] {
            let whole = owner.json(&format!("/runs?sort={sort}"));
            let value = |run: &Value| match key {
                "received_at" => None,
                "step_time_s" => run[key]["mean"].as_f64(),
                "speed_percent" => run["baseline"][key].as_f64(),
                "plan_error" => run["plan"]["error"].as_f64(),
                _ => run[key].as_f64(),
            };
            let values: Vec<_> = whole["items"].as_array().unwrap().iter().filter_map(value).collect();
            let is_sorted = |down: bool| values.is_sorted_by(|a, b| if down { a >= b } else { a <= b });
            assert!(is_sorted(sort.starts_with('-')), "{sort}: {values:?}");
            if key != "received_at" {
                assert!(values.len() >= times.len(), "{sort}: {values:?}");
                // Missing values come last.
                let first = whole["items"].as_array().unwrap().iter().take(values.len());
                assert!(first.map(value).all(|value| value.is_some()), "{sort}");
            }
            let whole = ids(&whole);
            assert_eq!(whole.len(), runs.len());
            for limit in 1..=4 {
                assert_eq!(owner.all(&format!("sort={sort}&limit={limit}")), whole, "{sort} by {limit}");
            }
        }
    }
    let cursor = owner.json("/runs?sort=mfu&limit=1")["next_cursor"].as_str().unwrap().to_owned();
    let refused = owner.get(&format!("/runs?cursor={}", encoded(&cursor)));
    assert!(refused.problem(400).contains("order"));
}

fn pages_are_complete_while_runs_are_added(kind: Kind) {
    // The writers upload as fast as the machine allows.
    let unlimited = Options { arguments: &["--requests-per-minute", "4000000000"], ..Options::default() };
    let server = Server::with(&Place::new(kind), &unlimited);
    let owner = server.owner();
    let before: BTreeSet<String> = (0..30)
        .map(|number| {
            let made = carried(10.0 + f64::from(number % 7), "eos");
            assert_eq!(owner.put(&made.run).status, 201);
            made.run.id.to_string()
        })
        .collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (owner, is_over) = (server.owner(), &is_over);
            scope.spawn(move || {
                for number in 0.. {
                    let made = carried(9.0 + f64::from((number + writer) % 9), "eos");
                    assert_eq!(owner.put(&made.run).status, 201);
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for sort in ["-received_at", "received_at", "step_time_s", "-mfu", "plan_error"] {
            // In order of time, a slow reader would never reach the end.
            let until = if sort == "received_at" {
                format!("&until={}", encoded(&newest(&owner)))
            } else {
                String::new()
            };
            let seen = owner.all(&format!("sort={sort}&limit=7{until}"));
            let once: BTreeSet<String> = seen.iter().cloned().collect();
            assert_eq!(once.len(), seen.len(), "{sort}: some came twice");
            let missed: Vec<_> = before.difference(&once).collect();
            assert!(missed.is_empty(), "{sort}: {missed:?} were passed over");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

fn runs_without_figures_sort_last(kind: Kind) {
    let server = start(kind);
    let owner = server.owner();
    for number in 0..5 {
        let (without, none) = (
            made(12.0 + f64::from(number)),
            made_of([log(f64::NAN, 50), vec![b'\n'; number as usize]].concat()),
        );
        for made in [none, without, carried(12.0, "eos")] {
            let answer = owner.put(&made.run);
            assert_eq!(answer.status, 201, "{}", answer.text());
        }
    }
    assert_eq!(owner.all("").len(), 15);
}

fn newest(owner: &Client) -> String {
    owner.json("/runs?limit=1")["items"][0]["received_at"].as_str().unwrap().to_owned()
}

fn log_uploads_survive_broken_connections(kind: Kind) {
    let server = start(kind);
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
    let server = start(kind);
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
    let server = start(kind);
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
    let server = start(kind);
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
    let server = start(kind);
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
    let server = start(kind);
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

fn progress_is_listed_until_the_result_is_stored(kind: Kind) {
    let server = start(kind);
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
    let server = start(kind);
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
    let server = start(kind);
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

fn watchers_who_missed_too_much_are_told_to_reload(kind: Kind) {
    let server = start(kind);
    let (owner, id) = (server.owner(), Uuid::now_v7());
    for step in 0..1005 {
        assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(step)).status, 204);
    }
    let mut events = owner.watch(Some(0));
    assert_eq!(events.told(), ("again".to_owned(), String::new()));
    assert_eq!(owner.post(&format!("/runs/{id}/progress"), &progress(2000)).status, 204);
    assert_eq!(events.told(), ("progress".to_owned(), id.to_string()));
}

fn scores_name_their_parser_version(kind: Kind) {
    let server = start(kind);
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    assert_eq!(owner.put(&made.run).status, 201);
    let scores = owner.json(&format!("/runs/{}/scores", made.run.id));
    let items = scores["items"].as_array().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0]["parser_version"], made.run.provenance.parser_version);
    assert_eq!(items[0]["scored_at"], Value::Null);
    assert_eq!(items[0]["report"]["step_time_s"]["mean"], 12.39);
    let summary = owner.json(&format!("/runs/{}/summary", made.run.id));
    assert_eq!(summary["step_time_s"]["mean"], 12.39);
    assert_eq!(summary["cluster"], "eos");
}

fn a_run_that_contradicts_its_recipe_is_not_scored(kind: Kind) {
    let server = start(kind);
    let owner = server.owner();
    let name = "log-acct.pretrain_llama3.1_70b_fp8_256_12345_0.out";
    let mut intake = Intake::new(name, &Spec::default().with(Field::Recipe, "llama3.1-8b/h100/fp8/8@25.04"));
    intake.feed(&log(9.4, 50));
    let run = intake.finish();
    assert_eq!(owner.put(&run).status, 201);
    assert_eq!(owner.all("status=scored"), Vec::<String>::new());
    assert_eq!(owner.all("status=implausible"), [run.id.to_string()]);
    let summary = owner.json(&format!("/runs/{}/summary", run.id));
    assert_eq!((&summary["status"], &summary["mfu"]), (&"implausible".into(), &Value::Null));
}

fn recipes_can_be_corrected_later(kind: Kind) {
    const RECIPE: &str = "llama3.1-8b/h100/fp8/8@25.04";
    let server = start(kind);
    let (owner, uploader) = (server.owner(), server.by(&server.place.token("upload", &[])));
    let log = log(9.4, 50);
    let read_as = |name: &str, said: &Spec| {
        let mut intake = Intake::new(name, said);
        intake.feed(&log);
        intake.finish()
    };
    let run = read_as("train.log", &Spec::default());
    let path = format!("/runs/{}", run.id);
    let scores = format!("{path}/scores?recipe={}", encoded(RECIPE));
    owner.post(&scores, &json!({})).problem(404);
    assert_eq!(owner.put(&run).status, 201);
    assert!(owner.post(&scores, &json!({})).problem(409).contains("raw log"));
    assert_eq!(owner.put_log(run.id, 0, true, &log).status, 200);
    uploader.post(&scores, &json!({})).problem(403);
    assert!(owner.post(&format!("{path}/scores?recipe=lama"), &json!({})).problem(400).contains("lama"));
    assert!(owner.post(&format!("{path}/scores?colour=red"), &json!({})).problem(400).contains("colour"));
    let in_body = owner.post(&format!("{path}/scores"), &json!({ "recipe": RECIPE }));
    assert!(in_body.problem(400).contains("?recipe="));
    assert!(owner.post("/runs/70348a12/scores", &json!({})).problem(404).contains("whole id"));
    let summary = || owner.json(&format!("{path}/summary"));
    let before = summary();
    assert_eq!(before["recipe"], Value::Null);

    let answer = owner.post(&scores, &json!({}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let items = answer.json()["items"].as_array().unwrap().clone();
    let recipes: Vec<_> = items.iter().map(|score| score["report"]["recipe"].clone()).collect();
    assert_eq!(recipes, [RECIPE.into(), Value::Null]);
    let after = summary();
    assert_eq!((&after["recipe"], &after["ran_at"]), (&RECIPE.into(), &before["ran_at"]));
    assert_eq!(owner.all(&format!("recipe={}", encoded(RECIPE))), [run.id.to_string()]);
    // The first upload and one with the corrected recipe are both the same run.
    for again in [&run, &read_as("train.log", &Spec::default().with(Field::Recipe, RECIPE))] {
        assert_eq!(owner.put(again).status, 200);
    }
    let other = Spec::default().with(Field::Recipe, "llama3.1-8b/h100/bf16/8@25.04");
    assert!(owner.put(&read_as("train.log", &other)).problem(409).contains("reparse"));
    assert_eq!(owner.get(&format!("{path}?upload")).body, file_of(&run));

    let carried = carried(9.4, "eos");
    owner.put_all(&carried);
    let refused = owner.post(&format!("/runs/{}/scores?gpus=16", carried.run.id), &json!({}));
    assert!(refused.problem(409).contains("campaign nightly"));
}

fn runs_are_compared(kind: Kind) {
    let server = start(kind);
    let (owner, first, second) = (server.owner(), made(12.0), made(12.6));
    for made in [&first, &second] {
        assert_eq!(owner.put(&made.run).status, 201);
    }
    let compared = owner.json(&format!("/compare?ids={},{}", first.run.id, second.run.id));
    assert_eq!(compared["verdict"], "slower");
    let percent = compared["difference"]["each"][0]["step_time"]["percent"].as_f64().unwrap();
    assert!((percent - 5.0).abs() < 1e-6, "{percent}");
    owner.get("/compare").problem(400);
    owner.get("/compare?ids=").problem(400);
    let twice = owner.get(&format!("/compare?ids={0},{0}", first.run.id)).problem(400);
    assert!(twice.contains("twice"), "{twice}");
    owner.get(&format!("/compare?ids={}&window=never", first.run.id)).problem(400);
    owner.get(&format!("/compare?ids={}", Uuid::now_v7())).problem(404);
    let many = vec![first.run.id.to_string(); 17].join(",");
    assert!(owner.get(&format!("/compare?ids={many}")).problem(400).contains("16"));
}

fn deleted_runs_are_gone(kind: Kind) {
    let server = start(kind);
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    owner.put_all(&made);
    let other = carried(11.0, "eos");
    assert_eq!(owner.put(&other.run).status, 201);
    assert_eq!(owner.put_log(other.run.id, 0, false, &other.log[..50]).status, 200);
    assert_eq!(server.place.blobs().len(), 2);
    for made in [&made, &other] {
        let path = format!("/runs/{}", made.run.id);
        assert_eq!(owner.delete(&path).status, 204);
        owner.delete(&path).problem(404);
        for page in ["", "/summary", "/scores", "/log", "/log/lines"] {
            owner.get(&format!("{path}{page}")).problem(404);
        }
    }
    assert_eq!(owner.all(""), [""; 0]);
    for table in ["runs", "results", "scores", "progress", "alerts"] {
        assert_eq!(server.place.number(&format!("SELECT count(*) FROM {table}")), 0, "{table}");
    }
    assert_eq!(server.place.blobs(), [""; 0]);
    // It can be uploaded again.
    assert_eq!(owner.put(&made.run).status, 201);
    assert_eq!(owner.offset(made.run.id), Some(0));
}

fn a_log_stays_while_another_run_has_it(kind: Kind) {
    let server = start(kind);
    let (owner, first, second) = (server.owner(), carried(12.39, "eos"), carried(12.39, "eos"));
    owner.put_all(&first);
    // The server already has the same log.
    assert_eq!(owner.put(&second.run).json()["log"]["complete"], true);
    assert_eq!(owner.delete(&format!("/runs/{}", first.run.id)).status, 204);
    assert_eq!(owner.get(&format!("/runs/{}/log", second.run.id)).body, second.log);
    assert_eq!(owner.delete(&format!("/runs/{}", second.run.id)).status, 204);
    assert_eq!(server.place.blobs(), [""; 0]);
}

/// Returns the time of this many days ago, as the store writes it.
fn days_ago(days: i64) -> String {
    format!("{:.6}", jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days))
}

/// Makes a run one that was received this many days ago.
fn age(place: &Place, made: &Made, days: i64) {
    let (at, id) = (days_ago(days), made.run.id);
    change(&place.address(), &format!("UPDATE runs SET received_at = '{at}' WHERE id = '{id}'"));
}

/// Starts a server that deletes runs after 30 days, and waits until it looked for old ones.
fn retaining(place: &Place, said: &str) -> Server {
    let options = Options { arguments: &["--retain-days", "30"], ..Options::default() };
    let server = Server::with(place, &options);
    wait_for(said, SOON, || server.output().contains(said).then_some(()));
    server
}

fn old_runs_are_deleted_if_configured(kind: Kind) {
    let server = start(kind);
    let [old, recent, new] = [12.39, 11.0, 10.0].map(|step_time_s| carried(step_time_s, "eos"));
    for made in [&old, &recent, &new] {
        server.owner().put_all(made);
    }
    age(&server.place, &old, 31);
    age(&server.place, &recent, 29);
    let place = server.kill();
    let server = Server::at(&place);
    assert_eq!(server.owner().all("").len(), 3);
    let place = server.kill();
    // Deletions begin after a grace period.
    let server = retaining(&place, "--retain-days 30 deletes runs from ");
    assert_eq!(server.owner().all("").len(), 3);
    let place = server.kill();
    change(&place.address(), &format!("UPDATE clock SET steady_since = '{}'", days_ago(4)));
    let server = retaining(&place, &format!("run {} was deleted: received before ", old.run.id));
    assert_eq!(server.owner().all(""), [&new, &recent].map(|made| made.run.id.to_string()));
    wait_for("deletion of the log", SOON, || (place.blobs().len() == 2).then_some(()));
    assert!(place.blobs().iter().all(|blob| !blob.contains(&old.run.source.sha256)));
}

fn a_clock_that_is_ahead_deletes_nothing(kind: Kind) {
    let server = start(kind);
    let runs = [12.39, 11.0, 10.0].map(|step_time_s| carried(step_time_s, "eos"));
    for made in &runs {
        server.owner().put_all(made);
    }
    // All runs were received a year ago by the clock, and it ran steadily: the newest is as old as the others.
    for (made, days) in runs.iter().zip([396, 380, 365]) {
        age(&server.place, made, days);
    }
    let place = server.kill();
    let server = retaining(&place, "--retain-days 30 deletes runs from ");
    let place = server.kill();
    change(&place.address(), &format!("UPDATE clock SET steady_since = '{}'", days_ago(4)));
    let server = retaining(&place, &format!("run {} was deleted: received before ", runs[0].run.id));
    assert_eq!(server.owner().all("").len(), 2);
    // A run is received with the time of a clock that jumped.
    server.owner().put_all(&carried(9.0, "eos"));
    let place = server.kill();
    change(&place.address(), &format!("UPDATE clock SET seen_at = '{}'", days_ago(365)));
    let server = retaining(&place, "The clock jumped from ");
    assert_eq!(server.owner().all("").len(), 3);
}

fn an_event_stream_ends_with_its_token(kind: Kind) {
    let server = start(kind);
    let token = server.by(&server.place.token("read", &[]));
    let mut events = token.watch(None);
    assert_eq!(server.owner().put(&made(12.39).run).status, 201);
    assert_eq!(events.told().0, "run");
    assert_eq!(server.place.trainplan(&["token", "revoke", "read"]).code, Some(0));
    while let Some((_, kind, _)) = events.next() {
        assert_eq!(kind, "alert");
    }
}

fn event_streams_have_a_limit_for_each_caller_and_for_all(kind: Kind) {
    let server = start(kind);
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

fn tokens_are_created_listed_and_revoked(kind: Kind) {
    let server = start(kind);
    let owner = server.owner();
    let made = owner.post("/tokens", &json!({ "name": "nightly", "scope": "upload", "expires_in_days": 1 }));
    assert_eq!(made.status, 201);
    let made = made.json();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("tp_") && secret.len() == 33, "{secret}");
    let token = server.by(secret);
    assert_eq!(token.json("/me")["scope"], "upload");
    assert_eq!(token.put(&super::harness::made(12.39).run).status, 201);
    let listed = owner.json("/tokens");
    assert_eq!(listed["items"][0]["id"], made["id"]);
    assert!(listed["items"][0]["last_used_at"].is_string(), "{listed}");
    assert!(!listed.to_string().contains(secret), "secrets are not listed");
    assert_eq!(server.place.number(&format!("SELECT count(*) FROM tokens WHERE sha256 = '{secret}'")), 0);

    let path = format!("/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(owner.delete(&path).status, 204);
    token.get("/me").problem(401);
    assert!(owner.json("/tokens")["items"][0]["revoked_at"].is_string());
    owner.delete(&format!("/tokens/{}", Uuid::now_v7())).problem(404);
    for wrong in [
        json!({ "name": "", "scope": "read" }),
        json!({ "name": "x".repeat(101), "scope": "read" }),
        json!({ "name": "x", "scope": "all" }),
        json!({ "name": "x" }),
        json!({ "name": "x", "scope": "read", "expires_in_days": -1 }),
        json!({ "name": "x", "scope": "read", "scopes": ["admin"] }),
    ] {
        owner.post("/tokens", &wrong).problem(422);
    }

    // The command line and the server share the tokens.
    let other = server.place.token("read", &["--expires", "12h"]);
    assert_eq!(server.by(&other).json("/me")["scope"], "read");
    let listed = server.place.trainplan(&["token", "list", "--format", "json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    assert_eq!(server.place.trainplan(&["token", "revoke", "read"]).code, Some(0));
    server.by(&other).get("/me").problem(401);
}

fn a_share_link_shows_its_runs_until_it_is_revoked(kind: Kind) {
    let server = start(kind);
    let owner = server.owner();
    let [shown, hidden] = [12.0, 13.0].map(|seconds| carried(seconds, "eos"));
    for made in [&shown, &hidden] {
        owner.put_all(made);
    }
    let share = owner.post("/shares", &json!({ "ids": [shown.run.id], "expires_in_days": 7 }));
    assert_eq!(share.status, 201);
    let share = share.json();
    let guest = server.by(share["secret"].as_str().unwrap());
    assert_eq!(guest.json("/me")["runs"], json!([shown.run.id]));
    assert_eq!(guest.json("/me")["until"], share["expires_at"]);
    let path = format!("/runs/{}", shown.run.id);
    for page in ["", "/summary", "/scores", "/log", "/log/lines"] {
        assert_eq!(guest.get(&format!("{path}{page}")).status, 200, "{page}");
    }
    assert_eq!(guest.get(&format!("/compare?ids={}", shown.run.id)).status, 200);
    assert_eq!(owner.json("/shares")["items"][0]["id"], share["id"]);
    assert_eq!(owner.delete(&format!("/shares/{}", share["id"].as_str().unwrap())).status, 204);
    guest.get(&path).problem(401);
    assert_eq!(owner.json("/shares")["items"], json!([]));
    for wrong in [
        json!({ "ids": [], "expires_in_days": 7 }),
        json!({ "ids": [shown.run.id], "expires_in_days": 0 }),
        json!({ "ids": [shown.run.id], "expires_in_days": 367 }),
        json!({ "ids": [shown.run.id] }),
    ] {
        owner.post("/shares", &wrong).problem(422);
    }
    owner.post("/shares", &json!({ "ids": [Uuid::now_v7()], "expires_in_days": 1 })).problem(404);
}

fn a_deleted_run_that_returns_is_not_shared(kind: Kind) {
    let server = start(kind);
    let owner = server.owner();
    let [gone, kept] = [12.0, 13.0].map(|seconds| carried(seconds, "eos"));
    for made in [&gone, &kept] {
        owner.put_all(made);
    }
    let guest = |ids: Value| {
        let share = owner.post("/shares", &json!({ "ids": ids, "expires_in_days": 7 })).json();
        server.by(share["secret"].as_str().unwrap())
    };
    let (both, alone) = (guest(json!([gone.run.id, kept.run.id])), guest(json!([gone.run.id])));
    let path = format!("/runs/{}", gone.run.id);
    assert_eq!((both.get(&path).status, alone.get(&path).status), (200, 200));
    assert_eq!(owner.delete(&path).status, 204);
    owner.put_all(&gone);
    both.get(&path).problem(403);
    alone.get(&path).problem(401);
    assert_eq!(both.get(&format!("/runs/{}", kept.run.id)).status, 200);
}

fn the_state_of_a_log_is_told_alike(kind: Kind) {
    let server = start(kind);
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

fn a_token_has_its_quota(kind: Kind) {
    let server = start(kind);
    let (first, second) = (made(12.0), made(13.0));
    let enough = file_of(&first.run).len().to_string();
    let token = server.by(&server.place.token("upload", &["--quota-bytes", &enough]));
    assert_eq!(token.put(&first.run).status, 201);
    assert!(token.put(&second.run).problem(429).contains("per day"));
    assert!(token.put_log(first.run.id, 0, false, b"x").problem(429).contains("per day"));
    assert_eq!(server.owner().put(&second.run).status, 201);
}

fn a_quota_counts_what_is_stored(kind: Kind) {
    let server = start(kind);
    let run = made(12.0).run;
    assert_eq!(server.owner().put(&run).status, 201);
    // The same random bytes twice, too far apart for the store's compression.
    let random: Vec<u8> = (0..3 << 20).map(|_| fastrand::u8(..)).collect();
    let mut packed = zstd::Encoder::new(Vec::new(), 1).unwrap();
    packed.window_log(23).unwrap();
    packed.long_distance_matching(true).unwrap();
    packed.write_all(&random.repeat(2)).unwrap();
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 4 << 20, "{}", packed.len());
    let token = server.by(&server.place.token("upload", &["--quota-bytes", &(4 << 20).to_string()]));
    let headers = [("upload-offset", "0"), ("upload-complete", "?0"), ("content-encoding", "zstd")];
    let answer = token.ask("PUT", &format!("/runs/{}/log", run.id), &headers, Some(&packed));
    assert!(answer.problem(429).contains("per day"));
    assert!(server.place.number("SELECT max(bytes) FROM uploaded") > 6 << 20);
}

fn limits_health_and_metrics_are_reported(kind: Kind) {
    let server = start(kind);
    let (owner, anyone) = (server.owner(), server.anyone());
    let limits = anyone.json("/limits");
    assert_eq!((&limits["max_page"], &limits["max_compared"]), (&json!(1000), &json!(16)));
    assert_eq!(anyone.get("//healthz").text(), "ok\n");
    assert_eq!(owner.put(&made(12.39).run).status, 201);
    assert_eq!(owner.put(&made(12.39).run).status, 200);
    let metrics = owner.get("//metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let metrics = metrics.text();
    for line in [
        "trainplan_uploads_total{outcome=\"new\"} 1",
        "trainplan_uploads_total{outcome=\"known\"} 1",
        "trainplan_requests_total{method=\"PUT\",route=\"/api/v1/runs/{id}\",status=\"201\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    assert!(metrics.ends_with("# EOF\n"));
    for path in ["/nowhere", "/runs/x", "/runs/%2e%2e", "/runs/%ff", "/runs/a%2Fb", "/tokens/x/y"] {
        let answer = owner.get(path);
        assert!([400, 404].contains(&answer.status), "{path}");
        assert!(!answer.problem(answer.status).is_empty(), "{path}");
    }
    for (method, path) in [("POST", "/limits"), ("DELETE", "/runs"), ("PATCH", "/tokens")] {
        let answer = owner.ask(method, path, &[], if method == "DELETE" { None } else { Some(b"") });
        answer.problem(405);
    }
}

fn callers_learn_their_name(kind: Kind) {
    let server = start(kind);
    let anyone = server.anyone();
    let name = |given: Option<&str>| {
        let headers: Vec<_> = given.iter().map(|given| ("x-request-id", *given)).collect();
        anyone.ask("GET", "/limits", &headers, None).header("x-request-id").unwrap().to_owned()
    };
    assert_eq!(name(Some("build-7")), "build-7");
    assert_ne!(name(None), name(None));
    for wrong in ["two words", "a\"quote", &"x".repeat(65)] {
        assert_ne!(name(Some(wrong)), wrong);
    }
}

fn a_stopping_server_finishes_open_requests(kind: Kind) {
    let server = start(kind);
    let made = made(12.39);
    let (id, file) = (made.run.id, file_of(&made.run));
    let mut wire = server.wire();
    write!(
        wire,
        "PUT /api/v1/runs/{id} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Digest: {}\r\n\
         Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        server.owner,
        digest(&file),
        file.len()
    )
    .unwrap();
    let mut answers = BufReader::new(wire.try_clone().unwrap());
    assert!(read_head(&mut answers).starts_with("HTTP/1.1 100"), "the server waits for the body");
    let mut idle = server.wire();
    server.tell_to_end();
    wait_for("end of taking connections", SOON, || {
        std::net::TcpStream::connect(server.address).is_err().then_some(())
    });
    assert_eq!(read_all(&mut idle), "", "who only waits is let go");
    wire.write_all(&file).unwrap();
    assert!(read_head(&mut answers).starts_with("HTTP/1.1 201"));
    let place = server.place.clone();
    assert!(server.wait());
    assert_eq!(Server::at(&place).anyone().all(""), [id.to_string()]);
}

fn everything_survives_a_restart(kind: Kind) {
    let server = start(kind);
    let (owner, made, half) = (server.owner(), carried(12.39, "eos"), carried(11.0, "eos"));
    owner.put_all(&made);
    assert_eq!(owner.put(&half.run).status, 201);
    assert_eq!(owner.put_log(half.run.id, 0, false, &half.log[..500]).status, 200);
    assert_eq!(owner.post(&format!("/runs/{}/progress", Uuid::now_v7()), &progress(1)).status, 204);
    let token = server.place.token("read", &[]);
    let pages = ["/runs".to_owned(), "/progress".to_owned(), format!("/runs/{}/scores", made.run.id)];
    let before: BTreeMap<_, _> = pages.iter().map(|page| (page, owner.json(page))).collect();
    let old = server.owner.clone();
    let server = server.again();
    let owner = server.owner();
    for (page, before) in before {
        assert_eq!(owner.json(page), before, "{page}");
    }
    assert_eq!(owner.offset(half.run.id), Some(500));
    assert_eq!(owner.put_log(half.run.id, 500, true, &half.log[500..]).status, 200);
    assert_eq!(server.by(&token).json("/me")["scope"], "read");
    server.by(&old).get("/me").problem(401);
}

/// Every answer of every test is checked against the document; here each operation has at least one
/// successful answer.
fn every_documented_operation_answers(kind: Kind) {
    let server = start(kind);
    let (owner, made) = (server.owner(), carried(12.39, "eos"));
    owner.put_all(&made);
    let (id, file) = (made.run.id, file_of(&made.run));
    let token = owner.post("/tokens", &json!({ "name": "x", "scope": "read" })).json();
    let share = owner.post("/shares", &json!({ "ids": [id], "expires_in_days": 1 })).json();
    for (method, template) in operations() {
        let asked = format!("{method} {template}");
        let body = match asked.as_str() {
            "PUT /runs/{id}" => file.clone(),
            "PUT /runs/{id}/log" => made.log.clone(),
            "POST /runs/{id}/progress" => progress(1).to_string().into_bytes(),
            "POST /tokens" => json!({ "name": "y", "scope": "read" }).to_string().into_bytes(),
            "POST /shares" => json!({ "ids": [id], "expires_in_days": 1 }).to_string().into_bytes(),
            _ => Vec::new(),
        };
        let of = match template.as_str() {
            "/tokens/{id}" => token["id"].as_str().unwrap().to_owned(),
            "/shares/{id}" => share["id"].as_str().unwrap().to_owned(),
            // Deleted last, because other operations need it.
            _ if asked == "DELETE /runs/{id}" => {
                let other = carried(12.39, "eos").run;
                assert_eq!(owner.put(&other).status, 201);
                other.id.to_string()
            }
            _ => id.to_string(),
        };
        let mut path = template.replace("{id}", &of);
        if template == "/compare" {
            path.push_str(&format!("?ids={id}"));
        }
        if template == "/events" {
            owner.watch(None);
            continue;
        }
        let digest = digest(&file);
        let headers = match asked.as_str() {
            "PUT /runs/{id}" => vec![("content-digest", digest.as_str())],
            "PUT /runs/{id}/log" => vec![("upload-offset", "0"), ("upload-complete", "?1")],
            _ => Vec::new(),
        };
        let has_body = matches!(method.as_str(), "PUT" | "POST");
        let answer = owner.ask(&method, &path, &headers, has_body.then_some(body.as_slice()));
        assert!((200..300).contains(&answer.status), "{asked}: {} {}", answer.status, answer.text());
    }
    let document = owner.json("/openapi.json");
    assert_eq!(document["openapi"], "3.1.0");
}
