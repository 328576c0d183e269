//! Training logs: one streaming parser for all formats, and the score of a log.
//!
//! Logs are not clean lines: hundreds of ranks write into one file, lines are joined and torn apart, carriage returns
//! redraw progress bars, a trace adds gigabytes, and disks fill up. The parser therefore doesn't split a log into lines.
//! It searches for the few fixed strings that start a record and reads the rest of that line, at most 4 KiB to either
//! side. Its invariants:
//!
//! * the result depends on the bytes alone, not on the chunks they come in;
//! * memory is constant, except for the steps and checkpoints that it returns;
//! * no input makes it panic, and what it can't read is absent, never guessed.
//!
//! Each format is one file. [`score()`] measures a parsed log; [`LogName`] reads the file's name.

use std::fmt;

use crate::choices::choices;
use serde::{Deserialize, Serialize};

mod arguments;
mod checkpoint;
mod clock;
mod content;
mod ending;
mod failure;
mod found;
mod hit;
mod marker;
mod maxtext;
mod megatron_bridge;
mod name;
mod nccl;
mod nccl_calls;
mod nccl_lines;
mod nemo1;
mod nemo2;
mod parser;
mod pause;
mod paxml;
mod score;
mod search;
mod series;
mod stated;
mod steps;
mod text;
mod torchtitan;
mod window;

pub use arguments::Arguments;
pub use checkpoint::{Checkpoint, CheckpointAction};
pub(crate) use clock::time as clock_time;
pub use content::Content;
pub use ending::Ending;
pub use failure::{Failure, FailureKind};
pub use name::{LogName, Role, uncompressed_name};
pub use nccl::{CommunicatorCount, Nccl, NcclNetwork, UnfinishedCommunicator};
pub(crate) use nccl_calls::MOST_CALL_KINDS;
pub use nccl_calls::{NcclCallKind, NcclCalls, NcclOperation};
pub(crate) use nccl_lines::{
    LONGEST_HOST, MOST_LISTED, MOST_LISTED_HOSTS, MOST_NETWORKS, MOST_SIZES, MOST_UNFINISHED,
};
pub use parser::{Parser, parse};
pub use pause::Pause;
pub use score::{Score, Stat, Status, StdKind, score};
pub use series::{Figure, NotFinite};
pub use stated::STATED_SCENARIO;
pub(crate) use steps::FIGURES;
pub use steps::STEP_TIMES;
pub use steps::{Column, Steps};
pub use torchtitan::{StatedBatch, StatedFloat8, StatedMesh, StatedRecompute, StatedSetup};
pub use window::{Window, WindowError};

/// The version of the parser and the score. It increases with every change of their results, so that stored scores can
/// be recognised as outdated and recomputed.
pub const PARSER_VERSION: u32 = 14;

/// The contents of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Log {
    /// The length of the log.
    pub bytes: u64,
    /// The number of lines.
    pub lines: u64,
    /// The kind of file.
    pub content: Content,
    /// The framework that wrote the steps; none without steps.
    pub format: Option<Format>,
    /// The steps, each once.
    pub steps: Steps,
    /// Whether the log has no step numbers, so that the steps are counted from 1.
    pub labels_counted: bool,
    /// The number of the last planned step, if the log gives it.
    pub planned_last: Option<u64>,
    /// When the last step was logged, in seconds since 1970 by the log's own clock, which has no time zone; none if its line has no
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step_at: Option<i64>,
    /// The longest time between two steps that no step time includes; none if it is short, or if the lines have no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Whether the log says that training ended normally.
    pub ended: bool,
    /// The number of steps that were logged again; the last entry counts.
    pub duplicates: u64,
    /// How often the step number fell back, because the run was restarted into the same log.
    pub restarts: u64,
    /// Where the loss and the gradient norm were NaN or infinite, one entry for each of the two.
    pub not_finite: Vec<NotFinite>,
    /// The arguments that Megatron-LM printed.
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub arguments: Arguments,
    /// The scenario that the job stated in a line, as the query of a link; as printed, so it may be invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// The batch that torchtitan states before its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<StatedBatch>,
    /// What torchtitan states before its steps, other than the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<StatedSetup>,
    /// Checkpoints saved and loaded, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// The failures, one entry for each kind, in the order of their first lines.
    pub failures: Vec<Failure>,
    /// The number of lines that look like failures but are known to be harmless.
    pub harmless: u64,
    /// Whether Nsight Systems profiled a part of the run, which slows it.
    pub profiled: bool,
    /// Whether NCCL traced every operation, which slows the run.
    pub traced: bool,
    /// What NCCL reported about its communicators, its network and its calls; none if the log has no such lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nccl: Option<Nccl>,
}

