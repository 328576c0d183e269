//! Release 25.05: launch.sh and llmb-run, under LLMB_INSTALL.

use super::{
    BatchRule, ExperimentName, Fp8Scaling, LoggedTflops, ProfileRun, ReleaseContract, ReleaseSoftware,
    ScriptContract, SetupStep, TokenUse, TraceRun, TracedJob,
};
use crate::log::{Format, Span, Window};
use crate::precision::Dtype;
use crate::stack::Stack;

pub(super) const SOFTWARE: ReleaseSoftware = ReleaseSoftware {
    stack: Stack::Nemo2,
    fp8: Fp8Scaling { runs: Dtype::Fp8Delayed, documented: Dtype::Fp8Delayed },
    has_flops_formulas: true,
    measured: ("dgxc-seed", "25.05"),
};

pub(super) const CONTRACT: ReleaseContract = ReleaseContract {
    window: Window::Labels(Span { first: 11, last: 44 }),
    scoring_program: Some("common/parse_train_timing.sh"),
    batch: BatchRule::AsRecipe,
    stand_in_gpu: None,
    llmb_run: Some("single"),
    one_job_at_a_time: false,
    logs_count_restarts: true,
    profiled_ranks: "Every rank writes one, although the document says ranks 0 to 8.",
    moved: "If you used an earlier release: LLMB_INSTALL replaces STAGE_PATH, which must not be set, and \
            results are in its workloads directory.",
    setup: &[
        SetupStep::Installer { or_by_hand: true },
        SetupStep::PythonEnvironment,
        SetupStep::SetupByHand,
        SetupStep::ImportContainer,
    ],
    runai_setup: &[],
    scripts: &[ScriptContract {
        family: "nemotron-h",
        experiment: ExperimentName::WithLayout { family: "nemotronh", vp: false },
        log: Format::Nemo2,
        logged_tflops: LoggedTflops::Invalid,
        profile: ProfileRun::EndsRun,
        trace: TraceRun::ReplacesRun(TracedJob { steps: 5, minutes: 15 }),
        token: TokenUse::Never,
        access: "",
        mounts_top_directory_only: false,
    }],
};
