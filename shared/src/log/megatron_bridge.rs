//! Megatron-Bridge and Megatron-LM: two lines per step, from two ranks, counted from 1.
//!
//! The last rank: `iteration        1/      50 | consumed samples: 256 | elapsed time per iteration (ms): 20289.1 |
//! learning rate: 3.0E-06 | global batch size: 256 | lm loss: 1.2E+01 | grad norm: 1.234 | ...`. Rank 0:
//! `Step Time : 20.29s GPU utilization: 1636.8MODEL_TFLOP/s/GPU`. After an early step, some ranks also print their
//! memory, in units of 1000³ (Bridge) or of 1024² (LM).
//!
//! Megatron-LM prints only the last rank's line, so a log without any line of rank 0 is taken as Megatron-LM's.
//!
//! The two lines can arrive in either order, and one can be missing, so they are paired by the step time that both print.
//! If several pairs fit, any of them is right: the utilisation is the step's FLOPs divided by that time, so steps of
//! equal time have equal utilisation.

use memchr::memmem;

use super::hit::Hit;
use super::steps::{Step, Steps};
use super::text::{field, label, number, value};

pub(super) const ITERATION: &[u8] = b"elapsed time per iteration (ms):";
pub(super) const UTILISATION: &[u8] = b"GPU utilization:";
pub(super) const MEMORY: &[u8] = b" iterations) memory (";

/// How many steps rank 0's line may be ahead of or behind the other rank's.
const EARLY: usize = 4;
const LATE: usize = 16;

const GB: f64 = 1e9;
const MIB: f64 = 1_048_576.0;

/// Rank 0's figures of a step.
#[derive(Debug, Clone)]
pub(super) struct Utilisation {
    /// The number of iteration lines before it.
    before: usize,
    /// The offset in the log, in bytes.
    pub(super) offset: u64,
    pub(super) step_time_s: Option<f64>,
    pub(super) tflops_per_gpu: f64,
}

/// A rank's memory after the iteration `label`.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    pub(super) label: u64,
    pub(super) peak_bytes: Option<f64>,
    pub(super) allocated_bytes: Option<f64>,
}

/// Returns the step of an iteration line.
pub(super) fn step(hit: &Hit) -> Option<Step> {
    let (iteration, rest) = label(hit.since(b"iteration ")?)?;
    let (planned, record) = label(rest.strip_prefix(b"/")?)?;
    let skipped_by_nan = field(record, b"number of nan iterations").is_some_and(|count| count > 0.0);
    Some(Step {
        label: iteration,
        planned_last: Some(planned),
        step_time_s: Some(field(record, b"elapsed time per iteration (ms)")? / 1000.0),
        loss: if skipped_by_nan { Some(f64::NAN) } else { field(record, b"lm loss") },
        grad_norm: field(record, b"grad norm"),
        tflops_per_gpu: field(record, b"throughput per GPU (TFLOP/s/GPU)"),
        consumed_samples: field(record, b"consumed samples"),
        global_batch_size: field(record, b"global batch size"),
        ..Step::default()
    })
}

/// Returns the figures of rank 0's line at `offset`, which follows `before` iteration lines.
pub(super) fn utilisation(hit: &Hit, before: usize, offset: u64) -> Option<Utilisation> {
    let step_time_s = value(hit.since(b"Step Time")?);
    let figure = hit.after();
    // Other tools print a "GPU utilization" in percent.
    memmem::find(figure, b"TFLOP")?;
    let tflops_per_gpu = number(figure).filter(|tflops| tflops.is_finite())?;
    Some(Utilisation { before, offset, step_time_s, tflops_per_gpu })
}

/// Returns the memory in a rank's line.
pub(super) fn memory(hit: &Hit) -> Option<Memory> {
    let (label, _) = label(hit.since(b"(after ")?)?;
    let record = hit.after();
    let bytes = |key: &[u8], unit: f64| field(record, key).map(|amount| amount * unit);
    Some(Memory {
        label,
        peak_bytes: bytes(b"mem-max-allocated-gigabytes", GB).or_else(|| bytes(b"max allocated", MIB)),
        allocated_bytes: bytes(b"mem-allocated-gigabytes", GB).or_else(|| bytes(b"allocated", MIB)),
    })
}

/// Gives each step the utilisation that rank 0 printed for it. `steps` are in the order of the log.
pub(super) fn pair(steps: &mut Steps, utilisations: &[Utilisation]) {
    let mut unpaired = 0;
    for utilisation in utilisations {
        let from = unpaired.max(utilisation.before.saturating_sub(LATE));
        let to = steps.len().min(utilisation.before + EARLY);
        if let Some(row) = (from..to).find(|row| agree(utilisation.step_time_s, steps.step_time_s.get(*row)))
        {
            steps.tflops_per_gpu.set(row, Some(utilisation.tflops_per_gpu));
            unpaired = row + 1;
        }
    }
}

