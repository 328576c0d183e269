//! What each release's scripts read, assume and support: the data files `launch_*.csv`.

use crate::catalog::{Model, RecipeId};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::launch::{Style, TimeLimit};
use crate::precision::Dtype;
use crate::releases::{BridgeModel, Release};
use std::str::FromStr;
use std::sync::LazyLock;

/// The launch script of a release for a family of models.
#[derive(Debug)]
pub(super) struct ReleaseScript {
    pub(super) release: Release,
    /// How the ids of its models begin.
    pub(super) family: String,
    /// The variable of the top directory.
    pub(super) root: String,
    /// The recipe's directory, from a variable; empty if no document names it.
    pub(super) directory: String,
    /// The recipe's directory in a checkout of the release.
    pub(super) checkout: String,
    /// Its name for llmb-run; empty if the release has no llmb-run.
    pub(super) workload: String,
    styles: String,
    /// Training steps by default.
    pub(super) steps: u32,
    time_limit: Option<TimeLimit>,
    time_limit_strong: Option<TimeLimit>,
    pub(super) profile_start: u32,
    pub(super) profile_stop: u32,
    /// The number of steps that the release's scoring window needs.
    pub(super) scored_to: u32,
    /// The Python version that its document asks for; may be empty.
    pub(super) python: String,
    /// The conda environment in its document.
    pub(super) conda: String,
}

/// A variable that a script reads, a variable that only its document names, or an argument of the script.
#[derive(Debug)]
pub(super) struct Variable {
    release: Release,
    family: String,
    pub(super) name: String,
    pub(super) usage: VariableUse,
    field: String,
    unquoted: String,
    /// A clause about it; may be empty.
    pub(super) note: String,
}

/// What sets a variable, and what that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableUse {
    /// A launch field sets it.
    Option,
    /// The user may set it; it changes what is measured.
    Changes,
    /// The user may set it; it moves what is written.
    Moves,
    /// The user may set it.
    Open,
    /// It has no effect.
    Ignored,
    /// The script stops if it is set.
    Refused,
}

/// What a release supports for a model on a GPU type.
#[derive(Debug)]
pub(super) struct Limits {
    release: Release,
    model: String,
    gpu: String,
    /// The tag of the container image.
    pub(super) image: String,
    /// GPUs per node by default.
    pub(super) gpus_per_node: u32,
    /// The time limit, where it depends on model and GPU type.
    pub(super) time_limit: Option<TimeLimit>,
    /// Size of a checkpoint, such as `4.4 TB`; empty if the release writes none.
    pub(super) checkpoint: String,
    pub(super) save_min: Option<u32>,
    pub(super) save_max: Option<u32>,
    pub(super) load_min: Option<u32>,
}

/// A known fault of a release's recipes.
#[derive(Debug)]
pub(super) struct Fault {
    release: Release,
    model: String,
    gpu: String,
    precision: Dtype,
    /// What happens: a sentence.
    pub(super) text: String,
    /// What to do: a sentence.
    pub(super) fix: String,
}

impl Fault {
    /// Returns the known faults of a recipe.
    pub(super) fn of(id: &RecipeId) -> impl Iterator<Item = &'static Fault> {
        let is_of = move |fault: &&Fault| {
            id.variant.is_none()
                && (fault.release, &fault.model, &fault.gpu, fault.precision)
                    == (id.release, &id.model, &id.gpu, id.dtype)
        };
        facts().faults.iter().filter(is_of)
    }
}

impl ReleaseScript {
    /// Returns a release's script for a model.
    pub(super) fn of(release: Release, model: &Model) -> Option<&'static ReleaseScript> {
        let (mut scripts, release) = (facts().scripts.iter(), release.described_as());
        scripts.find(|script| script.release == release && model.id.starts_with(&script.family))
    }

    /// Returns its launch styles, the default first.
    pub(super) fn styles(&self) -> Vec<Style> {
        self.styles.split(' ').filter_map(|id| id.parse().ok()).collect()
    }

    /// Returns the default time limit; `None` if the script sets none.
    pub(super) fn time_limit(&self, strong: bool) -> Option<TimeLimit> {
        self.time_limit_strong.filter(|_| strong).or(self.time_limit)
    }

    /// Returns its variables.
    pub(super) fn variables(&self) -> impl Iterator<Item = &'static Variable> {
        let all = facts().variables.iter();
        all.filter(|variable| variable.release == self.release && variable.family == self.family)
    }

    /// Returns whether it reads a variable.
    pub(super) fn reads(&self, name: &str) -> bool {
        self.variables().any(|variable| variable.name == name)
    }

    /// Returns the variable that a field sets.
    pub(super) fn variable_of(&self, field: Field) -> Option<&'static Variable> {
        self.variables().find(|variable| variable.field() == Some(field))
    }

    /// Returns a model's size as the release names it: by default from its id, which is `family-size`.
    pub(super) fn size<'a>(&self, model: &'a Model) -> &'a str {
        match BridgeModel::of(self.release, &model.id) {
            Some(named) => &named.size,
            None => model.id.strip_prefix(self.family.as_str()).unwrap_or(&model.id).trim_start_matches('-'),
        }
    }
}

