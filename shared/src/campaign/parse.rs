//! Reads a campaign from its text, or finds every mistake in it.

use super::environment::names_secret;
use super::problem::CampaignProblem;
use super::read::{Entry, KeyLines, TomlReader, kind};
use super::{Campaign, Name, Run, Settings, Upload, VERSION, is_setting};
use crate::catalog::Catalog;
use crate::field::Field;
use crate::message;
use crate::problem::{Problem, all_of, most_alike};
use crate::spec::Spec;
use std::collections::BTreeSet;
use toml::de::DeValue;

/// The largest number of repeats of a run.
const MOST_REPEATS: u32 = 1000;

/// The largest number of retries of a run.
const MOST_RETRIES: u32 = 10;

/// The message for a campaign without runs.
const NO_RUN: &str = "Missing: add at least one [[run]].";

const TOP: [&str; 6] = ["version", "name", "cluster", "upload", "defaults", "run"];
const POLICY: [&str; 6] = ["env", "repeats", "retries", "exclude", "singleton", "queue-budget"];
const OF_A_RUN: [&str; 3] = ["name", "after", "upload"];
const OF_AN_UPLOAD: [&str; 4] = ["to", "token", "logs", "progress"];

/// The lines of a campaign's keys, for problems that are found later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CampaignLines {
    defaults: KeyLines,
    runs: Vec<(u32, KeyLines)>,
}

impl CampaignLines {
    /// Returns the line and the full name of a key that takes effect in a run: the run's own, else the one in
    /// the defaults, else the run itself.
    pub(super) fn of(&self, campaign: &Campaign, run: usize, key: &str) -> (u32, String) {
        let name = campaign.runs.get(run).map_or("", |run| run.name.as_str());
        let own = self.runs.get(run);
        match (own.and_then(|(_, keys)| keys.get(key)), self.defaults.get(key)) {
            (Some(line), _) => (*line, format!("run.{name}.{key}")),
            (None, Some(line)) => (*line, format!("defaults.{key}")),
            (None, None) => (own.map_or(1, |(line, _)| *line), format!("run.{name}.{key}")),
        }
    }
}

impl Campaign {
    /// Reads a campaign. [`plan`](super::plan) checks what depends on the cluster.
    ///
    /// # Errors
    /// Every mistake, in the order of the lines.
    pub fn parse(text: &str) -> Result<Campaign, Vec<CampaignProblem>> {
        Campaign::parse_with_lines(text).map(|(campaign, _)| campaign)
    }

    /// Reads a campaign, and the lines of its keys.
    ///
    /// # Errors
    /// Every mistake, in the order of the lines.
    pub fn parse_with_lines(text: &str) -> Result<(Campaign, CampaignLines), Vec<CampaignProblem>> {
        let (mut reader, table) = TomlReader::new(text)?;
        let mut lines = CampaignLines::default();
        let (mut name, mut cluster) = (None, None);
        let mut defaults = Settings::default();
        let (mut runs, mut keys) = (Vec::new(), BTreeSet::new());
        let entries = reader.entries("", table, true);
        // The keys of another version may mean something else, so they are not checked.
        version(&mut reader, &entries)?;
        for entry in entries {
            keys.insert(entry.key.clone());
            match entry.key.as_str() {
                "version" => {}
                "name" => name = reader.named(&entry),
                "cluster" => cluster = reader.named(&entry),
                "upload" => defaults.upload = upload(&mut reader, entry),
                "defaults" => {
                    for entry in reader.table(entry, true).unwrap_or_default() {
                        lines.defaults.insert(entry.key.clone(), entry.line);
                        if let Some(entry) = setting(&mut reader, &mut defaults, entry) {
                            unknown(&mut reader, &entry, &[]);
                        }
                    }
                    reader.options(&defaults.spec, "defaults", &lines.defaults);
                }
                "run" => runs.extend(read_runs(&mut reader, entry, &mut lines)),
                key => {
                    let meant = most_alike(key, TOP);
                    reader.unknown(&entry, TOP);
                    // The intended key isn't missing, and mistakes in misspelt runs are reported, too.
                    keys.extend(meant.map(String::from));
                    if meant == Some("run") {
                        runs.extend(read_runs(&mut reader, entry, &mut lines));
                    }
                }
            }
        }
        for (key, what) in
            [("name", "the campaign's name"), ("cluster", "the name of a cluster in clusters.toml")]
        {
            if !keys.contains(key) {
                reader.problems.push(CampaignProblem::new(1, key, format!("Missing: {what}.")));
            }
        }
        // An empty list is reported by `read_runs`.
        if !keys.contains("run") {
            reader.problems.push(CampaignProblem::new(1, "run", NO_RUN));
        }
        let complete = reader.problems.is_empty();
        let nameless = || Name(String::new());
        let (name, cluster) = (name.unwrap_or_else(nameless), cluster.unwrap_or_else(nameless));
        let campaign = Campaign { name, cluster, defaults, runs };
        let mut problems = reader.problems;
        problems.extend(order(&campaign, &lines));
        for run in 0..campaign.runs.len() {
            problems.extend(scenario(&campaign, &lines, run, complete));
        }
        if problems.is_empty() { Ok((campaign, lines)) } else { Err(in_order(problems)) }
    }

