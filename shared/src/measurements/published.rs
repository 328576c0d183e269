//! Settings of Megatron-Bridge's published recipes, which its tables of measurements omit.

use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::estimate::Inputs;
use crate::options::{Modules, Recompute, TrainingOptions};
use crate::stack::Stack;
use std::sync::LazyLock;

/// The settings of one published recipe; `None` where it inherits a default.
pub(super) struct PublishedSettings {
    /// The software whose runs have them; none if all of 2026 do.
    stack: Option<Stack>,
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
    recompute: Option<Recompute>,
    modules: Modules,
    cuda_graphs: Option<bool>,
    expert_overlap: Option<bool>,
    sends_once: Option<bool>,
    tp_overlap: Option<bool>,
}

impl FromRow for PublishedSettings {
    fn from_row(row: &Row<'_>) -> Result<PublishedSettings, DataError> {
        Ok(PublishedSettings {
            stack: row.optional("stack")?,
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
            recompute: row.optional("recompute")?,
            modules: modules(row.text("modules")?),
            cuda_graphs: optional_yes(row, "cuda_graphs")?,
            expert_overlap: optional_yes(row, "expert_overlap")?,
            // DeepEP and HybridEP send a token once to each NVLink domain.
            sends_once: row.optional("dispatcher")?.map(|name: String| name != "alltoall"),
            tp_overlap: optional_yes(row, "tp_overlap")?,
        })
    }
}

/// Returns whether a column is `yes`; `None` if it is empty.
fn optional_yes(row: &Row<'_>, column: &str) -> Result<Option<bool>, DataError> {
    if row.text(column)?.is_empty() { Ok(None) } else { row.yes(column).map(Some) }
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

/// The settings of all published recipes.
static SETTINGS: LazyLock<Vec<PublishedSettings>> = LazyLock::new(|| embedded!("bridge_knobs.csv"));

/// Returns the settings of the recipe for that model, GPU, precision and GPU count, if the layout matches.
pub(super) fn settings(model: &str, run: &Inputs<'_>) -> Option<&'static PublishedSettings> {
    let agrees = |set: Option<u32>, is: u32| set.is_none_or(|set| set == is);
    SETTINGS.iter().find(|settings| {
        settings.stack.is_none_or(|stack| run.options.software.known() == Some(stack))
            && settings.model == model
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
    /// Copies the settings into `options`. Recomputed modules that the run's own row names stay.
    pub(super) fn apply(&self, options: &mut TrainingOptions) {
        options.recompute = self.recompute.unwrap_or(options.recompute);
        if options.modules == Modules::default() {
            options.modules = self.modules;
        }
        options.cuda_graphs = self.cuda_graphs;
        options.expert_overlap = self.expert_overlap;
        options.sends_once = self.sends_once;
        options.tp_overlap = self.tp_overlap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_says_all_that_it_inherits() {
        for one in SETTINGS.iter() {
            let layout = [one.tp, one.pp, one.cp, one.ep, one.vp, one.mbs];
            let recipe = format!("{} {} {} {}", one.model, one.gpu, one.dtype, one.gpus);
            assert!(layout.iter().all(Option::is_some), "{recipe}: {layout:?}");
            assert!(one.cuda_graphs.is_some() && one.expert_overlap.is_some(), "{recipe}");
            assert!(one.sends_once.is_some() || one.ep == Some(1), "{recipe}");
        }
    }

    #[test]
    fn a_recipe_of_one_stack_comes_before_that_of_all() {
        let general = SETTINGS.iter().position(|one| one.stack.is_none()).unwrap();
        assert!(general > 0 && SETTINGS[general..].iter().all(|one| one.stack.is_none()));
    }
}
