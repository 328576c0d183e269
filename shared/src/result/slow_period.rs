//! Slow periods: consecutive steps that took clearly longer than the others.

use crate::log::{Span, Steps};
use crate::text::capital;
use crate::units::significant;
use std::ops::Range;

/// Consecutive steps that took clearly longer than the others, for example while another job used the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlowPeriod {
    /// The steps.
    pub(super) steps: Span,
    /// By how much longer their mean is than that of the others, as a fraction.
    excess: f64,
    /// The mean of the others, in seconds.
    pub(super) others_s: f64,
    /// Whether the last timed step is one of them, so that the run may have stayed slow.
    lasts: bool,
    /// Where the scored steps are; none if the others are scored steps, too.
    scored: Option<Overlap>,
}

/// Which of the scored steps are in a slow period.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Overlap {
    Nothing(Span),
    Part,
    All,
}

impl SlowPeriod {
    /// How often the median of the others is the time of each slow step, at least.
    const FACTOR: f64 = 1.15;

    /// The fewest steps of a window, where one or two slow ones are outliers, and of a run, where chance makes more.
    const LEAST: usize = 3;
    const LEAST_IN_RUN: usize = 5;

    /// The first steps of a run, at most half of them, are slow for other reasons.
    const WARM_UP: usize = 10;

    /// Returns the slow periods of a run that matter for its scored steps (`window`): the longest one of the run after its warm-up,
    /// and the longest one of the window, if the first one doesn't include it.
    pub(super) fn all(steps: &Steps, window: Span) -> Vec<Self> {
        let in_window = Self::in_window(steps, window);
        let in_run = Self::in_run(steps, window);
        let includes = |one: Self, other: Self| {
            one.steps.first <= other.steps.first && other.steps.last <= one.steps.last
        };
        let is_within_window = |one: &Self| window.first <= one.steps.first && one.steps.last <= window.last;
        match (in_window, in_run) {
            // Compared with the other scored steps, which are what the mean is about.
            (Some(scored), Some(whole)) if is_within_window(&whole) => vec![scored],
            (Some(scored), Some(whole)) if includes(whole, scored) => vec![whole],
            (scored, whole) => scored.into_iter().chain(whole).collect(),
        }
    }

    /// Returns the longest slow period of a window. None if there is none, or if it would be half of the window or more,
    /// because then the other steps may be the exception.
    fn in_window(steps: &Steps, window: Span) -> Option<Self> {
        let timed: Vec<(u64, f64)> = timed(steps, steps.rows(window));
        let times: Vec<f64> = timed.iter().map(|(_, time)| *time).collect();
        let slow = slow_places(&times, median(times.clone())?)?;
        (2 * slow.len() < times.len()).then(|| Self::new(&timed, &times, slow, None))?
    }

    /// Returns the longest slow period of all steps after the warm-up, in which nearly all steps took longer than nearly all others.
    /// It may be most of the run.
    fn in_run(steps: &Steps, window: Span) -> Option<Self> {
        let warm_up = Self::WARM_UP.min(steps.len() / 2);
        // Larger batches take longer.
        let last_size = (0..steps.len()).rev().find_map(|row| steps.global_batch_size.get(row));
        let is_of_size =
            |row: &usize| steps.global_batch_size.get(*row).is_none_or(|size| Some(size) == last_size);
        let rows: Vec<usize> = (warm_up..steps.len()).filter(is_of_size).collect();
        let timed: Vec<(u64, f64)> = timed(steps, rows);
        let times: Vec<f64> = timed.iter().map(|(_, time)| *time).collect();
        // Where most steps are slow, the median is one of them.
        let slow = slow_places(&times, quantile(times.clone(), 0.2)?)?;
        let others = without(&times, &slow);
        let is_apart = quantile(times[slow.clone()].to_vec(), 0.1)? > quantile(others.clone(), 0.9)?;
        if slow.len().min(others.len()) < Self::LEAST_IN_RUN || !is_apart {
            return None;
        }
        let is_slow = |label: &u64| {
            timed.get(slow.start).is_some_and(|(first, _)| first <= label)
                && timed.get(slow.end - 1).is_some_and(|(last, _)| label <= last)
        };
        let scored: Vec<u64> = steps.rows(window).filter_map(|row| steps.label.get(row).copied()).collect();
        let overlap = match scored.iter().filter(|label| is_slow(label)).count() {
            0 => Overlap::Nothing(window),
            all if all == scored.len() => Overlap::All,
            _ => Overlap::Part,
        };
        Self::new(&timed, &times, slow, Some(overlap))
    }

