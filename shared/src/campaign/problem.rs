//! What is wrong with a file that a person wrote.

use crate::message::Front;
use crate::problem::{Problem, most_alike};
use serde::Serialize;
use std::fmt;

/// One mistake in a campaign or in the profiles of clusters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CampaignProblem {
    /// The line, counted from 1.
    pub line: u32,
    /// The key, with the tables that it stands in: `run.nightly.tp`; empty for the file itself.
    pub key: String,
    /// What was given; empty if nothing was, or if it may be a secret.
    pub given: String,
    /// What is wrong with it, as a clause.
    pub what: String,
    /// What is allowed, as a clause; empty where `what` says it already.
    pub allowed: String,
    /// The nearest that works, if any is known.
    pub nearest: Vec<String>,
    /// Whether `what` is a whole sentence with everything that there is to say.
    #[serde(skip)]
    pub(super) sentence: bool,
}

impl CampaignProblem {
    pub(super) fn new(line: u32, key: impl Into<String>, what: impl Into<String>) -> CampaignProblem {
        CampaignProblem {
            line,
            key: key.into(),
            given: String::new(),
            what: what.into(),
            allowed: String::new(),
            nearest: Vec::new(),
            sentence: false,
        }
    }

    /// Says what was given, so that a terminal shows it and nothing else happens.
    pub(super) fn given(mut self, given: &str) -> CampaignProblem {
        self.given = printable(given);
        self
    }

    pub(super) fn allowed(mut self, allowed: impl Into<String>) -> CampaignProblem {
        self.allowed = allowed.into();
        self
    }

    pub(super) fn nearest(mut self, nearest: impl fmt::Display) -> CampaignProblem {
        self.nearest = vec![nearest.to_string()];
        self
    }

    /// Names the known ones, and of these the one that is spelt most alike.
    pub(super) fn known<'a>(mut self, typed: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        self.nearest = most_alike(typed, known.iter().copied()).map(String::from).into_iter().collect();
        self.allowed = known.join(", ");
        self
    }

    /// The same that a flag or a field of the page would say, at its place in the file.
    pub(super) fn of(line: u32, key: impl Into<String>, problem: Problem) -> CampaignProblem {
        let sentence = true;
        let given = printable(&problem.given);
        CampaignProblem {
            sentence,
            given,
            ..CampaignProblem::new(line, key, printable(&problem.text(Front::File)))
        }
    }
}

/// A text without what would act on a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() }).collect()
}

impl fmt::Display for CampaignProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        if self.sentence {
            return f.write_str(&self.what);
        }
        if !self.given.is_empty() {
            write!(f, "\"{}\" ", self.given)?;
        }
        f.write_str(&self.what)?;
        if !self.nearest.is_empty() {
            write!(f, "; nearest: {}", self.nearest.join(" or "))?;
        }
        match self.allowed.is_empty() {
            true => Ok(()),
            false => write!(f, "; allowed: {}", self.allowed),
        }
    }
}

impl std::error::Error for CampaignProblem {}
