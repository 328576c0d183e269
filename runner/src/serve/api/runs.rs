//! Results: putting, listing, reading and deleting them.

use super::super::assets::accepts;
use super::super::limits::{check_digest, is_packed, unpacked, whole};
use super::super::problem::Problem;
use super::super::{Server, quota};
use super::{By, NEVER_KEPT, id, no_run};
use crate::store::{Query, Scope, time};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use jiff::Timestamp;
use std::io::{self, Read};
use trainplan_shared::api::{
    ExpectedLog, LogProgress, RunPage, RunSummary, ScoreSummary, ScoreVersions, UploadOutcome, UploadedRun,
};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::log::Status;
use trainplan_shared::result::{self, RunResult, View};
use trainplan_shared::spec::Spec;

/// No text with `*` that names are looked through for is longer.
const LONGEST_PATTERN: usize = 500;

/// What is sent on is sent in pieces of this many bytes.
const PIECE: usize = 64 * 1024;

/// Put a result, once and for ever: the same again is no second one, and another under its id is refused (409)
#[utoipa::path(
    put, path = "/runs/{id}",
    params(
        ("id" = String, Path, description = "The id in the result file"),
        ("content-digest" = String, Header, description = "`sha-256=:BASE64:` over the body's bytes (RFC 9530)"),
        ("content-encoding" = Option<String>, Header, description = "`zstd`, where the body is compressed so"),
    ),
    request_body(content = Object, description = "A result file, as `trainplan parse --save` writes it"),
    responses((status = 201, body = UploadedRun), (status = 200, description = "It was here already", body = UploadedRun))
)]
pub(super) async fn put(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    by.may(Scope::Upload)?;
    let id = id(&path)?;
    let most = server.options.limits.max_result_bytes;
    let is_packed = is_packed(&headers)?;
    let (sent, _room) = whole(body, most, &server.room).await?;
    // Reading it is work: few at a time, and none of them waits for a slow network.
    let _turn = server.turns.acquire().await;
    quota::count(&server, &by, sent.len() as u64).await?;
    check_digest(&headers, &sent)?;
    let (file, run) = tokio::task::spawn_blocking(move || {
        let file = if is_packed { unpacked(&sent, most)? } else { sent };
        let run = result::read(&file).map_err(|error| unprocessable(&error.to_string()))?;
        Ok::<_, Problem>((file, run))
    })
    .await
    .map_err(Problem::broken)??;
    if run.id != id {
        return Err(unprocessable(&format!("the result's own id is {}: put it there", run.id)));
    }
    let outcome = server.store.put_upload(&run, &file, by.name()).await?;
    server.stir();
    server.meter.uploaded(outcome.id());
    let status = match outcome {
        UploadOutcome::New => {
            server.came_in.notify_one();
            StatusCode::CREATED
        }
        UploadOutcome::Known => StatusCode::OK,
    };
    let log = expected_log(&server, &run).await?;
    Ok((status, NEVER_KEPT, Json(UploadedRun { id: id.to_string(), outcome, log })).into_response())
}

/// List runs, as summaries
///
/// In `recipe`, `cluster`, `campaign`, `model`, `gpu` and `dtype` a `*` stands for any text, and then case does not matter:
/// `recipe=*llama*`.
#[utoipa::path(
    get, path = "/runs",
    params(
        ("recipe" = Option<String>, Query, description = "A recipe; short forms mean what they mean on the command line"),
        ("cluster" = Option<String>, Query), ("campaign" = Option<String>, Query),
        ("status" = Option<String>, Query, description = "scored, incomplete, invalid, failed, no_data, unreadable"),
        ("model" = Option<String>, Query), ("gpu" = Option<String>, Query), ("gpus" = Option<u32>, Query),
        ("dtype" = Option<String>, Query),
        ("line" = Option<String>, Query, description = "The query of a link to the scenario, as in `line` of a run"),
        ("since" = Option<String>, Query, description = "Received then or later, RFC 3339"),
        ("until" = Option<String>, Query, description = "Received before"),
        ("sort" = Option<String>, Query, description = "received_at, ran_at, step_time_s, tokens_per_s, mfu, speed_percent, plan_error; with - before it the largest first; by default -received_at. Runs without the number come last"),
        ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses((status = 200, body = RunPage))
)]
pub(super) async fn list(
    State(server): State<Server>,
    Extension(by): By,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    by.may(Scope::Read)?;
    let query = read(&query.unwrap_or_default(), server.options.limits.max_page)?;
    Ok((NEVER_KEPT, Json(server.store.list(&query).await?)).into_response())
}

