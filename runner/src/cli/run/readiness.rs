//! Checks what the jobs of a round would fail on, before the first of them is submitted.

use super::super::{Failure, note};
use crate::conduct::trying_again;
use crate::doctor::{self, Finding, Verdict};
use crate::secrets;
use crate::ssh::{Link, LinkError};
use crate::upload;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use trainplan_shared::campaign::{Cluster, Planned, Upload};

/// Checks on the cluster what the jobs would fail on, before the first of them is submitted.
///
/// # Errors
/// There is a problem, or the cluster can't be reached for longer than `patience`.
pub(super) async fn check_cluster(
    cluster: &Cluster,
    planned: &[Planned<'_>],
    link: &Link,
    patience: Option<Duration>,
) -> Result<(), Failure> {
    let Some(found) = await_findings(cluster, planned, link, patience).await? else { return Ok(()) };
    let told = |finding: &Finding| format!("{}: {}. {}", finding.check, finding.seen, finding.what_to_do);
    let of = |verdict: Verdict| found.iter().filter(move |finding| finding.verdict == verdict).map(told);
    for warning in of(Verdict::Warning) {
        note(&warning);
    }
    let reasons: Vec<String> = of(Verdict::Problem).collect();
    if reasons.is_empty() {
        return Ok(());
    }
    Err(Failure::NotReady { cluster: cluster.name.to_string(), reasons })
}

/// How often a check is tried that breaks off: a command on the cluster may hang.
const CHECKS: u32 = 2;

/// The pause before another try to reach the cluster.
const PAUSE: Duration = Duration::from_secs(2);

/// Returns what the check of a cluster found, once the cluster can be reached. `None` if the check breaks off every time.
async fn await_findings(
    cluster: &Cluster,
    planned: &[Planned<'_>],
    link: &Link,
    patience: Option<Duration>,
) -> Result<Option<Vec<Finding>>, Failure> {
    let begun = Instant::now();
    let (mut waits, mut broken) = (false, 0);
    loop {
        match doctor::examine_for(planned, link).await {
            Ok(found) => {
                if waits {
                    note(&format!("Cluster {} answers.", cluster.name));
                }
                return Ok(Some(found));
            }
            Err(error @ LinkError::Refused { .. }) => return Err(error.into()),
            Err(error @ LinkError::Unreachable { .. }) => {
                if patience.is_some_and(|patience| begun.elapsed() > patience) {
                    return Err(error.into());
                }
                if !waits {
                    note(&format!(
                        "Cluster {} can't be reached: {error} Nothing is submitted until it answers. {}",
                        cluster.name,
                        trying_again(patience.map(|patience| patience.saturating_sub(begun.elapsed())))
                    ));
                    waits = true;
                }
            }
            Err(error @ LinkError::Lost { .. }) => {
                broken += 1;
                if broken == CHECKS {
                    note(&format!("Cluster {} was not checked: {error}", cluster.name));
                    return Ok(None);
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Checks that the tokens for results servers are available, and warns of unencrypted connections.
pub(super) async fn check_uploads(planned: &[Planned<'_>]) -> Result<(), Failure> {
    let uploads: BTreeSet<&Upload> = planned.iter().filter_map(|run| run.upload).collect();
    for upload in uploads {
        secrets::find(&upload::token_of(&upload.to), &upload.token).await?;
        if let Some(warning) = upload::unencrypted(&upload.to) {
            note(&warning);
        }
    }
    Ok(())
}
