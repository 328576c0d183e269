//! What the pages that show what ran and the worker say to each other.

use super::WorkerMessage;
use super::plan::Refusal;
use serde::{Deserialize, Serialize};
use trainplan_shared::api::LogLines;
use trainplan_shared::tables::PageCell;

/// To the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForWorker {
    /// Read the file that comes next.
    Take {
        /// What the page calls it.
        number: u32,
        /// Where it was.
        path: String,
    },
    /// Stop reading; the file that is being read counts as not read.
    Stop,
    /// Forget all files.
    Clear,
    /// Look at the results as this query of the page's address has it.
    View {
        /// The query.
        query: String,
    },
    /// Write files: `csv`, `json` or `results`.
    Save {
        /// Which.
        form: String,
    },
    /// Show this to the server, so that it answers; nothing where it is empty.
    SignIn {
        /// The token.
        token: String,
    },
    /// Say what changes on the server, if it tells.
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
    /// So many bytes of the file are read.
    Progress(f64),
    /// The file is read.
    Read {
        /// What to show of it.
        row: Row,
        /// Its steps.
        curve: Curve,
    },
    /// What to show of every file, looked at in another way.
    Rows(Vec<Row>),
    /// The files that were asked for.
    Saved(Vec<Saved>),
    /// The answer to a question, or why there is none.
    Answer {
        /// What the page calls the question.
        number: u32,
        /// The answer.
        answer: Result<Answer, Trouble>,
    },
    /// How far an upload is.
    Sent(Sent),
    /// Whether the server tells of itself what changes.
    Listening(bool),
    /// Something changed on the server.
    Changed(Change),
}

impl WorkerMessage for ForWorker {}
impl WorkerMessage for ForPage {}

/// What a page asks of what ran. Queries are those of the page's address.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// A page of what the server has, by a query of its own.
    Runs {
        /// The query.
        query: String,
    },
    /// Which filters of such a query match no run, each by itself.
    Unmet {
        /// The query.
        query: String,
    },
    /// Runs beside each other, the reference first; the newest that there is to say if none is named.
    Comparison {
        /// Their ids.
        ids: Vec<String>,
        /// How to look at them.
        query: String,
    },
    /// The same as files: `csv` or `json`.
    ComparisonFile {
        /// Their ids.
        ids: Vec<String>,
        /// How to look at them.
        query: String,
        /// Which.
        form: String,
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
    /// A run's log, as something that the browser can save.
    LogFile {
        /// The run's id.
        id: String,
    },
    /// What is running.
    Live,
    /// How step times went over time, by a query of the server's.
    History {
        /// The query.
        query: String,
    },
    /// Upload what was dropped.
    Upload,
    /// Keep a run on the server as one of a recipe.
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
    /// What the server lets us do.
    Scope,
    /// The time lines whose newest run is a regression.
    Regressions,
    /// What the link opens by which someone came.
    Opened,
    /// The links that are shared.
    Shares,
    /// Share runs.
    Share {
        /// Their ids.
        ids: Vec<String>,
        /// For how long.
        days: u32,
    },
    /// Say what is wrong with the name of a recipe.
    Recipe {
        /// The name.
        text: String,
    },
    /// Share no longer.
    Revoke {
        /// The id of what was shared.
        id: String,
    },
}

/// What a page is answered.
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
    /// The address of something that the browser can save.
    Address(String),
    Live(Vec<LiveRun>),
    History(Vec<TimeLine>),
    Uploaded(Uploaded),
    Scope(Scope),
    Opened(Share),
    Shares(Vec<Share>),
    Recipe(Option<Refusal>),
    /// What was shared just now: its secret is told once.
    Shared {
        id: String,
        secret: String,
    },
    Done,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trouble {
    /// Whoever serves the page has no results: a static host, or an older server.
    NoServer,
    /// The network failed; it may work the next time.
    NoNetwork,
    /// The server wants to know who asks.
    SignIn(String),
    /// Something else, in words.
    Other(String),
}

/// What a server lets someone do, each more than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    #[default]
    None,
    Read,
    Upload,
    Admin,
}

/// What became of an upload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Uploaded {
    /// How many results came to the server.
    pub(crate) new: usize,
    /// How many it had.
    pub(crate) known: usize,
    /// What it did not take, each with the reason.
    pub(crate) refused: Vec<String>,
}

/// How far an upload is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Which of the files is on its way, from 1, and how many there are.
    pub(crate) file: usize,
    pub(crate) files: usize,
    /// How many of all logs' bytes are there.
    pub(crate) percent: u32,
    /// Whether the connection broke, and it is about to try again.
    pub(crate) is_broken: bool,
}

/// What changed on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// Results came or went.
    Runs,
    /// A run went on.
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

/// A page of what the server has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Runs {
    pub(crate) rows: Vec<Row>,
    /// Where the next page starts, if there is one.
    pub(crate) next: Option<String>,
}

