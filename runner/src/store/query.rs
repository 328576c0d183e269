//! Queries for runs: filters, order and pages. The fuzz target `query` includes this file, so it uses nothing else of the store.

use jiff::Timestamp;
use std::fmt;
use std::str::FromStr;
use trainplan_shared::api::{RunPage, RunSummary};
use uuid::Uuid;

/// The runs to list. A filter that is `None` matches all runs. In a recipe, cluster, campaign, model, GPU type
/// and precision, `*` stands for any text, and case is ignored then.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Query {
    /// The recipe's whole id.
    pub(crate) recipe: Option<String>,
    /// The cluster.
    pub(crate) cluster: Option<String>,
    /// The campaign.
    pub(crate) campaign: Option<String>,
    /// The status's id.
    pub(crate) status: Option<String>,
    /// The model's id.
    pub(crate) model: Option<String>,
    /// The GPU type's id.
    pub(crate) gpu: Option<String>,
    /// The number of GPUs.
    pub(crate) gpus: Option<u32>,
    /// The precision.
    pub(crate) dtype: Option<String>,
    /// The scenario, as the query of a share link.
    pub(crate) line: Option<String>,
    /// The SHA-256 of the log, in lowercase hexadecimal: runs that have this log, and the result that is named by it.
    pub(crate) log: Option<String>,
    /// Received at this time or later (RFC 3339).
    pub(crate) since: Option<String>,
    /// Received before this time (RFC 3339).
    pub(crate) until: Option<String>,
    /// The order; by default the newest first.
    pub(crate) sort: Sort,
    /// The most runs on a page; [`Query::LIMIT`] by default.
    pub(crate) limit: Option<u32>,
    /// The end of the previous page.
    pub(crate) cursor: Option<Cursor>,
}

impl Query {
    /// The default of [`Query::limit`].
    pub(crate) const LIMIT: u32 = 100;

    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(Query::LIMIT)
    }

    /// Returns the page that consists of these runs; `more` says whether others follow them.
    pub(super) fn page(&self, mut items: Vec<RunSummary>, more: bool) -> RunPage {
        let limit = self.limit() as usize;
        let is_last = !more && items.len() <= limit;
        items.truncate(limit);
        let cursor = items.last().filter(|_| !is_last).and_then(|last| Cursor::after(last, self.sort));
        RunPage { items, next_cursor: cursor.map(|cursor| cursor.to_string()) }
    }

    /// Moves on to the page after this one; returns whether there is one.
    pub(crate) fn advance(&mut self, page: &RunPage) -> bool {
        self.cursor = page.next_cursor.as_deref().and_then(|cursor| cursor.parse().ok());
        self.cursor.is_some()
    }
}

/// Returns a time as the store writes it: in UTC with microseconds, so that texts sort like times.
pub(crate) fn time(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// An order of runs: `step_time_s`, or `-step_time_s` for descending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(super) key: SortKey,
    pub(super) descending: bool,
}

impl Sort {
    /// The newest run first.
    pub(crate) const NEWEST_RUN: Sort = Sort { key: SortKey::RanAt, descending: true };

    /// The oldest run first.
    pub(crate) const OLDEST_RUN: Sort = Sort { key: SortKey::RanAt, descending: false };
}

impl Default for Sort {
    fn default() -> Sort {
        Sort { key: SortKey::ReceivedAt, descending: true }
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.descending { "-" } else { "" }, self.key.name())
    }
}

/// A column to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortKey {
    ReceivedAt,
    RanAt,
    StepTime,
    TokensPerS,
    Mfu,
    SpeedPercent,
    PlanError,
    PredictionError,
}

impl SortKey {
    const ALL: [SortKey; 8] = [
        SortKey::ReceivedAt,
        SortKey::RanAt,
        SortKey::StepTime,
        SortKey::TokensPerS,
        SortKey::Mfu,
        SortKey::SpeedPercent,
        SortKey::PlanError,
        SortKey::PredictionError,
    ];

    /// Returns whether the column is a time, which every run has.
    pub(super) fn is_time(self) -> bool {
        matches!(self, SortKey::ReceivedAt | SortKey::RanAt)
    }

