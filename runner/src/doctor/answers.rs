//! The answers of the remote script `questions.sh`, by key.

use std::collections::BTreeMap;

/// The lines of the answer, by key.
#[derive(Debug, Default)]
pub(super) struct Answers(BTreeMap<String, Vec<String>>);

/// The exit code and output of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommandOutput<'a> {
    pub(super) code: i32,
    pub(super) lines: &'a [String],
}

impl Answers {
    pub(super) fn read(text: &str) -> Answers {
        let mut answers = Answers::default();
        for (key, value) in text.lines().filter_map(|line| line.split_once('\t')) {
            answers.0.entry(key.to_string()).or_default().push(value.trim_end().to_string());
        }
        answers
    }

    /// Returns all lines of a key.
    pub(super) fn all(&self, key: &str) -> &[String] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the first line of a key, unless it is empty.
    pub(super) fn one(&self, key: &str) -> Option<&str> {
        self.all(key).first().map(String::as_str).filter(|line| !line.is_empty())
    }

    /// Returns the output of a command, if it was run.
    pub(super) fn output(&self, key: &str) -> Option<CommandOutput<'_>> {
        let code = self.one(&format!("{key}!"))?.parse().ok()?;
        Some(CommandOutput { code, lines: self.all(key) })
    }
}

impl<'a> CommandOutput<'a> {
    /// Whether the command was stopped, because it took too long.
    pub(super) fn is_late(self) -> bool {
        self.code == 124
    }

    /// Returns the output as one line, without decorative asterisks.
    pub(super) fn text(self) -> String {
        let words: Vec<&str> = (self.lines.iter())
            .map(|line| line.trim_matches(|c: char| c == '*' || c.is_whitespace()))
            .filter(|line| !line.is_empty())
            .collect();
        match words.is_empty() {
            _ if self.is_late() => "no answer within 15 s".into(),
            true => format!("exit code {} without a message", self.code),
            false => words.join("; "),
        }
    }

    /// Returns the value of `name=value` among the words.
    pub(super) fn word(self, name: &str) -> Option<&'a str> {
        let words = self.lines.iter().flat_map(|line| line.split_whitespace());
        words.filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// Returns the value of a line `name = value`.
    pub(super) fn setting(self, name: &str) -> Option<&'a str> {
        let lines = self.lines.iter().filter_map(|line| line.split_once('='));
        lines
            .map(|(key, value)| (key.trim(), value.trim()))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }
}
