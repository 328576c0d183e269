//! What each release's scripts read, assume and support: the data files `launch_*.csv` as types.

use crate::catalog::Model;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::launch::{Style, TimeLimit};
use crate::releases::Release;
use std::str::FromStr;
use std::sync::LazyLock;

/// The launch script of one document.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) release: Release,
    /// The models that it runs: the beginning of their ids.
    pub(super) family: String,
    /// The variable of the top directory.
    pub(super) root: String,
    /// The recipe's directory, from a variable; empty where no document says it.
    pub(super) directory: String,
    /// The recipe's directory in a checkout of the release.
    pub(super) checkout: String,
    /// The name that llmb-run knows it by; empty where the release has no llmb-run for it.
    pub(super) workload: String,
    styles: String,
    /// Steps that run when nobody says otherwise.
    pub(super) steps: u32,
    time_limit: Option<TimeLimit>,
    time_limit_strong: Option<TimeLimit>,
    pub(super) profile_start: u32,
    pub(super) profile_stop: u32,
    /// The steps that a run needs for the release's own scoring window.
    pub(super) scored_to: u32,
    /// The Python that its document asks for; empty where it asks for none.
    pub(super) python: String,
    /// The conda environment of its document.
    pub(super) conda: String,
}

/// A variable that a script reads, or that its document names without effect.
#[derive(Debug)]
pub(super) struct Variable {
    release: Release,
    family: String,
    pub(super) name: String,
    pub(super) usage: Usage,
    field: String,
    unquoted: String,
    /// What to know of it; may be empty.
    pub(super) note: String,
}

/// What may set a variable, and what that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// An option of ours sets it.
    Option,
    /// Open to `--env`; it changes what is measured.
    Changes,
    /// Open to `--env`; it moves what is written.
    Moves,
    /// Open to `--env`.
    Open,
    /// Nothing comes of it.
    Ignored,
    /// The script stops when it is set.
    Refused,
}

/// What a release runs a model with on a GPU type.
#[derive(Debug)]
pub(super) struct Limits {
    release: Release,
    model: String,
    gpu: String,
    /// The tag of the container image.
    pub(super) image: String,
    /// GPUs of a node, when nobody says otherwise.
    pub(super) gpus_per_node: u32,
    /// Size of a checkpoint, in words; empty where the release writes none.
    pub(super) checkpoint: String,
    pub(super) save_min: Option<u32>,
    pub(super) save_max: Option<u32>,
    pub(super) load_min: Option<u32>,
}

impl Script {
    /// The script that runs a model in a release.
    pub(super) fn of(release: Release, model: &Model) -> Option<&'static Script> {
        let mut scripts = facts().scripts.iter();
        scripts.find(|script| script.release == release && model.id.starts_with(&script.family))
    }

    /// What it can be handed to, the usual one first.
    pub(super) fn styles(&self) -> Vec<Style> {
        self.styles.split(' ').filter_map(|id| id.parse().ok()).collect()
    }

    /// The job's time limit when nobody says otherwise; none where the script sets none.
    pub(super) fn time_limit(&self, strong: bool) -> Option<TimeLimit> {
        self.time_limit_strong.filter(|_| strong).or(self.time_limit)
    }

    /// Every variable of it.
    pub(super) fn variables(&self) -> impl Iterator<Item = &'static Variable> {
        let all = facts().variables.iter();
        all.filter(|variable| variable.release == self.release && variable.family == self.family)
    }

    /// Whether it reads a variable.
    pub(super) fn reads(&self, name: &str) -> bool {
        self.variables().any(|variable| variable.name == name)
    }

    /// The variable that an option sets.
    pub(super) fn variable_of(&self, field: Field) -> Option<&'static Variable> {
        self.variables().find(|variable| variable.field() == Some(field))
    }

    /// Models are `family-size`.
    pub(super) fn size<'a>(&self, model: &'a Model) -> &'a str {
        model.id.strip_prefix(self.family.as_str()).unwrap_or(&model.id).trim_start_matches('-')
    }
}

impl Variable {
    /// The option that sets it.
    pub(super) fn field(&self) -> Option<Field> {
        Field::from_flag(&self.field)
    }

    /// Whether the script expands it without quotes.
    pub(super) fn unquoted(&self) -> bool {
        self.unquoted == "yes"
    }
}

