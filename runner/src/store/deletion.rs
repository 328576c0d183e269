//! Deletes runs. A deleted run does not come back with the next upload of its folder, until it is restored.

use super::blobs::LogHash;
use super::database::Typed;
use super::{Store, StoreError, now};
use sqlx::{Any, Transaction};
use trainplan_shared::api::EventKind;
use uuid::Uuid;

const DELETED_AT: &str = "SELECT deleted_at FROM deletions WHERE id = $1";

impl Store {
    /// Deletes a run with everything that belongs to it, and its log unless another run has the same. Returns
    /// whether the run was stored.
    pub(crate) async fn delete(&self, id: Uuid) -> Result<bool, StoreError> {
        let failed = |error| self.failed(error);
        let text = id.to_string();
        // A run whose row is lost may have the same log.
        self.restore_runs().await?;
        let mut writing = self.database.write().await?;
        self.exchange_rows(&mut writing, id).await?;
        let claims = self.claims(&mut *writing, id).await?;
        // The log may arrive in this moment. The database also deletes the rows that refer to the run's.
        let delete = sqlx::query_scalar("DELETE FROM runs WHERE id = $1 RETURNING log_sha256").bind(&text);
        let log: Option<Typed<LogHash>> = delete.fetch_optional(&mut *writing).await.map_err(failed)?;
        let Some(Typed(log)) = log else {
            // It may be unfinished, or have ended without a result. Its result is accepted all the same.
            let deleted =
                sqlx::query("DELETE FROM progress WHERE id = $1").bind(&text).execute(&mut *writing);
            let was_live = deleted.await.map_err(failed)?.rows_affected() > 0;
            if was_live {
                self.change(&mut writing, EventKind::Progress, &text).await?;
            }
            // Damaged files whose row is lost.
            let mut was_lost = false;
            for delete in ["DELETE FROM results WHERE id = $1", "DELETE FROM scores WHERE id = $1"] {
                let deleted = sqlx::query(delete).bind(&text).execute(&mut *writing).await;
                was_lost |= deleted.map_err(failed)?.rows_affected() > 0;
            }
            self.commit(writing).await?;
            return Ok(was_live || was_lost);
        };
        let insert = "INSERT INTO deletions (id, deleted_at) VALUES ($1, $2) \
            ON CONFLICT (id) DO UPDATE SET deleted_at = excluded.deleted_at";
        sqlx::query(insert).bind(&text).bind(now()).execute(&mut *writing).await.map_err(failed)?;
        self.unshare(&mut writing, &text).await?;
        self.change(&mut writing, EventKind::Deleted, &text).await?;
        self.commit(writing).await?;
        self.arriving(id).await?.clear().await?;
        if let Some(sha256) = log
            // Another run, whose row names no log, may have this one. [`Store::sweep`] finds out.
            && !claims.is_some_and(|claims| claims.disown(id, &sha256))
        {
            self.drop_log(&sha256).await?;
        }
        Ok(true)
    }

    /// Returns whether files of a run are stored, even if its row is lost.
    pub(crate) async fn has_remains(&self, id: Uuid) -> Result<bool, StoreError> {
        let select = "SELECT (SELECT count(*) FROM results WHERE id = $1) + (SELECT count(*) FROM scores WHERE id = $1)";
        let count = sqlx::query_scalar(select).bind(id.to_string()).fetch_one(&self.database.readers).await;
        let count: i64 = count.map_err(|error| self.failed(error))?;
        Ok(count > 0)
    }

    /// Lets a deleted run be stored again. Returns whether it was deleted.
    pub(crate) async fn restore(&self, id: Uuid) -> Result<bool, StoreError> {
        let mut writing = self.database.write().await?;
        let restore = sqlx::query("DELETE FROM deletions WHERE id = $1").bind(id.to_string());
        let restored = restore.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(restored.rows_affected() > 0)
    }

    /// Returns the deleted runs whose ids begin or end with these digits, at most two.
    pub(crate) async fn deleted(&self, digits: &str) -> Result<Vec<Uuid>, StoreError> {
        self.ids_of("deletions", digits).await
    }

    /// Refuses a run that was deleted, within a transaction that stores it.
    pub(super) async fn check_deletion(
        &self,
        writing: &mut Transaction<'static, Any>,
        id: Uuid,
    ) -> Result<(), StoreError> {
        let at = sqlx::query_scalar(DELETED_AT).bind(id.to_string()).fetch_optional(&mut **writing).await;
        self.judge_deletion(id, at)
    }

    /// Refuses a run that was deleted.
    ///
    /// # Errors
    /// [`StoreError::Deleted`] if it was.
    pub(crate) async fn refuse_deleted(&self, id: Uuid) -> Result<(), StoreError> {
        let at = sqlx::query_scalar(DELETED_AT).bind(id.to_string());
        self.judge_deletion(id, at.fetch_optional(&self.database.readers).await)
    }

    /// Returns whether a run was deleted, and not stored again since then.
    pub(super) async fn is_deleted(&self, id: Uuid) -> Result<bool, StoreError> {
        match self.refuse_deleted(id).await {
            Ok(()) => Ok(false),
            Err(StoreError::Deleted { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn judge_deletion(&self, id: Uuid, at: sqlx::Result<Option<String>>) -> Result<(), StoreError> {
        match at.map_err(|error| self.failed(error))? {
            Some(at) => Err(StoreError::Deleted { id, at }),
            None => Ok(()),
        }
    }
}
