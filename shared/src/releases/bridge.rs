//! The names of models in Megatron-Bridge: those for the launcher that the scripts of newer releases call, and those of its own
//! recipes.

use super::Release;
use crate::data_file::{DataError, FromRow, Row, embedded};
use std::str::FromStr;
use std::sync::LazyLock;

/// How the names of experiments begin.
const OPENING: &str = "pretrain_";

/// A model as a release's scripts name it.
#[derive(Debug)]
pub(crate) struct BridgeModel {
    pub(crate) release: Release,
    /// Its id.
    pub(crate) model: String,
    /// The size for the release's own launcher.
    pub(crate) size: String,
    /// Megatron-Bridge's family of models.
    pub(crate) family: String,
    /// Megatron-Bridge's recipe, which begins the names of experiments.
    pub(crate) recipe: String,
    /// The order of the launcher's arguments; `None` if the release has Megatron-Bridge's own recipes, whose names begin with
    /// `recipe`.
    pub(crate) form: Option<BridgeForm>,
    /// Whether an own recipe names the layers of every stage, so that it runs with no other number of stages.
    pub(crate) names_stages: bool,
    /// Whether the launch of an own recipe names the sequence length, because the recipe's data has another one than its model.
    pub(crate) names_seq_len: bool,
}

/// The order in which a script puts its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BridgeForm {
    Llama,
    GptOss,
    Qwen,
    NemotronH,
    Usual,
}

impl BridgeModel {
    /// Returns a model's names in a release; `None` if the release doesn't run it by Megatron-Bridge.
    pub(crate) fn of(release: Release, model: &str) -> Option<&'static BridgeModel> {
        let release = release.described_as();
        Self::all().iter().find(|named| named.release == release && named.model == model)
    }

    /// Returns the model of an experiment: `pretrain_llama31_405b_fp8_cs_gpus256_…_etpNone_…`.
    pub(crate) fn of_experiment(name: &str) -> Option<&'static BridgeModel> {
        let rest = BridgeModel::after_opening(name)?;
        Self::all().iter().filter(|named| named.form.is_some()).find(|named| named.begins(rest))
    }

    /// Returns how a release's names of a model's experiments begin, if this one has their form but begins otherwise.
    pub(crate) fn missed_beginning(&self, name: &str) -> Option<String> {
        let rest = BridgeModel::after_opening(name).filter(|_| self.form.is_some())?;
        (!self.begins(rest)).then(|| format!("{OPENING}{}_", self.recipe))
    }

    /// Returns what comes after the opening of an experiment's name. Earlier releases name experiments without the tensor
    /// parallelism of experts.
    fn after_opening(name: &str) -> Option<&str> {
        name.strip_prefix(OPENING).filter(|rest| rest.contains("_etp"))
    }

    fn begins(&self, rest: &str) -> bool {
        rest.strip_prefix(self.recipe.as_str()).is_some_and(|rest| rest.starts_with('_'))
    }

    fn all() -> &'static [BridgeModel] {
        static MODELS: LazyLock<Vec<BridgeModel>> = LazyLock::new(|| embedded!("launch_bridge.csv"));
        &MODELS
    }
}

impl FromRow for BridgeModel {
    fn from_row(row: &Row<'_>) -> Result<BridgeModel, DataError> {
        Ok(BridgeModel {
            release: row.value("release")?,
            model: row.string("model")?,
            size: row.string("size")?,
            family: row.string("family")?,
            recipe: row.string("recipe")?,
            form: row.optional("form")?,
            names_stages: match row.text("stages")? {
                "" => false,
                "named" => true,
                other => return Err(row.error(format!("\"{other}\" in the column stages is not \"named\""))),
            },
            names_seq_len: row.yes("names_seq_len")?,
        })
    }
}

impl FromStr for BridgeForm {
    type Err = ();

    fn from_str(text: &str) -> Result<BridgeForm, ()> {
        match text {
            "llama" => Ok(BridgeForm::Llama),
            "gpt-oss" => Ok(BridgeForm::GptOss),
            "qwen" => Ok(BridgeForm::Qwen),
            "nemotron-h" => Ok(BridgeForm::NemotronH),
            "usual" => Ok(BridgeForm::Usual),
            _ => Err(()),
        }
    }
}
