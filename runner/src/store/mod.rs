//! The store of results: a database, and the raw logs beside it.
//!
//! On one machine that is an SQLite file and a folder; several servers share a PostgreSQL database and a
//! bucket. A result is stored completely or not at all, and never changes; later scores of its log are stored
//! beside it. Lists read summaries only, never the compressed results.

mod access;
mod alerts;
mod arriving;
mod blobs;
mod changes;
mod columns;
mod database;
mod deletion;
mod error;
mod files;
mod invalid_text;
mod listing;
mod logs;
mod packed;
mod progress;
mod query;
mod recent;
mod retention;
mod scores;
mod selection;
mod summary;
#[cfg(test)]
mod tests;
mod verification;

pub(crate) use access::{Access, LOGIN, Revocation, secret};
pub(crate) use alerts::Delivery;
pub(crate) use arriving::Arriving;
pub(crate) use blobs::{BlobError, LogHash, WINDOW_LOG, hex};
pub(crate) use changes::Change;
pub(crate) use database::FEWEST_CONNECTIONS;
pub(crate) use error::{KeptResult, StoreError};
pub(crate) use files::{FileSize, ResultFile};
pub(crate) use query::{Cursor, InvalidCursor, Query, Sort, time};
pub(crate) use recent::{RecentRun, RecentRuns};
pub(crate) use retention::Retention;
pub(crate) use scores::read_again;
pub(crate) use verification::{ResultFault, valid_id};

use crate::data::DataDir;
use crate::migrations::Engine;
use alerts::Acknowledged;
use blobs::Blobs;
use columns::{ListedRow, RunRow, SUMMARY_VERSION};
use database::Database;
use files::stored_time;
use jiff::Timestamp;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::{Any, Transaction};
use std::io;
use std::path::Path;
use summary::summary;
use trainplan_shared::api::{EventKind, RunSummary, UploadOutcome};
use trainplan_shared::result::{self, FileError, InvalidResult, RunResult};
use uuid::Uuid;

/// The bytes of paths and scenarios, the long texts of a list, after which a page ends: as JSON.
const PAGE_BYTES: usize = 4 << 20;

/// The compression level of zstd. Higher levels save little and take much longer.
const LEVEL: i32 = 3;

/// The place of a store: the data directory, except for parts that are elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct StorePlace {
    /// The address of a PostgreSQL database.
    pub(crate) database_url: Option<String>,
    /// A bucket, or another folder, for raw logs.
    pub(crate) blobs: Option<String>,
}

/// A store of results.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    database: Database,
    blobs: Blobs,
}

impl Store {
    /// Opens the store of a data directory. Creates it, or brings it up to date, if needed.
    pub(crate) async fn open(dir: &DataDir) -> Result<Store, StoreError> {
        Self::open_at(dir, &StorePlace::default()).await
    }

    /// Opens a store that may be partly elsewhere.
    pub(crate) async fn open_at(dir: &DataDir, place: &StorePlace) -> Result<Store, StoreError> {
        let blobs = match &place.blobs {
            None => Blobs::folder(&dir.path().join("blobs"))?,
            Some(url) if url.starts_with("s3://") => Blobs::bucket(url)?,
            Some(path) => Blobs::folder(Path::new(path))?,
        };
        let database = match &place.database_url {
            None => Database::file(&dir.path().join("store.sqlite")).await?,
            Some(url) => Database::server(url).await?,
        };
        let store = Store { database, blobs };
        if let Err(error) = store.summarise().await {
            if !store.is_damage(&error) {
                return Err(error);
            }
            tracing::warn!("{error} `trainplan verify-store` says what to do.");
        }
        Ok(store)
    }

    /// Opens all connections to PostgreSQL that a server needs, and keeps them, so that it can serve while others use up the
    /// rest. Their number depends on what PostgreSQL allows, unless it is given.
    pub(crate) async fn open_all_connections(&mut self, count: Option<u32>) -> Result<(), StoreError> {
        self.database.open_all(count).await
    }

    /// Returns a store of the same logs whose runs, results and scores are copied from this SQLite file into a new one. That
    /// needs no index of this one.
    pub(crate) async fn copied_to(&self, path: &Path) -> Result<Store, StoreError> {
        Ok(Store { database: self.database.copied_to(path).await?, blobs: self.blobs.clone() })
    }

    /// Returns the store's name for messages: its file, or its address without a password.
    pub(crate) fn name(&self) -> &str {
        &self.database.name
    }

