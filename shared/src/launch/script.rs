//! A shell script with a place for additional commands.

use serde::Serialize;
use std::fmt;
use std::ops::Deref;

/// A POSIX shell script. It dereferences to its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellScript {
    text: String,
    /// Where the setup ends: the shell stops at errors from there on, and no command has run.
    body: usize,
}

impl ShellScript {
    /// Returns the script of these lines. The setup ends with `set -eu`.
    pub(super) fn new(setup: &[String], body: &[String]) -> ShellScript {
        let setup: String = setup.iter().map(|line| format!("{line}\n")).collect();
        let body: String = body.iter().map(|line| format!("{line}\n")).collect();
        ShellScript { body: setup.len(), text: setup + &body }
    }

    /// Returns the text with additional lines before the first command.
    pub fn with_first(&self, lines: &str) -> String {
        let (setup, body) = self.text.split_at(self.body);
        format!("{setup}{lines}{body}")
    }
}

impl Deref for ShellScript {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ShellScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for ShellScript {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
