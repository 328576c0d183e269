//! One reader of the store's changes for all who watch, whichever program or server made them.

use crate::store::{Change, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};

/// How often to look for what other programs did.
const EVERY: Duration = Duration::from_secs(1);

/// How far back to look for what was written late.
const OVERLAP: i64 = 500;

/// Who does not read so many in time is told to ask for the lists anew.
const KEPT: usize = 1024;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Happening {
    pub(super) seq: i64,
    pub(super) kind: String,
    pub(super) id: String,
}

impl From<&Change> for Happening {
    fn from(change: &Change) -> Happening {
        Happening { seq: change.seq, kind: change.kind.clone(), id: change.id.clone() }
    }
}

impl Happening {
    /// That some were missed.
    pub(super) fn again(seq: i64) -> Happening {
        Happening { seq, kind: "again".into(), id: String::new() }
    }
}

/// All who watch.
pub(super) struct Watch {
    sender: broadcast::Sender<Happening>,
    /// That this server itself did something: no need to wait.
    stirred: Notify,
    newest: AtomicI64,
}

impl Watch {
    pub(super) fn new() -> Watch {
        let (sender, _) = broadcast::channel(KEPT);
        Watch { sender, stirred: Notify::new(), newest: AtomicI64::new(0) }
    }

    /// Says that something happened here.
    pub(super) fn stir(&self) {
        self.stirred.notify_one();
    }

    /// Listens from now on; also the newest event's place until now.
    pub(super) fn listen(&self) -> (i64, broadcast::Receiver<Happening>) {
        (self.newest.load(Ordering::Relaxed), self.sender.subscribe())
    }

    /// How many watch.
    pub(super) fn listeners(&self) -> usize {
        self.sender.receiver_count()
    }

    /// Reads changes for ever, after what [`Watch::begin`] found.
    pub(super) async fn read(&self, store: &Store, mut told: BTreeSet<i64>) {
        loop {
            if let Err(error) = self.look(store, &mut told).await {
                tracing::warn!("what happens can't be watched: {error}");
            }
            // A stir may come between two looks; one look sees all that was before it.
            let _ = tokio::time::timeout(EVERY, self.stirred.notified()).await;
        }
    }

    /// What was there before anyone could watch, and is nobody's news.
    pub(super) async fn begin(&self, store: &Store) -> Result<BTreeSet<i64>, StoreError> {
        let newest = store.newest_change().await?;
        let seen = store.changes(newest, OVERLAP).await?;
        self.newest.store(newest, Ordering::Relaxed);
        Ok(seen.iter().map(|change| change.seq).collect())
    }

    async fn look(&self, store: &Store, told: &mut BTreeSet<i64>) -> Result<(), StoreError> {
        let newest = self.newest.load(Ordering::Relaxed);
        for change in store.changes(newest, OVERLAP).await? {
            if told.insert(change.seq) {
                // Nobody may be listening.
                let _ = self.sender.send(Happening::from(&change));
            }
        }
        let newest = told.last().copied().unwrap_or(newest).max(newest);
        self.newest.store(newest, Ordering::Relaxed);
        *told = told.split_off(&(newest - OVERLAP));
        Ok(())
    }
}
