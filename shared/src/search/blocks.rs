//! The choices that decide the costs of a micro batch, in the order of a lower bound of the step time.
//!
//! There are hundreds of thousands of them, and a search needs few. So they are computed in groups, each when a search first reaches
//! the group's own bound.

use super::rules::tp_stays_in_domain;
use super::space::{Dimensions, Pipeline, PipelineKind};
use super::{Candidate, SearchSpace};
use crate::batch::Batch;
use crate::cluster_factors::ClusterFactor;
use crate::estimate::{
    Anchors, Constants, Coordinate, Inputs, LayoutIntervals, MicroBatchCosts, Nearness, SimilarRuns,
};
use crate::layout::Layout;
use crate::options::{Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::sorting::{ascending, sorted};
use std::cell::{OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// Less than rounding could add.
const FLOOR: f64 = 1.0 - 1e-9;

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

/// What all choices of a group have in common: they differ in how experts are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    dtype: Dtype,
    recompute: Recompute,
    tp: u32,
    cp: u32,
    mbs: u32,
}

/// Choices with the same key.
#[derive(Debug)]
struct Group {
    key: GroupKey,
    /// At most [`BlockChoice::modelled_s`] of each choice: its own bound, or that of the group that recomputes nothing.
    modelled_s: f64,
    /// Its own bound, which is computed when first needed.
    own_s: OnceCell<f64>,
    /// At most the ratio of [`BlockChoice::least_s`] to [`BlockChoice::modelled_s`] of each choice.
    correction: f64,
    /// How near its layouts are to measured runs, judged by what the layouts share.
    nearness: Nearness,
    /// Sorted by their bounds; computed when first needed.
    choices: OnceCell<Vec<BlockChoice>>,
}

/// What all choices in a precision have in common.
#[derive(Debug)]
struct PrecisionBlocks {
    dtype: Dtype,
    /// The options before the search chooses any. To read them from the recipes takes as long as to compute costs.
    options: TrainingOptions,
    /// The measured runs to which layouts can be similar.
    similar_runs: SimilarRuns<'static>,
}

/// The block choices of a space, for any number of GPUs and any global batch.
#[derive(Debug)]
pub(super) struct Blocks {
    /// Those that were reached so far, sorted by their keys. A list, because it makes less code in the browser than a map.
    groups: RefCell<Vec<Rc<Group>>>,
    precisions: Vec<PrecisionBlocks>,
}

impl Blocks {
    /// Prepares the choices of a space.
    pub(super) fn new(space: &SearchSpace<'_>, dimensions: &Dimensions) -> Blocks {
        let batch = Batch::of_ranks(space.seq_len, 1, 1, 1);
        let in_precision = |dtype: &Dtype| {
            let options = space.options_in(*dtype);
            let inputs = Inputs {
                architecture: space.architecture,
                gpu: space.gpu,
                dtype: *dtype,
                layout: &dimensions.pipelines.first()?.layout,
                batch: &batch,
                options: &options,
            };
            let similar_runs = Anchors::embedded().similar_runs(&inputs);
            Some(PrecisionBlocks { dtype: *dtype, options, similar_runs })
        };
        Blocks {
            groups: RefCell::default(),
            precisions: dimensions.dtypes.iter().filter_map(in_precision).collect(),
        }
    }

    /// Returns the measured runs that layouts of a precision can resemble, or `None` if the space has no such layouts.
    pub(super) fn similar_runs(&self, dtype: Dtype) -> Option<&SimilarRuns<'static>> {
        self.in_precision(dtype).map(|precision| &precision.similar_runs)
    }

    fn in_precision(&self, dtype: Dtype) -> Option<&PrecisionBlocks> {
        self.precisions.iter().find(|precision| precision.dtype == dtype)
    }

    /// Returns the choices that may work on a number of GPUs.
    pub(super) fn on<'b>(
        &'b self,
        gpus: u32,
        space: &'b SearchSpace<'b>,
        dimensions: &'b Dimensions,
        intervals: LayoutIntervals,
    ) -> ChoiceQueue<'b> {
        let mut known = self.groups.borrow_mut();
        let mut groups = Vec::new();
        for (tp, cp, mbs) in degrees(gpus, space, dimensions) {
            for (dtype, recompute) in pairs(&dimensions.dtypes, &dimensions.recompute) {
                let key = GroupKey { dtype, recompute, tp, cp, mbs };
                let place = place_of(&known, key).unwrap_or_else(|place| {
                    let without_recompute = GroupKey { recompute: Recompute::None, ..key };
                    let faster =
                        place_of(&known, without_recompute).ok().map(|place| Rc::clone(&known[place]));
                    let group = self.group(key, faster.as_deref(), space, dimensions);
                    known.insert(place, Rc::new(group));
                    place
                });
                groups.push(Rc::clone(&known[place]));
            }
        }
        let bound = |(place, group): (usize, &Rc<Group>)| Reverse((group.bound_s().to_bits(), place, 0));
        let next = groups.iter().enumerate().map(bound).collect();
        let groups = groups.into_iter().map(|group| QueuedGroup { group, near: None }).collect();
        ChoiceQueue { blocks: self, space, dimensions, gpus, intervals, groups, next }
    }

    /// Returns a group. Its choices are computed later. `faster` is the group that differs only in recomputing nothing: it is never
    /// slower, so that its bound is one of both, and most groups need no closer one.
    fn group(
        &self,
        key: GroupKey,
        faster: Option<&Group>,
        space: &SearchSpace<'_>,
        dimensions: &Dimensions,
    ) -> Group {
        let of_group = self.similar_runs(key.dtype).map(|similar_runs| {
            similar_runs.nearness_in(&[
                (Coordinate::SeqLen, space.seq_len),
                (Coordinate::Layers, space.architecture.layers),
                (Coordinate::Recompute, key.recompute as u32),
                (Coordinate::Tp, key.tp),
                (Coordinate::Cp, key.cp),
                (Coordinate::Mbs, key.mbs),
            ])
        });
        let nearness = of_group.unwrap_or_default();
        let correction = self.least_correction(key.dtype, &nearness, space) * FLOOR;
        let (modelled_s, own_s) = match faster {
            Some(faster) => (faster.modelled_s * FLOOR, OnceCell::new()),
            None => {
                let modelled_s = self.modelled_s(key, space, dimensions);
                (modelled_s, OnceCell::from(modelled_s))
            }
        };
        Group { key, modelled_s, own_s, correction, nearness, choices: OnceCell::new() }
    }

    /// Returns at most the modelled time of each choice of a group.
    fn modelled_s(&self, key: GroupKey, space: &SearchSpace<'_>, dimensions: &Dimensions) -> f64 {
        self.costs(key, space, dimensions).least_s(1, 1, MicroBatchCosts::with_least_experts) * FLOOR
    }

    /// Returns the choices of a group, that with the smallest bound first.
    fn choices(&self, group: &Group, space: &SearchSpace<'_>, dimensions: &Dimensions) -> Vec<BlockChoice> {
        let GroupKey { dtype, recompute, tp, cp, mbs } = group.key;
        let Some(similar_runs) = self.similar_runs(dtype) else { return Vec::new() };
        let mut costs = self.costs(group.key, space, dimensions);
        let choice = |(ep, expert_tp): &(u32, u32)| {
            let (ep, expert_tp) = (*ep, *expert_tp);
            let modelled_s = costs.least_s(ep, expert_tp, MicroBatchCosts::with_experts_of);
            let nearness = similar_runs.nearer(&group.nearness, &of_experts(ep, expert_tp));
            let least_s = modelled_s * self.least_correction(dtype, &nearness, space);
            BlockChoice { dtype, recompute, tp, cp, mbs, ep, expert_tp, modelled_s, least_s }
        };
        let choices: Vec<BlockChoice> = dimensions.experts.iter().map(choice).collect();
        sorted(&choices, |one, other| one.least_s.total_cmp(&other.least_s))
    }

    /// Returns the costs of the layouts of a key.
    fn costs<'b>(
        &self,
        key: GroupKey,
        space: &'b SearchSpace<'b>,
        dimensions: &Dimensions,
    ) -> GroupCosts<'b> {
        let options = self.in_precision(key.dtype).map_or(space.options, |precision| precision.options);
        GroupCosts::new(key, options, space, dimensions)
    }

    /// Returns the least factor on the modelled time of layouts that are at most so near to measured runs.
    fn least_correction(&self, dtype: Dtype, nearness: &[f64], space: &SearchSpace<'_>) -> f64 {
        let measured = self.similar_runs(dtype).map_or(1.0, |similar_runs| similar_runs.least(nearness));
        measured * space.options.cluster.of(ClusterFactor::Step)
    }
}

