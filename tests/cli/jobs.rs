//! `trainplan jobs`, on journals that the tests write.

use crate::compare::log;
use crate::terminal::on_terminal;
use crate::{csv, json, refusal};
use serde_json::{Value, json as value};
use sqlx::{AnyConnection, Connection, Executor};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};
use tempfile::TempDir;
use trainplan_tests::trainplan;

/// When the jobs are submitted, in seconds since 1970.
const SUBMITTED: i64 = 1_700_000_000;

/// A data directory whose journal a test fills.
pub(crate) struct OwnJournal {
    place: TempDir,
    sql: String,
}

impl OwnJournal {
    pub(crate) fn new() -> OwnJournal {
        OwnJournal { place: tempfile::tempdir().unwrap(), sql: String::new() }
    }

    pub(crate) fn data(&self) -> String {
        self.place.path().join("data").to_string_lossy().into_owned()
    }

    /// Adds a round, whose queue last answered some seconds after [`SUBMITTED`].
    fn round(&mut self, cluster: &str, seen_s: i64) {
        let seen_ms = (SUBMITTED + seen_s) * 1000;
        self.sql += &format!(
            "INSERT INTO round (id, campaign, cluster, ssh, sha256, begun_ms, seen_ms) VALUES ('{cluster}', \
             'nightly', '{cluster}', 'login', '0', 1, {seen_ms});\n"
        );
    }

    /// Adds a round of a campaign that is over.
    pub(crate) fn ended_round(&mut self, campaign: &str, cluster: &str) {
        self.sql += &format!(
            "INSERT INTO round (id, campaign, cluster, ssh, sha256, begun_ms, ended_ms) VALUES ('{cluster}', \
             '{campaign}', '{cluster}', 'login', '0', 1, 2);\n"
        );
    }

    /// Adds a run with its job's observations: seconds after [`SUBMITTED`], the job's state, and the seconds at which it
    /// started and ended. Then come further events.
    fn run(
        &mut self,
        cluster: &str,
        id: &str,
        gpus: u32,
        seen: &[(i64, Value, Option<i64>, Option<i64>)],
        more: &[Value],
    ) {
        self.run_of_plan(cluster, id, value!({ "name": id, "gpus": gpus }), seen, more);
    }

    /// The same with some keys of its plan.
    pub(crate) fn run_of_plan(
        &mut self,
        cluster: &str,
        id: &str,
        keys: Value,
        seen: &[(i64, Value, Option<i64>, Option<i64>)],
        more: &[Value],
    ) {
        let interval = value!({ "low": 9.0, "mid": 9.4, "high": 9.9 });
        let comparable = value!({ "yes": true, "reasons": [] });
        let mut plan = value!({
            "repeat": 1, "repeats": 1, "after": [], "singleton": false, "queue_budget_s": null,
            "recipe": null, "scenario": "m=llama3.1-8b", "script": "", "is_job": false,
            "secrets": [], "job_names": ["train"], "experiment_dir": "/x", "log_glob": "/x/*.out",
            "launched": {
                "release": null, "style": "launch-sh", "script_sha256": "0", "steps": 50, "comparable": comparable
            },
            "predicted": {
                "step_time_s": interval, "memory_bytes": 1.0, "capacity_bytes": 2.0, "basis": "modelled",
                "calibration": "here"
            },
            "baseline_s": null
        });
        if let (Value::Object(plan), Value::Object(keys)) = (&mut plan, keys) {
            plan.extend(keys);
        }
        self.sql += &format!(
            "INSERT INTO run (id, round, position, plan) VALUES ('{id}', '{cluster}', 0, '{plan}');\n"
        );
        let submitted = value!({ "event": "submitted", "jobs": ["7"], "launcher": { "ended": 0 } });
        let observed = seen.iter().map(|(at, state, started, ended)| {
            let event = value!({
                "event": "observed", "job": "7", "state": state, "source": "squeue", "submitted": SUBMITTED,
                "started": started.map(|time| SUBMITTED + time), "ended": ended.map(|time| SUBMITTED + time),
            });
            (*at, event)
        });
        let last = seen.last().map_or(0, |(at, ..)| *at);
        let events = [(0, submitted)].into_iter().chain(observed);
        for (at, event) in events.chain(more.iter().map(|event| (last, event.clone()))) {
            let at_ms = (SUBMITTED + at) * 1000;
            self.sql +=
                &format!("INSERT INTO event (run, at_ms, event) VALUES ('{id}', {at_ms}, '{event}');\n");
        }
    }

