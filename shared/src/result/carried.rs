//! What is known of a run besides its log, where we carried it out.

use super::Comparable;
use crate::estimate::Interval;
use serde::{Deserialize, Serialize};

/// Who carried a run out, where, how, and what was predicted of it then. No secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The campaign that lists it.
    pub campaign: String,
    /// Its name there.
    pub run: String,
    /// Which of its repeats, from 1.
    pub repeat: u32,
    /// The cluster, as its profile is called.
    pub cluster: String,
    /// The jobs that it owns, the measured one first.
    pub jobs: Vec<Job>,
    /// What it was launched by.
    pub launch: Launched,
    /// What was predicted before it started.
    pub plan: Predicted,
}

/// A job of a run, as Slurm told of it. Times are RFC 3339 with the offset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its number, as Slurm writes it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How it ended, in Slurm's word: `COMPLETED`; `UNKNOWN` where Slurm forgot it before it was asked.
    pub state: String,
    /// What its script exited with, where that is known.
    pub exit_code: Option<i32>,
    /// When it was submitted.
    pub submitted: Option<String>,
    /// When it started.
    pub started: Option<String>,
    /// When it ended.
    pub ended: Option<String>,
    /// The nodes that it ran on, as Slurm lists them.
    pub nodes: Option<String>,
}

/// A launch, as far as it explains a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launched {
    /// The release whose scripts ran it, if any.
    pub release: Option<String>,
    /// The style.
    pub style: String,
    /// The SHA-256 of the script that was submitted, in hexadecimal; secrets are no part of it.
    pub script_sha256: String,
    /// Steps that it was to run.
    pub steps: u32,
    /// Whether it measures what the published number measured.
    pub comparable: Comparable,
}

/// A prediction, as it was made then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// Seconds per step.
    pub step_time_s: Interval,
    /// What a GPU has to hold.
    pub memory_bytes: f64,
    /// What it can hold.
    pub capacity_bytes: f64,
    /// What the step time rests on, in words.
    pub basis: String,
    /// The constants that it was made by: the program and its version.
    pub calibration: String,
}
