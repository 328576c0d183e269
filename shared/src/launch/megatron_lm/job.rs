//! A job of Megatron-LM in the making: its flags in groups, its environment, and all that there is to say of it.

use super::name;
use crate::catalog::Generation;
use crate::field::Field;
use crate::launch::options::Options;
use crate::launch::plan::Warning;
use crate::launch::word::Word;
use crate::problem::Problem;
use crate::scenario::Scenario;
use std::fmt::Display;

/// Steps that run when nobody says otherwise: as many as the newest release measures.
const STEPS: u32 = 50;

/// The variable of the checkout.
pub(super) const ROOT: &str = "MEGATRON_PATH";

/// Names that the script gives its own values; nobody else may set them.
pub(super) const OWN_NAMES: [&str; 5] = ["name", "run", "first", "port", "mounts"];

/// A job in the making.
pub(super) struct Job<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) options: &'a Options,
    /// The experiment, as the parser of logs reads it.
    pub(super) name: String,
    /// GPUs of one node that work, and so processes.
    pub(super) per_node: u32,
    /// Whether these are all of the node's.
    pub(super) whole_nodes: bool,
    pub(super) nodes: u32,
    /// Steps that will run.
    pub(super) steps: u32,
    /// The program's flags.
    pub(super) groups: Vec<Group>,
    /// Variables in the order in which the script exports them.
    pub(super) env: Vec<(String, Word)>,
    /// Variables that must not reach the run.
    pub(super) unset: Vec<&'static str>,
    pub(super) warnings: Vec<Warning>,
    pub(super) problems: Vec<Problem>,
    /// What spoils the measurement.
    pub(super) incomparable: Vec<String>,
}

/// Flags that belong together.
pub(super) struct Group {
    pub(super) title: &'static str,
    /// Each with its values.
    pub(super) flags: Vec<Vec<Word>>,
}

impl<'a> Job<'a> {
    pub(super) fn new(scenario: &'a Scenario, options: &'a Options) -> Job<'a> {
        let gpus = scenario.layout.gpus();
        let of_node = options.gpus_per_node.unwrap_or(scenario.gpu.gpus_per_node).max(1);
        // A job smaller than a node takes a part of one.
        let per_node = of_node.min(gpus);
        Job {
            scenario,
            options,
            name: name::experiment(scenario),
            per_node,
            whole_nodes: per_node == of_node,
            nodes: gpus / per_node,
            steps: options.max_steps.unwrap_or(STEPS),
            groups: Vec::new(),
            env: Vec::new(),
            unset: Vec::new(),
            warnings: Vec::new(),
            problems: Vec::new(),
            incomparable: Vec::new(),
        }
    }

    /// Begins a group of flags.
    pub(super) fn group(&mut self, title: &'static str) {
        self.groups.push(Group { title, flags: Vec::new() });
    }

    /// A flag without a value.
    pub(super) fn flag(&mut self, flag: &'static str) {
        self.words(flag, Vec::new());
    }

    /// A flag with a value of ours.
    pub(super) fn set(&mut self, flag: &'static str, value: impl Display) {
        self.words(flag, vec![Word::of(value)]);
    }

    /// A flag with any number of values.
    pub(super) fn words(&mut self, flag: &'static str, values: Vec<Word>) {
        let words = std::iter::once(Word::of(flag)).chain(values).collect();
        if let Some(group) = self.groups.last_mut() {
            group.flags.push(words);
        }
    }

    /// Exports a variable.
    pub(super) fn export(&mut self, name: &str, value: Word) {
        self.env.push((name.to_string(), value));
    }

    /// The variables that nobody has said yet.
    pub(super) fn needs(&self) -> Option<&'static str> {
        self.options.install_path.is_none().then_some(ROOT)
    }

    /// Where Megatron-LM is, venv and the variables that a person sets besides, once all others are known.
    pub(super) fn take_environment(&mut self) {
        let options = self.options;
        if let Some(path) = &options.install_path {
            // First, since other values may refer to it.
            self.env.insert(0, (ROOT.into(), path.clone()));
        }
        if let Some(venv) = options.venv.clone().filter(|_| options.container_image.is_none()) {
            self.export("PATH", venv.clone().then("/bin:").join(&Word::variable("PATH")));
            self.export("VIRTUAL_ENV", venv);
        }
        for (name, value) in options.env.iter() {
            let taken = name == ROOT || OWN_NAMES.contains(&name) || self.unset.contains(&name);
            if taken || self.env.iter().any(|(known, _)| known == name) {
                self.refuse(Problem::clause(Field::Env, name, "is the launch's own to set"));
                continue;
            }
            self.export(name, value.clone());
        }
    }

    /// Returns whether the GPUs are Blackwell or later.
    pub(super) fn on_blackwell(&self) -> bool {
        self.scenario.gpu.generation >= Generation::Blackwell
    }

    pub(super) fn warn(&mut self, text: impl Into<String>, fix: impl Into<String>) {
        self.warnings.push(Warning { text: text.into(), fix: fix.into() });
    }

    pub(super) fn refuse(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}
