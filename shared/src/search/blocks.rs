//! The choices that decide the costs of a micro batch, in the order of a lower bound of the step time.
//!
//! There are hundreds of thousands of them, and few work on a given number of GPUs. So they are computed in groups, when a
//! number of GPUs first needs the group.

use super::rules::tp_stays_in_domain;
use super::space::{Dimensions, Pipeline, PipelineKind};
use super::{Candidate, SearchSpace};
use crate::batch::Batch;
use crate::cluster_factors::ClusterFactor;
use crate::estimate::{Anchors, Constants, Coordinate, Inputs, MicroBatchCosts};
use crate::layout::Layout;
use crate::options::{Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::sorting::{ascending, sorted};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

/// The coordinates that all layouts of a block choice share, apart from the division of experts.
pub(super) const OF_MICRO_BATCH: [Coordinate; 6] = [
    Coordinate::SeqLen,
    Coordinate::Layers,
    Coordinate::Recompute,
    Coordinate::Tp,
    Coordinate::Cp,
    Coordinate::Mbs,
];

/// The coordinates of the division of experts.
pub(super) const OF_EXPERTS: [Coordinate; 2] = [Coordinate::Ep, Coordinate::ExpertTp];

/// The choices that decide the costs of a micro batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockChoice {
    pub(super) dtype: Dtype,
    pub(super) recompute: Recompute,
    pub(super) tp: u32,
    pub(super) cp: u32,
    pub(super) mbs: u32,
    pub(super) ep: u32,
    pub(super) expert_tp: u32,
    /// Least seconds per sequence on one GPU, by the physical model.
    pub(super) modelled_s: f64,
    /// The same, with the least correction by measurements and by the user's cluster.
    pub(super) least_s: f64,
}

/// What all choices of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    tp: u32,
    cp: u32,
    mbs: u32,
}

/// The block choices of a space, for any number of GPUs and any global batch.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Each sorted by its bound.
    groups: RefCell<BTreeMap<GroupKey, Rc<[BlockChoice]>>>,
}

impl Blocks {
    /// Iterates over the choices that may work on a number of GPUs, that with the smallest bound first.
    pub(super) fn on(&self, gpus: u32, space: &SearchSpace<'_>, dimensions: &Dimensions) -> Merged {
        let mut known = self.groups.borrow_mut();
        let mut merged = Merged::default();
        for key in keys(gpus, space, dimensions) {
            merged.add(Rc::clone(known.entry(key).or_insert_with(|| group(key, space, dimensions))));
        }
        merged
    }
}

/// Returns the groups that have a layout which divides the GPUs and the batch.
fn keys(gpus: u32, space: &SearchSpace<'_>, dimensions: &Dimensions) -> BTreeSet<GroupKey> {
    let stages: Vec<u32> = dimensions.pipelines.iter().map(|pipeline| pipeline.pp).collect();
    let stages = ascending(&stages);
    let mut keys = BTreeSet::new();
    for tp in dimensions.tp.iter().copied().filter(|tp| tp_stays_in_domain(*tp, space.gpu)) {
        for cp in dimensions.cp.iter().copied().filter(|cp| gpus.is_multiple_of(tp * cp)) {
            for ranks in stages.iter().map(|pp| tp * cp * pp).filter(|ranks| gpus.is_multiple_of(*ranks)) {
                let dp = gpus / ranks;
                for gbs in dimensions.gbs.iter().filter(|gbs| gbs.is_multiple_of(dp)) {
                    let divides = |mbs: &u32| (gbs / dp).is_multiple_of(*mbs);
                    let mbs = dimensions.mbs.iter().copied().filter(divides);
                    keys.extend(mbs.map(|mbs| GroupKey { tp, cp, mbs }));
                }
            }
        }
    }
    keys
}

