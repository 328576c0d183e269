//! The files beside a log that list settings of its job: what Megatron-Bridge trained with, what llmb-run launched, and the environment.
//!
//! Only the settings that [`kept`] lists are kept. Nothing else in the files matters, and a setting in another form is not understood.

mod kept;
mod stated;
mod yaml;

use crate::text::printable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest file that is read, in bytes. One of Megatron-Bridge has about 25 kB.
pub const LARGEST_SETTINGS_FILE: usize = 1 << 20;

/// The most settings of a file that are kept.
const MOST: usize = 1000;

/// The longest value that is kept, in bytes.
const LONGEST_VALUE: usize = 1024;

/// A file beside a log that lists settings of its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsFile {
    /// What took effect in Megatron-Bridge, after every override.
    BridgeConfig,
    /// What llmb-run launched.
    LlmbConfig,
    /// The environment of the job's first process, as Megatron-Bridge writes it for `llmb-run --dump-env`.
    Environment,
}

impl SettingsFile {
    /// Every such file.
    pub const ALL: [SettingsFile; 3] =
        [SettingsFile::BridgeConfig, SettingsFile::LlmbConfig, SettingsFile::Environment];

    /// Returns the path of a job's file from the folder of its log; none if the path has the number of the job, which is unknown.
    #[must_use]
    pub fn path(self, job_id: Option<u64>) -> Option<String> {
        let pattern = self.pattern();
        match self.names_its_job() {
            true => Some(pattern.replace('*', &job_id?.to_string())),
            false => Some(pattern.to_owned()),
        }
    }

    /// Returns whether the path has the number of the job.
    #[must_use]
    pub fn names_its_job(self) -> bool {
        self.pattern().contains('*')
    }

    /// Returns the path from the folder of the log, with `*` for the number of the job.
    pub(super) const fn pattern(self) -> &'static str {
        match self {
            SettingsFile::BridgeConfig => "configs/ConfigContainer.yaml",
            SettingsFile::LlmbConfig => "llmb-config_*.yaml",
            SettingsFile::Environment => "env_*.log",
        }
    }

    /// Returns which of these files a path names, of any job.
    #[must_use]
    pub fn of_path(path: &str) -> Option<SettingsFile> {
        SettingsFile::ALL.into_iter().find(|file| file.is_path(path))
    }

    /// Returns whether a path is that of such a file of any job.
    pub(super) fn is_path(self, path: &str) -> bool {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let Some((start, end)) = self.pattern().split_once('*') else {
            return self.pattern().rsplit('/').next() == Some(name);
        };
        let job = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end));
        job.is_some_and(|job| !job.is_empty() && job.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// It is too large, or has none of the settings that are kept.
    pub fn read(self, bytes: &[u8]) -> Result<SettingValues, UnreadReason> {
        if bytes.len() > LARGEST_SETTINGS_FILE {
            return Err(UnreadReason::TooLarge);
        }
        let text = String::from_utf8_lossy(bytes);
        let is_kept = |name: &str, value: &str| kept::is_kept(self, name, value);
        let settings = match self {
            SettingsFile::BridgeConfig | SettingsFile::LlmbConfig => yaml::read(&text, is_kept),
            SettingsFile::Environment => {
                let mut settings = SettingValues::default();
                let variables = text.lines().filter_map(|line| line.split_once('='));
                for (name, value) in variables.filter(|(name, value)| is_kept(name, value)) {
                    settings.keep(name, value);
                }
                settings
            }
        };
        if settings.is_empty() { Err(UnreadReason::Other) } else { Ok(settings) }
    }
}

/// Settings with their values as written, such as `model.seq_length` or `NCCL_VERSION`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SettingValues(BTreeMap<String, String>);

impl SettingValues {
    /// Returns whether no settings are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the settings with their values as written, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns a value as written.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Keeps a value, unless it is empty or too long.
    fn keep(&mut self, name: &str, value: &str) {
        let has_room = self.0.len() < MOST || self.0.contains_key(name);
        if has_room && !value.is_empty() && value.len() <= LONGEST_VALUE {
            self.0.insert(name.to_owned(), printable(value));
        }
    }

