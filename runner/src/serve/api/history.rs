//! Step times over time, and alerts.

use super::super::Server;
use super::super::guard::Caller;
use super::super::problem::Problem;
use super::{NEVER_KEPT, bad_request, runs};
use crate::history::point;
use crate::store::Sort;
use axum::Json;
use axum::extract::{Extension, RawQuery, State};
use axum::response::{IntoResponse, Response};
use trainplan_shared::api::{AlertRecords, RunHistories, TokenScope};
use trainplan_shared::history::{Thresholds, time_lines};

/// The most runs in a history, and the default.
const MOST_RUNS: u32 = 10_000;

/// The most alerts in a list.
const MOST_ALERTS: u32 = 1000;

/// Read step times over time
///
/// Returns a time line for each recipe or scenario on each cluster, with change points, and judges its newest
/// run. Takes the filters of `GET /runs` and the thresholds of `trainplan check`; unset thresholds have the
/// server's values.
#[utoipa::path(
    get, path = "/history", tag = "history",
    params(
        ("recipe" = Option<String>, Query), ("cluster" = Option<String>, Query), ("campaign" = Option<String>, Query),
        ("limit" = Option<u32>, Query, description = "Number of newest runs to include; at most 10,000"),
        ("baseline-percent" = Option<String>, Query), ("previous-percent" = Option<String>, Query),
        ("sigma" = Option<String>, Query), ("change" = Option<String>, Query), ("previous" = Option<String>, Query),
        ("minimum" = Option<String>, Query), ("margin-percent" = Option<String>, Query),
    ),
    responses((status = 200, body = RunHistories))
)]
pub(super) async fn history(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    let (thresholds, filters) = split(&query.unwrap_or_default(), server.options.thresholds)?;
    let mut query = runs::parse_query(&filters, MOST_RUNS)?;
    query.limit = query.limit.or(Some(MOST_RUNS));
    query.sort = Sort::NEWEST_RUN;
    let _turn = server.turns.acquire().await;
    let page = server.store.list(&query).await?;
    let is_cut = page.next_cursor.is_some();
    let series = tokio::task::spawn_blocking(move || time_lines(page.items.iter().map(point), &thresholds));
    let series = series.await.map_err(Problem::broken)?;
    Ok((NEVER_KEPT, Json(RunHistories { series, is_cut })).into_response())
}

/// Splits a query into thresholds, on top of the server's own, and filters.
fn split(query: &str, mut thresholds: Thresholds) -> Result<(Thresholds, String), Problem> {
    let mut filters = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if Thresholds::NAMES.contains(&name.as_ref()) {
            thresholds.set(&name, &value).map_err(|error| bad_request(&error.to_string()))?;
        } else {
            filters.append_pair(&name, &value);
        }
    }
    Ok((thresholds, filters.finish()))
}

/// List alerts
///
/// Returns the runs that exceeded a threshold when the server received them.
#[utoipa::path(get, path = "/alerts", tag = "history", responses((status = 200, body = AlertRecords)))]
pub(super) async fn alerts(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    Ok((NEVER_KEPT, Json(AlertRecords { items: server.store.alerts(MOST_ALERTS).await? })).into_response())
}
