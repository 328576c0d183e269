//! The command line as a user meets it.

#![allow(missing_docs, reason = "a test's name says what it shows")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod calibrate;
mod certify;
mod check;
mod compare;
mod deploy;
mod estimate;
mod flops;
mod general;
mod golden;
mod headline;
mod help;
mod import;
mod jobs;
mod launch;
mod launchers;
mod licenses;
mod metrics;
mod own;
mod parse;
mod prices;
mod probe;
mod recipes;
mod results;
mod run;
mod search;
mod search_campaign;
mod snapshots;
mod stacks;
mod terminal;
mod validate;

use serde_json::Value;
use trainplan_tests::trainplan;

/// Runs a command that must succeed and reads the JSON that it prints.
fn json(arguments: &[&str]) -> Value {
    let run = trainplan(arguments.iter().chain(&["--format", "json"]));
    assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
    serde_json::from_str(&run.stdout).unwrap()
}

/// Runs a command that must be refused as invalid input, and gives what it says.
fn refusal(arguments: &[&str]) -> String {
    let run = trainplan(arguments);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", run.stderr);
    run.stderr
}

/// Reads CSV that must be rectangular.
fn csv(arguments: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
    let run = trainplan(arguments.iter().chain(&["--format", "csv"]));
    assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
    let mut reader = csv::Reader::from_reader(run.stdout.as_bytes());
    let texts = |record: &csv::StringRecord| record.iter().map(String::from).collect();
    let header = texts(reader.headers().unwrap());
    // The reader refuses a row of another length than the header.
    (header, reader.records().map(|record| texts(&record.unwrap())).collect())
}
