//! Locks, so that two processes never carry out the same round or upload the same results.

use super::{Journal, JournalError, Round};
use crate::data::make_private;
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A lock that this process holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Journal {
    /// Returns the id of the process that carries out a round, if one does.
    pub(crate) fn carried_out_by(&self, round: &Round) -> Option<String> {
        let path = self.lock_path(&round.lock_name());
        let file = File::open(&path).ok()?;
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| holder(&path))
    }

    /// Locks the newest round of a campaign for this process, and the start of another one.
    ///
    /// # Errors
    /// Another process holds the lock, or it can't be written.
    pub(crate) fn lock(&self, campaign: &str, cluster: &str) -> Result<Lock, JournalError> {
        self.lock_as(&format!("{campaign}@{cluster}"), campaign)
    }

    /// Locks a round for this process.
    ///
    /// # Errors
    /// Another process holds the lock, or it can't be written.
    pub(crate) fn lock_round(&self, round: &Round) -> Result<Lock, JournalError> {
        self.lock_as(&round.lock_name(), &round.campaign)
    }

    /// Locks the outbox for this process. Returns none if another process is uploading.
    pub(crate) fn lock_outbox(&self) -> Result<Option<Lock>, JournalError> {
        let path = self.folder.join("locks").join("outbox.lock");
        let file = self.open_lock(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(JournalError::File { path, error }),
        }
    }

    fn lock_as(&self, name: &str, campaign: &str) -> Result<Lock, JournalError> {
        let path = self.lock_path(name);
        let failed = |error| JournalError::File { path: path.clone(), error };
        let mut file = self.open_lock(&path)?;
        // A process that only asks whether the lock is held holds it for a moment.
        let mut tries = 5;
        while let Err(error) = file.try_lock() {
            tries -= 1;
            match error {
                TryLockError::WouldBlock if tries > 0 => std::thread::sleep(Duration::from_millis(20)),
                TryLockError::WouldBlock => {
                    let holder = holder(&path);
                    return Err(JournalError::Busy { campaign: campaign.to_string(), holder });
                }
                TryLockError::Error(error) => return Err(failed(error)),
            }
        }
        file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(Lock { _file: file })
    }

    fn lock_path(&self, name: &str) -> PathBuf {
        self.folder.join("locks").join(format!("{name}.lock"))
    }

    fn open_lock(&self, path: &Path) -> Result<File, JournalError> {
        make_private(&self.folder.join("locks"))
            .and_then(|()| File::options().create(true).truncate(false).read(true).write(true).open(path))
            .map_err(|error| JournalError::File { path: path.to_path_buf(), error })
    }
}

/// Returns the id of the process that holds a lock; it writes that into the file.
fn holder(path: &Path) -> String {
    std::fs::read_to_string(path).ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into())
}
