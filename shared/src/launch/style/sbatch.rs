//! Release 24.11: the recipe's script is the batch job itself, and everything else is an option of sbatch.

use super::Invocation;
use crate::field::Field;
use crate::launch::environment::mounts;
use crate::launch::plan::Plan;
use crate::launch::slurm::{gres_per_node, swallowed_params};
use crate::launch::word::Word;

pub(in crate::launch) fn apply(plan: &mut Plan) -> Invocation {
    plan.set(Field::Dtype, Word::of(plan.scenario.dtype));
    plan.set(Field::Model, Word::of(plan.size()));
    // Always: the document's own preparation leaves the word null in it.
    plan.set(Field::GpusPerNode, Word::of(plan.target.gpus_per_node));
    // The document's names for account and partition, unlike every later release's.
    let account = given_or_needed(plan, plan.options.account.as_ref(), "SLURM_ACCOUNT", "your Slurm account");
    let partition =
        given_or_needed(plan, plan.options.partition.as_ref(), "SLURM_PARTITION", "a Slurm partition");
    let mut command = vec![Word::of("sbatch"), Word::of("-A"), account, Word::of("-p"), partition];
    command.extend([Word::of("-N"), Word::of(plan.nodes())]);
    command.extend(gres_per_node(plan).map(|gres| Word::of(format!("--gres=gpu:{gres}"))));
    command.extend(plan.options.time_limit.map(|limit| Word::of(format!("--time={limit}"))));
    swallowed_params(plan);
    command.extend(plan.options.slurm_params.iter().map(|param| Word::of(format!("--{param}"))));
    mounts(plan);
    if plan.options.venv.is_some() {
        plan.warn(
            "A job of release 24.11 runs in its container and needs no Python environment.",
            "Leave --venv out.",
        );
    }
    let directory = plan.options.recipe_dir.clone().unwrap_or_else(|| plan.root());
    command.push(directory.clone().then("/launch.sh"));
    Invocation { cwd: directory, command }
}

fn given_or_needed(plan: &mut Plan, given: Option<&Word>, name: &str, what: &str) -> Word {
    given.cloned().unwrap_or_else(|| {
        plan.need(name, what);
        Word::variable(name)
    })
}
