//! A launch in the making: the environment and the command line, with warnings and problems.

use super::choice::{ClusterType, Style};
use super::facts::{ReleaseScript, Variable, VariableUse};
use super::options::LaunchOptions;
use super::target::Target;
use super::values::TimeLimit;
use super::word::ShellWord;
use crate::catalog::RecipeId;
use crate::field::Field;
use crate::message::Message;
use crate::problem::Problem;
use crate::releases::{ProfileRun, Release, ReleaseContract, ScriptContract};
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Below this difference, as a share, the steps of other software are as long as planned.
pub(super) const NEGLIGIBLE: f64 = 0.02;

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarningTopic {
    /// The script's run doesn't fit in memory.
    Memory,
    /// The script runs other software than the estimate assumes.
    Software,
    /// The job's steps alone are expected to take longer than its time limit.
    TimeLimit,
    /// Anything else.
    Script,
}

/// A warning about a launch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaunchWarning {
    /// What it is about.
    pub topic: WarningTopic,
    /// What happens: one or several sentences.
    pub text: Message,
    /// What to do about it: a sentence; empty if there is nothing to do.
    pub fix: Message,
}

/// Formats the warning as on the command line.
impl fmt::Display for LaunchWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(format!("{} {}", self.text, self.fix).trim_end())
    }
}

/// A variable without which the script stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequiredVariable {
    pub(super) name: String,
    /// What to set it to: a noun.
    pub(super) what: String,
}

/// A launch in the making.
#[derive(Debug)]
pub(super) struct LaunchPlan<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) options: &'a LaunchOptions,
    pub(super) target: Target,
    pub(super) style: Style,
    /// Variables in the order in which the script exports them.
    pub(super) env: Vec<(String, ShellWord)>,
    pub(super) needs: Vec<RequiredVariable>,
    pub(super) warnings: Vec<LaunchWarning>,
    pub(super) problems: Vec<Problem>,
    /// Why the run can't be compared with the published number: clauses.
    pub(super) incomparable: Vec<String>,
    /// Training steps that will run.
    pub(super) steps: u32,
}

