//! Raw logs: taken piece by piece, given whole or by lines.

use super::super::limits::{self, WINDOW_LOG, is_packed, too_large};
use super::super::problem::Problem;
use super::super::{Server, quota};
use super::runs::{stream, unprocessable};
use super::{By, NEVER_KEPT, id, no_run, nowhere};
use crate::serve::assets::accepts;
use crate::store::{Arriving, LogHash, Scope, StoreError};
use axum::Json;
use axum::body::Body;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::io::{self, BufRead, BufReader, Read, Write};
use trainplan_shared::api::{LogLine, LogLines, LogProgress};
use uuid::Uuid;
use zstd::stream::write::Decoder;

const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const COMPLETE: HeaderName = HeaderName::from_static("upload-complete");

/// Ask how much of a run's raw log is here: `upload-offset` and `upload-complete` say so
#[utoipa::path(head, path = "/runs/{id}/log", params(("id" = String, Path)), responses((status = 200, description = "See the headers")))]
pub(super) async fn arrived(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    by.may(Scope::Upload)?;
    let id = id(&path)?;
    if server.store.log(id).await?.is_some() {
        return Ok((NEVER_KEPT, [(COMPLETE, "?1")]).into_response());
    }
    let offset = server.store.arriving(id).await?.offset();
    Ok((NEVER_KEPT, [(COMPLETE, "?0")], [(OFFSET, HeaderValue::from(offset))]).into_response())
}

/// Send a part of a run's raw log: what arrived stays, also where the connection breaks
#[utoipa::path(
    put, path = "/runs/{id}/log",
    params(
        ("id" = String, Path),
        ("upload-offset" = u64, Header, description = "Where the body begins in the raw log: where the server is, or it answers 409 and says where"),
        ("upload-complete" = String, Header, description = "`?1` if the log ends with this body, else `?0`"),
        ("content-encoding" = Option<String>, Header, description = "`zstd`, where the body is compressed so"),
    ),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, body = LogProgress))
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
    let wanted = server.store.get(id).await?.ok_or_else(|| no_run(&path))?.source.sha256;
    if server.store.log(id).await?.is_some() {
        return Ok(arrived_so_far(0, true));
    }
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let offset = text(OFFSET).and_then(|offset| offset.parse::<u64>().ok());
    let is_last = match text(COMPLETE) {
        Some("?1") => Some(true),
        Some("?0") => Some(false),
        _ => None,
    };
    let (Some(offset), Some(is_last)) = (offset, is_last) else {
        let detail = "say where the body begins by `Upload-Offset: BYTES`, and by `Upload-Complete: ?1` or `?0` whether the \
            log ends with it";
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    };
    let is_packed = is_packed(&headers)?;
    let mut arriving = server.store.arriving(id).await?;
    if offset != arriving.offset() {
        let detail = format!("the server has {} bytes of this log: go on from there", arriving.offset());
        let problem = Problem::new(StatusCode::CONFLICT, detail);
        return Err(problem.with(OFFSET, HeaderValue::from(arriving.offset())));
    }
    let (sent, taken) = take(&server, &mut arriving, body, is_packed).await;
    quota::count(&server, &by, sent).await?;
    let ended = match taken {
        Ok(()) if is_last => finish(&server, id, &arriving, &wanted).await,
        taken => taken,
    };
    // Another client may have made it whole meanwhile, of pieces that this one then misses.
    if server.store.log(id).await?.is_some() {
        arriving.clear().await.map_err(StoreError::from)?;
        return Ok(arrived_so_far(arriving.offset(), true));
    }
    ended?;
    Ok(arrived_so_far(arriving.offset(), false))
}

async fn finish(server: &Server, id: Uuid, arriving: &Arriving, wanted: &str) -> Result<(), Problem> {
    let sha256 = LogHash::parse(wanted).map_err(|error| unprocessable(&error.to_string()))?;
    server.store.finish_log(id, arriving, &sha256).await?;
    server.stir();
    Ok(())
}

fn arrived_so_far(offset: u64, complete: bool) -> Response {
    (NEVER_KEPT, Json(LogProgress { offset, complete })).into_response()
}

/// Takes a body into pieces, and keeps what came of it whatever ends it. How many bytes were sent, and whether all is
/// well.
async fn take(
    server: &Server,
    arriving: &mut Arriving,
    mut body: Body,
    is_packed: bool,
) -> (u64, Result<(), Problem>) {
    let most = server.options.limits.max_log_bytes;
    let mut reader = match Unpacking::new(is_packed) {
        Ok(reader) => reader,
        Err(error) => return (0, Err(Problem::broken(error))),
    };
    let mut sent = 0;
    let result = loop {
        let next = match limits::next(&mut body).await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break Ok(()),
            Err(problem) => break Err(problem),
        };
        sent += next.len() as u64;
        // A small body may hold a large log: of so few bytes zstd makes at most 16 MiB, which are kept before more is let in.
        for bytes in next.chunks(512) {
            if let Err(error) = reader.take(bytes) {
                let detail = format!("the body can't be read as zstd: {error}");
                return (sent, keep(arriving, &mut reader, 1).await.and(Err(unprocessable(&detail))));
            }
            if arriving.offset() + reader.raw().len() as u64 > most {
                return (sent, Err(too_large(most)));
            }
            if let Err(problem) = keep(arriving, &mut reader, Arriving::PIECE).await {
                return (sent, Err(problem));
            }
        }
    };
    (sent, keep(arriving, &mut reader, 1).await.and(result))
}

