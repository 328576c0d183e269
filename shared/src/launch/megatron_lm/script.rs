//! The batch script of a Megatron-LM job.

use super::job::{MegatronJob, ROOT};
use super::{model, slurm};
use crate::field::Field;
use crate::launch::script::ShellScript;
use crate::launch::word::ShellWord;
use crate::link;
use crate::log::STATED_SCENARIO;
use crate::options::TrainingOptions;
use crate::scenario::Scenario;
use crate::spec::Spec;

/// The width of a line of flags, in characters.
const WIDTH: usize = 100;

pub(super) fn script(job: &MegatronJob) -> ShellScript {
    let scenario = job.scenario;
    let steps = if job.steps == 1 { "1 step".into() } else { format!("{} steps", job.steps) };
    let what = format!(
        "# {}, {} {}, {}: {steps} of Megatron-LM on synthetic data.",
        scenario.model.title,
        scenario.layout.gpus(),
        scenario.gpu.name,
        scenario.dtype.title()
    );
    let mut setup = vec!["#!/bin/bash".to_string(), what.replace(char::is_control, " ")];
    setup.push(
        "# Submit it with sbatch, in a directory that every node sees. It writes its files there.".into(),
    );
    setup.extend(slurm::lines(job).into_iter().map(|line| format!("#SBATCH {line}")));
    setup.push("set -eu".into());
    let mut lines = Vec::new();
    if let Some(name) = job.needs() {
        lines.push(format!(": \"${{{name}:?set it to your checkout of Megatron-LM}}\""));
        lines.push(format!("export {name}"));
    }
    lines.extend(job.env.iter().map(|(name, value)| format!("export {name}={}", value.shell())));
    lines.extend(job.unset.iter().map(|name| format!("unset {name}")));
    lines.push(String::new());
    lines.push(format!("name={}", ShellWord::of(&job.name).shell()));
    lines.push("run=$PWD/experiments/$name/${name}_$SLURM_JOB_ID".into());
    lines.push("log=$run/log-${name}_${SLURM_JOB_ID}_${SLURM_RESTART_COUNT:-0}.out".into());
    lines.push("mkdir -p \"$run\"".into());
    lines.push(format!("echo {} >\"$log\"", ShellWord::of(stated(job)).shell()));
    lines.push("first=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)".into());
    lines.push("port=$((20000 + SLURM_JOB_ID % 20000))".into());
    if job.options.container_image.is_some() {
        lines.extend(mounts(job));
    }
    lines.push(String::new());
    lines.extend(flags(job));
    lines.push(String::new());
    lines.extend(wrap(&command(job)));
    ShellScript::new(&setup, &lines)
}

/// Settings that change the prediction, and that the arguments in a log don't state, or not in every case.
const UNSTATED: [Field; 7] = [
    Field::Recompute,
    Field::RecomputeModules,
    Field::OffloadLayers,
    Field::Fsdp,
    Field::Overlap,
    Field::GemmTflops,
    Field::ClusterFactor,
];

/// Returns a line for the log with facts that its arguments lack: the GPU type, the name of the model, the software, and other
/// settings that change the prediction and differ from the default.
fn stated(job: &MegatronJob) -> String {
    let scenario = job.scenario;
    let mut spec = Spec::default()
        .with(Field::Model, &scenario.model.id)
        .with(Field::Gpu, &scenario.gpu.id)
        .with(Field::Stack, job.software.to_string());
    let usual = Scenario { options: TrainingOptions::default(), recipe: None, ..scenario.clone() };
    for field in UNSTATED {
        if let Some(value) = scenario.value(field).filter(|value| usual.value(field).as_ref() != Some(value))
        {
            spec.set(field, value);
        }
    }
    if !scenario.layout.is_even() {
        spec.set(Field::PipelineSplit, scenario.layout.split().to_string());
    }
    format!("{STATED_SCENARIO}{}", link::write(&spec))
}

/// Returns the mounts of the container: the run's directory, and other paths that exist on the host.
fn mounts(job: &MegatronJob) -> Vec<String> {
    let mut lines = vec!["mounts=$run:$run".to_string()];
    let paths = [Some(ShellWord::variable(ROOT)), job.options.load_checkpoint.clone()];
    for path in paths.into_iter().flatten() {
        let path = path.shell();
        lines.push(format!("if [ -d {path} ]; then mounts=$mounts,{path}:{path}; fi"));
    }
    lines.extend(job.options.mounts.as_ref().map(|mounts| format!("mounts=$mounts,{}", mounts.shell())));
    lines
}

/// Returns the program's flags, which the script sets as its own arguments.
fn flags(job: &MegatronJob) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, group) in job.groups.iter().enumerate().filter(|(_, group)| !group.flags.is_empty()) {
        lines.push(format!("# {}", group.title));
        lines.extend(group.remarks.iter().map(|remark| format!("# {remark}")));
        let mut parts = vec![if index == 0 { "set --".to_string() } else { "set -- \"$@\"".to_string() }];
        parts.extend(group.flags.iter().map(|words| line(words)));
        lines.extend(wrap(&parts));
    }
    lines
}

/// Returns the command: a task on each node, which starts a process for each of its GPUs.
fn command(job: &MegatronJob) -> Vec<String> {
    // Otherwise a single task would be bound to a single core.
    let mut parts = vec!["srun --cpu-bind=none --kill-on-bad-exit=1".to_string()];
    parts.push("--open-mode=append --output=\"$log\"".to_string());
    parts.extend(slurm::container(job));
    if job.options.profile {
        parts.extend(nsys(job));
    }
    parts.push(format!("torchrun --nnodes {} --nproc-per-node {}", job.nodes, job.per_node));
    parts.push("--rdzv-backend c10d --rdzv-id \"$SLURM_JOB_ID\" --rdzv-endpoint \"$first:$port\"".into());
    let program = ShellWord::variable(ROOT).then("/").then(model::program(&job.scenario.architecture));
    parts.push(format!("{} \"$@\"", program.shell()));
    parts
}

/// Returns the profiler command, which records while the program enables it.
fn nsys(job: &MegatronJob) -> Vec<String> {
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

fn line(words: &[ShellWord]) -> String {
    words.iter().map(ShellWord::shell).collect::<Vec<_>>().join(" ")
}

/// Joins the parts of a command, on lines of readable width.
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
