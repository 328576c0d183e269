//! Texts and lists beyond their maxima, and figures that make no sense, are refused with the field's name.

use crate::harness::{
    Answer, Client, Kind, Place, SOON, Server, carried, digest, file_of, ids, made, made_long,
    on_every_store, progress, read_head, wait_for,
};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};
use trainplan_shared::result::RunResult;

on_every_store! {
    long_texts_and_lists_in_results_are_refused
    impossible_figures_are_refused
    unknown_fields_of_results_are_bounded
    scenarios_that_make_no_sense_are_listed_without_it
    no_run_is_much_later_than_its_upload
    long_query_parameters_are_refused
    impossible_reports_of_progress_are_refused
    attacks_on_memory_stay_below_512_mb
    bursts_of_large_uploads_stay_below_512_mb
    downloads_that_nobody_reads_do_not_block_others
}

/// Uploads a result after setting a field, by its JSON pointer.
fn put(owner: &Client, pointer: &str, value: Value) -> Answer {
    let run = carried(12.39, "eos").run;
    let mut file: Value = serde_json::from_slice(&file_of(&run)).unwrap();
    match file.pointer_mut(pointer) {
        Some(field) => *field = value,
        None => {
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            file.pointer_mut(parent).unwrap()[name] = value;
        }
    }
    let body = file.to_string().into_bytes();
    owner.ask("PUT", &format!("/runs/{}", run.id), &[("content-digest", &digest(&body))], Some(&body))
}

fn long_texts_and_lists_in_results_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let begun = Instant::now();
    for (pointer, value, field) in [
        ("/identity/scenario/recipe", json!("a".repeat(5 << 20)), "identity.scenario.recipe"),
        ("/identity/scenario/model", json!("a".repeat(20_000)), "identity.scenario"),
        ("/source/path", json!("p".repeat(4097)), "source.path"),
        ("/carried/campaign", json!("c".repeat(201)), "carried.campaign"),
        ("/carried/cluster", json!("c".repeat(201)), "carried.cluster"),
        ("/carried/jobs/0/id", json!("1".repeat(201)), "carried.jobs[].id"),
        ("/comparable/reasons", json!(vec!["x"; 101]), "comparable.reasons"),
    ] {
        let detail = put(&owner, pointer, value).problem(422);
        assert!(detail.contains(&format!("{field} has ")) && detail.contains("at most"), "{detail}");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(put(&owner, "/source/path", json!("p".repeat(4096))).status, 201);
    assert_eq!(put(&owner, "/carried/campaign", json!("c".repeat(200))).status, 201);
    assert_eq!(owner.all("").len(), 2);
    let document = owner.get("/openapi.json").text();
    assert!(document.contains("`source.path`: at most 4096 bytes"));
}

