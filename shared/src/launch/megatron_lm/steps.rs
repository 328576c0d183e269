//! Instructions before and after the job, and the files that it writes.

use super::job::{MegatronJob, ROOT};
use super::precision::sums_in_bf16;
use crate::field::Field;
use crate::launch::outputs::Outputs;
use crate::launch::prepare::Instruction;
use crate::launch::word::ShellWord;
use crate::message;
use crate::problem::all_of;

/// Returns the files, relative to the directory that the job is submitted from.
pub(super) fn outputs(job: &MegatronJob) -> Outputs {
    let name = &job.name;
    let run = ShellWord::of(format!("experiments/{name}/{name}_")).then_any();
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

pub(super) fn prepare(job: &MegatronJob) -> Vec<Instruction> {
    let mut steps = vec![checkout(job), software(job)];
    let mut assumed =
        "The plan defines only widths and counts. Activation, normalization, unscaled positions and the absence \
         of biases are those usual for the model's family: they hardly affect the step time, but they affect \
         what the model learns. The learning rate and the data are those of a benchmark. Change them in the \
         script before real training."
            .to_string();
    if sums_in_bf16(job) {
        assumed += " The script sums gradients in BF16. To sum them in FP32, remove --grad-reduce-in-bf16 from it: \
                    each GPU then needs 2 more bytes per weight.";
    }
    steps.push(Instruction::new("Check what the plan assumes", [], assumed));
    steps
}

fn checkout(job: &MegatronJob) -> Instruction {
    let clone = "git clone https://github.com/NVIDIA/Megatron-LM".to_string();
    let export = match &job.options.install_path {
        Some(path) => format!("export {ROOT}={}", path.shell()),
        None => format!("export {ROOT}=\"$PWD/Megatron-LM\""),
    };
    let inside = match job.options.container_image {
        Some(_) => " It can also be a directory in the container.",
        None => "",
    };
    let note = format!(
        "Every node must see it. The flags are those of Megatron-Core 0.15 (late 2025) and later. The \
         directory must be writable: at the first start, it builds a helper there.{inside}"
    );
    Instruction::new(format!("Get Megatron-LM, {ROOT}"), [clone, export], note)
}

fn software(job: &MegatronJob) -> Instruction {
    let mut needs = vec!["PyTorch", "Transformer Engine"];
    if job.scenario.architecture.mamba.is_some() {
        needs.extend(["mamba-ssm", "causal-conv1d"]);
    }
    needs.extend(&job.requires);
    let what = all_of(&needs);
    match &job.options.container_image {
        Some(image) => Instruction::new(
            "Check the container",
            [format!("srun --container-image={} torchrun --help", image.shell())],
            format!("It must contain {what}. Slurm needs the pyxis plugin to run it."),
        ),
        None => Instruction::new(
            "Make a Python environment",
            [],
            message![
                format!("It needs torchrun, {what}, on every node. Set "),
                Field::Venv,
                " to use it. Or set ",
                Field::ContainerImage,
                ", such as an NGC image of PyTorch, if Slurm has the pyxis plugin."
            ],
        ),
    }
}

pub(super) fn check(job: &MegatronJob, outputs: &Outputs) -> Vec<Instruction> {
    let mut follow =
        "If the job fails before the first step, see sbatch_*.out in the same directory.".to_string();
    if job.nodes > 1 {
        follow += " If torchrun can't reach the first node by its Slurm name, write the node's address \
                   after first= in the script.";
    }
    if job.options.gres.is_none() {
        follow += " If sbatch refuses --gpus-per-node, the cluster doesn't count GPUs: remove that line.";
    }
    let mut steps = vec![
        Instruction::new("Follow the job", ["squeue --me".to_string()], follow),
        Instruction::new(
            "Read the step times",
            [parse(job, outputs)],
            "The log's name doesn't contain the GPU type.",
        ),
    ];
    if let Some(profiles) = &outputs.profile_glob {
        steps.push(Instruction::new(
            "Open the profile",
            [format!("ls {}", profiles.shell())],
            "It contains rank 0 only. Copy the file to a machine with the Nsight Systems client.",
        ));
    }
    if let Some(checkpoints) = &outputs.checkpoint_dir {
        steps.push(Instruction::new(
            "Check the saved checkpoint",
            [format!("ls {}", checkpoints.shell())],
            message!["To continue from it, set ", Field::LoadCheckpoint, " to this directory."],
        ));
    }
    steps
}

/// Returns the command, with what the log's name doesn't contain.
fn parse(job: &MegatronJob, outputs: &Outputs) -> String {
    let scenario = job.scenario;
    let mut command = format!(
        "trainplan parse {} --gpu {}",
        outputs.experiment_dir.shell(),
        ShellWord::of(&scenario.gpu.id).shell()
    );
    if scenario.model.id.contains(':') {
        command += &format!(" --model {}", ShellWord::of(&scenario.model.id).shell());
    }
    if scenario.batch.seq_len() != scenario.model.seq_len {
        command += &format!(" --seq-len {}", scenario.batch.seq_len());
    }
    if scenario.is_proxy() {
        command += &format!(" --layers {}", scenario.architecture.layers);
    }
    command
}
