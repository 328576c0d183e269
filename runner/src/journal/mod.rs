//! The journal: the intentions and observations of the runner, on disk before it acts on them.
//!
//! After a process is killed, at any point, the next one reads the journal and continues. Each campaign has a
//! lock, so that two processes never carry it out at once.

mod event;
mod outbox;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use event::{Event, LogRestart, Phase, RunStatus, UploadState};
pub(crate) use outbox::PendingUpload;

use crate::data::{DataDir, make_private};
use crate::migrations::{Engine, MigrationError, migrate, retry_locked};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{FromRow, Row as _, SqliteConnection};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trainplan_shared::campaign::{Secret, Upload};
use trainplan_shared::result::{LaunchRecord, PredictionRecord};

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

/// One execution of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub(crate) struct Round {
    pub(crate) id: String,
    pub(crate) campaign: String,
    pub(crate) cluster: String,
    /// The host, as ssh takes it.
    pub(crate) ssh: String,
    /// Of the plans, to notice that the campaign was changed.
    pub(crate) sha256: String,
    pub(crate) begun_ms: i64,
    /// When the queue last answered, in milliseconds since 1970.
    pub(crate) seen_ms: Option<i64>,
    pub(crate) ended_ms: Option<i64>,
    /// Which round of its campaign it is, counted from 1 in the order in which they were begun.
    pub(crate) number: u32,
    /// Whether no later round of the campaign was begun on the cluster.
    pub(crate) is_newest: bool,
}

/// The plan of a run: all that is needed to carry it out, without the values of secrets. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Which of its repeats, counted from 1.
    pub(crate) repeat: u32,
    /// How many repeats there are.
    pub(crate) repeats: u32,
    /// The runs that have to be over before.
    pub(crate) after: Vec<String>,
    /// Those of them that must have a score; otherwise this one fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) after_success: Vec<String>,
    /// How often it runs again after a node failed or its job was preempted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) retries: u32,
    /// Which of the retries it is; 0 for the first run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) retry: u32,
    /// The nodes on which it does not run, as Slurm takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exclude: Option<String>,
    /// Whether it runs only while no other singleton of the campaign does.
    pub(crate) singleton: bool,
    /// How long it may wait in the queue.
    pub(crate) queue_budget_s: Option<u64>,
    /// The full id of its recipe, if it has one.
    pub(crate) recipe: Option<String>,
    /// Its scenario, as the query of a link.
    pub(crate) scenario: String,
    pub(crate) gpus: u32,
    /// The script that launches it.
    pub(crate) script: String,
    /// Whether the script is the job's own, for sbatch. It writes its state and its logs below the run's
    /// folder.
    pub(crate) is_job: bool,
    /// Where this machine has its secrets.
    pub(crate) secrets: Vec<(String, Secret)>,
    /// The names of the jobs that it submits, the measured one first.
    pub(crate) job_names: Vec<String>,
    /// A pattern for a shell.
    pub(crate) experiment_dir: String,
    /// A pattern for a shell.
    pub(crate) log_glob: String,
    pub(crate) launched: LaunchRecord,
    pub(crate) predicted: PredictionRecord,
    /// The published step time.
    pub(crate) baseline_s: Option<f64>,
    /// The server that gets its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upload: Option<Upload>,
}

impl Round {
    /// Returns its name, `nightly@2`. A campaign's name has no `@`.
    pub(crate) fn title(&self) -> String {
        format!("{}@{}", self.campaign, self.number)
    }

    /// Returns the name of the lock of the process that carries it out. An older round has one of its own, so that it
    /// can be carried out beside the newest.
    fn lock_name(&self) -> String {
        match self.is_newest {
            true => format!("{}@{}", self.campaign, self.cluster),
            false => self.id.clone(),
        }
    }
}

/// A run with its plan and state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) round: String,
    pub(crate) plan: Plan,
    pub(crate) status: RunStatus,
}

