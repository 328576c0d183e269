//! Every setting that a user can give. Flags, link keys, campaign keys, form fields and help texts follow from
//! this one table.

use serde::Serialize;

/// The subject of a setting, which groups command-line help and campaign files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldGroup {
    /// What is trained, on which GPUs, with which layout and options.
    Scenario,
    /// How FLOPs are counted.
    Counting,
    /// What the training is to reach, how fast a step is, and what the whole run depends on.
    Goal,
    /// What a search chooses from, and what it looks for.
    Search,
    /// Where a launch runs, and by which launcher.
    Cluster,
    /// What a launched job does.
    Job,
    /// What a page or a table shows.
    View,
}

/// What kind of value a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValue {
    /// A whole number.
    Whole,
    /// A number, which may have decimals or a suffix such as `T`.
    Number,
    /// On or off.
    Switch,
    /// Text: an id, a path or a list, which the field's own type parses.
    Text,
    /// Environment variables, `NAME=value`, one a line.
    Variables,
}

/// One row of the table.
struct FieldEntry {
    flag: &'static str,
    key: &'static str,
    label: &'static str,
    group: FieldGroup,
    value: FieldValue,
    placeholder: &'static str,
}

/// Declares the fields: the variant, then flag, link key, label, group, value and placeholder, hint, help.
macro_rules! fields {
    ($($variant:ident $flag:literal $key:literal $label:literal $group:ident $value:ident $placeholder:literal
        $hint:literal $help:literal,)*) => {
        /// A setting that a user can give. Its order is that of forms, links and help.
        #[allow(missing_docs, reason = "the table's hint and help describe each one")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Field { $($variant,)* }

        impl Field {
            /// Every field, in the order of forms, links and help.
            pub const ALL: &[Field] = &[$(Field::$variant,)*];
        }

        static TABLE: &[FieldEntry] = &[$(FieldEntry {
            flag: $flag,
            key: $key,
            label: $label,
            group: FieldGroup::$group,
            value: FieldValue::$value,
            placeholder: $placeholder,
        },)*];

        // Apart from the table, so that a program that shows no help contains none.
        static HINTS: &[&str] = &[$($hint,)*];
        static HELP: &[&str] = &[$($help,)*];
    };
}

