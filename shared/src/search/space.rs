//! The layouts of a search: the values of each dimension, and how many combinations each rule discards.

use super::locks::PUBLISHED_SPLIT;
use super::rules::{fills_nodes, tp_stays_in_domain};
use super::{Candidate, FsdpSupport, Locks, Rule, StackRules};
use crate::architecture::Architecture;
use crate::batch::Batch;
use crate::catalog::{Catalog, Gpu, Recipe};
use crate::estimate::Inputs;
use crate::field::Field;
use crate::layout::{Degrees, Layout, PipelineSplit, cp_problem, tp_problem};
use crate::options::{Recompute, TrainingOptions};
use crate::precision::Dtype;
use crate::sorting::ascending;

/// What a search is about: a model on GPUs of one type, with everything that stays fixed.
#[derive(Debug, Clone)]
pub struct SearchSpace<'a> {
    /// The id that finds the model's recipes.
    pub model: &'a str,
    /// The model's shape.
    pub architecture: &'a Architecture,
    /// GPU type.
    pub gpu: &'a Gpu,
    /// Precisions to choose from.
    pub dtypes: Vec<Dtype>,
    /// Global batch sizes to choose from, in sequences.
    pub gbs: Vec<u32>,
    /// Sequence length, in tokens.
    pub seq_len: u32,
    /// The software and everything else that the search does not choose.
    pub options: TrainingOptions,
    /// Divisions of the model's layers that recipes publish, beside the even and the counted one.
    pub splits: Vec<PublishedSplit>,
    /// Values that must or must not be chosen.
    pub locks: Locks,
    /// Memory to keep free on the fullest GPU, in bytes.
    pub headroom_bytes: f64,
}

/// The layers of each stage, as a recipe lists them.
#[derive(Debug, Clone, Copy)]
pub struct PublishedSplit {
    pp: u32,
    vp: u32,
    split: &'static PipelineSplit,
}

impl PublishedSplit {
    /// Returns those of a model's recipes with this many layers. Several recipes may have the same one.
    pub fn of_model(model: &str, layers: u32) -> Vec<PublishedSplit> {
        let recipes = Catalog::embedded().recipes().iter();
        let recipes = recipes.filter(|recipe| recipe.id.model == model && recipe.layers == layers);
        let all = recipes.map(|Recipe { degrees: Degrees { pp, vp, split, .. }, .. }| PublishedSplit {
            pp: *pp,
            vp: *vp,
            split,
        });
        all.filter(|published| matches!(published.split, PipelineSplit::Explicit(_))).collect()
    }

    /// Returns the division that all recipes of a model with `pp` stages of `vp` chunks list; none if one of them lists none, as before
    /// a recipe changed.
    #[cfg(feature = "calibrate")]
    pub(crate) fn of_all(model: &str, layers: u32, pp: u32, vp: u32) -> Option<&'static PipelineSplit> {
        let lists_none = |recipe: &Recipe| {
            let Degrees { pp: its_pp, vp: its_vp, split, .. } = &recipe.degrees;
            let is_alike = recipe.id.model == model && recipe.layers == layers;
            is_alike && (*its_pp, *its_vp) == (pp, vp) && !matches!(split, PipelineSplit::Explicit(_))
        };
        let published = PublishedSplit::find(model, layers, pp, vp)?;
        (!Catalog::embedded().recipes().iter().any(lists_none)).then_some(published)
    }

    /// Returns the division that a model's recipes publish for `pp` stages of `vp` chunks.
    pub fn find(model: &str, layers: u32, pp: u32, vp: u32) -> Option<&'static PipelineSplit> {
        let splits = PublishedSplit::of_model(model, layers);
        splits.into_iter().find(|one| (one.pp, one.vp) == (pp, vp)).map(|one| one.split)
    }
}

/// The values of each dimension.
pub(super) struct Dimensions {
    pub(super) dtypes: Vec<Dtype>,
    pub(super) gbs: Vec<u32>,
    pub(super) mbs: Vec<u32>,
    pub(super) tp: Vec<u32>,
    pub(super) cp: Vec<u32>,
    /// EP with expert TP.
    pub(super) experts: Vec<(u32, u32)>,
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) recompute: Vec<Recompute>,
    pub(super) fsdp: Vec<bool>,
}

/// A division of the layers into stages and chunks.
#[derive(Clone)]
pub(super) struct Pipeline {
    pub(super) pp: u32,
    pub(super) vp: u32,
    pub(super) split: &'static PipelineSplit,
    /// A layout with these stages, whose other degrees the search sets.
    pub(super) layout: Layout,
}

