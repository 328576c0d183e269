//! A parsed run by the step time by which it is judged.

use super::estimate::rounded;
use crate::journal::Event;
use trainplan_shared::estimate::Interval;
use trainplan_shared::result::{PlanComparison, RunStepTimes, steady_difference};

/// A run by the step time by which it is judged: that of the scored steps, or of all steps after the warm-up if few are scored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JudgedRun {
    scored_s: f64,
    pub(super) step_time_s: f64,
    /// Its speed in percent of the published one.
    pub(super) speed_percent: Option<f64>,
    /// The same by the scored step time.
    pub(super) scored_speed_percent: Option<f64>,
    /// The comparison with its plan; none if the log was not compared with it.
    pub(super) plan: Option<PlanComparison>,
}

impl JudgedRun {
    /// Returns a parsed run, compared with its planned seconds per step; none if it was not scored.
    pub(super) fn of(parsed: &Event, planned: Interval) -> Option<JudgedRun> {
        let Event::Parsed { step_time_s: Some(scored_s), judged_s, speed_percent, error, .. } = parsed else {
            return None;
        };
        let (scored_s, scored_speed_percent) = (*scored_s, *speed_percent);
        let step_time_s = judged_s.unwrap_or(scored_s);
        let times = RunStepTimes { scored_s, judged_s: step_time_s };
        Some(JudgedRun {
            scored_s,
            step_time_s,
            speed_percent: scored_speed_percent.map(|percent| percent * scored_s / step_time_s),
            scored_speed_percent,
            plan: error.map(|_| PlanComparison::of(planned, Some(times))),
        })
    }

    /// Returns the step time that judges the run, with the scored one if the two are unlike:
    /// `12.50 s per step (steady mean; scored: 10.00 s)`.
    pub(super) fn in_words(self) -> String {
        let judged_s = rounded(self.step_time_s);
        match self.steady_s() {
            Some(_) => format!("{judged_s} s per step (steady mean; scored: {} s)", rounded(self.scored_s)),
            None => format!("{judged_s} s per step"),
        }
    }

    /// Returns the steady mean, in seconds, if it judges the run and is unlike the scored step time.
    pub(super) fn steady_s(self) -> Option<f64> {
        steady_difference(self.scored_s, self.step_time_s).map(|_| self.step_time_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trainplan_shared::log::Status;

    fn judged(judged_s: Option<f64>) -> JudgedRun {
        let parsed = Event::Parsed {
            status: Status::Scored,
            reason: None,
            step_time_s: Some(10.0),
            judged_s,
            mfu: None,
            speed_percent: Some(100.0),
            error: Some(0.0),
            within: Some(true),
        };
        JudgedRun::of(&parsed, Interval { low: 9.0, mid: 10.0, high: 11.0 }).unwrap()
    }

    #[test]
    fn a_run_that_stalls_beside_its_scored_step_is_judged_by_its_steady_mean() {
        let stalls = judged(Some(12.5));
        let plan = stalls.plan.unwrap();
        assert_eq!((stalls.speed_percent, plan.speed_percent), (Some(80.0), Some(80.0)));
        assert_eq!((plan.within, stalls.steady_s()), (Some(false), Some(12.5)));
        let scored = (stalls.scored_speed_percent, plan.scored_speed_percent, plan.scored_within);
        assert_eq!(scored, (Some(100.0), Some(100.0), Some(true)));
        assert_eq!(stalls.in_words(), "12.50 s per step (steady mean; scored: 10.00 s)");
    }

    #[test]
    fn journals_of_older_programs_have_the_scored_step_time_only() {
        let old = judged(None);
        assert_eq!((old.speed_percent, old.plan.unwrap().within), (Some(100.0), Some(true)));
        assert_eq!((old.steady_s(), old.in_words().as_str()), (None, "10.00 s per step"));
    }
}
