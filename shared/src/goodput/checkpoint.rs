//! When to save a checkpoint, and the time that failures cost.
//!
//! Symbols: M mean time between failures, δ time that a save blocks training, R time from a failure until training
//! continues, τ training time between two saves. All are in seconds.

/// Above this exponent, e^−x is 0 for every purpose, and e^x is near the largest number.
const LARGEST_EXPONENT: f64 = 700.0;

/// Returns Young's interval between saves, in seconds: √(2δM) (Young 1974, doi:10.1145/361147.361115). It is infinite
/// without failures and 0 if saves take no time.
pub fn young_interval_s(save_s: f64, mtbf_s: f64) -> f64 {
    if save_s <= 0.0 { 0.0 } else { (2.0 * save_s).sqrt() * mtbf_s.sqrt() }
}

/// Returns Daly's interval between saves, in seconds: √(2δM)·(1 + ⅓√(δ/2M) + δ/18M) − δ, or M if δ ≥ 2M
/// (Daly 2006, doi:10.1016/j.future.2004.11.016, eq. 37). It is infinite without failures and 0 if saves take no time.
pub fn daly_interval_s(save_s: f64, mtbf_s: f64) -> f64 {
    if save_s <= 0.0 {
        return 0.0;
    }
    if save_s >= 2.0 * mtbf_s {
        return mtbf_s;
    }
    let ratio = save_s / (2.0 * mtbf_s);
    young_interval_s(save_s, mtbf_s) * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - save_s
}

/// Returns the share of the time that trains, τ/E, with E = M·e^(R/M)·(e^((τ+δ)/M) − 1) (Daly 2006, eq. 20). It lies
/// between 0 and 1; without failures it is τ/(τ+δ).
pub fn checkpoint_goodput(interval_s: f64, save_s: f64, recovery_s: f64, mtbf_s: f64) -> f64 {
    let attempt = (interval_s + save_s) / mtbf_s;
    // No failures, or so few that τ/M has no digits left.
    if mtbf_s.is_infinite() || (attempt < f64::MIN_POSITIVE && interval_s > 0.0) {
        return interval_s / (interval_s + save_s);
    }
    let exponent = recovery_s / mtbf_s + attempt;
    // A NaN, from 0/0, means that failures come without a pause.
    if exponent.is_nan() || exponent > LARGEST_EXPONENT {
        return 0.0;
    }
    if interval_s <= 0.0 {
        return if save_s > 0.0 { 0.0 } else { libm::exp(-recovery_s / mtbf_s) };
    }
    // The same as τ/E, without an exponential that could overflow.
    let goodput = interval_s / mtbf_s * libm::exp(-exponent) / -libm::expm1(-attempt);
    goodput.min(1.0)
}

