//! An order of layers for models that publish only their counts: each kind is spread evenly.

use std::fmt::Write;

/// Returns the kind of each layer in order, with as many of each as `counts` says. Of two that are equally
/// due, the first comes first.
pub(super) fn interleave<T: Copy>(counts: &[(T, u32)]) -> Vec<T> {
    let total: u32 = counts.iter().map(|(_, count)| count).sum();
    let mut placed = vec![0_u32; counts.len()];
    let mut layers = Vec::new();
    for position in 1..=u64::from(total) {
        // How far a kind is behind its share, in units of 1/total.
        let due = |index: usize| {
            (position * u64::from(counts[index].1)) as i64 - i64::from(placed[index]) * i64::from(total)
        };
        let open = (0..counts.len()).filter(|index| placed[*index] < counts[*index].1);
        let Some(next) = open.max_by_key(|index| (due(*index), std::cmp::Reverse(*index))) else { break };
        placed[next] += 1;
        layers.push(counts[next].0);
    }
    layers
}

/// Returns a list of zeros and ones in Megatron-LM's notation: `([1]*5+[0]*1)*10`.
pub(super) fn list(layers: &[bool]) -> String {
    let period = (1..=layers.len())
        .filter(|period| layers.len().is_multiple_of(*period))
        .find(|period| layers.chunks(*period).all(|chunk| *chunk == layers[..*period]));
    let period = period.unwrap_or(layers.len());
    let mut runs = String::new();
    for run in layers[..period].chunk_by(|one, next| one == next) {
        let plus = if runs.is_empty() { "" } else { "+" };
        // Writing to a string does not fail.
        let _ = write!(runs, "{plus}[{}]*{}", u8::from(run.first() == Some(&true)), run.len());
    }
    match layers.len() / period.max(1) {
        0 | 1 => runs,
        times => format!("({runs})*{times}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_spread_evenly_and_all_placed() {
        let layers: String = interleave(&[('M', 4), ('-', 4), ('*', 2)]).into_iter().collect();
        assert_eq!(layers, "M-*M-M-*M-");
        let layers: String = interleave(&[('M', 54), ('-', 54), ('*', 10)]).into_iter().collect();
        assert_eq!(
            (layers.matches('M').count(), layers.matches('-').count(), layers.matches('*').count()),
            (54, 54, 10)
        );
        assert!(!layers.contains("**") && !layers.contains("MM"), "{layers}");
        assert!(interleave::<bool>(&[]).is_empty());
    }

    #[test]
    fn lists_are_short_where_they_repeat() {
        assert_eq!(list(&interleave(&[(true, 2), (false, 2)])), "([1]*1+[0]*1)*2");
        assert_eq!(list(&[false, false, false, true, true]), "[0]*3+[1]*2");
        assert_eq!(list(&[true; 4]), "([1]*1)*4");
        assert_eq!(list(&[]), "");
    }
}
