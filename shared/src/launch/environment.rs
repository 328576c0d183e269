//! What launch.sh reads of its environment, whoever calls it.

use super::offers;
use super::plan::Plan;
use super::word::Word;
use crate::field::Field;
use crate::problem::Problem;

pub(super) fn apply(plan: &mut Plan) {
    activate(plan);
    if plan.options.cluster_type != super::ClusterType::Slurm {
        plan.set(Field::ClusterType, Word::of(plan.options.cluster_type));
    }
    global_batch(plan);
    gpus_per_node(plan);
    mounts(plan);
}

/// What activating a venv or a conda environment comes to for a script; their own `activate` is not for every
/// shell.
fn activate(plan: &mut Plan) {
    if let Some(venv) = plan.options.venv.clone() {
        plan.export("PATH", venv.clone().then("/bin:").join(&Word::variable("PATH")));
        plan.export("VIRTUAL_ENV", venv);
    }
}

fn global_batch(plan: &mut Plan) {
    if plan.target.recipe.id.strong {
        plan.set(Field::Recipe, Word::of("true"));
        return;
    }
    let gbs = plan.scenario.batch.gbs();
    if u64::from(gbs) == plan.target.gbs(plan.scenario) {
        return;
    }
    plan.set(Field::Gbs, Word::of(gbs));
    plan.incomparable.push(format!("a global batch of {gbs} is not the series' own"));
}

fn gpus_per_node(plan: &mut Plan) {
    let Some(given) = plan.options.gpus_per_node else { return };
    if plan.set(Field::GpusPerNode, Word::of(given)) {
        return;
    }
    let fixed = plan.target.limits.gpus_per_node;
    if given != fixed {
        let what = format!(
            "has no effect at release {}, whose script asks for {fixed} on every node",
            plan.release()
        );
        plan.refuse(Problem::clause(Field::GpusPerNode, given, what).nearest([fixed]));
    }
}

/// Directories, or volume claims, for the container.
pub(super) fn mounts(plan: &mut Plan) {
    let Some(mounts) = plan.options.mounts.clone() else { return };
    let shown = mounts.to_string();
    let relative = shown.split(',').find(|mount| !mount.starts_with(['/', '$']));
    if let Some(mount) = relative.filter(|_| plan.on_slurm()) {
        let problem = Problem::clause(Field::Mounts, mount, "is no absolute path");
        plan.refuse(problem.allowed("PATH or PATH:PATH-IN-THE-CONTAINER, with commas between several"));
    }
    if !plan.set(Field::Mounts, mounts.clone()) {
        let what = format!("can't be given to release {}, whose script mounts nothing else", plan.release());
        plan.refuse(offers::elsewhere(plan.scenario, Problem::clause(Field::Mounts, mounts, what)));
    }
}
