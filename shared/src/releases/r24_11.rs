//! Release 24.11: the recipe's script is the batch job itself, submitted with sbatch.

use super::{
    BatchRule, ExperimentName, Fp8Scaling, LoggedTflops, ProfileRun, ReleaseContract, ReleaseSoftware,
    ScriptContract, SetupStep, TokenUse, TraceRun,
};
use crate::log::{Format, Window};
use crate::precision::Dtype;
use crate::stack::Stack;

pub(super) const SOFTWARE: ReleaseSoftware = ReleaseSoftware {
    stack: Stack::Nemo1,
    fp8: Fp8Scaling { runs: Dtype::Fp8Delayed, documented: Dtype::Fp8Delayed },
    has_flops_formulas: true,
    measured: ("dgxc-seed", "24.11"),
};

pub(super) const CONTRACT: ReleaseContract = ReleaseContract {
    window: Window::Last,
    scoring_program: None,
    // configure.sh counts nodes, not GPUs.
    batch: BatchRule::PerNode(2),
    // A100s run the layouts of H100s.
    stand_in_gpu: Some("h100"),
    llmb_run: None,
    one_job_at_a_time: true,
    logs_count_restarts: false,
    profiled_ranks: "Ranks 0 to 7 write one each.",
    moved: "",
    setup: &[SetupStep::SetupOnLoginNode],
    runai_setup: &[],
    scripts: &[ScriptContract {
        family: "nemotron4",
        experiment: ExperimentName::JobScript,
        log: Format::Nemo1,
        logged_tflops: LoggedTflops::Absent,
        profile: ProfileRun::KeepsSteps,
        trace: TraceRun::Unsupported,
        token: TokenUse::Never,
        access: "",
        mounts_top_directory_only: false,
    }],
};
