//! `trainplan jobs fetch`: the files of a run from its cluster.

use super::names::find;
use crate::cli::output::{self, Format};
use crate::cli::{Failure, note};
use crate::data::DataDir;
use crate::fetch::{self, FetchRequest};
use crate::journal::Journal;
use crate::ssh::{Link, LinkOptions};
use std::path::Path;

pub(super) async fn fetch_run(
    data: &DataDir,
    name: &str,
    to: &Path,
    (checkpoints, profiles): (bool, bool),
    format: Format,
) -> Result<(), Failure> {
    let journal = Journal::open(data).await?;
    let (round, run) = find(&journal, name).await?;
    let Some((job, _)) = run.status.jobs.first() else {
        return Err(Failure::NoRun(format!("{} has no job yet, so it has no files.", run.plan.title())));
    };
    let request = FetchRequest {
        experiment_dir: run.below_its_folder(&run.plan.experiment_dir),
        log: run.status.logs.get(job).cloned(),
        job: job.clone(),
        checkpoints,
        profiles,
    };
    let link =
        Link::new(&round.ssh, LinkOptions { cluster: Some(round.cluster.clone()), ..LinkOptions::default() });
    let (folder, entries) = fetch::list(&link, &request).await?;
    let to = to.join(format!("{}-{job}", run.plan.title().replace('#', "-")));
    let mut bytes = 0;
    for entry in &entries {
        bytes += fetch::fetch(&link, &folder, entry, &to).await?;
        note(&format!("{} ({} bytes)", entry.path, entry.size));
    }
    let all: u64 = entries.iter().map(|entry| entry.size).sum();
    if format == Format::Json {
        let to = to.display().to_string();
        return output::json(&serde_json::json!({
            "run": run.plan.name, "id": run.id, "from": folder, "to": to, "files": entries.len(), "bytes": all, "fetched_bytes": bytes,
        }));
    }
    output::text_line(&format!(
        "{} files with {all} bytes in {} ({bytes} bytes fetched now)",
        entries.len(),
        to.display()
    ))
}
