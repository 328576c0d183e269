//! Layouts: how a model is spread over GPUs.

mod checks;
mod split;

pub(crate) use checks::{cp_problem, ep_problem, tp_problem};
pub use split::PipelineSplit;

use crate::architecture::Architecture;
use crate::field::Field;
use crate::message;
use crate::message::{Message, Setting};
use crate::problem::{Problem, Refusals, Unworded};
use checks::{check_experts, check_zeros, count_of_gpus, nearest_counts};
use serde::Serialize;
use split::even_stages;

/// Degrees of parallelism before they are checked. All are 1 or more in a valid layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degrees {
    /// Total number of GPUs.
    pub gpus: u32,
    /// GPUs that share each layer.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// GPUs that share each sequence.
    pub cp: u32,
    /// GPUs that share the experts.
    pub ep: u32,
    /// GPUs that share each expert.
    pub expert_tp: u32,
    /// Chunks of layers on each stage; 1 without interleaving.
    pub vp: u32,
    /// How layers are divided among stages.
    pub split: PipelineSplit,
}

impl Default for Degrees {
    fn default() -> Degrees {
        Degrees { gpus: 1, tp: 1, pp: 1, cp: 1, ep: 1, expert_tp: 1, vp: 1, split: PipelineSplit::Even }
    }
}

/// Degrees of parallelism that fit the GPUs and the model, as checked by [`Layout::new`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Layout {
    gpus: u32,
    tp: u32,
    pp: u32,
    cp: u32,
    ep: u32,
    expert_tp: u32,
    vp: u32,
    split: PipelineSplit,
    /// Layers of each stage, first to last.
    stages: Vec<u32>,
}

impl Layout {
    /// Returns the layout of these degrees for an architecture.
    ///
    /// # Errors
    /// One problem for each degree that does not divide its dimension, with the nearest values that do.
    pub fn new(degrees: &Degrees, architecture: &Architecture) -> Result<Layout, Vec<Problem>> {
        let mut problems = Vec::new();
        Layout::checked(degrees, architecture, &mut problems).ok_or(problems)
    }

    /// Returns the layout of these degrees for an architecture; none if it has a problem.
    pub(crate) fn valid(degrees: &Degrees, architecture: &Architecture) -> Option<Layout> {
        Layout::checked(degrees, architecture, &mut Unworded::default())
    }

    fn checked(
        degrees: &Degrees,
        architecture: &Architecture,
        problems: &mut impl Refusals,
    ) -> Option<Layout> {
        let Degrees { gpus, tp, pp, cp, ep, expert_tp, vp, ref split } = *degrees;
        check_zeros(degrees, problems);
        if !problems.is_empty() {
            return None;
        }
        for problem in [tp_problem(tp, architecture), cp_problem(cp, architecture)].into_iter().flatten() {
            problems.add(|| problem);
        }
        let are_groups_possible = problems.is_empty();
        check_experts(degrees, architecture, problems);
        if vp > 1 && pp == 1 {
            problems.add(|| {
                let message = message![
                    Setting::new(Field::Vp, vp),
                    " needs pipeline stages, but ",
                    Field::Pp,
                    " is 1."
                ];
                Problem::new(Field::Vp, vp, message).suggest([1])
            });
        }
        // Wide enough that no product of degrees wraps.
        let model_parallel = (u64::from(tp) * u64::from(pp)).saturating_mul(u64::from(cp));
        // No number of GPUs makes up for groups that can't be.
        if are_groups_possible && !u64::from(gpus).is_multiple_of(model_parallel) {
            problems.add(|| {
                let message = format!(
                    "{} can't be split into groups of {model_parallel} (TP {tp} × PP {pp} × CP {cp}).",
                    count_of_gpus(gpus)
                );
                Problem::new(Field::Gpus, gpus, message).suggest(nearest_counts(degrees, architecture))
            });
        }
        let stages = split.checked_stages(architecture, pp, vp, problems)?;
        let layout = Layout { gpus, tp, pp, cp, ep, expert_tp, vp, split: split.clone(), stages };
        problems.is_empty().then_some(layout)
    }

    /// Returns the layout with these degrees and the same stages. A search calls it for layouts that obey its rules.
    pub(crate) fn set_degrees(&mut self, gpus: u32, tp: u32, cp: u32, ep: u32, expert_tp: u32) {
        (self.gpus, self.tp, self.cp, self.ep, self.expert_tp) = (gpus, tp, cp, ep, expert_tp);
        debug_assert_eq!(self.gpus % (self.tp * self.pp * self.cp), 0, "the search checks its rules first");
    }