    /// Checks that the database answers.
    pub(crate) async fn is_well(&self) -> Result<(), StoreError> {
        let asked = sqlx::query_scalar("SELECT 1").fetch_one(&self.database.readers).await;
        let _: i32 = asked.map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Stores the result of a run that this program launched, with its raw log from a file compressed with
    /// zstd. Storing the same result again has no effect, except that its log may be added.
    ///
    /// # Errors
    /// Another result has its id; the log is not the one that the result was made from; the disk or the database fails. The
    /// store stays unchanged then.
    pub(crate) async fn put(&self, run: &RunResult, log: Option<&Path>) -> Result<UploadOutcome, StoreError> {
        let log = log.map(|path| LogFile { path, most: u64::MAX });
        self.put_file(run, result::write(run)?.as_bytes(), log, Origin::Launched).await
    }

    /// Stores an exported result, with the exact bytes of its file and its raw log.
    ///
    /// # Errors
    /// Those of [`Store::put`].
    pub(crate) async fn put_imported(
        &self,
        run: &RunResult,
        file: &[u8],
        log: Option<LogFile<'_>>,
    ) -> Result<UploadOutcome, StoreError> {
        self.put_file(run, file, log, Origin::Imported).await
    }

    /// Returns whether exactly this result file is stored, and is sound there.
    pub(crate) async fn has_file(&self, id: Uuid, file: &[u8]) -> Result<bool, StoreError> {
        let select = sqlx::query_scalar("SELECT count(*) FROM runs WHERE id = $1 AND sha256 = $2");
        let select = select.bind(id.to_string()).bind(hex(&Sha256::digest(file)));
        let count: i64 =
            select.fetch_one(&self.database.readers).await.map_err(|error| self.failed(error))?;
        Ok(count > 0 && self.checked_upload(id).await?.is_some_and(|checked| checked.is_sound()))
    }

    async fn put_file(
        &self,
        run: &RunResult,
        file: &[u8],
        log: Option<LogFile<'_>>,
        origin: Origin<'_>,
    ) -> Result<UploadOutcome, StoreError> {
        let entry = self.prepare(run, file)?;
        self.settle_row(run.id, &entry.sha256).await?;
        let Some(LogFile { path, most }) = log else {
            return Ok(self.enter_without_log(run, entry, origin).await?.outcome());
        };
        let sha256 = LogHash::parse(&run.source.sha256)?;
        loop {
            if !self.is_sound(&sha256).await? {
                self.blobs.put(&sha256, path, most).await?;
            }
            if let Some(mut writing) = self.write_with_log(&sha256).await? {
                self.heal(&mut writing, &sha256).await?;
                return Ok(self.enter(writing, run, entry, Some(&sha256), origin).await?.outcome());
            }
        }
    }

    /// Stores an uploaded result and the token that uploaded it. If the store has its log, the result gets
    /// it. If it [completes](RunResult::completes) the stored result of its log, it becomes a later score of that. Also returns the
    /// bytes that the result and its row in the list now occupy; 0 if it was stored before.
    ///
    /// # Errors
    /// Those of [`Store::put`].
    pub(crate) async fn put_upload(
        &self,
        run: &RunResult,
        entry: PreparedResult,
        token: &str,
    ) -> Result<(UploadOutcome, u64), StoreError> {
        let origin = Origin::Uploaded(token);
        let size = (entry.packed.len() + self.json(&entry.summary)?.len()) as u64;
        self.settle_row(run.id, &entry.sha256).await?;
        let entered = self.enter_without_log(run, entry, origin).await?;
        Ok((entered.outcome(), if entered == Entered::Nothing { 0 } else { size }))
    }

    /// Stores a result that came without its log. It gets the log if the store has it, of another run.
    async fn enter_without_log(
        &self,
        run: &RunResult,
        entry: PreparedResult,
        origin: Origin<'_>,
    ) -> Result<Entered, StoreError> {
        // Without a valid hash there can be no log.
        if let Ok(sha256) = LogHash::parse(&run.source.sha256)
            && self.fault(&sha256).await?.is_none()
            && let Some(writing) = self.write_with_log(&sha256).await?
        {
            return self.enter(writing, run, entry, Some(&sha256), origin).await;
        }
        self.enter(self.database.write().await?, run, entry, None, origin).await
    }

    /// Returns a run's summary.
    pub(crate) async fn summary(&self, id: Uuid) -> Result<Option<RunSummary>, StoreError> {
        let mut select = RunRow::select();
        select.push(" AND id = ").bind(id.to_string());
        let row: Result<Option<RunRow>, _> = select.rows().fetch_optional(&self.database.readers).await;
        Ok(row.map_err(|error| self.failed(error))?.map(RunSummary::from))
    }

    /// Returns the ids that begin or end with these digits, at most two: more than one means that the digits are ambiguous.
    pub(crate) async fn named(&self, digits: &str) -> Result<Vec<Uuid>, StoreError> {
        self.ids_of("runs", digits).await
    }

    /// Returns the ids in a table that begin or end with these digits, at most two.
    async fn ids_of(&self, table: &str, digits: &str) -> Result<Vec<Uuid>, StoreError> {
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if !are_digits {
            return Ok(Vec::new());
        }
        let digits = digits.to_ascii_lowercase();
        let select = format!("SELECT id FROM {table} WHERE id LIKE $1 OR id LIKE $2 ORDER BY id LIMIT 2");
        let ids: Vec<String> = sqlx::query_scalar(&select)
            .bind(format!("{digits}%"))
            .bind(format!("%{digits}"))
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Sets impossible numbers of changes back. Deletes old changes and reports of progress, expired share links, what tokens
    /// uploaded on earlier days, and pieces of abandoned uploads.
    pub(crate) async fn tidy(&self) -> Result<(), StoreError> {
        self.renumber_changes().await?;
        self.forget_changes().await?;
        self.forget_progress().await?;
        self.forget_shares().await?;
        self.forget_uploaded().await?;
        Ok(Arriving::clear_abandoned(&self.blobs).await?)
    }

    /// Prepares a result for the transaction that stores it, which keeps a thread busy for a while.
    ///
    /// # Errors
    /// The result is not accepted.
    pub(crate) fn prepare(&self, run: &RunResult, file: &[u8]) -> Result<PreparedResult, StoreError> {
        result::admit(run)?;
        // Unknown fields were not read as text yet.
        if let Err(error) = std::str::from_utf8(file) {
            let at = error.valid_up_to() + 1;
            let what = format!("is not UTF-8: its byte {at} is invalid. Make the result again from the log");
            return Err(InvalidResult { field: "the file".into(), what }.into());
        }
        result::admit_file(run, file)?;
        let packed = pack(file).map_err(|error| self.failed(sqlx::Error::Io(error)))?;
        Ok(PreparedResult { sha256: hex(&Sha256::digest(file)), packed, summary: summary(run, now(), false) })
    }

    /// Stores a result in one transaction, unless it is stored.
    async fn enter(
        &self,
        mut writing: Transaction<'static, Any>,
        run: &RunResult,
        entry: PreparedResult,
        log: Option<&LogHash>,
        origin: Origin<'_>,
    ) -> Result<Entered, StoreError> {
        let PreparedResult { sha256, packed, summary } = entry;
        let row = RunRow::new(&summary, &sha256, log, origin.token());
        let failed = |error| self.failed(error);
        let insert = row.insert().query().execute(&mut *writing).await;
        if insert.map_err(failed)?.rows_affected() > 0 {
            // Deletions are looked at only now: the insertion waited for one that went on. A damaged file may be left whose row
            // was lost.
            let insert = "INSERT INTO results (id, file) \
                SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM deletions WHERE id = $1) \
                ON CONFLICT (id) DO UPDATE SET file = excluded.file";
            let insert = sqlx::query(insert).bind(&summary.id).bind(packed).execute(&mut *writing).await;
            if insert.map_err(failed)?.rows_affected() == 0 {
                self.check_deletion(&mut writing, run.id).await?;
                // It was restored meanwhile.
                return Err(StoreError::Locked { store: self.database.name.clone() });
            }
            if origin.is_judged() {
                let insert = "INSERT INTO unjudged (id) VALUES ($1) ON CONFLICT DO NOTHING";
                let insert = sqlx::query(insert).bind(&summary.id);
                insert.execute(&mut *writing).await.map_err(failed)?;
            }
            // The run is no longer unfinished.
            let delete = sqlx::query("DELETE FROM progress WHERE id = $1").bind(&summary.id);
            delete.execute(&mut *writing).await.map_err(failed)?;
            self.change(&mut writing, EventKind::Run, &summary.id).await?;
            self.commit(writing).await?;
            return Ok(Entered::New);
        }
        let known = self.locked_row(&mut writing, run.id).await?;
        let Some(known) = known else {
            // It was deleted meanwhile, and may have been restored.
            self.check_deletion(&mut writing, run.id).await?;
            return Err(StoreError::Locked { store: self.database.name.clone() });
        };
        let is_same = known.sha256 == sha256;
        let relation = if is_same { Relation::Contained } else { self.relation(run).await? };
        let is_replaced = relation == Relation::Replacement;
        if is_same || is_replaced {
            self.restore_file(&mut writing, &summary.id, &sha256, packed).await?;
        }
        // The log below takes the place of another one.
        let has_other_log =
            known.log_sha256.as_ref().is_some_and(|known| known.as_str() != run.source.sha256);
        if is_replaced || has_other_log || !known.damaged.is_empty() {
            // Lists show what the newest result says.
            let score = self.sound_score(run.id).await?;
            let kept = if is_same || is_replaced { None } else { self.sound_upload(run.id).await? };
            let newest = score.as_ref().or(kept.as_ref()).unwrap_or(run);
            self.mend_row(&mut writing, &known, newest).await?;
            if is_replaced && score.is_none() && origin.is_judged() {
                self.judge_again(&mut writing, &summary.id, Acknowledged::Kept).await?;
            }
        }
        if let Relation::Completion { scored_at, cluster } = &relation {
            let mut score = run.clone();
            score.source.cluster = score.source.cluster.or_else(|| cluster.clone());
            // The clock may have been set back since the last score.
            score.provenance.scored_at = Some(stored_time(scored_at.as_deref()).max(now()));
            let packed = self.pack_score(&score)?;
            self.add_score(&mut writing, &known, &score, packed).await?;
            if origin.is_judged() {
                self.judge_again(&mut writing, &summary.id, Acknowledged::Deleted).await?;
            }
        }
        let update = sqlx::query("UPDATE runs SET log_sha256 = $2 WHERE id = $1 AND log_sha256 IS NULL");
        let update = update.bind(&summary.id).bind(log).execute(&mut *writing).await;
        update.map_err(failed)?;
        self.commit(writing).await?;
        Ok(if relation == Relation::Contained { Entered::Nothing } else { Entered::Change })
    }

    /// Returns what a result is to the stored one with its id. Records nothing, because it is asked within a transaction that
    /// writes.
    ///
    /// # Errors
    /// The stored one is sound and states something else, or is damaged and has another log.
    async fn relation(&self, run: &RunResult) -> Result<Relation, StoreError> {
        let Some(kept) = self.sound_upload(run.id).await? else {
            let log = self.undisputed_log(run.id).await?;
            let score = self.sound_score(run.id).await?;
            let is_other = |hash: &str| hash != run.source.sha256;
            if log.is_some_and(|log| is_other(log.as_str()))
                || score.is_some_and(|score| is_other(&score.source.sha256))
            {
                return Err(StoreError::Conflict { id: run.id, kept: KeptResult::Damaged });
            }
            return Ok(Relation::Replacement);
        };
        // The recipe may have been corrected since then.
        let score = self.sound_score(run.id).await?;
        let newest = score.as_ref().unwrap_or(&kept);
        if run.completes(newest) {
            return Ok(Relation::Completion {
                scored_at: newest.provenance.scored_at.clone(),
                cluster: newest.source.cluster.clone(),
            });
        }
        if kept.covers(run) || newest.covers(run) {
            return Ok(Relation::Contained);
        }
        Err(StoreError::Conflict { id: run.id, kept: KeptResult::sound(newest, run) })
    }

    /// Stores the file of a known run again, with its hash, unless both are there unchanged.
    async fn restore_file(
        &self,
        writing: &mut Transaction<'static, Any>,
        id: &str,
        sha256: &str,
        packed: Vec<u8>,
    ) -> Result<(), StoreError> {
        let restore = "INSERT INTO results (id, file) VALUES ($1, $2) \
            ON CONFLICT (id) DO UPDATE SET file = excluded.file WHERE results.file <> excluded.file";
        let restored = sqlx::query(restore).bind(id).bind(packed).execute(&mut **writing).await;
        let restored = restored.map_err(|error| self.failed(error))?.rows_affected();
        // The row may have another hash than the file that is there, or a fault that is gone.
        let update = "UPDATE runs SET sha256 = $2, result_fault = NULL \
            WHERE id = $1 AND (sha256 <> $2 OR result_fault IS NOT NULL)";
        let updated = sqlx::query(update).bind(id).bind(sha256).execute(&mut **writing).await;
        let updated = updated.map_err(|error| self.failed(error))?.rows_affected();
        if restored > 0 || updated > 0 {
            self.change(writing, EventKind::Run, id).await?;
        }
        Ok(())
    }

    /// Recomputes summaries of older programs, in small transactions: an interrupted program continues later.
    async fn summarise(&self) -> Result<(), StoreError> {
        loop {
            let mut select = RunRow::select();
            select.push(" AND summary_version < ").bind(SUMMARY_VERSION).push(" ORDER BY id LIMIT 200");
            let old: Result<Vec<RunRow>, _> = select.rows().fetch_all(&self.database.readers).await;
            let mut old = old.map_err(|error| self.failed(error))?;
            // A row whose id is damaged can't be updated.
            old.retain(|row| !row.id.is_empty());
            if old.is_empty() {
                return Ok(());
            }
            let mut writing = self.database.write().await?;
            for row in old {
                let id = &row.id;
                let run = match Uuid::parse_str(id) {
                    Ok(id) => self.newest(id).await.ok().flatten(),
                    Err(_) => None,
                };
                let updated = match run {
                    Some(run) => {
                        let computed = row.computed_again(&run);
                        computed.update(&row.damaged).query().execute(&mut *writing).await
                    }
                    None => {
                        tracing::warn!("the stored result {id} can't be read; its summary stays unchanged");
                        let update = sqlx::query("UPDATE runs SET summary_version = $2 WHERE id = $1");
                        update.bind(id).bind(SUMMARY_VERSION).execute(&mut *writing).await
                    }
                };
                updated.map_err(|error| self.failed(error))?;
            }
            // Other servers of this store may have lists and histories of the rows as they were.
            self.change(&mut writing, EventKind::Again, "").await?;
            self.commit(writing).await?;
        }
    }

    async fn commit(&self, writing: Transaction<'static, Any>) -> Result<(), StoreError> {
        self.database.commit(writing).await
    }

    /// Returns a value as JSON, for a column.
    fn json(&self, value: &impl Serialize) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|error| self.failed(sqlx::Error::Encode(error.into())))
    }

