//! Comparisons of runs.

use super::super::Server;
use super::super::guard::Caller;
use super::super::limits::held_json;
use super::super::problem::Problem;
use super::{NEVER_KEPT, no_run, query};
use axum::extract::{Extension, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use trainplan_shared::compare::Comparison;
use trainplan_shared::result::RunResult;

/// Compare runs
///
/// The first run is the reference. Runs are also compared with their prediction and with the published
/// result. If the stored result of a run is missing or damaged, the answer is 500 and names the run.
#[utoipa::path(
    get, path = "/compare", tag = "runs", security((), ("token" = ["read"])),
    params(
        ("ids" = String, Query, description = "Ids of runs, separated by commas, each once"),
        ("window" = Option<String>, Query, description = "Steps to score: `last`, `11-44`, …; the release's window by default"),
        ("convention" = Option<String>, Query, description = "How FLOPs are counted: `recipe`, `full` or `causal`"),
    ),
    responses((status = 200, description = "The same as `trainplan compare --format json`", body = Comparison))
)]
pub(super) async fn compare(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    RawQuery(text): RawQuery,
) -> Result<Response, Problem> {
    let most = server.options.limits.max_compared;
    let (ids, options) = query::comparison(&text.unwrap_or_default(), most)?;
    caller.may_read(&ids)?;
    let _turn = server.turns.read().await?;
    let most = server.options.limits.max_result_bytes;
    let mut sizes = Vec::new();
    for id in &ids {
        // Reading a file that is not there says why.
        let size = server.store.file_sizes(*id).await?.into_iter().next().unwrap_or_default();
        if size.raw > most {
            // It is damaged, or an earlier server accepted larger ones.
            let _held = server.room.take_for_reading(&[size])?;
            server.store.newest_file(*id).await?;
        }
        sizes.push(size);
    }
    let bytes = sizes.iter().map(|size| size.raw).fold(0, usize::saturating_add);
    if bytes > most {
        let detail = format!(
            "These results have {bytes} bytes in all; at most {most} can be compared. Name fewer runs."
        );
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let held = server.room.take_for_reading(&sizes)?;
    let mut runs = Vec::new();
    for id in ids {
        runs.push(server.store.get(id).await?.ok_or_else(|| no_run(&id.to_string()))?);
    }
    let comparison = tokio::task::spawn_blocking(move || {
        Comparison::of(&runs.iter().collect::<Vec<&RunResult>>(), &options)
    });
    let comparison = comparison.await.map_err(Problem::broken)?;
    drop(held);
    Ok((NEVER_KEPT, held_json(&comparison, &server.room)?).into_response())
}