    /// Returns the total number of GPUs.
    pub fn gpus(&self) -> u32 {
        self.gpus
    }
    /// Returns the tensor-parallel size.
    pub fn tp(&self) -> u32 {
        self.tp
    }
    /// Returns the number of pipeline stages.
    pub fn pp(&self) -> u32 {
        self.pp
    }
    /// Returns the context-parallel size.
    pub fn cp(&self) -> u32 {
        self.cp
    }
    /// Returns the expert-parallel size.
    pub fn ep(&self) -> u32 {
        self.ep
    }
    /// Returns the tensor-parallel size inside an expert.
    pub fn expert_tp(&self) -> u32 {
        self.expert_tp
    }
    /// Returns the chunks of layers on each stage; 1 without interleaving.
    pub fn vp(&self) -> u32 {
        self.vp
    }
    /// Returns the data-parallel size, GPUs / (TP·PP·CP).
    pub fn dp(&self) -> u32 {
        self.gpus / (self.tp * self.pp * self.cp)
    }
    /// Returns how layers are divided among stages.
    pub fn split(&self) -> &PipelineSplit {
        &self.split
    }
    /// Whether layers are divided evenly, however the split is written.
    pub(crate) fn is_even(&self) -> bool {
        let layers = self.stages.iter().sum();
        self.split == PipelineSplit::Even || self.stages == even_stages(layers, self.pp, self.vp)
    }
    /// Returns the layers of each stage, first to last.
    pub fn stages(&self) -> &[u32] {
        &self.stages
    }

    /// Returns warnings about a layout that works, but slower than a similar one would.
    pub fn warnings(&self, architecture: &Architecture) -> Vec<Message> {
        let mut warnings = Vec::new();
        let chunks = self.pp * self.vp;
        let (layers, counted) = (architecture.layers, architecture.layers + 2);
        let uneven = match self.split {
            PipelineSplit::Even => !layers.is_multiple_of(chunks),
            PipelineSplit::Counted => !counted.is_multiple_of(chunks),
            PipelineSplit::Weighed | PipelineSplit::Explicit(_) => false,
        };
        if uneven {
            let mut warning = Message::from(format!(
                "{layers} layers can't be divided evenly among {chunks} pipeline chunks (PP × VP), \
                 so the fullest stage slows every step."
            ));
            if self.split == PipelineSplit::Even && counted.is_multiple_of(chunks) {
                warning = warning.and(message![
                    " The division is even with ",
                    Setting::new(Field::PipelineSplit, PipelineSplit::Counted),
                    ", which counts the embedding and the loss as a layer each.",
                ]);
            }
            warnings.push(warning);
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use proptest::prelude::*;

    pub(super) fn model(id: &str) -> &'static Architecture {
        &Catalog::embedded().model(id).unwrap().architecture
    }

    pub(super) fn refused(degrees: &Degrees, id: &str) -> Problem {
        Layout::new(degrees, model(id)).unwrap_err().remove(0)
    }

    #[test]
    fn the_405b_splits_evenly_only_when_embedding_and_loss_count() {
        let degrees = Degrees { gpus: 512, tp: 8, pp: 8, cp: 2, vp: 8, ..Degrees::default() };
        let even = Layout::new(&degrees, model("llama3.1-405b")).unwrap();
        assert!(even.warnings(model("llama3.1-405b"))[0].to_string().contains("counted"));
        let counted = Degrees { split: PipelineSplit::Counted, ..degrees };
        let counted = Layout::new(&counted, model("llama3.1-405b")).unwrap();
        assert_eq!(counted.stages(), [15, 16, 16, 16, 16, 16, 16, 15]);
        assert!(counted.warnings(model("llama3.1-405b")).is_empty());
    }

    proptest! {
        #[test]
        fn a_layout_uses_every_gpu_and_every_layer(
            gpus in 0u32..5000, tp in 0u32..20, pp in 0u32..20, cp in 0u32..5, vp in 0u32..13, split in 0usize..3,
        ) {
            let split = [PipelineSplit::Even, PipelineSplit::Counted, PipelineSplit::Weighed][split].clone();
            let architecture = model("llama3.1-405b");
            match Layout::new(&Degrees { gpus, tp, pp, cp, vp, split, ..Degrees::default() }, architecture) {
                Ok(layout) => {
                    prop_assert_eq!(layout.dp() * layout.tp() * layout.pp() * layout.cp(), gpus);
                    prop_assert_eq!(layout.stages().iter().sum::<u32>(), architecture.layers);
                }
                Err(problems) => prop_assert!(!problems.is_empty()),
            }
        }

        #[test]
        fn extreme_degrees_do_not_overflow(tp: u32, pp: u32, cp: u32, vp: u32, ep: u32, gpus: u32) {
            let degrees = Degrees { gpus, tp, pp, cp, vp, ep, ..Degrees::default() };
            let _ = Layout::new(&degrees, model("deepseek-v3"));
        }
    }
}
