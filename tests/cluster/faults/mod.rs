//! Faults: nothing is submitted twice, lost or reported wrongly.

mod checks;
mod contact;
mod files;
mod job_ends;
mod secrets;
mod submission;

use crate::Options;
use crate::laptop::{Events, Laptop};
use serde_json::Value;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

const SMALL: Options = Options { nodes: 4, accounting: true, slurm_conf: &[] };

const EIGHT: &str = "recipe = \"llama3.1-8b/h100/bf16/8@25.04\"\n";

/// Writes a campaign of one run on eight GPUs, with variables for the stand-in.
fn one(laptop: &Laptop, env: &str) {
    laptop.campaign("one", &[("a", &format!("{EIGHT}env = {{ {env} }}"))]);
}

fn of<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == name).collect()
}

fn summary(events: &Events) -> &Value {
    of(events, "summary").first().unwrap_or_else(|| panic!("{events:?}"))
}

fn is_running(event: &Value) -> bool {
    event["state"] == "running"
}

const OTHERS: [&str; 3] = [
    "recipe = \"nemotron4-15b/h100/fp8/16@25.04\"\n",
    "recipe = \"nemotron4-15b/h100/bf16/16@25.04\"\n",
    "recipe = \"llama3.1-8b/h100/fp8/8@25.04\"\n",
];

/// Returns the summary of a run.
fn summary_of<'a>(events: &'a Events, run: &str) -> &'a Value {
    let is_it = |event: &&&Value| event["run"] == run;
    of(events, "summary").iter().find(is_it).unwrap_or_else(|| panic!("{events:?}"))
}
