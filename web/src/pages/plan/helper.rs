//! What the page has its worker compute: the prediction, the launch, a model from a `config.json`. Together they weigh
//! more than the rest of the page, so that they come after it.

use crate::message::plan::{ForPage, ForWorker};
use crate::message::{Imported, Launched, Prediction};
use crate::reader::Reader;
use leptos::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// Long enough to wait for who types, too short for who looks.
const PAUSE: Duration = Duration::from_millis(60);

/// The worker, and what it was asked.
#[derive(Clone, Copy)]
pub(super) struct Helper {
    reader: StoredValue<Option<Reader>, LocalStorage>,
    state: RwSignal<State>,
    pub(super) prediction: Question<Prediction>,
    pub(super) launch: Question<Launched>,
    /// The model of the last `config.json`, or what is wrong with it.
    pub(super) imported: RwSignal<Option<Result<Imported, String>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Ready,
    Broken,
}

impl Helper {
    /// A worker that is asked to predict the scenario of one query, and to launch that of the other.
    pub(super) fn start(predict: Memo<Option<String>>, launch: Memo<Option<String>>) -> Helper {
        let helper = Helper {
            reader: StoredValue::new_local(None),
            state: RwSignal::new(State::Starting),
            prediction: Question::new(predict),
            launch: Question::new(launch),
            imported: RwSignal::new(None),
        };
        // After the page stands.
        Effect::new(move |_| match Reader::start(move |message| helper.hear(message)) {
            Ok(reader) => helper.reader.set_value(Some(reader)),
            Err(_) => helper.break_down(),
        });
        helper.ask_whenever(predict, |query| ForWorker::Predict { query });
        helper.ask_whenever(launch, |query| ForWorker::Launch { query });
        helper
    }

    /// Whether the worker did not start, or broke down.
    pub(super) fn is_broken(self) -> bool {
        self.state.get() == State::Broken
    }

    /// Whether a prediction is on its way.
    pub(super) fn is_predicting(self) -> bool {
        self.prediction.is_open() && !self.is_broken()
    }

    /// Has a `config.json` read.
    pub(super) fn import(self, text: String) {
        self.say(&ForWorker::Import { text });
    }

    /// Asks anew when the query is another one, as soon as whoever types it pauses.
    fn ask_whenever(self, query: Memo<Option<String>>, ask: fn(String) -> ForWorker) {
        let mut say = debounce(PAUSE, move |query| self.say(&ask(query)));
        Effect::new(move |_| {
            if let (State::Ready, Some(query)) = (self.state.get(), query.get()) {
                say(query);
            }
        });
    }

    fn say(self, message: &ForWorker) {
        // The page may have gone meanwhile.
        let said = self
            .reader
            .try_with_value(|reader| reader.as_ref().is_some_and(|reader| reader.say(message).is_ok()));
        if said == Some(false) {
            self.break_down();
        }
    }

    /// Old answers would pass for new ones.
    fn break_down(self) {
        self.state.set(State::Broken);
        self.prediction.answer.set(None);
        self.launch.answer.set(None);
    }

    fn hear(self, message: Option<ForPage>) {
        match message {
            None => self.break_down(),
            Some(ForPage::Ready) => self.state.set(State::Ready),
            Some(ForPage::Predicted { query, prediction }) => self.prediction.hear(query, prediction),
            Some(ForPage::Launched { query, launched }) => self.launch.hear(query, launched),
            Some(ForPage::Imported(imported)) => self.imported.set(Some(imported)),
        }
    }
}

/// A question of which only the latest counts.
pub(super) struct Question<T: Send + Sync + 'static> {
    asked: Memo<Option<String>>,
    answer: RwSignal<Option<(String, Arc<T>)>>,
}

impl<T: Send + Sync + 'static> Clone for Question<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Send + Sync + 'static> Copy for Question<T> {}

impl<T: Send + Sync + 'static> Question<T> {
    fn new(asked: Memo<Option<String>>) -> Question<T> {
        Question { asked, answer: RwSignal::new(None) }
    }

    /// Takes an answer, unless something else was asked meanwhile.
    fn hear(self, query: String, answer: T) {
        if self.asked.get_untracked().as_ref() == Some(&query) {
            self.answer.set(Some((query, Arc::new(answer))));
        }
    }

    /// Whether what is asked now has no answer yet.
    pub(super) fn is_open(self) -> bool {
        self.asked.with(|asked| {
            self.answer
                .with(|answer| asked.is_some() && asked.as_ref() != answer.as_ref().map(|(query, _)| query))
        })
    }

    /// The answer; while there is none yet, that to what was asked before.
    pub(super) fn latest(self) -> Option<Arc<T>> {
        let asks = self.asked.with(Option::is_some);
        self.answer.with(|answer| answer.as_ref().filter(|_| asks).map(|(_, answer)| answer.clone()))
    }
}
