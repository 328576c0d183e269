//! A campaign from its text, or every mistake in it.

use super::environment::names_secret;
use super::problem::CampaignProblem;
use super::read::{Entry, KeyLines, Reader, kind};
use super::{Campaign, Name, Run, Settings, Upload, VERSION, is_setting};
use crate::field::Field;
use crate::problem::Problem;
use crate::spec::Spec;
use std::collections::BTreeSet;
use toml::de::DeValue;

/// The most repeats of a run.
const MOST_REPEATS: u32 = 1000;

const TOP: [&str; 6] = ["version", "name", "cluster", "upload", "defaults", "run"];
const POLICY: [&str; 4] = ["env", "repeats", "singleton", "queue-budget"];
const OF_A_RUN: [&str; 3] = ["name", "after", "upload"];
const OF_AN_UPLOAD: [&str; 4] = ["to", "token", "logs", "progress"];

/// Where a campaign's keys stand in its file, for what is found out only later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines {
    defaults: KeyLines,
    runs: Vec<(u32, KeyLines)>,
}

impl Lines {
    /// The line and the name of a key that takes effect in a run: its own, else the defaults', else the run itself.
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
    /// Reads a campaign. What depends on the cluster is left to [`plan`](super::plan).
    ///
    /// # Errors
    /// Every mistake, in the order of the lines.
    pub fn parse(text: &str) -> Result<Campaign, Vec<CampaignProblem>> {
        Campaign::parse_with_lines(text).map(|(campaign, _)| campaign)
    }

    /// The same, with where its keys stand.
    ///
    /// # Errors
    /// Every mistake, in the order of the lines.
    pub fn parse_with_lines(text: &str) -> Result<(Campaign, Lines), Vec<CampaignProblem>> {
        let (mut reader, table) = Reader::new(text)?;
        let mut lines = Lines::default();
        let (mut name, mut cluster) = (None, None);
        let mut defaults = Settings::default();
        let (mut runs, mut keys) = (Vec::new(), BTreeSet::new());
        let entries = reader.entries("", table, true);
        // What another version means by its keys is not known: they would only be noise.
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
                "run" => runs = read_runs(&mut reader, entry, &mut lines),
                _ => reader.unknown(&entry, TOP),
            }
        }
        for (key, what) in [("name", "what it is called"), ("cluster", "a profile of clusters.toml")] {
            if !keys.contains(key) {
                reader.problems.push(CampaignProblem::new(1, key, format!("is needed: {what}")));
            }
        }
        // An empty list would not be said twice.
        if !keys.contains("run") {
            reader.problems.push(CampaignProblem::new(1, "run", "is needed: at least one [[run]]"));
        }
        let complete = reader.problems.is_empty();
        let nameless = || Name(String::new());
        let (name, cluster) = (name.unwrap_or_else(nameless), cluster.unwrap_or_else(nameless));
        let campaign = Campaign { name, cluster, defaults, runs };
        let mut problems = reader.problems;
        problems.extend(order(&campaign, &lines));
        for run in 0..campaign.runs.len() {
            let found = scenario(&campaign, &lines, run);
            // What is missing may be what could not be read.
            problems.extend(found.into_iter().filter(|problem| complete || !problem.given.is_empty()));
        }
        if problems.is_empty() { Ok((campaign, lines)) } else { Err(in_order(problems)) }
    }

    /// What a run's fields are once the defaults stand in for what it leaves out.
    pub(super) fn spec(&self, run: &Run) -> Spec {
        run.settings
            .spec
            .iter()
            .fold(self.defaults.spec.clone(), |spec, (field, text)| spec.with(field, text))
    }
}

/// By line, each once: a mistake in the defaults is one, however many runs it reaches.
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

