//! How the arguments of Megatron-LM divide layers among pipeline stages.

use crate::layout::PipelineSplit;
use crate::log::Arguments;

/// The most stages of a pipeline whose layers are listed.
const MOST_STAGES: u32 = 1024;

/// The most signs of a layout without repetitions: a log may name any number of them.
const MOST_SIGNS: usize = 8192;

/// Returns how the layers are divided among pipeline stages; none if evenly, or if the arguments don't add up.
pub(super) fn pipeline_split(arguments: &Arguments) -> Option<PipelineSplit> {
    let whole = |key| arguments.whole(key);
    let (layers, pp) = (whole("num_layers")?, whole("pipeline_model_parallel_size")?);
    if !(2..=MOST_STAGES).contains(&pp) {
        return None;
    }
    if let Some(layout) = arguments.text("pipeline_model_parallel_layout") {
        let chunks = chunks(layout).filter(|chunks| chunks.iter().sum::<u32>() == layers)?;
        return PipelineSplit::of_chunks(&chunks, pp).filter(|split| *split != PipelineSplit::Even);
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

/// Returns the layers of each chunk, in pipeline order: of a layout such as `Ettt|(tt|)*29,m|L`, in which `t` is a layer, or of the
/// list of lists that the first Megatron-Core with such layouts took. None if it is neither.
fn chunks(layout: &str) -> Option<Vec<u32>> {
    if layout.starts_with('[') {
        let lists = layout.strip_prefix("[[")?.strip_suffix("]]")?;
        let of_chunk = |list: &str| list.matches("'decoder'").count() as u32;
        // Lists of lists of lists are in another order.
        return (!lists.starts_with('[')).then(|| lists.split("],").map(of_chunk).collect());
    }
    let signs = unrolled(&layout.replace(',', ""))?;
    Some(signs.split('|').map(|chunk| chunk.matches('t').count() as u32).collect())
}

/// Returns the signs of a layout without repetitions, which follow a sign or parentheses: `t*3`, `(tt|)*29`. None if the layout is
/// invalid or too long.
fn unrolled(layout: &str) -> Option<String> {
    let (mut signs, mut rest) = (String::new(), layout);
    while let Some(sign) = rest.chars().next() {
        let unit = match sign {
            '(' => {
                let (inner, after) = rest[1..].split_once(')')?;
                rest = after;
                unrolled(inner)?
            }
            'E' | 't' | 'm' | 'L' | '|' => {
                rest = &rest[1..];
                sign.to_string()
            }
            _ => return None,
        };
        let mut times = 1;
        if let Some(after) = rest.strip_prefix('*') {
            rest = after.trim_start_matches(|sign: char| sign.is_ascii_digit());
            times = usize::from(after[..after.len() - rest.len()].parse::<u16>().ok()?);
        }
        if unit.len().saturating_mul(times).saturating_add(signs.len()) > MOST_SIGNS {
            return None;
        }
        signs += &unit.repeat(times);
    }
    Some(signs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_of_chunks_are_read() {
        // The examples in Megatron-Core, and what launches of DeepSeek-V3 list.
        let mut deepseek = vec![3];
        deepseek.extend([2; 29]);
        deepseek.extend([0, 0]);
        assert_eq!(chunks("Ettt|(tt|)*29,m|L"), Some(deepseek));
        assert_eq!(chunks("Et*16|t*16|t*16|t*13mL"), Some(vec![16, 16, 16, 13]));
        assert_eq!(chunks("Et|(t*2|)*2,(tt)*2L"), Some(vec![1, 2, 2, 4]));
        assert_eq!(
            chunks("[['embedding', 'decoder'], ['decoder', 'decoder'], ['decoder', 'loss']]"),
            Some(vec![1, 2, 1])
        );
        for invalid in
            ["Et*|tL", "Ex|tL", "E(t|L", "Et*9999|tL", "Et*99999|tL", "[[['decoder']]]", "[]", "E t|L"]
        {
            assert_eq!(chunks(invalid), None, "{invalid}");
        }
    }
}
