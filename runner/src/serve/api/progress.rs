//! Runs without a result.

use super::super::guard::Caller;
use super::super::limits::held_json;
use super::super::problem::Problem;
use super::super::{Server, quota};
use super::{NEVER_KEPT, id, json, unprocessable};
use crate::store::time;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use trainplan_shared::api::{RunProgress, TokenScope, UnfinishedRuns};

/// A run that ended without a result is listed for this long.
const LISTED_AFTER_END: SignedDuration = SignedDuration::from_hours(1);

/// Report the progress of an unfinished run
///
/// The newest report replaces the one before. Reports about a run whose result is stored or was deleted are ignored.
#[utoipa::path(
    post, path = "/runs/{id}/progress", tag = "progress", security(("token" = ["upload"])),
    params(("id" = String, Path, description = "The id that the result will have")), request_body = RunProgress,
    responses((status = 204, description = "The report was received"))
)]
pub(super) async fn post(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Upload)?;
    let id = id(&path)?;
    let progress: RunProgress = json(&server, &headers, body).await?;
    progress.admit().map_err(|error| unprocessable(&error.to_string()))?;
    let bytes = serde_json::to_vec(&progress).map_err(Problem::broken)?.len();
    quota::count(&server, &caller, bytes as u64).await?;
    server.store.put_progress(id, &progress).await?;
    server.watch.notify();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List unfinished runs
///
/// Runs that ended without a result stay in the list for an hour.
#[utoipa::path(
    get, path = "/progress", tag = "progress", security((), ("token" = ["read"])),
    responses((status = 200, body = UnfinishedRuns))
)]
pub(super) async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    let listed_since = time(Timestamp::now() - LISTED_AFTER_END);
    let _turn = server.turns.lists.acquire().await;
    let mut items = server.store.unfinished().await?;
    items.retain(|run| !run.is_over || run.received_at > listed_since);
    Ok((NEVER_KEPT, held_json(&UnfinishedRuns { items }, &server.room)?).into_response())
}
