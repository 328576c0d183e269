//! The store of results: what runs measured, in an SQLite database, and their raw logs in files beside it.
//!
//! A result is entered whole or not at all, and never changes. Its steps are one compressed column that lists do not
//! touch; they read summaries alone. Several programs may use a store at once: SQLite's write-ahead log lets them read
//! while one writes, and writers wait for each other.

mod blobs;
mod migrations;
mod query;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use blobs::BlobError;
pub(crate) use query::{Page, Query};
pub(crate) use summary::Summary;

use crate::data::DataDir;
use blobs::{Blobs, hex};
use jiff::Timestamp;
use migrations::{MigrationError, NEWEST};
use sha2::{Digest, Sha256};
use sqlx::error::DatabaseError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqlitePool};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trainplan_shared::result::{self, FileError, RunResult};
use uuid::Uuid;

/// How long to wait while another program writes. Entering a result takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// How hard zstd tries: more makes little smaller and takes much longer.
const LEVEL: i32 = 3;

/// The results on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    /// The database's file.
    path: PathBuf,
    /// One connection, so that this program's writers queue here and not at the file's lock.
    writer: SqlitePool,
    readers: SqlitePool,
    blobs: Blobs,
}

/// What became of a result that was put into the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is in the store now.
    New,
    /// It was there already, the same to the last byte.
    Known,
}

