//! The files that are read: folders, links, pipes, compressed logs, logs of restarted jobs and saved results.

use super::{LLAMA_70B, nemo2, parse, rows, rows_of, timed, tree};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use trainplan_tests::{binary, run_of};

#[test]
fn notes_name_a_log_by_the_end_of_its_path_that_no_other_has() {
    let named = format!("lustre/two/{LLAMA_70B}");
    let tree = tree([
        ("lustre/one/train.log", nemo2(20, 512, 10_000, 0, "")),
        ("lustre/two/train.log", nemo2(20, 512, 10_000, 0, "")),
        (&named, nemo2(20, 512, 10_000, 0, "")),
    ]);
    let table = parse(&tree, &["lustre", "--format", "table"]).stdout;
    assert!(
        table.contains("\n  one/train.log and two/train.log: The log doesn't name its model."),
        "{table}"
    );
    // The table has the whole path.
    assert!(table.contains(" lustre/two/train.log\n"), "{table}");
}

#[test]
fn whatever_is_bad_is_listed_with_its_reason() {
    let tree = tree([
        (LLAMA_70B, nemo2(50, 512, 10_000, 0, "").into_bytes()),
        ("binary.out", b"\x7fELF\0\0".to_vec()),
        ("compressed.log.gz", b"\x1f\x8b\x08\0\0".to_vec()),
        ("compressed.log.zst", b"\x28\xb5\x2f\xfd\0".to_vec()),
        ("cut.out", nemo2(50, 512, 10_000, 0, "").into_bytes()[..4000].to_vec()),
        ("damaged.result.json", b"{\"version\":1}".to_vec()),
        ("empty.log", Vec::new()),
        ("newer.result.json", b"{\"version\":2}".to_vec()),
        ("noise.txt", b"Done.\n".to_vec()),
        (
            "oom.out",
            [nemo2(50, 512, 10_000, 0, "").lines().next().unwrap().as_bytes(), b"\nCUDA out of memory\n"]
                .concat(),
        ),
    ]);
    let root = tree.path();
    fs::create_dir(root.join("folder.log")).unwrap();
    symlink("nowhere", root.join("dead.out")).unwrap();
    symlink("self.out", root.join("self.out")).unwrap();
    symlink("..", root.join("folder.log/up")).unwrap();
    fs::write(root.join(OsStr::from_bytes(b"caf\xe9.log")), "").unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe.log")).status().unwrap().success());

    let paths = [".", "missing", "folder.log", "/proc/self/mem"];
    let rows = rows(&tree, &[&paths[..], &["--window", "35-44"]].concat());
    let told: Vec<(&str, &str)> =
        rows.iter().map(|row| (row["path"].as_str().unwrap(), row["status"].as_str().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("./binary.out", "unreadable"),
            ("./caf\u{fffd}.log", "no_data"),
            ("./compressed.log.gz", "unreadable"),
            ("./compressed.log.zst", "unreadable"),
            ("./cut.out", "incomplete"),
            ("./damaged.result.json", "unreadable"),
            ("./dead.out", "unreadable"),
            ("./empty.log", "no_data"),
            (&format!("./{LLAMA_70B}"), "scored"),
            ("./newer.result.json", "unreadable"),
            ("./noise.txt", "no_data"),
            ("./oom.out", "failed"),
            ("./pipe.log", "unreadable"),
            ("./self.out", "unreadable"),
            ("./folder.log/up", "no_data"),
            ("missing", "unreadable"),
            ("/proc/self/mem", "unreadable"),
        ]
    );
    for row in rows.iter().filter(|row| row["status"] != "scored") {
        assert!(row["reason"].as_str().unwrap().len() > 20, "{row}");
        let comparable = &row["comparable"];
        assert!(comparable["yes"] == false && comparable["reasons"][0].is_string(), "{row}");
    }
    let reason = |path: &str| rows.iter().find(|row| row["path"] == path).unwrap()["reason"].to_string();
    assert!(reason("./newer.result.json").contains("update trainplan"));
    assert!(reason("./compressed.log.gz").contains("cut off"));
    assert!(reason("missing").contains("No such file"));
    assert_eq!(parse(&tree, &["missing", "empty.log"]).code, Some(4));
}

