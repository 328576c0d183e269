//! NeMo 1: a progress bar.
//!
//! `Epoch 0: :  99%|#####| 99/100 [07:52<00:04, reduced_train_loss=7.310, global_step=98.00, consumed_samples=25344.0,
//! train_step_timing in s=3.590]`. Redraws are separated by carriage returns. The bar counts from 1 and moves before
//! its figures change, so the last redraw of a step has the right figures.

use super::hit::Hit;
use super::steps::Step;
use super::text::{field, label};

pub(super) const MARKER: &[u8] = b"train_step_timing in s=";

/// Returns the step that the bar shows, once it has figures.
pub(super) fn step(hit: &Hit) -> Option<Step> {
    let bar = hit.since(b"Epoch ")?;
    let figures = bar.iter().position(|byte| *byte == b'[')?;
    let (count, record) = bar.split_at(figures);
    let record = &record[..record.iter().position(|byte| *byte == b']').unwrap_or(record.len())];
    let step_time_s = field(record, b"train_step_timing in s")?;

    let (epoch, _) = label(count)?;
    let counted = count.iter().rposition(|byte| *byte == b'|' || *byte == b':')?;
    let (done, rest) = label(&count[counted + 1..])?;
    let total = rest.strip_prefix(b"/").and_then(label).map(|(total, _)| total);
    Some(Step {
        // Every epoch counts from 1.
        label: epoch.checked_mul(total.unwrap_or(0))?.checked_add(done)?,
        planned_last: total.filter(|_| epoch == 0),
        step_time_s: Some(step_time_s),
        loss: field(record, b"reduced_train_loss"),
        grad_norm: field(record, b"grad_norm"),
        consumed_samples: field(record, b"consumed_samples"),
        ..Step::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::log::{Format, parse};

    #[test]
    fn the_line_of_the_24_11_document() {
        let log = parse(
            "Epoch 0: : 100%|██████████| 100/100 [07:57<00:00, reduced_train_loss=7.310, global_step=99.00, \
             consumed_samples=25600.0, train_step_timing in s=3.590]"
                .as_bytes(),
        );
        assert_eq!(log.format, Some(Format::Nemo1));
        assert_eq!(log.steps.label, [100]);
        assert_eq!(log.steps.step_time_s.get(0), Some(3.59));
        assert_eq!(log.steps.loss.get(0), Some(7.31));
        assert_eq!(log.steps.consumed_samples.get(0), Some(25600.0));
        assert_eq!(log.planned_last, Some(100));
    }

    #[test]
    fn the_last_redraw_of_a_step_counts_and_a_bar_without_figures_does_not() {
        let log = parse(
            b"Epoch 0: :   0%|          | 0/4 [00:00<?]\r\
              Epoch 0: :  25%|##5       | 1/4 [00:09<00:20, v_num=, train_step_timing in s=9.100]\r\
              Epoch 0: :  50%|#####     | 2/4 [00:09<00:20, v_num=, train_step_timing in s=9.100]\r\
              Epoch 0: :  50%|#####     | 2/4 [00:12<00:10, v_num=, train_step_timing in s=3.500][NeMo I] saved\n",
        );
        assert_eq!(log.steps.label, [1, 2]);
        assert_eq!(log.steps.step_time_s.get(1), Some(3.5));
        assert_eq!((log.duplicates, log.restarts), (0, 0));
    }

    #[test]
    fn a_later_epoch_goes_on_counting() {
        let log = parse(
            b"Epoch 0: : 100%|#| 4/4 [00:12<00:10, train_step_timing in s=3.500]\r\
              Epoch 1: :  25%|#| 1/4 [00:12<00:10, train_step_timing in s=3.600]\r",
        );
        assert_eq!(log.steps.label, [4, 5]);
        assert_eq!(log.restarts, 0);
    }
}