/// The properties of a pipeline that the costs of a micro batch depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipelineKind {
    /// Not interleaved; not a pipeline, if [`SearchSpace::has_slow_pipelines`].
    Plain,
    /// A pipeline that is not interleaved, if [`SearchSpace::has_slow_pipelines`].
    Slow,
    /// Interleaved.
    Interleaved,
}

impl PipelineKind {
    pub(super) const ALL: [PipelineKind; 3] =
        [PipelineKind::Plain, PipelineKind::Slow, PipelineKind::Interleaved];
}

impl Pipeline {
    /// Returns its kind in a space.
    pub(super) fn kind(&self, space: &SearchSpace<'_>) -> PipelineKind {
        match (self.vp > 1, self.pp > 1) {
            (true, _) => PipelineKind::Interleaved,
            (false, true) if space.has_slow_pipelines() => PipelineKind::Slow,
            (false, _) => PipelineKind::Plain,
        }
    }
}

impl<'a> SearchSpace<'a> {
    /// Returns the rules of its software. A user's own follows those of its base.
    pub fn rules(&self) -> &'static StackRules {
        StackRules::of(self.options.software.base())
    }

    /// Returns the options of its layouts in a precision, before the search chooses any. They include what the model's recipes turn
    /// on or off.
    pub(super) fn options_in(&self, dtype: Dtype) -> TrainingOptions {
        self.options.as_in_recipes(self.model, &self.gpu.id, dtype)
    }

    /// Returns whether a pipeline without interleaved chunks has other costs of a micro batch than no pipeline: its kernels are
    /// launched more slowly, or it can't overlap the exchange between experts.
    pub(super) fn has_slow_pipelines(&self) -> bool {
        let software = self.options.software.properties();
        software.host_tp_in_pipelines.is_some() || software.hides_experts && self.architecture.moe.is_some()
    }

    /// Returns the values of each dimension, from which a search combines its layouts. Each value divides the model as
    /// it must. Conditions on several dimensions, or on the number of GPUs, are left to the rules.
    pub(super) fn dimensions(&self) -> Dimensions {
        let rules = self.rules();
        let Architecture { moe, .. } = self.architecture;
        let domain = self.gpu.nvlink_domain;
        let permit = |field: Field, value: u32| self.locks.permit(field, value);
        let mbs: Vec<u32> = self.gbs.iter().flat_map(|gbs| divisors(*gbs)).collect();
        let mbs = ascending(&mbs);
        let largest_tp = rules.max_tp.unwrap_or(u32::MAX).min(self.architecture.hidden);
        let tp = divisors(self.architecture.attention.heads);
        let longest_cp = if rules.cp { self.seq_len / 2 } else { 1 };
        let experts = match moe {
            Some(moe) if rules.ep => {
                let within = |expert_tp: &u32| tp_stays_in_domain(*expert_tp, self.gpu);
                let widths: Vec<u32> = (1..=domain.min(moe.ffn))
                    .filter(|expert_tp| moe.ffn.is_multiple_of(*expert_tp))
                    .filter(within)
                    .collect();
                let pairs = divisors(moe.experts).into_iter();
                let pairs = pairs.flat_map(|ep| widths.iter().map(move |width| (ep, *width)));
                pairs.filter(|(ep, width)| fills_nodes(ep * width, self.gpu)).collect()
            }
            _ => vec![(1, 1)],
        };
        let recompute = Recompute::ALL.into_iter().filter(|recompute| {
            // Megatron's fused attention saves no scores, so recomputing it costs time and saves nothing.
            let useless = *recompute == Recompute::Selective && self.options.software.is_nvidia_megatron();
            (!useless || !self.locks.permit(Field::Recompute, Recompute::None))
                && self.locks.permit(Field::Recompute, recompute)
        });
        let fsdp: &[bool] = match rules.fsdp {
            FsdpSupport::Never => &[false],
            FsdpSupport::May => &[false, true],
            FsdpSupport::Must => &[true],
        };
        let word = |on: bool| if on { "on" } else { "off" };
        Dimensions {
            dtypes: self
                .dtypes
                .iter()
                .copied()
                .filter(|dtype| rules.computes_in(*dtype, self.gpu) && self.locks.permit(Field::Dtype, dtype))
                .collect(),
            gbs: self.gbs.iter().copied().filter(|gbs| permit(Field::Gbs, *gbs)).collect(),
            mbs: mbs.into_iter().filter(|mbs| permit(Field::Mbs, *mbs)).collect(),
            tp: tp
                .into_iter()
                .filter(|tp| *tp <= largest_tp && tp_problem(*tp, self.architecture).is_none())
                .filter(|tp| permit(Field::Tp, *tp))
                .collect(),
            cp: (1..=longest_cp.max(1))
                .filter(|cp| *cp == 1 || self.seq_len.is_multiple_of(2 * cp))
                .filter(|cp| permit(Field::Cp, *cp) && cp_problem(*cp, self.architecture).is_none())
                .collect(),
            experts: experts
                .into_iter()
                .filter(|(ep, expert_tp)| permit(Field::Ep, *ep) && permit(Field::ExpertTp, *expert_tp))
                .collect(),
            pipelines: self.pipelines(rules),
            recompute: recompute.collect(),
            fsdp: fsdp.iter().copied().filter(|on| self.locks.permit(Field::Fsdp, word(*on))).collect(),
        }
    }

    fn pipelines(&self, rules: &StackRules) -> Vec<Pipeline> {
        let layers = self.architecture.layers;
        let mut pipelines = Vec::new();
        let deepest = if rules.pp { layers + 2 } else { 1 };
        for pp in (1..=deepest).filter(|pp| self.locks.permit(Field::Pp, pp)) {
            let most_chunks = if pp > 1 && rules.vp { (layers + 2) / pp } else { 1 };
            for vp in (1..=most_chunks).filter(|vp| self.locks.permit(Field::Vp, vp)) {
                let published = self.splits.iter().filter(|one| (one.pp, one.vp) == (pp, vp));
                let published = published.map(|one| one.split);
                for split in [&PipelineSplit::Even, &PipelineSplit::Counted].into_iter().chain(published) {
                    let allowed = match split {
                        PipelineSplit::Even => rules.divides(self.architecture, pp, vp, false),
                        PipelineSplit::Counted => {
                            rules.counted && pp > 1 && rules.divides(self.architecture, pp, vp, true)
                        }
                        // Software that counts embedding and loss takes a list too.
                        _ => rules.counted,
                    };
                    let permitted = match split {
                        PipelineSplit::Explicit(_) => {
                            self.locks.permit(Field::PipelineSplit, PUBLISHED_SPLIT)
                        }
                        split => self.locks.permit(Field::PipelineSplit, split),
                    };
                    if !allowed || !permitted {
                        continue;
                    }
                    let degrees = Degrees { gpus: pp, pp, vp, split: split.clone(), ..Degrees::default() };
                    let Some(layout) = Layout::valid(&degrees, self.architecture) else { continue };
                    let is_known = |known: &Pipeline| {
                        (known.pp, known.vp) == (pp, vp) && known.layout.stages() == layout.stages()
                    };
                    if !pipelines.iter().any(is_known) {
                        pipelines.push(Pipeline { pp, vp, split, layout });
                    }
                }
            }
        }
        pipelines
    }

    /// Calls `read` with the inputs of a candidate on `gpus` GPUs; `None` if a rule other than memory discards it.
    pub fn with_inputs<T>(
        &self,
        candidate: &Candidate,
        gpus: u32,
        read: impl FnOnce(&Inputs<'_>) -> T,
    ) -> Option<T> {
        if self.rules().broken(candidate, gpus, self.gpu, self.options.software.properties()).is_some() {
            return None;
        }
        self.with_unchecked_inputs(candidate, gpus, read)
    }

    /// Calls `read` with the inputs of a candidate on `gpus` GPUs, whether or not the software can run it.
    pub(super) fn with_unchecked_inputs<T>(
        &self,
        candidate: &Candidate,
        gpus: u32,
        read: impl FnOnce(&Inputs<'_>) -> T,
    ) -> Option<T> {
        let layout = Layout::valid(&candidate.degrees(gpus), self.architecture)?;
        let batch = Batch::valid(self.seq_len, candidate.mbs, candidate.gbs, &layout)?;
        Some(read(&Inputs {
            architecture: self.architecture,
            gpu: self.gpu,
            dtype: candidate.dtype,
            layout: &layout,
            batch: &batch,
            options: &candidate.options(&self.options_in(candidate.dtype)),
        }))
    }
}

/// How many layouts a search considered, and why it discarded the others.
///
/// The search checks memory only for layouts that may be among the best. So the numbers of slower layouts, of fitting ones, and of
/// those that need too much memory depend on how many layouts are wanted. The other numbers don't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct SearchCounts {
    /// Combinations of all values.
    pub combinations: u64,
    /// Those that each rule discards first, in the order of [`Rule::ALL`].
    pub discarded: [u64; Rule::ALL.len()],
    /// Those that obey every rule, but whose computation alone takes longer than the best layouts need in total.
    pub slower: u64,
    /// Those that fit, with their exact step time.
    pub fitting: u64,
}

