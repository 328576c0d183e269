//! Alerts about slow runs, and their deliveries to webhooks.

use super::{Store, StoreError, now, time};
use crate::migrations::Engine;
use jiff::{SignedDuration, Timestamp};
use trainplan_shared::api::{AlertMessage, AlertRecord, EventKind};
use trainplan_shared::history::ThresholdKind;
use uuid::Uuid;

/// The number of attempts to deliver an alert to one address.
const ATTEMPTS: i64 = 12;

/// A delivery that is due.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Delivery {
    /// The alert's id.
    pub(crate) alert: String,
    /// The address to deliver to.
    pub(crate) url: String,
    /// The number of earlier attempts.
    pub(crate) tries: i64,
    /// The alert's message, as JSON.
    pub(crate) body: String,
}

impl Store {
    /// Returns at most 100 runs that are yet to be judged, in the order in which they were received.
    pub(crate) async fn unjudged(&self) -> Result<Vec<Uuid>, StoreError> {
        let select = "SELECT runs.id FROM unjudged JOIN runs ON runs.id = unjudged.id \
            ORDER BY received_at, runs.id LIMIT 100";
        let ids: Vec<String> = sqlx::query_scalar(select)
            .fetch_all(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
    }

    /// Records that these runs were judged.
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

    /// Stores an alert and its deliveries to these addresses, unless the run has an alert of this kind.
    pub(crate) async fn alert(
        &self,
        run: Uuid,
        message: &AlertMessage,
        urls: &[String],
    ) -> Result<(), StoreError> {
        let body = self.json(message)?;
        let id = Uuid::now_v7().to_string();
        let at = now();
        let mut writing = self.database.write().await?;
        let insert = "INSERT INTO alerts (id, at, run, kind, body) \
            SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM runs WHERE id = $6) ON CONFLICT DO NOTHING";
        let insert =
            sqlx::query(insert).bind(&id).bind(&at).bind(run.to_string()).bind(message.kind.id()).bind(body);
        let inserted = insert.bind(run.to_string()).execute(&mut *writing).await;
        if inserted.map_err(|error| self.failed(error))?.rows_affected() == 0 {
            return Ok(());
        }
        for url in urls {
            let insert = sqlx::query("INSERT INTO deliveries (alert, url, due) VALUES ($1, $2, $3)");
            let inserted = insert.bind(&id).bind(url).bind(&at).execute(&mut *writing).await;
            inserted.map_err(|error| self.failed(error))?;
        }
        self.change(&mut writing, EventKind::Alert, &run.to_string()).await?;
        self.commit(writing).await
    }

    /// Returns whether a run has an alert of this kind.
    pub(crate) async fn has_alert(&self, run: &str, kind: &str) -> Result<bool, StoreError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM alerts WHERE run = $1 AND kind = $2")
            .bind(run)
            .bind(kind)
            .fetch_one(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(count > 0)
    }

    /// Returns the newest alerts, newest first.
    pub(crate) async fn alerts(&self, limit: u32) -> Result<Vec<AlertRecord>, StoreError> {
        #[derive(sqlx::FromRow)]
        struct AlertRow {
            id: String,
            at: String,
            run: String,
            kind: String,
            body: String,
        }
        let rows: Vec<AlertRow> =
            sqlx::query_as("SELECT id, at, run, kind, body FROM alerts ORDER BY at DESC, id DESC LIMIT $1")
                .bind(i64::from(limit))
                .fetch_all(&self.database.readers)
                .await
                .map_err(|error| self.failed(error))?;
        let record = |AlertRow { id, at, run, kind, body }| AlertRecord {
            id,
            at,
            run,
            kind: ThresholdKind::ALL.into_iter().find(|known| known.id() == kind),
            alert: serde_json::from_str(&body).ok(),
        };
        Ok(rows.into_iter().map(record).collect())
    }

    /// Returns the deliveries to an address that are due, oldest first, and postpones each in the same transaction: no other server
    /// attempts it too, and it is due again, at growing intervals, until [`Store::delivered`] removes it.
    pub(crate) async fn due_deliveries(&self, url: &str) -> Result<Vec<Delivery>, StoreError> {
        let now = Timestamp::now();
        let mut writing = self.database.write().await?;
        let locked = match self.database.engine {
            Engine::Sqlite => "",
            Engine::Postgres => " FOR UPDATE OF deliveries SKIP LOCKED",
        };
        let select = format!(
            "SELECT alert, url, tries, body FROM deliveries JOIN alerts ON alerts.id = alert \
            WHERE due <= $1 AND url = $2 ORDER BY due, alert LIMIT 20{locked}"
        );
        let due: Vec<Delivery> = sqlx::query_as(&select)
            .bind(time(now))
            .bind(url)
            .fetch_all(&mut *writing)
            .await
            .map_err(|error| self.failed(error))?;
        for delivery in &due {
            let later = SignedDuration::from_secs(30 << delivery.tries.clamp(0, 10));
            let again = if delivery.tries + 1 >= ATTEMPTS {
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

    /// Removes a delivery that succeeded.
    pub(crate) async fn delivered(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        let delete = sqlx::query("DELETE FROM deliveries WHERE alert = $1 AND url = $2");
        let deleted = delete.bind(&delivery.alert).bind(&delivery.url).execute(&mut *writing).await;
        deleted.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }
}
