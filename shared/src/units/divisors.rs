//! Whole numbers that divide others, and the nearest that do.

/// Returns the greatest multiple of `step` at or below `near`, unless it is 0, and the least one above
/// `near`.
pub fn nearest_multiples(near: u32, step: u32) -> Vec<u32> {
    let step = step.max(1);
    let below = near / step * step;
    [Some(below).filter(|below| *below > 0), below.checked_add(step)].into_iter().flatten().collect()
}

/// Returns the divisors of `of` next to `near`: the greatest below it and the least above it.
pub fn nearest_divisors(near: u32, of: u32) -> Vec<u32> {
    let divides = |candidate: &u32| of.is_multiple_of(*candidate);
    let below = (1..near.min(of.saturating_add(1))).rev().find(divides);
    let above = (near.saturating_add(1)..=of).find(divides);
    [below, above].into_iter().flatten().collect()
}

/// Returns the greatest number that divides both; every number divides 0.
pub fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_values_lie_on_either_side() {
        assert_eq!(nearest_multiples(500, 128), [384, 512]);
        assert_eq!(nearest_multiples(5, 128), [128]);
        assert_eq!(nearest_divisors(7, 96), [6, 8]);
        assert_eq!(nearest_divisors(97, 96), [96]);
    }
}
