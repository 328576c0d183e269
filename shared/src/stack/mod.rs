//! The training software: known ones by name, what each of them does, and a user's own with other properties.

#[cfg(feature = "campaign")]
mod file;
mod properties;
mod software;
mod switches;

#[cfg(feature = "campaign")]
pub use file::StackFile;
pub use properties::{
    AttentionKernels, CudaGraphs, ExpertKernels, PropertyGroup, StackProperties, StackProperty, WeightStorage,
};
pub use software::Software;
pub use switches::Switches;

use crate::choices::choices;
use crate::field::Field;
use crate::matching::places_matching;
use crate::problem::{LONGEST_MISSPELT, Problem};
use std::str::FromStr;

choices! {
    /// The training software, divided into generations where its speed changed.
    #[derive(Default)]
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Stack {
        /// Megatron-LM as of SC'21: no fused attention, no sequence parallelism.
        MegatronLm2021 "megatron-lm-2021" "Megatron-LM 2021",
        /// Megatron-LM as of the sequence-parallelism paper: no fused attention.
        MegatronLm2022 "megatron-lm-2022" "Megatron-LM 2022",
        /// Megatron-DeepSpeed with ZeRO-1, 2022 and 2023: no fused attention, no sequence parallelism.
        MegatronDeepSpeed "megatron-deepspeed" "Megatron-DeepSpeed",
        /// NeMo 1 on Megatron-Core as of mid-2024 (24.03, 24.07).
        Nemo24 "nemo-1-24.07" "NeMo 1 (mid-2024)",
        /// NeMo 1 on Megatron-Core, 24.11 to 25.02.
        Nemo1 "nemo-1" "NeMo 1 (24.11 to 25.02)",
        /// NeMo 2 on Megatron-Core, 25.02 to 25.07.
        Nemo2 "nemo-2" "NeMo 2 (2025)",
        /// NVIDIA's MLPerf training submissions.
        MlPerf "nemo-mlperf" "NeMo for MLPerf",
        /// Megatron-Core of 2024 and 2025 as distributed, and collections of scripts around it, such as FlagScale.
        MegatronCore "megatron-core-0.6" "Megatron-Core 0.6",
        /// Megatron-LM 0.14 as distributed, without NeMo's tuning.
        MegatronLm014 "megatron-lm-0.14" "Megatron-LM 0.14",
        /// Megatron-Bridge 25.09 and 25.11.
        Bridge25 "megatron-bridge-25.09" "Megatron-Bridge 25.09 to 25.11",
        /// Megatron-Bridge 26.02 and 26.04.
        Bridge2602 "megatron-bridge-26.02" "Megatron-Bridge 26.02 to 26.04",
        /// Megatron-Bridge 26.06 and later, with its new path for grouped matrix multiplication.
        #[default]
        Bridge2606 "megatron-bridge-26.06" "Megatron-Bridge 26.06 and later",
        /// NeMo AutoModel: PyTorch FSDP2 with Transformer Engine.
        AutoModel "automodel" "NeMo AutoModel",
        /// MosaicML Composer with FSDP.
        Composer "composer-fsdp" "Composer, FSDP",
        /// torchtitan: FSDP2 and tensor parallelism, compiled.
        Torchtitan "torchtitan" "torchtitan",
        /// PyTorch FSDP, compiled, as IBM and Meta tuned it.
        PytorchFsdp "pytorch-fsdp" "PyTorch FSDP, compiled",
        /// InternEvo with hierarchical ZeRO.
        InternEvo "internevo" "InternEvo",
        /// Meta's own, for Llama 3.
        Meta "meta-llama3" "Meta's for Llama 3",
        /// nanotron until December 2024, which kept the sequence that tensor-parallel ranks gathered.
        Nanotron2024 "nanotron-2024" "nanotron (2024)",
        /// nanotron, from 2025 on: layers written in PyTorch, with FlashAttention-2.
        Nanotron "nanotron" "nanotron",
        /// PaddleNLP on PaddlePaddle 2.5, without sequence parallelism.
        PaddleNlp "paddlenlp" "PaddleNLP",
        /// Any software on plain PyTorch: FSDP2, nothing compiled or fused but attention.
        Pytorch "pytorch" "plain PyTorch",
    }
}

/// The year and the month of a version.
type YearMonth = (u32, u32);

/// Versions that people name, and the generation that contains them: a name, its first and its last version as year and
/// month, from the titles above.
const VERSIONS: [(&str, YearMonth, YearMonth, Stack); 6] = [
    ("nemo-1-", (24, 3), (24, 7), Stack::Nemo24),
    ("nemo-1-", (24, 11), (25, 2), Stack::Nemo1),
    ("nemo-2-", (25, 2), (25, 7), Stack::Nemo2),
    ("megatron-bridge-", (25, 9), (25, 11), Stack::Bridge25),
    ("megatron-bridge-", (26, 2), (26, 4), Stack::Bridge2602),
    ("megatron-bridge-", (26, 6), (99, 12), Stack::Bridge2606),
];

impl FromStr for Stack {
    type Err = Problem;

