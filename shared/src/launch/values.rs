//! Launch options that are more than a number or a path.

use super::word::{ShellWord, is_name};
use crate::field::Field;
use crate::message;
use crate::message::Message;
use crate::problem::Problem;
use crate::text::printable;
use std::fmt;
use std::str::FromStr;

/// Reads yes or no.
pub(super) fn switch(field: Field, text: &str) -> Result<bool, Problem> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => {
            let message = format!(" \"{}\" is neither true nor false.", printable(text));
            Err(Problem::new(field, text, message![field, message]).allow(["true", "false"]))
        }
    }
}

/// The time limit of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeLimit {
    seconds: u32,
}

impl FromStr for TimeLimit {
    type Err = Problem;

    fn from_str(text: &str) -> Result<TimeLimit, Problem> {
        // Campaigns use time limits under other names, too: the message doesn't name the field.
        let refuse = |why: &str| {
            let form = "Use HH:MM:SS, or D-HH:MM:SS for a day or more: 00:35:00 or 1-12:00:00.";
            Err(Problem::new(Field::TimeLimit, text, format!("\"{}\" {why}. {form}", printable(text))))
        };
        let (days, clock) = text.trim().split_once('-').unwrap_or(("0", text.trim()));
        let parts: Vec<Option<u32>> = clock.split(':').map(digits).collect();
        let (Some(days), [Some(hours), Some(minutes), Some(seconds)]) = (digits(days), parts.as_slice())
        else {
            return refuse("is not a time limit");
        };
        if *minutes > 59 || *seconds > 59 || (days > 0 && *hours > 23) {
            return refuse("has more minutes, seconds or hours than a clock shows");
        }
        match days * 86_400 + hours * 3_600 + minutes * 60 + seconds {
            0 => refuse("leaves no time to run"),
            seconds => Ok(TimeLimit { seconds }),
        }
    }
}

impl TimeLimit {
    /// Returns a limit of at least that many seconds, in whole multiples of five minutes, and of at most 9,999 days.
    pub fn covering(seconds: f64) -> TimeLimit {
        const ROUNDED: f64 = 300.0;
        let seconds = ((seconds / ROUNDED).ceil() * ROUNDED).clamp(ROUNDED, 9_999.0 * 86_400.0);
        TimeLimit { seconds: seconds as u32 }
    }

    /// Returns the limit in seconds.
    pub fn seconds(self) -> u32 {
        self.seconds
    }
}

/// Formats the limit for Slurm: `00:35:00` or `1-12:00:00`.
impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, rest) = (self.seconds / 86_400, self.seconds % 86_400);
        if days > 0 {
            write!(f, "{days}-")?;
        }
        write!(f, "{:02}:{:02}:{:02}", rest / 3_600, rest / 60 % 60, rest % 60)
    }
}

/// Reads a whole number of at most four digits.
fn digits(text: &str) -> Option<u32> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The GPUs to request from a Slurm that counts them as generic resources (GRES).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gres {
    /// The cluster's name for the GPU type, if it needs one.
    kind: Option<String>,
    /// GPUs per node; `None` for all of them.
    count: Option<u32>,
}

impl Gres {
    /// Returns the GPUs per node, if given.
    pub(super) fn count(&self) -> Option<u32> {
        self.count
    }

    /// Returns `8` or `h100:8`, for nodes of that many GPUs.
    pub(crate) fn per_node(&self, gpus_per_node: u32) -> String {
        let count = self.count.unwrap_or(gpus_per_node);
        self.kind.as_ref().map_or(count.to_string(), |kind| format!("{kind}:{count}"))
    }
}

impl FromStr for Gres {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Gres, Problem> {
        let parts: Vec<&str> = text.trim().split(':').collect();
        let name = |kind: &str| {
            let letters = kind.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
            (letters && !kind.is_empty() && digits(kind).is_none()).then(|| Some(kind.to_string()))
        };
        let gres = match parts.as_slice() {
            ["gpu" | "yes" | "true"] => Some((None, None)),
            [count] | ["gpu", count] if digits(count).is_some() => Some((None, digits(count))),
            ["gpu", kind] => name(kind).map(|kind| (kind, None)),
            ["gpu", kind, count] => name(kind).zip(digits(count)).map(|(kind, count)| (kind, Some(count))),
            _ => None,
        };
        gres.filter(|(_, count)| *count != Some(0)).map(|(kind, count)| Gres { kind, count }).ok_or_else(
            || {
                let text = printable(text);
                let form = "Use gpu (all GPUs of a node), gpu:8 or gpu:h100:8.";
                Problem::new(
                    Field::Gres,
                    &text,
                    message![Field::Gres, format!(" \"{text}\" doesn't request GPUs. {form}")],
                )
            },
        )
    }
}

