//! Launch styles and cluster managers.

use crate::field::Field;
use crate::problem::Problem;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The launcher of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Style {
    /// The release's launcher, which activates the recipe's Python environment and finds its directory.
    LlmbRun,
    /// The recipe's script on a login node, which submits through NeMo-Run.
    LaunchSh,
    /// The recipe's script as a batch job.
    Sbatch,
    /// Megatron-LM in a generated batch job, without a release.
    MegatronLm,
}

impl Style {
    /// Every style.
    pub const ALL: [Style; 4] = [Style::LlmbRun, Style::LaunchSh, Style::Sbatch, Style::MegatronLm];

    /// Returns the name in flags, files and links.
    pub const fn id(self) -> &'static str {
        match self {
            Style::LlmbRun => "llmb-run",
            Style::LaunchSh => "launch-sh",
            Style::Sbatch => "sbatch",
            Style::MegatronLm => "megatron-lm",
        }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for Style {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Style, Problem> {
        let wanted = text.trim().to_ascii_lowercase();
        Style::ALL
            .into_iter()
            .find(|style| style.id() == wanted)
            .ok_or_else(|| Problem::unknown(Field::Style, text, Style::ALL.map(Style::id)))
    }
}

impl Serialize for Style {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// A cluster manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ClusterType {
    /// Slurm.
    #[default]
    Slurm,
    /// NVIDIA Run:ai, on Kubernetes.
    Runai,
}

impl ClusterType {
    /// Every cluster manager.
    pub const ALL: [ClusterType; 2] = [ClusterType::Slurm, ClusterType::Runai];

    /// Returns the name in flags, files and links.
    pub const fn id(self) -> &'static str {
        match self {
            ClusterType::Slurm => "slurm",
            ClusterType::Runai => "runai",
        }
    }
}

impl fmt::Display for ClusterType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl FromStr for ClusterType {
    type Err = Problem;

    fn from_str(text: &str) -> Result<ClusterType, Problem> {
        // The documents also write Run:ai.
        let wanted = text.trim().to_ascii_lowercase().replace(':', "");
        ClusterType::ALL
            .into_iter()
            .find(|kind| kind.id() == wanted)
            .ok_or_else(|| Problem::unknown(Field::ClusterType, text, ClusterType::ALL.map(ClusterType::id)))
    }
}

impl Serialize for ClusterType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}
