//! How layers are divided among pipeline stages.

use crate::architecture::{Architecture, AttentionKind, Mlp};
use crate::field::Field;
use crate::problem::{Problem, Refusals, Unworded};
use crate::words::words;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

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

    pub(super) fn checked_stages(
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
pub(super) fn even_stages(layers: u32, pp: u32, vp: u32) -> Vec<u32> {
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
                    let message = words!(
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

#[cfg(test)]
mod tests {
    use super::super::tests::{model, refused};
    use super::super::{Degrees, Layout};
    use super::*;
    use proptest::prelude::*;

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
        fn splits_round_trip(stages in proptest::collection::vec(0u32..100, 1..9)) {
            let split = PipelineSplit::Explicit(stages);
            prop_assert_eq!(split.to_string().parse::<PipelineSplit>().unwrap(), split);
        }
    }
}
