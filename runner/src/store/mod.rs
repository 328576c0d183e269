//! The store of results: what runs measured, in a database, and their raw logs beside it.
//!
//! On one machine that is an SQLite file and a folder; several servers share a PostgreSQL and a bucket. A result is
//! entered whole or not at all, and never changes; what a newer parser makes of its log stands beside it. Results are
//! compressed columns that lists do not touch: they read summaries alone.

mod access;
mod alerts;
mod arriving;
mod blobs;
mod changes;
mod columns;
mod database;
mod migrations;
mod progress;
mod query;
mod scores;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use access::{Access, secret};
pub(crate) use alerts::Delivery;
pub(crate) use arriving::Arriving;
pub(crate) use blobs::{BlobError, Log, LogHash, hex};
pub(crate) use changes::Change;
pub(crate) use query::{Cursor, InvalidCursor, Query, Sort};

use crate::data::DataDir;
use blobs::Blobs;
use columns::{RunRow, SUMMARY_VERSION};
use database::Database;
use futures_util::TryStreamExt;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::{Any, Transaction};
use std::io;
use std::path::Path;
use summary::summary;
use trainplan_shared::api::{EventKind, RunPage, RunSummary, UploadOutcome};
use trainplan_shared::result::{self, FileError, Report, RunResult, View};
use uuid::Uuid;

/// How hard zstd tries: more makes little smaller and takes much longer.
const LEVEL: i32 = 3;

/// Where a store is: in the data directory, unless somewhere else is named.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// A PostgreSQL, by its address.
    pub(crate) database_url: Option<String>,
    /// A bucket, or another folder, for the raw logs.
    pub(crate) blobs: Option<String>,
}

/// A store of results.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    database: Database,
    blobs: Blobs,
}

