//! Step times over time, and alerts.

use super::super::Server;
use super::super::guard::Caller;
use super::super::limits::{held_bytes, held_json};
use super::super::problem::Problem;
use super::{NEVER_KEPT, id, json, not_found, query, unprocessable};
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use trainplan_shared::api::{AcknowledgementRequest, AlertRecords, RunHistories, TokenScope};
use trainplan_shared::text::is_invisible;
use uuid::Uuid;

/// The most runs in a history, and the default.
const MOST_RUNS: u32 = 10_000;

/// The most alerts in a list.
const MOST_ALERTS: u32 = 1000;

/// Read step times over time
///
/// Returns a time line for each recipe or scenario on each cluster, with change points, and judges its newest
/// run. If that has no comparable step time, its point says why in `reason`, and `last_comparable` is the newest
/// run with one, judged. Takes the filters of `GET /runs` and the thresholds of `trainplan check`; unset
/// thresholds have the server's values.
#[utoipa::path(
    get, path = "/history", tag = "history", security((), ("token" = ["read"])),
    params(
        ("recipe" = Option<String>, Query), ("cluster" = Option<String>, Query), ("campaign" = Option<String>, Query),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 10000, description = "Number of newest runs to include; 10,000 by default"),
        ("baseline-percent" = Option<String>, Query), ("previous-percent" = Option<String>, Query),
        ("sigma" = Option<String>, Query), ("change" = Option<String>, Query), ("previous" = Option<String>, Query),
        ("minimum" = Option<String>, Query), ("margin-percent" = Option<String>, Query),
    ),
    responses((status = 200, body = RunHistories))
)]
pub(super) async fn history(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    RawQuery(text): RawQuery,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    let text = text.unwrap_or_default();
    let (thresholds, mut query) = query::history(&text, server.options.thresholds, MOST_RUNS)?;
    query.limit = query.limit.or(Some(MOST_RUNS));
    let json = server.histories.answer(&server, &text, &query, thresholds).await?;
    Ok((NEVER_KEPT, held_bytes(json, &server.room)?).into_response())
}

/// List alerts
///
/// Returns the runs that exceeded a threshold when the server received them: the last 1,000 alerts, of all runs or of those that
/// `ids` names.
#[utoipa::path(
    get, path = "/alerts", tag = "history", security((), ("token" = ["read"])),
    params(("ids" = Option<String>, Query, description = "Only alerts of these runs: their ids, separated by commas")),
    responses((status = 200, body = AlertRecords))
)]
pub(super) async fn alerts(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    RawQuery(text): RawQuery,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    let runs = query::alerts(&text.unwrap_or_default())?;
    let _turn = server.turns.lists.acquire().await;
    let items = server.store.alerts(runs.as_deref(), MOST_ALERTS).await?;
    Ok((NEVER_KEPT, held_json(&AlertRecords { items }, &server.room)?).into_response())
}

/// The longest reason of an acknowledgement, in bytes.
const LONGEST_REASON: usize = 1000;

/// Acknowledge the alerts of a run
///
/// The alerts stay in the list, with the reason. Another acknowledgement replaces the one before. Requires scope upload.
#[utoipa::path(
    put, path = "/runs/{id}/acknowledgement", tag = "history", security(("token" = ["upload"])),
    params(("id" = String, Path)),
    request_body = AcknowledgementRequest, responses((status = 204, description = "The alerts are acknowledged"))
)]
pub(super) async fn acknowledge(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Upload)?;
    let id = id(&path)?;
    let AcknowledgementRequest { reason } = json(&server, &headers, body).await?;
    let reason = reason.trim();
    let shows_nothing = reason.chars().all(|c| c.is_whitespace() || is_invisible(c));
    if shows_nothing || reason.len() > LONGEST_REASON || reason.contains('\0') {
        let detail = format!(
            "reason must have 1 to {LONGEST_REASON} bytes, with a visible character and no NUL character."
        );
        return Err(unprocessable(&detail));
    }
    set_acknowledgement(&server, id, Some((caller.name(), reason))).await
}

/// Withdraw the acknowledgement of a run's alerts
///
/// Requires scope upload.
#[utoipa::path(
    delete, path = "/runs/{id}/acknowledgement", tag = "history", security(("token" = ["upload"])),
    params(("id" = String, Path)),
    responses((status = 204, description = "The alerts are not acknowledged"))
)]
pub(super) async fn withdraw(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Upload)?;
    set_acknowledgement(&server, id(&path)?, None).await
}

async fn set_acknowledgement(
    server: &Server,
    run: Uuid,
    by: Option<(&str, &str)>,
) -> Result<Response, Problem> {
    if !server.store.acknowledge(run, by).await? {
        return Err(not_found(&format!("Run {run} has no alerts.")));
    }
    server.watch.notify();
    Ok(StatusCode::NO_CONTENT.into_response())
}
