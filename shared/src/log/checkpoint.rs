//! Checkpoints: whether they were saved or loaded, and how long it took.
//!
//! NeMo logs a checkpoint in one line: `Global Checkpoint Save : Rank: 0 : Iteration: 50 : Start time: 1744408121.151s : Save
//! duration: 4.389s`, `Global Checkpoint Load : Rank : 0 : Start time : 1744407969.270s : Time spent in
//! load_checkpoint: 9.712s`. Megatron uses two lines: `successfully saved checkpoint from iteration 50 to /path` and
//! `save-checkpoint ....: (24895.07, 24895.13)`, the fastest and the slowest rank in milliseconds.

use serde::{Deserialize, Serialize};

use super::hit::Hit;
use super::text::{field, label, number, value};

/// The markers of lines about checkpoints.
pub(super) const MARKERS: &[&[u8]] = &[
    NEMO,
    b"successfully saved checkpoint",
    b"successfully loaded checkpoint",
    b"save-checkpoint .",
    b"load-checkpoint .",
];

const NEMO: &[u8] = b"Global Checkpoint ";

/// A checkpoint that was saved or loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Whether it was saved or loaded.
    pub action: CheckpointAction,
    /// The iteration of the checkpoint, if the log has it.
    pub iteration: Option<u64>,
    /// Seconds that the slowest rank took, if the log has them.
    pub duration_s: Option<f64>,
}

/// What was done with a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointAction {
    /// Written.
    Save,
    /// Read.
    Load,
}

/// Adds the checkpoint of a line to `checkpoints`, or completes the last one.
pub(super) fn note(hit: &Hit, marker: &[u8], checkpoints: &mut Vec<Checkpoint>) {
    let Some(told) = told(hit, marker) else { return };
    let known = checkpoints.last_mut().filter(|last| last.action == told.action && may_be_one(last, &told));
    match known {
        Some(last) => {
            last.iteration = last.iteration.or(told.iteration);
            // Several ranks may log the same checkpoint.
            last.duration_s = [last.duration_s, told.duration_s].into_iter().flatten().reduce(f64::max);
        }
        None => checkpoints.push(told),
    }
}

/// Returns whether two lines can be about one checkpoint: they have the same iteration or complete each other.
fn may_be_one(one: &Checkpoint, other: &Checkpoint) -> bool {
    match (one.iteration, other.iteration) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.duration_s.is_none() || other.duration_s.is_none(),
        _ => one.duration_s.is_none() != other.duration_s.is_none(),
    }
}

fn told(hit: &Hit, marker: &[u8]) -> Option<Checkpoint> {
    let line = hit.after();
    let known = |action, iteration, duration_s: Option<f64>| {
        let duration_s = duration_s.filter(|seconds| (0.0..1e9).contains(seconds));
        Some(Checkpoint { action, iteration, duration_s })
    };
    match marker {
        NEMO if line.starts_with(b"Save") => {
            let iteration = field(line, b"Iteration").filter(|label| (0.0..1e15).contains(label));
            known(
                CheckpointAction::Save,
                iteration.map(|label| label as u64),
                Some(field(line, b"Save duration")?),
            )
        }
        NEMO if line.starts_with(b"Load") => {
            known(CheckpointAction::Load, None, Some(field(line, b"Time spent in load_checkpoint")?))
        }
        NEMO => None,
        b"save-checkpoint ." => known(CheckpointAction::Save, None, Some(slowest(line)? / 1000.0)),
        b"load-checkpoint ." => known(CheckpointAction::Load, None, Some(slowest(line)? / 1000.0)),
        _ => {
            let action = if marker == b"successfully saved checkpoint" {
                CheckpointAction::Save
            } else {
                CheckpointAction::Load
            };
            let iteration = memchr::memmem::find(line, b"iteration ").and_then(|at| label(&line[at + 10..]));
            known(action, iteration.map(|(label, _)| label), None)
        }
    }
}

/// Returns the time of the slowest rank in `...: (24895.07, 24895.13)` or `...: 24895.13`, in milliseconds.
fn slowest(line: &[u8]) -> Option<f64> {
    let timed = &line[line.iter().position(|byte| *byte == b':')?..];
    match timed.strip_prefix(b": (") {
        Some(range) => number(&range[range.iter().position(|byte| *byte == b',')? + 1..]),
        None => value(timed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::parse;

    #[test]
    fn the_lines_of_the_documents() {
        let log = parse(
            b"[NeMo I 2025-04-11 14:46:18 nemo_logging:393] Global Checkpoint Load : Rank : 0 : Start time : \
              1744407969.270s : Time spent in load_checkpoint: 9.712s\n\
              [NeMo I 2025-04-11 14:48:45 nemo_logging:393] Global Checkpoint Save : Rank: 0 : Iteration: 50 : \
              Start time: 1744408121.151s : Save duration: 4.389s\n",
        );
        assert_eq!(
            log.checkpoints,
            [
                Checkpoint { action: CheckpointAction::Load, iteration: None, duration_s: Some(9.712) },
                Checkpoint { action: CheckpointAction::Save, iteration: Some(50), duration_s: Some(4.389) },
            ]
        );
    }

    #[test]
    fn megatrons_two_lines_are_one_checkpoint_and_two_saves_are_two() {
        let save = |iteration: u64, ms: &str| {
            format!(
                "  successfully saved checkpoint from iteration {iteration:7} to /nemo_run [ t 1/1, p 1/1 ]\n\
                 (min, max) time across ranks (ms):\n    save-checkpoint ................................: {ms}\n"
            )
        };
        let log = parse((save(50, "(24895.07, 24895.13)") + &save(100, "25000.0")).as_bytes());
        let saved =
            |iteration, duration_s| Checkpoint { action: CheckpointAction::Save, iteration, duration_s };
        assert_eq!(log.checkpoints, [saved(Some(50), Some(24.89513)), saved(Some(100), Some(25.0))]);
    }
}
