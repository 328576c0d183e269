//! What Slurm says of a job, in one set of words.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A job's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It waits for nodes, or to be started again.
    Pending,
    /// It has nodes.
    Running,
    /// It is over.
    Ended(End),
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// With code 0.
    Completed,
    /// With another code.
    Failed,
    /// By somebody's order.
    Cancelled,
    /// By its time limit.
    TimeLimit,
    /// A node was lost.
    NodeFail,
    /// It took more memory than it had been given.
    OutOfMemory,
    /// Another job took its nodes.
    Preempted,
    /// Slurm no longer knows how.
    Unknown,
}

impl State {
    /// Reads Slurm's word for a state, long or short, with whatever stands behind it: `CANCELLED by 1000`. A word that no
    /// Slurm of today has counts as running: it is not known to have ended.
    pub(crate) fn of(word: &str) -> State {
        let word = word.split([' ', '+']).next().unwrap_or_default();
        match word {
            "PENDING" | "PD" | "CONFIGURING" | "CF" | "REQUEUED" | "RQ" | "REQUEUE_FED" | "REQUEUE_HOLD"
            | "RH" | "SPECIAL_EXIT" | "SE" | "RESV_DEL_HOLD" | "RD" => State::Pending,
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

    /// Whether it is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self, State::Ended(_))
    }
}

impl End {
    /// Every one.
    pub(crate) const ALL: [End; 8] = [
        End::Completed,
        End::Failed,
        End::Cancelled,
        End::TimeLimit,
        End::NodeFail,
        End::OutOfMemory,
        End::Preempted,
        End::Unknown,
    ];

    /// Slurm's own word.
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
            State::Ended(End::Completed) => "completed",
            State::Ended(End::Failed) => "failed",
            State::Ended(End::Cancelled) => "cancelled",
            State::Ended(End::TimeLimit) => "ended by its time limit",
            State::Ended(End::NodeFail) => "lost a node",
            State::Ended(End::OutOfMemory) => "ran out of memory",
            State::Ended(End::Preempted) => "was preempted",
            State::Ended(End::Unknown) => "ended, Slurm no longer says how",
        })
    }
}

/// Who said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// The queue.
    Squeue,
    /// slurmctld, of a job that it remembers.
    Scontrol,
    /// The accounting.
    Sacct,
    /// The file that the job's own script writes.
    Job,
    /// Nobody: the queue answers without it, and nothing else knows it.
    Absence,
}

impl Source {
    /// Its name.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Source::Squeue => "squeue",
            Source::Scontrol => "scontrol",
            Source::Sacct => "sacct",
            Source::Job => "the job's own file",
            Source::Absence => "absence from the queue",
        }
    }
}

/// What is known of a job. Times are seconds since 1970 by the cluster's clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sighting {
    /// Its state.
    pub(crate) state: State,
    /// Who said so.
    pub(crate) source: Source,
    /// Why it waits, in Slurm's words; empty where it does not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    /// What its script exited with.
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
    /// That a job is in a state, by a source, and nothing more.
    pub(crate) fn new(state: State, source: Source) -> Sighting {
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

    /// Whether this is no news after an earlier sighting. A job that waits is told now one and now the other of the usual
    /// reasons.
    pub(crate) fn says_the_same(&self, earlier: &Sighting) -> bool {
        const USUAL: [&str; 3] = ["", "Priority", "Resources"];
        let usual = |sighting: &Sighting| {
            sighting.state == State::Pending && USUAL.contains(&sighting.reason.as_str())
        };
        self == earlier || (usual(self) && usual(earlier))
    }

    /// This, with what it does not say taken from an earlier sighting.
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
    fn words_of_slurm_are_understood_with_what_follows_them() {
        assert_eq!(State::of("CANCELLED by 1000"), State::Ended(End::Cancelled));
        assert_eq!(State::of("PENDING"), State::Pending);
        assert_eq!(State::of("COMPLETING"), State::Running);
        assert_eq!(State::of("OUT_OF_ME+"), State::Running, "cut words are no ends");
        assert_eq!(State::of(""), State::Running);
    }
}
