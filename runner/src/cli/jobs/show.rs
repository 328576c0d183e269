//! `trainplan jobs show`: the events of a run.

use super::names::find;
use super::unwatched;
use crate::cli::output::{self, Format};
use crate::cli::summary::{Summary, table};
use crate::cli::{Failure, watch};
use crate::data::DataDir;
use crate::journal::{Event, Journal, Phase, Run};
use crate::store::Store;
use serde::Serialize;
use uuid::Uuid;

/// A run with its events, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    summary: Summary<'a>,
    /// Path of its log on the cluster.
    log: Option<&'a String>,
    /// Path of the local copy, compressed by zstd.
    copy: Option<String>,
    events: Vec<Happened<'a>>,
}

#[derive(Serialize)]
struct Happened<'a> {
    at: String,
    #[serde(flatten)]
    event: &'a Event,
}

pub(super) async fn show(data: &DataDir, name: &str, format: Format) -> Result<(), Failure> {
    let journal = Journal::open(data).await?;
    let (round, run) = find(&journal, name).await?;
    let events = journal.events(&run.id, 0).await?;
    let copy = copy_of_log(data, &journal, &run).await?;
    let log = run.status.jobs.first().and_then(|(job, _)| run.status.logs.get(job));
    let summary = Summary::of(&round, &run, unwatched(&journal, &round));
    if format == Format::Json {
        let happened = |(_, at_ms, event): &'_ (i64, i64, Event)| (watch::time(*at_ms), event.clone());
        let kept: Vec<(String, Event)> = events.iter().map(happened).collect();
        let events = kept.iter().map(|(at, event)| Happened { at: at.clone(), event }).collect();
        return output::json(&Shown { summary, log, copy, events });
    }
    table(&[summary])?;
    let copy = copy.as_deref().unwrap_or("none");
    let text = format!("\nRun {} of campaign {}. Local copy of the log: {copy}", run.id, round.campaign);
    output::prose_around(&text, &[copy])?;
    for (_, at_ms, event) in &events {
        let text = watch::sentence(&run, event).unwrap_or_else(|| match event {
            Event::Planned => "planned".into(),
            Event::Staged { folder, .. } => format!("script written to {folder}"),
            Event::CancelSent { answer } if answer.is_empty() => "scancel called".into(),
            Event::CancelSent { answer } => format!("scancel failed: {answer}"),
            _ => String::new(),
        });
        let whole: Vec<&str> = copied(event).into_iter().collect();
        output::prose_around(&format!("  {}  {text}", watch::clock(*at_ms)), &whole)?;
    }
    Ok(())
}

/// Returns the path or the address in an event, which a user may copy.
fn copied(event: &Event) -> Option<&str> {
    match event {
        Event::Staged { folder, .. } => Some(folder),
        Event::Found { path, .. } => Some(path),
        Event::Uploaded { to } | Event::NotUploaded { to, .. } => Some(to),
        _ => None,
    }
}

/// Returns the path of the local copy of a run's log, in the data directory or in the store.
async fn copy_of_log(data: &DataDir, journal: &Journal, run: &Run) -> Result<Option<String>, Failure> {
    if run.status.phase == Phase::Stored {
        let store = Store::open(data).await?;
        let id = Uuid::parse_str(&run.id).unwrap_or_default();
        return Ok(store.log_name(id).await?);
    }
    let job = run.status.jobs.first().map_or("", |(job, _)| job.as_str());
    let path = journal.logs().join(&run.id).join(format!("{job}.log.zst"));
    Ok(path.exists().then(|| path.display().to_string()))
}
