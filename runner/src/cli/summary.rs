//! The outcomes of runs, as rows.

use super::output;
use super::{Failure, watch};
use crate::conduct::RunOutcome;
use crate::journal::{Event, Phase, Round, Run, UploadState};
use serde::Serialize;
use std::collections::BTreeMap;

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
    outcome: RunOutcome,
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
    /// How far its result is on its way to a server, where it is sent to one.
    upload: Option<Upload<'a>>,
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
        let mut summary = Summary {
            campaign: &round.campaign,
            cluster: &round.cluster,
            run: &run.plan.name,
            repeat: run.plan.repeat,
            repeats: run.plan.repeats,
            id: &run.id,
            recipe: run.plan.recipe.as_deref(),
            outcome: RunOutcome::of(run),
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
            upload: run.plan.upload.as_ref().map(|upload| on_its_way(upload.to.as_str(), run)),
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
        if let (Some(why), false) = (run.why, run.outcome == RunOutcome::Scored) {
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
    uploads(summaries)
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
        let mut line = format!("{} of {all} results uploaded to {to}", of(Way::Sent).count());
        for (state, what) in [(Way::Waiting, "will be sent later"), (Way::Refused, "refused")] {
            // One reason is enough: the others have mostly the same.
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
