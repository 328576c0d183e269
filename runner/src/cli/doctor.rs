//! `trainplan doctor`: checks whether a cluster is ready for runs.

use super::output::{self, Format, FormatArg};
use super::{Failure, note, profiles};
use crate::doctor::{self, Finding, GpuCheck, Verdict};
use crate::probe::{ProbeProgress, SubmittedProbe};
use serde::Serialize;
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;
use trainplan_shared::campaign::{Cluster, Name};

/// How long the job that checks GPUs may wait in the queue.
const LONGEST_WAIT: Duration = Duration::from_secs(15 * 60);

/// How long a cancellation may take.
const CANCELING: Duration = Duration::from_secs(30);

/// Check that a cluster is ready for runs
///
/// Checks the connection, the login node, Slurm and the installed releases. To see whether jobs keep their
/// comments, it submits a held job, which never starts, and cancels it. It leaves nothing else on the cluster.
///
/// With --check-gpus, it also submits a job of at most five minutes that looks at the GPUs of one or more nodes:
/// their number and type, clocks, power limits, memory in use, ECC errors and thermal slowdown. If the nodes have
/// all_reduce_perf of nccl-tests, in PATH or at the path that ALL_REDUCE_PERF in the profile's env names, the job
/// also measures an all-reduce between the GPUs of each node.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan doctor --cluster alpha
  trainplan doctor --cluster alpha --clusters clusters.toml --format json
  trainplan doctor --cluster alpha --check-gpus --nodes 4

Exit codes:
  0  The cluster is ready, perhaps with warnings
  1  A problem was found
  2  Invalid arguments or profiles
  5  The cluster can't be reached")]
pub(super) struct Args {
    /// Name of the cluster's profile
    #[arg(long, value_name = "NAME")]
    cluster: Name,
    /// File with your cluster profiles [default: ~/.config/trainplan/clusters.toml]
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// Also check GPUs, in a short job
    #[arg(long)]
    check_gpus: bool,
    /// Number of nodes whose GPUs are checked
    #[arg(long, value_name = "N", default_value_t = 1, requires = "check_gpus", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    nodes: u32,
    #[command(flatten)]
    format: FormatArg,
}

/// The findings, as JSON.
#[derive(Debug, Serialize)]
struct DoctorReport<'a> {
    cluster: &'a Name,
    ssh: &'a str,
    findings: &'a [Finding],
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let cluster = profiles::cluster(&self.cluster, self.clusters)?;
        let check = self.check_gpus.then(|| GpuCheck::new(&cluster, self.nodes)).transpose()?;
        let findings = tokio::runtime::Runtime::new()?.block_on(async {
            let mut findings = doctor::examine(&cluster).await?;
            if let Some(check) = &check {
                findings.extend(check_gpus(&cluster, check).await?);
            }
            Ok::<_, Failure>(findings)
        })?;
        match self.format.choose() {
            Format::Json => {
                output::json(&DoctorReport {
                    cluster: &cluster.name,
                    ssh: &cluster.ssh,
                    findings: &findings,
                })?;
            }
            Format::Csv => csv(&findings)?,
            Format::Table => table(&cluster, &findings)?,
        }
        match findings.iter().filter(|finding| finding.verdict == Verdict::Problem).count() {
            0 => Ok(()),
            count => Err(Failure::Unfit(count)),
        }
    }
}

/// Submits the job that checks GPUs, waits for it and judges its result.
async fn check_gpus(cluster: &Cluster, check: &GpuCheck) -> Result<Vec<Finding>, Failure> {
    let id = uuid::Uuid::now_v7().simple().to_string();
    let submitted = match check.submit(cluster, id).await {
        Ok(submitted) => submitted,
        Err(error) => return Ok(vec![GpuCheck::without_result(&error)]),
    };
    let nodes = if check.nodes() == 1 { "a node".to_string() } else { format!("{} nodes", check.nodes()) };
    note(&format!("Job {} checks the GPUs of {nodes}. Ctrl-C cancels it.", submitted.job()));
    let has_started = Cell::new(false);
    let mut last = String::new();
    let result = submitted.text(|ProbeProgress { state, .. }| {
        if state != last {
            match state.as_str() {
                "PENDING" => note("The job waits in the queue."),
                state => note(state),
            }
            has_started.set(has_started.get() || !matches!(state.as_str(), "PENDING" | "UNKNOWN"));
            last = state;
        }
    });
    let waits_too_long = async {
        tokio::time::sleep(LONGEST_WAIT).await;
        if has_started.get() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        result = result => Ok(match result {
            Ok(text) => {
                submitted.remove().await;
                check.judge(&text)
            }
            Err(error) => vec![GpuCheck::without_result(&error)],
        }),
        () = waits_too_long => {
            cancel(&submitted).await;
            Ok(vec![GpuCheck::not_started(submitted.job(), LONGEST_WAIT)])
        }
        _ = tokio::signal::ctrl_c() => {
            cancel(&submitted).await;
            Err(Failure::Refused("The check was interrupted, and its job cancelled"))
        }
    }
}

/// Cancels a job. If the cluster can't be reached, the job ends by its time limit.
async fn cancel(submitted: &SubmittedProbe) {
    let _ = tokio::time::timeout(CANCELING, submitted.cancel()).await;
}

fn csv(findings: &[Finding]) -> Result<(), Failure> {
    let rows = findings.iter().map(|finding| {
        let Finding { check, seen, what_to_do, .. } = finding.clone();
        [check, label(finding.verdict).to_lowercase(), seen, what_to_do]
    });
    output::csv(["check", "verdict", "seen", "what_to_do"], rows)
}

fn table(cluster: &Cluster, findings: &[Finding]) -> Result<(), Failure> {
    output::text_line(&format!("Cluster {} ({}).\n", cluster.name, cluster.ssh_command()))?;
    let rows = findings
        .iter()
        .map(|finding| [label(finding.verdict).to_string(), finding.check.clone(), finding.seen.clone()]);
    output::table(["verdict", "check", "seen"], &[], rows)?;
    let to_do: Vec<&Finding> = findings.iter().filter(|finding| !finding.what_to_do.is_empty()).collect();
    if to_do.is_empty() {
        return output::text_line("\nThe cluster is ready for runs.");
    }
    output::text_line("\nWhat to do:")?;
    for finding in to_do {
        output::prose(&format!("  {}: {}", finding.check, finding.what_to_do))?;
    }
    Ok(())
}

/// Returns the verdict for people. Capitals make a problem stand out.
fn label(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Warning => "warning",
        Verdict::Problem => "PROBLEM",
    }
}
