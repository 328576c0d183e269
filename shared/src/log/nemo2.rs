//! NeMo 2: one line per step, counted from 0.
//!
//! `Training epoch 0, iteration 49/49 | lr: 7.496e-06 | global_batch_size: 128 | global_step: 49 |
//! peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.96 |
//! train_step_timing in s: 12.39 | consumed_samples: 6400`. The fields and their order depend on the
//! version. Values have four significant digits: a TFLOPS of 1.601e+03 is exact to half a unit.

use super::hit::Hit;
use super::steps::Step;
use super::text::{field, label};

pub(super) const MARKER: &[u8] = b"Training epoch ";

/// Returns the step of a line, unless the line breaks off before its step time.
pub(super) fn step(hit: &Hit) -> Option<Step> {
    let (epoch, rest) = label(hit.after())?;
    let (iteration, rest) = label(rest.strip_prefix(b", iteration ")?)?;
    let (planned, record) = label(rest.strip_prefix(b"/")?)?;
    // Iterations restart with every epoch; the global step continues.
    let global_step = || field(record, b"global_step").filter(|step| (0.0..1e15).contains(step));
    let label = if epoch == 0 { iteration } else { global_step().map_or(iteration, |step| step as u64) };
    Some(Step {
        label,
        planned_last: Some(planned).filter(|_| epoch == 0),
        step_time_s: Some(field(record, b"train_step_timing in s")?),
        loss: field(record, b"reduced_train_loss"),
        grad_norm: field(record, b"grad_norm"),
        tflops_per_gpu: field(record, b"TFLOPS_per_GPU"),
        tokens_per_s_per_gpu: field(record, b"tokens_per_sec_per_gpu"),
        mfu: None,
        memory_peak_bytes: field(record, b"peak_memory_usage")
            .or_else(|| field(record, b"max_memory_allocated")),
        memory_allocated_bytes: field(record, b"memory_allocated"),
        consumed_samples: field(record, b"consumed_samples"),
        global_batch_size: field(record, b"global_batch_size"),
    })
}

#[cfg(test)]
mod tests {
    use crate::log::{Format, parse};

    #[test]
    fn the_line_of_the_25_04_document() {
        let log = parse(
            b"Training epoch 0, iteration 49/49 | lr: 7.496e-06 | global_batch_size: 128 | global_step: 49 | \
              peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 11.96 | \
              train_step_timing in s: 12.39 | consumed_samples: 6400\n",
        );
        assert_eq!(log.format, Some(Format::Nemo2));
        assert_eq!(log.steps.label, [49]);
        assert_eq!(log.planned_last, Some(49));
        assert_eq!(log.steps.step_time_s.get(0), Some(12.39));
        assert_eq!(log.steps.loss.get(0), Some(11.96));
        assert_eq!(log.steps.memory_peak_bytes.get(0), Some(70_833_405_952.0));
        assert_eq!(log.steps.memory_allocated_bytes.get(0), Some(44_271_689_728.0));
        assert_eq!(log.steps.consumed_samples.get(0), Some(6400.0));
        assert_eq!(log.steps.global_batch_size.get(0), Some(128.0));
    }

    #[test]
    fn glued_and_torn_lines() {
        let log = parse(
            b"0: [NeMo W] foo Training epoch 0, iteration 1/49 | lr: 1e-06 | trainTraining epoch 0, iteration 2/49 | \
              train_step_timing in s: 2.5 | TFLOPS_per_GPU: 1.601e+03[rank7] bar Training epoch 0, iteration 3/49 | \
              train_step_timing in s: 2.\n",
        );
        assert_eq!(log.steps.label, [2]);
        assert_eq!(log.steps.step_time_s.get(0), Some(2.5));
        assert_eq!(log.steps.tflops_per_gpu.get(0), Some(1601.0));
    }

    #[test]
    fn a_later_epoch_is_labelled_by_its_global_step() {
        let log = parse(
            b"Training epoch 0, iteration 9/9 | global_step: 9 | train_step_timing in s: 2.5\n\
              Training epoch 1, iteration 0/9 | global_step: 10 | train_step_timing in s: 2.5\n",
        );
        assert_eq!(log.steps.label, [9, 10]);
    }
}