    /// Returns a run's fields, with the defaults for those that it doesn't set.
    pub(super) fn spec(&self, run: &Run) -> Spec {
        run.settings
            .spec
            .iter()
            .fold(self.defaults.spec.clone(), |spec, (field, text)| spec.with(field, text))
    }
}

/// Sorts problems by line and removes duplicates: a mistake in the defaults would be reported for each run.
pub(super) fn in_order(mut problems: Vec<CampaignProblem>) -> Vec<CampaignProblem> {
    problems.sort_by_key(|problem| problem.line);
    let mut once: Vec<CampaignProblem> = Vec::new();
    for problem in problems {
        if !once.contains(&problem) {
            once.push(problem);
        }
    }
    once
}

/// Refuses other versions than [`VERSION`].
pub(super) fn version(reader: &mut TomlReader, entries: &[Entry]) -> Result<(), Vec<CampaignProblem>> {
    let Some(entry) = entries.iter().find(|entry| entry.key == "version") else {
        let message = format!("Missing: add version = {VERSION}.");
        reader.problems.push(CampaignProblem::new(1, "version", message));
        return Ok(());
    };
    match &entry.value {
        DeValue::Integer(whole) if whole.as_str() == VERSION.to_string() && whole.radix() == 10 => Ok(()),
        other => {
            let (given, fix) = match other {
                DeValue::Integer(whole) => (whole.to_string(), "Update Trainplan, or change the file to"),
                other => (kind(other).to_string(), "Write"),
            };
            let message =
                format!("This Trainplan reads version {VERSION}, not {given}. {fix} version = {VERSION}.");
            Err(vec![CampaignProblem::new(entry.line, "version", message)])
        }
    }
}

fn read_runs(reader: &mut TomlReader, entry: Entry, lines: &mut CampaignLines) -> Vec<Run> {
    let mut runs = Vec::new();
    let DeValue::Array(items) = entry.value else {
        let message = format!("Start each run with [[run]]. This is {}.", kind(&entry.value));
        reader.problems.push(CampaignProblem::new(entry.line, entry.path, message));
        return runs;
    };
    if items.is_empty() {
        reader.problems.push(CampaignProblem::new(entry.line, entry.path, NO_RUN));
    }
    for (index, item) in items.into_iter().enumerate() {
        let line = reader.line(item.span().start);
        let DeValue::Table(table) = item.into_inner() else {
            reader.problems.push(CampaignProblem::new(line, "run", "Start each run with [[run]]."));
            continue;
        };
        // Messages use the run's name if it is valid.
        let named = table.get("name").and_then(|name| name.get_ref().as_str());
        let named = named.filter(|name| name.parse::<Name>().is_ok()).map(String::from);
        let place = format!("run.{}", named.unwrap_or_else(|| (index + 1).to_string()));
        let (mut name, mut after, mut settings) = (None, Vec::new(), Settings::default());
        let mut keys = KeyLines::new();
        let entries = reader.entries(&place, table, true);
        if !entries.iter().any(|entry| entry.key == "name") {
            reader.problems.push(CampaignProblem::new(
                line,
                format!("{place}.name"),
                "Missing: the run's name.",
            ));
        }
        for entry in entries {
            keys.insert(entry.key.clone(), entry.line);
            match entry.key.as_str() {
                "name" => name = reader.named(&entry),
                "after" => after = reader.after(&entry),
                "upload" => settings.upload = upload(reader, entry),
                _ => {
                    if let Some(entry) = setting(reader, &mut settings, entry) {
                        unknown(reader, &entry, &OF_A_RUN);
                    }
                }
            }
        }
        reader.options(&settings.spec, &place, &keys);
        // An invalid name is already among the problems.
        runs.push(Run { name: name.unwrap_or_else(|| Name(String::new())), after, settings });
        lines.runs.push((line, keys));
    }
    runs
}

