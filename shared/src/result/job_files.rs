//! What the files beside a log say about its job.

use super::job_settings::{JobSettings, SettingValues, SettingsFile, UnreadFile, UnreadReason};
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
    /// The settings that the files beside the log list.
    #[serde(default, skip_serializing_if = "JobSettings::is_empty")]
    pub settings: JobSettings,
    /// The files beside the log that should list settings, but say nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<UnreadFile>,
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
        let has_no_settings = self.settings.is_empty() && self.unread.is_empty();
        self.parts.is_empty() && self.failures.is_empty() && has_no_settings
    }

    /// Returns the same with what reading a file beside the log said.
    #[must_use]
    pub fn with(mut self, file: SettingsFile, read: Result<SettingValues, UnreadReason>) -> Self {
        match read {
            Ok(settings) => self.settings = self.settings.with(file, settings),
            Err(why) => self.unread.push(UnreadFile { file, why }),
        }
        self
    }

    /// Adds the failures to a log that does not show the end of its run.
    pub(super) fn complete(&self, log: &mut Log) {
        log.failures.extend(self.failures.iter().cloned());
    }

    /// Returns sentences about the files that were joined or not read.
    pub(super) fn notes(&self, log: &Log) -> impl Iterator<Item = String> {
        self.joined(log).into_iter().chain(self.unread.iter().copied().map(UnreadFile::sentence))
    }

    /// Returns a sentence about the logs that were joined; none if there was only one.
    fn joined(&self, log: &Log) -> Option<String> {
        let (_, later) = self.parts.split_first()?;
        let idle: Option<f64> = later.iter().map(|part| part.idle_s).sum();
        let lost = match idle {
            Some(idle) => format!("{} s passed between them", significant(idle, 3)),
            None => "the time between them is unknown".to_owned(),
        };
        Some(format!(
            "Joined from {} logs of a restarted job: {lost}, and {} steps were repeated.",
            self.parts.len(),
            log.duplicates
        ))
    }
}
