//! The log of changes to the store, by any program or server, for the event stream and for answers that are kept.

use super::database::{Statement, Typed};
use super::{Store, StoreError, now, time};
use crate::migrations::Engine;
use jiff::{SignedDuration, Timestamp};
use sqlx::{Any, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
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

/// A moment in the log of changes, after which [`Store::changed_since`] finds the runs that changed, by any program or server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangeMark {
    /// The newest sequence number; 0 if nothing ever changed.
    newest: i64,
    /// Earlier numbers without a change, and when that was noticed. PostgreSQL may show a later change before an earlier one whose
    /// transaction is not committed yet.
    missing: BTreeMap<i64, Instant>,
}

impl ChangeMark {
    /// The most numbers between two marks. After more changes, it is unknown which runs changed.
    const APART: i64 = 1000;

    /// How long a number may stay without a change until it counts as that of a transaction that failed.
    const SETTLING: Duration = Duration::from_secs(5 * 60);

    /// Returns the mark after these changes, and the runs that they are about. `rows` are the changes from this mark's newest number
    /// on and those with missing numbers, in order. None if it is unknown which runs changed.
    fn after(&self, rows: &[ChangeRow]) -> Option<(ChangeMark, BTreeSet<String>)> {
        // The newest change is deleted only after later ones. If it is gone, so may others be, or the numbers were set back.
        let begins_here = match self.newest {
            0 => rows.is_empty(),
            newest => rows.iter().any(|(seq, ..)| *seq == newest),
        };
        let newest = rows.last().map_or(self.newest, |(seq, ..)| *seq);
        if !begins_here || newest.saturating_sub(self.newest) >= Self::APART {
            return None;
        }
        let mut runs = BTreeSet::new();
        let is_new = |seq: i64| seq > self.newest || self.missing.contains_key(&seq);
        for (_, kind, id) in rows.iter().filter(|(seq, ..)| is_new(*seq)) {
            match (kind.0.as_deref().and_then(EventKind::from_id), &id.0) {
                (Some(EventKind::Progress | EventKind::Alert), _) => {}
                (Some(EventKind::Run | EventKind::Deleted), Some(id)) => {
                    runs.insert(id.clone());
                }
                // Kinds of newer programs, which this one does not know, may be about any run, and so may damaged changes.
                _ => return None,
            }
        }
        let now = Instant::now();
        let mut missing = self.missing.clone();
        missing.extend((self.newest.saturating_add(1)..newest).map(|seq| (seq, now)));
        for (seq, ..) in rows {
            missing.remove(seq);
        }
        missing.retain(|_, since| since.elapsed() < Self::SETTLING);
        // So many transactions fail only if something is wrong.
        (missing.len() as i64 <= 2 * Self::APART).then_some((ChangeMark { newest, missing }, runs))
    }
}

impl Store {
    /// Returns the mark of the store as it is now. A transaction that is not committed yet counts as later, unless
    /// [`ChangeMark::APART`] changes with higher numbers are stored already.
    pub(crate) async fn change_mark(&self) -> Result<ChangeMark, StoreError> {
        let select = "SELECT seq FROM changes WHERE seq > (SELECT coalesce(max(seq), 0) FROM changes) - $1 ORDER BY seq";
        let select = sqlx::query_scalar(select).bind(ChangeMark::APART);
        let seen: Vec<i64> =
            select.fetch_all(&self.database.readers).await.map_err(|error| self.failed(error))?;
        let newest = seen.last().copied().unwrap_or_default();
        let first = match self.database.engine {
            // Numbers are given in the order of commits.
            Engine::Sqlite => newest,
            Engine::Postgres => newest.saturating_sub(ChangeMark::APART).max(0) + 1,
        };
        let now = Instant::now();
        let missing = (first..newest).filter(|seq| seen.binary_search(seq).is_err());
        Ok(ChangeMark { newest, missing: missing.map(|seq| (seq, now)).collect() })
    }

