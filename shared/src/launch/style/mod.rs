//! One file per style: how a scenario is handed over.

pub(super) mod launch_sh;
pub(super) mod llmb_run;
pub(super) mod sbatch;

use super::choice::{ClusterType, Style};
use super::options::Options;
use super::plan::{Plan, Warning};
use super::target::Target;
use super::word::Word;
use crate::field::Field;
use crate::problem::Problem;
use crate::scenario::Scenario;

/// Where a launch goes, and by which command.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) cwd: Word,
    pub(super) command: Vec<Word>,
}

/// The style that was asked for, or the release's usual one that can carry the options out.
///
/// # Errors
/// The release lacks the style that was asked for, or the style can't do what the options ask.
pub(super) fn choose(
    scenario: &Scenario,
    options: &Options,
    target: &Target,
) -> Result<(Style, Option<Warning>), Problem> {
    let styles = target.script.styles();
    let others: Vec<&str> = styles.iter().map(|style| style.id()).collect();
    let obstacle = |style: Style| match style {
        Style::LlmbRun => llmb_run::obstacle(scenario, options, target),
        Style::LaunchSh | Style::Sbatch | Style::MegatronLm => None,
    };
    let Some(wanted) = options.style else {
        let usual = styles.first().copied().unwrap_or(Style::LaunchSh);
        let Some((_, why)) = obstacle(usual) else { return Ok((usual, None)) };
        let text = format!("launch.sh is called instead of {usual}, which {why}.");
        return Ok((Style::LaunchSh, Some(Warning { text, fix: String::new() })));
    };
    if !styles.contains(&wanted) {
        let what = format!("is no way to launch {} at release {}", scenario.model.title, target.release());
        return Err(Problem::clause(Field::Style, wanted, what).nearest(others));
    }
    match obstacle(wanted) {
        None => Ok((wanted, None)),
        Some((_, why)) => {
            let others = others.into_iter().filter(|other| *other != wanted.id());
            Err(Problem::clause(Field::Style, wanted, why).nearest(others))
        }
    }
}

/// Puts into the plan what the style needs, and says how it is called.
pub(super) fn apply(plan: &mut Plan) -> Invocation {
    if plan.options.cluster_type == ClusterType::Runai {
        super::runai::apply(plan);
    }
    match plan.style {
        Style::Sbatch => sbatch::apply(plan),
        // Megatron-LM takes no release's script: no release has it among its styles.
        Style::LaunchSh | Style::MegatronLm => launch_sh::apply(plan),
        Style::LlmbRun => llmb_run::apply(plan),
    }
}
