//! The embedded data files. They are read column by column, because derived deserializers for every row type would be
//! larger in the browser than the data.

use crate::decimal::parse_decimal;
use crate::words::words;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// An invalid data file. It is in a box, because every column that is read returns either its value or an error, and moving a large one
/// takes more code.
#[derive(Debug)]
pub(crate) struct DataError(Box<DataFault>);

#[derive(Debug)]
struct DataFault {
    file: &'static str,
    row: usize,
    reason: String,
}

impl DataError {
    /// Returns the reason without file and row.
    pub(crate) fn into_reason(self) -> String {
        let DataFault { reason, .. } = *self.0;
        reason
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DataFault { file, row, reason } = &*self.0;
        write!(f, "{file}, row {row}: {reason}")
    }
}

impl std::error::Error for DataError {}

/// A row of a data file.
pub(crate) struct Row<'a> {
    file: &'static str,
    number: usize,
    header: &'a [Cow<'a, str>],
    cells: &'a [Cow<'a, str>],
}

/// A type that can be read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> Result<Self, DataError>;
}

impl<'a> Row<'a> {
    /// Returns a row that is not part of a file.
    pub(crate) fn alone(header: &'a [Cow<'a, str>], cells: &'a [Cow<'a, str>]) -> Row<'a> {
        Row { file: "", number: 1, header, cells }
    }
}

impl Row<'_> {
    /// Returns the text of a column.
    pub(crate) fn text(&self, column: &str) -> Result<&str, DataError> {
        let index = self.header.iter().position(|name| name == column);
        index
            .and_then(|index| self.cells.get(index))
            .map(|cell| &**cell)
            .ok_or_else(|| self.error(words!("the column {column} is missing")))
    }

    /// Returns the text of a column as a `String`.
    pub(crate) fn string(&self, column: &str) -> Result<String, DataError> {
        self.text(column).map(String::from)
    }

    /// Returns the parsed value of a column. An `f64`, which is not `Eq`, is read by [`Row::number`].
    pub(crate) fn value<T: FromStr + Eq>(&self, column: &str) -> Result<T, DataError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.invalid(column, text))
    }

    /// Returns the parsed value of a column that can be empty.
    pub(crate) fn optional<T: FromStr + Eq>(&self, column: &str) -> Result<Option<T>, DataError> {
        if self.text(column)?.is_empty() { Ok(None) } else { self.value(column).map(Some) }
    }

    /// Returns the parsed values of a column, separated by spaces.
    pub(crate) fn list<T: FromStr + Eq>(&self, column: &str) -> Result<Vec<T>, DataError> {
        let text = self.text(column)?;
        text.split(' ').map(|word| word.parse().map_err(|_| self.invalid(column, text))).collect()
    }

    /// Returns the number in a column.
    pub(crate) fn number(&self, column: &str) -> Result<f64, DataError> {
        let text = self.text(column)?;
        parse_decimal(text).ok_or_else(|| self.invalid(column, text))
    }

    /// Returns the number in a column that can be empty.
    pub(crate) fn optional_number(&self, column: &str) -> Result<Option<f64>, DataError> {
        if self.text(column)?.is_empty() { Ok(None) } else { self.number(column).map(Some) }
    }

    fn invalid(&self, column: &str, text: &str) -> DataError {
        match text {
            "" => self.error(words!("the column {column} is empty")),
            _ => self.error(words!("\"{text}\" in the column {column} is invalid")),
        }
    }

    /// Returns whether a column is `yes`, rather than `no` or empty.
    pub(crate) fn yes(&self, column: &str) -> Result<bool, DataError> {
        match self.text(column)? {
            "yes" => Ok(true),
            "no" | "" => Ok(false),
            other => Err(self.error(words!("\"{other}\" in the column {column} is neither yes nor no"))),
        }
    }

    /// Returns the place of the row in its file, from 1.
    #[cfg(feature = "calibrate")]
    pub(crate) fn place(&self) -> usize {
        self.number
    }

    /// Returns an error about this row.
    pub(crate) fn error(&self, reason: String) -> DataError {
        DataError(Box::new(DataFault { file: self.file, row: self.number, reason }))
    }
}

