//! The layout: parallelism, pipeline stages and overlap.

use super::job::MegatronJob;
use crate::batch::MicrobatchGroups;
use crate::catalog::Catalog;
use crate::field::Field;
use crate::launch::chunks::{by_chunk, group_warning, is_counted, is_even, prediction_warning};
use crate::launch::word::ShellWord;
use crate::message;
use crate::message::{Message, Setting};
use crate::problem::Problem;

pub(super) fn apply(job: &mut MegatronJob) {
    let layout = &job.scenario.layout;
    job.group("Layout");
    job.set("--tensor-model-parallel-size", layout.tp());
    if layout.tp() > 1 {
        job.flag("--sequence-parallel");
    }
    job.set("--pipeline-model-parallel-size", layout.pp());
    job.set("--context-parallel-size", layout.cp());
    if job.scenario.architecture.moe.is_some() {
        job.set("--expert-model-parallel-size", layout.ep());
        // Without it, experts would be split like the other layers.
        job.set("--expert-tensor-parallel-size", layout.expert_tp());
    }
    if layout.pp() > 1 {
        pipeline(job);
    }
    if job.training().overlaps_tp() && layout.tp() > 1 {
        job.flag("--tp-comm-overlap");
    }
    sharding(job);
    connections(job);
}

/// Assigns layers to stages: with the simple flags if possible, otherwise layer by layer.
fn pipeline(job: &mut MegatronJob) {
    let scenario = job.scenario;
    let (layout, architecture) = (&scenario.layout, &scenario.architecture);
    let (layers, vp) = (architecture.layers, layout.vp());
    let (even, counted) = (is_even(layout, layers), is_counted(layout, layers));
    if architecture.mamba.is_some() {
        whole_stages(job, even);
    } else if even || counted {
        if counted {
            job.flag("--account-for-embedding-in-pipeline-split");
            job.flag("--account-for-loss-in-pipeline-split");
        }
        if vp > 1 {
            job.set("--num-virtual-stages-per-pipeline-rank", vp);
        }
    } else {
        let chunks = by_chunk(layout, layers, architecture.mtp_layers);
        job.set("--pipeline-model-parallel-layout", chunks);
    }
    if let Some((text, fix)) = prediction_warning(layout, architecture) {
        job.warn(text, fix);
    }
    if vp > 1 {
        interleaving(job);
    }
}

/// Refuses uneven stages and chunks of hybrids.
fn whole_stages(job: &mut MegatronJob, even: bool) {
    let layout = &job.scenario.layout;
    let (pp, layers) = (layout.pp(), job.scenario.architecture.layers);
    if layout.vp() > 1 {
        let vp = layout.vp();
        let message =
            message![Setting::new(Field::Vp, vp), " isn't supported for hybrids by pretrain_mamba.py."];
        job.refuse(Problem::new(Field::Vp, vp, message).suggest([1]));
    } else if !even {
        let message = message![
            Setting::new(Field::Pp, pp),
            format!(
                " divides a hybrid's {layers} layers unevenly, which pretrain_mamba.py doesn't support. \
                 Use a divisor of {layers}."
            )
        ];
        job.refuse(Problem::new(Field::Pp, pp, message));
    }
}

/// Groups micro batches for interleaved chunks.
fn interleaving(job: &mut MegatronJob) {
    let (layout, batch) = (&job.scenario.layout, &job.scenario.batch);
    let (pp, vp, ga) = (layout.pp(), layout.vp(), batch.ga());
    match MicrobatchGroups::of(layout, batch) {
        MicrobatchGroups::Usual => {}
        MicrobatchGroups::Of(group) => job.set("--microbatch-group-size-per-virtual-pipeline-stage", group),
        MicrobatchGroups::Impossible => {
            let step = batch.gbs() / ga * pp;
            let message = message![
                Setting::new(Field::Gbs, batch.gbs()),
                format!(
                    " gives {ga} micro batches, too few for {vp} interleaved chunks on each of {pp} stages."
                )
            ];
            job.refuse(Problem::new(Field::Gbs, batch.gbs(), message).suggest([step]));
        }
    }
    if let Some((text, fix)) = group_warning(job.scenario) {
        job.warn(text, fix);
    }
    if !job.scenario.options.overlap && pp > 2 {
        job.flag("--no-overlap-p2p-communication");
    }
}

/// Shards the optimizer's state, or with FSDP everything, over the data-parallel ranks.
fn sharding(job: &mut MegatronJob) {
    let options = &job.scenario.options;
    let pp = job.scenario.layout.pp();
    job.group("Data parallelism");
    job.flag("--use-distributed-optimizer");
    if options.fsdp {
        job.flag("--use-megatron-fsdp");
        job.set("--data-parallel-sharding-strategy", "optim_grads_params");
        job.flag("--no-gradient-accumulation-fusion");
        // Otherwise every GPU would hold the whole model before it is sharded.
        job.flag("--init-model-with-meta-device");
        if pp > 1 {
            let message = message![
                Setting::new(Field::Pp, pp),
                " and ",
                Field::Fsdp,
                " can't be combined: Megatron-LM doesn't shard pipeline stages."
            ];
            job.refuse(Problem::new(Field::Pp, pp, message).suggest([1]));
        }
        compare_with_recipe(job);
    }
    if options.overlap && job.software.properties().overlaps_dp {
        job.flag("--overlap-grad-reduce");
        job.flag("--overlap-param-gather");
    }
}

/// Names the settings of the nearest published recipe with FSDP that the script lacks: most of those recipes keep activations in
/// CPU memory, or recompute parts of each layer.
fn compare_with_recipe(job: &mut MegatronJob) {
    let scenario = job.scenario;
    let recipes = Catalog::embedded().recipes().iter().filter(|recipe| {
        recipe.fsdp
            && recipe.id.model == scenario.model.id
            && recipe.id.gpu == scenario.gpu.id
            && scenario.has_precision_of(recipe)
    });
    let nearest = recipes.min_by_key(|recipe| recipe.id.gpus.abs_diff(scenario.layout.gpus()));
    let Some(recipe) = nearest else { return };
    let mut lacking = Vec::new();
    if recipe.offload_layers != scenario.options.offload_layers {
        lacking.push(Setting::new(Field::OffloadLayers, recipe.offload_layers));
    }
    if recipe.modules != scenario.options.modules {
        lacking.push(Setting::new(Field::RecomputeModules, recipe.modules));
    }
    let settings =
        lacking.into_iter().map(Message::from).reduce(|list, setting| list.and(" and ").and(setting));
    if let Some(settings) = settings {
        job.warn(
            message![format!("{}, a recipe with FSDP for this model and GPU type, runs with ", recipe.id)]
                .and(settings)
                .and(". This script doesn't, so its memory and speed are not those of the recipe."),
            "Launch the recipe for a run like the published ones.",
        );
    }
}

/// Before Blackwell, kernels of tensor and context parallelism must start in launch order. FSDP needs several
/// queues.
fn connections(job: &mut MegatronJob) {
    const NAME: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    let layout = &job.scenario.layout;
    if job.scenario.options.fsdp {
        job.unset.push(NAME);
    } else if !job.on_blackwell() && (layout.tp() > 1 || layout.cp() > 1) {
        job.export(NAME, ShellWord::of(1));
    }
}
