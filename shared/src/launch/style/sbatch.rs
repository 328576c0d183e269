//! The recipe's script as the batch job itself: everything else is an option of sbatch.

use super::{Invocation, given_or_needed};
use crate::field::Field;
use crate::launch::environment::mounts;
use crate::launch::plan::LaunchPlan;
use crate::launch::slurm::{gres_per_node, swallowed_params};
use crate::launch::word::ShellWord;
use crate::message;

pub(in crate::launch) fn apply(plan: &mut LaunchPlan) -> Invocation {
    plan.set(Field::Dtype, ShellWord::of(plan.target.recipe.id.dtype));
    plan.set(Field::Model, ShellWord::of(plan.size()));
    // Always set: the document's preparation leaves it at null.
    plan.set(Field::GpusPerNode, ShellWord::of(plan.target.gpus_per_node));
    let account = given_or_needed(plan, plan.options.account.as_ref(), "SLURM_ACCOUNT", "your Slurm account");
    let partition =
        given_or_needed(plan, plan.options.partition.as_ref(), "SLURM_PARTITION", "a Slurm partition");
    let mut command =
        vec![ShellWord::of("sbatch"), ShellWord::of("-A"), account, ShellWord::of("-p"), partition];
    command.extend([ShellWord::of("-N"), ShellWord::of(plan.nodes())]);
    command.extend(gres_per_node(plan).map(|gres| ShellWord::of(format!("--gres=gpu:{gres}"))));
    command.extend(plan.options.time_limit.map(|limit| ShellWord::of(format!("--time={limit}"))));
    swallowed_params(plan);
    command.extend(plan.options.slurm_params.iter().map(|param| ShellWord::of(format!("--{param}"))));
    mounts(plan);
    if plan.options.venv.is_some() {
        plan.warn(message!["Jobs of this release run in their container and ignore ", Field::Venv, "."], "");
    }
    let directory = plan.options.recipe_dir.clone().unwrap_or_else(|| plan.root());
    command.push(directory.clone().then("/launch.sh"));
    Invocation { cwd: directory, command }
}
