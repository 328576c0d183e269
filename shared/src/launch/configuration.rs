//! What a plan changes in the configuration of one of Megatron-Bridge's own recipes, beyond the short options of train.sh: its
//! arguments `section.key=value`.
//!
//! The rules are those of Megatron-Core's transformer_config.py, and of Megatron-Bridge's comm_overlap.py and hybrid_provider.py,
//! which stop a run that breaks one of them.

use super::chunks::{by_chunk, is_counted, is_even};
use crate::batch::MicrobatchGroups;
use crate::catalog::{Recipe, RecipeId, Release};
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::layout::PipelineSplit;
use crate::options::Recompute;
use crate::precision::Dtype;
use crate::releases::BridgeModel;
use crate::scenario::Scenario;
use crate::search::PublishedSplit;
use crate::stack::{CudaGraphs, Software, StackProperties};
use std::sync::LazyLock;

/// Settings of a recipe that decide which other settings can change: a line of `launch_settings.csv`.
#[derive(Debug)]
struct RecipeSettings {
    release: Release,
    model: String,
    gpu_types: Vec<String>,
    precisions: Vec<Dtype>,
    gpus: Vec<u32>,
    variant: Option<String>,
    /// Whether the exchange between experts overlaps with another micro batch.
    overlaps_exchange: bool,
    /// Whether one CUDA graph holds a whole iteration.
    graphs_iteration: bool,
}

impl RecipeSettings {
    fn of(id: &RecipeId) -> Option<&'static RecipeSettings> {
        static SETTINGS: LazyLock<Vec<RecipeSettings>> = LazyLock::new(|| embedded!("launch_settings.csv"));
        let of_recipe = |settings: &&RecipeSettings| {
            (&settings.model, &settings.variant) == (&id.model, &id.variant)
                && settings.gpu_types.contains(&id.gpu)
                && settings.precisions.contains(&id.dtype)
                && settings.gpus.contains(&id.gpus)
        };
        let of_release =
            |release: Release| SETTINGS.iter().filter(of_recipe).find(|settings| settings.release == release);
        of_release(id.release).or_else(|| of_release(id.release.described_as()))
    }
}

impl FromRow for RecipeSettings {
    fn from_row(row: &Row<'_>) -> Result<RecipeSettings, DataError> {
        Ok(RecipeSettings {
            release: row.value("release")?,
            model: row.string("model")?,
            gpu_types: row.list("gpu")?,
            precisions: row.list("precisions")?,
            gpus: row.list("gpus")?,
            variant: row.optional("variant")?,
            overlaps_exchange: row.yes("overlaps_exchange")?,
            graphs_iteration: row.yes("graphs_iteration")?,
        })
    }
}

fn overlaps_exchange(recipe: &Recipe) -> bool {
    RecipeSettings::of(&recipe.id).is_some_and(|settings| settings.overlaps_exchange)
}

fn graphs_iteration(recipe: &Recipe) -> bool {
    RecipeSettings::of(&recipe.id).is_some_and(|settings| settings.graphs_iteration)
}

/// Returns whether a recipe can run with the scenario's value of a field.
pub(super) fn takes(recipe: &Recipe, scenario: &Scenario, field: Field) -> bool {
    let (architecture, options) = (&scenario.architecture, &scenario.options);
    let is_hybrid = architecture.mamba.is_some();
    match field {
        // Megatron-Core takes a list of chunks for GPT models, and divides hybrids evenly, without interleaved chunks.
        Field::PipelineSplit => !is_hybrid,
        Field::Pp => !is_hybrid || is_even(&scenario.layout, architecture.layers),
        Field::Vp => !is_hybrid || scenario.layout.vp() == 1,
        // A graph of the iteration may hold full recomputation. But with experts, these recipes also move activations out of the
        // way, which no recipe combines with recomputation.
        Field::Recompute => {
            options.recompute != Recompute::Full || architecture.moe.is_none() || !graphs_iteration(recipe)
        }
        Field::RecomputeModules => {
            let (wanted, own) = (options.modules, recipe.modules);
            // Neither an overlapped exchange nor a graph with the router allows experts that are recomputed as a whole.
            let adds_experts = wanted.moe && !own.moe || wanted.shared_experts && !own.shared_experts;
            // "Delayed scaling does not support moe_act and layernorm recompute for fp8."
            let is_delayed = recipe.runs() == Dtype::Fp8Delayed && (wanted.moe_act || wanted.layernorm);
            !adds_experts && !is_delayed
        }
        _ => true,
    }
}