/// How far a job's log is copied: `kept` bytes of the compressed copy hold the log up to `offset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) job: String,
    pub(crate) path: String,
    pub(crate) inode: u64,
    pub(crate) offset: u64,
    pub(crate) kept: u64,
}

/// A lock that this process holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Run {
    /// Returns a pattern of its plan as the cluster's shell finds it. A job's own script writes below the
    /// run's folder.
    pub(crate) fn below_its_folder(&self, pattern: &str) -> String {
        match self.plan.is_job {
            true => format!("\"$HOME\"/.trainplan/runs/{}/{pattern}", self.id),
            false => pattern.to_string(),
        }
    }
}

impl Plan {
    /// Returns the run's name, with its repeat if there are several, and with the number of its retry: `large#2~1`.
    pub(crate) fn title(&self) -> String {
        let mut title = self.name.clone();
        if self.repeats > 1 {
            title += &format!("#{}", self.repeat);
        }
        if self.retry > 0 {
            title += &format!("~{}", self.retry);
        }
        title
    }

    /// Returns which attempt it is and how many the campaign allows, in words: `attempt 2 of 3`. None for the first one.
    pub(crate) fn attempt_words(&self) -> Option<String> {
        (self.retry > 0).then(|| {
            format!("attempt {} of {}", self.retry.saturating_add(1), self.retries.saturating_add(1))
        })
    }

    /// Returns whether another version of the program would plan the same run of the campaign as `now`. What the program derives
    /// from the campaign, such as the script and the prediction, may differ.
    pub(crate) fn is_of_other_version(&self, now: &Plan) -> bool {
        let derived = Plan {
            script: self.script.clone(),
            is_job: self.is_job,
            job_names: self.job_names.clone(),
            experiment_dir: self.experiment_dir.clone(),
            log_glob: self.log_glob.clone(),
            launched: self.launched.clone(),
            predicted: self.predicted.clone(),
            baseline_s: self.baseline_s,
            ..now.clone()
        };
        self.predicted.calibration != now.predicted.calibration && *self == derived
    }

    /// Returns whether another run is a later try of the same repeat.
    pub(crate) fn is_retried_by(&self, other: &Plan) -> bool {
        (&self.name, self.repeat) == (&other.name, other.repeat) && self.retry < other.retry
    }
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

    /// Returns the folder of the copies of logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
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

    /// Returns how far a run's logs are copied.
    pub(crate) async fn copied(&self, run: &str) -> Result<Vec<Copied>, JournalError> {
        // SQLite has no unsigned integers.
        let copied = |row: SqliteRow| -> Result<Copied, sqlx::Error> {
            Ok(Copied {
                job: row.try_get(0)?,
                path: row.try_get(1)?,
                inode: row.try_get::<i64, _>(2)? as u64,
                offset: row.try_get::<i64, _>(3)? as u64,
                kept: row.try_get::<i64, _>(4)? as u64,
            })
        };
        let select = sqlx::query("SELECT job, path, inode, offset, kept FROM tail WHERE run = ?").bind(run);
        self.located(async { Ok(select.try_map(copied).fetch_all(&self.pool).await?) }).await
    }