/// Returns whether two step times can be of the same step. Rank 0 rounds to hundredths, and clocks differ slightly.
fn agree(one: Option<f64>, other: Option<f64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= 0.01 + 0.002 * other,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::log::{Format, parse};

    fn iteration(label: u64, ms: f64) -> String {
        format!(
            " [2025-12-19 10:49:15] iteration {label:8}/{:8} | consumed samples: {:13} | elapsed time per iteration \
             (ms): {ms:.1} | learning rate: 3.0E-06 | global batch size:   256 | lm loss: 1.2E+01 | loss scale: 1.0 \
             | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
            50,
            label * 256
        )
    }

    fn utilisation(ms: f64, tflops: f64) -> String {
        format!(
            "ain_fp8_mx/0 Step Time : {:.2}s GPU utilization: {tflops:.1}MODEL_TFLOP/s/GPU\n",
            ms / 1000.0
        )
    }

    #[test]
    fn a_step_of_two_lines_and_the_memory_of_the_ranks() {
        let log = parse(
            (utilisation(20289.1, 463.1)
                + &iteration(1, 20289.1)
                + "[Rank 0] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 63.66 | \
                   mem-max-allocated-gigabytes: 153.4 | mem-max-reserved-gigabytes: 182.2\n"
                + "[Rank 8] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 60.0 | \
                   mem-max-allocated-gigabytes: 160.5\n")
                .as_bytes(),
        );
        assert_eq!(log.format, Some(Format::MegatronBridge));
        assert_eq!(log.planned_last, Some(50));
        assert_eq!(log.steps.label, [1]);
        assert_eq!(log.steps.step_time_s.get(0), Some(20289.1 / 1000.0));
        assert_eq!(log.steps.tflops_per_gpu.get(0), Some(463.1));
        assert_eq!(log.steps.loss.get(0), Some(12.0));
        assert_eq!(log.steps.grad_norm.get(0), Some(1.234));
        assert_eq!(log.steps.consumed_samples.get(0), Some(256.0));
        assert_eq!(log.steps.global_batch_size.get(0), Some(256.0));
        assert_eq!(log.steps.memory_peak_bytes.get(0), Some(160.5e9));
        assert_eq!(log.steps.memory_allocated_bytes.get(0), Some(63.66e9));
    }

    /// Step times that all differ, so that every pairing can be told from the others.
    fn step(label: u64) -> (f64, f64) {
        (5000.0 + 100.0 * label as f64, 8_000_000.0 / (5000.0 + 100.0 * label as f64))
    }

    fn tflops_of(log: &str) -> Vec<(u64, Option<f64>)> {
        let log = parse(log.as_bytes());
        log.steps
            .label
            .iter()
            .enumerate()
            .map(|(row, label)| (*label, log.steps.tflops_per_gpu.get(row)))
            .collect()
    }

    fn printed(label: u64) -> (u64, Option<f64>) {
        (label, format!("{:.1}", step(label).1).parse().ok())
    }

    #[test]
    fn order_does_not_matter() {
        let i = |label| iteration(label, step(label).0);
        let u = |label| utilisation(step(label).0, step(label).1);
        let wanted = [printed(1), printed(2), printed(3)];
        for log in [
            u(1) + &i(1) + &u(2) + &i(2) + &u(3) + &i(3),
            i(1) + &u(1) + &i(2) + &u(2) + &i(3) + &u(3),
            u(1) + &u(2) + &i(1) + &i(2) + &i(3) + &u(3),
            i(1) + &i(2) + &i(3) + &u(1) + &u(2) + &u(3),
        ] {
            assert_eq!(tflops_of(&log), wanted);
        }
    }

    #[test]
    fn a_lost_line_does_not_shift_the_others() {
        let i = |label| iteration(label, step(label).0);
        let u = |label| utilisation(step(label).0, step(label).1);
        assert_eq!(tflops_of(&(u(1) + &i(1) + &i(2) + &u(3) + &i(3))), [printed(1), (2, None), printed(3)],);
        assert_eq!(tflops_of(&(u(1) + &i(1) + &u(2) + &u(3) + &i(3))), [printed(1), printed(3)]);
    }

    #[test]
    fn without_the_last_ranks_lines_steps_are_counted() {
        let log = parse((utilisation(5000.0, 1600.0) + &utilisation(5100.0, 1570.0)).as_bytes());
        assert_eq!(log.steps.label, [1, 2]);
        assert_eq!(log.steps.step_time_s.get(1), Some(5.1));
        assert_eq!(log.steps.tflops_per_gpu.get(1), Some(1570.0));
        assert!(log.labels_counted);
    }

    #[test]
    fn a_log_without_rank_0s_lines_is_of_megatron_lm() {
        let alone = parse(iteration(1, 5000.0).as_bytes());
        assert_eq!((alone.format, alone.steps.label), (Some(Format::MegatronLm), vec![1]));
        let both = parse((iteration(1, 5000.0) + &utilisation(5000.0, 1600.0)).as_bytes());
        assert_eq!(both.format, Some(Format::MegatronBridge));
    }

    #[test]
    fn a_gpu_monitor_is_not_a_step() {
        assert!(parse(b"Step Time : 5s GPU utilization: 97%\nGPU utilization: 5TFLOP\n").steps.is_empty());
    }
}
