//! What the store holds, for programs: `/api/v1`.

use super::assets::accepts;
use super::problem::Problem;
use crate::store::{Page, Query, Store};
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use std::fs::File;
use std::io::{self, Read};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::log::Status;
use uuid::Uuid;

/// The most runs of a page.
const MOST: u32 = 1000;

/// A log is sent in pieces of this many bytes.
const PIECE: usize = 64 * 1024;

/// Everything below `/api/v1`.
pub(super) fn routes(store: Store) -> Router {
    Router::new()
        .route("/runs", get(list))
        .route("/runs/{id}", get(result))
        .route("/runs/{id}/log", get(log))
        .fallback(|| async { nowhere("there is nothing at this address") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this server only reads: GET and HEAD are allowed")
        })
        .with_state(store)
}

async fn list(State(store): State<Store>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let page: Page = store.list(&read(&query.unwrap_or_default())?).await?;
    Ok((NEVER_KEPT, Json(page)).into_response())
}

async fn result(
    State(store): State<Store>,
    Path(id): Path<String>,
    request: HeaderMap,
) -> Result<Response, Problem> {
    let missing = || nowhere(&format!("the store has no result {id}"));
    let file = store.file(id.parse().map_err(|_| missing())?).await?.ok_or_else(missing)?;
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((NEVER_KEPT, json, decoded(io::Cursor::new(file), &request)?).into_response())
}

/// The raw log, for whoever wants to read it elsewhere: it is text that a cluster wrote, and no browser should show it.
async fn log(
    State(store): State<Store>,
    Path(id): Path<String>,
    request: HeaderMap,
) -> Result<Response, Problem> {
    let missing = || nowhere(&format!("the store has no log of a result {id}"));
    let id: Uuid = id.parse().map_err(|_| missing())?;
    let path = store.log(id).await?.ok_or_else(missing)?;
    let file = File::open(&path).map_err(|error| {
        let what = format!("the log {} can't be read: {error}", path.display());
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, what)
    })?;
    let kind = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.log\"")),
    ];
    Ok((NEVER_KEPT, kind, decoded(file, &request)?).into_response())
}

/// Someone else may use the same browser later.
const NEVER_KEPT: [(HeaderName, &str); 2] =
    [(header::CACHE_CONTROL, "no-store"), (header::VARY, "accept-encoding")];

/// What is kept compressed, as it is for who takes that, and as it was for everyone else.
fn decoded(packed: impl Read + Send + 'static, request: &HeaderMap) -> Result<Response, Problem> {
    if accepts(request, "zstd") {
        return Ok(([(header::CONTENT_ENCODING, "zstd")], stream(packed)).into_response());
    }
    let raw = zstd::Decoder::new(packed)
        .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(stream(raw).into_response())
}

/// A body of all that a reader gives, which is read where waiting hinders nobody.
fn stream(mut reader: impl Read + Send + 'static) -> Body {
    let (sender, receiver) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let read = reader.read(&mut piece).map(|count| {
                piece.truncate(count);
                Bytes::from(piece)
            });
            let is_last = read.as_ref().map_or(true, Bytes::is_empty);
            // Whoever asked may have gone.
            if sender.blocking_send(read).is_err() || is_last {
                break;
            }
        }
    });
    Body::from_stream(ReceiverStream::<io::Result<Bytes>>::new(receiver))
}

/// A query of the address.
fn read(text: &str) -> Result<Query, Problem> {
    let mut query = Query::default();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let refuse = |why: String| Problem::new(StatusCode::BAD_REQUEST, format!("{name}={value}: {why}"));
        let text = Some(value.clone().into_owned());
        match name.as_ref() {
            // Short forms mean what they mean on the command line.
            "recipe" => {
                query.recipe =
                    Catalog::embedded().recipe(&value).map(|recipe| recipe.id.to_string()).ok().or(text);
            }
            "cluster" => query.cluster = text,
            "campaign" => query.campaign = text,
            "status" if Status::ALL.iter().any(|status| status.id() == value) => query.status = text,
            "status" => {
                let all = Status::ALL.map(Status::id).join(", ");
                return Err(refuse(format!("there is no such status; allowed: {all}")));
            }
            "limit" => match value.parse() {
                Ok(limit @ 1..=MOST) => query.limit = Some(limit),
                _ => return Err(refuse(format!("allowed: 1 to {MOST}"))),
            },
            "cursor" => {
                query.cursor = Some(value.parse().map_err(|error| refuse(format!("it {error}")))?);
            }
            _ => {
                let all = "recipe, cluster, campaign, status, limit, cursor";
                return Err(refuse(format!("there is no such parameter; allowed: {all}")));
            }
        }
    }
    Ok(query)
}

fn nowhere(detail: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, detail)
}