/// Additional sbatch parameters, in the form of ADDITIONAL_SLURM_PARAMS in NVIDIA's documents: `key=value` or
/// a bare flag, separated by semicolons, so that values can contain commas and `&`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlurmParams(Vec<SlurmParam>);

/// One sbatch parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlurmParam {
    /// The long name, without dashes.
    pub key: String,
    /// The value; `None` for a bare flag.
    pub value: Option<String>,
}

impl SlurmParams {
    /// Returns the parameters in the order given.
    pub fn iter(&self) -> impl Iterator<Item = &SlurmParam> {
        self.0.iter()
    }
}

impl SlurmParam {
    /// Returns what looks like another parameter inside the value, as after a separator other than a
    /// semicolon.
    pub(super) fn swallowed(&self) -> Option<&str> {
        let value = self.value.as_deref()?;
        let is_flag = |part: &&str| BARE_FLAGS.contains(&part.trim_start_matches('-'));
        let is_pair = |word: &&str| {
            word.trim_start_matches('-').split_once('=').is_some_and(|(key, _)| is_param_name(key))
        };
        let after_space = value.split_whitespace().skip(1).find(|word| is_pair(word) || is_flag(word));
        after_space.or_else(|| value.split(',').skip(1).map(str::trim).find(is_flag))
    }
}

impl fmt::Display for SlurmParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{}={value}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

impl FromStr for SlurmParams {
    type Err = Problem;

    fn from_str(text: &str) -> Result<SlurmParams, Problem> {
        let mut params: Vec<SlurmParam> = Vec::new();
        for entry in text.split(';').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (key, value) = match entry.split_once('=') {
                Some((key, value)) => (key.trim_end(), Some(value.trim_start().to_string())),
                None => (entry, None),
            };
            let key = key.trim_start_matches('-').to_ascii_lowercase();
            let shown = printable(entry);
            let refuse = |message: Message| Err(Problem::new(Field::SlurmParams, &shown, message));
            if !is_param_name(&key) {
                return refuse(message![
                    format!(
                        "\"{shown}\" is not an sbatch parameter. Write key=value or a flag, separated by \
                         semicolons: "
                    ),
                    "nodelist=node001,node002;constraint=gpu."
                ]);
            }
            if entry.contains(char::is_control) {
                return refuse(format!("Slurm parameter \"{shown}\" contains a control character.").into());
            }
            if let Some(field) = own_option(&key) {
                return refuse(message![
                    format!("Slurm parameter \"{shown}\" can't be set here. Instead, use "),
                    field,
                    "."
                ]);
            }
            if params.iter().any(|param| param.key == key) {
                return refuse(format!("Slurm parameter {key} is given twice.").into());
            }
            params.push(SlurmParam { key, value });
        }
        Ok(SlurmParams(params))
    }
}

/// The sbatch parameters without a value.
const BARE_FLAGS: [&str; 11] = [
    "contiguous",
    "exclusive",
    "hold",
    "no-kill",
    "no-requeue",
    "overcommit",
    "oversubscribe",
    "reboot",
    "requeue",
    "spread-job",
    "use-min-nodes",
];

