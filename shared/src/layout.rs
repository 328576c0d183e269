//! Layouts: how a model is spread over GPUs.

use crate::architecture::{Architecture, AttentionKind, Mlp, Moe};
use crate::field::Field;
use crate::message;
use crate::message::{Message, Setting};
use crate::problem::{Problem, Refusals, Unworded};
use crate::units::{greatest_common_divisor, group_digits, nearest_divisors, nearest_multiples};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

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

/// How a model's layers are divided among pipeline stages.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PipelineSplit {
    /// Evenly; the first chunks take the remainder.
    #[default]
    Even,
    /// Evenly, with the embedding and the loss counted as a layer each: the first and last stage have one layer fewer.
    Counted,
    /// By weights, with the head counted: a stage takes layers until it has its share. As nanotron divides layers.
    Weighed,
    /// Layers of each stage, first to last.
    Explicit(Vec<u32>),
}

impl PipelineSplit {
    /// Returns the split of chunks that have these layers, in pipeline order; none if they don't fill `pp` stages.
    pub(crate) fn of_chunks(chunks: &[u32], pp: u32) -> Option<PipelineSplit> {
        let count =
            u32::try_from(chunks.len()).ok().filter(|count| *count > 0 && count.is_multiple_of(pp))?;
        let layers: u32 = chunks.iter().sum();
        // Here every chunk is a stage of its own. A rule that would leave chunks empty is refused.
        Some(if layers >= count && chunks == even_stages(layers, count, 1) {
            PipelineSplit::Even
        } else if chunks == counted_stages(layers, count, 1) {
            PipelineSplit::Counted
        } else {
            let of_stage = |stage| chunks.iter().skip(stage).step_by(pp as usize).sum();
            PipelineSplit::Explicit((0..pp as usize).map(of_stage).collect())
        })
    }

    /// Returns the layers of each of `pp` stages of `vp` chunks; none if the split doesn't fit.
    pub(crate) fn stages(&self, architecture: &Architecture, pp: u32, vp: u32) -> Option<Vec<u32>> {
        self.checked_stages(architecture, pp, vp, &mut Unworded::default())
    }

    fn checked_stages(
        &self,
        architecture: &Architecture,
        pp: u32,
        vp: u32,
        problems: &mut impl Refusals,
    ) -> Option<Vec<u32>> {
        let layers = architecture.layers;
        let chunks = pp.saturating_mul(vp);
        match self {
            PipelineSplit::Explicit(stages) => {
                let total: u64 = stages.iter().map(|stage| u64::from(*stage)).sum();
                if stages.len() as u64 != u64::from(pp) {
                    problems.add(|| {
                        let message =
                            format!("The pipeline split lists {} stages, but PP is {pp}.", stages.len());
                        Problem::new(Field::PipelineSplit, self, message)
                    });
                    return None;
                }
                if total != u64::from(layers) {
                    problems.add(|| {
                        let message = format!(
                            "The pipeline split adds up to {total} layers, but the model has {layers}."
                        );
                        Problem::new(Field::PipelineSplit, self, message)
                    });
                    return None;
                }
                Some(stages.clone())
            }
            _ if chunks > layers.saturating_add(2)
                || (*self != PipelineSplit::Counted && chunks > layers) =>
            {
                problems.add(|| {
                    let (field, degree, most) =
                        if vp > 1 { (Field::Vp, vp, layers / pp.max(1)) } else { (Field::Pp, pp, layers) };
                    let message = format!(
                        "{layers} layers can't fill {chunks} pipeline chunks (PP {pp} × VP {vp}): some would be empty."
                    );
                    Problem::new(field, degree, message).suggest(Some(most).filter(|most| *most > 0))
                });
                None
            }
            PipelineSplit::Even => Some(even_stages(layers, pp, vp)),
            PipelineSplit::Weighed => Some(weighed_stages(architecture, pp)),
            PipelineSplit::Counted => Some(counted_stages(layers, pp, vp)),
        }
    }
}