/// Why the store does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// A newer program made the database.
    #[error(
        "the store {} is of version {version}, and this program works with version {NEWEST}: use a newer trainplan, or \
         another --data-dir",
        path.display()
    )]
    Newer {
        /// The database's file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// Another program does not stop writing.
    #[error("another program kept the store {} locked for {} s: end it, or try again", path.display(), PATIENCE.as_secs())]
    Locked {
        /// The database's file.
        path: PathBuf,
    },
    /// The database failed.
    #[error("the store {} failed: {error}", path.display())]
    Database {
        /// The database's file.
        path: PathBuf,
        /// What it said.
        error: sqlx::Error,
    },
    /// The folder of raw logs can't be made.
    #[error("cannot make the folder {}: {error}", path.display())]
    Folder {
        /// Where it was to be.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another result has the same id.
    #[error(
        "the store has another result under the id {id}: results never change, so the one that came first stays"
    )]
    Conflict {
        /// The id.
        id: Uuid,
    },
    /// The raw log can't be kept.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The result can't be put into a file.
    #[error(transparent)]
    Result(#[from] FileError),
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
        let folder = dir.path().join("blobs");
        let blobs =
            Blobs::open(folder.clone()).map_err(|error| StoreError::Folder { path: folder, error })?;
        let path = dir.path().join("store.sqlite");
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // A result that was entered outlives a power cut too.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(PATIENCE)
            .foreign_keys(true)
            .disable_statement_logging();
        let pool = |most| SqlitePoolOptions::new().max_connections(most).acquire_timeout(2 * PATIENCE);
        let store = Store {
            writer: pool(1).connect_lazy_with(options.clone()),
            readers: pool(4).connect_lazy_with(options),
            path,
            blobs,
        };
        store.migrate().await?;
        Ok(store)
    }

    /// Brings the database up to date. Where several programs open a new one at once, SQLite may call it locked at once
    /// instead of waiting: changing the journal's mode is not what it waits for.
    async fn migrate(&self) -> Result<(), StoreError> {
        let begun = Instant::now();
        loop {
            let error = match migrations::migrate(&self.writer).await {
                Ok(()) => return Ok(()),
                Err(MigrationError::Newer(version)) => {
                    return Err(StoreError::Newer { path: self.path.clone(), version });
                }
                Err(MigrationError::Database(error)) => self.failed(error),
            };
            if !matches!(error, StoreError::Locked { .. }) || begun.elapsed() > PATIENCE {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Enters a result, and its raw log from a file that holds it compressed by zstd. The same result again is no second
    /// one; its log may come later than it.
    ///
    /// # Errors
    /// Another result has its id; the log is not the one that it was made from; the disk or the database fails. What was
    /// in the store stays as it is.
    pub(crate) async fn put(&self, run: &RunResult, log: Option<&Path>) -> Result<Put, StoreError> {
        let text = result::write(run)?;
        let sha256 = hex(&Sha256::digest(&text));
        let file =
            zstd::encode_all(text.as_bytes(), LEVEL).map_err(|error| self.failed(sqlx::Error::Io(error)))?;
        // The log first: no run may name one that is not there.
        let log_sha256 = log.is_some().then_some(run.source.sha256.as_str());
        if let Some(log) = log {
            self.keep(&run.source.sha256, log).await?;
        }
        let received_at = format!("{:.6}", Timestamp::now());
        let summary = Summary::of(run, received_at, log.is_some());
        match self.enter(&summary, &sha256, log_sha256, &file).await {
            Ok(Some(put)) => Ok(put),
            Ok(None) => Err(StoreError::Conflict { id: run.id }),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The runs of a query, newest first, as summaries.
    pub(crate) async fn list(&self, query: &Query) -> Result<Page, StoreError> {
        let mut select = query.select();
        let rows = select.build_query_as().fetch_all(&self.readers).await;
        Ok(Page::of(rows.map_err(|error| self.failed(error))?, query.limit()))
    }

    /// A result.
    pub(crate) async fn get(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        let damaged = |what| StoreError::Damaged { id, what };
        let Some(file) = self.file(id).await? else { return Ok(None) };
        let text = zstd::decode_all(file.as_slice()).map_err(|error| damaged(error.to_string()))?;
        result::read(&text).map(Some).map_err(|error| damaged(error.to_string()))
    }

    /// A result's file as it came, compressed by zstd.
    pub(crate) async fn file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        sqlx::query_scalar("SELECT file FROM results WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Where a result's raw log is, compressed by zstd.
    pub(crate) async fn log(&self, id: Uuid) -> Result<Option<PathBuf>, StoreError> {
        let sha256: Option<Option<String>> = sqlx::query_scalar("SELECT log_sha256 FROM runs WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(sha256.flatten().map(|sha256| self.blobs.path(&sha256)))
    }

    /// Copies a log, without keeping others from their work meanwhile.
    async fn keep(&self, sha256: &str, log: &Path) -> Result<(), StoreError> {
        let (blobs, sha256, path) = (self.blobs.clone(), sha256.to_owned(), log.to_path_buf());
        match tokio::task::spawn_blocking(move || blobs.keep(&sha256, &path)).await {
            Ok(kept) => Ok(kept?),
            Err(stopped) => {
                let (path, error) = (log.to_path_buf(), io::Error::other(stopped));
                Err(BlobError::Read { path, error }.into())
            }
        }
    }

    /// Enters a result in one go, unless it is there. None: another one is, under the same id.
    async fn enter(
        &self,
        summary: &Summary,
        sha256: &str,
        log_sha256: Option<&str>,
        file: &[u8],
    ) -> sqlx::Result<Option<Put>> {
        // A transaction that asks first and writes then could find the file locked between the two.
        let mut writing = self.writer.begin_with("BEGIN IMMEDIATE").await?;
        let known: Option<String> = sqlx::query_scalar("SELECT sha256 FROM runs WHERE id = $1")
            .bind(&summary.id)
            .fetch_optional(&mut *writing)
            .await?;
        let put = match known {
            None => {
                summary.insert(sha256, log_sha256).build().execute(&mut *writing).await?;
                let insert = sqlx::query("INSERT INTO results (id, file) VALUES ($1, $2)");
                insert.bind(&summary.id).bind(file).execute(&mut *writing).await?;
                Put::New
            }
            Some(known) if known == sha256 => {
                let update =
                    sqlx::query("UPDATE runs SET log_sha256 = $2 WHERE id = $1 AND log_sha256 IS NULL");
                update.bind(&summary.id).bind(log_sha256).execute(&mut *writing).await?;
                Put::Known
            }
            Some(_) => return Ok(None),
        };
        writing.commit().await?;
        Ok(Some(put))
    }

    fn failed(&self, error: sqlx::Error) -> StoreError {
        const SQLITE_BUSY: &str = "5";
        let path = self.path.clone();
        let code = error.as_database_error().and_then(DatabaseError::code);
        if code.as_deref() == Some(SQLITE_BUSY) {
            StoreError::Locked { path }
        } else {
            StoreError::Database { path, error }
        }
    }
}
