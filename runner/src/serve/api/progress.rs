//! Runs without a result.

use super::super::Server;
use super::super::guard::Caller;
use super::super::problem::Problem;
use super::{NEVER_KEPT, id, json};
use crate::store::time;
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use trainplan_shared::api::{RunProgress, TokenScope, UnfinishedRuns};

/// A run that ended without a result is listed for this long.
const LISTED_AFTER_END: SignedDuration = SignedDuration::from_hours(1);

/// Report the progress of an unfinished run
///
/// The newest report replaces the one before. Reports about a run whose result is stored are ignored.
#[utoipa::path(
    post, path = "/runs/{id}/progress", tag = "progress",
    params(("id" = String, Path, description = "The id that the result will have")), request_body = RunProgress,
    responses((status = 204, description = "The report was received"))
)]
pub(super) async fn post(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    body: Body,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Upload)?;
    let id = id(&path)?;
    let progress: RunProgress = json(&server, body).await?;
    server.store.put_progress(id, &progress).await?;
    server.watch.notify();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List unfinished runs
///
/// Runs that ended without a result stay in the list for an hour.
#[utoipa::path(get, path = "/progress", tag = "progress", responses((status = 200, body = UnfinishedRuns)))]
pub(super) async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    let listed_since = time(Timestamp::now() - LISTED_AFTER_END);
    let mut items = server.store.unfinished().await?;
    items.retain(|run| !run.is_over || run.received_at > listed_since);
    Ok((NEVER_KEPT, Json(UnfinishedRuns { items })).into_response())
}
