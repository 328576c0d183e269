//! Pauses: long times between the lines of two steps that no step time contains.

use super::Log;
use super::ending::{LEAST_S, LEAST_STEPS};
use super::steps::Step;
use crate::units::{hours_and_minutes, significant};
use serde::{Deserialize, Serialize};

/// When the clocks go forward in spring, a log in local time skips an hour.
const CLOCK_CHANGE_S: f64 = 3600.0;

/// The seconds, in addition to two steps, by which the times of lines may differ from the sum of their step
/// times.
const SLACK_S: f64 = 5.0;

/// A time between the lines of two steps that is much longer than the step times that the lines state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// The number of the step before it.
    pub after: u64,
    /// The number of the step after it.
    pub before: u64,
    /// Its seconds, by the log's own clock.
    pub seconds: u64,
}

impl Pause {
    /// Returns the pause between the last step, with its number and time, and the next one. None if it is short, if the steps took
    /// that long or have no step time, if the run was restarted from an earlier step, or if the clock may have been changed.
    pub(super) fn between((last, last_at): (u64, i64), next: &Step, at: i64) -> Option<Self> {
        // Software may log every tenth step only.
        let steps = next.label.checked_sub(last).filter(|steps| *steps > 0)?;
        // Lines without a step time, such as torchtitan's, have a speed that includes any pause.
        let step_s = next.step_time_s?;
        let idle_s = (at - last_at) as f64 - steps as f64 * step_s;
        let may_be_clock = (idle_s - CLOCK_CHANGE_S).abs() <= 2.0 * step_s + SLACK_S;
        (idle_s > LEAST_S && !may_be_clock).then_some(Self {
            after: last,
            before: next.label,
            seconds: idle_s as u64,
        })
    }
}

impl Log {
    /// Returns a sentence about the longest pause; none if it isn't far longer than a step.
    #[must_use]
    pub fn pause_note(&self) -> Option<String> {
        let Pause { after, before, seconds } = self.pause?;
        let (idle_s, step_s) = (seconds as f64, self.usual_step_s()?);
        (idle_s > LEAST_STEPS * step_s).then(|| {
            format!(
                "The run paused for {} between steps {after} and {before}, which no step time includes. A step takes {} s. The job may \
                 have been suspended, or it evaluated or saved a checkpoint.",
                hours_and_minutes(idle_s),
                significant(step_s, 3)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::log::{Pause, parse};

    /// Thirty steps of `seconds` each; before step 20, `idle` seconds pass.
    fn log(seconds: u64, idle: u64) -> crate::log::Log {
        let line = |step: u64| {
            let passed = step * seconds + if step < 20 { 0 } else { idle };
            format!(
                " [2026-11-20 {:02}:{:02}:{:02}.000001] iteration {step}/30 | elapsed time per iteration (ms): {}.0 |\n",
                10 + passed / 3600,
                passed / 60 % 60,
                passed % 60,
                1000 * seconds
            )
        };
        parse((1..=30).map(line).collect::<String>().as_bytes())
    }

    #[test]
    fn a_time_that_no_step_includes_is_noted() {
        let paused = log(48, 3000);
        assert_eq!(paused.pause, Some(Pause { after: 19, before: 20, seconds: 3000 }));
        let note = "The run paused for 50 min between steps 19 and 20, which no step time includes. A step takes 48 s.";
        assert!(paused.pause_note().is_some_and(|told| told.starts_with(note)), "{:?}", paused.pause_note());
        // Shorter than ten minutes, or not much for such steps.
        assert_eq!(log(5, 500).pause, None);
        assert_eq!(log(60, 1000).pause_note(), None);
    }

    #[test]
    fn an_hour_that_the_clock_skips_is_no_pause() {
        for idle in [3600, 3612, 3590] {
            assert_eq!(log(5, idle).pause, None, "{idle}");
        }
        assert!(log(5, 3640).pause.is_some() && log(5, 3560).pause.is_some());
    }

    #[test]
    fn slow_steps_and_restarts_are_not_pauses() {
        let line = |hour: u64, step: u64, seconds: u64| {
            format!(
                "[2026-11-20 {hour}:00:00] iteration {step}/9 | elapsed time per iteration (ms): {seconds}000.0 |\n"
            )
        };
        assert_eq!(parse((line(10, 1, 5) + &line(11, 2, 3600)).as_bytes()).pause, None);
        assert_eq!(parse((line(10, 3, 5) + &line(11, 2, 5)).as_bytes()).pause, None);
        assert_eq!(parse((line(11, 1, 5) + &line(10, 2, 5)).as_bytes()).pause, None);
    }

    #[test]
    fn steps_without_step_times_have_no_pauses() {
        let line = |hour: u64, step: u64| {
            format!(
                "[titan] 2026-11-20 {hour}:00:00,123 - root - INFO - step: {step}  loss:  8.1  memory: 50.00GiB(62.00%)  tps: 1,299  \
                 tflops: 12.34  mfu: 1.23%\n"
            )
        };
        let log = parse((line(10, 100) + &line(11, 200)).as_bytes());
        assert!(log.steps.len() == 2 && log.last_step_at.is_some(), "{log:?}");
        assert_eq!(log.pause, None);
    }
}
