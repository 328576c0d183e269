//! Runs that were slower than they should have been, and whom to tell of them.

use super::{ChangeKind, Store, StoreError, now, time};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// Who does not take an alert after so many tries is not told of it.
const TRIES: i64 = 12;

/// An alert as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct KeptAlert {
    /// Its name.
    pub(crate) id: String,
    /// When the store found it.
    pub(crate) at: String,
    /// The run.
    pub(crate) run: String,
    /// By which rule.
    pub(crate) kind: String,
    /// What it says, as JSON.
    pub(crate) body: String,
}

/// An alert that an address is to be told of.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Delivery {
    /// The alert.
    pub(crate) alert: String,
    /// The address.
    pub(crate) url: String,
    /// How often it was tried before.
    pub(crate) tries: i64,
    /// What to tell, as JSON.
    pub(crate) body: String,
}

impl Store {
    /// Runs that are news and were not judged yet, in the order in which they came; at most so many.
    pub(crate) async fn unjudged(&self) -> Result<Vec<Uuid>, StoreError> {
        let select = "SELECT runs.id FROM unjudged JOIN runs ON runs.id = unjudged.id \
            ORDER BY received_at, runs.id LIMIT 100";
        let ids: Vec<String> = sqlx::query_scalar(select)
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Notes that these runs were judged.
    pub(crate) async fn judged(&self, runs: &[Uuid]) -> Result<(), StoreError> {
        if runs.is_empty() {
            return Ok(());
        }
        let mut writing = self.database.write().await?;
        for run in runs {
            let delete = sqlx::query("DELETE FROM unjudged WHERE id = $1").bind(run.to_string());
            delete.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await
    }

    /// Keeps an alert, to be told to addresses, unless the run has one of this kind already.
    pub(crate) async fn alert(
        &self,
        run: Uuid,
        kind: &str,
        body: &str,
        urls: &[String],
    ) -> Result<(), StoreError> {
        let id = Uuid::now_v7().to_string();
        let at = now();
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO alerts (id, at, run, kind, body) \
            SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM runs WHERE id = $6) ON CONFLICT DO NOTHING";
        let insert = sqlx::query(insert).bind(&id).bind(&at).bind(run.to_string()).bind(kind).bind(body);
        let inserted = insert.bind(run.to_string()).execute(&mut *writing).await;
        if inserted.map_err(|error| self.failed(error))?.rows_affected() == 0 {
            return Ok(());
        }
        for url in urls {
            let insert = sqlx::query("INSERT INTO deliveries (alert, url, due) VALUES ($1, $2, $3)");
            let inserted = insert.bind(&id).bind(url).bind(&at).execute(&mut *writing).await;
            inserted.map_err(|error| self.failed(error))?;
        }
        self.change(&mut writing, ChangeKind::Alert, &run.to_string()).await?;
        self.commit(writing).await
    }

    /// Whether a run has an alert of a kind.
    pub(crate) async fn has_alert(&self, run: &str, kind: &str) -> Result<bool, StoreError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM alerts WHERE run = $1 AND kind = $2")
            .bind(run)
            .bind(kind)
            .fetch_one(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(count > 0)
    }

    /// The newest alerts.
    pub(crate) async fn alerts(&self, limit: u32) -> Result<Vec<KeptAlert>, StoreError> {
        sqlx::query_as("SELECT id, at, run, kind, body FROM alerts ORDER BY at DESC, id DESC LIMIT $1")
            .bind(i64::from(limit))
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// What is to be told now. Each is put off for a while at once, so that no other server tells it too, and so that it
    /// is tried again, ever later, unless [`Store::delivered`] says that it arrived.
    pub(crate) async fn due_deliveries(&self) -> Result<Vec<Delivery>, StoreError> {
        let now = Timestamp::now();
        let mut writing = self.database.write().await?;
        let locked = match self.database.kind {
            super::database::Kind::Sqlite => "",
            super::database::Kind::Postgres => " FOR UPDATE OF deliveries SKIP LOCKED",
        };
        let select = format!(
            "SELECT alert, url, tries, body FROM deliveries JOIN alerts ON alerts.id = alert WHERE due <= $1 LIMIT 20{locked}"
        );
        let due: Vec<Delivery> = sqlx::query_as(&select)
            .bind(time(now))
            .fetch_all(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        for delivery in &due {
            let later = SignedDuration::from_secs(30 << delivery.tries.clamp(0, 10));
            let again = if delivery.tries + 1 >= TRIES {
                "DELETE FROM deliveries WHERE alert = $1 AND url = $2 AND $3 IS NOT NULL"
            } else {
                "UPDATE deliveries SET tries = tries + 1, due = $3 WHERE alert = $1 AND url = $2"
            };
            let put_off =
                sqlx::query(again).bind(&delivery.alert).bind(&delivery.url).bind(time(now + later));
            put_off.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        }
        self.commit(writing).await?;
        Ok(due)
    }

    /// Notes that an address took an alert.
    pub(crate) async fn delivered(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        let delete = sqlx::query("DELETE FROM deliveries WHERE alert = $1 AND url = $2");
        let deleted = delete.bind(&delivery.alert).bind(&delivery.url).execute(&mut *writing).await;
        deleted.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }
}
