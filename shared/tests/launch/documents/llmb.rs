//! The documents of the releases below LLMB_INSTALL: 25.05 and 25.12.

use super::{Reads, SETTING, check, example};
use crate::launched;
use crate::shell::{Place, SHELLS, Seen};
use trainplan_shared::field::Field;

const LAUNCH_SH: (Field, &str) = (Field::Style, "launch-sh");

#[test]
fn release_25_05() {
    let place = Place::new();
    place.stand_in("repository/nemotronh/launch.sh");
    place.stand_in("llmb/nothing");
    let reads: Reads = &[
        ("LLMB_INSTALL", ""),
        ("SBATCH_ACCOUNT", ""),
        ("SBATCH_PARTITION", ""),
        ("STAGE_PATH", ""),
        ("MAX_STEPS", "50"),
        ("TIME_LIMIT", "00:25:00"),
        ("GPUS_PER_NODE", "8"),
        ("ENABLE_PROFILE", "false"),
        ("PROFILE_START_STEP", "45"),
        ("PROFILE_STOP_STEP", "50"),
        ("ENABLE_NCCLTRACE", "false"),
        ("RUN_CONF_IMAGE", ""),
    ];
    let llmb_run = [
        example(
            "llmb-run single -w pretrain_nemotronh -s 56b --dtype fp8 --scale 256",
            "nemotron-h-56b/h100/fp8/256@25.05",
            &[],
        ),
        example(
            "llmb-run single -w pretrain_nemotronh -s 56b --dtype fp8 --scale 1024",
            "nemotron-h-56b/h100/fp8/1024@25.05",
            &[],
        ),
    ];
    check(&place, "repository/nemotronh", ("LLMB_INSTALL", "llmb"), reads, &llmb_run);
    let launch_sh = [
        example("JOB_TOTAL_GPUS=256 ./launch.sh", "nemotron-h-56b/h100/fp8/256@25.05", &[LAUNCH_SH]),
        example("JOB_TOTAL_GPUS=1024 ./launch.sh", "nemotron-h-56b/h100/fp8/1024@25.05", &[LAUNCH_SH]),
        example(
            "ENABLE_PROFILE=true JOB_TOTAL_GPUS=256 ./launch.sh",
            "nemotron-h-56b/h100/fp8/256@25.05",
            &[LAUNCH_SH, (Field::Profile, "true")],
        ),
        example(
            "ENABLE_NCCLTRACE=true JOB_TOTAL_GPUS=256 ./launch.sh",
            "nemotron-h-56b/h100/fp8/256@25.05",
            &[LAUNCH_SH, (Field::NcclTrace, "true")],
        ),
    ];
    let told: Vec<(&str, &str)> =
        [reads, &[("JOB_TOTAL_GPUS", "256"), ("DTYPE", "fp8"), ("MODEL_SIZE", "56b"), ("GPU_TYPE", "h100")]]
            .concat();
    check(&place, "repository/nemotronh", ("LLMB_INSTALL", "llmb"), told.leak(), &launch_sh);
}

