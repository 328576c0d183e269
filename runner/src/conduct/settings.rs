//! The files beside a run's log that list settings of its job, fetched once the log is complete.

use super::conductor::{Conductor, SHORT, TaskResult, fresh_mark, printed};
use super::live::SettingsState;
use crate::journal::Phase;
use crate::slurm::SettingsRequest;
use tokio::task::JoinSet;
use trainplan_shared::result::JobFiles;

impl Conductor<'_> {
    /// Starts to read the files beside the log of a run whose log is complete. Returns whether its result must wait for them.
    pub(super) fn read_settings(&mut self, index: usize, tasks: &mut JoinSet<TaskResult>) -> bool {
        let live = &mut self.runs[index];
        if !matches!(live.run.status.phase, Phase::Drained | Phase::Parsed) {
            return false;
        }
        if live.settings == SettingsState::Unasked {
            let log = live.copy.as_ref().map(|copy| copy.copied.path.as_str());
            let Some(request) = log.and_then(|log| SettingsRequest::new(log, fresh_mark())) else {
                live.settings = SettingsState::Known;
                return false;
            };
            live.settings = SettingsState::Asked;
            let (link, secrets) = (self.link.clone(), live.known_secrets().to_vec());
            tasks.spawn(async move {
                let files = match link.run(&request.script(), SHORT).await {
                    Ok(output) if output.code == 0 => request.read(&output.stdout, &secrets),
                    Ok(output) => unread(&printed(&output)),
                    Err(error) => unread(&error.to_string()),
                };
                TaskResult::Settings(index, files)
            });
        }
        live.settings == SettingsState::Asked
    }

    pub(super) fn take_in_settings(&mut self, index: usize, files: JobFiles) {
        let live = &mut self.runs[index];
        live.settings = SettingsState::Known;
        if let Some(copy) = &mut live.copy {
            copy.take_job(files);
        }
    }
}

fn unread(why: &str) -> JobFiles {
    tracing::warn!("The files beside a log were not read: {why}");
    JobFiles::default()
}