fn impossible_figures_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let checkpoints = |duration_s| json!([{ "action": "save", "iteration": 50, "duration_s": duration_s }]);
    let failures = |offset: u64| {
        json!([{
            "kind": "out_of_memory", "count": 1, "line": 1, "offset": offset, "last_offset": 0, "ranks": [],
            "text": "CUDA out of memory", "after_last_step": false
        }])
    };
    for (pointer, value, field) in [
        ("/log/steps/step_time_s/49", json!(0.0), "log.steps.step_time_s"),
        ("/log/steps/step_time_s/49", json!(-1.0), "log.steps.step_time_s"),
        ("/log/steps/step_time_s/49", json!(1e-300), "log.steps.step_time_s"),
        ("/log/steps/step_time_s/0", json!(1e300), "log.steps.step_time_s"),
        ("/log/steps/global_batch_size/49", json!(-128.0), "log.steps.global_batch_size"),
        ("/log/steps/global_batch_size/49", json!(5e-324), "log.steps.global_batch_size"),
        ("/carried/plan/memory_bytes", json!(5e-324), "carried.plan.memory_bytes"),
        ("/log/checkpoints", checkpoints(json!(-1.0)), "log.checkpoints[].duration_s"),
        ("/log/checkpoints", checkpoints(json!(1e308)), "log.checkpoints[].duration_s"),
        ("/log/bytes", json!(1_u64 << 63), "log.bytes"),
        ("/log/lines", json!(1_u64 << 63), "log.lines"),
        ("/log/restarts", json!(1_u64 << 63), "log.restarts"),
        ("/log/failures", failures(1 << 63), "log.failures[] (counts and offsets)"),
        ("/source/sha256", json!("../../etc/passwd"), "source.sha256"),
        ("/carried/launch/script_sha256", json!("none"), "carried.launch.script_sha256"),
        ("/carried/plan/step_time_s/low", json!(1e6), "carried.plan.step_time_s"),
        ("/log/steps/step_time_s/49", json!(1e9), "log.steps.step_time_s"),
        ("/source/written_at", json!("yesterday"), "source.written_at"),
        ("/source/began_at", json!("2026-05-10 10:00:12"), "source.began_at"),
        ("/source/written_at", json!("9999-12-31T23:59:59Z"), "source.written_at"),
        ("/source/written_at", json!("2199-12-31T23:59:59-23:59"), "source.written_at"),
        ("/source/written_at", json!("1970-01-01T00:00:00+14:00"), "source.written_at"),
        ("/carried/jobs/0/started", json!("9999-12-31T23:59:59Z"), "carried.jobs[].started"),
        ("/comparable/yes", json!(false), "comparable.yes"),
        ("/comparable/reasons", json!(["It was profiled."]), "comparable.yes"),
        ("/carried/launch/comparable/yes", json!(false), "carried.launch.comparable.yes"),
        ("/carried/repeat", json!(0), "carried.repeat"),
    ] {
        let detail = put(&owner, pointer, value).problem(422);
        assert!(detail.contains(&format!("{field} must be ")), "{detail}");
    }
    assert_eq!(ids(&owner.json("/runs?sort=-mfu")), [""; 0]);
    for (pointer, value) in [
        ("/log/checkpoints", checkpoints(json!(0.0))),
        ("/log/bytes", json!(1_u64 << 53)),
        ("/log/failures", failures(1 << 53)),
        ("/log/steps/global_batch_size/49", json!(0.0)),
        ("/comparable", json!({ "yes": false, "reasons": ["It was profiled."] })),
    ] {
        assert_eq!(put(&owner, pointer, value).status, 201, "{pointer}");
    }
}

fn unknown_fields_of_results_are_bounded(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let nested = |depth: usize| (0..depth).fold(json!([]), |inner, _| json!([inner]));
    for (pointer, value, said) in [
        ("/new", json!("x".repeat(20 << 20)), "new has a text or number of more than 16,384 bytes"),
        ("/source/new", json!({ "a": ["x".repeat(17_000)] }), "source.new.a[] has a text"),
        ("/log/new", nested(1000), "is nested deeper than 64 arrays and objects"),
        ("/new", json!(vec![12_345; 400_000]), "does not know; at most 1,048,576 are accepted"),
    ] {
        let detail = put(&owner, pointer, value).problem(422);
        assert!(detail.contains(said), "{detail}");
    }
    // Deeper than any program's stack.
    let run = carried(12.0, "eos").run;
    let deep = [&b"{\"new\":"[..], &b"[".repeat(1 << 20), &b"]".repeat(1 << 20), b","].concat();
    let file = [&deep[..], &file_of(&run)[1..]].concat();
    let headers = [("content-digest", &*digest(&file))];
    let answer = owner.ask("PUT", &format!("/runs/{}", run.id), &headers, Some(&file));
    assert!(answer.problem(422).contains("nested deeper"), "{}", answer.text());
    assert!(put(&owner, "/version", json!(0)).problem(422).contains("version 0"));
    assert_eq!(owner.all(""), [""; 0]);
    // What a newer program adds is stored.
    let answer = put(&owner, "/log/new", json!({ "unit": "s", "values": vec![1.5; 1000] }));
    assert_eq!(answer.status, 201);
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(owner.json(&format!("/runs/{id}"))["log"]["new"]["unit"], "s");
    assert!(owner.get("/openapi.json").text().contains("nested at most 64 deep"));
}

/// A run whose scenario is not known for sure keeps what was said of it. Its row must not count as damaged, and must not be long.
fn scenarios_that_make_no_sense_are_listed_without_it(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    for (field, text, listed) in [
        ("gpus", "0".to_owned(), Value::Null),
        ("gpus", "12".to_owned(), json!(12)),
        ("model", "a".repeat(1025), Value::Null),
        ("model", "a".repeat(1024), json!("a".repeat(1024))),
    ] {
        let answer = put(&owner, "/identity/scenario", json!({ field: text }));
        assert_eq!(answer.status, 201, "{}", answer.text());
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        let row = owner.json(&format!("/runs/{id}/summary"));
        assert_eq!((&row[field], &row["result_fault"]), (&listed, &Value::Null));
        assert_eq!(owner.json(&format!("/runs/{id}"))["identity"]["scenario"][field], text);
    }
}

