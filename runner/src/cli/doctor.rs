//! `trainplan doctor`: checks whether a cluster is ready for runs.

use super::output::{self, Format, FormatArg};
use super::{Failure, profiles};
use crate::doctor::{self, Finding, Verdict};
use serde::Serialize;
use std::path::PathBuf;
use trainplan_shared::campaign::{Cluster, Name};

/// Check that a cluster is ready for runs
///
/// Checks the connection, the login node, Slurm and the installed releases. To see whether jobs keep their
/// comments, it submits a held job, which never starts, and cancels it. It leaves nothing else on the cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan doctor --cluster alpha
  trainplan doctor --cluster alpha --clusters clusters.toml --format json

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
        let findings = tokio::runtime::Runtime::new()?.block_on(doctor::examine(&cluster))?;
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

fn csv(findings: &[Finding]) -> Result<(), Failure> {
    let rows = findings.iter().map(|finding| {
        let Finding { check, seen, what_to_do, .. } = finding.clone();
        [check, label(finding.verdict).to_lowercase(), seen, what_to_do]
    });
    output::csv(["check", "verdict", "seen", "what_to_do"], rows)
}

fn table(cluster: &Cluster, findings: &[Finding]) -> Result<(), Failure> {
    output::text_line(&format!("Cluster {} (ssh {}).\n", cluster.name, cluster.ssh))?;
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
