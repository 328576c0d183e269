//! The journal: what the runner is about to do and what it saw, on disk before it goes on.
//!
//! A process that is killed, wherever it was, is followed by one that reads the journal and goes on. Rounds have a lock
//! each, so that two processes never carry out the same one.

mod event;
mod outbox;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use event::{Event, Phase, Sending, Status};
pub(crate) use outbox::Due;

use crate::data::{DataDir, make_private};
use serde::{Deserialize, Serialize};
use sqlx::query::Query;
use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{Executor as _, Row as _, Sqlite, SqliteConnection};
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trainplan_shared::campaign::{Secret, Upload};
use trainplan_shared::result::{Launched, Predicted};

/// What makes a journal of each version one of the next; a step that was released never changes.
const STEPS: [&str; 2] = [include_str!("schema.sql"), include_str!("outbox.sql")];
const VERSION: i64 = STEPS.len() as i64;

/// The journal of a user.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    pool: SqlitePool,
    folder: PathBuf,
}

/// Why the journal can't be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The database refuses.
    #[error("the journal {}: {error}", path.display())]
    Database {
        /// Where it is.
        path: PathBuf,
        /// What SQLite said.
        error: sqlx::Error,
    },
    /// A newer program made it.
    #[error("the journal {} is of version {version}, and this program knows up to {VERSION}: use a newer trainplan", path.display())]
    Newer {
        /// Where it is.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// Something in it is not what this program writes.
    #[error("the journal {} is damaged: {what}", path.display())]
    Damaged {
        /// Where it is.
        path: PathBuf,
        /// What can't be read.
        what: String,
    },
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    File {
        /// Where.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another process carries it out.
    #[error("{campaign} is being carried out by process {holder}: `trainplan jobs follow` watches it")]
    Busy {
        /// The campaign.
        campaign: String,
        /// The process.
        holder: String,
    },
}

/// One carrying out of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) id: String,
    pub(crate) campaign: String,
    pub(crate) cluster: String,
    pub(crate) ssh: String,
    pub(crate) sha256: String,
    pub(crate) begun_ms: i64,
    /// When the cluster last told how its jobs are.
    pub(crate) seen_ms: Option<i64>,
    pub(crate) ended_ms: Option<i64>,
}

/// All that is needed to carry a run out, as it was planned; no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Which of its repeats, from 1.
    pub(crate) repeat: u32,
    /// Of how many.
    pub(crate) repeats: u32,
    /// The runs that have to end before.
    pub(crate) after: Vec<String>,
    pub(crate) singleton: bool,
    pub(crate) queue_budget_s: Option<u64>,
    /// The recipe in full, if it starts from one.
    pub(crate) recipe: Option<String>,
    /// What is known of its scenario, as the query of a link.
    pub(crate) scenario: String,
    pub(crate) gpus: u32,
    /// The script that launches it.
    pub(crate) script: String,
    /// Whether that is the job's own script, for sbatch, which writes what it does into a file of its run's folder and what it
    /// logs below that.
    pub(crate) is_job: bool,
    /// Where its secrets are to be found here.
    pub(crate) secrets: Vec<(String, Secret)>,
    /// The jobs that the launch makes, by name, the measured one first.
    pub(crate) job_names: Vec<String>,
    /// As a shell reads them.
    pub(crate) experiment_dir: String,
    pub(crate) log_glob: String,
    pub(crate) launched: Launched,
    pub(crate) predicted: Predicted,
    /// The published time of a step.
    pub(crate) baseline_s: Option<f64>,
    /// Where its result is sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upload: Option<Upload>,
}

/// A run of the journal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) round: String,
    pub(crate) plan: Plan,
    pub(crate) status: Status,
}

/// How far a job's log is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) job: String,
    pub(crate) path: String,
    pub(crate) inode: u64,
    pub(crate) offset: u64,
    pub(crate) kept: u64,
}

/// That a round is ours for as long as this lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Run {
    /// A pattern of its plan where the cluster's shell finds it: what a job's own script writes lies below the run's folder.
    pub(crate) fn below_its_folder(&self, pattern: &str) -> String {
        match self.plan.is_job {
            true => format!("\"$HOME\"/.trainplan/runs/{}/{pattern}", self.id),
            false => pattern.to_string(),
        }
    }
}

