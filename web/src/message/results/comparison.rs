//! A comparison of runs, with its charts.

use super::rows::{Row, Table};
use serde::{Deserialize, Serialize};
use trainplan_shared::compare::Verdict;
use trainplan_shared::log::Status;

/// A comparison of runs, in the sentences of the page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// The result in a sentence or two.
    pub(crate) headline: String,
    /// The result with the full names of the runs, if some are short in the headline.
    pub(crate) headline_in_full: Option<String>,
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
