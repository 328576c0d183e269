use crate::{csv, json, refusal};
use proptest::prelude::*;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
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

#[test]
fn the_rank_that_reported_no_timeout_is_named() {
    let timeout = |rank: u32| {
        format!(
            "[rank{rank}]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank {rank}] Watchdog caught collective \
             operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for \
             600001 milliseconds before timing out.\n"
        )
    };
    let steps: String =
        nemo2(50, 128, 9400, 1, "").lines().take(20).map(|line| format!("{line}\n")).collect();
    let hang: String = (0..8).filter(|rank| *rank != 5).map(timeout).collect();
    let tree = tree([("log-acct.pretrain_llama3.1_8b_fp8_8_2_0.out", steps + &hang)]);
    let run = parse(&tree, &[".", "--format", "json"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    let row = &rows_of(&run)[0];
    assert_eq!(row["status"], "failed", "{row}");
    assert!(
        row["reason"]
            .as_str()
            .unwrap()
            .contains("a collective operation timed out (line 21, ranks 0–4, 6, 7)"),
        "{row}"
    );
    let told = "Rank 5 of 8 reported no timeout. The others may have waited for it: look at it first.";
    assert!(row["notes"].as_array().unwrap().contains(&told.into()), "{row}");
}

#[test]
fn the_rank_that_timed_out_is_named_with_its_host() {
    let hang = "[rank17]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank 17] Watchdog caught collective operation \
                timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600001 \
                milliseconds before timing out.\nsrun: error: node0003: task 17: Exited with exit code 1\n";
    let steps: String =
        nemo2(50, 512, 12_500, 0, "").lines().take(20).map(|line| format!("{line}\n")).collect();
    let tree = tree([(LLAMA_70B, steps + hang)]);
    let run = parse(&tree, &[".", "--format", "table"]);
    assert_eq!(run.code, Some(4), "{}", run.stderr);
    let named = "a collective operation timed out (line 21, rank 17 on node0003).";
    assert!(run.stdout.contains(named), "{}", run.stdout);
}

#[test]
fn a_run_that_hung_after_its_scored_steps_says_so() {
    let whole = crate::golden::megatron_lm(18_900);
    let lines: Vec<&str> = whole.lines().collect();
    let cut = lines[..lines.len() - 5].join("\n");
    let limit =
        "\nslurmstepd: error: *** JOB 7 ON node001 CANCELLED AT 2026-10-05T12:40:20 DUE TO TIME LIMIT ***\n";
    let tree = tree([("hang.log", cut.clone() + limit), ("cut.log", cut + "\n")]);
    let row = &rows(&tree, &["hang.log", "--gpu", "h100"])[0];
    assert_eq!((&row["status"], &row["ending"]), (&"scored".into(), &"hung".into()), "{row}");
    assert_eq!(
        (&row["format"], &row["assumed_software"]),
        (&"megatron_lm".into(), &"megatron-lm-0.14".into())
    );
    assert_eq!(row["ended_early"], "hung after step 45");
    let reason = row["reason"].as_str().unwrap();
    let hung = "no step was logged in the 1 h 51 min before the job hit its time limit";
    assert!(reason.contains(hung) && !reason.contains("Request more time"), "{reason}");
    let table = parse(&tree, &["hang.log", "--format", "table"]).stdout;
    assert!(table.contains(" scored, then hung "), "{table}");
    // A log that just ends doesn't say why, so its run has no ending.
    let row = &rows(&tree, &["cut.log", "--gpu", "h100"])[0];
    assert_eq!(row["reason"], "The log ends at step 45 of 50, and doesn't say why.");
    assert_eq!(row.get("ending"), None);
}

#[test]
fn a_hang_in_the_initialization_of_nccl_is_the_reason() {
    let start = |rank: u32| {
        format!(
            "node{:04}:98:1251 [{}] NCCL INFO ncclCommInitRankConfig comm 0x55f0 rank {rank} nranks 16 busId 59000 commId \
             0x5ae7 - Init START\n",
            rank / 8,
            rank % 8
        )
    };
    let hang: String = (0..16).filter(|rank| *rank != 13).map(start).collect();
    let limit = "slurmstepd: error: *** STEP 7.0 ON node0000 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***\n";
    let tree = tree([("limit.log", hang.clone() + limit), ("open.log", hang)]);
    let reason = |name: &str| {
        let run = parse(&tree, &[name, "--format", "json"]);
        assert_eq!(run.code, Some(4), "{}", run.stderr);
        let row = rows_of(&run).swap_remove(0);
        assert_eq!(row["nccl"]["unfinished"][0]["hosts"], serde_json::json!(["node0001"]), "{row}");
        assert!(!row["notes"].to_string().contains("never started"), "named once: {row}");
        row["reason"].as_str().unwrap().to_owned()
    };
    let what = "NCCL initialization didn't finish: rank 13 (likely on node0001) of a communicator of 16 ranks never started";
    let limit = reason("limit.log");
    assert!(
        limit.starts_with(&format!("{what}, until the job hit its time limit (line 16). Check its node")),
        "{limit}"
    );
    assert!(!limit.contains("Request more time"), "{limit}");
    let open = reason("open.log");
    assert!(open.starts_with(what) && !open.contains("no training step"), "{open}");
}

#[test]
fn communicators_and_the_network_of_nccl_are_named() {
    let line = |text: &str| format!("node0003:98:1251 [3] NCCL INFO {text}\n");
    let init = |rank: u32, phase: &str| {
        line(&format!(
            "ncclCommInitRankConfig comm 0x55f0 rank {rank} nranks 8 busId 59000 commId 0x5ae7 - Init {phase}"
        ))
    };
    let lines = |phase: &str| (0..8).map(|rank| init(rank, phase)).collect::<String>();
    let nccl = lines("START") + &lines("COMPLETE");
    let socket = line("Channel 00/0 : 3[3] -> 8[0] [send] via NET/Socket/0");
    let tree =
        tree([(LLAMA_70B, nccl + &socket + &nemo2(50, 512, 10_000, 0, "")), ("plain.log", timed(1..=50, 0))]);
    let row = &rows(&tree, &[LLAMA_70B])[0];
    let notes = row["notes"].as_array().unwrap();
    let summary = "NCCL: 1 communicator of 8 ranks; network: TCP sockets.";
    assert!(notes.contains(&summary.into()), "{row}");
    assert_eq!(row["nccl"]["communicators"][0]["count"], 1, "{row}");
    assert_eq!(row["nccl"]["networks"][0]["connections"], 1, "{row}");
    let table = parse(&tree, &[LLAMA_70B, "--format", "table"]);
    assert!(table.stdout.contains("NCCL uses TCP sockets for the nodes"), "{}", table.stdout);
    assert_eq!(rows(&tree, &["plain.log", "--window", "35-44"])[0].get("nccl"), None);
}

#[test]
fn the_calls_of_one_rank_are_counted() {
    let call = |device: u32, operation: &str, count: u32| {
        format!(
            "node0003:{}:1251 [{device}] NCCL INFO {operation}: opCount 2f sendbuff 0x7f recvbuff 0x7f count {count} datatype 9 \
             op 0 root 0 comm 0x55 [nranks=8] stream 0x55\n",
            98 + device
        )
    };
    let calls = |device| call(device, "AllGather", 1 << 22).repeat(3) + &call(device, "AllReduce", 1 << 10);
    let tree = tree([(LLAMA_70B, (0..8).map(calls).collect::<String>() + &nemo2(50, 512, 10_000, 0, ""))]);
    let row = &rows(&tree, &[LLAMA_70B])[0];
    let kinds = serde_json::json!([
        { "operation": "AllGather", "up_to_bytes": 8 << 20, "count": 3, "bytes": 24 << 20 },
        { "operation": "AllReduce", "up_to_bytes": 2 << 10, "count": 1, "bytes": 2 << 10 },
    ]);
    assert_eq!(row["nccl"]["calls"]["kinds"], kinds, "{row}");
    assert_eq!(row["nccl"]["calls"]["count"], 4, "{row}");
    let table = parse(&tree, &[LLAMA_70B, "--format", "table"]).stdout;
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = "NCCL's trace of one rank: 4 calls with 24 MiB, most in AllGather up to 8 MiB (3 calls, 24 MiB), AllReduce up \
                to 2 KiB (1 call, 2 KiB).";
    assert!(words.contains(told), "{table}");
}

#[test]
fn a_slow_period_within_the_window_is_named() {
    let line = |(step, line): (u64, &str)| match step {
        36..=41 => line.replace("10000.0", "13500.0") + "\n",
        _ => format!("{line}\n"),
    };
    let log: String = (1..).zip(timed(1..=50, 0).lines()).map(line).collect();
    let tree = tree([("1.log", log), ("2.log", timed(1..=50, 0))]);
    let notes: Vec<String> =
        rows(&tree, &[".", "--window", "35-49"]).iter().map(|row| row["notes"].to_string()).collect();
    let named = "Steps 36–41 took 35 % longer than the others. Without them, the mean is 10 s.";
    assert!(notes[0].contains(named), "{}", notes[0]);
    assert!(!notes[1].contains("longer than the others"), "{}", notes[1]);
}

#[test]
fn tflops_that_contradict_the_step_time_are_noted() {
    let name = "log-a.pretrain_nemotron4_340b_bf16_gpus256_tp8_pp8_cp1_vp12_mbs1_gbs64_5_0.out";
    let row = |tflops: &str| {
        let tree = tree([(name, nemo2(50, 64, 4310, 0, &format!(" | TFLOPS_per_GPU: {tflops}")))]);
        rows(&tree, &[name]).swap_remove(0)
    };
    let (right, wrong) = (row("500"), row("400"));
    assert!(!right["notes"].to_string().contains("TFLOP/s"), "{right}");
    let note = "The log reports 400 TFLOP/s per GPU, but its step time gives ";
    assert!(wrong["notes"].to_string().contains(note), "{wrong}");
    // It stays scored.
    assert_eq!((&wrong["status"], &wrong["mfu"]), (&right["status"], &right["mfu"]));
}

#[test]
fn the_worked_lines_of_the_documents() {
    let lines = [
        (
            "log-acct.pretrain_nemotron4_15b_bf16_64_1_0.out",
            "Training epoch 0, iteration 49/49 | lr: 4.491e-06 | global_batch_size: 256 | global_step: 49 | \
             peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | reduced_train_loss: 12.81 | \
             train_step_timing in s: 2.693 | consumed_samples: 12800\n",
            ("nemotron4-15b/h100/bf16/64@25.04", "49-49", "389371", "65.26"),
        ),
        (
            "log-acct.pretrain_llama3.1_8b_fp8_8_2_0.out",
            "Training epoch 0, iteration 49/49 | lr: 7.496e-06 | global_batch_size: 128 | global_step: 49 | \
             peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.96 | \
             train_step_timing in s: 12.39 | consumed_samples: 6400\n",
            ("llama3.1-8b/h100/fp8/8@25.04", "49-49", "84631", "30.93"),
        ),
        (
            "bf16/log-nemo_nemotron4_340b_1024_3.out",
            "Epoch 0: : 100%|##########| 100/100 [07:57<00:00, reduced_train_loss=7.310, global_step=99.00, \
             consumed_samples=25600.0, train_step_timing in s=3.590]\n",
            ("nemotron4-340b/h100/bf16/1024@24.11", "100-100", "292082", ""),
        ),
        (
            "log-a.pretrain_nemotronh_56b_fp8_gpus256_tp8_pp1_cp1_vpNone_mbs1_gbs768_4_0.out",
            &nemo2(50, 768, 15_892, 0, " | TFLOPS_per_GPU: 532.4"),
            ("nemotron-h-56b/h100/fp8/256@25.05", "11-44", "395888", "26.86"),
        ),
        (
            "log-a.pretrain_nemotron4_340b_bf16_gpus256_tp8_pp8_cp1_vp12_mbs1_gbs64_5_0.out",
            &nemo2(50, 64, 4310, 0, " | TFLOPS_per_GPU: 500"),
            ("nemotron4-340b/h100/bf16/256@25.12", "35-44", "60822", "50.5"),
        ),
    ];
    for (name, log, (recipe, window, tokens_per_s, mfu)) in lines {
        let tree = tree([(name, log)]);
        let row = &rows(&tree, &[name])[0];
        assert_eq!((&row["recipe"], &row["window"]), (&recipe.into(), &window.into()));
        assert_eq!(format!("{:.0}", row["tokens_per_s"].as_f64().unwrap()), tokens_per_s, "{name}");
        // The newest document cuts the digits off where the others round.
        assert!(format!("{:.2}", row["mfu"].as_f64().unwrap() * 100.0).starts_with(mfu), "{name}");
        assert_eq!(row["convention"], "recipe");
    }
}

#[test]
fn the_sample_row_of_the_releases_own_script() {
    // Ten steps around 21.542 s: what the script prints as mean, deviation and TFLOPS.
    let name = "log-acct-x.pretrain_nemotron4_340b_fp8_gpus128_tp8_pp4_cp1_vp12_mbs1_gbs512_389757_0.out";
    let tree = tree([(name, nemo2(50, 512, 21_463, 2, " | TFLOPS_per_GPU: 1600.74"))]);
    let row = &rows(&tree, &["."])[0];
    let time = &row["step_time_s"];
    assert_eq!((&row["window"], &time["n"]), (&"35-44".into(), &10.into()));
    assert_eq!(time["std_kind"], "population");
    assert_eq!(format!("{:.3}", time["mean"].as_f64().unwrap()), "21.542");
    assert_eq!(format!("{:.4}", time["std"].as_f64().unwrap()), "0.0057");
    assert_eq!(format!("{:.2}", row["tflops_per_gpu"]["mean"].as_f64().unwrap()), "1600.74");
    // The log doesn't name the Blackwell GPU, but the tokens are the same.
    assert_eq!((&row["recipe"], &row["mfu"]), (&Value::Null, &Value::Null));
    assert_eq!(format!("{:.0}", row["tokens_per_s"].as_f64().unwrap()), "97352");
    assert!(row["notes"][0].as_str().unwrap().contains("GPU type"));
    let told = &rows(&tree, &[".", "--gpu", "gb200"])[0];
    assert_eq!(told["recipe"], "nemotron4-340b/gb200/fp8/128/strong@25.12");
    assert!(told["mfu"].is_f64());
}

#[test]
fn a_run_stands_beside_the_published_number() {
    let tree = tree([(LLAMA_70B, nemo2(50, 512, 12_500, 0, ""))]);
    let row = &rows(&tree, &["."])[0];
    assert_eq!(row["baseline"]["step_time_s"].as_f64(), Some(10.0));
    assert_eq!(row["baseline"]["speed_percent"].as_f64(), Some(80.0));
    let table = parse(&tree, &[".", "--format", "table"]).stdout;
    assert!(table.contains("80.0") && table.contains("recipe, peak 1979"), "{table}");
    let full = &rows(&tree, &[".", "--convention", "full"])[0];
    assert_eq!((&full["convention"], &full["recipe"]), (&"full".into(), &row["recipe"]));
    assert_ne!(full["mfu"], row["mfu"]);
}

#[test]
fn a_run_that_contradicts_what_was_set_is_not_scored() {
    let tree = tree([
        (LLAMA_70B, nemo2(50, 512, 10_000, 0, "")),
        ("fast.log", nemo2(50, 512, 1000, 0, "")),
        ("mbridge_2.log", nemo2(50, 512, 10_000, 0, "")),
    ]);
    let implausible = |arguments: &[&str]| {
        let run = parse(&tree, &[arguments, &["--format", "json"]].concat());
        assert_eq!(run.code, Some(4), "{}", run.stderr);
        let row = rows_of(&run).swap_remove(0);
        assert_eq!((&row["status"], &row["comparable"]["yes"]), (&"implausible".into(), &false.into()));
        // The steps were measured, but say nothing of what was set.
        assert!(row["step_time_s"]["mean"].is_f64() && row["mfu"].is_null() && row["tokens_per_s"].is_null());
        row["reason"].as_str().unwrap().to_owned()
    };
    let other = implausible(&[LLAMA_70B, "--recipe", "llama3.1-8b/h100/fp8/8@25.04"]);
    for contradiction in ["Model llama3.1-70b, but llama3.1-8b", "GPUs 256, but 8", "above the GPU's peak"] {
        assert!(other.contains(contradiction), "{other}");
    }
    let fast = implausible(&["fast.log", "--recipe", "llama3.1-70b/h100/fp8/256@25.04"]);
    assert!(fast.starts_with("A step time of 1 s is impossible: its MFU would be 398 %"), "{fast}");
    let batch = implausible(&[LLAMA_70B, "--gbs", "1024"]);
    assert!(batch.contains("GBS 512, but 1024 was set"), "{batch}");
    // Set in a saved result's view, it is the same.
    parse(&tree, &[LLAMA_70B, "--save", "results"]);
    implausible(&["results", "--recipe", "llama3.1-8b/h100/fp8/8@25.04"]);
    // The second log of a folder is not one of 2 GPUs.
    let numbered =
        rows(&tree, &["mbridge_2.log", "--recipe", "llama3.1-70b/h100/fp8/256@25.04"]).swap_remove(0);
    assert_eq!(numbered["comparable"]["reasons"], serde_json::json!([]));
    assert_eq!(numbered["baseline"]["speed_percent"].as_f64(), Some(100.0));
}

/// Prints the `row`th of fifty steps, which takes 2 s and a hundredth of its row.
type Line = fn(u64) -> String;

/// Every format, and the label of its first step.
fn formats() -> [(&'static str, u64, Line); 6] {
    fn time(row: u64) -> f64 {
        2.0 + row as f64 / 100.0
    }
    [
        ("nemo1", 1, |row| {
            format!("Epoch 0: : | {}/50 [00:01<00:00, train_step_timing in s={:.3}]\r", row + 1, time(row))
        }),
        ("nemo2", 0, |row| {
            format!("Training epoch 0, iteration {row}/49 | train_step_timing in s: {:.2}\n", time(row))
        }),
        ("megatron_bridge", 1, |row| {
            format!(
                " [2025-12-19 10:49:15] iteration {:8}/      50 | consumed samples: {:12} | elapsed time per iteration \
                 (ms): {:.1} | global batch size:   256 | lm loss: 1.2E+01 | grad norm: 1.234 |\n",
                row + 1,
                256 * (row + 1),
                time(row) * 1000.0
            )
        }),
        ("torchtitan", 1, |row| {
            format!(
                "step: {:2}  loss:  8.1  memory: 50.00GiB(62.00%)  tps: {}  tflops: 12.34  mfu: 1.23%\n",
                row + 1,
                1000 + row
            )
        }),
        ("maxtext", 0, |row| {
            format!(
                "completed step: {row}, seconds: {:.3}, TFLOP/s/device: 400.0, Tokens/s/device: 9.0, total_weights: 1, \
                 loss: 8.1\n",
                time(row)
            )
        }),
        ("paxml", 1, |row| format!("[PAX STATUS]: train_step() took {:.2} seconds.\n", time(row))),
    ]
}

#[test]
fn every_format_in_one_tree() {
    let logs = formats().map(|(format, _, line)| {
        let log: String = (0..50).map(|row| format!("[rank3]: chatter\n{}", line(row))).collect();
        (format!("runs/{format}/train.log"), log)
    });
    let tree = tree(logs);
    let rows = rows(&tree, &["runs", "--window", "35-44"]);
    assert_eq!(rows.len(), formats().len());
    for (format, first, _) in formats() {
        let row = rows.iter().find(|row| row["format"] == format).unwrap();
        assert_eq!(row["path"], format!("runs/{format}/train.log"));
        assert_eq!((&row["status"], &row["steps"]), (&"scored".into(), &50.into()), "{row}");
        if format == "torchtitan" {
            assert!(row["step_time_s"].is_null());
            continue;
        }
        // The labels 35-44 are the rows 35-44 where counting starts from zero, and the rows before where from one.
        let mean = 2.0 + (39.5 - first as f64) / 100.0;
        assert!((row["step_time_s"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9, "{row}");
        assert_eq!(row["step_time_s"]["n"], 10);
    }
}

#[test]
fn a_short_log_names_a_window_that_scores_it() {
    let (_, _, maxtext) = formats()[4];
    let tree = tree([("m.log", (0..30).map(maxtext).collect::<String>())]);
    let short = parse(&tree, &["m.log", "--format", "json"]);
    assert_eq!(short.code, Some(4), "{}", short.stderr);
    let reason = rows_of(&short)[0]["reason"].to_string();
    assert!(reason.contains("Wait for it, run it again, or score the window 20-29."), "{reason}");
    assert_eq!(rows(&tree, &["m.log", "--window", "20-29"])[0]["step_time_s"]["n"], 10);
}

#[test]
fn what_a_log_lacks_can_be_said() {
    let (_, _, torchtitan) = formats()[3];
    let log: String = (0..50).map(torchtitan).collect();
    let tree = tree([("t.log", log)]);
    let said = [
        "t.log",
        "--window",
        "last",
        "--model",
        "deepseek-v3",
        "--gpu",
        "h100",
        "--gpus",
        "256",
        "--ep",
        "64",
        "--gbs",
        "512",
        "--seq-len",
        "2098",
    ];
    let row = &rows(&tree, &said)[0];
    assert_eq!(row["tokens_per_s"].as_f64(), Some(1049.0 * 256.0));
    assert_eq!(row["step_time_s"]["mean"].as_f64(), Some(4.0));
    assert_eq!((&row["convention"], row["mfu"].is_f64()), (&"full".into(), true));
    assert!(refusal(&["parse", "t.log", "--gpu", "h1000"]).contains("Did you mean h100?"));
    assert!(refusal(&["parse", "t.log", "--stack", "maxtext"]).contains("see docs/stacks.md"));
    let uneven = refusal(&["parse", "t.log", "--recipe", "llama3.1-70b/h100/fp8/256@25.04", "--tp", "3"]);
    assert!(uneven.contains("attention heads (64) can't be divided by TP 3. Use 2 or 4."), "{uneven}");
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
        "Joined from 3 logs of a restarted job: 1320 s passed between them, and 10 steps were done again.";
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
fn slow_steps_at_intervals_are_named() {
    let run = |slow: fn(u64) -> bool, saved: bool| -> String {
        let steps = timed(1..=50, 0);
        let line = |(step, line): (u64, &str)| match slow(step) {
            true if saved => format!(
                "{}\n  successfully saved checkpoint from iteration {step:8} to /c\n",
                line.replace("10000.0", "13000.0")
            ),
            true => line.replace("10000.0", "13000.0") + "\n",
            false => format!("{line}\n"),
        };
        (1..).zip(steps.lines()).map(line).collect()
    };
    let tree = tree([
        ("1.log", run(|step| step % 10 == 0, true)),
        ("2.log", run(|step| step % 7 == 3, false)),
        ("3.log", run(|step| [5, 9, 30].contains(&step), false)),
    ]);
    let notes: Vec<String> = rows(&tree, &["."]).iter().map(|row| row["notes"].to_string()).collect();
    let saved = "Every 10 steps (10, 20, 30, …) one takes more than 1.2 times the median. A checkpoint is saved then.";
    assert!(notes[0].contains(saved), "{}", notes[0]);
    assert!(
        notes[1].contains("Every 7 steps (3, 10, 17, …)") && notes[1].contains("garbage collection"),
        "{}",
        notes[1]
    );
    assert!(!notes[2].contains("Every"), "{}", notes[2]);
}

#[test]
fn the_batch_scripts_output_says_why_a_run_ended() {
    let limit = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-12-19T11:00:00 DUE TO TIME LIMIT ***\n";
    let node = "slurmstepd: error: *** JOB 9 ON n2 CANCELLED AT 2025-12-19T11:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***\n";
    let log = |job: u32| format!("log-a.pretrain_llama3.1_70b_fp8_256_{job}_0.out");
    let tree = tree([
        (
            log(7),
            nemo2(50, 512, 10_000, 0, "")
                .lines()
                .take(20)
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        ),
        ("sbatch_a.pretrain_llama3.1_70b_fp8_256_7.out".into(), format!("starting\n{limit}")),
        // What happens after the last step changes nothing.
        (log(8), nemo2(50, 512, 10_000, 0, "")),
        ("slurm-8.out".into(), limit.replace('7', "8")),
        (
            log(9),
            nemo2(50, 512, 10_000, 0, "")
                .lines()
                .take(20)
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        ),
        ("slurm-9.out".into(), node.to_owned()),
    ]);
    let rows = rows(&tree, &["."]);
    let told: Vec<_> =
        rows.iter().map(|row| (row["status"].as_str().unwrap(), row["reason"].as_str())).collect();
    let [(ended, why), (whole, none), (lost, node)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((*ended, *whole, *lost, *none), ("failed", "scored", "failed", None));
    let wanted = "the job hit its time limit (line 2 of sbatch_a.pretrain_llama3.1_70b_fp8_256_7.out)";
    assert!(why.unwrap().contains(wanted), "{why:?}");
    assert!(node.unwrap().contains("a node failed (line 1 of slurm-9.out)"), "{node:?}");
    // Also for a log that is named.
    let named = rows_of(&parse(&tree, &[&log(7), "--format", "json"]));
    assert_eq!(named[0]["reason"].as_str(), *why);
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
