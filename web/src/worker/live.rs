//! Unfinished runs, and the server's stream of changes.

use super::{post, runs, server};
use crate::message::results::ForPage;
use crate::message::{LiveRun, RequestError, ServerChange};
use std::cell::Cell;
use trainplan_shared::api::{EventKind, UnfinishedRun, UnfinishedRuns};
use trainplan_shared::units::{minute, significant};
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::ReadableStreamDefaultReader;
use web_sys::js_sys::{Date, Reflect, Uint8Array};

/// Returns the unfinished runs, and those that ended recently without a result.
pub(super) async fn running() -> Result<Vec<LiveRun>, RequestError> {
    let UnfinishedRuns { items } = server::get("/progress").await?;
    Ok(items.into_iter().map(live).collect())
}

fn live(run: UnfinishedRun) -> LiveRun {
    let UnfinishedRun { id, received_at, is_over, progress } = run;
    let repeat = if progress.repeat > 1 { format!("#{}", progress.repeat) } else { String::new() };
    let jobs = progress.jobs.iter().map(|job| format!("job {job}"));
    let place: Vec<String> = [progress.cluster].into_iter().chain(jobs).collect();
    let seconds = |seconds: Option<f64>| seconds.map_or(String::new(), |seconds| significant(seconds, 4));
    LiveRun {
        id,
        name: format!("{}/{}{repeat}", progress.campaign, progress.run),
        place: place.join(", "),
        recipe: progress.recipe.unwrap_or_default(),
        state: progress.state,
        step: progress.step.map(|step| step as f64),
        steps: progress.steps.map(|steps| steps as f64),
        step_time: seconds(progress.step_time_s),
        planned: seconds(progress.planned_s),
        is_over,
        seen: if is_over { minute(&progress.at) } else { ago(&received_at) },
    }
}

/// Returns how long ago a time of the server was: `5 min ago`.
fn ago(rfc3339: &str) -> String {
    let minutes = (Date::now() - Date::parse(rfc3339)) / 60_000.0;
    match minutes {
        ..1.0 => "just now".into(),
        ..60.0 => format!("{minutes:.0} min ago"),
        _ => format!("{:.0} h ago", minutes / 60.0),
    }
}

thread_local! {
    /// Whether the worker listens to the server.
    static HEARS: Cell<bool> = const { Cell::new(false) };
}

/// Posts the server's changes until the stream ends. It reads the stream itself, because an `EventSource` can't send a
/// token.
pub(super) async fn listen() {
    if HEARS.replace(true) {
        return;
    }
    // Without the stream, pages poll.
    let _ = hear().await;
    HEARS.set(false);
    post(&ForPage::Listening(false));
}

async fn hear() -> Result<(), JsValue> {
    let response = server::send("GET", "/events", None).await.map_err(|_| JsValue::NULL)?;
    let kind = response.headers().get("content-type")?.unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return Ok(());
    }
    let body = response.body().ok_or(JsValue::NULL)?;
    let reader: ReadableStreamDefaultReader = body.get_reader().unchecked_into();
    runs::forget();
    post(&ForPage::Listening(true));
    let mut told = Vec::new();
    loop {
        let piece = JsFuture::from(reader.read()).await?;
        if Reflect::get(&piece, &"done".into())?.is_truthy() {
            return Ok(());
        }
        let bytes: Uint8Array = Reflect::get(&piece, &"value".into())?.dyn_into()?;
        told.extend(bytes.to_vec());
        while let Some(end) = told.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = told.drain(..=end).collect();
            if let Some(change) = change(String::from_utf8_lossy(&line).trim()) {
                if change == ServerChange::Runs {
                    runs::forget();
                }
                post(&ForPage::Changed(change));
            }
        }
    }
}

/// Returns the change of a line of the stream. Only the kind of an event matters, because pages ask again.
fn change(line: &str) -> Option<ServerChange> {
    match EventKind::from_id(line.strip_prefix("event:")?.trim())? {
        EventKind::Run | EventKind::Deleted | EventKind::Alert | EventKind::Again => Some(ServerChange::Runs),
        EventKind::Progress => Some(ServerChange::Live),
    }
}
