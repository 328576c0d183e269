//! Statistics of step times: means with confidence intervals that respect autocorrelation, and differences of
//! means; exact intervals of counted events.
//!
//! Nothing is random: the same series gives the same interval.

mod poisson;
mod repeats;
mod student;

pub use poisson::poisson_interval;
pub use repeats::{RepeatSpread, RunMean};
pub use student::{t_quantile, two_sided_p};

use serde::{Deserialize, Serialize};

/// Confidence level of the intervals.
pub const LEVEL: f64 = 0.95;

/// The most blocks into which a longer series is averaged before its autocorrelation is computed, to save
/// time.
const MOST_BLOCKS: usize = 4096;

/// Summary statistics of a series of measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Sample {
    /// Number of values.
    pub n: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation with divisor n − 1; `None` for one value.
    pub std: Option<f64>,
    /// Number of independent values that would give the same standard error; `None` for one value.
    pub n_effective: Option<f64>,
    /// Standard error of the mean; `None` for one value.
    pub standard_error: Option<f64>,
    /// Lower end of the mean's 95 % confidence interval; `None` for one value.
    pub low: Option<f64>,
    /// Upper end of the mean's 95 % confidence interval; `None` for one value.
    pub high: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// 5th percentile.
    pub p5: f64,
    /// Median.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Largest value.
    pub max: f64,
}

impl Sample {
    /// Summarizes `values`, which must be in the order of measurement; `None` if there are none, or one is
    /// not finite.
    ///
    /// The standard error of the mean is s·√(τ/n), with the autocorrelation time τ by Geyer's initial
    /// monotone sequence (Statistical Science 7, 1992), and at least that of independent values. The interval
    /// is Student's with n/τ − 1 degrees of freedom. If no value is below 0, it is cut at 0: it would otherwise
    /// reach below 0 where a few values are far above the others. Long series are averaged in blocks first.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let mean = mean(values);
        if !(min.is_finite() && max.is_finite() && mean.is_finite()) {
            return None;
        }
        let spread = SeriesSpread::of(values).filter(|spread| spread.standard_error.is_finite());
        let reach = spread.map(|spread| t_quantile(spread.freedom) * spread.standard_error);
        Some(Self {
            n: values.len() as u64,
            mean,
            std: spread.map(|spread| spread.std),
            n_effective: spread.map(|spread| spread.n_effective),
            standard_error: spread.map(|spread| spread.standard_error),
            low: reach.map(|reach| if min >= 0.0 { (mean - reach).max(0.0) } else { mean - reach }),
            high: reach.map(|reach| mean + reach),
            min,
            p5: quantile(&sorted, 0.05),
            median: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            max,
        })
    }

    /// Returns the variance of the mean's logarithm; `None` for one value.
    fn relative_variance(&self) -> Option<Variance> {
        let error = self.standard_error? / self.mean;
        Some(Variance { variance: error * error, freedom: (self.n_effective? - 1.0).max(1.0) })
    }
}

/// The spread of a series.
#[derive(Debug, Clone, Copy)]
struct SeriesSpread {
    std: f64,
    standard_error: f64,
    n_effective: f64,
    freedom: f64,
}

impl SeriesSpread {
    fn of(values: &[f64]) -> Option<Self> {
        let std = deviation(values)?;
        let blocks: Vec<f64> = values.chunks(values.len().div_ceil(MOST_BLOCKS)).map(mean).collect();
        let independent = blocks.len() as f64 / autocorrelation_time(&blocks);
        let standard_error = deviation(&blocks)? / independent.sqrt();
        Some(Self {
            std,
            standard_error,
            n_effective: if blocks.len() < values.len() && standard_error > 0.0 {
                ((std / standard_error) * (std / standard_error)).clamp(1.0, values.len() as f64)
            } else {
                independent
            },
            freedom: (independent - 1.0).max(1.0),
        })
    }
}

