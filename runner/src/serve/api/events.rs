//! The event stream: server-sent events about every change to the store.

use super::super::Server;
use super::super::guard::Caller;
use super::super::problem::Problem;
use super::super::watch::missed;
use super::NEVER_KEPT;
use crate::store::{Change, Store};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::BroadcastStream;
use trainplan_shared::api::{EventData, TokenScope};

/// Proxies close connections that are silent for a minute.
const ALIVE: Duration = Duration::from_secs(15);

/// Watch changes
///
/// Server-sent events of the kinds `run`, `progress`, `deleted` and `alert`, each with the id of a run as
/// data. Send `Last-Event-ID` to continue after that event. The event `again` means that some were missed:
/// fetch the lists again.
#[utoipa::path(
    get, path = "/events", tag = "events",
    responses((status = 200, body = String, content_type = "text/event-stream", description = "Events, as they happen"))
)]
pub(super) async fn watch(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    // Subscribe before reading earlier changes: no change is lost between the two.
    let (newest, receiver) = server.watch.subscribe();
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<i64>().ok());
    let earlier = match last {
        Some(last) => server.store.changes(last, 0).await?,
        None => Vec::new(),
    };
    // A full reading may lack the changes behind it.
    let earlier = if earlier.len() < Store::MOST_CHANGES { earlier } else { vec![missed(newest)] };
    let newest_earlier = earlier.last().map_or(0, |change| change.seq);
    let later = BroadcastStream::new(receiver).filter_map(move |change| match change {
        Ok(change) => Some(change).filter(|change| change.seq > newest_earlier),
        Err(_) => Some(missed(newest)),
    });
    let events = tokio_stream::iter(earlier).chain(later).map(|Change { seq, kind, id }| {
        Event::default().id(seq.to_string()).event(kind.id()).json_data(EventData { id })
    });
    // When the server shuts down, it ends its streams too; browsers then reconnect.
    let mut ends = server.ends.clone();
    let events =
        futures_util::StreamExt::take_until(
            events,
            async move { ends.wait_for(|ends| *ends).await.map(|_| ()) },
        );
    let alive = KeepAlive::new().interval(ALIVE);
    let unbuffered = [("x-accel-buffering", "no")];
    Ok((NEVER_KEPT, unbuffered, Sse::new(events).keep_alive(alive)).into_response())
}
