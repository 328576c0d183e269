//! The database's tables, brought from whatever version they are of to the newest one.

use super::database::Kind;
use sqlx::{Any, AnyPool, Executor, Transaction};

/// The steps from each version to the next; a database without any is of version 0. A step that was released never
/// changes: what it lacks is another step.
const STEPS: [&str; 2] = [include_str!("0001_runs.sql"), include_str!("0002_server.sql")];

/// The version that this program works with.
pub(super) const NEWEST: usize = STEPS.len();

/// Why the tables can't be used.
#[derive(Debug)]
pub(super) enum MigrationError {
    /// A newer program made them, of this version.
    Newer(i64),
    /// The database failed.
    Database(sqlx::Error),
}

impl From<sqlx::Error> for MigrationError {
    fn from(error: sqlx::Error) -> MigrationError {
        MigrationError::Database(error)
    }
}

/// Takes all missing steps, or none of them if one fails.
pub(super) async fn migrate(pool: &AnyPool, kind: Kind) -> Result<(), MigrationError> {
    let mut writing = pool.begin_with(kind.begin()).await?;
    if kind == Kind::Postgres {
        // Another server may start now too. The number means nothing but us.
        writing.execute("SELECT pg_advisory_xact_lock(7274696169)").await?;
        let table = "CREATE TABLE IF NOT EXISTS store_version (version BIGINT NOT NULL)";
        writing.execute(table).await?;
    }
    let version = version(&mut writing, kind).await?;
    let steps = usize::try_from(version).ok().and_then(|done| STEPS.get(done..));
    let steps = steps.ok_or(MigrationError::Newer(version))?;
    if steps.is_empty() {
        return Ok(());
    }
    for step in steps {
        let step = kind.speak(step);
        writing.execute(step.as_str()).await?;
    }
    let done = match kind {
        Kind::Sqlite => format!("PRAGMA user_version = {NEWEST}"),
        Kind::Postgres => {
            format!("DELETE FROM store_version; INSERT INTO store_version VALUES ({NEWEST})")
        }
    };
    writing.execute(done.as_str()).await?;
    Ok(writing.commit().await?)
}

async fn version(writing: &mut Transaction<'_, Any>, kind: Kind) -> sqlx::Result<i64> {
    let select = match kind {
        Kind::Sqlite => "SELECT user_version FROM pragma_user_version",
        Kind::Postgres => "SELECT coalesce(max(version), 0) FROM store_version",
    };
    sqlx::query_scalar(select).fetch_one(&mut **writing).await
}
