//! Summaries of prediction errors.

use crate::statistics::quantile;
use serde::Serialize;

/// A summary of relative prediction errors, as fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ErrorSummary {
    /// Number of rows.
    pub n: usize,
    /// Mean of the absolute error.
    pub mape: f64,
    /// Median of the absolute error.
    pub median: f64,
    /// 90th percentile of the absolute error.
    pub p90: f64,
    /// Mean error; above 0 if predictions are too slow.
    pub bias: f64,
}

impl ErrorSummary {
    /// Summarizes errors, each predicted / measured − 1; `None` without rows.
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Option<ErrorSummary> {
        let errors: Vec<f64> = errors.into_iter().collect();
        let n = errors.len();
        if n == 0 {
            return None;
        }
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let count = n as f64;
        Some(ErrorSummary {
            n,
            mape: sizes.iter().sum::<f64>() / count,
            median: quantile(&sizes, 0.5),
            p90: quantile(&sizes, 0.9),
            bias: errors.iter().sum::<f64>() / count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_matches_values_computed_by_hand() {
        let summary = ErrorSummary::of([0.1, -0.2, 0.3]).unwrap();
        assert_eq!((summary.n, summary.median), (3, 0.2));
        assert!((summary.mape - 0.2).abs() < 1e-12 && (summary.bias - 0.2 / 3.0).abs() < 1e-12);
        assert!((summary.p90 - 0.28).abs() < 1e-12);
        assert_eq!(ErrorSummary::of([]), None);
    }
}
