//! The rules that discard layouts in a search: divisibility, and what the training software allows.

use super::Candidate;
use crate::architecture::Architecture;
use crate::catalog::{Generation, Gpu};
use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::layout::Layout;
use crate::precision::Dtype;
use crate::stack::{Stack, StackProperties};
use crate::words::words;
use std::sync::LazyLock;

choices! {
    /// A rule that discards layouts, in the order in which a search applies them.
    Rule {
        /// A tensor-parallel group would span NVLink domains.
        TpInDomain "tp_in_domain" "TP would leave the NVLink domain",
        /// FSDP is required, excluded, or excludes the layout's pipeline or context parallelism.
        Fsdp "fsdp" "the software does not combine FSDP with this layout",
        /// The GPUs can't be divided into groups of TP × CP × PP.
        GpusDivide "gpus_divide" "the GPUs can't be divided by TP × CP × PP",
        /// The GPUs can't be divided into groups of expert TP × EP × PP.
        ExpertsDivide "experts_divide" "the GPUs can't be divided by expert TP × EP × PP",
        /// The global batch can't be divided by MBS × DP.
        BatchDivides "batch_divides" "the global batch can't be divided by MBS × DP",
        /// Interleaving needs a micro batch for each stage, and in some software a multiple of PP.
        WholeRounds "whole_rounds" "interleaving needs at least PP micro batches, in some software a multiple of PP",
        /// The fullest GPU needs more memory than there is.
        Memory "memory" "a GPU would need more memory than it has",
    }
}

choices! {
    /// Whether software shards weights and gradients over data-parallel ranks.
    FsdpSupport {
        /// It can't.
        Never "never",
        /// It can.
        May "may",
        /// It always does.
        Must "must",
    }
}

/// What a layout needs that a software doesn't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsupported {
    /// TP above its maximum.
    Tensor(u32),
    /// Pipeline stages.
    Pipeline,
    /// Context parallelism.
    Context,
    /// Interleaved stages.
    Interleaving,
    /// Expert parallelism.
    Experts,
    /// FSDP.
    Fsdp,
    /// FSDP together with pipeline stages or context parallelism.
    FsdpWithStages,
    /// Training without FSDP.
    WithoutFsdp,
}

/// What a training software allows.
#[derive(Debug, Clone, PartialEq)]
pub struct StackRules {
    stack: String,
    generations: String,
    precisions: String,
    /// Largest TP; none without a limit.
    pub max_tp: Option<u32>,
    /// Whether it has pipelines.
    pub pp: bool,
    /// Whether it has context parallelism.
    pub cp: bool,
    /// Whether it interleaves pipeline stages.
    pub vp: bool,
    /// Whether it has expert parallelism.
    pub ep: bool,
    /// Whether pipeline chunks may hold different numbers of layers.
    pub uneven: bool,
    /// Whether the embedding and the loss can count as a layer each.
    pub counted: bool,
    /// Whether it shards weights and gradients.
    pub fsdp: FsdpSupport,
    /// Whether FSDP excludes pipelines and context parallelism.
    pub fsdp_alone: bool,
}

impl FromRow for StackRules {
    fn from_row(row: &Row<'_>) -> Result<StackRules, DataError> {
        let fsdp = row.text("fsdp")?;
        let support = FsdpSupport::ALL.into_iter().find(|support| support.id() == fsdp);
        Ok(StackRules {
            // Texts come last, because reading anything after them adds code that drops them.
            max_tp: row.optional("max_tp")?,
            pp: row.yes("pp")?,
            cp: row.yes("cp")?,
            vp: row.yes("vp")?,
            ep: row.yes("ep")?,
            uneven: row.yes("uneven")?,
            counted: row.yes("counted")?,
            fsdp: support.ok_or_else(|| row.error(words!("\"{fsdp}\" is not never, may or must")))?,
            fsdp_alone: row.yes("fsdp_alone")?,
            stack: row.string("stack")?,
            generations: row.string("generations")?,
            precisions: row.string("precisions")?,
        })
    }
}

