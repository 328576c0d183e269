//! The same run over time, and when it became slower.

use super::super::Server;
use super::super::problem::Problem;
use super::{By, NEVER_KEPT, runs};
use crate::history::point;
use crate::store::{KeptAlert, Scope, Sort};
use axum::Json;
use axum::extract::{Extension, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use trainplan_shared::history::{Thresholds, TimeLine, time_lines};
use utoipa::ToSchema;

/// As many of the newest runs make histories, unless fewer are asked for.
const MOST_RUNS: u32 = 10_000;

/// No more alerts are listed.
const MOST_ALERTS: u32 = 1000;

/// Time lines.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Histories {
    /// By what their runs have in common.
    series: Vec<TimeLine>,
    /// Whether there are older runs that were left out.
    is_cut: bool,
}

/// Read the same runs over time, with change points, and the newest run judged by every threshold
///
/// Takes what a list of runs is filtered by, `*` included, and the thresholds of `trainplan check`: `baseline-percent`, `previous-percent`,
/// `sigma`, `change`, `previous`, `minimum`, `margin-percent`.
#[utoipa::path(
    get, path = "/history",
    params(
        ("recipe" = Option<String>, Query), ("cluster" = Option<String>, Query), ("campaign" = Option<String>, Query),
        ("limit" = Option<u32>, Query, description = "Of how many of the newest runs; at most 10,000"),
        ("baseline-percent" = Option<String>, Query), ("previous-percent" = Option<String>, Query),
        ("sigma" = Option<String>, Query), ("change" = Option<String>, Query), ("previous" = Option<String>, Query),
        ("minimum" = Option<String>, Query), ("margin-percent" = Option<String>, Query),
    ),
    responses((status = 200, body = Histories))
)]
pub(super) async fn history(
    State(server): State<Server>,
    Extension(by): By,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    by.may(Scope::Read)?;
    let (thresholds, filters) = split(&query.unwrap_or_default(), server.options.thresholds)?;
    let mut query = runs::read(&filters, MOST_RUNS)?;
    query.limit = query.limit.or(Some(MOST_RUNS));
    query.sort = Sort::NEWEST_RUN;
    let _turn = server.turns.acquire().await;
    let page = server.store.list(&query).await?;
    let is_cut = page.next_cursor.is_some();
    let series = tokio::task::spawn_blocking(move || time_lines(page.items.iter().map(point), &thresholds));
    let series = series.await.map_err(Problem::broken)?;
    Ok((NEVER_KEPT, Json(Histories { series, is_cut })).into_response())
}

/// Thresholds and filters of one query, on top of the server's own.
fn split(query: &str, mut thresholds: Thresholds) -> Result<(Thresholds, String), Problem> {
    let mut filters = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if Thresholds::NAMES.contains(&name.as_ref()) {
            let set = thresholds.set(&name, &value);
            set.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        } else {
            filters.append_pair(&name, &value);
        }
    }
    Ok((thresholds, filters.finish()))
}

/// A run that was slower than it should have been when it came in.
#[derive(Debug, Serialize, ToSchema)]
struct Alert {
    /// Its name.
    id: String,
    /// When it was found.
    at: String,
    /// The run.
    run: String,
    /// By which threshold.
    kind: String,
    /// It as a sentence, with the numbers.
    #[schema(value_type = Object)]
    alert: Value,
}

impl From<KeptAlert> for Alert {
    fn from(KeptAlert { id, at, run, kind, body }: KeptAlert) -> Alert {
        Alert { id, at, run, kind, alert: serde_json::from_str(&body).unwrap_or_default() }
    }
}

/// Alerts.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Alerts {
    /// The newest first.
    items: Vec<Alert>,
}

/// List runs that were slower than they should have been
#[utoipa::path(get, path = "/alerts", responses((status = 200, body = Alerts)))]
pub(super) async fn alerts(State(server): State<Server>, Extension(by): By) -> Result<Response, Problem> {
    by.may(Scope::Read)?;
    let items = server.store.alerts(MOST_ALERTS).await?.into_iter().map(Alert::from).collect();
    Ok((NEVER_KEPT, Json(Alerts { items })).into_response())
}
