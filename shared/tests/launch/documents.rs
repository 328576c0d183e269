//! Every example command of the five documents, as a person types it there, beside the script that comes of the
//! options which mean the same: both must call the same program, in the same directory, with the same arguments and
//! with the same settings, where a setting that nobody made is the release's default.

use crate::launched;
use crate::shell::{Place, SHELLS, Seen};
use std::collections::BTreeMap;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::problem::Field;

/// An example of a document.
struct Example {
    /// As typed there, with values in place of `<...>`.
    typed: &'static str,
    recipe: &'static str,
    fields: &'static [(Field, &'static str)],
}

const fn example(
    typed: &'static str,
    recipe: &'static str,
    fields: &'static [(Field, &'static str)],
) -> Example {
    Example { typed, recipe, fields }
}

/// A document's script: what it reads, each with its default.
type Reads = &'static [(&'static str, &'static str)];

/// Where a person who follows the document stands, and what the shell holds.
const SETTING: &[(&str, &str)] = &[
    ("SBATCH_ACCOUNT", "acct"),
    ("SBATCH_PARTITION", "batch"),
    ("SLURM_ACCOUNT", "acct"),
    ("SLURM_PARTITION", "batch"),
    ("HF_TOKEN", "a-secret"),
];

const LAUNCH_SH: (Field, &str) = (Field::Style, "launch-sh");

/// Runs each example and its launch in every shell, with and without what an earlier launch left behind.
fn check(place: &Place, directory: &str, root: (&str, &str), reads: Reads, examples: &[Example]) {
    let root = (root.0, place.text(root.1));
    let recipe_dir = place.text(directory);
    let repository = place.path(directory).parent().unwrap().to_str().unwrap().to_string();
    let mut env = SETTING.to_vec();
    env.extend([(root.0, root.1.as_str()), ("RECIPE_DIR", &recipe_dir), ("LLMB_REPO", &repository)]);
    let mut littered = env.clone();
    littered.extend(
        reads
            .iter()
            .filter(|(name, _)| !env.iter().any(|(known, _)| known == name))
            .map(|(name, _)| (*name, "17")),
    );
    for Example { typed, recipe, fields } in examples {
        let typed = place.run("bash", &format!("cd '{recipe_dir}'\n{typed}\n"), &env);
        let script = launched(recipe, fields).script;
        for shell in SHELLS {
            for env in [&env, &littered] {
                let ours = place.run(shell, &script, env);
                assert_eq!((&ours.program, &ours.args), (&typed.program, &typed.args), "{script}");
                assert_eq!(settings(&ours, reads), settings(&typed, reads), "{script}");
                if typed.program == "launch.sh" {
                    assert_eq!(ours.cwd, typed.cwd, "{script}");
                }
            }
        }
    }
}

fn settings(seen: &Seen, reads: Reads) -> BTreeMap<&'static str, String> {
    let read = reads.iter().map(|(name, default)| {
        (
            *name,
            seen.env.get(*name).filter(|value| !value.is_empty()).cloned().unwrap_or((*default).to_string()),
        )
    });
    read.collect()
}

#[test]
fn release_24_11() {
    let place = Place::new();
    place.stand_in("stage/launch.sh");
    let reads: Reads = &[
        ("STAGE_PATH", ""),
        ("DTYPE", "fp8"),
        ("MODEL_SIZE", "15b"),
        ("SLURM_GPUS_PER_NODE", "8"),
        ("RUN_CONF_MAX_STEPS", "50"),
        ("ENABLE_PROFILE", "false"),
        ("RUN_CONF_PROFILE_START_STEP", "20"),
        ("RUN_CONF_PROFILE_STOP_STEP", "30"),
        ("RUN_CONF_PROFILE_GPU_METRICS", "false"),
        ("SBATCH_GPUS", ""),
        ("OPTIMIZATION_NAME", ""),
        ("OPTIMIZATION_CODE", ""),
    ];
    let examples = [
        example(
            "NUM_NODES=16; DTYPE=fp8 MODEL_SIZE=340b sbatch -A ${SLURM_ACCOUNT} -p ${SLURM_PARTITION} -N ${NUM_NODES} $STAGE_PATH/launch.sh",
            "nemotron4-340b/h100/fp8/128@24.11",
            &[],
        ),
        example(
            "DTYPE=bf16 MODEL_SIZE=340b sbatch -A ${SLURM_ACCOUNT} -p ${SLURM_PARTITION} -N 256 --gres=gpu:8 $STAGE_PATH/launch.sh",
            "nemotron4-340b/h100/bf16/2048@24.11",
            &[(Field::Gres, "gpu:8")],
        ),
    ];
    check(&place, "stage", ("STAGE_PATH", "stage"), reads, &examples);
    // It sources ./configure.sh, which lies beside it.
    let script =
        launched("nemotron4-340b/h100/fp8/128@24.11", &[(Field::InstallPath, &place.text("stage"))]).script;
    assert_eq!(place.run("sh", &script, SETTING).cwd, place.path("stage"));
}

