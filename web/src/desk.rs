//! The worker of the pages of results: one for all pages, so that dropped and fetched runs stay while another page is
//! open. It answers questions, and reports changes on the server.

use crate::files::FoundFile;
use crate::message::results::{ForPage, ForWorker};
use crate::message::{Answer, Question, RequestError, Scope, ServerChange};
use crate::reader::{PageWorker, WORKER};
use crate::storage::Kept;
use leptos::ev::storage;
use leptos::prelude::*;
use leptos::wasm_bindgen::JsValue;
use std::sync::Arc;
use std::time::Duration;

/// How often to poll a server that does not report its changes.
const EVERY: Duration = Duration::from_secs(15);

/// Where a token is kept, until the tab is closed or in this browser, and a shared link's secret.
const TOKEN: &str = "token";
const SHARE: &str = "share";

/// Where the page is kept that such a link led to.
const SHARED: &str = "shared";

/// The worker, and the questions that wait for an answer.
#[derive(Clone, Copy)]
pub(crate) struct Desk {
    reader: StoredValue<Option<PageWorker>, LocalStorage>,
    /// Whether the worker listens. Earlier messages to it are lost.
    is_ready: RwSignal<bool>,
    /// The callbacks of open questions, by number.
    waiting: StoredValue<Vec<(u32, Hear)>, LocalStorage>,
    asked: StoredValue<u32>,
    /// Gets the messages about files.
    files: StoredValue<Option<Callback<Option<ForPage>>>>,
    /// What the reader signed in with.
    token: RwSignal<String>,
    /// Whether the server answered, if known.
    has_server: RwSignal<Option<bool>>,
    /// Whether the server reports its changes.
    is_listening: RwSignal<bool>,
    /// Counts the changes of the stored runs, and of unfinished runs.
    runs: RwSignal<u32>,
    live: RwSignal<u32>,
}

type Hear = Box<dyn FnOnce(Result<Answer, RequestError>)>;

impl Desk {
    /// For the whole program.
    pub(crate) fn provide() -> Desk {
        take_secret();
        let desk = Desk {
            reader: StoredValue::new_local(None),
            is_ready: RwSignal::new(false),
            waiting: StoredValue::new_local(Vec::new()),
            asked: StoredValue::new(0),
            files: StoredValue::new(None),
            token: RwSignal::new(kept_token().unwrap_or_default()),
            has_server: RwSignal::new(None),
            is_listening: RwSignal::new(false),
            runs: RwSignal::new(0),
            live: RwSignal::new(0),
        };
        provide_context(desk);
        // After the page stands.
        Effect::new(move |_| desk.start());
        // Signing in or out for the browser applies to its other tabs too.
        let heard = window_event_listener(storage, move |event| {
            if event.key().is_some_and(|key| key == TOKEN) {
                desk.take_token(&kept_token().unwrap_or_default());
            }
        });
        on_cleanup(move || heard.remove());
        desk
    }

    pub(crate) fn of_app() -> Desk {
        #[expect(clippy::expect_used, reason = "the program provides it before its pages are made")]
        use_context().expect("the program provides its desk")
    }

    /// Sets who handles the messages that are not answers.
    pub(crate) fn hear_of_files(self, hear: impl Fn(Option<ForPage>) + Send + Sync + 'static) {
        self.files.set_value(Some(Callback::new(hear)));
    }

    /// Whether the worker takes messages.
    pub(crate) fn is_ready(self) -> bool {
        self.is_ready.get()
    }

    /// Whether there is a server with results, if known.
    pub(crate) fn has_server(self) -> Option<bool> {
        self.has_server.get()
    }

    /// Whether someone signed in.
    pub(crate) fn is_signed_in(self) -> bool {
        self.token.with(|token| !token.is_empty())
    }

    /// The page that a shared link led to, for a guest: who has only that link to show.
    pub(crate) fn shared(self) -> Option<String> {
        self.token.track();
        shared()
    }

    /// Shows this token to the server from now on: in this tab until it is closed, or in this browser, where it `stays`.
    pub(crate) fn sign_in(self, token: &str, stays: bool) {
        forget_token();
        // Without storage, the next page asks for it again.
        if stays { Kept::InBrowser } else { Kept::InTab }.set(TOKEN, token);
        self.take_token(token);
    }

    /// Shows the server nothing any more, neither a token nor a shared link's secret.
    pub(crate) fn sign_out(self) {
        forget_token();
        Kept::InTab.delete(SHARE);
        Kept::InTab.delete(SHARED);
        self.take_token("");
    }

    fn take_token(self, token: &str) {
        self.show_token(token);
        // Questions that failed without a token are asked again.
        self.token.set(token.to_string());
    }

