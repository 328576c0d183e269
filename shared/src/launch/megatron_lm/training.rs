//! Training: batch, steps, optimizer, data, recomputation, checkpoints, profile and trace.

use super::job::MegatronJob;
use super::support::format;
use crate::field::Field;
use crate::launch::plan::given_fields;
use crate::launch::word::ShellWord;
use crate::message;
use crate::message::Setting;
use crate::options::Recompute;
use crate::precision::Dtype;
use crate::problem::Problem;

pub(super) fn apply(job: &mut MegatronJob) {
    let batch = job.scenario.batch;
    job.group("Training");
    job.set("--micro-batch-size", batch.mbs());
    job.set("--global-batch-size", batch.gbs());
    job.set("--train-iters", job.steps);
    job.set("--lr", "1e-4");
    job.set("--min-lr", "1e-5");
    job.set("--lr-decay-style", "cosine");
    job.set("--weight-decay", "0.1");
    job.set("--clip-grad", "1.0");
    job.set("--adam-beta1", "0.9");
    job.set("--adam-beta2", "0.95");
    job.flag("--cross-entropy-loss-fusion");
    job.set("--cross-entropy-fusion-impl", "te");
    // All ranks collect garbage at the same steps, so that they don't wait for each other at different ones.
    job.flag("--manual-gc");
    job.set("--manual-gc-interval", 100);
    // Large models take longer to build than the default of ten minutes.
    job.set("--distributed-timeout-minutes", 60);
    recompute(job);
    offload(job);
    job.group("Data");
    job.flag("--mock-data");
    job.set("--split", "99,1,0");
    job.flag("--no-create-attention-mask-in-dataloader");
    job.set("--eval-iters", 0);
    job.group("Log");
    job.set("--log-interval", 1);
    job.flag("--log-throughput");
    checkpoint(job);
    profile(job);
    nccl_trace(job);
}

fn recompute(job: &mut MegatronJob) {
    let options = &job.scenario.options;
    let mut modules = options.modules.names();
    match options.recompute {
        Recompute::None if modules.is_empty() => {}
        Recompute::None => selective(job, modules),
        // Megatron-LM's default is core_attn alone.
        Recompute::Selective if modules.is_empty() => job.set("--recompute-granularity", "selective"),
        Recompute::Selective => {
            modules.insert(0, "core_attn");
            selective(job, modules);
        }
        Recompute::Full => {
            job.set("--recompute-granularity", "full");
            job.set("--recompute-method", "uniform");
            job.set("--recompute-num-layers", 1);
        }
    }
}

fn offload(job: &mut MegatronJob) {
    let layers = job.scenario.options.offload_layers;
    if layers == 0 {
        return;
    }
    let message = message![
        Setting::new(Field::OffloadLayers, layers),
        ": not every Megatron-LM that these scripts run on can keep activations in CPU memory. Use ",
        Setting::new(Field::OffloadLayers, 0),
        ", and ",
        Setting::new(Field::Recompute, "full"),
        " if memory is short."
    ];
    job.refuse(Problem::new(Field::OffloadLayers, layers, message));
}

fn selective(job: &mut MegatronJob, modules: Vec<&'static str>) {
    let recomputed = job.scenario.options.modules;
    // transformer_config.py: "Delayed scaling does not support moe_act and layernorm recompute for fp8."
    if format(job.scenario) == Dtype::Fp8Delayed && (recomputed.moe_act || recomputed.layernorm) {
        let message = message![
            Setting::new(Field::RecomputeModules, recomputed),
            ": Megatron-LM recomputes neither moe_act nor layernorm with delayed scaling. Use another ",
            Field::Dtype,
            ", such as fp8-current."
        ];
        job.refuse(Problem::new(Field::RecomputeModules, recomputed, message));
    }
    job.set("--recompute-granularity", "selective");
    job.words("--recompute-modules", modules.into_iter().map(ShellWord::of).collect());
}

fn checkpoint(job: &mut MegatronJob) {
    let options = job.options;
    // FSDP supports only its own format, and needs it even if nothing is saved.
    let fsdp = job.scenario.options.fsdp;
    if !fsdp && !options.save_checkpoint && options.load_checkpoint.is_none() {
        return;
    }
    job.group("Checkpoints");
    job.set("--ckpt-format", if fsdp { "fsdp_dtensor" } else { "torch_dist" });
    if options.save_checkpoint {
        job.words("--save", vec![ShellWord::variable("run").then("/checkpoints")]);
        job.set("--save-interval", job.steps);
        job.incomparable.push("saving a checkpoint slows the last step".into());
    }
    if let Some(path) = &options.load_checkpoint {
        job.words("--load", vec![path.clone()]);
        job.flag("--exit-on-missing-checkpoint");
        job.warn(
            format!("The run continues from the checkpoint's step and ends after step {}.", job.steps),
            message!["Set ", Field::MaxSteps, ", counted from the first step of the run that saved it."],
        );
    }
}

fn profile(job: &mut MegatronJob) {
    let options = job.options;
    if !options.profile {
        let without_effect = given_fields(&[
            (Field::ProfileStartStep, options.profile_start_step.is_some()),
            (Field::ProfileStopStep, options.profile_stop_step.is_some()),
            (Field::GpuMetrics, options.gpu_metrics),
        ]);
        if let Some(fields) = without_effect {
            job.warn(
                message!["Without a profile, "].and(fields).and(" has no effect."),
                message!["Set ", Field::Profile, "."],
            );
        }
        return;
    }
    let stop = options.profile_stop_step.unwrap_or(job.steps);
    let start = options.profile_start_step.unwrap_or(stop.saturating_sub(4).max(1));
    if stop > job.steps {
        let message = format!("The last profiled step, {stop}, is after the run's last step, {}.", job.steps);
        job.refuse(Problem::new(Field::ProfileStopStep, stop, message).suggest([job.steps]));
    }
    if start > stop {
        let message = format!("The first profiled step, {start}, is after the last one, {stop}.");
        job.refuse(Problem::new(Field::ProfileStartStep, start, message).suggest([stop]));
    }
    job.group("Profile");
    job.flag("--profile");
    // The flags count the steps before the profile starts and stops.
    job.set("--profile-step-start", start.saturating_sub(1));
    job.set("--profile-step-end", stop);
    job.incomparable.push("Nsight Systems slows the profiled steps".into());
}

fn nccl_trace(job: &mut MegatronJob) {
    if !job.options.nccl_trace {
        return;
    }
    job.export("NCCL_DEBUG", ShellWord::of("INFO"));
    job.export("NCCL_DEBUG_SUBSYS", ShellWord::of("COLL,P2P,NET"));
    job.incomparable.push("logging every NCCL call slows the steps".into());
    if job.steps > 5 {
        let steps = job.steps;
        job.warn(
            format!("NCCL logs every call of {steps} steps: the log can exceed 10 GB."),
            message!["Set ", Setting::new(Field::MaxSteps, 5), "."],
        );
    }
}
