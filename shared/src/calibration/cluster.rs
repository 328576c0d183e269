//! The speed factor of one cluster, from its measured runs.

use serde::Serialize;

/// Measured over predicted step time on one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusterFactor {
    /// Median of measured over predicted, shrunk towards 1 if there are few runs.
    pub factor: f64,
    /// Lower end of the factor's 80 % interval.
    pub low: f64,
    /// Upper end of the factor's 80 % interval.
    pub high: f64,
    /// Number of runs.
    pub n: usize,
    /// Number of runs far from the others.
    pub outliers: usize,
}

/// Prior standard deviation of the logarithm of a machine's factor. Machines of one type were measured to
/// differ by up to 30 %, most by much less.
const MACHINES: f64 = 0.1;
/// Smallest standard deviation of the logarithm of a run's factor on one machine.
const RUNS: f64 = 0.06;

impl ClusterFactor {
    /// Computes the factor from pairs of measured and predicted step times, s; `None` without pairs.
    ///
    /// The prior is a factor of 1, so few runs change it little.
    pub fn of(pairs: &[(f64, f64)]) -> Option<ClusterFactor> {
        let n = pairs.len();
        if n == 0 {
            return None;
        }
        let logs: Vec<f64> =
            pairs.iter().map(|(measured, predicted)| libm::log(measured / predicted)).collect();
        let middle = median(&logs);
        let distances: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
        // In a normal distribution, the median distance is 1/1.4826 of the standard deviation.
        let scatter = (1.4826 * median(&distances)).max(RUNS);
        let outliers = distances.iter().filter(|distance| **distance > 4.0 * scatter).count();
        // If the runs differ from 1 by more than machines usually do, the prior is widened.
        let machines = MACHINES.max(middle.abs() / 2.0);
        let (machine, run) = (1.0 / (machines * machines), n as f64 / (scatter * scatter));
        let centre = middle * run / (machine + run);
        // 80 % of a normal distribution lie within 1.2816 standard deviations; a median's standard error is
        // 1.2533 times that of a mean.
        let reach = 1.2816 * 1.2533 / libm::sqrt(machine + run);
        Some(ClusterFactor {
            factor: libm::exp(centre),
            low: libm::exp(centre - reach),
            high: libm::exp(centre + reach),
            n,
            outliers,
        })
    }

    /// Whether it is so far from 1 that the runs are probably described wrongly.
    pub fn is_doubtful(&self) -> bool {
        !(0.5..2.0).contains(&self.factor)
    }
}

/// Returns the median.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    super::quantile(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_changes_the_factor_less_than_many() {
        let one = ClusterFactor::of(&[(1.2, 1.0)]).unwrap();
        let many = ClusterFactor::of(&[(1.2, 1.0); 30]).unwrap();
        assert!(1.0 < one.factor && one.factor < many.factor && many.factor < 1.2);
        assert!(many.high / many.low < one.high / one.low);
        assert_eq!(ClusterFactor::of(&[]), None);
    }

    #[test]
    fn an_outlier_is_counted_and_hardly_changes_the_factor() {
        let factor =
            ClusterFactor::of(&[(1.05, 1.0), (1.02, 1.0), (1.08, 1.0), (1.04, 1.0), (3.4, 1.0)]).unwrap();
        assert_eq!((factor.n, factor.outliers), (5, 1));
        assert!((1.0..1.1).contains(&factor.factor) && !factor.is_doubtful());
        assert!(ClusterFactor::of(&[(10.0, 1.0)]).unwrap().is_doubtful());
    }
}
