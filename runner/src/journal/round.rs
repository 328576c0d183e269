//! Rounds of a campaign, and their runs.

use super::event::{Phase, RunStatus};
use super::plan::Plan;
use sqlx::FromRow;

/// One execution of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub(crate) struct Round {
    pub(crate) id: String,
    pub(crate) campaign: String,
    pub(crate) cluster: String,
    /// The host, as ssh takes it.
    pub(crate) ssh: String,
    /// Of the plans, to notice that the campaign was changed.
    pub(crate) sha256: String,
    pub(crate) begun_ms: i64,
    /// When the queue last answered, in milliseconds since 1970.
    pub(crate) seen_ms: Option<i64>,
    pub(crate) ended_ms: Option<i64>,
    /// Which round of its campaign it is, counted from 1 in the order in which they were begun.
    pub(crate) number: u32,
    /// Whether no later round of the campaign was begun on the cluster.
    pub(crate) is_newest: bool,
}

impl Round {
    /// Returns its name, `nightly@2`. A campaign's name has no `@`.
    pub(crate) fn title(&self) -> String {
        format!("{}@{}", self.campaign, self.number)
    }

    /// Returns the name of the lock of the process that carries it out. An older round has one of its own, so that it
    /// can be carried out beside the newest.
    pub(super) fn lock_name(&self) -> String {
        match self.is_newest {
            true => format!("{}@{}", self.campaign, self.cluster),
            false => self.id.clone(),
        }
    }
}

/// A run with its plan and state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) round: String,
    pub(crate) plan: Plan,
    pub(crate) status: RunStatus,
}

impl Run {
    /// Returns a pattern of its plan as the cluster's shell finds it. A job's own script writes below the
    /// run's folder.
    pub(crate) fn below_its_folder(&self, pattern: &str) -> String {
        match self.plan.is_job {
            true => format!("\"$HOME\"/.trainplan/runs/{}/{pattern}", self.id),
            false => pattern.to_string(),
        }
    }
}

/// Whether one of these runs was submitted, or may have been.
pub(crate) fn has_jobs(runs: &[Run]) -> bool {
    runs.iter().any(|run| run.status.phase >= Phase::Intended)
}
