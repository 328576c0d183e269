//! Alerts about slow runs, and their deliveries to webhooks.

use super::database::{Statement, Typed, warn_left_out};
use super::listing::json_size;
use super::{PAGE_BYTES, Store, StoreError, now, time};
use crate::migrations::Engine;
use futures_util::TryStreamExt;
use jiff::{SignedDuration, Timestamp};
use trainplan_shared::api::{Acknowledgement, AlertMessage, AlertRecord, EventKind};
use trainplan_shared::history::ThresholdKind;
use uuid::Uuid;

/// The number of attempts to deliver an alert to one address.
const ATTEMPTS: i64 = 12;

/// A delivery that is due for this long has no server: a server attempts what is due within seconds.
const FORGOTTEN: SignedDuration = SignedDuration::from_hours(24);

/// A delivery that is due.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Delivery {
    /// The alert's id.
    pub(crate) alert: String,
    /// The address to deliver to.
    pub(crate) url: String,
    /// The number of earlier attempts.
    pub(crate) tries: i64,
    /// The message, as JSON.
    pub(crate) body: String,
}

/// What happens to the acknowledged alerts of a run that is judged again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acknowledged {
    /// They stay, because the run is still of the same log and recipe.
    Kept,
    /// They are deleted, because the run was compared with others.
    Deleted,
}

impl Store {
    /// Returns at most 100 runs to judge: the first received ones, in the order of their start.
    pub(crate) async fn unjudged(&self) -> Result<Vec<Uuid>, StoreError> {
        let select = "SELECT id FROM (SELECT runs.id, ran_at FROM unjudged JOIN runs ON runs.id = unjudged.id \
            ORDER BY received_at, runs.id LIMIT 100) AS due ORDER BY ran_at, id";
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
        let mut delete = Statement::new("DELETE FROM unjudged WHERE id IN (");
        for run in runs {
            delete.bind_item(run.to_string());
        }
        delete.push(")");
        let mut writing = self.database.write().await?;
        let deleted = delete.query().persistent(false).execute(&mut *writing).await;
        deleted.map_err(|error| self.failed(error))?;
        self.commit(writing).await
    }

    /// Returns whether any of these runs was judged.
    pub(crate) async fn is_any_judged(&self, runs: &[String]) -> Result<bool, StoreError> {
        if runs.is_empty() {
            return Ok(false);
        }
        let mut select = Statement::new("SELECT count(*) FROM unjudged WHERE id IN (");
        for run in runs {
            select.bind_item(run.clone());
        }
        select.push(")");
        let count = select.rows::<(i64,)>().persistent(false).fetch_one(&self.database.readers).await;
        let (unjudged,) = count.map_err(|error| self.failed(error))?;
        Ok(usize::try_from(unjudged).is_ok_and(|unjudged| unjudged < runs.len()))
    }

    /// Stores alerts of a run in one transaction, unless the run has an alert of the same kind. If the last one is stored, has a
    /// message about all of them delivered to these addresses.
    pub(crate) async fn alert(
        &self,
        run: Uuid,
        alerts: &[&AlertMessage],
        message: Option<&AlertMessage>,
        urls: &[String],
    ) -> Result<(), StoreError> {
        let failed = |error| self.failed(error);
        let told = message.map(|message| self.json(message)).transpose()?;
        let run = run.to_string();
        let mut writing = self.database.write().await?;
        for (place, alert) in alerts.iter().enumerate() {
            let (id, at, body) = (Uuid::now_v7().to_string(), now(), self.json(alert)?);
            let insert = "INSERT INTO alerts (id, at, run, kind, body) \
                SELECT $1, $2, $3, $4, $5 WHERE EXISTS (SELECT 1 FROM runs WHERE id = $6) ON CONFLICT DO NOTHING";
            let insert = sqlx::query(insert).bind(&id).bind(&at).bind(&run).bind(alert.kind.id()).bind(body);
            let inserted = insert.bind(&run).execute(&mut *writing).await;
            if inserted.map_err(failed)?.rows_affected() == 0 {
                continue;
            }
            if let Some(told) = told.as_ref().filter(|_| place + 1 == alerts.len()) {
                for url in urls {
                    let insert =
                        sqlx::query("INSERT INTO deliveries (alert, url, due, body) VALUES ($1, $2, $3, $4)");
                    let inserted =
                        insert.bind(&id).bind(url).bind(&at).bind(told).execute(&mut *writing).await;
                    inserted.map_err(failed)?;
                }
            }
            self.change(&mut writing, EventKind::Alert, &run).await?;
        }
        self.commit(writing).await
    }