    /// Reads an id, or a version within a generation: `megatron-bridge-25.11` is `megatron-bridge-25.09`.
    fn from_str(text: &str) -> Result<Self, Problem> {
        let wanted = text.trim().to_ascii_lowercase();
        let by_id = Self::ALL.into_iter().find(|stack| stack.id() == wanted);
        let by_version = || {
            VERSIONS.into_iter().find_map(|(name, first, last, stack)| {
                let version = version(wanted.strip_prefix(name)?)?;
                (first..=last).contains(&version).then_some(stack)
            })
        };
        by_id.or_else(by_version).ok_or_else(|| unknown(text))
    }
}

/// The most ids that are named instead of an unknown one.
const MOST_NAMED: usize = 4;

/// Returns the problem of an unknown software. It names those whose ids contain every word of the text, newest first: "megatron-lm" is
/// several. If there is none, it names the one that the text is most like.
fn unknown(text: &str) -> Problem {
    Problem::unknown(Field::Stack, text, Stack::ALL.map(Stack::id)).worded(|unknown| {
        // A letter or two are in many ids.
        if !(3..=LONGEST_MISSPELT).contains(&text.trim().len()) {
            return unknown;
        }
        let ids: Vec<String> = Stack::ALL.into_iter().rev().map(|stack| stack.id().to_string()).collect();
        let places = places_matching(&ids, &text.replace(['-', '_'], " "));
        let mut named = places.into_iter().take(MOST_NAMED).map(|place| ids[place].clone());
        match named.next() {
            Some(first) => Problem { closest: Some(first), ..unknown.suggest(named) },
            None => unknown,
        }
    })
}

/// Returns the year and the month of a version such as `25.11`; a patch such as `25.11.01` doesn't matter.
fn version(text: &str) -> Option<YearMonth> {
    let is_number = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('.').collect();
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(|part| is_number(part)) {
        return None;
    }
    let (year, month) = (parts[0].parse().ok()?, parts[1].parse().ok()?);
    (1..=12).contains(&month).then_some((year, month))
}

impl Stack {
    /// Returns what the software does.
    pub fn properties(self) -> &'static StackProperties {
        StackProperties::of(self)
    }

    /// Returns the oldest software that trains a dense model, or one that routes tokens to experts, like this one does.
    /// Megatron-Bridge 26.06 changed how experts are computed: it runs dense models like 26.02 to 26.04, whose step times for Llama 3.1
    /// on GB200, GB300 and H100 differ from its own by no more than theirs do from each other.
    pub(crate) fn trained_like(self, is_routed: bool) -> Self {
        match self {
            Stack::Bridge2606 if !is_routed => Stack::Bridge2602,
            stack => stack,
        }
    }

    /// Returns the newest known Megatron-LM.
    pub fn newest_megatron_lm() -> Self {
        let is_megatron_lm = |stack: &Self| stack.id().starts_with("megatron-lm-");
        Self::ALL.into_iter().rfind(is_megatron_lm).unwrap_or_default()
    }

    /// Returns whether it is NVIDIA's software on Megatron-Core, as in the recipes.
    pub fn is_nvidia_megatron(self) -> bool {
        use Stack::{Bridge25, Bridge2602, Bridge2606, MlPerf, Nemo1, Nemo2, Nemo24};
        matches!(self, Nemo24 | Nemo1 | Nemo2 | MlPerf | Bridge25 | Bridge2602 | Bridge2606)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_of_the_generation_that_contains_them() {
        for (text, stack) in [
            ("megatron-bridge-25.09", Stack::Bridge25),
            ("megatron-bridge-25.11", Stack::Bridge25),
            (" Megatron-Bridge-25.11.01", Stack::Bridge25),
            ("megatron-bridge-26.02", Stack::Bridge2602),
            ("megatron-bridge-26.04", Stack::Bridge2602),
            ("megatron-bridge-26.06", Stack::Bridge2606),
            ("megatron-bridge-27.01", Stack::Bridge2606),
            ("nemo-1-24.03", Stack::Nemo24),
            ("nemo-1-25.02", Stack::Nemo1),
            ("nemo-2-25.04", Stack::Nemo2),
        ] {
            assert_eq!(text.parse(), Ok(stack), "{text}");
        }
        for stack in Stack::ALL {
            assert_eq!(stack.id().parse(), Ok(stack));
        }
    }

    #[test]
    fn the_newest_megatron_lm_is_found() {
        assert_eq!(Stack::newest_megatron_lm(), Stack::MegatronLm014);
    }

    #[test]
    fn an_unknown_stack_lists_the_choices() {
        for text in
            ["megatron-bridge-25.07", "megatron-bridge-25.13", "megatron-bridge-25", "nemo-2-24.1", ""]
        {
            let problem = text.parse::<Stack>().unwrap_err();
            assert_eq!(problem.allowed.len(), Stack::ALL.len(), "{text}");
            assert!(problem.to_string().contains("`trainplan stacks` lists all."), "{problem}");
        }
        let other = "maxtext".parse::<Stack>().unwrap_err().to_string();
        assert_eq!(
            other,
            "Unknown software \"maxtext\". `trainplan stacks` lists all. A file can describe other software: see \
             docs/stacks.md."
        );
    }
}