/// If the clock of its cluster was far ahead, it would otherwise stay the newest of its time line.
fn no_run_is_much_later_than_its_upload(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let in_hours = |hours| format!("{:.6}", jiff::Timestamp::now() + jiff::SignedDuration::from_hours(hours));
    let far = "2199-01-01T00:00:00.000000Z".to_owned();
    for (started, is_kept) in
        [(far, false), (in_hours(30), false), (in_hours(14), true), (in_hours(-48), true)]
    {
        let answer = put(&owner, "/carried/jobs/0/started", json!(started));
        assert_eq!(answer.status, 201, "{}", answer.text());
        let row = owner.json(&format!("/runs/{}/summary", answer.json()["id"].as_str().unwrap()));
        let expected = if is_kept { json!(started) } else { row["received_at"].clone() };
        assert_eq!(row["ran_at"], expected, "{started}");
    }
}

fn long_query_parameters_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let anyone = server.anyone();
    let long = "a".repeat(40_000);
    for name in ["recipe", "cluster", "campaign", "model", "gpu", "dtype", "line", "sort", "cursor", "since"]
    {
        let detail = anyone.get(&format!("/runs?{name}={long}")).problem(422);
        assert!(detail.starts_with(&format!("{name} has 40000 bytes")), "{detail}");
    }
    anyone.get(&format!("/compare?ids={long}")).problem(422);
    anyone.get(&format!("/runs?{long}=x")).problem(422);
    let document = anyone.json("/openapi.json");
    let parameters = document["paths"]["/runs"]["get"]["parameters"].as_array().unwrap().clone();
    let recipe = parameters.iter().find(|parameter| parameter["name"] == "recipe").unwrap();
    assert_eq!(recipe["schema"]["maxLength"], 200);
}

fn impossible_reports_of_progress_are_refused(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let path = format!("/runs/{}/progress", carried(12.0, "eos").run.id);
    for (pointer, field) in [("/campaign", "campaign"), ("/recipe", "recipe"), ("/jobs/0", "jobs[]")] {
        let mut report = progress(1);
        *report.pointer_mut(pointer).unwrap() = json!("x".repeat(201));
        let detail = owner.post(&path, &report).problem(422);
        assert!(detail.starts_with(&format!("{field} has 201 bytes; at most 200")), "{detail}");
    }
    for (field, value) in [
        ("at", json!("yesterday")),
        ("at", json!("9999-01-01T00:00:00Z")),
        ("repeat", json!(0)),
        ("step", json!(u64::MAX)),
        ("step", json!(100_000_001)),
        ("steps", json!(0)),
        ("steps", json!(u64::MAX)),
        ("planned_s", json!(-5)),
        ("planned_s", json!(0)),
        ("step_time_s", json!(1e308)),
        ("jobs", json!(vec!["1"; 1001])),
    ] {
        let mut report = progress(1);
        report[field] = value;
        let detail = owner.post(&path, &report).problem(422);
        assert!(detail.starts_with(&format!("{field} ")), "{detail}");
    }
    assert_eq!(owner.json("/progress")["items"], json!([]));
    // A run that continues from a checkpoint counts its steps on.
    assert_eq!(owner.post(&path, &progress(2000)).status, 204);
}

/// The ids of unfinished runs are in a list, and the first result with an id counts.
#[test]
fn a_result_without_a_campaign_does_not_take_the_id_of_an_unfinished_run() {
    let server = Server::start();
    let (owner, run) = (server.owner(), carried(12.0, "eos").run);
    assert_eq!(owner.post(&format!("/runs/{}/progress", run.id), &progress(1)).status, 204);
    let other = RunResult { id: run.id, ..made(13.0).run };
    let detail = owner.put(&other).problem(422);
    assert!(detail.contains(": id must be that of the log"), "{detail}");
    assert_eq!(owner.json("/progress")["items"][0]["id"], run.id.to_string());
    assert_eq!(owner.put(&run).status, 201);
}

/// A valid result of this size, with blanks between its fields.
fn padded(run: &RunResult, bytes: usize) -> Vec<u8> {
    let mut file = file_of(run);
    let end = file.iter().rposition(|byte| *byte == b'}').unwrap();
    file.splice(end..end, std::iter::repeat_n(b' ', bytes));
    file
}

