//! Results: upload, list, read, score again and delete.

use super::super::assets::accepts;
use super::super::guard::Caller;
use super::super::limits::{
    check_digest, decompress, grow_for_reading, held_body, held_json, is_compressed, read_body,
};
use super::super::problem::Problem;
use super::super::{Server, quota};
use super::{LARGEST_JSON, NEVER_KEPT, bad_request, id, no_run, not_found, query, unprocessable};
use crate::store::FileSize;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use std::io::{self, Read};
use trainplan_shared::api::{
    ExpectedLog, LogProgress, RunPage, RunSummary, ScoreSummary, ScoreVersion, ScoreVersions, TokenScope,
    UploadOutcome, UploadedRun,
};
use trainplan_shared::result::{self, RunResult};
use uuid::Uuid;

/// The size of a piece of a streamed response, in bytes.
const PIECE: usize = 64 * 1024;

/// The memory for a file that is decompressed while it is sent: the window of its frames, and a piece.
pub(super) const STREAMED: usize = 3 << 20;

/// Upload a result
///
/// Stored results never change. Uploading the same result again has no effect; another result under the same id is refused with
/// 409, and a run that was deleted with 410. A result is the same if it has the same log, the same parsed content and campaign,
/// and the same recipe and comparability, or a less certain recipe: its path, its time and the files beside its log may differ.
/// If these files add to the recipe or scenario and contradict nothing that is stored, the result becomes a later score of the
/// stored run. A stored result that is missing or damaged is replaced by any result with its id.
#[utoipa::path(
    put, path = "/runs/{id}", tag = "runs", security(("token" = ["upload"])),
    params(
        ("id" = String, Path, description = "The result's id, as in the file"),
        ("content-digest" = String, Header, description = "`sha-256=:BASE64:`, the hash of the body (RFC 9530)"),
        ("content-encoding" = Option<String>, Header, description = "`zstd` if the body is compressed"),
    ),
    request_body(content = Object, description = "A result file, from `trainplan parse --save`"),
    responses(
        (status = 201, description = "The result was stored", body = UploadedRun),
        (status = 200, description = "The same result was stored before, was completed by the files beside its log, or was damaged and is replaced", body = UploadedRun),
    )
)]
pub(super) async fn put(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Upload)?;
    let id = id(&path)?;
    let most = server.options.limits.max_result_bytes;
    let is_compressed = is_compressed(&headers)?;
    let (sent, mut held) = read_body(body, most, &server.room).await?;
    // Only after the body arrived, so that a slow network does not block other uploads.
    let _turn = server.turns.uploads.acquire().await;
    let received = sent.len() as u64;
    quota::count(&server, &caller, received).await?;
    check_digest(&headers, &sent)?;
    let stored = server.store.file_sizes(id).await?;
    let store = server.store.clone();
    let (run, prepared, _held) = tokio::task::spawn_blocking(move || {
        let file = match is_compressed {
            true => {
                let file = decompress(&sent, most, &mut held)?;
                // Its memory is not reserved for the result, too.
                drop(sent);
                file
            }
            false => sent,
        };
        grow_for_reading(&mut held, &file, &stored)?;
        let run = result::read(&file).map_err(|error| unprocessable(&error.to_string()))?;
        if run.id != id {
            let detail = format!(
                "The result file's id is {}, not {id}. Upload it to /api/v1/runs/{}.",
                run.id, run.id
            );
            return Err(unprocessable(&detail));
        }
        let prepared = store.prepare(&run, &file)?;
        Ok::<_, Problem>((run, prepared, held))
    })
    .await
    .map_err(Problem::broken)??;
    let (outcome, occupied) = server.store.put_upload(&run, prepared, caller.name()).await?;
    quota::count_more(&server, &caller, received, occupied).await?;
    server.watch.notify();
    server.meter.uploaded(outcome.id());
    // A known run that replaces a damaged one is judged again.
    server.received.notify_one();
    let status = match outcome {
        UploadOutcome::New => StatusCode::CREATED,
        UploadOutcome::Known => StatusCode::OK,
    };
    let log = expected_log(&server, &run).await?;
    Ok((status, NEVER_KEPT, Json(UploadedRun { id: id.to_string(), outcome, log })).into_response())
}

