//! Repeats of a run: the variation between them, and means over several of them.

use super::{MeanDifference, Sample, t_quantile};
use libm::{exp, log};

/// The mean of one run on a logarithmic scale, where differences are relative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunMean {
    /// The logarithm of the mean.
    pub logarithm: f64,
    /// The variance of that logarithm from the steps within the run.
    pub within: f64,
}

impl RunMean {
    /// Returns the mean of a run; `None` if it has one step, or its mean is not above 0.
    #[must_use]
    pub fn of(steps: &Sample) -> Option<Self> {
        let error = steps.standard_error? / steps.mean;
        let mean = Self { logarithm: log(steps.mean), within: error * error };
        (steps.mean > 0.0 && mean.logarithm.is_finite() && mean.within.is_finite()).then_some(mean)
    }
}

/// The variation between repeats, estimated from all groups of repeats together.
///
/// The model is the one-way random-effects model: the logarithm of run i's mean in group g is μ_g + b_gi + e_gi, with
/// b ~ N(0, τ²) between runs, the same τ² in every group, and e_gi ~ N(0, v_gi) within the run, where v_gi is known from
/// the run's steps ([`Sample`]). With k_g runs in group g, the pooled variance of their means,
///
/// S² = Σ_g Σ_i (y_gi − ȳ_g)² / ν, with ν = Σ_g (k_g − 1) degrees of freedom,
///
/// has the expectation τ² + v̄, with v̄ the mean of the v_gi of each group, weighted by k_g − 1. So τ² is estimated by the
/// method of moments as max(0, S² − v̄) (Hedges and Olkin, Statistical Methods for Meta-Analysis, 1985, ch. 9), and the
/// mean ȳ_g of a group has the variance (τ² + mean v_gi) / k_g. Intervals follow Student's t with ν degrees of freedom.
/// If the v_gi of all runs are equal, this is the pooled two-sample t interval of the runs' means, except that S² is
/// never taken to be below v̄: the interval isn't narrower than the steps within the runs allow. That is the
/// modification of Hartung and Knapp's interval for few studies (Röver, Knapp and Friede, BMC Medical Research
/// Methodology 15:99, 2015).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RepeatSpread {
    /// The standard deviation S of the means of repeats, on the logarithmic scale.
    pub deviation: f64,
    /// The part of S² that the steps within the runs do not explain: τ².
    pub between: f64,
    /// The degrees of freedom ν: the number of runs in groups of several, less the number of these groups.
    pub freedom: f64,
}

impl RepeatSpread {
    /// Estimates the variation from groups of repeats; `None` if no group has two runs.
    #[must_use]
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a [RunMean]>) -> Option<Self> {
        let (mut squares, mut within, mut freedom) = (0.0, 0.0, 0.0);
        for group in groups.into_iter().filter(|group| group.len() > 1) {
            let (mean, own) = (mean_of(group), group.len() as f64 - 1.0);
            squares += group.iter().map(|run| (run.logarithm - mean) * (run.logarithm - mean)).sum::<f64>();
            within += own * within_of(group);
            freedom += own;
        }
        let (variance, within) = (squares / freedom, within / freedom);
        (freedom > 0.0).then(|| Self {
            deviation: variance.sqrt(),
            between: (variance - within).max(0.0),
            freedom,
        })
    }

    /// Returns the variance of the mean over `runs`.
    fn variance(self, runs: &[RunMean]) -> f64 {
        (self.between + within_of(runs)) / runs.len() as f64
    }

    /// Returns the geometric mean of the runs' means, with its confidence interval; `None` without runs.
    #[must_use]
    pub fn mean(self, runs: &[RunMean]) -> Option<(f64, [f64; 2])> {
        let mean = mean_of(runs);
        let reach = t_quantile(self.freedom) * self.variance(runs).sqrt();
        (!runs.is_empty()).then(|| (exp(mean), [exp(mean - reach), exp(mean + reach)]))
    }

    /// Compares the mean over the runs `to` with that over `from`; `None` if one of them is empty.
    #[must_use]
    pub fn difference(self, from: &[RunMean], to: &[RunMean]) -> Option<MeanDifference> {
        let variance = self.variance(from) + self.variance(to);
        let either_is_empty = from.is_empty() || to.is_empty();
        (!either_is_empty).then(|| MeanDifference::of(mean_of(to) - mean_of(from), variance, self.freedom))
    }
}

