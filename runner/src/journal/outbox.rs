//! Results to upload: added when a result is stored, and removed once a server has it or rejects it.

use super::{Event, Journal, JournalError, Plan, add};
use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Row as _, Sqlite};
use trainplan_shared::campaign::Upload;

/// A result to upload.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingUpload {
    /// The run's id.
    pub(crate) run: String,
    pub(crate) campaign: String,
    /// Its name, with the repeat if there are several.
    pub(crate) title: String,
    pub(crate) upload: Upload,
}

impl Journal {
    /// Returns the results to upload, oldest first.
    pub(crate) async fn due(&self) -> Result<Vec<PendingUpload>, JournalError> {
        self.located(async {
            let rows = sqlx::query(
                "SELECT run.id, run.plan, round.campaign FROM outbox JOIN run ON run.id = outbox.run \
                 JOIN round ON round.id = run.round WHERE settled_ms IS NULL ORDER BY since_ms, run.id",
            )
            .fetch_all(&self.pool)
            .await?;
            let mut due = Vec::with_capacity(rows.len());
            for row in rows {
                let plan: Plan = serde_json::from_str(row.try_get(1)?)?;
                let title = plan.title();
                let Some(upload) = plan.upload else { continue };
                due.push(PendingUpload { run: row.try_get(0)?, campaign: row.try_get(2)?, title, upload });
            }
            Ok(due)
        })
        .await
    }

    /// Removes a result from the outbox and writes why. Returns whether it was still there.
    pub(crate) async fn settle(&self, run: &str, at_ms: i64, event: &Event) -> Result<bool, JournalError> {
        let change =
            sqlx::query("UPDATE outbox SET settled_ms = ?, why = NULL WHERE run = ? AND settled_ms IS NULL");
        self.change_outbox(change.bind(at_ms).bind(run), run, at_ms, event).await
    }

    /// Writes why a result could not be uploaded yet. Returns whether the reason is new; otherwise nothing is
    /// written.
    pub(crate) async fn put_off(
        &self,
        run: &str,
        at_ms: i64,
        why: &str,
        event: &Event,
    ) -> Result<bool, JournalError> {
        let change =
            sqlx::query("UPDATE outbox SET why = ? WHERE run = ? AND settled_ms IS NULL AND why IS NOT ?");
        self.change_outbox(change.bind(why).bind(run).bind(why), run, at_ms, event).await
    }

    async fn change_outbox<'q>(
        &self,
        change: Query<'q, Sqlite, SqliteArguments<'q>>,
        run: &str,
        at_ms: i64,
        event: &Event,
    ) -> Result<bool, JournalError> {
        self.located(async {
            let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await?;
            if change.execute(&mut *transaction).await?.rows_affected() == 0 {
                return Ok(false);
            }
            add(&mut transaction, run, at_ms, event).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }
}