impl Plan {
    /// The run's name, with the repeat where there are several.
    pub(crate) fn title(&self) -> String {
        match self.repeats {
            1 => self.name.clone(),
            _ => format!("{}#{}", self.name, self.repeat),
        }
    }
}

impl Journal {
    /// Opens the journal, and makes it if there is none.
    pub(crate) async fn open(data: &DataDir) -> Result<Journal, JournalError> {
        let path = data.path().join("journal.sqlite3");
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What is written survives a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(Duration::from_secs(20));
        let of = |error| JournalError::Database { path: path.clone(), error };
        let pool = SqlitePoolOptions::new().max_connections(2).connect_lazy_with(options);
        let journal = Journal { pool, folder: data.path().to_path_buf() };
        // Where two processes open a new one at once, SQLite may call it locked instead of waiting.
        let mut tries = 200;
        let mut transaction = loop {
            match journal.pool.begin_with("BEGIN IMMEDIATE").await {
                Ok(transaction) => break transaction,
                Err(sqlx::Error::Database(error)) if tries > 0 && error.message().contains("locked") => {
                    tries -= 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(of(error)),
            }
        };
        let version: i64 =
            sqlx::query_scalar("PRAGMA user_version").fetch_one(&mut *transaction).await.map_err(of)?;
        let steps = usize::try_from(version).ok().and_then(|version| STEPS.get(version..));
        let Some(steps) = steps else { return Err(JournalError::Newer { path: path.clone(), version }) };
        for step in steps {
            transaction.execute(*step).await.map_err(of)?;
        }
        if version < VERSION {
            transaction.execute(&*format!("PRAGMA user_version = {VERSION}")).await.map_err(of)?;
        }
        transaction.commit().await.map_err(of)?;
        Ok(journal)
    }

    fn error(&self, error: sqlx::Error) -> JournalError {
        JournalError::Database { path: self.path(), error }
    }

    /// Changes something; on disk when this returns.
    async fn execute<'q>(&self, query: Query<'q, Sqlite, SqliteArguments<'q>>) -> Result<(), JournalError> {
        query.execute(&self.pool).await.map(drop).map_err(|e| self.error(e))
    }

