//! Results: what a log measured, joined with the published recipes, saved in a file.
//!
//! An [`Intake`] reads a log once and makes a [`RunResult`], which never changes: every step, the run's identity, and
//! their provenance. A [`Report`] is the result seen with one [`View`]. It can be recomputed at any time, and from a saved
//! result it is the same to the last bit.
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

mod admission;
mod carried;
mod fields;
mod file;
mod first_time;
mod identity;
mod intake;
mod job_files;
mod job_settings;
mod log_files;
mod log_id;
mod logged;
mod pipeline_split;
mod prediction;
mod report;
mod scoring;
mod sentence;
mod shape;
mod slow_period;
mod slowdown;
mod steady;
mod switched_software;
mod warnings;

pub use admission::{
    DEEPEST, FileParts, InvalidResult, LONGEST_NAME, LONGEST_PATH, LONGEST_SCENARIO, LONGEST_TEXT, MAXIMA,
    Maximum, UNKNOWN_BYTES, admit, admit_file, count_parts,
};
pub(crate) use admission::{MOST_JOBS, STEP_TIME, TIME, is_time};
pub use carried::{CampaignRun, LaunchRecord, MOST_OF_JOB, PredictionRecord, SlurmJob, run_name};
pub use file::{FileError, VERSION, read, write};
pub use identity::Identity;
pub use intake::Intake;
pub use job_files::{JobFiles, LogPart};
pub use job_settings::{
    JobSettings, LARGEST_SETTINGS_FILE, SettingValues, SettingsFile, UnreadFile, UnreadReason,
};
pub use log_files::{is_log_name, is_only_log, is_told_elsewhere, parts_of};
pub use log_id::id_of_log;
pub use report::{
    BaselineComparison, Checkpoints, LossEnds, MOST_SPEED_PERCENT, MemoryPeaks, PlanComparison, Publication,
    Report, RunStepTimes, TOO_FAST, View, much_faster, speed_percent,
};
pub(crate) use report::{NOT_SCORED, ViewedRun};
pub use scoring::Scoring;
pub use sentence::sentence;
pub use slowdown::{SlowCause, SlowCauseKind, Slowdown};
pub use steady::{SteadyMean, judged_s, steady_difference};

use crate::field::Field;
use crate::log::{CheckpointAction, Format, Log, LogName, PARSER_VERSION};
use crate::releases::Release;
use crate::spec::Spec;
use crate::stack::Stack;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The result of a run: the content of a result file. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The version of the file format: [`VERSION`].
    pub version: u32,
    /// The result's id. Outside of campaigns it follows from the log's bytes, so that a log has only one result.
    pub id: Uuid,
    /// The log.
    pub source: Source,
    /// The parts of the log's name.
    pub name: LogName,
    /// What was known of the run's identity when the log was read.
    pub identity: Identity,
    /// Whether its step times can be compared with other runs.
    pub comparable: Comparability,
    /// The parsed log.
    pub log: Log,
    /// What the files beside the log say about its job.
    #[serde(default, skip_serializing_if = "JobFiles::is_empty")]
    pub job: JobFiles,
    /// The program that read the log.
    pub provenance: Provenance,
    /// The campaign's record of the run; none if no campaign launched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<CampaignRun>,
}

impl RunResult {
    /// Returns the result as that of a campaign's run, with its id.
    #[must_use]
    pub fn of_run(self, id: Uuid, carried: CampaignRun) -> Self {
        Self { id, carried: Some(carried), ..self }
    }

    /// Returns the result of the same log with the scenario fields that a user sets (`said`). They replace those that were set when
    /// the log was read.
    #[must_use]
    pub fn identified(&self, said: &Spec) -> Self {
        let identity = Identity::of(&self.source.path, &self.name, &self.log, &self.job.settings, said);
        Self { identity, ..self.clone() }
    }

