//! The scores of logs: every format, the documents' own examples, and the published numbers beside them.

use super::{LLAMA_70B, nemo2, parse, rows, rows_of, tree};
use crate::refusal;
use serde_json::Value;

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
    assert_eq!(row["notes"][1], "As logged: 1,600 TFLOP/s per GPU.");
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
fn formats() -> [(&'static str, u64, Line); 7] {
    fn time(row: u64) -> f64 {
        2.0 + row as f64 / 100.0
    }
    fn iteration(row: u64) -> String {
        format!(
            " [2025-12-19 10:49:15] iteration {:8}/      50 | consumed samples: {:12} | elapsed time per iteration \
             (ms): {:.1} | global batch size:   256 | lm loss: 1.2E+01 | grad norm: 1.234 |\n",
            row + 1,
            256 * (row + 1),
            time(row) * 1000.0
        )
    }
    [
        ("nemo1", 1, |row| {
            format!("Epoch 0: : | {}/50 [00:01<00:00, train_step_timing in s={:.3}]\r", row + 1, time(row))
        }),
        ("nemo2", 0, |row| {
            format!("Training epoch 0, iteration {row}/49 | train_step_timing in s: {:.2}\n", time(row))
        }),
        ("megatron_bridge", 1, |row| {
            let rank_0 = format!("Step Time : {:.2}s GPU utilization: 400.0MODEL_TFLOP/s/GPU\n", time(row));
            rank_0 + &iteration(row)
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
        ("megatron_lm", 1, iteration),
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
fn a_torchtitan_log_states_its_scenario() {
    let header = [
        "Building 1-D device mesh with ['dp_shard'], [128]",
        "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory",
        "Model \x1b[34mllama3 8B \x1b[31msize: 8,030,261,248 total parameters\x1b[39m",
        "Applied selective activation checkpointing to the model",
        "Compiling each TransformerBlock with torch.compile",
        "Applied FSDP to the model",
        "Trainer is initialized with local batch size 2, global batch size 256, gradient accumulation steps 1, sequence length \
         8192, total steps 60 (warmup 10)",
    ];
    let line = |text: &str| format!("[rank0]:[titan] 2025-12-01 10:00:00,123 - root - INFO - {text}\n");
    let step = |step: u32| {
        let tps = 5900 + step % 7;
        line(&format!(
            "\x1b[31mstep: {step:2}  loss:  8.1  memory: 50.00GiB(62.00%)  tps: {tps}  tflops: 340.0  mfu: 34.4%"
        ))
    };
    let log: String = header.iter().map(|text| line(text)).chain((1..=60).map(step)).collect();
    let tree = tree([("t8b.log", log)]);
    let row = &rows(&tree, &["t8b.log"])[0];
    for (field, value) in [
        ("model", "llama3.1-8b"),
        ("gpu", "h100"),
        ("gpus", "128"),
        ("tp", "1"),
        ("pp", "1"),
        ("mbs", "2"),
        ("gbs", "256"),
        ("seq-len", "8192"),
        ("dtype", "bf16"),
        ("recompute", "selective"),
        ("fsdp", "on"),
        ("stack", "torchtitan"),
    ] {
        assert_eq!(row["scenario"][field], value, "{field}: {}", row["scenario"]);
    }
    assert_eq!((&row["status"], &row["comparable"]["yes"]), (&"scored".into(), &true.into()), "{row}");
    let time = row["step_time_s"]["mean"].as_f64().unwrap();
    assert!((2.75..2.79).contains(&time), "{time}");
    assert!(row["mfu"].is_f64() && row["prediction"]["step_time_s"]["mid"].is_f64(), "{row}");
    assert!(!row["notes"].to_string().contains("Set the recipe"), "{}", row["notes"]);
    // What the user sets takes precedence over what the log says only if they agree.
    let other = parse(&tree, &["t8b.log", "--gpus", "64", "--format", "json"]);
    assert!(
        rows_of(&other)[0]["reason"].as_str().unwrap().contains("GPUs 128, but 64 was set"),
        "{}",
        other.stdout
    );
}
