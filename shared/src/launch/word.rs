//! Text on its way to a shell. Nothing reaches a script but as a [`Word`], and a word quotes itself.

use crate::field::Field;
use crate::problem::Problem;
use serde::Serialize;
use std::fmt;

/// One word of a command: text that reaches the program exactly as it is, between references to the
/// environment and, where a path is to match several files, wildcards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(String),
    Wildcard,
}

impl Word {
    /// Text without references. Whatever comes from outside goes through [`Word::value`] or
    /// [`Word::path`], which refuse what can't be passed on.
    pub(super) fn of(text: impl fmt::Display) -> Word {
        Word(vec![Piece::Text(text.to_string())])
    }

    /// The value of an environment variable, `$NAME`.
    pub(super) fn variable(name: &str) -> Word {
        Word(vec![Piece::Variable(name.to_string())])
    }

    /// A value that is passed on as typed, except that one that is `$NAME`, or begins with `$NAME/`, means
    /// what the variable holds where the script runs.
    ///
    /// # Errors
    /// It holds a control character.
    pub(super) fn value(field: Field, text: &str) -> Result<Word, Problem> {
        refuse_control(field, text)?;
        let whole =
            |(name, rest): &(&str, &str)| !name.is_empty() && (rest.is_empty() || rest.starts_with('/'));
        Ok(match text.strip_prefix('$').map(split_name).filter(whole) {
            Some((name, rest)) => Word::variable(name).then(rest),
            None => Word::of(text),
        })
    }

    /// An absolute path, in which `$NAME`, `${NAME}` and a leading `~/` mean what they mean to a shell.
    ///
    /// # Errors
    /// It is relative, or holds a `$` that begins no name.
    pub(super) fn path(field: Field, text: &str) -> Result<Word, Problem> {
        let expanded = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("$HOME{rest}"),
            _ => text.to_string(),
        };
        if !expanded.starts_with(['/', '$']) {
            return Err(Problem::clause(field, text, "is no absolute path")
                .allowed("a path from / or from a variable: /lustre/me/llmb, $HOME/llmb"));
        }
        Word::with_references(field, &expanded)
    }

    /// Text in which `$NAME` and `${NAME}` mean what they mean to a shell.
    ///
    /// # Errors
    /// It holds a `$` that begins no name, or a control character.
    pub(super) fn with_references(field: Field, text: &str) -> Result<Word, Problem> {
        refuse_control(field, text)?;
        let mut word = Word::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            let (name, behind) = split_name(after);
            if name.is_empty() {
                return Err(Problem::clause(field, text, "holds a $ that begins no variable's name"));
            }
            word = word.then(before);
            word.0.push(Piece::Variable(name.to_string()));
            rest = behind;
        }
        Ok(word.then(rest))
    }

    /// The word with text behind it.
    #[must_use]
    pub(super) fn then(mut self, text: impl fmt::Display) -> Word {
        let text = text.to_string();
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(&text),
            _ => self.0.push(Piece::Text(text)),
        }
        self
    }

    /// The word with a wildcard behind it, which matches what the shell finds there.
    #[must_use]
    pub(super) fn then_any(mut self) -> Word {
        self.0.push(Piece::Wildcard);
        self
    }

    /// The word with a wildcard wherever its own text holds a mark.
    #[must_use]
    pub(super) fn with_any_for(&self, mark: &str) -> Word {
        let mut word = Word::default();
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

    /// The word with another behind it.
    #[must_use]
    pub(super) fn join(self, other: &Word) -> Word {
        let mut word = self;
        for piece in &other.0 {
            match piece {
                Piece::Text(text) => word = word.then(text),
                other => word.0.push(other.clone()),
            }
        }
        word
    }

    /// The environment variables that it refers to.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Its own text, without what it refers to.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// As a POSIX shell must read it.
    pub fn shell(&self) -> String {
        let mut shell = String::new();
        for piece in &self.0 {
            match piece {
                // It fails on NUL alone, which is refused where text comes in.
                Piece::Text(text) => shell += &shlex::try_quote(text).unwrap_or_default(),
                Piece::Variable(name) => shell += &format!("\"${{{name}}}\""),
                Piece::Wildcard => shell.push('*'),
            }
        }
        if shell.is_empty() { "''".into() } else { shell }
    }

    /// Refuses what a release's script, which expands the value without quotes, would take apart or replace.
    ///
    /// # Errors
    /// The word holds white space, a wildcard or a leading dash.
    pub(super) fn must_be_plain(&self, field: Field, who: &str) -> Result<(), Problem> {
        let refuse = |what: String| Err(Problem::clause(field, self, what));
        for text in self.texts() {
            if text.contains(char::is_whitespace) {
                return refuse(format!("holds white space, at which {who} would split it"));
            }
            if let Some(wildcard) = text.chars().find(|c| "*?[".contains(*c)) {
                return refuse(format!("holds {wildcard}, which {who} would replace by the names of files"));
            }
        }
        match self.0.first() {
            Some(Piece::Text(text)) if text.starts_with('-') => {
                refuse(format!("begins with a dash, which {who} would take for an option"))
            }
            _ => Ok(()),
        }
    }
}

/// For people: references as `$NAME`, text as it is.
impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Variable(name) => write!(f, "${name}"),
            Piece::Wildcard => f.write_str("*"),
        })
    }
}

impl Serialize for Word {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Whether a text is the name of an environment variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first == '_' || first.is_ascii_alphabetic())
        && chars.all(|next| next == '_' || next.is_ascii_alphanumeric())
}

/// The variable's name at the beginning of what stands behind a `$`, and the rest; no name is an empty one.
fn split_name(text: &str) -> (&str, &str) {
    if let Some((name, rest)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
        return if is_name(name) { (name, rest) } else { ("", text) };
    }
    let end = text.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if is_name(name) { (name, rest) } else { ("", text) }
}

/// NUL no shell can pass on; other control characters act on the terminal that a script is pasted into.
fn refuse_control(field: Field, text: &str) -> Result<(), Problem> {
    match text.find(char::is_control) {
        Some(_) => Err(Problem::clause(
            field,
            text.escape_debug(),
            "holds a control character, which can't be pasted",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(path: &str) -> String {
        Word::path(Field::InstallPath, path).unwrap().shell()
    }

    #[test]
    fn a_path_may_refer_to_the_environment() {
        assert_eq!(shell("/lustre/me"), "/lustre/me");
        assert_eq!(shell("/lustre/$USER/nemo"), "/lustre/\"${USER}\"/nemo");
        assert_eq!(shell("${SCRATCH}_2/nemo"), "\"${SCRATCH}\"_2/nemo");
        assert_eq!(shell("~/nemo"), "\"${HOME}\"/nemo");
        assert!(Word::path(Field::InstallPath, "nemo").is_err());
        assert!(Word::path(Field::InstallPath, "/a/$(id)").is_err());
        assert!(Word::path(Field::InstallPath, "/a\0b").is_err());
    }

    #[test]
    fn a_value_is_a_reference_only_as_a_whole() {
        let shell = |text: &str| Word::value(Field::Env, text).unwrap().shell();
        assert_eq!(shell("$TOKEN"), "\"${TOKEN}\"");
        assert_eq!(shell("$HOME/x y"), "\"${HOME}\"'/x y'");
        assert_eq!(shell("$HOME x"), "'$HOME x'");
        assert_eq!(shell("$(id)"), "'$(id)'");
        assert_eq!(shell(""), "''");
    }
}
