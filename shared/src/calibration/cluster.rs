//! One factor for one cluster, from what its user measured there.

use serde::Serialize;

/// How much slower than predicted a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusterFactor {
    /// Measured over predicted: the median, drawn towards one as long as few runs speak.
    pub factor: f64,
    /// Nine of ten such factors are expected above.
    pub low: f64,
    /// Nine of ten such factors are expected below.
    pub high: f64,
    /// Runs that were looked at.
    pub n: usize,
    /// Those of them that lie far from the others, and count little.
    pub outliers: usize,
}

/// How far one machine is from the usual one, as a standard deviation of the logarithm: what is known before its first
/// run. Boxes of one type were measured to differ by up to 30 %, most by far less.
const MACHINES: f64 = 0.1;
/// How far one run is, at least, from what its machine usually does with such a prediction.
const RUNS: f64 = 0.06;

impl ClusterFactor {
    /// From pairs of measured and predicted step times, s. Few runs move it little: a machine is believed to be usual
    /// until its runs say otherwise. None of no runs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<ClusterFactor> {
        let n = pairs.len();
        if n == 0 {
            return None;
        }
        let logs: Vec<f64> =
            pairs.iter().map(|(measured, predicted)| libm::log(measured / predicted)).collect();
        let middle = median(&logs);
        let distances: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
        // Of a normal distribution, the median distance is 1/1.4826 of the standard deviation.
        let scatter = (1.4826 * median(&distances)).max(RUNS);
        let outliers = distances.iter().filter(|distance| **distance > 4.0 * scatter).count();
        // Beyond what machines differ by, the runs are believed and not what was thought before.
        let machines = MACHINES.max(middle.abs() / 2.0);
        let (machine, run) = (1.0 / (machines * machines), n as f64 / (scatter * scatter));
        let centre = middle * run / (machine + run);
        // Eight of ten of a normal distribution lie within 1.2816 standard deviations; a median strays 1.2533 times as
        // far as a mean.
        let reach = 1.2816 * 1.2533 / libm::sqrt(machine + run);
        Some(ClusterFactor {
            factor: libm::exp(centre),
            low: libm::exp(centre - reach),
            high: libm::exp(centre + reach),
            n,
            outliers,
        })
    }

    /// Whether it is so far from one that the runs are more likely not what they were taken for.
    pub fn is_doubtful(&self) -> bool {
        !(0.5..2.0).contains(&self.factor)
    }
}

/// The value in the middle; between the two in the middle of an even count.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    super::quantile(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_moves_it_less_than_many() {
        let one = ClusterFactor::of(&[(1.2, 1.0)]).unwrap();
        let many = ClusterFactor::of(&[(1.2, 1.0); 30]).unwrap();
        assert!(1.0 < one.factor && one.factor < many.factor && many.factor < 1.2);
        assert!(many.high / many.low < one.high / one.low);
        assert_eq!(ClusterFactor::of(&[]), None);
    }

    #[test]
    fn one_run_far_off_is_told_apart() {
        let factor =
            ClusterFactor::of(&[(1.05, 1.0), (1.02, 1.0), (1.08, 1.0), (1.04, 1.0), (3.4, 1.0)]).unwrap();
        assert_eq!((factor.n, factor.outliers), (5, 1));
        assert!((1.0..1.1).contains(&factor.factor) && !factor.is_doubtful());
        assert!(ClusterFactor::of(&[(10.0, 1.0)]).unwrap().is_doubtful());
    }
}
