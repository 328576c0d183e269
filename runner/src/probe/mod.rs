//! Measures what a cluster reaches: submits one job, waits for it and fetches its result.

use crate::ssh::{Link, LinkError, LinkOptions, Script};
use std::time::Duration;
use trainplan_shared::campaign::Cluster;
use trainplan_shared::probe::{Probe, ProbeJob};
use trainplan_shared::problem::Problem;

/// The measuring program, for any Python with PyTorch.
pub(crate) const PROGRAM: &str = include_str!("probe.py");

/// Time limit of one remote script. Slurm may be slow.
const ASKING: Duration = Duration::from_secs(60);

/// The pause between two looks at the job.
const PAUSE: Duration = Duration::from_secs(3);

/// How many times in a row a lost connection is restored.
const TRIES: u32 = 20;

/// Why a probe has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    #[error(transparent)]
    Link(#[from] LinkError),
    /// Slurm did not accept the job.
    #[error("Slurm did not accept the probe's job: {0}")]
    Submission(String),
    /// The job ended without a result.
    #[error(
        "Job {job} of the probe ended without a result. Its log is ~/.trainplan/probes/{id}/job.log; it ends with:\n{log}"
    )]
    Job { job: u64, id: String, log: String },
    /// The file is not the result of a probe.
    #[error(
        "Job {job} of the probe wrote a result that can't be read: {problem}\nThe cluster keeps it in ~/{place}"
    )]
    Result { job: u64, place: String, problem: Problem },
}

/// How far a probe is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeProgress {
    /// Its job.
    pub(crate) job: u64,
    /// Its state in Slurm, such as `PENDING`.
    pub(crate) state: String,
    /// The last line of its log.
    pub(crate) line: String,
}

/// A submitted probe.
pub(crate) struct SubmittedProbe {
    link: Link,
    id: String,
    job: u64,
}

/// Submits a probe. The id must be new: it names the folder on the cluster.
///
/// # Errors
/// The cluster can't be reached, or Slurm refuses the job.
pub(crate) async fn submit(
    cluster: &Cluster,
    job: &ProbeJob,
    id: String,
) -> Result<SubmittedProbe, ProbeError> {
    submit_script(cluster, PROGRAM, job.script(), &job.sbatch_arguments(), id).await
}

/// Submits a job that writes the file `result` of the folder in which it starts, like that of a probe. The folder also has the
/// job's script as `job.sh` and, unless it is empty, a program as `probe.py`. The id must be new: it names the folder on the cluster.
///
/// # Errors
/// The cluster can't be reached, or Slurm refuses the job.
pub(crate) async fn submit_script(
    cluster: &Cluster,
    program: &str,
    job: String,
    arguments: &[String],
    id: String,
) -> Result<SubmittedProbe, ProbeError> {
    let options = LinkOptions { cluster: Some(cluster.name.to_string()), ..LinkOptions::default() };
    let link = Link::new(&cluster.ssh, options);
    let script = Script::new("probe", include_str!("start.sh"))
        .set("id", &id)
        .set("program", program)
        .set("job", job)
        .set("arguments", arguments.join("\n"));
    let mut tries = 0;
    let output = loop {
        match link.run(&script, ASKING).await {
            // The script submits once, however often it runs.
            Err(LinkError::Lost { .. }) if tries < TRIES => tries += 1,
            other => break other?,
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    match said.trim().parse::<u64>() {
        Ok(number) if output.code == 0 => Ok(SubmittedProbe { link, id, job: number }),
        _ => Err(ProbeError::Submission(output.stderr.trim().to_string())),
    }
}

impl SubmittedProbe {
    /// Returns the job's number.
    pub(crate) fn job(&self) -> u64 {
        self.job
    }

    /// Returns the path of the result on the cluster, below the home directory. [`SubmittedProbe::remove`] removes it.
    pub(crate) fn place(&self) -> String {
        format!(".trainplan/probes/{}/result", self.id)
    }

    /// Waits for the result. The cluster keeps it.
    ///
    /// # Errors
    /// The cluster can't be reached any more, or the job ended without a result of a probe.
    pub(crate) async fn result(&self, progress: impl FnMut(ProbeProgress)) -> Result<Probe, ProbeError> {
        let text = self.text(progress).await?;
        Probe::parse(&text).map_err(|problem| ProbeError::Result {
            job: self.job,
            place: self.place(),
            problem,
        })
    }

    /// Waits for the text of the result. The cluster keeps it.
    ///
    /// # Errors
    /// The cluster can't be reached any more, or the job ended without a result.
    pub(crate) async fn text(&self, mut progress: impl FnMut(ProbeProgress)) -> Result<String, ProbeError> {
        let look = Script::new("probe", include_str!("look.sh"))
            .set("id", &self.id)
            .set("submitted", self.job.to_string());
        let mut tries = 0;
        loop {
            let output = match self.link.run(&look, ASKING).await {
                Err(LinkError::Lost { .. } | LinkError::Unreachable { .. }) if tries < TRIES => {
                    tries += 1;
                    tokio::time::sleep(PAUSE * tries).await;
                    continue;
                }
                other => other?,
            };
            tries = 0;
            let said = String::from_utf8_lossy(&output.stdout);
            let (state, rest) = said.split_once('\n').unwrap_or((&said, ""));
            match state {
                "done" => return Ok(rest.to_string()),
                "ended" => {
                    let (id, log) = (self.id.clone(), rest.trim_end().to_string());
                    return Err(ProbeError::Job { job: self.job, id, log });
                }
                state => progress(ProbeProgress {
                    job: self.job,
                    state: state.to_string(),
                    line: rest.trim_end().to_string(),
                }),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Cancels the job and removes the probe's folder.
    ///
    /// # Errors
    /// The cluster can't be reached.
    pub(crate) async fn cancel(&self) -> Result<(), LinkError> {
        let script = Script::new("probe", "scancel \"$submitted\"").set("submitted", self.job.to_string());
        self.link.run(&script, ASKING).await?;
        self.remove().await;
        Ok(())
    }

    /// Removes the probe's folder. If that fails, a small folder remains.
    pub(crate) async fn remove(&self) {
        let script = Script::new("probe", "rm -rf \"$HOME/.trainplan/probes/$id\"").set("id", &self.id);
        if let Err(error) = self.link.run(&script, ASKING).await {
            tracing::debug!(%error, "the probe's folder remains");
        }
    }
}