/// Returns the mean of the logarithms, relative to the first, so that equal ones have exactly that mean.
fn mean_of(runs: &[RunMean]) -> f64 {
    super::mean(&runs.iter().map(|run| run.logarithm).collect::<Vec<f64>>())
}

/// Returns the mean variance within the runs.
fn within_of(runs: &[RunMean]) -> f64 {
    runs.iter().map(|run| run.within).sum::<f64>() / runs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::Noise;
    use super::*;
    use proptest::prelude::*;

    fn runs(means: &[f64], within: f64) -> Vec<RunMean> {
        means.iter().map(|mean| RunMean { logarithm: log(*mean), within }).collect()
    }

    fn difference(from: &[RunMean], to: &[RunMean]) -> MeanDifference {
        RepeatSpread::of([from, to]).unwrap().difference(from, to).unwrap()
    }

    #[test]
    fn the_spread_of_repeats_matches_numbers_computed_by_hand() {
        // Logarithms 0, 0.02 and 0.04, and 0.1 and 0.12: S² is (0.0008 + 0.0002) / 3.
        let from: Vec<RunMean> =
            [0.0, 0.02, 0.04].map(|logarithm| RunMean { logarithm, within: 1e-4 }).into();
        let to: Vec<RunMean> = [0.1, 0.12].map(|logarithm| RunMean { logarithm, within: 1e-4 }).into();
        let spread = RepeatSpread::of([from.as_slice(), to.as_slice()]).unwrap();
        assert!((spread.deviation - 0.018_257_4).abs() < 1e-6, "{spread:?}");
        assert!((spread.between - 2.333_333e-4).abs() < 1e-9, "{spread:?}");
        assert_eq!(spread.freedom, 3.0);
        // 0.09 ± 3.182446 · 0.0182574 · √(1/3 + 1/2) = 0.09 ± 0.053041.
        let change = spread.difference(&from, &to).unwrap();
        assert!((change.low.unwrap() - 100.0 * libm::expm1(0.09 - 0.053_041)).abs() < 1e-3, "{change:?}");
        assert!((change.high.unwrap() - 100.0 * libm::expm1(0.09 + 0.053_041)).abs() < 1e-3, "{change:?}");
        let (mean, [low, high]) = spread.mean(&from).unwrap();
        assert!((log(mean) - 0.02).abs() < 1e-12 && (log(low) + log(high) - 0.04).abs() < 1e-12);
        // The steps alone explain a spread this small: the interval is theirs, 3.182446 · √(0.01 · (1/3 + 1/2)).
        let steps =
            |runs: &[RunMean]| runs.iter().map(|run| RunMean { within: 0.01, ..*run }).collect::<Vec<_>>();
        let (from, to) = (steps(&from), steps(&to));
        assert_eq!(RepeatSpread::of([from.as_slice(), to.as_slice()]).unwrap().between, 0.0);
        let change = difference(&from, &to);
        assert!((change.high.unwrap() - 100.0 * libm::expm1(0.09 + 0.290_516)).abs() < 1e-3, "{change:?}");
    }

    #[test]
    fn single_runs_have_no_spread() {
        let one = runs(&[10.0], 1e-6);
        assert_eq!(RepeatSpread::of([one.as_slice(), one.as_slice(), &[]]), None);
        let three = runs(&[10.0; 3], 0.0);
        let change = difference(&three, &runs(&[10.0; 2], 0.0));
        assert_eq!(
            (change.percent, change.low, change.high, change.p),
            (0.0, Some(0.0), Some(0.0), Some(1.0))
        );
    }

    /// Intervals of differences between groups of repeats that have no true difference contain 0 about as often as 95 %:
    /// at least that often where the variation within runs matters.
    #[test]
    fn intervals_over_repeats_contain_the_true_difference_as_often_as_they_should() {
        let mut noise = Noise(11);
        for (from, to, between, most) in
            [(3, 1, 0.01, 970), (3, 3, 0.01, 970), (2, 2, 0.01, 970), (5, 2, 0.001, 1000), (2, 1, 0.01, 985)]
        {
            let mut group = |count: usize| -> Vec<RunMean> {
                (0..count)
                    .map(|_| {
                        let run = 10.0 * exp(between * noise.normal());
                        let steps: Vec<f64> = (0..30).map(|_| run * (1.0 + 0.005 * noise.normal())).collect();
                        RunMean::of(&Sample::of(&steps).unwrap()).unwrap()
                    })
                    .collect()
            };
            let covered = (0..1000)
                .filter(|_| {
                    let (from, to) = (group(from), group(to));
                    let change = difference(&from, &to);
                    change.low.unwrap() <= 0.0 && 0.0 <= change.high.unwrap()
                })
                .count();
            assert!((935..=most).contains(&covered), "{from} and {to} runs, {between}: {covered} of 1000");
        }
    }

    fn group(most: usize) -> impl Strategy<Value = Vec<RunMean>> {
        let run = (-1.0..1.0_f64, 0.0..0.01_f64);
        prop::collection::vec(run.prop_map(|(logarithm, within)| RunMean { logarithm, within }), 1..most)
    }

    proptest! {
        #[test]
        fn the_order_of_repeats_and_their_unit_do_not_matter(mut from in group(6), to in group(6), unit in -3.0..3.0_f64) {
            prop_assume!(from.len() + to.len() > 2);
            let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * (1.0 + one.abs());
            let before = difference(&from, &to);
            from.reverse();
            let in_unit = |runs: &[RunMean]| -> Vec<RunMean> {
                runs.iter().map(|run| RunMean { logarithm: run.logarithm + unit, ..*run }).collect()
            };
            let after = difference(&in_unit(&from), &in_unit(&to));
            prop_assert!(near(before.percent, after.percent));
            prop_assert!(near(before.low.unwrap(), after.low.unwrap()));
            prop_assert!(near(before.high.unwrap(), after.high.unwrap()));
        }

        #[test]
        fn the_interval_contains_the_difference_and_is_never_narrower_than_the_steps_allow(from in group(6), to in group(6)) {
            prop_assume!(from.len() + to.len() > 2);
            let change = difference(&from, &to);
            let (low, high) = (change.low.unwrap(), change.high.unwrap());
            prop_assert!(low <= change.percent && change.percent <= high);
            let steps: f64 = [&from, &to].iter().map(|runs| within_of(runs) / runs.len() as f64).sum();
            let width = log((100.0 + high) / (100.0 + low));
            let least = 2.0 * t_quantile((from.len() + to.len() - 2) as f64) * steps.sqrt();
            prop_assert!(width >= least * (1.0 - 1e-6), "{width} {least}");
        }

        #[test]
        fn more_variation_between_repeats_gives_a_wider_interval(from in group(6), to in group(6), factor in 1.0..5.0_f64) {
            prop_assume!(from.len() + to.len() > 2);
            let spread = |runs: &[RunMean]| -> Vec<RunMean> {
                let mean = mean_of(runs);
                let apart = |run: &RunMean| RunMean { logarithm: mean + factor * (run.logarithm - mean), ..*run };
                runs.iter().map(apart).collect()
            };
            let width = |change: MeanDifference| log((100.0 + change.high.unwrap()) / (100.0 + change.low.unwrap()));
            let (narrow, wide) = (difference(&from, &to), difference(&spread(&from), &spread(&to)));
            prop_assert!(width(wide) >= width(narrow) * (1.0 - 1e-9));
        }
    }
}
