//! Secrets: read when they are needed, sent to the cluster over ssh's standard input, and stored nowhere.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use trainplan_shared::campaign::Secret;

/// How long a program may take to print a secret.
const PATIENCE: Duration = Duration::from_secs(60);

/// The shortest secret that is hidden in copies of logs, in bytes: a shorter text could be a part of a figure.
pub(crate) const SHORTEST_HIDDEN: usize = 8;

/// A secret that is not available. The error never holds its value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Can't get {name}: {why}.")]
pub(crate) struct SecretError {
    name: String,
    why: String,
}

/// Checks that every secret is available. Returns the names of those that are too short to be hidden in copies of logs.
pub(crate) async fn check<'a>(
    secrets: impl IntoIterator<Item = (&'a str, &'a Secret)>,
) -> Result<BTreeSet<&'a str>, SecretError> {
    let mut short = BTreeSet::new();
    for (name, secret) in secrets {
        if find(name, secret).await?.len() < SHORTEST_HIDDEN {
            short.insert(name);
        }
    }
    Ok(short)
}

/// Returns the names and values of all secrets.
pub(crate) async fn find_all(secrets: &[(String, Secret)]) -> Result<Vec<(String, String)>, SecretError> {
    let mut found = Vec::with_capacity(secrets.len());
    for (name, secret) in secrets {
        found.push((name.clone(), find(name, secret).await?));
    }
    Ok(found)
}

/// Returns the value of a secret. The name appears in the error.
pub(crate) async fn find(name: &str, secret: &Secret) -> Result<String, SecretError> {
    let fail = |why: String| SecretError { name: name.to_string(), why };
    let value = match secret {
        Secret::Env(variable) => of_variable(name, variable)?,
        Secret::Command(words) => {
            let [program, arguments @ ..] = &words[..] else {
                return Err(fail("its command is empty".into()));
            };
            let output =
                Command::new(program).args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
            let output = tokio::time::timeout(PATIENCE, output)
                .await
                .map_err(|_| fail(format!("{program:?} did not finish within {} s", PATIENCE.as_secs())))?;
            let output = output.map_err(|error| fail(format!("can't run {program:?}: {error}")))?;
            if !output.status.success() {
                return Err(fail(format!("{program:?} failed ({})", output.status)));
            }
            let text = String::from_utf8(output.stdout)
                .map_err(|_| fail(format!("the output of {program:?} is not valid UTF-8")))?;
            text.trim_end_matches(['\n', '\r']).to_string()
        }
    };
    if value.is_empty() { Err(fail("its value is empty".into())) } else { Ok(value) }
}

/// Returns the values of the secrets whose environment variables are set. It runs no program.
pub(crate) fn of_environment(secrets: &[(String, Secret)]) -> Vec<String> {
    let value = |(name, secret): &(String, Secret)| match secret {
        Secret::Env(variable) => of_variable(name, variable).ok(),
        Secret::Command(_) => None,
    };
    secrets.iter().filter_map(value).collect()
}

/// Returns what is wrong with a secret whose environment variable is not set; none for a secret of a program, which is not run:
/// it may ask the user for a password.
pub(crate) fn unset(name: &str, secret: &Secret) -> Option<SecretError> {
    match secret {
        Secret::Env(variable) => of_variable(name, variable).err(),
        Secret::Command(_) => None,
    }
}

/// Returns the value of a secret's environment variable.
fn of_variable(name: &str, variable: &str) -> Result<String, SecretError> {
    let is = match std::env::var(variable) {
        Ok(value) if !value.is_empty() => return Ok(value),
        Ok(_) => "empty",
        Err(_) => "not set",
    };
    let set = format!("Set it before you start Trainplan, with `export {variable}=…`");
    Err(SecretError {
        name: name.to_string(),
        why: format!("the environment variable {variable} is {is}. {set}"),
    })
}

/// Returns the text with the secrets in it replaced: launchers may print their environment.
pub(crate) fn redact<'a>(text: &str, secrets: impl IntoIterator<Item = &'a str>) -> String {
    // Replacing a very short value would garble the text and hide nothing.
    let secrets = secrets.into_iter().filter(|value| value.len() >= 4);
    secrets.fold(text.to_string(), |text, value| text.replace(value, "(secret)"))
}
