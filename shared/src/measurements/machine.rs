//! Measured properties of individual machines.

use crate::catalog::{DataError, FromRow, Row, read};
use std::sync::LazyLock;

/// A machine, by the collection of its runs.
struct Machine {
    source: String,
    gemm_tflops: f64,
}

impl FromRow for Machine {
    fn from_row(row: &Row<'_>) -> Result<Machine, DataError> {
        Ok(Machine { source: row.string("source")?, gemm_tflops: row.value("gemm_tflops")? })
    }
}

/// Returns the published rate of a large BF16 matrix multiplication on a collection's machine, in TFLOPS.
pub(super) fn gemm_tflops(source: &str) -> Option<f64> {
    static MACHINES: LazyLock<Vec<Machine>> = LazyLock::new(|| {
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        read("machines.csv", include_str!("../../data/machines.csv")).expect("the machines are well formed")
    });
    MACHINES.iter().find(|machine| machine.source == source).map(|machine| machine.gemm_tflops)
}
