//! Turns of requests with much work. Each kind of work has its own turns, so that none delays another: large reads don't keep
//! others from uploading.

use super::problem::Problem;
use axum::http::{StatusCode, header};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The number of expensive reads at a time. A history occupies a connection to the database until its last row, and SQLite has
/// four for reading: one is left for all other requests.
const READS: usize = 3;

/// How long an expensive read waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// The turns of a server.
pub(super) struct Turns {
    /// Turns for uploads.
    pub(super) uploads: Semaphore,
    /// Turns for lists.
    pub(super) lists: Semaphore,
    /// Turns for requests that read a whole raw log. Logs may be large, so these requests wait without a
    /// limit.
    pub(super) logs: Semaphore,
    /// Turns for expensive reads: whole results, or thousands of rows.
    reads: Semaphore,
}

impl Turns {
    pub(super) fn new() -> Turns {
        Turns {
            uploads: Semaphore::new(8),
            lists: Semaphore::new(8),
            logs: Semaphore::new(8),
            reads: Semaphore::new(READS),
        }
    }

    /// Waits for the turn of an expensive read, which ends when the returned value is dropped.
    ///
    /// # Errors
    /// Others take too long: 503.
    pub(super) async fn read(&self) -> Result<SemaphorePermit<'_>, Problem> {
        // Nobody closes the semaphore.
        patiently(self.reads.acquire()).await?.map_err(|_| busy())
    }
}

/// Waits for another expensive read, as long as a client can be expected to.
///
/// # Errors
/// The other takes too long: 503.
pub(super) async fn patiently<T>(other: impl Future<Output = T>) -> Result<T, Problem> {
    tokio::time::timeout(PATIENCE, other).await.map_err(|_| busy())
}

fn busy() -> Problem {
    let detail =
        "The server is busy with other histories, comparisons and scores. Try again in a few seconds.";
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
    problem.with(header::RETRY_AFTER, PATIENCE.as_secs())
}