    /// Writes how far logs are copied, all of them or none. The copies must hold that much already.
    pub(crate) async fn set_copied<'a>(
        &self,
        copied: impl IntoIterator<Item = (&'a str, &'a Copied)>,
    ) -> Result<(), JournalError> {
        self.located(async {
            let mut transaction = self.pool.begin().await?;
            for (run, copied) in copied {
                sqlx::query(
                    "INSERT OR REPLACE INTO tail (run, job, path, inode, offset, kept) VALUES (?, ?, ?, ?, \
                     ?, ?)",
                )
                .bind(run)
                .bind(&copied.job)
                .bind(&copied.path)
                .bind(copied.inode as i64)
                .bind(copied.offset as i64)
                .bind(copied.kept as i64)
                .execute(&mut *transaction)
                .await?;
            }
            Ok(transaction.commit().await?)
        })
        .await
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

    /// Returns whether Slurm showed the marks of the last jobs on a cluster; false if nobody has looked.
    pub(crate) async fn marks_survive(&self, cluster: &str) -> Result<bool, JournalError> {
        let select = sqlx::query_scalar::<_, i64>(
            "SELECT json_extract(event, '$.marked') FROM event JOIN run ON run.id = event.run JOIN round ON \
             round.id = run.round WHERE round.cluster = ? AND event LIKE '%\"marked\"%' AND \
             json_extract(event, '$.marked') IS NOT NULL ORDER BY event.number DESC LIMIT 1",
        );
        let select = select.bind(cluster);
        self.located(async { Ok(select.fetch_optional(&self.pool).await? == Some(1)) }).await
    }

    /// Returns the jobs of all runs on a cluster but one.
    pub(crate) async fn jobs_of_others(
        &self,
        cluster: &str,
        run: &str,
    ) -> Result<BTreeSet<String>, JournalError> {
        let select = sqlx::query_scalar(
            "SELECT DISTINCT job.value FROM event JOIN run ON run.id = event.run JOIN round ON round.id = \
             run.round, json_each(event.event, '$.jobs') AS job WHERE round.cluster = ? AND run.id <> ? AND \
             event LIKE '{\"event\":\"submitted\"%'",
        );
        let select = select.bind(cluster).bind(run);
        self.located(async { Ok(select.fetch_all(&self.pool).await?.into_iter().collect()) }).await
    }

    /// Returns the names of the jobs that other runs on a cluster may be submitting now.
    pub(crate) async fn names_being_launched(
        &self,
        cluster: &str,
        run: &str,
    ) -> Result<BTreeSet<String>, JournalError> {
        let select = sqlx::query_scalar(
            "SELECT DISTINCT name.value FROM run JOIN round ON round.id = run.round, json_each(run.plan, \
             '$.job_names') AS name WHERE round.cluster = ? AND round.ended_ms IS NULL AND run.id <> ? AND \
             (SELECT json_extract(event, '$.event') FROM event WHERE event.run = run.id ORDER BY number DESC \
             LIMIT 1) IN ('intended', 'cancel_asked')",
        );
        let select = select.bind(cluster).bind(run);
        self.located(async { Ok(select.fetch_all(&self.pool).await?.into_iter().collect()) }).await
    }

    /// Returns the id of the process that carries out a round, if one does.
    pub(crate) fn carried_out_by(&self, round: &Round) -> Option<String> {
        let path = self.lock_path(&round.lock_name());
        let file = File::open(&path).ok()?;
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)).then(|| holder(&path))
    }

    fn lock_path(&self, name: &str) -> PathBuf {
        self.folder.join("locks").join(format!("{name}.lock"))
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

    fn open_lock(&self, path: &Path) -> Result<File, JournalError> {
        make_private(&self.folder.join("locks"))
            .and_then(|()| File::options().create(true).truncate(false).read(true).write(true).open(path))
            .map_err(|error| JournalError::File { path: path.to_path_buf(), error })
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Adds an event in a transaction.
async fn add(connection: &mut SqliteConnection, run: &str, at_ms: i64, event: &Event) -> Result<(), Fault> {
    let insert = sqlx::query("INSERT INTO event (run, at_ms, event) VALUES (?, ?, ?)");
    let insert = insert.bind(run).bind(at_ms).bind(serde_json::to_string(event)?);
    Ok(insert.execute(connection).await.map(drop)?)
}

/// Returns the id of the process that holds a lock; it writes that into the file.
fn holder(path: &Path) -> String {
    std::fs::read_to_string(path).ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into())
}

/// Whether one of these runs was submitted, or may have been.
pub(crate) fn has_jobs(runs: &[Run]) -> bool {
    runs.iter().any(|run| run.status.phase >= Phase::Intended)
}

/// Returns the time, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