    /// Returns the column of the table of runs that has the value which lists show.
    pub(super) fn column(self) -> &'static str {
        match self {
            SortKey::StepTime => "judged_s",
            other => other.name(),
        }
    }

    /// Returns the name that clients use for the order.
    fn name(self) -> &'static str {
        match self {
            SortKey::ReceivedAt => "received_at",
            SortKey::RanAt => "ran_at",
            SortKey::StepTime => "step_time_s",
            SortKey::TokensPerS => "tokens_per_s",
            SortKey::Mfu => "mfu",
            SortKey::SpeedPercent => "speed_percent",
            SortKey::PlanError => "plan_error",
            SortKey::PredictionError => "prediction_error",
        }
    }

    fn value(self, run: &RunSummary) -> Option<SortValue> {
        match self {
            SortKey::ReceivedAt => return Some(SortValue::Text(run.received_at.clone())),
            SortKey::RanAt => return Some(SortValue::Text(run.ran_at.clone())),
            SortKey::StepTime => run.judged_s,
            SortKey::TokensPerS => run.tokens_per_s,
            SortKey::Mfu => run.mfu,
            SortKey::SpeedPercent => run.baseline.and_then(|baseline| baseline.speed_percent),
            SortKey::PlanError => run.plan.and_then(|plan| plan.error),
            SortKey::PredictionError => run.predicted().and_then(|predicted| predicted.error),
        }
        .map(SortValue::Number)
    }
}

/// The text is not an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown order; allowed: received_at, ran_at, step_time_s, tokens_per_s, mfu, speed_percent, plan_error, prediction_error; put - \
     before one for descending order"
)]
pub(crate) struct UnknownSort;

impl FromStr for Sort {
    type Err = UnknownSort;

    fn from_str(text: &str) -> Result<Sort, UnknownSort> {
        let name = text.strip_prefix('-');
        let key =
            SortKey::ALL.into_iter().find(|key| key.name() == name.unwrap_or(text)).ok_or(UnknownSort)?;
        Ok(Sort { key, descending: name.is_some() })
    }
}

/// The end of a page in one order: the last run's value and id. Runs that are received later do not move it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cursor {
    sort: Sort,
    pub(super) value: Option<SortValue>,
    pub(super) id: Uuid,
}

/// A value of the column to sort by.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SortValue {
    Text(String),
    Number(f64),
}

impl Cursor {
    /// Returns the cursor after a run.
    pub(crate) fn after(run: &RunSummary, sort: Sort) -> Option<Cursor> {
        Some(Cursor { sort, value: sort.key.value(run), id: run.id.parse().ok()? })
    }

    /// Returns the cursor before all runs with the same value as this one.
    pub(crate) fn before_equals(run: &RunSummary, sort: Sort) -> Cursor {
        let id = if sort.descending { Uuid::from_u128(u128::MAX) } else { Uuid::nil() };
        Cursor { sort, value: sort.key.value(run), id }
    }

    /// Returns whether the cursor belongs to this order.
    pub(crate) fn suits(&self, sort: Sort) -> bool {
        self.sort == sort
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(SortValue::Text(text)) => write!(f, "{text}")?,
            // The shortest text that parses to the same number.
            Some(SortValue::Number(number)) => write!(f, "{number:?}")?,
            None => {}
        }
        write!(f, "_{}_{}", self.id, self.sort)
    }
}

/// The text is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a cursor; send the next_cursor of the previous page unchanged, with the same order")]
pub(crate) struct InvalidCursor;

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Cursor, InvalidCursor> {
        let (value, rest) = text.split_once('_').ok_or(InvalidCursor)?;
        let (id, sort) = rest.split_once('_').ok_or(InvalidCursor)?;
        let id = id.parse().map_err(|_| InvalidCursor)?;
        let sort: Sort = sort.parse().map_err(|_| InvalidCursor)?;
        let value = if sort.key.is_time() {
            // In the store's zone and digits, because it is compared as text.
            Some(SortValue::Text(time(value.parse().map_err(|_| InvalidCursor)?)))
        } else if value.is_empty() {
            None
        } else {
            let number = value.parse().ok().filter(|number: &f64| number.is_finite());
            Some(SortValue::Number(number.ok_or(InvalidCursor)?))
        };
        Ok(Cursor { sort, value, id })
    }
}
