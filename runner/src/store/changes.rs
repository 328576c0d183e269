//! The log of changes to the store, by any program or server, for the event stream and for answers that are kept.

use super::database::Typed;
use super::{Store, StoreError, now, time};
use crate::migrations::Engine;
use jiff::{SignedDuration, Timestamp};
use sqlx::{Any, Transaction};
use trainplan_shared::api::EventKind;

/// How long changes are kept. A watcher who was away for longer fetches the lists again.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// More than any sequence number: at a million changes a second, it takes 285 years to get there.
const LARGEST_SEQ: i64 = 1 << 53;

const INSERT: &str = "INSERT INTO changes (at, kind, id) VALUES ($1, $2, $3)";

/// The sequence number, the kind and the run of a change.
type ChangeRow = (i64, Typed<String>, Typed<String>);

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

/// The newest changes at a moment. Two marks show whether a run was added, changed or deleted between them, by any
/// program or server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeMark {
    /// The newest sequence number; 0 if nothing ever changed.
    newest: i64,
    /// The sequence numbers of changes to runs among the newest [`ChangeMark::COMPARED`], in order.
    of_runs: Vec<i64>,
}

impl ChangeMark {
    /// The number of changes that a mark compares. PostgreSQL may show a later change before an earlier one whose
    /// transaction is not committed yet, so the newest sequence number alone does not show every change.
    const COMPARED: i64 = 1000;

    /// The most changes between two marks that are compared. As many before them are compared too.
    const APART: i64 = Self::COMPARED / 2;

    /// Returns whether no run was added, changed or deleted between this mark and a later one. After many changes
    /// of other kinds, this is unknown, and the answer is no.
    pub(crate) fn holds_at(&self, later: &ChangeMark) -> bool {
        (0..=Self::APART).contains(&later.newest.saturating_sub(self.newest))
            && later.of_runs.iter().all(|seq| self.of_runs.binary_search(seq).is_ok())
    }
}

