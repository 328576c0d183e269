//! Measured training runs, to which the estimate is fitted and compared.

mod machine;
mod published;
mod row;
mod scenario;

pub use row::{Measurement, MeasurementUse, Outcome};
pub use scenario::MeasuredScenario;

use crate::data_file::read_with;
use crate::stack::Software;
use std::sync::LazyLock;

/// Returns the embedded measurements.
pub fn embedded() -> &'static [Measurement] {
    static EMBEDDED: LazyLock<Vec<Measurement>> = LazyLock::new(|| {
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        parse(include_str!("../../data/measurements.csv"), None)
            .expect("the embedded measurements are well formed")
    });
    &EMBEDDED
}

/// Parses a file with the columns of `measurements.csv`; columns that would be empty may be missing. `own` is the software
/// of rows whose framework is `own`.
///
/// # Errors
/// The text is not a CSV table. A row that can't be predicted is not an error; its scenario has the reason.
pub fn parse(text: &str, own: Option<Software>) -> Result<Vec<Measurement>, String> {
    read_with("measurements", text, |row| Measurement::from_row(row, own)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_for_fitting_is_a_scenario() {
        let rows = embedded();
        assert_eq!(rows.len(), 3322);
        for row in rows.iter().filter(|row| row.is_for_fitting()) {
            assert!(row.scenario.is_ok(), "{}: {}", row.id, row.scenario.as_ref().unwrap_err());
        }
    }
}