/// Read a result file
#[utoipa::path(
    get, path = "/runs/{id}",
    params(
        ("id" = String, Path),
        ("upload" = Option<String>, Query, description = "Given: the file as it came, also where a newer parser read its log again"),
    ),
    responses((status = 200, description = "The result file", body = Object))
)]
pub(super) async fn result(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id(&path)?;
    by.may_read(&[id])?;
    let as_it_came =
        form_urlencoded::parse(query.unwrap_or_default().as_bytes()).any(|(name, _)| name == "upload");
    let file = match as_it_came {
        true => server.store.file(id).await?,
        false => server.store.newest_file(id).await?,
    };
    let file = file.ok_or_else(|| no_run(&path))?;
    let json = [(header::CONTENT_TYPE, "application/json")];
    if accepts(&headers, "zstd") {
        return Ok((NEVER_KEPT, json, [(header::CONTENT_ENCODING, "zstd")], file).into_response());
    }
    let raw = zstd::Decoder::new(io::Cursor::new(file)).map_err(Problem::broken)?;
    Ok((NEVER_KEPT, json, stream(raw)).into_response())
}

/// Read a run's summary
#[utoipa::path(
    get, path = "/runs/{id}/summary", params(("id" = String, Path)),
    responses((status = 200, body = RunSummary))
)]
pub(super) async fn summary(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let id = id(&path)?;
    by.may_read(&[id])?;
    let summary = server.store.summary(id).await?.ok_or_else(|| no_run(&path))?;
    Ok((NEVER_KEPT, Json(summary)).into_response())
}

/// Read what each version of the parser made of a run
#[utoipa::path(
    get, path = "/runs/{id}/scores", params(("id" = String, Path)),
    responses((status = 200, body = ScoreVersions<ScoreSummary>))
)]
pub(super) async fn scores(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let id = id(&path)?;
    by.may_read(&[id])?;
    let items = server.store.scores(id).await?;
    if items.is_empty() {
        return Err(no_run(&path));
    }
    Ok((NEVER_KEPT, Json(ScoreVersions { items })).into_response())
}

/// Read a run's raw log again, by this server's parser and as a run of what the query says; that counts from then on
///
/// It needs the scope admin. Parameters are the flags of a scenario, such as `recipe`; without any it stays a run of what it
/// was. A run that a campaign carried out keeps what that said.
#[utoipa::path(
    post, path = "/runs/{id}/scores",
    params(("id" = String, Path), ("recipe" = Option<String>, Query, description = "A recipe; so with all flags of a scenario")),
    responses((status = 200, body = ScoreVersions<ScoreSummary>))
)]
pub(super) async fn rescore(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, Problem> {
    by.may(Scope::Admin)?;
    let id = id(&path)?;
    if !matches!(body.trim_ascii(), b"" | b"{}") {
        let detail = "there is nothing to send: what the log is a run of stands in the query, ?recipe=...";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    let said = said(&query.unwrap_or_default())?;
    // Reading a long log is work: few at a time.
    let turn = server.turns.acquire().await;
    if server.store.reparse(id, said).await?.is_none() {
        return Err(match server.store.file(id).await? {
            Some(_) => Problem::new(StatusCode::CONFLICT, "its raw log is not here: upload that first"),
            None => no_run(&path),
        });
    }
    drop(turn);
    server.stir();
    server.came_in.notify_one();
    tracing::info!("run {id} was scored again by {}", by.name());
    Ok((NEVER_KEPT, Json(ScoreVersions { items: server.store.scores(id).await? })).into_response())
}

/// What a query says that a log is a run of.
fn said(query: &str) -> Result<Option<Spec>, Problem> {
    let mut spec = Spec::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let field = Field::from_flag(&name).filter(|field| field.is_of_scenario());
        let field = field.ok_or_else(|| {
            let detail = format!(
                "{name}: there is no such parameter; allowed: the flags of a scenario, such as recipe"
            );
            Problem::new(StatusCode::BAD_REQUEST, detail)
        })?;
        let recipe = Catalog::embedded().recipe(&value).ok().filter(|_| field == Field::Recipe);
        spec.set(field, recipe.map_or_else(|| value.into_owned(), |recipe| recipe.id.to_string()));
    }
    let view = View::of(spec, None).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Problem::new(StatusCode::BAD_REQUEST, problems.join("; "))
    })?;
    Ok(Some(view.spec).filter(|spec| *spec != Spec::default()))
}

