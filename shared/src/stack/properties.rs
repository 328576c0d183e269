//! The properties of training software that decide time and memory.

use super::Stack;
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::decimal::{parse_decimal, write_decimal};
use crate::problem::one_of;
use crate::words::words;
use std::sync::LazyLock;

choices! {
    /// How attention is computed.
    #[derive(Default)]
    AttentionKernels {
        /// By batched products that store all scores.
        #[default]
        Unfused "unfused",
        /// By one kernel that runs on every GPU, such as FlashAttention-2.
        Fused "fused",
        /// By one kernel that is written for each GPU: cuDNN, FlashAttention-3.
        Tuned "tuned",
    }
}

choices! {
    /// Which kernels CUDA graphs launch, unless the run says otherwise.
    #[derive(Default)]
    CudaGraphs {
        /// None.
        #[default]
        None "none",
        /// Those of dense models.
        Dense "dense",
        /// All.
        All "all",
    }
}

choices! {
    /// How the kernels of routed experts are fused.
    #[derive(Default)]
    ExpertKernels {
        /// Neither routing nor casts are fused, as in NVIDIA's releases before 25.09.
        #[default]
        Early "early",
        /// Routing is fused; casts and activation functions are kernels of their own.
        Separate "separate",
        /// Grouped multiplications cast and activate, as in NVIDIA's releases from 26.06.
        Fused "fused",
    }
}

choices! {
    /// How a layer's weights are stored.
    #[derive(Default)]
    WeightStorage {
        /// In FP32, and converted to BF16 for use.
        #[default]
        Fp32 "fp32",
        /// In BF16.
        Bf16 "bf16",
        /// In BF16, and in the run's precision beside it.
        Beside "beside",
        /// In the run's precision alone.
        Alone "alone",
    }
}

/// The value of a property, as text.
pub(super) trait PropertyValue {
    /// Takes the value from a text. Returns whether the text is one.
    fn take(&mut self, text: &str) -> bool;

    /// Returns the value as text.
    fn text(&self) -> String;

    /// Returns the values that can be listed; none for a number.
    fn choices(&self) -> Vec<&'static str>;

    /// Returns what a text must be.
    fn wanted(&self) -> String {
        one_of(&self.choices())
    }
}

impl PropertyValue for bool {
    fn take(&mut self, text: &str) -> bool {
        *self = text == "yes";
        *self || text == "no"
    }

    fn text(&self) -> String {
        if *self { "yes" } else { "no" }.to_string()
    }

    fn choices(&self) -> Vec<&'static str> {
        vec!["yes", "no"]
    }
}

/// The largest number of a property, far beyond every software.
const MOST: f64 = 100.0;

impl PropertyValue for f64 {
    fn take(&mut self, text: &str) -> bool {
        let number = parse_decimal(text).filter(|number| (0.0..=MOST).contains(number));
        *self = number.unwrap_or(*self);
        number.is_some()
    }

    fn text(&self) -> String {
        write_decimal(*self)
    }

    fn choices(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn wanted(&self) -> String {
        "a number from 0 to 100".to_string()
    }
}

/// The text of a property without a value. In the data file the cell is empty.
const NONE: &str = "none";
/// The range of a number that may be absent. It divides.
const LEAST_OPTIONAL: f64 = 1e-3;
const MOST_OPTIONAL: f64 = 1e6;

impl PropertyValue for Option<f64> {
    fn take(&mut self, text: &str) -> bool {
        let number = parse_decimal(text).filter(|number| (LEAST_OPTIONAL..=MOST_OPTIONAL).contains(number));
        *self = number;
        number.is_some() || matches!(text, "" | NONE)
    }

    fn text(&self) -> String {
        self.map_or(NONE.to_string(), write_decimal)
    }

    fn choices(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn wanted(&self) -> String {
        "a number from 0.001 to 1000000, or none".to_string()
    }
}

macro_rules! choice_values {
    ($($choice:ident)*) => {$(
        impl PropertyValue for $choice {
            fn take(&mut self, text: &str) -> bool {
                let found = $choice::ALL.into_iter().find(|choice| choice.id() == text);
                *self = found.unwrap_or(*self);
                found.is_some()
            }

            fn text(&self) -> String {
                self.to_string()
            }

            fn choices(&self) -> Vec<&'static str> {
                $choice::ALL.map($choice::id).to_vec()
            }
        }
    )*};
}

choice_values! { AttentionKernels CudaGraphs ExpertKernels WeightStorage }

choices! {
    /// The part of a form that a property stands in.
    #[derive(Default)]
    PropertyGroup {
        /// Kernels and who launches them.
        #[default]
        Kernels "kernels" "Kernels",
        /// How a model is divided.
        Parallelism "parallelism" "Parallelism",
        /// Communication, and what hides it.
        Overlap "overlap" "Communication and overlap",
        /// Mixtures of experts.
        Experts "experts" "Experts",
        /// What is stored.
        Memory "memory" "Precision and memory",
    }
}

/// A property of training software.
#[derive(Debug, Clone, Copy)]
pub struct StackProperty {
    /// The part of a form that it stands in.
    pub group: PropertyGroup,
    /// Name in `stacks.csv`, in texts and in files.
    pub name: &'static str,
    /// Label in forms.
    pub label: &'static str,
    /// What it says about the software, in one sentence.
    meaning: &'static str,
}

impl StackProperty {
    /// Returns what it says about the software, in one sentence.
    pub fn meaning(&self) -> &'static str {
        // A comment starts with a blank.
        self.meaning.trim_start()
    }