impl SearchCounts {
    /// Returns how many layouts a rule discards.
    pub fn discarded_by(&self, rule: Rule) -> u64 {
        self.discarded[rule as usize]
    }

    /// Returns how many layouts obey every rule other than memory: the software can run them on these GPUs if they fit. It is the same
    /// however many layouts are wanted.
    pub fn valid(&self) -> u64 {
        let rules = Rule::ALL.into_iter().filter(|rule| *rule != Rule::Memory);
        self.combinations - rules.map(|rule| self.discarded_by(rule)).sum::<u64>()
    }

    /// Returns the rules that discard layouts, with their numbers, which are the same however many layouts are wanted. Memory is among
    /// them only if nothing fits: then it was tested for every layout.
    pub fn reasons(&self) -> impl Iterator<Item = (Rule, u64)> + use<> {
        let counts = *self;
        let is_complete = move |rule: &Rule| *rule != Rule::Memory || counts.fitting == 0;
        let rules = Rule::ALL.into_iter().filter(is_complete);
        rules.map(move |rule| (rule, counts.discarded_by(rule))).filter(|(_, count)| *count > 0)
    }
}

impl Dimensions {
    /// Counts the combinations on `gpus` GPUs that each rule other than memory discards.
    ///
    /// A rule depends on few dimensions, so the others are multiplied instead of tried. Agrees with
    /// [`StackRules::broken`], in the same order of rules.
    pub(super) fn count(&self, gpus: u32, space: &SearchSpace<'_>) -> SearchCounts {
        let (gpu, rules, software) = (space.gpu, space.rules(), space.options.software.properties());
        let mut counts = SearchCounts::default();
        let mut discard = |rule: Rule, count: usize| counts.discarded[rule as usize] += count as u64;
        let free = self.dtypes.len() * self.recompute.len();
        let batches = self.gbs.len() * self.mbs.len();
        for tp in &self.tp {
            if !tp_stays_in_domain(*tp, gpu) {
                let rest = self.cp.len() * self.experts.len() * self.pipelines.len() * self.fsdp.len();
                discard(Rule::TpInDomain, rest * batches * free);
                continue;
            }
            for cp in &self.cp {
                for chunk in self.pipelines.chunk_by(|one, next| one.pp == next.pp) {
                    let pp = chunk[0].pp;
                    let interleaved = chunk.iter().filter(|pipeline| pipeline.vp > 1).count();
                    let modes = self.fsdp.iter().filter(|on| rules.allows_fsdp(**on, pp, *cp)).count();
                    let refused = self.fsdp.len() - modes;
                    let experts = self.experts.len();
                    discard(Rule::Fsdp, refused * chunk.len() * experts * batches * free);
                    let ranks = tp * cp * pp;
                    if !gpus.is_multiple_of(ranks) {
                        discard(Rule::GpusDivide, modes * chunk.len() * experts * batches * free);
                        continue;
                    }
                    let divides = |(ep, width): &&(u32, u32)| gpus.is_multiple_of(ep * width * pp);
                    let dividing = self.experts.iter().filter(divides).count();
                    let rest = chunk.len() * batches * free;
                    discard(Rule::ExpertsDivide, modes * (experts - dividing) * rest);
                    for (mbs, gbs) in
                        self.mbs.iter().flat_map(|mbs| self.gbs.iter().map(move |gbs| (mbs, gbs)))
                    {
                        let each = modes * dividing * free;
                        let shard = u64::from(*mbs) * u64::from(gpus / ranks);
                        if !u64::from(*gbs).is_multiple_of(shard) {
                            discard(Rule::BatchDivides, each * chunk.len());
                        } else if !software.allows_rounds((u64::from(*gbs) / shard) as u32, pp) {
                            discard(Rule::WholeRounds, each * interleaved);
                        }
                    }
                }
            }
        }
        let degrees = self.tp.len() * self.cp.len() * self.experts.len() * self.pipelines.len();
        counts.combinations = (degrees * self.fsdp.len() * batches * free) as u64;
        counts
    }
}

/// Returns the divisors of a number, ascending.
fn divisors(of: u32) -> Vec<u32> {
    (1..=of).filter(|divisor| of.is_multiple_of(*divisor)).collect()
}
