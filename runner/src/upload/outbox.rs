//! Sends what the journal has to be sent, while a round goes on and in its end. What can't be sent stays for whoever
//! comes next.

use super::{RawLog, Remote, Remotes, UploadError, jittered};
use crate::journal::{Due, Event, Journal, JournalError, now_ms};
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

/// Another process is asked again after so long whether it is done.
const BUSY: Duration = Duration::from_secs(2);

/// The pauses of a server that does not answer, from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// In the end, a server that says nothing for so long is left.
const SILENCE: Duration = Duration::from_secs(5);

/// Something that became of sending a run's result.
pub(crate) struct News {
    /// The run's id.
    pub(crate) run: String,
    pub(crate) at_ms: i64,
    /// It is written down already.
    pub(crate) event: Event,
}

/// Sends what is due, for as long as this lives.
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    news: mpsc::UnboundedReceiver<News>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    more: Notify,
    /// Whether everything is tried once more, and no more.
    is_last: AtomicBool,
    /// Answers of servers so far.
    beat: Arc<AtomicU64>,
}

impl Outbox {
    /// Begins to send.
    pub(crate) fn begin(journal: &Journal, store: &Store) -> Outbox {
        let shared = Arc::<Shared>::default();
        let (tell, news) = mpsc::unbounded_channel();
        let sender = Sender {
            journal: journal.clone(),
            store: store.clone(),
            remotes: Remotes { beat: Arc::clone(&shared.beat), ..Remotes::default() },
            pauses: BTreeMap::new(),
            shared: Arc::clone(&shared),
            tell,
        };
        Outbox { shared, news, task: tokio::spawn(sender.send()) }
    }

    /// Says that there is more to send.
    pub(crate) fn stir(&self) {
        self.shared.more.notify_one();
    }

    /// What became of something.
    pub(crate) async fn next(&mut self) -> Option<News> {
        self.news.recv().await
    }

    /// Has everything tried once more; what became of it comes as before, and then nothing.
    pub(crate) fn finish(&self) {
        self.shared.is_last.store(true, Ordering::SeqCst);
        self.stir();
    }

    /// Waits until servers have said nothing for a while.
    pub(crate) fn silence(&self) -> impl Future<Output = ()> + use<> {
        let beat = Arc::clone(&self.shared.beat);
        async move {
            loop {
                let before = beat.load(Ordering::Relaxed);
                tokio::time::sleep(SILENCE).await;
                if beat.load(Ordering::Relaxed) == before {
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
    /// The servers that are left alone, until when, and after how many tries in vain.
    pauses: BTreeMap<Server, (Instant, u32)>,
    shared: Arc<Shared>,
    tell: mpsc::UnboundedSender<News>,
}

impl Sender {
    async fn send(mut self) {
        loop {
            // What comes while this looks is looked at again.
            let is_last = self.shared.is_last.load(Ordering::SeqCst);
            let wait = self.look(is_last).await.unwrap_or_else(|error| {
                tracing::warn!("what is to be sent can't be seen: {error}");
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

    /// Sends what is due and may be tried; says how long to wait for the next time, if there is one.
    async fn look(&mut self, is_last: bool) -> Result<Option<Duration>, JournalError> {
        if self.journal.due().await?.is_empty() {
            return Ok(None);
        }
        let Some(_lock) = self.journal.lock_outbox()? else { return Ok(Some(BUSY)) };
        if is_last {
            self.pauses.clear();
        }
        // What another process sent meanwhile is due no more.
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
                Err(UploadError::Conflict(_) | UploadError::Refused(_)) => {}
                Err(error) => {
                    let (_, tries) = self.pauses.get(to).copied().unwrap_or((Instant::now(), 0));
                    self.pauses.insert(to.clone(), (Instant::now() + pause(error, tries), tries + 1));
                    self.remotes.forget(&due.upload);
                }
            }
            if let Some((at_ms, event)) = settle(&self.journal, &due, &sent).await? {
                // Who was to hear of it may have gone.
                let _ = self.tell.send(News { run: due.run, at_ms, event });
            }
        }
        let next = self.pauses.values().map(|(until, _)| until.saturating_duration_since(Instant::now()));
        Ok(next.min().map(|wait| wait.max(Duration::from_secs(1))))
    }
}

/// How long a server is left alone after so many tries in vain.
fn pause(error: &UploadError, tries: u32) -> Duration {
    let wanted = match error {
        UploadError::Unreachable { wait: Some(wait), .. } => *wait,
        // Nothing that time alone mends, but a person may.
        UploadError::Denied { .. } | UploadError::Token(_) => LONGEST_PAUSE,
        _ => FIRST_PAUSE * 2_u32.saturating_pow(tries.min(10)),
    };
    jittered(wanted.clamp(FIRST_PAUSE, LONGEST_PAUSE))
}

/// What a server has now that it had not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) put: UploadOutcome,
    /// Of the log: whether it was sent; none where there is none, or it stays here.
    pub(crate) log: Option<bool>,
}

/// Sends a result that is due.
pub(crate) async fn send_due(remote: &Remote, store: &Store, due: &Due) -> Result<Sent, UploadError> {
    let id = Uuid::parse_str(&due.run).map_err(|_| gone(&due.run))?;
    send_stored(remote, store, id, due.upload.logs).await
}

/// Sends a result of the store, and its log where that is here too.
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
    UploadError::Refused(format!("the result {id} is no longer in the store here"))
}

/// Writes down what became of sending something; gives what is news.
pub(crate) async fn settle(
    journal: &Journal,
    due: &Due,
    sent: &Result<Sent, UploadError>,
) -> Result<Option<(i64, Event)>, JournalError> {
    let (at_ms, to) = (now_ms(), due.upload.to.to_string());
    let event = match sent {
        Ok(_) => Event::Uploaded { to },
        Err(error) => {
            let again = !matches!(error, UploadError::Conflict(_) | UploadError::Refused(_));
            Event::NotUploaded { to, why: error.to_string(), again }
        }
    };
    let is_news = match &event {
        Event::NotUploaded { why, again: true, .. } => journal.put_off(&due.run, at_ms, why, &event).await?,
        _ => journal.settle(&due.run, at_ms, &event).await?,
    };
    Ok(is_news.then_some((at_ms, event)))
}