/// Returns the layers of `pp` stages of `vp` chunks. The first chunks in pipeline order take the remainder.
fn even_stages(layers: u32, pp: u32, vp: u32) -> Vec<u32> {
    let chunks = pp * vp;
    let (each, rest) = (layers / chunks, layers % chunks);
    (0..pp).map(|stage| (0..vp).map(|round| each + u32::from(round * pp + stage < rest)).sum()).collect()
}

/// Returns the layers of `pp` stages of `vp` chunks, if the embedding and the loss count as a layer each.
fn counted_stages(layers: u32, pp: u32, vp: u32) -> Vec<u32> {
    let mut stages = even_stages(layers + 2, pp, vp);
    // The embedding comes before the first layer, the loss after the last.
    if let Some(first) = stages.first_mut() {
        *first -= 1;
    }
    if let Some(last) = stages.last_mut() {
        *last = last.saturating_sub(1);
    }
    stages
}

/// Returns the layers of `pp` stages that have about the same weights in matrix multiplications. The head has weights, the
/// embedding has none. A stage ends with the layer that fills its share, as in nanotron (`get_block_compute_costs` of its
/// models, `_build_model` of its trainer).
fn weighed_stages(architecture: &Architecture, pp: u32) -> Vec<u32> {
    let Architecture { layers, hidden, vocab, ref attention, ref mlp, ref moe, .. } = *architecture;
    let (layers, hidden, pp) = (u64::from(layers), u64::from(hidden), u64::from(pp));
    let width = match attention.kind {
        AttentionKind::Gqa { head_dim, .. } => head_dim,
        AttentionKind::Mla { qk_nope, qk_rope, .. } => qk_nope + qk_rope,
    };
    let of_mlp = mlp
        .as_ref()
        .map_or(0, |mlp| u64::from(mlp.layers) * u64::from(Mlp::projections(mlp.gated)) * u64::from(mlp.ffn));
    let of_moe = moe.as_ref().map_or(0, |moe| {
        let wide = u64::from(moe.top_k) * u64::from(moe.ffn) + u64::from(moe.shared_ffn);
        u64::from(moe.layers) * u64::from(Mlp::projections(moe.gated)) * wide
    });
    let layer =
        hidden * (4 * u64::from(attention.heads) * u64::from(width) + (of_mlp + of_moe) / layers.max(1));
    let all = layers * layer + hidden * u64::from(vocab);
    let mut stages = vec![0_u32; pp as usize];
    let mut stage = 0;
    for placed in 1..=layers {
        stages[stage] += 1;
        if placed * layer * pp > all * (stage as u64 + 1) && stage + 1 < stages.len() {
            stage += 1;
        }
    }
    stages
}

impl fmt::Display for PipelineSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PipelineSplit::Even => f.write_str("even"),
            PipelineSplit::Counted => f.write_str("counted"),
            PipelineSplit::Weighed => f.write_str("weighed"),
            PipelineSplit::Explicit(stages) => {
                let stages: Vec<String> = stages.iter().map(u32::to_string).collect();
                f.write_str(&stages.join(","))
            }
        }
    }
}

impl FromStr for PipelineSplit {
    type Err = Problem;

    fn from_str(text: &str) -> Result<PipelineSplit, Problem> {
        match text.trim() {
            "even" => Ok(PipelineSplit::Even),
            "counted" => Ok(PipelineSplit::Counted),
            "weighed" => Ok(PipelineSplit::Weighed),
            list => list
                .split(',')
                .map(|stage| stage.trim().parse().ok())
                .collect::<Option<Vec<u32>>>()
                .map(PipelineSplit::Explicit)
                .ok_or_else(|| {
                    let message = format!(
                        "Unknown pipeline split \"{text}\". Use even, counted (the embedding and the loss count as \
                         a layer each), weighed (by weights with the head, as nanotron does) or the layers of each \
                         stage, such as 7,8,8,9."
                    );
                    Problem::new(Field::PipelineSplit, text, message)
                }),
        }
    }
}

impl Serialize for PipelineSplit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn count_of_gpus(gpus: u32) -> String {
    match gpus {
        1 => "1 GPU".to_string(),
        _ => format!("{} GPUs", group_digits(f64::from(gpus))),
    }
}

