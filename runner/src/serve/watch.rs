//! Reads the store's changes once for all watchers, whichever program or server made them.

use super::problem::Problem;
use crate::store::{Change, Store, StoreError};
use axum::http::{StatusCode, header};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};
use trainplan_shared::api::EventKind;

/// How often to look for changes by other programs.
const EVERY: Duration = Duration::from_secs(1);

/// How many earlier changes to read again, because they may have been committed late.
pub(super) const OVERLAP: i64 = 500;

/// The number of changes that wait for a slow watcher before it must fetch the lists again.
const QUEUED: usize = 1024;

/// The most event streams of one caller, and of all.
const STREAMS_OF_ONE: usize = 32;
const STREAMS: usize = 512;

/// The watchers of the store.
pub(super) struct Watch {
    sender: broadcast::Sender<Change>,
    /// The number of open streams of each caller.
    open: Arc<Mutex<HashMap<String, usize>>>,
    /// Wakes the reader at once after a change by this server.
    changed: Notify,
    /// The newest sequence number that was read.
    newest: AtomicI64,
}

/// Returns the change that stands for changes that were missed.
pub(super) fn missed(seq: i64) -> Change {
    Change { seq, kind: EventKind::Again, id: String::new() }
}

impl Watch {
    pub(super) fn new() -> Watch {
        let (sender, _) = broadcast::channel(QUEUED);
        Watch { sender, open: Arc::default(), changed: Notify::new(), newest: AtomicI64::new(0) }
    }

    /// Has the changes read soon, after this server made one.
    pub(super) fn notify(&self) {
        self.changed.notify_one();
    }

    /// Returns the newest sequence number so far, and a receiver of all changes from now on.
    pub(super) fn subscribe(&self) -> (i64, broadcast::Receiver<Change>) {
        (self.newest.load(Ordering::Relaxed), self.sender.subscribe())
    }

    /// Counts a stream of a caller until the returned value is dropped.
    ///
    /// # Errors
    /// The caller has too many, or all callers have.
    pub(super) fn enter(&self, caller: &str) -> Result<StreamPlace, Problem> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.get(caller).is_some_and(|count| *count >= STREAMS_OF_ONE) {
            let detail = format!(
                "You have {STREAMS_OF_ONE} event streams, the most at a time. Close one, and try again."
            );
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with(header::RETRY_AFTER, 10));
        }
        if open.values().sum::<usize>() >= STREAMS {
            let detail =
                format!("The server has {STREAMS} event streams, the most at a time. Try again later.");
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(header::RETRY_AFTER, 10));
        }
        *open.entry(caller.to_owned()).or_default() += 1;
        Ok(StreamPlace { open: Arc::clone(&self.open), caller: caller.to_owned() })
    }

    /// Returns the number of watchers.
    pub(super) fn watchers(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Reads changes and passes them on, forever. `seen` is what [`Watch::begin`] returned.
    pub(super) async fn run(&self, store: &Store, mut seen: BTreeSet<i64>) {
        loop {
            if let Err(error) = self.read(store, &mut seen).await {
                tracing::warn!("the store's changes could not be read: {error}");
            }
            let _ = tokio::time::timeout(EVERY, self.changed.notified()).await;
        }
    }

    /// Returns the sequence numbers of changes before the server started, which are not passed on.
    pub(super) async fn begin(&self, store: &Store) -> Result<BTreeSet<i64>, StoreError> {
        let newest = store.newest_change().await?;
        let seen = store.changes(newest, OVERLAP).await?;
        self.newest.store(newest, Ordering::Relaxed);
        Ok(seen.iter().map(|change| change.seq).collect())
    }

    async fn read(&self, store: &Store, seen: &mut BTreeSet<i64>) -> Result<(), StoreError> {
        let newest = self.newest.load(Ordering::Relaxed);
        if store.newest_change().await? < newest {
            // The numbers were set back. What changed meanwhile can't be distinguished from earlier changes.
            *seen = self.begin(store).await?;
            // This fails only while nobody watches.
            let _ = self.sender.send(missed(self.newest.load(Ordering::Relaxed)));
            return Ok(());
        }
        for change in store.changes(newest, OVERLAP).await? {
            if seen.insert(change.seq) {
                // This fails only while nobody watches.
                let _ = self.sender.send(change);
            }
        }
        let newest = seen.last().copied().unwrap_or(newest).max(newest);
        self.newest.store(newest, Ordering::Relaxed);
        *seen = seen.split_off(&(newest - OVERLAP));
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