/// Returns the index of a group in a sorted list, or where to insert it.
fn place_of(groups: &[Rc<Group>], key: GroupKey) -> Result<usize, usize> {
    groups.binary_search_by(|group| group.key.cmp(&key))
}

/// The costs of a group's layouts.
struct GroupCosts<'a> {
    key: GroupKey,
    space: &'a SearchSpace<'a>,
    options: TrainingOptions,
    batch: Batch,
    /// One pipeline of each kind, which stands for all of them, with its costs.
    pipelines: Vec<(Layout, MicroBatchCosts<'static>)>,
}

impl<'a> GroupCosts<'a> {
    fn new(
        key: GroupKey,
        options: TrainingOptions,
        space: &'a SearchSpace<'a>,
        dimensions: &Dimensions,
    ) -> GroupCosts<'a> {
        let options = TrainingOptions { recompute: key.recompute, ..options };
        let batch = Batch::of_ranks(space.seq_len, key.mbs, key.mbs, 1);
        let of_kind = |kind| {
            let pipeline = dimensions.pipelines.iter().find(|each| each.kind(space) == kind)?;
            let mut layout = pipeline.layout.clone();
            layout.set_degrees(key.tp * key.cp * layout.pp(), key.tp, key.cp, 1, 1);
            let inputs = inputs(key.dtype, space, &layout, &batch, &options);
            let costs = MicroBatchCosts::of(&inputs, Constants::embedded());
            Some((layout, costs))
        };
        let pipelines = PipelineKind::ALL.into_iter().filter_map(of_kind).collect();
        GroupCosts { key, space, options, batch, pipelines }
    }

    /// Returns a lower bound of the seconds per sequence on one GPU by the physical model, in any pipeline, with experts divided so.
    fn least_s(
        &mut self,
        ep: u32,
        expert_tp: u32,
        with_experts: fn(&MicroBatchCosts<'static>, &Inputs<'_>) -> MicroBatchCosts<'static>,
    ) -> f64 {
        let GroupKey { dtype, tp, cp, .. } = self.key;
        let mut least_s = f64::INFINITY;
        for (layout, costs) in &mut self.pipelines {
            layout.set_degrees(tp * cp * ep * expert_tp * layout.pp(), tp, cp, ep, expert_tp);
            let inputs = inputs(dtype, self.space, layout, &self.batch, &self.options);
            least_s = least_s.min(with_experts(costs, &inputs).least_s_per_sequence(&inputs));
        }
        least_s
    }
}

