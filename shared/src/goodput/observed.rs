//! The failure rate of observed jobs.

use super::FailureRate;
use crate::estimate::Interval;
use crate::field::Field;
use crate::range::ValueRange;
use crate::statistics::poisson_interval;
use crate::units::parse_count;

/// The probability of the interval of an observed rate, the same as for predictions.
const LEVEL: f64 = 0.8;

/// What observed jobs say about the rate of failures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedFailures {
    /// Running time times GPUs, over all jobs.
    pub gpu_hours: f64,
    /// Unplanned interruptions in that time.
    pub interruptions: u64,
}

impl ObservedFailures {
    /// Returns the interruptions per GPU-hour with their exact 80 % interval, for a constant rate; none without GPU-hours.
    #[must_use]
    pub fn per_gpu_hour(self) -> Option<Interval> {
        let ValueRange { low, high } = poisson_interval(self.interruptions, LEVEL);
        let interval = Interval { low, mid: self.interruptions as f64, high };
        (self.gpu_hours > 0.0 && self.gpu_hours.is_finite()).then(|| interval.times(1.0 / self.gpu_hours))
    }

    /// Returns the failure rate to plan with, as [`FailureRate`] reads it: the ends of the interval, limited to its bounds. After
    /// no interruption, it is the upper end alone, because no number of hours shows a rate of zero. None if the studies say more
    /// than the observation does.
    #[must_use]
    pub fn setting(self) -> Option<String> {
        let Interval { low, high, .. } = self.per_gpu_hour().filter(|_| !self.includes_studies())?;
        let [low, high] = [low, high].map(|end| Field::FailureRate.bounds().nearest(end, parse_count));
        Some(if low > 0.0 { format!("{low:.1e}..{high:.1e}") } else { format!("{high:.1e}") })
    }

    /// Returns whether the interval includes all published studies, so that they say more than the observation does.
    #[must_use]
    pub fn includes_studies(self) -> bool {
        let studies = FailureRate::Studies.per_gpu_hour();
        self.per_gpu_hour().is_some_and(|own| own.low <= studies.low && own.high >= studies.high)
    }

    /// Returns after how many GPU-hours without an interruption the upper end of the interval is this rate per GPU-hour.
    #[must_use]
    pub fn gpu_hours_below(rate: f64) -> f64 {
        poisson_interval(0, LEVEL).high / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(interruptions: u64, gpu_hours: f64) -> ObservedFailures {
        ObservedFailures { gpu_hours, interruptions }
    }

    #[test]
    fn llama_3_has_a_narrow_interval() {
        let llama = observed(419, 16_384.0 * 54.0 * 24.0);
        let Interval { low, mid, high } = llama.per_gpu_hour().unwrap();
        assert!((mid / 1.97e-5 - 1.0).abs() < 0.005, "{mid}");
        // About 1.28 standard deviations of √419 events on either side.
        assert!((low / mid - 0.937).abs() < 0.005 && (high / mid - 1.067).abs() < 0.005, "{low}..{high}");
        assert_eq!(llama.setting().as_deref(), Some("1.9e-5..2.1e-5"));
        assert!(!llama.includes_studies());
    }

    #[test]
    fn a_setting_is_read_as_a_failure_rate() {
        for (seen, range) in [
            (observed(2, 1e4), ValueRange { low: 5.3e-5, high: 5.3e-4 }),
            (observed(0, 1e5), ValueRange::of(2.3e-5)),
            (observed(1, 0.5), ValueRange { low: 0.21, high: 1.0 }),
        ] {
            let rate: FailureRate = seen.setting().unwrap().parse().unwrap();
            assert_eq!(rate.per_gpu_hour(), range);
        }
    }

    #[test]
    fn no_failure_is_not_a_rate_of_zero() {
        let none = observed(0, 100.0);
        let interval = none.per_gpu_hour().unwrap();
        assert_eq!((interval.low, interval.mid), (0.0, 0.0));
        assert!((interval.high - 0.023_026).abs() < 1e-6);
        assert_eq!((none.setting().as_deref(), none.includes_studies()), (None, true));
        let needed = ObservedFailures::gpu_hours_below(1.2e-4);
        assert!((needed - 19_188.2).abs() < 0.1, "{needed}");
        let enough = observed(0, needed).per_gpu_hour().unwrap();
        assert!((enough.high / 1.2e-4 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_known_without_gpu_hours() {
        assert_eq!((observed(0, 0.0).per_gpu_hour(), observed(3, 0.0).setting()), (None, None));
    }
}