#[test]
fn release_25_04_nemotron() {
    let place = Place::new();
    place.stand_in("repository/nemotron/launch.sh");
    let reads: Reads = &[
        ("STAGE_PATH", ""),
        ("SBATCH_ACCOUNT", ""),
        ("SBATCH_PARTITION", ""),
        ("DTYPE", "fp8"),
        ("MODEL_SIZE", "15b"),
        ("JOB_TOTAL_GPUS", "16"),
        ("MAX_STEPS", "50"),
        ("CPU_PER_TASK_PINNING", "0"),
        ("ENABLE_PROFILE", "false"),
        ("PROFILE_START_STEP", "20"),
        ("PROFILE_STOP_STEP", "25"),
        ("ENABLE_CHECKPOINT", "false"),
        ("LOAD_CHECKPOINT_PATH", ""),
    ];
    let examples = [
        example(
            "DTYPE=bf16 MODEL_SIZE=15b JOB_TOTAL_GPUS=16 GPUS_PER_NODE=8 ./launch.sh",
            "nemotron4-15b/h100/bf16/16@25.04",
            &[(Field::GpusPerNode, "8")],
        ),
        example(
            "ENABLE_PROFILE=true DTYPE=bf16 MODEL_SIZE=15b JOB_TOTAL_GPUS=16 ./launch.sh",
            "nemotron4-15b/h100/bf16/16@25.04",
            &[(Field::Profile, "true")],
        ),
        example(
            "PROFILE_START_STEP=30 PROFILE_STOP_STEP=33 ENABLE_PROFILE=true DTYPE=fp8 MODEL_SIZE=340b JOB_TOTAL_GPUS=256 ./launch.sh",
            "nemotron4-340b/h100/fp8/256@25.04",
            &[(Field::Profile, "true"), (Field::ProfileStartStep, "30"), (Field::ProfileStopStep, "33")],
        ),
        example(
            "ENABLE_CHECKPOINT=true DTYPE=fp8 MODEL_SIZE=340b JOB_TOTAL_GPUS=512 GPUS_PER_NODE=8 ./launch.sh",
            "nemotron4-340b/h100/fp8/512@25.04",
            &[(Field::SaveCheckpoint, "true"), (Field::GpusPerNode, "8")],
        ),
        example(
            "LOAD_CHECKPOINT_PATH=$STAGE_PATH/experiments/pretrain_nemotron4_15b_fp8_64/pretrain_nemotron4_15b_fp8_64_1/pretrain_nemotron4_15b_fp8_64/code/nemo_experiments/default/checkpoints/default--None=0.0000-epoch=0-consumed_samples=12800.0 DTYPE=fp8 MODEL_SIZE=15b JOB_TOTAL_GPUS=64 GPUS_PER_NODE=8 ./launch.sh",
            "nemotron4-15b/h100/fp8/64@25.04",
            &[(
                Field::LoadCheckpoint,
                "$STAGE_PATH/experiments/pretrain_nemotron4_15b_fp8_64/pretrain_nemotron4_15b_fp8_64_1/pretrain_nemotron4_15b_fp8_64/code/nemo_experiments/default/checkpoints/default--None=0.0000-epoch=0-consumed_samples=12800.0",
            )],
        ),
    ];
    check(&place, "repository/nemotron", ("STAGE_PATH", "stage"), reads, &examples);
}

#[test]
fn release_25_04_llama() {
    let place = Place::new();
    place.stand_in("repository/llama3.1/launch.sh");
    let reads: Reads = &[
        ("STAGE_PATH", ""),
        ("HF_TOKEN", ""),
        ("SBATCH_ACCOUNT", ""),
        ("SBATCH_PARTITION", ""),
        ("DTYPE", "bf16"),
        ("MODEL_SIZE", "8b"),
        ("JOB_TOTAL_GPUS", "8"),
        ("GPUS_PER_NODE", "8"),
        ("TIME_LIMIT", "00:30:00"),
        ("MAX_STEPS", "50"),
        ("DISABLE_PERFRUN", "false"),
        ("ENABLE_PROFILE", "false"),
        ("PROFILE_START_STEP", "20"),
        ("PROFILE_STOP_STEP", "25"),
        ("ENABLE_NCCLTRACE", "false"),
        ("ENABLE_CHECKPOINT", "false"),
        ("LOAD_CHECKPOINT_PATH", ""),
        ("OPTIMIZATION_NAME", ""),
        ("OPTIMIZATION_CODE", ""),
    ];
    let examples = [
        example(
            "DTYPE=bf16 MODEL_SIZE=8b JOB_TOTAL_GPUS=8 GPUS_PER_NODE=8 ./launch.sh",
            "llama3.1-8b/h100/bf16/8@25.04",
            &[(Field::GpusPerNode, "8")],
        ),
        example(
            "ENABLE_PROFILE=true DTYPE=fp8 MODEL_SIZE=70b JOB_TOTAL_GPUS=256 GPUS_PER_NODE=8 ./launch.sh",
            "llama3.1-70b/h100/fp8/256@25.04",
            &[(Field::Profile, "true")],
        ),
        example(
            "ENABLE_NCCLTRACE=true DTYPE=fp8 MODEL_SIZE=8b JOB_TOTAL_GPUS=16 ./launch.sh",
            "llama3.1-8b/h100/fp8/16@25.04",
            &[(Field::NcclTrace, "true")],
        ),
        example(
            "ENABLE_CHECKPOINT=true DTYPE=bf16 MODEL_SIZE=405b JOB_TOTAL_GPUS=512 GPUS_PER_NODE=8 ./launch.sh",
            "llama3.1-405b/h100/bf16/512@25.04",
            &[(Field::SaveCheckpoint, "true")],
        ),
        // The document puts the path on a line of its own, where launch.sh would not see it.
        example(
            "LOAD_CHECKPOINT_PATH=$STAGE_PATH/checkpoints/default--None=0.0000-epoch=0-consumed_samples=12800.0 DTYPE=bf16 MODEL_SIZE=8b JOB_TOTAL_GPUS=16 GPUS_PER_NODE=8 ./launch.sh",
            "llama3.1-8b/h100/bf16/16@25.04",
            &[(
                Field::LoadCheckpoint,
                "$STAGE_PATH/checkpoints/default--None=0.0000-epoch=0-consumed_samples=12800.0",
            )],
        ),
    ];
    check(&place, "repository/llama3.1", ("STAGE_PATH", "stage"), reads, &examples);
}

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

