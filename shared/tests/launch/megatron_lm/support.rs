//! What Megatron-LM cannot run is refused, and what it does otherwise than planned is named.

use super::{EVERYTHING, LLAMA, STYLE, fields, of, refused, value};
use crate::{launched, warns};
use trainplan_shared::field::Field;
use trainplan_shared::launch::{LaunchOptions, ScriptSoftware, launch};
use trainplan_shared::spec::Spec;

#[test]
fn settings_of_a_recipe_with_fsdp_are_named() {
    let plan = "gpus=64 gbs=256 mbs=2 dtype=fp8-current fsdp=yes";
    assert!(warns(
        &of(&format!("model=llama3.1-70b gpu=gb300 {plan}")),
        ", a recipe with FSDP for this model and GPU type, runs with --offload-layers 20. This script doesn't"
    ));
    assert!(!warns(&of(&format!("model=llama3.1-70b gpu=h100 {plan}")), "a recipe with FSDP"));
}

#[test]
fn an_estimate_for_other_software_is_named() {
    let plan = "model=llama3.1-8b gpu=h100 gpus=8 gbs=128";
    assert!(warns(
        &of(&format!("{plan} stack=nanotron")),
        "is for nanotron, but this script runs Megatron-LM"
    ));
    for stack in ["megatron-lm-0.14", "megatron-bridge-25.11"] {
        assert!(!warns(&of(&format!("{plan} stack={stack}")), "runs Megatron-LM"), "{stack}");
    }
    let moe = of("model=qwen3-235b-a22b gpu=b200 gpus=512 gbs=4096 mbs=2 dtype=mxfp8 pp=4 ep=8 vp=12 \
                  pipeline-split=counted");
    assert!(warns(&moe, "The script runs Megatron-LM without fused kernels for experts: steps take about "));
    assert!(!warns(&moe, "CUDA graphs, ") && !warns(&moe, "sending tokens"));
}

#[test]
fn activations_in_cpu_memory_are_refused() {
    for (text, says) in [
        ("offload-layers=32", "less than the 32 layers"),
        ("offload-layers=8 pp=2", "without pipeline parallelism"),
        ("offload-layers=8 recompute=full", "with recomputation"),
        ("offload-layers=8", "not every Megatron-LM"),
    ] {
        let problem = refused(&format!("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 {text}"));
        assert_eq!(problem.field, Field::OffloadLayers);
        assert!(problem.to_string().contains(says), "{problem}");
    }
}

#[test]
fn a_plan_with_the_scripts_software_has_the_same_script_and_no_warning() {
    let stacks =
        ["", "megatron-bridge-26.06", "megatron-bridge-25.09", "nemo-1", "megatron-lm-0.14", "nanotron"];
    let own =
        "megatron-lm-0.14:overlaps_tp=yes,gradient_bytes=1,optimizer_bytes=11,weights=fp32,hides_experts=yes";
    for (text, stack) in
        EVERYTHING.iter().flat_map(|text| stacks.into_iter().chain([own]).map(move |stack| (text, stack)))
    {
        let given = fields(text).into_iter().chain((!stack.is_empty()).then_some((Field::Stack, stack)));
        let spec = given.fold(Spec::default(), |spec, (field, value)| spec.with(field, value));
        let spec = spec.with(STYLE.0, STYLE.1);
        let options = LaunchOptions::from_spec(&spec).unwrap();
        let scenario = spec.scenario().unwrap();
        let script = ScriptSoftware::of(&scenario, &options);
        let planned = spec.with(Field::Stack, script.software.to_string()).scenario().unwrap();
        let again = ScriptSoftware::of(&planned, &options);
        assert!(!again.differs() && again.software == script.software, "{text} {stack}: {again:?}");
        let [one, other] = [&scenario, &planned].map(|scenario| launch(scenario, &options).unwrap());
        assert_eq!(one.script, other.script, "{text} {stack}");
    }
}

#[test]
fn scenarios_that_megatron_lm_cannot_run_are_refused() {
    for (text, field, says) in [
        (
            "model=llama3.1-8b gpu=h100 gpus=16 gbs=16 pp=2 fsdp=yes",
            Field::Pp,
            "--pp 2 and --fsdp can't be combined",
        ),
        ("model=nemotron-h-56b gpu=h100 gpus=64 gbs=64 pp=4", Field::Pp, "layers unevenly"),
        ("model=nemotron-h-56b gpu=h100 gpus=64 gbs=64 pp=2 vp=59", Field::Vp, "supported for hybrids"),
        ("model=llama3.1-70b gpu=h100 gpus=64 gbs=32 pp=4 vp=2 tp=1", Field::Gbs, "Use 64"),
        ("model=llama3.1-8b gpu=h100 gpus=12 gbs=12", Field::Gpus, "Use 8 or 16"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 release=25.12", Field::Release, "your checkout"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 cluster-type=runai", Field::ClusterType, "Use slurm"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 gres=gpu:4", Field::Gres, "Use gpu:8"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 account=$ME", Field::Account, "SBATCH_ACCOUNT"),
        ("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 env=run=1", Field::Env, "launch itself sets run"),
        (
            "model=llama3.1-8b gpu=h100 gpus=8 gbs=8 tp=2 env=CUDA_DEVICE_MAX_CONNECTIONS=8",
            Field::Env,
            "launch itself sets CUDA",
        ),
        (
            "model=llama3.1-8b gpu=h100 gpus=8 gbs=8 profile=yes max-steps=20 profile-stop-step=30",
            Field::ProfileStopStep,
            "Use 20",
        ),
        (
            "model=llama3.1-8b gpu=h100 gpus=8 gbs=8 mounts=data container-image=/i.sqsh",
            Field::Mounts,
            "absolute",
        ),
    ] {
        let problem = refused(text);
        assert!(problem.field == field && problem.to_string().contains(says), "{text}: {problem}");
    }
    let groups = of("model=llama3.1-70b gpu=h100 gpus=64 gbs=96 pp=4 vp=2");
    assert_eq!(value(&groups, "--microbatch-group-size-per-virtual-pipeline-stage"), Some("6".into()));
}

#[test]
fn options_without_effect_are_warned_about() {
    let says = |text: &str, warning: &str| {
        assert!(warns(&of(&format!("model=llama3.1-8b gpu=h100 gpus=8 gbs=8 {text}")), warning), "{text}");
    };
    says("recipe-dir=/r", "--recipe-dir has no effect");
    says("mounts=/m", "Without a container, --mounts has no effect");
    says("venv=/v container-image=/i.sqsh", "In a container, --venv has no effect");
    says("gpu-metrics=yes", "Without a profile, --gpu-metrics has no effect");
    says("load-checkpoint=/c", "ends after step 50");
    let small = EVERYTHING[13];
    assert!(warns(&of(small), "more than the vocabulary of 1000"), "{small}");
    assert!(warns(&of("model=llama3.1-8b gpu=h100 gpus=16 gbs=16 tp=16"), "Megatron-Core before 0.16"));
    let image = [(Field::ContainerImage, "/i.sqsh")];
    assert!(warns(&launched(LLAMA, &image), "--container-image has no effect without --style megatron-lm"));
}
