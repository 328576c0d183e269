//! The page's side of the worker that searches for plans: it asks whenever the question changes. That worker has no words for what it
//! refuses; they come from the other one, which is started when the first question is refused.

use super::findings::Findings;
use crate::message::search::{RefusalReply, SearchNews, SearchReply, SearchRequest};
use crate::reader::{PageWorker, SEARCH_WORKER, WORKER};
use leptos::prelude::*;
use std::time::Duration;
use trainplan_shared::link;
use trainplan_shared::spec::Spec;

/// How long typing must pause before the worker is asked.
const PAUSE: Duration = Duration::from_millis(120);

/// The search worker and what it found.
#[derive(Clone, Copy)]
pub(super) struct Search {
    question: Memo<Spec>,
    worker: StoredValue<Option<PageWorker>, LocalStorage>,
    /// The worker that words what the search worker refuses; none before the first such question.
    wording: StoredValue<Option<PageWorker>, LocalStorage>,
    state: RwSignal<WorkerState>,
    /// The number of the latest question.
    number: RwSignal<u32>,
    pub(super) findings: RwSignal<Findings>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerState {
    Starting,
    Ready,
    Broken,
}

impl Search {
    /// Starts a worker that answers the question whenever it changes.
    pub(super) fn start(question: Memo<Spec>) -> Search {
        let search = Search {
            question,
            worker: StoredValue::new_local(None),
            wording: StoredValue::new_local(None),
            state: RwSignal::new(WorkerState::Starting),
            number: RwSignal::new(0),
            findings: RwSignal::new(Findings::default()),
        };
        // An effect runs after the page is drawn.
        Effect::new(move |_| match PageWorker::start(SEARCH_WORKER, move |reply| search.receive(reply)) {
            Ok(worker) => search.worker.set_value(Some(worker)),
            Err(_) => search.state.set(WorkerState::Broken),
        });
        let mut ask = debounce(PAUSE, move |query| search.ask(query));
        Effect::new(move |before: Option<()>| {
            let query = question.with(link::write);
            if search.state.get() == WorkerState::Ready {
                let is_first = search.number.get_untracked() == 0;
                // From now on, news of the previous question is old.
                search.number.update(|number| *number += 1);
                search.findings.update(|findings| findings.ask(query.clone()));
                // The first question needs no pause.
                match before.is_none() || is_first {
                    true => search.ask(query),
                    false => ask(query),
                }
            }
        });
        search
    }

    /// Whether the worker did not start or stopped.
    pub(super) fn is_broken(self) -> bool {
        self.state.get() == WorkerState::Broken
    }

    fn ask(self, query: String) {
        self.send(self.worker, query);
    }

    /// Sends the latest question to one of the workers.
    fn send(self, worker: StoredValue<Option<PageWorker>, LocalStorage>, query: String) {
        // `try_`: the page may have been left meanwhile.
        let Some(number) = self.number.try_get_untracked() else { return };
        let request = SearchRequest { number, query };
        let sent = worker
            .try_with_value(|worker| worker.as_ref().is_some_and(|worker| worker.send(&request).is_ok()));
        if sent == Some(false) {
            self.state.set(WorkerState::Broken);
        }
    }

    fn receive(self, reply: Option<SearchReply>) {
        match reply {
            None => self.state.set(WorkerState::Broken),
            Some(SearchReply::Ready) => self.state.set(WorkerState::Ready),
            Some(SearchReply::News { number, news }) if number == self.number.get_untracked() => match news {
                SearchNews::Refused => self.ask_for_words(),
                news => self.findings.maybe_update(|findings| findings.hear(news)),
            },
            Some(SearchReply::News { .. }) => {}
        }
    }

    /// Asks the other worker what is wrong with the latest question, and starts it for the first one.
    fn ask_for_words(self) {
        if self.wording.with_value(Option::is_none) {
            match PageWorker::start(WORKER, move |reply| self.receive_words(reply)) {
                // It says when it is ready.
                Ok(worker) => self.wording.set_value(Some(worker)),
                Err(_) => self.state.set(WorkerState::Broken),
            }
            return;
        }
        // The page may have been left meanwhile.
        if let Some(query) = self.question.try_with_untracked(link::write) {
            self.send(self.wording, query);
        }
    }

    fn receive_words(self, reply: Option<RefusalReply>) {
        match reply {
            None => self.state.set(WorkerState::Broken),
            Some(RefusalReply::Ready) => self.ask_for_words(),
            // None, if a question that is searched came after the refused one.
            Some(RefusalReply::Refused { number, refusals }) => {
                if number == self.number.get_untracked() && !refusals.is_empty() {
                    self.findings.update(|findings| findings.refuse(refusals));
                }
            }
        }
    }
}
