//! The tables of the pages, of the command line and of CSV files: one definition for each view.
//!
//! A view is an enum of columns, made by `columns!` in its own file: [`LogColumn`], [`StoredRunColumn`],
//! [`ComparisonColumn`], [`RecipeColumn`], [`CheckColumn`], [`PlanColumn`], [`PooledColumn`],
//! [`LayoutColumn`] and [`BenchmarkColumn`]. An entry says how its column appears on a page, on a terminal and in a CSV
//! file, if it does. Pages and terminals show the columns in the order of their entries. A [`TerminalTable`] leaves out
//! the least important ones if the terminal is narrow. The order of a CSV file is part of its format, so each entry gives
//! its place there, and a new one takes the next.

#[macro_use]
mod columns;
mod benchmarks;
pub mod cells;
mod checks;
mod comparison;
mod logs;
mod plans;
mod pooled;
mod recipes;
mod runs;
mod terminal;

pub use benchmarks::BenchmarkColumn;
pub use checks::{CheckColumn, CheckedTimeLine};
pub use comparison::{ComparedRun, ComparisonColumn};
pub use logs::LogColumn;
pub use plans::{LayoutColumn, PlanColumn, PlanRow};
pub use pooled::PooledColumn;
pub use recipes::RecipeColumn;
pub use runs::StoredRunColumn;
pub use terminal::{CELL_PADDING, TerminalHeading, TerminalTable};

use crate::text::markdown;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt::{self, Write as _};

/// The heading of a column on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeading {
    /// The key of the column: cells are found by it.
    pub key: &'static str,
    /// The title.
    pub title: &'static str,
    /// Whether the column holds numbers, which are aligned right.
    pub is_number: bool,
    /// Whether the column comes first on a narrow screen.
    pub is_main: bool,
    /// Whether the column is left out while all its cells are empty.
    pub is_optional: bool,
    /// The order that the first press asks the server for, `-` for descending.
    pub order: Option<&'static str>,
    /// What a reader of the column should know; empty if its title says it all.
    pub hint: &'static str,
}

impl PageHeading {
    /// Returns the heading of a column of texts.
    #[must_use]
    pub const fn new(key: &'static str, title: &'static str) -> Self {
        Self { key, title, is_number: false, is_main: false, is_optional: false, order: None, hint: "" }
    }

    /// Returns the heading of a column of numbers.
    #[must_use]
    pub const fn number(self) -> Self {
        Self { is_number: true, ..self }
    }

    /// Returns the heading of a column that the server can sort by, first in this order.
    #[must_use]
    pub const fn order(self, order: &'static str) -> Self {
        Self { order: Some(order), ..self }
    }

    /// Returns the heading with a hint that explains it.
    #[must_use]
    pub const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// Returns the heading of a column that comes first on a narrow screen.
    #[must_use]
    pub const fn main(self) -> Self {
        Self { is_main: true, ..self }
    }

    /// Returns the heading of a column that is left out while all its cells are empty.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }
}

/// A cell of a page's table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCell {
    /// The key of its column.
    pub key: String,
    /// The value; empty where it is not known.
    pub text: String,
    /// What qualifies the value, shown small below it.
    pub detail: String,
}

impl PageCell {
    /// Returns a cell without a key: a value and its qualification, either of them perhaps unknown.
    #[must_use]
    pub fn new(text: Option<String>, detail: Option<String>) -> Self {
        Self { key: String::new(), text: text.unwrap_or_default(), detail: detail.unwrap_or_default() }
    }
}

impl From<String> for PageCell {
    fn from(text: String) -> Self {
        Self::new(Some(text), None)
    }
}

impl From<Option<String>> for PageCell {
    fn from(text: Option<String>) -> Self {
        Self::new(text, None)
    }
}

/// What a page sorts the rows of a column by.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue {
    /// A number; none where it is not known.
    Number(Option<f64>),
    /// A text.
    Text(String),
}

