//! What is left to say of each release: where its scripts do otherwise than their document, and what makes a
//! run of it comparable.

use super::choice::Style;
use super::plan::Plan;
use crate::catalog::{Baseline, Catalog, Release};
use crate::field::Field;
use crate::precision::Width;
use crate::problem::Problem;

pub(super) fn apply(plan: &mut Plan) {
    match (plan.release(), plan.script().family.as_str()) {
        (Release::R24_11, _) => r24_11(plan),
        (Release::R25_04, "llama3.1") => r25_04_llama(plan),
        (Release::R25_04, _) => {}
        (Release::R25_05, _) => r25_05(plan),
        (Release::R25_12, _) => r25_12(plan),
    }
    unpublished_scale(plan);
}

fn r24_11(plan: &mut Plan) {
    if plan.scenario.gpu.id == "a100" {
        plan.incomparable.push("the release publishes no number for A100".into());
    }
    if plan.target.gpus_per_node != plan.target.limits.gpus_per_node {
        plan.incomparable.push("the release sets its global batch by nodes, for nodes of 8 GPUs".into());
    }
}

fn r25_04_llama(plan: &mut Plan) {
    plan.need("HF_TOKEN", "your Hugging Face token, which must have access to Llama 3.1");
    plan.warn(
        "launch.sh passes HF_TOKEN on as an argument: while it submits, whoever can list processes on that \
         machine can read it.",
        "Submit from a machine that others can't log in to, or revoke the token afterwards.",
    );
    let options = plan.options;
    if !plan.runs_plain() {
        if !options.profile && !options.nccl_trace {
            let what = "leaves nothing to run without --profile or --nccl-trace";
            plan.refuse(Problem::clause(Field::Env, "DISABLE_PERFRUN", what));
        }
        return;
    }
    if options.profile {
        let steps = plan.steps;
        plan.warn(
            format!(
                "A second job is submitted, the profiled one, and the plain run is cut to {steps} steps \
                     too."
            ),
            "Measure in a launch without --profile; DISABLE_PERFRUN=true under --env leaves the plain run \
             out of this one.",
        );
    }
    if options.nccl_trace {
        plan.warn(
            "Another job is submitted, the traced one of 5 steps and 15 minutes.",
            "Measure in a launch without --nccl-trace; DISABLE_PERFRUN=true under --env leaves the plain \
             run out of this one.",
        );
    }
    if options.profile && options.nccl_trace {
        plan.warn(
            "The document calls profile and NCCL trace mutually exclusive; the script submits a job for \
             each all the same.",
            "Launch one after the other.",
        );
    }
}

fn r25_05(plan: &mut Plan) {
    plan.warn(
        "The TFLOPS_per_GPU that Nemotron-H logs are invalid, as its own document says.",
        "Go by the step time: Trainplan counts the model's FLOPs itself.",
    );
}

fn r25_12(plan: &mut Plan) {
    if plan.scenario.dtype.width() == Width::Fp8 {
        plan.warn("FP8 runs with per-tensor current scaling, though the document says delayed scaling.", "");
    }
}

fn unpublished_scale(plan: &mut Plan) {
    let (release, gpus) = (plan.release(), plan.gpus());
    if plan.target.publishes(gpus) {
        return;
    }
    let scales: Vec<String> = plan.target.scales.iter().map(u32::to_string).collect();
    plan.incomparable.push(format!("release {release} publishes nothing on {gpus} GPUs"));
    if plan.style != Style::LlmbRun {
        plan.warn(
            format!(
                "Release {release} was published on {} GPUs; its script takes {gpus} unchecked.",
                scales.join(", ")
            ),
            "Choose one of these to have a tested configuration.",
        );
    }
}

/// The published measurement of what the plan runs.
pub(super) fn baseline(plan: &Plan) -> Option<&'static Baseline> {
    let id = plan.recipe_id();
    Catalog::embedded().baseline(&id).filter(|_| plan.scenario.gpu.id == id.gpu)
}
