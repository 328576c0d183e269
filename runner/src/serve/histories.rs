//! Keeps the newest histories as they were sent: reading one again costs little until a run is added, changes or is deleted.

use crate::store::ChangeMark;
use axum::body::Bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most bytes of all kept histories together.
const MOST: usize = 16 << 20;

/// The bytes that a kept history takes in addition to its texts, most of them for its mark.
const MARKED: usize = 16 << 10;

/// The kept histories, the most recently read last.
pub(super) struct Histories(Mutex<Vec<KeptHistory>>);

/// The answer to a query.
struct KeptHistory {
    query: String,
    /// The mark of the store before its runs were read.
    mark: ChangeMark,
    json: Bytes,
}

impl Histories {
    pub(super) fn new() -> Histories {
        Histories(Mutex::default())
    }

    /// Returns the answer to a query, unless runs changed between it and the mark of now.
    pub(super) fn get(&self, query: &str, now: &ChangeMark) -> Option<Bytes> {
        let mut kept = self.lock();
        let place = kept.iter().position(|history| history.query == query)?;
        let history = kept.remove(place);
        if !history.mark.holds_at(now) {
            return None;
        }
        let json = history.json.clone();
        kept.push(history);
        Some(json)
    }

    /// Keeps the answer to a query; `mark` is from before its runs were read. Drops those that were not read for the longest
    /// time, so that there is room for it.
    pub(super) fn keep(&self, query: String, mark: ChangeMark, json: Bytes) {
        let mut kept = self.lock();
        kept.retain(|history| history.query != query);
        let history = KeptHistory { query, mark, json };
        if history.bytes() > MOST {
            return;
        }
        kept.push(history);
        while kept.iter().map(KeptHistory::bytes).sum::<usize>() > MOST {
            kept.remove(0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<KeptHistory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptHistory {
    fn bytes(&self) -> usize {
        MARKED + self.query.len() + self.json.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_not_read_for_the_longest_time_are_dropped() {
        let (histories, mark) = (Histories::new(), ChangeMark::default());
        let third = Bytes::from(vec![0; MOST / 3]);
        let kept = |query: &str| histories.get(query, &mark).is_some();
        let keep = |query: &str, json: &Bytes| histories.keep(query.into(), mark.clone(), json.clone());
        keep("a", &third);
        keep("b", &third);
        assert!(kept("a"));
        keep("c", &third);
        assert_eq!(["a", "b", "c"].map(kept), [true, false, true]);
        // One that is too large alone is not kept.
        keep("d", &Bytes::from(vec![0; MOST]));
        assert_eq!(["a", "c", "d"].map(kept), [true, true, false]);
    }
}
