//! `trainplan jobs failures`: how often jobs were interrupted.

use crate::cli::output::{self, Format};
use crate::cli::{Failure, note, watch};
use crate::data::DataDir;
use crate::interruptions::{JobTally, MeanTime, MeasuredGoodput, StartEnd};
use crate::journal::{Journal, Phase, Run};
use crate::store::Store;
use crate::suspect_nodes::SuspectNode;
use serde::Serialize;
use std::collections::BTreeSet;
use trainplan_shared::estimate::Interval;
use trainplan_shared::field::Field;
use trainplan_shared::goodput::{FailureRate, FailureStudy, ObservedFailures};
use trainplan_shared::log::Log;
use trainplan_shared::problem::all_of;
use trainplan_shared::units::{group_digits, readable, readable_range};
use uuid::Uuid;

/// What the journal's jobs say about failures.
#[derive(Debug, Serialize)]
struct FailureSummary<'a> {
    clusters: BTreeSet<&'a str>,
    rounds: usize,
    runs: usize,
    /// Jobs that started.
    jobs: usize,
    /// Running time times GPUs.
    gpu_hours: f64,
    ends: Vec<EndCount>,
    interruptions: u64,
    /// With the exact 80 % interval.
    interruptions_per_gpu_hour: Option<Interval>,
    /// From the submission of a job to its start.
    queue: Option<MeanTime>,
    /// From an interruption to the next start of the same job.
    requeue: Option<MeanTime>,
    /// The time that a completed job ran without training.
    outside_steps: Option<MeanTime>,
    /// How the time of the jobs was used.
    goodput: Option<MeasuredGoodput>,
    /// Jobs that are not part of the goodput because the steps in their logs take longer than they ran.
    implausible_jobs: usize,
    /// Nodes whose jobs were interrupted more often than chance explains.
    suspect_nodes: Vec<SuspectNode>,
    /// The value of --failure-rate; none if its default is more precise.
    failure_rate: Option<String>,
    /// Whether the interval includes all published studies.
    includes_studies: bool,
}

/// How often starts of jobs ended in one way.
#[derive(Debug, Serialize)]
struct EndCount {
    end: StartEnd,
    times: u64,
    is_interruption: bool,
}

pub(super) async fn failures(data: &DataDir, cluster: Option<&str>, format: Format) -> Result<(), Failure> {
    let journal = Journal::open(data).await?;
    let all = journal.rounds().await?;
    let rounds: Vec<_> =
        all.iter().filter(|round| cluster.is_none_or(|cluster| round.cluster == cluster)).collect();
    if let (Some(cluster), true) = (cluster, rounds.is_empty()) {
        return Err(unknown_cluster(cluster, &all.iter().map(|round| &*round.cluster).collect()));
    }
    let mut tally = JobTally::default();
    let mut store = None;
    for round in &rounds {
        for run in journal.runs(&round.id).await? {
            let events = journal.events(&run.id, 0).await?;
            let log = stored_log(data, &mut store, &run).await?;
            tally.add(&run, &events, log.as_ref(), round.seen_ms);
        }
    }
    let observed = tally.observed();
    let count =
        |(end, times): (StartEnd, u64)| EndCount { end, times, is_interruption: end.is_interruption() };
    let summary = FailureSummary {
        clusters: rounds.iter().map(|round| &*round.cluster).collect(),
        rounds: rounds.len(),
        runs: tally.runs,
        jobs: tally.jobs,
        gpu_hours: observed.gpu_hours,
        ends: tally.ends().map(count).collect(),
        interruptions: observed.interruptions,
        interruptions_per_gpu_hour: observed.per_gpu_hour(),
        queue: tally.queue(),
        requeue: tally.requeue(),
        outside_steps: tally.outside_steps(),
        goodput: tally.goodput(),
        implausible_jobs: tally.implausible,
        suspect_nodes: tally.nodes().suspects(),
        failure_rate: observed.setting(),
        includes_studies: observed.includes_studies(),
    };
    match format {
        Format::Json => output::json(&summary),
        Format::Csv => {
            output::csv(["end", "times", "is_interruption"], summary.ends.iter().map(EndCount::cells))
        }
        Format::Table => print(&summary, observed, tally.nodes().interrupted()),
    }
}

/// Returns the log of a run's result; none if the store does not have it.
async fn stored_log(data: &DataDir, store: &mut Option<Store>, run: &Run) -> Result<Option<Log>, Failure> {
    if run.status.phase != Phase::Stored {
        return Ok(None);
    }
    let store = match store {
        Some(store) => store,
        None => store.insert(Store::open(data).await?),
    };
    let result = store.get(Uuid::parse_str(&run.id).unwrap_or_default()).await?;
    Ok(result.map(|result| result.log))
}

fn unknown_cluster(cluster: &str, known: &BTreeSet<&str>) -> Failure {
    let known: Vec<&str> = known.iter().copied().collect();
    Failure::NoRun(match &*known {
        [] => format!("No campaign has run on cluster \"{cluster}\" or on any other."),
        _ => format!(
            "No campaign has run on cluster \"{cluster}\". The journal has runs on {}.",
            known.join(", ")
        ),
    })
}

impl EndCount {
    fn cells(&self) -> [String; 3] {
        let end = serde_json::to_value(self.end).ok();
        let end = end.and_then(|end| end.as_str().map(String::from)).unwrap_or_default();
        [end, self.times.to_string(), self.is_interruption.to_string()]
    }
}

