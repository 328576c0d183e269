//! Carries out a round of a campaign.
//!
//! One loop (`round_loop`) decides what to do, writes it to the journal, starts it as a task, and takes in
//! the result. Tasks are independent; only the loop changes the state of a run.

mod cancellation;
mod conductor;
mod decide;
mod error;
mod live;
mod log_copy;
mod observation;
mod outcome;
mod reachability;
mod round_loop;
mod settings;
mod submission;

pub(crate) use conductor::{ConductOptions, Conductor, Ending, Observer, Order, RoundFigures};
pub(crate) use error::ConductError;
pub(crate) use live::LiveRun;
pub(crate) use outcome::RunOutcome;
pub(crate) use reachability::trying_again;
