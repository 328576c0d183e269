//! Lists of runs.

use super::columns::{ListedRow, PackedRow, PointRow, RunRow};
use super::query::Query;
use super::verification::valid_id;
use super::{PAGE_BYTES, Store, StoreError};
use crate::history::point;
use crate::migrations::Engine;
use futures_util::TryStreamExt;
use std::collections::BTreeSet;
use trainplan_shared::api::{RunPage, RunSummary};
use trainplan_shared::history::{TimeLineKey, TimeLinePoint};

impl Store {
    /// Returns a page of the runs that match a query. It ends early when its texts have [`PAGE_BYTES`]. Runs with invalid ids
    /// are left out.
    pub(crate) async fn list(&self, query: &Query) -> Result<RunPage, StoreError> {
        self.page::<RunRow>(query, None).await
    }

    /// Returns the same runs as points of time lines, which takes less time.
    pub(crate) async fn points(
        &self,
        query: &Query,
    ) -> Result<Vec<(TimeLineKey, TimeLinePoint)>, StoreError> {
        Ok(self.page::<PointRow>(query, None).await?.items.iter().map(point).collect())
    }

    /// Returns a page like [`Store::list`], with what is read of each run. With `among`, only runs with these ids are on it.
    pub(super) async fn page<R: ListedRow>(
        &self,
        query: &Query,
        among: Option<&BTreeSet<String>>,
    ) -> Result<RunPage, StoreError> {
        let mut beyond = 1;
        loop {
            let page = match self.database.engine {
                Engine::Sqlite => self.page_of::<PackedRow<R>>(query, beyond, among).await?,
                Engine::Postgres => self.page_of::<R>(query, beyond, among).await?,
            };
            if let Some(page) = page {
                return Ok(page);
            }
            beyond = beyond.saturating_mul(8);
        }
    }

    /// Returns a page, of at most its size and `beyond` rows. None if so many of the rows are left out that the page would seem
    /// to be the last one.
    async fn page_of<R: ListedRow>(
        &self,
        query: &Query,
        beyond: u32,
        among: Option<&BTreeSet<String>>,
    ) -> Result<Option<RunPage>, StoreError> {
        let (mut runs, mut bytes) = (Vec::new(), 0);
        let limit = query.limit() as usize;
        for mut select in query.selects::<R>(beyond, among) {
            if runs.len() > limit {
                break;
            }
            let mut read = 0;
            // Statements with different numbers of ids would displace all others that a connection keeps.
            let mut rows = select.rows::<R>().persistent(among.is_none()).fetch(&self.database.readers);
            while let Some(row) = rows.try_next().await.map_err(|error| self.failed(error))? {
                if bytes > PAGE_BYTES {
                    return Ok(Some(query.page(runs, true)));
                }
                read += 1;
                let row = row.into_row();
                let has_no_place = row.damaged.contains(&query.sort.key.column());
                let run = RunSummary::from(row);
                if valid_id(&run.id).is_none() {
                    tracing::warn!("a run is not listed, because its stored id is not a UUID: {:?}", run.id);
                    continue;
                }
                // No cursor could name it.
                if has_no_place {
                    continue;
                }
                bytes += text_bytes(&run);
                runs.push(run);
            }
            if runs.len() <= limit && read >= limit + beyond as usize {
                return Ok(None);
            }
        }
        Ok(Some(query.page(runs, false)))
    }
}

/// Returns the bytes of a run's long texts as JSON.
pub(super) fn text_bytes(run: &RunSummary) -> usize {
    let texts = [&run.line, &run.reason].into_iter().flatten();
    json_size(&run.path) + texts.map(|text| json_size(text)).sum::<usize>()
}

/// Returns the bytes of a text as JSON.
pub(super) fn json_size(text: &str) -> usize {
    let size = |byte| match byte {
        ..0x20 => r"\u0000".len(),
        b'"' | b'\\' => 2,
        _ => 1,
    };
    text.bytes().map(size).sum()
}
