//! Secrets: found here when they are needed, handed to the launch over ssh's standard input, and kept nowhere.

use crate::ssh::Script;
use std::process::Stdio;
use tokio::process::Command;
use trainplan_shared::campaign::Secret;

/// Why a secret can't be found. Its value is no part of this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is a secret that can't be found: {why}")]
pub(crate) struct SecretError {
    name: String,
    why: String,
}

/// Sees whether every secret can be found, before anything is begun.
pub(crate) async fn check<'a>(
    secrets: impl IntoIterator<Item = (&'a String, &'a Secret)>,
) -> Result<(), SecretError> {
    for (name, secret) in secrets {
        find(name, secret).await?;
    }
    Ok(())
}

/// Secrets that were found.
pub(super) struct Found(Vec<(String, String)>);

impl Found {
    /// Finds them.
    pub(super) async fn all(secrets: &[(String, Secret)]) -> Result<Found, SecretError> {
        let mut found = Vec::new();
        for (name, secret) in secrets {
            found.push((name.clone(), find(name, secret).await?));
        }
        Ok(Found(found))
    }

    /// Adds them to a script's environment.
    pub(super) fn add(&self, script: Script) -> Script {
        self.0.iter().fold(script, |script, (name, value)| script.secret(name, value.clone()))
    }

    /// What a launcher printed, without them: some print their environment.
    pub(super) fn redact(&self, text: &str) -> String {
        // A very short one would blot out half of what is said, and hide nothing.
        let secrets = self.0.iter().map(|(_, value)| value).filter(|value| value.len() >= 4);
        secrets.fold(text.to_string(), |text, value| text.replace(value.as_str(), "(secret)"))
    }
}

/// Finds one; its name is for who is told that it can't be found.
pub(crate) async fn find(name: &str, secret: &Secret) -> Result<String, SecretError> {
    let fail = |why: String| SecretError { name: name.to_string(), why };
    let value = match secret {
        Secret::Env(variable) => {
            std::env::var(variable).map_err(|_| fail(format!("set ${variable} in your environment")))?
        }
        Secret::Command(words) => {
            let [program, arguments @ ..] = &words[..] else {
                return Err(fail("its command is empty".into()));
            };
            let output =
                Command::new(program).args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
            let output = output.await.map_err(|error| fail(format!("{program:?} does not run: {error}")))?;
            if !output.status.success() {
                return Err(fail(format!("{program:?} failed ({})", output.status)));
            }
            let text = String::from_utf8(output.stdout)
                .map_err(|_| fail(format!("what {program:?} printed is no text")))?;
            text.trim_end_matches(['\n', '\r']).to_string()
        }
    };
    if value.is_empty() { Err(fail("it is empty".into())) } else { Ok(value) }
}
