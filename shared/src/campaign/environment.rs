//! The environment variables of a run. A secret is always a reference, which the machine that runs the
//! campaign resolves.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// Environment variables by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Env(pub BTreeMap<String, VariableValue>);

/// The value of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariableValue {
    /// The text itself. `$NAME` is the value of NAME on the cluster.
    Text(String),
    /// A secret, which is read where the campaign runs.
    Secret(Secret),
}

/// Where to find a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secret {
    /// In an environment variable.
    Env(String),
    /// On the standard output of a program, given as its arguments.
    Command(Vec<String>),
}

impl Serialize for VariableValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            VariableValue::Text(text) => serializer.serialize_str(text),
            VariableValue::Secret(secret) => secret.serialize(serializer),
        }
    }
}

impl Env {
    /// Returns these variables, replaced or extended by those of `over`.
    #[must_use]
    pub fn overridden_by(&self, over: &Env) -> Env {
        let mut both = self.clone();
        both.0.extend(over.0.clone());
        both
    }

    /// Returns the secrets.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().filter_map(|(name, setting)| match setting {
            VariableValue::Secret(secret) => Some((name.as_str(), secret)),
            VariableValue::Text(_) => None,
        })
    }

    /// Returns the variables for the launch options: `NAME=value`, one per line, and `NAME=$NAME` for a
    /// secret, which the runner sets.
    pub fn lines(&self) -> String {
        let line = |(name, setting): (&String, &VariableValue)| match setting {
            VariableValue::Text(text) => format!("{name}={text}\n"),
            VariableValue::Secret(_) => format!("{name}=${name}\n"),
        };
        self.0.iter().map(line).collect()
    }
}

/// Returns whether a text is a valid name of an environment variable.
pub(super) fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

/// Returns whether a name is one of a secret.
#[cfg(feature = "campaign")]
pub(super) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let ends = ["TOKEN", "TOKENS", "KEY", "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIALS"];
    ends.iter().any(|end| name.ends_with(end))
}

/// Returns whether a text contains what looks like an access token.
#[cfg(feature = "campaign")]
pub(super) fn holds_token(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] = ["hf_", "nvapi-", "ghp_", "gho_", "github_pat_", "glpat-", "sk-", "xoxb-"];
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c)));
    words.into_iter().any(|word| {
        BEGINNINGS.iter().any(|begin| {
            word.strip_prefix(begin)
                .is_some_and(|rest| rest.len() >= 16 && rest.bytes().any(|byte| byte.is_ascii_digit()))
        })
    })
}