/// Returns the rows of a data file. Lines that start with `#` are comments.
pub(crate) fn read<T: FromRow>(file: &'static str, text: &str) -> Result<Vec<T>, DataError> {
    read_with(file, text, T::from_row)
}

/// Returns what `from_row` reads from each row of a data file.
pub(crate) fn read_with<T>(
    file: &'static str,
    text: &str,
    from_row: impl Fn(&Row<'_>) -> Result<T, DataError>,
) -> Result<Vec<T>, DataError> {
    let mut rows = Vec::new();
    for_each_row(file, text, &mut |row| {
        rows.push(from_row(row)?);
        Ok(())
    })?;
    Ok(rows)
}

/// Reads each row of a data file. It is the same for every type of row, so that programs have it once.
fn for_each_row(
    file: &'static str,
    text: &str,
    read: &mut dyn FnMut(&Row<'_>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let mut rest = text;
    let mut header = Vec::new();
    take_row(&mut rest, &mut header);
    let (mut number, mut cells) = (0, Vec::new());
    while take_row(&mut rest, &mut cells) {
        number += 1;
        let row = Row { file, number, header: &header, cells: &cells };
        if cells.len() != header.len() {
            return Err(row.error(words!("{} cells instead of {}", cells.len(), header.len())));
        }
        read(&row)?;
    }
    Ok(())
}

/// Takes the cells of the next row of a CSV text. Returns whether there was one.
fn take_row<'a>(rest: &mut &'a str, cells: &mut Vec<Cow<'a, str>>) -> bool {
    cells.clear();
    while rest.starts_with(['#', '\n']) {
        *rest = rest.split_once('\n').map_or("", |(_, after)| after);
    }
    if rest.is_empty() {
        return false;
    }
    loop {
        cells.push(take_cell(rest));
        match rest.strip_prefix(',') {
            Some(after) => *rest = after,
            None => {
                *rest = rest.strip_prefix('\n').unwrap_or(rest);
                return true;
            }
        }
    }
}

/// Takes the next cell, and leaves the comma or the end of the line behind it. In quotes, a quote is written twice.
fn take_cell<'a>(rest: &mut &'a str) -> Cow<'a, str> {
    let Some(quoted) = rest.strip_prefix('"') else {
        let (cell, after) = rest.split_at(rest.find([',', '\n']).unwrap_or(rest.len()));
        *rest = after;
        return Cow::Borrowed(cell);
    };
    let mut end = 0;
    while let Some(at) = quoted[end..].find('"') {
        end += at;
        if !quoted[end + 1..].starts_with('"') {
            break;
        }
        end += 2;
    }
    let (cell, after) = quoted.split_at(end);
    *rest = after.strip_prefix('"').unwrap_or_default();
    if cell.contains('"') { Cow::Owned(cell.replace("\"\"", "\"")) } else { Cow::Borrowed(cell) }
}

/// Returns the rows of an embedded data file. Use it through [`embedded!`].
pub(crate) fn embedded_rows<T: FromRow>(file: &'static str, text: &str) -> Vec<T> {
    let mut rows = Vec::new();
    for_each_embedded_row(file, text, &mut |row| {
        rows.push(T::from_row(row)?);
        Ok(())
    });
    rows
}

