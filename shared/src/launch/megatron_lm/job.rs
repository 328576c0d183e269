//! A Megatron-LM job in the making: its flags in groups, its environment, warnings and problems.

use super::name;
use super::software::software;
use crate::catalog::Generation;
use crate::field::Field;
use crate::launch::options::LaunchOptions;
use crate::launch::plan::{LaunchWarning, WarningTopic};
use crate::launch::word::ShellWord;
use crate::message::Message;
use crate::options::TrainingOptions;
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::stack::Software;
use std::fmt::Display;

/// The default number of steps, as in the newest release.
const STEPS: u32 = 50;

/// The variable of the Megatron-LM checkout.
pub(super) const ROOT: &str = "MEGATRON_PATH";

/// Variables that the script sets itself; users can't set them.
pub(super) const OWN_NAMES: [&str; 6] = ["name", "run", "log", "first", "port", "mounts"];

/// A job in the making.
pub(super) struct MegatronJob<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) options: &'a LaunchOptions,
    /// What the script runs. Its flags follow from it.
    pub(super) software: Software,
    /// The experiment's name, which the log parser reads.
    pub(super) name: String,
    /// GPUs of a node.
    pub(super) of_node: u32,
    /// GPUs used per node, each with a process.
    pub(super) per_node: u32,
    /// Whether these are all GPUs of the node.
    pub(super) whole_nodes: bool,
    pub(super) nodes: u32,
    /// Training steps that will run.
    pub(super) steps: u32,
    /// The program's flags.
    pub(super) groups: Vec<FlagGroup>,
    /// Variables in the order in which the script exports them.
    pub(super) env: Vec<(String, ShellWord)>,
    /// What the program needs in addition to PyTorch and Transformer Engine.
    pub(super) requires: Vec<&'static str>,
    /// Variables that must not reach the run.
    pub(super) unset: Vec<&'static str>,
    pub(super) warnings: Vec<LaunchWarning>,
    pub(super) problems: Vec<Problem>,
    /// Why the run can't be compared with the published number: clauses.
    pub(super) incomparable: Vec<String>,
}

/// Flags that belong together, under a comment.
pub(super) struct FlagGroup {
    pub(super) title: &'static str,
    /// What readers of the script should know about the flags, as comments.
    pub(super) remarks: Vec<&'static str>,
    /// Each flag with its values.
    pub(super) flags: Vec<Vec<ShellWord>>,
}

impl<'a> MegatronJob<'a> {
    pub(super) fn new(scenario: &'a Scenario, options: &'a LaunchOptions) -> MegatronJob<'a> {
        let gpus = scenario.layout.gpus();
        let of_node = options.gpus_per_node.unwrap_or(scenario.gpu.gpus_per_node).max(1);
        // A job smaller than a node uses part of one.
        let per_node = of_node.min(gpus);
        MegatronJob {
            scenario,
            options,
            software: software(scenario, options),
            name: name::experiment(scenario),
            of_node,
            per_node,
            whole_nodes: per_node == of_node,
            nodes: gpus / per_node,
            steps: options.max_steps.unwrap_or(STEPS),
            groups: Vec::new(),
            env: Vec::new(),
            requires: Vec::new(),
            unset: Vec::new(),
            warnings: Vec::new(),
            problems: Vec::new(),
            incomparable: Vec::new(),
        }
    }

    /// Starts a group of flags.
    pub(super) fn group(&mut self, title: &'static str) {
        self.groups.push(FlagGroup { title, remarks: Vec::new(), flags: Vec::new() });
    }

    /// Adds a comment to the group of flags.
    pub(super) fn remark(&mut self, remark: &'static str) {
        if let Some(group) = self.groups.last_mut() {
            group.remarks.push(remark);
        }
    }

    /// Adds a flag without a value.
    pub(super) fn flag(&mut self, flag: &'static str) {
        self.words(flag, Vec::new());
    }

    /// Adds a flag with a value that is not user input.
    pub(super) fn set(&mut self, flag: &'static str, value: impl Display) {
        self.words(flag, vec![ShellWord::of(value)]);
    }

    /// Adds a flag whose value may begin with `-`. As a separate word, the program would take it for a flag.
    pub(super) fn set_joined(&mut self, flag: &'static str, value: impl Display) {
        if let Some(group) = self.groups.last_mut() {
            group.flags.push(vec![ShellWord::of(format!("{flag}={value}"))]);
        }
    }

    /// Adds a flag with any number of values.
    pub(super) fn words(&mut self, flag: &'static str, values: Vec<ShellWord>) {
        let words = std::iter::once(ShellWord::of(flag)).chain(values).collect();
        if let Some(group) = self.groups.last_mut() {
            group.flags.push(words);
        }
    }

    /// Exports a variable.
    pub(super) fn export(&mut self, name: &str, value: ShellWord) {
        self.env.push((name.to_string(), value));
    }

    /// Exports a variable that the user may set otherwise.
    pub(super) fn export_default(&mut self, name: &str, value: impl Display) {
        if self.options.env.iter().all(|(given, _)| given != name) {
            self.export(name, ShellWord::of(value));
        }
    }

    /// Returns the variable that must be set where the script runs, if any.
    pub(super) fn needs(&self) -> Option<&'static str> {
        self.options.install_path.is_none().then_some(ROOT)
    }

    /// Exports the checkout, the venv and the user's variables, once all others are known.
    pub(super) fn take_environment(&mut self) {
        let options = self.options;
        if let Some(path) = &options.install_path {
            // First, because other values may refer to it.
            self.env.insert(0, (ROOT.into(), path.clone()));
        }
        if let Some(venv) = options.venv.clone().filter(|_| options.container_image.is_none()) {
            self.export("PATH", venv.clone().then("/bin:").join(&ShellWord::variable("PATH")));
            self.export("VIRTUAL_ENV", venv);
        }
        for (name, value) in options.env.iter() {
            let taken = name == ROOT || OWN_NAMES.contains(&name) || self.unset.contains(&name);
            if taken || self.env.iter().any(|(known, _)| known == name) {
                self.refuse(Problem::new(Field::Env, name, format!("The launch itself sets {name}.")));
                continue;
            }
            self.export(name, value.clone());
        }
    }

    /// Returns the options of the training that the script runs.
    pub(super) fn training(&self) -> TrainingOptions {
        self.scenario.options.with_software(self.software)
    }

    /// Returns whether the GPUs are Blackwell or later.
    pub(super) fn on_blackwell(&self) -> bool {
        self.scenario.gpu.generation >= Generation::Blackwell
    }

    pub(super) fn warn(&mut self, text: impl Into<Message>, fix: impl Into<Message>) {
        self.warnings.push(LaunchWarning { topic: WarningTopic::Script, text: text.into(), fix: fix.into() });
    }

    pub(super) fn refuse(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}
