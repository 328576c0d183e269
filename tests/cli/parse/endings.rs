//! Why a run ended: timeouts, hangs and what the batch script's output says.

use super::{LLAMA_70B, nemo2, parse, rows, rows_of, tree};

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
    let hung = "No step was logged in the 1 h 51 min before the job hit its time limit";
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
