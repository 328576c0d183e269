//! The best layouts of a space, exactly: as if every layout had been estimated.
//!
//! A lower bound of the step time orders the choices that decide the costs of a micro batch. Once the bound exceeds what
//! the best layouts need, nothing after it can be among them.

use super::blocks::{BlockChoice, Blocks, of_experts};
use super::space::{Dimensions, Pipeline, PipelineKind};
use super::{Candidate, Rule, SearchCounts, SearchSpace};
use crate::batch::Batch;
use crate::cluster_factors::ClusterFactor;
use crate::estimate::{
    Anchors, Breakdown, Confidence, Constants, Coordinate, Inputs, Interval, IntervalTable, LayoutIntervals,
    MemoryEstimate, MemoryMargin, MemoryVerdict, MicroBatchCosts, MicroBatchMemory, Nearness, capacity_bytes,
    least_bytes, straggling,
};
use crate::options::TrainingOptions;
use crate::precision::Dtype;
use crate::sorting::sorted;
use crate::stack::Stack;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

/// Layouts whose time per sequence differs by less than this count as equally fast: intervals are ten times as wide.
const TIE: f64 = 0.01;

/// The factor on the step time of a layout that may run out of memory. No prediction is exact enough for a smaller gain to be worth
/// the risk of replacing the layout on the cluster.
const RISK: f64 = 1.05;

/// How layouts are ordered, for people.
pub const ORDER: &str = "Ordered by the slow end of the step time, so that layouts similar to measured ones come first; within \
                         1 %, by confidence, simplicity and free memory. A layout that may not fit in memory counts as 5 % slower.";

/// Bytes of free memory beyond which more makes no difference between equally fast layouts.
const AMPLE_FREE_BYTES: f64 = 8.0 * 1_073_741_824.0;

/// A layout of a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedLayout {
    /// The layout.
    pub candidate: Candidate,
    /// Seconds per step, with the 80 % interval.
    pub step_time_s: Interval,
    /// How far the prediction can be trusted.
    pub confidence: Confidence,
    /// Free memory of the fullest GPU.
    pub memory: MemoryMargin,
}

impl RankedLayout {
    /// Corrects the prediction of the physical model for a layout.
    fn new(
        candidate: Candidate,
        inputs: &Inputs<'_>,
        breakdown: &Breakdown,
        free_bytes: f64,
        intervals: &LayoutIntervals,
    ) -> RankedLayout {
        let correction = Anchors::embedded().correction(inputs);
        let factor = correction.factor * inputs.options.cluster.of(ClusterFactor::Step);
        let mid = breakdown.scaled(factor).step_time_s();
        let interval =
            intervals.around(mid, correction.kind, correction.unlike, correction.doubt, correction.is_rare);
        RankedLayout {
            candidate,
            step_time_s: interval.containing(correction.measured.map(|measured| measured.times(mid))),
            confidence: correction.confidence,
            memory: MemoryMargin::new(inputs.gpu, inputs.options.software, free_bytes),
        }
    }

    /// Returns the seconds per sequence of the global batch.
    pub fn s_per_sequence(&self) -> f64 {
        self.step_time_s.mid / f64::from(self.candidate.gbs)
    }

    /// Returns the seconds per sequence that the layout counts as: those of the slow end of its interval, and more if it may not
    /// fit. The slow end counts because a search picks the layouts that the model flatters most. So a layout near measured ones
    /// comes before one that is predicted to be slightly faster but is further from every measurement.
    pub(crate) fn counted_s(&self) -> f64 {
        self.step_time_s.high * self.risk() / f64::from(self.candidate.gbs)
    }

    /// Returns how many times as slow the layout counts: more than 1 if it may not fit.
    pub(crate) fn risk(&self) -> f64 {
        if self.memory.verdict() == MemoryVerdict::Fits { 1.0 } else { RISK }
    }

