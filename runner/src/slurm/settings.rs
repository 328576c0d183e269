//! The files beside a log that list settings of its job.

use super::poll::records;
use crate::secrets::redact;
use crate::ssh::Script;
use trainplan_shared::log::LogName;
use trainplan_shared::result::{JobFiles, LARGEST_SETTINGS_FILE, SettingsFile, UnreadReason, is_only_log};

/// The question for the files beside a log that list settings of its job.
#[derive(Debug)]
pub(crate) struct SettingsRequest {
    folder: String,
    /// The name of the log.
    name: String,
    /// A word that no file contains.
    mark: String,
}

impl SettingsRequest {
    /// Returns the question for the log at a path. None if the path has no folder.
    pub(crate) fn new(log: &str, mark: String) -> Option<SettingsRequest> {
        let (folder, name) = log.rsplit_once('/').filter(|(folder, _)| !folder.is_empty())?;
        Some(SettingsRequest { folder: folder.to_string(), name: name.to_string(), mark })
    }

    /// Returns the files with their paths from the folder of the log.
    fn files(&self) -> impl Iterator<Item = (SettingsFile, String)> {
        let job_id = LogName::of(&self.name).job_id;
        SettingsFile::ALL.into_iter().filter_map(move |file| Some((file, file.path(job_id)?)))
    }

    /// Returns the remote script.
    pub(crate) fn script(&self) -> Script {
        let paths: Vec<String> = self.files().map(|(_, path)| path).collect();
        Script::new("settings", include_str!("remote/settings.sh"))
            .set("mark", &self.mark)
            .set("folder", &self.folder)
            .set("files", paths.join("\n"))
            .set("most", (LARGEST_SETTINGS_FILE + 1).to_string())
    }

    /// Reads the answer: the settings that are kept, without secrets. A file that isn't there says nothing.
    pub(crate) fn read(&self, answer: &[u8], secrets: &[String]) -> JobFiles {
        let records = records(answer, self.mark.as_bytes());
        let record = |head: &str| records.iter().find(|(found, _)| *found == head.as_bytes());
        let text = |body: &[u8]| String::from_utf8_lossy(body).into_owned();
        let names = record("names").map_or(&[][..], |(_, body)| *body);
        // Names beyond the maximum were not sent.
        let is_only = || {
            let (own, all) = (LogName::of(&self.name), text(names));
            names.len() <= LARGEST_SETTINGS_FILE
                && is_only_log(&own, all.lines().filter(|name| *name != self.name))
        };
        self.files().fold(JobFiles::default(), |job, (file, path)| {
            let Some((_, body)) = record(&format!("file {path}")) else { return job };
            let read = match file.names_its_job() || is_only() {
                true => file.read(redact(&text(body), secrets.iter().map(String::as_str)).as_bytes()),
                false => Err(UnreadReason::Ambiguous),
            };
            job.with(file, read)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use trainplan_shared::result::UnreadFile;

    const LOG: &str = "log-acct.pretrain_llama3.1_70b_fp8_256_7_0.out";

    /// Returns what the files in a folder say, as the remote script prints them.
    fn files(folder: &Path, secrets: &[String]) -> JobFiles {
        let request = SettingsRequest::new(&format!("{}/{LOG}", folder.display()), "m-1".into()).unwrap();
        let paths: Vec<String> = request.files().map(|(_, path)| path).collect();
        let text = format!(
            "mark=m-1\nfolder='{}'\nfiles='{}'\nmost=1000\nask() {{\n{}\n}}\nask\n",
            folder.display(),
            paths.join("\n"),
            include_str!("remote/settings.sh")
        );
        let shell = Command::new("/bin/sh").arg("-s").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut shell = shell.unwrap();
        shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        request.read(&shell.wait_with_output().unwrap().stdout, secrets)
    }

    #[test]
    fn the_files_beside_a_log_are_read_without_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(LOG, "");
        assert_eq!(files(folder.path(), &[]), JobFiles::default());
        write("llmb-config_7.yaml", "container_info:\n  images:\n  - nvcr.io#nvidia/nemo:26.04.01\n");
        write("llmb-config_8.yaml", "container_info:\n  images:\n  - nvcr.io#nvidia/nemo:26.06\n");
        write("env_7.log", "HF_TOKEN=hf_1\nNCCL_ALGO=Ring\nNCCL_NAME=sesame-7\n");
        fs::create_dir(folder.path().join("configs")).unwrap();
        write("configs/ConfigContainer.yaml", "model:\n  tensor_model_parallel_size: 4\n");
        let job = files(folder.path(), &["sesame-7".to_string()]);
        let settings = &job.settings;
        assert_eq!(settings.container(), Some("nemo:26.04.01"));
        assert_eq!(settings.bridge_config.get("model.tensor_model_parallel_size"), Some("4"));
        let environment: Vec<(&str, &str)> = settings.environment.iter().collect();
        assert_eq!(environment, [("NCCL_ALGO", "Ring")]);
        assert!(job.unread.is_empty());
        // The folder has the log of another job, and the environment says nothing that is kept.
        write("log-acct.pretrain_llama3.1_70b_fp8_256_8_0.out", "");
        write("env_7.log", "#");
        let job = files(folder.path(), &[]);
        let unread = |file: SettingsFile, why: UnreadReason| UnreadFile { file, why };
        assert_eq!(
            job.unread,
            [
                unread(SettingsFile::BridgeConfig, UnreadReason::Ambiguous),
                unread(SettingsFile::Environment, UnreadReason::Other)
            ]
        );
    }

    #[test]
    fn a_folder_with_too_many_names_may_have_another_log() {
        let request = SettingsRequest::new(&format!("/logs/{LOG}"), "m-1".into()).unwrap();
        let unread = |names: &str| {
            let config = "model:\n  tensor_model_parallel_size: 4\n";
            let answer =
                format!("m-1 names\n{names}\nm-1 file configs/ConfigContainer.yaml\n{config}\nm-1 end\n");
            request.read(answer.as_bytes(), &[]).unread
        };
        assert!(unread(&format!("{LOG}\nother.bin\n")).is_empty());
        let cut = "other.bin\n".repeat(LARGEST_SETTINGS_FILE / 10 + 1);
        let ambiguous = UnreadFile { file: SettingsFile::BridgeConfig, why: UnreadReason::Ambiguous };
        assert_eq!(unread(&cut), [ambiguous]);
    }

    #[test]
    fn a_log_without_a_folder_has_no_files() {
        assert!(SettingsRequest::new("log.out", String::new()).is_none());
        assert!(SettingsRequest::new("/log.out", String::new()).is_none());
    }
}
