//! Saving a checkpoint at the end of a run and starting from one: where the releases can, and at what size it
//! was tested.

use super::offers;
use super::plan::Plan;
use super::word::Word;
use crate::field::Field;
use crate::problem::Problem;
use crate::releases::TokenUse;

pub(super) fn apply(plan: &mut Plan) {
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

fn save(plan: &mut Plan) {
    if !plan.set(Field::SaveCheckpoint, Word::of("true")) {
        plan.refuse(unsupported(plan, Field::SaveCheckpoint));
        return;
    }
    let (gpus, limits) = (plan.gpus(), plan.target.limits);
    let outside =
        limits.save_min.is_some_and(|least| gpus < least) || limits.save_max.is_some_and(|most| gpus > most);
    if outside || limits.save_min.is_none() {
        untested(plan, "Saving", limits.save_min, limits.save_max);
    }
}

fn load(plan: &mut Plan, path: &Word) {
    if !plan.set(Field::LoadCheckpoint, path.clone()) {
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
        // A script with a profiled job looks at the profile last, the others at the checkpoint.
        if plan.has_own_jobs() {
            let steps = plan.steps;
            plan.warn(
                format!("With --profile the checkpoint is loaded and {steps} steps run, not one."),
                "Load and profile in two launches to have either as its document says.",
            );
        } else {
            let what = "can't go with --profile: a run that loads a checkpoint takes one step and never \
                        reaches the profile";
            plan.refuse(Problem::clause(Field::LoadCheckpoint, path, what).allowed("one launch for each"));
        }
        return;
    }
    if let Some(steps) = plan.options.max_steps.filter(|steps| *steps != 1) {
        let text =
            format!("A run that loads a checkpoint takes one step; --max-steps {steps} has no effect.");
        plan.warn(text, "Leave it out.");
    }
    plan.steps = 1;
}

fn check_path(plan: &mut Plan, path: &Word) {
    let shown = path.to_string();
    if let Some(parent) = shown.trim_end_matches('/').strip_suffix("/weights") {
        let problem = Problem::clause(
            Field::LoadCheckpoint,
            path,
            "names the weights, not the checkpoint that holds them",
        );
        plan.refuse(problem.nearest([parent]));
    }
    if !plan.rules().mounts_top_directory_only {
        return;
    }
    let variable = format!("${}", plan.script().root);
    let within =
        |root: &str| shown.strip_prefix(root.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'));
    let root = plan.options.install_path.as_ref().map(Word::to_string);
    match root {
        _ if within(&variable) => {}
        Some(root) if within(&root) => {}
        Some(root) if !root.contains('$') && !shown.contains('$') => {
            let what = format!("does not lie below {variable}, {root}: the container sees nothing else");
            plan.refuse(
                Problem::clause(Field::LoadCheckpoint, path, what)
                    .allowed(format!("a path below {variable}")),
            );
        }
        _ => plan.warn(
            format!("The container sees {variable} and nothing else."),
            format!("Make sure that the checkpoint lies below {variable}."),
        ),
    }
}

fn unsupported(plan: &Plan, field: Field) -> Problem {
    let what = format!("can't be had from release {} for {}", plan.release(), plan.scenario.model.title);
    offers::elsewhere(plan.scenario, Problem::clause(field, "", what))
}

fn untested(plan: &mut Plan, doing: &str, least: Option<u32>, most: Option<u32>) {
    let (model, gpu, gpus) = (&plan.scenario.model.title, &plan.scenario.gpu.name, plan.gpus());
    let tested = match (least, most) {
        (Some(least), Some(most)) => format!("it was tested on {least} to {most}"),
        (Some(least), None) => format!("it was tested on {least} or more"),
        _ => "the document names no GPU count at which it was tested".into(),
    };
    plan.warn(
        format!("{doing} a checkpoint of {model} on {gpus} {gpu}s may end in CUDA out of memory: {tested}."),
        "Choose a tested GPU count, or expect the run to fail at the checkpoint.",
    );
}