#[test]
fn release_25_12() {
    let place = Place::new();
    place.stand_in("llmb/llmb_repo/nemotron4-340b/launch.sh");
    let reads: Reads = &[
        ("LLMB_INSTALL", ""),
        ("SBATCH_ACCOUNT", ""),
        ("SBATCH_PARTITION", ""),
        ("CLUSTER_TYPE", "slurm"),
        ("STRONG_SCALING", "false"),
        ("GBS", ""),
        ("MAX_STEPS", "50"),
        ("TIME_LIMIT", ""),
        ("GPUS_PER_NODE", ""),
        ("CUDA_GRAPH", ""),
        ("ENABLE_PROFILE", "false"),
        ("PROFILE_START_STEP", "45"),
        ("PROFILE_STOP_STEP", "50"),
        ("ENABLE_GPU_METRICS", "false"),
        ("ENABLE_VBOOST", "false"),
        ("ENABLE_CHECKPOINT", "false"),
        ("LOAD_CHECKPOINT_PATH", ""),
        ("RUN_CONF_IMAGE", ""),
        ("RUN_CONF_MOUNTS", ""),
    ];
    let llmb_run = [
        example(
            "llmb-run submit -w pretrain_nemotron4-340b -s 340b --dtype bf16 --scale 256",
            "nemotron4-340b/h100/bf16/256@25.12",
            &[],
        ),
        example(
            "TP_COMM_OVERLAP=False llmb-run submit -w pretrain_nemotron4-340b -s 340b --dtype bf16 --scale 256",
            "nemotron4-340b/gb200/bf16/256@25.12",
            &[(Field::Env, "TP_COMM_OVERLAP=False")],
        ),
    ];
    let directory = "llmb/llmb_repo/nemotron4-340b";
    check(&place, directory, ("LLMB_INSTALL", "llmb"), reads, &llmb_run);
    let launch_sh = [
        example(
            "JOB_TOTAL_GPUS=256 GPU_TYPE=gb200 ./launch.sh",
            "nemotron4-340b/gb200/fp8/256@25.12",
            &[LAUNCH_SH],
        ),
        example(
            "JOB_TOTAL_GPUS=256 GPU_TYPE=b200 STRONG_SCALING=true ./launch.sh",
            "nemotron4-340b/b200/fp8/256/strong@25.12",
            &[LAUNCH_SH],
        ),
        example(
            "ENABLE_PROFILE=true JOB_TOTAL_GPUS=128 DTYPE=fp8 GPU_TYPE=gb200 ./launch.sh",
            "nemotron4-340b/gb200/fp8/128@25.12",
            &[LAUNCH_SH, (Field::Profile, "true")],
        ),
        example(
            "ENABLE_PROFILE=true ENABLE_GPU_METRICS=true JOB_TOTAL_GPUS=128 GPU_TYPE=gb200 DTYPE=fp8 ./launch.sh",
            "nemotron4-340b/gb200/fp8/128@25.12",
            &[LAUNCH_SH, (Field::Profile, "true"), (Field::GpuMetrics, "true")],
        ),
        example(
            "ENABLE_CHECKPOINT=true DTYPE=bf16 MODEL_SIZE=340b JOB_TOTAL_GPUS=512 GPU_TYPE=h100 STRONG_SCALING=false ./launch.sh",
            "nemotron4-340b/h100/bf16/512@25.12",
            &[LAUNCH_SH, (Field::SaveCheckpoint, "true")],
        ),
        example(
            "export LLMB_WORKLOAD=$LLMB_INSTALL/workloads/pretrain_nemotron4-340b; LOAD_CHECKPOINT_PATH=${LLMB_WORKLOAD}/experiments/pretrain_nemotron4_340b_fp8_128/checkpoints/default--None=0.0000-epoch=0-consumed_samples=12800.0 JOB_TOTAL_GPUS=128 GPU_TYPE=gb200 DTYPE=fp8 MODEL_SIZE=340b STRONG_SCALING=true ./launch.sh",
            "nemotron4-340b/gb200/fp8/128/strong@25.12",
            &[
                LAUNCH_SH,
                (
                    Field::LoadCheckpoint,
                    "${LLMB_WORKLOAD}/experiments/pretrain_nemotron4_340b_fp8_128/checkpoints/default--None=0.0000-epoch=0-consumed_samples=12800.0",
                ),
            ],
        ),
    ];
    let told: Vec<(&str, &str)> =
        [reads, &[("JOB_TOTAL_GPUS", ""), ("DTYPE", "fp8"), ("GPU_TYPE", "")]].concat();
    check(&place, directory, ("LLMB_INSTALL", "llmb"), told.leak(), &launch_sh);
}

