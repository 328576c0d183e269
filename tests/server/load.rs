//! How much the server carries: `make load`. Figures are printed; none is judged.

use crate::harness::{
    Client, Kind, Made, Options, Place, SOON, Server, digest, file_of, log, made_of, wait_for,
};
use crate::services::execute;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use uuid::Uuid;

const CLIENTS: usize = 32;

/// No limit but the machine's.
const UNLIMITED: Options<'static> =
    Options { arguments: &["--requests-per-minute", "4000000000"], environment: &[], by: &[] };

fn setting(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

#[test]
#[ignore = "takes minutes"]
fn load_on_sqlite() {
    measure("SQLite and a folder", &Place::local());
}

#[test]
#[ignore = "takes minutes"]
fn load_on_postgres() {
    measure("PostgreSQL and a bucket", &Place::new(Kind::Shared));
}

fn measure(name: &str, place: &Place) {
    let wanted = setting("LOAD_RUNS", 100_000);
    let uploads = wanted.min(1_000);
    let server = Server::with(place, &UNLIMITED);
    println!("== {name}");
    let start = Instant::now();
    let times = put_many(&server, uploads);
    let rate = uploads as f64 / start.elapsed().as_secs_f64();
    row(&format!("upload of a result, {CLIENTS} clients: {rate:.0} a second"), times);
    let owner = server.owner();
    let some = owner.all_of_one_page();
    // The others are copied in the database, with new ids: through the API that would take much longer. Their files are those of
    // other runs, so that they are listed only.
    multiply(place, uploads, wanted);
    let count = place.number("SELECT count(*) FROM runs");
    println!("{count} runs stored");
    for (what, path) in [
        ("list, newest 100", "/runs".to_owned()),
        ("list of a recipe, 100", "/runs?recipe=llama3.1-8b/h100/fp8/8@25.04".into()),
        ("list by step time, 100", "/runs?sort=step_time_s&gpu=h100".into()),
        ("list by plan error, 100", "/runs?sort=-plan_error".into()),
        ("list by prediction error, 100", "/runs?sort=-prediction_error".into()),
        ("list, newest 1000", "/runs?limit=1000".into()),
        ("history of everything", "/history".into()),
        ("history of a cluster", "/history?cluster=cluster7".into()),
        ("summary", format!("/runs/{}/summary", some[0])),
        ("comparison of 2", format!("/compare?ids={}", some[..2].join(","))),
        ("comparison of 8", format!("/compare?ids={}", some[..8].join(","))),
    ] {
        row(what, asked(&owner, &path, 200));
    }
    println!("peak memory of the server: {} MB", server.peak_memory() >> 20);
}

impl Client {
    fn all_of_one_page(&self) -> Vec<String> {
        crate::harness::ids(&self.json("/runs?limit=100"))
    }
}

/// Puts so many runs by many clients, and how long each took.
fn put_many(server: &Server, count: usize) -> Vec<Duration> {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let (owner, mut times) = (server.owner(), Vec::new());
                    while let Some(number) =
                        Some(next.fetch_add(1, Ordering::Relaxed)).filter(|next| *next < count)
                    {
                        let mut run = crate::harness::carried(
                            10.0 + (number % 977) as f64 / 500.0,
                            &format!("cluster{}", number % 20),
                        )
                        .run;
                        run.id = Uuid::now_v7();
                        let file = file_of(&run);
                        let (digest, path) = (digest(&file), format!("/runs/{}", run.id));
                        let start = Instant::now();
                        let answer = owner.send("PUT", &path, &[("content-digest", &digest)], Some(&file));
                        assert_eq!(answer.unwrap().status, 201);
                        times.push(start.elapsed());
                    }
                    times
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

/// Copies what is stored until there is so much.
fn multiply(place: &Place, mut count: usize, wanted: usize) {
    let is_postgres = place.database.is_some();
    let columns = "ran_at, path, campaign, run, repeat, cluster, recipe, model, gpu, gpus, dtype, status, ending, step_time_std_s, \
        step_time_std_kind, step_time_n, judged_s, steady_mean_s, tokens_per_s, mfu, convention, baseline_step_time_s, speed_percent, plan_low_s, \
        plan_mid_s, plan_high_s, plan_error, prediction_low_s, prediction_mid_s, prediction_high_s, prediction_error, is_comparable, \
        parser_version, line, summary_version, token";
    let new_id = if is_postgres {
        "gen_random_uuid()::text"
    } else {
        "lower(printf('%s-%s-4%s-8%s-%s', hex(randomblob(4)), hex(randomblob(2)), substr(hex(randomblob(2)), 2), \
         substr(hex(randomblob(2)), 2), hex(randomblob(6))))"
    };
    while count < wanted {
        let more = count.min(wanted - count);
        let copies = format!(
            "CREATE TEMPORARY TABLE copies AS SELECT id AS old, {new_id} AS id FROM runs LIMIT {more}; \
             INSERT INTO runs (id, received_at, sha256, step_time_s, {columns}) \
               SELECT copies.id, received_at, sha256, step_time_s, {columns} \
               FROM copies JOIN runs ON runs.id = copies.old; \
             INSERT INTO results (id, file) SELECT copies.id, file FROM copies JOIN results ON results.id = copies.old; \
             DROP TABLE copies"
        );
        execute(&place.address(), &copies).unwrap();
        count += more;
    }
    if is_postgres {
        execute(&place.address(), "ANALYZE").unwrap();
    }
}

/// How long an answer takes, asked so many times by four at once.
fn asked(owner: &Client, path: &str, times: usize) -> Vec<Duration> {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let ask = || {
                        let start = Instant::now();
                        assert_eq!(owner.send("GET", path, &[], None).unwrap().status, 200);
                        start.elapsed()
                    };
                    (0..times / 4).map(|_| ask()).collect::<Vec<_>>()
                })
            })
            .collect();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    })
}

