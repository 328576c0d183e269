use super::*;
use proptest::prelude::*;

/// Reproducible pseudo-random numbers.
pub(super) struct Noise(pub(super) u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an approximately normal number, the sum of twelve uniform ones.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// Returns `n` step times around 10 s with autocorrelation `rho`.
    fn series(&mut self, n: usize, rho: f64) -> Vec<f64> {
        let mut now = self.normal();
        let mut values = Vec::with_capacity(n);
        for _ in 0..n {
            now = rho * now + (1.0 - rho * rho).sqrt() * self.normal();
            values.push(10.0 + 0.1 * now);
        }
        values
    }
}

#[test]
fn a_sample_matches_values_computed_by_hand() {
    let sample = Sample::of(&[2.0, 1.0, 3.0]).unwrap();
    assert_eq!((sample.n, sample.mean, sample.median, sample.min, sample.max), (3, 2.0, 2.0, 1.0, 3.0));
    assert_eq!((sample.std, sample.n_effective), (Some(1.0), Some(3.0)));
    // 2 ± 4.3027 · 1 / √3.
    assert!((sample.high.unwrap() - 4.484_137_7).abs() < 1e-6, "{sample:?}");
    let one = Sample::of(&[2.0]).unwrap();
    assert_eq!((one.mean, one.std, one.low, one.p95), (2.0, None, None, 2.0));
    assert_eq!(Sample::of(&[]), None);
    assert_eq!(Sample::of(&[1.0, f64::NAN]), None);
    let same = Sample::of(&[12.39; 20]).unwrap();
    assert_eq!(
        (same.mean, same.std, same.low, same.n_effective),
        (12.39, Some(0.0), Some(12.39), Some(20.0))
    );
}

#[test]
fn the_interval_of_times_is_cut_at_0() {
    // 100.67 ± 4.3027 · 172.63 / √3, to below −328.
    let stalled = Sample::of(&[1.0, 1.0, 300.0]).unwrap();
    assert_eq!(stalled.low, Some(0.0));
    assert!((stalled.high.unwrap() - 529.5).abs() < 0.1, "{stalled:?}");
    let signed = Sample::of(&[-1.0, 1.0, 300.0]).unwrap();
    assert!(signed.low < Some(0.0), "{signed:?}");
}

#[test]
fn autocorrelation_reduces_the_effective_number_of_values() {
    let mut noise = Noise(1);
    let alone = Sample::of(&noise.series(2000, 0.0)).unwrap();
    let alike = Sample::of(&noise.series(2000, 0.8)).unwrap();
    // n (1 - rho) / (1 + rho) is 222 for 0.8.
    assert!(alone.n_effective.unwrap() > 1200.0, "{alone:?}");
    assert!((120.0..400.0).contains(&alike.n_effective.unwrap()), "{alike:?}");
}

/// Returns how many of 1000 intervals contain the true mean.
fn covered(n: usize, rho: f64) -> usize {
    let mut noise = Noise(7);
    (0..1000)
        .filter(|_| {
            let sample = Sample::of(&noise.series(n, rho)).unwrap();
            (sample.low.unwrap()..=sample.high.unwrap()).contains(&10.0)
        })
        .count()
}

#[test]
fn intervals_contain_the_mean_as_often_as_they_should() {
    for (n, rho, least) in [(10, 0.0, 930), (40, 0.0, 930), (40, 0.5, 890), (400, 0.8, 910)] {
        let covered = covered(n, rho);
        assert!((least..=995).contains(&covered), "{n} steps, {rho}: {covered} of 1000");
    }
}

#[test]
fn long_series_are_averaged_in_blocks() {
    let mut noise = Noise(3);
    let sample = Sample::of(&noise.series(100_000, 0.5)).unwrap();
    // n (1 - rho) / (1 + rho).
    assert!((25_000.0..42_000.0).contains(&sample.n_effective.unwrap()), "{sample:?}");
}

#[test]
fn different_means_are_significant() {
    let mut noise = Noise(5);
    let from = noise.series(40, 0.3);
    let to: Vec<f64> = noise.series(40, 0.3).iter().map(|value| value * 1.05).collect();
    let (from, to) = (Sample::of(&from).unwrap(), Sample::of(&to).unwrap());
    let change = MeanDifference::between(&from, &to).unwrap();
    assert!((change.percent - 5.0).abs() < 1.0 && change.low.unwrap() > 3.0, "{change:?}");
    assert!(change.p.unwrap() < 1e-6);
    let alone = MeanDifference::between(&from, &Sample::of(&[10.0]).unwrap()).unwrap();
    assert_eq!((alone.low, alone.p), (None, None));
}

proptest! {
    #[test]
    fn no_series_panics(values in prop::collection::vec(prop::num::f64::ANY, 0..60)) {
        if let Some(sample) = Sample::of(&values) {
            prop_assert!(sample.min <= sample.median && sample.median <= sample.max);
            prop_assert!(sample.p5 <= sample.p95);
            let _ = MeanDifference::between(&sample, &sample);
        }
    }

    #[test]
    fn the_interval_contains_its_mean_and_scales_with_the_unit(
        values in prop::collection::vec(0.1..100.0_f64, 2..60),
    ) {
        let sample = Sample::of(&values).unwrap();
        prop_assert!(sample.low <= Some(sample.mean) && Some(sample.mean) <= sample.high);
        prop_assert!(sample.n_effective.unwrap() <= sample.n as f64);
        let twice: Vec<f64> = values.iter().map(|value| 2.0 * value).collect();
        let twice = Sample::of(&twice).unwrap();
        prop_assert_eq!(twice.n_effective, sample.n_effective);
        prop_assert_eq!(twice.low, sample.low.map(|low| 2.0 * low));
    }

    #[test]
    fn differences_are_inverse_in_both_directions(
        from in prop::collection::vec(0.1..100.0_f64, 2..40),
        to in prop::collection::vec(0.1..100.0_f64, 2..40),
    ) {
        let (from, to) = (Sample::of(&from).unwrap(), Sample::of(&to).unwrap());
        let there = MeanDifference::between(&from, &to).unwrap();
        let back = MeanDifference::between(&to, &from).unwrap();
        let inverse = |percent: f64| 100.0 * (1.0 / (1.0 + percent / 100.0) - 1.0);
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * (1.0 + one.abs());
        prop_assert!(near(back.percent, inverse(there.percent)));
        prop_assert!(near(back.low.unwrap(), inverse(there.high.unwrap())));
        prop_assert!((there.p.unwrap() - back.p.unwrap()).abs() < 1e-9);
    }
}