/// Reads where to send results.
fn upload(reader: &mut TomlReader, entry: Entry) -> Option<Upload> {
    if matches!(entry.value, DeValue::String(_)) {
        let message = format!(
            "Use a table, not a string: upload = {{ to = \"https://results.example\" }}. Its keys are {}.",
            all_of(&OF_AN_UPLOAD)
        );
        reader.refuse(&entry, message);
        return None;
    }
    let (line, path) = (entry.line, entry.path.clone());
    let entries = reader.table(entry, true)?;
    if !entries.iter().any(|entry| entry.key == "to") {
        let message = "Missing: the server's address, such as to = \"https://results.example\".";
        reader.problems.push(CampaignProblem::new(line, format!("{path}.to"), message));
    }
    let (mut to, mut token, mut logs, mut progress) = (None, None, None, None);
    for entry in entries {
        match entry.key.as_str() {
            "to" => to = reader.named(&entry),
            "token" => token = reader.secret(&entry),
            "logs" => logs = reader.switch(&entry),
            "progress" => progress = reader.switch(&entry),
            _ => reader.unknown(&entry, OF_AN_UPLOAD),
        }
    }
    let all = Upload::to(to?);
    Some(Upload {
        token: token.unwrap_or(all.token),
        logs: logs.unwrap_or(all.logs),
        progress: progress.unwrap_or(all.progress),
        to: all.to,
    })
}

/// Refuses an unknown key in a table of settings with `more` keys.
fn unknown(reader: &mut TomlReader, entry: &Entry, more: &[&'static str]) {
    let fields = Field::ALL.iter().filter(|field| is_setting(**field)).map(|field| field.flag());
    if names_secret(&entry.key) {
        reader
            .refuse(entry, "Unknown key. Put variables in a table env: env = { NAME = { env = \"NAME\" } }.");
    } else {
        reader.unknown(entry, more.iter().copied().chain(POLICY).chain(fields));
    }
}

/// Reads a setting. Returns the entry if its key is not a setting.
fn setting<'i>(reader: &mut TomlReader, settings: &mut Settings, entry: Entry<'i>) -> Option<Entry<'i>> {
    match entry.key.as_str() {
        "env" => settings.env = reader.env(entry),
        "repeats" => settings.repeats = reader.whole(&entry, 1, MOST_REPEATS),
        "retries" => settings.retries = reader.whole(&entry, 0, MOST_RETRIES),
        "exclude" => settings.exclude = reader.named(&entry),
        "singleton" => settings.singleton = reader.switch(&entry),
        "queue-budget" => settings.queue_budget = reader.parsed(&entry),
        key => match Field::from_flag(key).filter(|field| is_setting(*field) && field.flag() == key) {
            Some(field) => reader.field(&mut settings.spec, field, &entry),
            None => return Some(entry),
        },
    }
    None
}

/// Finds duplicate names, and runs that would wait forever.
fn order(campaign: &Campaign, lines: &CampaignLines) -> Vec<CampaignProblem> {
    let names: Vec<&str> = campaign.runs.iter().map(|run| run.name.as_str()).collect();
    // Any other name may be the one that is invalid.
    if names.contains(&"") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut refuse = |run: usize, key: &str, message: String| {
        let (line, key) = lines.of(campaign, run, key);
        problems.push(CampaignProblem::new(line, key, message));
    };
    let mut unknown = false;
    for (index, run) in campaign.runs.iter().enumerate() {
        if let Some(first) = names[..index].iter().position(|name| *name == run.name.as_str()) {
            let (line, _) = lines.of(campaign, first, "name");
            refuse(index, "name", format!("The run on line {line} is already called \"{}\".", run.name));
        }
        for before in run.after.iter().map(|after| &after.run) {
            if !names.contains(&before.as_str()) {
                unknown = true;
                let others = names.iter().copied().filter(|name| *name != run.name.as_str());
                let closest = most_alike(before.as_str(), others);
                let closest = closest.map_or(String::new(), |closest| format!(" Did you mean {closest}?"));
                refuse(index, "after", format!("This campaign has no run \"{before}\".{closest}"));
            }
        }
    }
    if let Some(circle) = circle(campaign).filter(|_| !unknown) {
        let names: Vec<&str> = circle.iter().filter_map(|index| names.get(*index).copied()).collect();
        let first = circle.first().copied().unwrap_or_default();
        let message = match names.len() {
            ..=2 => "A run can't wait for itself.".to_string(),
            _ => format!("These runs would wait forever: {}.", names.join(" waits for ")),
        };
        refuse(first, "after", message);
    }
    problems
}