fn check_zeros(degrees: &Degrees, problems: &mut impl Refusals) {
    let all = [
        (Field::Gpus, degrees.gpus),
        (Field::Tp, degrees.tp),
        (Field::Pp, degrees.pp),
        (Field::Cp, degrees.cp),
        (Field::Ep, degrees.ep),
        (Field::ExpertTp, degrees.expert_tp),
        (Field::Vp, degrees.vp),
    ];
    for (field, degree) in all.into_iter().filter(|(_, degree)| *degree == 0) {
        problems.add(|| Problem::new(field, degree, message![field, " must be at least 1."]).suggest([1]));
    }
}

/// Returns the problem of context parallelism with linear attention. `__post_init__` of transformer_config.py in Megatron-Core 0.16
/// asserts that a model with `gated_delta_net` has none.
pub(crate) fn cp_problem(cp: u32, architecture: &Architecture) -> Option<Problem> {
    (cp > 1 && architecture.linear.is_some()).then(|| {
        let message = message![
            Setting::new(Field::Cp, cp),
            " is not supported: the model's linear attention needs whole sequences on a GPU."
        ];
        Problem::new(Field::Cp, cp, message).suggest([1])
    })
}

pub(crate) fn tp_problem(tp: u32, architecture: &Architecture) -> Option<Problem> {
    let widths = architecture.tp_widths();
    let common = widths.iter().fold(0, |common, (_, width)| greatest_common_divisor(common, *width));
    if let Some((name, width)) = widths.iter().find(|(_, width)| !width.is_multiple_of(tp)) {
        return Some(
            Problem::new(Field::Tp, tp, format!("The model's {name} ({width}) can't be divided by TP {tp}."))
                .suggest(nearest_divisors(tp, common)),
        );
    }
    match architecture.attention.kind {
        // With more ranks than query groups, each rank holds a whole copy of a group.
        AttentionKind::Gqa { kv_heads, .. }
            if !kv_heads.is_multiple_of(tp) && !tp.is_multiple_of(kv_heads) =>
        {
            let message =
                format!("TP {tp} is neither a divisor nor a multiple of the model's {kv_heads} KV heads.");
            Some(Problem::new(Field::Tp, tp, message).suggest(nearest_divisors(tp, kv_heads)))
        }
        _ => None,
    }
}

/// Returns the problem of an EP that does not divide the experts, without suggestions.
pub(crate) fn ep_problem(ep: u32, moe: &Moe) -> Option<Problem> {
    let message = || format!("The model's {} experts can't be divided by EP {ep}.", moe.experts);
    (!moe.experts.is_multiple_of(ep)).then(|| Problem::new(Field::Ep, ep, message()))
}

fn check_experts(degrees: &Degrees, architecture: &Architecture, problems: &mut impl Refusals) {
    let Degrees { gpus, pp, ep, expert_tp, .. } = *degrees;
    let Some(moe) = &architecture.moe else {
        let both = [(Field::Ep, ep), (Field::ExpertTp, expert_tp)].into_iter();
        for (field, degree) in both.filter(|(_, degree)| *degree > 1) {
            problems.add(|| {
                let message =
                    message![Setting::new(field, degree), " needs experts, but the model has none."];
                Problem::new(field, degree, message).suggest([1])
            });
        }
        return;
    };
    let ep_problem = ep_problem(ep, moe);
    let are_divided = ep_problem.is_none() && moe.ffn.is_multiple_of(expert_tp);
    if let Some(problem) = ep_problem {
        problems.add(|| {
            let divisors = nearest_degrees(ep, moe.experts, gpus, u64::from(expert_tp) * u64::from(pp));
            problem.suggest(divisors)
        });
    }
    if !moe.ffn.is_multiple_of(expert_tp) {
        problems.add(|| {
            let message =
                format!("An expert's FFN width ({}) can't be divided by expert TP {expert_tp}.", moe.ffn);
            let divisors = nearest_degrees(expert_tp, moe.ffn, gpus, u64::from(ep) * u64::from(pp));
            Problem::new(Field::ExpertTp, expert_tp, message).suggest(divisors)
        });
    }
    let expert_parallel = (u64::from(expert_tp) * u64::from(ep)).saturating_mul(u64::from(pp));
    // With another degree, the groups are others.
    if are_divided && !u64::from(gpus).is_multiple_of(expert_parallel) {
        problems.add(|| {
            let message = format!(
                "{} can't be split into groups of {expert_parallel} (expert TP {expert_tp} × EP {ep} × PP {pp}).",
                count_of_gpus(gpus)
            );
            Problem::new(Field::Gpus, gpus, message).suggest(nearest_counts(degrees, architecture))
        });
    }
}