/// What one burst leaves behind must not add up with the next one.
fn bursts_of_large_uploads_stay_below_512_mb(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let mut stored = 0;
    for _ in 0..3 {
        let answers: Vec<_> = thread::scope(|scope| {
            let put = || {
                let run = carried(12.0, "eos").run;
                put_file(&owner, &run, &padded(&run, 44 << 20), "identity")
            };
            let uploads: Vec<_> = (0..20).map(|_| scope.spawn(put)).collect();
            uploads.into_iter().map(|upload| upload.join().unwrap()).collect()
        });
        // A slow client may see its connection closed.
        for answer in answers.into_iter().flatten() {
            match answer.status {
                201 => stored += 1,
                _ => assert!(answer.problem(503).contains("too many large requests")),
            }
        }
    }
    assert!(stored > 0);
    assert_eq!(owner.all("").len(), stored);
    assert!(server.peak_memory() < 512 << 20, "{} bytes", server.peak_memory());
}

/// Uploads the bytes of a result file.
fn put_file(owner: &Client, run: &RunResult, body: &[u8], coding: &str) -> Result<Answer, ureq::Error> {
    let headers = [("content-digest", &*digest(body)), ("content-encoding", coding)];
    owner.try_ask("PUT", &format!("/runs/{}", run.id), &headers, Some(body))
}

