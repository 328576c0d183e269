//! `trainplan probe` with a file, and the file as a value of `--cluster-factor`.

use crate::{json, refusal};
use serde_json::{Value, json as value};
use std::fs;
use tempfile::TempDir;
use trainplan_tests::trainplan;

/// Writes the probe of two nodes of H100 whose matrix multiplications and network have these rates.
fn probe_file(folder: &TempDir, tflops: f64, network_gbps: f64) -> String {
    let collective = |scope: &str, ranks: u32, bytes: u64, time_s: f64, bus_gbps: f64| value!({"kind": "all-reduce", "scope": scope, "ranks": ranks, "bytes": bytes, "time_s": time_s, "bus_gbps": bus_gbps});
    let rank = |local_rank: u32| {
        let tflops = if local_rank == 5 { 0.8 * tflops } else { tflops };
        value!({"host": "n1", "local_rank": local_rank, "bf16_tflops": tflops, "memory_gbps": 2900.0, "launch_us": 6.0})
    };
    let probe = value!({
        "schema_version": 1, "kind": "trainplan-probe", "measured_at": "2026-11-27T14:00:00Z", "cluster": "alpha",
        "device": "NVIDIA H100 80GB HBM3", "accelerator": "cuda", "torch": "2.6.0", "cuda": "12.6", "nccl": "2.21.5",
        "backend": "nccl", "nodes": 2, "ranks_per_node": 8,
        "memory": {"total_bytes": 85_024_112_640_u64, "free_bytes": 84_000_000_000_u64},
        "matmuls": [{"precision": "bf16", "m": 8192, "n": 8192, "k": 8192, "tflops": tflops}], "attention": [],
        "memory_gbps": 2900.0, "launch_us": 6.0,
        "collectives": [
            collective("node", 8, 1 << 28, 1.3e-3, 350.0),
            collective("network", 2, 1024, 4e-5, 0.02),
            collective("network", 2, 1 << 28, 6e-3, network_gbps),
        ],
        "ranks": (0..8).map(rank).collect::<Vec<Value>>(),
        "skipped": [{"measurement": "matmul fp8", "reason": "PyTorch is too old"}], "seconds": 95.0,
    });
    let path = folder.path().join("alpha.probe.json");
    fs::write(&path, probe.to_string()).unwrap();
    path.to_str().unwrap().to_string()
}

/// Changes the file of a probe.
fn change(file: &str, change: impl FnOnce(&mut Value)) {
    let mut probe: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    change(&mut probe);
    fs::write(file, probe.to_string()).unwrap();
}