    fn damaged(&self, what: &serde_json::Error) -> JournalError {
        JournalError::Damaged { path: self.path(), what: what.to_string() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("journal.sqlite3")
    }

    /// The folder of the copies of logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// Begins a round with its runs: all of it or nothing.
    pub(crate) async fn begin(&self, round: &Round, plans: &[(String, Plan)]) -> Result<(), JournalError> {
        let mut transaction = self.pool.begin().await.map_err(|e| self.error(e))?;
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
        .await
        .map_err(|e| self.error(e))?;
        for (position, (id, plan)) in plans.iter().enumerate() {
            let text = serde_json::to_string(plan).map_err(|e| self.damaged(&e))?;
            sqlx::query("INSERT INTO run (id, round, position, plan) VALUES (?, ?, ?, ?)")
                .bind(id)
                .bind(&round.id)
                .bind(position as i64)
                .bind(text)
                .execute(&mut *transaction)
                .await
                .map_err(|e| self.error(e))?;
            self.add(&mut transaction, id, round.begun_ms, &Event::Planned).await?;
        }
        transaction.commit().await.map_err(|e| self.error(e))
    }

    /// The rounds, newest first.
    pub(crate) async fn rounds(&self) -> Result<Vec<Round>, JournalError> {
        let rows = sqlx::query(
            "SELECT id, campaign, cluster, ssh, sha256, begun_ms, seen_ms, ended_ms FROM round ORDER BY begun_ms DESC, id DESC",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|e| self.error(e))?;
        let round = |row: sqlx::sqlite::SqliteRow| {
            Ok(Round {
                id: row.try_get(0)?,
                campaign: row.try_get(1)?,
                cluster: row.try_get(2)?,
                ssh: row.try_get(3)?,
                sha256: row.try_get(4)?,
                begun_ms: row.try_get(5)?,
                seen_ms: row.try_get(6)?,
                ended_ms: row.try_get(7)?,
            })
        };
        rows.into_iter().map(round).collect::<Result<_, _>>().map_err(|e| self.error(e))
    }

    /// A round's runs, in its order.
    pub(crate) async fn runs(&self, round: &str) -> Result<Vec<Run>, JournalError> {
        let rows = sqlx::query("SELECT id, plan FROM run WHERE round = ? ORDER BY position")
            .bind(round)
            .fetch_all(&self.pool)
            .await
            .map_err(|e| self.error(e))?;
        let mut runs = Vec::with_capacity(rows.len());
        for row in rows {
            let id: String = row.try_get(0).map_err(|e| self.error(e))?;
            let plan: String = row.try_get(1).map_err(|e| self.error(e))?;
            let plan = serde_json::from_str(&plan).map_err(|e| self.damaged(&e))?;
            let mut status = Status::default();
            for (_, at_ms, event) in self.events(&id, 0).await? {
                status.apply(at_ms, &event);
            }
            runs.push(Run { id, round: round.to_string(), plan, status });
        }
        Ok(runs)
    }

    /// What happened to a run after the event of that number: numbers, times and events.
    pub(crate) async fn events(&self, run: &str, after: i64) -> Result<Vec<(i64, i64, Event)>, JournalError> {
        let rows = sqlx::query(
            "SELECT number, at_ms, event FROM event WHERE run = ? AND number > ? ORDER BY number",
        )
        .bind(run)
        .bind(after)
        .fetch_all(&self.pool)
        .await
        .map_err(|e| self.error(e))?;
        rows.into_iter()
            .map(|row| {
                let text: String = row.try_get(2).map_err(|e| self.error(e))?;
                let event = serde_json::from_str(&text).map_err(|e| self.damaged(&e))?;
                Ok((
                    row.try_get(0).map_err(|e| self.error(e))?,
                    row.try_get(1).map_err(|e| self.error(e))?,
                    event,
                ))
            })
            .collect()
    }

    /// Writes down what happened; on disk when this returns. A result that is kept is due where its plan has it sent.
    pub(crate) async fn write(&self, run: &str, at_ms: i64, event: &Event) -> Result<(), JournalError> {
        let mut transaction = self.pool.begin().await.map_err(|e| self.error(e))?;
        self.add(&mut transaction, run, at_ms, event).await?;
        if matches!(event, Event::Stored { .. }) {
            sqlx::query(
                "INSERT OR IGNORE INTO outbox (run, since_ms) SELECT id, ? FROM run \
                 WHERE id = ? AND json_extract(plan, '$.upload') IS NOT NULL",
            )
            .bind(at_ms)
            .bind(run)
            .execute(&mut *transaction)
            .await
            .map_err(|e| self.error(e))?;
        }
        transaction.commit().await.map_err(|e| self.error(e))
    }

    /// Adds to what happened.
    async fn add(
        &self,
        connection: &mut SqliteConnection,
        run: &str,
        at_ms: i64,
        event: &Event,
    ) -> Result<(), JournalError> {
        let text = serde_json::to_string(event).map_err(|e| self.damaged(&e))?;
        let insert = sqlx::query("INSERT INTO event (run, at_ms, event) VALUES (?, ?, ?)");
        let insert = insert.bind(run).bind(at_ms).bind(text);
        insert.execute(connection).await.map(drop).map_err(|e| self.error(e))
    }

    /// Writes down when the cluster told how a round's jobs are.
    pub(crate) async fn see(&self, round: &str, at_ms: i64) -> Result<(), JournalError> {
        self.execute(sqlx::query("UPDATE round SET seen_ms = ? WHERE id = ?").bind(at_ms).bind(round)).await
    }

    /// Writes down that a round is over.
    pub(crate) async fn end(&self, round: &str, at_ms: i64) -> Result<(), JournalError> {
        self.execute(sqlx::query("UPDATE round SET ended_ms = ? WHERE id = ?").bind(at_ms).bind(round)).await
    }

    /// How far a run's logs are copied.
    pub(crate) async fn copied(&self, run: &str) -> Result<Vec<Copied>, JournalError> {
        let rows = sqlx::query("SELECT job, path, inode, offset, kept FROM tail WHERE run = ?")
            .bind(run)
            .fetch_all(&self.pool)
            .await
            .map_err(|e| self.error(e))?;
        let copied = |row: sqlx::sqlite::SqliteRow| {
            Ok(Copied {
                job: row.try_get(0)?,
                path: row.try_get(1)?,
                inode: row.try_get::<i64, _>(2)? as u64,
                offset: row.try_get::<i64, _>(3)? as u64,
                kept: row.try_get::<i64, _>(4)? as u64,
            })
        };
        rows.into_iter().map(copied).collect::<Result<_, _>>().map_err(|e| self.error(e))
    }

    /// Writes down how far logs are copied, all at once: the copies hold that much already.
    pub(crate) async fn set_copied<'a>(
        &self,
        copied: impl IntoIterator<Item = (&'a str, &'a Copied)>,
    ) -> Result<(), JournalError> {
        let mut transaction = self.pool.begin().await.map_err(|e| self.error(e))?;
        for (run, copied) in copied {
            sqlx::query(
                "INSERT OR REPLACE INTO tail (run, job, path, inode, offset, kept) VALUES (?, ?, ?, ?, ?, ?)",
            )
            .bind(run)
            .bind(&copied.job)
            .bind(&copied.path)
            .bind(copied.inode as i64)
            .bind(copied.offset as i64)
            .bind(copied.kept as i64)
            .execute(&mut *transaction)
            .await
            .map_err(|e| self.error(e))?;
        }
        transaction.commit().await.map_err(|e| self.error(e))
    }