impl Store {
    /// Returns the mark of the store as it is now.
    pub(crate) async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        let select = "SELECT seq, kind FROM changes \
            WHERE seq > (SELECT coalesce(max(seq), 0) FROM changes) - $1 ORDER BY seq";
        let select = sqlx::query_as(select).bind(ChangeMark::COMPARED);
        let rows: Result<Vec<(i64, Typed<String>)>, _> = select.fetch_all(&self.database.readers).await;
        let rows = rows.map_err(|error| self.failed(error))?;
        // Kinds of newer programs, which this one does not know, may be about runs, and so may damaged ones.
        let is_of_run = |kind: &Typed<String>| {
            let kind = kind.0.as_deref().and_then(EventKind::from_id);
            !matches!(kind, Some(EventKind::Progress | EventKind::Alert))
        };
        Ok(ChangeMark {
            newest: rows.last().map_or(0, |(seq, _)| *seq),
            of_runs: rows.iter().filter(|(_, kind)| is_of_run(kind)).map(|(seq, _)| *seq).collect(),
        })
    }

    /// The most changes that [`Store::changes`] returns, without those of the overlap.
    pub(crate) const MOST_CHANGES: usize = 1000;

    /// Returns the changes after a sequence number, in order, and the last `overlap` before it. PostgreSQL
    /// may show a later change before an earlier one whose transaction is not committed yet; reading some
    /// again finds those.
    pub(crate) async fn changes(&self, after: i64, overlap: i64) -> Result<Vec<Change>, StoreError> {
        let rows: Result<Vec<ChangeRow>, _> =
            sqlx::query_as("SELECT seq, kind, id FROM changes WHERE seq > $1 ORDER BY seq LIMIT $2")
                .bind(after.saturating_sub(overlap))
                .bind(Self::MOST_CHANGES as i64 + overlap)
                .fetch_all(&self.database.readers)
                .await;
        let change = |(seq, kind, id): ChangeRow| match (kind.0, id.0) {
            // A newer program may record kinds that this one does not know: watchers then fetch the lists
            // again.
            (Some(kind), Some(id)) => {
                Change { seq, kind: EventKind::from_id(&kind).unwrap_or(EventKind::Again), id }
            }
            // They also do for a damaged change.
            _ => Change { seq, kind: EventKind::Again, id: String::new() },
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

    /// Returns the oldest sequence number that is kept; the given one if there is none.
    pub(crate) async fn oldest_change(&self, otherwise: i64) -> Result<i64, StoreError> {
        sqlx::query_scalar("SELECT coalesce(min(seq), $1) FROM changes")
            .bind(otherwise)
            .fetch_one(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Deletes old changes, with all before them: the oldest one that is kept then shows which are gone.
    pub(super) async fn forget_changes(&self) -> Result<(), StoreError> {
        let mut writing = self.database.write().await?;
        // The newest one stays, so that sequence numbers keep growing.
        let delete = "DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes WHERE at < $1) \
            AND seq < (SELECT max(seq) FROM changes)";
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
        let insert = sqlx::query(INSERT).bind(now()).bind(kind.id()).bind(id);
        let Err(error) = insert.execute(&mut **writing).await else { return Ok(()) };
        let error = match self.failed(error) {
            // SQLite calls this a full disk too.
            StoreError::Full { store } if self.is_exhausted().await => StoreError::Exhausted { store },
            error => error,
        };
        if matches!(error, StoreError::Exhausted { .. }) {
            self.renumber_later();
        }
        Err(error)
    }

    /// Returns whether the sequence of changes has an impossible number. From the largest one on, no change can be stored.
    async fn is_exhausted(&self) -> bool {
        let next = match self.database.engine {
            Engine::Sqlite => "SELECT seq FROM sqlite_sequence WHERE name = 'changes'",
            Engine::Postgres => {
                "SELECT pg_sequence_last_value(pg_get_serial_sequence('changes', 'seq')::regclass) AS seq"
            }
        };
        let select = format!(
            "SELECT count(*) FROM (SELECT seq FROM changes UNION ALL {next}) AS numbers WHERE seq > $1"
        );
        let count: Result<i64, _> =
            sqlx::query_scalar(&select).bind(LARGEST_SEQ).fetch_one(&self.database.readers).await;
        count.is_ok_and(|count| count > 0)
    }

    /// Deletes changes with impossible sequence numbers, which somebody else wrote into the database, and lets the numbers continue
    /// after the others. Watchers fetch the lists again. Returns whether there were any.
    pub(crate) async fn renumber_changes(&self) -> Result<bool, StoreError> {
        if !self.is_exhausted().await {
            return Ok(false);
        }
        let failed = |error| self.failed(error);
        let mut writing = self.database.write().await?;
        let delete = sqlx::query("DELETE FROM changes WHERE seq > $1").bind(LARGEST_SEQ);
        delete.execute(&mut *writing).await.map_err(failed)?;
        let set_back = match self.database.engine {
            Engine::Sqlite => {
                "UPDATE sqlite_sequence SET seq = (SELECT coalesce(max(changes.seq), 0) FROM changes) \
                WHERE name = 'changes' AND seq > $1"
            }
            Engine::Postgres => {
                "SELECT setval(number, (SELECT coalesce(max(seq), 0) + 1 FROM changes), false) \
                FROM (SELECT pg_get_serial_sequence('changes', 'seq')::regclass AS number) AS sequence \
                WHERE pg_sequence_last_value(number) > $1"
            }
        };
        // A number that is possible is kept: watchers would miss a change that has an earlier number.
        sqlx::query(set_back).bind(LARGEST_SEQ).execute(&mut *writing).await.map_err(failed)?;
        let insert = sqlx::query(INSERT).bind(now()).bind(EventKind::Again.id()).bind("");
        insert.execute(&mut *writing).await.map_err(failed)?;
        self.commit(writing).await?;
        tracing::warn!(
            "the numbers of changes in the store {} were impossible, and were set back",
            self.name()
        );
        Ok(true)
    }

    /// Sets the numbers of changes back in the background, once the transaction that failed has ended.
    fn renumber_later(&self) {
        let store = self.clone();
        tokio::spawn(async move {
            if let Err(error) = store.renumber_changes().await {
                tracing::error!("the numbers of changes could not be set back: {error}");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::ChangeMark;

    fn mark(newest: i64, of_runs: &[i64]) -> ChangeMark {
        ChangeMark { newest, of_runs: of_runs.to_vec() }
    }

    #[test]
    fn a_mark_holds_until_a_run_changes() {
        let known = mark(2000, &[1100, 1900, 2000]);
        assert!(known.holds_at(&known));
        // Changes of other kinds, which move the oldest ones out of sight.
        assert!(known.holds_at(&mark(2300, &[1900, 2000])));
        assert!(!known.holds_at(&mark(2001, &[1100, 1900, 2000, 2001])));
        // One that was committed late.
        assert!(!known.holds_at(&mark(2000, &[1100, 1900, 1950, 2000])));
    }

    #[test]
    fn a_mark_does_not_hold_when_some_changes_can_not_be_seen() {
        let known = mark(2000, &[1900]);
        assert!(known.holds_at(&mark(2500, &[1900])));
        assert!(!known.holds_at(&mark(2501, &[1900])));
        // The database was restored from a backup.
        assert!(!known.holds_at(&mark(1999, &[1900])));
    }
}
