//! torchtitan: one coloured line per step, counted from 1, without a step time.
//!
//! `step:  1  loss:  8.12345  grad_norm:  1.2345  memory: 50.00GiB(62.00%)  tps: 1,299  tflops: 12.34  mfu: 1.23%`.
//! Tokens per second are per GPU. The memory is the allocator's peak reservation since the previous line. Before the steps, the
//! trainer states its batch: `Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation steps 1,
//! sequence length 8192, total steps 50 (warmup 20)`.

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::hit::Hit;
use super::steps::Step;
use super::text::{field, label, plain, ungrouped};

pub(super) const MARKER: &[u8] = b"memory: ";
pub(super) const BATCH: &[u8] = b"Trainer is initialized with local batch size";

const GIB: f64 = 1_073_741_824.0;

/// The batch that a log states before its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedBatch {
    /// Sequences in a step.
    pub global_batch_size: u32,
    /// Tokens in a sequence.
    pub seq_len: u32,
}

/// Returns the batch in the trainer's line.
pub(super) fn batch(hit: &Hit) -> Option<StatedBatch> {
    let record = plain(hit.after());
    let whole = |key: &[u8]| {
        let at = memmem::find(&record, key)?;
        let (number, _) = label(&record[at + key.len()..])?;
        u32::try_from(number).ok().filter(|number| *number > 0)
    };
    Some(StatedBatch { global_batch_size: whole(b"global batch size")?, seq_len: whole(b"sequence length")? })
}

/// Returns the training step of a line. A validation line has no MFU and is left out.
pub(super) fn step(hit: &Hit) -> Option<Step> {
    // "memory: " is common in other output, so the cheap check comes first.
    let figure = hit.after();
    let unit = figure.iter().position(|byte| !matches!(byte, b' ' | b'.' | b'0'..=b'9'))?;
    if !figure[unit..].starts_with(b"GiB(") {
        return None;
    }
    let record = ungrouped(&plain(hit.since(b"step:")?));
    let (label, record) = label(&record)?;
    memmem::find(record, b"mfu:")?;
    Some(Step {
        label,
        loss: field(record, b"loss"),
        grad_norm: field(record, b"grad_norm"),
        tflops_per_gpu: field(record, b"tflops"),
        tokens_per_s_per_gpu: Some(field(record, b"tps")?),
        mfu: field(record, b"mfu").map(|percent| percent / 100.0),
        memory_peak_bytes: field(record, b"memory").map(|gib| gib * GIB),
        ..Step::default()
    })
}

#[cfg(test)]
mod tests {
    use super::StatedBatch;
    use crate::log::{Format, parse};

    #[test]
    fn a_coloured_line_with_grouped_digits() {
        let log = parse(
            b"[rank0]:[titan] 2025-12-01 10:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.1235  \
              \x1b[38;2;180;60;0mgrad_norm:  1.2345  \x1b[36mmemory: 50.00GiB(62.00%)  \x1b[34mtps: 1,299  \
              \x1b[36mtflops: 1,012.34  \x1b[35mmfu: 1.23%\x1b[39m\n",
        );
        assert_eq!(log.format, Some(Format::Torchtitan));
        assert_eq!(log.steps.label, [10]);
        assert_eq!(log.steps.step_time_s.get(0), None);
        assert_eq!(log.steps.loss.get(0), Some(8.1235));
        assert_eq!(log.steps.grad_norm.get(0), Some(1.2345));
        assert_eq!(log.steps.tokens_per_s_per_gpu.get(0), Some(1299.0));
        assert_eq!(log.steps.tflops_per_gpu.get(0), Some(1012.34));
        assert_eq!(log.steps.mfu.get(0), Some(1.23 / 100.0));
        assert_eq!(log.steps.memory_peak_bytes.get(0), Some(50.0 * super::GIB));
    }

    #[test]
    fn the_trainer_states_its_batch() {
        let batch = |line: &str| {
            let step =
                "step: 1  loss:  8.1  memory: 50.00GiB(62.00%)  tps: 1,299  tflops: 12.34  mfu: 1.23%\n";
            parse(format!("{line}\n{step}").as_bytes()).batch
        };
        let stated = "[titan] INFO - Trainer is initialized with local batch size 1, global batch size 8, gradient \
                      accumulation steps 1, sequence length 8192, total steps 50 (warmup 20)";
        assert_eq!(batch(stated), Some(StatedBatch { global_batch_size: 8, seq_len: 8192 }));
        for torn in
            [&stated[..stated.len() - 40], &stated.replace("size 8", "size 0"), "Trainer is initialized"]
        {
            assert_eq!(batch(torn), None, "{torn}");
        }
    }

    #[test]
    fn validation_and_chatter_are_no_steps() {
        let log = parse(
            b"validate step: 10  loss:  8.1235  memory: 50.00GiB(62.00%)  tps: 1,299\n\
              step: 3 host memory: 12 MB\nstep: 4 memory: \n",
        );
        assert!(log.steps.label.is_empty());
    }
}
