//! How a run ended early, according to its log.

use super::{FailureKind, Log, clock};
use crate::choices::choices;

/// The shortest time without a step, in step times and in seconds, that counts as a hang: checkpoints and evaluations take
/// less.
pub(super) const LEAST_STEPS: f64 = 20.0;
pub(super) const LEAST_S: f64 = 600.0;

/// Time zones differ by multiples of this, at most by [`MOST_ZONE_S`].
const ZONE_STEP_S: f64 = 900.0;
const MOST_ZONE_S: f64 = 26.0 * 3600.0;

/// The seconds that Slurm may take to end a job.
const KILL_WAIT_S: f64 = 60.0;

choices! {
    /// How a run ended before its last step.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Ending {
        /// Something failed.
        Failed "failed",
        /// It made no steps any more.
        Hung "hung",
        /// It was cancelled or preempted, or hit its time limit.
        Stopped "stopped",
    }
}

impl Ending {
    /// Returns the status of a run that was scored and then ended so, in words.
    #[must_use]
    pub const fn status_title(self) -> &'static str {
        match self {
            Self::Failed => "scored, then failed",
            Self::Hung => "scored, then hung",
            Self::Stopped => "scored, then stopped",
        }
    }
}

impl Log {
    /// Returns how many seconds passed between the last step and the end of the job, if that was so long that the run must have
    /// hung: Slurm ended it at its time limit, or somebody cancelled it. None where the log's times don't say so.
    #[must_use]
    pub fn stall_s(&self) -> Option<f64> {
        let is_ended_from_outside = |kind| matches!(kind, FailureKind::TimeLimit | FailureKind::Cancelled);
        let end = self.cause().filter(|cause| is_ended_from_outside(cause.kind))?;
        let (_, when) = end.text.split_once("CANCELLED AT ")?;
        let idle_s = clock::time(when.as_bytes())?.checked_sub(self.last_step_at?)? as f64;
        let step_s = self.usual_step_s()?;
        // The clocks of a container and of its host often have different time zones.
        let may_be_zone =
            idle_s <= MOST_ZONE_S && idle_s.rem_euclid(ZONE_STEP_S) <= 2.0 * step_s + KILL_WAIT_S;
        (idle_s > LEAST_S && idle_s > LEAST_STEPS * step_s && !may_be_zone).then_some(idle_s)
    }

    /// Returns how the run ended before its last step. None for a complete run, and for one whose log doesn't say.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        if self.hang().is_some() || self.stall_s().is_some() {
            return Some(Ending::Hung);
        }
        Some(match self.cause()?.kind {
            FailureKind::TimeLimit | FailureKind::Preempted | FailureKind::Cancelled => Ending::Stopped,
            _ => Ending::Failed,
        })
    }

    /// Returns how the run ended early, as a clause: `hung after step 60`, `failed after step 55: NCCL reported an error`. None
    /// without an [ending](Self::ending).
    #[must_use]
    pub fn ended_early(&self) -> Option<String> {
        let ending = self.ending()?;
        let place = match self.steps.span() {
            Some(span) => format!("after step {}", span.last),
            None => "before its first step".to_owned(),
        };
        let cause = self.cause().filter(|_| ending != Ending::Hung);
        let why = cause.map_or_else(String::new, |cause| format!(": {}", cause.kind.what()));
        Some(format!("{ending} {place}{why}"))
    }

    /// Returns the median step time of the second half, in seconds.
    pub(super) fn usual_step_s(&self) -> Option<f64> {
        let rows = self.steps.len() / 2..self.steps.len();
        let mut times: Vec<f64> = self.steps.step_time_s.values(rows).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::log::{Ending, Status, StdKind, Window, parse, score};

    /// Sixty of 120 steps of `seconds` each, and the end of the job.
    fn log(seconds: u64, end: &str) -> String {
        let step = |step: u64| {
            let passed = step * seconds;
            format!(
                " [2026-11-20 {:02}:{:02}:{:02}.000001] iteration {step}/120 | elapsed time per iteration (ms): {}.0 | lm loss: \
                 3.1 |\n",
                10 + passed / 3600,
                passed / 60 % 60,
                passed % 60,
                1000 * seconds
            )
        };
        (1..=60).map(step).collect::<String>() + end
    }

    fn cancelled(at: &str, why: &str) -> String {
        format!("slurmstepd: error: *** JOB 4712 ON node001 CANCELLED AT 2026-11-20T{at}{why} ***\n")
    }

    const LIMIT: &str = " DUE TO TIME LIMIT";

    #[test]
    fn a_long_time_without_a_step_is_a_hang() {
        let window: Window = "35-44".parse().unwrap();
        let told = |text: &str| {
            let log = parse(text.as_bytes());
            (score(&log, window, StdKind::Sample).reason.unwrap_or_default(), log.ended_early())
        };
        let (reason, ending) = told(&log(5, &cancelled("12:00:20", LIMIT)));
        let hung = "After the window, the log ends at step 60: the run hung. No step was logged in the 1 h 55 min before the job \
                    hit its time limit (line 61). Find the missing or hung rank, exclude its node, and run again.";
        assert_eq!((reason.as_str(), ending.as_deref()), (hung, Some("hung after step 60")));
        let (reason, _) = told(&log(5, &cancelled("10:24:07", "")));
        assert!(
            reason.contains(
                "the run hung. No step was logged in the 19 min before the job was cancelled (line 61)."
            ),
            "{reason}"
        );
        // Just cancelled; few steps long; perhaps another time zone; without times.
        for end in [
            cancelled("10:05:20", LIMIT),
            cancelled("10:14:00", LIMIT),
            cancelled("12:05:20", LIMIT),
            cancelled("09:45:00", LIMIT),
            cancelled("at noon", LIMIT),
        ] {
            let (reason, ending) = told(&log(5, &end));
            assert!(reason.contains("time limit (line 61). Request more time"), "{end}{reason}");
            assert_eq!(ending.as_deref(), Some("stopped after step 60: the job hit its time limit"));
        }
        // A hung run failed, even if somebody cancelled it.
        let unfinished: Window = "100-109".parse().unwrap();
        let status = |end: &str| score(&parse(log(5, end).as_bytes()), unfinished, StdKind::Sample).status;
        assert_eq!(status(&cancelled("10:24:07", "")), Status::Failed);
        assert_eq!(status(&cancelled("10:05:20", "")), Status::Cancelled);
        let (slow, _) = told(&log(60, &cancelled("11:17:00", LIMIT)));
        assert!(slow.contains("Request more time"), "{slow}");
    }

    #[test]
    fn a_log_that_just_ends_says_where() {
        let window: Window = "35-44".parse().unwrap();
        let cut = parse(log(5, "").as_bytes());
        let reason = score(&cut, window, StdKind::Sample).reason;
        assert_eq!(reason.as_deref(), Some("The log ends at step 60 of 120, and doesn't say why."));
        assert_eq!((cut.ending(), cut.ended_early()), (None, None));
        let failed = parse(log(5, "[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n").as_bytes());
        assert_eq!(failed.ending(), Some(Ending::Failed));
        assert_eq!(failed.ended_early().as_deref(), Some("failed after step 60: a GPU ran out of memory"));
    }
}
