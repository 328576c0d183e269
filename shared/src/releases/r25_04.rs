//! Release 25.04: launch.sh submits through NeMo-Run, under STAGE_PATH.

use super::{
    BatchRule, ExperimentName, Fp8Scaling, LoggedTflops, ProfileRun, ReleaseContract, ReleaseSoftware,
    ScriptContract, SetupStep, TokenUse, TraceRun, TracedJob,
};
use crate::log::{Format, Window};
use crate::precision::Dtype;
use crate::stack::Stack;

pub(super) const SOFTWARE: ReleaseSoftware = ReleaseSoftware {
    stack: Stack::Nemo2,
    fp8: Fp8Scaling { runs: Dtype::Fp8Delayed, documented: Dtype::Fp8Delayed },
    has_flops_formulas: true,
    measured: ("dgxc-seed", "25.04"),
};

pub(super) const CONTRACT: ReleaseContract = ReleaseContract {
    window: Window::Last,
    scoring_program: None,
    batch: BatchRule::AsRecipe,
    stand_in_gpu: None,
    llmb_run: None,
    one_job_at_a_time: false,
    logs_count_restarts: true,
    profiled_ranks: "Ranks 0 to 7 write one each.",
    moved: "",
    setup: &[SetupStep::PythonEnvironment, SetupStep::SetupAsJob],
    runai_setup: &[],
    scripts: &[
        ScriptContract {
            family: "nemotron4",
            experiment: ExperimentName::Short,
            log: Format::Nemo2,
            logged_tflops: LoggedTflops::Absent,
            profile: ProfileRun::EndsRun,
            trace: TraceRun::Unsupported,
            token: TokenUse::Never,
            access: "",
            mounts_top_directory_only: true,
        },
        ScriptContract {
            family: "llama3.1",
            experiment: ExperimentName::Short,
            log: Format::Nemo2,
            logged_tflops: LoggedTflops::Absent,
            profile: ProfileRun::OwnJob,
            trace: TraceRun::OwnJob(TracedJob { steps: 5, minutes: 15 }),
            token: TokenUse::OnCommandLine,
            access: "Llama 3.1 also needs Meta's consent: ask for it on Meta's site, then on the Llama 3 \
                     and Llama 3.1 pages of Hugging Face. It may take a day or more.",
            mounts_top_directory_only: true,
        },
    ],
};
