//! How often training jobs fail, by published studies.

use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::field::Field;
use crate::problem::Problem;
use crate::range::ValueRange;
use serde::Serialize;
use std::str::FromStr;
use std::sync::LazyLock;

/// A published study of failures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureStudy {
    /// The id in the data file.
    pub id: String,
    /// The name for people.
    pub title: String,
    /// Unplanned interruptions per GPU-hour.
    pub per_gpu_hour: f64,
    /// What was observed.
    pub basis: String,
    /// The publication.
    pub source: String,
    /// The date of publication: `2024-07`.
    pub date: String,
}

impl FromRow for FailureStudy {
    fn from_row(row: &Row<'_>) -> Result<FailureStudy, DataError> {
        Ok(FailureStudy {
            per_gpu_hour: row.number("per_gpu_hour")?,
            id: row.string("id")?,
            title: row.string("title")?,
            basis: row.string("basis")?,
            source: row.string("source")?,
            date: row.string("date")?,
        })
    }
}

impl FailureStudy {
    /// Returns the studies, from the lowest rate to the highest.
    pub fn all() -> &'static [FailureStudy] {
        static EMBEDDED: LazyLock<Vec<FailureStudy>> = LazyLock::new(|| embedded!("failure_rates.csv"));
        &EMBEDDED
    }
}

/// The rate of failures that a plan assumes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FailureRate {
    /// From the lowest to the highest of the published studies.
    Studies,
    /// The user's own rate or range, in failures per GPU-hour.
    Own(ValueRange),
}

impl FailureRate {
    /// Returns the range of rates, in failures per GPU-hour.
    pub fn per_gpu_hour(self) -> ValueRange {
        match self {
            FailureRate::Own(range) => range,
            FailureRate::Studies => {
                let rates = FailureStudy::all().iter().map(|study| study.per_gpu_hour);
                let ends = |range: ValueRange, rate: f64| ValueRange {
                    low: range.low.min(rate),
                    high: range.high.max(rate),
                };
                rates.fold(ValueRange { low: f64::INFINITY, high: 0.0 }, ends)
            }
        }
    }

    /// Returns the middle of the range, in failures per GPU-hour. Rates span a factor, so it is the geometric mean.
    pub(super) fn middle(self) -> f64 {
        let ValueRange { low, high } = self.per_gpu_hour();
        (low * high).sqrt()
    }

    /// Returns the source of the range, for people.
    pub fn source(self) -> String {
        match self {
            FailureRate::Own(_) => "yours".to_string(),
            FailureRate::Studies => {
                let studies = FailureStudy::all().iter();
                let named = studies.map(|study| format!("{:e} ({})", study.per_gpu_hour, study.title));
                format!("per GPU-hour: {}", named.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl FromStr for FailureRate {
    type Err = Problem;

    fn from_str(text: &str) -> Result<FailureRate, Problem> {
        let range = Field::FailureRate.bounds().range(text);
        range.map(FailureRate::Own).ok_or_else(|| Field::FailureRate.refuse(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_follow_from_what_the_studies_observed() {
        let [llama, rsc] = FailureStudy::all() else { panic!("two studies") };
        assert!((llama.per_gpu_hour / (419.0 / (16_384.0 * 54.0 * 24.0)) - 1.0).abs() < 0.005);
        assert!((rsc.per_gpu_hour / (1.0 / (7.9 * 1024.0)) - 1.0).abs() < 0.05);
        let range = FailureRate::Studies.per_gpu_hour();
        assert_eq!(range, ValueRange { low: 1.97e-5, high: 1.2e-4 });
        assert!(Field::FailureRate.help().contains("1.97e-5..1.2e-4"), "{}", Field::FailureRate.help());
        let source = "per GPU-hour: 1.97e-5 (Llama 3 405B), 1.2e-4 (Meta RSC)";
        assert_eq!(FailureRate::Studies.source(), source);
        // A job on 512 GPUs fails once in 99 h or in 16 h.
        assert!(
            (1.0 / (range.low * 512.0) - 99.0).abs() < 1.0 && (1.0 / (range.high * 512.0) - 16.3).abs() < 0.1
        );
    }

    #[test]
    fn an_own_rate_replaces_both_studies() {
        let own: FailureRate = "5e-5".parse().unwrap();
        assert_eq!((own.per_gpu_hour(), own.source()), (ValueRange::of(5e-5), "yours".to_string()));
        assert_eq!("0".parse::<FailureRate>().unwrap().per_gpu_hour(), ValueRange::of(0.0));
        for text in ["often", "-1e-5", "2e-4..1e-4", "2"] {
            assert!(text.parse::<FailureRate>().is_err(), "{text}");
        }
    }
}
