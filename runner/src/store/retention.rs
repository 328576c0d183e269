//! Deletes runs that are older than their retention, but never because a clock is wrong.
//!
//! The age of a run is counted from the time at which the newest run was received, or from the clock where that
//! is earlier. A clock that is ahead therefore deletes nothing by itself. It could once a run was received with
//! the wrong time, so deletions begin only after the clock ran without a jump for [`GRACE`].

use super::database::Typed;
use super::query::Query;
use super::selection::AFTER_TIMES;
use super::{Store, StoreError, time};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

/// How long the clock must have run without a jump before runs are deleted, and the longest time without a
/// server that is not a jump.
const GRACE: SignedDuration = SignedDuration::from_hours(3 * 24);

/// What retention did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Retention {
    /// The clock was just seen for the first time, or jumped: nothing is deleted until this time.
    Begun {
        /// The time before which nothing is deleted.
        until: Timestamp,
        /// The time that was seen last, if the clock jumped.
        jumped_from: Option<Timestamp>,
    },
    /// Nothing is deleted yet.
    Waiting,
    /// These runs were received before a time and are deleted.
    Deleted {
        /// The time.
        before: Timestamp,
        /// The runs.
        runs: Vec<Uuid>,
    },
}

/// When the clock was seen last, and since when it runs steadily.
type ClockRow = (Typed<String>, Typed<String>);

impl Store {
    /// Deletes the runs that were received more than this many days before the newest one, or before now if
    /// that is earlier.
    pub(crate) async fn retain(&self, days: u32) -> Result<Retention, StoreError> {
        let now = Timestamp::now();
        if let Some(waiting) = self.see_clock(now).await? {
            return Ok(waiting);
        }
        // An unreadable time is not the newest one.
        let select = "SELECT max(received_at) FROM runs \
            WHERE received_at <= $1 AND received_at LIKE '____-__-__T__:__:__%'";
        let newest: Option<String> = sqlx::query_scalar(select)
            .bind(AFTER_TIMES)
            .fetch_one(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))?;
        let newest = newest.and_then(|newest| newest.parse().ok()).map_or(now, |newest| now.min(newest));
        let before = newest - SignedDuration::from_hours(24 * i64::from(days));
        let mut query = Query { until: Some(time(before)), ..Query::default() };
        let mut runs = Vec::new();
        loop {
            let page = self.list(&query).await?;
            let found = runs.len();
            for run in &page.items {
                let is_old = run.received_at.parse().is_ok_and(|received: Timestamp| received < before);
                if is_old
                    && let Ok(id) = run.id.parse()
                    && self.delete(id).await?
                {
                    runs.push(id);
                }
            }
            let is_last = page.next_cursor.is_none();
            // What stays must not be listed forever. A page without a deletion is followed by the next one.
            if is_last || (runs.len() == found && !query.advance(&page)) {
                return Ok(Retention::Deleted { before, runs });
            }
        }
    }

    /// Records the time. Returns none if the clock ran steadily for long enough.
    async fn see_clock(&self, now: Timestamp) -> Result<Option<Retention>, StoreError> {
        let failed = |error| self.failed(error);
        let mut writing = self.database.write_exclusive("clock").await?;
        let row = sqlx::query_as("SELECT seen_at, steady_since FROM clock");
        let row: Option<ClockRow> = row.fetch_optional(&mut *writing).await.map_err(failed)?;
        let read = |(seen, since): ClockRow| Some((seen.0?.parse().ok()?, since.0?.parse().ok()?));
        // It can't run steadily since a time that is still to come.
        let known = row.and_then(read).filter(|&(_, since): &(Timestamp, Timestamp)| since <= now);
        let steady = known.filter(|(seen, _)| {
            // Several servers record their clocks, which differ a little.
            let step = now.duration_since(*seen);
            step > -SignedDuration::from_mins(5) && step <= GRACE
        });
        let since = steady.map_or(now, |(_, since)| since);
        let insert = "INSERT INTO clock (id, seen_at, steady_since) VALUES (1, $1, $2) \
            ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at, steady_since = excluded.steady_since";
        let insert = sqlx::query(insert).bind(time(now)).bind(time(since)).execute(&mut *writing);
        insert.await.map_err(failed)?;
        self.commit(writing).await?;
        let until = since + GRACE;
        Ok(match steady {
            None => Some(Retention::Begun { until, jumped_from: known.map(|(seen, _)| seen) }),
            Some(_) if now < until => Some(Retention::Waiting),
            Some(_) => None,
        })
    }
}
