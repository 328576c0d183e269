//! `trainplan parse`, as a user meets it.

mod endings;
mod files;
mod notes;
mod scores;

use crate::{csv, json, refusal};
use proptest::prelude::*;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use trainplan_tests::{Run, binary, run_of, trainplan};

/// A folder with files of these names and contents.
fn tree<N: AsRef<OsStr>>(files: impl IntoIterator<Item = (N, impl AsRef<[u8]>)>) -> TempDir {
    let tree = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = tree.path().join(Path::new(name.as_ref()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    tree
}

/// Parses paths below a folder, from within it.
fn parse(tree: &TempDir, arguments: &[&str]) -> Run {
    run_of(&Command::new(binary()).arg("parse").args(arguments).current_dir(tree.path()).output().unwrap())
}

fn rows_of(run: &Run) -> Vec<Value> {
    serde_json::from_str(&run.stdout).unwrap()
}

/// The rows of paths; at least one is scored.
fn rows(tree: &TempDir, arguments: &[&str]) -> Vec<Value> {
    let run = parse(tree, &[arguments, &["--format", "json"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    rows_of(&run)
}

/// `count` steps of NeMo 2, the first taking `base` milliseconds and each `more` longer than the one before.
fn nemo2(count: u64, gbs: u64, base: u64, more: u64, tflops: &str) -> String {
    let step = |row: u64| {
        format!(
            "Training epoch 0, iteration {row}/{} | lr: 7.496e-06 | global_batch_size: {gbs} | global_step: {row} | \
             peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.96 | \
             train_step_timing in s: {}{tflops} | consumed_samples: {}\n",
            count - 1,
            (base + more * row) as f64 / 1000.0,
            gbs * (row + 1)
        )
    };
    (0..count).map(step).collect()
}

const LLAMA_70B: &str = "log-acct.pretrain_llama3.1_70b_fp8_256_12345_0.out";

/// Steps of Megatron-Bridge with the time of each line, one every ten seconds from `start`.
fn timed(steps: std::ops::RangeInclusive<u64>, minute: u64) -> String {
    let line = |(place, step): (u64, u64)| {
        let (minutes, seconds) = (minute + place * 10 / 60, place * 10 % 60);
        format!(
            " [2025-12-19 10:{minutes:02}:{seconds:02}] iteration {step:8}/      50 | consumed samples: {:12} | elapsed \
             time per iteration (ms): 10000.0 | global batch size:   512 | lm loss: 1.2E+01 | grad norm: 1.234 |\n",
            512 * step
        )
    };
    (0..).zip(steps).map(line).collect()
}

#[test]
fn wrong_use_is_refused() {
    for window in ["44", "44-11", "first"] {
        assert!(refusal(&["parse", "x.log", "--window", window]).contains("use '"), "{window}");
    }
    assert!(refusal(&["parse"]).contains("PATH"));
    let help = trainplan(["parse", "--help"]).stdout;
    assert!(help.contains("4 no log could be scored"), "{help}");
}

#[test]
fn json_has_every_field_of_every_row() {
    let tree = tree([(LLAMA_70B, nemo2(50, 512, 10_000, 0, "")), ("empty.log", String::new())]);
    let path = tree.path().to_str().unwrap();
    let rows = json(&["parse", path]);
    for row in rows.as_array().unwrap() {
        for field in [
            "path",
            "status",
            "reason",
            "format",
            "steps",
            "window",
            "step_time_s",
            "tflops_per_gpu",
            "tokens_per_s",
            "mfu",
            "failures",
            "checkpoint",
            "parser_version",
        ] {
            assert!(row.get(field).is_some(), "{field}");
        }
    }
    let (header, rows) = csv(&["parse", path]);
    assert_eq!((rows.len(), &header[0], &rows[0][1]), (2, &"path".to_string(), &"no_data".to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn csv_is_rectangular_and_json_valid_whatever_is_given(
        files in prop::collection::vec(
            (
                prop::collection::vec(any::<u8>().prop_filter("a name", |byte| !matches!(byte, 0 | b'/')), 1..40),
                prop::collection::vec(any::<u8>(), 0..400),
                prop::sample::select(&["", "\n", "iteration 3/49 | train_step_timing in s: 1.5\n", "{\"version\":1,"][..]),
            ),
            0..5,
        ),
    ) {
        let names = |name: &[u8], content: &str| {
            let ending = if content.starts_with('{') { ".result.json" } else { ".log" };
            OsStr::from_bytes(&[name, ending.as_bytes()].concat()).to_owned()
        };
        let tree = tree(files.iter().map(|(name, junk, line)| {
            (names(name, line), [line.as_bytes(), junk].concat())
        }));
        let count = tree.path().read_dir().unwrap().count().max(1);
        let run = parse(&tree, &[".", "--format", "json"]);
        prop_assert_eq!(rows_of(&run).len(), count);
        prop_assert!(matches!(run.code, Some(0 | 4)), "{}", run.stderr);
        let run = parse(&tree, &[".", "--format", "csv"]);
        let mut reader = ::csv::Reader::from_reader(run.stdout.as_bytes());
        prop_assert_eq!(reader.records().filter(Result::is_ok).count(), count);
        let run = parse(&tree, &[".", "--format", "table"]);
        prop_assert!(!run.stdout.chars().any(|c| c.is_control() && c != '\n'));
    }
}
