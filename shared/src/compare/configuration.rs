//! Every key of every run's configuration, what differs first.

use super::workload::value;
use crate::field::Field;
use crate::result::{RunResult, Seen};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One key, with its value in every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Setting {
    /// What it belongs to.
    pub group: Group,
    /// Its name: a flag such as `tp`, or the place in a result file, such as `launch.steps`.
    pub key: String,
    /// What people call it.
    pub label: String,
    /// Its value in every run, in the order of the items; none where a run does not tell it.
    pub values: Vec<Option<String>>,
    /// Whether the runs differ in it.
    pub differs: bool,
}

/// What a key belongs to, in the order in which people look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// What is trained, on what, how.
    Scenario,
    /// The release, and what wrote and read the log.
    Software,
    /// What it was launched by.
    Launch,
    /// What was predicted, and by what.
    Plan,
    /// Who carried it out, where and when.
    Run,
    /// What the log says of itself.
    Log,
}

impl Group {
    /// Its name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Group::Scenario => "Scenario",
            Group::Software => "Software",
            Group::Launch => "Launch",
            Group::Plan => "Plan",
            Group::Run => "Run",
            Group::Log => "Log",
        }
    }
}

/// Where a key stands: the groups in their order, and within a group the order of its maker.
type Place = (Group, usize, String);

/// The configuration of all runs.
pub(super) fn all(seen: &[(&RunResult, Seen<'_>)]) -> Vec<Setting> {
    let mut rows: BTreeMap<Place, (String, Vec<Option<String>>)> = BTreeMap::new();
    for (index, (run, seen)) in seen.iter().enumerate() {
        for (place, label, value) in settings(run, seen) {
            let (_, values) = rows.entry(place).or_insert_with(|| (label, Vec::new()));
            values.resize(index, None);
            values.push(Some(value));
        }
    }
    let mut settings: Vec<Setting> = rows
        .into_iter()
        .map(|((group, _, key), (label, mut values))| {
            values.resize(seen.len(), None);
            let differs = values.iter().any(|value| Some(value) != values.first());
            Setting { group, key, label, values, differs }
        })
        .collect();
    settings.sort_by_key(|setting| !setting.differs);
    settings
}

/// Every key of one run that has a value.
fn settings(run: &RunResult, seen: &Seen<'_>) -> Vec<(Place, String, String)> {
    let mut settings = Vec::new();
    for (place, field) in Field::ALL.iter().enumerate().filter(|(_, field)| field.is_of_scenario()) {
        if let Some(value) = value(seen, *field) {
            let key = (Group::Scenario, place, field.flag().to_owned());
            settings.push((key, field.label().to_owned(), value));
        }
    }
    let log = &run.log;
    let format = log.format.map(|format| format.name().to_owned());
    let named = Some(run.name.experiment.clone()).filter(|name| !name.is_empty());
    let told = [
        (Group::Software, "release", seen.identity.release.map(|release| release.id().to_owned())),
        (Group::Software, "framework", format),
        (Group::Software, "read_by", Some(run.provenance.program.clone())),
        (Group::Software, "parser_version", Some(run.provenance.parser_version.to_string())),
        (Group::Log, "experiment", named),
        (Group::Log, "job_id", run.name.job_id.map(|job| job.to_string())),
        (Group::Log, "planned_last_step", log.planned_last.map(|last| last.to_string())),
        (Group::Log, "window", seen.report.window.map(|window| window.to_string())),
        (Group::Log, "restarts", Some(log.restarts.to_string())),
        (Group::Log, "profiled", Some(yes_or_no(log.profiled || run.name.profiled))),
        (Group::Log, "nccl_traced", Some(yes_or_no(log.traced || run.name.traced))),
        (Group::Log, "checkpoint_saves", Some(seen.report.checkpoint.saves.to_string())),
        (Group::Log, "checkpoint_loads", Some(seen.report.checkpoint.loads.to_string())),
        (Group::Log, "sha256", Some(run.source.sha256.clone())),
    ];
    for (place, (group, key, value)) in told.into_iter().enumerate() {
        settings.extend(value.map(|value| ((group, place, key.to_owned()), words(key), value)));
    }
    // Whatever else the file tells of how it was carried out, also what a later program writes there.
    if let Some(Ok(carried)) = run.carried.as_ref().map(serde_json::to_value) {
        let mut leaves = Vec::new();
        flatten(String::new(), &carried, &mut leaves);
        for (key, value) in leaves {
            let group = match key.split('.').next() {
                Some("launch") => Group::Launch,
                Some("plan") => Group::Plan,
                _ => Group::Run,
            };
            settings.push(((group, 0, key.clone()), words(&key), value));
        }
    }
    settings
}

/// Every value within `value` that holds no other, by its place: `jobs.1.nodes`. A list of plain values is one.
fn flatten(place: String, value: &Value, into: &mut Vec<(String, String)>) {
    let below = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
    match value {
        Value::Null => {}
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(below(key), value, into)),
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            for (index, value) in values.iter().enumerate() {
                flatten(below(&(index + 1).to_string()), value, into);
            }
        }
        Value::Array(values) if values.is_empty() => {}
        Value::Array(values) => {
            into.push((place, values.iter().map(text).collect::<Vec<_>>().join("; ")));
        }
        plain => into.push((place, text(plain))),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(yes) => yes_or_no(*yes),
        other => other.to_string(),
    }
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}

/// What people call a key; one that a later program wrote goes by its own words.
fn words(key: &str) -> String {
    let label = match key {
        "nccl_traced" => "NCCL traced",
        "job_id" => "Job",
        "sha256" => "SHA-256 of the log",
        "run" => "Run in the campaign",
        "launch.release" => "Release that launched it",
        "launch.style" => "Style",
        "launch.script_sha256" => "SHA-256 of the script",
        "launch.steps" => "Steps to run",
        "launch.comparable.yes" => "Comparable with the published number",
        "launch.comparable.reasons" => "Why not comparable",
        "plan.step_time_s.low" => "Step time, s: low",
        "plan.step_time_s.mid" => "Step time, s",
        "plan.step_time_s.high" => "Step time, s: high",
        "plan.memory_bytes" => "Memory needed per GPU, bytes",
        "plan.capacity_bytes" => "Memory of a GPU, bytes",
        "plan.basis" => "Rests on",
        "plan.calibration" => "Calibration",
        _ => {
            let plain = key.replace("jobs.", "job ").replace(['_', '.'], " ");
            let mut letters = plain.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
            return first + letters.as_str();
        }
    };
    label.to_owned()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn keys_have_words() {
        assert_eq!(words("launch.comparable.yes"), "Comparable with the published number");
        assert_eq!(words("jobs.2.exit_code"), "Job 2 exit code");
        assert_eq!(words("parser_version"), "Parser version");
        // What this program does not know yet.
        assert_eq!(words("weather.wind_speed"), "Weather wind speed");
    }
}