/// Returns the expected time for `interval_s` of training and one save, in seconds; infinite if failures come too often
/// for it to end.
pub fn expected_time_s(interval_s: f64, save_s: f64, recovery_s: f64, mtbf_s: f64) -> f64 {
    match checkpoint_goodput(interval_s, save_s, recovery_s, mtbf_s) {
        goodput if goodput > 0.0 => interval_s / goodput,
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_failures_only_saves_cost_time() {
        // Anchor (a): M → ∞ gives τ/(τ+δ).
        for mtbf_s in [f64::INFINITY, 1e12, f64::MAX] {
            let goodput = checkpoint_goodput(346.0, 10.0, 600.0, mtbf_s);
            assert!((goodput / (346.0 / 356.0) - 1.0).abs() < 1e-8, "{mtbf_s}: {goodput}");
        }
        assert_eq!(daly_interval_s(10.0, f64::INFINITY), f64::INFINITY);
    }

    #[test]
    fn youngs_interval_is_346_s() {
        // Anchor (b): δ = 10 s and M = 6,000 s; with R added to M it is 363 s, 24 steps of 15 s.
        assert!((young_interval_s(10.0, 6000.0) - 346.4).abs() < 0.1);
        assert!((young_interval_s(10.0, 6600.0) - 363.3).abs() < 0.1);
        let daly = daly_interval_s(10.0, 6000.0);
        assert!(daly > 335.0 && daly < 346.0, "{daly}");
    }

    #[test]
    fn llama_3_loses_a_seventh_with_saves_every_half_hour() {
        // Anchor (c): M = 3.1 h, R = 10 min, δ = 0 and τ = 30 min give 1 − (15 + 10)/186 = 86.6 % to first order.
        let goodput = checkpoint_goodput(1800.0, 0.0, 600.0, 3.1 * 3600.0);
        assert!((goodput - 0.866).abs() < 0.012, "{goodput}");
        // Its report gives more than 90 %, which needs R + τ/2 below 18.6 min.
        assert!(checkpoint_goodput(600.0, 0.0, 600.0, 3.1 * 3600.0) > 0.9);
    }

    #[test]
    fn extremes_are_numbers() {
        let extremes = [0.0, f64::MIN_POSITIVE, 1e-9, 1.0, 1e9, 1e200, f64::MAX];
        for save_s in extremes {
            for recovery_s in extremes {
                for mtbf_s in extremes.into_iter().chain([f64::INFINITY]) {
                    let best = daly_interval_s(save_s, mtbf_s);
                    assert!(best >= 0.0, "{save_s} {mtbf_s}: {best}");
                    for interval_s in [best.min(1e9), 1.0] {
                        let goodput = checkpoint_goodput(interval_s, save_s, recovery_s, mtbf_s);
                        // 0/0 where nothing is done and nothing is lost.
                        let nothing = interval_s == 0.0 && save_s == 0.0 && mtbf_s.is_infinite();
                        assert!(
                            nothing || (0.0..=1.0).contains(&goodput),
                            "{save_s} {recovery_s} {mtbf_s}: {goodput}"
                        );
                    }
                }
            }
        }
        assert_eq!(checkpoint_goodput(60.0, 10.0, 600.0, 1e-3), 0.0);
        assert_eq!(expected_time_s(60.0, 10.0, 600.0, 1e-3), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn the_expected_time_is_dalys(
            interval_s in 1.0f64..1e5, save_s in 0.0f64..1e3, recovery_s in 0.0f64..1e4, mtbf_s in 1e3f64..1e8,
        ) {
            let daly = mtbf_s * libm::exp(recovery_s / mtbf_s) * libm::expm1((interval_s + save_s) / mtbf_s);
            let ours = expected_time_s(interval_s, save_s, recovery_s, mtbf_s);
            prop_assert!((ours / daly - 1.0).abs() < 1e-9);
        }

        #[test]
        fn dalys_interval_is_nearly_the_best(
            save_s in 1e-3f64..1e4, recovery_s in 0.0f64..1e4, mtbf_s in 1e2f64..1e8, factor in 0.05f64..20.0,
        ) {
            let best = daly_interval_s(save_s, mtbf_s);
            let at = |interval_s| checkpoint_goodput(interval_s, save_s, recovery_s, mtbf_s);
            prop_assert!(at(best) >= at(best * factor) * 0.995);
        }

        #[test]
        fn more_failures_slower_saves_and_slower_restarts_never_help(
            interval_s in 1.0f64..1e5, save_s in 0.0f64..1e3, recovery_s in 0.0f64..1e4, mtbf_s in 1e2f64..1e8,
            more in 1.0f64..10.0,
        ) {
            let goodput = checkpoint_goodput(interval_s, save_s, recovery_s, mtbf_s) * (1.0 + 1e-12);
            prop_assert!(goodput >= checkpoint_goodput(interval_s, save_s, recovery_s, mtbf_s / more));
            prop_assert!(goodput >= checkpoint_goodput(interval_s, save_s * more, recovery_s, mtbf_s));
            prop_assert!(goodput >= checkpoint_goodput(interval_s, save_s, recovery_s * more, mtbf_s));
        }
    }
}
