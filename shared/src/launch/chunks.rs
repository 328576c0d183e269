//! The layers of a pipeline's chunks as Megatron-Core reads them, and what launches say of the groups of micro batches that pass
//! through them.

use crate::architecture::Architecture;
use crate::batch::MicrobatchGroups;
use crate::field::Field;
use crate::layout::{Layout, PipelineSplit};
use crate::message;
use crate::message::{Message, Setting};
use crate::problem::Problem;
use crate::scenario::Scenario;
use crate::units::nearest_multiples;

/// Returns whether all chunks have the same number of layers.
pub(super) fn is_even(layout: &Layout, layers: u32) -> bool {
    let pp = layout.pp();
    let alike = layout.stages().iter().all(|stage| stage.saturating_mul(pp) == layers);
    alike && layers.is_multiple_of(pp.saturating_mul(layout.vp()))
}

/// Returns whether the layout counts the embedding and the loss as a layer each, and all chunks then have the same number.
pub(super) fn is_counted(layout: &Layout, layers: u32) -> bool {
    let chunks = layout.pp().saturating_mul(layout.vp());
    *layout.split() == PipelineSplit::Counted && (layers + 2).is_multiple_of(chunks)
}

/// Returns every chunk's layers in pipeline order, as `Et*15|t*16|…|t*13mL`, starting with the first chunk of each stage: `E` is the
/// embedding, `m` one of the layers of multi-token prediction (`predictions`), and `L` the loss.
pub(super) fn by_chunk(layout: &Layout, layers: u32, predictions: u32) -> String {
    let (pp, vp) = (layout.pp(), layout.vp());
    let counts: Vec<u32> = match layout.split() {
        PipelineSplit::Weighed | PipelineSplit::Explicit(_) => {
            let of_stage = |(layers, stage): (&u32, u32)| {
                let before = u32::from(stage == 1);
                let after = if stage == pp { predictions + 1 } else { 0 };
                chunks_of_stage(*layers, vp, before, after)
            };
            let stages: Vec<Vec<u32>> = layout.stages().iter().zip(1..).map(of_stage).collect();
            (0..vp as usize).flat_map(|round| stages.iter().map(move |chunks| chunks[round])).collect()
        }
        // As in `layout`: the first chunks take the remainder. In a counted split, the embedding and the loss
        // are a layer each.
        split => {
            let extra = u32::from(*split == PipelineSplit::Counted);
            let (total, chunks) = (layers + 2 * extra, pp * vp);
            let share = |chunk: u32| total / chunks + u32::from(chunk < total % chunks);
            let ends = |chunk: u32| extra * (u32::from(chunk == 0) + u32::from(chunk + 1 == chunks));
            (0..chunks).map(|chunk| share(chunk).saturating_sub(ends(chunk))).collect()
        }
    };
    let write = |symbol: char, count: u32| match count {
        0 => String::new(),
        1 => symbol.to_string(),
        _ => format!("{symbol}*{count}"),
    };
    let chunks: Vec<String> = counts.into_iter().map(|count| write('t', count)).collect();
    format!("E{}{}L", chunks.join("|"), write('m', predictions))
}

/// Returns the layers of a stage's chunks: divided evenly, if what the stage computes before and after its layers counts as so
/// many layers. In this way, Megatron-Bridge's recipes have the embedding, multi-token prediction and the loss in short chunks.
fn chunks_of_stage(layers: u32, vp: u32, before: u32, after: u32) -> Vec<u32> {
    let all = layers + before + after;
    let mut chunks: Vec<u32> = (0..vp).map(|round| all / vp + u32::from(round < all % vp)).collect();
    take(chunks.iter_mut(), before);
    take(chunks.iter_mut().rev(), after);
    chunks
}

/// Takes this many layers from the first of the chunks.
fn take<'a>(chunks: impl Iterator<Item = &'a mut u32>, mut layers: u32) {
    for chunk in chunks {
        let taken = layers.min(*chunk);
        *chunk -= taken;
        layers -= taken;
    }
}

/// Returns a warning if the last stage takes longer than necessary because it also computes multi-token prediction and the loss.
/// It names a division that counts each of them as a layer, as Megatron-Bridge's recipes for DeepSeek-V3 divide its layers.
pub(super) fn prediction_warning(layout: &Layout, architecture: &Architecture) -> Option<(String, Message)> {
    let (pp, predictions) = (layout.pp(), architecture.mtp_layers);
    if pp == 1 || predictions == 0 || architecture.mamba.is_some() {
        return None;
    }
    let after = predictions + 1;
    let all = architecture.layers + after;
    let mut stages: Vec<u32> = (0..pp).map(|stage| all / pp + u32::from(stage < all % pp)).collect();
    let last = stages.last_mut()?;
    *last = last.checked_sub(after).filter(|layers| *layers > 0)?;
    let longest = |stages: &[u32]| -> Option<u32> {
        let (last, others) = stages.split_last()?;
        Some(others.iter().copied().max()?.max(*last + after))
    };
    if longest(layout.stages())? <= longest(&stages)? {
        return None;
    }
    let last = layout.stages().last()?;
    let text = format!(
        "The last of {pp} pipeline stages has {last} layers and also computes multi-token prediction and the loss, so every \
         step waits for it."
    );
    let better = Setting::new(Field::PipelineSplit, PipelineSplit::Explicit(stages));
    Some((text, message!["Set ", better, "."]))
}

