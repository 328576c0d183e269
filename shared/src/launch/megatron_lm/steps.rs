//! What comes before the job and after it, and where it leaves what it writes.

use super::job::{Job, ROOT};
use crate::launch::outputs::Outputs;
use crate::launch::prepare::Step;
use crate::launch::word::Word;

/// Below the directory that the job is submitted from.
pub(super) fn outputs(job: &Job) -> Outputs {
    let name = &job.name;
    let run = Word::of(format!("experiments/{name}/{name}_")).then_any();
    let log = run.clone().then(format!("/log-{name}_")).then_any().then(".out");
    Outputs {
        jobs: vec![name.clone()],
        profile_glob: job
            .options
            .profile
            .then(|| run.clone().then("/profile_node").then_any().then(".nsys-rep")),
        trace_glob: job.options.nccl_trace.then(|| log.clone()),
        checkpoint_dir: job.options.save_checkpoint.then(|| run.clone().then("/checkpoints")),
        log_glob: log,
        experiment_dir: run,
    }
}

pub(super) fn prepare(job: &Job) -> Vec<Step> {
    let mut steps = vec![checkout(job), software(job)];
    steps.push(Step::new(
        "Check what the plan does not know",
        [],
        "A plan holds widths and counts. Activation, normalization, positions without scaling and no biases are what \
         the model's family usually has: they hardly change how long a step takes, but what is learnt. Learning rate \
         and data are for a measurement. Mend them in the script before you train to the end.",
    ));
    steps
}

fn checkout(job: &Job) -> Step {
    let clone = "git clone https://github.com/NVIDIA/Megatron-LM".to_string();
    let export = match &job.options.install_path {
        Some(path) => format!("export {ROOT}={}", path.shell()),
        None => format!("export {ROOT}=\"$PWD/Megatron-LM\""),
    };
    let inside = match job.options.container_image {
        Some(_) => " It may also be a directory of the container.",
        None => "",
    };
    let note = format!(
        "Where every node sees it. The flags are those of Megatron-Core 0.15, late 2025, and later; it builds a helper \
         in its own directory at the first start, so it must be writable.{inside}"
    );
    Step::new(format!("Get Megatron-LM, {ROOT}"), [clone, export], note)
}

fn software(job: &Job) -> Step {
    let mamba = match job.scenario.architecture.mamba {
        Some(_) => ", mamba-ssm and causal-conv1d",
        None => "",
    };
    let what = format!("PyTorch and Transformer Engine{mamba}");
    match &job.options.container_image {
        Some(image) => Step::new(
            "Check the container",
            [format!("srun --container-image={} torchrun --help", image.shell())],
            format!("It must hold {what}. Slurm needs the plugin pyxis for it."),
        ),
        None => Step::new(
            "Make a Python environment",
            [],
            format!(
                "With torchrun, {what}, on every node; --venv has the job use it. Or give --container-image, such as \
                 an NGC image of PyTorch, where Slurm has the plugin pyxis."
            ),
        ),
    }
}

pub(super) fn check(job: &Job, outputs: &Outputs) -> Vec<Step> {
    let mut follow =
        "Before the first step, sbatch_*.out in the same directory tells why a job did not start."
            .to_string();
    if job.nodes > 1 {
        follow += " If torchrun waits for the others in vain, the nodes do not know the first by Slurm's name: write its address behind first= in the script.";
    }
    if job.options.gres.is_none() {
        follow += " If sbatch refuses --gpus-per-node, the cluster does not count GPUs: take the line out.";
    }
    let mut steps = vec![
        Step::new("Follow the job", ["squeue --me".to_string()], follow),
        Step::new(
            "Read the step times",
            [parse(job, outputs)],
            "The name of a log does not tell the GPU type.",
        ),
    ];
    if let Some(profiles) = &outputs.profile_glob {
        steps.push(Step::new(
            "Open the profile",
            [format!("ls {}", profiles.shell())],
            "Rank 0 alone is recorded. Copy the file to a machine with the Nsight Systems client.",
        ));
    }
    if let Some(checkpoints) = &outputs.checkpoint_dir {
        steps.push(Step::new(
            "Check the saved checkpoint",
            [format!("ls {}", checkpoints.shell())],
            "To go on from it, give --load-checkpoint this directory.",
        ));
    }
    steps
}

/// With what the log's name does not say.
fn parse(job: &Job, outputs: &Outputs) -> String {
    let scenario = job.scenario;
    let mut command = format!(
        "trainplan parse {} --gpu {}",
        outputs.experiment_dir.shell(),
        Word::of(&scenario.gpu.id).shell()
    );
    if scenario.model.id.contains(':') {
        command += &format!(" --model {}", Word::of(&scenario.model.id).shell());
    }
    if scenario.batch.seq_len() != scenario.model.seq_len {
        command += &format!(" --seq-len {}", scenario.batch.seq_len());
    }
    if scenario.is_proxy() {
        command += &format!(" --layers {}", scenario.architecture.layers);
    }
    command
}
