//! Runs that never end, because failures come faster than they make progress.

use super::{Disruptions, FailureRate};
use crate::field::Field;
use crate::message;
use crate::message::Message;
use crate::units::{HOUR_S, group_digits, readable};

/// The least share of the training time that failures leave. With less, a run takes over a thousand times as long, so nobody would
/// start it.
const LEAST_SHARE: f64 = 0.001;

/// Returns whether a run ends, by its goodput with and without failures.
pub(super) fn ends(goodput: f64, without_failures: f64) -> bool {
    goodput >= LEAST_SHARE * without_failures
}

/// Returns a sentence that says that a job on `gpus` GPUs fails too often. `what` takes `least_s` seconds.
pub(super) fn never_ends(gpus: u32, mtbf_s: f64, what: &str, least_s: f64) -> Message {
    let studies = FailureRate::Studies.per_gpu_hour();
    let noun = if gpus == 1 { "GPU" } else { "GPUs" };
    message![
        format!(
            "A job on {} {noun} fails every {} s on average, but {what} {} s, so the run never ends. Lower ",
            group_digits(f64::from(gpus)),
            readable(mtbf_s),
            readable(least_s)
        ),
        Field::FailureRate,
        format!(" (published: {:e}..{:e}) or ", studies.low, studies.high),
        Field::RestartTime,
        "."
    ]
}

impl Disruptions {
    /// Returns why no run on this many GPUs ends, however short its steps are, as a sentence; none if a run may
    /// end.
    pub fn never_ends(&self, gpus: u32) -> Option<Message> {
        let mtbf_s = HOUR_S / (self.failure_rate.middle() * f64::from(gpus));
        let recovery_s = self.recovery.seconds();
        // The share for infinitely short steps without saves.
        let share = libm::exp(-recovery_s / mtbf_s);
        (!ends(share, 1.0)).then(|| never_ends(gpus, mtbf_s, "a restart takes", recovery_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Front;
    use crate::range::ValueRange;

    #[test]
    fn a_job_that_fails_faster_than_it_restarts_never_ends() {
        let every_hour = FailureRate::Own(ValueRange::of(1.0));
        let disruptions = Disruptions { failure_rate: every_hour, ..Disruptions::default() };
        let why = disruptions.never_ends(512).unwrap();
        assert_eq!(
            why.text(Front::Terminal),
            "A job on 512 GPUs fails every 7.03 s on average, but a restart takes 600 s, so the run never ends. Lower \
             --failure-rate (published: 1.97e-5..1.2e-4) or --restart-time."
        );
        // A restart takes less than the 7 mean times between failures that leave a thousandth of the time.
        assert_eq!(disruptions.never_ends(8), None);
        assert_eq!(Disruptions::default().never_ends(16_384), None);
        let without = Disruptions { failure_rate: FailureRate::Own(ValueRange::of(0.0)), ..disruptions };
        assert_eq!(without.never_ends(u32::MAX), None);
    }
}
