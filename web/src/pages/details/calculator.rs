//! The page's side of the worker that predicts, writes launch scripts and reads a `config.json`. That code is
//! larger than the rest of the page, so it is loaded after it.

use super::step_time::PredictionState;
use crate::message::plan::{CalculatorReply, CalculatorRequest};
use crate::message::search::ScriptEffect;
use crate::message::{Imported, Launched, Prediction};
use crate::reader::{PageWorker, WORKER};
use leptos::prelude::*;
use std::sync::Arc;
use std::time::Duration;

/// How long typing must pause before the worker is asked.
const PAUSE: Duration = Duration::from_millis(60);

/// The worker and its latest answers.
#[derive(Clone, Copy)]
pub(super) struct Calculator {
    worker: StoredValue<Option<PageWorker>, LocalStorage>,
    state: RwSignal<CalculatorState>,
    pub(super) prediction: LatestAnswer<Prediction>,
    pub(super) launch: LatestAnswer<Launched>,
    /// What the launch scripts of the plans on the page do, each with the query of the plan.
    pub(super) scripts: RwSignal<Vec<(String, ScriptEffect)>>,
    /// The text and the name of a file to import, until the worker takes it.
    to_import: RwSignal<Option<(String, String)>>,
    /// The model of the last `config.json`, or the error in the file.
    pub(super) imported: RwSignal<Option<Result<Imported, String>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CalculatorState {
    Starting,
    Ready,
    Broken,
}

impl Calculator {
    /// Starts a worker that predicts the scenario of one query, launches that of the other and compares the scripts of `plans`
    /// whenever they change. Each of these is the query of a plan, and that of its scenario with the options of the launch.
    pub(super) fn start(
        predict: Memo<Option<String>>,
        launch: Memo<Option<String>>,
        plans: Memo<Vec<(String, String)>>,
    ) -> Calculator {
        let calculator = Calculator {
            worker: StoredValue::new_local(None),
            state: RwSignal::new(CalculatorState::Starting),
            prediction: LatestAnswer::new(predict),
            launch: LatestAnswer::new(launch),
            scripts: RwSignal::new(Vec::new()),
            to_import: RwSignal::new(None),
            imported: RwSignal::new(None),
        };
        // An effect runs after the page is drawn.
        Effect::new(move |_| match PageWorker::start(WORKER, move |reply| calculator.receive(reply)) {
            Ok(worker) => calculator.worker.set_value(Some(worker)),
            Err(_) => calculator.break_down(),
        });
        calculator.ask_whenever(predict, |query| CalculatorRequest::Predict { query });
        calculator.ask_whenever(launch, |query| CalculatorRequest::Launch { query });
        // A file may be dropped before the worker hears messages.
        Effect::new(move |_| {
            if let (CalculatorState::Ready, Some((text, name))) =
                (calculator.state.get(), calculator.to_import.get())
            {
                calculator.to_import.set(None);
                calculator.send(&CalculatorRequest::Import { text, name });
            }
        });
        Effect::new(move |_| {
            let plans = plans.get();
            if calculator.state.get() == CalculatorState::Ready && !plans.is_empty() {
                calculator.send(&CalculatorRequest::Scripts { plans });
            }
        });
        calculator
    }

    /// Whether the worker did not start or stopped.
    pub(super) fn is_broken(self) -> bool {
        self.state.get() == CalculatorState::Broken
    }

    /// Whether a prediction is expected.
    pub(super) fn is_predicting(self) -> bool {
        self.prediction.is_pending() && !self.is_broken()
    }

    /// Returns the state of the current scenario's prediction.
    pub(super) fn prediction_state(self) -> PredictionState {
        match self.prediction.latest() {
            _ if self.is_broken() => PredictionState::Broken,
            _ if self.prediction.is_pending() => PredictionState::Pending,
            Some(predicted) => PredictionState::Ready {
                low_s: predicted.low_s,
                mid_s: predicted.mid_s,
                high_s: predicted.high_s,
            },
            None => PredictionState::None,
        }
    }

    /// Asks the worker to read a `config.json`; the result is set in `imported`. The name of the file is empty if its text was pasted.
    pub(super) fn import(self, text: String, name: String) {
        self.to_import.set(Some((text, name)));
    }

    /// Sends a request for each new query, once typing pauses.
    fn ask_whenever(self, query: Memo<Option<String>>, request: fn(String) -> CalculatorRequest) {
        let mut send = debounce(PAUSE, move |query| self.send(&request(query)));
        Effect::new(move |_| {
            if let (CalculatorState::Ready, Some(query)) = (self.state.get(), query.get()) {
                send(query);
            }
        });
    }

    fn send(self, request: &CalculatorRequest) {
        // None if the page was left meanwhile.
        let sent = self
            .worker
            .try_with_value(|worker| worker.as_ref().is_some_and(|worker| worker.send(request).is_ok()));
        if sent == Some(false) {
            self.break_down();
        }
    }

    /// Discards earlier answers, which would otherwise be shown for the new scenario.
    fn break_down(self) {
        self.state.set(CalculatorState::Broken);
        self.prediction.answer.set(None);
        self.launch.answer.set(None);
    }

    fn receive(self, reply: Option<CalculatorReply>) {
        match reply {
            None => self.break_down(),
            Some(CalculatorReply::Ready) => self.state.set(CalculatorState::Ready),
            Some(CalculatorReply::Predicted { query, prediction }) => {
                self.prediction.receive(query, *prediction);
            }
            Some(CalculatorReply::Launched { query, launched }) => self.launch.receive(query, launched),
            Some(CalculatorReply::Scripts(scripts)) => self.scripts.set(scripts),
            // Another worker answers it.
            Some(CalculatorReply::FoundByScripts(_)) => {}
            Some(CalculatorReply::Imported(imported)) => self.imported.set(Some(imported)),
        }
    }
}

/// The answer to the latest query; answers to earlier queries are dropped.
pub(super) struct LatestAnswer<T: Send + Sync + 'static> {
    query: Memo<Option<String>>,
    answer: RwSignal<Option<(String, Arc<T>)>>,
}

impl<T: Send + Sync + 'static> Clone for LatestAnswer<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Send + Sync + 'static> Copy for LatestAnswer<T> {}

impl<T: Send + Sync + 'static> LatestAnswer<T> {
    fn new(query: Memo<Option<String>>) -> LatestAnswer<T> {
        LatestAnswer { query, answer: RwSignal::new(None) }
    }

    /// Keeps an answer if its query is still the current one.
    fn receive(self, query: String, answer: T) {
        if self.query.get_untracked().as_ref() == Some(&query) {
            self.answer.set(Some((query, Arc::new(answer))));
        }
    }

    /// Whether the current query has no answer yet.
    pub(super) fn is_pending(self) -> bool {
        self.query.with(|query| {
            self.answer
                .with(|answer| query.is_some() && query.as_ref() != answer.as_ref().map(|(query, _)| query))
        })
    }

    /// Returns the answer to the current query; while it is pending or there is no query, the answer to the previous one.
    pub(super) fn latest(self) -> Option<Arc<T>> {
        self.answer.with(|answer| answer.as_ref().map(|(_, answer)| answer.clone()))
    }
}
