//! Results: upload and list. A result itself is a result file (`crate::result`).

use super::{ExpectedLog, LogFault};
use crate::convention::Convention;
use crate::field::Field;
use crate::link;
use crate::log::{Ending, Stat, Status};
use crate::result::{BaselineComparison, PlanComparison, run_name};
use crate::stack::Software;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// A run as lists show it, without its steps. The names are those of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunSummary {
    /// The result's id.
    pub id: String,
    /// When the store received it.
    pub received_at: String,
    /// When the run began, by Slurm or else by the first time in its log, which is taken as UTC; of a log without dates, when
    /// the file was last written; if nothing is known, or if that is more than a day later, when the result was received.
    pub ran_at: String,
    /// The log's path, as given.
    pub path: String,
    /// The campaign that lists the run; null, like the next four, if Trainplan did not launch it.
    pub campaign: Option<String>,
    /// The number of the campaign's round, from 1; null if an older program launched the run.
    #[serde(default)]
    pub round: Option<u32>,
    /// The run's name in the campaign.
    pub run: Option<String>,
    /// The number of the repeat, from 1.
    pub repeat: Option<u32>,
    /// Which attempt at the run it is, from 1; null if its campaign allows no retries of the run.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// The most attempts that the campaign allows: the first one and the retries.
    #[serde(default)]
    pub attempts: Option<u32>,
    /// The number of Slurm's job, by the campaign or the log's name.
    #[serde(default)]
    pub job: Option<u64>,
    /// The cluster.
    pub cluster: Option<String>,
    /// The published recipe that the run matches; null if it matches none.
    pub recipe: Option<String>,
    /// The model's id, or the text of a custom model.
    pub model: Option<String>,
    /// The GPU type's id, or the text of a custom GPU.
    pub gpu: Option<String>,
    /// The number of GPUs.
    pub gpus: Option<u32>,
    /// The precision.
    pub dtype: Option<String>,
    /// Whether the log could be scored.
    pub status: Status,
    /// How the run ended before its last step; null if it didn't, or if its log doesn't say.
    #[serde(default)]
    pub ending: Option<Ending>,
    /// Seconds per scored step.
    pub step_time_s: Option<Stat>,
    /// The seconds per step by which the run is judged: those of the scored steps, or of all steps after the warm-up if fewer than 5
    /// are scored; null if `step_time_s` is.
    #[serde(default)]
    pub judged_s: Option<f64>,
    /// The mean seconds per step over all steps after the warm-up, whatever was scored; null if the run was not scored, if the log
    /// has fewer than 10 such steps, or if their batch size changes.
    #[serde(default)]
    pub steady_mean_s: Option<f64>,
    /// Tokens per second, over all GPUs.
    pub tokens_per_s: Option<f64>,
    /// Model FLOPs utilization, as a fraction.
    pub mfu: Option<f64>,
    /// How the MFU's FLOPs are counted.
    pub convention: Option<Convention>,
    /// The recipe's published measurement.
    pub baseline: Option<BaselineComparison>,
    /// The run compared with the prediction made before it started; null if no campaign launched it.
    pub plan: Option<PlanComparison>,
    /// The run compared with the prediction for its scenario. Null for a run with a plan, for one that was not scored, and where
    /// parts of the scenario are unknown.
    #[serde(default)]
    pub prediction: Option<PlanComparison>,
    /// Whether its step time may be compared with other runs.
    pub comparable: bool,
    /// Why it was not scored, or why its step time can't be compared with other runs, as sentences; null if it can be compared.
    #[serde(default)]
    pub reason: Option<String>,
    /// The version of the parser that read the log.
    pub parser_version: u32,
    /// The query of a share link to the scenario; null if parts of it are unknown. Runs with the same `line`
    /// on the same cluster form a time line.
    pub line: Option<String>,
    /// Whether the server received the raw log.
    pub has_log: bool,
    /// What is wrong with the stored log; null as long as no check found a fault.
    pub log_fault: Option<LogFault>,
    /// What is wrong with the stored result, its newest score or its row; null as long as no check found a fault.
    pub result_fault: Option<LogFault>,
}

impl RunSummary {
    /// Returns the name of the run in its campaign: `nightly@3/llama-8b#2`. None if no campaign lists it.
    #[must_use]
    pub fn name(&self) -> Option<String> {
        let repeat = self.repeat.unwrap_or(1);
        Some(
            run_name(self.campaign.as_ref()?, self.round, self.run.as_ref()?, repeat) + &self.attempt_words(),
        )
    }

    /// Returns which attempt it is, to append to the run's name: `, attempt 2 of 3`. Empty for the first attempt.
    #[must_use]
    pub fn attempt_words(&self) -> String {
        let retried = self.attempt.filter(|attempt| *attempt > 1).zip(self.attempts);
        retried.map_or(String::new(), |(attempt, attempts)| format!(", attempt {attempt} of {attempts}"))
    }

    /// Returns the comparison with the plan, or else with the prediction for the scenario.
    #[must_use]
    pub fn predicted(&self) -> Option<PlanComparison> {
        self.plan.or(self.prediction)
    }

    /// Returns the name of the software that ran: as set, as run by the recipe's release, or as assumed for such a log. None if
    /// parts of the scenario are unknown.
    #[must_use]
    pub fn software(&self) -> Option<String> {
        let scenario = link::read(self.line.as_ref()?).spec.scenario().ok()?;
        Some(scenario.options.software.title())
    }

    /// Returns the name of the software that the prediction for the scenario is for; none if it is that of a recipe, and without
    /// such a prediction.
    #[must_use]
    pub fn predicted_software(&self) -> Option<String> {
        self.prediction.filter(|_| self.plan.is_none())?;
        let spec = link::read(self.line.as_ref()?).spec;
        let software: Software = spec.parse(Field::Stack).ok()?.unwrap_or_default();
        spec.get(Field::Recipe).is_none().then(|| software.title())
    }
}

/// A page of a list of runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunPage {
    /// The runs.
    pub items: Vec<RunSummary>,
    /// The `cursor` of the next page; null on the last page.
    pub next_cursor: Option<String>,
}

super::ids! {
    /// What the server did with an uploaded result.
    UploadOutcome {
        /// It was stored.
        New "new",
        /// The same result was stored before.
        Known "known",
    }
}

/// The answer to an uploaded result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UploadedRun {
    /// The run's id.
    pub id: String,
    /// Whether the result is new.
    pub outcome: UploadOutcome,
    /// The raw log that belongs to it.
    pub log: ExpectedLog,
}

/// The server's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerLimits {
    /// The largest result file in bytes, uncompressed.
    pub max_result_bytes: usize,
    /// The largest raw log in bytes, uncompressed.
    pub max_log_bytes: u64,
    /// The most runs on a page of a list.
    pub max_page: u32,
    /// The most runs in a comparison or a share link.
    pub max_compared: usize,
    /// The most requests per minute from one caller.
    #[cfg_attr(feature = "schema", schema(value_type = u32))]
    pub requests_per_minute: NonZeroU32,
    /// The most bytes that a token may upload per day (UTC), unless the token has its own quota.
    pub max_uploaded_bytes_per_day: u64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        const REQUESTS: NonZeroU32 = NonZeroU32::new(3000).unwrap();
        Self {
            max_result_bytes: 64 << 20,
            max_log_bytes: 64 << 30,
            max_page: 1000,
            max_compared: 16,
            requests_per_minute: REQUESTS,
            max_uploaded_bytes_per_day: 1 << 40,
        }
    }
}
