//! Campaigns that upload to a server which is sometimes away.

use crate::laptop::Laptop;
use crate::{Cluster, Options, Site};
use serde_json::Value;
use std::time::{Duration, Instant};
use trainplan_tests::Served;

use crate::cluster::wait_for;

const SOON: Duration = Duration::from_secs(60);
const RECIPE: &str = "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"";

/// Writes a campaign that uploads to the server. The token is in a file on the laptop.
fn campaign(laptop: &Laptop, served: &Served, name: &str, runs: &[(&str, &str)]) {
    laptop.write("token", &served.token);
    laptop.campaign(name, runs);
    let file = format!("{name}.campaign.toml");
    let text = std::fs::read_to_string(laptop.path(&file)).unwrap();
    let token = laptop.path("token").display().to_string();
    let upload =
        format!("[upload]\nto = \"{}\"\ntoken = {{ command = [\"cat\", \"{token}\"] }}\n", served.url());
    laptop.write(&file, &format!("{text}\n{upload}"));
}

fn get(served: &Served, path: &str) -> Value {
    serde_json::from_str(&served.ask("GET", path).1).unwrap()
}

fn uploaded(laptop: &Laptop, run: &str) -> usize {
    laptop.events(run).iter().filter(|event| event["event"] == "uploaded").count()
}

#[test]
#[ignore = "needs root and Slurm"]
fn results_are_uploaded_after_the_server_was_away() {
    let cluster = Cluster::start(&Options { nodes: 2, ..Options::default() });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    let store = laptop.path("server");
    let mut served = Served::start(&store);
    let slow = format!("{RECIPE}\nafter = [\"a\"]\nenv = {{ WORKLOAD_PACE = \"0.4\" }}");
    campaign(&laptop, &served, "nightly", &[("a", RECIPE), ("b", &slow)]);
    let mut runner = laptop.start("nightly", &[]);
    let first = runner.wait_for("uploaded", |event| event["run"] == "a");
    let id = first["id"].as_str().unwrap();
    let summary = get(&served, &format!("/api/v1/runs/{id}/summary"));
    assert_eq!((&summary["campaign"], &summary["has_log"]), (&"nightly".into(), &true.into()), "{summary}");
    // The server shows the progress of the other run.
    wait_for("progress", SOON, || {
        let live = get(&served, "/api/v1/progress");
        let run = live["items"].as_array().unwrap().iter().find(|run| run["run"] == "b")?.clone();
        (run["state"] == "running" && run["step"].as_u64() > Some(0)).then_some(run)
    });
    served.kill();
    let second = runner.wait_for("stored", |event| event["run"] == "b");
    let begun = Instant::now();
    let (code, events) = runner.end();
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(code, Some(0), "{events:?}");
    let of =
        |run: &str| events.iter().find(|event| event["event"] == "summary" && event["run"] == run).unwrap();
    assert_eq!(
        (&of("a")["upload"]["state"], &of("b")["upload"]["state"]),
        (&"sent".into(), &"waiting".into())
    );
    assert!(of("b")["upload"]["why"].as_str().unwrap().contains("can't be reached"), "{}", of("b"));
    let shown = laptop.run(&["jobs", "list", "--format", "table"]).stdout;
    assert!(
        shown.contains("1 of 2 results uploaded to http://") && shown.contains("1 will be sent later"),
        "{shown}"
    );

    let away = laptop.run(&["upload", "--pending"]);
    assert_eq!(away.code, Some(5), "{}", away.stderr);
    assert_eq!(laptop.run(&["upload", "--forget"]).code, Some(2));
    served.start_again(&store);
    let rows = laptop.json(&["upload", "--pending"]);
    // If both runs wrote the same log, the server has it already.
    assert!(rows[0]["outcome"] == "new" && !rows[0]["log"].is_null(), "{rows}");
    assert_eq!((rows[0]["id"].as_str(), rows.as_array().unwrap().len()), (second["id"].as_str(), 1));
    assert_eq!(laptop.json(&["upload", "--pending"]).as_array().unwrap().len(), 0);
    assert_eq!((uploaded(&laptop, "a"), uploaded(&laptop, "b")), (1, 1));
    assert_eq!(laptop.json(&["jobs", "show", "b"])["upload"]["state"], "sent");
    assert_eq!(get(&served, "/api/v1/runs")["items"].as_array().unwrap().len(), 2);
    assert_eq!(get(&served, "/api/v1/progress")["items"].as_array().unwrap().len(), 0);
    // Only its own file contains the token; the server's store has a hash.
    let grep = std::process::Command::new("grep")
        .args(["-rla", &served.token])
        .arg(laptop.path("."))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&grep.stdout).trim(), laptop.path("./token").display().to_string());
}

#[test]
#[ignore = "needs root and Slurm"]
fn a_killed_runner_uploads_its_results_once() {
    let cluster = Cluster::start(&Options { nodes: 2, ..Options::default() });
    let site = Site::install(&cluster, &[("WORKLOAD_PACE", "0.05")]);
    let laptop = Laptop::new(&cluster, &site);
    let store = laptop.path("server");
    let served = Served::start(&store);
    let slow = format!("{RECIPE}\nafter = [\"a\"]\nenv = {{ WORKLOAD_PACE = \"0.2\" }}");
    campaign(&laptop, &served, "nightly", &[("a", RECIPE), ("b", &slow)]);
    let mut runner = laptop.start("nightly", &[]);
    runner.wait_for("stored", |event| event["run"] == "a");
    runner.kill();
    // The next runner uploads the results of the first.
    let (code, events) = laptop.start("nightly", &[]).end();
    assert_eq!(code, Some(0), "{events:?}");
    let summaries = events.iter().filter(|event| event["event"] == "summary");
    assert!(summaries.clone().all(|summary| summary["upload"]["state"] == "sent"), "{events:?}");
    assert_eq!((uploaded(&laptop, "a"), uploaded(&laptop, "b")), (1, 1));
    assert_eq!(get(&served, "/api/v1/runs")["items"].as_array().unwrap().len(), 2);
}
