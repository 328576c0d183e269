//! One factor for one cluster, from what its user measured there.

use serde::Serialize;

/// How much slower than predicted a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusterFactor {
    /// Measured over predicted: the geometric mean.
    pub factor: f64,
    /// Nine of ten such factors are expected above.
    pub low: f64,
    /// Nine of ten such factors are expected below.
    pub high: f64,
    /// Runs that it rests on.
    pub n: usize,
}

/// How far one machine is from the usual one, as a standard deviation of the logarithm: what is known before its first
/// run. Boxes of one type were measured to differ by up to 30 %, most by far less.
const MACHINES: f64 = 0.1;
/// How far one run is from what its machine usually does with such a prediction.
const RUNS: f64 = 0.06;

impl ClusterFactor {
    /// From pairs of measured and predicted step times, s. Few runs move it little: a machine is believed to be usual
    /// until its runs say otherwise. None of no runs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<ClusterFactor> {
        let n = pairs.len();
        if n == 0 {
            return None;
        }
        let mean =
            pairs.iter().map(|(measured, predicted)| libm::log(measured / predicted)).sum::<f64>() / n as f64;
        let (machine, run) = (1.0 / (MACHINES * MACHINES), n as f64 / (RUNS * RUNS));
        let centre = mean * run / (machine + run);
        // Eight of ten of a normal distribution lie within 1.2816 standard deviations.
        let reach = 1.2816 / libm::sqrt(machine + run);
        Some(ClusterFactor {
            factor: libm::exp(centre),
            low: libm::exp(centre - reach),
            high: libm::exp(centre + reach),
            n,
        })
    }
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
}