    /// Returns the row of a run, which no other transaction changes until this one ends.
    async fn locked_row(
        &self,
        writing: &mut Transaction<'static, Any>,
        id: Uuid,
    ) -> Result<Option<RunRow>, StoreError> {
        let mut select = RunRow::select();
        select.push(" AND id = ").bind(id.to_string());
        // SQLite has one writer at a time.
        if self.database.engine == Engine::Postgres {
            select.push(" FOR UPDATE");
        }
        let row = select.rows().fetch_optional(&mut **writing).await;
        row.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: sqlx::Error) -> StoreError {
        self.database.failed(error)
    }
}

/// A raw log in a file, compressed with zstd.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogFile<'a> {
    /// The file.
    pub(crate) path: &'a Path,
    /// The most bytes that it may have, compressed or not.
    pub(crate) most: u64,
}

/// How a result reached the store.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    /// It was imported from a file.
    Imported,
    /// This program launched the run.
    Launched,
    /// It was uploaded with this token.
    Uploaded(&'a str),
}

impl<'a> Origin<'a> {
    /// Returns whether the run is judged. Imported runs are old and cause no alerts.
    fn is_judged(self) -> bool {
        !matches!(self, Origin::Imported)
    }

    fn token(self) -> Option<&'a str> {
        match self {
            Origin::Uploaded(token) => Some(token),
            Origin::Imported | Origin::Launched => None,
        }
    }
}

