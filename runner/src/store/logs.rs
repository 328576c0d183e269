//! Raw logs of stored runs: read, checked against their hash, replaced and deleted.

use super::arriving::Arriving;
use super::blobs::{BlobError, Log, LogHash, hash};
use super::database::Typed;
use super::{Store, StoreError, now};
use futures_util::TryStreamExt;
use sqlx::{Any, Executor, Transaction};
use std::io;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;
use trainplan_shared::api::{EventKind, LogFault};
use uuid::Uuid;

/// The number of logs that [`Store::logs_to_check`] returns at once.
const PAGE: i64 = 500;

/// The condition of rows whose logs have a fault or were not checked since a time, `$1`; `$2` is the current time. A check in
/// the future, or at an unreadable time, does not count.
const IS_DUE: &str = "log_sha256 IS NOT NULL AND (log_fault IS NOT NULL OR log_checked_at IS NULL OR log_checked_at < $1 \
    OR log_checked_at > $2 OR log_checked_at NOT LIKE '____-__-__T__:__:__%')";

impl Store {
    /// Returns the hash of a result's raw log, if the store received that log. The log may have a fault.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the stored hash is invalid.
    pub(crate) async fn log(&self, id: Uuid) -> Result<Option<LogHash>, StoreError> {
        let sha256: Option<Typed<Option<LogHash>>> =
            sqlx::query_scalar("SELECT log_sha256 FROM runs WHERE id = $1")
                .bind(id.to_string())
                .fetch_optional(&self.database.readers)
                .await
                .map_err(|error| self.failed(error))?;
        match sha256 {
            None => Ok(None),
            Some(Typed(Some(sha256))) => Ok(sha256),
            Some(Typed(None)) => {
                Err(StoreError::Damaged { id, what: "the hash of its log is invalid in its row".into() })
            }
        }
    }

    /// Returns the hash of a result's raw log, like [`Store::log`], after comparing it with the log that the result names.
    /// Reads the result's file.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the stored hash is invalid, or is that of another log.
    pub(crate) async fn own_log(&self, id: Uuid) -> Result<Option<LogHash>, StoreError> {
        let Some(log) = self.log(id).await? else { return Ok(None) };
        match self.named_log(id).await {
            Ok(Some(named)) if named != log.as_str() => Err(of_other_log(id)),
            Ok(_) => Ok(Some(log)),
            // The log may still be the run's own, and is itself compared with its hash.
            Err(StoreError::Damaged { .. }) => match self.undisputed_log(id).await? {
                None => Err(of_other_log(id)),
                log => Ok(log),
            },
            Err(error) => Err(error),
        }
    }

    /// Returns the hash of a result's raw log, like [`Store::log`]; none if it is invalid, or if the result's file shows that
    /// the log belongs to another run, even though that file is damaged itself. Records nothing.
    pub(super) async fn undisputed_log(&self, id: Uuid) -> Result<Option<LogHash>, StoreError> {
        let log = match self.log(id).await {
            Err(StoreError::Damaged { .. }) => None,
            log => log?,
        };
        let Some(log) = log else { return Ok(None) };
        let claims = self.claims(&self.database.readers, id).await?;
        Ok((!claims.is_some_and(|claims| claims.disown(id, &log))).then_some(log))
    }

    /// Returns the path or address of a result's raw log, if the store has it.
    pub(crate) async fn log_name(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        Ok(self.log(id).await?.map(|sha256| self.blobs.name_of(&sha256)))
    }

    /// Returns a raw log. Its reader fails if the content is not what was uploaded.
    ///
    /// # Errors
    /// The log is missing, or can't be reached.
    pub(crate) async fn read_log(&self, sha256: &LogHash) -> Result<Log, StoreError> {
        match self.blobs.read(sha256).await? {
            Some(log) => Ok(log),
            None => Err(self.bad_log(sha256, LogFault::Missing).await),
        }
    }

