//! Saving and loading checkpoints, and the GPU counts at which a release was tested to do so.

use super::offers;
use super::plan::LaunchPlan;
use super::word::ShellWord;
use crate::field::Field;
use crate::log::Format;
use crate::message;
use crate::message::{Message, Setting};
use crate::problem::Problem;
use crate::releases::{ExperimentName, TokenUse};

pub(super) fn apply(plan: &mut LaunchPlan) {
    if plan.options.save_checkpoint {
        save(plan);
    }
    if let Some(path) = &plan.options.load_checkpoint {
        load(plan, path);
    }
    let either = plan.options.save_checkpoint || plan.options.load_checkpoint.is_some();
    if either && plan.rules().token == TokenUse::ForCheckpoints {
        plan.need("HF_TOKEN", "your Hugging Face token, which checkpoints need");
    }
}

fn save(plan: &mut LaunchPlan) {
    if !writes_checkpoints(plan) || !plan.set(Field::SaveCheckpoint, ShellWord::of("true")) {
        plan.refuse(unsupported(plan, Field::SaveCheckpoint));
        return;
    }
    if plan.rules().experiment == ExperimentName::Bridge {
        plan.need("CHECKPOINT_DIR", "the directory to save the checkpoint in");
    }
    // NeMo's recipe of the 340B overlaps the gathering of parameters with the optimizer's step, but not if it saves.
    let rules = plan.rules();
    if rules.log == Format::Nemo2 && rules.family == "nemotron4" && plan.scenario.layout.vp() > 1 {
        plan.incomparable.push(
            "saving a checkpoint switches off the overlap of the optimizer's step with gathering parameters"
                .into(),
        );
    }
    let (gpus, limits) = (plan.gpus(), plan.target.limits);
    let outside =
        limits.save_min.is_some_and(|least| gpus < least) || limits.save_max.is_some_and(|most| gpus > most);
    if outside || limits.save_min.is_none() {
        untested(plan, "Saving", limits.save_min, limits.save_max);
    }
}

/// Returns whether the release can write checkpoints of the model: then it says how large one is.
fn writes_checkpoints(plan: &LaunchPlan) -> bool {
    !plan.target.limits.checkpoint.is_empty()
}

fn load(plan: &mut LaunchPlan, path: &ShellWord) {
    if !writes_checkpoints(plan) || !plan.set(Field::LoadCheckpoint, path.clone()) {
        plan.refuse(unsupported(plan, Field::LoadCheckpoint));
        return;
    }
    check_path(plan, path);
    plan.incomparable.push("a run that loads a checkpoint takes one step".into());
    let limits = plan.target.limits;
    if limits.load_min.is_none_or(|least| plan.gpus() < least) {
        untested(plan, "Loading", limits.load_min, None);
    }
    if plan.options.profile {
        // A script with a profiled job checks for the profile last, the others for the checkpoint.
        if plan.has_own_jobs() {
            let steps = plan.steps;
            plan.warn(
                format!("With a profile, the checkpoint is loaded and {steps} steps run, not one."),
                "Load and profile in separate launches to get what the document describes.",
            );
        } else {
            let message = message![
                Field::LoadCheckpoint,
                " and ",
                Field::Profile,
                " can't be combined: a run that loads a checkpoint takes one step and never reaches the \
                 profile. Use a separate launch for each."
            ];
            plan.refuse(Problem::new(Field::LoadCheckpoint, path, message));
        }
        return;
    }
    if let Some(steps) = plan.options.max_steps.filter(|steps| *steps != 1) {
        let setting = Setting::new(Field::MaxSteps, steps);
        plan.warn(
            message!["A run that loads a checkpoint takes one step and ignores ", setting, "."],
            "Remove it.",
        );
    }
    plan.steps = 1;
}

fn check_path(plan: &mut LaunchPlan, path: &ShellWord) {
    let shown = path.to_string();
    if let Some(parent) = shown.trim_end_matches('/').strip_suffix("/weights") {
        let message = message![
            Field::LoadCheckpoint,
            format!(" \"{shown}\" is the weights directory. Give the one above it.")
        ];
        plan.refuse(Problem::new(Field::LoadCheckpoint, path, message).suggest([parent]));
    }
    if !plan.rules().mounts_top_directory_only {
        plan.problems.extend(not_mountable(Field::LoadCheckpoint, path, ","));
        return;
    }
    let variable = format!("${}", plan.script().root);
    let within =
        |root: &str| shown.strip_prefix(root.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    let root = plan.options.install_path.as_ref().map(ShellWord::to_string);
    match root {
        _ if within(&variable) => {}
        Some(root) if within(&root) => {}
        Some(root) if !root.contains('$') && !shown.contains('$') => {
            let message = message![
                Field::LoadCheckpoint,
                format!(
                    " {shown} is not below {variable} ({root}), the only directory that the container mounts."
                )
            ];
            plan.refuse(Problem::new(Field::LoadCheckpoint, path, message));
        }
        _ => plan.warn(
            format!("The container mounts only {variable}."),
            format!("Make sure that the checkpoint is below {variable}."),
        ),
    }
}

/// Returns the problem of a path that is mounted in a container, in a list that `separators` divide.
pub(super) fn not_mountable(field: Field, path: &ShellWord, separators: &str) -> Option<Problem> {
    let separator = path.to_string().chars().find(|c| separators.contains(*c))?;
    let separator = if separator == ',' { "a comma" } else { "a colon" };
    let message = format!(
        " \"{path}\" contains {separator}, which divides the list of mounts. Use another path, or a link to it."
    );
    Some(Problem::new(field, path, message![field, message]))
}

fn unsupported(plan: &LaunchPlan, field: Field) -> Problem {
    let message = Message::from(format!("Release {} doesn't support ", plan.release()))
        .and(field)
        .and(format!(" for {}.", plan.scenario.model.title));
    offers::elsewhere(plan.scenario, Problem::new(field, "", message))
}

fn untested(plan: &mut LaunchPlan, doing: &str, least: Option<u32>, most: Option<u32>) {
    let (model, gpu, gpus) = (&plan.scenario.model.title, &plan.scenario.gpu.name, plan.gpus());
    let tested = match (least, most) {
        (Some(least), Some(most)) => format!("tested on {least} to {most} GPUs"),
        (Some(least), None) => format!("tested on {least} or more GPUs"),
        _ => "the document names no tested GPU count".into(),
    };
    plan.warn(
        format!("{doing} a checkpoint of {model} on {gpus} {gpu}s may run out of CUDA memory: {tested}."),
        "Use a tested GPU count, or expect the run to fail at the checkpoint.",
    );
}
