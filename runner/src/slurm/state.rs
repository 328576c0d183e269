//! The state of a job, whichever of Slurm's commands reports it.

use serde::{Deserialize, Serialize};
use std::fmt;
use trainplan_shared::api::RunState;

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It waits for nodes, or for its requeue.
    Pending,
    Running,
    /// An administrator, or a job with a higher priority, stopped it for a while.
    Suspended,
    Ended(End),
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// With exit code 0.
    Completed,
    /// With another exit code.
    Failed,
    Cancelled,
    /// It reached its time limit.
    TimeLimit,
    /// One of its nodes failed.
    NodeFail,
    OutOfMemory,
    Preempted,
    /// Slurm no longer knows how.
    Unknown,
}

impl State {
    /// Reads Slurm's word for a state, long or short, with or without an addition (`CANCELLED by 1000`). An
    /// unknown word counts as running, since the job is not known to be over.
    pub(crate) fn of(word: &str) -> State {
        let word = word.split([' ', '+']).next().unwrap_or_default();
        match word {
            "PENDING" | "PD" | "CONFIGURING" | "CF" | "REQUEUED" | "RQ" | "REQUEUE_FED" | "REQUEUE_HOLD"
            | "RH" | "SPECIAL_EXIT" | "SE" | "RESV_DEL_HOLD" | "RD" => State::Pending,
            "SUSPENDED" | "S" | "STOPPED" | "ST" => State::Suspended,
            "COMPLETED" | "CD" => State::Ended(End::Completed),
            "FAILED" | "F" => State::Ended(End::Failed),
            "CANCELLED" | "CA" | "REVOKED" | "RV" => State::Ended(End::Cancelled),
            "TIMEOUT" | "TO" | "DEADLINE" | "DL" => State::Ended(End::TimeLimit),
            "NODE_FAIL" | "NF" | "BOOT_FAIL" | "BF" => State::Ended(End::NodeFail),
            "OUT_OF_MEMORY" | "OOM" => State::Ended(End::OutOfMemory),
            "PREEMPTED" | "PR" => State::Ended(End::Preempted),
            _ => State::Running,
        }
    }

    /// Returns whether the job is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, State::Ended(_))
    }
}

impl End {
    /// Returns Slurm's word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            End::Completed => "COMPLETED",
            End::Failed => "FAILED",
            End::Cancelled => "CANCELLED",
            End::TimeLimit => "TIMEOUT",
            End::NodeFail => "NODE_FAIL",
            End::OutOfMemory => "OUT_OF_MEMORY",
            End::Preempted => "PREEMPTED",
            End::Unknown => "UNKNOWN",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Pending => "waiting",
            State::Running => "running",
            State::Suspended => "suspended",
            State::Ended(End::Completed) => "completed",
            State::Ended(End::Failed) => "failed",
            State::Ended(End::Cancelled) => "cancelled",
            State::Ended(End::TimeLimit) => "hit its time limit",
            State::Ended(End::NodeFail) => "lost a node",
            State::Ended(End::OutOfMemory) => "ran out of memory",
            State::Ended(End::Preempted) => "was preempted",
            State::Ended(End::Unknown) => "ended (Slurm no longer knows how)",
        })
    }
}

impl From<&State> for RunState {
    /// Returns the state as a results server lists it.
    fn from(state: &State) -> RunState {
        match state {
            State::Pending => RunState::Waiting,
            // Servers have no other word for a job that continues later.
            State::Running | State::Suspended => RunState::Running,
            State::Ended(End::Completed) => RunState::Completed,
            State::Ended(End::Failed) => RunState::Failed,
            State::Ended(End::Cancelled) => RunState::Cancelled,
            State::Ended(End::TimeLimit) => RunState::TimeLimit,
            State::Ended(End::NodeFail) => RunState::NodeFail,
            State::Ended(End::OutOfMemory) => RunState::OutOfMemory,
            State::Ended(End::Preempted) => RunState::Preempted,
            State::Ended(End::Unknown) => RunState::Ended,
        }
    }
}

/// Where the state of a job is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StateSource {
    Squeue,
    /// slurmctld, which remembers jobs for a while after their end.
    Scontrol,
    /// The accounting.
    Sacct,
    /// A file that the job's own script writes.
    Job,
    /// The queue does not list the job, and no other source knows it.
    Absence,
}

impl StateSource {
    /// Returns its name for people.
    pub(crate) fn id(self) -> &'static str {
        match self {
            StateSource::Squeue => "squeue",
            StateSource::Scontrol => "scontrol",
            StateSource::Sacct => "sacct",
            StateSource::Job => "the job's own record",
            StateSource::Absence => "no longer in the queue",
        }
    }
}

/// What is known of a job. Times are in seconds since 1970 by the cluster's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sighting {
    pub(crate) state: State,
    /// Where the state of a job is from.
    pub(crate) source: StateSource,
    /// Why it waits, in Slurm's words; empty if unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// Exit code of its script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) submitted: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) started: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nodes: Option<String>,
}

impl Sighting {
    /// Returns a sighting of nothing but a state.
    pub(crate) fn new(state: State, source: StateSource) -> Sighting {
        let (reason, exit_code) = (String::new(), None);
        Sighting {
            state,
            source,
            reason,
            exit_code,
            submitted: None,
            started: None,
            ended: None,
            nodes: None,
        }
    }

    /// Returns whether this adds nothing to an earlier sighting. The usual reasons of waiting jobs alternate,
    /// and don't count.
    pub(crate) fn says_the_same(&self, earlier: &Sighting) -> bool {
        const USUAL: [&str; 3] = ["", "Priority", "Resources"];
        let usual = |sighting: &Sighting| {
            sighting.state == State::Pending && USUAL.contains(&sighting.reason.as_str())
        };
        self == earlier || (usual(self) && usual(earlier))
    }

    /// Fills what this sighting lacks from an earlier one.
    pub(crate) fn after(self, earlier: &Sighting) -> Sighting {
        Sighting {
            exit_code: self.exit_code.or(earlier.exit_code),
            submitted: self.submitted.or(earlier.submitted),
            started: self.started.or(earlier.started),
            ended: self.ended.or(earlier.ended.filter(|_| self.state.is_over())),
            nodes: self.nodes.or_else(|| earlier.nodes.clone()),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurms_words_for_states_are_read_with_their_additions() {
        assert_eq!(State::of("CANCELLED by 1000"), State::Ended(End::Cancelled));
        assert_eq!(State::of("PENDING"), State::Pending);
        assert_eq!(State::of("COMPLETING"), State::Running);
        assert_eq!((State::of("SUSPENDED"), State::of("S")), (State::Suspended, State::Suspended));
        assert_eq!(State::of("OUT_OF_ME+"), State::Running, "an abbreviated word is unknown");
        assert_eq!(State::of(""), State::Running);
    }
}
