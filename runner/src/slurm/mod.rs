//! Slurm, through shell scripts that run on the login node (`remote/`), and the parsers of their answers.

mod attempt;
mod poll;
mod settings;
mod state;

pub(crate) use attempt::{
    Attempt, AttemptOrder, AttemptReport, Launcher, NamedJob, cancel, cancel_answers, sha256, stage, submit,
    token,
};
pub(crate) use poll::{ClusterView, LogChunk, LogSearch, LogTail, PollRequest};
pub(crate) use settings::SettingsRequest;
pub(crate) use state::{End, Sighting, State, StateSource};
