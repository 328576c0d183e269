//! The journal: the intentions and observations of the runner, on disk before it acts on them.
//!
//! After a process is killed, at any point, the next one reads the journal and continues. Each campaign has a
//! lock, so that two processes never carry it out at once.

mod copies;
mod event;
mod locks;
mod others;
mod outbox;
mod plan;
mod round;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use copies::Copied;
pub(crate) use event::{Event, LogRestart, Phase, RunStatus, UploadState};
pub(crate) use outbox::PendingUpload;
pub(crate) use plan::Plan;
pub(crate) use round::{Round, Run, has_jobs};

use crate::data::DataDir;
use crate::migrations::{Engine, MigrationError, migrate, retry_locked};
use sqlx::SqliteConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The migrations from each version to the next. A released one never changes.
const STEPS: [&str; 2] = [include_str!("schema.sql"), include_str!("outbox.sql")];
const VERSION: i64 = STEPS.len() as i64;

/// Selects all rounds, newest first: in the order in which they were written, since a clock may be wrong.
const ROUNDS: &str = "SELECT id, campaign, cluster, ssh, sha256, begun_ms, seen_ms, ended_ms, row_number() OVER \
                      (PARTITION BY campaign ORDER BY rowid) AS number, rowid = max(rowid) OVER (PARTITION BY \
                      campaign, cluster) AS is_newest FROM round ORDER BY rowid DESC";

/// The journal of a data directory.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    pool: SqlitePool,
    folder: PathBuf,
}

/// Why the journal can't be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error("Can't use the journal {}: {fault}.", path.display())]
    Database { path: PathBuf, fault: Fault },
    /// A newer version of the program made it.
    #[error(
        "The journal {} has version {version}; this trainplan supports versions up to {VERSION}. Use a \
         newer trainplan.",
        path.display()
    )]
    Newer { path: PathBuf, version: i64 },
    /// A lock or its folder can't be written.
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    /// Another process carries out the campaign.
    #[error("Process {holder} is running {campaign}. To watch it, use `trainplan jobs follow {campaign}`.")]
    Busy { campaign: String, holder: String },
}

/// An error of the database, or of a text in it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    /// Something in it has another form than this program writes.
    #[error("it is damaged ({0})")]
    Damaged(#[from] serde_json::Error),
}

impl Journal {
    /// Returns the file of the journal, which may not exist.
    pub(crate) fn file(data: &DataDir) -> PathBuf {
        data.path().join("journal.sqlite3")
    }

