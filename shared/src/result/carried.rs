//! What a campaign records of a run beside its log.

use super::Comparability;
use crate::estimate::Interval;
use serde::{Deserialize, Serialize};

/// A run of a campaign: its cluster, jobs, launch and prediction. It contains no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CampaignRun {
    /// The campaign's name.
    pub campaign: String,
    /// The run's name in the campaign.
    pub run: String,
    /// The number of the repeat, from 1.
    pub repeat: u32,
    /// The name of the cluster's profile.
    pub cluster: String,
    /// Its jobs, the measured one first.
    pub jobs: Vec<SlurmJob>,
    /// How it was launched.
    pub launch: LaunchRecord,
    /// The prediction made before it started.
    pub plan: PredictionRecord,
}

/// A job of a run, as Slurm reports it. Times are RFC 3339 with the offset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlurmJob {
    /// Slurm's job id.
    pub id: String,
    /// The job's name.
    pub name: String,
    /// Slurm's final state, such as `COMPLETED`; `UNKNOWN` if Slurm no longer knew the job.
    pub state: String,
    /// The script's exit code, if known.
    pub exit_code: Option<i32>,
    /// When the job was submitted.
    pub submitted: Option<String>,
    /// When the job started.
    pub started: Option<String>,
    /// When the job ended.
    pub ended: Option<String>,
    /// The nodes, as Slurm lists them.
    pub nodes: Option<String>,
}

/// The launch of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// The release whose scripts launched it, if any.
    pub release: Option<String>,
    /// The launch style.
    pub style: String,
    /// The SHA-256 of the submitted script without its secrets, in hexadecimal.
    pub script_sha256: String,
    /// The number of planned steps.
    pub steps: u32,
    /// Whether its result can be compared with the published number.
    pub comparable: Comparability,
}

/// The prediction for a run, as it was made at launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredictionRecord {
    /// Seconds per step.
    pub step_time_s: Interval,
    /// The memory that a GPU needs.
    pub memory_bytes: f64,
    /// The memory that a GPU has.
    pub capacity_bytes: f64,
    /// The evidence behind the step time.
    pub basis: String,
    /// The program and its version, which determine the constants.
    pub calibration: String,
}
