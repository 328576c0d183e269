//! The dropped files: waiting, being read by the worker, or read. They outlive the page, so that reading continues while
//! another page is open.

use crate::components::copy::as_file;
use crate::desk::Desk;
use crate::files::FoundFile;
use crate::message::results::{ForPage, ForWorker};
use crate::message::{LogCurve, Row, RowStatus, TableFormat, UploadProgress};
use leptos::prelude::*;
use std::sync::Arc;
use trainplan_shared::log::Status;
use trainplan_shared::result::SettingsFile;

/// The status of a file that can't be read.
const UNREADABLE: RowStatus = RowStatus::Read(Status::Unreadable);

/// The number of a file that lists settings of a job.
const NO_ENTRY: u32 = u32::MAX;

/// A dropped file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    number: u32,
    pub(super) path: String,
    bytes: f64,
    state: State,
}

/// The state of a dropped file.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// It waits for others.
    Waiting,
    /// This many bytes are read.
    Reading(f64),
    /// It is read, or can't be read.
    Settled(Arc<Row>, Arc<LogCurve>),
}

/// All dropped files, and the worker that reads them one by one.
#[derive(Clone, Copy)]
pub(crate) struct Entries {
    entries: RwSignal<Vec<Entry>>,
    /// The waiting files, the next one first.
    queue: StoredValue<Vec<(u32, FoundFile)>, LocalStorage>,
    desk: Desk,
    /// The window, convention, recipe and GPU type, as a query.
    query: RwSignal<String>,
    /// Whether the last attempt to save failed.
    save_failed: RwSignal<bool>,
    /// The progress of an upload, while there is one.
    pub(super) sent: RwSignal<Option<UploadProgress>>,
}

impl Entries {
    /// For the whole app.
    pub(crate) fn provide(desk: Desk) {
        let entries = Entries {
            entries: RwSignal::new(Vec::new()),
            queue: StoredValue::new_local(Vec::new()),
            desk,
            query: RwSignal::new(String::new()),
            save_failed: RwSignal::new(false),
            sent: RwSignal::new(None),
        };
        provide_context(entries);
        desk.hear_of_files(move |message| entries.hear(message));
        // Warn before the tab is closed, because dropped files would be lost.
        window_event_listener(leptos::ev::beforeunload, move |event| {
            if entries.entries.with_untracked(|entries| !entries.is_empty()) {
                event.prevent_default();
            }
        });
    }

    pub(crate) fn of_app() -> Entries {
        #[expect(clippy::expect_used, reason = "the app provides it before its pages are made")]
        use_context().expect("the app provides its entries")
    }

    /// Whether there are no entries.
    pub(super) fn is_empty(self) -> bool {
        self.entries.with(Vec::is_empty)
    }

    /// How many files are settled, as a signal that changes only with this number.
    pub(crate) fn settled(self) -> Memo<usize> {
        Memo::new(move |_| {
            self.entries.with(|entries| entries.iter().filter(|entry| !entry.is_open()).count())
        })
    }

    /// What to show of every file that is settled, by path.
    pub(crate) fn rows(self) -> Vec<(Arc<Row>, Arc<LogCurve>)> {
        let mut rows: Vec<_> = self.entries.with(|entries| {
            let settled = entries.iter().filter_map(|entry| match &entry.state {
                State::Settled(row, curve) => Some((row.clone(), curve.clone())),
                State::Waiting | State::Reading(_) => None,
            });
            settled.collect()
        });
        rows.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        rows
    }

    /// Reads files as well, in the order given. Those that list settings of jobs come first, because they are read with the logs.
    pub(super) fn take(self, found: Vec<FoundFile>) {
        self.entries.update(|entries| {
            for found in found {
                if SettingsFile::of_path(&found.path).is_some() {
                    self.queue.update_value(|queue| queue.insert(0, (NO_ENTRY, found)));
                    continue;
                }
                let number = entries.len() as u32;
                entries.push(Entry {
                    number,
                    path: found.path.clone(),
                    bytes: found.file.size(),
                    state: State::Waiting,
                });
                self.queue.update_value(|queue| queue.push((number, found)));
            }
        });
        self.read_next();
    }

    /// Lists something that gave no file.
    pub(super) fn refuse(self, reason: &str) {
        self.entries.update(|entries| {
            let number = entries.len() as u32;
            let path = "Dropped items".to_string();
            entries.push(Entry {
                number,
                bytes: 0.0,
                state: unread(number, &path, UNREADABLE, reason),
                path,
            });
        });
    }

    /// Stops reading. Waiting files are listed as not read, and read ones stay.
    pub(super) fn cancel(self) {
        self.desk.say(&ForWorker::Stop);
        self.give_up(RowStatus::NotRead, "Reading was stopped.");
    }