    /// Compares two layouts when the fastest one counts as `least_s` per sequence. Among equally fast ones, those that surely fit
    /// come first, then the better measured, the simpler, and those with ample free memory.
    pub(crate) fn compare(&self, other: &RankedLayout, least_s: f64) -> Ordering {
        let ties = |layout: &RankedLayout| {
            (libm::log(layout.counted_s() / least_s) / libm::log(1.0 + TIE) + 1e-9).floor()
        };
        let has_ample_memory = |layout: &RankedLayout| layout.memory.free_bytes >= AMPLE_FREE_BYTES;
        ties(self)
            .total_cmp(&ties(other))
            .then(self.memory.verdict().cmp(&other.memory.verdict()))
            .then(other.confidence.cmp(&self.confidence))
            .then(self.candidate.complexity().cmp(&other.candidate.complexity()))
            .then(has_ample_memory(other).cmp(&has_ample_memory(self)))
            .then(self.counted_s().total_cmp(&other.counted_s()))
            .then(self.candidate.cmp(&other.candidate))
    }
}

impl SearchSpace<'_> {
    /// Returns the prediction for a candidate on `gpus` GPUs, whether or not it is among the best; `None` if a rule discards it.
    pub fn estimate(&self, candidate: &Candidate, gpus: u32) -> Option<RankedLayout> {
        let layout = self.with_inputs(candidate, gpus, |inputs| self.predict(candidate, inputs));
        layout.filter(|layout| layout.memory.free_bytes >= self.headroom_bytes)
    }

    /// Returns the software of the nearest measured run of the model on this GPU type and the prediction for a candidate with it,
    /// whether or not it fits there; `None` if the space's software was measured, or no run was.
    pub fn with_measured_software(&self, candidate: &Candidate, gpus: u32) -> Option<(Stack, RankedLayout)> {
        let anchors = Anchors::embedded();
        let software = self.with_inputs(candidate, gpus, |inputs| anchors.measured_with(inputs))??;
        let options = TrainingOptions { software: software.into(), ..self.options };
        let space = SearchSpace { options, ..self.clone() };
        let layout =
            space.with_unchecked_inputs(candidate, gpus, |inputs| space.predict(candidate, inputs))?;
        Some((software, layout))
    }

    fn predict(&self, candidate: &Candidate, inputs: &Inputs<'_>) -> RankedLayout {
        let breakdown = Breakdown::of(inputs, Constants::embedded());
        let margin_bytes = MemoryEstimate::of(inputs).margin_bytes();
        let intervals = self.intervals(inputs.layout.gpus());
        RankedLayout::new(*candidate, inputs, &breakdown, margin_bytes, &intervals)
    }

    /// Returns the intervals of its layouts on `gpus` GPUs.
    fn intervals(&self, gpus: u32) -> LayoutIntervals {
        let is_routed = self.architecture.moe.is_some();
        IntervalTable::embedded().of_layouts(self.gpu, gpus, is_routed, &self.options)
    }
}

/// The best layouts of a space on a number of GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The number of GPUs.
    pub gpus: u32,
    /// The best layouts, best first.
    pub best: Vec<RankedLayout>,
    /// How many layouts there are, and why the others were discarded.
    pub counts: SearchCounts,
}

/// What a search found on a number of GPUs.
struct TestedLayouts {
    best: Vec<RankedLayout>,
    /// Precisions in which no layout fits.
    too_large: u64,
    /// Layouts in the other precisions that were tested and don't fit.
    not_fitting: u64,
    /// Layouts that were tested and fit.
    fitting: u64,
}

/// A search over the layouts of a space, for any number of GPUs.
pub struct LayoutSearch<'a> {
    space: SearchSpace<'a>,
    dimensions: Dimensions,
    /// Shared with the searches that [`LayoutSearch::in_space`] returns, as the next one is.
    blocks: Rc<Blocks>,
    /// What [`LayoutSearch::best`] returned. A list, because few numbers of GPUs are searched and a map would make the worker larger.
    known: Rc<RefCell<Vec<KnownLayouts>>>,
}

/// What the best layouts depend on in searches that share them.
#[derive(PartialEq)]
struct LayoutsKey {
    gpus: u32,
    dtypes: Vec<Dtype>,
    gbs: Vec<u32>,
    headroom_bytes: f64,
}

/// The best layouts of a search on a number of GPUs.
struct KnownLayouts {
    key: LayoutsKey,
    /// How many were wanted. Fewer are the first of them.
    most: usize,
    best: Vec<RankedLayout>,
}

/// The layouts that can still be among the best.
struct Contenders {
    most: usize,
    /// The smallest seconds per sequence, ascending, as many as layouts are wanted.
    fastest_s: Vec<f64>,
    found: Vec<RankedLayout>,
}