    /// Stores a log and returns the id of its result.
    pub(crate) fn result(&self, log: &str) -> String {
        let path = |name: &str| self.place.path().join(name).to_string_lossy().into_owned();
        let (file, results) = (path("log-acct.pretrain_llama3.1_8b_fp8_8_7_0.out"), path("results"));
        fs::write(&file, log).unwrap();
        let _ = fs::remove_dir_all(&results);
        assert_eq!(trainplan(["parse", &file, "--save", &results]).code.unwrap() & !4, 0);
        assert_eq!(trainplan(["import", &results, "--data-dir", &self.data()]).code, Some(0));
        let saved = fs::read_dir(&results).unwrap().next().unwrap().unwrap().file_name();
        saved.to_str().unwrap().split('.').next().unwrap().to_owned()
    }

    /// Writes a file beside the log that [`OwnJournal::result`] reads.
    pub(crate) fn beside_log(&self, name: &str, content: &str) {
        fs::write(self.place.path().join(name), content).unwrap();
    }

    /// Writes the journal.
    pub(crate) fn write(&self) {
        assert_eq!(trainplan(["jobs", "list", "--data-dir", &self.data()]).code, Some(0));
        sqlx::any::install_default_drivers();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let address = format!("sqlite:{}/journal.sqlite3", self.data());
            let mut journal = AnyConnection::connect(&address).await.unwrap();
            journal.execute(&*self.sql).await.unwrap();
            journal.close().await.unwrap();
        });
    }

    fn failures(&self, more: &[&str]) -> Value {
        json(&[&["jobs", "failures", "--data-dir", &self.data()], more].concat())
    }

    fn table(&self, more: &[&str]) -> String {
        let data = self.data();
        let run = trainplan([&["jobs", "failures", "--data-dir", &data, "--format", "table"], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        run.stdout
    }
}

fn running() -> Value {
    "running".into()
}

fn ended(end: &str) -> Value {
    value!({ "ended": end })
}

pub(crate) fn stored(id: &str) -> Vec<Value> {
    vec![value!({ "event": "stored", "result": id })]
}

/// Six runs on alpha, with three interruptions in 4,096 GPU-hours, and an uninterrupted run on beta.
pub(crate) fn two_clusters() -> OwnJournal {
    let mut journal = OwnJournal::new();
    let steps = |count: usize| log(128, 9400).lines().take(count).collect::<Vec<_>>().join("\n") + "\n";
    let whole = journal.result(&log(128, 9400));
    let lost = journal.result(&steps(20));
    let hung = journal.result(&(steps(21) + "RuntimeError: NCCL error in: socket.cpp\n"));
    journal.round("alpha", 4200);
    let run_of = |end: &str, hours: i64| {
        [
            (620, running(), Some(600), None),
            (600 + 3600 * hours, ended(end), Some(600), Some(600 + 3600 * hours)),
        ]
    };
    journal.run("alpha", &whole, 512, &run_of("completed", 1), &stored(&whole));
    journal.run("alpha", &lost, 512, &run_of("node_fail", 2), &stored(&lost));
    journal.run("alpha", &hung, 512, &run_of("failed", 1), &stored(&hung));
    let wrong = [value!({ "event": "failed", "why": "no log was found" })];
    journal.run("alpha", "wrong-launch", 512, &run_of("failed", 1), &wrong);
    // Slurm requeues it after an hour; the user cancels it after another one.
    let requeued = [
        (620, running(), Some(600), None),
        (4200, "pending".into(), None, None),
        (5420, running(), Some(5400), None),
        (9000, ended("cancelled"), Some(5400), Some(9000)),
    ];
    journal.run("alpha", "requeued", 512, &requeued, &[value!({ "event": "failed", "why": "cancelled" })]);
    journal.run("alpha", "in-progress", 512, &run_of("completed", 1)[..1], &[]);
    let other = journal.result(&log(128, 9500));
    journal.round("beta", 0);
    journal.run("beta", &other, 8, &run_of("completed", 12), &stored(&other));
    journal.write();
    journal
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn failures_are_counted_by_cause_with_an_interval() {
    let journal = two_clusters();
    let alpha = journal.failures(&["--cluster", "alpha"]);
    assert_eq!((&alpha["runs"], &alpha["jobs"], &alpha["rounds"]), (&6.into(), &6.into(), &1.into()));
    assert_eq!((number(&alpha["gpu_hours"]), &alpha["interruptions"]), (4096.0, &3.into()));
    let ends: Vec<(&str, u64, bool)> = alpha["ends"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let is_interruption = row["is_interruption"].as_bool().unwrap();
            (row["end"].as_str().unwrap(), row["times"].as_u64().unwrap(), is_interruption)
        })
        .collect();
    let expected = [
        ("node_failure", 1, true),
        ("communication", 1, true),
        ("requeued", 1, true),
        ("before_first_step", 1, false),
        ("cancelled", 1, false),
        ("completed", 1, false),
        ("running", 1, false),
    ];
    assert_eq!(ends, expected);
    // χ² quantiles: 2.2041 with 6 degrees of freedom at 0.1, 13.3616 with 8 at 0.9.
    let rate = &alpha["interruptions_per_gpu_hour"];
    for (key, events) in [("low", 2.2041 / 2.0), ("mid", 3.0), ("high", 13.3616 / 2.0)] {
        assert!((number(&rate[key]) * 4096.0 / events - 1.0).abs() < 1e-4, "{key}: {rate}");
    }
    assert_eq!(alpha["failure_rate"], "2.7e-4..1.6e-3");
    assert_eq!(alpha["queue"], value!({ "mean_s": 600.0, "n": 6 }));
    assert_eq!(alpha["requeue"], value!({ "mean_s": 1200.0, "n": 1 }));
    // An hour less fifty steps of 9.4 s.
    let outside = &alpha["outside_steps"];
    assert!(
        (number(&outside["mean_s"]) - (3600.0 - 50.0 * 9.4)).abs() < 10.0 && outside["n"] == 1,
        "{outside}"
    );

    // An hour of one completed job, and three of two that were interrupted.
    let goodput = &alpha["goodput"];
    assert_eq!(number(&goodput["lost_gpu_hours"]), 3.0 * 512.0);
    let training = number(&goodput["training_gpu_hours"]);
    assert!((training / (512.0 * 50.0 * 9.4 / 3600.0) - 1.0).abs() < 0.02, "{goodput}");
    assert!((number(&goodput["share"]) - training / 2048.0).abs() < 1e-9, "{goodput}");
    let table = journal.table(&["--cluster", "alpha"]);
    let text = format!("Goodput: {:.1} % of 2,048 GPU-hours went into", 100.0 * training / 2048.0);
    assert!(table.contains(&text) && table.contains("interrupted jobs took 75.0 %"), "{table}");

    let (header, rows) = csv(&["jobs", "failures", "--data-dir", &journal.data(), "--cluster", "alpha"]);
    assert_eq!(header, ["end", "times", "is_interruption"]);
    assert_eq!((rows.len(), &rows[0][..]), (7, &["node_failure", "1", "true"].map(String::from)[..]));
    assert_eq!(number(&journal.failures(&[])["gpu_hours"]), 4096.0 + 96.0);
}

#[test]
fn runs_are_listed_by_campaign_cluster_and_state() {
    let journal = two_clusters();
    let list = |more: &[&str]| {
        let data = journal.data();
        let (header, rows) = csv(&[&["jobs", "list", "--data-dir", &data], more].concat());
        let column = |name: &str| header.iter().position(|title| title == name).unwrap();
        let wanted = ["round", "run", "jobs", "queue_s", "gpu_hours"].map(column);
        let short = |row: Vec<String>| wanted.map(|place| row[place].clone());
        rows.into_iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(list(&[]).len(), 7);
    assert_eq!(list(&["--campaign", "nightly", "--cluster", "alpha"]).len(), 6);
    assert_eq!(list(&["--campaign", "nightly@1", "--state", "failed"]).len(), 4);
    assert_eq!(list(&["--campaign", "nightly@1", "--state", "cancelled"])[0][1], "requeued");
    // It waited for 600 s, and ran for an hour on 512 GPUs until the queue was last seen.
    let open = [["nightly@1", "in-progress", "7", "600", "512"].map(String::from)];
    assert_eq!(list(&["--state", "unknown"]), open);
    assert_eq!(list(&["--cluster", "gamma"]).len(), 0);
    let table =
        trainplan(["jobs", "list", "--data-dir", &journal.data(), "--format", "table", "--state", "unknown"]);
    assert!(table.stdout.contains("Campaign nightly@1 on cluster alpha"), "{}", table.stdout);
    let words = table.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no process follows it. To continue, use `trainplan run` or"), "{words}");
    let unfollowed = json(&["jobs", "show", "nightly@1/in-progress", "--data-dir", &journal.data()]);
    assert!(unfollowed["state"].as_str().unwrap().starts_with("not followed since "), "{unfollowed}");
    assert!(table.stdout.contains(" 10 min ") && !table.stdout.contains("beta"), "{}", table.stdout);
    // Every round is reachable by name.
    let shown = json(&["jobs", "show", "nightly@1/requeued", "--data-dir", &journal.data()]);
    assert_eq!((&shown["run"], &shown["round"]), (&"requeued".into(), &"nightly@1".into()));
    let said = refusal(&["jobs", "show", "nightly@2/requeued", "--data-dir", &journal.data()]);
    assert!(said.contains("Unknown run"), "{said}");
}

#[test]
fn a_retry_says_which_attempt_it_is() {
    let mut journal = OwnJournal::new();
    journal.round("alpha", 4200);
    let lost = [value!({ "event": "failed", "why": "the job lost a node" })];
    let plan = |retry: u32| value!({ "name": "large", "gpus": 8, "retries": 2, "retry": retry });
    let lost_a_node = [(620, running(), Some(600), None), (4200, ended("node_fail"), Some(600), Some(4200))];
    journal.run_of_plan("alpha", "first", plan(0), &lost_a_node, &lost);
    journal.run_of_plan("alpha", "second", plan(1), &lost_a_node[..1], &[]);
    journal.write();
    let data = journal.data();
    let table = trainplan(["jobs", "list", "--data-dir", &data, "--format", "table"]).stdout;
    let row = |run: &str| table.lines().find(|line| line.contains(run)).unwrap();
    assert!(row(" large~1 ").contains(", attempt 2 of 3"), "{table}");
    assert!(!row(" large ").contains("attempt"), "{table}");
    let (header, rows) = csv(&["jobs", "list", "--data-dir", &data]);
    let place = |title: &str| header.iter().position(|known| known == title).unwrap();
    let attempts: Vec<[&str; 2]> =
        rows.iter().map(|row| ["attempt", "attempts"].map(|title| row[place(title)].as_str())).collect();
    assert_eq!(attempts, [["1", "3"], ["2", "3"]]);
    let shown = json(&["jobs", "show", "large~1", "--data-dir", &data]);
    assert_eq!((&shown["retry"], &shown["retries"]), (&1.into(), &2.into()));
}

/// Starts a receiver that answers with these statuses in turn and then leaves. Returns its address, and a thread that
/// returns the messages.
fn receiver(answers: &'static [u16]) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook?key=s3cret", listener.local_addr().unwrap());
    let take = move |status: &u16| -> Value {
        let mut wire = BufReader::new(listener.accept().unwrap().0);
        let mut length: usize = 0;
        loop {
            let mut line = String::new();
            wire.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        wire.read_exact(&mut body).unwrap();
        let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        wire.get_mut().write_all(answer.as_bytes()).unwrap();
        serde_json::from_slice(&body).unwrap()
    };
    (address, thread::spawn(move || answers.iter().map(take).collect()))
}

#[test]
fn the_end_of_a_round_is_posted_to_a_webhook_and_a_refusal_is_not_fatal() {
    let mut journal = OwnJournal::new();
    journal.round("alpha", 4200);
    let over = [(620, running(), Some(600), None), (4200, ended("completed"), Some(600), Some(4200))];
    let scored = [
        value!({ "event": "parsed", "status": "scored", "step_time_s": 9.4 }),
        value!({ "event": "stored", "result": "good" }),
    ];
    journal.run("alpha", "good", 8, &over, &scored);
    journal.run("alpha", "bad", 8, &over, &[value!({ "event": "failed", "why": "no log was found" })]);
    journal.write();
    let data = journal.data();
    let follow = |address: &str| {
        trainplan([
            "jobs",
            "follow",
            "nightly",
            "--webhook",
            address,
            "--data-dir",
            &data,
            "--format",
            "table",
        ])
    };
    let (address, heard) = receiver(&[204]);
    let run = follow(&address);
    // One run has no score.
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    assert!(!run.stderr.contains("webhook"), "{}", run.stderr);
    let heard = heard.join().unwrap();
    let [message] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((&message["event"], &message["campaign"]), (&"round".into(), &"nightly@1".into()));
    let counts = ["runs", "scored", "failed"].map(|count| message[count].as_u64());
    assert_eq!(counts, [Some(2), Some(1), Some(1)]);
    assert_eq!(message["text"], "nightly@1 on alpha is over: 1 of 2 runs scored");

    let (address, heard) = receiver(&[500, 500, 500]);
    let run = follow(&address);
    assert_eq!((run.code, heard.join().unwrap().len()), (Some(4), 3), "{}", run.stderr);
    let why = "The webhook at 127.0.0.1 didn't accept the message about nightly@1: it answered 500";
    assert!(run.stderr.contains(why) && !run.stderr.contains("s3cret"), "{}", run.stderr);
    let said = refusal(&["jobs", "follow", "--webhook", "hooks.example.com/s3cret", "--data-dir", &data]);
    assert!(said.contains("https://hooks.example.com/trainplan") && !said.contains("s3cret"), "{said}");
    assert_eq!(follow("").code, Some(4));
}

#[test]
fn a_run_that_is_much_faster_than_published_is_remarked() {
    let mut journal = OwnJournal::new();
    journal.round("alpha", 4200);
    let over = [(4200, ended("completed"), Some(600), Some(4200))];
    for (name, percent) in [("fast", 122.0), ("usual", 109.0)] {
        let parsed = value!({
            "event": "parsed", "status": "scored", "step_time_s": 9.4, "judged_s": 9.4, "speed_percent": percent
        });
        journal.run("alpha", name, 8, &over, &[&[parsed][..], &stored(name)].concat());
    }
    journal.write();
    let table = trainplan(["jobs", "list", "--data-dir", &journal.data(), "--format", "table"]).stdout;
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let remark = "fast: 122 % of the published speed, more than a healthy cluster explains: check";
    assert!(words.contains(remark) && !words.contains("usual: "), "{table}");
}

#[test]
fn a_run_that_stalls_beside_its_scored_step_is_listed_by_its_steady_mean() {
    let mut journal = OwnJournal::new();
    journal.round("alpha", 4200);
    let parsed = value!({
        "event": "parsed", "status": "scored", "step_time_s": 9.4, "judged_s": 11.75, "mfu": 0.4, "speed_percent": 100.0,
        "error": 0.0, "within": true
    });
    let over = [(4200, ended("completed"), Some(600), Some(4200))];
    journal.run("alpha", "stalls", 8, &over, &[&[parsed][..], &stored("stalls")].concat());
    journal.write();
    let data = journal.data();
    let run = &json(&["jobs", "list", "--all", "--data-dir", &data])[0];
    assert!(run["step_time_s"] == 9.4 && run["judged_s"] == 11.75, "{run}");
    // The plan is 9.4 s, at most 9.9 s.
    for (key, expected) in [
        ("speed_percent", 80.0),
        ("plan_speed_percent", 80.0),
        ("error", 0.25),
        ("scored_speed_percent", 100.0),
        ("scored_plan_speed_percent", 100.0),
    ] {
        assert!((number(&run[key]) - expected).abs() < 1e-9, "{key}: {run}");
    }
    assert!(run["within"] == false && run["scored_within"] == true, "{run}");
    let shown = trainplan(["jobs", "show", "stalls", "--data-dir", &data, "--format", "table"]);
    let words =
        "11.75 s per step (steady mean; scored: 9.400 s), MFU 40.0 %, 80.0 % of the planned speed, outside";
    let joined = shown.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains(words), "{joined}");
}

#[test]
fn paths_and_commands_stay_on_one_line_of_a_narrow_terminal() {
    let mut journal = OwnJournal::new();
    journal.round("alpha", 4200);
    let path = "/lustre/the project/experiments/log-acct.pretrain_llama3.1_8b_fp8_8_7_0.out";
    let events = [
        value!({ "event": "found", "job": "7", "path": path }),
        value!({ "event": "quiet", "for_s": 4000, "steps": 3 }),
    ];
    journal.run("alpha", "stuck", 8, &[(620, running(), Some(600), None)], &events);
    journal.write();
    for columns in [40, 60, 80] {
        let command = format!("\"$TRAINPLAN\" jobs show stuck --data-dir {}", journal.data());
        let shown = on_terminal(columns, &command);
        let lines: Vec<&str> = shown.lines().map(str::trim).collect();
        assert!(lines.iter().any(|line| line.ends_with(path)), "{columns}: {shown}");
        let command = "`trainplan jobs cancel stuck`.";
        assert!(lines.iter().any(|line| line.contains(command)), "{columns}: {shown}");
    }
}

#[test]
fn a_plan_takes_the_printed_rate() {
    let journal = two_clusters();
    let table = journal.table(&["--cluster", "alpha"]);
    assert!(table.contains("3 interruptions in 4,096 GPU-hours: 0.732 per 1,000 GPU-hours"), "{table}");
    assert!(!table.contains("Failure rates differ"), "{table}");
    assert!(journal.table(&[]).contains("Failure rates differ between clusters"));
    let flags = table.trim_end().rsplit_once("trainplan estimate`: ").unwrap().1;
    assert_eq!(flags, "--failure-rate 2.7e-4..1.6e-3");
    let scenario = ["estimate", "--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "64", "--gbs", "512"];
    let plan = json(&[&scenario[..], &flags.split(' ').collect::<Vec<_>>()].concat());
    let text = plan.to_string();
    assert!(text.contains("0.00027") && text.contains("0.0016"), "{text}");
}

#[test]
fn a_node_with_more_interruptions_than_chance_explains_is_named() {
    let mut journal = OwnJournal::new();
    journal.round("alpha", 4200);
    for (nodes, end, runs) in
        [("n[2-3]", "completed", 9), ("n[1-2]", "completed", 1), ("n[1-2]", "node_fail", 4)]
    {
        for number in 0..runs {
            let seen = [(620, running(), Some(600), None), (4200, ended(end), Some(600), Some(4200))];
            let with_nodes = value!({
                "event": "observed", "job": "7", "state": ended(end), "source": "squeue", "submitted": SUBMITTED,
                "started": SUBMITTED + 600, "ended": SUBMITTED + 4200, "nodes": nodes,
            });
            journal.run("alpha", &format!("{nodes}-{end}-{number}"), 16, &seen, &[with_nodes]);
        }
    }
    journal.write();
    let failures = journal.failures(&[]);
    let suspect = value!([{ "node": "n1", "interrupted": 4, "starts": 5 }]);
    assert_eq!((&failures["suspect_nodes"], &failures["interruptions"]), (&suspect, &4.into()));
    let table = journal.table(&[]);
    for text in ["Node n1 was part of 4 of 4 interrupted jobs, and of 5 jobs in all", "--exclude n1`"] {
        assert!(table.contains(text), "{text} is not in {table}");
    }
    assert_eq!(two_clusters().failures(&[])["suspect_nodes"], value!([]));
}

#[test]
fn few_hours_without_a_failure_give_no_rate_to_plan_with() {
    let journal = two_clusters();
    let beta = journal.failures(&["--cluster", "beta"]);
    assert_eq!((&beta["interruptions"], &beta["failure_rate"]), (&0.into(), &Value::Null));
    assert_eq!((&beta["includes_studies"], &beta["requeue"]), (&true.into(), &Value::Null));
    let table = journal.table(&["--cluster", "beta"]);
    for text in ["at most 24.0 per 1,000 GPU-hours", "After 19,188 GPU-hours"] {
        assert!(table.contains(text), "{text} is not in {table}");
    }
    // The default is more precise.
    assert!(!table.contains("To plan with this rate"), "{table}");
}

#[test]
fn an_empty_journal_has_no_rate() {
    let journal = OwnJournal::new();
    journal.write();
    let none = journal.failures(&[]);
    assert_eq!((&none["failure_rate"], &none["interruptions_per_gpu_hour"]), (&Value::Null, &Value::Null));
    assert_eq!(journal.table(&[]), "");
    let said = refusal(&["jobs", "failures", "--data-dir", &two_clusters().data(), "--cluster", "gamma"]);
    assert!(said.contains("\"gamma\"") && said.contains("alpha, beta"), "{said}");
}
