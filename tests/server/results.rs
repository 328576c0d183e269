//! Results: uploaded, never changed, listed and compared.

use crate::harness::{
    Client, Kind, Made, Options, Place, Server, carried, digest, encoded, file_of, ids, log, made, made_of,
    on_every_store,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};
use trainplan_shared::result::{Comparability, RunResult};
use uuid::Uuid;

on_every_store! {
    stored_results_never_change
    bodies_must_match_their_digest
    bodies_may_be_compressed
    invalid_results_are_refused
    results_that_are_not_utf_8_are_refused
    a_cancelled_run_says_so_whatever_its_log_does
    filters_combine
    every_order_has_complete_pages
    pages_are_complete_while_runs_are_added
    runs_without_figures_sort_last
    runs_are_compared
    lists_show_predictions_as_comparisons_do
}

fn stored_results_never_change(kind: Kind) {
    let server = Server::at(&Place::new(kind));
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
    run.comparable = Comparability { yes: false, reasons: vec!["it was profiled".into()] };
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
    let server = Server::at(&Place::new(kind));
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
    let server = Server::at(&Place::new(kind));
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
    let server = Server::at(&Place::new(kind));
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

fn a_cancelled_run_says_so_whatever_its_log_does(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    // The log ends in the middle of the run, without a word.
    let whole = String::from_utf8(log(12.39, 50)).unwrap();
    let lines: String = whole.lines().take(32).map(|line| format!("{line}\n")).collect();
    let cut = made_of(lines.into_bytes()).run;
    let mut carried = carried(12.39, "eos").run.carried.unwrap();
    (carried.round, carried.jobs[0].state) = (Some(3), "CANCELLED".into());
    let run = cut.of_run(Uuid::now_v7(), carried);
    assert_eq!(owner.put(&run).status, 201);
    let summary = owner.json(&format!("/runs/{}/summary", run.id));
    assert_eq!((&summary["status"], &summary["round"]), (&"cancelled".into(), &3.into()));
    let reason = "The job was cancelled after 32 of 50 steps.";
    assert_eq!(summary["reason"], reason);
    assert_eq!(owner.all("status=cancelled"), [run.id.to_string()]);
    let line = &owner.json("/history")["series"][0];
    let point = &line["points"][0];
    assert_eq!((&point["title"], &point["reason"]), (&"nightly@3/llama-8b".into(), &reason.into()));
}

fn filters_combine(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let all = [made(12.0), carried(13.0, "eos"), carried(14.0, "dgx"), made(f64::NAN)];
    for made in &all {
        assert_eq!(owner.put(&made.run).status, 201);
    }
    // A campaign's run is found by its log once the server has that log, any other run also before.
    let eos = &all[1];
    assert!(owner.put_log(eos.run.id, 0, true, &eos.log).status < 300);
    let logs = all.each_ref().map(|made| made.run.source.sha256.clone());
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
        (format!("log={}", logs[0]), vec![&own]),
        (format!("log={}", logs[1].to_uppercase()), vec![&eos]),
        (format!("log={}", logs[2]), vec![]),
        (format!("log={}", "0".repeat(64)), vec![]),
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
        ("log=71", "64 hexadecimal digits"),
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
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    // Some values are equal, and some are missing.
    let times = [11.0, 12.0, 12.0, 12.0, 10.5, 13.25];
    let mut runs: Vec<Made> = times.iter().map(|seconds| carried(*seconds, "eos")).collect();
    runs.extend((0..3).map(|steps| made_of([log(f64::NAN, 50), vec![b'\n'; steps]].concat())));
    // No campaign launched these, so they have no plan but a prediction.
    runs.extend([9.25, 14.5].map(made));
    for made in &runs {
        assert_eq!(owner.put(&made.run).status, 201);
    }
    for key in [
        "received_at",
        "step_time_s",
        "tokens_per_s",
        "mfu",
        "speed_percent",
        "plan_error",
        "prediction_error",
    ] {
        for sort in [key.to_owned(), format!("-{key}")] {
            let whole = owner.json(&format!("/runs?sort={sort}"));
            let value = |run: &Value| match key {
                "received_at" => None,
                "step_time_s" => run["judged_s"].as_f64(),
                "speed_percent" => run["baseline"][key].as_f64(),
                "plan_error" => run["plan"]["error"].as_f64(),
                "prediction_error" => run["plan"]["error"].as_f64().or(run["prediction"]["error"].as_f64()),
                _ => run[key].as_f64(),
            };
            let values: Vec<_> = whole["items"].as_array().unwrap().iter().filter_map(value).collect();
            let is_sorted = |down: bool| values.is_sorted_by(|a, b| if down { a >= b } else { a <= b });
            assert!(is_sorted(sort.starts_with('-')), "{sort}: {values:?}");
            if key != "received_at" {
                let with_value = if key == "plan_error" { times.len() } else { times.len() + 2 };
                assert_eq!(values.len(), with_value, "{sort}: {values:?}");
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
    // Also if the values have the same type, or the direction is another.
    for sort in ["received_at", "tokens_per_s", "-mfu"] {
        let refused = owner.get(&format!("/runs?sort={sort}&cursor={}", encoded(&cursor)));
        assert!(refused.problem(400).contains("order"), "{sort}");
    }
    assert_eq!(owner.get(&format!("/runs?sort=mfu&cursor={}", encoded(&cursor))).status, 200);
}

fn results_that_are_not_utf_8_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, made) = (server.owner(), made(12.39));
    let mut file = b"{\"of_a_newer_program\":\"\xff\",".to_vec();
    file.extend_from_slice(&file_of(&made.run)[1..]);
    let path = format!("/runs/{}", made.run.id);
    let refused = owner.ask("PUT", &path, &[("content-digest", &digest(&file))], Some(&file)).problem(422);
    assert!(refused.contains("not UTF-8: its byte 24 is invalid"), "{refused}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(made.run.file_name()), &file).unwrap();
    let import = server.place.trainplan(&["import", folder.path().to_str().unwrap(), "--format", "json"]);
    let rows: Value = serde_json::from_str(&import.stdout).unwrap();
    assert_eq!((import.code, &rows[0]["outcome"]), (Some(1), &"invalid".into()));
    assert!(rows[0]["reason"].as_str().unwrap().contains("not UTF-8"), "{rows}");
    assert_eq!(owner.all(""), [""; 0]);
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
    let server = Server::at(&Place::new(kind));
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

fn runs_are_compared(kind: Kind) {
    let server = Server::at(&Place::new(kind));
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

fn lists_show_predictions_as_comparisons_do(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let (owner, own, launched) = (server.owner(), made(12.0), carried(12.6, "eos"));
    for made in [&own, &launched] {
        assert_eq!(owner.put(&made.run).status, 201);
    }
    let listed = owner.json("/runs?sort=received_at");
    let compared = owner.json(&format!("/compare?ids={},{}", own.run.id, launched.run.id));
    for place in 0..2 {
        for key in ["plan", "prediction", "baseline"] {
            assert_eq!(listed["items"][place][key], compared["items"][place][key], "{place}: {key}");
        }
    }
    let has = |place: usize| ["plan", "prediction"].map(|key| listed["items"][place][key].is_object());
    assert_eq!([has(0), has(1)], [[false, true], [true, false]]);
}
