//! The plans of runs.

use serde::{Deserialize, Serialize};
use trainplan_shared::campaign::{Secret, Upload};
use trainplan_shared::result::{LaunchRecord, PredictionRecord};

/// The plan of a run: all that is needed to carry it out, without the values of secrets. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) name: String,
    /// Which of its repeats, counted from 1.
    pub(crate) repeat: u32,
    /// How many repeats there are.
    pub(crate) repeats: u32,
    /// The runs that have to be over before.
    pub(crate) after: Vec<String>,
    /// Those of them that must have a score; otherwise this one fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) after_success: Vec<String>,
    /// How often it runs again after a node failed or its job was preempted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) retries: u32,
    /// Which of the retries it is; 0 for the first run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) retry: u32,
    /// The nodes on which it does not run, as Slurm takes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exclude: Option<String>,
    /// Whether it runs only while no other singleton of the campaign does.
    pub(crate) singleton: bool,
    /// How long it may wait in the queue.
    pub(crate) queue_budget_s: Option<u64>,
    /// The full id of its recipe, if it has one.
    pub(crate) recipe: Option<String>,
    /// Its scenario, as the query of a link.
    pub(crate) scenario: String,
    pub(crate) gpus: u32,
    /// The script that launches it.
    pub(crate) script: String,
    /// Whether the script is the job's own, for sbatch. It writes its state and its logs below the run's
    /// folder.
    pub(crate) is_job: bool,
    /// Where this machine has its secrets.
    pub(crate) secrets: Vec<(String, Secret)>,
    /// The names of the jobs that it submits, the measured one first.
    pub(crate) job_names: Vec<String>,
    /// A pattern for a shell.
    pub(crate) experiment_dir: String,
    /// A pattern for a shell.
    pub(crate) log_glob: String,
    pub(crate) launched: LaunchRecord,
    pub(crate) predicted: PredictionRecord,
    /// The published step time.
    pub(crate) baseline_s: Option<f64>,
    /// The server that gets its result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) upload: Option<Upload>,
}

impl Plan {
    /// Returns the run's name, with its repeat if there are several, and with the number of its retry: `large#2~1`.
    pub(crate) fn title(&self) -> String {
        let mut title = self.name.clone();
        if self.repeats > 1 {
            title += &format!("#{}", self.repeat);
        }
        if self.retry > 0 {
            title += &format!("~{}", self.retry);
        }
        title
    }

    /// Returns which attempt it is and how many the campaign allows, in words: `attempt 2 of 3`. None for the first one.
    pub(crate) fn attempt_words(&self) -> Option<String> {
        (self.retry > 0).then(|| {
            format!("attempt {} of {}", self.retry.saturating_add(1), self.retries.saturating_add(1))
        })
    }

    /// Returns whether another version of the program would plan the same run of the campaign as `now`. What the program derives
    /// from the campaign, such as the script and the prediction, may differ.
    pub(crate) fn is_of_other_version(&self, now: &Plan) -> bool {
        let derived = Plan {
            script: self.script.clone(),
            is_job: self.is_job,
            job_names: self.job_names.clone(),
            experiment_dir: self.experiment_dir.clone(),
            log_glob: self.log_glob.clone(),
            launched: self.launched.clone(),
            predicted: self.predicted.clone(),
            baseline_s: self.baseline_s,
            ..now.clone()
        };
        self.predicted.calibration != now.predicted.calibration && *self == derived
    }

    /// Returns whether another run is a later try of the same repeat.
    pub(crate) fn is_retried_by(&self, other: &Plan) -> bool {
        (&self.name, self.repeat) == (&other.name, other.repeat) && self.retry < other.retry
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
