//! A campaign: the runs that a person wants carried out, as a file that the page writes, a person edits and the
//! runner reads.
//!
//! Writing one is for everybody; reading one, the profiles of clusters and the plan that follows from both come with
//! feature `campaign`, which the browser has not.

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
pub use clusters::{Cluster, Clusters, Installation};
pub use environment::{Env, Secret, Setting};
#[cfg(feature = "campaign")]
pub use parse::Lines;
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

/// The version of campaigns and profiles that is written and read.
pub const VERSION: u32 = 1;

/// Runs to carry out on a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// What it is called.
    pub name: Name,
    /// The profile of the cluster that it runs on.
    pub cluster: Name,
    /// What every run has that does not say otherwise.
    pub defaults: Settings,
    /// The runs, in the order in which they are submitted.
    pub runs: Vec<Run>,
}

/// One entry of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What it is called; no other run of the campaign has this name.
    pub name: Name,
    /// The runs that have to end before it starts.
    pub after: Vec<Name>,
    /// What it runs and how.
    pub settings: Settings,
}

/// What runs, how it is launched, and what becomes of it; all of it may be left to the defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings {
    /// Scenario and launch options, under the names of their flags: only fields of which [`is_setting`] holds.
    pub spec: Spec,
    /// Variables for the run.
    pub env: Env,
    /// How many times it runs.
    pub repeats: Option<u32>,
    /// Whether it shares the cluster with no other run of the campaign that says so too.
    pub singleton: Option<bool>,
    /// How long a job of it may wait in the queue before it is given up.
    pub queue_budget: Option<TimeLimit>,
    /// Where its result is sent to. Of the defaults this is the file's own table `upload`.
    pub upload: Option<Upload>,
}

/// What is sent to a server, and how it lets us in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Upload {
    /// The server.
    pub to: Server,
    /// Where its token is to be found.
    pub token: Secret,
    /// Whether raw logs go with the results.
    pub logs: bool,
    /// Whether the server is told where runs are while they run.
    pub progress: bool,
}

impl Upload {
    /// The variable that holds a server's token, where nothing else is said.
    pub const TOKEN: &str = "TRAINPLAN_TOKEN";

    /// Everything to a server.
    pub fn to(server: Server) -> Upload {
        Upload { to: server, token: Secret::Env(Self::TOKEN.into()), logs: true, progress: true }
    }
}

/// Returns whether a field is a key of a run: a field of a scenario or of a launch. The environment is not: it has a
/// table of its own.
pub fn is_setting(field: Field) -> bool {
    match field.group() {
        FieldGroup::Scenario | FieldGroup::Counting => true,
        FieldGroup::Cluster | FieldGroup::Job => field.value() != FieldValue::Variables,
        FieldGroup::Goal | FieldGroup::View => false,
    }
}

/// A name that is the same in a file, a path, a command line and a job's comment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    /// What a name may be, as a clause.
    pub const ALLOWED: &str =
        "1 to 64 letters, digits, dots, dashes and underscores, of which the first is a letter or a digit";

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// That a text is no [`Name`] or no [`Server`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}; allowed: {allowed}")]
pub struct Refused {
    /// What is wrong, as a clause.
    pub what: &'static str,
    /// What is allowed, as a clause.
    pub allowed: &'static str,
}

impl FromStr for Name {
    type Err = Refused;

    fn from_str(text: &str) -> Result<Name, Refused> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let first = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        match first && text.len() <= 64 && text.chars().all(plain) {
            true => Ok(Name(text.to_string())),
            false => Err(Refused { what: "is no name", allowed: Name::ALLOWED }),
        }
    }
}

/// The address of a Trainplan server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Server(String);

impl Server {
    /// The address as text.
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
    type Err = Refused;

    fn from_str(text: &str) -> Result<Server, Refused> {
        let refuse = |what| Err(Refused { what, allowed: "an address such as https://results.example" });
        let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
            return refuse("is no address of a server");
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('@') {
            return refuse("holds a name or a password, which never stand in a file");
        }
        if rest.contains(['?', '#']) {
            return refuse("holds more than a host and a path");
        }
        match host.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            true => refuse("is no address of a server"),
            false => Ok(Server(text.to_string())),
        }
    }
}
