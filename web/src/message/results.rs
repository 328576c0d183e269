//! Messages between the pages of results and their worker.

use super::WorkerMessage;
use super::refusal::Refusal;
use serde::{Deserialize, Serialize};
use trainplan_shared::api::{LogFault, LogLines, RunState};
use trainplan_shared::compare::Verdict;
use trainplan_shared::log::{Ending, Status};
use trainplan_shared::tables::PageCell;

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
        /// What to show of it.
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
    /// The time lines whose newest run is a regression.
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

/// The format of a saved table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TableFormat {
    Csv,
    Json,
}

impl TableFormat {
    /// Returns the extension of the file's name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            TableFormat::Csv => "csv",
            TableFormat::Json => "json",
        }
    }
}

/// The formats of a comparison's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ComparisonFormat {
    Csv,
    Json,
    Markdown,
    Html,
}

impl ComparisonFormat {
    /// Returns the extension of the file's name.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            ComparisonFormat::Csv => "csv",
            ComparisonFormat::Json => "json",
            ComparisonFormat::Markdown => "md",
            ComparisonFormat::Html => "html",
        }
    }
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

/// What a user may do. Each scope includes the ones before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    #[default]
    None,
    Read,
    Upload,
    Admin,
}

/// The outcome of an upload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UploadSummary {
    /// The number of new results.
    pub(crate) new: usize,
    /// The number of results that the server had.
    pub(crate) known: usize,
    /// The rejected files, each with the reason.
    pub(crate) refused: Vec<String>,
    /// The paths of new results whose recipe is unknown, so that History can't show them.
    pub(crate) without_recipe: Vec<String>,
}

/// The progress of an upload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct UploadProgress {
    /// The number of the current file, from 1, and of all files.
    pub(crate) file: usize,
    pub(crate) files: usize,
    /// The percentage of the logs' bytes that arrived.
    pub(crate) percent: u32,
    /// Whether the connection is lost and the upload retries.
    pub(crate) is_broken: bool,
}

/// What changed on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerChange {
    /// Runs were added or deleted.
    Runs,
    /// An unfinished run made progress.
    Live,
}

/// What a table says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    /// What it is about.
    pub(crate) caption: String,
    /// The columns.
    pub(crate) head: Vec<String>,
    /// The rows; the first cell names its row.
    pub(crate) rows: Vec<Vec<String>>,
}

/// A page of the server's runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Runs {
    pub(crate) rows: Vec<Row>,
    /// The cursor of the next page, if there is one.
    pub(crate) next: Option<String>,
}

/// A comparison of runs, in the sentences of the page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// The result in a sentence or two.
    pub(crate) headline: String,
    /// The line of the log with the failure of a run alone.
    pub(crate) failure_line: Option<u64>,
    /// What the colour shows.
    pub(crate) outcome: Outcome,
    /// Why runs are not comparable.
    pub(crate) unlike: Vec<String>,
    /// Notes on the comparison.
    pub(crate) notes: Vec<String>,
    /// How the intervals are computed.
    pub(crate) method: String,
    /// The mappings with their repeats pooled; without rows if no mapping has repeats.
    pub(crate) pooled: Table,
    /// Which steps of a run alone were scored, and by whose choice.
    pub(crate) scored: String,
    /// The runs, the reference first.
    pub(crate) rows: Vec<Row>,
    pub(crate) step_time: Plot,
    pub(crate) loss: Plot,
    /// The configurations, the differences first.
    pub(crate) settings: Vec<Setting>,
    /// The ids that were not found, each with the reason.
    pub(crate) missing: Vec<(String, String)>,
    /// The ids of runs on the server.
    pub(crate) on_server: Vec<String>,
    /// The origin of a run alone.
    pub(crate) source: Source,
}

/// What a comparison came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// A scored run alone, without a published number.
    #[default]
    Alone,
    /// A scored run alone, at least about as fast as published.
    AsPublished,
    /// A scored run alone, somewhat slower than published.
    BelowPublished,
    /// A scored run alone, much slower than published.
    FarBelowPublished,
    /// A run alone that was not scored.
    Unscored(Status),
    /// Several runs, with the worst verdict on any of them.
    Compared(Verdict),
}

impl Outcome {
    /// Returns the id that the styles use.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Outcome::Alone => "alone",
            Outcome::AsPublished => "as_published",
            Outcome::BelowPublished => "below_published",
            Outcome::FarBelowPublished => "far_below_published",
            Outcome::Unscored(status) => status.id(),
            Outcome::Compared(verdict) => verdict.id(),
        }
    }
}

/// The origin of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Its log's path.
    pub(crate) path: String,
    /// When it began, or else when its log was last written, and by which clock, in words.
    pub(crate) ran: String,
    /// The recipe that it matches.
    pub(crate) recipe: String,
    /// Whether a campaign launched it.
    pub(crate) is_carried: bool,
}

/// Curves over the steps of runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plot {
    pub(crate) lines: Vec<PlotLine>,
    pub(crate) levels: Vec<PlotLevel>,
    /// The steps that are scored, if they are the same of all runs.
    pub(crate) window: Option<(f64, f64)>,
    /// Whether the values are step times, whose chart shows at least 10 % on both sides of the median.
    pub(crate) is_time: bool,
}

/// A run's curve.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlotLine {
    pub(crate) name: String,
    pub(crate) steps: Vec<f64>,
    pub(crate) values: Vec<f64>,
}

/// A level to compare curves with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlotLevel {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// Its interval, if it has one.
    pub(crate) interval: Option<(f64, f64)>,
}