/// List runs
///
/// A page may have fewer runs than `limit`, so that its texts have at most about 4 MiB: `next_cursor` is set if there are more.
///
/// In `recipe`, `cluster`, `campaign`, `model`, `gpu` and `dtype`, `*` stands for any text, and case is
/// ignored then: `recipe=*llama*`.
#[utoipa::path(
    get, path = "/runs", tag = "runs", security((), ("token" = ["read"])),
    params(
        ("recipe" = Option<String>, Query, description = "A recipe's id, or a short form as on the command line"),
        ("cluster" = Option<String>, Query), ("campaign" = Option<String>, Query),
        ("status" = Option<String>, Query, description = "`scored`, `invalid`, `implausible`, `incomplete`, `failed`, `cancelled`, `no_data` or `unreadable`"),
        ("model" = Option<String>, Query), ("gpu" = Option<String>, Query), ("gpus" = Option<u32>, Query),
        ("dtype" = Option<String>, Query),
        ("line" = Option<String>, Query, description = "A scenario, as in a run's `line`"),
        ("log" = Option<String>, Query, description = "The SHA-256 of a raw log, in hexadecimal: the runs of this log"),
        ("since" = Option<String>, Query, description = "Received at this time or later (RFC 3339, at most 9999-12-30T22:00:00Z)"),
        ("until" = Option<String>, Query, description = "Received before this time (RFC 3339, at most 9999-12-30T22:00:00Z)"),
        ("sort" = Option<String>, Query, description = "`received_at`, `ran_at`, `step_time_s` (by `judged_s`), `tokens_per_s`, `mfu`, `speed_percent`, `plan_error`, or `prediction_error`, which is that of the plan or else of the prediction; descending with `-` before it; `-received_at` by default. Runs without a value come last"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "The most runs on a page; 100 by default"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page"),
    ),
    responses((status = 200, body = RunPage))
)]
pub(super) async fn list(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    RawQuery(text): RawQuery,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Read)?;
    let query = query::filters(&text.unwrap_or_default(), server.options.limits.max_page)?;
    // Few pages are in memory before their room is taken.
    let _turn = server.turns.lists.acquire().await;
    let page = server.store.list(&query).await?;
    Ok((NEVER_KEPT, held_json(&page, &server.room)?).into_response())
}

/// Read a result file
///
/// The file is compared with its hash first. If it is missing or damaged, the answer is 500, and uploading the result again
/// replaces it.
#[utoipa::path(
    get, path = "/runs/{id}", tag = "runs", security((), ("token" = ["read"])),
    params(
        ("id" = String, Path),
        ("upload" = Option<String>, Query, description = "If present, returns the uploaded file even if the log was scored again"),
    ),
    responses((status = 200, description = "The result file", body = Object))
)]
pub(super) async fn result(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id(&path)?;
    caller.may_read(&[id])?;
    let as_uploaded =
        form_urlencoded::parse(query.unwrap_or_default().as_bytes()).any(|(name, _)| name == "upload");
    let sizes = server.store.file_sizes(id).await?;
    let size = if as_uploaded { sizes.last() } else { sizes.first() };
    // Reading a file that is not there says why.
    let size = size.copied().unwrap_or_default();
    let held = server.room.take(size.packed)?;
    // The file is decompressed to check it.
    let checking = server.room.take(size.raw.min(STREAMED))?;
    let file = match as_uploaded {
        true => server.store.file(id).await?,
        false => server.store.newest_file(id).await?,
    };
    let file = file.ok_or_else(|| no_run(&path))?;
    drop(checking);
    let json = [(header::CONTENT_TYPE, "application/json")];
    if accepts(&headers, "zstd") {
        let coding = [(header::CONTENT_ENCODING, "zstd")];
        return Ok((NEVER_KEPT, json, coding, held_body(file.into(), held)).into_response());
    }
    let window = server.streams.take(size.raw.min(STREAMED))?;
    let raw = zstd::Decoder::new(io::Cursor::new(file)).map_err(Problem::broken)?;
    Ok((NEVER_KEPT, json, stream(raw, (held, window))).into_response())
}

/// Read a run's row in the list
#[utoipa::path(
    get, path = "/runs/{id}/summary", tag = "runs", security((), ("token" = ["read"])), params(("id" = String, Path)),
    responses((status = 200, body = RunSummary))
)]
pub(super) async fn summary(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let id = id(&path)?;
    caller.may_read(&[id])?;
    let summary = server.store.summary(id).await?.ok_or_else(|| no_run(&path))?;
    Ok((NEVER_KEPT, Json(summary)).into_response())
}

/// List the scores of a run by all parser versions
#[utoipa::path(
    get, path = "/runs/{id}/scores", tag = "runs", security((), ("token" = ["read"])), params(("id" = String, Path)),
    responses((status = 200, body = ScoreVersions<ScoreSummary>))
)]
pub(super) async fn scores(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let id = id(&path)?;
    caller.may_read(&[id])?;
    let turn = server.turns.read().await?;
    let items = read_scores(&server, id).await?;
    drop(turn);
    if items.is_empty() {
        return Err(no_run(&path));
    }
    Ok((NEVER_KEPT, held_json(&ScoreVersions { items }, &server.room)?).into_response())
}

