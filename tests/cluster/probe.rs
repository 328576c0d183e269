//! `trainplan probe`: one job that measures what a cluster reaches.

use crate::doctor::Person;
use crate::{Cluster, Options};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use trainplan_tests::trainplan;

const SMALL: Options = Options { nodes: 2, accounting: false, slurm_conf: &[] };

#[test]
#[ignore = "needs root and Slurm"]
fn probe_without_pytorch_says_what_is_missing() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "");
    // Python without its packages.
    let python = cluster.folder().join("python");
    fs::write(&python, "#!/bin/sh\nexec python3 -I -S \"$@\"\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let output = cluster.folder().join("alpha.probe.json");
    let [python, file] = [&python, &output].map(|path| path.to_str().unwrap());
    let run = person.runs(&[
        "probe",
        "--cluster",
        "alpha",
        "--nodes",
        "2",
        "--gpus-per-node",
        "1",
        "--python",
        python,
        "--output",
        file,
    ]);
    println!("{}", run.stderr);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("ended without a result") && run.stderr.contains("has no PyTorch"),
        "{}",
        run.stderr
    );
    assert!(!output.exists());
    assert_eq!(cluster.text("squeue --noheader"), "");
    person.has_left();
}

#[test]
#[ignore = "needs root and Slurm"]
fn probe_says_why_slurm_refuses_its_job() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "partition = \"nowhere\"\n");
    let run = person.runs(&["probe", "--cluster", "alpha"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let said = "Slurm did not accept the probe's job: sbatch: error: invalid partition specified: nowhere";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    person.has_left();
}

#[test]
#[ignore = "needs root and Slurm"]
fn the_result_of_a_probe_survives_a_full_disk() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "");
    // Has measured before, and writes that result.
    let result = cluster.folder().join("h100.json");
    fs::write(&result, include_str!("../../fuzz/corpus/probe/h100.json")).unwrap();
    let python = cluster.folder().join("python");
    let program = format!("#!/bin/sh\n[ \"$SLURM_PROCID\" != 0 ] || cat {} >\"$3\"\n", result.display());
    fs::write(&python, program).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let file = cluster.folder().join("alpha.probe.json");
    let probe_to = |output: &str| {
        let python = python.to_str().unwrap();
        let job = ["probe", "--cluster", "alpha", "--gpus-per-node", "1", "--python", python];
        person.runs(&[&job[..], &["--format", "table", "--output", output]].concat())
    };

    let run = probe_to("/dev/full");
    println!("{}", run.stderr);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("error: /dev/full: No space left on device"), "{}", run.stderr);
    assert!(run.stderr.contains("The file was printed instead."), "{}", run.stderr);
    let printed: Value = serde_json::from_str(&run.stdout).unwrap();
    let copy = run.stderr.split("To copy it: ssh loop ").nth(1).and_then(|rest| rest.split(" >FILE").next());
    let kept: Value = serde_json::from_str(&cluster.text(copy.unwrap())).unwrap();
    assert_eq!(printed, kept);
    assert_eq!(printed["matmuls"][0]["tflops"], 640.0);

    // Where the file can be written, the cluster keeps nothing.
    let run = probe_to(file.to_str().unwrap());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written, kept);
    assert_eq!(cluster.text("ls ~/.trainplan/probes | wc -l"), "1");
    person.has_left();
}

#[test]
#[ignore = "stress: needs PyTorch"]
fn stress_probe_measures_with_pytorch_on_cpus() {
    let cluster = Cluster::start(&SMALL);
    let person = Person::of(&cluster, "gpu = \"h100\"\n");
    let path = cluster.folder().join("alpha.probe.json");
    let file = path.to_str().unwrap();
    let run = person.runs(&[
        "probe",
        "--cluster",
        "alpha",
        "--gpus-per-node",
        "2",
        "--python",
        "/usr/bin/python3",
        "--output",
        file,
        "--format",
        "table",
    ]);
    println!("{}{}", run.stdout, run.stderr);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("All-reduce between nodes"), "{}", run.stdout);
    let probe: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(
        (&probe["nodes"], &probe["ranks_per_node"], &probe["backend"]),
        (&2.into(), &2.into(), &"gloo".into())
    );
    assert_eq!(probe["ranks"].as_array().unwrap().len(), 4);
    assert!(probe["matmuls"][0]["tflops"].as_f64().unwrap() > 0.0);
    let scopes = |scope: &str| {
        let rates = probe["collectives"].as_array().unwrap().iter();
        rates.filter(|rate| rate["scope"] == scope && rate["kind"] == "all-reduce").count()
    };
    assert!(scopes("node") > 1 && scopes("network") > 1, "{probe}");
    // The profile's GPUs were not measured.
    assert_eq!((&probe["cluster"], &probe["gpu"]), (&"alpha".into(), &Value::Null));
    let refused = trainplan(["estimate", "--recipe", "llama3.1-8b/h100/fp8/8", "--cluster-factor", file]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("It was measured on CPUs"), "{}", refused.stderr);
    assert_eq!(cluster.text("squeue --noheader; ls ~/.trainplan/probes"), "");
    person.has_left();
}
