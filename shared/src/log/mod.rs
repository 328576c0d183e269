//! Training logs: one streaming parser for every format, and what a log is worth.
//!
//! A log is a mess. Hundreds of ranks write into one file, lines are glued together and torn apart, progress bars
//! are redrawn by carriage returns, a trace adds gigabytes, the disk fills up. So the parser does not cut the log
//! into lines. It searches for the few fixed strings that open whatever is worth reading and looks at
//! the surroundings of each: its line, but at most 4 KiB to either side. Hence its invariants:
//!
//! * the result depends on the bytes alone, not on the chunks they come in;
//! * memory is constant, apart from the steps and checkpoints that it returns;
//! * no input makes it panic, and whatever it cannot read is absent, never guessed.
//!
//! Each format is a file here; [`score()`] makes a measurement of a parsed log; [`Name`] reads what the
//! name of the file tells.

use std::fmt;

use serde::{Deserialize, Serialize};

mod anchor;
mod checkpoint;
mod content;
mod failure;
mod found;
mod maxtext;
mod megatron_bridge;
mod name;
mod nemo1;
mod nemo2;
mod parser;
mod paxml;
mod score;
mod search;
mod series;
mod steps;
mod text;
mod torchtitan;
mod window;

pub use checkpoint::{Checkpoint, CheckpointAction};
pub use content::Content;
pub use failure::{Failure, FailureKind};
pub use name::{Name, Role};
pub use parser::{Parser, parse};
pub use score::{Score, Stat, Status, StdKind, score};
pub use series::{Figure, NotFinite};
pub use steps::{Column, Steps};
pub use window::{Window, WindowError};

/// The version of what the parser and the score make of a log. It changes with every change of their results, so
/// that stored scores can be told apart and made again.
pub const PARSER_VERSION: u32 = 1;

/// What a log tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// How long the log is.
    pub bytes: u64,
    /// How many lines it has.
    pub lines: u64,
    /// What kind of file it is.
    pub content: Content,
    /// Who wrote the steps; none if there are none.
    pub format: Option<Format>,
    /// Every step once.
    pub steps: Steps,
    /// Whether the labels are not printed but counted, from one: the log has no labels.
    pub labels_counted: bool,
    /// The label of the last step that the run was to make, where the log says so.
    pub planned_last: Option<u64>,
    /// Whether the log says that training came to its end.
    pub ended: bool,
    /// How many steps were printed again; the last printing counts.
    pub duplicates: u64,
    /// How often the labels fell back to an earlier one: the run was started again in the same log.
    pub restarts: u64,
    /// Losses and gradient norms that were no numbers, one entry for each of the two.
    pub not_finite: Vec<NotFinite>,
    /// Checkpoints saved and loaded, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// What went wrong, one entry for each kind, in the order in which they first came.
    pub failures: Vec<Failure>,
    /// Lines that look like failures and are known to mean nothing.
    pub harmless: u64,
    /// Whether Nsight Systems recorded a part of the run, which slows it down.
    pub profiled: bool,
    /// Whether NCCL traced every operation, which slows the run down.
    pub traced: bool,
}

impl Log {
    /// Whether the run is known to have made its last step.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let last = self.steps.span().map(|span| span.last);
        self.ended || matches!((last, self.planned_last), (Some(last), Some(planned)) if last >= planned)
    }

    /// What ended the run before its time: of the failures after the last step, the one that most likely caused
    /// the others. None for a complete run: what fails after the last step disturbs only its cleaning up.
    #[must_use]
    pub fn cause(&self) -> Option<&Failure> {
        if self.is_complete() {
            return None;
        }
        self.failures.iter().filter(|failure| failure.after_last_step).min_by_key(|failure| failure.kind)
    }
}

/// Who writes the steps of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// NeMo 1: progress bars.
    Nemo1,
    /// NeMo 2: lines counted from zero.
    Nemo2,
    /// Megatron-Bridge and Megatron-LM: two lines a step.
    MegatronBridge,
    /// torchtitan: coloured lines without a step time.
    Torchtitan,
    /// MaxText.
    Maxtext,
    /// paxml: step times alone.
    Paxml,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::Nemo1, Self::Nemo2, Self::MegatronBridge, Self::Torchtitan, Self::Maxtext, Self::Paxml];

    /// The name to show.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nemo1 => "NeMo 1",
            Self::Nemo2 => "NeMo 2",
            Self::MegatronBridge => "Megatron-Bridge",
            Self::Torchtitan => "torchtitan",
            Self::Maxtext => "MaxText",
            Self::Paxml => "paxml",
        }
    }

    /// The label of the first step: formats count from zero or from one.
    #[must_use]
    pub fn first_label(self) -> u64 {
        match self {
            Self::Nemo2 | Self::Maxtext => 0,
            Self::Nemo1 | Self::MegatronBridge | Self::Torchtitan | Self::Paxml => 1,
        }
    }

    /// The standard deviation that the releases' own scripts compute for this format.
    #[must_use]
    pub fn std_kind(self) -> StdKind {
        match self {
            Self::Nemo1 | Self::Nemo2 => StdKind::Population,
            Self::MegatronBridge | Self::Torchtitan | Self::Maxtext | Self::Paxml => StdKind::Sample,
        }
    }
}

/// The labels from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The first label.
    pub first: u64,
    /// The last label.
    pub last: u64,
}

impl Span {
    /// How many labels it has.
    #[must_use]
    pub fn count(self) -> u64 {
        if self.last < self.first { 0 } else { (self.last - self.first).saturating_add(1) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}