    fn show_token(self, token: &str) {
        let share = || Kept::InTab.get(SHARE).unwrap_or_default();
        let token = if token.is_empty() { share() } else { token.to_string() };
        self.say(&ForWorker::SignIn { token });
    }

    /// Changes whenever the server's results do.
    pub(crate) fn track_runs(self) {
        self.runs.track();
    }

    /// Repeats every question that depends on the runs.
    pub(crate) fn ask_again(self) {
        self.runs.update(|count| *count += 1);
    }

    /// Changes whenever something under way went on.
    pub(crate) fn track_live(self) {
        self.live.track();
    }

    /// Follows what changes on the server while the page that calls it is open.
    pub(crate) fn follow(self) {
        Effect::new(move |_| {
            if self.has_server() == Some(true) {
                self.listen();
            }
        });
        let keep_up = move || {
            if !document().hidden() {
                self.keep_up();
            }
        };
        if let Ok(timer) = set_interval_with_handle(keep_up, EVERY) {
            on_cleanup(move || timer.clear());
        }
    }

    /// Keeps up with the server, by its change events or by asking again.
    fn keep_up(self) {
        if self.has_server.get_untracked() != Some(false) && !self.is_listening.get_untracked() {
            self.runs.update(|count| *count += 1);
            self.live.update(|count| *count += 1);
            if self.has_server.get_untracked() == Some(true) {
                self.listen();
            }
        }
    }

    /// Has the worker listen to the server.
    fn listen(self) {
        self.say(&ForWorker::Listen);
    }

    /// Sends a message; false if the worker can't receive it.
    pub(crate) fn say(self, message: &ForWorker) -> bool {
        let said = self
            .reader
            .try_with_value(|reader| reader.as_ref().is_some_and(|reader| reader.send(message).is_ok()));
        said == Some(true)
    }

    /// Hands a file over; false if the browser can't.
    pub(crate) fn hand_over(self, number: u32, found: &FoundFile) -> bool {
        self.reader.with_value(|reader| {
            reader.as_ref().is_some_and(|reader| reader.send_file(number, found).is_ok())
        })
    }

    /// Asks once; `hear` gets the answer.
    pub(crate) fn ask(self, question: Question, hear: impl FnOnce(Result<Answer, RequestError>) + 'static) {
        let number = self.asked.get_value() + 1;
        self.asked.set_value(number);
        if self.say(&ForWorker::Ask { number, question }) {
            self.waiting.update_value(|waiting| waiting.push((number, Box::new(hear))));
        } else {
            hear(Err(RequestError::Other("The page's worker can't start. Reload the page.".into())));
        }
    }

    /// Asks whenever the question changes. `take` extracts the answer.
    pub(crate) fn answer<T: Send + Sync + 'static>(
        self,
        question: impl Fn() -> Option<Question> + 'static,
        take: fn(Answer) -> Option<T>,
    ) -> Asked<T> {
        let asked = Asked::new();
        Effect::new(move |_| {
            self.token.track();
            if !self.is_ready.get() {
                return;
            }
            let number = asked.latest.get_value() + 1;
            asked.latest.set_value(number);
            let Some(question) = question() else {
                asked.answer.set(None);
                asked.trouble.set(None);
                return;
            };
            asked.is_open.set(true);
            self.ask(question, move |answer| {
                // Only the latest counts; and the page may have gone meanwhile.
                if asked.latest.try_get_value() == Some(number) {
                    let of_no_use = || RequestError::Other("Unexpected answer. Reload the page.".into());
                    asked.hear(answer.and_then(|answer| take(answer).ok_or_else(of_no_use)));
                }
            });
        });
        asked
    }

    /// Whether the server grants `scope`; asked once `is_there` says that there is a server.
    pub(crate) fn may(self, scope: Scope, is_there: impl Fn() -> bool + 'static) -> Memo<bool> {
        let own = self.answer(
            move || is_there().then_some(Question::Scope),
            |answer| if let Answer::Scope(scope) = answer { Some(scope) } else { None },
        );
        Memo::new(move |_| own.get().is_some_and(|own| *own >= scope))
    }

    fn start(self) {
        match PageWorker::start(WORKER, move |message| self.hear(message)) {
            // It says when it is ready.
            Ok(reader) => self.reader.set_value(Some(reader)),
            Err(_) => self.hear(None),
        }
    }

    fn hear(self, message: Option<ForPage>) {
        match message {
            None => {
                self.reader.set_value(None);
                let waiting = self.waiting.try_update_value(std::mem::take).unwrap_or_default();
                for (_, hear) in waiting {
                    hear(Err(RequestError::Other("The page's worker stopped. Reload the page.".into())));
                }
                self.hear_file(None);
            }
            Some(ForPage::Answer { number, answer }) => {
                match &answer {
                    Ok(Answer::Runs(_) | Answer::History(_)) => self.note_server(true),
                    Ok(Answer::Comparison(compared)) if !compared.on_server.is_empty() => {
                        self.note_server(true);
                    }
                    Err(RequestError::NoServer) => self.note_server(false),
                    _ => {}
                }
                let hear = self.waiting.try_update_value(|waiting| {
                    let place = waiting.iter().position(|(other, _)| *other == number)?;
                    Some(waiting.swap_remove(place).1)
                });
                if let Some(hear) = hear.flatten() {
                    hear(answer);
                }
            }
            Some(ForPage::Listening(is_listening)) => {
                self.is_listening.set(is_listening);
                if is_listening {
                    // Asks once more, because something may have changed between the first answers and the first
                    // reported changes.
                    self.runs.update(|count| *count += 1);
                    self.live.update(|count| *count += 1);
                }
            }
            Some(ForPage::Changed(ServerChange::Runs)) => self.runs.update(|count| *count += 1),
            Some(ForPage::Changed(ServerChange::Live)) => self.live.update(|count| *count += 1),
            Some(ForPage::Ready) => {
                let token = self.token.get_untracked();
                self.show_token(&token);
                self.is_ready.set(true);
                self.hear_file(Some(ForPage::Ready));
            }
            other => self.hear_file(other),
        }
    }

    /// A host that answered once counts as a server, whatever it lacks.
    fn note_server(self, is_there: bool) {
        let known = self.has_server.get_untracked();
        if known != Some(is_there) && (is_there || known.is_none()) {
            self.has_server.set(Some(is_there));
        }
    }

    fn hear_file(self, message: Option<ForPage>) {
        if let Some(files) = self.files.get_value() {
            files.run(message);
        }
    }
}