impl Contenders {
    fn new(most: usize) -> Contenders {
        Contenders { most: most.max(1), fastest_s: Vec::new(), found: Vec::new() }
    }

    /// Returns the seconds per sequence above which no layout can be among the best, even as a tie.
    fn limit_s(&self) -> f64 {
        match self.fastest_s.get(self.most - 1) {
            // Twice the tie, so that rounding can't matter.
            Some(last) => last * (1.0 + 2.0 * TIE),
            None => f64::INFINITY,
        }
    }

    /// Returns whether a layout that counts as at least this many seconds per sequence can't be among the
    /// best.
    fn excludes(&self, least_s: f64) -> bool {
        least_s > self.limit_s()
    }

    fn add(&mut self, layout: RankedLayout) {
        let own_s = layout.counted_s();
        let place = self.fastest_s.partition_point(|s| *s <= own_s);
        self.fastest_s.insert(place, own_s);
        self.fastest_s.truncate(self.most);
        self.found.push(layout);
        if self.found.len() > 64 * self.most {
            self.discard_excluded();
        }
    }

    fn discard_excluded(&mut self) {
        let limit_s = self.limit_s();
        self.found.retain(|layout| layout.counted_s() <= limit_s);
    }

    fn into_best(mut self) -> Vec<RankedLayout> {
        let Some(least_s) = self.fastest_s.first().copied() else { return Vec::new() };
        self.discard_excluded();
        let mut best = sorted(&self.found, |one, other| one.compare(other, least_s));
        best.truncate(self.most);
        best
    }
}

impl<'a> LayoutSearch<'a> {
    /// Prepares the search of a space.
    pub fn new(space: SearchSpace<'a>) -> LayoutSearch<'a> {
        let dimensions = space.dimensions();
        let blocks = Rc::new(Blocks::new(&space, &dimensions));
        LayoutSearch { space, dimensions, blocks, known: Rc::default() }
    }

    /// Returns the search of the same space with other global batch sizes. The two share their computed results.
    #[must_use]
    pub fn with_batches(&self, gbs: Vec<u32>) -> LayoutSearch<'a> {
        self.in_space(SearchSpace { gbs, ..self.space.clone() })
    }

