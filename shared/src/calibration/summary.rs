//! Errors in a few numbers.

use crate::statistics::quantile;
use serde::Serialize;

/// How far predictions lie from measurements, as fractions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// Rows.
    pub n: usize,
    /// Mean of the absolute error.
    pub mape: f64,
    /// Median of it.
    pub median: f64,
    /// Nine of ten rows are nearer.
    pub p90: f64,
    /// Mean of the error: above zero, predictions are too slow.
    pub bias: f64,
}

impl Summary {
    /// Of errors, each predicted / measured − 1; none of no rows.
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let errors: Vec<f64> = errors.into_iter().collect();
        let n = errors.len();
        if n == 0 {
            return None;
        }
        let mut sizes: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let count = n as f64;
        Some(Summary {
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
    fn errors_by_hand() {
        let summary = Summary::of([0.1, -0.2, 0.3]).unwrap();
        assert_eq!((summary.n, summary.median), (3, 0.2));
        assert!((summary.mape - 0.2).abs() < 1e-12 && (summary.bias - 0.2 / 3.0).abs() < 1e-12);
        assert!((summary.p90 - 0.28).abs() < 1e-12);
        assert_eq!(Summary::of([]), None);
    }
}