    fn new(timed: &[(u64, f64)], times: &[f64], slow: Range<usize>, scored: Option<Overlap>) -> Option<Self> {
        let label = |place: usize| timed.get(place).map(|(label, _)| *label);
        let others_s = mean(&without(times, &slow));
        Some(Self {
            steps: Span { first: label(slow.start)?, last: label(slow.end - 1)? },
            lasts: slow.end == times.len(),
            excess: mean(&times[slow]) / others_s - 1.0,
            others_s,
            scored,
        })
    }

    /// Returns which steps took longer, in a sentence.
    pub(super) fn sentence(&self) -> String {
        let (percent, others) = (100.0 * self.excess, significant(self.others_s, 3));
        match self.scored {
            None => {
                format!("{} took {percent:.0} % longer than the others.", capital(&self.steps.with_noun()))
            }
            Some(_) if self.lasts => format!(
                "The run has been slower since step {}: its steps took {percent:.0} % longer than the others ({others} s).",
                self.steps.first
            ),
            Some(_) => format!(
                "{} took {percent:.0} % longer than the others ({others} s).",
                capital(&self.steps.with_noun())
            ),
        }
    }

    /// Returns the period in two sentences.
    pub(super) fn note(&self) -> String {
        let about_score = match self.scored {
            None => format!("Without them, the mean is {} s.", significant(self.others_s, 3)),
            Some(Overlap::Nothing(window)) => {
                let are = if window.first == window.last { "is" } else { "are" };
                format!("The scored {} {are} not among them.", window.with_noun())
            }
            Some(Overlap::Part) => {
                "Only some of the scored steps are among them, so the mean mixes two speeds. Score a window of one speed."
                    .to_owned()
            }
            Some(Overlap::All) => "All scored steps are among them.".to_owned(),
        };
        format!("{} {about_score}", self.sentence())
    }
}

/// Returns the labels and times of rows that have a time.
fn timed(steps: &Steps, rows: impl IntoIterator<Item = usize>) -> Vec<(u64, f64)> {
    let timed = |row: usize| Some((*steps.label.get(row)?, steps.step_time_s.get(row)?));
    rows.into_iter().filter_map(timed).collect()
}

/// Returns the places of the longest slow period, from a first estimate of the others' time; none if it has too few steps.
fn slow_places(times: &[f64], rough_s: f64) -> Option<Range<usize>> {
    // The second round compares with the median of the other steps alone.
    let rough = longest(times, SlowPeriod::FACTOR * rough_s);
    let slow = longest(times, SlowPeriod::FACTOR * median(without(times, &rough))?);
    (slow.len() >= SlowPeriod::LEAST).then_some(slow)
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

/// Returns the time below which a fraction of some times is; none without times.
fn quantile(mut times: Vec<f64>, fraction: f64) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    times.get((fraction * times.len() as f64) as usize).copied()
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
        SlowPeriod::in_window(&log.steps, Span { first: window.0, last: window.1 })
    }

    /// The notes on 120 steps of about 4.6 s, those in `slow` 40 % longer, if a window is scored.
    fn notes(slow: std::ops::RangeInclusive<u64>, window: (u64, u64)) -> Vec<String> {
        let line = |step: u64| {
            let usual = 4.6 + [0.0, 0.03, -0.03][(step % 3) as usize];
            let time = if slow.contains(&step) { usual * 1.4 } else { usual };
            format!("iteration {step}/120 | elapsed time per iteration (ms): {:.1} |\n", 1000.0 * time)
        };
        let log = parse((1..=120).map(line).collect::<String>().as_bytes());
        let all = SlowPeriod::all(&log.steps, Span { first: window.0, last: window.1 });
        all.iter().map(SlowPeriod::note).collect()
    }

    #[test]
    fn slow_steps_beside_the_scored_ones_are_named() {
        assert_eq!(
            notes(70..=90, (35, 44)),
            [
                "Steps 70–90 took 40 % longer than the others (4.6 s). The scored steps 35–44 are not among them."
            ]
        );
        // Also if they are most steps.
        let most = notes(40..=118, (35, 44));
        assert_eq!(
            most,
            [
                "Steps 40–118 took 40 % longer than the others (4.6 s). Only some of the scored steps are among \
              them, so the mean mixes two speeds. Score a window of one speed."
            ]
        );
        assert_eq!(
            notes(40..=120, (50, 60)),
            [
                "The run has been slower since step 40: its steps took 40 % longer than the others (4.6 s). All scored steps are among \
              them."
            ]
        );
        // Once, and compared with the other scored steps.
        let within = notes(70..=90, (11, 120));
        assert_eq!(
            within,
            ["Steps 70–90 took 40 % longer than the others. Without them, the mean is 4.6 s."]
        );
        // The warm-up is not a period, and neither is a run at one speed.
        assert_eq!(notes(1..=10, (35, 44)), [] as [String; 0]);
        assert_eq!(notes(1..=120, (35, 44)), [] as [String; 0]);
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