/// Returns the mean. It is computed relative to the first value, so equal values have exactly that mean.
fn mean(values: &[f64]) -> f64 {
    let first = values.first().copied().unwrap_or_default();
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64
}

/// Returns the standard deviation with divisor n − 1; `None` for fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Returns the autocorrelation time in steps by Geyer's initial monotone sequence; 1 for independent values.
fn autocorrelation_time(values: &[f64]) -> f64 {
    let n = values.len();
    let mean = mean(values);
    let covariance = |lag: usize| -> f64 {
        let pairs = values.iter().zip(values.iter().skip(lag));
        pairs.map(|(one, later)| (one - mean) * (later - mean)).sum()
    };
    let variance = covariance(0);
    if n < 4 || variance <= 0.0 {
        return 1.0;
    }
    let (mut sum, mut last) = (0.0, f64::INFINITY);
    for lag in (0..n - 1).step_by(2) {
        let pair = covariance(lag) + covariance(lag + 1);
        if pair <= 0.0 {
            break;
        }
        last = pair.min(last);
        sum += last;
    }
    // Negative autocorrelation is ignored, so the interval is never narrower than for independent values.
    (2.0 * sum / variance - 1.0).clamp(1.0, n as f64)
}

/// Returns the quantile `share` of the sorted `values`, with linear interpolation.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share * (values.len().max(1) - 1) as f64;
    let (below, part) = (place as usize, place.fract());
    let at = |index: usize| values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0);
    at(below) + part * (at(below + 1) - at(below))
}

/// A variance with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Variance {
    variance: f64,
    /// Above 0.
    freedom: f64,
}

/// The difference between two means, in percent of the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MeanDifference {
    /// Difference, in percent.
    pub percent: f64,
    /// Lower end of the 95 % confidence interval; `None` if a series has one value.
    pub low: Option<f64>,
    /// Upper end of the 95 % confidence interval; `None` if a series has one value.
    pub high: Option<f64>,
    /// Two-sided p-value of Welch's test.
    pub p: Option<f64>,
}

impl MeanDifference {
    /// Compares the mean of `to` with the mean of `from`; `None` if a mean is not above 0.
    ///
    /// The interval is Welch's for the logarithm of the ratio, with effective numbers of values and
    /// Satterthwaite's degrees of freedom. It holds for these two series. [`RepeatSpread`] compares what
    /// they are examples of.
    #[must_use]
    pub fn between(from: &Sample, to: &Sample) -> Option<Self> {
        if from.mean <= 0.0 || to.mean <= 0.0 {
            return None;
        }
        let ratio = libm::log(to.mean / from.mean);
        if !percent(ratio).is_finite() {
            return None;
        }
        let (Some(one), Some(other)) = (from.relative_variance(), to.relative_variance()) else {
            return Some(Self { percent: percent(ratio), low: None, high: None, p: None });
        };
        let total = one.variance + other.variance;
        let shares = [one, other].map(|part| part.variance * part.variance / part.freedom);
        Some(Self::of(ratio, total, total * total / (shares[0] + shares[1])))
    }

    /// Returns the difference for the logarithm of a ratio with this variance. Without a variance, the interval has no
    /// width.
    fn of(ratio: f64, variance: f64, freedom: f64) -> Self {
        let alone = percent(ratio);
        if !(variance > 0.0 && variance.is_finite() && freedom > 0.0) {
            let p = if ratio == 0.0 { 1.0 } else { 0.0 };
            return Self { percent: alone, low: Some(alone), high: Some(alone), p: Some(p) };
        }
        let error = variance.sqrt();
        let reach = t_quantile(freedom) * error;
        Self {
            percent: alone,
            low: Some(percent(ratio - reach)),
            high: Some(percent(ratio + reach)),
            p: Some(two_sided_p(ratio / error, freedom)),
        }
    }
}

/// Returns a ratio's difference from 1, in percent.
fn percent(logarithm: f64) -> f64 {
    100.0 * libm::expm1(logarithm)
}

#[cfg(test)]
mod tests;
