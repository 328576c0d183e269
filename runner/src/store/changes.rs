//! What happened in the store, in order, for whoever watches: also what other programs and servers did.

use super::{Store, StoreError, now, time};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sqlx::{Any, Transaction};

/// Who was away for longer asks for the list again.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// A run came in, got its log, or was scored again.
    Run,
    /// A run that is not over said where it is.
    Progress,
    /// A run was deleted.
    Deleted,
    /// A run was slower than it should be.
    Alert,
}

impl Kind {
    /// Its name.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Kind::Run => "run",
            Kind::Progress => "progress",
            Kind::Deleted => "deleted",
            Kind::Alert => "alert",
        }
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Change {
    /// Its place in the order.
    pub(crate) seq: i64,
    /// What it is: the id of a [`Kind`].
    pub(crate) kind: String,
    /// The run.
    pub(crate) id: String,
}

impl Store {
    /// No reading of changes gives more.
    pub(crate) const MOST_CHANGES: usize = 1000;

    /// What happened after a place in the order. PostgreSQL may show a later change before an earlier one that is still
    /// being written: `overlap` of them are read again, and whoever asks knows which ones are new.
    pub(crate) async fn changes(&self, after: i64, overlap: i64) -> Result<Vec<Change>, StoreError> {
        sqlx::query_as("SELECT seq, kind, id FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2")
            .bind(after.saturating_sub(overlap))
            .bind(Self::MOST_CHANGES as i64)
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// The newest change's place.
    pub(crate) async fn newest_change(&self) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM changes")
            .fetch_one(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Forgets what happened long ago.
    pub(super) async fn forget_changes(&self) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        // The newest stays, so that the order goes on behind it.
        let delete = "DELETE FROM changes WHERE at < $1 AND seq < (SELECT max(seq) FROM changes)";
        let delete = sqlx::query(delete).bind(time(Timestamp::now() - KEPT)).execute(&mut *writing).await;
        delete.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    pub(super) async fn change(
        &self,
        writing: &mut Transaction<'static, Any>,
        kind: Kind,
        id: &str,
    ) -> Result<(), StoreError> {
        let insert = sqlx::query("INSERT INTO changes (at, kind, id) VALUES ($1, $2, $3)");
        let inserted = insert.bind(now()).bind(kind.id()).bind(id).execute(&mut **writing).await;
        inserted.map(|_| ()).map_err(|error| self.failed(error))
    }
}