    /// Returns whether this result contains everything that another result of the same log does. The log's path, name and
    /// time may differ, and so may the files beside it. A result whose identity has doubts contains less.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let is_doubtful = !other.identity.doubts.is_empty();
        let knows = self.identity.scenario == other.identity.scenario && self.comparable == other.comparable;
        let knows_cluster = other.source.cluster.is_none() || other.cluster() == self.cluster();
        (knows || is_doubtful) && knows_cluster && self.is_same_reading(other)
    }

    /// Returns whether this result adds to an earlier result of the same log, and nothing contradicts that one: files beside the log
    /// add to its scenario, or it has no cluster yet. The scenario may name a recipe that implies what the earlier one stated.
    #[must_use]
    pub fn completes(&self, earlier: &Self) -> bool {
        let (settings, known) = (&self.job.settings, &earlier.job.settings);
        let adds_settings =
            !settings.is_empty() && settings != known && self.identity.adds_to(&earlier.identity);
        let adds_cluster = self.source.cluster.is_some()
            && earlier.cluster().is_none()
            && settings == known
            && self.identity.scenario == earlier.identity.scenario;
        let contradicts_cluster =
            self.cluster().zip(earlier.cluster()).is_some_and(|(own, earlier)| own != earlier);
        // The score of an older parser would not be the newest one.
        self.provenance.parser_version >= earlier.provenance.parser_version
            && (adds_settings || adds_cluster)
            && !contradicts_cluster
            && self.comparable == earlier.comparable
            && self.is_same_reading(earlier)
    }

    /// Returns the cluster on which the run was, if it is known.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        let of_campaign = self.carried.as_ref().map(|carried| carried.cluster.as_str());
        of_campaign.or(self.source.cluster.as_deref())
    }

    /// Returns whether another result has the same log, read in the same way, and the same campaign.
    fn is_same_reading(&self, other: &Self) -> bool {
        // Compared as text, in which NaN equals NaN.
        let told = |run: &Self| serde_json::to_string(&(&run.log, &run.carried)).ok();
        self.id == other.id && self.source.sha256 == other.source.sha256 && told(self) == told(other)
    }

    /// Returns this stored result with the additions of another reading of the same log: the findings of a newer parser,
    /// the identity that this one lacks, and the files beside the log.
    #[must_use]
    pub fn completed_by(mut self, read: &Self) -> Self {
        if read.provenance.parser_version > self.provenance.parser_version {
            self.comparable = Comparability::of(&self.name, &read.log);
            self.log = read.log.clone();
            self.provenance = read.provenance.clone();
        }
        if !self.identity.doubts.is_empty() && read.identity.doubts.is_empty() {
            self.identity = read.identity.clone();
        }
        if self.job.is_empty() {
            self.job = read.job.clone();
        }
        self.source.written_at = self.source.written_at.or_else(|| read.source.written_at.clone());
        self.source.began_at = self.source.began_at.or_else(|| read.source.began_at.clone());
        self
    }

    /// Returns the framework that wrote the steps. Megatron-LM lists its arguments before them, and our own scripts name their logs
    /// after it. A run of a release that runs Megatron-Bridge is Megatron-Bridge's, although its log may lack the lines of rank 0.
    #[must_use]
    pub fn framework(&self) -> Option<Format> {
        let is_megatron_lm = !self.log.arguments.is_empty() || self.name.is_of_megatron_lm();
        let runs_bridge = |release: Release| {
            release.contract().scripts.iter().any(|script| script.log == Format::MegatronBridge)
        };
        self.log.format.map(|format| match format {
            Format::MegatronBridge | Format::MegatronLm if is_megatron_lm => Format::MegatronLm,
            Format::MegatronLm if self.identity.release.is_some_and(runs_bridge) => Format::MegatronBridge,
            format => format,
        })
    }

    /// Returns the software that a prediction for this run assumes: the newest known version of the framework that wrote the log.
    /// None if the scenario or its recipe names the software, for a run of a campaign, whose plan names it, and for a framework
    /// that nobody measured.
    fn assumed_software(&self, scenario: &Spec) -> Option<Stack> {
        let is_known = !states_software(scenario) && !self.framework().is_some_and(Format::is_unmeasured);
        (is_known && self.carried.is_none()).then(|| match self.framework() {
            Some(Format::MegatronLm) => Stack::newest_megatron_lm(),
            Some(Format::Nemo1) => Stack::Nemo1,
            Some(Format::Nemo2) => Stack::Nemo2,
            Some(Format::Torchtitan) => Stack::Torchtitan,
            _ => Stack::default(),
        })
    }

    /// Returns what a prediction for this run assumes with the known part of its scenario.
    fn assumed_settings(&self, scenario: &Spec) -> AssumedSettings {
        let stating = [Field::Recipe, Field::Tp, Field::Pp, Field::Mbs];
        let is_stated = stating.into_iter().any(|field| scenario.get(field).is_some());
        // The line in which a job states its scenario leaves out defaults.
        let is_in_log = !self.log.arguments.is_empty() || self.log.scenario.is_some();
        AssumedSettings {
            software: self.assumed_software(scenario),
            layout: !is_stated && !is_in_log && self.carried.is_none(),
        }
    }

    /// Returns when the run began, as RFC 3339, or else when its log was last written, and by which clock; none if neither is
    /// known.
    #[must_use]
    pub fn ran_at(&self) -> Option<(&str, RunClock)> {
        let started = self.carried.as_ref().and_then(|carried| carried.jobs.first()?.started.as_deref());
        let times = [
            (started, RunClock::Slurm),
            (self.source.began_at.as_deref(), RunClock::Log),
            (self.source.written_at.as_deref(), RunClock::File),
        ];
        times.into_iter().find_map(|(at, clock)| Some((at?, clock)))
    }

    /// Returns the name of the result file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}{FILE_ENDING}", self.id)
    }
}