/// Why the store does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// A newer program made the database.
    #[error(
        "the store {store} is of version {version}, and this program works with version {newest}: use a newer trainplan, or \
         another store"
    )]
    Newer {
        /// The database.
        store: String,
        /// Its version.
        version: i64,
        /// The version that this program makes.
        newest: usize,
    },
    /// Another program does not stop writing.
    #[error("another program keeps the store {store} locked: end it, or try again")]
    Locked {
        /// The database.
        store: String,
    },
    /// The database is out of reach, for now.
    #[error("the store {store} does not answer: {error}; see whether it runs, and try again")]
    Gone {
        /// The database.
        store: String,
        /// What went wrong.
        error: sqlx::Error,
    },
    /// What was given is no address.
    #[error("{url} is no address of a database: {what}")]
    Address {
        /// What was given, without a password.
        url: String,
        /// What is wrong.
        what: String,
    },
    /// The database failed.
    #[error("the store {store} failed: {error}")]
    Database {
        /// The database.
        store: String,
        /// What it said.
        error: sqlx::Error,
    },
    /// Another result has the same id.
    #[error(
        "the store has {what} under the id {id}: results never change; what a log is a run of is said again on the run's page, or by \
         `trainplan reparse {id} --recipe ...` where the store is, and `trainplan results delete {id}` makes room for another result"
    )]
    Conflict {
        /// The id.
        id: Uuid,
        /// What it has there.
        what: String,
    },
    /// What a run is of was said by its campaign.
    #[error("the campaign {campaign} carried the run {id} out, and so said what it is a run of")]
    Carried {
        /// The id.
        id: Uuid,
        /// The campaign.
        campaign: String,
    },
    /// The raw log can't be kept or read.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The result can't be put into a file.
    #[error(transparent)]
    Result(#[from] FileError),
    /// The system gives no randomness, and so there are no secrets.
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(#[from] getrandom::Error),
    /// What the store holds was changed from outside.
    #[error("the store's result {id} can't be read: {what}; import its file again into a new --data-dir")]
    Damaged {
        /// The id.
        id: Uuid,
        /// What is wrong with it.
        what: String,
    },
}

impl Store {
    /// Opens the store of a data directory: makes it if there is none, and brings an older one up to date.
    pub(crate) async fn open(dir: &DataDir) -> Result<Store, StoreError> {
        Self::open_at(dir, &Place::default()).await
    }

    /// Opens a store that may be elsewhere.
    pub(crate) async fn open_at(dir: &DataDir, place: &Place) -> Result<Store, StoreError> {
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
        store.summarise().await?;
        Ok(store)
    }

    /// What to call it: its file, or its address without a password.
    pub(crate) fn name(&self) -> &str {
        &self.database.name
    }

    /// Whether database and logs can be reached.
    pub(crate) async fn is_well(&self) -> Result<(), StoreError> {
        let asked = sqlx::query_scalar("SELECT 1").fetch_one(&self.database.readers).await;
        let _: i32 = asked.map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Enters the result of a run that was carried out from here, and its raw log from a file that holds it compressed by
    /// zstd. The same result again is no second one; its log may come later than it.
    ///
    /// # Errors
    /// Another result has its id; the log is not the one that it was made from; the disk or the database fails. What was
    /// in the store stays as it is.
    pub(crate) async fn put(&self, run: &RunResult, log: Option<&Path>) -> Result<UploadOutcome, StoreError> {
        self.put_file(run, result::write(run)?.as_bytes(), log, Came::CarriedOut).await
    }

    /// Enters a result by its file, whose bytes stay as they are for ever, and its raw log: one that was kept elsewhere.
    ///
    /// # Errors
    /// As [`Store::put`]'s.
    pub(crate) async fn put_kept(
        &self,
        run: &RunResult,
        file: &[u8],
        log: Option<&Path>,
    ) -> Result<UploadOutcome, StoreError> {
        self.put_file(run, file, log, Came::Kept).await
    }

    async fn put_file(
        &self,
        run: &RunResult,
        file: &[u8],
        log: Option<&Path>,
        came: Came<'_>,
    ) -> Result<UploadOutcome, StoreError> {
        let entry = self.entry(run, file)?;
        let Some(log) = log else {
            return self.enter(self.database.write().await?, entry, None, came).await;
        };
        let sha256 = LogHash::parse(&run.source.sha256)?;
        loop {
            self.blobs.keep(&sha256, log).await?;
            if let Some(writing) = self.write_naming(&sha256).await? {
                return self.enter(writing, entry, Some(&sha256), came).await;
            }
        }
    }

    /// Enters a result as it came over the network, by whose token. If its log is here already, it has that one.
    ///
    /// # Errors
    /// As [`Store::put`]'s.
    pub(crate) async fn put_upload(
        &self,
        run: &RunResult,
        file: &[u8],
        token: &str,
    ) -> Result<UploadOutcome, StoreError> {
        let (entry, came) = (self.entry(run, file)?, Came::Uploaded(token));
        // What names no hash has no log.
        if let Ok(sha256) = LogHash::parse(&run.source.sha256)
            && let Some(writing) = self.write_naming(&sha256).await?
        {
            return self.enter(writing, entry, Some(&sha256), came).await;
        }
        self.enter(self.database.write().await?, entry, None, came).await
    }

    /// The runs of a query, as summaries.
    pub(crate) async fn list(&self, query: &Query) -> Result<RunPage, StoreError> {
        let mut runs = Vec::new();
        for mut select in query.selects() {
            if runs.len() <= query.limit() as usize {
                let rows: Result<Vec<RunRow>, _> = select.rows().fetch_all(&self.database.readers).await;
                runs.extend(rows.map_err(|error| self.failed(error))?.into_iter().map(RunSummary::from));
            }
        }
        Ok(query.page(runs))
    }

    /// A run's summary.
    pub(crate) async fn summary(&self, id: Uuid) -> Result<Option<RunSummary>, StoreError> {
        let mut select = RunRow::select();
        select.push(" AND id = ").bind(id.to_string());
        let row: Result<Option<RunRow>, _> = select.rows().fetch_optional(&self.database.readers).await;
        Ok(row.map_err(|error| self.failed(error))?.map(RunSummary::from))
    }

    /// The runs whose ids begin so; no more than two, which is one too many for a name.
    pub(crate) async fn named(&self, beginning: &str) -> Result<Vec<Uuid>, StoreError> {
        let is_beginning = beginning.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        if !is_beginning {
            return Ok(Vec::new());
        }
        let ids: Vec<String> = sqlx::query_scalar("SELECT id FROM runs WHERE id LIKE $1 ORDER BY id LIMIT 2")
            .bind(format!("{}%", beginning.to_ascii_lowercase()))
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// A result, by the newest parser that made one of its log.
    pub(crate) async fn get(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        self.newest_file(id).await?.map(|file| unpack(id, &file)).transpose()
    }

    /// A result's file as it came, compressed by zstd.
    pub(crate) async fn file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        sqlx::query_scalar("SELECT file FROM results WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// A result's file by the newest parser that made one of its log, compressed by zstd.
    pub(crate) async fn newest_file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        match self.newest_score(id).await? {
            Some(file) => Ok(Some(file)),
            None => self.file(id).await,
        }
    }

    /// Which raw log a result has, where that is here.
    pub(crate) async fn log(&self, id: Uuid) -> Result<Option<LogHash>, StoreError> {
        let sha256: Option<Option<String>> = sqlx::query_scalar("SELECT log_sha256 FROM runs WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(sha256.flatten().map(|sha256| LogHash::parse(&sha256)).transpose()?)
    }

    /// What to call a result's raw log, where that is here: the path of its file, or its address.
    pub(crate) async fn log_name(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        Ok(self.log(id).await?.map(|sha256| self.blobs.name_of(&sha256)))
    }

    /// A raw log.
    pub(crate) async fn read_log(&self, sha256: &LogHash) -> Result<Log, StoreError> {
        Ok(self.blobs.read(sha256).await?)
    }

    /// What has arrived of a run's log.
    pub(crate) async fn arriving(&self, id: Uuid) -> Result<Arriving, StoreError> {
        Ok(Arriving::open(self.blobs.clone(), id).await?)
    }

    /// Forgets what happened long ago, and logs that nobody went on with.
    pub(crate) async fn tidy(&self) -> Result<(), StoreError> {
        self.forget_changes().await?;
        Ok(Arriving::clear_abandoned(&self.blobs).await?)
    }

    /// Makes what has arrived the log of a run that is in the store, if it is that. The pieces stay until they are cleared:
    /// who is interrupted goes on with them.
    pub(crate) async fn finish_log(
        &self,
        id: Uuid,
        arriving: &Arriving,
        sha256: &LogHash,
    ) -> Result<(), StoreError> {
        let mut writing = loop {
            arriving.finish(sha256).await?;
            if let Some(writing) = self.write_naming(sha256).await? {
                break writing;
            }
        };
        let update = sqlx::query("UPDATE runs SET log_sha256 = $2 WHERE id = $1");
        let update = update.bind(id.to_string()).bind(sha256.as_str()).execute(&mut *writing).await;
        update.map_err(|error| self.failed(error))?;
        self.change(&mut writing, EventKind::Run, &id.to_string()).await?;
        self.commit(writing).await
    }

    /// Removes a run with all that is known of it, and its log unless another run has the same. Whether it was there.
    pub(crate) async fn delete(&self, id: Uuid) -> Result<bool, StoreError> {
        let text = id.to_string();
        let mut writing = self.database.write().await?;
        let log: Option<Option<String>> = sqlx::query_scalar("SELECT log_sha256 FROM runs WHERE id = $1")
            .bind(&text)
            .fetch_optional(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        let Some(log) = log else {
            // It may be one that is not over, or whose result will never come.
            let deleted =
                sqlx::query("DELETE FROM progress WHERE id = $1").bind(&text).execute(&mut *writing);
            let was_live = deleted.await.map_err(|error| self.failed(error))?.rows_affected() > 0;
            if was_live {
                self.change(&mut writing, EventKind::Progress, &text).await?;
                self.commit(writing).await?;
            }
            return Ok(was_live);
        };
        // What refers to it goes with it.
        let deleted = sqlx::query("DELETE FROM runs WHERE id = $1").bind(&text).execute(&mut *writing).await;
        deleted.map_err(|error| self.failed(error))?;
        self.change(&mut writing, EventKind::Deleted, &text).await?;
        self.commit(writing).await?;
        self.arriving(id).await?.clear().await?;
        if let Some(sha256) = log {
            self.drop_log(&LogHash::parse(&sha256)?).await?;
        }
        Ok(true)
    }

    /// Removes a log that no run names any more. Whoever is ended before it does leaves it to [`Store::sweep`].
    async fn drop_log(&self, sha256: &LogHash) -> Result<(), StoreError> {
        let mut writing = self.database.write_of(sha256.as_str()).await?;
        let named =
            sqlx::query_scalar("SELECT count(*) FROM runs WHERE log_sha256 = $1").bind(sha256.as_str());
        let named: i64 = named.fetch_one(&mut *writing).await.map_err(|error| self.failed(error))?;
        if named == 0 {
            self.blobs.remove(sha256).await?;
        }
        self.commit(writing).await
    }

    /// Starts to write that a run has this log, which nobody removes until that is written. None if it is not here: no
    /// run may name a log that is not.
    async fn write_naming(&self, sha256: &LogHash) -> Result<Option<Transaction<'static, Any>>, StoreError> {
        let writing = self.database.write_of(sha256.as_str()).await?;
        Ok(self.blobs.has(sha256).await?.then_some(writing))
    }

    /// Removes the logs that no run names: of runs that were deleted by a server that was then killed, for one.
    pub(crate) async fn sweep(&self) -> Result<(), StoreError> {
        let mut logs = self.blobs.settled();
        while let Some(sha256) = logs.try_next().await? {
            self.drop_log(&sha256).await?;
        }
        Ok(())
    }

    /// Removes the runs that were received more than so many days ago. How many there were.
    pub(crate) async fn delete_older(&self, days: u32) -> Result<usize, StoreError> {
        let until = time(Timestamp::now() - SignedDuration::from_hours(24 * i64::from(days)));
        let mut deleted = 0;
        loop {
            let query = Query { until: Some(until.clone()), ..Query::default() };
            let page = self.list(&query).await?;
            for run in &page.items {
                if let Ok(id) = run.id.parse() {
                    deleted += usize::from(self.delete(id).await?);
                }
            }
            if page.next_cursor.is_none() {
                return Ok(deleted);
            }
        }
    }

    /// What is work before a result is entered: nobody waits for it.
    fn entry<'a>(&self, run: &'a RunResult, file: &[u8]) -> Result<Entry<'a>, StoreError> {
        let packed = zstd::bulk::compress(file, LEVEL);
        let packed = packed.map_err(|error| self.failed(sqlx::Error::Io(error)))?;
        Ok(Entry { run, sha256: hex(&Sha256::digest(file)), packed, summary: summary(run, now(), false) })
    }

    /// Enters a result in one go, unless it is there.
    async fn enter(
        &self,
        mut writing: Transaction<'static, Any>,
        entry: Entry<'_>,
        log: Option<&LogHash>,
        came: Came<'_>,
    ) -> Result<UploadOutcome, StoreError> {
        let Entry { run, sha256, packed, summary } = entry;
        let log = log.map(LogHash::as_str);
        let row = RunRow::new(&summary, &sha256, log, came.token());
        let failed = |error| self.failed(error);
        let insert = row.insert().query().execute(&mut *writing).await;
        if insert.map_err(failed)?.rows_affected() > 0 {
            let insert = sqlx::query("INSERT INTO results (id, file) VALUES ($1, $2)");
            let insert = insert.bind(&summary.id).bind(packed).execute(&mut *writing).await;
            insert.map_err(failed)?;
            if came.is_news() {
                let insert = sqlx::query("INSERT INTO unjudged (id) VALUES ($1)").bind(&summary.id);
                insert.execute(&mut *writing).await.map_err(failed)?;
            }
            // It is over.
            let delete = sqlx::query("DELETE FROM progress WHERE id = $1").bind(&summary.id);
            delete.execute(&mut *writing).await.map_err(failed)?;
            self.change(&mut writing, EventKind::Run, &summary.id).await?;
            self.commit(writing).await?;
            return Ok(UploadOutcome::New);
        }
        let known: String = sqlx::query_scalar("SELECT sha256 FROM runs WHERE id = $1")
            .bind(&summary.id)
            .fetch_one(&mut *writing)
            .await
            .map_err(failed)?;
        if known != sha256 {
            let file = sqlx::query_scalar("SELECT file FROM results WHERE id = $1").bind(&summary.id);
            let file: Vec<u8> = file.fetch_one(&mut *writing).await.map_err(failed)?;
            let kept = unpack(run.id, &file)?;
            // It may have been said since then what the log is a run of.
            let newest = self.get(run.id).await?.unwrap_or_else(|| kept.clone());
            if !kept.covers(run) && !newest.covers(run) {
                return Err(StoreError::Conflict { id: run.id, what: difference(&newest, run) });
            }
        }
        let update = sqlx::query("UPDATE runs SET log_sha256 = $2 WHERE id = $1 AND log_sha256 IS NULL");
        update.bind(&summary.id).bind(log).execute(&mut *writing).await.map_err(failed)?;
        self.commit(writing).await?;
        Ok(UploadOutcome::Known)
    }

    /// Makes the summaries anew that an older program made. A few at a time: whoever is interrupted goes on later.
    async fn summarise(&self) -> Result<(), StoreError> {
        loop {
            let old: Vec<(String, String, Option<String>)> = sqlx::query_as(
                "SELECT id, received_at, log_sha256 FROM runs WHERE summary_version < $1 ORDER BY id LIMIT 200",
            )
            .bind(SUMMARY_VERSION)
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
            if old.is_empty() {
                return Ok(());
            }
            let mut writing = self.database.write().await?;
            for (id, received_at, log) in old {
                let run = match Uuid::parse_str(&id) {
                    Ok(id) => self.get(id).await.ok().flatten(),
                    Err(_) => None,
                };
                let updated = match run {
                    Some(run) => {
                        let row = RunRow::new(&summary(&run, received_at, log.is_some()), "", None, None);
                        row.update().query().execute(&mut *writing).await
                    }
                    None => {
                        tracing::warn!("the store's result {id} can't be read; its summary stays as it is");
                        let update = sqlx::query("UPDATE runs SET summary_version = $2 WHERE id = $1");
                        update.bind(&id).bind(SUMMARY_VERSION).execute(&mut *writing).await
                    }
                };
                updated.map_err(|error| self.failed(error))?;
            }
            self.commit(writing).await?;
        }
    }

    async fn commit(&self, writing: Transaction<'static, Any>) -> Result<(), StoreError> {
        writing.commit().await.map_err(|error| self.failed(error))
    }

    /// Returns a value as JSON, for a column.
    fn json(&self, value: &impl Serialize) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|error| self.failed(sqlx::Error::Encode(error.into())))
    }

    fn failed(&self, error: sqlx::Error) -> StoreError {
        self.database.failed(error)
    }
}