    /// Opens the journal. Creates or migrates it if needed.
    pub(crate) async fn open(data: &DataDir) -> Result<Journal, JournalError> {
        let path = Journal::file(data);
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Commits survive a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(20));
        let pool = SqlitePoolOptions::new().max_connections(2).connect_lazy_with(options);
        let journal = Journal { pool, folder: data.path().to_path_buf() };
        let migrated = retry_locked(Engine::Sqlite, || migrate(&journal.pool, Engine::Sqlite, &STEPS)).await;
        match migrated {
            Ok(()) => Ok(journal),
            Err(MigrationError::Newer(version)) => Err(JournalError::Newer { path, version }),
            Err(MigrationError::Database(error)) => {
                Err(JournalError::Database { path, fault: Fault::Database(error) })
            }
        }
    }

    /// Adds the journal's path to errors.
    async fn located<T>(&self, work: impl Future<Output = Result<T, Fault>>) -> Result<T, JournalError> {
        work.await
            .map_err(|fault| JournalError::Database { path: self.folder.join("journal.sqlite3"), fault })
    }

    /// Adds a round with all its runs, or nothing. It is the newest one, whatever its number here.
    pub(crate) async fn begin(&self, round: &Round, plans: &[(String, Plan)]) -> Result<(), JournalError> {
        self.located(async {
            let mut transaction = self.pool.begin().await?;
            sqlx::query(
                "INSERT INTO round (id, campaign, cluster, ssh, sha256, begun_ms) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(&round.id)
            .bind(&round.campaign)
            .bind(&round.cluster)
            .bind(&round.ssh)
            .bind(&round.sha256)
            .bind(round.begun_ms)
            .execute(&mut *transaction)
            .await?;
            for (position, (id, plan)) in plans.iter().enumerate() {
                sqlx::query("INSERT INTO run (id, round, position, plan) VALUES (?, ?, ?, ?)")
                    .bind(id)
                    .bind(&round.id)
                    .bind(position as i64)
                    .bind(serde_json::to_string(plan)?)
                    .execute(&mut *transaction)
                    .await?;
                add(&mut transaction, id, round.begun_ms, &Event::Planned).await?;
            }
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// Adds a run to a round, after its others.
    pub(crate) async fn add_run(
        &self,
        round: &str,
        id: &str,
        plan: &Plan,
        at_ms: i64,
    ) -> Result<(), JournalError> {
        self.located(async {
            let mut transaction = self.pool.begin().await?;
            sqlx::query(
                "INSERT INTO run (id, round, position, plan) SELECT ?, ?, count(*), ? FROM run WHERE round = ?",
            )
            .bind(id)
            .bind(round)
            .bind(serde_json::to_string(plan)?)
            .bind(round)
            .execute(&mut *transaction)
            .await?;
            add(&mut transaction, id, at_ms, &Event::Planned).await?;
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// Returns all rounds, newest first.
    pub(crate) async fn rounds(&self) -> Result<Vec<Round>, JournalError> {
        self.located(async { Ok(sqlx::query_as(ROUNDS).fetch_all(&self.pool).await?) }).await
    }

    /// Returns the last round of a campaign on a cluster, unless it is over.
    pub(crate) async fn open_round(
        &self,
        campaign: &str,
        cluster: &str,
    ) -> Result<Option<Round>, JournalError> {
        let is_its = |round: &Round| round.campaign == campaign && round.cluster == cluster;
        let last = self.rounds().await?.into_iter().find(is_its);
        Ok(last.filter(|round| round.ended_ms.is_none()))
    }

    /// Returns a round's runs, in its order.
    pub(crate) async fn runs(&self, round: &str) -> Result<Vec<Run>, JournalError> {
        self.located(async {
            let rows: Vec<(String, String)> =
                sqlx::query_as("SELECT id, plan FROM run WHERE round = ? ORDER BY position")
                    .bind(round)
                    .fetch_all(&self.pool)
                    .await?;
            let mut runs = Vec::with_capacity(rows.len());
            for (id, plan) in rows {
                let mut status = RunStatus::default();
                for (_, at_ms, event) in self.events_after(&id, 0).await? {
                    status.apply(at_ms, &event);
                }
                runs.push(Run { id, round: round.to_string(), plan: serde_json::from_str(&plan)?, status });
            }
            Ok(runs)
        })
        .await
    }

    /// Returns a run's events after the one with that number: numbers, times and events.
    pub(crate) async fn events(&self, run: &str, after: i64) -> Result<Vec<(i64, i64, Event)>, JournalError> {
        self.located(self.events_after(run, after)).await
    }

    async fn events_after(&self, run: &str, after: i64) -> Result<Vec<(i64, i64, Event)>, Fault> {
        let rows: Vec<(i64, i64, String)> = sqlx::query_as(
            "SELECT number, at_ms, event FROM event WHERE run = ? AND number > ? ORDER BY number",
        )
        .bind(run)
        .bind(after)
        .fetch_all(&self.pool)
        .await?;
        let event =
            |(number, at_ms, text): (i64, i64, String)| Ok((number, at_ms, serde_json::from_str(&text)?));
        rows.into_iter().map(event).collect()
    }

    /// Writes an event; it is on disk when this returns. A stored result enters the outbox if its plan names
    /// a server.
    pub(crate) async fn write(&self, run: &str, at_ms: i64, event: &Event) -> Result<(), JournalError> {
        self.located(async {
            let mut transaction = self.pool.begin().await?;
            add(&mut transaction, run, at_ms, event).await?;
            if matches!(event, Event::Stored { .. }) {
                sqlx::query(
                    "INSERT OR IGNORE INTO outbox (run, since_ms) SELECT id, ? FROM run WHERE id = ? AND \
                     json_extract(plan, '$.upload') IS NOT NULL",
                )
                .bind(at_ms)
                .bind(run)
                .execute(&mut *transaction)
                .await?;
            }
            Ok(transaction.commit().await?)
        })
        .await
    }

    /// Writes when the queue answered for a round.
    pub(crate) async fn see(&self, round: &str, at_ms: i64) -> Result<(), JournalError> {
        let update = sqlx::query("UPDATE round SET seen_ms = ? WHERE id = ?").bind(at_ms).bind(round);
        self.located(async { Ok(update.execute(&self.pool).await.map(drop)?) }).await
    }

    /// Writes that a round is over.
    pub(crate) async fn end(&self, round: &str, at_ms: i64) -> Result<(), JournalError> {
        let update = sqlx::query("UPDATE round SET ended_ms = ? WHERE id = ?").bind(at_ms).bind(round);
        self.located(async { Ok(update.execute(&self.pool).await.map(drop)?) }).await
    }

    /// Asks the process that carries out a run to cancel it.
    pub(crate) async fn request_cancel(&self, run: &str) -> Result<(), JournalError> {
        let insert = sqlx::query("INSERT OR REPLACE INTO wish (run, cancel) VALUES (?, 1)").bind(run);
        self.located(async { Ok(insert.execute(&self.pool).await.map(drop)?) }).await
    }

    /// Returns the runs that are to be cancelled.
    pub(crate) async fn cancel_requests(&self) -> Result<Vec<String>, JournalError> {
        let select = sqlx::query_scalar("SELECT run FROM wish WHERE cancel = 1");
        self.located(async { Ok(select.fetch_all(&self.pool).await?) }).await
    }
}

/// Adds an event in a transaction.
async fn add(connection: &mut SqliteConnection, run: &str, at_ms: i64, event: &Event) -> Result<(), Fault> {
    let insert = sqlx::query("INSERT INTO event (run, at_ms, event) VALUES (?, ?, ?)");
    let insert = insert.bind(run).bind(at_ms).bind(serde_json::to_string(event)?);
    Ok(insert.execute(connection).await.map(drop)?)
}

/// Returns the time, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
