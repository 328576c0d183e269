//! Finds the anchors: the few fixed strings that open everything a log has to tell.
//!
//! Nearly all of a log is foreign (a NCCL trace has gigabytes of it), so the search must be fast where nothing is
//! found, natively and in the browser, where there is no SIMD to count on. It is the set form of Horspool's
//! algorithm (Wu and Manber): look at the last two bytes of the window that the shortest anchor would fill; a
//! table says how far the window can move without missing one. Most pairs of bytes are in no anchor at all, so
//! most of a log is never looked at.

use super::anchor::Anchor;

/// One entry for each pair of 7-bit characters. Bytes from 128 up share the entries of their low bits, which can
/// only make a step too short, never too long.
const PAIRS: usize = 1 << 14;

/// The anchors that are looked for, and the table that skips what cannot be one.
#[derive(Clone)]
pub(super) struct Search {
    anchors: Vec<(&'static [u8], Anchor)>,
    /// How many bytes of each anchor the window covers: the length of the shortest.
    window: usize,
    /// By the pair that a window ends with: how far the next window is that an anchor may fill.
    skip: Vec<u8>,
    /// By the pair that a window starts with: whether an anchor starts so.
    opens: Vec<bool>,
}

impl Search {
    /// A search for `anchors`. Each must be at least two bytes long and should be much longer.
    pub(super) fn new(anchors: Vec<(&'static [u8], Anchor)>) -> Self {
        let window = anchors.iter().map(|(text, _)| text.len()).min().unwrap_or(2).clamp(2, 128);
        let farthest = window - 1;
        // At most 127, so it fits.
        let mut skip = vec![farthest as u8; PAIRS];
        let mut opens = vec![false; PAIRS];
        for (text, _) in &anchors {
            for (start, two) in text.windows(2).take(farthest).enumerate() {
                let entry = &mut skip[pair(two[0], two[1])];
                *entry = (*entry).min((farthest - 1 - start) as u8);
            }
            opens[pair(text[0], text[1])] = true;
        }
        Self { anchors, window, skip, opens }
    }

    /// Stops looking for one kind of anchor: what only has to be seen once costs nothing afterwards.
    pub(super) fn forget(&mut self, forgotten: Anchor) {
        *self = Self::new(self.anchors.iter().copied().filter(|(_, anchor)| *anchor != forgotten).collect());
    }

    /// The first anchor that starts in `text[from..to]`: where it starts, what it says and what it is.
    /// It may end behind `to`.
    pub(super) fn next(&self, text: &[u8], from: usize, to: usize) -> Option<(usize, &'static [u8], Anchor)> {
        let mut at = from;
        while at < to {
            let Some(window) = text.get(at..at + self.window) else { break };
            let skip = self.skip[pair(window[self.window - 2], window[self.window - 1])];
            if skip > 0 {
                at += usize::from(skip);
                continue;
            }
            if self.opens[pair(window[0], window[1])]
                && let Some((found, anchor)) =
                    self.anchors.iter().find(|(found, _)| text[at..].starts_with(found))
            {
                return Some((at, found, *anchor));
            }
            at += 1;
        }
        None
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first & 0x7f) << 7 | usize::from(second & 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ANCHORS: [(&[u8], Anchor); 3] =
        [(b"abcab", Anchor::Nemo1), (b"bcabc", Anchor::Nemo2), (b"cabcabca", Anchor::Paxml)];

    fn all(search: &Search, text: &[u8]) -> Vec<(usize, &'static [u8], Anchor)> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(hit) = search.next(text, from, text.len()) {
            from = hit.0 + 1;
            found.push(hit);
        }
        found
    }

    fn all_by_brute_force(text: &[u8]) -> Vec<(usize, &'static [u8], Anchor)> {
        (0..text.len())
            .filter_map(|at| {
                let (anchor, kind) = ANCHORS.iter().find(|(anchor, _)| text[at..].starts_with(anchor))?;
                Some((at, *anchor, *kind))
            })
            .collect()
    }

    proptest! {
        #[test]
        fn finds_what_brute_force_finds(text in prop::collection::vec(prop::sample::select(&b"abc\xe1\xe2"[..]), 0..200)) {
            let search = Search::new(ANCHORS.to_vec());
            prop_assert_eq!(all(&search, &text), all_by_brute_force(&text));
        }
    }

    #[test]
    fn an_anchor_may_end_behind_the_limit_but_not_start_there() {
        let search = Search::new(ANCHORS.to_vec());
        assert_eq!(search.next(b"xxabcab", 0, 3).map(|hit| hit.0), Some(2));
        assert_eq!(search.next(b"xxabcab", 0, 2), None);
        assert_eq!(search.next(b"xxabca", 0, 6), None);
    }

    #[test]
    fn a_forgotten_anchor_is_passed_over() {
        let mut search = Search::new(ANCHORS.to_vec());
        search.forget(Anchor::Nemo1);
        assert_eq!(search.next(b"abcabc", 0, 6).map(|hit| hit.2), Some(Anchor::Nemo2));
    }
}
