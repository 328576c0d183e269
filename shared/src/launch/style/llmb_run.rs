//! llmb-run, which knows the cluster from its installation and hands the rest of
//! its environment on to the recipe's script.

use super::Invocation;
use crate::field::Field;
use crate::launch::choice::ClusterType;
use crate::launch::options::Options;
use crate::launch::plan::{Plan, flags_of};
use crate::launch::target::Target;
use crate::launch::word::Word;
use crate::launch::{environment, slurm};
use crate::scenario::Scenario;

/// Why llmb-run can't carry out what is asked, and the field that stands in the way.
pub(in crate::launch) fn obstacle(
    scenario: &Scenario,
    options: &Options,
    target: &Target,
) -> Option<(Field, String)> {
    if options.cluster_type == ClusterType::Runai {
        return Some((Field::ClusterType, "does not support Run:ai".into()));
    }
    let gpus = scenario.layout.gpus();
    let largest = target.scales.last().copied().unwrap_or_default();
    if gpus < largest && !target.publishes(gpus) {
        let scales: Vec<String> = target.scales.iter().map(u32::to_string).collect();
        return Some((Field::Gpus, format!("refuses {gpus} GPUs, which is none of {}", scales.join(", "))));
    }
    None
}

pub(in crate::launch) fn apply(plan: &mut Plan) -> Invocation {
    let script = plan.script();
    let submit = plan.contract().llmb_run.unwrap_or("submit");
    let mut command =
        vec![Word::of("llmb-run"), Word::of(submit), Word::of("-w"), Word::of(&script.workload)];
    command.extend([Word::of("-s"), Word::of(plan.size())]);
    command.extend([Word::of("--dtype"), Word::of(plan.scenario.dtype)]);
    command.extend([Word::of("--scale"), Word::of(plan.gpus())]);
    if plan.options.profile {
        command.push(Word::of("-p"));
    }
    environment::apply(plan);
    slurm::apply(plan);
    Invocation { cwd: plan.root(), command }
}

/// Once the plan is complete: what of it is not in the launch's hands.
pub(in crate::launch) fn say_what_it_decides(plan: &mut Plan) {
    let its_own = [plan.script().root.as_str(), "PATH", "VIRTUAL_ENV"];
    let names = plan.env.iter().map(|(name, _)| name.as_str());
    let handed_on: Vec<&str> = names.filter(|name| !its_own.contains(name)).collect();
    if !handed_on.is_empty() {
        let names = handed_on.join(", ");
        plan.warn(
            format!(
                "llmb-run hands on {names}, unless an environment block of its cluster_config.yaml sets \
                     the same."
            ),
            "Take the names out of those blocks, or choose --style launch-sh.",
        );
    }
    let options = plan.options;
    let known_to_it = flags_of(&[
        (Field::Account, options.account.is_some()),
        (Field::Partition, options.partition.is_some()),
        (Field::Gres, options.gres.is_some()),
        (Field::RecipeDir, options.recipe_dir.is_some()),
    ]);
    if let Some(flags) = known_to_it {
        plan.warn(
            format!("llmb-run takes from its cluster_config.yaml what {flags} would say."),
            "See that the file says the same, or choose --style launch-sh, which uses what is given here.",
        );
    }
    if let Some(largest) = plan.target.scales.last().filter(|largest| plan.gpus() > **largest) {
        let text = format!(
            "llmb-run warns of {} GPUs, more than the largest scale that it lists, {largest}.",
            plan.gpus()
        );
        plan.warn(text, "It launches all the same.");
    }
}
