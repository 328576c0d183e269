//! The layout: parallelism, pipeline stages and overlap.

use super::job::MegatronJob;
use crate::field::Field;
use crate::launch::word::ShellWord;
use crate::layout::PipelineSplit;
use crate::message;
use crate::message::Setting;
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
    if job.scenario.options.overlap && job.software.properties().overlaps_tp && layout.tp() > 1 {
        job.flag("--tp-comm-overlap");
    }
    sharding(job);
    connections(job);
}

/// Assigns layers to stages: with the simple flags if possible, otherwise layer by layer.
fn pipeline(job: &mut MegatronJob) {
    let scenario = job.scenario;
    let (layout, layers) = (&scenario.layout, scenario.architecture.layers);
    let (pp, vp) = (layout.pp(), layout.vp());
    let chunks = pp.saturating_mul(vp);
    let alike = layout.stages().iter().all(|stage| stage.saturating_mul(pp) == layers);
    let even = alike && layers.is_multiple_of(chunks);
    let counted = *layout.split() == PipelineSplit::Counted && (layers + 2).is_multiple_of(chunks);
    if scenario.architecture.mamba.is_some() {
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
        job.set("--pipeline-model-parallel-layout", by_layer(job));
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

/// Returns every chunk's layers in pipeline order, as `Et*15|t*16|…|t*15L`, starting with the first chunk of
/// each stage.
fn by_layer(job: &MegatronJob) -> String {
    let (layout, architecture) = (&job.scenario.layout, &job.scenario.architecture);
    let (pp, vp) = (layout.pp(), layout.vp());
    let counts: Vec<u32> = match layout.split() {
        PipelineSplit::Weighed | PipelineSplit::Explicit(_) => {
            let of = |round: u32, stage: u32| stage / vp + u32::from(round < stage % vp);
            (0..vp).flat_map(|round| layout.stages().iter().map(move |stage| of(round, *stage))).collect()
        }
        // As in `layout`: the first chunks take the remainder. In a counted split, the embedding and the loss
        // are a layer each.
        split => {
            let extra = u32::from(*split == PipelineSplit::Counted);
            let (total, chunks) = (architecture.layers + 2 * extra, pp * vp);
            let share = |chunk: u32| total / chunks + u32::from(chunk < total % chunks);
            let ends = |chunk: u32| extra * (u32::from(chunk == 0) + u32::from(chunk + 1 == chunks));
            (0..chunks).map(|chunk| share(chunk).saturating_sub(ends(chunk))).collect()
        }
    };
    let layers = |symbol: char, count: u32| match count {
        0 => String::new(),
        1 => symbol.to_string(),
        _ => format!("{symbol}*{count}"),
    };
    let chunks: Vec<String> = counts.into_iter().map(|count| layers('t', count)).collect();
    format!("E{}{}L", chunks.join("|"), layers('m', architecture.mtp_layers))
}

/// Groups micro batches for interleaved chunks. No group can be smaller than the pipeline.
fn interleaving(job: &mut MegatronJob) {
    let (layout, batch) = (&job.scenario.layout, &job.scenario.batch);
    let (pp, vp, ga) = (layout.pp(), layout.vp(), batch.ga());
    if ga < pp {
        let step = batch.gbs() / ga * pp;
        let message = message![
            Setting::new(Field::Gbs, batch.gbs()),
            format!(" gives {ga} micro batches, too few for {vp} interleaved chunks on each of {pp} stages.")
        ];
        job.refuse(Problem::new(Field::Gbs, batch.gbs(), message).suggest([step]));
    } else if !ga.is_multiple_of(pp) {
        // The smallest group that leaves no remainder.
        let group = (pp..=ga).find(|group| ga.is_multiple_of(*group)).unwrap_or(ga);
        job.set("--microbatch-group-size-per-virtual-pipeline-stage", group);
        job.warn(
            format!(
                "{ga} micro batches are not a multiple of PP {pp}. They run in groups of {group}, \
                     which takes more memory."
            ),
            message!["Choose ", Field::Gbs, " for a multiple."],
        );
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
                " exclude each other: Megatron-LM doesn't shard pipeline stages."
            ];
            job.refuse(Problem::new(Field::Pp, pp, message).suggest([1]));
        }
    }
    if options.overlap && job.software.properties().overlaps_dp {
        job.flag("--overlap-grad-reduce");
        job.flag("--overlap-param-gather");
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