/// Something that is asked again whenever the question changes.
pub(crate) struct Asked<T: Send + Sync + 'static> {
    answer: RwSignal<Option<Arc<T>>>,
    trouble: RwSignal<Option<RequestError>>,
    latest: StoredValue<u32>,
    is_open: RwSignal<bool>,
}

impl<T: Send + Sync + 'static> Clone for Asked<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Send + Sync + 'static> Copy for Asked<T> {}

impl<T: Send + Sync + 'static> Asked<T> {
    fn new() -> Asked<T> {
        Asked {
            answer: RwSignal::new(None),
            trouble: RwSignal::new(None),
            latest: StoredValue::new(0),
            is_open: RwSignal::new(true),
        }
    }

    fn hear(self, answer: Result<T, RequestError>) {
        self.is_open.set(false);
        match answer {
            Ok(answer) => {
                self.answer.set(Some(Arc::new(answer)));
                self.trouble.set(None);
            }
            Err(trouble) => {
                // What stands there stays true while the network is away.
                if trouble != RequestError::NoNetwork {
                    self.answer.set(None);
                }
                self.trouble.set(Some(trouble));
            }
        }
    }

    /// The answer, or the previous one while it is pending.
    pub(crate) fn get(self) -> Option<Arc<T>> {
        self.answer.get()
    }

    /// Why there is no answer, or no newer one.
    pub(crate) fn trouble(self) -> Option<RequestError> {
        self.trouble.get()
    }

    /// Whether the answer is on its way.
    pub(crate) fn is_open(self) -> bool {
        self.is_open.get()
    }
}

/// The page that a shared link led to, unless someone signed in by more.
pub(crate) fn shared() -> Option<String> {
    Kept::InTab.get(SHARED).filter(|_| kept_token().is_none())
}

/// The token that this tab has, or else the browser.
fn kept_token() -> Option<String> {
    Kept::InTab.get(TOKEN).or_else(|| Kept::InBrowser.get(TOKEN))
}

fn forget_token() {
    Kept::InTab.delete(TOKEN);
    Kept::InBrowser.delete(TOKEN);
}

/// Removes `#token=…` or `#share=…` from the address, so that it is neither copied with the link nor kept in the
/// history.
fn take_secret() {
    let location = window().location();
    let hash = location.hash().unwrap_or_default();
    for (mark, key) in [("#token=", TOKEN), ("#share=", SHARE)] {
        let Some(secret) = hash.strip_prefix(mark) else { continue };
        Kept::InTab.set(key, secret);
        let path = location.pathname().unwrap_or_default() + &location.search().unwrap_or_default();
        if key == SHARE {
            Kept::InTab.set(SHARED, &path);
        }
        if let Ok(history) = window().history() {
            let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&path));
        }
    }
}
