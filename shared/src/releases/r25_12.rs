//! Release 25.12: launch.sh and llmb-run, under LLMB_INSTALL, on Slurm and Run:ai.

use super::{
    BatchRule, ExperimentName, Fp8Scaling, LoggedTflops, ProfileRun, ReleaseContract, ReleaseSoftware,
    ScriptContract, SetupStep, TokenUse, TraceRun,
};
use crate::log::{Format, Span, Window};
use crate::precision::Dtype;
use crate::stack::Stack;

pub(super) const SOFTWARE: ReleaseSoftware = ReleaseSoftware {
    stack: Stack::Bridge25,
    fp8: Fp8Scaling { runs: Dtype::Fp8Current, documented: Dtype::Fp8Delayed },
    has_flops_formulas: true,
    measured: ("dgxc-seed", "25.12"),
};

pub(super) const CONTRACT: ReleaseContract = ReleaseContract {
    window: Window::Labels(Span { first: 35, last: 44 }),
    scoring_program: Some("common/parse_train_timing.sh"),
    batch: BatchRule::AsRecipe,
    stand_in_gpu: None,
    llmb_run: Some("submit"),
    one_job_at_a_time: false,
    logs_count_restarts: true,
    profiled_ranks: "Every rank writes one, although the document says ranks 0 to 8.",
    moved: "",
    setup: &[SetupStep::Installer { or_by_hand: false }],
    runai_setup: &[SetupStep::PythonEnvironment, SetupStep::RunaiSetup, SetupStep::RunaiLogin],
    scripts: &[ScriptContract {
        family: "nemotron4",
        experiment: ExperimentName::WithLayout { family: "nemotron4", vp: true },
        log: Format::Nemo2,
        logged_tflops: LoggedTflops::Valid,
        profile: ProfileRun::EndsRun,
        trace: TraceRun::Unsupported,
        token: TokenUse::ForCheckpoints,
        access: "",
        mounts_top_directory_only: false,
    }],
};