/// A key of the runs' configurations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) group: String,
    pub(crate) label: String,
    /// The value of each run; empty if unknown.
    pub(crate) values: Vec<String>,
    pub(crate) differs: bool,
}

/// A run that has no result yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Its cluster, its jobs.
    pub(crate) place: String,
    pub(crate) recipe: String,
    pub(crate) state: RunState,
    pub(crate) step: Option<f64>,
    pub(crate) steps: Option<f64>,
    pub(crate) step_time: String,
    pub(crate) planned: String,
    /// Whether it ended.
    pub(crate) is_over: bool,
    /// The time of the last report, or of the end.
    pub(crate) seen: String,
}

/// The step times of one scenario on one cluster over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimeLine {
    /// A unique key.
    pub(crate) key: String,
    /// The title.
    pub(crate) title: String,
    /// The recipe and the cluster, if known.
    pub(crate) recipe: Option<String>,
    pub(crate) cluster: Option<String>,
    /// The runs, the oldest first.
    pub(crate) points: Vec<TimePoint>,
    /// The published step time, if there is one.
    pub(crate) published_s: Option<f64>,
    /// By how much the newest run is slower, as a sentence; none if it is not a regression.
    pub(crate) slower: Option<String>,
    /// The newest run judged by the thresholds that could judge it.
    pub(crate) checks: Vec<CheckLine>,
    /// What the server keeps about its regression.
    pub(crate) alert: Option<RunAlert>,
}

/// The alerts that the server sent about a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunAlert {
    /// The run's id.
    pub(crate) run: String,
    /// Who acknowledged them, when and why, as a sentence; none if nobody did.
    pub(crate) acknowledged: Option<String>,
}

impl TimeLine {
    /// Returns whether the newest run is a regression.
    pub(crate) fn is_regression(&self) -> bool {
        self.checks.iter().any(|check| check.is_regression)
    }

    /// Returns whether somebody acknowledged that.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.alert.as_ref().is_some_and(|alert| alert.acknowledged.is_some())
    }
}

/// The newest run of a time line judged by a threshold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckLine {
    /// The outcome with its numbers, as a clause.
    pub(crate) text: String,
    /// Whether it is a regression.
    pub(crate) is_regression: bool,
    /// The id of the first run after the lasting change that the threshold judges.
    pub(crate) first_changed: Option<String>,
}

/// A run in a time line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimePoint {
    pub(crate) id: String,
    /// When, in milliseconds since 1970, and in words.
    pub(crate) at_ms: f64,
    pub(crate) at: String,
    /// None if the run was not scored or is not comparable.
    pub(crate) step_time_s: Option<f64>,
    /// The scored step time, in words, if few steps are scored and the steady mean, which is compared, is not like it.
    pub(crate) scored: Option<String>,
    /// The usual step time around it, if the time line has a change.
    pub(crate) usual_s: Option<f64>,
    /// The change of the step time at this run, in words.
    pub(crate) change: Option<String>,
    /// Whether it is a regression.
    pub(crate) is_alert: bool,
}

/// A share link.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) id: String,
    /// The number of runs that it shows.
    pub(crate) runs: usize,
    pub(crate) expires_at: String,
}

/// A row of a table of runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The page's number of the file; 0 for stored runs.
    pub(crate) number: u32,
    /// The result's id, if it has one.
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) status: RowStatus,
    /// Why it is not scored or not comparable, and its notes.
    pub(crate) remarks: Vec<String>,
    /// The recipe of a stored run.
    pub(crate) recipe: Option<String>,
    /// The campaign that lists it, and its cluster, where it was launched from here.
    pub(crate) campaign: Option<String>,
    pub(crate) cluster: Option<String>,
    /// The cells of its table; none of a file that was not read.
    pub(crate) cells: Vec<PageCell>,
}

/// The status of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowStatus {
    /// The user stopped reading before this file was read.
    #[default]
    NotRead,
    /// The file was read.
    Read(Status),
    /// The file was read and scored, and its run ended early.
    Ended(Ending),
}

impl RowStatus {
    /// Returns the status of a run that ended so.
    pub(crate) fn of(status: Status, ending: Option<Ending>) -> Self {
        match ending.filter(|_| status == Status::Scored) {
            Some(ending) => RowStatus::Ended(ending),
            None => RowStatus::Read(status),
        }
    }

    /// Returns whether the run has a score.
    pub(crate) const fn is_scored(self) -> bool {
        matches!(self, RowStatus::Read(Status::Scored) | RowStatus::Ended(_))
    }

    /// Returns the id that the styles use.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            RowStatus::NotRead => "not_read",
            RowStatus::Read(status) => status.id(),
            RowStatus::Ended(Ending::Failed | Ending::Hung) => "then_failed",
            RowStatus::Ended(Ending::Stopped) => "then_stopped",
        }
    }

    /// Returns the status in words.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            RowStatus::NotRead => "not read",
            RowStatus::Read(status) => status.title(),
            RowStatus::Ended(ending) => ending.status_title(),
        }
    }
}

impl Row {
    /// Returns the value in the column of this key; none where it is not known.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.cell(key).map(|cell| cell.text.as_str()).filter(|text| !text.is_empty())
    }

    /// Returns the cell in the column of this key.
    pub(crate) fn cell(&self, key: &str) -> Option<&PageCell> {
        self.cells.iter().find(|cell| cell.key == key)
    }
}

/// Every step of a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogCurve {
    /// As the log numbers them.
    pub(crate) labels: Vec<f64>,
    pub(crate) step_time_s: Vec<Option<f64>>,
    pub(crate) loss: Vec<Option<f64>>,
}

/// A file to save.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) name: String,
    pub(crate) text: String,
}
