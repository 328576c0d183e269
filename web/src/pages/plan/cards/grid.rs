//! The grid of the cards: how wide each is.

/// The columns of the grid that the cards share.
const GRID_COLUMNS: usize = 12;

/// Returns the columns of the grid that the card at `index` of `count` takes, if a row has room for `most`: rows differ by one
/// card at most, and each is full.
pub(super) fn card_span(index: usize, count: usize, most: usize) -> usize {
    let rows = count.div_ceil(most).max(1);
    let (least, longer) = (count / rows, count % rows);
    let is_in_longer = index < longer * (least + 1);
    GRID_COLUMNS / if is_in_longer { least + 1 } else { least.max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_cards_are_full_and_differ_by_one_card() {
        let spans = |count: usize, most: usize| {
            (0..count).map(|index| card_span(index, count, most)).collect::<Vec<_>>()
        };
        assert_eq!(spans(2, 4), [6, 6]);
        assert_eq!(spans(7, 4), [3, 3, 3, 3, 4, 4, 4]);
        assert_eq!(spans(7, 3), [4, 4, 4, 6, 6, 6, 6]);
        assert_eq!(spans(5, 4), [4, 4, 4, 6, 6]);
        for (count, most) in [(1, 2), (3, 2), (6, 4), (8, 3), (9, 4)] {
            assert_eq!(
                spans(count, most).iter().sum::<usize>() % GRID_COLUMNS,
                0,
                "{count} in rows of {most}"
            );
        }
    }
}