/// Returns what the costs of a layout are computed from.
fn inputs<'a>(
    dtype: Dtype,
    space: &SearchSpace<'a>,
    layout: &'a Layout,
    batch: &'a Batch,
    options: &'a TrainingOptions,
) -> Inputs<'a> {
    Inputs { architecture: space.architecture, gpu: space.gpu, dtype, layout, batch, options }
}

/// Returns the numbers of the division of experts.
pub(super) fn of_experts(ep: u32, expert_tp: u32) -> [(Coordinate, u32); 2] {
    [(Coordinate::Ep, ep), (Coordinate::ExpertTp, expert_tp)]
}

/// Returns every TP, CP and micro batch size that divide the GPUs and the batch in some layout, each once.
fn degrees(gpus: u32, space: &SearchSpace<'_>, dimensions: &Dimensions) -> Vec<(u32, u32, u32)> {
    let stages: Vec<u32> = dimensions.pipelines.iter().map(|pipeline| pipeline.pp).collect();
    let stages = ascending(&stages);
    let mut degrees = Vec::new();
    for tp in dimensions.tp.iter().copied().filter(|tp| tp_stays_in_domain(*tp, space.gpu)) {
        for cp in dimensions.cp.iter().copied().filter(|cp| gpus.is_multiple_of(tp * cp)) {
            // The sequences of a data-parallel rank.
            let mut sequences: Vec<u32> = Vec::new();
            for ranks in stages.iter().map(|pp| tp * cp * pp).filter(|ranks| gpus.is_multiple_of(*ranks)) {
                let dp = gpus / ranks;
                let gbs = dimensions.gbs.iter().filter(|gbs| gbs.is_multiple_of(dp));
                sequences.extend(gbs.map(|gbs| gbs / dp));
            }
            let divides = |mbs: &u32| sequences.iter().any(|of_rank| of_rank.is_multiple_of(*mbs));
            let mbs = dimensions.mbs.iter().copied().filter(divides);
            degrees.extend(mbs.map(|mbs| (tp, cp, mbs)));
        }
    }
    degrees
}