/// Refuses every version but ours.
pub(super) fn version(reader: &mut Reader, entries: &[Entry]) -> Result<(), Vec<CampaignProblem>> {
    let Some(entry) = entries.iter().find(|entry| entry.key == "version") else {
        reader
            .problems
            .push(CampaignProblem::new(1, "version", "is needed").allowed(format!("version = {VERSION}")));
        return Ok(());
    };
    match &entry.value {
        DeValue::Integer(whole) if whole.as_str() == VERSION.to_string() && whole.radix() == 10 => Ok(()),
        other => {
            let given = match other {
                DeValue::Integer(whole) => whole.to_string(),
                other => kind(other).to_string(),
            };
            let what = "is no version that this trainplan reads";
            let problem = CampaignProblem::new(entry.line, "version", what).given(&given);
            Err(vec![problem.allowed(VERSION.to_string())])
        }
    }
}

fn read_runs(reader: &mut Reader, entry: Entry, lines: &mut Lines) -> Vec<Run> {
    let mut runs = Vec::new();
    let DeValue::Array(items) = entry.value else {
        let what = format!("is {}", kind(&entry.value));
        let problem = CampaignProblem::new(entry.line, entry.path, what);
        reader.problems.push(problem.allowed("[[run]], once for each"));
        return runs;
    };
    if items.is_empty() {
        reader.problems.push(CampaignProblem::new(entry.line, entry.path, "is needed: at least one [[run]]"));
    }
    for (index, item) in items.into_iter().enumerate() {
        let line = reader.line(item.span().start);
        let DeValue::Table(table) = item.into_inner() else {
            reader.problems.push(CampaignProblem::new(line, "run", "is no table").allowed("[[run]]"));
            continue;
        };
        // Named in messages by its name, if it has a readable one.
        let named = table.get("name").and_then(|name| name.get_ref().as_str());
        let named = named.filter(|name| name.parse::<Name>().is_ok()).map(String::from);
        let place = format!("run.{}", named.unwrap_or_else(|| (index + 1).to_string()));
        let (mut name, mut after, mut settings) = (None, Vec::new(), Settings::default());
        let mut keys = KeyLines::new();
        let entries = reader.entries(&place, table, true);
        if !entries.iter().any(|entry| entry.key == "name") {
            let what = "is needed: what the run is called";
            reader.problems.push(CampaignProblem::new(line, format!("{place}.name"), what));
        }
        for entry in entries {
            keys.insert(entry.key.clone(), entry.line);
            match entry.key.as_str() {
                "name" => name = reader.named(&entry),
                "after" => after = reader.names(&entry),
                "upload" => settings.upload = upload(reader, entry),
                _ => {
                    if let Some(entry) = setting(reader, &mut settings, entry) {
                        unknown(reader, &entry, &OF_A_RUN);
                    }
                }
            }
        }
        reader.options(&settings.spec, &place, &keys);
        // A name that can't be read is among the problems.
        runs.push(Run { name: name.unwrap_or_else(|| Name(String::new())), after, settings });
        lines.runs.push((line, keys));
    }
    runs
}