/// Runs beside each other. Sentences are made where the numbers are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// The result in a sentence or two.
    pub(crate) headline: String,
    /// The line of the log with the failure of a run alone.
    pub(crate) failure_line: Option<u64>,
    /// The same as one word, for its colour: `faster`, `not_comparable`, …
    pub(crate) verdict: String,
    /// Why they should not be compared.
    pub(crate) unlike: Vec<String>,
    /// What else to know.
    pub(crate) notes: Vec<String>,
    /// How the intervals are made.
    pub(crate) method: String,
    /// Which steps of a run alone were scored, and by whose choice.
    pub(crate) scored: String,
    /// The runs, the reference first.
    pub(crate) rows: Vec<Row>,
    pub(crate) step_time: Plot,
    pub(crate) loss: Plot,
    /// What is known of them, first what differs.
    pub(crate) settings: Vec<Setting>,
    /// Ids of which there is no result, each with the reason.
    pub(crate) missing: Vec<(String, String)>,
    /// Runs that the server has.
    pub(crate) on_server: Vec<String>,
    /// Where a run alone comes from.
    pub(crate) source: Source,
}

/// Where a run comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// Its log's path.
    pub(crate) path: String,
    /// When it ran, or else when its log was last written to, in words.
    pub(crate) ran: String,
    /// The recipe that it is a run of.
    pub(crate) recipe: String,
    /// Whether a campaign carried it out.
    pub(crate) is_carried: bool,
}

/// Curves over the steps of runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plot {
    pub(crate) lines: Vec<PlotLine>,
    pub(crate) levels: Vec<PlotLevel>,
    /// The steps that are scored, if they are the same of all runs.
    pub(crate) window: Option<(f64, f64)>,
}

/// A run's curve.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlotLine {
    pub(crate) name: String,
    pub(crate) steps: Vec<f64>,
    pub(crate) values: Vec<f64>,
}

/// A value that curves have to be held against.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlotLevel {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// Its interval, if it has one.
    pub(crate) interval: Option<(f64, f64)>,
}

/// Something that is known of runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setting {
    pub(crate) group: String,
    pub(crate) label: String,
    /// One for each run; what is not known is empty.
    pub(crate) values: Vec<String>,
    pub(crate) differs: bool,
}

/// A run that has no result yet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LiveRun {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Its cluster, its jobs.
    pub(crate) place: String,
    pub(crate) recipe: String,
    pub(crate) state: String,
    pub(crate) step: Option<f64>,
    pub(crate) steps: Option<f64>,
    pub(crate) step_time: String,
    pub(crate) planned: String,
    /// Whether it ended.
    pub(crate) is_over: bool,
    /// When it was heard of last; of one that ended, when it did.
    pub(crate) seen: String,
}

/// How the step time of one thing went over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TimeLine {
    /// What tells it from every other.
    pub(crate) key: String,
    /// What it is of.
    pub(crate) title: String,
    /// The recipe and the cluster, where they are known.
    pub(crate) recipe: Option<String>,
    pub(crate) cluster: Option<String>,
    /// The runs, the oldest first.
    pub(crate) points: Vec<TimePoint>,
    /// The published step time, if there is one.
    pub(crate) published_s: Option<f64>,
    /// The newest run judged by the thresholds that could judge it.
    pub(crate) checks: Vec<CheckLine>,
}

impl TimeLine {
    /// Returns whether the newest run is a regression.
    pub(crate) fn is_regression(&self) -> bool {
        self.checks.iter().any(|check| check.is_regression)
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
    /// None of a run that was not scored, or can't stand beside others.
    pub(crate) step_time_s: Option<f64>,
    /// What is usual around it, where the step time changed at some time.
    pub(crate) usual_s: Option<f64>,
    /// That the step time changed here, in words.
    pub(crate) change: Option<String>,
    /// Whether it is a regression.
    pub(crate) is_alert: bool,
}

/// A link that lets others see runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) id: String,
    /// How many runs it opens.
    pub(crate) runs: usize,
    pub(crate) expires_at: String,
}

/// What the page shows of a file or a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// What the page calls the file; 0 of what is none.
    pub(crate) number: u32,
    /// The result's id, if it has one.
    pub(crate) id: String,
    pub(crate) path: String,
    /// By its name on the command line: `scored`, `no_data`, …
    pub(crate) status: String,
    /// Why it is not scored, not comparable, or what else to know.
    pub(crate) remarks: Vec<String>,
    /// The campaign that lists it, and its cluster, where it was launched from here.
    pub(crate) campaign: Option<String>,
    pub(crate) cluster: Option<String>,
    /// The cells of its table; none of a file that was not read.
    pub(crate) cells: Vec<PageCell>,
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
pub(crate) struct Curve {
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
