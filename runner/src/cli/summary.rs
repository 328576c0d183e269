//! The outcomes of runs, as rows.

use super::judged_run::JudgedRun;
use super::output;
use super::{Failure, watch};
use crate::conduct::RunOutcome;
use crate::journal::{Event, Phase, Round, Run, UploadState};
use crate::slurm::{Sighting, State};
use serde::Serialize;
use std::collections::BTreeMap;
use trainplan_shared::result::much_faster;
use trainplan_shared::tables::{TerminalHeading, TerminalTable};
use trainplan_shared::units::readable;

/// What became of a run, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    campaign: &'a str,
    /// The round of the campaign, by its name.
    round: String,
    cluster: &'a str,
    run: &'a str,
    repeat: u32,
    repeats: u32,
    /// Which retry after a failure that passes; 0 for the first try.
    retry: u32,
    /// How many retries the campaign allows.
    retries: u32,
    #[serde(skip)]
    title: String,
    /// Which attempt it is, in words; none for the first one.
    #[serde(skip)]
    attempt: Option<String>,
    id: &'a str,
    recipe: Option<&'a str>,
    outcome: RunOutcome,
    phase: Phase,
    state: String,
    jobs: Vec<&'a str>,
    /// The mean of the scored steps.
    step_time_s: Option<f64>,
    /// The step time by which the run is judged. The figures below follow it, unless their names say that they follow the scored
    /// one.
    judged_s: Option<f64>,
    mfu: Option<f64>,
    planned_step_time_s: f64,
    /// How much longer than planned it took, as a fraction.
    error: Option<f64>,
    /// Its speed in percent of the planned one.
    plan_speed_percent: Option<f64>,
    scored_plan_speed_percent: Option<f64>,
    within: Option<bool>,
    scored_within: Option<bool>,
    published_step_time_s: Option<f64>,
    speed_percent: Option<f64>,
    scored_speed_percent: Option<f64>,
    #[serde(skip)]
    judged: Option<JudgedRun>,
    result: Option<&'a str>,
    pub(super) why: Option<&'a str>,
    /// How far its result is on its way to a server, where it is sent to one.
    upload: Option<Upload<'a>>,
    /// How long its measured job waited in the queue before its last start, or waits since.
    queue_s: Option<f64>,
    /// The GPU-hours of its jobs since their last starts.
    gpu_hours: Option<f64>,
    #[serde(skip)]
    pub(super) listed: ListedState,
}

/// The states that select runs of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ListedState {
    /// Not submitted yet
    Planned,
    /// Being launched
    Submitting,
    /// In the queue
    Waiting,
    /// A job runs
    Running,
    /// The cluster can't be reached, or no process follows the run
    Unknown,
    /// All jobs have ended, and the log is not scored yet
    Ended,
    /// Over, with a score
    Scored,
    /// Cancelled, without a score
    Cancelled,
    /// Over for another reason, without a score
    Failed,
}

impl ListedState {
    fn of(run: &Run, is_unwatched: bool) -> ListedState {
        let status = &run.status;
        let runs = |(_, seen): &(String, Option<Sighting>)| {
            seen.as_ref().is_some_and(|seen| matches!(seen.state, State::Running | State::Suspended))
        };
        match (status.phase, RunOutcome::of(run)) {
            (_, RunOutcome::Scored) => ListedState::Scored,
            (_, RunOutcome::Cancelled) => ListedState::Cancelled,
            (_, RunOutcome::Failed) => ListedState::Failed,
            (Phase::Planned | Phase::Staged, _) => ListedState::Planned,
            (Phase::Intended, _) => ListedState::Submitting,
            (Phase::Submitted, _) if is_unwatched || status.unseen.is_some() => ListedState::Unknown,
            (Phase::Submitted, _) if status.jobs.iter().any(runs) => ListedState::Running,
            (Phase::Submitted, _) => ListedState::Waiting,
            _ => ListedState::Ended,
        }
    }
}