/// The release ignores ADDITIONAL_SLURM_PARAMS, so the document's own lines lose them: here they reach sbatch
/// by the variables that it reads itself.
#[test]
fn release_25_12_slurm_parameters() {
    let place = Place::new();
    place.stand_in("llmb/llmb_repo/nemotron4-340b/launch.sh");
    let llmb = place.text("llmb");
    let seen = |recipe: &str, params: &str| {
        let fields = [LAUNCH_SH, (Field::SlurmParams, params), (Field::InstallPath, llmb.as_str())];
        let seen = SHELLS.map(|shell| place.run(shell, &launched(recipe, &fields).script, SETTING));
        let of = |name: &str| seen.each_ref().map(|seen| seen.env.get(name).cloned());
        [of("SBATCH_CONSTRAINT"), of("SBATCH_RESERVATION"), of("JOB_TOTAL_GPUS")].map(|[sh, bash, dash]| {
            assert!(sh == bash && bash == dash);
            sh.unwrap_or_default()
        })
    };
    // Every job is exclusive by default.
    let first = seen("nemotron4-340b/gb200/fp8/256@25.12", "constraint=gpu&memory;exclusive");
    assert_eq!(first, ["gpu&memory", "", "256"]);
    let second = seen("nemotron4-340b/gb200/fp8/128@25.12", "reservation=gpu_reservation;constraint=gpu");
    assert_eq!(second, ["gpu", "gpu_reservation", "128"]);
}

#[test]
fn release_25_12_on_runai() {
    let place = Place::new();
    place.stand_in("llmb/llmb_repo/nemotron4-340b/launch.sh");
    let llmb = place.text("llmb");
    let setting = [
        ("LLMB_INSTALL", llmb.as_str()),
        ("HF_TOKEN", "a-secret"),
        ("APP_SECRET", "another-secret"),
        ("RUN_CONF_MOUNTS", "workspace:/nemo2-workspace:nemo2-workspace-project-hprdj"),
        ("BASE_URL", "https://nvidia.run.ai/api/v1"),
        ("APP_ID", "llmb-qa"),
        ("PROJECT_NAME", "llmb-testing"),
        ("PVC_DIR", "/nemo2-workspace/nemo-run"),
    ];
    let typed = "cd $LLMB_INSTALL/llmb_repo/nemotron4-340b/\nJOB_TOTAL_GPUS=256 GPU_TYPE=h100 CLUSTER_TYPE=runai ./launch.sh\n";
    let typed = place.run("bash", typed, &setting);
    // The release's own scripts don't work on Run:ai.
    let repaired = place.text("llmb/llmb_repo/nemotron4-340b");
    let runai = [(Field::ClusterType, "runai"), (Field::RecipeDir, repaired.as_str())];
    let by_environment = launched("nemotron4-340b/h100/fp8/256@25.12", &runai);
    let by_options = launched(
        "nemotron4-340b/h100/fp8/256@25.12",
        &[
            runai[0],
            runai[1],
            (Field::Mounts, "workspace:/nemo2-workspace:nemo2-workspace-project-hprdj"),
            (
                Field::Env,
                "BASE_URL=https://nvidia.run.ai/api/v1\nAPP_ID=llmb-qa\nPROJECT_NAME=llmb-testing\nPVC_DIR=/nemo2-workspace/nemo-run",
            ),
        ],
    );
    let names = ["LLMB_INSTALL", "CLUSTER_TYPE", "JOB_TOTAL_GPUS", "GPU_TYPE"];
    let names: Vec<&str> = names.into_iter().chain(setting.iter().map(|(name, _)| *name)).collect();
    for shell in SHELLS {
        for (launch, env) in [(&by_environment, &setting[..]), (&by_options, &setting[..3])] {
            let ours = place.run(shell, &launch.script, env);
            assert_eq!((&ours.program, &ours.args, &ours.cwd), (&typed.program, &typed.args, &typed.cwd));
            let of = |seen: &Seen| names.iter().map(|name| seen.env[*name].clone()).collect::<Vec<_>>();
            assert_eq!(of(&ours), of(&typed));
        }
    }
    // One variable missing stops it before anything is called.
    let _ = std::fs::remove_file(place.path("record"));
    let output = place.execute("sh", &by_environment.script, &setting[..7]);
    assert!(!output.status.success() && place.seen().is_none());
    assert!(String::from_utf8(output.stderr).unwrap().contains("PVC_DIR: set it to the path of nemo-run"));
}
