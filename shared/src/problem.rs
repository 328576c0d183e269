//! What is wrong with an input, said so that a person can mend it: the field, what was given, why it can't
//! work, what is allowed, and the nearest value that works.

use serde::Serialize;
use std::fmt;

/// Everything a person can set that the domain interprets; its name is the same as a flag, a field of a page
/// and a key of a link.
macro_rules! fields {
    ($($(#[$doc:meta])* $variant:ident $flag:literal $key:literal $label:literal,)*) => {
        #[allow(missing_docs, reason = "the labels below say it")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Field { $($(#[$doc])* $variant,)* }

        impl Field {
            /// Every field, in the order in which forms and links list them.
            pub const ALL: &[Field] = &[$(Field::$variant,)*];

            /// The long flag of the command line, without its dashes.
            pub const fn flag(self) -> &'static str {
                match self { $(Field::$variant => $flag,)* }
            }

            /// The short key of a link; once published it keeps its meaning.
            pub const fn key(self) -> &'static str {
                match self { $(Field::$variant => $key,)* }
            }

            /// What a person reads beside it.
            pub const fn label(self) -> &'static str {
                match self { $(Field::$variant => $label,)* }
            }
        }
    };
}

fields! {
    Recipe "recipe" "r" "Recipe",
    Model "model" "m" "Model",
    Gpu "gpu" "gpu" "GPU",
    Gpus "gpus" "n" "GPUs",
    Dtype "dtype" "d" "Precision",
    Tp "tp" "tp" "TP",
    Pp "pp" "pp" "PP",
    Cp "cp" "cp" "CP",
    Ep "ep" "ep" "EP",
    ExpertTp "expert-tp" "etp" "Expert TP",
    Vp "vp" "vp" "VP",
    PipelineSplit "pipeline-split" "ps" "Pipeline split",
    Mbs "mbs" "mbs" "MBS",
    Gbs "gbs" "gbs" "GBS",
    SeqLen "seq-len" "s" "Sequence length",
    Layers "layers" "l" "Layers",
    Recompute "recompute" "rc" "Recompute",
    Fsdp "fsdp" "fsdp" "FSDP",
    Overlap "overlap" "ov" "Overlap",
    Stack "stack" "stack" "Software",
    GemmTflops "gemm-tflops" "gemm" "Measured GEMM TFLOPS",
    ClusterFactor "cluster-factor" "cf" "Cluster factor",
    Convention "convention" "c" "FLOPs convention",
    Tokens "tokens" "t" "Tokens",
    StepTime "step-time" "st" "Step time",
    Release "release" "rel" "Release",
    Style "style" "sty" "Launch style",
    Account "account" "acc" "Slurm account",
    Partition "partition" "part" "Slurm partition",
    GpusPerNode "gpus-per-node" "gpn" "GPUs per node",
    Gres "gres" "gres" "GRES",
    InstallPath "install-path" "ip" "Install path",
    RecipeDir "recipe-dir" "rd" "Recipe directory",
    Venv "venv" "venv" "Python environment",
    ClusterType "cluster-type" "ct" "Cluster type",
    MaxSteps "max-steps" "ms" "Steps",
    TimeLimit "time-limit" "tl" "Time limit",
    Profile "profile" "prof" "Nsight profile",
    ProfileStartStep "profile-start-step" "ps0" "First profiled step",
    ProfileStopStep "profile-stop-step" "ps1" "Last profiled step",
    GpuMetrics "gpu-metrics" "gm" "GPU metrics",
    NcclTrace "nccl-trace" "nt" "NCCL trace",
    SaveCheckpoint "save-checkpoint" "sc" "Save checkpoint",
    LoadCheckpoint "load-checkpoint" "lc" "Load checkpoint",
    SlurmParams "slurm-params" "sp" "Slurm parameters",
    Mounts "mounts" "mnt" "Mounts",
    ContainerImage "container-image" "img" "Container image",
    Env "env" "env" "Environment",
    Scaling "scaling" "scal" "Scaling",
    /// Only recipes with a published measurement.
    Measured "measured" "meas" "Measured only",
    /// The column that a table is sorted by, with a minus before it for descending.
    Sort "sort" "sort" "Sort",
    /// What a chart shows.
    Quantity "quantity" "q" "Chart",
    /// A log window; not a flag of a scenario.
    Window "window" "w" "Window",
}

impl Field {
    /// Whether it describes a scenario, rather than what to do or show with one.
    pub fn is_of_scenario(self) -> bool {
        use Field::{
            ClusterFactor, Cp, Dtype, Ep, ExpertTp, Fsdp, Gbs, GemmTflops, Gpu, Gpus, Layers, Mbs, Model,
            Overlap, PipelineSplit, Pp, Recipe, Recompute, SeqLen, Stack, Tp, Vp,
        };
        let scenario = [
            Recipe,
            Model,
            Gpu,
            Gpus,
            Dtype,
            Tp,
            Pp,
            Cp,
            Ep,
            ExpertTp,
            Vp,
            PipelineSplit,
            Mbs,
            Gbs,
            SeqLen,
            Layers,
            Recompute,
            Fsdp,
            Overlap,
            Stack,
            GemmTflops,
            ClusterFactor,
        ];
        scenario.contains(&self)
    }

