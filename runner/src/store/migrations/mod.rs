//! The database's tables, brought from whatever version they are of to the newest one.

use sqlx::{Executor, SqlitePool};

/// The steps from each version to the next; a database without any is of version 0. A step that was released never
/// changes: what it lacks is another step.
const STEPS: [&str; 1] = [include_str!("0001_runs.sql")];

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
pub(super) async fn migrate(pool: &SqlitePool) -> Result<(), MigrationError> {
    // Most often there is nothing to do, and so nothing to wait for.
    let version = sqlx::query_scalar(VERSION).fetch_one(pool).await?;
    if missing(version)?.is_empty() {
        return Ok(());
    }
    let mut writing = pool.begin_with("BEGIN IMMEDIATE").await?;
    // Another program may have taken them meanwhile.
    let version = sqlx::query_scalar(VERSION).fetch_one(&mut *writing).await?;
    for step in missing(version)? {
        writing.execute(*step).await?;
    }
    writing.execute(format!("PRAGMA user_version = {NEWEST}").as_str()).await?;
    Ok(writing.commit().await?)
}

const VERSION: &str = "PRAGMA user_version";

fn missing(version: i64) -> Result<&'static [&'static str], MigrationError> {
    let steps = usize::try_from(version).ok().and_then(|done| STEPS.get(done..));
    steps.ok_or(MigrationError::Newer(version))
}
