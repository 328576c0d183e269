//! Exact intervals of counted events.

use crate::range::ValueRange;

/// The most terms of a series or fraction. About 6·√count are needed.
const MOST_TERMS: u32 = 100_000;

/// Returns the central interval with probability `level` of the expected number of events, after `count` of them happened
/// independently at a constant rate. After no event, the lower end is 0.
///
/// It is exact (Garwood, Biometrika 28, 1936): the ends are quantiles of gamma distributions with the shapes `count` and
/// `count` + 1, half of the χ² quantiles with 2·`count` and 2·`count` + 2 degrees of freedom.
#[must_use]
pub fn poisson_interval(count: u64, level: f64) -> ValueRange {
    let outside = 0.5 * (1.0 - level);
    let count = count as f64;
    let low = if count > 0.0 { gamma_quantile(count, outside) } else { 0.0 };
    ValueRange { low, high: gamma_quantile(count + 1.0, 1.0 - outside) }
}

/// Returns the quantile of the gamma distribution with this shape and scale 1.
fn gamma_quantile(shape: f64, share: f64) -> f64 {
    let mut high = shape + 1.0;
    while incomplete_gamma(shape, high) < share && high < 1e300 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if incomplete_gamma(shape, middle) < share { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Returns the regularized lower incomplete gamma function P(a, x) (NIST DLMF 8.11.4 and 8.9.2, the latter evaluated by
/// Lentz's method).
fn incomplete_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    // The series converges quickly below the mean, the continued fraction above it.
    let share = if x < a + 1.0 { front * series(a, x) } else { 1.0 - front * fraction(a, x) };
    share.clamp(0.0, 1.0)
}

fn series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    for step in 1..MOST_TERMS {
        term *= x / (a + f64::from(step));
        sum += term;
        if term < sum * 1e-16 {
            break;
        }
    }
    sum
}

fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / away_from_zero(b);
    let mut value = d;
    for step in 1..MOST_TERMS {
        let step = f64::from(step);
        let numerator = -step * (step - a);
        b += 2.0;
        d = 1.0 / away_from_zero(b + numerator * d);
        c = away_from_zero(b + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_match_published_tables() {
        // The 80 % ends are half of the χ² quantiles at 0.1 and 0.9 in NIST's Engineering Statistics Handbook, 1.3.6.7.4.
        // The 95 % and 90 % ends are those of Garwood's table.
        for (count, level, low, high) in [
            (0, 0.8, 0.0, 4.605 / 2.0),
            (1, 0.8, 0.105_361, 3.889_720),
            (2, 0.8, 1.064 / 2.0, 10.645 / 2.0),
            (5, 0.8, 4.865 / 2.0, 18.549 / 2.0),
            (10, 0.8, 12.443 / 2.0, 30.813 / 2.0),
            (0, 0.95, 0.0, 3.688_879),
            (1, 0.95, 0.025_318, 5.571_643),
            (10, 0.95, 4.795_389, 18.390_356),
            (3, 0.9, 0.817_691, 7.753_657),
        ] {
            let interval = poisson_interval(count, level);
            let near = |one: f64, other: f64| (one - other).abs() < 3e-4 * other.max(1.0);
            assert!(near(interval.low, low) && near(interval.high, high), "{count} at {level}: {interval:?}");
        }
        // exp(−x) = 0.1 and 1 − exp(−x) = 0.1 in closed form.
        assert!((poisson_interval(0, 0.8).high - libm::log(10.0)).abs() < 1e-12);
        assert!((poisson_interval(1, 0.8).low + libm::log(0.9)).abs() < 1e-12);
    }

    #[test]
    fn the_ends_leave_out_half_of_the_rest_each() {
        for count in [1_u64, 3, 17, 419] {
            let interval = poisson_interval(count, 0.8);
            // The probability of at most `count` events, term by term.
            let at_most = |mean: f64, count: u64| {
                let log_terms =
                    (0..=count).map(|n| n as f64 * libm::log(mean) - mean - libm::lgamma(n as f64 + 1.0));
                log_terms.map(libm::exp).sum::<f64>()
            };
            assert!((at_most(interval.high, count) - 0.1).abs() < 1e-9, "{count}");
            assert!((at_most(interval.low, count - 1) - 0.9).abs() < 1e-9, "{count}");
        }
    }

    #[test]
    fn many_events_give_nearly_the_normal_interval() {
        let count = 1_000_000_u64;
        let interval = poisson_interval(count, 0.8);
        for (end, expected) in [(interval.low, 1e6 - 1281.55), (interval.high, 1e6 + 1281.55)] {
            assert!((end - expected).abs() < 2.0, "{end}");
        }
    }
}