    /// Returns a raw log, like [`Store::read_log`], after comparing it with its hash: who reads only a part of a log
    /// does not notice a fault. It is read whole for that, unless this program did so before and the stored log did not
    /// change since then.
    ///
    /// # Errors
    /// The log is missing or damaged, or can't be reached.
    pub(crate) async fn sound_log(&self, sha256: &LogHash) -> Result<Log, StoreError> {
        let log = self.read_log(sha256).await?;
        if self.blobs.is_checked(&log) && self.known_fault(sha256).await?.is_none() {
            return Ok(log);
        }
        drop(log);
        self.check_log(sha256).await?;
        self.read_log(sha256).await
    }

    /// Returns the uploaded pieces of a run's log.
    pub(crate) async fn arriving(&self, id: Uuid) -> Result<Arriving, StoreError> {
        Ok(Arriving::open(self.blobs.clone(), id).await?)
    }

    /// Joins the uploaded pieces into the log of a stored run, if their hash matches. The pieces stay until
    /// they are cleared, so that an interrupted call can be repeated.
    pub(crate) async fn finish_log(
        &self,
        id: Uuid,
        arriving: &Arriving,
        sha256: &LogHash,
    ) -> Result<(), StoreError> {
        let mut writing = loop {
            arriving.finish(sha256).await?;
            if let Some(writing) = self.write_with_log(sha256).await? {
                break writing;
            }
        };
        self.heal(&mut writing, sha256).await?;
        let update = sqlx::query("UPDATE runs SET log_sha256 = $2, log_fault = NULL WHERE id = $1");
        let update = update.bind(id.to_string()).bind(sha256.as_str()).execute(&mut *writing).await;
        if update.map_err(|error| self.failed(error))?.rows_affected() == 0 {
            self.commit(writing).await?;
            self.drop_log(sha256).await?;
            return self.refuse_deleted(id).await;
        }
        self.change(&mut writing, EventKind::Run, &id.to_string()).await?;
        self.commit(writing).await
    }

    /// Deletes a log unless a run refers to it. If a program is killed before it gets here, [`Store::sweep`]
    /// does so later.
    pub(super) async fn drop_log(&self, sha256: &LogHash) -> Result<(), StoreError> {
        let mut writing = self.database.write_exclusive(sha256.as_str()).await?;
        if self.runs_with(sha256, &mut *writing).await? == 0 {
            self.blobs.remove(sha256).await?;
        }
        self.commit(writing).await
    }

    /// Returns the number of runs that refer to a log.
    async fn runs_with(
        &self,
        sha256: &LogHash,
        reader: impl Executor<'_, Database = Any>,
    ) -> Result<i64, StoreError> {
        let count =
            sqlx::query_scalar("SELECT count(*) FROM runs WHERE log_sha256 = $1").bind(sha256.as_str());
        count.fetch_one(reader).await.map_err(|error| self.failed(error))
    }

