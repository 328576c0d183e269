//! Settings of Megatron-Bridge's published recipes, which its tables of measurements omit.

use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::estimate::Inputs;
use crate::options::{Modules, Recompute, TrainingOptions};
use std::sync::LazyLock;

/// The settings of one published recipe; `None` where it inherits a default.
pub(super) struct PublishedSettings {
    model: String,
    gpu: String,
    dtype: String,
    gpus: u32,
    tp: Option<u32>,
    pp: Option<u32>,
    cp: Option<u32>,
    ep: Option<u32>,
    vp: Option<u32>,
    mbs: Option<u32>,
    full: bool,
    modules: Modules,
    cuda_graphs: Option<bool>,
    expert_overlap: bool,
}

impl FromRow for PublishedSettings {
    fn from_row(row: &Row<'_>) -> Result<PublishedSettings, DataError> {
        Ok(PublishedSettings {
            model: row.string("model")?,
            gpu: row.string("gpu")?,
            dtype: row.string("dtype")?,
            gpus: row.value("gpus")?,
            tp: row.optional("tp")?,
            pp: row.optional("pp")?,
            cp: row.optional("cp")?,
            ep: row.optional("ep")?,
            vp: row.optional("vp")?,
            mbs: row.optional("mbs")?,
            full: row.text("recompute")? == "full",
            modules: modules(row.text("modules")?),
            cuda_graphs: match row.text("cuda_graphs")? {
                "" => None,
                _ => Some(row.yes("cuda_graphs")?),
            },
            expert_overlap: row.yes("expert_overlap")?,
        })
    }
}

/// Returns the recomputed modules from Megatron's names, separated by spaces or commas, perhaps after `selective:`.
pub(super) fn modules(names: &str) -> Modules {
    let has = |name: &str| names.split([' ', ',', ':']).any(|one| one == name);
    Modules {
        mlp: has("mlp"),
        mla_up_proj: has("mla_up_proj"),
        layernorm: has("layernorm") || has("norm"),
        moe_act: has("moe_act") || has("act"),
        shared_experts: has("shared_experts") || has("shared_expert"),
        moe: has("moe"),
    }
}

/// Returns the settings of the recipe for that model, GPU, precision and GPU count, if the layout matches.
pub(super) fn settings(model: &str, run: &Inputs<'_>) -> Option<&'static PublishedSettings> {
    static SETTINGS: LazyLock<Vec<PublishedSettings>> = LazyLock::new(|| embedded!("bridge_knobs.csv"));
    let agrees = |set: Option<u32>, is: u32| set.is_none_or(|set| set == is);
    SETTINGS.iter().find(|settings| {
        settings.model == model
            && settings.gpu == run.gpu.id
            && settings.dtype == run.dtype.id()
            && settings.gpus == run.layout.gpus()
            && agrees(settings.tp, run.layout.tp())
            && agrees(settings.pp, run.layout.pp())
            && agrees(settings.cp, run.layout.cp())
            && agrees(settings.ep, run.layout.ep())
            && agrees(settings.vp, run.layout.vp())
            && agrees(settings.mbs, run.batch.mbs())
    })
}

impl PublishedSettings {
    /// Copies the settings into `options`.
    pub(super) fn apply(&self, options: &mut TrainingOptions) {
        if self.full {
            options.recompute = Recompute::Full;
        }
        options.modules = self.modules;
        options.cuda_graphs = self.cuda_graphs;
        options.expert_overlap = self.expert_overlap.then_some(true);
    }
}