impl StackRules {
    /// Returns the rules of a software; those of the default one if the data file lacks it.
    pub fn of(stack: Stack) -> &'static StackRules {
        static ALL: LazyLock<Vec<StackRules>> = LazyLock::new(|| embedded!("stack_rules.csv"));
        let find = |stack: Stack| ALL.iter().find(|rules| rules.stack == stack.id());
        find(stack).or_else(|| find(Stack::default())).unwrap_or(&ALL[0])
    }

    /// Whether the software runs on a generation of GPUs.
    pub fn runs_on(&self, generation: Generation) -> bool {
        self.generations.split(' ').any(|id| id == generation.id())
    }

    /// Whether the software computes in a precision on a GPU.
    pub fn computes_in(&self, dtype: Dtype, gpu: &Gpu) -> bool {
        gpu.datasheet_tflops(dtype).is_some() && self.precisions.split(' ').any(|id| id == dtype.id())
    }

    /// Returns the first rule other than memory that discards a candidate whose pipeline software with these properties can
    /// build.
    pub fn broken(
        &self,
        candidate: &Candidate,
        gpus: u32,
        gpu: &Gpu,
        properties: &StackProperties,
    ) -> Option<Rule> {
        let Candidate { tp, pp, cp, ep, expert_tp, vp, mbs, gbs, fsdp, .. } = *candidate;
        let ranks = tp * cp * pp;
        if !tp_stays_in_domain(tp, gpu) {
            Some(Rule::TpInDomain)
        } else if !self.allows_fsdp(fsdp, pp, cp) {
            Some(Rule::Fsdp)
        } else if !gpus.is_multiple_of(ranks) {
            Some(Rule::GpusDivide)
        } else if !gpus.is_multiple_of(expert_tp * ep * pp) {
            Some(Rule::ExpertsDivide)
        } else if !gbs.is_multiple_of(mbs * (gpus / ranks)) {
            Some(Rule::BatchDivides)
        } else if vp > 1 && !properties.allows_rounds(gbs / (mbs * (gpus / ranks)), pp) {
            Some(Rule::WholeRounds)
        } else {
            None
        }
    }

    /// Returns the first thing that a layout needs and the software doesn't have.
    pub fn unsupported(&self, layout: &Layout, fsdp: bool) -> Option<Unsupported> {
        let (pp, cp) = (layout.pp(), layout.cp());
        let found = [
            (
                self.max_tp.is_some_and(|most| layout.tp() > most),
                Unsupported::Tensor(self.max_tp.unwrap_or(1)),
            ),
            (pp > 1 && !self.pp, Unsupported::Pipeline),
            (cp > 1 && !self.cp, Unsupported::Context),
            (layout.vp() > 1 && !self.vp, Unsupported::Interleaving),
            (layout.ep() > 1 && !self.ep, Unsupported::Experts),
            (fsdp && self.fsdp == FsdpSupport::Never, Unsupported::Fsdp),
            (!fsdp && self.fsdp == FsdpSupport::Must, Unsupported::WithoutFsdp),
            (!self.allows_fsdp(fsdp, pp, cp), Unsupported::FsdpWithStages),
        ];
        found.into_iter().find(|(is_missing, _)| *is_missing).map(|(_, what)| what)
    }

    /// Whether the software combines FSDP, or its absence, with a pipeline and context parallelism.
    pub(super) fn allows_fsdp(&self, fsdp: bool, pp: u32, cp: u32) -> bool {
        match self.fsdp {
            FsdpSupport::Never => !fsdp,
            FsdpSupport::May => !fsdp || !self.fsdp_alone || (pp == 1 && cp == 1),
            FsdpSupport::Must => fsdp && (!self.fsdp_alone || (pp == 1 && cp == 1)),
        }
    }

    /// Whether the software can divide a model's layers into `pp` stages of `vp` chunks; with `counted`, embedding and loss
    /// count as a layer each.
    ///
    /// Stages of different sizes are for models that can't be divided evenly into that power of two. Their chunks are interleaved
    /// only if embedding, loss and multi-token prediction fill the gaps but one: the model doesn't see the wait for a larger chunk.
    pub(super) fn divides(&self, architecture: &Architecture, pp: u32, vp: u32, counted: bool) -> bool {
        let (layers, chunks) = (architecture.layers, pp * vp);
        let slots = layers + if counted { 2 } else { 0 };
        if slots.is_multiple_of(chunks) {
            return true;
        }
        let divisible = !pp.is_power_of_two() || layers.is_multiple_of(pp) || (layers + 2).is_multiple_of(pp);
        let filled = {
            let slots = layers + 2 + architecture.mtp_layers;
            slots.next_multiple_of(chunks) - slots <= FREE_SLOTS
        };
        self.uneven && !counted && !divisible && chunks <= layers && (vp == 1 || filled)
    }
}

/// Chunks that may have a layer less than the others: NVIDIA's Kimi K2 recipe divides 61 layers, embedding and loss among 16 chunks.
const FREE_SLOTS: u32 = 1;

/// GPUs of an NVL72 that jobs use: whole groups of a power of two, with two trays to spare.
pub const USED_OF_NVL72: u32 = 64;

/// Whether tensor-parallel groups of this size fill NVLink domains.
pub(super) fn tp_stays_in_domain(tp: u32, gpu: &Gpu) -> bool {
    let used = if gpu.nvlink_domain > USED_OF_NVL72 { USED_OF_NVL72 } else { gpu.nvlink_domain };
    used.is_multiple_of(tp)
}

/// Whether groups of experts of this size fill nodes: token dispatchers divide a group that spans nodes evenly among them.
pub(super) fn fills_nodes(group: u32, gpu: &Gpu) -> bool {
    let node = gpu.gpus_per_node.max(1);
    group.is_multiple_of(node) || node.is_multiple_of(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_software_has_rules() {
        for stack in Stack::ALL {
            assert_eq!(StackRules::of(stack).stack, stack.id());
        }
    }

    #[test]
    fn every_name_in_the_rules_is_known() {
        for stack in Stack::ALL {
            let rules = StackRules::of(stack);
            let known = |id: &str| Generation::ALL.iter().any(|generation| generation.id() == id);
            assert!(rules.generations.split(' ').all(known), "{stack}");
            assert!(rules.precisions.split(' ').all(|id| id.parse::<Dtype>().is_ok()), "{stack}");
        }
    }

    #[test]
    fn groups_of_tensor_parallelism_fill_nvlink_domains() {
        let gpu = |id: &str| Catalog::embedded().gpu(id).unwrap();
        let within = |id: &str| (1..=128).filter(|tp| tp_stays_in_domain(*tp, gpu(id))).collect::<Vec<u32>>();
        assert_eq!(within("h100"), [1, 2, 4, 8]);
        assert_eq!(within("gb200"), [1, 2, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn groups_of_experts_fill_nodes() {
        let filled = |id: &str| {
            let gpu = Catalog::embedded().gpu(id).unwrap();
            [1, 2, 4, 5, 8, 10, 12, 16, 20, 40]
                .into_iter()
                .filter(|ep| fills_nodes(*ep, gpu))
                .collect::<Vec<u32>>()
        };
        assert_eq!(filled("h100"), [1, 2, 4, 8, 16, 40]);
        assert_eq!(filled("gb200"), [1, 2, 4, 8, 12, 16, 20, 40]);
    }
}
