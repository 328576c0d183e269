//! What happens, as it happens: server-sent events.

use super::super::Server;
use super::super::problem::Problem;
use super::super::watch::Happening;
use super::{By, NEVER_KEPT};
use crate::store::{Scope, Store};
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::BroadcastStream;

/// A proxy closes what is silent for a minute.
const ALIVE: Duration = Duration::from_secs(15);

/// Watch what happens: events `run`, `progress`, `deleted` and `alert`, each with the id of a run
///
/// `Last-Event-ID` goes on behind that event. `again` says that some were missed: ask for the lists anew.
#[utoipa::path(get, path = "/events", responses((status = 200, body = String, content_type = "text/event-stream")))]
pub(super) async fn watch(
    State(server): State<Server>,
    Extension(by): By,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    by.may(Scope::Read)?;
    // What happens from now on is heard before it is asked what happened until now: nothing falls in between.
    let (now, listener) = server.watch.listen();
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse::<i64>().ok());
    let missed = match last {
        Some(last) => server.store.changes(last, 0).await?,
        None => Vec::new(),
    };
    // One reading gives no more: what follows it would be passed over.
    let missed: Vec<Happening> = match missed.len() < Store::MOST_CHANGES {
        true => missed.iter().map(Happening::from).collect(),
        false => vec![Happening::again(now)],
    };
    let newest_missed = missed.last().map_or(0, |happening| happening.seq);
    let coming = BroadcastStream::new(listener).filter_map(move |happening| match happening {
        Ok(happening) => Some(happening).filter(|happening| happening.seq > newest_missed),
        Err(_) => Some(Happening::again(now)),
    });
    let events = tokio_stream::iter(missed).chain(coming).map(|happening| {
        let event = Event::default().id(happening.seq.to_string()).event(happening.kind);
        Ok::<_, Infallible>(event.data(json!({ "id": happening.id }).to_string()))
    });
    // A server that ends ends its streams too; the browser comes back to the next one.
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