/// Returns whether this can be the long name of an sbatch parameter.
fn is_param_name(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Returns the launch field that sets the same as an sbatch parameter.
fn own_option(key: &str) -> Option<Field> {
    match key {
        "account" => Some(Field::Account),
        "partition" => Some(Field::Partition),
        "time" => Some(Field::TimeLimit),
        "gres" | "gpus-per-node" => Some(Field::Gres),
        "nodes" | "gpus" | "ntasks" => Some(Field::Gpus),
        "ntasks-per-node" => Some(Field::GpusPerNode),
        _ => None,
    }
}

/// Environment variables to set: `NAME=value`, one per line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EnvOverrides(Vec<(String, ShellWord)>);

impl EnvOverrides {
    /// Returns names and values in the order given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ShellWord)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<&ShellWord> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

impl FromStr for EnvOverrides {
    type Err = Problem;

    fn from_str(text: &str) -> Result<EnvOverrides, Problem> {
        let mut overrides = EnvOverrides::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            // A line that can't be read may contain a secret, so only its number is repeated.
            let number = index + 1;
            let name_and_value = line.split_once('=').map(|(name, value)| (name.trim(), value));
            let Some((name, value)) = name_and_value.filter(|(name, _)| is_name(name)) else {
                let message = format!(
                    " line {number} is not NAME=value. Write one variable per line; NAME=$OTHER uses the \
                     value of OTHER where the script runs."
                );
                return Err(Problem::new(Field::Env, "", message![Field::Env, message]));
            };
            if overrides.get(name).is_some() {
                let message = format!("Environment variable {name} is set twice.");
                return Err(Problem::new(Field::Env, name, message));
            }
            let value = ShellWord::value(Field::Env, value).map_err(|_| {
                let message = format!(
                    "The value of {name} contains a control character, which can't be pasted into a terminal."
                );
                Problem::new(Field::Env, name, message)
            })?;
            if is_secret(name, &value) && value.variables().next().is_none() {
                let message = format!(
                    "{name} is a secret, so its value can't be in a script. Export it where the script \
                     runs, or refer to a variable: {name}=${name}."
                );
                return Err(Problem::new(Field::Env, name, message));
            }
            overrides.0.push((name.to_string(), value));
        }
        Ok(overrides)
    }
}

/// Returns whether a variable holds a secret, by its name or by how access tokens begin.
fn is_secret(name: &str, value: &ShellWord) -> bool {
    let name = name.to_ascii_uppercase();
    let words =
        ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "API_KEY", "PRIVATE_KEY"];
    let tokens = ["hf_", "nvapi-", "ghp_", "github_pat_"];
    let value = value.to_string();
    words.iter().any(|word| name.contains(word)) || tokens.iter().any(|token| value.starts_with(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits_are_written_as_slurm_reads_them() {
        for (text, limit) in [
            ("00:35:00", "00:35:00"),
            ("1:00:00", "01:00:00"),
            ("36:00:00", "1-12:00:00"),
            ("2-00:00:01", "2-00:00:01"),
        ] {
            assert_eq!(text.parse::<TimeLimit>().unwrap().to_string(), limit);
        }
        for text in [
            "",
            "35",
            "35:00",
            "00:00:00",
            "00:60:00",
            "1-24:00:00",
            "-1:00:00",
            "1-1-00:00:00",
            "a:b:c",
            "99999:00:00",
        ] {
            assert!(text.parse::<TimeLimit>().is_err(), "{text}");
        }
    }

    #[test]
    fn gres_means_all_gpus_of_a_node_unless_counted() {
        let gres = |text: &str| text.parse::<Gres>().unwrap().per_node(4);
        assert_eq!(
            [gres("gpu"), gres("8"), gres("gpu:8"), gres("gpu:h100"), gres("gpu:h100:8")],
            ["4", "8", "8", "h100:4", "h100:8"]
        );
        for text in ["", "cpu", "gpu:", "gpu:0", "gpu::8", "gpu:a b:8", "gpu:h100:x", "null"] {
            assert!(text.parse::<Gres>().is_err(), "{text}");
        }
    }

    #[test]
    fn slurm_parameters_keep_commas_and_ampersands() {
        let params: SlurmParams =
            "nodelist=node001,node002; constraint=gpu&memory;exclusive;".parse().unwrap();
        let params: Vec<String> = params.iter().map(ToString::to_string).collect();
        assert_eq!(params, ["nodelist=node001,node002", "constraint=gpu&memory", "exclusive"]);
        for text in ["=x", "a b=c", "account=me", "qos=a;qos=b", "qos=a\nb"] {
            assert!(text.parse::<SlurmParams>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_limit_covers_a_duration() {
        for (seconds, limit) in [
            (1.0, "00:05:00"),
            (300.0, "00:05:00"),
            (301.0, "00:10:00"),
            (90_000.0, "1-01:00:00"),
            (f64::INFINITY, "9999-00:00:00"),
        ] {
            let covering = TimeLimit::covering(seconds);
            assert_eq!(covering.to_string(), limit, "{seconds}");
            assert_eq!(limit.parse::<TimeLimit>().unwrap(), covering);
        }
    }

    #[test]
    fn slurm_parameters_notice_another_in_their_value() {
        for (text, other) in [
            ("nodelist=a,b,exclusive", Some("exclusive")),
            ("nodelist=a, exclusive", Some("exclusive")),
            ("nodelist=n1,n2 constraint=x", Some("constraint=x")),
            ("nodelist=n1 --constraint=x", Some("--constraint=x")),
            ("nodelist=n1 requeue", Some("requeue")),
            ("nodelist=n1,n2", None),
            ("comment=two words", None),
            ("export=ALL,A=1", None),
            ("exclusive", None),
        ] {
            let params: SlurmParams = text.parse().unwrap();
            assert_eq!(params.iter().find_map(SlurmParam::swallowed), other, "{text}");
        }
    }

    #[test]
    fn variables_hold_no_secret() {
        let overrides: EnvOverrides = "NCCL_DEBUG=INFO\n\nA = b ; c\nHF_TOKEN=$MY_TOKEN".parse().unwrap();
        assert_eq!(overrides.get("A").unwrap().to_string(), " b ; c");
        assert_eq!(overrides.get("HF_TOKEN").unwrap().shell(), "\"${MY_TOKEN}\"");
        for text in ["HF_TOKEN=hunter2", "X=hf_hunter2", "MY_API_KEY=hunter2", "hunter2", "HF_TOKEN hunter2"]
        {
            let problem = text.parse::<EnvOverrides>().unwrap_err();
            assert!(!problem.to_string().contains("hunter2"), "{problem}");
        }
    }
}
