//! Sorting of short lists.

use std::cmp::Ordering;

/// Returns the items in an order; equal ones stay as they are. All lists share one copy of the sorting code, but each call
/// of `sort_by` adds another 5 kB to a program. For long lists `sort_by` is faster.
pub fn sorted<T: Copy>(items: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let order = order(items.len(), &|one, other| compare(&items[one], &items[other]));
    order.into_iter().map(|index| items[index]).collect()
}

/// Returns numbers in ascending order, each once.
pub(crate) fn ascending(numbers: &[u32]) -> Vec<u32> {
    let mut numbers = sorted(numbers, Ord::cmp);
    numbers.dedup();
    numbers
}

/// Returns the places of `len` items in an order; equal ones stay as they are. It merges sorted runs of 1, 2, 4 and more places.
pub fn order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    let mut merged = Vec::with_capacity(len);
    let mut sorted = 1;
    while sorted < len {
        for pair in order.chunks(2 * sorted) {
            let (mut left, mut right) = pair.split_at(sorted.min(pair.len()));
            while let Some((one, after_one)) = left.split_first() {
                match right.split_first() {
                    Some((other, after_other)) if compare(*one, *other).is_gt() => {
                        merged.push(*other);
                        right = after_other;
                    }
                    _ => {
                        merged.push(*one);
                        left = after_one;
                    }
                }
            }
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut order, &mut merged);
        merged.clear();
        sorted *= 2;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_items_stay_as_they_are() {
        assert_eq!(
            sorted(&[(2, 'a'), (1, 'b'), (2, 'c')], |a, b| a.0.cmp(&b.0)),
            [(1, 'b'), (2, 'a'), (2, 'c')]
        );
        assert_eq!(ascending(&[3, 1, 3, 2]), [1, 2, 3]);
    }

    proptest! {
        #[test]
        fn lists_of_any_length_have_the_order_of_the_standard_library(
            items in prop::collection::vec((0..20_u32, any::<u8>()), 0..200),
        ) {
            let mut expected = items.clone();
            expected.sort_by_key(|(key, _)| *key);
            prop_assert_eq!(sorted(&items, |one, other| one.0.cmp(&other.0)), expected);
        }
    }
}
