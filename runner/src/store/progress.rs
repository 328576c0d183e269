//! Where runs are that are not over: said by their runners, shown to whoever watches, and never a result.

use super::{ChangeKind, Store, StoreError, now, time};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// A runner that said nothing for so long has gone, and says so again when it comes back.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// A run that is not over.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Live {
    /// The id that its result will have.
    pub(crate) id: String,
    /// When it was last heard of.
    pub(crate) received_at: String,
    /// What was said, as JSON.
    pub(crate) body: String,
}

impl Store {
    /// Takes what a run says of itself, unless its result is here already.
    pub(crate) async fn progress(&self, id: Uuid, body: &str) -> Result<(), StoreError> {
        let id = id.to_string();
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO progress (id, received_at, body) SELECT $1, $2, $3 \
            WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = $4) \
            ON CONFLICT (id) DO UPDATE SET received_at = excluded.received_at, body = excluded.body";
        let inserted =
            sqlx::query(insert).bind(&id).bind(now()).bind(body).bind(&id).execute(&mut *writing).await;
        if inserted.map_err(|error| self.failed(error))?.rows_affected() > 0 {
            self.change(&mut writing, ChangeKind::Progress, &id).await?;
        }
        self.commit(writing).await
    }

    /// The runs that are not over, the one that was last heard of first.
    pub(crate) async fn live(&self) -> Result<Vec<Live>, StoreError> {
        sqlx::query_as(
            "SELECT id, received_at, body FROM progress WHERE received_at > $1 \
             ORDER BY received_at DESC, id DESC LIMIT 1000",
        )
        .bind(time(Timestamp::now() - KEPT))
        .fetch_all(&self.database.readers)
        .await
        .map_err(|error| self.failed(error))
    }
}
