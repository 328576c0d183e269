//! Releases 25.04 to 25.12: the recipe's script on a login node, told everything by its environment.

use super::Invocation;
use crate::field::Field;
use crate::launch::plan::Plan;
use crate::launch::word::Word;
use crate::launch::{environment, slurm};

pub(in crate::launch) fn apply(plan: &mut Plan) -> Invocation {
    if plan.on_slurm() {
        account_and_partition(plan);
    }
    plan.set(Field::Gpus, Word::of(plan.gpus()));
    plan.set(Field::Gpu, Word::of(&plan.scenario.gpu.id));
    plan.set(Field::Dtype, Word::of(plan.scenario.dtype));
    plan.set(Field::Model, Word::of(plan.size()));
    environment::apply(plan);
    slurm::apply(plan);
    Invocation { cwd: directory(plan), command: vec![Word::of("./launch.sh")] }
}

fn account_and_partition(plan: &mut Plan) {
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

/// The scripts find their NeMo and themselves from the directory that they are called in.
fn directory(plan: &mut Plan) -> Word {
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
        return Word::variable("RECIPE_DIR");
    };
    if name == script.root {
        return plan.root().then(format!("/{rest}"));
    }
    plan.need(name, format!("the directory of release {}, with {} in it", script.release, script.checkout));
    Word::variable(name).then(format!("/{rest}"))
}