/// Keeps what was unpacked, in whole pieces; with `least` 1 also the rest.
async fn keep(arriving: &mut Arriving, reader: &mut Unpacking, least: usize) -> Result<(), Problem> {
    while reader.raw().len() >= least {
        let count = reader.raw().len().min(Arriving::PIECE);
        arriving.take(&reader.raw()[..count]).await.map_err(StoreError::from)?;
        reader.raw().drain(..count);
    }
    Ok(())
}

/// Bytes as they come, to bytes of the raw log.
enum Unpacking {
    Plain(Vec<u8>),
    Zstd(Box<Decoder<'static, Vec<u8>>>),
}

impl Unpacking {
    fn new(is_packed: bool) -> io::Result<Unpacking> {
        if !is_packed {
            return Ok(Unpacking::Plain(Vec::new()));
        }
        let mut decoder = Decoder::new(Vec::new())?;
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(Unpacking::Zstd(Box::new(decoder)))
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Unpacking::Plain(raw) => raw.write_all(bytes),
            Unpacking::Zstd(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()
            }
        }
    }

    fn raw(&mut self) -> &mut Vec<u8> {
        match self {
            Unpacking::Plain(raw) => raw,
            Unpacking::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

/// Read the raw log
///
/// It is text that a cluster wrote: no browser should show it as anything else.
#[utoipa::path(get, path = "/runs/{id}/log", params(("id" = String, Path)), responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn whole(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (id, log) = find(&server, &by, &path).await?;
    let log = server.store.read_log(&log).await?;
    let kind = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.log\"")),
    ];
    if accepts(&headers, "zstd") {
        let coding = [(header::CONTENT_ENCODING, "zstd")];
        return Ok((NEVER_KEPT, kind, coding, Body::from_stream(log.pieces)).into_response());
    }
    Ok((NEVER_KEPT, kind, stream(log.raw().map_err(Problem::broken)?)).into_response())
}

/// A line's text is cut after so many bytes.
const LONGEST: usize = 4096;

/// No answer has more lines.
const MOST_LINES: usize = 2000;

/// No search reads more of a log before it answers: whoever wants more goes on from there.
const MOST_READ: u64 = 1 << 30;

/// Read some lines of the raw log, or those that hold a text
#[utoipa::path(
    get, path = "/runs/{id}/log/lines",
    params(
        ("id" = String, Path),
        ("from" = Option<u64>, Query, description = "The first line, from 1"),
        ("count" = Option<usize>, Query, description = "At most 2000"),
        ("q" = Option<String>, Query, description = "Only lines that hold this, in whatever case"),
    ),
    responses((status = 200, body = LogLines))
)]
pub(super) async fn lines(
    State(server): State<Server>,
    Extension(by): By,
    Path(path): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let (_, log) = find(&server, &by, &path).await?;
    let (mut from, mut count, mut wanted) = (1, 500, String::new());
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let refuse =
            || Problem::new(StatusCode::BAD_REQUEST, format!("{name}={value}: give a whole number from 1"));
        match name.as_ref() {
            "from" => from = value.parse().ok().filter(|from| *from > 0).ok_or_else(refuse)?,
            "count" => {
                count = value.parse().ok().filter(|count| *count > 0).ok_or_else(refuse)?;
                count = count.min(MOST_LINES);
            }
            "q" => wanted = value.to_lowercase(),
            _ => {
                let detail = format!("{name}: there is no such parameter; allowed: from, count, q");
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
            }
        }
    }
    // Reading a long log from its start is work: few at a time.
    let _turn = server.turns.acquire().await;
    let log = server.store.read_log(&log).await?;
    let read = tokio::task::spawn_blocking(move || some_lines(log.raw()?, from, count, &wanted));
    let lines = read.await.map_err(Problem::broken)?.map_err(Problem::broken)?;
    Ok((NEVER_KEPT, Json(lines)).into_response())
}

fn some_lines(log: impl Read, from: u64, count: usize, wanted: &str) -> io::Result<LogLines> {
    let mut reader = BufReader::with_capacity(1 << 18, log);
    let (mut line, mut read) = (1, 0);
    let mut lines: Vec<LogLine> = Vec::new();
    let mut text = Vec::new();
    loop {
        text.clear();
        let is_wanted = line >= from;
        let length = read_line(&mut reader, &mut text)?;
        if length == 0 {
            return Ok(LogLines { lines, next: None, total: Some(line - 1) });
        }
        read += length;
        if is_wanted {
            let shown = String::from_utf8_lossy(text.trim_ascii_end()).into_owned();
            if wanted.is_empty() || shown.to_lowercase().contains(wanted) {
                lines.push(LogLine { number: line, text: shown });
            }
        }
        line += 1;
        if lines.len() >= count || (is_wanted && read > MOST_READ) {
            return Ok(LogLines { lines, next: Some(line), total: None });
        }
    }
}

/// Reads a line, of which a long one is cut. How many bytes it has.
fn read_line(reader: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<u64> {
    let mut length = 0;
    loop {
        let bytes = reader.fill_buf()?;
        let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
        let kept = end.min(LONGEST.saturating_sub(text.len()));
        text.extend_from_slice(&bytes[..kept]);
        let is_whole = end == 0 || bytes[end - 1] == b'\n';
        reader.consume(end);
        length += end as u64;
        if is_whole {
            return Ok(length);
        }
    }
}

async fn find(server: &Server, by: &super::Caller, path: &str) -> Result<(Uuid, LogHash), Problem> {
    let id = id(path)?;
    by.may_read(&[id])?;
    let log = server.store.log(id).await?;
    Ok((id, log.ok_or_else(|| nowhere(&format!("the log of run {id} is not here")))?))
}
