//! A parsed run by the step time by which it is judged.

use crate::journal::Event;
use serde::Serialize;
use trainplan_shared::estimate::Interval;
use trainplan_shared::result::{PlanComparison, RunStepTimes, steady_difference};

/// A run by the step time by which it is judged: that of the scored steps, or of all steps after the warm-up if few are scored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct JudgedRun {
    #[serde(skip)]
    scored_s: f64,
    pub(super) step_time_s: f64,
    /// Its speed in percent of the published one.
    pub(super) speed_percent: Option<f64>,
    /// Its speed in percent of the planned one.
    pub(super) plan_speed_percent: Option<f64>,
    /// Whether the step time is within the plan's interval.
    pub(super) within: Option<bool>,
}

impl JudgedRun {
    /// Returns a parsed run, compared with its planned seconds per step; none if it was not scored.
    pub(super) fn of(parsed: &Event, planned: Interval) -> Option<JudgedRun> {
        let Event::Parsed { step_time_s: Some(scored_s), judged_s, speed_percent, error, .. } = parsed else {
            return None;
        };
        let step_time_s = judged_s.unwrap_or(*scored_s);
        let times = RunStepTimes { scored_s: *scored_s, judged_s: step_time_s };
        let plan = error.map(|_| PlanComparison::of(planned, Some(times)));
        Some(JudgedRun {
            scored_s: *scored_s,
            step_time_s,
            speed_percent: speed_percent.map(|percent| percent * scored_s / step_time_s),
            plan_speed_percent: plan.and_then(|plan| plan.speed_percent),
            within: plan.and_then(|plan| plan.within),
        })
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
        assert_eq!((stalls.speed_percent, stalls.plan_speed_percent), (Some(80.0), Some(80.0)));
        assert_eq!((stalls.within, stalls.steady_s()), (Some(false), Some(12.5)));
    }

    #[test]
    fn journals_of_older_programs_have_the_scored_step_time_only() {
        let old = judged(None);
        assert_eq!((old.speed_percent, old.within, old.steady_s()), (Some(100.0), Some(true), None));
    }
}