/// Returns the divisors of a dimension next to a degree, of those that also split the GPUs, which `others` splits before. If that is
/// impossible, another problem says so.
fn nearest_degrees(degree: u32, dimension: u32, gpus: u32, others: u64) -> Vec<u32> {
    let ranks = u64::from(gpus).is_multiple_of(others).then(|| (u64::from(gpus) / others) as u32);
    nearest_divisors(degree, ranks.map_or(dimension, |ranks| greatest_common_divisor(dimension, ranks)))
}

/// Returns the numbers of GPUs next to the given one that can be split into the groups of all layers, and into those of experts.
fn nearest_counts(degrees: &Degrees, architecture: &Architecture) -> Vec<u32> {
    let Degrees { gpus, tp, pp, cp, ep, expert_tp, .. } = *degrees;
    let product = |sizes: [u32; 3]| sizes.into_iter().try_fold(1, u32::checked_mul);
    let splits_experts = |experts: u32, ffn: u32| experts.is_multiple_of(ep) && ffn.is_multiple_of(expert_tp);
    let moe = architecture.moe.as_ref().filter(|moe| splits_experts(moe.experts, moe.ffn));
    let groups = product([tp, pp, cp]).zip(product(moe.map_or([1; 3], |_| [expert_tp, ep, pp])));
    let step = groups.and_then(|(one, other)| (one / greatest_common_divisor(one, other)).checked_mul(other));
    step.map_or(Vec::new(), |step| nearest_multiples(gpus, step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use proptest::prelude::*;

    fn model(id: &str) -> &'static Architecture {
        &Catalog::embedded().model(id).unwrap().architecture
    }

    fn refused(degrees: &Degrees, id: &str) -> Problem {
        Layout::new(degrees, model(id)).unwrap_err().remove(0)
    }

    #[test]
    fn gpus_that_do_not_divide_name_the_nearest() {
        let degrees = Degrees { gpus: 500, tp: 8, pp: 8, cp: 2, ..Degrees::default() };
        let problem = refused(&degrees, "llama3.1-405b");
        assert_eq!(
            (problem.field, problem.suggestions.as_slice()),
            (Field::Gpus, &["384".into(), "512".into()][..])
        );
        assert!(problem.to_string().contains("groups of 128 (TP 8 × PP 8 × CP 2)"), "{problem}");
    }

    #[test]
    fn tp_must_cut_every_width() {
        let degrees = Degrees { gpus: 24, tp: 3, ..Degrees::default() };
        assert_eq!(refused(&degrees, "llama3.1-8b").suggestions, ["2", "4"]);
        // Groups of 3 can't be, so that no number of GPUs for them is suggested.
        let problems = Layout::new(&Degrees { gpus: 1024, ..degrees }, model("llama3.1-8b")).unwrap_err();
        assert_eq!(problems.iter().map(|problem| problem.field).collect::<Vec<_>>(), [Field::Tp]);
        // 16 is more than the 8 KV heads, and holds whole copies of them.
        let degrees = Degrees { gpus: 16, tp: 16, ..Degrees::default() };
        assert!(Layout::new(&degrees, model("llama3.1-8b")).is_ok());
        // Mamba's groups are cut as well.
        assert!(Layout::new(&degrees, model("nemotron-h-56b")).is_err());
    }

    #[test]
    fn experts_need_experts() {
        let degrees = Degrees { gpus: 8, ep: 8, ..Degrees::default() };
        assert_eq!(refused(&degrees, "llama3.1-8b").field, Field::Ep);
        let degrees = Degrees { gpus: 384, ep: 96, ..Degrees::default() };
        assert_eq!(refused(&degrees, "deepseek-v3").suggestions, ["64", "128"]);
    }

    #[test]
    fn suggestions_for_experts_work_with_the_rest() {
        let problems = |gpus, tp, ep| {
            let degrees = Degrees { gpus, tp, ep, ..Degrees::default() };
            Layout::new(&degrees, model("deepseek-v3")).unwrap_err()
        };
        let problem = &problems(250, 1, 8)[0];
        assert_eq!((problem.field, &*problem.suggestions), (Field::Gpus, &["248".into(), "256".into()][..]));
        assert!(problem.to_string().ends_with("(expert TP 1 × EP 8 × PP 1). Use 248 or 256."), "{problem}");
        // Both groups, of 16 and of 32, need other counts, and 240 would be one of the first alone.
        let both = problems(250, 16, 32);
        assert!(both.iter().all(|problem| problem.suggestions == ["224", "256"]), "{both:?}");
        assert_eq!(both.len(), 2);
        // 4 and 8 divide the experts, but only 2 divides the GPUs.
        let alone = problems(250, 1, 7);
        assert_eq!((alone.len(), alone[0].field, &*alone[0].suggestions), (1, Field::Ep, &["2".into()][..]));
        // No number of GPUs makes up for a degree that can't be.
        assert_eq!(problems(250, 4, 7)[1].suggestions, ["248", "252"]);
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

    #[test]
    fn a_split_is_recognised_by_its_chunks() {
        let of = |chunks: &[u32], pp| PipelineSplit::of_chunks(chunks, pp).map(|split| split.to_string());
        assert_eq!(of(&[16, 15, 15, 15], 4).as_deref(), Some("even"));
        assert_eq!(of(&[7, 8, 8, 8, 8, 8, 8, 7], 4).as_deref(), Some("counted"));
        assert_eq!(of(&[8, 8, 8, 8, 8, 8, 8, 6], 4).as_deref(), Some("16,16,16,14"));
        // One chunk has only the embedding, and one only the loss.
        assert_eq!(of(&[0, 2, 2, 0], 4).as_deref(), Some("0,2,2,0"));
        assert_eq!(of(&[1, 0, 0, 0], 2).as_deref(), Some("1,0"), "neither rule leaves chunks empty");
        assert_eq!((of(&[8, 8, 8], 2), of(&[], 2), of(&[8], 0)), (None, None, None));
    }

    #[test]
    fn a_weighed_split_leaves_room_for_the_head() {
        let stages = |id, pp| {
            let degrees = Degrees { gpus: pp, pp, split: PipelineSplit::Weighed, ..Degrees::default() };
            Layout::new(&degrees, model(id)).unwrap().stages().to_vec()
        };
        // By hand: a layer has 4 * 4096 * 4096 + 3 * 4096 * 14336 = 243 M weights, the head 4096 * 128256 = 525 M. Half of all
        // is 17.08 layers, which the 18th exceeds.
        assert_eq!(stages("llama3.1-8b", 2), [18, 14]);
        assert_eq!(stages("llama3.1-8b", 4), [9, 9, 8, 6]);
        assert_eq!(stages("llama3.1-8b", 1), [32]);
        assert_eq!(stages("llama3.1-8b", 32).iter().sum::<u32>(), 32);
    }

    #[test]
    fn an_explicit_split_holds_every_layer() {
        let split = |text: &str| Degrees {
            gpus: 64,
            pp: 4,
            ep: 8,
            split: text.parse().unwrap(),
            ..Degrees::default()
        };
        assert_eq!(
            Layout::new(&split("15,16,16,14"), model("deepseek-v3")).unwrap().stages(),
            [15, 16, 16, 14]
        );
        assert!(refused(&split("15,16,16,15"), "deepseek-v3").to_string().contains("62 layers"));
        assert!(refused(&split("30,31"), "deepseek-v3").to_string().contains("2 stages"));
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

        #[test]
        fn splits_round_trip(stages in proptest::collection::vec(0u32..100, 1..9)) {
            let split = PipelineSplit::Explicit(stages);
            prop_assert_eq!(split.to_string().parse::<PipelineSplit>().unwrap(), split);
        }
    }
}
