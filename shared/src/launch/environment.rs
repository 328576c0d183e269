//! The environment that launch.sh reads, whatever calls it.

use super::offers;
use super::plan::LaunchPlan;
use super::word::ShellWord;
use crate::field::Field;
use crate::message;
use crate::problem::Problem;

pub(super) fn apply(plan: &mut LaunchPlan) {
    activate(plan);
    if plan.options.cluster_type != super::ClusterType::Slurm {
        plan.set(Field::ClusterType, ShellWord::of(plan.options.cluster_type));
    }
    layout(plan);
    gpus_per_node(plan);
    mounts(plan);
}

/// Does what activating a venv or conda environment does. Their own `activate` doesn't run in every shell.
pub(super) fn activate(plan: &mut LaunchPlan) {
    if let Some(venv) = plan.options.venv.clone() {
        plan.export("PATH", venv.clone().then("/bin:").join(&ShellWord::variable("PATH")));
        plan.export("VIRTUAL_ENV", venv);
    }
}

/// Sets what differs from the recipe's layout and batch and the script takes.
pub(super) fn layout(plan: &mut LaunchPlan) {
    if plan.target.recipe.id.strong {
        plan.set(Field::Recipe, ShellWord::of("true"));
        return;
    }
    for (field, value) in plan.target.taken(plan.scenario) {
        let reason = match field {
            Field::Gbs => format!("the published runs don't use a global batch size of {value}"),
            Field::Recompute | Field::RecomputeModules => {
                "the published runs recompute other activations".into()
            }
            Field::PipelineSplit => "the published runs divide the layers differently".into(),
            _ => format!("the published runs have another {} than {value}", field.label()),
        };
        if !plan.incomparable.contains(&reason) {
            plan.incomparable.push(reason);
        }
        plan.set(field, ShellWord::of(value));
    }
}

fn gpus_per_node(plan: &mut LaunchPlan) {
    let Some(given) = plan.options.gpus_per_node else { return };
    let tp = plan.scenario.layout.tp();
    if given < tp {
        plan.incomparable.push(format!("with {given} GPUs per node, TP {tp} spans nodes"));
    }
    if plan.set(Field::GpusPerNode, ShellWord::of(given)) {
        return;
    }
    let fixed = plan.target.limits.gpus_per_node;
    if given != fixed {
        let message = message![
            format!("Release {} ignores ", plan.release()),
            Field::GpusPerNode,
            format!(": its script requests {fixed} GPUs on every node.")
        ];
        plan.refuse(Problem::new(Field::GpusPerNode, given, message).suggest([fixed]));
    }
}

/// Mounts directories, or volume claims, in the container.
pub(super) fn mounts(plan: &mut LaunchPlan) {
    let Some(mounts) = plan.options.mounts.clone() else { return };
    let shown = mounts.to_string();
    let relative = shown.split(',').find(|mount| !mount.starts_with(['/', '$']));
    if let Some(mount) = relative.filter(|_| plan.on_slurm()) {
        plan.refuse(relative_mount(mount));
    }
    if !plan.set(Field::Mounts, mounts.clone()) {
        let message = message![format!("Release {} doesn't support ", plan.release()), Field::Mounts, "."];
        plan.refuse(offers::elsewhere(plan.scenario, Problem::new(Field::Mounts, mounts, message)));
    }
}

/// Returns the problem of a mount that is not an absolute path.
pub(super) fn relative_mount(mount: &str) -> Problem {
    let message = format!(
        " \"{mount}\" is not an absolute path. Write PATH or PATH:PATH-IN-THE-CONTAINER, separated by commas."
    );
    Problem::new(Field::Mounts, mount, message![Field::Mounts, message])
}