/// Bytes as gzip stores them.
fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[test]
fn compressed_logs_are_the_same_runs() {
    let text = nemo2(50, 512, 10_000, 0, "");
    let (gzip, zstd) = (gzipped(text.as_bytes()), zstd::encode_all(text.as_bytes(), 3).unwrap());
    // Logs that are rotated are several members in one file.
    let (one, two) = text.split_at(text.len() / 2);
    let members = [gzipped(one.as_bytes()), gzipped(two.as_bytes())].concat();
    let tree = tree([
        (format!("a/{LLAMA_70B}.gz"), gzip.clone()),
        (format!("b/{LLAMA_70B}.zst"), zstd.clone()),
        (format!("c/{LLAMA_70B}"), zstd),
        (format!("d/{LLAMA_70B}.gz"), members),
        (format!("e/{LLAMA_70B}"), text.into_bytes()),
    ]);
    let rows = rows(&tree, &["."]);
    assert_eq!(rows.len(), 5);
    for row in &rows {
        assert_eq!((&row["id"], &row["step_time_s"]["mean"]), (&rows[4]["id"], &10.0.into()), "{row}");
        assert_eq!(row["recipe"], "llama3.1-70b/h100/fp8/256@25.04");
    }
    let mut child = Command::new(binary())
        .args(["parse", "-", "--format", "json", "--window", "last"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&gzip).unwrap();
    let piped = rows_of(&run_of(&child.wait_with_output().unwrap()));
    assert_eq!((&piped[0]["id"], &piped[0]["status"]), (&rows[4]["id"], &"scored".into()));
}

#[test]
fn a_compressed_file_that_is_no_log_is_refused() {
    // A gibibyte of nothing is a hundred kilobytes.
    let mut bomb = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    (0..1024).for_each(|_| bomb.write_all(&vec![b'a'; 1 << 20]).unwrap());
    let bomb = bomb.finish().unwrap();
    let cut = gzipped(nemo2(50, 512, 10_000, 0, "").as_bytes());
    let tree = tree([("bomb.log.zst", bomb), ("cut.log.gz", cut[..cut.len() / 2].to_vec())]);
    let told = rows_of(&parse(&tree, &[".", "--format", "json"]));
    for (row, why) in told.iter().zip(["expands more than 1000 times", "compressed file is cut off"]) {
        assert_eq!(row["status"], "unreadable");
        assert!(row["reason"].as_str().unwrap().contains(why), "{row}");
    }
}

#[test]
fn the_logs_of_a_restarted_job_are_one_run() {
    let name = |job: u32, restart: u32| format!("log-acct.pretrain_llama3.1_70b_fp8_256_{job}_{restart}.out");
    let tree = tree([
        (name(7, 0), timed(1..=30, 0)),
        (name(7, 1), timed(21..=40, 15)),
        (name(7, 10), timed(41..=50, 30)),
        // Another job of the folder is another run.
        (name(8, 0), timed(1..=50, 0)),
        (name(9, 0), timed(1..=12, 0)),
    ]);
    let rows = rows(&tree, &[".", "--window", "35-44"]);
    let paths: Vec<_> = rows.iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(
        paths,
        [format!("./{}", name(7, 10)), format!("./{}", name(8, 0)), format!("./{}", name(9, 0))]
    );
    let joined = &rows[0];
    assert_eq!((&joined["status"], &joined["steps"]), (&"scored".into(), &50.into()), "{joined}");
    // From 10:04:50 to 10:15:00, and from 10:18:10 to 10:30:00.
    let note =
        "Joined from 3 logs of a restarted job: 1320 s passed between them, and 10 steps were repeated.";
    assert!(joined["notes"].to_string().contains(note), "{joined}");
    assert_eq!(rows[2]["status"], "incomplete");
    // The id is that of the logs one after the other.
    let all: String = [timed(1..=30, 0), timed(21..=40, 15), timed(41..=50, 30)].concat();
    fs::write(tree.path().join("all.log"), all).unwrap();
    assert_eq!(rows_of(&parse(&tree, &["all.log", "--format", "json"]))[0]["id"], joined["id"]);
    // A log that is named is read alone.
    let alone = rows_of(&parse(&tree, &[&name(7, 0), "--format", "json"]));
    assert_eq!((alone.len(), &alone[0]["steps"]), (1, &30.into()));
}

#[test]
fn the_configuration_of_megatron_bridge_beside_a_log_is_read() {
    let name = |job: u32| format!("log-acct.pretrain_llama3.1_70b_fp8_256_{job}_0.out");
    let config = "model:\n  pipeline_model_parallel_size: 1\n  tensor_model_parallel_size: 2\n";
    let tree = tree([
        (format!("a/{}", name(7)), timed(1..=50, 0)),
        ("a/configs/ConfigContainer.yaml".into(), "\u{0}not: [yaml".into()),
        // It may be that of either job.
        (format!("b/{}", name(8)), timed(1..=50, 0)),
        (format!("b/{}", name(9)), timed(1..=50, 0)),
        ("b/configs/ConfigContainer.yaml".into(), config.into()),
        ("c/log-acct.own_10_0.out".into(), timed(1..=50, 0)),
        ("c/configs/ConfigContainer.yaml".into(), config.into()),
        // The only log, whose name has no job number.
        ("d/train.log".into(), timed(1..=50, 0)),
        ("d/configs/ConfigContainer.yaml".into(), config.into()),
        ("e/one.log".into(), timed(1..=50, 0)),
        ("e/two.log".into(), timed(1..=49, 0)),
        ("e/configs/ConfigContainer.yaml".into(), config.into()),
    ]);
    let ignored = "configs/ConfigContainer.yaml beside the log is ignored: it has none of the settings";
    let rows = rows(&tree, &["a", "b", "--window", "35-44"]);
    let noted: Vec<bool> = rows.iter().map(|row| row["notes"].to_string().contains(ignored)).collect();
    assert_eq!(noted, [true, false, false], "{rows:?}");
    let ambiguous = "configs/ConfigContainer.yaml beside the log is ignored: it may be that of another log in the folder.";
    let is_ambiguous = |row: &Value| row["notes"].to_string().contains(ambiguous);
    assert_eq!(rows.iter().map(is_ambiguous).collect::<Vec<_>>(), [false, true, true], "{rows:?}");
    let of_unnumbered = rows_of(&parse(&tree, &["d", "e", "--format", "json"]));
    let ambiguities: Vec<bool> = of_unnumbered.iter().map(is_ambiguous).collect();
    assert_eq!(ambiguities, [false, true, true], "{of_unnumbered:?}");
    assert!(rows.iter().all(|row| row["status"] == "scored"), "{rows:?}");
    let contradicts = |paths: &[&str]| {
        let set = ["--model", "llama3.1-8b", "--gpu", "h100", "--gpus", "8", "--tp", "4", "--format", "json"];
        let rows = rows_of(&parse(&tree, &[paths, &set].concat()));
        assert_eq!(rows.len(), 1);
        rows[0].to_string().contains("2, but 4 was set")
    };
    assert!(contradicts(&["c"]) && contradicts(&["c/log-acct.own_10_0.out"]));
    assert!(contradicts(&["d"]) && contradicts(&["d/train.log"]));
    fs::remove_file(tree.path().join("c/configs/ConfigContainer.yaml")).unwrap();
    assert!(!contradicts(&["c"]));
}

#[test]
fn the_launch_and_the_environment_of_a_job_beside_its_log_are_read() {
    let launched = |scale: u32| {
        format!(
            "workload_info:\n  gsw_version: '25.04'\nmodel_info:\n  dtype: fp8\n  scale: {scale}\n  gpu_type: h100\n\
             job_config:\n  env_overrides:\n    HF_TOKEN: sesame\n    NCCL_ALGO: Ring\n"
        )
    };
    let environment = "HF_TOKEN=sesame\nHOME=/root\nNCCL_VERSION=2.28\n";
    let tree = tree([
        (format!("a/{LLAMA_70B}"), nemo2(50, 512, 10_000, 0, "")),
        ("a/llmb-config_12345.yaml".into(), launched(256)),
        ("a/env_12345.log".into(), environment.into()),
        // Of other jobs.
        ("a/llmb-config_7.yaml".into(), launched(8)),
        ("a/env_7.log".into(), "NCCL_VERSION=2.30\n".into()),
        (format!("b/{LLAMA_70B}"), nemo2(50, 512, 10_000, 0, "")),
        ("b/llmb-config_12345.yaml".into(), launched(128)),
        ("b/env_12345.log".into(), "\u{0}".into()),
    ]);
    for paths in [vec!["a", "b"], vec!["a/log-acct.pretrain_llama3.1_70b_fp8_256_12345_0.out", "b"]] {
        let rows = rows(&tree, &paths);
        assert_eq!(rows.len(), 2, "{rows:?}");
        let (one, other) = (&rows[0], &rows[1]);
        assert_eq!(one["settings"]["llmb_config"]["model_info.scale"], "256");
        assert_eq!(one["settings"]["llmb_config"]["job_config.env_overrides.NCCL_ALGO"], "Ring");
        assert_eq!(one["settings"]["environment"], serde_json::json!({ "NCCL_VERSION": "2.28" }));
        assert!(!one.to_string().contains("sesame"), "{one}");
        assert!(!one["notes"].to_string().contains("llmb-config"), "{one}");
        // The log wins, and what can't be understood doesn't fail the run.
        assert_eq!((&other["status"], &other["recipe"]), (&one["status"], &one["recipe"]));
        let notes = other["notes"].to_string();
        assert!(notes.contains("256, but llmb-config_*.yaml says 128."), "{notes}");
        assert!(
            notes.contains("env_*.log beside the log is ignored: it has none of the settings"),
            "{notes}"
        );
    }
}

#[test]
fn what_may_not_be_read_says_so() {
    let tree = tree([("shut/a.log", "x"), ("b.log", "x")]);
    for (path, mode) in [("shut", 0o000), ("b.log", 0o200)] {
        fs::set_permissions(tree.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    // Root may read everything.
    if fs::read(tree.path().join("b.log")).is_err() {
        let run = parse(&tree, &[".", "--format", "json"]);
        let rows = rows_of(&run);
        assert_eq!((run.code, rows.len()), (Some(4), 2));
        for row in rows {
            assert_eq!(row["status"], "unreadable");
            assert!(row["reason"].as_str().unwrap().contains("ermission denied"), "{row}");
        }
    }
    fs::set_permissions(tree.path().join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_folder_is_read_once_and_in_the_order_of_its_names() {
    let tree = tree([
        ("e/run1/log-a.pretrain_llama3.1_70b_fp8_256_7_0.out", nemo2(50, 512, 10_000, 0, "")),
        ("e/run1/sbatch_a.pretrain_llama3.1_70b_fp8_256_7.out", String::new()),
        (
            "e/run0/sbatch_a.pretrain_llama3.1_70b_fp8_256_8.out",
            "sbatch: error: Cannot find GPU specification\n".into(),
        ),
        ("e/run1/code/train.py", String::new()),
    ]);
    symlink("run1", tree.path().join("e/latest")).unwrap();
    let told = |arguments: &[&str]| -> Vec<String> {
        let paths = rows(&tree, arguments);
        paths
            .iter()
            .map(|row| format!("{} {}", row["path"].as_str().unwrap(), row["status"].as_str().unwrap()))
            .collect()
    };
    let batch = "e/run1/sbatch_a.pretrain_llama3.1_70b_fp8_256_7.out";
    let listed = [
        "e/run0/sbatch_a.pretrain_llama3.1_70b_fp8_256_8.out failed",
        "e/run1/log-a.pretrain_llama3.1_70b_fp8_256_7_0.out scored",
    ];
    assert_eq!(told(&["e"]), listed);
    assert_eq!(told(&["e", "e/run1", "e"]), listed, "each folder once");
    // What was named is listed, whatever it is.
    assert_eq!(told(&[batch, "e"]), [&[&format!("{batch} no_data")[..]], &listed[..]].concat());
    assert_eq!(told(&["e/latest"]), ["e/latest/log-a.pretrain_llama3.1_70b_fp8_256_7_0.out scored"]);

    let run = parse(&tree, &["e/run1/code", "--format", "json"]);
    assert_eq!((run.code, &rows_of(&run)[0]["status"]), (Some(4), &"no_data".into()));
    assert!(rows_of(&run)[0]["reason"].as_str().unwrap().contains(".out"));
}

#[test]
fn a_saved_result_says_what_its_log_said() {
    let tree = tree([
        (LLAMA_70B, nemo2(50, 512, 10_000, 7, "")),
        ("copy/again.log", nemo2(50, 512, 10_000, 7, "")),
        (
            "log-a.pretrain_nemotronh_56b_fp8_gpus256_tp8_pp1_cp1_vpNone_mbs1_gbs768_4_0.out",
            nemo2(30, 768, 15_000, 3, ""),
        ),
        ("empty.log", String::new()),
    ]);
    let first = parse(&tree, &[LLAMA_70B, ".", "--save", "saved", "--format", "json"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert_eq!(first.stderr, "note: 2 results saved\n");
    let files = || -> Vec<String> {
        let entries = fs::read_dir(tree.path().join("saved")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let saved = files();
    assert_eq!(saved.len(), 2, "one for each log that tells something, none for a copy: {saved:?}");
    let logs = rows_of(&first);
    for (arguments, window) in [(&[][..], None), (&["--window", "3-9"][..], Some("3-9"))] {
        for name in &saved {
            let path = format!("saved/{name}");
            let again = rows_of(&parse(&tree, &[&[&path[..], "--format", "json"], arguments].concat()));
            let log = again[0]["path"].as_str().unwrap();
            assert_eq!(again, rows_of(&parse(&tree, &[&[log, "--format", "json"], arguments].concat())));
            assert!(
                logs.iter()
                    .any(|row| row["id"] == name.trim_end_matches(".result.json") && row["path"] == log)
            );
            assert!(window.is_none_or(|window| again[0]["window"] == window));
        }
    }
    // Saved again, they are the same files with the same content.
    let contents = || -> Vec<Vec<u8>> {
        files().iter().map(|name| fs::read(tree.path().join("saved").join(name)).unwrap()).collect()
    };
    let before = contents();
    parse(&tree, &[LLAMA_70B, ".", "--save", "saved"]);
    assert_eq!((files(), contents()), (saved, before));

    let refused = parse(&tree, &[LLAMA_70B, "--save", "empty.log"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--save"), "{}", refused.stderr);
}

#[test]
fn standard_input_is_a_log_too() {
    let mut child = Command::new(binary())
        .args(["parse", "-", "--format", "json", "--recipe", "llama3.1-70b/h100/fp8/256@25.04"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(nemo2(50, 512, 10_000, 0, "").as_bytes()).unwrap();
    let run = run_of(&child.wait_with_output().unwrap());
    let row = &rows_of(&run)[0];
    assert_eq!((run.code, &row["path"]), (Some(0), &"-".into()));
    assert_eq!(row["baseline"]["speed_percent"].as_f64(), Some(100.0));
}
