//! Which runs to list, in which order, and a page of them.

use super::columns::RunRow;
use super::database::Statement;
use std::fmt;
use std::str::FromStr;
use trainplan_shared::api::{RunPage, RunSummary};
use uuid::Uuid;

/// Which runs to list. What is none does not matter. In a recipe, cluster, campaign, model, GPU type and precision `*` stands
/// for any text, and then upper and lower case are the same.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Query {
    /// The recipe, by its whole id.
    pub(crate) recipe: Option<String>,
    /// The cluster.
    pub(crate) cluster: Option<String>,
    /// The campaign.
    pub(crate) campaign: Option<String>,
    /// The status, by its id.
    pub(crate) status: Option<String>,
    /// The model, by its id.
    pub(crate) model: Option<String>,
    /// The GPU type, by its id.
    pub(crate) gpu: Option<String>,
    /// How many GPUs.
    pub(crate) gpus: Option<u32>,
    /// The precision.
    pub(crate) dtype: Option<String>,
    /// The line: the query of a link to the scenario.
    pub(crate) line: Option<String>,
    /// Received then or later, RFC 3339.
    pub(crate) since: Option<String>,
    /// Received before, RFC 3339.
    pub(crate) until: Option<String>,
    /// In which order; by default the newest first.
    pub(crate) sort: Sort,
    /// The most runs in a page; none means [`Query::LIMIT`].
    pub(crate) limit: Option<u32>,
    /// Where the page before ended.
    pub(crate) cursor: Option<Cursor>,
}

impl Query {
    /// As many runs as a page has unless something else is asked for.
    pub(crate) const LIMIT: u32 = 100;

    /// The statements that read the page and one run more, which tells whether there is another: one after the other, until
    /// there are enough. Runs without what the order goes by come last in either direction, by a statement of their own: there
    /// is no index that both databases use for both directions with them in it.
    pub(super) fn selects(&self) -> Vec<Statement<'_>> {
        let Sort { key, descending } = self.sort;
        let (column, direction, beyond) =
            if descending { (key.column(), "DESC", "<") } else { (key.column(), "ASC", ">") };
        let mut selects = Vec::new();
        let is_among_empty = matches!(self.cursor, Some(Cursor { value: None, .. }));
        if !is_among_empty {
            let mut select = self.filtered();
            if !key.is_time() {
                select.push(format_args!(" AND {column} IS NOT NULL"));
            }
            if let Some(Cursor { value: Some(value), id }) = &self.cursor {
                select.push(format_args!(" AND ({column}, id) {beyond} ("));
                match value {
                    Value::Text(text) => select.bind(text),
                    Value::Number(number) => select.bind(number),
                };
                select.push(", ").bind(id.to_string()).push(")");
            }
            select.push(format_args!(" ORDER BY {column} {direction}, id {direction} LIMIT "));
            selects.push(select);
        }
        if !key.is_time() {
            let mut select = self.filtered();
            select.push(format_args!(" AND {column} IS NULL"));
            if let Some(Cursor { value: None, id }) = &self.cursor {
                select.push(format_args!(" AND id {beyond} ")).bind(id.to_string());
            }
            select.push(format_args!(" ORDER BY id {direction} LIMIT "));
            selects.push(select);
        }
        for select in &mut selects {
            select.bind(i64::from(self.limit()) + 1);
        }
        selects
    }

    /// The runs that pass the filters.
    fn filtered(&self) -> Statement<'_> {
        let mut select = RunRow::select();
        let names = [
            ("recipe", &self.recipe),
            ("cluster", &self.cluster),
            ("campaign", &self.campaign),
            ("model", &self.model),
            ("gpu", &self.gpu),
            ("dtype", &self.dtype),
        ];
        for (column, wanted) in names {
            match wanted {
                // Only the database knows its own lower case.
                Some(like) if like.contains('*') => {
                    select.push(format_args!(" AND lower({column}) LIKE lower("));
                    select.bind(pattern(like)).push(") ESCAPE '\\'");
                }
                Some(name) => {
                    select.push(format_args!(" AND {column} = ")).bind(name);
                }
                None => {}
            }
        }
        let filters = [
            (" AND status = ", &self.status),
            (" AND line = ", &self.line),
            (" AND received_at >= ", &self.since),
            (" AND received_at < ", &self.until),
        ];
        for (column, wanted) in filters {
            if let Some(wanted) = wanted {
                select.push(column).bind(wanted);
            }
        }
        if let Some(gpus) = self.gpus {
            select.push(" AND gpus = ").bind(i64::from(gpus));
        }
        select
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit.unwrap_or(Query::LIMIT)
    }

    /// Returns the page that consists of these runs, which may be one more than its limit.
    pub(super) fn page(&self, mut items: Vec<RunSummary>) -> RunPage {
        let limit = self.limit() as usize;
        let is_last = items.len() <= limit;
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

/// What LIKE has for a text with `*`, where `\` takes its meaning from a character.
fn pattern(like: &str) -> String {
    let mut pattern = String::new();
    for char in like.chars() {
        match char {
            '*' => pattern.push('%'),
            '%' | '_' | '\\' => pattern.extend(['\\', char]),
            _ => pattern.push(char),
        }
    }
    pattern
}

/// An order of runs: `step_time_s`, or `-step_time_s` with the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sort {
    key: Key,
    descending: bool,
}