/// What a prediction assumes, because neither the log nor the user says it.
#[derive(Debug, Clone, Copy)]
struct AssumedSettings {
    /// The software; none if it is known.
    software: Option<Stack>,
    /// Whether the layout is the default one.
    layout: bool,
}

/// Returns whether a scenario names software, or a recipe, which implies it.
fn states_software(scenario: &Spec) -> bool {
    [Field::Recipe, Field::Stack].into_iter().any(|field| scenario.get(field).is_some())
}

/// The ending of a result file's name.
pub const FILE_ENDING: &str = ".result.json";

/// The log file of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The path as given; `-` for standard input.
    pub path: String,
    /// The SHA-256 of the log, in hexadecimal.
    pub sha256: String,
    /// When the file was last written, as RFC 3339 in UTC: the best estimate of when the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<String>,
    /// The first time in the log, as RFC 3339: when the run began by the log's own clock, which is taken as UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<String>,
    /// The cluster on which the run was, as a user named it; none for a run of a campaign, which has its own record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// The clock that dates a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunClock {
    /// Slurm's, when the run's first job started.
    Slurm,
    /// The log's, which rarely names its time zone.
    Log,
    /// The file system's, when the log was last written. Copying a file may change that.
    File,
}

/// The program that made a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The program and its version.
    pub program: String,
    /// The version of the log parser.
    pub parser_version: u32,
    /// When a store read the log again, as RFC 3339; none for the uploaded result.
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

/// Whether a run's step times can be compared with other runs and with published numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Comparability {
    /// Whether they can be compared.
    pub yes: bool,
    /// Why they can't be compared, as sentences.
    pub reasons: Vec<String>,
}

impl Comparability {
    /// Returns what the log and its name say about a run's comparability.
    fn of(name: &LogName, log: &Log) -> Self {
        let loaded = log.checkpoints.iter().any(|checkpoint| checkpoint.action == CheckpointAction::Load);
        let obstacles = [
            (name.profiled || log.profiled, "Nsight Systems profiled it, which slows the profiled steps."),
            (name.traced || log.traced, "NCCL calls were traced, which slows the steps."),
            (loaded, "It loaded a checkpoint."),
            (!log.not_finite.is_empty(), "Its loss or gradient is NaN or infinite."),
        ];
        Self::unless(
            obstacles.iter().filter(|(applies, _)| *applies).map(|(_, why)| (*why).to_owned()).collect(),
        )
    }

    fn unless(reasons: Vec<String>) -> Self {
        Self { yes: reasons.is_empty(), reasons }
    }
}