impl<'a> LaunchPlan<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        options: &'a LaunchOptions,
        target: Target,
        style: Style,
    ) -> LaunchPlan<'a> {
        let steps = options.max_steps.unwrap_or(target.script.steps);
        let (env, needs, warnings) = (Vec::new(), Vec::new(), Vec::new());
        let (problems, incomparable) = (Vec::new(), Vec::new());
        LaunchPlan { scenario, options, target, style, env, needs, warnings, problems, incomparable, steps }
    }

    pub(super) fn script(&self) -> &'static ReleaseScript {
        self.target.script
    }

    pub(super) fn release(&self) -> Release {
        self.target.release()
    }

    /// Returns what the release defines.
    pub(super) fn contract(&self) -> &'static ReleaseContract {
        self.release().contract()
    }

    /// Returns how the script behaves.
    pub(super) fn rules(&self) -> &'static ScriptContract {
        self.target.rules
    }

    /// Returns whether the script profiles and traces in separate jobs beside the plain one.
    pub(super) fn has_own_jobs(&self) -> bool {
        self.rules().profile == ProfileRun::OwnJob
    }

    pub(super) fn gpus(&self) -> u32 {
        self.scenario.layout.gpus()
    }

    pub(super) fn nodes(&self) -> u32 {
        self.gpus() / self.target.gpus_per_node
    }

    /// Returns the job's time limit: as given, or else that of the release's script. `None` if neither sets one.
    pub(super) fn time_limit(&self) -> Option<TimeLimit> {
        let of_script = || self.script().time_limit(self.target.recipe.id.strong);
        self.options.time_limit.or(self.target.limits.time_limit).or_else(of_script)
    }

    /// Returns the recipe at the scenario's GPU count, which may not be published.
    pub(super) fn recipe_id(&self) -> RecipeId {
        RecipeId { gpus: self.gpus(), ..self.target.recipe.id.clone() }
    }

    pub(super) fn on_slurm(&self) -> bool {
        self.options.cluster_type == ClusterType::Slurm
    }

    /// Returns the model's size as the release names it.
    pub(super) fn size(&self) -> &'a str {
        self.script().size(&self.scenario.model)
    }

    /// Returns the top directory: as given, else its variable.
    pub(super) fn root(&self) -> ShellWord {
        self.options.install_path.clone().unwrap_or_else(|| ShellWord::variable(&self.script().root))
    }

    /// Returns the path of the release's container image, once it is imported.
    pub(super) fn image(&self) -> ShellWord {
        self.root().then(format!("/nvidia+nemo+{}.sqsh", self.target.limits.image))
    }

    /// Returns the name of an experiment with one of Megatron-Bridge's own recipes: the recipe's name, which includes the GPU
    /// count that it was tuned for, and the differences, so that logs aren't taken for runs of the recipe itself. Logs are
    /// recognised by a name that begins with the recipe's and continues with numbers. A launch that differs in more has a name
    /// that begins with `own`.
    pub(super) fn bridge_experiment(&self) -> String {
        let recipe = &self.target.recipe.id;
        let gpus = (self.gpus() != recipe.gpus).then(|| (Field::Gpus, self.gpus().to_string()));
        let taken = self.target.taken(self.scenario);
        let is_own = taken.iter().any(|(field, _)| {
            matches!(
                field,
                Field::Recompute | Field::RecomputeModules | Field::PipelineSplit | Field::ExpertTp
            )
        });
        let name = recipe.bridge_experiment().unwrap_or_default();
        let name = gpus
            .into_iter()
            .chain(taken)
            .fold(name, |name, (field, value)| format!("{name}_{}{}", field.flag(), short_list(&value)));
        if is_own { format!("own_{name}") } else { name }
    }

    /// Returns the directory of the experiments.
    pub(super) fn home(&self) -> ShellWord {
        let script = self.script();
        // Only one script reads it; the others set it themselves.
        let chosen = self.options.env.get("NEMORUN_HOME").filter(|_| script.reads("NEMORUN_HOME"));
        match (chosen, script.workload.as_str()) {
            (Some(home), _) => home.clone(),
            (None, "") => self.root(),
            (None, workload) => self.root().then(format!("/workloads/{workload}")),
        }
    }

    /// Returns whether a script with separate profiled and traced jobs also runs the plain job.
    pub(super) fn runs_plain(&self) -> bool {
        self.options.env.get("DISABLE_PERFRUN") != Some(&ShellWord::of("true"))
    }

    /// Exports the variable of a field. Returns whether the release's script has one.
    pub(super) fn set(&mut self, field: Field, value: ShellWord) -> bool {
        let variable = self.script().variable_of(field);
        if let Some(variable) = variable {
            self.problems.extend(value.unquoted_problem(field).filter(|_| variable.unquoted()));
            self.export(&variable.name, value);
        }
        variable.is_some()
    }

    /// Exports a variable.
    pub(super) fn export(&mut self, name: &str, value: ShellWord) {
        self.env.push((name.to_string(), value));
    }

    /// Requires a variable where the script runs, unless the launch sets it.
    pub(super) fn need(&mut self, name: &str, what: impl Into<String>) {
        let given = self.exports(name) || self.options.env.get(name).is_some();
        if !given && !self.needs(name) {
            self.needs.push(RequiredVariable { name: name.to_string(), what: what.into() });
        }
    }

    fn needs(&self, name: &str) -> bool {
        self.needs.iter().any(|need| need.name == name)
    }

    pub(super) fn exports(&self, name: &str) -> bool {
        self.env.iter().any(|(known, _)| known == name)
    }

    pub(super) fn warn(&mut self, text: impl Into<Message>, fix: impl Into<Message>) {
        self.warnings.push(LaunchWarning { topic: WarningTopic::Script, text: text.into(), fix: fix.into() });
    }

    pub(super) fn refuse(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Returns the variables that the script reads and this launch doesn't set. An earlier launch in the same
    /// shell may have set them.
    pub(super) fn leftovers(&self) -> Vec<&'static str> {
        const SET_BY_LLMB_RUN: [Field; 6] =
            [Field::Dtype, Field::Model, Field::Gpus, Field::Gpu, Field::Account, Field::Partition];
        let set_by_launcher = |variable: &Variable| {
            self.style == Style::LlmbRun
                && variable.field().is_some_and(|field| SET_BY_LLMB_RUN.contains(&field))
        };
        let matters = |variable: &&Variable| match variable.usage {
            _ if variable.is_flag() => false,
            VariableUse::Option => !set_by_launcher(variable),
            VariableUse::Changes | VariableUse::Moves | VariableUse::Refused => true,
            VariableUse::Open | VariableUse::Ignored => false,
        };
        let names = self.script().variables().filter(matters).map(|variable| variable.name.as_str());
        names.filter(|name| !self.exports(name) && !self.needs(name)).collect()
    }
}

/// Returns a list as part of a name, with equal values in a row counted: `16,16,16,13` is `16x3-13`.
fn short_list(list: &str) -> String {
    let values: Vec<&str> = list.split(',').collect();
    let runs = values.chunk_by(|one, next| one == next).map(|run| match run {
        [value] => (*value).to_owned(),
        _ => format!("{}x{}", run.first().copied().unwrap_or_default(), run.len()),
    });
    runs.collect::<Vec<_>>().join("-")
}

/// Returns the fields that are given, separated by commas; `None` if none is.
pub(super) fn given_fields(fields: &[(Field, bool)]) -> Option<Message> {
    let given = fields.iter().filter(|(_, given)| *given).map(|(field, _)| Message::from(*field));
    given.reduce(|list, field| list.and(", ").and(field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short_in_names() {
        for (list, name) in [
            ("8", "8"),
            ("none", "none"),
            ("mlp,mla_up_proj", "mlp-mla_up_proj"),
            ("32,29", "32-29"),
            ("7,8,8,8,8,8,8,6", "7-8x6-6"),
        ] {
            assert_eq!(short_list(list), name);
        }
    }
}