fn attacks_on_memory_stay_below_512_mb(kind: Kind) {
    let server = Server::at(&Place::new(kind));
    let owner = server.owner();
    let put = |run: &RunResult, body: &[u8], coding: &str| put_file(&owner, run, body, coding);
    // A small body that decompresses to 60 MB.
    let run = carried(12.0, "eos").run;
    let small = zstd::encode_all(&padded(&run, 60 << 20)[..], 19).unwrap();
    assert!(put(&run, &small, "zstd").unwrap().problem(413).contains("256 times its size"));
    // Lists that take far more memory than in the file, until their maxima are known to be exceeded.
    let file = String::from_utf8(file_of(&run)).unwrap();
    for (empty, item, count, said) in [
        (r#""conflicts":["#, r#""","#, 15_000_000, "2,000,000 texts, lists and objects"),
        (r#""label":["#, "0,", 20_000_000, "1,000,000 numbers in a row"),
    ] {
        assert!(file.contains(empty));
        let long = file.replacen(empty, &(empty.to_owned() + &item.repeat(count)), 1);
        let answer = put(&run, long.as_bytes(), "identity").unwrap();
        assert!(answer.problem(422).contains(said), "{}", answer.text());
    }
    // Large results at once: some are stored, others have to wait.
    let runs: Vec<_> = (0..6).map(|_| carried(12.0, "eos").run).collect();
    let large: Vec<_> = runs.iter().map(|run| padded(run, 44 << 20)).collect();
    let answers: Vec<_> = thread::scope(|scope| {
        let uploads: Vec<_> =
            runs.iter().zip(&large).map(|(run, file)| scope.spawn(|| put(run, file, "identity"))).collect();
        uploads.into_iter().map(|upload| upload.join().unwrap()).collect()
    });
    // A client that still sends when it is refused may see its connection closed.
    for answer in answers.into_iter().flatten().filter(|answer| answer.status != 201) {
        answer.problem(503);
        assert!(answer.header("retry-after").is_some());
    }
    for (run, file) in runs.iter().zip(&large) {
        assert!([200, 201].contains(&put(run, file, "identity").unwrap().status));
    }
    // Comparisons that would read them all.
    let all: Vec<String> = runs.iter().map(|run| run.id.to_string()).collect();
    let detail = owner.get(&format!("/compare?ids={}", all.join(","))).problem(413);
    assert!(detail.contains("Name fewer runs"), "{detail}");
    assert_eq!(owner.get(&format!("/compare?ids={}", all[0])).status, 200);
    // A smaller result under the id of a large one is compared with it.
    let other = carried(13.0, "eos").run.of_run(runs[0].id, runs[0].carried.clone().unwrap());
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let answer = owner.try_put(&other).unwrap();
                assert!([409, 503].contains(&answer.status), "{}", answer.text());
            });
        }
    });
    // Many lists of paths that are long as JSON, results and scores. Half of the readers read nothing, the others a little.
    let listed: Vec<_> = (0..300).map(|_| carried(12.0, "eos").run).collect();
    for mut run in listed.iter().cloned() {
        run.source.path = "\u{1}".repeat(4096);
        assert_eq!(owner.put(&run).status, 201);
    }
    let paths = [
        "/runs?limit=1000".to_owned(),
        format!("/runs/{}", runs[0].id),
        format!("/runs/{}/scores", runs[1].id),
    ];
    let mut readers: Vec<_> = (0..300).map(|_| server.wire()).collect();
    for (wire, path) in readers.iter_mut().zip(paths.iter().cycle()) {
        write!(wire, "GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }
    let mut trickling: Vec<_> = readers.iter_mut().step_by(2).collect();
    for wire in &mut trickling {
        // Each is answered, if only by 503.
        assert!(wire.read(&mut [0; 100]).unwrap() > 0);
        wire.set_nonblocking(true).unwrap();
    }
    for _ in 0..20 {
        for wire in &mut trickling {
            // A short answer is over by now.
            let _ = wire.read(&mut [0; 100]);
        }
        thread::sleep(Duration::from_millis(100));
    }
    drop(readers);
    wait_for("room for a list", SOON, || {
        owner.send("GET", "/runs?limit=1", &[], None).is_ok_and(|answer| answer.status == 200).then_some(())
    });
    assert_eq!(owner.all("").len(), runs.len() + listed.len());
    assert!(server.peak_memory() < 512 << 20, "{} bytes", server.peak_memory());
}

/// Each download occupies 3 MiB while it is sent, of 128 MiB for all of them. Further ones are refused at once.
fn downloads_that_nobody_reads_do_not_block_others(kind: Kind) {
    const MOST: usize = 128 / 3;
    let server = Server::at(&Place::new(kind));
    // Longer than the part of an unread answer that the system buffers.
    let (owner, made) = (server.owner(), made_long(4 << 20));
    owner.put_all(&made);
    let path = format!("/runs/{}/log", made.run.id);
    let ask = |_| {
        let mut wire = server.wire();
        write!(wire, "GET /api/v1{path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        BufReader::new(wire)
    };
    let mut readers: Vec<_> = (0..MOST + 8).map(ask).collect();
    let heads: Vec<String> = readers.iter_mut().map(read_head).collect();
    let (served, refused): (Vec<_>, Vec<_>) =
        heads.iter().partition(|head| head.starts_with("HTTP/1.1 200 "));
    assert_eq!(served.len(), MOST, "{refused:?}");
    for head in refused {
        assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("retry-after: "), "{head}");
    }
    let answer = owner.get(&path);
    assert!(answer.problem(503).contains("Try again"), "{}", answer.text());
    assert!(answer.header("retry-after").is_some());
    // As it is stored, a log occupies nothing.
    let packed = owner.ask("GET", &path, &[("accept-encoding", "zstd")], None);
    assert!(zstd::decode_all(&packed.body[..]).unwrap() == made.log, "it is the log");
    let other = carried(12.0, "eos");
    owner.put_all(&other);
    assert_eq!(owner.all("").len(), 2);
    assert_eq!(owner.get(&format!("{path}/lines?count=1")).status, 200);
    drop(readers);
    wait_for("room for a download", SOON, || (owner.get(&path).status == 200).then_some(()));
    assert!(owner.get(&path).body == made.log, "it is the log");
}

/// Returns whether the server has not closed this connection yet. What it wrote can still be read after that.
fn is_open(wire: &TcpStream) -> bool {
    // Addresses are in hexadecimal digits, and 01 means established.
    let ends =
        [wire.peer_addr(), wire.local_addr()].map(|end| format!("0100007F:{:04X}", end.unwrap().port()));
    let connections = fs::read_to_string("/proc/net/tcp").unwrap();
    connections.lines().any(|line| line.contains(&format!(" {} {} 01 ", ends[0], ends[1])))
}

/// Readers of large answers are disconnected if they read less than 64 KiB a second, and not only if they read
/// nothing: each occupies memory.
#[test]
fn readers_that_trickle_are_disconnected() {
    let server = Server::start();
    let owner = server.owner();
    let run = carried(12.0, "eos").run;
    let file = padded(&run, 30 << 20);
    let headers = [("content-digest", &*digest(&file))];
    assert_eq!(owner.ask("PUT", &format!("/runs/{}", run.id), &headers, Some(&file)).status, 201);
    let mut wire = server.wire();
    write!(wire, "GET /api/v1/runs/{} HTTP/1.1\r\nHost: localhost\r\n\r\n", run.id).unwrap();
    let mut read = 0;
    let mut piece = || {
        read += wire.read(&mut [0; 1000]).unwrap();
        thread::sleep(Duration::from_millis(100));
        is_open(&wire)
    };
    // The system takes megabytes from the server at once, so that the server waits longer at first.
    wait_for("the disconnection", 3 * SOON, || (!piece()).then_some(()));
    while let Ok(count @ 1..) = wire.read(&mut [0; 1000]) {
        read += count;
    }
    assert!(read < 20 << 20, "{read} bytes");
}
