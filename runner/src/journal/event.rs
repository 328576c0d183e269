//! What happens to a run, and what a run is after all that happened.

use crate::slurm::{Launcher, Sighting};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that happened to a run. It is written down before the next act, so that whoever reads it knows what may have
/// been done since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// It is to be carried out.
    Planned,
    /// Its launch lies on the cluster.
    Staged {
        /// Of the script, in hexadecimal.
        sha256: String,
        /// The run's folder there.
        folder: String,
    },
    /// Its launch is about to be started.
    Intended {
        /// From 1; another only where the one before surely made no job.
        attempt: u32,
        /// What marks its jobs.
        token: String,
    },
    /// Its launch made these jobs.
    Submitted {
        /// In the order in which they were made.
        jobs: Vec<String>,
        /// How the launcher ended.
        launcher: Launcher,
    },
    /// Its launch made no job, for certain.
    NotSubmitted {
        /// What the launcher said.
        why: String,
        /// Whether it is tried again.
        again: bool,
    },
    /// A job was seen in another state than before.
    Observed {
        job: String,
        #[serde(flatten)]
        sighting: Sighting,
    },
    /// A job left the queue, and nobody says yet how it ended.
    Missing { job: String },
    /// The cluster can't be seen, since then.
    Unseen { why: String },
    /// It is seen again.
    SeenAgain,
    /// A log was found.
    Found { job: String, path: String },
    /// A log began anew: it was cut, or another file took its place.
    Restarted { job: String, why: String },
    /// No step for much longer than steps take.
    Quiet {
        /// How long, in seconds.
        for_s: u64,
        /// How many steps its log has.
        steps: u64,
    },
    /// Steps come again.
    Moving,
    /// Someone wants it cancelled.
    CancelAsked { why: String },
    /// scancel was called; what became of the jobs is observed.
    CancelSent { answer: String },
    /// Its log is copied to the end.
    Drained {
        /// Bytes of the log.
        bytes: u64,
    },
    /// Its log was read.
    Parsed {
        status: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_time_s: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mfu: Option<f64>,
        /// Speed in percent of the published one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        speed_percent: Option<f64>,
        /// How much longer it took than predicted, as a fraction.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<f64>,
        /// Whether that lies within the prediction's interval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        within: Option<bool>,
    },
    /// Its result is in the store.
    Stored { result: String },
    /// It is over without a result.
    Failed { why: String },
    /// The server has its result, and its log where that is sent.
    Uploaded { to: String },
    /// Its result could not be sent.
    NotUploaded {
        to: String,
        why: String,
        /// Whether it is tried again.
        again: bool,
    },
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Nothing is done.
    Planned,
    /// Its launch lies on the cluster.
    Staged,
    /// Its launch was started, or is about to be.
    Intended,
    /// Its jobs are in Slurm's hands.
    Submitted,
    /// Its jobs are over.
    Ended,
    /// Its log is here.
    Drained,
    /// Its log is read.
    Parsed,
    /// Its result is kept.
    Stored,
    /// It is over without a result.
    Failed,
}

/// How far a result is on its way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The server has it, since then.
    Sent { at_ms: i64 },
    /// It could not be sent yet.
    PutOff { why: String },
    /// The server does not take it.
    Refused { why: String },
}

/// What a run is after all that happened to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Status {
    pub(crate) phase: Phase,
    /// Attempts at launching so far.
    pub(crate) attempt: u32,
    /// Its jobs with what is known of them, in the order in which they were made.
    pub(crate) jobs: Vec<(String, Option<Sighting>)>,
    /// Those of them that left the queue, and of which nobody says yet how they ended.
    pub(crate) missing: Vec<String>,
    /// The paths of logs, by job.
    pub(crate) logs: BTreeMap<String, String>,
    /// Since when the cluster can't be seen, in milliseconds since 1970, and why.
    pub(crate) unseen: Option<(i64, String)>,
    /// Why it is to be cancelled, and whether that was said to Slurm.
    pub(crate) cancel: Option<(String, bool)>,
    /// What the log told, if it was read.
    pub(crate) parsed: Option<Event>,
    /// Why there is no result.
    pub(crate) failure: Option<String>,
    /// What to know of its measurement: that its log began anew, for one.
    pub(crate) remarks: Vec<String>,
    /// For how long no step had come when that was said, if none has come since.
    pub(crate) quiet: Option<u64>,
    /// What became of sending its result, once that was tried.
    pub(crate) sending: Option<Sending>,
    /// When the last event was written.
    pub(crate) at_ms: i64,
    /// When the last attempt was begun.
    pub(crate) intended_ms: i64,
    /// When its jobs were made.
    pub(crate) submitted_ms: Option<i64>,
}

impl Default for Status {
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
            remarks: Vec::new(),
            quiet: None,
            sending: None,
            at_ms: 0,
            intended_ms: 0,
            submitted_ms: None,
        }
    }
}

impl Status {
    /// Takes in what happened next.
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
                    self.phase = Phase::Staged;
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
                        self.remarks
                            .push(format!("job {job} was put back into the queue after it had ended"));
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
            Event::Unseen { why } => self.unseen = Some((at_ms, why.clone())),
            Event::SeenAgain => self.unseen = None,
            Event::Found { job, path } => {
                self.logs.insert(job.clone(), path.clone());
            }
            Event::Restarted { why, .. } => self.remarks.push(why.clone()),
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
            Event::Uploaded { .. } => self.sending = Some(Sending::Sent { at_ms }),
            Event::NotUploaded { why, again: true, .. } => {
                self.sending = Some(Sending::PutOff { why: why.clone() });
            }
            Event::NotUploaded { why, .. } => self.sending = Some(Sending::Refused { why: why.clone() }),
        }
    }

    /// Whether nothing more happens to it.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Stored | Phase::Failed)
    }

    /// Whether Slurm has jobs of it that may not be over, or it may have.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.phase, Phase::Intended | Phase::Submitted)
    }
}
