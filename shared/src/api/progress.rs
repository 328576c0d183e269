//! Runs that have no result yet.

use crate::log::STEP_TIMES;
use crate::result::{InvalidResult, LONGEST_NAME, MOST_JOBS, STEP_TIME, TIME, is_time};
use crate::units::group_digits;
use serde::{Deserialize, Serialize};

super::ids! {
    /// The state of a run that has no result yet.
    RunState {
        /// The runner is submitting its job.
        #[serde(alias = "being submitted")]
        Submitting "submitting",
        /// The job is submitted; the queue has not shown it yet.
        Submitted "submitted",
        /// The job waits in the queue.
        Waiting "waiting",
        /// The job runs.
        Running "running",
        /// The job ended, and its log was copied.
        #[serde(alias = "log copied")]
        LogCopied "log_copied" "log copied",
        /// The job ended with exit code 0.
        Completed "completed",
        /// The job ended with another exit code, or could not be submitted.
        Failed "failed",
        /// The job was cancelled.
        Cancelled "cancelled",
        /// The job ran into its time limit.
        #[serde(alias = "ended by its time limit")]
        TimeLimit "time_limit" "hit its time limit",
        /// The job lost a node.
        #[serde(alias = "lost a node")]
        NodeFail "node_fail" "lost a node",
        /// The job ran out of memory.
        #[serde(alias = "ran out of memory")]
        OutOfMemory "out_of_memory" "ran out of memory",
        /// Another job took the nodes.
        #[serde(alias = "was preempted")]
        Preempted "preempted",
        /// The job ended; Slurm no longer knows how.
        #[serde(alias = "ended, Slurm no longer says how")]
        Ended "ended",
        /// The cluster can't be reached or no longer lists the job. Also stands for states of newer runners.
        #[serde(other)]
        Unknown "unknown",
    }
}

impl RunState {
    /// Returns whether the run's job ended. A run whose log was copied still awaits its result.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            RunState::Submitting
            | RunState::Submitted
            | RunState::Waiting
            | RunState::Running
            | RunState::LogCopied
            | RunState::Unknown => false,
            RunState::Completed
            | RunState::Failed
            | RunState::Cancelled
            | RunState::TimeLimit
            | RunState::NodeFail
            | RunState::OutOfMemory
            | RunState::Preempted
            | RunState::Ended => true,
        }
    }
}

/// The most steps of a run: those that a launch can ask for.
const MOST_STEPS: u64 = 100_000_000;

/// What a runner reports of an unfinished run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunProgress {
    /// The campaign that lists the run.
    pub campaign: String,
    /// The run's name in the campaign.
    pub run: String,
    /// The number of the repeat, from 1.
    #[cfg_attr(feature = "schema", schema(minimum = 1))]
    pub repeat: u32,
    /// The cluster.
    pub cluster: String,
    /// The recipe; null if the run has none.
    pub recipe: Option<String>,
    /// The run's state.
    pub state: RunState,
    /// The newest step in the log. It may exceed `steps`: a run that continues from a checkpoint counts on.
    #[cfg_attr(feature = "schema", schema(maximum = 100_000_000))]
    pub step: Option<u64>,
    /// The number of steps that the run will make.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 100_000_000))]
    pub steps: Option<u64>,
    /// The mean of the newest steps, in seconds.
    #[cfg_attr(feature = "schema", schema(minimum = 0.000_001, exclusive_maximum = 1_000_000_000))]
    pub step_time_s: Option<f64>,
    /// The predicted seconds per step.
    #[cfg_attr(feature = "schema", schema(minimum = 0.000_001, exclusive_maximum = 1_000_000_000))]
    pub planned_s: Option<f64>,
    /// The ids of its jobs.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// When the runner saw this state.
    pub at: String,
}

impl RunProgress {
    /// Checks the report before a store accepts it.
    ///
    /// # Errors
    /// A text or list exceeds the maximum that it has in a result, or a figure or time is not possible.
    pub fn admit(&self) -> Result<(), InvalidResult> {
        let refuse = |field: &'static str, what: String| Err(InvalidResult { field: field.into(), what });
        let RunProgress { campaign, run, cluster, recipe, jobs, at, repeat, step, steps, .. } = self;
        let texts = [("campaign", campaign), ("run", run), ("cluster", cluster), ("at", at)].into_iter();
        let texts = texts.chain(recipe.as_ref().map(|recipe| ("recipe", recipe)));
        for (field, text) in texts.chain(jobs.iter().map(|job| ("jobs[]", job))) {
            if text.len() > LONGEST_NAME {
                return refuse(
                    field,
                    format!("has {} bytes; at most {LONGEST_NAME} are accepted", text.len()),
                );
            }
        }
        if jobs.len() > MOST_JOBS {
            return refuse("jobs", format!("has {} items; at most {MOST_JOBS} are accepted", jobs.len()));
        }
        if !is_time(at) {
            return refuse("at", TIME.to_owned());
        }
        if *repeat == 0 {
            return refuse("repeat", "must be at least 1".to_owned());
        }
        for (field, count, least) in [("step", step, 0), ("steps", steps, 1)] {
            if count.is_some_and(|count| !(least..=MOST_STEPS).contains(&count)) {
                let most = group_digits(MOST_STEPS as f64);
                return refuse(field, format!("must be from {least} to {most}"));
            }
        }
        for (field, seconds) in [("step_time_s", &self.step_time_s), ("planned_s", &self.planned_s)] {
            if seconds.is_some_and(|seconds| !STEP_TIMES.contains(&seconds)) {
                return refuse(field, STEP_TIME.to_owned());
            }
        }
        Ok(())
    }
}

/// A run without a result, as the server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnfinishedRun {
    /// The id that the result will have.
    pub id: String,
    /// When the server received the report.
    pub received_at: String,
    /// Whether the job ended.
    pub is_over: bool,
    /// The newest report.
    #[serde(flatten)]
    pub progress: RunProgress,
}

/// A list of runs without a result.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnfinishedRuns {
    /// The runs, the most recently reported first.
    pub items: Vec<UnfinishedRun>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;

    #[test]
    fn a_launch_can_ask_for_as_many_steps_as_a_report_can_have() {
        assert_eq!(group_digits(MOST_STEPS as f64), Field::MaxSteps.bounds().most);
    }
}
