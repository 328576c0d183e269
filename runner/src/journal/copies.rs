//! How far the logs of jobs are copied to this machine.

use super::{Journal, JournalError};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use std::path::PathBuf;

/// How far a job's log is copied: `kept` bytes of the compressed copy hold the log up to `offset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) job: String,
    pub(crate) path: String,
    pub(crate) inode: u64,
    pub(crate) offset: u64,
    pub(crate) kept: u64,
}

impl Journal {
    /// Returns the folder of the copies of logs.
    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("logs")
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
}
