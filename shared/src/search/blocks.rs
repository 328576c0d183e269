//! The choices that decide the costs of a micro batch, in the order of a lower bound of the step time.
//!
//! There are hundreds of thousands of them, and few work on a given number of GPUs. So they are computed in groups, when a
//! number of GPUs first needs the group.

use super::rules::tp_stays_in_domain;
use super::space::{Dimensions, Pipeline, PipelineKind};
use super::{Candidate, SearchSpace};
use crate::batch::Batch;
use crate::cluster_factors::ClusterFactor;
use crate::estimate::{Anchors, Constants, Coordinate, Inputs, MicroBatchCosts, Nearness, SimilarRuns};
use crate::layout::Layout;
use crate::options::{Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::sorting::{ascending, sorted};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

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
    /// The place in [`Blocks::nearness`] of how near its layouts are to measured runs in what its group and recomputation decide.
    nearness: usize,
}

/// What all choices of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    tp: u32,
    cp: u32,
    mbs: u32,
}

/// The block choices of a space, for any number of GPUs and any global batch.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Each sorted by its bound.
    groups: RefCell<BTreeMap<GroupKey, Rc<[BlockChoice]>>>,
    /// The measured runs to which layouts of a precision can be similar.
    similar_runs: Vec<(Dtype, SimilarRuns<'static>)>,
    /// Shared by many choices, which refer to it.
    nearness: RefCell<Vec<Nearness>>,
}

impl Blocks {
    /// Prepares the choices of a space.
    pub(super) fn new(space: &SearchSpace<'_>, dimensions: &Dimensions) -> Blocks {
        let batch = Batch::of_ranks(space.seq_len, 1, 1, 1);
        let similar_runs = |dtype: &Dtype| {
            let inputs = Inputs {
                architecture: space.architecture,
                gpu: space.gpu,
                dtype: *dtype,
                layout: &dimensions.pipelines.first()?.layout,
                batch: &batch,
                options: &space.options,
            };
            Some((*dtype, Anchors::embedded().similar_runs(&inputs)))
        };
        Blocks {
            groups: RefCell::default(),
            similar_runs: dimensions.dtypes.iter().filter_map(similar_runs).collect(),
            nearness: RefCell::default(),
        }
    }

    /// Returns the measured runs that layouts of a precision can resemble, or `None` if the space has no such layouts.
    pub(super) fn similar_runs(&self, dtype: Dtype) -> Option<&SimilarRuns<'static>> {
        self.similar_runs.iter().find(|(of, _)| *of == dtype).map(|(_, runs)| runs)
    }

    /// Iterates over the choices that may work on a number of GPUs, that with the smallest bound first.
    pub(super) fn on(&self, gpus: u32, space: &SearchSpace<'_>, dimensions: &Dimensions) -> Merged {
        let mut known = self.groups.borrow_mut();
        let mut merged = Merged::default();
        for key in keys(gpus, space, dimensions) {
            let group = known.entry(key).or_insert_with(|| self.group(key, space, dimensions));
            merged.add(Rc::clone(group));
        }
        merged
    }

    /// Returns how near the layouts of a choice on a number of GPUs are to measured runs, in everything but the pipeline.
    pub(super) fn nearness(
        &self,
        choice: &BlockChoice,
        similar_runs: &SimilarRuns<'_>,
        gpus: u32,
    ) -> Nearness {
        let [ep, expert_tp] = of_experts(choice.ep, choice.expert_tp);
        let numbers = [ep, expert_tp, (Coordinate::Gpus, gpus)];
        match self.nearness.borrow().get(choice.nearness) {
            Some(of_group) => similar_runs.nearer(of_group, &numbers),
            None => similar_runs.nearness_in(&numbers),
        }
    }

    /// Returns the choices of a group, that with the smallest bound first.
    fn group(&self, key: GroupKey, space: &SearchSpace<'_>, dimensions: &Dimensions) -> Rc<[BlockChoice]> {
        let GroupKey { tp, cp, mbs } = key;
        let batch = Batch::of_ranks(space.seq_len, mbs, mbs, 1);
        // One pipeline of each kind stands for all.
        let software = space.options.software.properties();
        let of_kind = |kind| dimensions.pipelines.iter().find(|each| each.kind(software) == kind);
        let mut templates: Vec<Layout> = PipelineKind::ALL
            .into_iter()
            .filter_map(of_kind)
            .map(|pipeline| pipeline.layout.clone())
            .collect();
        let mut choices = Vec::new();
        for (dtype, recompute) in pairs(&dimensions.dtypes, &dimensions.recompute) {
            let Some(similar_runs) = self.similar_runs(dtype) else { continue };
            let of_group = similar_runs.nearness_in(&[
                (Coordinate::SeqLen, space.seq_len),
                (Coordinate::Layers, space.architecture.layers),
                (Coordinate::Recompute, recompute as u32),
                (Coordinate::Tp, tp),
                (Coordinate::Cp, cp),
                (Coordinate::Mbs, mbs),
            ]);
            let place = self.nearness.borrow().len();
            self.nearness.borrow_mut().push(Rc::clone(&of_group));
            let options = TrainingOptions { recompute, ..space.options };
            let mut costs: [Option<MicroBatchCosts<'_>>; PipelineKind::ALL.len()] = Default::default();
            for (ep, expert_tp) in dimensions.experts.iter().copied() {
                let mut modelled_s = f64::INFINITY;
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
                    let own = match costs {
                        Some(costs) => costs.with_experts_of(&inputs),
                        None => MicroBatchCosts::of(&inputs, Constants::embedded()),
                    };
                    modelled_s = modelled_s.min(own.least_s_per_sequence(&inputs));
                    *costs = Some(own);
                }
                let nearness = similar_runs.nearer(&of_group, &of_experts(ep, expert_tp));
                let correction = similar_runs.least(&nearness) * options.cluster.of(ClusterFactor::Step);
                let least_s = modelled_s * correction;
                choices.push(BlockChoice {
                    dtype,
                    recompute,
                    tp,
                    cp,
                    mbs,
                    ep,
                    expert_tp,
                    modelled_s,
                    least_s,
                    nearness: place,
                });
            }
        }
        sorted(&choices, |one, other| one.least_s.total_cmp(&other.least_s)).into()
    }
}

/// Returns the numbers of the division of experts.
fn of_experts(ep: u32, expert_tp: u32) -> [(Coordinate, u32); 2] {
    [(Coordinate::Ep, ep), (Coordinate::ExpertTp, expert_tp)]
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
        let Pipeline { pp, vp, split, .. } = *pipeline;
        Candidate { dtype, gbs, mbs, tp, pp, cp, ep, expert_tp, vp, split, recompute, fsdp }
    }
}
