//! The events of a run, and the state of a run after them.

use crate::slurm::{Launcher, Sighting, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use trainplan_shared::log::Status;

/// Something that happened to a run. It is written before the next action, so that a later process knows what
/// may have been done. The JSON form is stored in journals and printed by `trainplan run --format json`: old
/// forms stay readable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The run was added to the round.
    Planned,
    /// Its script is on the cluster.
    Staged {
        /// SHA-256 of the script, in hexadecimal.
        sha256: String,
        /// The run's folder on the cluster.
        folder: String,
    },
    /// Its launcher is about to be started.
    Intended {
        /// Counted from 1. There is another attempt only if the one before certainly submitted no job.
        /// Only the process that writes this event starts the attempt.
        attempt: u32,
        /// Marks the jobs of the attempt.
        token: String,
    },
    /// Its launcher submitted jobs.
    Submitted {
        /// In the order of submission; the first is the measured one.
        jobs: Vec<String>,
        /// How the launcher ended.
        launcher: Launcher,
        /// Whether Slurm shows the mark of the attempt in the jobs' comments; none if Slurm was not asked, or shows
        /// none of the jobs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        marked: Option<bool>,
        /// Whether some are known by their names only.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_name: bool,
    },
    /// Its launcher submitted no job, or none was found.
    NotSubmitted {
        why: String,
        /// Whether there will be another attempt.
        again: bool,
    },
    /// The state of a job changed.
    Observed {
        job: String,
        #[serde(flatten)]
        sighting: Sighting,
    },
    /// A job left the queue, and how it ended is not known yet.
    Missing { job: String },
    /// The cluster can't be reached, or its queue does not answer.
    Unseen {
        why: String,
        /// When the cluster last answered, in milliseconds since 1970. Older journals lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_seen_ms: Option<i64>,
    },
    /// The queue answers again.
    SeenAgain,
    /// A log was found.
    Found { job: String, path: String },
    /// A log started again.
    Restarted { job: String, why: LogRestart },
    /// No step has come for much longer than steps take.
    Quiet {
        /// How long, in seconds.
        for_s: u64,
        /// How many steps the log has.
        steps: u64,
    },
    /// After [`Event::Quiet`] there was another step.
    Moving,
    /// The run is to be cancelled.
    CancelAsked { why: String },
    /// scancel was called. The states of the jobs show whether it worked.
    CancelSent {
        /// A line for each job that scancel refused to cancel.
        answer: String,
    },
    /// Its log is copied to the end.
    Drained {
        /// Size of the log.
        bytes: u64,
    },
    /// Its log was parsed and scored.
    Parsed {
        status: Status,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_time_s: Option<f64>,
        /// The seconds per step by which the run is judged; none in the journals of older programs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        judged_s: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mfu: Option<f64>,
        /// Speed of the scored steps in percent of the published one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        speed_percent: Option<f64>,
        /// The scored step time less the planned one, as a fraction of the planned one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<f64>,
        /// Whether the scored step time is within the prediction's interval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<bool>,
    },
    /// Its result is in the store.
    Stored { result: String },
    /// It is over without a result.
    Failed { why: String },
    /// The server has its result, and its log if logs are uploaded.
    Uploaded { to: String },
    /// Its result could not be uploaded.
    NotUploaded {
        to: String,
        why: String,
        /// Whether it will be tried again.
        again: bool,
    },
}

/// Why a log started again. Older journals hold the sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogRestart {
    /// Another file has its path.
    #[serde(alias = "another file took the place of its log; what was read before is kept")]
    Replaced,
    /// The file became shorter, or its contents differ.
    #[serde(alias = "its log was cut; what was read before is kept")]
    Truncated,
}

/// Something that disturbed a measurement, so that it is not comparable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// Slurm put the job back into the queue after it had ended.
    Requeued {
        job: String,
    },
    /// Slurm suspended the job for a while.
    Suspended {
        job: String,
    },
    LogRestarted(LogRestart),
}

impl fmt::Display for Disturbance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disturbance::Requeued { job } => write!(formatter, "job {job} was requeued after it had ended"),
            Disturbance::Suspended { job } => write!(formatter, "job {job} was suspended for a while"),
            Disturbance::LogRestarted(why) => why.fmt(formatter),
        }
    }
}

impl fmt::Display for LogRestart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LogRestart::Replaced => "the log was replaced by another file; the earlier part is kept",
            LogRestart::Truncated => "the log was truncated; the earlier part is kept",
        })
    }
}

/// How far a run is. The order is that of a run that goes well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    Planned,
    /// Its script is on the cluster.
    Staged,
    /// Its launcher was started, or is about to be.
    Intended,
    /// Its jobs are queued or running.
    Submitted,
    /// Its jobs are over.
    Ended,
    /// Its log is copied to the end.
    Drained,
    /// Its log is parsed.
    Parsed,
    /// Its result is in the store.
    Stored,
    /// It is over without a result.
    Failed,
}

/// What became of uploading a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UploadState {
    /// The server has it, since then.
    Sent { at_ms: i64 },
    /// It will be tried again.
    PutOff { why: String },
    /// The server rejects it.
    Refused { why: String },
}