impl ListedState {
    /// All states, in the order of a run's life.
    const ALL: [(ListedState, &'static str); 9] = [
        (ListedState::Planned, "planned"),
        (ListedState::Submitting, "submitting"),
        (ListedState::Waiting, "waiting"),
        (ListedState::Running, "running"),
        (ListedState::Unknown, "unknown"),
        (ListedState::Ended, "ended"),
        (ListedState::Scored, "scored"),
        (ListedState::Failed, "failed"),
        (ListedState::Cancelled, "cancelled"),
    ];
}

/// Returns how many runs are in each state, and the GPU-hours of their jobs, in a sentence.
pub(super) fn counts(runs: &[Summary<'_>]) -> String {
    let of = |(state, name): (ListedState, &str)| {
        let count = runs.iter().filter(|run| run.listed == state).count();
        (count > 0).then(|| format!("{count} {name}"))
    };
    let states: Vec<String> = ListedState::ALL.into_iter().filter_map(of).collect();
    let noun = if runs.len() == 1 { "run" } else { "runs" };
    let hours: f64 = runs.iter().filter_map(|run| run.gpu_hours).sum();
    let hours = if hours > 0.0 { format!("; {} GPU-hours", readable(hours)) } else { String::new() };
    format!("{} {noun}: {}{hours}.", runs.len(), states.join(", "))
}

/// How far a result is on its way.
#[derive(Debug, Serialize)]
struct Upload<'a> {
    to: &'a str,
    state: Way,
    /// Since when the server has it.
    at: Option<String>,
    why: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// The run has no result.
    None,
    /// The upload is pending.
    Waiting,
    /// The server has the result.
    Sent,
    /// The server rejected the result.
    Refused,
}

impl<'a> Summary<'a> {
    pub(super) fn of(round: &'a Round, run: &'a Run, unwatched: Option<i64>) -> Summary<'a> {
        let status = &run.status;
        let seen_s =
            (if status.is_over() { status.at_ms } else { round.seen_ms.unwrap_or(status.at_ms) }) / 1000;
        let (queue_s, gpu_hours) = used(run, seen_s);
        let mut summary = Summary {
            campaign: &round.campaign,
            round: round.title(),
            cluster: &round.cluster,
            run: &run.plan.name,
            repeat: run.plan.repeat,
            repeats: run.plan.repeats,
            retry: run.plan.retry,
            retries: run.plan.retries,
            title: run.plan.title(),
            attempt: run.plan.attempt_words(),
            id: &run.id,
            recipe: run.plan.recipe.as_deref(),
            outcome: RunOutcome::of(run),
            phase: status.phase,
            state: unwatched.map_or_else(|| watch::in_words(run), |since| watch::in_words_since(run, since)),
            jobs: status.jobs.iter().map(|(job, _)| job.as_str()).collect(),
            step_time_s: None,
            judged_s: None,
            mfu: None,
            planned_step_time_s: run.plan.predicted.step_time_s.mid,
            error: None,
            plan_speed_percent: None,
            scored_plan_speed_percent: None,
            within: None,
            scored_within: None,
            published_step_time_s: run.plan.baseline_s,
            speed_percent: None,
            scored_speed_percent: None,
            judged: None,
            result: (status.phase == Phase::Stored).then_some(run.id.as_str()),
            why: status.failure.as_deref(),
            upload: run.plan.upload.as_ref().map(|upload| on_its_way(upload.to.as_str(), run)),
            queue_s,
            gpu_hours,
            listed: ListedState::of(run, unwatched.is_some()),
        };
        if let Some(parsed @ Event::Parsed { reason, step_time_s, mfu, .. }) = &status.parsed {
            (summary.step_time_s, summary.mfu) = (*step_time_s, *mfu);
            summary.why = summary.why.or(reason.as_deref());
            if let Some(judged) = JudgedRun::of(parsed, run.plan.predicted.step_time_s) {
                summary.set_judged(judged);
            }
        }
        summary
    }

    fn set_judged(&mut self, judged: JudgedRun) {
        self.judged = Some(judged);
        self.judged_s = Some(judged.step_time_s);
        self.speed_percent = judged.speed_percent;
        self.scored_speed_percent = judged.scored_speed_percent;
        if let Some(plan) = judged.plan {
            (self.error, self.within, self.scored_within) = (plan.error, plan.within, plan.scored_within);
            self.plan_speed_percent = plan.speed_percent;
            self.scored_plan_speed_percent = plan.scored_speed_percent;
        }
    }
}

