//! What a release defines. The launch, the parser of logs and the estimate read it; none of them matches on a
//! release.

use crate::log::{Format, Window};
use crate::precision::Dtype;
use crate::stack::Stack;

/// What a release runs. It is apart from the contract, whose texts a page loads only with a launch.
#[derive(Debug, PartialEq)]
pub struct ReleaseSoftware {
    /// The software in the release's containers.
    pub stack: Stack,
    /// What `fp8` means in its recipes.
    pub fp8: Fp8Scaling,
    /// Whether its documents have formulas of a model's FLOPs (`data/document_flops.csv`). Otherwise its logs have TFLOPS, which
    /// count half of attention.
    pub has_flops_formulas: bool,
    /// The collection of measurements with its published runs (`data/sources.csv`), and their release in it.
    pub measured: (&'static str, &'static str),
}

/// How a release is set up and how its scripts behave.
#[derive(Debug, PartialEq)]
pub struct ReleaseContract {
    /// The steps that the release scores its runs by, by the labels that the log prints.
    pub window: Window,
    /// The release's own program that scores a log; `None` if it has none.
    pub scoring_program: Option<&'static str>,
    /// How the global batch size follows the number of GPUs.
    pub batch: BatchRule,
    /// The GPU type whose recipes also run on supported GPU types that have none.
    pub stand_in_gpu: Option<&'static str>,
    /// The subcommand of llmb-run that submits a recipe; `None` if the release has no llmb-run.
    pub llmb_run: Option<&'static str>,
    /// Whether its scripts let one job of a name run at a time.
    pub one_job_at_a_time: bool,
    /// Whether a log's name ends in the number of times that Slurm restarted the job.
    pub logs_count_restarts: bool,
    /// Which ranks write a profile: a sentence.
    pub profiled_ranks: &'static str,
    /// What changes in the top directory for users of the release before; may be empty.
    pub moved: &'static str,
    /// How to set it up on Slurm, in order.
    pub setup: &'static [SetupStep],
    /// How to set it up on Run:ai, in order; empty if it doesn't run there.
    pub runai_setup: &'static [SetupStep],
    /// Its launch scripts, one for each family of models in `data/launch_scripts.csv`.
    pub scripts: &'static [ScriptContract],
}

impl ReleaseContract {
    /// Returns how the script for a model behaves.
    pub fn script_of(&self, model: &str) -> Option<&ScriptContract> {
        self.scripts.iter().find(|script| model.starts_with(script.family))
    }
}

/// How one launch script of a release behaves.
#[derive(Debug, PartialEq)]
pub struct ScriptContract {
    /// How the ids of its models begin.
    pub family: &'static str,
    /// How it names its experiments.
    pub experiment: ExperimentName,
    /// The format of its logs.
    pub log: Format,
    /// Whether its logs hold TFLOPS per GPU.
    pub logged_tflops: LoggedTflops,
    /// What a profile does to the run.
    pub profile: ProfileRun,
    /// What an NCCL trace does to the run.
    pub trace: TraceRun,
    /// When it needs a Hugging Face token.
    pub token: TokenUse,
    /// How to get access to the model's weights or tokenizer; empty if a token is enough.
    pub access: &'static str,
    /// Whether its container mounts the top directory and nothing else.
    pub mounts_top_directory_only: bool,
}

/// The FP8 scaling of a release's `fp8` recipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fp8Scaling {
    /// What the scripts run.
    pub runs: Dtype,
    /// What the release's document names.
    pub documented: Dtype,
}

/// How the global batch size of a series of recipes follows the number of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchRule {
    /// In proportion to the GPUs (weak scaling), or constant (strong scaling), as in the recipe.
    AsRecipe,
    /// A number of sequences for each node, regardless of the node's GPUs.
    PerNode(u32),
}

/// How a script names its experiments. Logs are recognised by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExperimentName {
    /// `nemo_nemotron4_340b_128`, in one directory for each precision, size and GPU count.
    JobScript,
    /// `pretrain_nemotron4_340b_fp8_256`, by NeMo-Run.
    Short,
    /// `pretrain_nemotron4_340b_fp8_gpus256_tp8_pp4_cp1_vp12_mbs1_gbs128`, by NeMo-Run.
    WithLayout {
        /// The model's family in it.
        family: &'static str,
        /// Whether it holds the degree of virtual pipelining, rather than `None`.
        vp: bool,
    },
    /// `pretrain_llama31_405b_fp8_cs_gpus256_tp4_pp8_cp1_vp4_ep1_etpNone_mbs1_gbs1536`, by Megatron-Bridge.
    Bridge,
    /// `llama31_405b_pretrain_256gpu_gb300_fp8cs`, as Megatron-Bridge names its own recipe. The job in it is `training`.
    BridgeRecipe,
}

/// Whether a script's logs hold TFLOPS per GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedTflops {
    /// They don't.
    Absent,
    /// They do.
    Valid,
    /// They do, but by its own document they are wrong.
    Invalid,
}

/// What a profile with Nsight Systems does to a script's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileRun {
    /// The run keeps its steps.
    KeepsSteps,
    /// The run ends with the last profiled step.
    EndsRun,
    /// A second job is profiled; it and the plain job end with the last profiled step, even with a loaded
    /// checkpoint.
    OwnJob,
}

/// What an NCCL trace does to a script's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceRun {
    /// The script has no trace.
    Unsupported,
    /// Another job is traced.
    OwnJob(TracedJob),
    /// The run itself is traced and cut; it can't be profiled.
    ReplacesRun(TracedJob),
}

/// The length of a traced job, regardless of other options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedJob {
    /// Training steps.
    pub steps: u32,
    /// Time limit, in minutes.
    pub minutes: u32,
}

/// When a script needs a Hugging Face token (`HF_TOKEN`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenUse {
    /// Never.
    Never,
    /// To save or load a checkpoint.
    ForCheckpoints,
    /// Always, to read the model's configuration.
    Always,
    /// Always, and the script puts it on a command line, where other users of the machine can see it.
    OnCommandLine,
}

/// Something to do once before the first launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupStep {
    /// Make a Python environment.
    PythonEnvironment,
    /// Run the release's installer.
    Installer {
        /// Whether the following steps are the alternative to it, for a set-up by hand.
        or_by_hand: bool,
    },
    /// Run the recipe's set-up script on a login node; Slurm's account and partition come from the
    /// environment.
    SetupOnLoginNode,
    /// Submit the recipe's set-up script as a job.
    SetupAsJob,
    /// Run the recipe's set-up script, as part of a set-up by hand.
    SetupByHand,
    /// Import the container, as part of a set-up by hand.
    ImportContainer,
    /// Check out this commit or tag of Megatron-Bridge, and import the container that it runs in.
    BridgeCheckout(&'static str),
    /// Run the recipe's set-up script for Run:ai.
    RunaiSetup,
    /// Log in to Run:ai.
    RunaiLogin,
}
