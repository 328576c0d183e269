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

/// Adds the secrets to a script's environment.
pub(super) async fn add(mut script: Script, secrets: &[(String, Secret)]) -> Result<Script, SecretError> {
    for (name, secret) in secrets {
        script = script.secret(name, find(name, secret).await?);
    }
    Ok(script)
}

async fn find(name: &str, secret: &Secret) -> Result<String, SecretError> {
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
