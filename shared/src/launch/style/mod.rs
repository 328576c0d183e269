//! The launch styles, one file each.

pub(super) mod launch_sh;
pub(super) mod llmb_run;
pub(super) mod sbatch;
pub(super) mod train_sh;

use super::choice::{ClusterType, Style};
use super::options::LaunchOptions;
use super::plan::{LaunchPlan, LaunchWarning, WarningTopic};
use super::target::Target;
use super::word::ShellWord;
use crate::field::Field;
use crate::message::Message;
use crate::problem::Problem;
use crate::scenario::Scenario;

/// The command of a launch and the directory to run it in.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) cwd: ShellWord,
    pub(super) command: Vec<ShellWord>,
}

/// Returns the chosen style, or the release's first one that supports the options, with a warning if it isn't
/// the first.
///
/// # Errors
/// If the release doesn't have the chosen style, or the style doesn't support the options.
pub(super) fn choose(
    scenario: &Scenario,
    options: &LaunchOptions,
    target: &Target,
) -> Result<(Style, Option<LaunchWarning>), Problem> {
    let styles = target.script.styles();
    let others: Vec<&str> = styles.iter().map(|style| style.id()).collect();
    let obstacle = |style: Style| match style {
        Style::LlmbRun => llmb_run::obstacle(scenario, options, target),
        Style::LaunchSh | Style::Sbatch | Style::TrainSh | Style::MegatronLm => None,
    };
    let Some(wanted) = options.style else {
        let usual = styles.first().copied().unwrap_or(Style::LaunchSh);
        let Some(why) = obstacle(usual) else { return Ok((usual, None)) };
        let text = format!("launch.sh is used, because {why}.").into();
        return Ok((
            Style::LaunchSh,
            Some(LaunchWarning { topic: WarningTopic::Script, text, fix: Message::default() }),
        ));
    };
    if !styles.contains(&wanted) {
        let message =
            format!("Release {} doesn't launch {} with {wanted}.", target.release(), scenario.model.title);
        return Err(Problem::new(Field::Style, wanted, message).suggest(others));
    }
    match obstacle(wanted) {
        None => Ok((wanted, None)),
        Some(why) => {
            let others = others.into_iter().filter(|other| *other != wanted.id());
            let message = format!("Launch style {wanted} can't be used: {why}.");
            Err(Problem::new(Field::Style, wanted, message).suggest(others))
        }
    }
}

/// Adds what the style needs to the plan, and returns its command.
pub(super) fn apply(plan: &mut LaunchPlan) -> Invocation {
    if plan.options.cluster_type == ClusterType::Runai {
        super::runai::apply(plan);
    }
    match plan.style {
        Style::Sbatch => sbatch::apply(plan),
        // No release has Megatron-LM among its styles: it runs without a release's script.
        Style::LaunchSh | Style::MegatronLm => launch_sh::apply(plan),
        Style::LlmbRun => llmb_run::apply(plan),
        Style::TrainSh => train_sh::apply(plan),
    }
}

/// Completes a plan whose options are all applied.
pub(super) fn finish(plan: &mut LaunchPlan, invocation: &mut Invocation) {
    match plan.style {
        Style::LlmbRun => llmb_run::warn_of_configuration(plan),
        Style::TrainSh => train_sh::finish(plan, invocation),
        Style::LaunchSh | Style::Sbatch | Style::MegatronLm => {}
    }
}

fn given_or_needed(plan: &mut LaunchPlan, given: Option<&ShellWord>, name: &str, what: &str) -> ShellWord {
    given.cloned().unwrap_or_else(|| {
        plan.need(name, what);
        ShellWord::variable(name)
    })
}
