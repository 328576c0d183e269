//! The recipe's launch.sh on a login node, which reads its options from the environment.

use super::Invocation;
use crate::field::Field;
use crate::launch::plan::LaunchPlan;
use crate::launch::word::ShellWord;
use crate::launch::{environment, slurm};

pub(in crate::launch) fn apply(plan: &mut LaunchPlan) -> Invocation {
    if plan.on_slurm() {
        account_and_partition(plan);
    }
    plan.set(Field::Gpus, ShellWord::of(plan.gpus()));
    plan.set(Field::Gpu, ShellWord::of(&plan.scenario.gpu.id));
    plan.set(Field::Dtype, ShellWord::of(plan.target.recipe.id.dtype));
    plan.set(Field::Model, ShellWord::of(plan.size()));
    environment::apply(plan);
    slurm::apply(plan);
    Invocation { cwd: directory(plan), command: vec![ShellWord::of("./launch.sh")] }
}

fn account_and_partition(plan: &mut LaunchPlan) {
    for (field, given, name, what) in [
        (Field::Account, &plan.options.account, "SBATCH_ACCOUNT", "your Slurm account"),
        (Field::Partition, &plan.options.partition, "SBATCH_PARTITION", "a Slurm partition"),
    ] {
        match given {
            Some(given) => {
                plan.set(field, given.clone());
            }
            None => plan.need(name, what),
        }
    }
}

/// Returns the directory to call the script in: it finds NeMo and its own files from there.
fn directory(plan: &mut LaunchPlan) -> ShellWord {
    if let Some(directory) = &plan.options.recipe_dir {
        return directory.clone();
    }
    let script = plan.script();
    let Some((name, rest)) = script.directory.strip_prefix('$').and_then(|path| path.split_once('/')) else {
        let what = format!(
            "the directory {} of release {}, where its setup.sh ran",
            script.checkout, script.release
        );
        plan.need("RECIPE_DIR", what);
        return ShellWord::variable("RECIPE_DIR");
    };
    if name == script.root {
        return plan.root().then(format!("/{rest}"));
    }
    plan.need(name, format!("the directory of release {} that contains {}", script.release, script.checkout));
    ShellWord::variable(name).then(format!("/{rest}"))
}
