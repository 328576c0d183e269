//! Text on its way to a shell. Everything reaches a script as a [`ShellWord`], which quotes itself.

use crate::field::Field;
use crate::message;
use crate::problem::Problem;
use crate::text::printable;
use serde::Serialize;
use std::fmt;

/// One word of a shell command: literal text, references to environment variables, and wildcards in paths
/// that match several files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShellWord(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
    Wildcard,
}

impl ShellWord {
    /// Returns literal text. User input goes through [`ShellWord::value`] or [`ShellWord::path`], which
    /// reject what a shell can't pass on.
    pub(super) fn of(text: impl fmt::Display) -> ShellWord {
        ShellWord(vec![Piece::Text(text.to_string())])
    }

    /// Returns a reference to an environment variable, `$NAME`.
    pub(super) fn variable(name: &str) -> ShellWord {
        ShellWord(vec![Piece::Variable(name.to_string())])
    }

    /// Returns a value that is passed on as typed. One that is `$NAME`, or begins with `$NAME/`, refers to
    /// the variable where the script runs.
    ///
    /// # Errors
    /// If it contains a control character.
    pub(super) fn value(field: Field, text: &str) -> Result<ShellWord, Problem> {
        refuse_control(field, text)?;
        let whole =
            |(name, rest): &(&str, &str)| !name.is_empty() && (rest.is_empty() || rest.starts_with('/'));
        Ok(match text.strip_prefix('$').map(split_name).filter(whole) {
            Some((name, rest)) => ShellWord::variable(name).then(rest),
            None => ShellWord::of(text),
        })
    }

    /// Returns an absolute path, in which `$NAME`, `${NAME}` and a leading `~/` mean what they mean to a
    /// shell.
    ///
    /// # Errors
    /// If it is relative, or contains a `$` that doesn't start a variable name.
    pub(super) fn path(field: Field, text: &str) -> Result<ShellWord, Problem> {
        let expanded = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("$HOME{rest}"),
            _ => text.to_string(),
        };
        if !expanded.starts_with(['/', '$']) {
            let message = format!(
                " \"{text}\" is not an absolute path. Start it with / or a variable: /lustre/me/llmb or \
                 $HOME/llmb."
            );
            return Err(Problem::new(field, text, message![field, message]));
        }
        ShellWord::with_references(field, &expanded)
    }

    /// Returns text in which `$NAME` and `${NAME}` mean what they mean to a shell.
    ///
    /// # Errors
    /// If it contains a `$` that doesn't start a variable name, or a control character.
    pub(super) fn with_references(field: Field, text: &str) -> Result<ShellWord, Problem> {
        refuse_control(field, text)?;
        let mut word = ShellWord::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            let (name, behind) = split_name(after);
            if name.is_empty() {
                let message = format!(
                    " \"{text}\" contains a $ that doesn't start a variable name. Write $NAME or ${{NAME}}."
                );
                return Err(Problem::new(field, text, message![field, message]));
            }
            word = word.then(before);
            word.0.push(Piece::Variable(name.to_string()));
            rest = behind;
        }
        Ok(word.then(rest))
    }

    /// Returns the word with text appended.
    #[must_use]
    pub(super) fn then(mut self, text: impl fmt::Display) -> ShellWord {
        let text = text.to_string();
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(&text),
            _ => self.0.push(Piece::Text(text)),
        }
        self
    }

    /// Returns the word with a wildcard appended.
    #[must_use]
    pub(super) fn then_any(mut self) -> ShellWord {
        self.0.push(Piece::Wildcard);
        self
    }

    /// Returns the word with a wildcard in place of each `mark` in its literal text.
    #[must_use]
    pub(super) fn with_any_for(&self, mark: &str) -> ShellWord {
        let mut word = ShellWord::default();
        for piece in &self.0 {
            let Piece::Text(text) = piece else {
                word.0.push(piece.clone());
                continue;
            };
            for (index, part) in text.split(mark).enumerate() {
                word = if index > 0 { word.then_any() } else { word }.then(part);
            }
        }
        word
    }

    /// Returns the words between the places of a mark in its literal text.
    pub(crate) fn split(&self, mark: char) -> Vec<ShellWord> {
        let mut words = vec![ShellWord::default()];
        for piece in &self.0 {
            let mut parts = match piece {
                Piece::Text(text) => text.split(mark).map(ShellWord::of).collect(),
                other => vec![ShellWord(vec![other.clone()])],
            };
            let rest = parts.split_off(1);
            if let (Some(word), Some(first)) = (words.last_mut(), parts.first()) {
                *word = std::mem::take(word).join(first);
            }
            words.extend(rest);
        }
        words
    }

    /// Returns the word with another appended.
    #[must_use]
    pub(super) fn join(self, other: &ShellWord) -> ShellWord {
        let mut word = self;
        for piece in &other.0 {
            match piece {
                Piece::Text(text) => word = word.then(text),
                other => word.0.push(other.clone()),
            }
        }
        word
    }

    /// Returns the environment variables that it refers to.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns its literal text.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the word quoted for a POSIX shell.
    pub fn shell(&self) -> String {
        let mut shell = String::new();
        for piece in &self.0 {
            match piece {
                // This fails only on NUL, which user input can't contain.
                Piece::Text(text) => shell += &shlex::try_quote(text).unwrap_or_default(),
                Piece::Variable(name) => shell += &format!("\"${{{name}}}\""),
                Piece::Wildcard => shell.push('*'),
            }
        }
        if shell.is_empty() { "''".into() } else { shell }
    }

    /// Returns the problem of a field's value that a release's script, which expands it without quotes, would change.
    pub(super) fn unquoted_problem(&self, field: Field) -> Option<Problem> {
        let fault = self.unquoted_fault()?;
        Some(Problem::new(field, self, message![field, format!(" \"{self}\" {fault}.")]))
    }

    /// Returns why a release's script, which expands the word without quotes, would change it: a clause.
    /// `None` if it would not.
    pub(super) fn unquoted_fault(&self) -> Option<String> {
        const WHO: &str = "the release's script";
        if matches!(self.0.first(), Some(Piece::Text(text)) if text.starts_with('-')) {
            return Some(format!("starts with a dash, so {WHO} would take it for an option"));
        }
        self.texts().find_map(|text| {
            if text.contains(char::is_whitespace) {
                return Some(format!("contains white space, where {WHO} would split it"));
            }
            let wildcard = text.chars().find(|c| "*?[".contains(*c))?;
            Some(format!("contains {wildcard}, which {WHO} would replace with file names"))
        })
    }
}

