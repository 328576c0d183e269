//! Release 26.06.01: launch.sh and llmb-run, on Megatron-Bridge's own launcher.

use super::{
    BatchRule, ExperimentName, Fp8Scaling, LoggedTflops, ProfileRun, ReleaseContract, ReleaseSoftware,
    ScriptContract, SetupStep, TokenUse, TraceRun,
};
use crate::log::{Format, Span, Window};
use crate::precision::Dtype;
use crate::stack::Stack;

pub(super) const SOFTWARE: ReleaseSoftware = ReleaseSoftware {
    stack: Stack::Bridge2602,
    // Its recipes differ, so each names its own.
    fp8: Fp8Scaling { runs: Dtype::Fp8Current, documented: Dtype::Fp8Current },
    has_flops_formulas: false,
    measured: ("dgxc-seed", "26.06.01"),
};

pub(super) const CONTRACT: ReleaseContract = ReleaseContract {
    window: Window::Labels(Span { first: 35, last: 44 }),
    scoring_program: Some("llmb-run jobs"),
    batch: BatchRule::AsRecipe,
    stand_in_gpu: None,
    llmb_run: Some("submit"),
    one_job_at_a_time: false,
    logs_count_restarts: true,
    profiled_ranks: "Every rank writes one.",
    moved: "",
    setup: &[SetupStep::Installer { or_by_hand: false }],
    runai_setup: &[],
    scripts: &[
        script("llama3.1", ProfileRun::KeepsSteps),
        script("deepseek-v3", ProfileRun::KeepsSteps),
        script("gpt-oss", ProfileRun::KeepsSteps),
        script("kimi-k2", ProfileRun::KeepsSteps),
        script("qwen3", ProfileRun::EndsRun),
        script("nemotron-3", ProfileRun::KeepsSteps),
        script("nemotron-h", ProfileRun::KeepsSteps),
    ],
};

/// Returns how a script behaves: all of them call the same program.
const fn script(family: &'static str, profile: ProfileRun) -> ScriptContract {
    ScriptContract {
        family,
        experiment: ExperimentName::Bridge,
        log: Format::MegatronBridge,
        logged_tflops: LoggedTflops::Valid,
        profile,
        trace: TraceRun::Unsupported,
        token: TokenUse::Never,
        access: "",
        mounts_top_directory_only: false,
    }
}
