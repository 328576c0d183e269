//! MaxText: one line per step, counted from 0.
//!
//! `completed step: 49, seconds: 15.570, TFLOP/s/device: 400.1, Tokens/s/device: 8000.2, total_weights: 1048576,
//! loss: 7.31`

use super::hit::Hit;
use super::steps::Step;
use super::text::{field, label};

pub(super) const MARKER: &[u8] = b"completed step: ";

pub(super) fn step(hit: &Hit) -> Option<Step> {
    let (label, record) = label(hit.after())?;
    Some(Step {
        label,
        step_time_s: Some(field(record, b"seconds")?),
        loss: field(record, b"loss"),
        tflops_per_gpu: field(record, b"TFLOP/s/device"),
        tokens_per_s_per_gpu: field(record, b"Tokens/s/device"),
        ..Step::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::log::{Format, parse};

    #[test]
    fn a_step() {
        let log = parse(
            b"completed step: 49, seconds: 15.570, TFLOP/s/device: 400.1, Tokens/s/device: 8000.2, \
              total_weights: 1048576, loss: 7.31\n",
        );
        assert_eq!(log.format, Some(Format::Maxtext));
        assert_eq!(log.steps.label, [49]);
        assert_eq!(log.steps.step_time_s.get(0), Some(15.57));
        assert_eq!(log.steps.tflops_per_gpu.get(0), Some(400.1));
        assert_eq!(log.steps.tokens_per_s_per_gpu.get(0), Some(8000.2));
        assert_eq!(log.steps.loss.get(0), Some(7.31));
    }
}
