//! Group commit for SQLite: transactions that are committed at about the same time reach the disk together.
//!
//! A commit appends its pages to the write-ahead log. With `synchronous = FULL`, SQLite then waits for the disk while it keeps
//! all others from writing. With `NORMAL`, it does not wait, and the program does so here: a commit counts once the write-ahead
//! log was synced after it. SQLite itself syncs that log before it copies pages into the database, so each transaction
//! is stored completely or not at all.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// What has reached the disk of an SQLite file.
#[derive(Debug)]
pub(super) struct GroupSync {
    /// The write-ahead log.
    log: PathBuf,
    /// The number of commits so far.
    committed: AtomicU64,
    /// The number of commits that are on the disk. It is held while others are brought there.
    synced: Mutex<u64>,
}

impl GroupSync {
    /// Returns that of the database in this file, which must exist.
    pub(super) fn new(database: &Path) -> io::Result<GroupSync> {
        // The log is beside the file itself, not beside a link to it.
        let mut log = database.canonicalize()?.into_os_string();
        log.push("-wal");
        Ok(GroupSync { log: log.into(), committed: AtomicU64::new(0), synced: Mutex::default() })
    }

    /// Returns once everything that was committed before the call is on the disk.
    pub(super) async fn wait(&self) -> io::Result<()> {
        let log = self.log.clone();
        self.wait_for(async {
            tokio::task::spawn_blocking(move || sync(&log)).await.map_err(io::Error::other)?
        })
        .await
    }

    /// Waits for `sync`, unless another commit's sync began after the call.
    async fn wait_for(&self, sync: impl Future<Output = io::Result<()>>) -> io::Result<()> {
        let own = self.committed.fetch_add(1, Ordering::SeqCst) + 1;
        let mut synced = self.synced.lock().await;
        if *synced < own {
            let all = self.committed.load(Ordering::SeqCst);
            sync.await?;
            *synced = all;
        }
        Ok(())
    }
}

/// Brings the content of a file to the disk. Nothing is left to do if SQLite has deleted it: its pages are in the database then.
fn sync(log: &Path) -> io::Result<()> {
    match File::open(log) {
        Ok(log) => log.sync_data(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::future::join_all;
    use std::cell::Cell;

    #[tokio::test]
    async fn commits_that_come_during_a_sync_share_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.sqlite");
        std::fs::write(&database, "").unwrap();
        let group = GroupSync::new(&database).unwrap();
        let syncs = Cell::new(0);
        let commit = |_| {
            group.wait_for(async {
                syncs.set(syncs.get() + 1);
                tokio::task::yield_now().await;
                Ok(())
            })
        };
        for result in join_all((0..10).map(commit)).await {
            result.unwrap();
        }
        // The first one began before the others were committed.
        assert_eq!(syncs.get(), 2);
        commit(10).await.unwrap();
        assert_eq!(syncs.get(), 3);
    }

    #[tokio::test]
    async fn a_sync_that_failed_counts_for_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.sqlite");
        std::fs::write(&database, "").unwrap();
        let group = GroupSync::new(&database).unwrap();
        let failing = async { Err(io::Error::other("the disk is broken")) };
        assert!(group.wait_for(failing).await.is_err());
        assert_eq!(*group.synced.lock().await, 0);
        // SQLite has no log yet.
        group.wait().await.unwrap();
        std::fs::write(folder.path().join("store.sqlite-wal"), "pages").unwrap();
        group.wait().await.unwrap();
        assert_eq!(*group.synced.lock().await, 3);
    }
}