/// Returns the choices of a group, that with the smallest bound first.
fn group(
    GroupKey { tp, cp, mbs }: GroupKey,
    space: &SearchSpace<'_>,
    dimensions: &Dimensions,
) -> Rc<[BlockChoice]> {
    let (constants, anchors) = (Constants::embedded(), Anchors::embedded());
    let batch = Batch::of_ranks(space.seq_len, mbs, mbs, 1);
    // One pipeline of each kind stands for all.
    let software = space.options.software.properties();
    let of_kind = |kind| dimensions.pipelines.iter().find(|each| each.kind(software) == kind);
    let mut templates: Vec<Layout> =
        PipelineKind::ALL.into_iter().filter_map(of_kind).map(|pipeline| pipeline.layout.clone()).collect();
    let mut choices = Vec::new();
    for (dtype, recompute) in pairs(&dimensions.dtypes, &dimensions.recompute) {
        let options = TrainingOptions { recompute, ..space.options };
        let mut costs: [Option<MicroBatchCosts<'_>>; PipelineKind::ALL.len()] = Default::default();
        let mut correction = None;
        let mut of_experts = None;
        for (ep, expert_tp) in dimensions.experts.iter().copied() {
            let mut modelled_s = f64::INFINITY;
            let mut least_correction = 1.0;
            for (layout, costs) in templates.iter_mut().zip(&mut costs) {
                layout.set_degrees(tp * cp * ep * expert_tp * layout.pp(), tp, cp, ep, expert_tp);
                let inputs = Inputs {
                    architecture: space.architecture,
                    gpu: space.gpu,
                    dtype,
                    layout,
                    batch: &batch,
                    options: &options,
                };
                let correction =
                    correction.get_or_insert_with(|| anchors.bound(&inputs).given(&OF_MICRO_BATCH, &inputs));
                least_correction = match of_experts {
                    Some((known, least)) if known == (ep, expert_tp) => least,
                    _ => correction.given(&OF_EXPERTS, &inputs).least(),
                };
                of_experts = Some(((ep, expert_tp), least_correction));
                let own = match costs {
                    Some(costs) => costs.with_experts_of(&inputs),
                    None => MicroBatchCosts::of(&inputs, constants),
                };
                modelled_s = modelled_s.min(own.least_s_per_sequence(&inputs));
                *costs = Some(own);
            }
            let least_s = modelled_s * least_correction * options.cluster.of(ClusterFactor::Step);
            choices.push(BlockChoice { dtype, recompute, tp, cp, mbs, ep, expert_tp, modelled_s, least_s });
        }
    }
    sorted(&choices, |one, other| one.least_s.total_cmp(&other.least_s)).into()
}

/// Returns every pair of two lists.
fn pairs<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    first.iter().flat_map(|one| second.iter().map(move |other| (*one, *other))).collect()
}

/// The choices of sorted groups as one sorted list.
#[derive(Debug, Default)]
pub(super) struct Merged {
    groups: Vec<Rc<[BlockChoice]>>,
    /// The bound of each group's next choice, the group, and the place of the choice in it. The bits of numbers that are not
    /// negative sort as the numbers do.
    next: BinaryHeap<Reverse<(u64, usize, usize)>>,
}

impl Merged {
    fn add(&mut self, group: Rc<[BlockChoice]>) {
        self.groups.push(group);
        self.queue(self.groups.len() - 1, 0);
    }

    fn queue(&mut self, group: usize, place: usize) {
        if let Some(choice) = self.groups[group].get(place) {
            self.next.push(Reverse((choice.least_s.to_bits(), group, place)));
        }
    }
}

impl Iterator for Merged {
    type Item = BlockChoice;

    fn next(&mut self) -> Option<BlockChoice> {
        let Reverse((_, group, place)) = self.next.pop()?;
        self.queue(group, place + 1);
        self.groups[group].get(place).copied()
    }
}

impl BlockChoice {
    /// Returns the layout with a pipeline, a batch and with or without FSDP.
    pub(super) fn with(&self, pipeline: &Pipeline, gbs: u32, fsdp: bool) -> Candidate {
        let BlockChoice { dtype, recompute, tp, cp, mbs, ep, expert_tp, .. } = *self;
        let Pipeline { pp, vp, counted, .. } = *pipeline;
        Candidate { dtype, gbs, mbs, tp, pp, cp, ep, expert_tp, vp, counted, recompute, fsdp }
    }
}