/// Returns how a recipe divides the layers among the scenario's stages by itself. If it lists the layers of each chunk, stages of
/// another PP and VP get those that the model's recipes publish for that pipeline.
pub(super) fn split<'a>(recipe: &'a Recipe, scenario: &Scenario) -> &'a PipelineSplit {
    let (layout, fixed) = (&scenario.layout, &recipe.degrees);
    let is_other = (layout.pp(), layout.vp()) != (fixed.pp, fixed.vp);
    let of_others = || PublishedSplit::find(&recipe.id.model, recipe.layers, layout.pp(), layout.vp());
    match fixed.split {
        PipelineSplit::Explicit(_) if is_other => of_others().unwrap_or(&PipelineSplit::Even),
        _ => &fixed.split,
    }
}

/// Returns the arguments that make a recipe's configuration the scenario's, in addition to the short options.
pub(super) fn assignments(recipe: &Recipe, scenario: &Scenario) -> Vec<String> {
    let expert_tp = scenario.layout.expert_tp();
    let mut all = division(recipe, scenario);
    if expert_tp != recipe.degrees.expert_tp {
        all.push(format!("model.expert_tensor_parallel_size={expert_tp}"));
    }
    if let MicrobatchGroups::Of(group) = MicrobatchGroups::of(&scenario.layout, &scenario.batch) {
        all.push(format!("model.microbatch_group_size_per_vp_stage={group}"));
    }
    all.extend(recomputation(recipe, scenario));
    if overlaps_exchange(recipe) && !can_overlap_exchange(scenario) {
        let off = ["overlap_moe_expert_parallel_comm", "delay_wgrad_compute"];
        all.extend(off.map(|key| format!("comm_overlap.{key}=false")));
    }
    all
}

/// Returns whether the exchange between experts may overlap with another micro batch. comm_overlap.py asks for several experts,
/// for interleaved chunks if there are stages, and for no full recomputation.
fn can_overlap_exchange(scenario: &Scenario) -> bool {
    let layout = &scenario.layout;
    layout.ep() > 1 && (layout.pp() == 1 || layout.vp() > 1) && scenario.options.recompute != Recompute::Full
}

/// Returns what divides the layers among the chunks, if the recipe would divide them otherwise.
fn division(recipe: &Recipe, scenario: &Scenario) -> Vec<String> {
    let (layout, layers, own) = (&scenario.layout, scenario.architecture.layers, &recipe.degrees.split);
    if divides_alike(recipe, scenario) {
        return Vec::new();
    }
    let mut all = Vec::new();
    if *own == PipelineSplit::Counted {
        // "pipeline_model_parallel_layout" excludes both.
        let off = ["account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"];
        all.extend(off.map(|key| format!("model.{key}=false")));
    }
    let list = (!is_even(layout, layers)).then(|| by_chunk(layout, layers, predictions(scenario)));
    if list.is_some() || matches!(own, PipelineSplit::Explicit(_)) {
        let list = list.as_deref().unwrap_or("null");
        all.push(format!("model.pipeline_model_parallel_layout={list}"));
    }
    all
}

/// Returns whether a recipe divides the layers like the scenario without further settings.
pub(super) fn divides_alike(recipe: &Recipe, scenario: &Scenario) -> bool {
    let (layout, layers, fixed) = (&scenario.layout, scenario.architecture.layers, &recipe.degrees);
    match fixed.split {
        PipelineSplit::Explicit(_) => {
            let named = BridgeModel::of(recipe.id.release, &recipe.id.model);
            // A list of chunks suits any number of stages with as many chunks.
            let has_all_chunks = named.is_some_and(|model| model.names_stages)
                && layout.pp() * layout.vp() == fixed.pp * fixed.vp;
            let is_same = (layout.pp(), layout.vp()) == (fixed.pp, fixed.vp);
            let split = split(recipe, scenario);
            (is_same || has_all_chunks)
                && matches!(split, PipelineSplit::Explicit(_))
                && layout.split() == split
        }
        PipelineSplit::Counted => is_counted(layout, layers),
        PipelineSplit::Even | PipelineSplit::Weighed => is_even(layout, layers),
    }
}

/// Returns the layers of multi-token prediction that a recipe trains. Those of Qwen3-Next train one (`mtp_num_layers` of
/// qwen3_next_80b_a3b_pretrain_config), which the catalog's model leaves out.
fn predictions(scenario: &Scenario) -> u32 {
    match scenario.model.id.as_str() {
        "qwen3-next-80b-a3b" => 1,
        _ => scenario.architecture.mtp_layers,
    }
}