impl Sort {
    /// The one that ran last first.
    pub(crate) const NEWEST_RUN: Sort = Sort { key: Key::RanAt, descending: true };
}

impl Default for Sort {
    fn default() -> Sort {
        Sort { key: Key::ReceivedAt, descending: true }
    }
}

/// What runs can be sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    ReceivedAt,
    RanAt,
    StepTime,
    TokensPerS,
    Mfu,
    SpeedPercent,
    PlanError,
}

impl Key {
    const ALL: [Key; 7] = [
        Key::ReceivedAt,
        Key::RanAt,
        Key::StepTime,
        Key::TokensPerS,
        Key::Mfu,
        Key::SpeedPercent,
        Key::PlanError,
    ];

    /// Whether every run has it.
    fn is_time(self) -> bool {
        matches!(self, Key::ReceivedAt | Key::RanAt)
    }

    fn column(self) -> &'static str {
        match self {
            Key::ReceivedAt => "received_at",
            Key::RanAt => "ran_at",
            Key::StepTime => "step_time_s",
            Key::TokensPerS => "tokens_per_s",
            Key::Mfu => "mfu",
            Key::SpeedPercent => "speed_percent",
            Key::PlanError => "plan_error",
        }
    }

    fn value(self, run: &RunSummary) -> Option<Value> {
        match self {
            Key::ReceivedAt => return Some(Value::Text(run.received_at.clone())),
            Key::RanAt => return Some(Value::Text(run.ran_at.clone())),
            Key::StepTime => run.step_time_s.map(|stat| stat.mean),
            Key::TokensPerS => run.tokens_per_s,
            Key::Mfu => run.mfu,
            Key::SpeedPercent => run.baseline.and_then(|baseline| baseline.speed_percent),
            Key::PlanError => run.plan.and_then(|plan| plan.error),
        }
        .map(Value::Number)
    }
}

/// That a text is no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "runs can't be sorted so; allowed: received_at, ran_at, step_time_s, tokens_per_s, mfu, speed_percent, plan_error, each also with \
     a - before it"
)]
pub(crate) struct NoSort;

impl FromStr for Sort {
    type Err = NoSort;

    fn from_str(text: &str) -> Result<Sort, NoSort> {
        let name = text.strip_prefix('-');
        let key = Key::ALL.into_iter().find(|key| key.column() == name.unwrap_or(text)).ok_or(NoSort)?;
        Ok(Sort { key, descending: name.is_some() })
    }
}

/// The end of a page: what it is sorted by, and an id. Runs that come in later do not move it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cursor {
    value: Option<Value>,
    id: Uuid,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Number(f64),
}

impl Cursor {
    /// Where what comes after a run begins.
    pub(crate) fn after(run: &RunSummary, sort: Sort) -> Option<Cursor> {
        Some(Cursor { value: sort.key.value(run), id: run.id.parse().ok()? })
    }

    /// Whether it is of pages in this order.
    pub(crate) fn suits(&self, sort: Sort) -> bool {
        match &self.value {
            Some(Value::Text(_)) => sort.key.is_time(),
            Some(Value::Number(_)) | None => !sort.key.is_time(),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(Value::Text(text)) => write!(f, "{text}_{}", self.id),
            // The shortest text that reads as the same number.
            Some(Value::Number(number)) => write!(f, "{number:?}_{}", self.id),
            None => write!(f, "_{}", self.id),
        }
    }
}

/// That a text is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is no cursor: give the next_cursor of the page before, as it is, with the same order")]
pub(crate) struct NoCursor;

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Cursor, NoCursor> {
        let (value, id) = text.split_once('_').ok_or(NoCursor)?;
        let id = id.parse().map_err(|_| NoCursor)?;
        let value = if value.is_empty() {
            None
        } else if let Some(number) = value.parse().ok().filter(|number: &f64| number.is_finite()) {
            Some(Value::Number(number))
        } else {
            value.parse::<jiff::Timestamp>().map_err(|_| NoCursor)?;
            Some(Value::Text(value.to_owned()))
        };
        Ok(Cursor { value, id })
    }
}