/// Formats the word for reading: references as `$NAME`, text without quotes.
impl fmt::Display for ShellWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Variable(name) => write!(f, "${name}"),
            Piece::Wildcard => f.write_str("*"),
        })
    }
}

impl Serialize for ShellWord {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns whether a text is a valid name of an environment variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && chars.all(|next| next == '_' || next.is_ascii_alphanumeric())
}

/// Splits the text after a `$` into the variable's name and the rest. The name is empty if there is none.
fn split_name(text: &str) -> (&str, &str) {
    if let Some((name, rest)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
        return if is_name(name) { (name, rest) } else { ("", text) };
    }
    let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if is_name(name) { (name, rest) } else { ("", text) }
}

/// Rejects NUL, which a shell can't pass on, and control characters, which would act on a terminal if the
/// script is pasted there.
fn refuse_control(field: Field, text: &str) -> Result<(), Problem> {
    if !text.contains(char::is_control) {
        return Ok(());
    }
    let shown = printable(text);
    let message =
        format!(" \"{shown}\" contains a control character, which can't be pasted into a terminal.");
    Err(Problem::new(field, shown, message![field, message]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(path: &str) -> String {
        ShellWord::path(Field::InstallPath, path).unwrap().shell()
    }

    #[test]
    fn a_path_may_refer_to_the_environment() {
        assert_eq!(shell("/lustre/me"), "/lustre/me");
        assert_eq!(shell("/lustre/$USER/nemo"), "/lustre/\"${USER}\"/nemo");
        assert_eq!(shell("${SCRATCH}_2/nemo"), "\"${SCRATCH}\"_2/nemo");
        assert_eq!(shell("~/nemo"), "\"${HOME}\"/nemo");
        assert!(ShellWord::path(Field::InstallPath, "nemo").is_err());
        assert!(ShellWord::path(Field::InstallPath, "/a/$(id)").is_err());
        assert!(ShellWord::path(Field::InstallPath, "/a\0b").is_err());
    }

    #[test]
    fn a_value_is_a_reference_only_as_a_whole() {
        let shell = |text: &str| ShellWord::value(Field::Env, text).unwrap().shell();
        assert_eq!(shell("$TOKEN"), "\"${TOKEN}\"");
        assert_eq!(shell("$HOME/x y"), "\"${HOME}\"'/x y'");
        assert_eq!(shell("$HOME x"), "'$HOME x'");
        assert_eq!(shell("$(id)"), "'$(id)'");
        assert_eq!(shell(""), "''");
    }
}