/// Returns runs that wait for each other, with the first again at the end.
fn circle(campaign: &Campaign) -> Option<Vec<usize>> {
    let place = |name: &Name| campaign.runs.iter().position(|run| run.name == *name);
    let waits_for: Vec<Vec<usize>> = campaign
        .runs
        .iter()
        .map(|run| run.after.iter().filter_map(|after| place(&after.run)).collect())
        .collect();
    let mut ends = vec![false; waits_for.len()];
    loop {
        let next =
            (0..ends.len()).find(|run| !ends[*run] && waits_for[*run].iter().all(|other| ends[*other]));
        match next {
            Some(next) => ends[next] = true,
            None => break,
        }
    }
    // Each remaining run waits for another remaining run.
    let mut path = vec![ends.iter().position(|ends| !ends)?];
    loop {
        let last = *path.last()?;
        let next = waits_for[last].iter().copied().find(|other| !ends[*other])?;
        if let Some(begin) = path.iter().position(|run| *run == next) {
            path.push(next);
            return Some(path.split_off(begin));
        }
        path.push(next);
    }
}

/// Returns the problems of a run's scenario that don't depend on the cluster. A missing field is a problem
/// only if the rest of the file is `complete`: otherwise it may be among what couldn't be read.
fn scenario(campaign: &Campaign, lines: &CampaignLines, run: usize, complete: bool) -> Vec<CampaignProblem> {
    let Some(entry) = campaign.runs.get(run) else { return Vec::new() };
    let spec = campaign.spec(entry);
    // The cluster may define the GPU, and only the runner can read a model's file.
    let later = |problem: &Problem| match problem.field {
        Field::Gpu => spec.get(Field::Gpu).is_none(),
        Field::Model => spec.get(Field::Model).is_some_and(is_path),
        _ => false,
    };
    let mut problems = spec.scenario().err().unwrap_or_default();
    problems.retain(|problem| !later(problem) && (complete || !problem.given.is_empty()));
    if !problems.is_empty()
        && let Some(problem) = two_models(&spec)
    {
        // The others follow from it: the layout is that of the recipe's model.
        problems = vec![problem];
    }
    let at_its_line = |problem: &Problem| {
        let (line, key) = lines.of(campaign, run, problem.field.flag());
        CampaignProblem::of(line, key, problem)
    };
    problems.iter().map(at_its_line).collect()
}

/// Returns the problem of a model that differs from the recipe's, if the recipe could run without it.
fn two_models(spec: &Spec) -> Option<Problem> {
    let (model, recipe) = (spec.get(Field::Model)?, spec.get(Field::Recipe)?);
    let of_recipe = &Catalog::embedded().recipe(recipe).ok()?.id.model;
    let is_other = !model.starts_with("own:") && !model.eq_ignore_ascii_case(of_recipe);
    (is_other && spec.clone().with(Field::Model, "").scenario().is_ok()).then(|| {
        let message = message![
            format!(
                "The run names two models: {model} here, and {of_recipe} by its recipe, whose layout doesn't suit {model}. Remove "
            ),
            Field::Model,
            " or ",
            Field::Recipe,
            "."
        ];
        Problem::new(Field::Model, model, message)
    })
}

/// Returns whether a model's text can be a file name.
fn is_path(text: &str) -> bool {
    !text.starts_with("own:") && (text.contains('/') || text.ends_with(".json") || text.starts_with('.'))
}
