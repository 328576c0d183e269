//! Measured properties of individual machines.

use crate::data_file::{DataError, FromRow, Row, embedded};
use std::sync::LazyLock;

/// A machine, by the collection of its runs.
struct Machine {
    source: String,
    gemm_tflops: f64,
}

impl FromRow for Machine {
    fn from_row(row: &Row<'_>) -> Result<Machine, DataError> {
        Ok(Machine { source: row.string("source")?, gemm_tflops: row.number("gemm_tflops")? })
    }
}

/// Returns the published rate of a large BF16 matrix multiplication on a collection's machine, in TFLOPS.
pub(super) fn gemm_tflops(source: &str) -> Option<f64> {
    static MACHINES: LazyLock<Vec<Machine>> = LazyLock::new(|| embedded!("machines.csv"));
    MACHINES.iter().find(|machine| machine.source == source).map(|machine| machine.gemm_tflops)
}
