//! What is to be sent to a server: entered with the event that its result is kept, and settled once.

use super::{Event, Journal, JournalError, Lock, Plan};
use crate::data::make_private;
use sqlx::Row as _;
use std::fs::{File, TryLockError};
use trainplan_shared::campaign::Upload;

/// A result that is to be sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Due {
    /// The run's id.
    pub(crate) run: String,
    pub(crate) campaign: String,
    /// Its name, with the repeat where there are several.
    pub(crate) title: String,
    pub(crate) upload: Upload,
}

impl Journal {
    /// What is to be sent, the oldest first.
    pub(crate) async fn due(&self) -> Result<Vec<Due>, JournalError> {
        let rows = sqlx::query(
            "SELECT run.id, run.plan, round.campaign FROM outbox JOIN run ON run.id = outbox.run \
             JOIN round ON round.id = run.round WHERE settled_ms IS NULL ORDER BY since_ms, run.id",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(|e| self.error(e))?;
        let mut due = Vec::with_capacity(rows.len());
        for row in rows {
            let plan: String = row.try_get(1).map_err(|e| self.error(e))?;
            let plan: Plan = serde_json::from_str(&plan).map_err(|e| self.damaged(&e))?;
            let title = plan.title();
            let Some(upload) = plan.upload else { continue };
            let run = row.try_get(0).map_err(|e| self.error(e))?;
            let campaign = row.try_get(2).map_err(|e| self.error(e))?;
            due.push(Due { run, campaign, title, upload });
        }
        Ok(due)
    }

    /// Settles what is due, with the event that says how; once, whoever else does: says whether this was it.
    pub(crate) async fn settle(&self, run: &str, at_ms: i64, event: &Event) -> Result<bool, JournalError> {
        let change =
            sqlx::query("UPDATE outbox SET settled_ms = ?, why = NULL WHERE run = ? AND settled_ms IS NULL");
        self.change_outbox(change.bind(at_ms).bind(run), run, at_ms, event).await
    }

    /// Writes down why it could not be sent, with the event that says so; only where that is news, which it says.
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
        change: super::Query<'q, super::Sqlite, super::SqliteArguments<'q>>,
        run: &str,
        at_ms: i64,
        event: &Event,
    ) -> Result<bool, JournalError> {
        let mut transaction = self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(|e| self.error(e))?;
        let changed = change.execute(&mut *transaction).await.map_err(|e| self.error(e))?;
        if changed.rows_affected() == 0 {
            return Ok(false);
        }
        self.add(&mut transaction, run, at_ms, event).await?;
        transaction.commit().await.map_err(|e| self.error(e))?;
        Ok(true)
    }

    /// Takes the outbox for this process, unless another one is sending what is in it.
    pub(crate) fn lock_outbox(&self) -> Result<Option<Lock>, JournalError> {
        let path = self.folder.join("locks").join("outbox.lock");
        let of = |error| JournalError::File { path: path.clone(), error };
        make_private(&self.folder.join("locks")).map_err(of)?;
        let file =
            File::options().create(true).truncate(false).read(true).write(true).open(&path).map_err(of)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(of(error)),
        }
    }
}