/// How a result came into the store.
#[derive(Debug, Clone, Copy)]
enum Came<'a> {
    /// From a file that was kept elsewhere.
    Kept,
    /// From a run that was carried out from here.
    CarriedOut,
    /// Over the network, by this token.
    Uploaded(&'a str),
}

impl<'a> Came<'a> {
    /// Whether it is to be judged: what was kept is an old story.
    fn is_news(self) -> bool {
        !matches!(self, Came::Kept)
    }

    fn token(self) -> Option<&'a str> {
        match self {
            Came::Uploaded(token) => Some(token),
            Came::Kept | Came::CarriedOut => None,
        }
    }
}

/// A result that is ready to be entered.
struct Entry<'a> {
    run: &'a RunResult,
    /// Of its file.
    sha256: String,
    /// Its file, compressed by zstd.
    packed: Vec<u8>,
    summary: RunSummary,
}

/// What a kept result is beside another under its id.
fn difference(kept: &RunResult, other: &RunResult) -> String {
    if kept.source.sha256 != other.source.sha256 {
        return "the result of another log".into();
    }
    let read_as = |run: &RunResult| match Report::of(run, &View::default()).recipe {
        Some(recipe) => format!("as a run of {recipe}"),
        None => "as a run of no known recipe".into(),
    };
    let (kept, other) = (read_as(kept), read_as(other));
    if kept == other {
        "this log, read otherwise,".into()
    } else {
        format!("this log, read {kept} and not {other},")
    }
}

/// The result in a compressed file.
fn unpack(id: Uuid, file: &[u8]) -> Result<RunResult, StoreError> {
    let damaged = |what| StoreError::Damaged { id, what };
    let text = zstd::decode_all(file).map_err(|error: io::Error| damaged(error.to_string()))?;
    result::read(&text).map_err(|error| damaged(error.to_string()))
}

/// The time as the store writes it: in UTC with microseconds, so that it sorts as a text.
fn now() -> String {
    time(Timestamp::now())
}

/// A time as the store writes it.
pub(crate) fn time(time: Timestamp) -> String {
    format!("{time:.6}")
}
