//! Slow periods: consecutive scored steps that took clearly longer than the others.

use crate::log::{Span, Steps};
use crate::text::capital;
use crate::units::significant;
use std::ops::Range;

/// Consecutive steps of a window that took clearly longer than its others, for example while another job used the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlowPeriod {
    /// The steps.
    pub(super) steps: Span,
    /// By how much longer their mean is than that of the others, as a fraction.
    excess: f64,
    /// The mean of the others, in seconds.
    others_s: f64,
}

impl SlowPeriod {
    /// How often the median of the others is the time of each slow step, at least.
    const FACTOR: f64 = 1.15;

    /// The fewest steps. One or two slow ones are outliers.
    const LEAST: usize = 3;

    /// Returns the longest slow period of a window. None if there is none, or if it would be half of the window or more,
    /// because then the other steps may be the exception.
    pub(super) fn of(steps: &Steps, window: Span) -> Option<Self> {
        let timed =
            steps.rows(window).filter_map(|row| Some((*steps.label.get(row)?, steps.step_time_s.get(row)?)));
        let (labels, times): (Vec<u64>, Vec<f64>) = timed.unzip();
        // The second round compares with the median of the other steps alone.
        let rough = longest(&times, Self::FACTOR * median(times.clone())?);
        let slow = longest(&times, Self::FACTOR * median(without(&times, &rough))?);
        if slow.len() < Self::LEAST || 2 * slow.len() >= times.len() {
            return None;
        }
        let others_s = mean(&without(&times, &slow));
        Some(Self {
            steps: Span { first: *labels.get(slow.start)?, last: *labels.get(slow.end - 1)? },
            excess: mean(&times[slow]) / others_s - 1.0,
            others_s,
        })
    }

    /// Returns the period in two sentences.
    pub(super) fn note(&self) -> String {
        format!(
            "{} took {:.0} % longer than the others. Without them, the mean is {} s.",
            capital(&self.steps.with_noun()),
            100.0 * self.excess,
            significant(self.others_s, 3)
        )
    }
}

/// Returns the places of the longest series of times that reach a limit; the first one of equal length.
fn longest(times: &[f64], limit: f64) -> Range<usize> {
    let (mut longest, mut start) = (0..0, 0);
    for (place, time) in times.iter().enumerate() {
        if *time < limit {
            start = place + 1;
        } else if place + 1 - start > longest.len() {
            longest = start..place + 1;
        }
    }
    longest
}

fn without(times: &[f64], places: &Range<usize>) -> Vec<f64> {
    [&times[..places.start], &times[places.end..]].concat()
}

/// Returns the median of some times, of an even number the upper one; none without times.
pub(super) fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::parse;

    /// Fifty steps of about 16.7 s; those in `slow` take `factor` times as long.
    fn period(slow: &[u64], factor: f64, window: (u64, u64)) -> Option<SlowPeriod> {
        let line = |step: u64| {
            let usual = 16.7 + [0.0, 0.05, -0.05][(step % 3) as usize];
            let time = if slow.contains(&step) { usual * factor } else { usual };
            format!("Training epoch 0, iteration {step}/49 | train_step_timing in s: {time:.3} |\n")
        };
        let log = parse((0..50).map(line).collect::<String>().as_bytes());
        SlowPeriod::of(&log.steps, Span { first: window.0, last: window.1 })
    }

    #[test]
    fn consecutive_slow_steps_are_named_with_the_mean_of_the_others() {
        let found = period(&[36, 37, 38, 39, 40, 41], 1.35, (35, 49)).unwrap();
        assert_eq!(
            found.note(),
            "Steps 36–41 took 35 % longer than the others. Without them, the mean is 16.7 s."
        );
        // At the ends of the window, and of the longest of two.
        assert_eq!(period(&[35, 36, 37], 1.2, (35, 44)).unwrap().steps, Span { first: 35, last: 37 });
        let two = period(&[20, 21, 22, 40, 41, 42, 43], 1.2, (11, 44)).unwrap();
        assert_eq!(two.steps, Span { first: 40, last: 43 });
        // Just less than half of the window.
        assert!(period(&[35, 36, 37, 38], 1.2, (35, 43)).is_some());
    }

    #[test]
    fn few_scattered_many_and_hardly_slower_steps_are_no_period() {
        for (slow, factor) in [
            (&[36, 37][..], 1.35),
            (&[36, 38, 40][..], 1.35),
            (&[36, 37, 38, 39, 40, 41][..], 1.1),
            (&[37, 38, 39, 40, 41, 42, 43, 44][..], 1.35),
        ] {
            assert_eq!(period(slow, factor, (35, 49)), None, "{slow:?}");
        }
        assert_eq!(period(&[49], 2.0, (49, 49)), None);
        assert_eq!(period(&[], 1.0, (60, 70)), None, "no step");
    }
}
