//! Campaigns: files with runs to carry out, which the page writes, users edit and the runner reads.
//!
//! Writing is always available. Reading, the cluster profiles and plans need the feature `campaign`, which
//! the browser doesn't have.

#[cfg(feature = "campaign")]
mod certify;
#[cfg(feature = "campaign")]
mod clusters;
mod environment;
#[cfg(feature = "campaign")]
mod parse;
#[cfg(feature = "campaign")]
mod plan;
#[cfg(feature = "campaign")]
mod problem;
#[cfg(feature = "campaign")]
mod read;
#[cfg(all(test, feature = "campaign"))]
mod tests;
mod write;

#[cfg(feature = "campaign")]
pub use certify::{
    Certificate, CertifiedRun, LEAST_SPEED_PERCENT, ReferenceSource, RunReference, RunVerdict,
    UntestedReason, UntestedRecipe, certification, untested,
};
#[cfg(feature = "campaign")]
pub use clusters::{Cluster, Clusters, Installation, UsedPath};
pub use environment::{Env, Secret, VariableValue};
#[cfg(feature = "campaign")]
pub use parse::CampaignLines;
#[cfg(feature = "campaign")]
pub use plan::{Planned, plan};
#[cfg(feature = "campaign")]
pub use problem::CampaignProblem;

use crate::field::{Field, FieldGroup, FieldValue};
use crate::launch::TimeLimit;
use crate::spec::Spec;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The version of campaigns and profiles that this program writes and reads.
pub const VERSION: u32 = 1;

/// Runs to carry out on a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// Its name.
    pub name: Name,
    /// The name of the cluster's profile.
    pub cluster: Name,
    /// The settings of runs that don't set their own.
    pub defaults: Settings,
    /// The runs, in order of submission.
    pub runs: Vec<Run>,
}

/// A run of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its name, unique in the campaign.
    pub name: Name,
    /// The runs that must end before it starts.
    pub after: Vec<After>,
    /// Its settings.
    pub settings: Settings,
}

/// A run that another one waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct After {
    /// Its name.
    pub run: Name,
    /// How it must end.
    pub on: AfterEnd,
}

/// How a run must end before another one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterEnd {
    /// In any way.
    #[default]
    Any,
    /// With a score. Otherwise the other run does not start.
    Success,
}

impl AfterEnd {
    /// Returns its word in a campaign file.
    fn word(self) -> &'static str {
        match self {
            AfterEnd::Any => "end",
            AfterEnd::Success => "success",
        }
    }
}

/// Names of a cluster's nodes as Slurm takes them, such as `n3,n[7-9]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct NodeList(String);

impl NodeList {
    /// Returns the list as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for NodeList {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<NodeList, InvalidName> {
        let mut is_in_brackets = false;
        let mut names = text.split(|c: char| {
            is_in_brackets = c == '[' || (is_in_brackets && c != ']');
            c == ',' && !is_in_brackets
        });
        match names.all(is_node_name) {
            true => Ok(NodeList(text.to_string())),
            false => Err(InvalidName("A list of nodes looks like n3,n[7-9].")),
        }
    }
}

/// Returns whether Slurm reads a text as the names of nodes: a name, with any number of lists of numbers and ranges in brackets.
fn is_node_name(text: &str) -> bool {
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    let number = |text: &str| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number)
    };
    let is_range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        number(first).zip(number(last)).is_some_and(|(first, last)| first <= last)
    };
    let is_bracket = |text: &str| {
        let bracket = text.split_once(']');
        bracket.is_some_and(|(ranges, rest)| ranges.split(',').all(is_range) && is_plain(rest))
    };
    let mut parts = text.split('[');
    let start = parts.next().unwrap_or_default();
    start.starts_with(|c: char| c.is_ascii_alphanumeric()) && is_plain(start) && parts.all(is_bracket)
}

/// What runs, how it is launched, and where its result goes. Everything can come from the defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Scenario and launch options: the fields for which [`is_setting`] is true.
    pub spec: Spec,
    /// Environment variables.
    pub env: Env,
    /// The number of times it runs.
    pub repeats: Option<u32>,
    /// How often it runs again after a node failed or the job was preempted.
    pub retries: Option<u32>,
    /// The nodes that it avoids.
    pub exclude: Option<NodeList>,
    /// Whether it runs while no other singleton run of the campaign does.
    pub singleton: Option<bool>,
    /// How long a job may wait in the queue before it is cancelled.
    pub queue_budget: Option<TimeLimit>,
    /// Where to send the result. For the defaults, this is the file's table `upload`.
    pub upload: Option<Upload>,
}

/// What to send to a server, and the token.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Upload {
    /// The server.
    pub to: Server,
    /// Where to find its token.
    pub token: Secret,
    /// Whether to send logs with the results.
    pub logs: bool,
    /// Whether to send progress while runs are going on.
    pub progress: bool,
}

impl Upload {
    /// The default variable of a server's token.
    pub const TOKEN: &str = "TRAINPLAN_TOKEN";

    /// Returns an upload of everything to a server.
    pub fn to(server: Server) -> Upload {
        Upload { to: server, token: Secret::Env(Self::TOKEN.into()), logs: true, progress: true }
    }
}

/// Returns whether a field is a key of a run: a field of a scenario or of a launch. The environment is not:
/// it has a table of its own.
pub fn is_setting(field: Field) -> bool {
    match field.group() {
        FieldGroup::Scenario | FieldGroup::Counting => true,
        FieldGroup::Cluster | FieldGroup::Job => field.value() != FieldValue::Variables,
        FieldGroup::Goal | FieldGroup::Search | FieldGroup::View => false,
    }
}

/// A name that can be used unquoted in files, paths, command lines and job comments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    /// What a name can be: a sentence.
    const FORM: &str =
        "A name has 1 to 64 letters, digits, dots, dashes or underscores, and starts with a letter or digit.";

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the valid name closest to a text: other characters become dashes, and the excess is cut off.
    pub fn closest(text: &str) -> Name {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '-' };
        let text: String = text.chars().map(plain).collect();
        let text: String = text.trim_start_matches(['.', '_', '-']).chars().take(64).collect();
        Name(if text.is_empty() { "unnamed".to_string() } else { text })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is not a [`Name`], [`NodeList`] or [`Server`]: a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidName(&'static str);

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Name, InvalidName> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let first = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        match first && text.len() <= 64 && text.chars().all(plain) {
            true => Ok(Name(text.to_string())),
            false => Err(InvalidName(Name::FORM)),
        }
    }
}

/// The address of a Trainplan server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Server(String);

impl Server {
    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Server {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Server, InvalidName> {
        const FORM: &str = "A server address looks like https://results.example.";
        let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
            return Err(InvalidName(FORM));
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('@') {
            return Err(InvalidName("A server address can't contain a user name or password."));
        }
        if rest.contains(['?', '#']) {
            return Err(InvalidName("A server address can only have a host and a path."));
        }
        match host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            true => Err(InvalidName(FORM)),
            false => Ok(Server(text.to_string())),
        }
    }
}
