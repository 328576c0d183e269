//! What is noted beside a score: NCCL's network and calls, slow steps, numbers that contradict each other.

use super::{LLAMA_70B, nemo2, parse, rows, timed, tree};

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
    let saved = "Every 10 steps (10, 20, 30, …), a step takes more than 1.2 times the median. Checkpoints are saved at these \
                 steps.";
    assert!(notes[0].contains(saved), "{}", notes[0]);
    assert!(
        notes[1].contains("Every 7 steps (3, 10, 17, …)") && notes[1].contains("garbage collection"),
        "{}",
        notes[1]
    );
    assert!(!notes[2].contains("Every"), "{}", notes[2]);
}