impl Log {
    /// Returns whether the run is known to have made its last step.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let last = self.steps.span().map(|span| span.last);
        self.ended || matches!((last, self.planned_last), (Some(last), Some(planned)) if last >= planned)
    }

    /// Returns what ended the run early: of the failures after the last step, the most likely cause of the others. None
    /// for a complete run, where a failure after the last step only disturbs the shutdown.
    #[must_use]
    pub fn cause(&self) -> Option<&Failure> {
        if self.is_complete() {
            return None;
        }
        self.failures.iter().filter(|failure| failure.after_last_step).min_by_key(|failure| failure.kind)
    }

    /// Returns the communicator in whose initialization the run hung, preferably one that some ranks never started. None for
    /// a complete run, and for one that another failure ended.
    #[must_use]
    pub fn hang(&self) -> Option<&UnfinishedCommunicator> {
        let is_possible = match self.cause() {
            Some(cause) => cause.kind.can_follow_a_hang(),
            None => !self.is_complete(),
        };
        let unfinished = self.nccl.iter().filter(|_| is_possible).flat_map(|nccl| &nccl.unfinished);
        unfinished.filter(|one| one.is_hang()).min_by_key(|one| one.missing.is_empty())
    }
}

choices! {
    /// The framework that writes the steps of a log.
    #[non_exhaustive]
    Format {
        /// NeMo 1, which prints progress bars.
        Nemo1 "nemo1" "NeMo 1",
        /// NeMo 2, which counts from 0.
        Nemo2 "nemo2" "NeMo 2",
        /// Megatron-Bridge, which prints two lines per step.
        MegatronBridge "megatron_bridge" "Megatron-Bridge",
        /// torchtitan, which prints coloured lines without a step time.
        Torchtitan "torchtitan",
        /// MaxText.
        Maxtext "maxtext" "MaxText",
        /// paxml, which prints step times only.
        Paxml "paxml",
        /// Megatron-LM, which prints one of Megatron-Bridge's two lines. The log doesn't distinguish the two,
        /// but [`RunResult::framework`](crate::result::RunResult::framework) does.
        MegatronLm "megatron_lm" "Megatron-LM",
    }
}

impl Format {
    /// Returns the number of the first step, 0 or 1.
    #[must_use]
    pub fn first_label(self) -> u64 {
        match self {
            Self::Nemo2 | Self::Maxtext => 0,
            Self::Nemo1 | Self::MegatronBridge | Self::Torchtitan | Self::Paxml | Self::MegatronLm => 1,
        }
    }

    /// Returns whether the speed of the software that writes it is unknown: nobody measured it, so a prediction would be one of
    /// other software.
    #[must_use]
    pub fn is_unmeasured(self) -> bool {
        matches!(self, Self::Maxtext | Self::Paxml)
    }

    /// Returns the standard deviation that the releases' scripts compute for this format.
    #[must_use]
    pub fn std_kind(self) -> StdKind {
        match self {
            Self::Nemo1 | Self::Nemo2 => StdKind::Population,
            Self::MegatronBridge | Self::Torchtitan | Self::Maxtext | Self::Paxml | Self::MegatronLm => {
                StdKind::Sample
            }
        }
    }
}

/// The step numbers from `first` to `last`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The first number.
    pub first: u64,
    /// The last number.
    pub last: u64,
}

impl Span {
    /// Returns how many steps the range has.
    #[must_use]
    pub fn count(self) -> u64 {
        if self.last < self.first { 0 } else { (self.last - self.first).saturating_add(1) }
    }

    /// Returns the range for people: `35–44`, `49`.
    #[must_use]
    pub fn words(self) -> String {
        match self.first == self.last {
            true => self.last.to_string(),
            false => format!("{}–{}", self.first, self.last),
        }
    }

    /// Returns the range with its noun: `steps 35–44`, `step 49`.
    #[must_use]
    pub fn with_noun(self) -> String {
        let noun = if self.first == self.last { "step" } else { "steps" };
        format!("{noun} {}", self.words())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}
