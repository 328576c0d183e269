//! Reports the progress of runs to servers in the background: only the newest report of each run is sent.

use super::Remotes;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use trainplan_shared::api::RunProgress;
use trainplan_shared::campaign::Upload;
use uuid::Uuid;

/// The pause between two reports, which limits the load on servers.
const PAUSE: Duration = Duration::from_millis(50);

/// The pause after a server failed to answer. Newer reports meanwhile replace waiting ones.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(15);

/// Sends progress reports until it is dropped.
pub(crate) struct ProgressReporter {
    reports: Arc<Reports>,
    task: JoinHandle<()>,
}

/// The reports that wait to be sent, by run.
#[derive(Default)]
struct Reports {
    waiting: Mutex<BTreeMap<Uuid, (Upload, RunProgress)>>,
    added: Notify,
}

impl Reports {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Uuid, (Upload, RunProgress)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressReporter {
    /// Starts the background task.
    pub(crate) fn start() -> ProgressReporter {
        let reports = Arc::<Reports>::default();
        let task = tokio::spawn(send(Arc::clone(&reports)));
        ProgressReporter { reports, task }
    }

    /// Queues a report, in place of any that waits for the same run.
    pub(crate) fn report(&self, upload: &Upload, id: Uuid, progress: RunProgress) {
        self.reports.waiting().insert(id, (upload.clone(), progress));
        self.reports.added.notify_one();
    }

    /// Returns whether all reports were sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.reports.waiting().is_empty()
    }
}

impl Drop for ProgressReporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn send(reports: Arc<Reports>) {
    let mut remotes = Remotes::default();
    loop {
        let next = reports.waiting().pop_first();
        let Some((id, (upload, progress))) = next else {
            reports.added.notified().await;
            continue;
        };
        let sent = match remotes.get(&upload).await {
            Ok(remote) => remote.post_progress(id, &progress).await,
            Err(error) => Err(error),
        };
        let pause = match sent {
            Ok(()) => PAUSE,
            Err(error) => {
                tracing::debug!("the progress of run {id} could not be reported: {error}");
                remotes.forget(&upload);
                PAUSE_AFTER_FAILURE
            }
        };
        tokio::time::sleep(pause).await;
    }
}