/// Returns every pair of two lists.
fn pairs<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    first.iter().flat_map(|one| second.iter().map(move |other| (*one, *other))).collect()
}

impl Group {
    /// Returns the least known bound of its choices.
    fn bound_s(&self) -> f64 {
        let first = self.choices.get().and_then(|choices| choices.first());
        let of_group = self.own_s.get().unwrap_or(&self.modelled_s) * self.correction;
        first.map_or(of_group, |choice| choice.least_s)
    }
}

/// The choices that may be among the best on a number of GPUs, roughly those with the smallest bounds first.
pub(super) struct ChoiceQueue<'b> {
    blocks: &'b Blocks,
    space: &'b SearchSpace<'b>,
    dimensions: &'b Dimensions,
    gpus: u32,
    intervals: LayoutIntervals,
    groups: Vec<QueuedGroup>,
    /// The next bound of each group, the place of the group, and the place of the choice in it. The bits of numbers that are not
    /// negative sort like the numbers.
    next: BinaryHeap<Reverse<(u64, usize, usize)>>,
}

/// A group on a number of GPUs.
struct QueuedGroup {
    group: Rc<Group>,
    /// How near its layouts are to measured runs, in what they have in common, and the least ratio of their slow end to their step
    /// time. Computed with the first choice.
    near: Option<(Nearness, f64)>,
}

impl ChoiceQueue<'_> {
    /// Returns the next choice, and how near the layouts of its group are to measured runs. `excludes(s)` says whether
    /// layouts whose slow end is at least `s` seconds per sequence on one GPU can be ruled out.
    pub(super) fn next(&mut self, excludes: &dyn Fn(f64) -> bool) -> Option<(BlockChoice, Nearness)> {
        let least = self.intervals.slow_end(true, false);
        loop {
            let Reverse((bound, place, next)) = self.next.pop()?;
            let bound_s = f64::from_bits(bound);
            if excludes(bound_s * least) {
                return None;
            }
            let QueuedGroup { group, near } = self.groups.get_mut(place)?;
            let Some(similar_runs) = self.blocks.similar_runs(group.key.dtype) else { continue };
            let is_new = near.is_none();
            let (nearness, slow_end) = near.get_or_insert_with(|| {
                let nearness = similar_runs.nearer(&group.nearness, &[(Coordinate::Gpus, self.gpus)]);
                let GroupKey { recompute, cp, .. } = group.key;
                let is_rare =
                    similar_runs.is_rare(&[(Coordinate::Cp, cp), (Coordinate::Recompute, recompute as u32)]);
                let slow_end = self.intervals.slow_end(similar_runs.may_be_similar(&nearness), is_rare);
                (nearness, slow_end)
            });
            // Nothing that follows in the group is faster.
            if excludes(bound_s * *slow_end) {
                continue;
            }
            if is_new {
                let own_s = *group
                    .own_s
                    .get_or_init(|| self.blocks.modelled_s(group.key, self.space, self.dimensions));
                let correction = self.blocks.least_correction(group.key.dtype, nearness, self.space);
                if excludes(own_s * correction * *slow_end) {
                    continue;
                }
                // So far, only the bound of the group that recomputes nothing was known.
                let own = group.bound_s().to_bits();
                if own > bound {
                    self.next.push(Reverse((own, place, next)));
                    continue;
                }
            }
            let choices =
                group.choices.get_or_init(|| self.blocks.choices(group, self.space, self.dimensions));
            let Some(choice) = choices.get(next) else { continue };
            let own = choice.least_s.to_bits();
            // So far, only the bound of the group was known.
            if own > bound {
                self.next.push(Reverse((own, place, next)));
                continue;
            }
            if let Some(following) = choices.get(next + 1) {
                self.next.push(Reverse((following.least_s.to_bits(), place, next + 1)));
            }
            return Some((*choice, Rc::clone(nearness)));
        }
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