fields! {
    Recipe "recipe" "r" "Recipe" Scenario Text "ID"
        "A published configuration to start from"
        "Published recipe: MODEL/GPU/DTYPE/GPUS[/strong][@RELEASE]. Without @RELEASE, the newest \
         release that published a result for the recipe is used",
    Model "model" "m" "Model" Scenario Text "ID|PATH|own:…"
        "" "Model: a known one such as llama3.1-70b (`trainplan models` lists all), the path of a Hugging Face \
            config.json, or your own as own:layers=32,hidden=4096,…",
    Gpu "gpu" "gpu" "GPU" Scenario Text "TYPE"
        "" "GPU type, such as h100 (`trainplan gpus` lists all), or a known type with overrides: \
            h100:hbm_gb=96,hbm_tbps=2.4",
    Gpus "gpus" "n" "GPUs" Scenario Whole "N"
        "" "Total number of GPUs. With a weak-scaling recipe, the global batch size scales with it",
    Dtype "dtype" "d" "Precision" Scenario Text "DTYPE"
        "" "Precision: bf16, fp8, fp8-current, fp8-delayed, fp8-block, mxfp8 or nvfp4",
    Tp "tp" "tp" "TP" Scenario Whole "N"
        "Tensor parallel: GPUs that share each layer" "Tensor-parallel size: GPUs that share each layer",
    Pp "pp" "pp" "PP" Scenario Whole "N"
        "Pipeline parallel: stages that each hold some layers" "Pipeline-parallel size: number of stages",
    Cp "cp" "cp" "CP" Scenario Whole "N"
        "Context parallel: GPUs that share each sequence" "Context-parallel size: GPUs that share each sequence",
    Ep "ep" "ep" "EP" Scenario Whole "N"
        "Expert parallel: GPUs that share the experts" "Expert-parallel size: GPUs that share the experts",
    ExpertTp "expert-tp" "etp" "Expert TP" Scenario Whole "N"
        "Tensor parallel inside each expert" "Tensor-parallel size inside each expert",
    Vp "vp" "vp" "VP" Scenario Whole "N"
        "Virtual pipeline: chunks of layers on each stage" "Virtual-pipeline size: chunks of layers on each stage",
    PipelineSplit "pipeline-split" "ps" "Pipeline split" Scenario Text "SPLIT"
        "" "How layers are divided among stages: even; counted (even, with the embedding and the loss counted as a \
            layer each); weighed (by weights, with the head, as nanotron does); or a list with the number of layers of each stage, such as 7,8,8,9",
    Mbs "mbs" "mbs" "MBS" Scenario Whole "N"
        "Micro batch size: sequences that a GPU processes at a time" "Micro batch size, in sequences",
    Gbs "gbs" "gbs" "GBS" Scenario Whole "N"
        "Global batch size: sequences in each step" "Global batch size, in sequences, from 1 to 4,194,304",
    SeqLen "seq-len" "s" "Sequence length" Scenario Whole "N"
        "" "Sequence length, in tokens, from 1 to 16,777,216",
    Layers "layers" "l" "Layers" Scenario Whole "N"
        "" "Number of layers. If this is less than the model's own number, a smaller proxy of the model is used",
    Recompute "recompute" "rc" "Recompute" Scenario Text "WHICH"
        "Activations to recompute in the backward pass instead of storing them"
        "Activations to recompute in the backward pass: none, selective or full",
    RecomputeModules "recompute-modules" "rcm" "Recompute modules" Scenario Text "LIST"
        "Parts of each layer to recompute as well, as in Megatron's --recompute-modules: mlp, moe_act, layernorm, …"
        "Parts of each layer to recompute, separated by commas: mlp, mla_up_proj, layernorm, moe_act, shared_experts \
         or moe, as in Megatron's --recompute-modules [default: none]",
    OffloadLayers "offload-layers" "ol" "Offload layers" Scenario Whole "N"
        "Layers whose activations wait in CPU memory for the backward pass"
        "Layers whose activations are copied to CPU memory until the backward pass needs them, without pipeline \
         parallelism and recomputation [default: 0]",
    Fsdp "fsdp" "fsdp" "FSDP" Scenario Switch "on|off"
        "Fully sharded data parallel: weights and gradients are sharded as well as the optimizer"
        "Shard weights, gradients and optimizer over the data-parallel GPUs (FSDP)",
    Overlap "overlap" "ov" "Overlap" Scenario Switch "on|off"
        "Whether communication overlaps with computation" "Overlap communication with computation [default: on]",
    Stack "stack" "stack" "Software" Scenario Text "STACK"
        "The training software, by generation"
        "Training software, such as nemo-2 or torchtitan; your own, such as nanotron:overlaps_tp=yes; or a \
         FILE.stack.toml. `trainplan stacks` lists the known software [default: the recipe's, or the newest \
         Megatron-Bridge]",
    GemmTflops "gemm-tflops" "gemm" "Measured GEMM TFLOPS" Scenario Number "TFLOPS"
        "TFLOPS that your GPUs reach in a large BF16 matrix multiplication"
        "TFLOPS that your GPUs reach in a large BF16 matrix multiplication. The estimate is scaled accordingly",
    ClusterFactor "cluster-factor" "cf" "Cluster factors" Scenario Text "FACTORS"
        "Measured over predicted step time on your cluster, such as 1.08, or factors calibrated from your runs"
        "Factors that fit the estimate to your cluster: one for the step time, such as 1.08, or several, such as \
         1.08,host=1.4,network=0.8. `trainplan calibrate --cluster` computes them. You can also pass the \
         file that `trainplan probe` wrote",
    Convention "convention" "c" "FLOPs convention" Counting Text "CONVENTION"
        "" "How FLOPs are counted: recipe (as in the recipe's own README), full (the whole attention matrix) or causal \
            (half of it) [default: recipe with --recipe, otherwise full]",
    Tokens "tokens" "t" "Tokens" Goal Number "N"
        "" "Tokens to train, from 1M to 1,000T, such as 15T [default: 1T]",
    StepTime "step-time" "st" "Step time" Goal Number "SECONDS"
        "" "Seconds per step, from 0.001 to 1,000,000, or an assumed MFU such as 40% [default: the recipe's published step \
            time]",
    FailureRate "failure-rate" "fail" "Failure rate" Goal Text "RATE"
        "Failures per GPU-hour, or a range"
        "Failures per GPU-hour, from 0 to 1, or a range, such as 5e-5 or 2e-5..1e-4 [default: the range of two published \
         studies, 1.97e-5..1.2e-4]",
    RestartTime "restart-time" "restart" "Restart time" Goal Text "TIME"
        "From a failure until training continues: detection, restart, loading and queue"
        "Time from a failure until training continues (detection, restart, loading and queue), from 0s to 30d, such as \
         90s, 10m or 1h; a number without a unit is in seconds [default: 10m]",
    SaveTime "save-time" "save" "Save time" Goal Text "TIME"
        "How long training is blocked while a checkpoint is saved"
        "How long training is blocked while a checkpoint is saved, from 0s to 1d, such as 30s; a number without a unit is \
         in seconds [default: its size divided by the bandwidth]",
    CheckpointBandwidth "checkpoint-bandwidth" "ckbw" "Checkpoint bandwidth" Goal Number "GB/S"
        "Bandwidth at which the whole job writes to storage, in GB/s"
        "Bandwidth at which the whole job writes to storage, in GB/s, from 0.001 to 100,000 [default: 0.122 per \
         GPU]",
    Overhead "overhead" "ovh" "Overhead" Goal Text "PERCENT"
        "Time for evaluation, warm-up and batch ramps, in percent of the training time"
        "Time for evaluation, warm-up and batch ramps, in percent of the training time, from 0 to 100 [default: 0]",
    SpareNodes "spare-nodes" "spare" "Spare nodes" Goal Text "PERCENT"
        "Spare nodes that are paid for, in percent of the nodes that train"
        "Spare nodes that are paid for, in percent of the nodes that train, from 0 to 100 [default: 5]",
    Price "price" "price" "Price" Goal Text "PRICE"
        "Price of a GPU-hour: 2.95, 1.99..3.50 or h100=2.95,b200=4.50; 0 counts only energy and storage"
        "Price of a GPU-hour in your currency, from 0.01 to 1M: 2.95, a range such as 1.99..3.50, or one for each GPU type \
         as h100=2.95,b200=4.50; 0 counts only energy and storage [default: published prices]",
    Purchase "purchase" "buy" "Purchase" Goal Text "FORM"
        "How the GPUs are paid for: owned (total cost of ownership), reserved or on-demand"
        "How the GPUs are paid for: owned (total cost of ownership), reserved or on-demand [default: all three are shown]",
    Power "power" "kw" "Power" Goal Text "KW"
        "Power per GPU in kW, with cooling and network, or tdp*1.3 for the GPU's TDP times a PUE"
        "Power per GPU in kW, with cooling and network, from 0.05 to 20, or tdp*1.3 for the GPU's TDP times a PUE from 1 to 3 \
         [default: published all-in power, or TDP × PUE 1.3]",
    Electricity "electricity" "el" "Electricity price" Goal Number "PRICE"
        "Price of electricity per kWh"
        "Price of a kWh of electricity in your currency, from 0.001 to 10,000 [default: US industrial average]",
    Currency "currency" "cur" "Currency" Goal Text "NAME"
        "Currency label of your prices; nothing is converted"
        "Currency label of your prices; nothing is converted [default: USD]",
    GpuTypes "gpu-types" "gs" "GPU types" Search Text "TYPES"
        "GPU types to compare" "GPU types to compare, such as h100,b200",
    GpuRange "gpu-range" "nr" "Number of GPUs" Search Text "RANGE"
        "Numbers of GPUs to search: one, a limit, a list or a range"
        "Numbers of GPUs to search, from 1 to 1,000,000: one (1024), a limit (<=1024), a list (512,1024,2048) or a range \
         (512..4096) [default: round numbers from 1 node to 16,384 GPUs]",
    Deadline "deadline" "by" "Deadline" Search Text "TIME"
        "Maximum time that training may take, such as 60d or 8w, or a date, such as 2027-03-01"
        "Maximum time that training may take, including time lost to failures, from 0.01d to 3650d: days (60d), weeks (8w), \
         months of 30 days (2mo), or a date (2027-03-01), counted from today's local date [default: \
         60d, unless --gpus, --budget or --objective is set]",
    Chance "chance" "odds" "Chance" Search Text "CHANCE"
        "How likely the plan must meet the deadline and the budget"
        "How likely the plan must meet the deadline and the budget: 9-in-10 or 90% (at the slow and expensive ends of its \
         ranges, it still does), or even or 50% (5 times in 10) [default: 9-in-10]",
    Budget "budget" "bud" "Budget" Search Number "AMOUNT"
        "Maximum cost of the run" "Maximum cost of the run in your currency, from 1 to 1,000T, such as 5M or 250k [default: \
            no limit]",
    Objective "objective" "obj" "Objective" Search Text "OBJECTIVE"
        "How plans are ranked"
        "How plans are ranked: fewest-gpus, fastest, worthwhile (fastest at no more than 1.25 times the lowest cost), \
         cheapest or most-tokens [default: fewest-gpus with a deadline, worthwhile with a budget, otherwise fastest]",
    Precisions "precisions" "ds" "Precisions" Search Text "DTYPES"
        "Precisions to choose from"
        "Precisions to choose from, such as bf16,fp8, or to exclude, such as \"no fp8\" [default: BF16, and MXFP8 or \
         FP8 where the GPU has it]",
    BatchTokens "batch-tokens" "bt" "Tokens per step" Search Text "TOKENS"
        "Global batch in tokens: one size, a limit (<=8M) or a range (4M..8M). 1M is 2²⁰ tokens"
        "Global batch in tokens, such as 16M, a limit, such as <=16M, or a range, such as 4M..16M; 1M is 2²⁰ tokens \
         [default: 4M, 8M or 16M by the model's size]",
    Lock "lock" "lock" "Locks" Search Text "LOCKS"
        "Values that the search must use or avoid: tp=8, recompute!=full"
        "Values that the search must use or avoid, such as tp=4|8,recompute!=full",
    Headroom "headroom" "room" "Headroom" Search Number "GIB"
        "Memory to keep free on each GPU, in GiB" "Memory to keep free on each GPU, in GiB, from 0 to 1,000 [default: 4]",
    Release "release" "rel" "Release" Cluster Text "RELEASE"
        "" "Release whose scripts are used, such as 25.12 [default: the recipe's]",
    Style "style" "sty" "Launch style" Cluster Text "STYLE"
        "" "Launcher. Recipes use llmb-run, launch-sh, sbatch or train-sh, depending on the release; megatron-lm works for \
            any scenario [default: the release's]",
    Account "account" "acc" "Slurm account" Cluster Text "NAME"
        "" "Slurm account",
    Partition "partition" "part" "Slurm partition" Cluster Text "NAME"
        "" "Slurm partition",
    GpusPerNode "gpus-per-node" "gpn" "GPUs per node" Cluster Whole "N"
        "" "GPUs per node [default: usual for the GPU type]",
    Gres "gres" "gres" "GRES" Cluster Text "GRES"
        "Generic resource to request from Slurm" "Generic resource to request from Slurm, such as gpu:8",
    InstallPath "install-path" "ip" "Install path" Cluster Text "PATH"
        "" "Folder in which the release is installed (STAGE_PATH or LLMB_INSTALL in its scripts), or the Megatron-LM \
            repository (MEGATRON_PATH)",
    RecipeDir "recipe-dir" "rd" "Recipe directory" Cluster Text "PATH"
        "" "Directory of the recipe's scripts",
    Venv "venv" "venv" "Python environment" Cluster Text "PATH"
        "" "Python environment to activate",
    ClusterType "cluster-type" "ct" "Cluster type" Cluster Text "TYPE"
        "" "Cluster manager: slurm or runai",
    MaxSteps "max-steps" "ms" "Steps" Job Whole "N"
        "" "Number of training steps",
    TimeLimit "time-limit" "tl" "Time limit" Job Text "TIME"
        "" "Time limit of the job, HH:MM:SS",
    Profile "profile" "prof" "Nsight profile" Job Switch ""
        "" "Profile with Nsight Systems",
    ProfileStartStep "profile-start-step" "ps0" "First profiled step" Job Whole "N"
        "" "First profiled step",
    ProfileStopStep "profile-stop-step" "ps1" "Last profiled step" Job Whole "N"
        "" "Last profiled step",
    GpuMetrics "gpu-metrics" "gm" "GPU metrics" Job Switch ""
        "" "Collect GPU metrics while profiling",
    NcclTrace "nccl-trace" "nt" "NCCL trace" Job Switch ""
        "" "Write NCCL calls to the log",
    SaveCheckpoint "save-checkpoint" "sc" "Save checkpoint" Job Switch ""
        "" "Save a checkpoint at the end",
    LoadCheckpoint "load-checkpoint" "lc" "Load checkpoint" Job Text "PATH"
        "" "Load a checkpoint from this directory",
    SlurmParams "slurm-params" "sp" "Slurm parameters" Cluster Text "PARAMS"
        "" "Additional Slurm parameters, such as \"nodelist=n1,n2;exclusive\"",
    Mounts "mounts" "mnt" "Mounts" Cluster Text "MOUNTS"
        "" "Container mounts, such as /data or /data:/mnt, separated by commas",
    ContainerImage "container-image" "img" "Container image" Cluster Text "IMAGE"
        "" "Container image for megatron-lm, in the form that Slurm's pyxis takes. Without one, the job runs \
            outside a container",
    Env "env" "env" "Environment" Cluster Variables "NAME=VALUE"
        "" "Environment variable for the run; may be repeated",
    Scaling "scaling" "scal" "Scaling" View Text "SCALING"
        "" "Scaling mode: weak or strong",
    Measured "measured" "meas" "Measured only" View Switch ""
        "" "Only recipes with a published result",
    Sort "sort" "sort" "Sort" View Text "COLUMN"
        "" "Column to sort by; a minus before it sorts in descending order",
    Quantity "quantity" "q" "Chart" View Text "QUANTITY"
        "" "Quantity that the chart shows",
    Window "window" "w" "Window" View Text "WINDOW"
        "" "Steps of a log to score: last, 11-44, 35-44 or your own range",
}

