//! Runs beside each other, beside what was planned and beside what is published.

use super::super::Server;
use super::super::problem::Problem;
use super::{By, NEVER_KEPT, id, no_run};
use axum::Json;
use axum::extract::{Extension, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use trainplan_shared::compare::{Comparison, Options};
use trainplan_shared::result::RunResult;

/// Compare runs: the first is what the others are compared with
#[utoipa::path(
    get, path = "/compare",
    params(
        ("ids" = String, Query, description = "Ids of runs, separated by commas"),
        ("window" = Option<String>, Query, description = "The steps that count: last, 11-44, …; by default each release's own"),
        ("convention" = Option<String>, Query, description = "recipe, full or causal"),
    ),
    responses((status = 200, description = "As `trainplan compare --format json` prints it", body = Comparison))
)]
pub(super) async fn compare(
    State(server): State<Server>,
    Extension(by): By,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let refuse = |what: String| Problem::new(StatusCode::BAD_REQUEST, what);
    let mut ids = Vec::new();
    let mut options = Options::default();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match name.as_ref() {
            "ids" => {
                for text in value.split(',').map(str::trim).filter(|text| !text.is_empty()) {
                    ids.push(id(text)?);
                }
            }
            "window" => {
                options.view.window =
                    Some(value.parse().map_err(|error| refuse(format!("window={value}: {error}")))?);
            }
            "convention" => {
                options.view.convention =
                    Some(value.parse().map_err(|error| refuse(format!("convention={value}: {error}")))?);
            }
            _ => {
                return Err(refuse(format!(
                    "{name}: there is no such parameter; allowed: ids, window, convention"
                )));
            }
        }
    }
    let most = server.options.limits.max_compared;
    if ids.is_empty() || ids.len() > most {
        return Err(refuse(format!("ids: give 1 to {most} runs, separated by commas")));
    }
    by.may_read(&ids)?;
    let _turn = server.turns.acquire().await;
    let mut runs = Vec::new();
    for id in ids {
        runs.push(server.store.get(id).await?.ok_or_else(|| no_run(&id.to_string()))?);
    }
    let compared = tokio::task::spawn_blocking(move || {
        Comparison::of(&runs.iter().collect::<Vec<&RunResult>>(), &options)
    });
    Ok((NEVER_KEPT, Json(compared.await.map_err(Problem::broken)?)).into_response())
}
