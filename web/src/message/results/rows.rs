//! Tables, and the rows of runs in them.

use serde::{Deserialize, Serialize};
use trainplan_shared::log::{Ending, Status};
use trainplan_shared::tables::PageCell;

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
