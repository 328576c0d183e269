//! How it trains: batch, steps, optimizer, data, recomputation, checkpoints, and what is watched meanwhile.

use super::job::Job;
use crate::field::Field;
use crate::launch::plan::flags_of;
use crate::launch::word::Word;
use crate::options::Recompute;
use crate::problem::Problem;

pub(super) fn apply(job: &mut Job) {
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
    // Every rank collects garbage at the same steps, or each would make the others wait at another.
    job.flag("--manual-gc");
    job.set("--manual-gc-interval", 100);
    // Large models take longer than the usual ten minutes to build.
    job.set("--distributed-timeout-minutes", 60);
    recompute(job);
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

fn recompute(job: &mut Job) {
    match job.scenario.options.recompute {
        Recompute::None => {}
        Recompute::Selective => job.set("--recompute-granularity", "selective"),
        Recompute::Full => {
            job.set("--recompute-granularity", "full");
            job.set("--recompute-method", "uniform");
            job.set("--recompute-num-layers", 1);
        }
    }
}

fn checkpoint(job: &mut Job) {
    let options = job.options;
    // FSDP knows no other format, and says so even where nothing is saved.
    let fsdp = job.scenario.options.fsdp;
    if !fsdp && !options.save_checkpoint && options.load_checkpoint.is_none() {
        return;
    }
    job.group("Checkpoints");
    job.set("--ckpt-format", if fsdp { "fsdp_dtensor" } else { "torch_dist" });
    if options.save_checkpoint {
        job.words("--save", vec![Word::variable("run").then("/checkpoints")]);
        job.set("--save-interval", job.steps);
        job.incomparable.push("saving a checkpoint slows the last step".into());
    }
    if let Some(path) = &options.load_checkpoint {
        job.words("--load", vec![path.clone()]);
        job.flag("--exit-on-missing-checkpoint");
        job.warn(
            format!("The run goes on where the checkpoint was saved and ends after step {}.", job.steps),
            "Give --max-steps, counted from the first step of the run that saved it.",
        );
    }
}

fn profile(job: &mut Job) {
    let options = job.options;
    if !options.profile {
        let without_effect = flags_of(&[
            (Field::ProfileStartStep, options.profile_start_step.is_some()),
            (Field::ProfileStopStep, options.profile_stop_step.is_some()),
            (Field::GpuMetrics, options.gpu_metrics),
        ]);
        if let Some(flags) = without_effect {
            let text = format!("A run that is not profiled has no use for {flags}.");
            job.warn(text, "Give --profile, or leave it out.");
        }
        return;
    }
    let stop = options.profile_stop_step.unwrap_or(job.steps);
    let start = options.profile_start_step.unwrap_or(stop.saturating_sub(4).max(1));
    if stop > job.steps {
        let what = format!("is after the last step, {}: nothing would be profiled to its end", job.steps);
        job.refuse(Problem::clause(Field::ProfileStopStep, stop, what).nearest([job.steps]));
    }
    if start > stop {
        let what = format!("is after the last profiled step, {stop}");
        job.refuse(Problem::clause(Field::ProfileStartStep, start, what).nearest([stop]));
    }
    job.group("Profile");
    job.flag("--profile");
    // It starts after so many steps and stops after that many.
    job.set("--profile-step-start", start.saturating_sub(1));
    job.set("--profile-step-end", stop);
    job.incomparable.push("Nsight Systems slows the steps that it watches".into());
}

fn nccl_trace(job: &mut Job) {
    if !job.options.nccl_trace {
        return;
    }
    job.export("NCCL_DEBUG", Word::of("INFO"));
    job.export("NCCL_DEBUG_SUBSYS", Word::of("COLL,P2P,NET"));
    job.incomparable.push("writing down every NCCL call slows the steps".into());
    if job.steps > 5 {
        let steps = job.steps;
        job.warn(
            format!("NCCL writes down every call of {steps} steps: the log may grow beyond 10 GB."),
            "Give --max-steps 5.",
        );
    }
}