/// Where results are sent to.
fn upload(reader: &mut Reader, entry: Entry) -> Option<Upload> {
    let (line, path) = (entry.line, entry.path.clone());
    let entries = reader.table(entry, true)?;
    if !entries.iter().any(|entry| entry.key == "to") {
        let problem = CampaignProblem::new(line, format!("{path}.to"), "is needed: the server's address");
        reader.problems.push(problem.allowed("to = \"https://results.example\""));
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

/// A key that is none of settings, in a table with `more` of its own.
fn unknown(reader: &mut Reader, entry: &Entry, more: &[&'static str]) {
    let fields = Field::ALL.iter().filter(|field| is_setting(**field)).map(|field| field.flag());
    let others: Vec<&str> = more.iter().copied().chain(POLICY).collect();
    let problem = CampaignProblem::new(entry.line, &entry.path, "is no known key");
    reader.problems.push(match names_secret(&entry.key) {
        true => problem.allowed("variables in a table env: env = { NAME = { env = \"NAME\" } }"),
        false => problem.known(&entry.key, others.iter().copied().chain(fields)).allowed(format!(
            "{}, and the flags of `trainplan estimate` and `trainplan launch` without their dashes",
            others.join(", ")
        )),
    });
}

/// Reads a key of settings; gives it back if it is none.
fn setting<'i>(reader: &mut Reader, settings: &mut Settings, entry: Entry<'i>) -> Option<Entry<'i>> {
    match entry.key.as_str() {
        "env" => settings.env = reader.env(entry),
        "repeats" => settings.repeats = reader.whole(&entry, 1, MOST_REPEATS),
        "singleton" => settings.singleton = reader.switch(&entry),
        "queue-budget" => settings.queue_budget = reader.parsed(&entry),
        key => match Field::from_flag(key).filter(|field| is_setting(*field) && field.flag() == key) {
            Some(field) => reader.field(&mut settings.spec, field, &entry),
            None => return Some(entry),
        },
    }
    None
}

/// Names that are there twice, and runs that wait for what never ends.
fn order(campaign: &Campaign, lines: &Lines) -> Vec<CampaignProblem> {
    let names: Vec<&str> = campaign.runs.iter().map(|run| run.name.as_str()).collect();
    // Any name may be the one that could not be read.
    if names.contains(&"") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut refuse = |run: usize, key: &str, problem: CampaignProblem| {
        let (line, key) = lines.of(campaign, run, key);
        problems.push(CampaignProblem { line, key, ..problem });
    };
    let blank = |what: String| CampaignProblem::new(0, "", what);
    let mut unknown = false;
    for (index, run) in campaign.runs.iter().enumerate() {
        if let Some(first) = names[..index].iter().position(|name| *name == run.name.as_str()) {
            let (line, _) = lines.of(campaign, first, "name");
            let what = format!("is the name of the run in line {line} already");
            refuse(index, "name", blank(what).given(run.name.as_str()));
        }
        for before in &run.after {
            if !names.contains(&before.as_str()) {
                unknown = true;
                let others = names.iter().copied().filter(|name| *name != run.name.as_str());
                let problem = blank("is no run of this campaign".into()).given(before.as_str());
                refuse(index, "after", problem.known(before.as_str(), others));
            }
        }
    }
    if let Some(circle) = circle(campaign).filter(|_| !unknown) {
        let names: Vec<&str> = circle.iter().filter_map(|index| names.get(*index).copied()).collect();
        let first = circle.first().copied().unwrap_or_default();
        let what = match names.len() {
            ..=2 => "is the run itself, which would wait for ever".to_string(),
            _ => format!("would wait for ever: {}", names.join(" waits for ")),
        };
        refuse(first, "after", blank(what));
    }
    problems
}

/// Runs that wait for each other, the first once more at the end.
fn circle(campaign: &Campaign) -> Option<Vec<usize>> {
    let place = |name: &Name| campaign.runs.iter().position(|run| run.name == *name);
    let waits_for: Vec<Vec<usize>> =
        campaign.runs.iter().map(|run| run.after.iter().filter_map(place).collect()).collect();
    let mut ends = vec![false; waits_for.len()];
    loop {
        let next =
            (0..ends.len()).find(|run| !ends[*run] && waits_for[*run].iter().all(|other| ends[*other]));
        match next {
            Some(next) => ends[next] = true,
            None => break,
        }
    }
    // Each that is left waits for another that is left.
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

/// What can be said of a run's scenario without its cluster.
fn scenario(campaign: &Campaign, lines: &Lines, run: usize) -> Vec<CampaignProblem> {
    let Some(entry) = campaign.runs.get(run) else { return Vec::new() };
    let spec = campaign.spec(entry);
    // The cluster may say the GPU, and only the runner can look whether a model is a file.
    let later = |problem: &Problem| match problem.field {
        Field::Gpu => spec.get(Field::Gpu).is_none(),
        Field::Model => spec.get(Field::Model).is_some_and(is_path),
        _ => false,
    };
    let problems = spec.scenario().err().unwrap_or_default();
    problems
        .into_iter()
        .filter(|problem| !later(problem))
        .map(|problem| {
            let (line, key) = lines.of(campaign, run, problem.field.flag());
            CampaignProblem::of(line, key, problem)
        })
        .collect()
}

/// Whether a model's text may be the name of a file.
fn is_path(text: &str) -> bool {
    !text.starts_with("own:") && (text.contains('/') || text.ends_with(".json") || text.starts_with('.'))
}