impl SortValue {
    /// Returns the order of two values of the same column. An unknown number comes last in either direction.
    #[must_use]
    pub fn order(&self, other: &Self, is_descending: bool) -> Ordering {
        let order = match (self, other) {
            (Self::Number(Some(one)), Self::Number(Some(other))) => one.total_cmp(other),
            (Self::Number(Some(_)), _) => return Ordering::Less,
            (_, Self::Number(Some(_))) => return Ordering::Greater,
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        };
        if is_descending { order.reverse() } else { order }
    }
}

/// A table of texts, for a terminal, a CSV file or a Markdown document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTable {
    /// The title of each column.
    pub titles: Vec<&'static str>,
    /// Whether each column holds numbers, which are aligned right.
    pub numbers: Vec<bool>,
    /// The rows: a cell for each column, none where the value is not known.
    pub rows: Vec<Vec<Option<String>>>,
}

impl TextTable {
    /// Returns the table without the columns whose values are all unknown.
    #[must_use]
    pub fn without_empty_columns(self) -> TextTable {
        let kept = filled(&self.rows, self.titles.len());
        let keep = |row: &Vec<Option<String>>| kept.iter().map(|place| row[*place].clone()).collect();
        TextTable {
            titles: kept.iter().map(|place| self.titles[*place]).collect(),
            numbers: kept.iter().map(|place| self.numbers[*place]).collect(),
            rows: self.rows.iter().map(keep).collect(),
        }
    }

    /// Returns the table as CSV: a header, then the rows, with empty cells for unknown values.
    ///
    /// The writer of the crate `csv` can leave numbers without quotes, so it contains `str::parse` for an `f64`, whose table does not
    /// compress (see [`parse_decimal`](crate::units::parse_decimal)): it would make a page more than 10 kB larger.
    ///
    /// # Errors
    /// Returns the writer's error. Writing to memory gives none.
    pub fn to_csv(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        write_csv_record(&mut text, &mut self.titles.iter().copied())?;
        for row in &self.rows {
            write_csv_record(&mut text, &mut row.iter().map(|cell| cell.as_deref().unwrap_or_default()))?;
        }
        Ok(text)
    }

    /// Returns the table as Markdown, one line for each row, with dashes for unknown values.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rules = self.numbers.iter().map(|is_number| if *is_number { "--:" } else { ":--" }.to_owned());
        let mut text = line(self.titles.iter().map(|title| markdown(title)).collect());
        text += &line(rules.collect());
        for row in &self.rows {
            text += &line(row.iter().map(|cell| markdown(cell.as_deref().unwrap_or("–"))).collect());
        }
        text
    }
}

/// Writes a line of a CSV file for spreadsheets. A cell that contains a separator is in quotes, and each quote in it is written
/// twice. A text that a spreadsheet would run as a formula gets an apostrophe, as OWASP recommends: names of logs and campaigns may
/// come from anyone.
///
/// # Errors
/// Returns the writer's error. Writing to memory gives none.
pub fn write_csv_record(text: &mut String, cells: &mut dyn Iterator<Item = &str>) -> fmt::Result {
    for (place, cell) in cells.enumerate() {
        if place > 0 {
            text.write_char(',')?;
        }
        let mark = if is_formula(cell) { "'" } else { "" };
        match cell.contains([',', '"', '\n', '\r']) {
            true => write!(text, "\"{mark}{}\"", cell.replace('"', "\"\""))?,
            false => write!(text, "{mark}{cell}")?,
        }
    }
    text.write_char('\n')
}

/// Returns whether a spreadsheet would take a cell for a formula. Numbers and single signs stay as they are.
fn is_formula(cell: &str) -> bool {
    // A sign may be the first character, or follow an e.
    let mut before = b'e';
    let is_of_number = |byte: u8| {
        let is_possible =
            matches!((before, byte), (_, b'0'..=b'9' | b'.') | (b'0'..=b'9', b'e') | (b'e', b'+' | b'-'));
        before = byte;
        is_possible
    };
    cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !cell.bytes().all(is_of_number)
}