/// The state of a run, after its events.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunStatus {
    pub(crate) phase: Phase,
    /// Number of attempts at launching so far.
    pub(crate) attempt: u32,
    /// Its jobs in the order of submission, each with its last known state.
    pub(crate) jobs: Vec<(String, Option<Sighting>)>,
    /// Jobs that left the queue, and whose end is not known yet.
    pub(crate) missing: Vec<String>,
    /// The paths of logs, by job.
    pub(crate) logs: BTreeMap<String, String>,
    /// If its jobs are out of sight: when the cluster last answered, in milliseconds since 1970, and why it does not.
    pub(crate) unseen: Option<(i64, String)>,
    /// Why it is to be cancelled, and whether scancel was called.
    pub(crate) cancel: Option<(String, bool)>,
    /// The event [`Event::Parsed`], once there is one.
    pub(crate) parsed: Option<Event>,
    /// Why the run has no result.
    pub(crate) failure: Option<String>,
    /// What disturbed its measurement.
    pub(crate) disturbances: Vec<Disturbance>,
    /// Seconds without a step when that was noticed; none once there was another step.
    pub(crate) quiet: Option<u64>,
    /// What became of uploading its result, once that was tried.
    pub(crate) sending: Option<UploadState>,
    /// When the last event was written.
    pub(crate) at_ms: i64,
    /// When the last attempt was started.
    pub(crate) intended_ms: i64,
    /// When its jobs were submitted.
    pub(crate) submitted_ms: Option<i64>,
}

impl Default for RunStatus {
    fn default() -> Self {
        Self {
            phase: Phase::Planned,
            attempt: 0,
            jobs: Vec::new(),
            missing: Vec::new(),
            logs: BTreeMap::new(),
            unseen: None,
            cancel: None,
            parsed: None,
            failure: None,
            disturbances: Vec::new(),
            quiet: None,
            sending: None,
            at_ms: 0,
            intended_ms: 0,
            submitted_ms: None,
        }
    }
}

impl RunStatus {
    /// Applies the next event.
    pub(crate) fn apply(&mut self, at_ms: i64, event: &Event) {
        self.at_ms = at_ms;
        match event {
            Event::Planned => {}
            Event::Staged { .. } => self.phase = Phase::Staged,
            Event::Intended { attempt, .. } => {
                self.attempt = *attempt;
                self.intended_ms = at_ms;
                self.phase = Phase::Intended;
            }
            Event::Submitted { jobs, .. } => {
                self.jobs = jobs.iter().map(|job| (job.clone(), None)).collect();
                self.submitted_ms = Some(at_ms);
                self.phase = Phase::Submitted;
            }
            Event::NotSubmitted { why, again } => {
                if *again {
                    // Its folder on the cluster may have been removed.
                    self.phase = Phase::Planned;
                } else {
                    self.failure = Some(why.clone());
                    self.phase = Phase::Failed;
                }
            }
            Event::Missing { job } => self.missing.push(job.clone()),
            Event::Observed { job, sighting } => {
                self.missing.retain(|missing| missing != job);
                if let Some((_, known)) = self.jobs.iter_mut().find(|(id, _)| id == job) {
                    let was_over = known.as_ref().is_some_and(|known| known.state.is_over());
                    if was_over && !sighting.state.is_over() {
                        self.disturbances.push(Disturbance::Requeued { job: job.clone() });
                    }
                    let suspended = Disturbance::Suspended { job: job.clone() };
                    if sighting.state == State::Suspended && !self.disturbances.contains(&suspended) {
                        self.disturbances.push(suspended);
                    }
                    *known = Some(sighting.clone());
                }
                let over = |(_, known): &(String, Option<Sighting>)| {
                    known.as_ref().is_some_and(|known| known.state.is_over())
                };
                if matches!(self.phase, Phase::Submitted | Phase::Ended) {
                    self.phase = if self.jobs.iter().all(over) { Phase::Ended } else { Phase::Submitted };
                }
                self.unseen = None;
                self.quiet = None;
            }
            Event::Unseen { why, last_seen_ms } => {
                self.unseen = Some((last_seen_ms.unwrap_or(at_ms), why.clone()));
            }
            Event::SeenAgain => self.unseen = None,
            Event::Found { job, path } => {
                self.logs.insert(job.clone(), path.clone());
            }
            Event::Restarted { why, .. } => self.disturbances.push(Disturbance::LogRestarted(*why)),
            Event::Quiet { for_s, .. } => self.quiet = Some(*for_s),
            Event::Moving => self.quiet = None,
            Event::CancelAsked { why } => self.cancel = Some((why.clone(), false)),
            Event::CancelSent { .. } => {
                if let Some((_, sent)) = &mut self.cancel {
                    *sent = true;
                }
            }
            Event::Drained { .. } => self.phase = Phase::Drained,
            Event::Parsed { .. } => {
                self.parsed = Some(event.clone());
                self.phase = Phase::Parsed;
            }
            Event::Stored { .. } => self.phase = Phase::Stored,
            Event::Failed { why } => {
                self.failure = Some(why.clone());
                self.phase = Phase::Failed;
            }
            Event::Uploaded { .. } => self.sending = Some(UploadState::Sent { at_ms }),
            Event::NotUploaded { why, again: true, .. } => {
                self.sending = Some(UploadState::PutOff { why: why.clone() });
            }
            Event::NotUploaded { why, .. } => self.sending = Some(UploadState::Refused { why: why.clone() }),
        }
    }

    /// Returns whether the run is over.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Stored | Phase::Failed)
    }

    /// Returns whether the run has unfinished jobs, or may have.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Intended | Phase::Submitted)
    }

    /// Returns whether Slurm requeued a job that had ended. Such a job writes another log.
    pub(crate) fn was_requeued(&self) -> bool {
        self.disturbances.iter().any(|disturbance| matches!(disturbance, Disturbance::Requeued { .. }))
    }
}