/// Returns the problem of a batch at which the interleaved schedule stops, once all nodes have started. `sets_groups` says
/// whether the script can set the groups of micro batches.
pub(super) fn schedule_problem(scenario: &Scenario, sets_groups: bool) -> Option<Problem> {
    let (layout, batch) = (&scenario.layout, &scenario.batch);
    let needed = match (MicrobatchGroups::of(layout, batch), sets_groups) {
        (MicrobatchGroups::Usual, _) | (MicrobatchGroups::Of(_), true) => return None,
        (MicrobatchGroups::Impossible, true) => "at least",
        (_, false) => "a multiple of",
    };
    let (pp, vp, ga, gbs) = (layout.pp(), layout.vp(), batch.ga(), batch.gbs());
    let message = message![
        Setting::new(Field::Gbs, gbs),
        format!(
            " gives {ga} micro batches, which must be {needed} PP {pp} for {vp} interleaved chunks per stage. The run would \
             stop at its first step."
        )
    ];
    Some(Problem::new(Field::Gbs, gbs, message).suggest(nearest_multiples(gbs, gbs / ga * pp)))
}

/// Returns a warning if the micro batches run in larger groups than by default.
pub(super) fn group_warning(scenario: &Scenario) -> Option<(String, Message)> {
    let MicrobatchGroups::Of(group) = MicrobatchGroups::of(&scenario.layout, &scenario.batch) else {
        return None;
    };
    let (ga, pp) = (scenario.batch.ga(), scenario.layout.pp());
    let text = format!(
        "{ga} micro batches are not a multiple of PP {pp}. They run in groups of {group}, which takes more memory."
    );
    Some((text, message!["Choose ", Field::Gbs, " for a multiple."]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::layout::Degrees;

    fn architecture(model: &str) -> &'static Architecture {
        &Catalog::embedded().model(model).unwrap().architecture
    }

    fn layout(model: &str, pp: u32, vp: u32, split: &str) -> Layout {
        let split = split.parse().unwrap();
        let degrees = Degrees { gpus: 768, pp, vp, split, ..Degrees::default() };
        Layout::new(&degrees, architecture(model)).unwrap()
    }

    #[test]
    fn chunks_are_those_of_megatron_bridges_recipes() {
        let text = |pp, vp, split| {
            let layout = layout("deepseek-v3", pp, vp, split);
            by_chunk(&layout, 61, architecture("deepseek-v3").mtp_layers)
        };
        // src/megatron/bridge/perf_recipes/deepseek: "Et*4|(t*4|)*14tmL" and "Et|(tt|)*30mL".
        let gb300 = format!("Et*4|{}tmL", "t*4|".repeat(14));
        assert_eq!(text(2, 8, "32,29"), gb300);
        assert_eq!(text(4, 4, "16,16,16,13"), gb300);
        assert_eq!(text(8, 4, "7,8,8,8,8,8,8,6"), format!("Et|{}mL", "t*2|".repeat(30)));
        assert_eq!(text(4, 1, "16,16,16,13"), "Et*16|t*16|t*16|t*13mL");
    }

    #[test]
    fn chunks_hold_all_layers() {
        for (pp, vp, split) in
            [(2, 8, "30,31"), (4, 3, "1,20,20,20"), (4, 4, "20,20,20,1"), (3, 7, "even"), (3, 7, "counted")]
        {
            let layout = layout("deepseek-v3", pp, vp, split);
            let text = by_chunk(&layout, 61, 1);
            let chunks: Vec<&str> = text.split('|').collect();
            let count = |chunk: &&str| match chunk.trim_matches(['E', 'm', 'L']) {
                "" => 0,
                "t" => 1,
                several => several.trim_start_matches("t*").parse::<u32>().unwrap(),
            };
            let total: u32 = chunks.iter().map(count).sum();
            assert_eq!((chunks.len() as u32, total), (pp * vp, 61), "{text}");
            for (stage, layers) in layout.stages().iter().enumerate() {
                let of_stage = chunks.iter().skip(stage).step_by(pp as usize).map(count);
                assert_eq!(of_stage.sum::<u32>(), *layers, "{text}");
            }
        }
    }

    #[test]
    fn a_last_stage_that_predicts_further_tokens_has_fewer_layers() {
        let better = |model: &str, pp, split| {
            let warning = prediction_warning(&layout(model, pp, 1, split), architecture(model));
            warning.map(|(_, fix)| fix.settings().map(|set| set.value.clone()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(better("deepseek-v3", 4, "even").as_deref(), Some("16,16,16,13"));
        assert_eq!(better("deepseek-v3", 8, "even").as_deref(), Some("8,8,8,8,8,8,8,5"));
        // The longest stage is as long as with the better division.
        assert_eq!(better("deepseek-v3", 2, "even"), None);
        assert_eq!(better("deepseek-v3", 8, "counted"), None);
        assert_eq!(better("deepseek-v3", 8, "7,8,8,8,8,8,8,6"), None);
        assert_eq!(better("deepseek-v3", 4, "16,16,16,13"), None);
        assert_eq!(better("llama3.1-70b", 4, "even"), None);
    }
}