    /// Adds a plain value to a list. A list of lists or of tables isn't kept.
    fn push(&mut self, name: &str, value: &str) {
        if value.is_empty() || value.starts_with("- ") || value.contains(": ") {
            return;
        }
        match self.get(name).map(|list| format!("{list}, {value}")) {
            Some(longer) => self.keep(name, &longer),
            None => self.keep(name, value),
        }
    }
}

/// The settings of a job by the files that list them; those of a file are empty if it isn't there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobSettings {
    /// Those of [`SettingsFile::BridgeConfig`].
    #[serde(skip_serializing_if = "SettingValues::is_empty")]
    pub bridge_config: SettingValues,
    /// Those of [`SettingsFile::LlmbConfig`].
    #[serde(skip_serializing_if = "SettingValues::is_empty")]
    pub llmb_config: SettingValues,
    /// Those of [`SettingsFile::Environment`].
    #[serde(skip_serializing_if = "SettingValues::is_empty")]
    pub environment: SettingValues,
}

impl JobSettings {
    /// Returns the settings of a file.
    #[must_use]
    pub const fn of(&self, file: SettingsFile) -> &SettingValues {
        match file {
            SettingsFile::BridgeConfig => &self.bridge_config,
            SettingsFile::LlmbConfig => &self.llmb_config,
            SettingsFile::Environment => &self.environment,
        }
    }

    /// Returns the settings with those of a file.
    #[must_use]
    pub fn with(mut self, file: SettingsFile, settings: SettingValues) -> Self {
        *match file {
            SettingsFile::BridgeConfig => &mut self.bridge_config,
            SettingsFile::LlmbConfig => &mut self.llmb_config,
            SettingsFile::Environment => &mut self.environment,
        } = settings;
        self
    }

    /// Returns whether no settings are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        SettingsFile::ALL.into_iter().all(|file| self.of(file).is_empty())
    }

    /// Returns the settings of all files.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        SettingsFile::ALL.into_iter().flat_map(move |file| self.of(file).iter())
    }
}

/// A file beside a log that says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadFile {
    /// The file.
    pub file: SettingsFile,
    /// Why it says nothing.
    pub why: UnreadReason,
}

/// Why a file beside a log says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnreadReason {
    /// The file can't be read.
    Unreadable,
    /// It is larger than [`LARGEST_SETTINGS_FILE`].
    TooLarge,
    /// It has none of the settings that are kept, so it is another kind of file.
    Other,
    /// It doesn't name its job, and the folder has other logs.
    Ambiguous,
}