/// Delete a run, its log and all that was made of them, for good; of one that is not over what it said of itself
#[utoipa::path(
    delete, path = "/runs/{id}", params(("id" = String, Path)),
    responses((status = 204, description = "It is gone"))
)]
pub(super) async fn delete(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    by.may(Scope::Admin)?;
    if !server.store.delete(id(&path)?).await? {
        return Err(no_run(&path));
    }
    server.stir();
    tracing::info!("run {path} was deleted by {}", by.name());
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn expected_log(server: &Server, run: &RunResult) -> Result<ExpectedLog, Problem> {
    let complete = server.store.log(run.id).await?.is_some();
    let offset = if complete { 0 } else { server.store.arriving(run.id).await?.offset() };
    Ok(ExpectedLog { sha256: run.source.sha256.clone(), progress: LogProgress { offset, complete } })
}

/// A body of all that a reader gives, which is read where waiting hinders nobody, and only as fast as it is taken: who takes
/// nothing holds no thread.
pub(super) fn stream(reader: impl Read + Send + 'static) -> Body {
    Body::from_stream(try_unfold(reader, async |mut reader| {
        let read = tokio::task::spawn_blocking(move || {
            let mut piece = vec![0; PIECE];
            let count = reader.read(&mut piece)?;
            piece.truncate(count);
            Ok::<_, io::Error>((Bytes::from(piece), reader))
        });
        let (piece, reader) = read.await.map_err(io::Error::other)??;
        Ok::<_, io::Error>((!piece.is_empty()).then_some((piece, reader)))
    }))
}

/// A query of the address.
pub(super) fn read(text: &str, most: u32) -> Result<Query, Problem> {
    let mut query = Query::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let refuse = |why: String| Problem::new(StatusCode::BAD_REQUEST, format!("{name}={value}: {why}"));
        // No text in the store has one, and PostgreSQL fails at it.
        if value.contains('\0') {
            return Err(refuse("there is a NUL in it".into()));
        }
        // Databases refuse those that are much longer.
        if value.contains('*') && value.len() > LONGEST_PATTERN && name != "line" {
            return Err(refuse(format!("with a * in it, it may have {LONGEST_PATTERN} bytes")));
        }
        let text = Some(value.clone().into_owned());
        let at = || {
            let read = value.parse::<Timestamp>();
            read.map(time).map_err(|_| refuse("give a time such as 2026-11-01T00:00:00Z".into()))
        };
        match name.as_ref() {
            // Short forms mean what they mean on the command line.
            "recipe" => {
                query.recipe =
                    Catalog::embedded().recipe(&value).map(|recipe| recipe.id.to_string()).ok().or(text);
            }
            "cluster" => query.cluster = text,
            "campaign" => query.campaign = text,
            "model" => query.model = text,
            "gpu" => query.gpu = text,
            "dtype" => query.dtype = text,
            "line" => query.line = text,
            "gpus" => match value.parse() {
                Ok(gpus) => query.gpus = Some(gpus),
                Err(_) => return Err(refuse("give a whole number".into())),
            },
            "since" => query.since = Some(at()?),
            "until" => query.until = Some(at()?),
            "status" if Status::ALL.iter().any(|status| status.id() == value) => query.status = text,
            "status" => {
                let all = Status::ALL.map(Status::id).join(", ");
                return Err(refuse(format!("there is no such status; allowed: {all}")));
            }
            "sort" => query.sort = value.parse().map_err(|error| refuse(format!("{error}")))?,
            "limit" => match value.parse() {
                Ok(limit) if (1..=most).contains(&limit) => query.limit = Some(limit),
                _ => return Err(refuse(format!("allowed: 1 to {most}"))),
            },
            "cursor" => {
                query.cursor = Some(value.parse().map_err(|error| refuse(format!("it {error}")))?);
            }
            _ => {
                let all = "recipe, cluster, campaign, status, model, gpu, gpus, dtype, line, since, until, sort, limit, cursor";
                return Err(refuse(format!("there is no such parameter; allowed: {all}")));
            }
        }
    }
    if query.cursor.as_ref().is_some_and(|cursor| !cursor.suits(query.sort)) {
        let detail = "the cursor is of another order: give the same sort with it";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    }
    Ok(query)
}

pub(super) fn unprocessable(detail: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}
