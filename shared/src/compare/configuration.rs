//! The configurations of runs, with the differences first.

use super::workload::value;
use crate::decimal::parse_decimal;
use crate::field::Field;
use crate::log::{Nccl, Span};
use crate::result::{RunResult, SettingsFile, ViewedRun};
use crate::units::one_decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A key of the configuration with its value in every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConfigurationRow {
    /// The group of the key.
    pub group: ConfigurationGroup,
    /// The key: a flag such as `tp`, or a path in a result file such as `launch.steps`.
    pub key: String,
    /// The label of the key.
    pub label: String,
    /// The value in every run, in the order of the items; null where it is unknown.
    pub values: Vec<Option<String>>,
    /// Whether the runs have different values.
    pub differs: bool,
}

/// The end of the label of a value in bytes.
const BYTES: &str = ", bytes";

/// The beginning of the keys of environment variables.
const ENVIRONMENT: &str = "env.";

/// The key of the hash of a log.
const HASH: &str = "sha256";

/// The value of a variable that a whole environment lacks.
const UNSET: &str = "not set";

/// Returns the beginning of the keys of the settings that a file beside a log lists. There are many, so that only those with different
/// values are listed.
const fn prefix(file: SettingsFile) -> &'static str {
    match file {
        SettingsFile::BridgeConfig => "config.",
        SettingsFile::LlmbConfig => "llmb.",
        SettingsFile::Environment => ENVIRONMENT,
    }
}

impl ConfigurationRow {
    /// Returns whether two runs have different values, rather than one a value and the other none.
    fn has_two_values(&self) -> bool {
        let mut known = self.values.iter().flatten();
        let first = known.next();
        known.any(|value| Some(value) != first)
    }

    /// Returns whether the row only says that the runs have different logs, as all runs have.
    #[must_use]
    pub fn only_tells_logs_apart(&self) -> bool {
        self.differs && self.key == HASH
    }

    /// Returns whether the row is a setting that a file beside a log lists.
    fn is_of_file(&self) -> bool {
        SettingsFile::ALL.into_iter().any(|file| self.key.starts_with(prefix(file)))
    }

    /// Returns the row for people: memory in GiB, where programs read bytes.
    #[must_use]
    pub fn readable(&self) -> Self {
        let gib = |bytes: f64| one_decimal(bytes / f64::from(1 << 30));
        let converted = |value: &Option<String>| match value {
            Some(bytes) => parse_decimal(bytes).map(|bytes| Some(gib(bytes))),
            None => Some(None),
        };
        let converted: Option<Vec<Option<String>>> = self.values.iter().map(converted).collect();
        match self.label.strip_suffix(BYTES).zip(converted) {
            Some((memory, values)) => Self { label: format!("{memory}, GiB"), values, ..self.clone() },
            None => self.clone(),
        }
    }
}

/// A group of keys, in display order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfigurationGroup {
    /// The model, the machine and the layout.
    Scenario,
    /// The release, and the software that wrote and read the log.
    Software,
    /// The launch.
    Launch,
    /// The prediction.
    Plan,
    /// The campaign, cluster and jobs.
    Run,
    /// The log.
    Log,
}

impl ConfigurationGroup {
    /// Returns the title of the group.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            ConfigurationGroup::Scenario => "Scenario",
            ConfigurationGroup::Software => "Software",
            ConfigurationGroup::Launch => "Launch",
            ConfigurationGroup::Plan => "Plan",
            ConfigurationGroup::Run => "Run",
            ConfigurationGroup::Log => "Log",
        }
    }
}

/// The sort key of a row: its group, its order within the group, and its key.
type RowPlace = (ConfigurationGroup, usize, String);

