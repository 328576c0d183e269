//! What a series of measurements is worth: its mean with an interval that respects how much each step resembles the one
//! before it, and how far apart two such series are. Nothing here draws lots: the same series gives the same interval.

mod student;

pub use student::{t_quantile, two_sided_p};

use serde::{Deserialize, Serialize};

/// How sure an interval is: 95 of 100 such intervals hold the true value.
pub const LEVEL: f64 = 0.95;

/// Autocorrelation is taken of at most so many means of blocks: more tell nothing more, and take long.
const MOST_BLOCKS: usize = 4096;

/// A series of measurements, summed up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Sample {
    /// How many values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, divided by n - 1; none of one value.
    pub std: Option<f64>,
    /// How many independent values would tell as much of the mean; none of one value.
    pub n_effective: Option<f64>,
    /// The standard error of the mean; none of one value.
    pub standard_error: Option<f64>,
    /// The lower end of the 95 % interval of the mean; none of one value.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The least value.
    pub min: f64,
    /// The value below which 5 % lie.
    pub p5: f64,
    /// The value below which half lie.
    pub median: f64,
    /// The value below which 95 % lie.
    pub p95: f64,
    /// The greatest value.
    pub max: f64,
}

impl Sample {
    /// Sums up `values` in the order in which they were measured; none if there are none, or if one is no number.
    ///
    /// The standard error of the mean is s·√(τ/n), with the autocorrelation time τ by Geyer's initial monotone sequence
    /// (Statistical Science 7, 1992), and never below that of independent values; the interval is Student's, with
    /// n/τ - 1 degrees of freedom. Of long series, means of blocks take the place of values.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let mean = mean(values);
        if !(min.is_finite() && max.is_finite() && mean.is_finite()) {
            return None;
        }
        let spread = Spread::of(values).filter(|spread| spread.standard_error.is_finite());
        let reach = spread.map(|spread| t_quantile(spread.freedom) * spread.standard_error);
        Some(Self {
            n: values.len() as u64,
            mean,
            std: spread.map(|spread| spread.std),
            n_effective: spread.map(|spread| spread.n_effective),
            standard_error: spread.map(|spread| spread.standard_error),
            low: reach.map(|reach| mean - reach),
            high: reach.map(|reach| mean + reach),
            min,
            p5: quantile(&sorted, 0.05),
            median: quantile(&sorted, 0.5),
            p95: quantile(&sorted, 0.95),
            max,
        })
    }

    /// The variance of the mean's logarithm, with its degrees of freedom; none of one value.
    fn relative_variance(&self) -> Option<Variance> {
        let error = self.standard_error? / self.mean;
        Some(Variance { variance: error * error, freedom: (self.n_effective? - 1.0).max(1.0) })
    }
}

/// How widely the values of a series lie.
#[derive(Debug, Clone, Copy)]
struct Spread {
    std: f64,
    standard_error: f64,
    n_effective: f64,
    freedom: f64,
}

impl Spread {
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

/// The mean of values of which there is at least one, from the first on, so that equal values have just that mean.
fn mean(values: &[f64]) -> f64 {
    let first = values.first().copied().unwrap_or_default();
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64
}

/// The standard deviation, divided by n - 1; none of fewer than two values.
#[must_use]
pub fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// After how many values a series has forgotten what it was, 1 for independent ones: Geyer's initial monotone sequence.
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
    // Values that undo each other are no reason to be surer than of independent ones.
    (2.0 * sum / variance - 1.0).clamp(1.0, n as f64)
}

/// The value below which `share` of the sorted `values` lie, between neighbours in proportion.
#[must_use]
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let place = share * (values.len().max(1) - 1) as f64;
    let (below, part) = (place as usize, place.fract());
    let at = |index: usize| values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0);
    at(below) + part * (at(below + 1) - at(below))
}

/// A variance, and how many values it was estimated from, less one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variance {
    /// The variance.
    pub variance: f64,
    /// Its degrees of freedom, above 0.
    pub freedom: f64,
}

/// By how much one mean differs from another, in percent of that.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Change {
    /// How much more it is.
    pub percent: f64,
    /// The lower end of the 95 % interval; none where a series has one value.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// How likely means would come to lie so far apart if they were the same: the two-sided p of Welch's test.
    pub p: Option<f64>,
}

impl Change {
    /// From the mean of `from` to that of `to`: Welch's interval of the ratio's logarithm, each mean with its own effective
    /// number of values (Satterthwaite's degrees of freedom), and `besides` counted in where it is known. None where a mean
    /// is not above 0.
    #[must_use]
    pub fn between(from: &Sample, to: &Sample, besides: Option<Variance>) -> Option<Self> {
        if from.mean <= 0.0 || to.mean <= 0.0 {
            return None;
        }
        let ratio = libm::log(to.mean / from.mean);
        let percent = |ratio: f64| 100.0 * libm::expm1(ratio);
        let alone = Self { percent: percent(ratio), low: None, high: None, p: None };
        if !alone.percent.is_finite() {
            return None;
        }
        let (Some(one), Some(other)) = (from.relative_variance(), to.relative_variance()) else {
            return Some(alone);
        };
        let parts = [Some(one), Some(other), besides];
        let total: f64 = parts.iter().flatten().map(|part| part.variance).sum();
        let shares = parts.iter().flatten().map(|part| part.variance * part.variance / part.freedom);
        let shares: f64 = shares.sum();
        if !(total > 0.0 && shares > 0.0 && total.is_finite()) {
            let p = if ratio == 0.0 { 1.0 } else { 0.0 };
            return Some(Self { low: Some(alone.percent), high: Some(alone.percent), p: Some(p), ..alone });
        }
        let (freedom, error) = (total * total / shares, total.sqrt());
        let reach = t_quantile(freedom) * error;
        Some(Self {
            low: Some(percent(ratio - reach)),
            high: Some(percent(ratio + reach)),
            p: Some(two_sided_p(ratio / error, freedom)),
            ..alone
        })
    }
}

#[cfg(test)]
mod tests;
