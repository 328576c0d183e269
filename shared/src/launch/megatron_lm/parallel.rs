//! The layout: degrees of parallelism, how layers fall on pipeline stages, and what overlaps.

use super::job::Job;
use crate::architecture::AttentionKind;
use crate::field::Field;
use crate::launch::word::Word;
use crate::layout::PipelineSplit;
use crate::precision::Dtype;
use crate::problem::Problem;

pub(super) fn apply(job: &mut Job) {
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
        // Without it an expert would be cut as the rest is.
        job.set("--expert-tensor-parallel-size", layout.expert_tp());
    }
    if layout.pp() > 1 {
        pipeline(job);
    }
    if job.scenario.options.overlap {
        tensor_overlap(job);
    }
    sharding(job);
    connections(job);
}

/// How layers fall on the stages: by the plain flags where they can say it, otherwise layer by layer.
fn pipeline(job: &mut Job) {
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

/// Hybrids know neither uneven stages nor chunks.
fn whole_stages(job: &mut Job, even: bool) {
    let layout = &job.scenario.layout;
    let (pp, layers) = (layout.pp(), job.scenario.architecture.layers);
    if layout.vp() > 1 {
        let what = "makes chunks of a hybrid's layers, which pretrain_mamba.py can't";
        job.refuse(Problem::clause(Field::Vp, layout.vp(), what).nearest([1]));
    } else if !even {
        let what = format!("gives a hybrid's {layers} layers uneven stages, which pretrain_mamba.py can't");
        job.refuse(Problem::clause(Field::Pp, pp, what).allowed(format!("a divisor of {layers}")));
    }
}

/// Every chunk's layers in pipeline order, as `Et*15|t*16|…|t*15L`: first the first chunk of every stage.
fn by_layer(job: &Job) -> String {
    let (layout, architecture) = (&job.scenario.layout, &job.scenario.architecture);
    let (pp, vp) = (layout.pp(), layout.vp());
    let counts: Vec<u32> = match layout.split() {
        PipelineSplit::Explicit(_) => {
            let of = |round: u32, stage: u32| stage / vp + u32::from(round < stage % vp);
            (0..vp).flat_map(|round| layout.stages().iter().map(move |stage| of(round, *stage))).collect()
        }
        // As the layout reckons: what is left over falls on the first chunks, the embedding and the loss counting as
        // a layer each where they shall.
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

/// Interleaved chunks take micro batches in groups, of which none may be smaller than the pipeline.
fn interleaving(job: &mut Job) {
    let (layout, batch) = (&job.scenario.layout, &job.scenario.batch);
    let (pp, vp, ga) = (layout.pp(), layout.vp(), batch.ga());
    if ga < pp {
        let step = batch.gbs() / ga * pp;
        let what =
            format!("makes {ga} micro batches, too few for {vp} interleaved chunks on each of {pp} stages");
        job.refuse(Problem::clause(Field::Gbs, batch.gbs(), what).nearest([step]));
    } else if !ga.is_multiple_of(pp) {
        // The smallest group that leaves no remainder.
        let group = (pp..=ga).find(|group| ga.is_multiple_of(*group)).unwrap_or(ga);
        job.set("--microbatch-group-size-per-virtual-pipeline-stage", group);
        job.warn(
            format!("{ga} micro batches are no multiple of PP = {pp}: they go in groups of {group}, which needs more memory."),
            "Choose a --gbs that makes them one.",
        );
    }
    if !job.scenario.options.overlap && pp > 2 {
        job.flag("--no-overlap-p2p-communication");
    }
}

/// What the data-parallel ranks share: the optimizer's state, or everything.
fn sharding(job: &mut Job) {
    let options = &job.scenario.options;
    let pp = job.scenario.layout.pp();
    job.group("Data parallelism");
    job.flag("--use-distributed-optimizer");
    if options.fsdp {
        job.flag("--use-megatron-fsdp");
        job.set("--data-parallel-sharding-strategy", "optim_grads_params");
        job.flag("--no-gradient-accumulation-fusion");
        if pp > 1 {
            let what = "can't go with FSDP under Megatron-LM, which shards stages of no pipeline";
            job.refuse(Problem::clause(Field::Pp, pp, what).nearest([1]));
        }
    }
    if options.overlap {
        job.flag("--overlap-grad-reduce");
        job.flag("--overlap-param-gather");
    }
}

/// Communication of tensor parallelism behind its matrix multiplications: in dense layers, within a node, and in the
/// formats that every Transformer Engine since 2.0 can do it for.
fn tensor_overlap(job: &mut Job) {
    let scenario = job.scenario;
    let (tp, architecture) = (scenario.layout.tp(), &scenario.architecture);
    let plain = matches!(architecture.attention.kind, AttentionKind::Gqa { .. })
        && architecture.moe.is_none()
        && architecture.mamba.is_none();
    let format = matches!(scenario.dtype, Dtype::Bf16 | Dtype::Fp8Delayed);
    if tp > 1 && tp <= job.per_node && plain && format && !scenario.options.fsdp {
        job.flag("--tp-comm-overlap");
    }
}

/// Before Blackwell, kernels of tensor and context parallelism must start in the order in which they are launched;
/// FSDP on the other hand needs the queues.
fn connections(job: &mut Job) {
    const NAME: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
    let layout = &job.scenario.layout;
    if job.scenario.options.fsdp {
        job.unset.push(NAME);
    } else if !job.on_blackwell() && (layout.tp() > 1 || layout.cp() > 1) {
        job.export(NAME, Word::of(1));
    }
}
