//! How the arguments of Megatron-LM divide layers among pipeline stages.

use crate::layout::PipelineSplit;
use crate::log::Arguments;

/// The most stages of a pipeline whose layers are listed.
const MOST_STAGES: u32 = 1024;

/// Returns how the layers are divided among pipeline stages; none if evenly, or if the arguments don't add up.
pub(super) fn pipeline_split(arguments: &Arguments) -> Option<PipelineSplit> {
    let whole = |key| arguments.whole(key);
    let (layers, pp) = (whole("num_layers")?, whole("pipeline_model_parallel_size")?);
    if !(2..=MOST_STAGES).contains(&pp) {
        return None;
    }
    let (first, last) =
        (whole("decoder_first_pipeline_num_layers"), whole("decoder_last_pipeline_num_layers"));
    if first.or(last).is_some() {
        // The other stages have the same number of layers.
        let others = pp - u32::from(first.is_some()) - u32::from(last.is_some());
        let rest = layers.checked_sub(first.unwrap_or(0))?.checked_sub(last.unwrap_or(0))?;
        let each = rest.checked_div(others).unwrap_or(0);
        let mut stages = vec![each; pp as usize];
        stages[0] = first.unwrap_or(each);
        stages[pp as usize - 1] = last.unwrap_or(each);
        let is_whole = each * others == rest;
        return (is_whole && stages.iter().any(|stage| *stage != stages[0]))
            .then_some(PipelineSplit::Explicit(stages));
    }
    if arguments.flag("account_for_loss_in_pipeline_split") != Some(true) {
        return None;
    }
    let chunks = pp.saturating_mul(whole("virtual_pipeline_model_parallel_size").unwrap_or(1).max(1));
    let counted = |more| layers.checked_add(more).filter(|all| all.is_multiple_of(chunks));
    // The name of the flag that counts the embedding is too long to be found in logs. But what is counted fills all chunks.
    if counted(2).is_some() {
        return Some(PipelineSplit::Counted);
    }
    let each = counted(1)? / pp;
    let mut stages = vec![each; pp as usize];
    stages[pp as usize - 1] = each - 1;
    Some(PipelineSplit::Explicit(stages))
}
