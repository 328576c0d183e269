//! Launches with Megatron-LM: their flags are checked against the known ones, and their scripts run in real
//! shells.

mod known_flags;
mod model;
mod options;
mod slurm;
mod support;

use crate::launched;
use crate::shell::{Place, SHELLS, Seen};
use slurm::directives;
use std::collections::BTreeMap;
use trainplan_shared::field::Field;
use trainplan_shared::launch::{Launch, LaunchOptions, launch};
use trainplan_shared::log::{LogName, Role};
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

const STYLE: (Field, &str) = (Field::Style, "megatron-lm");

const LLAMA: &str = "llama3.1-405b/h100/fp8/512@25.04";

/// What Slurm tells a job.
const JOB: [(&str, &str); 3] =
    [("SLURM_JOB_ID", "4711"), ("SLURM_JOB_NODELIST", "node[1-2]"), ("MEGATRON_PATH", "/opt/megatron-lm")];

fn try_launch(fields: &[(Field, &str)]) -> Result<Launch, Vec<Problem>> {
    let spec = fields.iter().fold(Spec::default(), |spec, (field, text)| spec.with(*field, *text));
    let spec = spec.with(STYLE.0, STYLE.1);
    launch(&spec.scenario()?, &LaunchOptions::from_spec(&spec)?)
}

