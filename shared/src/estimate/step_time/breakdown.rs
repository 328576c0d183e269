//! The parts of a step's time.

use serde::Serialize;

/// Declares each part once: its field, its variant, its title and its group.
macro_rules! parts {
    ($($(#[doc = $doc:literal])+ $field:ident: $part:ident, $title:literal, $group:ident;)*) => {
        /// Seconds of a step, by what the slowest GPU does or waits for. They add up to the step time.
        #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
        pub struct Breakdown {
            $($(#[doc = $doc])+ pub $field: f64,)*
        }

        /// A part of a step's time.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum StepPart {
            $($(#[doc = $doc])+ $part,)*
        }

        impl StepPart {
            /// Every part, in the order in which they are shown.
            pub const ALL: [StepPart; [$($title),*].len()] = [$(StepPart::$part),*];

            /// Returns the title that tables and charts show.
            pub const fn title(self) -> &'static str {
                match self {
                    $(StepPart::$part => $title,)*
                }
            }

            /// Returns the group that the part belongs to.
            pub const fn group(self) -> StepPartGroup {
                match self {
                    $(StepPart::$part => StepPartGroup::$group,)*
                }
            }
        }

        impl Breakdown {
            /// Returns the parts with their seconds.
            pub fn parts(&self) -> [(StepPart, f64); StepPart::ALL.len()] {
                [$((StepPart::$part, self.$field)),*]
            }

            /// Returns the breakdown with every part multiplied by `factor`.
            pub(crate) fn scaled(self, factor: f64) -> Breakdown {
                Breakdown { $($field: self.$field * factor),* }
            }
        }
    };
}

parts! {
    /// Matrix multiplications.
    matmul: Matmul, "Matrix multiplication", Compute;
    /// Scores and weighted sums of attention.
    attention: Attention, "Attention", Compute;
    /// Kernels limited by memory bandwidth: norms, activation functions, casts, sorting, scans.
    memory_bound: MemoryBound, "Memory-bound kernels", Compute;
    /// Exposed communication of tensor parallelism.
    tensor_parallel: TensorParallel, "Tensor parallel", Communication;
    /// Exposed communication of context parallelism.
    context_parallel: ContextParallel, "Context parallel", Communication;
    /// Exposed all-to-all exchange between experts.
    expert_parallel: ExpertParallel, "Expert parallel", Communication;
    /// Exposed transfers between pipeline stages.
    pipeline_parallel: PipelineParallel, "Pipeline parallel", Communication;
    /// Exposed communication of gradients and weights.
    data_parallel: DataParallel, "Data parallel", Communication;
    /// Pipeline bubble: filling, draining, and waiting for the slowest stage.
    bubble: Bubble, "Pipeline bubble", Waiting;
    /// Waiting for the host to launch kernels, and for copies of activations to CPU memory.
    host: Host, "Kernel launches", Waiting;
    /// The optimizer step.
    optimizer: Optimizer, "Optimizer", PerStep;
    /// Fixed cost of a step.
    other: Other, "Other", PerStep;
    /// Waiting for the slowest of many GPUs.
    straggling: Straggling, "Slowest GPU", Waiting;
}

impl Breakdown {
    /// Returns the step time, in seconds.
    pub fn step_time_s(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }
}

/// A group of parts of a step's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPartGroup {
    /// The GPU computes.
    Compute,
    /// The GPU waits for communication that computation can't hide.
    Communication,
    /// The GPU waits for the pipeline or the host.
    Waiting,
    /// Paid once per step.
    PerStep,
}

impl StepPartGroup {
    /// Every group, in the order in which they are shown.
    pub const ALL: [StepPartGroup; 4] = [
        StepPartGroup::Compute,
        StepPartGroup::Communication,
        StepPartGroup::Waiting,
        StepPartGroup::PerStep,
    ];

    /// Returns the title that charts show.
    pub const fn title(self) -> &'static str {
        match self {
            StepPartGroup::Compute => "Compute",
            StepPartGroup::Communication => "Exposed communication",
            StepPartGroup::Waiting => "Waiting",
            StepPartGroup::PerStep => "Once per step",
        }
    }
}
