//! The newest runs of a query as points of time lines, which are kept up to date by the log of changes: only runs that changed are
//! read again.

use super::changes::ChangeMark;
use super::columns::PointRow;
use super::listing::text_bytes;
use super::query::{Query, Sort};
use super::{PAGE_BYTES, Store, StoreError};
use crate::history::point;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trainplan_shared::api::RunSummary;
use trainplan_shared::history::{TimeLineKey, TimeLinePoint};

/// How long runs are kept before they are read again. Then unrecorded changes also show, such as manual edits of the database.
const KEPT: Duration = Duration::from_secs(60 * 60);

/// A run as a point of a time line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecentRun {
    /// The time line.
    pub(crate) key: TimeLineKey,
    /// The point.
    pub(crate) point: TimeLinePoint,
    /// The bytes of its long texts as JSON.
    bytes: usize,
}

impl RecentRun {
    fn new(run: &RunSummary) -> RecentRun {
        let (key, point) = point(run);
        RecentRun { key, point, bytes: text_bytes(run) }
    }

    /// Returns the run's place in the order of all runs: a newer run has a larger one.
    fn place(&self) -> (&str, &str) {
        (&self.point.at, &self.point.id)
    }

    /// Returns the bytes of memory that the run takes.
    fn memory(&self) -> usize {
        let TimeLineKey { recipe, scenario, model, gpu, gpus: _, dtype, cluster } = &self.key;
        let texts = [recipe, scenario, model, gpu, dtype, cluster].into_iter().flatten();
        let texts = texts.chain([&self.point.id, &self.point.at, &self.point.name]).chain(&self.point.reason);
        size_of::<RecentRun>() + texts.map(String::capacity).sum::<usize>()
    }
}

/// The newest runs that match a query. They hold at a mark of the store.
#[derive(Debug, Clone)]
pub(crate) struct RecentRuns {
    /// The mark from before they were read.
    mark: ChangeMark,
    list: Arc<RunList>,
    /// When all of them were read.
    read_at: Instant,
}

impl RecentRuns {
    /// Returns the runs, newest first: as many as the query asks for, or fewer, so that their texts have about [`PAGE_BYTES`].
    pub(crate) fn runs(&self) -> &[Arc<RecentRun>] {
        self.list.runs.get(..self.list.shown).unwrap_or_default()
    }

    /// Returns whether older runs match the query, too.
    pub(crate) fn is_cut(&self) -> bool {
        self.list.shown < self.list.runs.len() || !self.list.is_complete
    }

    /// Returns about how many bytes of memory the runs take.
    pub(crate) fn memory(&self) -> usize {
        self.list.runs.iter().map(|run| run.memory()).sum()
    }
}

/// All runs that match a query, from the newest one down to some place.
#[derive(Debug)]
struct RunList {
    /// The runs, newest first. Some more than are shown, so that others can take the places of those that are deleted.
    runs: Vec<Arc<RecentRun>>,
    /// The number of runs to show.
    shown: usize,
    /// Whether no older run matches the query.
    is_complete: bool,
}

impl RunList {
    fn new(mut runs: Vec<Arc<RecentRun>>, is_complete: bool, limit: u32) -> RunList {
        let mut bytes = 0;
        // As on a page of a list.
        let fits = |run: &&Arc<RecentRun>| {
            let fits = bytes <= PAGE_BYTES;
            bytes += run.bytes;
            fits
        };
        let shown = runs.iter().take(limit as usize).take_while(fits).count();
        let most = shown + 2 * spare(limit) as usize;
        let is_complete = is_complete && runs.len() <= most;
        runs.truncate(most);
        RunList { runs, shown, is_complete }
    }

    /// Returns the list after some runs were added, changed or deleted. `read` are those of them that match the query now. None if
    /// the list lacks runs to show.
    fn after(&self, changed: &BTreeSet<String>, read: Vec<RecentRun>, limit: u32) -> Option<RunList> {
        let (before, mut runs): (Vec<_>, Vec<_>) =
            self.runs.iter().cloned().partition(|run| changed.contains(&run.point.id));
        let before: BTreeMap<&str, &Arc<RecentRun>> =
            before.iter().map(|run| (run.point.id.as_str(), run)).collect();
        let end = runs.last().cloned();
        // What is below the end of the list is unknown.
        let is_within =
            |run: &RecentRun| self.is_complete || end.as_ref().is_some_and(|end| run.place() > end.place());
        for run in read.into_iter().filter(is_within) {
            runs.push(match before.get(run.point.id.as_str()) {
                Some(known) if ***known == run => Arc::clone(known),
                _ => Arc::new(run),
            });
        }
        runs.sort_by(|one, other| other.place().cmp(&one.place()));
        let list = RunList::new(runs, self.is_complete, limit);
        (list.is_complete || list.shown < list.runs.len()).then_some(list)
    }
}

/// Returns the query for this many of the newest runs that match another one.
fn newest(query: &Query, limit: u32) -> Query {
    Query { sort: Sort::NEWEST_RUN, limit: Some(limit), ..query.clone() }
}

/// Returns the number of runs that are kept in addition to those of a query.
fn spare(limit: u32) -> u32 {
    limit / 100 + 1
}

impl Store {
    /// Reads the newest runs that match a query.
    pub(crate) async fn recent_runs(&self, query: &Query) -> Result<RecentRuns, StoreError> {
        let (mark, read_at) = (self.change_mark().await?, Instant::now());
        let limit = query.limit();
        let page = newest(query, limit.saturating_add(spare(limit)));
        let page = self.page::<PointRow>(&page, None).await?;
        let runs = page.items.iter().map(|run| Arc::new(RecentRun::new(run))).collect();
        let list = Arc::new(RunList::new(runs, page.next_cursor.is_none(), limit));
        Ok(RecentRuns { mark, list, read_at })
    }

    /// Returns the same runs with the mark of now, if no run was added, changed or deleted since their mark.
    pub(crate) async fn still_recent(&self, known: &RecentRuns) -> Result<Option<RecentRuns>, StoreError> {
        if known.read_at.elapsed() > KEPT {
            return Ok(None);
        }
        let changed = self.changed_since(&known.mark).await?;
        let unchanged = changed.filter(|(_, runs)| runs.is_empty());
        Ok(unchanged.map(|(mark, _)| RecentRuns { mark, ..known.clone() }))
    }

    /// Returns the newest runs that match a query, as [`Store::recent_runs`] would. Reads only those that changed since the known ones
    /// of the same query were read, if it can.
    pub(crate) async fn refreshed(
        &self,
        query: &Query,
        known: &RecentRuns,
    ) -> Result<RecentRuns, StoreError> {
        if known.read_at.elapsed() <= KEPT
            && let Some((mark, changed)) = self.changed_since(&known.mark).await?
            && let Some(list) = self.list_after(query, known, &changed).await?
        {
            return Ok(RecentRuns { mark, list, read_at: known.read_at });
        }
        self.recent_runs(query).await
    }

    /// Returns the list of runs after some changed, by reading these; none if all have to be read.
    async fn list_after(
        &self,
        query: &Query,
        known: &RecentRuns,
        changed: &BTreeSet<String>,
    ) -> Result<Option<Arc<RunList>>, StoreError> {
        if changed.is_empty() {
            return Ok(Some(Arc::clone(&known.list)));
        }
        let page = newest(query, changed.len() as u32);
        let page = self.page::<PointRow>(&page, Some(changed)).await?;
        if page.next_cursor.is_some() {
            return Ok(None);
        }
        let read = page.items.iter().map(RecentRun::new).collect();
        Ok(known.list.after(changed, read, query.limit()).map(Arc::new))
    }
}