    /// Returns the search of a space that differs from this one in nothing but its global batch sizes, the memory to keep free and
    /// precisions that it lacks. What one of them has computed, the other needs not.
    #[must_use]
    pub fn in_space<'b>(&self, space: SearchSpace<'b>) -> LayoutSearch<'b> {
        let dimensions = space.dimensions();
        LayoutSearch { space, dimensions, blocks: Rc::clone(&self.blocks), known: Rc::clone(&self.known) }
    }

    /// Returns the space.
    pub fn space(&self) -> &SearchSpace<'a> {
        &self.space
    }

    /// Whether no layout fits on `gpus` GPUs in a precision, even if nothing is stored twice.
    fn is_too_large(&self, dtype: Dtype, gpus: u32) -> bool {
        let SearchSpace { architecture, gpu, seq_len, ref options, headroom_bytes, .. } = self.space;
        self.dimensions.pipelines.first().is_some_and(|pipeline| {
            let batch = Batch::of_ranks(seq_len, 1, 1, 1);
            let inputs =
                Inputs { architecture, gpu, dtype, layout: &pipeline.layout, batch: &batch, options };
            least_bytes(&inputs, gpus) > capacity_bytes(gpu) - headroom_bytes
        })
    }

    /// Returns how near the layouts of each pipeline are to the measured runs of a precision.
    fn nearness_of_pipelines(&self, dtype: Dtype, pipelines: &[Pipeline]) -> Vec<Nearness> {
        let Some(similar_runs) = self.blocks.similar_runs(dtype) else { return Vec::new() };
        let of_pipeline = |Pipeline { pp, vp, .. }: &Pipeline| {
            similar_runs.nearness_in(&[(Coordinate::Pp, *pp), (Coordinate::Vp, *vp)])
        };
        pipelines.iter().map(of_pipeline).collect()
    }

    /// Returns the global batches that a choice divides on stages of this many GPUs; none if it doesn't divide the
    /// GPUs.
    fn batches(&self, blocks: &BlockChoice, stage_gpus: u32) -> Vec<(u32, Batch)> {
        let ranks = blocks.tp * blocks.cp;
        if !stage_gpus.is_multiple_of(ranks) || !stage_gpus.is_multiple_of(blocks.ep * blocks.expert_tp) {
            return Vec::new();
        }
        let dp = stage_gpus / ranks;
        let divides = |gbs: &u32| gbs.is_multiple_of(blocks.mbs) && (gbs / blocks.mbs).is_multiple_of(dp);
        let sizes = self.dimensions.gbs.iter().copied().filter(divides);
        sizes.map(|gbs| (gbs, Batch::of_ranks(self.space.seq_len, blocks.mbs, gbs, dp))).collect()
    }

    /// Returns the `most` best layouts on `gpus` GPUs, and what became of the others.
    pub fn rank(&self, gpus: u32, most: usize) -> Ranking {
        let TestedLayouts { best, too_large, not_fitting, fitting } = self.find(gpus, most);
        let mut counts = self.dimensions.count(gpus, &self.space);
        // The rules don't depend on the precision.
        let of_each = counts.valid() / self.dimensions.dtypes.len().max(1) as u64;
        let not_fitting = not_fitting + of_each * too_large;
        counts.fitting = fitting;
        counts.discarded[Rule::Memory as usize] = not_fitting;
        counts.slower = counts.valid() - not_fitting - fitting;
        Ranking { gpus, best, counts }
    }

    /// Returns the `most` best layouts on `gpus` GPUs, best first. It searches only where no search with which this one shares what it
    /// computes did.
    pub fn best(&self, gpus: u32, most: usize) -> Vec<RankedLayout> {
        let SearchSpace { ref dtypes, ref gbs, headroom_bytes, .. } = self.space;
        let key = LayoutsKey { gpus, dtypes: dtypes.clone(), gbs: gbs.clone(), headroom_bytes };
        let is_this = |known: &&KnownLayouts| known.most >= most && known.key == key;
        if let Some(known) = self.known.borrow().iter().find(is_this) {
            return known.best.iter().take(most).copied().collect();
        }
        let best = self.find(gpus, most).best;
        self.known.borrow_mut().push(KnownLayouts { key, most, best: best.clone() });
        best
    }

    fn find(&self, gpus: u32, most: usize) -> TestedLayouts {
        let SearchSpace { gpu, headroom_bytes, .. } = self.space;
        let (rules, constants) = (self.space.rules(), Constants::embedded());
        let software = self.space.options.software.properties();
        let (mut not_fitting, mut fitting) = (0, 0);
        let mut found = Contenders::new(most);
        let divides = |pipeline: &&Pipeline| gpus.is_multiple_of(pipeline.pp);
        let mut pipelines: Vec<Pipeline> =
            self.dimensions.pipelines.iter().filter(divides).cloned().collect();
        // Precisions whose weights and optimizer state alone are larger than all GPUs together.
        let too_large: Vec<Dtype> =
            self.dimensions.dtypes.iter().copied().filter(|dtype| self.is_too_large(*dtype, gpus)).collect();
        // By which a bound for one GPU becomes one for all.
        let share = (1.0 + straggling(gpus, constants)) / f64::from(gpus);
        let intervals = self.space.intervals(gpus);
        let cluster_factor = self.space.options.cluster.of(ClusterFactor::Step);
        let dtypes = self.dimensions.dtypes.iter();
        let in_precision = |dtype: &Dtype| {
            (*dtype, self.space.options_in(*dtype), self.nearness_of_pipelines(*dtype, &pipelines))
        };
        let of_precisions: Vec<(Dtype, TrainingOptions, Vec<Nearness>)> = dtypes.map(in_precision).collect();
        let mut choices = self.blocks.on(gpus, &self.space, &self.dimensions, intervals);
        while let Some((blocks, of_group)) = choices.next(&|least_s| found.excludes(least_s * share)) {
            if too_large.contains(&blocks.dtype) {
                continue;
            }
            let Some(similar_runs) = self.blocks.similar_runs(blocks.dtype) else { continue };
            let of_precision = of_precisions.iter().find(|(of, ..)| *of == blocks.dtype);
            let Some((_, in_recipes, of_pipelines)) = of_precision else { continue };
            let of_block = similar_runs.nearer(&of_group, &of_experts(blocks.ep, blocks.expert_tp));
            // A lower bound for a layout of these blocks with that correction.
            let bound = |correction: f64| blocks.modelled_s * correction * cluster_factor * share;
            let is_rare_block = similar_runs.is_rare(&[
                (Coordinate::Cp, blocks.cp),
                (Coordinate::ExpertTp, blocks.expert_tp),
                (Coordinate::Recompute, blocks.recompute as u32),
            ]);
            let may_be_similar = similar_runs.may_be_similar(&of_block);
            let of_any_pipeline =
                bound(similar_runs.least(&of_block)) * intervals.slow_end(may_be_similar, is_rare_block);
            if found.excludes(of_any_pipeline) {
                continue;
            }
            let mut memory: Option<MicroBatchMemory> = None;
            // By kind, without and with FSDP, which excludes CUDA graphs.
            let mut costs: [[Option<MicroBatchCosts<'_>>; 2]; PipelineKind::ALL.len()] = Default::default();
            // Kept from the previous number of stages, because pipelines with the same number follow each
            // other.
            let mut batches: (u32, Vec<(u32, Batch)>) = (0, Vec::new());
            for (pipeline, of_pipeline) in pipelines.iter_mut().zip(of_pipelines) {
                if batches.0 != pipeline.pp {
                    batches = (pipeline.pp, self.batches(&blocks, gpus / pipeline.pp));
                }
                if batches.1.is_empty() {
                    continue;
                }
                pipeline.layout.set_degrees(gpus, blocks.tp, blocks.cp, blocks.ep, blocks.expert_tp);
                for (gbs, batch) in &batches.1 {
                    if pipeline.vp > 1 && !software.allows_rounds(batch.ga(), pipeline.pp) {
                        continue;
                    }
                    // While the pipeline fills and drains, each stage but one waits: a micro batch of all others, by chunks.
                    let bubble = f64::from(pipeline.pp - 1) / f64::from(pipeline.vp * batch.ga());
                    if found.excludes(of_any_pipeline * (1.0 + bubble)) {
                        continue;
                    }
                    let of_ga = similar_runs.nearness(Coordinate::Ga, batch.ga());
                    for fsdp in &self.dimensions.fsdp {
                        if !rules.allows_fsdp(*fsdp, pipeline.pp, blocks.cp) {
                            continue;
                        }
                        let candidate = blocks.with(pipeline, *gbs, *fsdp);
                        let options = candidate.options(in_recipes);
                        let inputs = Inputs {
                            architecture: self.space.architecture,
                            gpu,
                            dtype: blocks.dtype,
                            layout: &pipeline.layout,
                            batch,
                            options: &options,
                        };
                        let sharding = (Coordinate::Fsdp, u32::from(*fsdp));
                        let of_fsdp = similar_runs.nearness(sharding.0, sharding.1);
                        let (correction, may_be_similar) =
                            similar_runs.of_layout(&of_block, [of_pipeline, &of_ga, &of_fsdp]);
                        let is_rare = is_rare_block || similar_runs.is_rare(&[sharding]);
                        let correction = correction * intervals.slow_end(may_be_similar, is_rare);
                        if found.excludes(bound(correction) * (1.0 + bubble)) {
                            continue;
                        }
                        let memory = memory.get_or_insert_with(|| MicroBatchMemory::of(&inputs));
                        let Some(margin_bytes) = memory.margin_bytes(&inputs, headroom_bytes) else {
                            not_fitting += 1;
                            continue;
                        };
                        fitting += 1;
                        let costs = costs[pipeline.kind(&self.space) as usize][usize::from(*fsdp)]
                            .get_or_insert_with(|| MicroBatchCosts::of(&inputs, constants));
                        let breakdown = costs.breakdown(&inputs);
                        let modelled_s = breakdown.step_time_s();
                        if found.excludes(modelled_s * correction * cluster_factor / f64::from(*gbs)) {
                            continue;
                        }
                        found.add(RankedLayout::new(
                            candidate,
                            &inputs,
                            &breakdown,
                            margin_bytes,
                            &intervals,
                        ));
                    }
                }
            }
        }
        TestedLayouts { best: found.into_best(), too_large: too_large.len() as u64, not_fitting, fitting }
    }
}
