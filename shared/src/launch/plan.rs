//! A launch in the making: what the options put into the environment and the command line, and all that there
//! is to say of it.

use super::choice::{ClusterType, Style};
use super::facts::{Script, Usage, Variable};
use super::options::Options;
use super::target::Target;
use super::word::Word;
use crate::catalog::RecipeId;
use crate::field::Field;
use crate::problem::Problem;
use crate::releases::{ProfileRun, Release, ReleaseContract, ScriptContract};
use crate::scenario::Scenario;
use serde::Serialize;

/// What works otherwise than one would think, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// What happens.
    pub text: String,
    /// What to do; empty where there is nothing to do but to know it.
    pub fix: String,
}

/// A variable that the script finds in its environment or stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) name: String,
    /// What to set it to.
    pub(super) what: String,
}

/// A launch in the making.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) options: &'a Options,
    pub(super) target: Target,
    pub(super) style: Style,
    /// Variables in the order in which the script exports them.
    pub(super) env: Vec<(String, Word)>,
    pub(super) needs: Vec<Need>,
    pub(super) warnings: Vec<Warning>,
    pub(super) problems: Vec<Problem>,
    /// Why what it measures can't stand beside the published number.
    pub(super) incomparable: Vec<String>,
    /// Steps that will run.
    pub(super) steps: u32,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        options: &'a Options,
        target: Target,
        style: Style,
    ) -> Plan<'a> {
        let steps = options.max_steps.unwrap_or(target.script.steps);
        let (env, needs, warnings) = (Vec::new(), Vec::new(), Vec::new());
        let (problems, incomparable) = (Vec::new(), Vec::new());
        Plan { scenario, options, target, style, env, needs, warnings, problems, incomparable, steps }
    }

    pub(super) fn script(&self) -> &'static Script {
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

    /// Whether the script profiles and traces in jobs of their own, beside the plain one.
    pub(super) fn has_own_jobs(&self) -> bool {
        self.rules().profile == ProfileRun::OwnJob
    }

    pub(super) fn gpus(&self) -> u32 {
        self.scenario.layout.gpus()
    }

    pub(super) fn nodes(&self) -> u32 {
        self.gpus() / self.target.gpus_per_node
    }

    /// The recipe at the scenario's GPU count, which may be none that is published.
    pub(super) fn recipe_id(&self) -> RecipeId {
        RecipeId { gpus: self.gpus(), ..self.target.recipe.id.clone() }
    }

    pub(super) fn on_slurm(&self) -> bool {
        self.options.cluster_type == ClusterType::Slurm
    }

    /// The model's size as the release names it.
    pub(super) fn size(&self) -> &'a str {
        self.script().size(&self.scenario.model)
    }

    /// The top directory: as given, else the variable that holds it.
    pub(super) fn root(&self) -> Word {
        self.options.install_path.clone().unwrap_or_else(|| Word::variable(&self.script().root))
    }

    /// Below what the experiments lie.
    pub(super) fn home(&self) -> Word {
        let script = self.script();
        // One script leaves it to the environment; the others set it themselves.
        let chosen = self.options.env.get("NEMORUN_HOME").filter(|_| script.reads("NEMORUN_HOME"));
        match (chosen, script.workload.as_str()) {
            (Some(home), _) => home.clone(),
            (None, "") => self.root(),
            (None, workload) => self.root().then(format!("/workloads/{workload}")),
        }
    }

    /// Whether a script with profiled and traced jobs of their own runs the plain job too.
    pub(super) fn runs_plain(&self) -> bool {
        self.options.env.get("DISABLE_PERFRUN") != Some(&Word::of("true"))
    }

    /// Exports the variable that an option sets; says whether the release's script has one.
    pub(super) fn set(&mut self, field: Field, value: Word) -> bool {
        let variable = self.script().variable_of(field);
        if let Some(variable) = variable {
            self.export(&variable.name, value);
        }
        variable.is_some()
    }

    /// Exports a variable.
    pub(super) fn export(&mut self, name: &str, value: Word) {
        self.env.push((name.to_string(), value));
    }

    /// Takes a variable from where the script runs.
    pub(super) fn need(&mut self, name: &str, what: impl Into<String>) {
        let given = self.exports(name) || self.options.env.get(name).is_some();
        if !given && !self.needs(name) {
            self.needs.push(Need { name: name.to_string(), what: what.into() });
        }
    }

    fn needs(&self, name: &str) -> bool {
        self.needs.iter().any(|need| need.name == name)
    }

    pub(super) fn exports(&self, name: &str) -> bool {
        self.env.iter().any(|(known, _)| known == name)
    }

    pub(super) fn warn(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.warnings.push(Warning { text: text.into(), fix: fix.into() });
    }

    pub(super) fn refuse(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// The variables that the script reads and this launch leaves alone: another launch may have left one
    /// behind in the same shell.
    pub(super) fn leftovers(&self) -> Vec<&'static str> {
        const SET_BY_LLMB_RUN: [Field; 6] =
            [Field::Dtype, Field::Model, Field::Gpus, Field::Gpu, Field::Account, Field::Partition];
        let set_by_launcher = |variable: &Variable| {
            self.style == Style::LlmbRun
                && variable.field().is_some_and(|field| SET_BY_LLMB_RUN.contains(&field))
        };
        let matters = |variable: &&Variable| match variable.usage {
            Usage::Option => !set_by_launcher(variable),
            Usage::Changes | Usage::Moves | Usage::Refused => true,
            Usage::Open | Usage::Ignored => false,
        };
        let names = self.script().variables().filter(matters).map(|variable| variable.name.as_str());
        names.filter(|name| !self.exports(name) && !self.needs(name)).collect()
    }
}

/// The flags of the fields that are given, with commas between them; none if none is.
pub(super) fn flags_of(fields: &[(Field, bool)]) -> Option<String> {
    let given = fields.iter().filter(|(_, given)| *given);
    let flags: Vec<String> = given.map(|(field, _)| format!("--{}", field.flag())).collect();
    (!flags.is_empty()).then(|| flags.join(", "))
}
