//! Brings the tables of a database up to date: of the results store and of the journal.

use sqlx::error::DatabaseError;
use sqlx::{ColumnIndex, Database, Decode, Executor, IntoArguments, Pool, Transaction, Type};
use std::time::{Duration, Instant};

/// The time to wait while another program has an SQLite file locked.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Sqlite,
    Postgres,
}

impl Engine {
    /// Returns the statement that starts a transaction that writes. SQLite's takes the write lock at once;
    /// otherwise, the file could be locked between the first read and the first write.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            Engine::Sqlite => "BEGIN IMMEDIATE",
            Engine::Postgres => "BEGIN",
        }
    }

    /// Returns a migration with the engine's names for the types BLOB and SEQUENCE.
    fn translate(self, sql: &str) -> String {
        let (blob, sequence) = match self {
            Engine::Sqlite => ("BLOB", "INTEGER PRIMARY KEY AUTOINCREMENT"),
            Engine::Postgres => ("BYTEA", "BIGSERIAL PRIMARY KEY"),
        };
        sql.replace(" BLOB ", &format!(" {blob} ")).replace(" SEQUENCE,", &format!(" {sequence},"))
    }

    /// Returns whether an error means that another program has the SQLite file locked, or a row or table of PostgreSQL.
    pub(crate) fn is_locked(self, error: &sqlx::Error) -> bool {
        let Some(code) = error.as_database_error().and_then(DatabaseError::code) else { return false };
        match self {
            // SQLITE_BUSY and SQLITE_LOCKED. The upper bytes of an extended code give the reason.
            Engine::Sqlite => code.parse::<u32>().is_ok_and(|code| matches!(code & 0xff, 5 | 6)),
            // lock_not_available.
            Engine::Postgres => code == "55P03",
        }
    }
}

/// Why the tables can't be brought up to date.
#[derive(Debug)]
pub(crate) enum MigrationError {
    /// A newer program made them; this is their version.
    Newer(i64),
    /// The database failed.
    Database(sqlx::Error),
}

impl From<sqlx::Error> for MigrationError {
    fn from(error: sqlx::Error) -> MigrationError {
        MigrationError::Database(error)
    }
}

/// Applies all steps that a database lacks, or none if one fails. A step that was released never changes; its
/// effect is corrected by a later step. The version of a database is the number of its steps.
pub(crate) async fn migrate<D>(pool: &Pool<D>, engine: Engine, steps: &[&str]) -> Result<(), MigrationError>
where
    D: Database,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    for<'q> D::Arguments<'q>: IntoArguments<'q, D>,
    for<'r> i64: Type<D> + Decode<'r, D>,
    usize: ColumnIndex<D::Row>,
{
    let mut writing = pool.begin_with(engine.begin()).await?;
    if engine == Engine::Postgres {
        // Other servers may start at the same time. The number is arbitrary.
        execute(&mut writing, "SELECT pg_advisory_xact_lock(7274696169)").await?;
        execute(&mut writing, "CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)").await?;
    }
    let select = match engine {
        Engine::Sqlite => "SELECT user_version FROM pragma_user_version",
        Engine::Postgres => "SELECT coalesce(max(version), 0) FROM store_version",
    };
    let version: i64 = sqlx::query_scalar(select).fetch_one(&mut *writing).await?;
    let missing = usize::try_from(version).ok().and_then(|done| steps.get(done..));
    let missing = missing.ok_or(MigrationError::Newer(version))?;
    if missing.is_empty() {
        return Ok(());
    }
    for step in missing {
        execute(&mut writing, &engine.translate(step)).await?;
    }
    let newest = steps.len();
    let done = match engine {
        Engine::Sqlite => format!("PRAGMA user_version = {newest}"),
        Engine::Postgres => format!("DELETE FROM store_version; INSERT INTO store_version VALUES ({newest})"),
    };
    execute(&mut writing, &done).await?;
    Ok(writing.commit().await?)
}

async fn execute<D>(writing: &mut Transaction<'_, D>, sql: &str) -> sqlx::Result<()>
where
    D: Database,
    for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
{
    (&mut **writing).execute(sql).await.map(|_| ())
}

/// Repeats work while another program has the SQLite file locked. When several programs create a file at
/// once, SQLite reports the lock immediately instead of waiting, because changing the journal mode ignores
/// its busy timeout.
pub(crate) async fn retry_locked<T, F: Future<Output = Result<T, MigrationError>>>(
    engine: Engine,
    work: impl Fn() -> F,
) -> Result<T, MigrationError> {
    let begun = Instant::now();
    loop {
        match work().await {
            Err(MigrationError::Database(error))
                if engine.is_locked(&error) && begun.elapsed() < PATIENCE =>
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}
