//! The embedded data files. They are read column by column, because derived deserializers for every row type would be
//! larger in the browser than the data.

use std::str::FromStr;

/// An invalid data file.
#[derive(Debug, thiserror::Error)]
#[error("{file}, row {row}: {reason}")]
pub(crate) struct DataError {
    file: &'static str,
    row: usize,
    reason: String,
}

impl DataError {
    /// Returns the reason without file and row.
    pub(crate) fn into_reason(self) -> String {
        self.reason
    }
}

/// A row of a data file.
pub(crate) struct Row<'a> {
    file: &'static str,
    number: usize,
    header: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
}

/// A type that can be read from a row.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &Row<'_>) -> Result<Self, DataError>;
}

impl<'a> Row<'a> {
    /// Returns a row that is not part of a file.
    pub(crate) fn alone(header: &'a csv::StringRecord, record: &'a csv::StringRecord) -> Row<'a> {
        Row { file: "", number: 1, header, record }
    }
}

impl Row<'_> {
    /// Returns the text of a column.
    pub(crate) fn text(&self, column: &str) -> Result<&str, DataError> {
        let index = self.header.iter().position(|name| name == column);
        index
            .and_then(|index| self.record.get(index))
            .ok_or_else(|| self.error(format!("the column {column} is missing")))
    }

    /// Returns the text of a column as a `String`.
    pub(crate) fn string(&self, column: &str) -> Result<String, DataError> {
        self.text(column).map(String::from)
    }

    /// Returns the parsed value of a column.
    pub(crate) fn value<T: FromStr>(&self, column: &str) -> Result<T, DataError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| match text {
            "" => self.error(format!("the column {column} is empty")),
            _ => self.error(format!("\"{text}\" in the column {column} is invalid")),
        })
    }

    /// Returns the parsed value of a column that can be empty.
    pub(crate) fn optional<T: FromStr>(&self, column: &str) -> Result<Option<T>, DataError> {
        if self.text(column)?.is_empty() { Ok(None) } else { self.value(column).map(Some) }
    }

    /// Returns whether a column is `yes`, rather than `no` or empty.
    pub(crate) fn yes(&self, column: &str) -> Result<bool, DataError> {
        match self.text(column)? {
            "yes" => Ok(true),
            "no" | "" => Ok(false),
            other => Err(self.error(format!("\"{other}\" in the column {column} is neither yes nor no"))),
        }
    }

    /// Returns the number of the row in its file, from 1.
    #[cfg(feature = "calibrate")]
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns an error about this row.
    pub(crate) fn error(&self, reason: String) -> DataError {
        DataError { file: self.file, row: self.number, reason }
    }
}

/// Returns the rows of a data file. Lines that start with `#` are comments.
pub(crate) fn read<T: FromRow>(file: &'static str, text: &str) -> Result<Vec<T>, DataError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let broken = |row: usize, error: csv::Error| DataError { file, row, reason: error.to_string() };
    let header = reader.headers().map_err(|error| broken(0, error))?.clone();
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| broken(rows.len() + 1, error))? {
        rows.push(T::from_row(&Row { file, number: rows.len() + 1, header: &header, record: &record })?);
    }
    Ok(rows)
}

/// Returns the rows of an embedded data file. Use it through [`embedded!`].
pub(crate) fn embedded_rows<T: FromRow>(file: &'static str, text: &str) -> Vec<T> {
    #[expect(clippy::expect_used, reason = "the file is fixed when this is built, and tests read every one")]
    read(file, text).expect("an embedded data file is well formed")
}

/// Reads the rows of a file in `data/`, which the program embeds.
macro_rules! embedded {
    ($file:literal) => {
        $crate::data_file::embedded_rows(
            $file,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/", $file)),
        )
    };
}
pub(crate) use embedded;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Pair(u32, Option<f64>, bool);

    impl FromRow for Pair {
        fn from_row(row: &Row<'_>) -> Result<Pair, DataError> {
            Ok(Pair(row.value("a")?, row.optional("b")?, row.yes("c")?))
        }
    }

    #[test]
    fn comments_are_skipped_and_empty_is_none() {
        let rows: Vec<Pair> = read("x.csv", "# said\na,b,c\n1,,yes\n2,0.5,\n").unwrap();
        assert_eq!((rows[0].0, rows[0].1, rows[0].2), (1, None, true));
        assert_eq!((rows[1].0, rows[1].1, rows[1].2), (2, Some(0.5), false));
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
