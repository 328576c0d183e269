//! Settings of Megatron-Bridge's published recipes, which its tables of measurements omit.

use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::estimate::Inputs;
use crate::options::{Modules, Recompute, TrainingOptions};
use crate::stack::{Stack, Switches};
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
    pub(super) switches: Switches,
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
            switches: Switches {
                graphs: optional_yes(row, "cuda_graphs")?,
                hidden_experts: optional_yes(row, "expert_overlap")?,
                // DeepEP and HybridEP send a token once to each NVLink domain.
                sent_once: row.optional("dispatcher")?.map(|name: String| name != "alltoall"),
                hidden_tp: optional_yes(row, "tp_overlap")?,
            },
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
        options.switches = self.switches;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::layout::{Degrees, Layout};
    use crate::search::{PublishedSplit, StackRules};

    #[test]
    fn every_recipe_says_all_that_it_inherits() {
        for one in SETTINGS.iter() {
            let layout = [one.tp, one.pp, one.cp, one.ep, one.vp, one.mbs];
            let recipe = format!("{} {} {} {}", one.model, one.gpu, one.dtype, one.gpus);
            assert!(layout.iter().all(Option::is_some), "{recipe}: {layout:?}");
            assert!(one.switches.graphs.is_some() && one.switches.hidden_experts.is_some(), "{recipe}");
            assert!(one.switches.sent_once.is_some() || one.ep == Some(1), "{recipe}");
        }
    }

    #[test]
    fn a_recipe_of_one_stack_comes_before_that_of_all() {
        let general = SETTINGS.iter().position(|one| one.stack.is_none()).unwrap();
        assert!(general > 0 && SETTINGS[general..].iter().all(|one| one.stack.is_none()));
    }

    /// Returns the recipes of a stack: its own, and those of all that it has no other version of.
    fn of_stack(stack: Stack) -> impl Iterator<Item = &'static PublishedSettings> {
        let key = |one: &PublishedSettings| (one.model.clone(), one.gpu.clone(), one.dtype.clone(), one.gpus);
        let own: Vec<_> = SETTINGS.iter().filter(|one| one.stack == Some(stack)).map(key).collect();
        SETTINGS.iter().filter(move |one| match one.stack {
            Some(of) => of == stack,
            None => !own.contains(&key(one)),
        })
    }

    #[test]
    fn the_switches_of_recipes_are_those_of_all_recipes_but_a_few() {
        let catalog = Catalog::embedded();
        let (mut compared, mut others) = (0, Vec::new());
        let stacks = [Stack::Bridge2602, Stack::Bridge2606];
        for (stack, one) in stacks.into_iter().flat_map(|stack| of_stack(stack).map(move |one| (stack, one)))
        {
            let (Ok(model), Ok(gpu)) = (catalog.model(&one.model), catalog.gpu(&one.gpu)) else { continue };
            if !StackRules::of(stack).computes_in(one.dtype.parse().unwrap(), gpu) {
                continue;
            }
            let [tp, pp, cp, ep, vp] =
                [one.tp, one.pp, one.cp, one.ep, one.vp].map(Option::unwrap_or_default);
            let degrees = Degrees { gpus: one.gpus, tp, pp, cp, ep, vp, ..Degrees::default() };
            // Recipes may list the layers of each stage, which changes no switch.
            let split = PublishedSplit::find(&model.id, model.architecture.layers, pp, vp).cloned();
            let degrees = Degrees { split: split.unwrap_or_default(), ..degrees };
            // Proxies have fewer GPUs than their layout.
            let Ok(layout) = Layout::new(&degrees, &model.architecture) else { continue };
            compared += 1;
            let default = TrainingOptions { software: stack.into(), ..TrainingOptions::default() };
            let told = default.as_in_recipes(&one.model, &one.gpu, one.dtype.parse().unwrap());
            let own = TrainingOptions { switches: one.switches, ..default };
            let effects = |options: &TrainingOptions| {
                let experts = (options.hides_experts(&layout), options.sends_once_per_domain());
                (
                    options.uses_cuda_graphs(&model.architecture),
                    (ep > 1).then_some(experts),
                    (tp > 1).then(|| options.overlaps_tp()),
                )
            };
            if effects(&told) != effects(&own) {
                others.push(format!("{stack} {}/{}/{}/{}", one.model, one.gpu, one.dtype, one.gpus));
            }
        }
        assert_eq!(
            others,
            [
                "megatron-bridge-26.02 qwen3-30b-a3b/b200/mxfp8/8",
                "megatron-bridge-26.02 llama3.1-405b/vr200/nvfp4/256",
                "megatron-bridge-26.02 qwen3-235b-a22b/b300/mxfp8/64",
                "megatron-bridge-26.02 qwen3-30b-a3b/vr200/mxfp8/8",
                "megatron-bridge-26.06 llama3.1-405b/vr200/nvfp4/256",
                "megatron-bridge-26.06 qwen3-235b-a22b/b200/mxfp8/64",
                "megatron-bridge-26.06 qwen3-235b-a22b/b300/mxfp8/64",
            ]
        );
        assert_eq!(compared, 499);
    }
}
