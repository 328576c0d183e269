//! The batch script.

use super::job::{Job, ROOT};
use super::{model, slurm};
use crate::launch::word::Word;

/// How wide a line of flags may become.
const WIDTH: usize = 100;

pub(super) fn script(job: &Job) -> String {
    let scenario = job.scenario;
    let steps = if job.steps == 1 { "1 step".into() } else { format!("{} steps", job.steps) };
    let what = format!(
        "# {}, {} {}, {}: {steps} of Megatron-LM on synthetic data.",
        scenario.model.title,
        scenario.layout.gpus(),
        scenario.gpu.name,
        scenario.dtype.title()
    );
    let mut lines = vec!["#!/bin/bash".to_string(), what.replace(char::is_control, " ")];
    lines.push(
        "# Submit it with sbatch, in a directory that every node sees: what it writes goes below.".into(),
    );
    lines.extend(slurm::lines(job).into_iter().map(|line| format!("#SBATCH {line}")));
    lines.push("set -eu".into());
    if let Some(name) = job.needs() {
        lines.push(format!(": \"${{{name}:?set it to your checkout of Megatron-LM}}\""));
        lines.push(format!("export {name}"));
    }
    lines.extend(job.env.iter().map(|(name, value)| format!("export {name}={}", value.shell())));
    lines.extend(job.unset.iter().map(|name| format!("unset {name}")));
    lines.push(String::new());
    lines.push(format!("name={}", Word::of(&job.name).shell()));
    lines.push("run=$PWD/experiments/$name/${name}_$SLURM_JOB_ID".into());
    lines.push("mkdir -p \"$run\"".into());
    lines.push("first=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)".into());
    lines.push("port=$((20000 + SLURM_JOB_ID % 20000))".into());
    if job.options.container_image.is_some() {
        lines.extend(mounts(job));
    }
    lines.push(String::new());
    lines.extend(flags(job));
    lines.push(String::new());
    lines.extend(wrap(&command(job)));
    lines.join("\n") + "\n"
}

/// What the container sees: the run's own directory, and what lies on the host of the rest.
fn mounts(job: &Job) -> Vec<String> {
    let mut lines = vec!["mounts=$run:$run".to_string()];
    let paths = [Some(Word::variable(ROOT)), job.options.load_checkpoint.clone()];
    for path in paths.into_iter().flatten() {
        let path = path.shell();
        lines.push(format!("if [ -d {path} ]; then mounts=$mounts,{path}:{path}; fi"));
    }
    lines.extend(job.options.mounts.as_ref().map(|mounts| format!("mounts=$mounts,{}", mounts.shell())));
    lines
}

/// The program's flags, as the script's own arguments.
fn flags(job: &Job) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, group) in job.groups.iter().enumerate().filter(|(_, group)| !group.flags.is_empty()) {
        lines.push(format!("# {}", group.title));
        let mut parts = vec![if index == 0 { "set --".to_string() } else { "set -- \"$@\"".to_string() }];
        parts.extend(group.flags.iter().map(|words| line(words)));
        lines.extend(wrap(&parts));
    }
    lines
}

/// One task on each node, which starts a process for each of its GPUs.
fn command(job: &Job) -> Vec<String> {
    // A lone task would be bound to a lone core.
    let mut parts = vec!["srun --cpu-bind=none --kill-on-bad-exit=1".to_string()];
    parts.push("--output=\"$run/log-${name}_${SLURM_JOB_ID}_${SLURM_RESTART_COUNT:-0}.out\"".to_string());
    parts.extend(slurm::container(job));
    if job.options.profile {
        parts.extend(nsys(job));
    }
    parts.push(format!("torchrun --nnodes {} --nproc-per-node {}", job.nodes, job.per_node));
    parts.push("--rdzv-backend c10d --rdzv-id \"$SLURM_JOB_ID\" --rdzv-endpoint \"$first:$port\"".into());
    let program = Word::variable(ROOT).then("/").then(model::program(&job.scenario.architecture));
    parts.push(format!("{} \"$@\"", program.shell()));
    parts
}

/// It records while the program asks it to.
fn nsys(job: &Job) -> Vec<String> {
    let mut parts = vec![
        "nsys profile --sample=none --trace=cuda,nvtx --force-overwrite=true".to_string(),
        "--capture-range=cudaProfilerApi --capture-range-end=stop".to_string(),
        "--output=\"$run/profile_node%q{SLURM_NODEID}\"".to_string(),
    ];
    if job.options.gpu_metrics {
        parts.push("--gpu-metrics-devices=all".to_string());
    }
    parts
}

fn line(words: &[Word]) -> String {
    words.iter().map(Word::shell).collect::<Vec<_>>().join(" ")
}

/// Parts of one command, on as few lines as are readable.
fn wrap(parts: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(last) if last.len() + part.len() < WIDTH => *last += &format!(" {part}"),
            Some(last) => {
                *last += " \\";
                lines.push(format!("    {part}"));
            }
            None => lines.push(part.clone()),
        }
    }
    lines
}
