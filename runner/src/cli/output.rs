//! Writes results to stdout: a table for people, JSON and CSV for programs.

use super::{Failure, note, terminal};
use clap::ValueEnum;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Write};
use trainplan_shared::tables::{CELL_PADDING, TerminalTable, TextTable, write_csv_record};
pub(super) use trainplan_shared::text::printable;

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
    /// For spreadsheets
    Csv,
}

/// The flag that every command with a result has.
#[derive(Debug, clap::Args)]
pub(super) struct FormatArg {
    /// How to write the result [default: table on a terminal, json otherwise]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

impl FormatArg {
    /// Returns the chosen format, by default a table on a terminal and JSON otherwise.
    pub(super) fn choose(&self) -> Format {
        self.format.unwrap_or(if io::stdout().is_terminal() { Format::Table } else { Format::Json })
    }

    /// Notes how to get text to read, if a person gets JSON in a pipe that they didn't ask for: `trainplan run … | less`.
    pub(super) fn note_unasked_json(&self) {
        if self.format.is_none() && !io::stdout().is_terminal() && io::stderr().is_terminal() {
            note("The output is JSON, because it doesn't go to a terminal. To read it, add --format table.");
        }
    }
}

/// Writes a value as indented JSON.
pub(super) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Format(error.to_string()))?;
    text_line(&text)
}

/// Writes a header and rows as CSV.
pub(super) fn csv<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), Failure> {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut write = |cells: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        write_csv_record(&mut line, cells).map_err(|error| Failure::Format(error.to_string()))?;
        Ok::<_, Failure>(stdout.write_all(line.as_bytes())?)
    };
    write(&mut header.into_iter())?;
    for row in rows {
        write(&mut row.iter().map(String::as_str))?;
    }
    Ok(stdout.flush()?)
}

/// Writes a table whose columns named in `numbers` are aligned right. On a narrow terminal, its texts are wrapped.
pub(super) fn table<const N: usize>(
    header: [&str; N],
    numbers: &[usize],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), Failure> {
    wide_table(&header.map(String::from), numbers, rows.into_iter().map(Vec::from))
}

/// The same, if the number of columns depends on the content.
pub(super) fn wide_table(
    header: &[String],
    numbers: &[usize],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<(), Failure> {
    let mut rows: Vec<Vec<String>> = rows.into_iter().collect();
    let widths = terminal::width().and_then(|width| terminal::narrowed(header, &rows, numbers, width));
    if let Some(widths) = &widths {
        // The table itself would break a command at its spaces.
        for (cell, width) in rows.iter_mut().flat_map(|row| row.iter_mut().zip(widths)) {
            *cell = terminal::wrapped(cell, *width, &[]);
        }
    }
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for number in numbers {
        if let Some(column) = table.column_mut(*number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for (place, width) in widths.into_iter().flatten().enumerate() {
        if let (Some(column), Ok(width)) = (table.column_mut(place), u16::try_from(width + CELL_PADDING)) {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
        }
    }
    let lines = table.to_string();
    let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
    text_line(&lines.join("\n"))
}

/// Writes the table of a view for people: unknown values are dashes, and no cell can control the terminal. A narrow
/// terminal gets the most important columns.
pub(super) fn text_table(table: TerminalTable) -> Result<(), Failure> {
    let (table, left_out) = match terminal::width() {
        Some(width) => table.within(width),
        None => (table.complete(), Vec::new()),
    };
    let titles: Vec<String> = table.titles.iter().map(|title| (*title).to_owned()).collect();
    let numbers = table.numbers.iter().enumerate().filter(|(_, is_number)| **is_number);
    let numbers: Vec<usize> = numbers.map(|(place, _)| place).collect();
    let cell = |cell: &Option<String>| printable(cell.as_deref().unwrap_or("–"));
    wide_table(&titles, &numbers, table.rows.iter().map(|row| row.iter().map(cell).collect()))?;
    if !left_out.is_empty() {
        note(&format!("no room for {}; use a wider terminal", left_out.join(", ")));
    }
    Ok(())
}

/// Writes the table of a view as CSV.
pub(super) fn csv_table(table: &TextTable) -> Result<(), Failure> {
    text(&table.to_csv().map_err(|error| Failure::Format(error.to_string()))?)
}

/// Writes sentences and a line end. On a terminal, lines end between words, but not in a command between backticks.
pub(super) fn prose(text: &str) -> Result<(), Failure> {
    prose_around(text, &[])
}

/// Writes sentences and a line end as [`prose`] does. Each text in `whole` stays on one line: a path or a command with
/// spaces, which a user would copy.
pub(super) fn prose_around(text: &str, whole: &[&str]) -> Result<(), Failure> {
    match terminal::width() {
        Some(width) => text_line(&terminal::wrapped(text, width, whole)),
        None => text_line(text),
    }
}

/// Writes text and a line end.
pub(super) fn text_line(line: &str) -> Result<(), Failure> {
    text(&format!("{line}\n"))
}

/// Writes text unchanged.
pub(super) fn text(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}