/// What a result is to the stored one with its id.
#[derive(Debug, PartialEq, Eq)]
enum Relation {
    /// The stored one contains everything that it does.
    Contained,
    /// It adds to the newest score, or to the stored one, which was scored at this time and has this cluster.
    Completion { scored_at: Option<String>, cluster: Option<String> },
    /// The stored one is damaged, and it takes its place.
    Replacement,
}

/// What entering a result changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entered {
    /// The run is new.
    New,
    /// The run was stored, and has another score or another file.
    Change,
    /// No result changed.
    Nothing,
}

impl Entered {
    fn outcome(self) -> UploadOutcome {
        match self {
            Entered::New => UploadOutcome::New,
            Entered::Change | Entered::Nothing => UploadOutcome::Known,
        }
    }
}

/// A result that is ready to be stored.
pub(crate) struct PreparedResult {
    /// The SHA-256 of its file.
    sha256: String,
    /// Its file, compressed with zstd.
    packed: Vec<u8>,
    summary: RunSummary,
}

/// Compresses with zstd, in one frame with a checksum.
pub(crate) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    compressor.compress(bytes)
}

/// Decompresses and reads a result.
fn unpack(id: Uuid, file: &[u8]) -> Result<RunResult, StoreError> {
    let damaged = |what| StoreError::Damaged { id, what };
    let text = zstd::decode_all(file).map_err(|error: io::Error| damaged(error.to_string()))?;
    result::read(&text).map_err(|error| match error {
        // A newer program wrote it.
        FileError::Newer(_) => StoreError::Result(error),
        _ => damaged(error.to_string()),
    })
}

/// Returns the current time as the store writes it.
fn now() -> String {
    time(Timestamp::now())
}