/// Prints the middle and the slow end of some times.
fn row(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
    println!("{what:<60} p50 {:8.1} ms   p99 {:8.1} ms", at(0.5), at(0.99));
}

#[test]
#[ignore = "takes minutes"]
fn load_a_log_of_1_gb_over_a_connection_that_breaks() {
    for kind in [Kind::Local, Kind::Shared] {
        let server = Server::with(&Place::new(kind), &UNLIMITED);
        let owner = server.owner();
        let Made { run, log } = long(setting("LOAD_LOG_BYTES", 1 << 30));
        assert_eq!(owner.put(&run).status, 201);
        let start = Instant::now();
        let mut cuts = 0;
        while cuts < 50 {
            let offset = owner.offset(run.id).unwrap();
            let sent = fastrand::usize(..(log.len() - offset).min(log.len() / 30));
            let mut wire = server.wire();
            write!(
                wire,
                "PUT /api/v1/runs/{}/log HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nUpload-Offset: {offset}\r\n\
                 Upload-Complete: ?1\r\nContent-Length: {}\r\n\r\n",
                run.id,
                server.owner,
                log.len() - offset + 1
            )
            .unwrap();
            wire.write_all(&log[offset..offset + sent]).unwrap();
            drop(wire);
            wait_for("all that was sent", SOON, || {
                (owner.offset(run.id) == Some(offset + sent)).then_some(())
            });
            cuts += 1;
        }
        let offset = owner.offset(run.id).unwrap();
        assert_eq!(owner.put_log(run.id, offset, true, &log[offset..]).status, 200);
        let took = start.elapsed().as_secs_f64();
        let peak = server.peak_memory() >> 20;
        assert!(owner.get(&format!("/runs/{}/log", run.id)).body == log, "it is the log");
        println!(
            "== a log of {} MB in {cuts} broken pieces, {kind:?}: {took:.1} s; peak memory of the server {peak} MB, after \
             reading it back {} MB",
            log.len() >> 20,
            server.peak_memory() >> 20
        );
    }
}

/// A run of a log as large as that, that compresses as real logs do.
fn long(bytes: usize) -> Made {
    let mut text = log(12.39, 50);
    while text.len() < bytes {
        let line = format!(
            "rank {} {:016x} some words that come again and again in a log of this kind\n",
            fastrand::u16(..),
            fastrand::u64(..)
        );
        text.extend_from_slice(line.repeat(4).as_bytes());
    }
    made_of(text)
}