    /// Begins a transaction that makes a run refer to this log; the log can't be deleted until it ends.
    /// Returns none if the store does not have the log, because no run may refer to a missing one.
    pub(super) async fn write_with_log(
        &self,
        sha256: &LogHash,
    ) -> Result<Option<Transaction<'static, Any>>, StoreError> {
        let writing = self.database.write_exclusive(sha256.as_str()).await?;
        Ok(self.blobs.has(sha256).await?.then_some(writing))
    }

    /// Deletes the logs that no run refers to, such as those of runs whose deletion was interrupted. First makes rows of runs again
    /// that are lost, and gives runs their logs again whose rows lost them.
    pub(crate) async fn sweep(&self) -> Result<(), StoreError> {
        let mut is_restored = false;
        let mut logs = self.blobs.settled();
        while let Some(sha256) = logs.try_next().await? {
            if !is_restored && self.runs_with(&sha256, &self.database.readers).await? == 0 {
                self.restore_runs().await?;
                self.restore_logs().await?;
                is_restored = true;
            }
            self.drop_log(&sha256).await?;
        }
        Ok(())
    }

    /// Restores the logs of runs whose rows name none but whose results do, if the store has these logs.
    async fn restore_logs(&self) -> Result<(), StoreError> {
        let mut after = String::new();
        loop {
            let select = "SELECT id FROM runs WHERE log_sha256 IS NULL AND id > $1 ORDER BY id LIMIT $2";
            let select = sqlx::query_scalar(select).bind(after.as_str()).bind(PAGE);
            let ids: Result<Vec<Typed<String>>, _> = select.fetch_all(&self.database.readers).await;
            let ids = ids.map_err(|error| self.failed(error))?.into_iter();
            // Ids of the wrong type come last.
            let ids: Vec<String> = ids.filter_map(|Typed(id)| id).collect();
            let Some(last) = ids.last() else { return Ok(()) };
            for id in ids.iter().filter_map(|id| id.parse::<Uuid>().ok()) {
                let named = match self.named_log(id).await {
                    // A damaged result names no log.
                    Err(StoreError::Damaged { .. }) => None,
                    named => named?,
                };
                if let Some(named) = named
                    && self.restore_log(id, &named).await?
                {
                    tracing::warn!("the row of run {id} named no log, and names {named} again");
                }
            }
            after = last.clone();
        }
    }

    /// Gives a run the log that its result names, if the run's row names none and the store has that log. Returns whether it did.
    pub(super) async fn restore_log(&self, id: Uuid, named: &str) -> Result<bool, StoreError> {
        // Without a valid hash there can be no log.
        let Ok(sha256) = LogHash::parse(named) else { return Ok(false) };
        // Most runs without a log never had one. No transaction is begun for those.
        if !self.blobs.has(&sha256).await? {
            return Ok(false);
        }
        let Some(mut writing) = self.write_with_log(&sha256).await? else { return Ok(false) };
        let update = "UPDATE runs SET log_sha256 = $2, log_fault = NULL WHERE id = $1 AND log_sha256 IS NULL";
        let update = sqlx::query(update).bind(id.to_string()).bind(sha256.as_str());
        let updated = update.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        let is_restored = updated.rows_affected() > 0;
        if is_restored {
            self.change(&mut writing, EventKind::Run, &id.to_string()).await?;
        }
        self.commit(writing).await?;
        Ok(is_restored)
    }

    /// Returns whether the store has a run's log, as far as is known: the log was received and is not missing,
    /// and no check found it damaged.
    pub(crate) async fn has_log(&self, id: Uuid) -> Result<bool, StoreError> {
        match self.log(id).await {
            Ok(Some(sha256)) => Ok(self.fault(&sha256).await?.is_none()),
            Ok(None) | Err(StoreError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the same of the log with this hash, which the run's result names.
    pub(crate) async fn has_this_log(&self, id: Uuid, named: &str) -> Result<bool, StoreError> {
        match self.log(id).await {
            Ok(Some(sha256)) if sha256.as_str() != named => Ok(false),
            Ok(_) => self.has_log(id).await,
            Err(StoreError::Damaged { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns what is known to be wrong with a log, without reading it.
    pub(super) async fn fault(&self, sha256: &LogHash) -> Result<Option<LogFault>, StoreError> {
        let named = self.named_fault(sha256).await?;
        let known = named.flatten();
        if known.is_some() || self.blobs.has(sha256).await? {
            return Ok(known);
        }
        // Most logs that are missing are yet to come: no run names them.
        if named.is_some() {
            self.record(sha256, Some(LogFault::Missing)).await?;
        }
        Ok(Some(LogFault::Missing))
    }

    /// Reads a log whole, compares it with its hash and records the outcome. If the connection to a bucket breaks off, nothing is
    /// recorded.
    ///
    /// # Errors
    /// [`StoreError::BadLog`] if the log is missing or damaged; others if the store can't be reached.
    pub(crate) async fn check_log(&self, sha256: &LogHash) -> Result<(), StoreError> {
        let fault = match self.blobs.read(sha256).await? {
            None => Some(LogFault::Missing),
            Some(log) => {
                let mark = log.mark.clone();
                let read = log.read(|raw| io::copy(raw, &mut io::sink())).await;
                match read.map_err(io::Error::downcast::<object_store::Error>) {
                    Ok(_) => {
                        if let Some(mark) = mark {
                            self.blobs.remember(sha256, mark);
                        }
                        None
                    }
                    // The log may be sound.
                    Err(Ok(error)) => return Err(self.blobs.failed(error).into()),
                    Err(Err(_)) => Some(LogFault::Damaged),
                }
            }
        };
        self.judge_log(sha256, fault).await
    }

    /// Returns whether the store has a log with the right content. Reads it whole.
    pub(crate) async fn is_sound(&self, sha256: &LogHash) -> Result<bool, StoreError> {
        match self.check_log(sha256).await {
            Ok(()) => Ok(true),
            Err(StoreError::BadLog { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks a log, and records the time of the check if the log is sound.
    ///
    /// # Errors
    /// Those of [`Store::check_log`].
    pub(crate) async fn verify_log(&self, sha256: &LogHash) -> Result<(), StoreError> {
        self.check_log(sha256).await?;
        let mut writing = self.database.write().await?;
        let update = sqlx::query("UPDATE runs SET log_checked_at = $2 WHERE log_sha256 = $1");
        let update = update.bind(sha256.as_str()).bind(now()).execute(&mut *writing).await;
        update.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Returns the error for a log whose reader failed, after checking the log.
    pub(crate) async fn log_error(&self, sha256: &LogHash, error: io::Error) -> StoreError {
        match self.check_log(sha256).await {
            Err(error) => error,
            Ok(()) => BlobError::Read { path: PathBuf::from(self.blobs.name_of(sha256)), error }.into(),
        }
    }

    /// Returns the next logs that have a fault or were not checked since a time, in the order of their hashes.
    pub(crate) async fn logs_to_check(
        &self,
        after: Option<&LogHash>,
        since: &str,
    ) -> Result<Vec<LogHash>, StoreError> {
        let select = format!(
            "SELECT DISTINCT log_sha256 FROM runs WHERE {IS_DUE} AND log_sha256 > $3 ORDER BY log_sha256 LIMIT $4"
        );
        let found: Vec<Typed<LogHash>> = sqlx::query_scalar(&select)
            .bind(since)
            .bind(now())
            .bind(after.map_or("", LogHash::as_str))
            .bind(PAGE)
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        // An invalid hash is a fault of its run's row.
        Ok(found.into_iter().filter_map(|Typed(sha256)| sha256).collect())
    }

    /// Returns the number of logs that were found sound since a time.
    pub(crate) async fn logs_found_sound(&self, since: &str) -> Result<i64, StoreError> {
        let select = format!(
            "SELECT (SELECT count(DISTINCT log_sha256) FROM runs) \
             - (SELECT count(DISTINCT log_sha256) FROM runs WHERE {IS_DUE})"
        );
        sqlx::query_scalar(&select)
            .bind(since)
            .bind(now())
            .fetch_one(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Returns the runs of a log, oldest first.
    pub(crate) async fn runs_of_log(&self, sha256: &LogHash) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar("SELECT id FROM runs WHERE log_sha256 = $1 ORDER BY received_at, id")
            .bind(sha256.as_str())
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Returns the number of logs with each fault.
    pub(crate) async fn bad_logs(&self) -> Result<Vec<(LogFault, i64)>, StoreError> {
        self.count_faults("log_fault", "DISTINCT log_sha256").await
    }

    /// Writes a log to a file, compressed with zstd, after comparing it with its hash.
    ///
    /// # Errors
    /// [`StoreError::BadLog`] if the log is missing or damaged, and [`BlobError::Read`] with an error of the
    /// file's disk; the file then has no meaning. Others if the store can't be reached.
    pub(crate) async fn copy_log(&self, sha256: &LogHash, file: &Path) -> Result<(), StoreError> {
        let mut pieces = self.read_log(sha256).await?.pieces;
        let unwritten = |error| BlobError::Read { path: file.to_path_buf(), error };
        let mut copy = tokio::fs::File::create(file).await.map_err(unwritten)?;
        loop {
            match pieces.try_next().await {
                Ok(Some(piece)) => copy.write_all(&piece).await.map_err(unwritten)?,
                Ok(None) => break,
                Err(error) => return Err(self.log_error(sha256, error).await),
            }
        }
        copy.sync_all().await.map_err(unwritten)?;
        let path = file.to_path_buf();
        let is = tokio::task::spawn_blocking(move || hash(&path)).await.map_err(io::Error::other);
        let is_sound = is.and_then(|is| is).is_ok_and(|is| is == sha256.as_str());
        self.judge_log(sha256, (!is_sound).then_some(LogFault::Damaged)).await
    }

    /// Records what a check found; returns a fault as an error.
    async fn judge_log(&self, sha256: &LogHash, fault: Option<LogFault>) -> Result<(), StoreError> {
        if let Some(fault) = fault {
            return Err(self.bad_log(sha256, fault).await);
        }
        match self.known_fault(sha256).await? {
            Some(_) => self.record(sha256, None).await,
            None => Ok(()),
        }
    }

    /// Records a fault and returns it as an error.
    async fn bad_log(&self, sha256: &LogHash, fault: LogFault) -> StoreError {
        match self.record(sha256, Some(fault)).await {
            Ok(()) => StoreError::BadLog { sha256: sha256.as_str().to_owned(), fault },
            Err(error) => error,
        }
    }

    async fn known_fault(&self, sha256: &LogHash) -> Result<Option<LogFault>, StoreError> {
        Ok(self.named_fault(sha256).await?.flatten())
    }

    /// Returns what is known to be wrong with a log that runs name; none if no run does.
    async fn named_fault(&self, sha256: &LogHash) -> Result<Option<Option<LogFault>>, StoreError> {
        let select = "SELECT log_fault FROM runs WHERE log_sha256 = $1 ORDER BY log_fault IS NULL LIMIT 1";
        let fault: Result<Option<Typed<Option<String>>>, _> =
            sqlx::query_scalar(select).bind(sha256.as_str()).fetch_optional(&self.database.readers).await;
        let fault = fault.map_err(|error| self.failed(error))?;
        Ok(fault.map(|Typed(fault)| fault.flatten().as_deref().and_then(LogFault::from_id)))
    }

    async fn record(&self, sha256: &LogHash, fault: Option<LogFault>) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        self.set_fault(&mut writing, sha256, fault).await?;
        self.commit(writing).await
    }

    /// Records that a log was replaced by a sound one.
    pub(super) async fn heal(
        &self,
        writing: &mut Transaction<'static, Any>,
        sha256: &LogHash,
    ) -> Result<(), StoreError> {
        self.set_fault(writing, sha256, None).await
    }

    async fn set_fault(
        &self,
        writing: &mut Transaction<'static, Any>,
        sha256: &LogHash,
        fault: Option<LogFault>,
    ) -> Result<(), StoreError> {
        let failed = |error| self.failed(error);
        let fault = fault.map_or("", LogFault::id);
        let update = "UPDATE runs SET log_fault = nullif($2, '') \
            WHERE log_sha256 = $1 AND coalesce(log_fault, '') <> $2 RETURNING id";
        let changed: Result<Vec<String>, _> =
            sqlx::query_scalar(update).bind(sha256.as_str()).bind(fault).fetch_all(&mut **writing).await;
        for id in changed.map_err(failed)? {
            self.change(writing, EventKind::Run, &id).await?;
        }
        Ok(())
    }
}

/// Returns the error for a run whose row has the hash of another log than its result.
pub(super) fn of_other_log(id: Uuid) -> StoreError {
    StoreError::Damaged { id, what: "its row has the hash of another run's log".into() }
}
