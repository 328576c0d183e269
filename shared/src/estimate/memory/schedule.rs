//! The blocks of each pipeline stage, and the micro batches in flight there.

use crate::batch::MicrobatchGroups;
use crate::estimate::Inputs;
use crate::estimate::kinds::PerKind;

/// The blocks of a pipeline stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StageBlocks {
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// Blocks by kind. Those of a hybrid are spread evenly, which can give fractions.
    pub(super) blocks: PerKind<f64>,
    /// Layers of multi-token prediction, which `blocks` includes.
    pub(super) mtp: f64,
    /// Micro batches whose activations are saved at the same time.
    pub(super) in_flight: f64,
}

impl StageBlocks {
    /// Whether it needs no more memory than `before`, the previous stage.
    pub(super) fn is_within(&self, before: &StageBlocks) -> bool {
        !before.is_first
            && !self.is_last
            && self.in_flight <= before.in_flight
            && self.blocks.all().iter().zip(before.blocks.all()).all(|(own, other)| **own <= *other)
    }
}

/// Returns the stages, first to last.
pub(super) fn stages<'a>(inputs: &Inputs<'a>) -> impl Iterator<Item = StageBlocks> + 'a {
    let inputs = *inputs;
    let architecture = inputs.architecture;
    let total = PerKind::counts(architecture);
    let layers = f64::from(architecture.layers);
    // The few dense layers of a mixture of experts come first; if there are as many as routed ones, they
    // alternate.
    let leads = total.mlp > 0.0 && total.mlp < total.moe && total.mamba == 0.0;
    let mtp = f64::from(architecture.mtp_layers);
    let (stages, last) = (inputs.layout.stages(), inputs.layout.stages().len().saturating_sub(1));
    let chunks = f64::from(inputs.layout.vp());
    let group = MicrobatchGroups::of(inputs.layout, inputs.batch).size(inputs.layout.pp());
    let mut leading = total.mlp;
    stages.iter().enumerate().map(move |(index, here)| {
        let here = f64::from(*here);
        let mut blocks = total.map(|kind| kind * here / layers);
        if leads {
            // The first layers form the first chunk of each stage.
            let dense = leading.min((here / chunks).max(1.0)).min(here);
            leading -= dense;
            (blocks.mlp, blocks.moe) = (dense, here - dense);
        }
        let mtp = if index == last { mtp } else { 0.0 };
        blocks.attention += mtp;
        *if total.moe > 0.0 { &mut blocks.moe } else { &mut blocks.mlp } += mtp;
        StageBlocks {
            is_first: index == 0,
            is_last: index == last,
            blocks,
            mtp,
            in_flight: in_flight(&inputs, f64::from(group), index),
        }
    })
}

/// Returns the micro batches in flight on stage `index`, arXiv:2104.04473, if interleaved chunks compute them in groups of `group`.
///
/// With 1F1B it is the number of stages from there to the end. An interleaved stage starts `2·(p - i - 1) +
/// (v - 1)·g + 1` chunks before its first backward pass ends, with groups of g micro batches (`get_pp_rank_microbatches`
/// in Megatron-Core's schedules.py); each chunk is 1/v of its layers. One more chunk is in flight if the exchange between
/// experts overlaps with another micro batch (`combined_1f1b`).
fn in_flight(inputs: &Inputs<'_>, group: f64, index: usize) -> f64 {
    let (pp, vp) = (f64::from(inputs.layout.pp()), f64::from(inputs.layout.vp()));
    let after = pp - 1.0 - index as f64;
    let accumulated = f64::from(inputs.batch.ga());
    let overlapped = f64::from(inputs.options.switches.hidden_experts == Some(true) && vp > 1.0);
    let started =
        if vp > 1.0 { ((vp - 1.0) * group + 2.0 * after + 1.0 + overlapped) / vp } else { after + 1.0 };
    started.min(accumulated)
}

#[cfg(test)]
mod tests {
    use super::super::tests::with;
    use super::*;
    use crate::layout::Degrees;

    #[test]
    fn the_first_stage_has_the_most_in_flight() {
        let in_flight = |vp, gbs| {
            let degrees = Degrees { gpus: 4, pp: 4, vp, ..Degrees::default() };
            with("llama3.1-8b", &degrees, gbs, |inputs| {
                stages(inputs).map(|stage| stage.in_flight).collect::<Vec<f64>>()
            })
        };
        assert_eq!(in_flight(1, 64), [4.0, 3.0, 2.0, 1.0]);
        assert_eq!(in_flight(1, 2), [2.0, 2.0, 2.0, 1.0]);
        // p + (p - 1)/v on the first.
        assert_eq!(in_flight(2, 64), [5.5, 4.5, 3.5, 2.5]);
        // Fewer micro batches than stages, which no interleaved schedule runs.
        assert_eq!(in_flight(2, 3), [3.0, 3.0, 3.0, 2.5]);
    }

    #[test]
    fn larger_groups_of_micro_batches_keep_more_in_flight() {
        let in_flight = |vp, gbs| {
            let degrees = Degrees { gpus: 4, pp: 4, vp, ..Degrees::default() };
            with("llama3.1-8b", &degrees, gbs, |inputs| {
                stages(inputs).map(|stage| stage.in_flight).collect::<Vec<f64>>()
            })
        };
        // In groups of 5: 2·3 + 1·5 + 1 = 12 chunks of half a stage on the first.
        assert_eq!(in_flight(2, 9), [6.0, 5.0, 4.0, 3.0]);
        // In groups of 6: 2·3 + 1·6 + 1 = 13 chunks, but the step has only 6 micro batches.
        assert_eq!(in_flight(2, 6), [6.0, 5.5, 4.5, 3.5]);
        // In groups of 5: 2·3 + 3·5 + 1 = 22 chunks of a quarter; in groups of 4: 19.
        assert_eq!(in_flight(4, 9), [5.5, 5.0, 4.5, 4.0]);
        assert_eq!(in_flight(4, 8), [4.75, 4.25, 3.75, 3.25]);
    }

    #[test]
    fn dense_layers_come_first() {
        let degrees = Degrees { gpus: 64, pp: 4, ep: 8, ..Degrees::default() };
        let blocks = with("deepseek-v3", &degrees, 64, |inputs| {
            stages(inputs).map(|stage| stage.blocks.all().map(|count| *count)).collect::<Vec<_>>()
        });
        assert_eq!(blocks[0], [16.0, 3.0, 13.0, 0.0, 0.0]);
        // With its layer of multi-token prediction.
        assert_eq!(blocks[3], [16.0, 0.0, 16.0, 0.0, 0.0]);
    }

    #[test]
    fn full_and_linear_attention_are_spread_evenly() {
        let degrees = Degrees { gpus: 4, pp: 4, ..Degrees::default() };
        let blocks = with("qwen3-next-80b-a3b", &degrees, 64, |inputs| {
            stages(inputs).map(|stage| stage.blocks.all().map(|count| *count)).collect::<Vec<_>>()
        });
        assert_eq!(blocks, [[3.0, 0.0, 12.0, 0.0, 9.0]; 4]);
    }

    #[test]
    fn blocks_of_a_hybrid_are_spread_evenly() {
        let degrees = Degrees { gpus: 2, pp: 2, ..Degrees::default() };
        let blocks = with("nemotron-h-56b", &degrees, 64, |inputs| {
            stages(inputs).map(|stage| stage.blocks.all().map(|count| *count)).collect::<Vec<_>>()
        });
        assert_eq!(blocks, [[5.0, 27.0, 0.0, 27.0, 0.0]; 2]);
    }
}