impl Variable {
    /// Returns the field that sets it.
    pub(super) fn field(&self) -> Option<Field> {
        Field::from_flag(&self.field)
    }

    /// Returns whether it is the variable of this name, and changes what runs.
    pub(super) fn is_argument(&self, name: &str) -> bool {
        self.name == name && matches!(self.usage, VariableUse::Changes | VariableUse::Moves)
    }

    /// Returns whether some script does something with a variable of this name.
    pub(super) fn is_of_another_script(name: &str) -> bool {
        let acts = |usage| matches!(usage, VariableUse::Option | VariableUse::Changes | VariableUse::Moves);
        facts().variables.iter().any(|variable| variable.name == name && acts(variable.usage))
    }

    /// Returns whether it is an argument of the script, not a variable: a flag, or a key of its configuration.
    pub(super) fn is_flag(&self) -> bool {
        is_flag(&self.name)
    }

    /// Returns whether the script expands it without quotes.
    pub(super) fn unquoted(&self) -> bool {
        self.unquoted == "yes"
    }
}

/// Returns whether a name is that of an argument, not of a variable: `-tp`, or `model.recompute_modules`.
pub(super) fn is_flag(name: &str) -> bool {
    name.starts_with('-') || name.contains('.')
}

impl Limits {
    /// What a release supports for a model on a GPU type.
    pub(super) fn of(release: Release, model: &str, gpu: &str) -> Option<&'static Limits> {
        let (mut limits, release) = (facts().limits.iter(), release.described_as());
        limits.find(|limits| limits.release == release && limits.model == model && limits.gpu == gpu)
    }

    /// Returns the GPU types that a release runs a model on.
    pub(super) fn gpus(release: Release, model: &str) -> Vec<&'static str> {
        let (limits, release) = (facts().limits.iter(), release.described_as());
        let of_model = limits.filter(|limits| limits.release == release && limits.model == model);
        of_model.map(|limits| limits.gpu.as_str()).collect()
    }
}

impl FromRow for ReleaseScript {
    fn from_row(row: &Row<'_>) -> Result<ReleaseScript, DataError> {
        Ok(ReleaseScript {
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
            time_limit: row.optional("time_limit")?,
            checkpoint: row.string("checkpoint")?,
            save_min: row.optional("save_min")?,
            save_max: row.optional("save_max")?,
            load_min: row.optional("load_min")?,
        })
    }
}

impl FromRow for Fault {
    fn from_row(row: &Row<'_>) -> Result<Fault, DataError> {
        Ok(Fault {
            release: row.value("release")?,
            model: row.string("model")?,
            gpu: row.string("gpu")?,
            precision: row.value("precision")?,
            text: row.string("text")?,
            fix: row.string("fix")?,
        })
    }
}

impl FromStr for VariableUse {
    type Err = ();

    fn from_str(text: &str) -> Result<VariableUse, ()> {
        match text {
            "option" => Ok(VariableUse::Option),
            "changes" => Ok(VariableUse::Changes),
            "moves" => Ok(VariableUse::Moves),
            "open" => Ok(VariableUse::Open),
            "ignored" => Ok(VariableUse::Ignored),
            "refused" => Ok(VariableUse::Refused),
            _ => Err(()),
        }
    }
}

/// The data files.
#[derive(Debug)]
struct Facts {
    scripts: Vec<ReleaseScript>,
    variables: Vec<Variable>,
    limits: Vec<Limits>,
    faults: Vec<Fault>,
}

fn facts() -> &'static Facts {
    static FACTS: LazyLock<Facts> = LazyLock::new(|| Facts {
        scripts: embedded!("launch_scripts.csv"),
        variables: embedded!("launch_variables.csv"),
        limits: embedded!("launch_limits.csv"),
        faults: embedded!("launch_faults.csv"),
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
            let script = ReleaseScript::of(recipe.id.release, model).unwrap();
            assert!(!script.styles().is_empty());
            assert!(Limits::of(recipe.id.release, &model.id, &recipe.id.gpu).is_some(), "{}", recipe.id);
        }
    }

    #[test]
    fn every_row_matches_its_release_contract() {
        for variable in &facts().variables {
            assert_eq!(
                variable.usage == VariableUse::Option,
                variable.field().is_some(),
                "{}",
                variable.name
            );
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
