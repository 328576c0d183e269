//! Assumptions: the values that a whole run is planned with unless the user sets them, each with its source.

use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row, embedded};
use std::sync::LazyLock;

choices! {
    /// A value that is assumed for a whole run. The order is that of the data file.
    Assumption {
        /// Time from a failure until training continues, in seconds, in a job that keeps its allocation.
        RecoveryTime "recovery-time" "Recovery time",
        /// Bandwidth of a checkpoint, in 10⁹ bytes per second and GPU.
        SaveBandwidth "save-bandwidth" "Checkpoint bandwidth",
        /// Size of a checkpoint, in bytes per parameter.
        CheckpointSize "checkpoint-size" "Checkpoint size",
        /// Spare nodes, as a share of the nodes that train.
        SpareNodes "spare-nodes" "Spare nodes",
        /// Time for evaluation, warm-up and batch ramps, as a share of the training time.
        Overhead "overhead" "Overhead",
        /// Number of checkpoints that are kept.
        CheckpointsKept "checkpoints-kept" "Checkpoints kept",
        /// Storage, in US dollars per 10¹² bytes and month.
        StoragePrice "storage-price" "Storage price",
        /// Power of a site divided by the power of its computers.
        Pue "pue" "PUE",
        /// Electricity, in US dollars per kWh.
        ElectricityPrice "electricity-price" "Electricity price",
        /// Tokens per parameter of compute-optimal training.
        TokensPerParameter "tokens-per-parameter" "Tokens per parameter",
        /// Memory that the search keeps free on each GPU, in GiB.
        Headroom "headroom" "Headroom",
        /// The longest run that is planned for a budget without a deadline, in days.
        LongestRun "longest-run" "Longest run",
    }
}

/// A row of `assumptions.csv`.
struct AssumedValue {
    id: String,
    value: f64,
}

impl FromRow for AssumedValue {
    fn from_row(row: &Row<'_>) -> Result<AssumedValue, DataError> {
        Ok(AssumedValue { id: row.string("id")?, value: row.number("value")? })
    }
}

/// Where an assumed value comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct AssumptionSource {
    id: String,
    /// The unit of the value, for people.
    pub unit: String,
    /// The source, for people.
    pub source: String,
    /// The date of the source: `2026-04`.
    pub date: String,
}

impl FromRow for AssumptionSource {
    fn from_row(row: &Row<'_>) -> Result<AssumptionSource, DataError> {
        Ok(AssumptionSource {
            id: row.string("id")?,
            unit: row.string("unit")?,
            source: row.string("source")?,
            date: row.string("date")?,
        })
    }
}

impl Assumption {
    /// Returns the value.
    pub fn value(self) -> f64 {
        static EMBEDDED: LazyLock<Vec<AssumedValue>> = LazyLock::new(|| embedded!("assumptions.csv"));
        // Every assumption has a row, as a test checks.
        EMBEDDED.iter().find(|row| row.id == self.id()).map_or(f64::NAN, |row| row.value)
    }

    /// Returns where the value comes from.
    pub fn source(self) -> &'static AssumptionSource {
        static EMBEDDED: LazyLock<Vec<AssumptionSource>> =
            LazyLock::new(|| embedded!("assumption_sources.csv"));
        &EMBEDDED[self as usize]
    }
}

impl AssumptionSource {
    /// Returns the source and its date, as a note of a derivation: "assumed: …, 2026-04".
    pub fn note(&self) -> String {
        format!("assumed: {}, {}", self.source, self.date)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_assumption_has_its_row_and_a_source() {
        for assumption in Assumption::ALL {
            let source = assumption.source();
            assert_eq!(source.id, assumption.id());
            assert!(assumption.value() >= 0.0 && !source.source.is_empty() && source.date.starts_with("20"));
        }
    }
}