/// Returns what makes the backward pass recompute the scenario's activations, if the recipe recomputes others.
fn recomputation(recipe: &Recipe, scenario: &Scenario) -> Vec<String> {
    let (wanted, modules) = (scenario.options.recompute, scenario.options.modules);
    if (wanted, modules) == (recipe.recompute, recipe.modules) {
        return Vec::new();
    }
    let core = (wanted == Recompute::Selective).then_some("core_attn");
    let names: Vec<&str> = core.into_iter().chain(modules.names()).collect();
    let (granularity, method, layers) = match wanted {
        Recompute::Full => ("full", "uniform", "1"),
        _ if names.is_empty() => ("null", "null", "null"),
        _ => ("selective", "null", "null"),
    };
    let mut all = vec![
        format!("model.recompute_granularity={granularity}"),
        format!("model.recompute_method={method}"),
        format!("model.recompute_num_layers={layers}"),
        format!("model.recompute_modules=[{}]", names.join(",")),
    ];
    // "full recompute is only supported with full iteration CUDA graph."
    if wanted == Recompute::Full && !graphs_iteration(recipe) {
        all.push("model.cuda_graph_impl=none".to_owned());
    }
    all
}

/// Returns the software that a recipe runs with the scenario's changes, which turn some of it off.
pub(super) fn software(recipe: &Recipe, scenario: &Scenario) -> Software {
    let stack = recipe.id.release.software().stack;
    let usual = stack.properties();
    if scenario.options.recompute != Recompute::Full || recipe.recompute == Recompute::Full {
        return stack.into();
    }
    let cuda_graphs = if graphs_iteration(recipe) { usual.cuda_graphs } else { CudaGraphs::None };
    Software::new(stack, StackProperties { cuda_graphs, ..*usual })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::spec::Spec;

    fn scenario(recipe: &str, fields: &[(Field, &str)]) -> Scenario {
        let spec = Spec::default().with(Field::Recipe, recipe);
        fields.iter().fold(spec, |spec, (field, text)| spec.with(*field, *text)).scenario().unwrap()
    }

    #[test]
    fn an_unchanged_recipe_needs_no_argument() {
        let own = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.bridge_name().is_some());
        let mut recipes = 0;
        for recipe in own {
            let scenario = scenario(&recipe.id.to_string(), &[]);
            assert_eq!(assignments(recipe, &scenario), Vec::<String>::new(), "{}", recipe.id);
            recipes += 1;
        }
        assert_eq!(recipes, 291 + 285);
    }

    #[test]
    fn every_line_of_settings_is_of_recipes() {
        let settings: Vec<RecipeSettings> = embedded!("launch_settings.csv");
        let own = Catalog::embedded().recipes().iter().filter(|recipe| recipe.id.bridge_name().is_some());
        let has_line = |recipe: &&Recipe| {
            RecipeSettings::of(&recipe.id).is_some_and(|settings| settings.release == recipe.id.release)
        };
        let found = own.filter(has_line).count();
        let listed =
            settings.iter().map(|line| line.gpu_types.len() * line.precisions.len() * line.gpus.len());
        assert_eq!(found, listed.sum::<usize>());
        assert!(settings.iter().all(|line| line.overlaps_exchange || line.graphs_iteration));
    }

    #[test]
    fn another_division_of_layers_is_listed_by_chunk() {
        let of = |recipe: &str, fields: &[(Field, &str)]| {
            let scenario = scenario(recipe, fields);
            division(scenario.recipe.unwrap(), &scenario)
        };
        let deepseek = "deepseek-v3/gb300/mxfp8/256@bridge-main";
        // The recipe's own list suits these stages.
        assert_eq!(of(deepseek, &[(Field::Pp, "4"), (Field::Vp, "4")]), Vec::<String>::new());
        let listed = |list: &str| vec![format!("model.pipeline_model_parallel_layout={list}")];
        let stages = [(Field::Pp, "4"), (Field::Vp, "1"), (Field::PipelineSplit, "16,16,16,13")];
        assert_eq!(of(deepseek, &stages), listed("Et*16|t*16|t*16|t*13mL"));
        assert_eq!(of(deepseek, &[(Field::Pp, "1"), (Field::Vp, "1")]), listed("null"));
        let counted = "qwen3-235b-a22b/h100/bf16/256@bridge-main";
        assert_eq!(of(counted, &[(Field::Pp, "4")]), Vec::<String>::new(), "96 is a multiple of 16");
        let even = of(counted, &[(Field::Pp, "2"), (Field::Vp, "1"), (Field::PipelineSplit, "even")]);
        assert_eq!(
            even,
            [
                "model.account_for_embedding_in_pipeline_split=false",
                "model.account_for_loss_in_pipeline_split=false"
            ]
        );
        let uneven = of(
            "llama3.1-70b/h100/bf16/64@bridge-main",
            &[(Field::Tp, "1"), (Field::Pp, "32"), (Field::Cp, "1"), (Field::Vp, "1")],
        );
        assert_eq!(uneven, listed(&format!("E{}{}t*2L", "t*3|".repeat(16), "t*2|".repeat(15))));
        let next = of(
            "qwen3-next-80b-a3b/gb200/bf16/64@bridge-main",
            &[(Field::Vp, "1"), (Field::PipelineSplit, "25,23")],
        );
        assert_eq!(next, listed("Et*25|t*23mL"));
    }

    #[test]
    fn recomputation_is_changed_as_a_whole() {
        let of = |recipe: &str, fields: &[(Field, &str)]| {
            let scenario = scenario(recipe, fields);
            let recipe = scenario.recipe.unwrap();
            assert!(
                takes(recipe, &scenario, Field::Recompute)
                    && takes(recipe, &scenario, Field::RecomputeModules)
            );
            recomputation(recipe, &scenario).join(" ")
        };
        let id = "deepseek-v3/b200/mxfp8/256@bridge-main";
        assert_eq!(
            of(id, &[(Field::RecomputeModules, "none")]),
            "model.recompute_granularity=null model.recompute_method=null model.recompute_num_layers=null \
             model.recompute_modules=[]"
        );
        assert_eq!(
            of(id, &[(Field::Recompute, "selective"), (Field::RecomputeModules, "moe_act")]),
            "model.recompute_granularity=selective model.recompute_method=null model.recompute_num_layers=null \
             model.recompute_modules=[core_attn,moe_act]"
        );
        assert_eq!(
            of(id, &[(Field::Recompute, "full"), (Field::RecomputeModules, "none")]),
            "model.recompute_granularity=full model.recompute_method=uniform model.recompute_num_layers=1 \
             model.recompute_modules=[] model.cuda_graph_impl=none"
        );
    }

    #[test]
    fn recomputation_that_would_stop_the_run_is_not_taken() {
        let takes = |recipe: &str, fields: &[(Field, &str)], field: Field| {
            let scenario = scenario(recipe, fields);
            takes(scenario.recipe.unwrap(), &scenario, field)
        };
        let full = [(Field::Recompute, "full"), (Field::RecomputeModules, "none")];
        // One graph of the whole iteration, with experts.
        assert!(!takes("deepseek-v3/gb300/mxfp8/256@bridge-main", &full, Field::Recompute));
        assert!(takes("llama3.1-8b/gb300/bf16/8@bridge-main", &full, Field::Recompute));
        let experts = [(Field::RecomputeModules, "moe")];
        assert!(!takes("qwen3-30b-a3b/h100/bf16/16@bridge-main", &experts, Field::RecomputeModules));
        let norms = [(Field::RecomputeModules, "layernorm")];
        assert!(!takes("qwen3-30b-a3b/h100/fp8-delayed/16@bridge-main", &norms, Field::RecomputeModules));
        assert!(takes("qwen3-30b-a3b/h100/bf16/16@bridge-main", &norms, Field::RecomputeModules));
    }

    #[test]
    fn hybrids_are_divided_evenly() {
        let takes = |fields: &[(Field, &str)], field: Field| {
            let scenario = scenario("nemotron-h-56b/h100/fp8-current/64@bridge-main", fields);
            takes(scenario.recipe.unwrap(), &scenario, field)
        };
        assert!(takes(&[(Field::Pp, "2")], Field::Pp));
        assert!(!takes(&[(Field::Pp, "4")], Field::Pp), "118 layers");
        assert!(!takes(&[(Field::Pp, "2"), (Field::Vp, "59")], Field::Vp));
        assert!(!takes(&[(Field::Pp, "2"), (Field::PipelineSplit, "60,58")], Field::PipelineSplit));
    }

    #[test]
    fn an_exchange_that_can_not_overlap_does_not() {
        let off = "comm_overlap.overlap_moe_expert_parallel_comm=false";
        let turns_off = |recipe: &str, fields: &[(Field, &str)]| {
            let scenario = scenario(recipe, fields);
            assignments(scenario.recipe.unwrap(), &scenario).iter().any(|argument| argument == off)
        };
        let id = "qwen3-235b-a22b/h100/bf16/256@bridge-main";
        assert!(!turns_off(id, &[(Field::Vp, "2")]));
        assert!(turns_off(id, &[(Field::Vp, "1")]));
        assert!(turns_off(id, &[(Field::Ep, "1")]));
        assert!(turns_off(id, &[(Field::Recompute, "full")]));
        // This recipe doesn't overlap it.
        assert!(!turns_off("qwen3-235b-a22b/b200/bf16/64@bridge-main", &[(Field::Vp, "1")]));
    }

    #[test]
    fn full_recomputation_costs_graphs() {
        let of = |recipe: &str, fields: &[(Field, &str)]| {
            let scenario = scenario(recipe, fields);
            software(scenario.recipe.unwrap(), &scenario).to_string()
        };
        let id = "qwen3-235b-a22b/h100/bf16/256@bridge-main";
        assert_eq!(of(id, &[]), "megatron-bridge-26.06");
        let full = of(id, &[(Field::Recompute, "full")]);
        assert_eq!(full, "megatron-bridge-26.06:cuda_graphs=none");
    }
}