/// Prints the summary; `on_known_nodes` is how many of the interruptions were on known nodes.
fn print(
    summary: &FailureSummary<'_>,
    observed: ObservedFailures,
    on_known_nodes: u64,
) -> Result<(), Failure> {
    let Some(rate) = summary.interruptions_per_gpu_hour else {
        note("No job has run yet, so no failure rate is known. Start one with `trainplan run CAMPAIGN`.");
        return Ok(());
    };
    let count = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", group_digits(count as f64)),
    };
    let hours = readable(summary.gpu_hours);
    output::prose(&format!(
        "{} of {} in {} on {} ran for {hours} GPU-hours.\n",
        count(summary.jobs, "job"),
        count(summary.runs, "run"),
        count(summary.rounds, "round"),
        all_of(&summary.clusters.iter().collect::<Vec<_>>()),
    ))?;
    let rows = summary.ends.iter().map(|row| {
        let is_interruption = if row.is_interruption { "yes" } else { "no" };
        [row.end.title().to_string(), row.times.to_string(), is_interruption.to_string()]
    });
    output::table(["how a job ended", "times", "interruption"], &[1], rows)?;
    let per_thousand = rate.times(1000.0);
    output::prose(&match summary.interruptions {
        0 => format!(
            "\nNo interruption in {hours} GPU-hours: at most {} per 1,000 GPU-hours (upper end of the 80 % interval).",
            readable(per_thousand.high)
        ),
        interruptions => format!(
            "\n{} in {hours} GPU-hours: {} per 1,000 GPU-hours (80 % interval: {}).",
            count(interruptions as usize, "interruption"),
            readable(per_thousand.mid),
            readable_range((per_thousand.low, per_thousand.high), readable)
        ),
    })?;
    for (what, mean) in [
        ("Queue time, from submission to start", summary.queue),
        ("Time from an interruption to the requeued start", summary.requeue),
        ("Time of a completed job outside its training steps", summary.outside_steps),
    ] {
        if let Some(MeanTime { mean_s, n }) = mean {
            output::text_line(&format!("{what}: {} (mean of {n})", watch::duration(mean_s)))?;
        }
    }
    if let Some(goodput) = summary.goodput {
        output::prose(&in_words(&goodput))?;
    }
    if summary.implausible_jobs > 0 {
        let (are, their, they) = match summary.implausible_jobs {
            1 => ("is", "its log", "it"),
            _ => ("are", "their logs", "they"),
        };
        output::prose(&format!(
            "{} {are} not part of the goodput: the steps in {their} take longer than {they} ran.",
            count(summary.implausible_jobs, "completed job")
        ))?;
    }
    for SuspectNode { node, interrupted, starts } in &summary.suspect_nodes {
        output::prose(&format!(
            "Node {node} was part of {interrupted} of {on_known_nodes} interrupted jobs, and of {starts} jobs in all: more than \
             chance explains. To leave it out, use `trainplan run --exclude {node}`."
        ))?;
    }
    if summary.includes_studies {
        output::prose(&caution(observed))?;
    }
    if summary.clusters.len() > 1 {
        output::text_line("Failure rates differ between clusters: choose one with --cluster.")?;
    }
    let Some(setting) = &summary.failure_rate else { return Ok(()) };
    let flag = Field::FailureRate.flag();
    output::text_line(&format!(
        "To plan with this rate in `trainplan search` or `trainplan estimate`: --{flag} {setting}"
    ))
}

/// Returns a sentence that says how the time of the jobs was used.
fn in_words(goodput: &MeasuredGoodput) -> String {
    let all = goodput.gpu_hours();
    let percent = |gpu_hours: f64| format!("{:.1} %", 100.0 * gpu_hours / all);
    let rest = [
        ("start-up, checkpoints and shutdown", goodput.outside_steps_gpu_hours),
        ("steps that ran again", goodput.repeated_gpu_hours),
        ("waits for a requeued start", goodput.requeue_gpu_hours),
        ("interrupted jobs", goodput.lost_gpu_hours),
    ];
    let rest = rest.into_iter().filter(|(_, gpu_hours)| *gpu_hours > 0.0);
    let rest: Vec<String> =
        rest.map(|(what, gpu_hours)| format!("{what} took {}", percent(gpu_hours))).collect();
    let rest = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) };
    format!(
        "Goodput: {} of {} GPU-hours went into training steps that count{rest}.",
        percent(goodput.training_gpu_hours),
        readable(all)
    )
}

/// Returns a sentence for jobs that say less than the published studies.
fn caution(observed: ObservedFailures) -> String {
    let studies = FailureRate::Studies.per_gpu_hour();
    let names: Vec<&str> = FailureStudy::all().iter().map(|study| &*study.title).collect();
    let range = readable_range((studies.low * 1000.0, studies.high * 1000.0), readable);
    let more = match observed.interruptions {
        0 => format!(
            " After {} GPU-hours without an interruption, these jobs would be more precise.",
            group_digits(ObservedFailures::gpu_hours_below(studies.high))
        ),
        _ => String::new(),
    };
    format!(
        "The interval includes the published rates ({}: {range}), so the default of --{} is more precise.{more}",
        names.join(" and "),
        Field::FailureRate.flag()
    )
}
