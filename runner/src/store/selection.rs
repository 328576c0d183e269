//! The statements that read the runs of a [`Query`].

use super::columns::ListedRow;
use super::database::Statement;
use super::query::{Cursor, Query, Sort, SortValue};
use std::collections::BTreeSet;
use trainplan_shared::result::id_of_log;

/// A text after every time, in the order of both databases.
pub(super) const AFTER_TIMES: &str = "z";

impl Query {
    /// Returns the statements that read the page and `beyond` rows more: one row shows whether there is another page. Run them
    /// in order until there are enough runs. Runs without a value to sort by come last in either direction and have their own
    /// statement: no index serves both databases and directions with nulls. Runs whose value to sort by has the wrong type are
    /// left out, because no cursor could name their place. With `among`, only the runs with these ids are read.
    pub(super) fn selects<'a, R: ListedRow>(
        &'a self,
        beyond: u32,
        among: Option<&'a BTreeSet<String>>,
    ) -> Vec<Statement<'a>> {
        let Sort { key, descending } = self.sort;
        let (column, direction, comparison) =
            if descending { (key.column(), "DESC", "<") } else { (key.column(), "ASC", ">") };
        let mut selects = Vec::new();
        let is_among_empty = matches!(self.cursor, Some(Cursor { value: None, .. }));
        if !is_among_empty {
            let mut select = self.filtered::<R>(among);
            // In SQLite, values of the wrong type sort after all others. A descending page that starts at a cursor is past them, and
            // a second bound might stop the database from seeking to the cursor.
            if !descending || self.cursor.is_none() {
                select.push(format_args!(" AND {column} <= "));
                match key.is_time() {
                    true => select.bind(AFTER_TIMES),
                    false => select.bind(f64::MAX),
                };
            }
            if let Some(Cursor { value: Some(value), id, .. }) = &self.cursor {
                select.push(format_args!(" AND ({column}, id) {comparison} ("));
                match value {
                    SortValue::Text(text) => select.bind(text),
                    SortValue::Number(number) => select.bind(number),
                };
                select.push(", ").bind(id.to_string()).push(")");
            }
            select.push(format_args!(" ORDER BY {column} {direction}, id {direction}"));
            selects.push(select);
        }
        if !key.is_time() {
            let mut select = self.filtered::<R>(among);
            select.push(format_args!(" AND {column} IS NULL"));
            if let Some(Cursor { value: None, id, .. }) = &self.cursor {
                select.push(format_args!(" AND id {comparison} ")).bind(id.to_string());
            }
            select.push(format_args!(" ORDER BY id {direction}"));
            selects.push(select);
        }
        for select in &mut selects {
            R::limit(select, i64::from(self.limit()) + i64::from(beyond));
        }
        selects
    }

    /// Returns the statement that reads the runs that match the filters.
    fn filtered<'a, R: ListedRow>(&'a self, among: Option<&'a BTreeSet<String>>) -> Statement<'a> {
        let mut select = R::select();
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
                // Lowered by the database, whose rules differ from Rust's.
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
        if let Some(log) = &self.log {
            let id = id_of_log(log).map_or(String::new(), |id| id.to_string());
            select.push(" AND (log_sha256 = ").bind(log).push(" OR id = ").bind(id).push(")");
        }
        if let Some(gpus) = self.gpus {
            select.push(" AND gpus = ").bind(i64::from(gpus));
        }
        if let Some(ids) = among {
            select.push(" AND id IN (");
            for id in ids {
                select.bind_item(id);
            }
            select.push(")");
        }
        select
    }
}

/// Returns the LIKE pattern of a text with `*`, with `\` as the escape character.
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
