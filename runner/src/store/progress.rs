//! Unfinished runs, as their runners report them. A result takes their place.

use super::database::{Typed, warn_left_out};
use super::{PAGE_BYTES, Store, StoreError, now, time};
use futures_util::TryStreamExt;
use jiff::{SignedDuration, Timestamp};
use trainplan_shared::api::{EventKind, RunProgress, UnfinishedRun};
use uuid::Uuid;

/// A run is listed for this long after its last report: a runner that still watches it reports again.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

impl Store {
    /// Stores a run's progress, unless its result is stored or was deleted.
    pub(crate) async fn put_progress(&self, id: Uuid, progress: &RunProgress) -> Result<(), StoreError> {
        let id = id.to_string();
        let body = self.json(progress)?;
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO progress (id, received_at, body) SELECT $1, $2, $3 \
            WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = $4) AND NOT EXISTS (SELECT 1 FROM deletions WHERE id = $5) \
            ON CONFLICT (id) DO UPDATE SET received_at = excluded.received_at, body = excluded.body";
        let insert = sqlx::query(insert).bind(&id).bind(now()).bind(body).bind(&id).bind(&id);
        let inserted = insert.execute(&mut *writing).await;
        if inserted.map_err(|error| self.failed(error))?.rows_affected() > 0 {
            self.change(&mut writing, EventKind::Progress, &id).await?;
        }
        self.commit(writing).await
    }

    /// Deletes the reports that are not listed any more.
    pub(super) async fn forget_progress(&self) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        let delete = sqlx::query("DELETE FROM progress WHERE received_at <= $1");
        let deleted = delete.bind(time(Timestamp::now() - KEPT)).execute(&mut *writing).await;
        deleted.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Returns the runs without a result, the most recently reported first; at most 1000, with at most
    /// [`PAGE_BYTES`].
    pub(crate) async fn unfinished(&self) -> Result<Vec<UnfinishedRun>, StoreError> {
        let mut rows = sqlx::query_as::<_, (Typed<String>, Typed<String>, Typed<String>)>(
            "SELECT id, received_at, body FROM progress WHERE received_at > $1 \
             ORDER BY received_at DESC, id DESC LIMIT 1000",
        )
        .bind(time(Timestamp::now() - KEPT))
        .fetch(&self.database.readers);
        let (mut runs, mut bytes) = (Vec::new(), 0);
        while let Some((id, received_at, body)) = rows.try_next().await.map_err(|error| self.failed(error))? {
            let (Some(id), Some(received_at), Some(body)) = (&id.0, received_at.0, body.0) else {
                warn_left_out("progress", id.0.as_deref());
                continue;
            };
            bytes += body.len();
            if bytes > PAGE_BYTES {
                break;
            }
            if let Ok(progress) = serde_json::from_str::<RunProgress>(&body) {
                runs.push(UnfinishedRun {
                    id: id.clone(),
                    received_at,
                    is_over: progress.state.is_over(),
                    progress,
                });
            }
        }
        Ok(runs)
    }
}
