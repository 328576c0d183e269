//! Reads the store's changes once for all watchers, whichever program or server made them.

use super::problem::Problem;
use crate::store::{Change, Store, StoreError};
use axum::http::{StatusCode, header};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast};
use trainplan_shared::api::EventKind;

/// How often to look for changes by other programs.
const EVERY: Duration = Duration::from_secs(1);

/// The shortest time between two readings. Many changes are read together, because each reading also reads [`OVERLAP`] earlier
/// ones.
const PAUSE: Duration = Duration::from_millis(20);

/// How many earlier changes to read again, because they may have been committed late.
pub(super) const OVERLAP: i64 = 500;

/// How long a number without a change may belong to a transaction that PostgreSQL has not committed yet. The transaction may
/// also have failed.
const SETTLING: Duration = Duration::from_secs(10);

/// The number of changes that wait for a slow watcher before it must fetch the lists again.
const QUEUED: usize = 1024;

/// The most event streams of one caller, and of all.
const STREAMS_OF_ONE: usize = 32;
const STREAMS: usize = 512;

/// The watchers of the store.
pub(super) struct Watch {
    sender: broadcast::Sender<PassedOn>,
    /// The number of open streams of each caller.
    open: Arc<Mutex<HashMap<String, usize>>>,
    /// Wakes the reader at once after a change by this server.
    changed: Notify,
    /// The newest sequence number that was read.
    newest: AtomicI64,
    /// The number up to which every change was read.
    settled: AtomicI64,
}

/// A change for the watchers.
#[derive(Debug, Clone)]
pub(super) struct PassedOn {
    pub(super) change: Change,
    /// Every change up to this number was passed on, with this change or before it.
    pub(super) settled: i64,
}

/// The changes that were read, of the last numbers.
#[derive(Debug, Default)]
pub(super) struct ReadChanges {
    seen: BTreeSet<i64>,
    /// Numbers without a change that may still get one, and when that was noticed.
    missing: BTreeMap<i64, Instant>,
}

impl ReadChanges {
    /// Takes the numbers of a reading. `known` was the newest one before.
    fn take(&mut self, numbers: impl Iterator<Item = i64>, known: i64) {
        self.seen.extend(numbers);
        let newest = self.newest(known);
        let now = Instant::now();
        let first = newest.saturating_sub(OVERLAP);
        let begun = known.saturating_add(1).max(first);
        self.missing
            .extend((begun..newest).filter(|number| !self.seen.contains(number)).map(|number| (number, now)));
        self.missing.retain(|number, since| !self.seen.contains(number) && since.elapsed() < SETTLING);
        self.seen = self.seen.split_off(&first);
    }

    fn newest(&self, known: i64) -> i64 {
        self.seen.last().copied().unwrap_or(known).max(known)
    }

    /// Returns the number up to which every change was read.
    fn settled(&self, newest: i64) -> i64 {
        self.missing.first_key_value().map_or(newest, |(number, _)| number - 1)
    }
}

/// Returns the change that stands for changes that were missed.
pub(super) fn missed(seq: i64) -> Change {
    Change { seq, kind: EventKind::Again, id: String::new() }
}

impl Watch {
    pub(super) fn new() -> Watch {
        let (sender, _) = broadcast::channel(QUEUED);
        Watch {
            sender,
            open: Arc::default(),
            changed: Notify::new(),
            newest: AtomicI64::new(0),
            settled: AtomicI64::new(0),
        }
    }

    /// Has the changes read soon, after this server made one.
    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }

    /// Returns the newest sequence number so far, the one up to which every change was read, and a receiver of all changes from
    /// now on.
    pub(super) fn subscribe(&self) -> (i64, i64, broadcast::Receiver<PassedOn>) {
        (self.newest.load(Ordering::Relaxed), self.settled.load(Ordering::Relaxed), self.sender.subscribe())
    }

    /// Counts a stream of a caller until the returned value is dropped.
    ///
    /// # Errors
    /// The caller has too many, or all callers have.
    pub(super) fn enter(&self, caller: &str) -> Result<StreamPlace, Problem> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(caller).is_some_and(|count| *count >= STREAMS_OF_ONE) {
            let detail = format!(
                "You have {STREAMS_OF_ONE} event streams, which is the maximum. Close one, and try again."
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with(header::RETRY_AFTER, 10));
        }
        if open.values().sum::<usize>() >= STREAMS {
            let detail =
                format!("The server has {STREAMS} event streams, which is the maximum. Try again later.");
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(header::RETRY_AFTER, 10));
        }
        *open.entry(caller.to_owned()).or_default() += 1;
        Ok(StreamPlace { open: Arc::clone(&self.open), caller: caller.to_owned() })
    }

    /// Returns the number of watchers.
    pub(super) fn watchers(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Reads changes and passes them on, forever. `known` is what [`Watch::begin`] returned.
    pub(super) async fn run(&self, store: &Store, mut known: ReadChanges) {
        loop {
            let begun = tokio::time::Instant::now();
            if let Err(error) = self.read(store, &mut known).await {
                tracing::warn!("the store's changes could not be read: {error}");
            }
            let _ = tokio::time::timeout(EVERY, self.changed.notified()).await;
            tokio::time::sleep_until(begun + PAUSE).await;
        }
    }

    /// Returns the changes before the server started, which are not passed on.
    pub(super) async fn begin(&self, store: &Store) -> Result<ReadChanges, StoreError> {
        let newest = store.newest_change().await?;
        let seen = store.changes(newest, OVERLAP).await?;
        let mut known = ReadChanges::default();
        let before = seen.first().map_or(newest, |oldest| oldest.seq).min(newest);
        known.take(seen.iter().map(|change| change.seq), before);
        self.newest.store(newest, Ordering::Relaxed);
        self.settled.store(known.settled(newest), Ordering::Relaxed);
        Ok(known)
    }

    async fn read(&self, store: &Store, known: &mut ReadChanges) -> Result<(), StoreError> {
        let newest = self.newest.load(Ordering::Relaxed);
        if store.newest_change().await? < newest {
            // The numbers were set back. What changed meanwhile can't be distinguished from earlier changes.
            *known = self.begin(store).await?;
            let newest = self.newest.load(Ordering::Relaxed);
            // This fails only while nobody watches.
            let _ = self.sender.send(PassedOn { change: missed(newest), settled: newest });
            return Ok(());
        }
        let mut changes = store.changes(newest, OVERLAP).await?;
        changes.retain(|change| !known.seen.contains(&change.seq));
        known.take(changes.iter().map(|change| change.seq), newest);
        let newest = known.newest(newest);
        let settled = known.settled(newest);
        for change in changes {
            // This fails only while nobody watches.
            let _ = self.sender.send(PassedOn { change, settled });
        }
        self.newest.store(newest, Ordering::Relaxed);
        self.settled.store(settled, Ordering::Relaxed);
        Ok(())
    }
}

/// A place among the open event streams, which is free again when this is dropped.
pub(super) struct StreamPlace {
    open: Arc<Mutex<HashMap<String, usize>>>,
    caller: String,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&self.caller) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                open.remove(&self.caller);
            }
        }
    }
}