/// Returns the configuration of all runs.
pub(super) fn all(seen: &[(&RunResult, ViewedRun<'_>)]) -> Vec<ConfigurationRow> {
    let mut rows: BTreeMap<RowPlace, (String, Vec<Option<String>>)> = BTreeMap::new();
    for (index, (run, seen)) in seen.iter().enumerate() {
        for (place, label, value) in settings(run, seen) {
            let (_, values) = rows.entry(place).or_insert_with(|| (label, Vec::new()));
            values.resize(index, None);
            values.push(Some(value));
        }
    }
    let is_assumed = seen.iter().all(|(_, seen)| seen.report.assumed_software.is_some());
    let mut settings: Vec<ConfigurationRow> = rows
        .into_iter()
        .map(|((group, _, key), (label, mut values))| {
            values.resize(seen.len(), None);
            if key.starts_with(ENVIRONMENT) {
                let unknown = values.iter_mut().zip(seen).filter(|(value, _)| value.is_none());
                for (value, _) in unknown.filter(|(_, (run, _))| !run.job.settings.environment.is_empty()) {
                    *value = Some(UNSET.to_owned());
                }
            }
            let is_of_software = group == ConfigurationGroup::Scenario && key == Field::Stack.flag();
            let label = if is_assumed && is_of_software { format!("{label} assumed") } else { label };
            let differs = values.iter().any(|value| Some(value) != values.first());
            ConfigurationRow { group, key, label, values, differs }
        })
        .filter(|row| !row.is_of_file() || row.has_two_values())
        .collect();
    settings.sort_by_key(|setting| !setting.differs);
    settings
}

/// Returns the keys of one run that have a value.
fn settings(run: &RunResult, seen: &ViewedRun<'_>) -> Vec<(RowPlace, String, String)> {
    let mut settings = Vec::new();
    for (place, field) in Field::ALL.iter().enumerate().filter(|(_, field)| field.is_of_scenario()) {
        if let Some(value) = value(seen, *field) {
            let key = (ConfigurationGroup::Scenario, place, field.flag().to_owned());
            settings.push((key, field.label().to_owned(), value));
        }
    }
    let log = &run.log;
    let nccl = log.nccl.as_ref();
    let network = nccl.and_then(Nccl::main_network);
    let gpudirect = network.filter(|network| network.connections > 0).map(|network| match network.direct {
        0 => "no",
        all if all == network.connections => "yes",
        _ => "on some connections",
    });
    let format = run.framework().map(|format| format.title().to_owned());
    let named = Some(run.name.experiment.clone()).filter(|name| !name.is_empty());
    let known = [
        (
            ConfigurationGroup::Software,
            "release",
            seen.identity.release.map(|release| release.id().to_owned()),
        ),
        (ConfigurationGroup::Software, "framework", format),
        (ConfigurationGroup::Software, "read_by", Some(run.provenance.program.clone())),
        (ConfigurationGroup::Software, "parser_version", Some(run.provenance.parser_version.to_string())),
        (ConfigurationGroup::Log, "experiment", named),
        (ConfigurationGroup::Log, "job_id", run.name.job_id.map(|job| job.to_string())),
        (ConfigurationGroup::Log, "planned_last_step", log.planned_last.map(|last| last.to_string())),
        (ConfigurationGroup::Log, "window", seen.report.window.map(Span::words)),
        (ConfigurationGroup::Log, "restarts", Some(log.restarts.to_string())),
        (ConfigurationGroup::Log, "profiled", Some(yes_or_no(log.profiled || run.name.profiled))),
        (ConfigurationGroup::Log, "nccl_traced", Some(yes_or_no(log.traced || run.name.traced))),
        (ConfigurationGroup::Log, "nccl_network", network.map(|network| network.title().to_owned())),
        (ConfigurationGroup::Log, "gpudirect_rdma", gpudirect.map(str::to_owned)),
        (
            ConfigurationGroup::Log,
            "nccl_communicators",
            nccl.map(Nccl::sizes).filter(|sizes| !sizes.is_empty()),
        ),
        (ConfigurationGroup::Log, "checkpoint_saves", Some(seen.report.checkpoint.saves.to_string())),
        (ConfigurationGroup::Log, "checkpoint_loads", Some(seen.report.checkpoint.loads.to_string())),
        (ConfigurationGroup::Log, HASH, Some(run.source.sha256.clone())),
    ];
    for (place, (group, key, value)) in known.into_iter().enumerate() {
        settings.extend(value.map(|value| ((group, place, key.to_owned()), words(key), value)));
    }
    // After the launch's own keys.
    for (place, file) in (1..).zip(SettingsFile::ALL) {
        settings.extend(run.job.settings.of(file).iter().map(|(key, value)| {
            let place = (ConfigurationGroup::Launch, place, format!("{}{key}", prefix(file)));
            (place, key.to_owned(), value.to_owned())
        }));
    }
    // Everything else in the campaign's record, including fields of later versions.
    if let Some(Ok(carried)) = run.carried.as_ref().map(serde_json::to_value) {
        let mut leaves = Vec::new();
        flatten(String::new(), &carried, &mut leaves);
        for (key, value) in leaves {
            let group = match key.split('.').next() {
                Some("launch") => ConfigurationGroup::Launch,
                Some("plan") => ConfigurationGroup::Plan,
                _ => ConfigurationGroup::Run,
            };
            settings.push(((group, 0, key.clone()), words(&key), value));
        }
    }
    settings
}

/// Collects the leaves of a JSON value by their paths, such as `jobs.1.nodes`. A list of plain values is one leaf.
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

/// Returns the label of a key. An unknown key of a later version is split into its words.
fn words(key: &str) -> String {
    let label = match key {
        // Software of the same family writes the same log, so the format isn't what ran.
        "framework" => "Log format",
        "nccl_traced" => "NCCL traced",
        "nccl_network" => "NCCL network",
        "gpudirect_rdma" => "GPUDirect RDMA",
        "nccl_communicators" => "NCCL communicators",
        "job_id" => "Job",
        HASH => "SHA-256 of the log",
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
        "plan.basis" => "Evidence",
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
    use super::{ConfigurationGroup, ConfigurationRow, words};

    #[test]
    fn people_read_memory_in_gib() {
        let row = |label: &str, value: &str| ConfigurationRow {
            group: ConfigurationGroup::Plan,
            key: "plan.memory_bytes".to_owned(),
            label: label.to_owned(),
            values: vec![Some(value.to_owned()), None],
            differs: true,
        };
        let memory = row(&words("plan.memory_bytes"), "64424509440.0").readable();
        assert_eq!(memory.label, "Memory needed per GPU, GiB");
        assert_eq!(memory.values, [Some("60.0".to_owned()), None]);
        assert_eq!((memory.key.as_str(), memory.differs), ("plan.memory_bytes", true));
        // Everything else stays unchanged.
        for other in [row("Steps to run", "50"), row("Memory of a GPU, bytes", "much")] {
            assert_eq!(other.readable(), other);
        }
    }

    #[test]
    fn every_key_has_a_label() {
        assert_eq!(words("launch.comparable.yes"), "Comparable with the published number");
        assert_eq!(words("jobs.2.exit_code"), "Job 2 exit code");
        assert_eq!(words("parser_version"), "Parser version");
        assert_eq!(words("framework"), "Log format");
        assert_eq!(words("gpudirect_rdma"), "GPUDirect RDMA");
        // A key of a later version.
        assert_eq!(words("weather.wind_speed"), "Weather wind speed");
    }
}
