//! Megatron-Bridge's own performance recipes (`src/megatron/bridge/perf_recipes`), launched by its scripts/training/train.sh.
//!
//! Source: NVIDIA-NeMo/Megatron-Bridge, main at 067f987df (2026-08-22).

use super::{
    BatchRule, ExperimentName, Fp8Scaling, LoggedTflops, ProfileRun, ReleaseContract, ReleaseSoftware,
    ScriptContract, SetupStep, TokenUse, TraceRun,
};
use crate::log::{Format, Span, Window};
use crate::precision::Dtype;
use crate::stack::Stack;

pub(super) const SOFTWARE: ReleaseSoftware = ReleaseSoftware {
    stack: Stack::Bridge2606,
    // Its recipes name the exact precision.
    fp8: Fp8Scaling { runs: Dtype::Fp8Current, documented: Dtype::Fp8Current },
    has_flops_formulas: false,
    measured: ("megatron-bridge", "26.08"),
};

pub(super) const CONTRACT: ReleaseContract = contract(&[SetupStep::BridgeCheckout("067f987df")]);

/// Returns the contract of a version of Megatron-Bridge that is set up like this.
pub(super) const fn contract(setup: &'static [SetupStep]) -> ReleaseContract {
    ReleaseContract {
        // As in its model verification cards: the last ten of 50 steps.
        window: Window::Labels(Span { first: 41, last: 50 }),
        scoring_program: None,
        batch: BatchRule::AsRecipe,
        stand_in_gpu: None,
        llmb_run: None,
        one_job_at_a_time: false,
        logs_count_restarts: true,
        profiled_ranks: "",
        moved: "",
        setup,
        runai_setup: &[],
        scripts: &[ScriptContract {
            family: "",
            experiment: ExperimentName::BridgeRecipe,
            log: Format::MegatronBridge,
            logged_tflops: LoggedTflops::Valid,
            profile: ProfileRun::KeepsSteps,
            trace: TraceRun::Unsupported,
            token: TokenUse::Always,
            access: "For Llama models, also ask for access on the model's page.",
            mounts_top_directory_only: false,
        }],
    }
}