    /// Forgets all files.
    pub(super) fn clear(self) {
        self.desk.say(&ForWorker::Clear);
        self.entries.set(Vec::new());
    }

    /// Whether some file is not read yet.
    pub(super) fn is_busy(self) -> bool {
        self.entries.with(|entries| entries.iter().any(Entry::is_open))
    }

    /// Files read, files in all, and the one being read with its percentage.
    pub(super) fn progress(self) -> (usize, usize, Option<(String, u32)>) {
        self.entries.with(|entries| {
            let done = entries.iter().filter(|entry| !entry.is_open()).count();
            let now = entries.iter().find_map(|entry| match entry.state {
                State::Reading(bytes) if entry.bytes > 0.0 => {
                    Some((entry.path.clone(), (bytes / entry.bytes * 100.0) as u32))
                }
                _ => None,
            });
            (done, entries.len(), now)
        })
    }

    /// Looks at the results as a query of the page's address has it.
    pub(super) fn look(self, query: String) {
        if self.query.get_untracked() != query {
            self.query.set(query);
            self.say_view();
        }
    }

    /// Has the worker write a table of all files.
    pub(super) fn save(self, format: TableFormat) {
        let said = self.desk.say(&ForWorker::Save { format });
        self.save_failed.set(!said);
    }

    /// Has the worker write the result files.
    pub(super) fn save_results(self) {
        let said = self.desk.say(&ForWorker::SaveResults);
        self.save_failed.set(!said);
    }

    /// Whether the last attempt to save failed.
    pub(super) fn save_failed(self) -> bool {
        self.save_failed.get()
    }

    fn say_view(self) {
        self.desk.say(&ForWorker::View { query: self.query.get_untracked() });
    }

    /// Hands waiting files to the worker, until it reads one that has an entry.
    fn read_next(self) {
        let is_ready = untrack(|| self.desk.is_ready());
        while is_ready && self.reading().is_none() && !self.queue.with_value(Vec::is_empty) {
            let Some((number, found)) = self.queue.try_update_value(|queue| queue.remove(0)) else { return };
            self.set_state(number, State::Reading(0.0));
            if !self.desk.hand_over(number, &found) {
                self.set_state(
                    number,
                    unread(number, &found.path, UNREADABLE, "The browser couldn't pass it to the worker."),
                );
            }
        }
    }

    fn hear(self, message: Option<ForPage>) {
        match message {
            None => self.give_up(UNREADABLE, "The worker stopped."),
            Some(ForPage::Ready) => {
                self.say_view();
                self.read_next();
            }
            Some(ForPage::Progress(bytes)) => {
                if let Some(number) = self.reading() {
                    self.set_state(number, State::Reading(bytes));
                }
            }
            Some(ForPage::Read { row, curve }) => {
                self.set_state(row.number, State::Settled(Arc::new(row), Arc::new(curve)));
                self.read_next();
            }
            Some(ForPage::Rows(rows)) => self.entries.update(|entries| {
                for row in rows {
                    let entry = entries.iter_mut().find(|entry| entry.number == row.number);
                    if let Some(State::Settled(old, _)) = entry.map(|entry| &mut entry.state) {
                        *old = Arc::new(row);
                    }
                }
            }),
            Some(ForPage::Saved(files)) => {
                let failed = files.iter().any(|file| as_file(&file.text, &file.name).is_err());
                self.save_failed.set(failed || files.is_empty());
            }
            Some(ForPage::UploadProgress(sent)) => self.sent.set(Some(sent)),
            // Answers for other parts of the page.
            Some(_) => {}
        }
    }

    /// The file that the worker has.
    fn reading(self) -> Option<u32> {
        self.entries.with_untracked(|entries| {
            let entry = entries.iter().find(|entry| matches!(entry.state, State::Reading(_)))?;
            Some(entry.number)
        })
    }

    /// Lists everything that waits as unread.
    fn give_up(self, status: RowStatus, reason: &str) {
        self.queue.set_value(Vec::new());
        self.entries.update(|entries| {
            for entry in entries.iter_mut().filter(|entry| entry.is_open()) {
                entry.state = unread(entry.number, &entry.path, status, reason);
            }
        });
    }

    /// How far a file is; one that was cleared meanwhile is of no interest any more.
    fn set_state(self, number: u32, state: State) {
        self.entries.update(|entries| {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.number == number) {
                entry.state = state;
            }
        });
    }
}

impl Entry {
    fn is_open(&self) -> bool {
        matches!(self.state, State::Waiting | State::Reading(_))
    }
}

/// A file without a result, because it can't be read or the user stopped reading.
fn unread(number: u32, path: &str, status: RowStatus, reason: &str) -> State {
    let row =
        Row { number, path: path.to_string(), status, remarks: vec![reason.to_string()], ..Row::default() };
    State::Settled(Arc::new(row), Arc::default())
}
