//! `trainplan doctor`: whether a cluster is ready for runs.

use super::output::{self, Format, FormatArg};
use super::{Failure, profiles};
use crate::doctor::{self, Finding, Verdict};
use serde::Serialize;
use std::path::PathBuf;
use trainplan_shared::campaign::{Cluster, Name};

/// Examine a cluster before runs are sent there: the connection, Slurm, and what is installed
///
/// Nothing is submitted, and nothing stays there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan doctor --cluster alpha
  trainplan doctor --cluster alpha --clusters clusters.toml --format json

Exit codes: 0 runs can be sent, warnings or not; 1 a problem was found; 2 wrong use or invalid profiles; 5 the cluster
cannot be reached.")]
pub(super) struct Args {
    /// The cluster, by the name of its profile
    #[arg(long, value_name = "NAME")]
    cluster: Name,
    /// The profiles of your clusters [default: trainplan/clusters.toml in your configuration]
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg,
}

/// The findings, for programs.
#[derive(Debug, Serialize)]
struct Output<'a> {
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
                output::json(&Output { cluster: &cluster.name, ssh: &cluster.ssh, findings: &findings })?;
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
        [check, word(finding.verdict).to_lowercase(), seen, what_to_do]
    });
    output::csv(["check", "verdict", "seen", "what_to_do"], rows)
}

fn table(cluster: &Cluster, findings: &[Finding]) -> Result<(), Failure> {
    output::text_line(&format!("Cluster {} (ssh {}).\n", cluster.name, cluster.ssh))?;
    let rows = findings
        .iter()
        .map(|finding| [word(finding.verdict).to_string(), finding.check.clone(), finding.seen.clone()]);
    output::table(["verdict", "check", "seen"], &[], rows)?;
    let to_do: Vec<&Finding> = findings.iter().filter(|finding| !finding.what_to_do.is_empty()).collect();
    if to_do.is_empty() {
        return output::text_line("\nRuns can be sent there.");
    }
    output::text_line("\nWhat to do:")?;
    for finding in to_do {
        output::text_line(&format!("  {}: {}", finding.check, finding.what_to_do))?;
    }
    Ok(())
}

/// A problem is to be seen at a glance.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Warning => "warning",
        Verdict::Problem => "PROBLEM",
    }
}
