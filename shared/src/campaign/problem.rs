//! Mistakes in a campaign file or in the cluster profiles.

use crate::benchmarks::with_named_models;
use crate::message::Front;
use crate::problem::{Problem, most_alike};
use crate::text::printable;
use std::fmt;

/// A mistake in a campaign file or in the cluster profiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CampaignProblem {
    /// The line, counted from 1.
    pub line: u32,
    /// The key with its tables, such as `run.nightly.tp`; empty for the file itself.
    pub key: String,
    /// What is wrong and what to do: sentences without secrets or control characters.
    pub message: String,
}

impl CampaignProblem {
    pub(super) fn new(line: u32, key: impl Into<String>, message: impl AsRef<str>) -> CampaignProblem {
        CampaignProblem { line, key: key.into(), message: printable(message.as_ref()) }
    }

    /// Returns the problem of a word that is not one of `known`, with the closest of them.
    pub(super) fn unknown<'a>(
        line: u32,
        key: impl Into<String>,
        message: impl Into<String>,
        typed: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> CampaignProblem {
        const MOST_LISTED: usize = 12;
        let known: Vec<&str> = known.into_iter().collect();
        let mut message = message.into();
        if let Some(closest) = most_alike(typed, known.iter().copied()) {
            message += &format!(" Did you mean {closest}?");
        }
        if (1..=MOST_LISTED).contains(&known.len()) {
            message += &format!(" Allowed: {}.", known.join(", "));
        }
        CampaignProblem::new(line, key, message)
    }

    /// Returns the problem of a field, at its place in the file. For an unknown model, it names the most common models.
    pub(super) fn of(line: u32, key: impl Into<String>, problem: &Problem) -> CampaignProblem {
        CampaignProblem::new(line, key, with_named_models(problem.clone()).text(Front::File))
    }
}

impl fmt::Display for CampaignProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for CampaignProblem {}
