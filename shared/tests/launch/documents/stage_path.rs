//! The documents of the releases below STAGE_PATH: 24.11 and 25.04.

use super::{Reads, SETTING, check, example};
use crate::launched;
use crate::shell::Place;
use trainplan_shared::field::Field;

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
