//! What the files beside a log say about its job.

use super::bridge_config::{BridgeConfig, UnreadConfig};
use crate::log::{Failure, Log};
use crate::units::significant;
use serde::{Deserialize, Serialize};

/// What the files beside a log say about its job. Only those who see the folder know it, so it is kept with the result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobFiles {
    /// The logs that were joined to one, in order; empty if there was only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<LogPart>,
    /// The failures that the output of the batch script reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// The configuration that Megatron-Bridge wrote; empty if there was none.
    #[serde(default, skip_serializing_if = "BridgeConfig::is_empty")]
    pub config: BridgeConfig,
    /// Why a configuration beside the log says nothing; none if there was none, or if it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread_config: Option<UnreadConfig>,
}

/// The log of one start of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogPart {
    /// The name of the file.
    pub name: String,
    /// Seconds between the last time in the log before it and the first time in this one; none if either has no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<f64>,
}

impl JobFiles {
    /// Returns whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let has_no_config = self.config.is_empty() && self.unread_config.is_none();
        self.parts.is_empty() && self.failures.is_empty() && has_no_config
    }

    /// Adds the failures to a log that does not show the end of its run.
    pub(super) fn complete(&self, log: &mut Log) {
        log.failures.extend(self.failures.iter().cloned());
    }

    /// Returns sentences about the files that were joined or not read.
    pub(super) fn notes(&self, log: &Log) -> impl Iterator<Item = String> {
        self.joined(log).into_iter().chain(self.unread_config.map(UnreadConfig::sentence))
    }

    /// Returns a sentence about the logs that were joined; none if there was only one.
    fn joined(&self, log: &Log) -> Option<String> {
        let (_, later) = self.parts.split_first()?;
        let idle: Option<f64> = later.iter().map(|part| part.idle_s).sum();
        let lost = match idle {
            Some(idle) => format!("{} s passed between them", significant(idle, 3)),
            None => "how much time passed between them is unknown".to_owned(),
        };
        Some(format!(
            "Joined from {} logs of a restarted job: {lost}, and {} steps were done again.",
            self.parts.len(),
            log.duplicates
        ))
    }
}