/// The launch of fields, written as on a command line: `model=llama3.1-8b gpus=8`.
fn of(text: &str) -> Launch {
    try_launch(&fields(text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

/// The only problem of fields that can't be launched.
fn refused(text: &str) -> Problem {
    let problems = try_launch(&fields(text)).map(|launch| launch.script).unwrap_err();
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    problems.into_iter().next().unwrap()
}

fn fields(text: &str) -> Vec<(Field, &str)> {
    let pairs = text.split(' ').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(flag, value)| (Field::from_flag(flag).unwrap(), value)).collect()
}

/// What a job's `srun` was called with.
fn srun(launch: &Launch, shell: &str, env: &[(&str, &str)]) -> Seen {
    let place = Place::new();
    let seen = place.run(shell, &launch.script, env);
    assert_eq!(seen.program, "srun");
    seen
}

/// The program and its flags, each with its values.
fn flags(launch: &Launch) -> (String, BTreeMap<String, Vec<String>>) {
    let args = srun(launch, "sh", &JOB).args;
    let program = args.iter().position(|arg| arg.ends_with(".py")).unwrap();
    let mut flags: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut last = String::new();
    for arg in &args[program + 1..] {
        if arg.starts_with("--") {
            let (flag, value) =
                arg.split_once('=').map_or((arg.as_str(), None), |(flag, value)| (flag, Some(value)));
            let values = value.map(String::from).into_iter().collect();
            assert!(flags.insert(flag.to_owned(), values).is_none(), "{flag} is there twice");
            last = flag.to_owned();
        } else {
            // Python's argparse takes it for a flag.
            assert!(!arg.starts_with('-'), "{last} {arg}");
            flags.get_mut(&last).unwrap().push(arg.clone());
        }
    }
    (args[program].clone(), flags)
}

fn value(launch: &Launch, flag: &str) -> Option<String> {
    flags(launch).1.get(flag).map(|values| values.join(" "))
}

/// Scenarios that between them ask for everything.
const EVERYTHING: [&str; 14] = [
    "recipe=llama3.1-405b/h100/fp8/512@25.04 profile=yes save-checkpoint=yes load-checkpoint=/c recompute=full",
    "recipe=nemotron4-340b/h100/fp8/256@25.12 recompute=selective",
    "recipe=nemotron-h-56b/h100/fp8/256@25.05",
    "model=deepseek-v3 gpu=gb200 gpus=256 dtype=mxfp8 pp=4 vp=4 ep=64 gbs=2048",
    "model=deepseek-v2-lite gpu=h100 gpus=8 dtype=fp8-block gbs=64 ep=8 overlap=off recompute-modules=mlp,shared_experts",
    "model=gpt-oss-20b gpu=h100 gpus=64 gbs=512 fsdp=yes dtype=fp8",
    "model=gpt3-175b gpu=gb200 gpus=64 gbs=512 tp=4 pp=8 vp=3 dtype=nvfp4",
    "model=llama3.1-70b gpu=h100 gpus=64 gbs=96 tp=4 pp=4 vp=5 dtype=fp8-current",
    "model=llama3.1-70b gpu=h100 gpus=64 gbs=60 tp=4 pp=4 vp=5 dtype=fp8-delayed cp=2",
    "model=llama3.1-70b gpu=h100 gpus=64 gbs=64 tp=2 pp=8 vp=5 overlap=off",
    "model=nemotron-3-nano-30b gpu=h200 gpus=64 gbs=512 tp=2 ep=8",
    "model=llama4-maverick gpu=h100 gpus=128 gbs=128 ep=128",
    "model=mixtral-8x7b gpu=a100 gpus=16 gbs=64 ep=8 expert-tp=2 tp=2",
    "model=own:layers=4,hidden=1024,ffn=4096,heads=16,kv_heads=16,head_dim=64,vocab=1000,gated=0,tied_embeddings=1,\
     seq_len=1024,experts=8,top_k=2,moe_ffn=512,dense_layers=1,moe_layers=3,moe_latent=256 gpu=h100 gpus=8 gbs=8",
];

#[test]
fn a_recipe_is_passed_on_completely() {
    let launch = launched(LLAMA, &[STYLE, (Field::Account, "research"), (Field::TimeLimit, "1:00:00")]);
    for shell in SHELLS {
        let seen = srun(&launch, shell, &JOB);
        assert_eq!(seen.env["CUDA_DEVICE_MAX_CONNECTIONS"], "1");
        let torchrun = seen.args.iter().position(|arg| arg == "torchrun").unwrap();
        assert_eq!(
            seen.args[torchrun..torchrun + 12],
            [
                "torchrun",
                "--nnodes",
                "64",
                "--nproc-per-node",
                "8",
                "--rdzv-backend",
                "c10d",
                "--rdzv-id",
                "4711",
                "--rdzv-endpoint",
                "node1:24711",
                "/opt/megatron-lm/pretrain_gpt.py"
            ]
        );
    }
    let (_, flags) = flags(&launch);
    for (flag, wanted) in [
        ("--num-layers", "126"),
        ("--num-query-groups", "8"),
        ("--vocab-size", "128255"),
        ("--tensor-model-parallel-size", "8"),
        ("--pipeline-model-parallel-size", "8"),
        ("--num-virtual-stages-per-pipeline-rank", "8"),
        ("--context-parallel-size", "2"),
        ("--fp8-recipe", "delayed"),
        ("--train-iters", "50"),
    ] {
        assert_eq!(flags[flag], [wanted], "{flag}");
    }
    for flag in ["--sequence-parallel", "--account-for-loss-in-pipeline-split", "--swiglu", "--mock-data"] {
        assert!(flags.contains_key(flag), "{flag}");
    }
    let lines = directives(&launch);
    for line in ["--nodes=64", "--gpus-per-node=8", "--account=research", "--time=01:00:00", "--exclusive"] {
        assert!(lines.iter().any(|given| given == line), "{line} is not in {lines:?}");
    }
    assert!(launch.release.is_none() && launch.needs == ["MEGATRON_PATH"]);
    // The script does all that the recipe's software does.
    assert_eq!(launch.warnings, []);
    assert!(flags.contains_key("--tp-comm-overlap"));
    assert!(!launch.comparable.yes && launch.comparable.baseline.is_some());
}

#[test]
fn without_its_checkout_nothing_starts() {
    let place = Place::new();
    let output = place.execute("sh", &launched(LLAMA, &[STYLE]).script, &JOB[..2]);
    assert!(!output.status.success() && place.seen().is_none());
    assert!(String::from_utf8_lossy(&output.stderr).contains("MEGATRON_PATH: set it to your checkout"));
}

#[test]
fn the_log_has_the_announced_path_and_name() {
    let launch = of("model=qwen3-30b-a3b gpu=h100 gpus=64 gbs=512 ep=8 pp=2 dtype=fp8-current profile=yes");
    let place = Place::new();
    let seen = place.run("sh", &launch.script, &JOB);
    let log = seen.args.iter().find_map(|arg| arg.strip_prefix("--output=")).unwrap();
    std::fs::write(log, "").unwrap();
    let found = place.execute("sh", &format!("ls {}", launch.outputs.log_glob.shell()), &[]);
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(log.ends_with(found.trim_end()) && !found.is_empty(), "{log} {found}");
    let name = LogName::of(log);
    assert_eq!((name.role, name.job_id, name.restart), (Role::Training, Some(4711), Some(0)));
    assert_eq!((name.model.as_deref(), name.size.as_deref()), (Some("qwen3"), Some("30b_a3b")));
    assert_eq!((name.gpus, name.pp, name.ep, name.gbs), (Some(64), Some(2), Some(8), Some(512)));
    assert_eq!(name.dtype.as_deref(), Some("fp8-current"));
    let profile = launch.outputs.profile_glob.unwrap().shell();
    assert!(profile.starts_with("experiments/") && profile.ends_with("/profile_node*.nsys-rep"), "{profile}");
}

#[test]
fn the_log_states_what_changes_the_prediction() {
    let stated = |text: &str| {
        let script = of(text).script.to_string();
        let (_, line) = script.split_once("echo 'trainplan scenario: ").unwrap();
        trainplan_shared::link::read(line.split_once('\'').unwrap().0).spec
    };
    let scenario = "model=llama3.1-70b gpu=h100 gpus=64 gbs=128 tp=4 pp=4 vp=5 stack=megatron-lm-0.14";
    let plain = stated(scenario);
    assert_eq!(plain.get(Field::Stack), Some("megatron-lm-0.14"));
    assert_eq!(plain.iter().count(), 3, "{plain:?}");
    let other = stated(&format!("{scenario} overlap=off recompute=full gemm-tflops=600 cluster-factor=1.2"));
    assert_eq!((other.get(Field::Overlap), other.get(Field::Recompute)), (Some("off"), Some("full")));
    assert_eq!((other.get(Field::GemmTflops), other.get(Field::ClusterFactor)), (Some("600"), Some("1.2")));
}
