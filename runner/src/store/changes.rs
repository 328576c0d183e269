//! The log of changes to the store, by any program or server, for the event stream.

use super::{Store, StoreError, now, time};
use jiff::{SignedDuration, Timestamp};
use sqlx::{Any, Transaction};
use trainplan_shared::api::EventKind;

/// How long changes are kept. A watcher who was away for longer fetches the lists again.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// A change to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The sequence number.
    pub(crate) seq: i64,
    /// What happened.
    pub(crate) kind: EventKind,
    /// The run's id.
    pub(crate) id: String,
}

impl Store {
    /// The most changes that [`Store::changes`] returns.
    pub(crate) const MOST_CHANGES: usize = 1000;

    /// Returns the changes after a sequence number, in order, and the last `overlap` before it. PostgreSQL
    /// may show a later change before an earlier one whose transaction is not committed yet; reading some
    /// again finds those.
    pub(crate) async fn changes(&self, after: i64, overlap: i64) -> Result<Vec<Change>, StoreError> {
        let rows: Result<Vec<(i64, String, String)>, _> =
            sqlx::query_as("SELECT seq, kind, id FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2")
                .bind(after.saturating_sub(overlap))
                .bind(Self::MOST_CHANGES as i64)
                .fetch_all(&self.database.readers)
                .await;
        let change = |(seq, kind, id): (i64, String, String)| {
            // A newer program may record kinds that this one does not know: watchers then fetch the lists
            // again.
            Change { seq, kind: EventKind::from_id(&kind).unwrap_or(EventKind::Again), id }
        };
        Ok(rows.map_err(|error| self.failed(error))?.into_iter().map(change).collect())
    }

    /// Returns the newest sequence number; 0 if nothing ever changed.
    pub(crate) async fn newest_change(&self) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM changes")
            .fetch_one(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Deletes old changes.
    pub(super) async fn forget_changes(&self) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        // The newest one stays, so that sequence numbers keep growing.
        let delete = "DELETE FROM changes WHERE at < $1 AND seq < (SELECT max(seq) FROM changes)";
        let delete = sqlx::query(delete).bind(time(Timestamp::now() - KEPT)).execute(&mut *writing).await;
        delete.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Records a change to a run, as a part of the transaction that makes it.
    pub(super) async fn change(
        &self,
        writing: &mut Transaction<'static, Any>,
        kind: EventKind,
        id: &str,
    ) -> Result<(), StoreError> {
        let insert = sqlx::query("INSERT INTO changes (at, kind, id) VALUES ($1, $2, $3)");
        let inserted = insert.bind(now()).bind(kind.id()).bind(id).execute(&mut **writing).await;
        inserted.map(|_| ()).map_err(|error| self.failed(error))
    }
}