    /// Returns those of these runs that have an alert of this kind.
    pub(crate) async fn with_alert(&self, runs: &[&str], kind: &str) -> Result<Vec<String>, StoreError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let mut select = Statement::new("SELECT run FROM alerts WHERE kind = ");
        select.bind(kind.to_owned()).push(" AND run IN (");
        for run in runs {
            select.bind_item((*run).to_owned());
        }
        select.push(")");
        let found = select.rows::<(String,)>().persistent(false).fetch_all(&self.database.readers).await;
        let found = found.map_err(|error| self.failed(error))?;
        Ok(found.into_iter().map(|(run,)| run).collect())
    }

    /// Returns the newest alerts, or the newest alerts of some runs, newest first: at most `limit`, with at most [`PAGE_BYTES`].
    pub(crate) async fn alerts(
        &self,
        runs: Option<&[Uuid]>,
        limit: u32,
    ) -> Result<Vec<AlertRecord>, StoreError> {
        #[derive(sqlx::FromRow)]
        struct AlertRow {
            id: Typed<String>,
            at: Typed<String>,
            run: Typed<String>,
            kind: Typed<String>,
            body: Typed<String>,
            acknowledged_at: Typed<Option<String>>,
            acknowledged_by: Typed<Option<String>>,
            token_name: Typed<Option<String>>,
            reason: Typed<Option<String>>,
        }
        if runs.is_some_and(<[Uuid]>::is_empty) {
            return Ok(Vec::new());
        }
        let mut select = Statement::new(
            "SELECT id, at, run, kind, body, acknowledged_at, acknowledged_by, reason, \
            (SELECT name FROM tokens WHERE tokens.id = acknowledged_by) AS token_name FROM alerts",
        );
        if let Some(runs) = runs {
            select.push(" WHERE run IN (");
            for run in runs {
                select.bind_item(run.to_string());
            }
            select.push(")");
        }
        select.push(" ORDER BY at DESC, id DESC LIMIT ").bind(i64::from(limit));
        // Statements with different numbers of ids would displace all others that a connection keeps.
        let mut rows = select.rows::<AlertRow>().persistent(runs.is_none()).fetch(&self.database.readers);
        let record = |row: AlertRow| {
            let (kind, body) = (row.kind.0?, row.body.0?);
            let (by, reason) = (row.acknowledged_by.0?, row.reason.0?);
            // Without a readable name, the id remains.
            let name = row.token_name.0.flatten();
            let alert = AlertRecord {
                id: row.id.0?,
                at: row.at.0?,
                run: row.run.0?,
                kind: ThresholdKind::ALL.into_iter().find(|known| known.id() == kind),
                alert: serde_json::from_str(&body).ok(),
                acknowledged: row.acknowledged_at.0?.map(|at| Acknowledgement {
                    at,
                    by: by.unwrap_or_default(),
                    name,
                    reason: reason.unwrap_or_default(),
                }),
            };
            let reason =
                alert.acknowledged.as_ref().map_or(0, |acknowledged| json_size(&acknowledged.reason));
            Some((alert, body.len() + reason))
        };
        let (mut alerts, mut bytes) = (Vec::new(), 0);
        while let Some(row) = rows.try_next().await.map_err(|error| self.failed(error))? {
            let id = row.id.0.clone();
            let Some((alert, size)) = record(row) else {
                warn_left_out("alerts", id.as_deref());
                continue;
            };
            bytes += size;
            if bytes > PAGE_BYTES {
                break;
            }
            alerts.push(alert);
        }
        Ok(alerts)
    }

    /// Records who acknowledges the alerts of a run and why, or, with none, removes the acknowledgement. Returns
    /// whether the run has alerts.
    pub(crate) async fn acknowledge(&self, run: Uuid, by: Option<(&str, &str)>) -> Result<bool, StoreError> {
        let (by, reason) = by.unzip();
        let mut writing = self.database.write().await?;
        let update =
            "UPDATE alerts SET acknowledged_at = $2, acknowledged_by = $3, reason = $4 WHERE run = $1";
        let update = sqlx::query(update).bind(run.to_string()).bind(by.map(|_| now())).bind(by).bind(reason);
        let updated = update.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
        let has_alerts = updated.rows_affected() > 0;
        if has_alerts {
            self.change(&mut writing, EventKind::Alert, &run.to_string()).await?;
        }
        self.commit(writing).await?;
        Ok(has_alerts)
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
            "SELECT alert, url, tries, coalesce(deliveries.body, alerts.body) AS body FROM deliveries JOIN alerts ON alerts.id = alert \
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

    /// Removes the deliveries that no server attempted for a day, except to these addresses: their webhooks were
    /// removed. Returns their addresses.
    pub(crate) async fn forget_deliveries(&self, except: &[String]) -> Result<Vec<String>, StoreError> {
        let mut delete = Statement::new("DELETE FROM deliveries WHERE due < ");
        delete.bind(time(Timestamp::now() - FORGOTTEN));
        for url in except {
            delete.push(" AND url <> ").bind(url);
        }
        delete.push(" RETURNING url");
        let mut writing = self.database.write().await?;
        let forgotten: Result<Vec<(String,)>, _> = delete.rows().fetch_all(&mut *writing).await;
        let forgotten = forgotten.map_err(|error| self.failed(error))?;
        self.commit(writing).await?;
        Ok(forgotten.into_iter().map(|(url,)| url).collect())
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
