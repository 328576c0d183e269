//! Which runs to list, and a page of them.

use super::Summary;
use serde::{Serialize, Serializer};
use sqlx::{QueryBuilder, Sqlite};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Which runs to list, newest first. What is none does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    /// The recipe, by its whole id.
    pub(crate) recipe: Option<String>,
    /// The cluster.
    pub(crate) cluster: Option<String>,
    /// The campaign.
    pub(crate) campaign: Option<String>,
    /// The status, by its id.
    pub(crate) status: Option<String>,
    /// The most runs in a page; none means [`Query::LIMIT`].
    pub(crate) limit: Option<u32>,
    /// Where the page before ended.
    pub(crate) cursor: Option<Cursor>,
}

impl Query {
    /// As many runs as a page has unless something else is asked for.
    pub(crate) const LIMIT: u32 = 100;

    /// The statement that reads the page, and one run more that tells whether there is another.
    pub(super) fn select(&self) -> QueryBuilder<'_, Sqlite> {
        let mut select = Summary::select();
        let filters = [
            (" AND recipe = ", &self.recipe),
            (" AND cluster = ", &self.cluster),
            (" AND campaign = ", &self.campaign),
            (" AND status = ", &self.status),
        ];
        for (column, wanted) in filters {
            if let Some(wanted) = wanted {
                select.push(column).push_bind(wanted);
            }
        }
        if let Some(Cursor { received_at, id }) = &self.cursor {
            let mut tuple = select.push(" AND (received_at, id) < (").separated(", ");
            tuple.push_bind(received_at).push_bind(id.to_string());
            select.push(")");
        }
        select.push(" ORDER BY received_at DESC, id DESC LIMIT ").push_bind(i64::from(self.limit()) + 1);
        select
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(Query::LIMIT)
    }
}

/// Runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Page {
    /// The runs.
    pub(crate) items: Vec<Summary>,
    /// Where the next page starts; none if this is the last one.
    pub(crate) next_cursor: Option<Cursor>,
}

impl Page {
    /// The page in what the statement read.
    pub(super) fn of(mut items: Vec<Summary>, limit: u32) -> Page {
        let is_last = items.len() <= limit as usize;
        items.truncate(limit as usize);
        let next_cursor = items.last().filter(|_| !is_last).and_then(|last| {
            Some(Cursor { received_at: last.received_at.clone(), id: last.id.parse().ok()? })
        });
        Page { items, next_cursor }
    }
}

/// The end of a page. Runs that come in later do not move it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    received_at: String,
    id: Uuid,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}", self.received_at, self.id)
    }
}

/// That a text is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no cursor: give the next_cursor of the page before, as it is")]
pub(crate) struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Cursor, NoCursor> {
        let (received_at, id) = text.split_once('_').ok_or(NoCursor)?;
        received_at.parse::<jiff::Timestamp>().map_err(|_| NoCursor)?;
        Ok(Cursor { received_at: received_at.to_owned(), id: id.parse().map_err(|_| NoCursor)? })
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
