//! Sends the results that the journal lists as due, during a round and at its end. What can't be sent stays
//! due.

use super::{RawLog, Remote, Remotes, UploadError, jittered};
use crate::journal::{Event, Journal, JournalError, PendingUpload, now_ms};
use crate::store::Store;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use trainplan_shared::api::UploadOutcome;
use trainplan_shared::campaign::Server;
use uuid::Uuid;

/// The pause while another process is sending.
const BUSY: Duration = Duration::from_secs(2);

/// The first and the longest pause after a server did not answer.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How long a server may be silent at the end of a round before the runner gives up on it.
const SILENCE: Duration = Duration::from_secs(5);

/// The outcome of sending a result.
pub(crate) struct SendUpdate {
    /// The run's id.
    pub(crate) run: String,
    pub(crate) at_ms: i64,
    /// The journal already has it.
    pub(crate) event: Event,
}

/// Sends due results until it is dropped.
pub(crate) struct Outbox {
    shared: Arc<OutboxState>,
    updates: mpsc::UnboundedReceiver<SendUpdate>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct OutboxState {
    more: Notify,
    /// Whether every due result is attempted once more and then no more.
    is_last: AtomicBool,
    /// The number of answers from servers.
    answers: Arc<AtomicU64>,
}

impl Outbox {
    /// Starts the background task.
    pub(crate) fn start(journal: &Journal, store: &Store) -> Outbox {
        let shared = Arc::<OutboxState>::default();
        let (sender_of_updates, updates) = mpsc::unbounded_channel();
        let sender = Sender {
            journal: journal.clone(),
            store: store.clone(),
            remotes: Remotes { answers: Arc::clone(&shared.answers), ..Remotes::default() },
            pauses: BTreeMap::new(),
            shared: Arc::clone(&shared),
            updates: sender_of_updates,
        };
        Outbox { shared, updates, task: tokio::spawn(sender.send()) }
    }

    /// Has the journal read again, after a result became due.
    pub(crate) fn notify(&self) {
        self.shared.more.notify_one();
    }

    /// Returns the next outcome; none after the last.
    pub(crate) async fn next(&mut self) -> Option<SendUpdate> {
        self.updates.recv().await
    }

    /// Has every due result attempted once more, and then ends.
    pub(crate) fn finish(&self) {
        self.shared.is_last.store(true, Ordering::SeqCst);
        self.notify();
    }