#[test]
fn a_probe_shows_each_figure_beside_a_machine_in_good_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = probe_file(&folder, 640.0, 30.0);
    let run = trainplan(["probe", &file, "--format", "table"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{}", run.stdout);
    for text in [
        "SLOW: 89.9 %",
        "SLOW: 83.3 %",
        "matmul=0.899",
        "SLOW: n1: GPU 5 reaches 80.0 % of the median (BF16 matrix multiplication).",
        "estimates assume that the slow ones are left out",
        "Not measured: matmul fp8: PyTorch is too old",
        "cluster-factor = \"1,network=0.833,matmul=0.899\"",
    ] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    let sound = trainplan(["probe", &probe_file(&folder, 760.0, 45.0), "--format", "csv"]);
    assert!(sound.stdout.contains("\nnetwork,45,36,GB/s,1.25,network,1\n"), "{}", sound.stdout);
}

#[test]
fn all_collectives_and_the_factor_on_fp8_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = probe_file(&folder, 760.0, 45.0);
    change(&file, |probe| {
        let rates = [
            ("all-gather", "node", 300.0),
            ("reduce-scatter", "network", 20.0),
            ("point-to-point", "network", 22.0),
        ];
        let rates = rates.map(|(kind, scope, gbps)| {
            value!({"kind": kind, "scope": scope, "ranks": 2, "bytes": 1 << 28, "time_s": 1e-3, "bus_gbps": gbps})
        });
        probe["collectives"].as_array_mut().unwrap().extend(rates);
        let fp8 = value!({"precision": "fp8", "m": 8192, "n": 8192, "k": 8192, "tflops": 633.28});
        probe["matmuls"].as_array_mut().unwrap().push(fp8);
    });
    let run = trainplan(["probe", &file, "--format", "table"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for (title, measured) in [
        ("All-gather in a node", "300 GB/s"),
        ("Reduce-scatter between nodes, per GPU", "20.0 GB/s"),
        ("Point to point between nodes, per GPU", "22.0 GB/s"),
    ] {
        let row = run.stdout.lines().find(|line| line.trim_start().starts_with(title));
        let row = row.unwrap_or_else(|| panic!("{title}: {}", run.stdout));
        assert!([measured, "not compared", "not used"].iter().all(|cell| row.contains(cell)), "{row}");
    }
    assert!(run.stdout.contains("cluster-factor = \"1,fp8=0.5\""), "{}", run.stdout);
    let csv = trainplan(["probe", &file, "--format", "csv"]).stdout;
    assert!(csv.contains("\nnvlink-all-gather,300,,GB/s,,,\n"), "{csv}");
}

#[test]
fn hundreds_of_slow_gpus_are_a_short_list_of_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let file = probe_file(&folder, 760.0, 45.0);
    change(&file, |probe| {
        let ranks = (0..1200).map(|rank| {
            let tflops = if rank < 512 { 600.0 } else { 760.0 };
            let host = format!("node-{:03}", rank / 8);
            value!({"host": host, "local_rank": rank % 8, "bf16_tflops": tflops, "memory_gbps": 2900.0, "launch_us": 6.0})
        });
        probe["ranks"] = ranks.collect();
    });
    let run = trainplan(["probe", &file, "--format", "table"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let slow: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with("SLOW: ")).collect();
    assert_eq!(slow.len(), 17, "{}", run.stdout);
    let first = "SLOW: node-000: GPUs 0, 1, 2, 3, 4, 5, 6, 7 reach 78.9 % of the median (BF16 matrix multiplication).";
    assert_eq!(slow[0], first);
    assert_eq!(slow[16], "SLOW: 64 nodes in all have slow GPUs. `--format json` names the others.");
    assert_eq!(json(&["probe", &file])["report"]["slow_gpus"].as_array().unwrap().len(), 512);
}

#[test]
fn a_probe_adapts_estimates_of_its_gpu_type_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = probe_file(&folder, 356.04, 18.0);
    let estimate = |factor: &str| {
        json(&["estimate", "--recipe", "llama3.1-70b/h100/bf16/64@25.04", "--cluster-factor", factor])
    };
    let adapted = estimate(&file);
    assert_eq!(adapted, estimate("1,network=0.5,matmul=0.5"));
    assert_ne!(adapted, estimate("1"));
    let other = ["estimate", "--recipe", "llama3.1-70b/gb200/fp8/64@26.06.01", "--cluster-factor", &file];
    let said = refusal(&other);
    assert!(said.contains("It was measured on h100, but this is about gb200."), "{said}");
    let search = [
        "search",
        "--model",
        "llama3.1-8b",
        "--gpu",
        "h100,b200",
        "--tokens",
        "1T",
        "--cluster-factor",
        &file,
    ];
    assert!(refusal(&search).contains("It was measured on h100, but this is about b200."));
    fs::write(folder.path().join("other.json"), "{}").unwrap();
    let other = folder.path().join("other.json");
    let said = refusal(&[
        "estimate",
        "--recipe",
        "llama3.1-70b/h100/bf16/64",
        "--cluster-factor",
        other.to_str().unwrap(),
    ]);
    assert!(said.contains("was not written by trainplan probe"), "{said}");
}

#[test]
fn the_measuring_program_can_run_without_slurm() {
    let run = trainplan(["probe", "--print-program"]);
    assert!(run.code == Some(0) && run.stdout.starts_with("\"\"\"The measuring program"), "{}", run.stderr);
    assert!(refusal(&["probe"]).contains("--cluster"));
    assert!(refusal(&["probe", "/nowhere/alpha.probe.json"]).contains("The file can't be read"));
    assert!(refusal(&["probe", "alpha.probe.json", "--nodes", "2"]).contains("cannot be used with"));
}

#[test]
fn a_dry_run_prints_the_job_of_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let profiles = folder.path().join("clusters.toml");
    let profile =
        "version = 1\n[cluster.alpha]\nssh = \"nowhere.invalid\"\ngpu = \"gb200\"\naccount = \"dgx\"\n";
    fs::write(&profiles, profile).unwrap();
    let profiles = profiles.to_str().unwrap();
    let probe = ["probe", "--cluster", "alpha", "--clusters", profiles, "--container-image", "/i.sqsh"];
    let run = trainplan([&probe[..], &["--dry-run"]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let first = run.stdout.lines().next().unwrap();
    let expected = "# sbatch --parsable --no-requeue --nodes=2 --ntasks-per-node=4 --gpus-per-node=4 --time=10 --output=job.log --account=dgx job.sh";
    assert_eq!(first, expected);
    assert!(run.stdout.contains("--container-mounts=\"$PWD\":/trainplan-probe"), "{}", run.stdout);
    // The folder of the result is looked for before a job waits for hours.
    assert!(refusal(&[&probe[..], &["--output", "/nowhere/a.json"]].concat()).contains("does not exist"));
}