/// The release ignores ADDITIONAL_SLURM_PARAMS, so the document's own lines lose them: here they reach sbatch by the
/// variables that it reads itself.
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
    // Every job is exclusive as it is.
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
    let by_environment = launched("nemotron4-340b/h100/fp8/256@25.12", &[(Field::ClusterType, "runai")]);
    let by_options = launched(
        "nemotron4-340b/h100/fp8/256@25.12",
        &[
            (Field::ClusterType, "runai"),
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

/// Set-up commands of the documents.
#[test]
fn preparation() {
    let place = Place::new();
    place.stand_in("bin/bash");
    let command = |recipe: &str, program: &str| {
        let steps = launched(recipe, &[]).prepare;
        let commands = steps.into_iter().flat_map(|step| step.commands);
        commands.filter(|command| command.starts_with(program)).collect::<Vec<_>>()
    };
    let same = |typed: &str, ours: &[String]| {
        let setting = [SETTING, &[("LLMB_INSTALL", "/lustre/llmb")]].concat();
        let [typed, ours] = [typed, ours[0].as_str()].map(|line| place.run("sh", line, &setting));
        assert_eq!((typed.program, typed.args), (ours.program, ours.args));
    };
    let submit = "sbatch -A ${SBATCH_ACCOUNT} -p ${SBATCH_PARTITION} -N 1 ./setup.sh";
    same(submit, &command("nemotron4-15b/h100/bf16/16@25.04", "sbatch"));
    same(submit, &command("llama3.1-8b/h100/bf16/8@25.04", "sbatch"));
    same("bash ./setup.sh", &command("nemotron4-340b/h100/fp8/128@24.11", "bash"));
    // The document wraps the same in bash -c.
    same(
        "srun --account ${SBATCH_ACCOUNT} --partition ${SBATCH_PARTITION} enroot import --output ${LLMB_INSTALL}/images/nvidia+nemo+25.04.01.sqsh docker://nvcr.io#nvidia/nemo:25.04.01",
        &command("nemotron-h-56b/h100/fp8/256@25.05", "srun"),
    );
}

#[test]
fn every_recipe_launches_by_the_program_of_its_release() {
    let place = Place::new();
    for directory in ["nemotron", "llama3.1", "nemotronh", "llmb_repo/nemotron4-340b"] {
        place.stand_in(&format!("top/{directory}/launch.sh"));
    }
    let top = place.text("top");
    let env = [SETTING, &[("STAGE_PATH", &top), ("LLMB_INSTALL", &top), ("RECIPE_DIR", &top)]].concat();
    for recipe in Catalog::embedded().recipes() {
        let launch = launched(&recipe.id.to_string(), &[]);
        let fits = launch.comparable.yes && launch.steps == 50 && launch.outputs.jobs.len() == 1;
        assert!(fits && launch.release == recipe.id.release, "{}", recipe.id);
        let baseline = Catalog::embedded().baseline(&recipe.id).map(|_| recipe.id.to_string());
        assert_eq!(launch.comparable.baseline, baseline);
        let program = match recipe.id.release.id() {
            "24.11" => "sbatch",
            // Its own directory is the caller's to name.
            "25.04" => continue,
            _ => "llmb-run",
        };
        let seen = place.run("sh", &launch.script, &env);
        assert_eq!(seen.program, program);
        assert!(seen.args.contains(&recipe.id.gpus.to_string()) || program == "sbatch");
    }
}
