//! paxml: one line per step, `[PAX STATUS]: train_step() took 7.47 seconds.` Steps have no number, so they are counted.

use super::hit::Hit;
use super::steps::Step;
use super::text::number;

pub(super) const MARKER: &[u8] = b"train_step() took ";

/// Returns the step of a line that follows `counted` steps.
pub(super) fn step(hit: &Hit, counted: usize) -> Option<Step> {
    Some(Step { label: counted as u64 + 1, step_time_s: Some(number(hit.after())?), ..Step::default() })
}

#[cfg(test)]
mod tests {
    use crate::log::{Format, parse};

    #[test]
    fn steps_are_counted() {
        let line = b"I0411 15:03:26.8 140 programs.py:366] [PAX STATUS]: train_step() took 7.47 seconds.\n";
        let log = parse(&line.repeat(3));
        assert_eq!(log.format, Some(Format::Paxml));
        assert_eq!(log.steps.label, [1, 2, 3]);
        assert!(log.labels_counted);
    }
}
