//! Megatron-Bridge (and Megatron-LM): a step is told by two lines of two ranks, counted from one.
//!
//! The last rank: `iteration        1/      50 | consumed samples: 256 | elapsed time per iteration (ms): 20289.1 |
//! learning rate: 3.0E-06 | global batch size: 256 | lm loss: 1.2E+01 | grad norm: 1.234 | ...`. Rank 0:
//! `Step Time : 20.29s GPU utilization: 1636.8MODEL_TFLOP/s/GPU`. Once, after an early step, some ranks print
//! their memory, in units of a thousand (Bridge) or of 1024 (LM).
//!
//! The two lines are not sure to arrive in order, nor both to arrive, so they are paired by the step time that
//! both print. Where that leaves a choice, any choice is right: the utilisation is the step's FLOPs over that very
//! time, so steps of equal time have equal utilisation.

use super::anchor::Hit;
use super::steps::{Column, Step, Steps};
use super::text::{field, label};

pub(super) const ITERATION: &[u8] = b"elapsed time per iteration (ms):";
pub(super) const UTILISATION: &[u8] = b"GPU utilization:";
pub(super) const MEMORY: &[u8] = b" iterations) memory (";

/// How many steps apart the two lines of one step may lie.
const FARTHEST: usize = 16;

/// What rank 0 says of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Utilisation {
    /// How many iteration lines came before it.
    before: usize,
    step_time_s: Option<f64>,
    tflops_per_gpu: f64,
}

/// What the ranks say of their memory after iteration `label`: the most of any.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Memory {
    pub(super) label: u64,
    pub(super) peak_bytes: Option<f64>,
    pub(super) allocated_bytes: Option<f64>,
}

/// The step of an iteration line.
pub(super) fn step(hit: &Hit) -> Option<Step> {
    let (label, rest) = hit.since(b"iteration ").and_then(label)?;
    let (planned, record) = label_of_planned(rest)?;
    let ran_to_nan = field(record, b"number of nan iterations").is_some_and(|count| count > 0.0);
    Some(Step {
        label,
        planned_last: Some(planned),
        step_time_s: Some(field(record, b"elapsed time per iteration (ms)")? / 1000.0),
        loss: if ran_to_nan { Some(f64::NAN) } else { field(record, b"lm loss") },
        grad_norm: field(record, b"grad norm"),
        tflops_per_gpu: field(record, b"throughput per GPU (TFLOP/s/GPU)"),
        consumed_samples: field(record, b"consumed samples"),
        global_batch_size: field(record, b"global batch size"),
        ..Step::default()
    })
}

fn label_of_planned(text: &[u8]) -> Option<(u64, &[u8])> {
    label(text.strip_prefix(b"/")?)
}

/// What rank 0's line says, the `before + 1`th step being the next to come.
pub(super) fn utilisation(hit: &Hit, before: usize) -> Option<Utilisation> {
    let record = hit.since(b"Step Time")?;
    let figure = hit.after();
    // Other tools print a "GPU utilization" too, in percent.
    memchr::memmem::find(figure, b"TFLOP")?;
    let tflops_per_gpu = super::text::number(figure).filter(|tflops| tflops.is_finite())?;
    Some(Utilisation { before, step_time_s: field_after_key(record), tflops_per_gpu })
}

/// The step time, right behind its key: ` : 5.74s`.
fn field_after_key(record: &[u8]) -> Option<f64> {
    let at = record.iter().position(|byte| *byte == b':')?;
    super::text::number(&record[at + 1..])
}

/// What a rank's line says of its memory.
pub(super) fn memory(hit: &Hit) -> Option<Memory> {
    let (label, _) = hit.since(b"(after ").and_then(label)?;
    let record = hit.after();
    let scaled = |key: &[u8], unit: f64| field(record, key).map(|amount| amount * unit);
    const MIB: f64 = 1_048_576.0;
    Some(Memory {
        label,
        peak_bytes: scaled(b"mem-max-allocated-gigabytes", 1e9).or_else(|| scaled(b"max allocated", MIB)),
        allocated_bytes: scaled(b"mem-allocated-gigabytes", 1e9).or_else(|| scaled(b"allocated", MIB)),
    })
}
