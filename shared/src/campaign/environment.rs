//! Variables for a run. A secret is only ever a reference: where to find it on the machine that carries the campaign
//! out.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;

/// Variables by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Env(pub BTreeMap<String, Setting>);

/// What a variable holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Setting {
    /// The text itself; `$NAME` is what the variable NAME holds on the cluster.
    Text(String),
    /// What is found where the campaign is carried out.
    Secret(Secret),
}

/// Where a secret is to be found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Secret {
    /// In a variable of the environment.
    Env(String),
    /// On the standard output of a program, given as its words.
    Command(Vec<String>),
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Setting::Text(text) => serializer.serialize_str(text),
            Setting::Secret(secret) => secret.serialize(serializer),
        }
    }
}

impl Env {
    /// These variables, and those of `over` in their place or besides.
    #[must_use]
    pub fn overridden_by(&self, over: &Env) -> Env {
        let mut both = self.clone();
        both.0.extend(over.0.clone());
        both
    }

    /// The secrets among them.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().filter_map(|(name, setting)| match setting {
            Setting::Secret(secret) => Some((name.as_str(), secret)),
            Setting::Text(_) => None,
        })
    }

    /// As the launch options take them: `NAME=value`, one per line, and for a secret `NAME=$NAME`, which the runner
    /// sees to.
    pub fn lines(&self) -> String {
        let line = |(name, setting): (&String, &Setting)| match setting {
            Setting::Text(text) => format!("{name}={text}\n"),
            Setting::Secret(_) => format!("{name}=${name}\n"),
        };
        self.0.iter().map(line).collect()
    }
}

/// Whether a text is the name of an environment variable.
pub(super) fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

/// Whether what stands under such a name is a secret.
#[cfg(feature = "campaign")]
pub(super) fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    let ends = ["TOKEN", "TOKENS", "KEY", "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIALS"];
    ends.iter().any(|end| name.ends_with(end))
}

/// Whether a text holds what looks like an access token, wherever it stands.
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
