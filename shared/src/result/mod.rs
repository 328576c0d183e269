//! What a run measured: taken from its log as it is read, joined with what is published, kept in a file.
//!
//! An [`Intake`] reads a log once and gives a [`RunResult`], which never changes: every step, what the log is a run of,
//! and where all that comes from. A [`Report`] is what one [`View`] of it shows; it can be made again at any time,
//! and of a saved result it is the same to the last bit.
//!
//! ```
//! use trainplan_shared::result::{Intake, Report, View, read, write};
//! use trainplan_shared::spec::Spec;
//!
//! let mut intake = Intake::new("log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out", &Spec::default());
//! intake.feed(b"Training epoch 0, iteration 49/49 | global_batch_size: 128 | train_step_timing in s: 12.39 |\n");
//! let run = intake.finish();
//! let report = Report::of(&run, &View::default());
//! assert_eq!(report.recipe.as_deref(), Some("llama3.1-8b/h100/fp8/8@25.04"));
//! assert_eq!(report.tokens_per_s.map(f64::round), Some(84_631.0));
//!
//! let saved = write(&run)?;
//! assert_eq!(Report::of(&read(saved.as_bytes())?, &View::default()), report);
//! # Ok::<(), trainplan_shared::result::FileError>(())
//! ```

mod carried;
mod fields;
mod file;
mod identity;
mod intake;
mod log_files;
mod report;
mod scoring;

pub use carried::{Carried, Job, Launched, Predicted};
pub use file::{FileError, VERSION, read, write};
pub use identity::Identity;
pub use intake::Intake;
pub use log_files::{is_log_name, is_told_elsewhere};
pub(crate) use report::Seen;
pub use report::{Against, AgainstPlan, Checkpoints, Loss, Memory, Report, View};
pub use scoring::Scoring;

use crate::log::{CheckpointAction, Log, Name, PARSER_VERSION};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What one log tells, for ever: what the result file holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The version of the file's format: [`VERSION`].
    pub version: u32,
    /// Its name. Of a log that no run of ours made it follows from the log's bytes, so that the same log is never two
    /// results.
    pub id: Uuid,
    /// The log.
    pub source: Source,
    /// What the log's name tells.
    pub name: Name,
    /// What the log is a run of, as far as that was known when it was read.
    pub identity: Identity,
    /// Whether its times can stand beside those of other runs.
    pub comparable: Comparable,
    /// Everything that the log tells.
    pub log: Log,
    /// What read it.
    pub provenance: Provenance,
    /// What else is known of it, where we carried it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Carried>,
}

impl RunResult {
    /// The same as the result of a run that we carried out, under its name.
    #[must_use]
    pub fn of_run(self, id: Uuid, carried: Carried) -> Self {
        Self { id, carried: Some(carried), ..self }
    }

    /// Whether another result tells nothing of the same log that this one does not, wherever the log lay, whatever it was
    /// called and whenever it was touched when it was read. One with doubts about what the log is a run of tells less of that.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let is_doubtful = !other.identity.doubts.is_empty();
        let knows = self.identity.scenario == other.identity.scenario && self.comparable == other.comparable;
        // As text: what is no number equals itself there.
        let told = |run: &Self| serde_json::to_string(&(&run.log, &run.carried)).ok();
        self.id == other.id
            && self.source.sha256 == other.source.sha256
            && (knows || is_doubtful)
            && told(self) == told(other)
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}{FILE_ENDING}", self.id)
    }
}

/// How the name of a result file ends.
pub const FILE_ENDING: &str = ".result.json";

/// A log, by where it was and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its path as given; `-` for standard input.
    pub path: String,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// When it was last written to, RFC 3339 in UTC, as its file says: some time after the run, and nearer to it than when
    /// it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<String>,
}

/// What made a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program and its version.
    pub program: String,
    /// The version of the log parser.
    pub parser_version: u32,
    /// When a store read the log again, RFC 3339; none of what came first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scored_at: Option<String>,
}

impl Provenance {
    fn here() -> Self {
        Self {
            program: concat!("trainplan ", env!("CARGO_PKG_VERSION")).to_owned(),
            parser_version: PARSER_VERSION,
            scored_at: None,
        }
    }
}

/// Whether a run's times can stand beside those of other runs and published ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Comparable {
    /// Whether they can.
    pub yes: bool,
    /// Why not.
    pub reasons: Vec<String>,
}

impl Comparable {
    /// Judges a run by its log and the log's name.
    fn of(name: &Name, log: &Log) -> Self {
        let loaded = log.checkpoints.iter().any(|checkpoint| checkpoint.action == CheckpointAction::Load);
        let spoilers = [
            (name.profiled || log.profiled, "Nsight Systems slows the steps that it watches"),
            (name.traced || log.traced, "writing down every NCCL call slows the steps"),
            (loaded, "it loaded a checkpoint"),
            (!log.not_finite.is_empty(), "the loss or the gradient is no number"),
        ];
        Self::unless(
            spoilers.iter().filter(|(spoilt, _)| *spoilt).map(|(_, why)| (*why).to_owned()).collect(),
        )
    }

    fn unless(reasons: Vec<String>) -> Self {
        Self { yes: reasons.is_empty(), reasons }
    }
}
