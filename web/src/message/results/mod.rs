//! Messages between the pages of results and their worker: what either side says, and the values within, one file per subject.

mod comparison;
mod history;
mod rows;
mod saved;
mod server;

pub(crate) use comparison::*;
pub(crate) use history::*;
pub(crate) use rows::*;
pub(crate) use saved::*;
pub(crate) use server::*;

use super::WorkerMessage;
use super::refusal::Refusal;
use serde::{Deserialize, Serialize};
use trainplan_shared::api::{LogFault, LogLines};

/// One of the logs that a file is joined from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogSection {
    /// The name of its file.
    pub(crate) name: String,
    /// Its length in bytes, which may be compressed.
    pub(crate) bytes: f64,
}

/// To the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForWorker {
    /// Read the file that comes next.
    Take {
        /// The page's number of the file.
        number: u32,
        /// The file's path.
        path: String,
        /// The logs that it is joined from; empty for a single log.
        parts: Vec<LogSection>,
    },
    /// Stop reading; the current file counts as not read.
    Stop,
    /// Forget all files.
    Clear,
    /// Use the window, convention and recipe of this query.
    View {
        /// The query.
        query: String,
    },
    /// Write a table of all files.
    Save {
        /// The table's format.
        format: TableFormat,
    },
    /// Write the result files.
    SaveResults,
    /// Send this token to the server; no token if it is empty.
    SignIn {
        /// The token.
        token: String,
    },
    /// Report changes on the server.
    Listen,
    /// Answer a question.
    Ask {
        /// What the page calls it.
        number: u32,
        /// The question.
        question: Question,
    },
}

/// To the page.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForPage {
    /// The worker takes files now.
    Ready,
    /// This many bytes of the file are read.
    Progress(f64),
    /// The file is read.
    Read {
        /// Its row in the table.
        row: Row,
        /// Its steps.
        curve: LogCurve,
    },
    /// The rows of all files, after a change of the view.
    Rows(Vec<Row>),
    /// The files that were asked for.
    Saved(Vec<Saved>),
    /// The answer to a question, or an error.
    Answer {
        /// What the page calls the question.
        number: u32,
        /// The answer.
        answer: Result<Answer, RequestError>,
    },
    /// The progress of an upload.
    UploadProgress(UploadProgress),
    /// Whether the server reports its changes.
    Listening(bool),
    /// Something changed on the server.
    Changed(ServerChange),
}

impl WorkerMessage for ForWorker {}
impl WorkerMessage for ForPage {}

/// A question of a page about runs. Queries are those of the page's address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// A page of the server's runs, by a query of the server's.
    Runs {
        /// The query.
        query: String,
    },
    /// The filters of a query that match no run by themselves.
    Unmet {
        /// The query.
        query: String,
    },
    /// A comparison of runs, the reference first; of the newest runs without ids.
    Comparison {
        /// Their ids.
        ids: Vec<String>,
        /// The window, convention and recipe.
        query: String,
    },
    /// A comparison of the newest run with the comparable ones before it, the oldest first.
    Newest,
    /// A comparison as a file.
    ComparisonFile {
        /// Their ids.
        ids: Vec<String>,
        /// The window, convention and recipe.
        query: String,
        /// The file's format.
        format: ComparisonFormat,
    },
    /// The result file of a run.
    ResultFile {
        /// Its id.
        id: String,
    },
    /// The versions of a run's score.
    Scores {
        /// The run's id.
        id: String,
    },
    /// Lines of a run's log.
    Lines {
        /// The run's id.
        id: String,
        /// The first, from 1.
        from: u64,
        /// Only those with this text, if any.
        find: String,
    },
    /// What is wrong with the server's copy of a run's log.
    LogFault {
        /// The run's id.
        id: String,
    },
    /// A run's log, as something that the browser can save.
    LogFile {
        /// The run's id.
        id: String,
    },
    /// The unfinished runs.
    Live,
    /// Time lines of step times, by a query of the server's.
    History {
        /// The query.
        query: String,
    },
    /// Upload what was dropped.
    Upload,
    /// Save the recipe of a run on the server.
    Rescore {
        /// Its id.
        id: String,
        /// The recipe.
        recipe: String,
    },
    /// Delete a run from the server.
    Delete {
        /// Its id.
        id: String,
    },
    /// Acknowledge the alerts of a run.
    Acknowledge {
        /// The run's id.
        run: String,
        /// Why it was slow; none to withdraw the acknowledgement.
        reason: Option<String>,
    },
    /// The scope of the signed-in user.
    Scope,
    /// The time lines with an open regression.
    Regressions,
    /// The share link that the guest uses.
    Opened,
    /// The active share links.
    Shares,
    /// Share runs.
    Share {
        /// Their ids.
        ids: Vec<String>,
        /// For how long.
        days: u32,
    },
    /// Set what dropped logs ran.
    Identify {
        /// Their ids.
        ids: Vec<String>,
        /// The scenario fields, as a query; none if the logs say it themselves.
        query: String,
    },
    /// Check the recipe and the GPU type that are set for logs.
    LogFields {
        /// The two, as a query.
        query: String,
    },
    /// Revoke a share link.
    Revoke {
        /// The id of what was shared.
        id: String,
    },
}

/// The answer to a page's question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Runs(Runs),
    /// The keys of filters.
    Unmet(Vec<String>),
    Comparison(Box<Compared>),
    /// To save.
    File(Saved),
    Scores(Table),
    Lines(LogLines),
    /// None if no check found a fault.
    LogFault(Option<LogFault>),
    /// The address of something that the browser can save.
    Address(String),
    Live(Vec<LiveRun>),
    History(Vec<TimeLine>),
    UploadSummary(UploadSummary),
    Scope(Scope),
    Opened(Share),
    Shares(Vec<Share>),
    /// What is wrong with the fields, if anything is.
    Checked(Option<Refusal>),
    /// The wrong fields.
    Wrong(Vec<Refusal>),
    /// A new share link with its secret, which is shown once.
    Shared {
        id: String,
        secret: String,
    },
    Done,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequestError {
    /// The page comes from a host without results.
    NoServer,
    /// The network failed. The request may succeed later.
    NoNetwork,
    /// The server requires a token.
    SignIn(String),
    /// Another error, in words.
    Other(String),
}
