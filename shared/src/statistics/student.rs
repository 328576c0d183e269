//! Student's t distribution, with any number of degrees of freedom.

use super::LEVEL;

/// With more degrees of freedom, the distribution equals the normal distribution to seven digits.
const MOST_FREEDOM: f64 = 1e6;

/// Returns the half-width of the central interval with probability [`LEVEL`], in standard errors.
#[must_use]
pub fn t_quantile(freedom: f64) -> f64 {
    let outside = 1.0 - LEVEL;
    let mut high = 2.0;
    // The result is 12.7 for one degree of freedom, the practical minimum.
    while two_sided_p(high, freedom) > outside && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if two_sided_p(middle, freedom) > outside { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Returns the two-sided p-value of `t`.
#[must_use]
pub fn two_sided_p(t: f64, freedom: f64) -> f64 {
    let freedom = if freedom.is_finite() { freedom.clamp(0.1, MOST_FREEDOM) } else { MOST_FREEDOM };
    if !t.is_finite() {
        return 0.0;
    }
    incomplete_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t))
}

/// Returns the regularized incomplete beta function I_x(a, b) (NIST DLMF 8.17.22, evaluated by Lentz's
/// method).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = libm::exp(
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x),
    );
    // The continued fraction converges quickly on one side; the two sides add up to 1.
    let share = if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    };
    share.clamp(0.0, 1.0)
}

/// Returns the continued fraction of the incomplete beta function.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for step in 1..5000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            factor = c * d;
            value *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_textbook_tables() {
        for (freedom, t) in [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (5.0, 2.570_581_836),
            (10.0, 2.228_138_852),
            (30.0, 2.042_272_456),
            (120.0, 1.979_930_405),
            (1e9, 1.959_966_4),
        ] {
            assert!((t_quantile(freedom) - t).abs() < 2e-6, "{freedom}: {}", t_quantile(freedom));
        }
        assert!((two_sided_p(1.0, 1.0) - 0.5).abs() < 1e-12);
        assert!((two_sided_p(0.0, 7.0) - 1.0).abs() < 1e-12);
        assert!((two_sided_p(-2.0, 4.0) - 0.116_116_523_516_815_6).abs() < 1e-12);
    }

    #[test]
    fn fewer_degrees_of_freedom_give_wider_intervals() {
        let mut last = f64::INFINITY;
        for tenths in 5..200 {
            let t = t_quantile(f64::from(tenths) / 10.0);
            assert!(t < last && t > 1.95, "{tenths}");
            last = t;
        }
    }
}