    /// What an abbreviation stands for; empty where the label is plain.
    pub const fn hint(self) -> &'static str {
        match self {
            Field::Tp => "Tensor parallel: GPUs that share each layer",
            Field::Pp => "Pipeline parallel: stages that each hold some layers",
            Field::Cp => "Context parallel: GPUs that share each sequence",
            Field::Ep => "Expert parallel: GPUs that share the experts",
            Field::ExpertTp => "Tensor parallel inside an expert",
            Field::Vp => "Virtual pipeline: chunks of layers on each stage",
            Field::Mbs => "Micro batch size: sequences at a time",
            Field::Gbs => "Global batch size: sequences in a step",
            Field::Recompute => "Activations computed again in the backward pass instead of kept",
            Field::Fsdp => {
                "Fully sharded data parallel: weights and gradients are sharded like the optimizer"
            }
            Field::Overlap => "Whether communication hides behind computation",
            Field::Stack => "The software that trains, by generation where its speed changed",
            Field::ClusterFactor => "Measured over predicted step time on your cluster",
            Field::GemmTflops => "What your GPUs reach in a large BF16 matrix multiplication",
            Field::Gres => "Generic resource that Slurm is asked for",
            _ => "",
        }
    }

    /// The field of a flag, with or without dashes before it.
    pub fn from_flag(flag: &str) -> Option<Field> {
        let flag = flag.trim_start_matches('-');
        Field::ALL.iter().copied().find(|field| field.flag() == flag)
    }

    /// The field of a link's short key.
    pub fn from_key(key: &str) -> Option<Field> {
        Field::ALL.iter().copied().find(|field| field.key() == key)
    }
}

/// One thing that can't work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where.
    pub field: Field,
    /// What was given, as typed; empty if nothing was.
    pub given: String,
    /// What is wrong with it, as a clause: "is no number", "512 GPUs do not divide by TP·PP·CP = 96".
    pub what: String,
    /// The values that are allowed, as a clause; empty where `what` says it already.
    pub allowed: String,
    /// The nearest values that work, if any is known.
    pub nearest: Vec<String>,
}

impl Problem {
    /// A problem with neither allowed nor nearest values.
    pub fn new(field: Field, given: impl fmt::Display, what: impl Into<String>) -> Problem {
        Problem {
            field,
            given: given.to_string(),
            what: what.into(),
            allowed: String::new(),
            nearest: Vec::new(),
        }
    }

    /// Says which values are allowed.
    #[must_use]
    pub fn allowed(mut self, allowed: impl Into<String>) -> Problem {
        self.allowed = allowed.into();
        self
    }

    /// Names the nearest values that work.
    #[must_use]
    pub fn nearest<T: ToString>(mut self, nearest: impl IntoIterator<Item = T>) -> Problem {
        self.nearest = nearest.into_iter().map(|value| value.to_string()).collect();
        self
    }

    /// `given` is none of `known`: names them all, and the one that is spelt most alike.
    pub fn unknown<'a>(field: Field, given: &str, known: impl IntoIterator<Item = &'a str>) -> Problem {
        let known: Vec<&str> = known.into_iter().collect();
        Problem::new(field, given, format!("is no known {}", field.label().to_lowercase_unless_acronym()))
            .allowed(known.join(", "))
            .nearest(most_alike(given, known.iter().copied()))
    }

    /// The sentence without the field, for a place that stands beside it.
    pub fn message(&self) -> String {
        sentence(&self.given, &self.what, &self.allowed, &self.nearest)
    }
}

/// What is wrong, the nearest that works and all that is allowed, as one sentence.
pub(crate) fn sentence(given: &str, what: &str, allowed: &str, nearest: &[String]) -> String {
    let mut message = match given.is_empty() {
        true => what.to_string(),
        false => format!("“{given}” {what}"),
    };
    if !nearest.is_empty() {
        message += &format!("; nearest: {}", nearest.join(" or "));
    }
    if !allowed.is_empty() {
        message += &format!("; allowed: {allowed}");
    }
    message
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}: {}", self.field.flag(), self.message())
    }
}

impl std::error::Error for Problem {}

/// The candidate that is spelt most like `given`, or none if nothing comes near.
pub fn most_alike<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&given, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.6)
        // The first of equals, so that the order of the candidates decides and nothing else.
        .fold(None, |best: Option<(f64, &str)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, candidate)| candidate)
}

/// A label within a sentence.
pub(crate) trait Wording {
    fn to_lowercase_unless_acronym(&self) -> String;
}

impl Wording for str {
    fn to_lowercase_unless_acronym(&self) -> String {
        self.split(' ')
            .map(|word| match word.chars().skip(1).any(|c| c.is_ascii_uppercase()) {
                true => word.to_string(),
                false => word.to_ascii_lowercase(),
            })
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn flags_and_keys_are_unique() {
        let flags: BTreeSet<_> = Field::ALL.iter().map(|field| field.flag()).collect();
        let keys: BTreeSet<_> = Field::ALL.iter().map(|field| field.key()).collect();
        assert_eq!((flags.len(), keys.len()), (Field::ALL.len(), Field::ALL.len()));
        assert!(!keys.contains("v"), "v is the version of a link");
    }

    #[test]
    fn an_unknown_value_names_the_nearest() {
        let problem = Problem::unknown(Field::Gpu, "h10", ["a100", "h100", "b200"]);
        assert_eq!(problem.nearest, ["h100"]);
        assert_eq!(
            problem.to_string(),
            "--gpu: “h10” is no known GPU; nearest: h100; allowed: a100, h100, b200"
        );
    }

    #[test]
    fn nothing_alike_is_not_offered() {
        assert_eq!(most_alike("zzz", ["h100"]), None);
    }
}