impl UnreadFile {
    /// Returns the reason as a sentence.
    pub(super) fn sentence(self) -> String {
        let why = match self.why {
            UnreadReason::Unreadable => "it can't be read",
            UnreadReason::TooLarge => "it is larger than 1 MiB",
            UnreadReason::Other => "it has none of the settings that Trainplan knows",
            UnreadReason::Ambiguous => "it may be that of another log in the folder",
        };
        format!("{} beside the log is ignored: {why}.", self.file.pattern())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ENVIRONMENT: &str = "\
CUDA_VERSION=13.0.1
HF_TOKEN=[REDACTED]
HOME=/root
NCCL_IB_PKEY=7
NCCL_NVLS_ENABLE=0
NVIDIA_PYTORCH_VERSION=25.09
NVTE_FWD_LAYERNORM_SM_MARGIN=16
SLURM_JOB_NODELIST=n[1-2]
TORCH_AUTH_TOKEN=sesame
TRITON_CACHE_DIR=/tmp/triton_7
UCX_TLS=a=b
no variable
";

    fn read(file: SettingsFile, text: &str) -> Result<SettingValues, UnreadReason> {
        file.read(text.as_bytes())
    }

    #[test]
    fn of_an_environment_what_affects_speed_is_kept() {
        let environment = read(SettingsFile::Environment, ENVIRONMENT).unwrap();
        let kept: Vec<(&str, &str)> = environment.iter().collect();
        assert_eq!(
            kept,
            [
                ("CUDA_VERSION", "13.0.1"),
                ("NCCL_NVLS_ENABLE", "0"),
                ("NVIDIA_PYTORCH_VERSION", "25.09"),
                ("NVTE_FWD_LAYERNORM_SM_MARGIN", "16"),
                ("UCX_TLS", "a=b"),
            ]
        );
        let colored =
            read(SettingsFile::Environment, "NCCL_ALGO=\u{1b}[31mRing\nNCCL_\u{1b}=1\nNCCL_ =1").unwrap();
        assert_eq!(colored.iter().collect::<Vec<_>>(), [("NCCL_ALGO", "\u{fffd}[31mRing")]);
        let many: String = (0..2 * MOST).map(|number| format!("NCCL_{number}=1\n")).collect();
        assert_eq!(read(SettingsFile::Environment, &many).unwrap().iter().count(), MOST);
    }

    #[test]
    fn other_files_are_refused() {
        for file in SettingsFile::ALL {
            for other in
                ["", "model:", "model:\n\tseq_length: 4", "{\"model\": 1}", "- a\n- b: 1", "HOME=/root"]
            {
                assert_eq!(read(file, other), Err(UnreadReason::Other), "{other}");
            }
            let large = "#".repeat(LARGEST_SETTINGS_FILE + 1);
            assert_eq!(read(file, &large), Err(UnreadReason::TooLarge));
        }
        let long = format!("NCCL_ALGO={}", "x".repeat(LONGEST_VALUE + 1));
        assert_eq!(read(SettingsFile::Environment, &long), Err(UnreadReason::Other));
        let unread = UnreadFile { file: SettingsFile::LlmbConfig, why: UnreadReason::TooLarge };
        assert_eq!(
            unread.sentence(),
            "llmb-config_*.yaml beside the log is ignored: it is larger than 1 MiB."
        );
    }

    #[test]
    fn the_paths_of_a_job_are_recognized() {
        let paths = |job_id: Option<u64>| -> Vec<String> {
            SettingsFile::ALL.into_iter().filter_map(|file| file.path(job_id)).collect()
        };
        assert_eq!(paths(Some(12)), ["configs/ConfigContainer.yaml", "llmb-config_12.yaml", "env_12.log"]);
        assert_eq!(paths(None), ["configs/ConfigContainer.yaml"]);
        let is_path = |path| SettingsFile::Environment.is_path(path);
        assert!(is_path("env_12.log") && is_path("a/b/env_0.log"));
        assert!(!is_path("env_.log") && !is_path("env_12a.log") && !is_path("my_env_12.log"));
        assert!(!is_path("env_12.log/train.log") && !SettingsFile::BridgeConfig.is_path("env_12.log"));
        for (path, expected) in [
            ("run/configs/ConfigContainer.yaml", Some(SettingsFile::BridgeConfig)),
            ("ConfigContainer.yaml", Some(SettingsFile::BridgeConfig)),
            ("run/llmb-config_12.yaml", Some(SettingsFile::LlmbConfig)),
            ("env_12.log", Some(SettingsFile::Environment)),
            ("run/configs/config.yaml", None),
            ("yaml", None),
            ("train.log", None),
        ] {
            assert_eq!(SettingsFile::of_path(path), expected, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            words in prop::collection::vec(prop::sample::select(&[
                "model", "train", "  ", " ", ":", ": ", "\n", "- ", "seq_length", "recompute_modules", "8192", "null", "'",
                "\"", "é", "\t", "\r", "mixed_precision", "x", "job_config", "env_overrides", "NCCL_", "=", "TOKEN",
            ][..]), 0..80),
        ) {
            for file in SettingsFile::ALL {
                if let Ok(settings) = read(file, &words.concat()) {
                    prop_assert!(settings.iter().all(|(name, value)| !name.is_empty() && !value.is_empty()));
                    let json = serde_json::to_string(&settings).unwrap();
                    prop_assert_eq!(serde_json::from_str::<SettingValues>(&json).unwrap(), settings);
                }
            }
        }
    }
}
