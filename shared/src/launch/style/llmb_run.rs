//! llmb-run, which knows the cluster from its installation and passes its environment on to the recipe's
//! script.

use super::Invocation;
use crate::field::Field;
use crate::launch::choice::{ClusterType, Style};
use crate::launch::options::LaunchOptions;
use crate::launch::plan::{LaunchPlan, given_fields};
use crate::launch::target::Target;
use crate::launch::word::ShellWord;
use crate::launch::{environment, slurm};
use crate::message;
use crate::message::Setting;
use crate::problem::one_of;
use crate::scenario::Scenario;

/// Returns why llmb-run doesn't support the options: a clause. `None` if it does.
pub(in crate::launch) fn obstacle(
    scenario: &Scenario,
    options: &LaunchOptions,
    target: &Target,
) -> Option<String> {
    if options.cluster_type == ClusterType::Runai {
        return Some("llmb-run doesn't support Run:ai".into());
    }
    let gpus = scenario.layout.gpus();
    let largest = target.scales.last().copied().unwrap_or_default();
    let scales: Vec<String> = target.scales.iter().map(u32::to_string).collect();
    (gpus < largest && !target.publishes(gpus))
        .then(|| format!("llmb-run accepts only {} GPUs, not {gpus}", one_of(&scales)))
}

pub(in crate::launch) fn apply(plan: &mut LaunchPlan) -> Invocation {
    let script = plan.script();
    let submit = plan.contract().llmb_run.unwrap_or("submit");
    let mut command = vec![
        ShellWord::of("llmb-run"),
        ShellWord::of(submit),
        ShellWord::of("-w"),
        ShellWord::of(&script.workload),
    ];
    command.extend([ShellWord::of("-s"), ShellWord::of(plan.size())]);
    command.extend([ShellWord::of("--dtype"), ShellWord::of(plan.target.recipe.id.dtype)]);
    command.extend([ShellWord::of("--scale"), ShellWord::of(plan.gpus())]);
    if plan.options.profile {
        command.push(ShellWord::of("-p"));
    }
    environment::apply(plan);
    slurm::apply(plan);
    Invocation { cwd: plan.root(), command }
}

/// Warns of what llmb-run's own configuration decides, once the plan is complete.
pub(in crate::launch) fn warn_of_configuration(plan: &mut LaunchPlan) {
    let use_launch_sh = |start: &'static str| {
        message![
            start,
            Setting::new(Field::Style, Style::LaunchSh),
            ", which uses these settings and needs the recipe's Python environment: set ",
            Field::Venv,
            "."
        ]
    };
    let its_own = [plan.script().root.as_str(), "PATH", "VIRTUAL_ENV"];
    let names = plan.env.iter().map(|(name, _)| name.as_str());
    let handed_on: Vec<&str> = names.filter(|name| !its_own.contains(name)).collect();
    if !handed_on.is_empty() {
        let names = handed_on.join(", ");
        plan.warn(
            format!(
                "llmb-run passes on {names}, unless an environment block of its cluster_config.yaml sets \
                 the same variable."
            ),
            use_launch_sh("Remove such settings from those blocks, or use "),
        );
    }
    let options = plan.options;
    let given = plan.style.configures().iter().map(|field| {
        let is_given = match field {
            Field::Account => options.account.is_some(),
            Field::Partition => options.partition.is_some(),
            Field::Gres => options.gres.is_some(),
            Field::RecipeDir => options.recipe_dir.is_some(),
            _ => false,
        };
        (*field, is_given)
    });
    if let Some(fields) = given_fields(&given.collect::<Vec<_>>()) {
        let instead =
            format!(": llmb-run reads {}/cluster_config.yaml instead.", plan.script().root.as_str());
        plan.warn(
            message!["This launch ignores "].and(fields).and(instead),
            use_launch_sh("Set them in that file, or use "),
        );
    }
    if let Some(largest) = plan.target.scales.last().filter(|largest| plan.gpus() > **largest) {
        let text = format!(
            "llmb-run warns that {} GPUs are more than its largest scale, {largest}, and launches anyway.",
            plan.gpus()
        );
        plan.warn(text, "");
    }
}
