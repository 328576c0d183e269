//! The event stream: server-sent events about every change to the store.

use super::super::Server;
use super::super::guard::{Caller, CountedAs};
use super::super::problem::Problem;
use super::super::watch::{OVERLAP, PassedOn, missed};
use super::NEVER_KEPT;
use crate::store::{Change, Store, StoreError};
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::BroadcastStream;
use trainplan_shared::api::{EventData, EventKind, TokenScope};

/// Proxies close connections that are silent for a minute.
const ALIVE: Duration = Duration::from_secs(15);

/// How often to look whether a stream's token still works: it ends within a second of the token.
const LOOK: Duration = Duration::from_millis(600);

/// Watch changes
///
/// Server-sent events of the kinds `run`, `progress`, `deleted` and `alert`, each with the id of a run as
/// data. Send `Last-Event-ID` to continue after that event. The event `again` means that some were missed:
/// fetch the lists again. It comes first if events after `Last-Event-ID` are gone, which are kept for about a day, and if that is
/// not the number of an event so far. A stream ends within a second after its token expires or is revoked. One caller may have 32
/// streams (then 429), and the server 512 (then 503).
#[utoipa::path(
    get, path = "/events", tag = "events", security((), ("token" = ["read"])),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "Events, as they happen"))
)]
pub(super) async fn watch(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Extension(CountedAs(counted)): Extension<CountedAs>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    let place = server.watch.enter(&counted)?;
    // Subscribe before reading earlier changes: no change is lost between the two.
    let (newest, settled, receiver) = server.watch.subscribe();
    // What is not a number of digits, or too large for one, is beyond every event.
    let number = |id: &HeaderValue| {
        let digits = id.to_str().ok().filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(i64::MAX)
    };
    let last = headers.get("last-event-id").filter(|id| !id.is_empty()).map(number);
    let (earlier, sent) = match last {
        Some(last) => resume(&server, last, newest).await?,
        None => (Vec::new(), BTreeSet::new()),
    };
    let later = BroadcastStream::new(receiver).filter_map(move |change| match change {
        // One that was committed late may have a lower number than those that were sent.
        Ok(passed) => Some(passed).filter(|passed| !sent.contains(&passed.change.seq)),
        Err(_) => Some(PassedOn { change: missed(newest), settled: newest }),
    });
    let settled = continued(&earlier, settled.max(last.unwrap_or(0)));
    let earlier = earlier.into_iter().map(move |change| PassedOn { change, settled });
    let mut highest = last.unwrap_or(0);
    let events = tokio_stream::iter(earlier).chain(later).map(move |PassedOn { change, settled }| {
        let Change { seq, kind, id } = change;
        highest = if kind == EventKind::Again { seq } else { highest.max(seq) };
        // A change with a lower number may be committed later. To continue after this id brings it.
        let number = if kind == EventKind::Again { seq } else { highest.min(settled) };
        Event::default().id(number.to_string()).event(kind.id()).json_data(EventData { id })
    });
    let events = futures_util::StreamExt::take_until(events, end(server, caller));
    // The place is free when the stream is dropped.
    let events = events.map(move |event| {
        let _place = &place;
        event
    });
    let alive = KeepAlive::new().interval(ALIVE);
    // The connection ends with the stream.
    let unbuffered = [("x-accel-buffering", "no"), ("connection", "close")];
    Ok((NEVER_KEPT, unbuffered, Sse::new(events).keep_alive(alive)).into_response())
}

/// Returns the changes after the last one that a watcher has, or `again` if some of them may be gone; and the numbers of the
/// changes that the watcher has then.
async fn resume(server: &Server, last: i64, newest: i64) -> Result<(Vec<Change>, BTreeSet<i64>), StoreError> {
    let again = vec![missed(newest)];
    // Another server may have made a change that this one did not read yet. Beyond the newest one, nothing can be
    // resumed: the database may have been restored from a backup.
    if last > newest && last > server.store.newest_change().await? {
        return Ok((again, BTreeSet::new()));
    }
    // The last ones before were sent by an earlier stream, perhaps of another server, and this server may not have read them
    // yet.
    let known = server.store.changes(last, OVERLAP).await?;
    let sent = known.iter().map(|change| change.seq).collect();
    let earlier: Vec<Change> = known.into_iter().filter(|change| change.seq > last).collect();
    // A full reading may lack the changes behind it.
    let is_full = earlier.len() >= Store::MOST_CHANGES;
    // Asked after that reading, since changes may be deleted at any time. Numbers that no change has look like deleted ones.
    let is_gone = last < server.store.oldest_change(newest + 1).await? - 1;
    Ok((if is_full || is_gone { again } else { earlier }, sent))
}

/// Returns the number up to which every change is settled if those up to `settled` are, and these come next.
fn continued(changes: &[Change], settled: i64) -> i64 {
    changes.iter().fold(settled, |settled, change| {
        if settled.checked_add(1) == Some(change.seq) { change.seq } else { settled }
    })
}

/// Waits until the server shuts down, when browsers reconnect, or until the caller's token does not work any more.
async fn end(server: Server, caller: Caller) {
    let mut ends = server.ends.clone();
    let token_ends = async {
        let Caller::Token { id, .. } = &caller else { return std::future::pending().await };
        // While the database does not answer, nobody knows.
        while server.store.is_usable(id).await.unwrap_or(true) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        _ = ends.wait_for(|ends| *ends) => {}
        () = token_ends => {}
    }
}
