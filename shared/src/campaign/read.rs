//! Reading a TOML file so that every mistake in it is found, each with its line.

use super::environment::{Env, Secret, Setting, holds_token, is_variable, names_secret};
use super::problem::{CampaignProblem, printable};
use crate::field::Field;
use crate::launch::{EnvOverrides, LaunchOptions};
use crate::problem::Problem;
use crate::spec::Spec;
use std::collections::BTreeMap;
use std::str::FromStr;
use toml::de::{DeTable, DeValue};

/// A key with its value, and where both stand.
#[derive(Debug)]
pub(super) struct Entry<'i> {
    pub(super) key: String,
    /// The key with the tables that it stands in.
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) value: DeValue<'i>,
}

/// The lines of a file's keys.
pub(super) type KeyLines = BTreeMap<String, u32>;

/// Reads, gathering problems.
#[derive(Debug)]
pub(super) struct Reader {
    /// Where each line but the first begins.
    breaks: Vec<usize>,
    pub(super) problems: Vec<CampaignProblem>,
}

impl Reader {
    /// The file's table.
    ///
    /// # Errors
    /// All that is no TOML: what the rest of the file means is then not known.
    pub(super) fn new(text: &str) -> Result<(Reader, DeTable<'_>), Vec<CampaignProblem>> {
        let breaks = text.match_indices('\n').map(|(place, _)| place + 1).collect();
        let mut reader = Reader { breaks, problems: Vec::new() };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let line = reader.line(error.span().map_or(0, |span| span.start));
            // The message alone: with the line itself it might repeat a secret.
            reader.problems.push(CampaignProblem::new(line, "", format!("is no TOML: {}", error.message())));
        }
        if reader.problems.is_empty() { Ok((reader, table.into_inner())) } else { Err(reader.problems) }
    }

    pub(super) fn line(&self, offset: usize) -> u32 {
        let before = self.breaks.partition_point(|place| *place <= offset);
        u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// A table's keys in the order of the file. A dash and an underscore are the same in a key if `plain`, which a
    /// variable's name is not.
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
                    let what = format!("is there twice: line {} says it too", earlier.line);
                    self.refuse(&entry, what);
                }
                None => entries.push(entry),
            }
        }
        entries
    }

    pub(super) fn refuse(&mut self, entry: &Entry, what: impl Into<String>) {
        self.problems.push(CampaignProblem::new(entry.line, &entry.path, what));
    }

    /// A key that nobody knows.
    pub(super) fn unknown<'a>(&mut self, entry: &Entry, known: impl IntoIterator<Item = &'a str>) {
        let problem = CampaignProblem::new(entry.line, &entry.path, "is no known key");
        self.problems.push(problem.known(&entry.key, known));
    }

    /// A text, a number or a switch, as text.
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
            // A time limit without quotes is a time of the day.
            DeValue::Datetime(time) => time.to_string(),
            other => {
                let what = format!("is {}", kind(other));
                let problem = CampaignProblem::new(entry.line, &entry.path, what);
                self.problems.push(problem.allowed("a text, a number, true or false"));
                return None;
            }
        };
        if holds_token(&text) {
            self.refuse(
                entry,
                "holds what looks like an access token, which never stands in a file: refer to it under env, as in \
                 HF_TOKEN = { env = \"HF_TOKEN\" }",
            );
            return None;
        }
        if text.is_empty() {
            self.refuse(entry, "is empty: leave the key out");
            return None;
        }
        Some(text)
    }

    /// A text that is parsed as its type says.
    pub(super) fn parsed<T: FromStr<Err = Problem>>(&mut self, entry: &Entry) -> Option<T> {
        match self.text(entry)?.parse() {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problems.push(CampaignProblem::of(entry.line, &entry.path, problem));
                None
            }
        }
    }

    /// A name or an address.
    pub(super) fn named<T: FromStr<Err = super::Refused>>(&mut self, entry: &Entry) -> Option<T> {
        let text = self.text(entry)?;
        self.name(entry, &text)
    }

    fn name<T: FromStr<Err = super::Refused>>(&mut self, entry: &Entry, text: &str) -> Option<T> {
        match text.parse() {
            Ok(value) => Some(value),
            Err(super::Refused { what, allowed }) => {
                // An address may hold a password.
                let given = if text.contains('@') { "" } else { text };
                let problem = CampaignProblem::new(entry.line, &entry.path, what);
                self.problems.push(problem.given(given).allowed(allowed));
                None
            }
        }
    }

    /// One name, or several in an array.
    pub(super) fn names<T: FromStr<Err = super::Refused>>(&mut self, entry: &Entry) -> Vec<T> {
        let DeValue::Array(items) = &entry.value else { return self.named(entry).into_iter().collect() };
        let mut names = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) => names.extend(self.name(entry, text)),
                other => {
                    let what = format!("holds {}", kind(other));
                    let problem = CampaignProblem::new(entry.line, &entry.path, what);
                    self.problems.push(problem.allowed("names"));
                }
            }
        }
        names
    }

    pub(super) fn whole(&mut self, entry: &Entry, from: u32, to: u32) -> Option<u32> {
        let text = self.text(entry)?;
        let problem = match text.parse::<u32>() {
            Ok(whole) if (from..=to).contains(&whole) => return Some(whole),
            Ok(whole) => CampaignProblem::new(entry.line, &entry.path, "is out of range")
                .given(&text)
                .allowed(format!("a whole number from {from} to {to}"))
                .nearest(whole.clamp(from, to)),
            Err(_) => CampaignProblem::new(entry.line, &entry.path, "is no whole number")
                .given(&text)
                .allowed(format!("a whole number from {from} to {to}")),
        };
        self.problems.push(problem);
        None
    }

    pub(super) fn switch(&mut self, entry: &Entry) -> Option<bool> {
        if let DeValue::Boolean(on) = entry.value {
            return Some(on);
        }
        let text = self.text(entry)?;
        let problem = CampaignProblem::new(entry.line, &entry.path, "is neither true nor false");
        self.problems.push(problem.given(&text).allowed("true, false"));
        None
    }

    pub(super) fn table<'i>(&mut self, entry: Entry<'i>, plain: bool) -> Option<Vec<Entry<'i>>> {
        let Entry { path, value, line, .. } = entry;
        match value {
            DeValue::Table(table) => Some(self.entries(&path, table, plain)),
            other => {
                let what = format!("is {}", kind(&other));
                self.problems.push(CampaignProblem::new(line, path, what).allowed("a table"));
                None
            }
        }
    }

    /// Puts a key into a field. What the field says of itself is found by [`Reader::fields`].
    pub(super) fn field(&mut self, spec: &mut Spec, field: Field, entry: &Entry) {
        if let Some(text) = self.text(entry) {
            spec.set(field, text);
        }
    }

    /// What the launch fields say of their own values.
    pub(super) fn options(&mut self, spec: &Spec, place: &str, lines: &KeyLines) {
        let Err(problems) = LaunchOptions::from_spec(spec) else { return };
        for problem in problems {
            let key = problem.field.flag();
            let line = lines.get(key).copied().unwrap_or(1);
            self.problems.push(CampaignProblem::of(line, format!("{place}.{key}"), problem));
        }
    }

    /// Variables; each value is a text or a reference to a secret.
    pub(super) fn env(&mut self, entry: Entry) -> Env {
        let mut env = Env::default();
        for entry in self.table(entry, false).unwrap_or_default() {
            if !is_variable(&entry.key) {
                let problem = CampaignProblem::new(entry.line, &entry.path, "is no name of a variable");
                self.problems.push(problem.allowed("letters, digits and underscores"));
                continue;
            }
            let setting = match &entry.value {
                DeValue::Table(_) => self.secret(&entry).map(Setting::Secret),
                _ => self.variable(&entry).map(Setting::Text),
            };
            if let Some(setting) = setting {
                env.0.insert(entry.key, setting);
            }
        }
        env
    }

    fn variable(&mut self, entry: &Entry) -> Option<String> {
        let text = match &entry.value {
            // As typed: a variable may be empty, or begin with a blank.
            DeValue::String(text) if !holds_token(text) => text.to_string(),
            _ => self.text(entry)?,
        };
        let name = &entry.key;
        let reference = text.strip_prefix('$').is_some_and(is_variable);
        if names_secret(name) && !reference {
            let what = "is a secret by its name, and a secret never stands in a file";
            let allowed = format!(
                "{name} = {{ env = \"{name}\" }} to take it from your environment, {name} = {{ command = [\"pass\", \
                 \"show\", \"…\"] }} to have a program print it, or \"${name}\" for what the variable holds on the cluster"
            );
            let problem = CampaignProblem::new(entry.line, &entry.path, what);
            self.problems.push(problem.allowed(allowed));
            return None;
        }
        let read = match text.contains(char::is_control) {
            // A line break would make two variables of it.
            true => {
                Err(Problem::clause(Field::Env, name, "holds a control character, which can't be pasted"))
            }
            false => format!("{name}={text}").parse::<EnvOverrides>().map(drop),
        };
        match read {
            Ok(()) => Some(text),
            Err(problem) => {
                self.problems.push(CampaignProblem::of(entry.line, &entry.path, problem));
                None
            }
        }
    }

    /// A reference to a secret, and never one itself.
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
                let problem = CampaignProblem::new(entry.line, &entry.path, "is no reference to a secret");
                self.problems.push(problem.allowed(WANTED));
                None
            }
        }
    }
}

/// What a value is, as the end of a clause.
pub(super) fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}