/// Returns the places of the columns in which some row has a value.
fn filled(rows: &[Vec<Option<String>>], columns: usize) -> Vec<usize> {
    let is_filled = |place: &usize| rows.iter().any(|row| row.get(*place).is_some_and(Option::is_some));
    (0..columns).filter(is_filled).collect()
}

/// Returns a number in full, for CSV files.
fn number(value: Option<f64>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// Returns a whole number in full, for CSV files.
fn whole(value: Option<impl Into<u64>>) -> Option<String> {
    value.map(|value| value.into().to_string())
}

/// Returns a sentence list as one cell; none where there is no sentence.
fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of a view's CSV columns must be 0, 1, 2, … once each, and its keys must differ.
    fn check(mut places: Vec<usize>, mut keys: Vec<&'static str>) {
        places.sort_unstable();
        assert!(places.iter().copied().eq(0..places.len()), "{places:?}");
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "a key is used twice: {keys:?}");
    }

    #[test]
    fn markdown_cells_stay_in_their_columns() {
        let table = TextTable {
            titles: vec!["layout", "cost"],
            numbers: vec![false, true],
            rows: vec![vec![Some("a|b\n*c*".to_string()), None]],
        };
        assert_eq!(table.to_markdown(), "| layout | cost |\n| :-- | --: |\n| a\\|b\u{fffd}\\*c\\* | – |\n");
    }

    #[test]
    fn columns_without_a_value_are_left_out() {
        let row = |last: Option<&str>| vec![Some("a".to_string()), None, last.map(String::from)];
        let table = TextTable {
            titles: vec!["one", "two", "three"],
            numbers: vec![false, true, true],
            rows: vec![row(None), row(Some("c"))],
        };
        let kept = table.without_empty_columns();
        assert_eq!((kept.titles, kept.numbers), (vec!["one", "three"], vec![false, true]));
        assert_eq!(kept.rows[0], [Some("a".to_string()), None]);
    }

    #[test]
    fn a_csv_file_is_read_back_whatever_its_cells_contain() {
        let cells = ["plain", "a, b", "say \"yes\"", "two\nlines", "a\r", ""];
        let table = TextTable {
            titles: vec!["one", "t,wo", "\"three", "four", "five", "six"],
            numbers: vec![false; 6],
            rows: vec![cells.map(|cell| Some(cell.to_string())).to_vec()],
        };
        let text = table.to_csv().unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), table.titles);
        let row = reader.records().next().unwrap().unwrap();
        assert_eq!(row.iter().collect::<Vec<_>>(), cells);
        assert!(text.ends_with(",\"a\r\",\n"), "{text}");
    }

    #[test]
    fn no_text_of_a_csv_file_is_a_formula() {
        for (cell, written) in [
            ("=1+1", "'=1+1"),
            ("=", "'="),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+A1", "'+A1"),
            ("+e1", "'+e1"),
            ("-1-1", "'-1-1"),
            ("--tp 8", "'--tp 8"),
            ("-inf", "'-inf"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""),
            ("-", "-"),
            ("+", "+"),
            ("-5", "-5"),
            ("-0.25", "-0.25"),
            ("+8.2", "+8.2"),
            ("-1.5e-7", "-1.5e-7"),
            ("1=2", "1=2"),
            ("M-M*", "M-M*"),
            ("", ""),
        ] {
            let mut text = String::new();
            write_csv_record(&mut text, &mut [cell, "x"].into_iter()).unwrap();
            assert_eq!(text, format!("{written},x\n"));
        }
    }

    #[test]
    fn csv_columns_have_consecutive_places_and_keys_are_unique() {
        macro_rules! check {
            ($($Column:ident),*) => {$(
                check(
                    $Column::ALL.iter().filter_map(|column| column.csv_place()).collect(),
                    $Column::ALL.iter().map(|column| column.key()).collect(),
                );
            )*};
        }
        check!(
            LogColumn,
            ComparisonColumn,
            RecipeColumn,
            StoredRunColumn,
            CheckColumn,
            PlanColumn,
            LayoutColumn,
            PooledColumn,
            BenchmarkColumn
        );
    }
}
