//! Megatron-Bridge's scripts/training/train.sh on a login node, which submits through NeMo-Run. It takes arguments, not variables:
//! `data/launch_variables.csv` lists those that a field sets, by their flags.

use super::{Invocation, given_or_needed};
use crate::field::Field;
use crate::launch::chunks::{group_warning, prediction_warning};
use crate::launch::facts::is_flag;
use crate::launch::plan::LaunchPlan;
use crate::launch::word::ShellWord;
use crate::launch::{configuration, environment, slurm};
use crate::problem::Problem;
use crate::releases::BridgeModel;

/// Where the container has Megatron-Bridge. The checkout is mounted there, so that its recipes run.
const IN_CONTAINER: &str = "/opt/Megatron-Bridge";

/// What Pyxis and PMIx need, as Megatron-Bridge's document recommends.
const SRUN: [&str; 3] = ["--mpi=pmix", "--no-container-mount-home", "--container-writable"];

pub(in crate::launch) fn apply(plan: &mut LaunchPlan) -> Invocation {
    let checkout = plan.options.recipe_dir.clone().unwrap_or_else(|| {
        plan.need("RECIPE_DIR", "the checkout of Megatron-Bridge");
        ShellWord::variable("RECIPE_DIR")
    });
    let mut command = vec![ShellWord::of("./scripts/training/train.sh")];
    let mut push = |flag: &str, value: ShellWord| command.extend([ShellWord::of(flag), value]);
    push("--nodes", ShellWord::of(plan.nodes()));
    push("--gpus-per-node", ShellWord::of(plan.target.gpus_per_node));
    push(
        "--account",
        given_or_needed(plan, plan.options.account.as_ref(), "SLURM_ACCOUNT", "your Slurm account"),
    );
    let partition = plan.options.partition.as_ref();
    push("--partition", given_or_needed(plan, partition, "SLURM_PARTITION", "a Slurm partition"));
    push("--container-image", plan.options.container_image.clone().unwrap_or_else(|| plan.image()));
    push("--mount", checkout.clone().then(format!(":{IN_CONTAINER}")));
    for mount in plan.options.mounts.iter().flat_map(|mounts| mounts.split(',')) {
        let shown = mount.to_string();
        if !shown.starts_with(['/', '$']) {
            plan.refuse(environment::relative_mount(&shown));
        }
        push("--mount", mount);
    }
    command.extend(SRUN.map(|argument| ShellWord::of(format!("--srun-arg={argument}"))));
    environment::activate(plan);
    environment::layout(plan);
    let predictions = prediction_warning(&plan.scenario.layout, &plan.scenario.architecture);
    for (text, fix) in predictions.into_iter().chain(group_warning(plan.scenario)) {
        plan.warn(text, fix);
    }
    slurm::apply(plan);
    if plan.options.profile {
        let message = "train.sh doesn't run Nsight Systems. Profile with the recipe of another release.";
        plan.refuse(Problem::new(Field::Profile, "", message));
    }
    Invocation { cwd: checkout, command }
}

/// Returns the setting of the ranks that exchange tokens inside an NVLink domain, if the recipe's doesn't suit the scenario's EP: they
/// must divide it.
fn ranks_per_domain(plan: &LaunchPlan) -> Option<String> {
    let domain = plan.scenario.gpu.nvlink_domain.max(1);
    let ranks = |ep: u32| (1..=domain.min(ep)).rev().find(|ranks| ep.is_multiple_of(*ranks));
    let (wanted, usual) = (ranks(plan.scenario.layout.ep())?, ranks(plan.target.recipe.degrees.ep)?);
    (wanted != usual).then(|| format!("++env_vars.NUM_OF_HYBRID_EP_RANKS_PER_NVLINK_DOMAIN={wanted}"))
}

/// Adds what the options made of the plan: its arguments, the recipe, and the names of the variables that the job inherits.
pub(in crate::launch) fn finish(plan: &mut LaunchPlan, invocation: &mut Invocation) {
    let command = &mut invocation.command;
    let (arguments, env): (Vec<_>, Vec<_>) = plan.env.drain(..).partition(|(name, _)| is_flag(name));
    plan.env = env;
    let (of_slurm, of_recipe): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|(name, _)| name.starts_with("--"));
    command.extend(of_slurm.into_iter().flat_map(|(flag, value)| [ShellWord::of(flag), value]));
    let inherited = plan.needs.iter().map(|need| need.name.as_str()).filter(|name| *name == "HF_TOKEN");
    let inherited = inherited.chain(plan.options.env.iter().map(|(name, _)| name));
    for name in inherited {
        command.extend([ShellWord::of("--env"), ShellWord::of(name)]);
    }
    let recipe = format!("{}_config", plan.target.recipe.id.bridge_name().unwrap_or_default());
    command.extend(["--experiment-name", &plan.bridge_experiment()].map(ShellWord::of));
    command.extend(["--recipe", &recipe, "--mode", "pretrain"].map(ShellWord::of));
    command.extend(["--max_steps", &plan.steps.to_string()].map(ShellWord::of));
    let names = BridgeModel::of(plan.release(), &plan.scenario.model.id);
    if names.is_some_and(|model| model.names_seq_len) && of_recipe.iter().all(|(flag, _)| flag != "-sl") {
        command.extend(["-sl", &plan.scenario.batch.seq_len().to_string()].map(ShellWord::of));
    }
    // The batch of another layout would follow its data parallelism.
    let batch = (!of_recipe.is_empty() && of_recipe.iter().all(|(flag, _)| flag != "-gb"))
        .then(|| ("-gb".to_owned(), ShellWord::of(plan.scenario.batch.gbs())));
    let mut overrides = Vec::new();
    for (flag, value) in of_recipe.into_iter().chain(batch) {
        match flag.as_str() {
            // It has no stage of one chunk.
            "-vp" if plan.scenario.layout.vp() == 1 => {
                overrides.push("model.virtual_pipeline_model_parallel_size=null".to_owned());
            }
            "-tp" => {
                let is_parallel = plan.scenario.layout.tp() > 1;
                overrides.push(format!("model.sequence_parallel={is_parallel}"));
                command.extend([ShellWord::of(flag), value]);
            }
            "-ep" => {
                overrides.extend(ranks_per_domain(plan));
                command.extend([ShellWord::of(flag), value]);
            }
            // A key of the configuration: several follow from one field, and some from none.
            key if !key.starts_with('-') => {}
            _ => command.extend([ShellWord::of(flag), value]),
        }
    }
    overrides.extend(configuration::assignments(plan.target.recipe, plan.scenario));
    command.extend(overrides.iter().map(ShellWord::of));
}
