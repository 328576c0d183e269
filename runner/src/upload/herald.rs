//! Tells servers where runs are: the newest word of each counts, and nobody waits for an answer.

use super::Remotes;
use crate::serve::Progress;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use trainplan_shared::campaign::Upload;
use uuid::Uuid;

/// Two words are so far apart at least: a server has others to listen to.
const APART: Duration = Duration::from_millis(50);

/// A server that does not answer is left alone for so long; what is said meanwhile takes the place of what was said before.
const DEAF: Duration = Duration::from_secs(15);

/// Who tells servers where runs are, for as long as this lives.
pub(crate) struct Herald {
    words: Arc<Words>,
    task: JoinHandle<()>,
}

/// What is to be told, by run.
#[derive(Default)]
struct Words {
    waiting: Mutex<BTreeMap<Uuid, (Upload, Progress)>>,
    more: Notify,
}

impl Words {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Uuid, (Upload, Progress)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Herald {
    pub(crate) fn begin() -> Herald {
        let words = Arc::<Words>::default();
        let task = tokio::spawn(tell(Arc::clone(&words)));
        Herald { words, task }
    }

    /// Tells the server where a run is, soon.
    pub(crate) fn tell(&self, upload: &Upload, id: Uuid, progress: Progress) {
        self.words.waiting().insert(id, (upload.clone(), progress));
        self.words.more.notify_one();
    }

    /// Whether all was told.
    pub(crate) fn is_idle(&self) -> bool {
        self.words.waiting().is_empty()
    }
}

impl Drop for Herald {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn tell(words: Arc<Words>) {
    let mut remotes = Remotes::default();
    loop {
        let next = words.waiting().pop_first();
        let Some((id, (upload, progress))) = next else {
            words.more.notified().await;
            continue;
        };
        let told = match remotes.get(&upload).await {
            Ok(remote) => remote.post_progress(id, &progress).await,
            Err(error) => Err(error),
        };
        let pause = match told {
            Ok(()) => APART,
            Err(error) => {
                tracing::debug!("where run {id} is can't be told: {error}");
                remotes.forget(&upload);
                DEAF
            }
        };
        tokio::time::sleep(pause).await;
    }
}
