//! Measured training runs: what the estimate is fitted to and judged by.

mod knobs;
mod machine;
mod row;
mod subject;

pub use row::Measurement;
pub use subject::Subject;

use crate::catalog::read;
use std::sync::LazyLock;

/// The measurements that this program carries.
pub fn embedded() -> &'static [Measurement] {
    static EMBEDDED: LazyLock<Vec<Measurement>> = LazyLock::new(|| {
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        parse(include_str!("../../data/measurements.csv")).expect("the embedded measurements are well formed")
    });
    &EMBEDDED
}

/// Reads a file with the columns of `measurements.csv`; columns may be missing where their cells would be empty.
///
/// # Errors
/// It is no such table; a row that can't be predicted is none, and says why itself.
pub fn parse(text: &str) -> Result<Vec<Measurement>, String> {
    let rows: Vec<Measurement> = read("measurements", text).map_err(|error| error.to_string())?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_subject_or_says_why_not() {
        let rows = embedded();
        assert_eq!(rows.len(), 1928);
        for row in rows.iter().filter(|row| matches!(&*row.usage, "fit" | "small")) {
            assert!(row.subject.is_ok(), "{}: {}", row.id, row.subject.as_ref().unwrap_err());
        }
    }
}
