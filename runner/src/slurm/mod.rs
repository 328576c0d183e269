//! What the runner asks of Slurm, by scripts that run on the login node (`remote/`), and how their answers are read.

mod attempt;
mod poll;
mod state;

pub(crate) use attempt::{Launcher, Report, cancel, sha256, stage, submit, token};
pub(crate) use poll::{Chunk, Find, Look, Tail, View};
pub(crate) use state::{End, Sighting, Source, State};