impl Field {
    const fn entry(self) -> &'static FieldEntry {
        &TABLE[self as usize]
    }

    /// Returns the long flag, without dashes. It is also the key in a campaign file.
    pub const fn flag(self) -> &'static str {
        self.entry().flag
    }

    /// Returns the long flag of `trainplan search`, without dashes. A search chooses the GPU type, the number of GPUs and the
    /// precision, so their flags there take what it chooses from.
    pub const fn search_flag(self) -> &'static str {
        match self {
            Field::GpuTypes => Field::Gpu.flag(),
            Field::GpuRange => Field::Gpus.flag(),
            Field::Precisions => Field::Dtype.flag(),
            other => other.flag(),
        }
    }

    /// Returns the short key of a link. A published key never changes its meaning.
    pub const fn key(self) -> &'static str {
        self.entry().key
    }

    /// Returns the name on a page.
    pub const fn label(self) -> &'static str {
        self.entry().label
    }

    /// Returns what the field is about.
    pub const fn group(self) -> FieldGroup {
        self.entry().group
    }

    /// Returns the kind of value it takes.
    pub const fn value(self) -> FieldValue {
        self.entry().value
    }

    /// Returns what stands for the value in help, such as `N`; empty for a switch without a value.
    pub const fn placeholder(self) -> &'static str {
        self.entry().placeholder
    }

    /// Returns a short explanation for a page; empty where the label is plain.
    pub const fn hint(self) -> &'static str {
        HINTS[self as usize]
    }

    /// Returns the explanation that `--help` prints.
    pub const fn help(self) -> &'static str {
        HELP[self as usize]
    }

    /// Returns whether it describes a scenario, rather than what to do with one.
    pub fn is_of_scenario(self) -> bool {
        self.group() == FieldGroup::Scenario
    }

    /// Returns whether it describes the whole run around the training steps: failures, price and power.
    pub fn is_of_whole_run(self) -> bool {
        self.group() == FieldGroup::Goal && !matches!(self, Field::Tokens | Field::StepTime)
    }

    /// Returns every field of a group, in order.
    pub fn of_group(group: FieldGroup) -> impl Iterator<Item = Field> {
        Field::ALL.iter().copied().filter(move |field| field.group() == group)
    }

    /// Returns the field of a flag, with or without dashes before it.
    pub fn from_flag(flag: &str) -> Option<Field> {
        let flag = flag.trim_start_matches('-');
        Field::ALL.iter().copied().find(|field| field.flag() == flag)
    }

    /// Returns the field of a link's short key.
    pub fn from_key(key: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn flags_and_link_keys_are_unique() {
        let flags: BTreeSet<_> = Field::ALL.iter().map(|field| field.flag()).collect();
        let keys: BTreeSet<_> = Field::ALL.iter().map(|field| field.key()).collect();
        assert_eq!((flags.len(), keys.len()), (Field::ALL.len(), Field::ALL.len()));
        assert!(!keys.contains("v"), "v is the version of a link");
    }
}
