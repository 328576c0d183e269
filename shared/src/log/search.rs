//! Searches for the markers.
//!
//! Most of a log is not records (an NCCL trace has gigabytes of other text), so the search must be fast where it finds
//! nothing. Natively it compares many bytes at once (the Teddy algorithm of the crate aho-corasick). A browser without SIMD, or
//! another processor, uses Horspool's algorithm for a set of strings (Wu and Manber): it reads
//! the last two bytes of a window as long as the shortest marker, and a table returns how far the window can move without
//! missing a marker. Most pairs of bytes occur in no marker, so the search skips most of a log. Both find the same.

use super::marker::Marker;
#[cfg(not(target_family = "wasm"))]
use aho_corasick::packed;

/// One entry for each pair of 7-bit characters. Bytes from 128 up share the entries of their low bits, which can
/// only make a step too short, never too long.
const PAIRS: usize = 1 << 14;

/// A marker that was found: its position, its text and its kind.
type FoundMarker = (usize, &'static [u8], Marker);

/// The markers to find, and the tables that skip other text.
#[derive(Clone)]
pub(super) struct Search {
    markers: Vec<(&'static [u8], Marker)>,
    /// The length of the window in bytes: the length of the shortest marker, at most 128.
    window: usize,
    /// For each pair at the end of the window, the distance to the next window that a marker can start at.
    skip: Vec<u8>,
    /// For each pair at the start of the window, whether a marker starts with it.
    opens: Vec<bool>,
    /// The search by SIMD, where the processor has it.
    #[cfg(not(target_family = "wasm"))]
    by_simd: Option<packed::Searcher>,
}

impl Search {
    /// Returns a search for `markers`. Each must have at least two bytes and should have many more.
    pub(super) fn new(markers: Vec<(&'static [u8], Marker)>) -> Self {
        let window = markers.iter().map(|(text, _)| text.len()).min().unwrap_or(2).clamp(2, 128);
        let farthest = window - 1;
        // At most 127, so it fits.
        let mut skip = vec![farthest as u8; PAIRS];
        let mut opens = vec![false; PAIRS];
        for (text, _) in &markers {
            for (start, two) in text.windows(2).take(farthest).enumerate() {
                let entry = &mut skip[pair(two[0], two[1])];
                *entry = (*entry).min((farthest - 1 - start) as u8);
            }
            opens[pair(text[0], text[1])] = true;
        }
        Self {
            #[cfg(not(target_family = "wasm"))]
            by_simd: packed::Config::new()
                .match_kind(packed::MatchKind::LeftmostFirst)
                // By default, it refuses more than 64 markers, because text that resembles many of them slows it down. Most of a log
                // resembles none.
                .heuristic_pattern_limits(false)
                .builder()
                .extend(markers.iter().map(|(text, _)| text))
                .build(),
            markers,
            window,
            skip,
            opens,
        }
    }

    /// Removes a kind of marker from the search, once finding it again has no effect.
    pub(super) fn forget(&mut self, forgotten: Marker) {
        *self = Self::new(self.markers.iter().copied().filter(|(_, marker)| *marker != forgotten).collect());
    }

    /// Returns the first marker that starts in `text[from..to]`. It may end after `to`.
    pub(super) fn next(&self, text: &[u8], from: usize, to: usize) -> Option<FoundMarker> {
        #[cfg(not(target_family = "wasm"))]
        if let Some(by_simd) = &self.by_simd {
            let longest = self.markers.iter().map(|(text, _)| text.len()).max().unwrap_or_default();
            let end = text.len().min(to.saturating_add(longest));
            let found = by_simd.find_in(text, (from.min(end)..end).into())?;
            let (text, marker) = self.markers.get(found.pattern().as_usize())?;
            return (found.start() < to).then_some((found.start(), text, *marker));
        }
        self.next_by_tables(text, from, to)
    }

    fn next_by_tables(&self, text: &[u8], from: usize, to: usize) -> Option<FoundMarker> {
        let mut at = from;
        while at < to {
            let Some(window) = text.get(at..at + self.window) else { break };
            let skip = self.skip[pair(window[self.window - 2], window[self.window - 1])];
            if skip > 0 {
                at += usize::from(skip);
                continue;
            }
            if self.opens[pair(window[0], window[1])]
                && let Some((found, marker)) =
                    self.markers.iter().find(|(found, _)| text[at..].starts_with(found))
            {
                return Some((at, found, *marker));
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

    const MARKERS: [(&[u8], Marker); 3] =
        [(b"abcab", Marker::Nemo1), (b"bcabc", Marker::Nemo2), (b"cabcabca", Marker::Paxml)];

    type Next = fn(&Search, &[u8], usize, usize) -> Option<FoundMarker>;

    fn all(search: &Search, next: Next, text: &[u8]) -> Vec<FoundMarker> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(hit) = next(search, text, from, text.len()) {
            from = hit.0 + 1;
            found.push(hit);
        }
        found
    }

    fn all_by_brute_force(text: &[u8]) -> Vec<FoundMarker> {
        (0..text.len())
            .filter_map(|at| {
                let (marker, kind) = MARKERS.iter().find(|(marker, _)| text[at..].starts_with(marker))?;
                Some((at, *marker, *kind))
            })
            .collect()
    }

    proptest! {
        #[test]
        fn finds_what_brute_force_finds(text in prop::collection::vec(prop::sample::select(&b"abc\xe1\xe2"[..]), 0..200)) {
            let search = Search::new(MARKERS.to_vec());
            let wanted = all_by_brute_force(&text);
            prop_assert_eq!(&all(&search, Search::next, &text), &wanted);
            prop_assert_eq!(&all(&search, Search::next_by_tables, &text), &wanted);
        }
    }

    #[test]
    fn an_marker_may_end_behind_the_limit_but_not_start_there() {
        let search = Search::new(MARKERS.to_vec());
        assert_eq!(search.next(b"xxabcab", 0, 3).map(|hit| hit.0), Some(2));
        assert_eq!(search.next(b"xxabcab", 0, 2), None);
        assert_eq!(search.next(b"xxabca", 0, 6), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_processor_with_simd_searches_for_all_markers_by_it() {
        // The algorithm takes a limited number of markers.
        let search = Search::new(super::super::marker::all());
        assert_eq!(
            search.by_simd.is_some(),
            std::is_x86_feature_detected!("avx2"),
            "{}",
            search.markers.len()
        );
    }

    #[test]
    fn a_forgotten_marker_is_passed_over() {
        let mut search = Search::new(MARKERS.to_vec());
        search.forget(Marker::Nemo1);
        assert_eq!(search.next(b"abcabc", 0, 6).map(|hit| hit.2), Some(Marker::Nemo2));
    }
}
