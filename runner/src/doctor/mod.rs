//! Checks whether a cluster is ready: for any run, or for the runs of a campaign.

mod answers;
mod gpus;
mod judge;
mod scope;

use crate::ssh::{Link, LinkError, LinkOptions, Script};
use answers::Answers;
pub(crate) use gpus::GpuCheck;
use jiff::Timestamp;
use scope::Scope;
use serde::Serialize;
use std::time::{Duration, Instant};
use trainplan_shared::campaign::{Cluster, Planned};

/// Time limit of the questions, since Slurm may be slow.
const ASKING: Duration = Duration::from_secs(150);

/// The same before a round, which would rather begin than wait for a cluster that does not answer.
const ASKING_FOR_RUNS: Duration = Duration::from_secs(90);

const SHORT: Duration = Duration::from_secs(15);

/// The verdict on a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ok,
    /// Runs work, with a limitation.
    Warning,
    /// Runs would fail.
    Problem,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    /// Name of the check.
    pub(crate) check: String,
    pub(crate) verdict: Verdict,
    /// What was found.
    pub(crate) seen: String,
    /// What the user can do, as whole sentences; empty if there is nothing to do.
    pub(crate) what_to_do: String,
}

impl Finding {
    fn ok(check: impl Into<String>, seen: impl Into<String>) -> Finding {
        Finding { check: check.into(), verdict: Verdict::Ok, seen: seen.into(), what_to_do: String::new() }
    }

    fn warning(check: impl Into<String>, seen: impl Into<String>, what_to_do: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Warning, what_to_do: what_to_do.into(), ..Finding::ok(check, seen) }
    }

    /// Returns the same with a problem as a warning.
    fn into_warning(self) -> Finding {
        match self.verdict {
            Verdict::Problem => Finding { verdict: Verdict::Warning, ..self },
            _ => self,
        }
    }

    fn problem(check: impl Into<String>, seen: impl Into<String>, what_to_do: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Problem, ..Finding::warning(check, seen, what_to_do) }
    }
}

/// Measurements of the link.
struct LinkMeasurements {
    connecting: Duration,
    round_trip: Duration,
    /// The cluster's clock minus ours, and its uncertainty; none if `date` does not work there.
    skew_s: Option<(f64, f64)>,
    sftp: bool,
}

/// The most names in a list that people read.
const SHOWN: usize = 8;

/// Returns the first of these texts, and how many there are in addition.
fn shortened<T: AsRef<str>>(texts: &[T]) -> String {
    let first: Vec<&str> = texts.iter().take(SHOWN).map(AsRef::as_ref).collect();
    match texts.len().saturating_sub(SHOWN) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Checks what the jobs of some runs depend on. Submits nothing.
pub(crate) async fn examine_for(planned: &[Planned<'_>], link: &Link) -> Result<Vec<Finding>, LinkError> {
    let scope = Scope::of_runs(planned);
    let answers = link.run(&scope.questions(), ASKING_FOR_RUNS).await?;
    Ok(judge::of_runs(&scope, &Answers::read(&String::from_utf8_lossy(&answers.stdout))))
}

/// Examines a cluster. Submits a held job and cancels it; leaves nothing there.
pub(crate) async fn examine(cluster: &Cluster) -> Result<Vec<Finding>, LinkError> {
    let idle = Duration::from_secs(60); // if interrupted, the connection is not used again
    let options = LinkOptions { cluster: Some(cluster.name.to_string()), idle, ..LinkOptions::default() };
    let link = Link::new(&cluster.ssh, options);
    let start = Instant::now();
    link.probe(SHORT).await?;
    let connecting = start.elapsed();
    let mut round_trip = SHORT;
    for _ in 0..3 {
        round_trip = round_trip.min(link.probe(SHORT).await?);
    }
    let skew_s = skew(&link).await?;
    let scope = Scope::of_cluster(cluster);
    let answers = link.run(&scope.questions(), ASKING).await?;
    let sftp = link.offers_sftp().await?;
    let measured = LinkMeasurements { connecting, round_trip, skew_s, sftp };
    tracing::debug!(figures = ?link.figures(), stderr = answers.stderr, "examined");
    let answers = Answers::read(&String::from_utf8_lossy(&answers.stdout));
    Ok(judge::of_cluster(cluster, &scope, &measured, &answers))
}

/// Measures how far the clocks differ. The answer is from a time between request and reply.
async fn skew(link: &Link) -> Result<Option<(f64, f64)>, LinkError> {
    let seconds = || Timestamp::now().as_duration().as_secs_f64();
    let asked = seconds();
    // A `date` without %N prints a letter instead.
    let output = link.run(&Script::new("clock", "date +%s.%N"), SHORT).await?;
    let answered = seconds();
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.trim();
    let whole = text.split('.').next().and_then(|whole| whole.parse::<f64>().ok());
    let fraction = text.split('.').nth(1).and_then(|digits| format!("0.{digits}").parse::<f64>().ok());
    Ok(whole.map(|whole| {
        let (there, coarse) = match fraction {
            Some(fraction) => (whole + fraction, 0.0),
            None => (whole + 0.5, 0.5),
        };
        (there - f64::midpoint(asked, answered), (answered - asked) / 2.0 + coarse)
    }))
}
