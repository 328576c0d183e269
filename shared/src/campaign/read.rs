//! Reads a TOML file and finds every mistake in it, each with its line.

use super::environment::{Env, Secret, VariableValue, holds_token, is_variable, names_secret};
use super::problem::CampaignProblem;
use super::{After, AfterEnd};
use crate::field::Field;
use crate::launch::{EnvOverrides, LaunchOptions};
use crate::problem::Problem;
use crate::spec::Spec;
use crate::text::printable;
use std::collections::BTreeMap;
use std::str::FromStr;
use toml::de::{DeTable, DeValue};

/// A key with its value and line.
#[derive(Debug)]
pub(super) struct Entry<'i> {
    pub(super) key: String,
    /// The key with its tables.
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) value: DeValue<'i>,
}

/// The line of each key.
pub(super) type KeyLines = BTreeMap<String, u32>;

/// Reads values and collects problems.
#[derive(Debug)]
pub(super) struct TomlReader {
    /// The offset of each line but the first.
    breaks: Vec<usize>,
    pub(super) problems: Vec<CampaignProblem>,
}

impl TomlReader {
    /// Returns the file's table.
    ///
    /// # Errors
    /// Every syntax error. The rest of the file is then not checked.
    pub(super) fn new(text: &str) -> Result<(TomlReader, DeTable<'_>), Vec<CampaignProblem>> {
        let breaks = text.match_indices('\n').map(|(place, _)| place + 1).collect();
        let mut reader = TomlReader { breaks, problems: Vec::new() };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = reader.line(error.span().map_or(0, |span| span.start));
            // Without the line's text, which may contain a secret.
            reader.problems.push(CampaignProblem::new(
                line,
                "",
                format!("Invalid TOML: {}.", error.message()),
            ));
        }
        if reader.problems.is_empty() { Ok((reader, table.into_inner())) } else { Err(reader.problems) }
    }

    pub(super) fn line(&self, offset: usize) -> u32 {
        let before = self.breaks.partition_point(|place| *place <= offset);
        u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// Returns a table's keys in the order of the file. If `plain`, underscores in a key count as dashes; the
    /// names of variables are not plain.
    pub(super) fn entries<'i>(&mut self, place: &str, table: DeTable<'i>, plain: bool) -> Vec<Entry<'i>> {
        let mut found: Vec<(usize, Entry)> = Vec::new();
        for (name, value) in table {
            let start = name.span().start;
            let name = name.into_inner();
            let shown = printable(&name);
            let path = if place.is_empty() { shown } else { format!("{place}.{shown}") };
            let key = if plain { name.replace('_', "-") } else { name.into_owned() };
            let entry = Entry { key, path, line: self.line(start), value: value.into_inner() };
            found.push((start, entry));
        }
        found.sort_by_key(|(start, _)| *start);
        let mut entries: Vec<Entry> = Vec::new();
        for (_, entry) in found {
            match entries.iter().find(|earlier| earlier.key == entry.key) {
                Some(earlier) => {
                    let message = format!("Duplicate key, already set on line {}.", earlier.line);
                    self.refuse(&entry, message);
                }
                None => entries.push(entry),
            }
        }
        entries
    }

    pub(super) fn refuse(&mut self, entry: &Entry, message: impl AsRef<str>) {
        self.problems.push(CampaignProblem::new(entry.line, &entry.path, message));
    }

    /// Refuses an unknown key.
    pub(super) fn unknown<'a>(&mut self, entry: &Entry, known: impl IntoIterator<Item = &'a str>) {
        let problem = CampaignProblem::unknown(entry.line, &entry.path, "Unknown key.", &entry.key, known);
        self.problems.push(problem);
    }

    /// Returns a string, a number or a boolean as text.
    pub(super) fn text(&mut self, entry: &Entry) -> Option<String> {
        let text = match &entry.value {
            DeValue::String(text) => text.trim().to_string(),
            DeValue::Integer(whole) if whole.radix() == 10 => whole.as_str().to_string(),
            DeValue::Integer(whole) => match u64::from_str_radix(whole.as_str(), whole.radix()) {
                Ok(whole) => whole.to_string(),
                Err(_) => whole.to_string(),
            },
            DeValue::Float(number) => number.as_str().to_string(),
            DeValue::Boolean(on) => on.to_string(),
            // A time limit without quotes is a time of day.
            DeValue::Datetime(time) => time.to_string(),
            other => {
                self.refuse(entry, format!("Use a string, a number, true or false, not {}.", kind(other)));
                return None;
            }
        };
        if holds_token(&text) {
            self.refuse(
                entry,
                "The value looks like an access token, which must not be in a file. Refer to it under env: \
                 HF_TOKEN = { env = \"HF_TOKEN\" }.",
            );
            return None;
        }
        if text.is_empty() {
            self.refuse(entry, "Empty value. Remove the key.");
            return None;
        }
        Some(text)
    }

    /// Returns a parsed value.
    pub(super) fn parsed<T: FromStr<Err = Problem>>(&mut self, entry: &Entry) -> Option<T> {
        match self.text(entry)?.parse() {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problems.push(CampaignProblem::of(entry.line, &entry.path, &problem));
                None
            }
        }
    }

    /// Returns a name or an address.
    pub(super) fn named<T: FromStr<Err = super::InvalidName>>(&mut self, entry: &Entry) -> Option<T> {
        let text = self.text(entry)?;
        self.name(entry, &text)
    }

    fn name<T: FromStr<Err = super::InvalidName>>(&mut self, entry: &Entry, text: &str) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(invalid) => {
                // An address may contain a password.
                let shown =
                    if text.contains('@') { String::new() } else { format!("\"{text}\" is not valid. ") };
                self.refuse(entry, format!("{shown}{invalid}"));
                None
            }
        }
    }

    /// Returns the runs that another one waits for: names, or tables with a name and how the run must end.
    pub(super) fn after(&mut self, entry: &Entry) -> Vec<After> {
        match &entry.value {
            DeValue::Array(items) => {
                items.iter().filter_map(|item| self.one_after(entry, item.get_ref())).collect()
            }
            value => self.one_after(entry, value).into_iter().collect(),
        }
    }

    fn one_after(&mut self, entry: &Entry, value: &DeValue) -> Option<After> {
        let table = match value {
            DeValue::String(text) => {
                return Some(After { run: self.name(entry, text.trim())?, on: AfterEnd::Any });
            }
            DeValue::Table(table) => table,
            other => {
                self.refuse(
                    entry,
                    format!("Use names, or {{ run = \"NAME\", on = \"success\" }}, not {}.", kind(other)),
                );
                return None;
            }
        };
        let (mut run, mut on, mut is_valid) = (None, Some(AfterEnd::Any), true);
        for (key, value) in table {
            let line = self.line(key.span().start);
            let path = format!("{}.{}", entry.path, printable(key.get_ref()));
            let inner = Entry { key: key.get_ref().to_string(), path, line, value: value.get_ref().clone() };
            match inner.key.as_str() {
                "run" => run = self.named(&inner),
                "on" => on = self.word(&inner, [AfterEnd::Any, AfterEnd::Success].map(|on| (on.word(), on))),
                _ => {
                    is_valid = false;
                    self.unknown(&inner, ["run", "on"]);
                }
            }
        }
        if is_valid && run.is_none() && !table.iter().any(|(key, _)| key.get_ref() == "run") {
            self.refuse(entry, "Missing: run = \"NAME\", the run to wait for.");
        }
        Some(After { run: run?, on: on? })
    }

    /// Returns what one of some words stands for.
    fn word<T: Copy, const N: usize>(&mut self, entry: &Entry, words: [(&str, T); N]) -> Option<T> {
        let text = self.text(entry)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let message = format!("Unknown value \"{text}\".");
            let known = words.map(|(word, _)| word);
            let problem = CampaignProblem::unknown(entry.line, &entry.path, message, &text, known);
            self.problems.push(problem);
        }
        found
    }

    pub(super) fn whole(&mut self, entry: &Entry, from: u32, to: u32) -> Option<u32> {
        let text = self.text(entry)?;
        match text.parse::<u32>() {
            Ok(whole) if (from..=to).contains(&whole) => return Some(whole),
            _ => self.refuse(entry, format!("\"{text}\" is not a whole number from {from} to {to}.")),
        }
        None
    }

    pub(super) fn switch(&mut self, entry: &Entry) -> Option<bool> {
        if let DeValue::Boolean(on) = entry.value {
            return Some(on);
        }
        let text = self.text(entry)?;
        self.refuse(entry, format!("Use true or false, not \"{text}\"."));
        None
    }

    pub(super) fn table<'i>(&mut self, entry: Entry<'i>, plain: bool) -> Option<Vec<Entry<'i>>> {
        let Entry { path, value, line, .. } = entry;
        match value {
            DeValue::Table(table) => Some(self.entries(&path, table, plain)),
            other => {
                let message = format!("Use a table, not {}.", kind(&other));
                self.problems.push(CampaignProblem::new(line, path, message));
                None
            }
        }
    }

    /// Sets a field. [`TomlReader::options`] checks its value.
    pub(super) fn field(&mut self, spec: &mut Spec, field: Field, entry: &Entry) {
        let text = match &entry.value {
            // A list in a file, with commas on the command line.
            DeValue::Array(items) if field == Field::Mounts => {
                let texts: Vec<Option<String>> = (items.iter())
                    .map(|item| {
                        let (key, path, value) =
                            (entry.key.clone(), entry.path.clone(), item.get_ref().clone());
                        self.text(&Entry { key, path, line: entry.line, value })
                    })
                    .collect();
                texts.into_iter().collect::<Option<Vec<String>>>().map(|texts| texts.join(","))
            }
            _ => self.text(entry),
        };
        if let Some(text) = text {
            spec.set(field, text);
        }
    }

    /// Checks the values of launch fields.
    pub(super) fn options(&mut self, spec: &Spec, place: &str, lines: &KeyLines) {
        let Err(problems) = LaunchOptions::from_spec(spec) else { return };
        for problem in problems {
            let key = problem.field.flag();
            let line = lines.get(key).copied().unwrap_or(1);
            self.problems.push(CampaignProblem::of(line, format!("{place}.{key}"), &problem));
        }
    }

    /// Returns environment variables: each value is a string or a reference to a secret.
    pub(super) fn env(&mut self, entry: Entry) -> Env {
        let mut env = Env::default();
        for entry in self.table(entry, false).unwrap_or_default() {
            if !is_variable(&entry.key) {
                self.refuse(
                    &entry,
                    "A variable name has only letters, digits and underscores, and doesn't \
                                     start with a digit.",
                );
                continue;
            }
            let setting = match &entry.value {
                DeValue::Table(_) => self.secret(&entry).map(VariableValue::Secret),
                _ => self.variable(&entry).map(VariableValue::Text),
            };
            if let Some(setting) = setting {
                env.0.insert(entry.key, setting);
            }
        }
        env
    }

    fn variable(&mut self, entry: &Entry) -> Option<String> {
        let text = match &entry.value {
            // As typed: a variable may be empty, or start with a space.
            DeValue::String(text) if !holds_token(text) => text.to_string(),
            _ => self.text(entry)?,
        };
        let name = &entry.key;
        let reference = text.strip_prefix('$').is_some_and(is_variable);
        if names_secret(name) && !reference {
            self.refuse(
                entry,
                format!(
                    "The name suggests a secret, which must not be in a file. Use {name} = {{ env = \
                     \"{name}\" }} to read it from your environment, {name} = {{ command = [\"pass\", \
                     \"show\", \"…\"] }} to run a program that prints it, or {name} = \"${name}\" for the \
                     variable on the cluster."
                ),
            );
            return None;
        }
        // A line break would split it into two variables.
        if text.contains(char::is_control) {
            self.refuse(entry, format!("The value of {name} contains a control character."));
            return None;
        }
        let read = format!("{name}={text}").parse::<EnvOverrides>();
        match read {
            Ok(_) => Some(text),
            Err(problem) => {
                self.problems.push(CampaignProblem::of(entry.line, &entry.path, &problem));
                None
            }
        }
    }

    /// Returns a reference to a secret.
    pub(super) fn secret(&mut self, entry: &Entry) -> Option<Secret> {
        const WANTED: &str = "{ env = \"NAME\" } or { command = [\"PROGRAM\", \"ARGUMENT\"] }";
        let mut found = Vec::new();
        let table = match &entry.value {
            DeValue::Table(table) => table.iter().collect(),
            _ => Vec::new(),
        };
        for (key, value) in table {
            let texts = |value: &DeValue| match value {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            };
            let secret = match (key.get_ref().as_ref(), value.get_ref()) {
                ("env", DeValue::String(name)) if is_variable(name) => Some(Secret::Env(name.to_string())),
                ("command", DeValue::Array(words)) => {
                    let words: Option<Vec<String>> = words.iter().map(|word| texts(word.get_ref())).collect();
                    words
                        .filter(|words| words.first().is_some_and(|program| !program.trim().is_empty()))
                        .filter(|words| !words.iter().any(|word| word.contains('\0') || holds_token(word)))
                        .map(Secret::Command)
                }
                _ => None,
            };
            found.push(secret);
        }
        match (found.pop(), found.is_empty()) {
            (Some(Some(secret)), true) => Some(secret),
            _ => {
                self.refuse(entry, format!("A secret must be a reference: {WANTED}."));
                None
            }
        }
    }
}

/// Returns what a value is, with its article.
pub(super) fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