    /// Returns the mark of the store as it is now, and the runs that were added, changed or deleted since an earlier one. None if
    /// it is unknown which these are, for example after very many changes.
    pub(crate) async fn changed_since(
        &self,
        mark: &ChangeMark,
    ) -> Result<Option<(ChangeMark, BTreeSet<String>)>, StoreError> {
        let mut select = Statement::new("SELECT seq, kind, id FROM changes WHERE seq >= ");
        select.bind(mark.newest);
        if !mark.missing.is_empty() {
            let missing: Vec<String> = mark.missing.keys().map(i64::to_string).collect();
            select.push(format_args!(" OR seq IN ({})", missing.join(", ")));
        }
        // So many reach a number that is too far away.
        let most = mark.missing.len() as i64 + ChangeMark::APART + 1;
        select.push(" ORDER BY seq LIMIT ").bind(most);
        let is_usual = mark.missing.is_empty();
        let rows = select.rows::<ChangeRow>().persistent(is_usual).fetch_all(&self.database.readers);
        Ok(mark.after(&rows.await.map_err(|error| self.failed(error))?))
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

    /// Deletes changes with impossible sequence numbers, which another program wrote into the database, and lets the numbers
    /// continue after the others. Watchers fetch the lists again. Returns whether there were any.
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
            "the change numbers in the store {} were impossibly high, and were reset",
            self.name()
        );
        Ok(true)
    }

    /// Sets the numbers of changes back in the background, once the transaction that failed has ended.
    fn renumber_later(&self) {
        let store = self.clone();
        tokio::spawn(async move {
            if let Err(error) = store.renumber_changes().await {
                tracing::error!("the change numbers could not be reset: {error}");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seq: i64, kind: EventKind, id: &str) -> ChangeRow {
        (seq, Typed(Some(kind.id().to_owned())), Typed(Some(id.to_owned())))
    }

    fn mark(newest: i64, missing: &[i64]) -> ChangeMark {
        ChangeMark { newest, missing: missing.iter().map(|seq| (*seq, Instant::now())).collect() }
    }

    /// Returns the newest and the missing numbers after some changes, and the runs that changed.
    fn after(mark: &ChangeMark, rows: &[ChangeRow]) -> Option<(i64, Vec<i64>, Vec<String>)> {
        let (mark, runs) = mark.after(rows)?;
        Some((mark.newest, mark.missing.into_keys().collect(), runs.into_iter().collect()))
    }

    #[test]
    fn changes_name_the_runs_that_are_read_again() {
        let known = mark(7, &[]);
        let old = row(7, EventKind::Run, "a");
        assert_eq!(after(&known, std::slice::from_ref(&old)), Some((7, vec![], vec![])));
        let rows = [
            old,
            row(8, EventKind::Run, "b"),
            row(9, EventKind::Progress, "c"),
            row(10, EventKind::Deleted, "d"),
            row(11, EventKind::Alert, "e"),
        ];
        assert_eq!(after(&known, &rows), Some((11, vec![], vec!["b".into(), "d".into()])));
    }

    #[test]
    fn a_change_that_is_committed_late_is_found() {
        let rows = [row(7, EventKind::Run, "a"), row(10, EventKind::Run, "b")];
        let (known, runs) = mark(7, &[]).after(&rows).unwrap();
        assert_eq!(runs.into_iter().collect::<Vec<_>>(), ["b"]);
        assert_eq!(known.missing.keys().copied().collect::<Vec<_>>(), [8, 9]);
        let rows = [row(8, EventKind::Run, "c"), row(10, EventKind::Run, "b")];
        assert_eq!(after(&known, &rows), Some((10, vec![9], vec!["c".into()])));
    }

    #[test]
    fn after_some_changes_it_is_unknown_which_runs_changed() {
        let known = mark(7, &[]);
        let old = || row(7, EventKind::Run, "a");
        assert!(known.after(&[old(), row(8, EventKind::Again, "")]).is_none());
        // A newer program wrote it.
        assert!(known.after(&[old(), (8, Typed(Some("moved".into())), Typed(Some("b".into())))]).is_none());
        assert!(known.after(&[old(), (8, Typed(None), Typed(None))]).is_none());
        // The database was restored from a backup, or changes were deleted.
        assert!(known.after(&[]).is_none());
        assert!(known.after(&[row(8, EventKind::Run, "b")]).is_none());
        assert!(mark(0, &[]).after(&[row(1, EventKind::Run, "b")]).is_none());
        assert!(mark(0, &[]).after(&[]).is_some());
        let far = 7 + ChangeMark::APART;
        assert!(known.after(&[old(), row(far, EventKind::Run, "b")]).is_none());
        assert!(known.after(&[old(), row(far - 1, EventKind::Run, "b")]).is_some());
    }
}