    /// Waits until servers have been silent for a while.
    pub(crate) fn silence(&self) -> impl Future<Output = ()> + use<> {
        let answers = Arc::clone(&self.shared.answers);
        async move {
            loop {
                let before = answers.load(Ordering::Relaxed);
                tokio::time::sleep(SILENCE).await;
                if answers.load(Ordering::Relaxed) == before {
                    return;
                }
            }
        }
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Sender {
    journal: Journal,
    store: Store,
    remotes: Remotes,
    /// Servers that did not answer: when to try again, and the number of failed attempts.
    pauses: BTreeMap<Server, (Instant, u32)>,
    shared: Arc<OutboxState>,
    updates: mpsc::UnboundedSender<SendUpdate>,
}

impl Sender {
    async fn send(mut self) {
        loop {
            // Read first: results that become due meanwhile are sent in the next pass.
            let is_last = self.shared.is_last.load(Ordering::SeqCst);
            let wait = self.send_all(is_last).await.unwrap_or_else(|error| {
                tracing::warn!("the due results could not be read: {error}");
                Some(LONGEST_PAUSE)
            });
            match wait {
                Some(BUSY) if is_last => tokio::time::sleep(BUSY).await,
                _ if is_last => return,
                Some(wait) => drop(tokio::time::timeout(wait, self.shared.more.notified()).await),
                None => self.shared.more.notified().await,
            }
        }
    }

    /// Sends all due results whose server is not paused; returns the time to wait until the next pass, if
    /// results remain.
    async fn send_all(&mut self, is_last: bool) -> Result<Option<Duration>, JournalError> {
        if self.journal.due().await?.is_empty() {
            return Ok(None);
        }
        let Some(_lock) = self.journal.lock_outbox()? else { return Ok(Some(BUSY)) };
        if is_last {
            self.pauses.clear();
        }
        // Read again: another process may have sent some meanwhile.
        for due in self.journal.due().await? {
            let to = &due.upload.to;
            if self.pauses.get(to).is_some_and(|(until, _)| *until > Instant::now()) {
                continue;
            }
            let sent = match self.remotes.get(&due.upload).await {
                Ok(remote) => send_due(&remote, &self.store, &due).await,
                Err(error) => Err(error),
            };
            match &sent {
                Ok(_) => drop(self.pauses.remove(to)),
                Err(error) if error.is_final() => {}
                Err(error) => {
                    let (_, tries) = self.pauses.get(to).copied().unwrap_or((Instant::now(), 0));
                    self.pauses.insert(to.clone(), (Instant::now() + pause(error, tries), tries + 1));
                    self.remotes.forget(&due.upload);
                }
            }
            if let Some((at_ms, event)) = settle(&self.journal, &due, &sent).await? {
                // The receiver may be gone.
                let _ = self.updates.send(SendUpdate { run: due.run, at_ms, event });
            }
        }
        let next = self.pauses.values().map(|(until, _)| until.saturating_duration_since(Instant::now()));
        Ok(next.min().map(|wait| wait.max(Duration::from_secs(1))))
    }
}

/// Returns the pause of a server after this many failed attempts.
fn pause(error: &UploadError, tries: u32) -> Duration {
    let wanted = match error {
        UploadError::Unreachable { wait: Some(wait), .. } | UploadError::Failed { wait: Some(wait), .. } => {
            *wait
        }
        // Waiting alone does not help, but a person may change the token.
        UploadError::Denied { .. } | UploadError::Token(_) => LONGEST_PAUSE,
        _ => FIRST_PAUSE * 2_u32.saturating_pow(tries.min(10)),
    };
    jittered(wanted.clamp(FIRST_PAUSE, LONGEST_PAUSE))
}

/// What was sent to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) put: UploadOutcome,
    /// Whether the log was sent or was on the server before; none if there is no log to send.
    pub(crate) log: Option<bool>,
}

/// Sends a due result.
pub(crate) async fn send_due(
    remote: &Remote,
    store: &Store,
    due: &PendingUpload,
) -> Result<Sent, UploadError> {
    let id = Uuid::parse_str(&due.run).map_err(|_| gone(&due.run))?;
    send_stored(remote, store, id, due.upload.logs).await
}

/// Sends a result from the store, and its log if the store has it.
pub(crate) async fn send_stored(
    remote: &Remote,
    store: &Store,
    id: Uuid,
    logs: bool,
) -> Result<Sent, UploadError> {
    let file = store.file(id).await?.ok_or_else(|| gone(&id.to_string()))?;
    let put = remote.put_result(id, file.into()).await?;
    let log = match store.log(id).await? {
        Some(log) if logs => Some(remote.put_log(id, &mut RawLog::of_store(store, log)).await?),
        _ => None,
    };
    Ok(Sent { put, log })
}

fn gone(id: &str) -> UploadError {
    UploadError::Refused(format!("The result {id} is no longer in this machine's store."))
}

/// Records the outcome of sending a result in the journal; returns it if it is new there.
pub(crate) async fn settle(
    journal: &Journal,
    due: &PendingUpload,
    sent: &Result<Sent, UploadError>,
) -> Result<Option<(i64, Event)>, JournalError> {
    let (at_ms, to) = (now_ms(), due.upload.to.to_string());
    let event = match sent {
        Ok(_) => Event::Uploaded { to },
        Err(error) => Event::NotUploaded { to, why: error.to_string(), again: !error.is_final() },
    };
    let is_new = match &event {
        Event::NotUploaded { why, again: true, .. } => journal.put_off(&due.run, at_ms, why, &event).await?,
        _ => journal.settle(&due.run, at_ms, &event).await?,
    };
    Ok(is_new.then_some((at_ms, event)))
}