/// Returns all scores of a run; none if it is not stored. Holds room for the largest while they are read.
async fn read_scores(server: &Server, id: Uuid) -> Result<Vec<ScoreVersion>, Problem> {
    let sizes = server.store.file_sizes(id).await?;
    let largest: Vec<FileSize> = sizes.into_iter().max_by_key(|size| size.raw).into_iter().collect();
    let _held = server.room.take_for_reading(&largest)?;
    Ok(server.store.scores(id).await?)
}

/// Score a run's log again
///
/// Reads the stored log with the server's parser, as a run of the recipe or scenario in the query. Without
/// parameters, the run keeps its recipe; runs of campaigns always do. The new score counts from then on.
/// Requires scope admin.
#[utoipa::path(
    post, path = "/runs/{id}/scores", tag = "runs", security(("token" = ["admin"])),
    params(("id" = String, Path), ("recipe" = Option<String>, Query, description = "A recipe. All scenario flags of the command line are allowed, without `--`")),
    responses((status = 200, body = ScoreVersions<ScoreSummary>))
)]
pub(super) async fn rescore(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    RawQuery(text): RawQuery,
    body: Body,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Admin)?;
    let id = id(&path)?;
    let (body, room) = read_body(body, LARGEST_JSON, &server.room).await?;
    if !matches!(body.trim_ascii(), b"" | b"{}") {
        return Err(bad_request("The body must be empty. Pass the recipe in the query: ?recipe=ID."));
    }
    drop((body, room));
    let scenario = query::scenario(&text.unwrap_or_default())?;
    let turn = server.turns.logs.acquire().await;
    let held = server.room.take_for_reading(&server.store.file_sizes(id).await?)?;
    if server.store.reparse(id, scenario).await?.is_none() {
        return Err(match server.store.file(id).await? {
            Some(_) => Problem::new(
                StatusCode::CONFLICT,
                "The server does not have the raw log of this run. Upload it first.",
            ),
            None => no_run(&path),
        });
    }
    drop(held);
    server.watch.notify();
    server.received.notify_one();
    tracing::info!("run {id} was scored again by {}", caller.name());
    let items = read_scores(&server, id).await?;
    drop(turn);
    Ok((NEVER_KEPT, held_json(&ScoreVersions { items }, &server.room)?).into_response())
}

/// Delete a run
///
/// Deletes its result, log, scores and alerts permanently; of an unfinished run, its progress. A later upload of the run
/// is refused. Requires scope admin.
#[utoipa::path(
    delete, path = "/runs/{id}", tag = "runs", security(("token" = ["admin"])), params(("id" = String, Path)),
    responses((status = 204, description = "The run was deleted"))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Admin)?;
    if !server.store.delete(id(&path)?).await? {
        return Err(no_run(&path));
    }
    server.watch.notify();
    tracing::info!("run {path} was deleted by {}", caller.name());
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Let a deleted run be uploaded again
///
/// Does not bring back what was deleted: the next upload does. Requires scope admin.
#[utoipa::path(
    post, path = "/runs/{id}/restore", tag = "runs", security(("token" = ["admin"])), params(("id" = String, Path)),
    responses((status = 204, description = "The run may be uploaded again"))
)]
pub(super) async fn restore(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    caller.may(TokenScope::Admin)?;
    if !server.store.restore(id(&path)?).await? {
        return Err(not_found(&format!("No run {path} was deleted from this server.")));
    }
    tracing::info!("run {path} may be uploaded again, by {}", caller.name());
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn expected_log(server: &Server, run: &RunResult) -> Result<ExpectedLog, Problem> {
    let complete = server.store.has_this_log(run.id, &run.source.sha256).await?;
    let offset = if complete { 0 } else { server.store.arriving(run.id).await?.offset() };
    Ok(ExpectedLog { sha256: run.source.sha256.clone(), progress: LogProgress { offset, complete } })
}

/// Streams a reader as a body, and holds room until its end. It is read on the blocking pool, and only as fast as
/// the client reads: a slow client occupies no thread.
pub(super) fn stream(reader: impl Read + Send + 'static, held: impl Send + 'static) -> Body {
    Body::from_stream(try_unfold((reader, held), async |(mut reader, held)| {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let count = reader.read(&mut piece)?;
            piece.truncate(count);
            Ok::<_, io::Error>((Bytes::from(piece), reader))
        });
        let (piece, reader) = read.await.map_err(io::Error::other)??;
        Ok::<_, io::Error>((!piece.is_empty()).then_some((piece, (reader, held))))
    }))
}