impl Limits {
    /// What a release runs a model with on a GPU type.
    pub(super) fn of(release: Release, model: &str, gpu: &str) -> Option<&'static Limits> {
        let mut limits = facts().limits.iter();
        limits.find(|limits| limits.release == release && limits.model == model && limits.gpu == gpu)
    }

    /// The GPU types that a release runs a model on.
    pub(super) fn gpus(release: Release, model: &str) -> Vec<&'static str> {
        let limits = facts().limits.iter();
        let of_model = limits.filter(|limits| limits.release == release && limits.model == model);
        of_model.map(|limits| limits.gpu.as_str()).collect()
    }
}

impl FromRow for Script {
    fn from_row(row: &Row<'_>) -> Result<Script, DataError> {
        Ok(Script {
            release: row.value("release")?,
            family: row.string("family")?,
            root: row.string("root")?,
            directory: row.string("directory")?,
            checkout: row.string("checkout")?,
            workload: row.string("workload")?,
            styles: row.string("styles")?,
            steps: row.value("steps")?,
            time_limit: row.optional("time_limit")?,
            time_limit_strong: row.optional("time_limit_strong")?,
            profile_start: row.value("profile_start")?,
            profile_stop: row.value("profile_stop")?,
            scored_to: row.value("scored_to")?,
            python: row.string("python")?,
            conda: row.string("conda")?,
        })
    }
}

impl FromRow for Variable {
    fn from_row(row: &Row<'_>) -> Result<Variable, DataError> {
        Ok(Variable {
            release: row.value("release")?,
            family: row.string("family")?,
            name: row.string("name")?,
            usage: row.value("use")?,
            field: row.string("field")?,
            unquoted: row.string("unquoted")?,
            note: row.string("note")?,
        })
    }
}

impl FromRow for Limits {
    fn from_row(row: &Row<'_>) -> Result<Limits, DataError> {
        Ok(Limits {
            release: row.value("release")?,
            model: row.string("model")?,
            gpu: row.string("gpu")?,
            image: row.string("image")?,
            gpus_per_node: row.value("gpus_per_node")?,
            checkpoint: row.string("checkpoint")?,
            save_min: row.optional("save_min")?,
            save_max: row.optional("save_max")?,
            load_min: row.optional("load_min")?,
        })
    }
}

impl FromStr for Usage {
    type Err = ();

    fn from_str(text: &str) -> Result<Usage, ()> {
        match text {
            "option" => Ok(Usage::Option),
            "changes" => Ok(Usage::Changes),
            "moves" => Ok(Usage::Moves),
            "open" => Ok(Usage::Open),
            "ignored" => Ok(Usage::Ignored),
            "refused" => Ok(Usage::Refused),
            _ => Err(()),
        }
    }
}

/// The data files.
#[derive(Debug)]
struct Facts {
    scripts: Vec<Script>,
    variables: Vec<Variable>,
    limits: Vec<Limits>,
}

fn facts() -> &'static Facts {
    static FACTS: LazyLock<Facts> = LazyLock::new(|| Facts {
        scripts: embedded!("launch_scripts.csv"),
        variables: embedded!("launch_variables.csv"),
        limits: embedded!("launch_limits.csv"),
    });
    &FACTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::releases::TraceRun;

    #[test]
    fn every_recipe_has_its_script_and_its_limits() {
        let catalog = Catalog::embedded();
        for recipe in catalog.recipes() {
            let model = catalog.model(&recipe.id.model).unwrap();
            let script = Script::of(recipe.id.release, model).unwrap();
            assert!(!script.styles().is_empty());
            assert!(Limits::of(recipe.id.release, &model.id, &recipe.id.gpu).is_some(), "{}", recipe.id);
        }
    }

    #[test]
    fn every_row_says_what_the_code_reads() {
        for variable in &facts().variables {
            assert_eq!(variable.usage == Usage::Option, variable.field().is_some(), "{}", variable.name);
            assert!(["yes", "no"].contains(&variable.unquoted.as_str()), "{}", variable.name);
        }
        for script in &facts().scripts {
            let contract = script.release.contract();
            let rules = contract.script_of(&script.family).unwrap();
            assert_eq!(rules.family, script.family, "{}", script.release);
            let traces = script.variable_of(Field::NcclTrace).is_some();
            assert_eq!(traces, rules.trace != TraceRun::Unsupported, "{} {}", script.release, script.family);
            let has_llmb_run = script.styles().contains(&Style::LlmbRun);
            assert_eq!(has_llmb_run, contract.llmb_run.is_some(), "{}", script.release);
            assert_eq!(script.styles().len(), script.styles.split(' ').count(), "{}", script.styles);
        }
    }
}
