//! Sorting of short lists.

use std::cmp::Ordering;

/// Returns the items in an order; equal ones stay as they are. All lists share one copy of the sorting code, but each call
/// of `sort_by` adds another 3 kB to a program. For long lists `sort_by` is faster.
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

/// Returns the places of `len` items in an order; equal ones stay as they are.
pub fn order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_by(|one, other| compare(*one, *other));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_items_stay_as_they_are() {
        assert_eq!(
            sorted(&[(2, 'a'), (1, 'b'), (2, 'c')], |a, b| a.0.cmp(&b.0)),
            [(1, 'b'), (2, 'a'), (2, 'c')]
        );
        assert_eq!(ascending(&[3, 1, 3, 2]), [1, 2, 3]);
    }
}
