//! A server under test, its clients, and results to upload.

mod client;
mod place;
mod runs;
mod server;

pub(crate) use client::{Answer, Client, Events, digest, encoded, ids, read_all, read_head};
pub(crate) use place::{Kind, Place, on_every_store};
pub(crate) use runs::{Made, carried, file_of, log, made, made_long, made_of, progress};
pub(crate) use server::{Options, Server};

use std::thread;
use std::time::{Duration, Instant};

/// A timeout for events that are due soon, also on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Waits until a value is available.
pub(crate) fn wait_for<T>(what: &str, limit: Duration, look: impl FnMut() -> Option<T>) -> T {
    wait_for_or(limit, look, || format!("no {what} within {limit:?}"))
}

/// The same, with details for the failure message.
pub(crate) fn wait_for_or<T>(
    limit: Duration,
    mut look: impl FnMut() -> Option<T>,
    otherwise: impl FnOnce() -> String,
) -> T {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Some(found) = look() {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{}", otherwise());
}