    /// Asks whoever carries a run out to cancel it.
    pub(crate) async fn wish_cancel(&self, run: &str) -> Result<(), JournalError> {
        self.execute(sqlx::query("INSERT OR REPLACE INTO wish (run, cancel) VALUES (?, 1)").bind(run)).await
    }

    /// The runs that someone wants cancelled.
    pub(crate) async fn wishes(&self) -> Result<Vec<String>, JournalError> {
        sqlx::query_scalar("SELECT run FROM wish WHERE cancel = 1")
            .fetch_all(&self.pool)
            .await
            .map_err(|e| self.error(e))
    }

    /// The process that carries a campaign out, if one does.
    pub(crate) fn carried_out_by(&self, campaign: &str, cluster: &str) -> Option<String> {
        let path = self.lock_path(campaign, cluster);
        let file = File::open(&path).ok()?;
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| holder(&path))
    }

    fn lock_path(&self, campaign: &str, cluster: &str) -> PathBuf {
        self.folder.join("locks").join(format!("{campaign}@{cluster}.lock"))
    }

    /// Takes a campaign for this process.
    ///
    /// # Errors
    /// Another process has it, or the lock can't be made.
    pub(crate) fn lock(&self, campaign: &str, cluster: &str) -> Result<Lock, JournalError> {
        let path = self.lock_path(campaign, cluster);
        let of = |error| JournalError::File { path: path.clone(), error };
        make_private(&self.folder.join("locks")).map_err(of)?;
        let mut file =
            File::options().create(true).truncate(false).read(true).write(true).open(&path).map_err(of)?;
        // Whoever only looks whether it is held holds it for a moment.
        let mut tries = 5;
        while let Err(error) = file.try_lock() {
            tries -= 1;
            match error {
                TryLockError::WouldBlock if tries > 0 => std::thread::sleep(Duration::from_millis(20)),
                TryLockError::WouldBlock => {
                    let holder = holder(&path);
                    return Err(JournalError::Busy { campaign: campaign.to_string(), holder });
                }
                TryLockError::Error(error) => return Err(of(error)),
            }
        }
        file.set_len(0).and_then(|()| write!(file, "{}", std::process::id())).map_err(of)?;
        Ok(Lock { _file: file })
    }
}

/// The process that holds a lock, as it says itself.
fn holder(path: &Path) -> String {
    std::fs::read_to_string(path).ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into())
}

/// The time, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
