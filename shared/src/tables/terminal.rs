//! Tables for a terminal, which may be too narrow for all their columns.

use super::{TextTable, filled};

/// The columns around a cell: a space on each side.
pub const CELL_PADDING: usize = 2;

/// Texts are wrapped to this many characters before other columns are left out.
const WRAPPED_WIDTH: usize = 24;

/// The heading of a column on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalHeading {
    title: &'static str,
    is_number: bool,
    is_wrapped: bool,
    extra: Option<u8>,
}

impl TerminalHeading {
    /// Returns the heading of a column of texts.
    #[must_use]
    pub const fn new(title: &'static str) -> Self {
        Self { title, is_number: false, is_wrapped: false, extra: None }
    }

    /// Returns the heading of a column of numbers, which are aligned right.
    #[must_use]
    pub const fn number(self) -> Self {
        Self { is_number: true, ..self }
    }

    /// Returns the heading of a column whose texts are wrapped before other columns are left out.
    #[must_use]
    pub const fn wraps(self) -> Self {
        Self { is_wrapped: true, ..self }
    }

    /// Returns the heading of a column that a narrow terminal leaves out, those with the highest number first.
    #[must_use]
    pub const fn extra(self, number: u8) -> Self {
        Self { extra: Some(number), ..self }
    }
}

/// A table for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalTable {
    headings: Vec<TerminalHeading>,
    rows: Vec<Vec<Option<String>>>,
}

impl TerminalTable {
    /// Returns a table: rows with a cell for each heading, none where the value is not known.
    #[must_use]
    pub fn new(headings: Vec<TerminalHeading>, rows: Vec<Vec<Option<String>>>) -> Self {
        Self { headings, rows }
    }

    /// Returns the table with all its columns.
    #[must_use]
    pub fn complete(self) -> TextTable {
        TextTable {
            titles: self.headings.iter().map(|heading| heading.title).collect(),
            numbers: self.headings.iter().map(|heading| heading.is_number).collect(),
            rows: self.rows,
        }
    }

    /// Returns the table without the columns whose values are all unknown.
    #[must_use]
    pub fn without_empty_columns(self) -> Self {
        let kept = filled(&self.rows, self.headings.len());
        self.only(&kept)
    }

    /// Returns the table for a terminal of this width, and the titles of the columns that don't fit.
    ///
    /// Columns without values are left out first, then the extra ones. What remains may still be too wide.
    #[must_use]
    pub fn within(self, width: usize) -> (TextTable, Vec<&'static str>) {
        let mut left_out = Vec::new();
        if self.least_width() <= width || self.rows.is_empty() {
            return (self.complete(), left_out);
        }
        let mut table = self.without_empty_columns();
        while table.least_width() > width {
            let extras = table.headings.iter().enumerate().filter(|(_, heading)| heading.extra.is_some());
            let Some((least, heading)) = extras.max_by_key(|(_, heading)| heading.extra) else { break };
            left_out.push(heading.title);
            let kept: Vec<usize> = (0..table.headings.len()).filter(|place| *place != least).collect();
            table = table.only(&kept);
        }
        (table.complete(), left_out)
    }

    /// Returns the width of the table if its longest texts are wrapped.
    fn least_width(&self) -> usize {
        let width = |(place, heading): (usize, &TerminalHeading)| {
            let cells = self.rows.iter().filter_map(|row| row.get(place)?.as_deref());
            let texts = cells.chain([heading.title]);
            let longest = texts.map(|text| text.chars().count()).max().unwrap_or_default();
            let longest = if heading.is_wrapped { longest.min(WRAPPED_WIDTH) } else { longest };
            longest + CELL_PADDING
        };
        // Nothing is written after the last cell.
        self.headings.iter().enumerate().map(width).sum::<usize>().saturating_sub(1)
    }

    /// Returns the table with these columns.
    fn only(self, kept: &[usize]) -> Self {
        let keep = |row: &Vec<Option<String>>| kept.iter().map(|place| row[*place].clone()).collect();
        Self {
            headings: kept.iter().map(|place| self.headings[*place]).collect(),
            rows: self.rows.iter().map(keep).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TerminalTable {
        let headings = vec![
            TerminalHeading::new("layout").wraps(),
            TerminalHeading::new("MFU %").number().extra(2),
            TerminalHeading::new("recipe").extra(1),
            TerminalHeading::new("days").number(),
            TerminalHeading::new("cost").number().extra(3),
        ];
        let row = |layout: &str| {
            let cell = |text: &str| Some(text.to_string());
            vec![cell(layout), cell("39.2"), cell("llama"), cell("52 (46–60)"), None]
        };
        TerminalTable::new(headings, vec![row("TP 4"), row("TP 4 · PP 2 · VP 41 · MBS 1 · counted split")])
    }

    #[test]
    fn a_table_that_fits_keeps_all_columns() {
        // 24 characters of the layout, 5, 6, 10 and 4 of the others, with two spaces between them and one at the left.
        let (whole, left_out) = table().within(58);
        assert_eq!((&whole, left_out), (&table().complete(), Vec::new()));
        assert_eq!(whole.titles, ["layout", "MFU %", "recipe", "days", "cost"]);
        assert_eq!(whole.numbers, [false, true, false, true, true]);
    }

    #[test]
    fn a_narrow_terminal_leaves_out_empty_columns_then_the_extra_ones() {
        let within = |width: usize| {
            let (table, left_out) = table().within(width);
            assert!(table.rows.iter().all(|row| row.len() == table.titles.len()));
            (table.titles, left_out)
        };
        assert_eq!(within(57), (vec!["layout", "MFU %", "recipe", "days"], vec![]));
        assert_eq!(within(51), (vec!["layout", "recipe", "days"], vec!["MFU %"]));
        assert_eq!(within(44), (vec!["layout", "days"], vec!["MFU %", "recipe"]));
        assert_eq!(within(1), (vec!["layout", "days"], vec!["MFU %", "recipe"]));
    }

    #[test]
    fn a_table_without_rows_keeps_its_header() {
        let empty = TerminalTable { rows: Vec::new(), ..table() };
        assert_eq!(empty.within(1).0.titles.len(), 5);
    }
}