/// Reads each row of an embedded data file. Its lines are columns, each with its name first.
#[expect(clippy::panic, reason = "the file is fixed when this is built, and tests read every one")]
fn for_each_embedded_row(
    file: &'static str,
    text: &str,
    read: &mut dyn FnMut(&Row<'_>) -> Result<(), DataError>,
) {
    let (mut rest, mut column) = (text, Vec::new());
    let mut columns: Vec<Vec<Cow<'_, str>>> = Vec::new();
    while take_row(&mut rest, &mut column) {
        columns.push(std::mem::take(&mut column));
    }
    let cells_of = |number: usize| columns.iter().map(|column| column[number].clone()).collect::<Vec<_>>();
    let header = cells_of(0);
    for number in 1..columns.first().map_or(0, Vec::len) {
        let cells = cells_of(number);
        if let Err(error) = read(&Row { file, number, header: &header, cells: &cells }) {
            // Not `expect`, which would add the code that writes an error for debugging to every program.
            panic!("{error}");
        }
    }
}

/// Reads the rows of a file in `data/`, which the program embeds as `build.rs` writes it: without comments, column by column.
macro_rules! embedded {
    ($file:literal) => {
        $crate::data_file::embedded_rows($file, include_str!(concat!(env!("OUT_DIR"), "/", $file)))
    };
}
pub(crate) use embedded;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[derive(Debug)]
    struct Pair(u32, Option<f64>, bool);

    impl FromRow for Pair {
        fn from_row(row: &Row<'_>) -> Result<Pair, DataError> {
            Ok(Pair(row.value("a")?, row.optional_number("b")?, row.yes("c")?))
        }
    }

    #[test]
    fn comments_are_skipped_and_empty_is_none() {
        let rows: Vec<Pair> = read("x.csv", "# said\na,b,c\n1,,yes\n2,0.5,\n").unwrap();
        assert_eq!((rows[0].0, rows[0].1, rows[0].2), (1, None, true));
        assert_eq!((rows[1].0, rows[1].1, rows[1].2), (2, Some(0.5), false));
    }

    #[test]
    fn a_cell_in_quotes_can_have_commas_quotes_and_lines() {
        let mut rest = "a,\"b, \"\"c\"\"\nd\",\"\"\n\n# e\nf,,";
        let mut cells = Vec::new();
        assert!(take_row(&mut rest, &mut cells));
        assert_eq!(cells, ["a", "b, \"c\"\nd", ""]);
        assert!(take_row(&mut rest, &mut cells));
        assert_eq!(cells, ["f", "", ""]);
        assert!(!take_row(&mut rest, &mut cells));
    }

    #[test]
    fn every_data_file_is_read_as_by_the_csv_crate() {
        let directories = [concat!(env!("CARGO_MANIFEST_DIR"), "/data"), env!("OUT_DIR")];
        let files = directories.into_iter().flat_map(|directory| fs::read_dir(directory).unwrap());
        let mut count = 0;
        for file in files {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let mut reader = csv::ReaderBuilder::new();
            let mut reader = reader.has_headers(false).comment(Some(b'#')).from_reader(text.as_bytes());
            let (mut rest, mut cells) = (&*text, Vec::new());
            for record in reader.records() {
                let record = record.unwrap();
                assert!(take_row(&mut rest, &mut cells), "{}: {record:?}", path.display());
                assert!(record.iter().eq(cells.iter().map(|cell| &**cell)), "{}: {record:?}", path.display());
            }
            assert!(!take_row(&mut rest, &mut cells), "{}: {cells:?}", path.display());
            count += 1;
        }
        assert!(count > 60, "{count}");
    }

    #[test]
    fn a_row_has_as_many_cells_as_the_header() {
        for row in ["1,2", "1,2,yes,4", "1,2,\"yes\"no"] {
            let error = read::<Pair>("x.csv", &format!("a,b,c\n{row}\n")).unwrap_err();
            assert!(error.to_string().contains("instead of 3"), "{error}");
        }
    }

    #[test]
    fn a_wrong_cell_is_named() {
        let error = read::<Pair>("x.csv", "a,b,c\n1,,\nx,,\n").unwrap_err();
        assert_eq!(error.to_string(), "x.csv, row 2: \"x\" in the column a is invalid");
        assert!(
            read::<Pair>("x.csv", "a,b\n1,\n").unwrap_err().to_string().contains("the column c is missing")
        );
    }
}