    /// Returns its values, if they can be listed; none for a number.
    pub fn choices(&self) -> Vec<&'static str> {
        let mut properties = StackProperties::default();
        let mut named = StackProperties::NAMES.into_iter().zip(properties.values());
        named.find(|(name, _)| *name == self.name).map_or(Vec::new(), |(_, value)| value.choices())
    }
}

/// Declares the properties, each with its meaning, type, group and label: the only list of them. Texts, files, the columns of
/// `stacks.csv`, forms and documentation follow from it.
macro_rules! properties {
    ($($(#[doc = $meaning:literal])+ $name:ident: $kind:ty = $group:ident $label:literal,)*) => {
        /// What a training software does. Times follow from these properties; what remains is one factor for each known
        /// software.
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct StackProperties {
            $($(#[doc = $meaning])+ pub $name: $kind,)*
        }

        impl StackProperties {
            /// The names of all properties, in the order of texts and of `stacks.csv`.
            pub(super) const NAMES: [&'static str; [$($label),*].len()] = [$(stringify!($name)),*];

            /// All properties, in the same order.
            pub const ALL: [StackProperty; Self::NAMES.len()] = [$(StackProperty {
                group: PropertyGroup::$group,
                name: stringify!($name),
                label: $label,
                meaning: concat!($($meaning),+),
            }),*];

            /// Returns the places of all values, in the same order.
            // Inlined where it is used, it would be a kilobyte of the search worker.
            #[inline(never)]
            pub(super) fn values(&mut self) -> [&mut dyn PropertyValue; Self::NAMES.len()] {
                [$(&mut self.$name),*]
            }
        }
    };
}

properties! {
    /// How attention is computed: `unfused` stores all scores, `fused` is one kernel for every GPU, such as
    /// FlashAttention-2, and `tuned` is one written for each GPU, such as cuDNN or FlashAttention-3.
    attention: AttentionKernels = Kernels "Attention kernel",
    /// Share that each further tensor-parallel rank adds to the host's time in a pipeline; `none` if as little as without
    /// a pipeline.
    host_tp_in_pipelines: Option<f64> = Parallelism "Host time per TP rank",
    /// Whether a fused kernel computes attention with sinks and a window.
    fuses_sinks: bool = Kernels "Fuses attention sinks",
    /// Whether norms, activation functions and casts are single PyTorch operations, neither fused by hand nor compiled.
    eager: bool = Kernels "Eager PyTorch",
    /// Whether the layers are those of Megatron-Core on Transformer Engine.
    transformer_engine: bool = Kernels "Transformer Engine",
    /// Whether pipelines and selective recomputation are PyTorch's rather than Megatron's.
    pytorch: bool = Parallelism "PyTorch pipelines",
    /// Whether tensor parallelism divides the sequence outside matrix multiplications.
    sequence_parallel: bool = Parallelism "Sequence parallel",
    /// Whether the backward pass keeps the sequence that tensor-parallel ranks gathered, instead of gathering it again.
    saves_gathered: bool = Parallelism "Keeps gathered sequence",
    /// Whether tensor parallelism's communication overlaps with computation.
    overlaps_tp: bool = Overlap "Overlaps TP",
    /// Whether the exchange of gradients and weights overlaps with computation.
    overlaps_dp: bool = Overlap "Overlaps DP",
    /// Whether the exchange of gradients overlaps as poorly as in NVIDIA's releases before 25.04.
    early_dp: bool = Overlap "Early DP overlap",
    /// Which kernels CUDA graphs launch: `none`, those of `dense` models, or `all`.
    cuda_graphs: CudaGraphs = Kernels "CUDA graphs",
    /// How the kernels of routed experts are fused: in `early` software not even routing is, in `separate` software
    /// routing is, and in `fused` software grouped multiplications also cast and activate.
    experts: ExpertKernels = Experts "Expert kernels",
    /// Whether a token is sent once to each NVLink domain for all experts there (DeepEP, HybridEP).
    sends_once_per_domain: bool = Experts "Sends tokens once (DeepEP)",
    /// Whether the exchange between experts overlaps with another micro batch in interleaved pipelines without full recomputation.
    hides_experts: bool = Experts "Overlaps EP",
    /// Whether it is the first software for Blackwell, and slower there.
    early_blackwell: bool = Kernels "Early on Blackwell",
    /// Whether an interleaved schedule needs a gradient accumulation that is a multiple of PP.
    whole_rounds: bool = Parallelism "VP needs GA = n × PP",
    /// Whether data-parallel ranks share the optimizer's state (ZeRO-1), also without FSDP.
    shares_optimizer: bool = Memory "ZeRO-1",
    /// Whether data-parallel ranks share the work of the optimizer's step. Most software that shares its state does.
    shares_optimizer_step: bool = Memory "Shares optimizer step",
    /// Bytes of a gradient in the exchange between data-parallel ranks.
    exchanged_gradient_bytes: f64 = Overlap "Exchanged gradient, bytes",
    /// MiB of gradients in one exchange; `none` if they are so many that latency doesn't matter.
    bucket_mib: Option<f64> = Overlap "Gradient bucket, MiB",
    /// How a layer's weights are stored: in `fp32`, converted to BF16 for use; in `bf16`; in BF16 and `beside` it in the
    /// run's precision; or in the run's precision `alone`.
    weights: WeightStorage = Memory "Stored weights",
    /// Bytes of a gradient.
    gradient_bytes: f64 = Memory "Gradient, bytes",
    /// Bytes of a weight's optimizer state in BF16 runs.
    optimizer_bytes: f64 = Memory "Optimizer, bytes",
    /// Bytes of a weight's optimizer state in runs of lower precision.
    narrow_optimizer_bytes: f64 = Memory "Optimizer in FP8, bytes",
    /// Bytes of logits and of the loss's intermediate results, per token and word of the vocabulary.
    logits_bytes: f64 = Memory "Logits, bytes",
    /// Share of the tensors' memory that fragmentation adds.
    fragmentation: f64 = Memory "Fragmentation, share",
    /// How far the memory estimate may be off, as a share of the need. A margin below that is too close to call.
    memory_error: f64 = Memory "Memory error, share",
}

/// A row of `stacks.csv`.
struct StackRow {
    stack: String,
    properties: StackProperties,
}

impl FromRow for StackRow {
    fn from_row(row: &Row<'_>) -> Result<StackRow, DataError> {
        // Every value is replaced.
        let mut properties = StackProperties::default();
        for (name, value) in StackProperties::NAMES.into_iter().zip(properties.values()) {
            let text = row.text(name)?;
            if !value.take(text) {
                return Err(row.error(words!("{name} \"{text}\" is not {}", value.wanted())));
            }
        }
        Ok(StackRow { stack: row.string("stack")?, properties })
    }
}

impl StackProperties {
    /// Returns the properties of a software.
    pub(super) fn of(stack: Stack) -> &'static StackProperties {
        static ALL: LazyLock<Vec<StackProperties>> = LazyLock::new(|| {
            let rows: Vec<StackRow> = embedded!("stacks.csv");
            let of = |stack: Stack| {
                let row = rows.iter().find(|row| row.stack == stack.id());
                row.or(rows.last()).map(|row| row.properties)
            };
            Stack::ALL.into_iter().filter_map(of).collect()
        });
        &ALL[stack as usize]
    }

    /// Returns whether `ga` micro batches can pass through an interleaved pipeline of `pp` stages.
    pub fn allows_rounds(&self, ga: u32, pp: u32) -> bool {
        ga >= pp && (!self.whole_rounds || ga.is_multiple_of(pp))
    }

    /// Whether attention is fused, so that its scores are never stored.
    pub fn fuses_attention(&self) -> bool {
        self.attention != AttentionKernels::Unfused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_software_has_a_row_in_the_order_of_the_list() {
        let rows: Vec<StackRow> = embedded!("stacks.csv");
        let ids: Vec<&str> = rows.iter().map(|row| &*row.stack).collect();
        let known = Stack::ALL.map(Stack::id);
        assert_eq!(ids, known);
    }

    #[test]
    fn the_names_are_the_columns_of_the_file() {
        let file = include_str!("../../data/stacks.csv");
        let header = file.lines().find(|line| !line.starts_with('#')).unwrap();
        let columns: Vec<&str> = header.split(',').skip(1).collect();
        assert_eq!(columns, StackProperties::NAMES);
    }

    #[test]
    fn every_property_says_what_it_means() {
        for property in StackProperties::ALL {
            let meaning = property.meaning();
            assert!(meaning.starts_with(char::is_uppercase) && meaning.ends_with('.'), "{meaning}");
            assert!(!property.label.is_empty(), "{}", property.name);
        }
    }
}
