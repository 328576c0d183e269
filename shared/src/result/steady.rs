//! The steady mean: the step time over all steps after the warm-up. Some releases score a single step, which says little about a
//! run whose other steps vary.

use crate::log::{Span, Stat, StdKind, Steps};
use crate::units::significant;
use serde::Serialize;

/// The fewest steps of a steady mean.
const LEAST_STEPS: usize = 10;

/// The smallest difference from the scored step time that is named, as a fraction.
const NAMED: f64 = 0.01;

/// The step time over all steps after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SteadyMean {
    /// The number of the first step in the log.
    pub first: u64,
    /// The number of the last step.
    pub last: u64,
    /// The mean seconds per step.
    pub mean_s: f64,
}

impl SteadyMean {
    /// Returns the steady mean of a log. None if it has fewer than 10 step times after the warm-up, or if the batch size changes
    /// there, which changes the work of a step.
    pub(super) fn of(steps: &Steps) -> Option<Self> {
        let span = steps.after_warm_up(Steps::WARM_UP_STEPS)?;
        let rows = steps.rows(span);
        let mut sizes = steps.global_batch_size.values(rows.clone());
        let first_size = sizes.next();
        if sizes.any(|size| Some(size) != first_size) {
            return None;
        }
        let times: Vec<f64> = steps.step_time_s.values(rows).collect();
        let stat = Stat::of(&times, StdKind::Sample).filter(|_| times.len() >= LEAST_STEPS)?;
        Some(Self { first: span.first, last: span.last, mean_s: stat.mean })
    }

    /// Returns the steps of the mean: `steps 10–49`.
    pub(super) fn steps(self) -> String {
        Span { first: self.first, last: self.last }.with_noun()
    }
}

/// Returns the seconds per step by which a run with `scored` scored steps is judged: their mean, or the steady mean if they are
/// fewer than [`Stat::FEW`], because they don't show how the other steps are.
#[must_use]
pub fn judged_s(scored_s: f64, scored: u64, steady_s: Option<f64>) -> f64 {
    let is_time = |seconds: &f64| seconds.is_finite() && *seconds > 0.0;
    steady_s.filter(|time| scored < Stat::FEW && is_time(time)).unwrap_or(scored_s)
}

/// Returns by how much the steady mean is longer or shorter than the scored step time, in words: `7.5 % longer`. None if they differ
/// by 1 % or less. A percentage of a time is not one of a speed: a time that is 22 % shorter is 28 % faster.
#[must_use]
pub fn steady_difference(scored_s: f64, steady_s: f64) -> Option<String> {
    let difference = steady_s / scored_s - 1.0;
    let side = if difference > 0.0 { "longer" } else { "shorter" };
    (difference.is_finite() && difference.abs() > NAMED)
        .then(|| format!("{} % {side}", significant(100.0 * difference.abs(), 2)))
}

#[cfg(test)]
mod tests {
    use super::super::{Intake, Report, RunResult, View};
    use super::*;
    use crate::spec::Spec;

    /// Returns the report on a run of release 25.04, which scores the last step. `time` returns the seconds of a step.
    fn report(steps: u32, time: impl Fn(u32) -> f64) -> Report {
        Report::of(&run(steps, time), &View::default())
    }

    fn run(steps: u32, time: impl Fn(u32) -> f64) -> RunResult {
        let mut intake = Intake::new("log-acct.pretrain_llama3.1_405b_fp8_512_2011_0.out", &Spec::default());
        for step in 0..steps {
            let (last, seconds) = (steps - 1, time(step));
            let line = format!(
                "Training epoch 0, iteration {step}/{last} | global_batch_size: 256 | train_step_timing in s: {seconds}\n"
            );
            intake.feed(line.as_bytes());
        }
        intake.finish()
    }

    #[test]
    fn a_scored_step_that_is_not_typical_is_noted() {
        // Every eighth step stalls, and the last one does not.
        let stalls = report(50, |step| if step % 8 == 0 { 20.0 } else { 12.0 });
        let steady = stalls.steady.unwrap();
        // 5 of the 40 steps from 10 on: 16, 24, 32, 40 and 48.
        assert_eq!((steady.first, steady.last, steady.mean_s), (10, 49, 13.0));
        let note =
            "Release 25.04 scores step 49 (12 s). The steady mean, over steps 10–49, is 13 s, 8.3 % longer.";
        assert!(stalls.notes.iter().any(|known| known == note), "{:?}", stalls.notes);
        assert_eq!(stalls.step_time_s.map(|stat| stat.mean), Some(12.0));
        assert_eq!(stalls.judged_s, Some(13.0));

        let even = report(50, |_| 12.0);
        assert_eq!(even.steady.map(|steady| steady.mean_s), Some(12.0));
        assert!(!even.notes.iter().any(|note| note.contains("steady")), "{:?}", even.notes);
    }

    #[test]
    fn a_window_that_the_user_chose_judges_the_run_however_few_its_steps_are() {
        let run = run(50, |step| if step % 8 == 0 { 20.0 } else { 12.0 });
        let judged_s = |window: &str| {
            let view = View { window: Some(window.parse().unwrap()), ..View::default() };
            Report::of(&run, &view).judged_s
        };
        // Step 48 stalls.
        assert_eq!([judged_s("46-49"), judged_s("49-49")], [Some(14.0), Some(12.0)]);
    }

    #[test]
    fn few_steps_have_no_steady_mean() {
        // Half of them are warm-up.
        assert_eq!(report(19, |_| 12.0).steady.map(|steady| steady.first), Some(9));
        assert_eq!(report(18, |_| 12.0).steady, None);
    }

    #[test]
    fn few_scored_steps_are_judged_by_the_steady_mean() {
        let few = [1, Stat::FEW - 1, Stat::FEW].map(|scored| judged_s(12.0, scored, Some(13.0)));
        assert_eq!(few, [13.0, 13.0, 12.0]);
        let unusable = [None, Some(0.0), Some(f64::NAN)].map(|steady_s| judged_s(12.0, 1, steady_s));
        assert_eq!(unusable, [12.0; 3]);
    }

    #[test]
    fn differences_of_at_most_one_percent_have_no_words() {
        let words = [(10.0, 10.2), (10.0, 9.0), (10.0, 10.09), (0.0, 1.0)]
            .map(|(one, other)| steady_difference(one, other));
        assert_eq!(words, [Some("2 % longer".to_owned()), Some("10 % shorter".to_owned()), None, None]);
    }
}
