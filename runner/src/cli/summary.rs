//! What became of runs, as rows.

use super::output;
use super::{Failure, watch};
use crate::conduct::Outcome;
use crate::journal::{Event, Phase, Round, Run};
use serde::Serialize;

/// What became of a run, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Summary<'a> {
    campaign: &'a str,
    cluster: &'a str,
    run: &'a str,
    repeat: u32,
    repeats: u32,
    id: &'a str,
    recipe: Option<&'a str>,
    outcome: Outcome,
    phase: Phase,
    state: String,
    jobs: Vec<&'a str>,
    step_time_s: Option<f64>,
    mfu: Option<f64>,
    planned_step_time_s: f64,
    /// How much longer than planned it took, as a fraction.
    error: Option<f64>,
    within: Option<bool>,
    published_step_time_s: Option<f64>,
    speed_percent: Option<f64>,
    result: Option<&'a str>,
    why: Option<&'a str>,
}

impl<'a> Summary<'a> {
    pub(super) fn of(round: &'a Round, run: &'a Run, unwatched: Option<i64>) -> Summary<'a> {
        let status = &run.status;
        let mut summary = Summary {
            campaign: &round.campaign,
            cluster: &round.cluster,
            run: &run.plan.name,
            repeat: run.plan.repeat,
            repeats: run.plan.repeats,
            id: &run.id,
            recipe: run.plan.recipe.as_deref(),
            outcome: Outcome::of(run),
            phase: status.phase,
            state: unwatched.map_or_else(|| watch::in_words(run), |since| watch::in_words_since(run, since)),
            jobs: status.jobs.iter().map(|(job, _)| job.as_str()).collect(),
            step_time_s: None,
            mfu: None,
            planned_step_time_s: run.plan.predicted.step_time_s.mid,
            error: None,
            within: None,
            published_step_time_s: run.plan.baseline_s,
            speed_percent: None,
            result: (status.phase == Phase::Stored).then_some(run.id.as_str()),
            why: status.failure.as_deref(),
        };
        if let Some(Event::Parsed { reason, step_time_s, mfu, speed_percent, error, within, .. }) =
            &status.parsed
        {
            (summary.step_time_s, summary.mfu) = (*step_time_s, *mfu);
            (summary.speed_percent, summary.error, summary.within) = (*speed_percent, *error, *within);
            summary.why = summary.why.or(reason.as_deref());
        }
        summary
    }
}

impl Summary<'_> {
    fn title(&self) -> String {
        if self.repeats > 1 { format!("{}#{}", self.run, self.repeat) } else { self.run.to_string() }
    }
}

/// Runs as a table, and below it why some have no result.
pub(super) fn table(summaries: &[Summary]) -> Result<(), Failure> {
    let rounded = |value: Option<f64>| value.map_or_else(|| "-".into(), super::estimate::rounded);
    let percent = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| format!("{value:.1}"));
    let header =
        ["run", "jobs", "state", "step, s", "planned, s", "off by, %", "published, s", "speed, %", "MFU, %"];
    let rows = summaries.iter().map(|run| {
        [
            run.title(),
            run.jobs.join(", "),
            run.state.clone(),
            rounded(run.step_time_s),
            rounded(Some(run.planned_step_time_s)),
            run.error.map_or_else(|| "-".into(), |error| format!("{:+.1}", error * 100.0)),
            rounded(run.published_step_time_s),
            percent(run.speed_percent),
            percent(run.mfu.map(|mfu| mfu * 100.0)),
        ]
    });
    output::table(header, &[3, 4, 5, 6, 7, 8], rows)?;
    for run in summaries {
        if let (Some(why), false) = (run.why, run.outcome == Outcome::Scored) {
            output::text_line(&format!("  {}: {why}", run.title()))?;
        }
    }
    let kept = summaries.iter().filter(|run| run.result.is_some()).count();
    if kept > 0 {
        output::text_line(&format!(
            "{kept} of {} results kept: `trainplan serve` shows them at /results",
            summaries.len()
        ))?;
    }
    Ok(())
}