/// Returns the seconds that a run's measured job waited for its last start, and the GPU-hours of its jobs since then,
/// according to the queue's last answer.
fn used(run: &Run, seen_s: i64) -> (Option<f64>, Option<f64>) {
    let seen = || run.status.jobs.iter().map(|(_, seen)| seen.as_ref());
    let queue_s = seen().next().flatten().and_then(|seen| {
        Some((seen.started.or(seen.ended).unwrap_or(seen_s) - seen.submitted?).max(0) as f64)
    });
    let ran_s = |seen: &Sighting| {
        let started = seen.started.filter(|_| seen.state != State::Pending)?;
        Some((seen.ended.unwrap_or(seen_s) - started).max(0) as f64)
    };
    let ran: Vec<f64> = seen().flatten().filter_map(ran_s).collect();
    let hours = || ran.iter().sum::<f64>() * f64::from(run.plan.gpus) / 3600.0;
    (queue_s, (!ran.is_empty()).then(hours))
}

fn on_its_way<'a>(to: &'a str, run: &'a Run) -> Upload<'a> {
    let (state, at, why) = match &run.status.sending {
        None if run.status.phase == Phase::Stored => (Way::Waiting, None, None),
        None => (Way::None, None, None),
        Some(UploadState::Sent { at_ms }) => (Way::Sent, Some(watch::time(*at_ms)), None),
        Some(UploadState::PutOff { why }) => (Way::Waiting, None, Some(why.as_str())),
        Some(UploadState::Refused { why }) => (Way::Refused, None, Some(why.as_str())),
    };
    Upload { to, state, at, why }
}

/// The columns of a table of runs.
enum RunColumn {
    Run,
    Jobs,
    State,
    Queued,
    GpuHours,
    StepTime,
    Planned,
    SpeedOfPlan,
    Published,
    Speed,
    Mfu,
}

impl RunColumn {
    const ALL: [RunColumn; 11] = [
        RunColumn::Run,
        RunColumn::Jobs,
        RunColumn::State,
        RunColumn::Queued,
        RunColumn::GpuHours,
        RunColumn::StepTime,
        RunColumn::Planned,
        RunColumn::SpeedOfPlan,
        RunColumn::Published,
        RunColumn::Speed,
        RunColumn::Mfu,
    ];

    const fn heading(&self) -> TerminalHeading {
        match self {
            RunColumn::Run => TerminalHeading::new("run").wraps(),
            RunColumn::Jobs => TerminalHeading::new("jobs").extra(2),
            RunColumn::State => TerminalHeading::new("state").wraps(),
            RunColumn::Queued => TerminalHeading::new("queued").number().extra(5),
            RunColumn::GpuHours => TerminalHeading::new("GPU-hours").number().extra(6),
            RunColumn::StepTime => TerminalHeading::new("step, s").number(),
            RunColumn::Planned => TerminalHeading::new("planned, s").number().extra(3),
            RunColumn::SpeedOfPlan => TerminalHeading::new("speed, % of plan").number().extra(1),
            RunColumn::Published => TerminalHeading::new("published, s").number().extra(8),
            RunColumn::Speed => TerminalHeading::new("speed, % of published").number().extra(4),
            RunColumn::Mfu => TerminalHeading::new("MFU, %").number().extra(7),
        }
    }
}

