//! Checks whether a cluster is ready for runs.

mod answers;
mod judge;

use crate::ssh::{Link, LinkError, LinkOptions, Script};
use answers::Answers;
use jiff::Timestamp;
use serde::Serialize;
use std::time::{Duration, Instant};
use trainplan_shared::campaign::Cluster;
use trainplan_shared::field::Field;

/// Time limit of the questions, since Slurm may be slow.
const ASKING: Duration = Duration::from_secs(150);

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

    fn problem(check: impl Into<String>, seen: impl Into<String>, what_to_do: impl Into<String>) -> Finding {
        Finding { verdict: Verdict::Problem, ..Finding::warning(check, seen, what_to_do) }
    }
}

/// Measurements of the link.
struct LinkMeasurements {
    connecting: Duration,
    round_trip: Duration,
    /// The cluster's clock less ours, and the uncertainty of that; none if `date` does not work there.
    skew_s: Option<(f64, f64)>,
    sftp: bool,
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
    let answers = link.run(&questions(cluster), ASKING).await?;
    let sftp = link.offers_sftp().await?;
    let measured = LinkMeasurements { connecting, round_trip, skew_s, sftp };
    tracing::debug!(figures = ?link.figures(), stderr = answers.stderr, "examined");
    Ok(judge::findings(cluster, &measured, &Answers::read(&String::from_utf8_lossy(&answers.stdout))))
}

fn questions(cluster: &Cluster) -> Script {
    let value = |field| cluster.spec.get(field).unwrap_or_default().to_string();
    let mut places = String::new();
    for place in cluster.installations() {
        let name = judge::name_of(&place);
        if let Some(path) = &place.install_path {
            places += &format!("{name}\tinstall\t{path}\n");
        }
        for (model, path) in &place.recipe_dirs {
            places += &format!("{name}\trecipe:{model}\t{path}\n");
        }
    }
    Script::new("doctor", include_str!("questions.sh"))
        .set("partition", value(Field::Partition))
        .set("account", value(Field::Account))
        .set("places", places)
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