/// Runs as a table, and below it why some have no result.
pub(super) fn table(summaries: &[Summary]) -> Result<(), Failure> {
    let rounded = |value: Option<f64>| value.map_or_else(|| "-".into(), super::estimate::rounded);
    let percent = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.1}"));
    let cells = |run: &Summary<'_>, column: &RunColumn| match column {
        RunColumn::Run => run.title.clone(),
        RunColumn::Jobs => run.jobs.join(", "),
        RunColumn::State => match &run.attempt {
            Some(attempt) => format!("{}, {attempt}", run.state),
            None => run.state.clone(),
        },
        RunColumn::Queued => run.queue_s.map_or_else(|| "-".into(), watch::duration),
        RunColumn::GpuHours => run.gpu_hours.map_or_else(|| "-".into(), readable),
        RunColumn::StepTime => {
            let judged_s = rounded(run.judged_s);
            match run.judged.and_then(JudgedRun::steady_s) {
                Some(_) => format!("{judged_s}, scored {}", rounded(run.step_time_s)),
                None => judged_s,
            }
        }
        RunColumn::Planned => rounded(Some(run.planned_step_time_s)),
        RunColumn::SpeedOfPlan => percent(run.plan_speed_percent),
        RunColumn::Published => rounded(run.published_step_time_s),
        RunColumn::Speed => percent(run.speed_percent),
        RunColumn::Mfu => percent(run.mfu.map(|mfu| mfu * 100.0)),
    };
    let row = |run: &Summary<'_>| RunColumn::ALL.iter().map(|column| Some(cells(run, column))).collect();
    let headings = RunColumn::ALL.iter().map(RunColumn::heading).collect();
    output::text_table(TerminalTable::new(headings, summaries.iter().map(row).collect()))?;
    for run in summaries {
        if let (Some(why), false) = (run.why, run.outcome == RunOutcome::Scored) {
            output::prose(&format!("  {}: {why}", run.title))?;
        }
    }
    for run in summaries {
        let fast = run.speed_percent.and_then(|percent| Some((percent, much_faster(percent)?)));
        if let Some((percent, what)) = fast {
            output::prose(&format!("  {}: {percent:.0} % of the published speed, {what}", run.title))?;
        }
    }
    let kept = summaries.iter().filter(|run| run.result.is_some()).count();
    if kept > 0 {
        let them = if kept == 1 { "it" } else { "them" };
        let kept = counted(kept, summaries.len());
        output::text_line(&format!("{kept} kept: `trainplan serve` shows {them} at /results"))?;
    }
    uploads(summaries)
}

/// Returns how many of all results some are: `1 result`, `3 of 4 results`.
fn counted(some: usize, all: usize) -> String {
    match (some, all) {
        (1, 1) => "1 result".into(),
        _ => format!("{some} of {all} {}", if all == 1 { "result" } else { "results" }),
    }
}

/// Prints runs as CSV.
pub(super) fn csv<'a>(summaries: impl Iterator<Item = &'a Summary<'a>>) -> Result<(), Failure> {
    let header = [
        "campaign",
        "round",
        "cluster",
        "run",
        "repeat",
        "id",
        "state",
        "jobs",
        "queue_s",
        "gpu_hours",
        "step_time_s",
        "planned_step_time_s",
        "published_step_time_s",
        "speed_percent",
        "mfu",
        "why",
        "attempt",
        "attempts",
        "plan_speed_percent",
        "judged_s",
        "scored_speed_percent",
        "scored_plan_speed_percent",
    ];
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let rows = summaries.map(|run| {
        [
            run.campaign.into(),
            run.round.clone(),
            run.cluster.into(),
            run.run.into(),
            run.repeat.to_string(),
            run.id.into(),
            run.state.clone(),
            run.jobs.join(" "),
            number(run.queue_s),
            number(run.gpu_hours),
            number(run.step_time_s),
            number(Some(run.planned_step_time_s)),
            number(run.published_step_time_s),
            number(run.speed_percent),
            number(run.mfu),
            run.why.unwrap_or_default().into(),
            run.retry.saturating_add(1).to_string(),
            run.retries.saturating_add(1).to_string(),
            number(run.plan_speed_percent),
            number(run.judged_s),
            number(run.scored_speed_percent),
            number(run.scored_plan_speed_percent),
        ]
    });
    output::csv(header, rows)
}

/// What became of sending results, by server.
fn uploads(summaries: &[Summary]) -> Result<(), Failure> {
    let mut servers: BTreeMap<&str, Vec<&Upload>> = BTreeMap::new();
    for upload in summaries.iter().filter_map(|run| run.upload.as_ref()) {
        servers.entry(upload.to).or_default().push(upload);
    }
    for (to, uploads) in servers {
        let of = |state| uploads.iter().filter(move |upload| upload.state == state);
        let all = uploads.len() - of(Way::None).count();
        if all == 0 {
            continue;
        }
        let mut line = format!("{} uploaded to {to}", counted(of(Way::Sent).count(), all));
        for (state, what) in [(Way::Waiting, "will be sent later"), (Way::Refused, "refused")] {
            // One reason is enough, because the others are mostly the same.
            let why = of(state).find_map(|upload| upload.why).map_or(String::new(), |why| format!(": {why}"));
            match of(state).count() {
                0 => {}
                count => line += &format!("; {count} {what}{why}"),
            }
        }
        output::text_line(&line)?;
    }
    Ok(())
}
