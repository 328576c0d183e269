//! Raw logs: uploaded in pieces, downloaded whole or read by lines.

use super::super::Server;
use super::super::guard::Caller;
use super::super::limits::{EXPANSION, TimedBody, held_json, is_compressed, too_large};
use super::super::problem::Problem;
use super::super::quota::UploadAccount;
use super::query::WantedLines;
use super::runs::{STREAMED, stream};
use super::{NEVER_KEPT, bad_request, id, no_run, not_found, query, unprocessable};
use crate::serve::assets::accepts;
use crate::store::{Arriving, LogHash, StoreError, WINDOW_LOG};
use axum::Json;
use axum::body::{Body, HttpBody};
use axum::extract::{Extension, Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::io::{self, BufRead, BufReader, Read, Write};
use trainplan_shared::api::{LogLine, LogLines, LogProgress, TokenScope};
use uuid::Uuid;
use zstd::stream::write::Decoder;

const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const COMPLETE: HeaderName = HeaderName::from_static("upload-complete");

/// Read how much of a run's raw log was uploaded
///
/// The headers are those of the answer to an upload: `upload-complete` is `?1` if the log is complete, as far as is
/// known without reading it, and `upload-offset` is the number of raw bytes that arrived; 0 where the log is complete. The
/// answer is 410 for a run that was deleted.
#[utoipa::path(
    head, path = "/runs/{id}/log", tag = "logs", security((), ("token" = ["read"])), params(("id" = String, Path)),
    responses((status = 200, description = "See the headers"))
)]
pub(super) async fn progress(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let id = id(&path)?;
    caller.may_read(&[id])?;
    if server.store.summary(id).await?.is_none() {
        return Err(absent(&server, id).await);
    }
    // Without a sound result, only its row says which log it has.
    let wanted = wanted_log(&server, id).await.ok().flatten();
    let complete = match &wanted {
        Some(wanted) => server.store.has_this_log(id, wanted).await?,
        None => server.store.has_log(id).await?,
    };
    let offset = if complete { 0 } else { server.store.arriving(id).await?.offset() };
    Ok((NEVER_KEPT, progress_headers(offset, complete)).into_response())
}

/// Upload a piece of a run's raw log
///
/// The server keeps all bytes that arrive, even if the connection breaks. The complete log must have the
/// SHA-256 that the result names; otherwise the server discards it. If the log is complete already, the body is ignored.
/// The headers `upload-offset` and `upload-complete` of the answer say the same as its body. The answer is 410 for a run that
/// was deleted.
#[utoipa::path(
    put, path = "/runs/{id}/log", tag = "logs", security(("token" = ["upload"])),
    params(
        ("id" = String, Path),
        ("upload-offset" = u64, Header, description = "Where the body begins in the raw log. If the server has another number of bytes, it answers 409 with its own `upload-offset`"),
        ("upload-complete" = String, Header, description = "`?1` if the log ends with this body, otherwise `?0`"),
        ("content-encoding" = Option<String>, Header, description = "`zstd` if the body is compressed"),
    ),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, body = LogProgress))
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
    let Some(wanted) = wanted_log(&server, id).await? else { return Err(absent(&server, id).await) };
    if is_complete(&server, id, &wanted).await? {
        return Ok(log_progress(0, true));
    }
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let offset = text(OFFSET).and_then(|offset| offset.parse::<u64>().ok());
    let is_last = match text(COMPLETE) {
        Some("?1") => Some(true),
        Some("?0") => Some(false),
        _ => None,
    };
    let (Some(offset), Some(is_last)) = (offset, is_last) else {
        let detail = "Send Upload-Offset: BYTES, where the body begins in the log, and Upload-Complete: ?1 if the log ends \
            with it, otherwise ?0.";
        return Err(bad_request(detail));
    };
    let is_compressed = is_compressed(&headers)?;
    let mut account = UploadAccount::open(&server, &caller).await?;
    // What is known to exceed the quota is refused before it is received.
    account.afford(body.size_hint().lower())?;
    let mut arriving = server.store.arriving(id).await?;
    if offset != arriving.offset() {
        let detail = format!("The server has {} bytes of this log. Continue from there.", arriving.offset());
        let problem = Problem::new(StatusCode::CONFLICT, detail);
        return Err(problem.with(OFFSET, arriving.offset()));
    }
    let (sent, received) = receive(&server, &mut account, &mut arriving, body, is_compressed).await;
    account.close(sent).await?;
    let ended = match received {
        Ok(()) if is_last => finish(&server, id, &arriving, &wanted).await,
        received => received,
    };
    // Another client may have completed the log meanwhile and removed the pieces.
    if server.store.has_this_log(id, &wanted).await? {
        arriving.clear().await.map_err(StoreError::from)?;
        return Ok(log_progress(arriving.offset(), true));
    }
    // Or the run was deleted, and the pieces with it.
    if let Err(deleted) = server.store.refuse_deleted(id).await {
        arriving.clear().await.map_err(StoreError::from)?;
        return Err(deleted.into());
    }
    ended?;
    Ok(log_progress(arriving.offset(), false))
}

/// Returns the problem for the log of a run that is not stored: it may have been deleted.
async fn absent(server: &Server, id: Uuid) -> Problem {
    match server.store.refuse_deleted(id).await {
        Ok(()) => no_run(&id.to_string()),
        Err(error) => error.into(),
    }
}

/// Returns the SHA-256 of the log that a run's result names; none if the run is not stored.
async fn wanted_log(server: &Server, id: Uuid) -> Result<Option<String>, Problem> {
    let sizes = server.store.file_sizes(id).await?;
    let _held = server.room.take(sizes.last().map_or(0, |size| size.packed))?;
    Ok(server.store.named_log(id).await?)
}

/// Returns whether the store has a run's log. Reads it whole, since an upload is what replaces a damaged log.
async fn is_complete(server: &Server, id: Uuid, wanted: &str) -> Result<bool, Problem> {
    // A log with a known fault is not read again for every piece that replaces it.
    if !server.store.has_this_log(id, wanted).await? {
        return Ok(false);
    }
    let Some(sha256) = server.store.log(id).await? else { return Ok(false) };
    let _turn = server.turns.uploads.acquire().await;
    Ok(server.store.is_sound(&sha256).await?)
}

async fn finish(server: &Server, id: Uuid, arriving: &Arriving, wanted: &str) -> Result<(), Problem> {
    let sha256 = LogHash::parse(wanted).map_err(|error| unprocessable(&error.to_string()))?;
    server.store.finish_log(id, arriving, &sha256).await?;
    server.watch.notify();
    Ok(())
}

fn log_progress(offset: u64, complete: bool) -> Response {
    (NEVER_KEPT, progress_headers(offset, complete), Json(LogProgress { offset, complete })).into_response()
}

fn progress_headers(offset: u64, complete: bool) -> [(HeaderName, HeaderValue); 2] {
    let complete = HeaderValue::from_static(if complete { "?1" } else { "?0" });
    [(COMPLETE, complete), (OFFSET, HeaderValue::from(offset))]
}

/// Stores a body in pieces, and keeps what arrived even if it fails. Returns the number of bytes received,
/// and the failure.
async fn receive(
    server: &Server,
    account: &mut UploadAccount<'_>,
    arriving: &mut Arriving,
    body: Body,
    is_compressed: bool,
) -> (u64, Result<(), Problem>) {
    let most = server.options.limits.max_log_bytes;
    // zstd frames may have no content at all, so the limit on the log alone would not end such a body.
    let most_sent = most.max(LARGEST_OVERHEAD);
    if body.size_hint().lower() > most_sent {
        return (0, Err(too_large(most)));
    }
    let mut reader = match Decoding::new(is_compressed) {
        Ok(reader) => reader,
        Err(error) => return (0, Err(Problem::broken(error))),
    };
    let mut held = match server.room.take(0) {
        Ok(held) => held,
        Err(problem) => return (0, Err(problem)),
    };
    let mut body = TimedBody::new(body);
    let mut sent = 0;
    let result = loop {
        let next = match body.next().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break Ok(()),
            Err(problem) => break Err(problem),
        };
        // What arrived before is kept.
        if let Err(problem) = account.afford(sent + next.len() as u64) {
            break Err(problem);
        }
        sent += next.len() as u64;
        if sent > most_sent {
            return (sent, Err(too_large(most)));
        }
        // zstd expands 512 bytes to 16 MiB at most, which are stored before more are decoded: a small body
        // may contain a large log.
        for bytes in next.chunks(512) {
            if let Err(error) = reader.feed(bytes) {
                let detail = format!("The body is not valid zstd: {error}.");
                return (
                    sent,
                    keep(account, sent, arriving, &mut reader, 1).await.and(Err(unprocessable(&detail))),
                );
            }
            // The decoder keeps as much as it decoded, up to its window.
            let decoded = arriving.offset().min(1 << WINDOW_LOG) as usize + reader.raw().len();
            if let Err(problem) = held.grow(decoded) {
                return (sent, Err(problem));
            }
            if arriving.offset() + reader.raw().len() as u64 > most {
                return (sent, Err(too_large(most)));
            }
            if let Err(problem) = keep(account, sent, arriving, &mut reader, Arriving::PIECE).await {
                return (sent, Err(problem));
            }
        }
    };
    (sent, keep(account, sent, arriving, &mut reader, 1).await.and(result))
}

/// Stores decoded bytes in whole pieces; with `least` 1 also the rest. Charges each piece before, so that nothing is stored
/// beyond a quota. `sent` is the number of bytes received.
async fn keep(
    account: &mut UploadAccount<'_>,
    sent: u64,
    arriving: &mut Arriving,
    reader: &mut Decoding,
    least: usize,
) -> Result<(), Problem> {
    while reader.raw().len() >= least {
        let count = reader.raw().len().min(Arriving::PIECE);
        let piece = arriving.pack(&reader.raw()[..count]).map_err(StoreError::from)?;
        account.charge(sent.max(arriving.stored() + piece.size())).await?;
        arriving.put(piece).await.map_err(StoreError::from)?;
        reader.raw().drain(..count);
    }
    Ok(())
}

/// Decodes a body to bytes of the raw log.
enum Decoding {
    Plain(Vec<u8>),
    Zstd(Box<Decoder<'static, Vec<u8>>>),
}

impl Decoding {
    fn new(is_compressed: bool) -> io::Result<Decoding> {
        if !is_compressed {
            return Ok(Decoding::Plain(Vec::new()));
        }
        let mut decoder = Decoder::new(Vec::new())?;
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(Decoding::Zstd(Box::new(decoder)))
    }

    fn feed(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Decoding::Plain(raw) => raw.write_all(bytes),
            Decoding::Zstd(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()
            }
        }
    }

    fn raw(&mut self) -> &mut Vec<u8> {
        match self {
            Decoding::Plain(raw) => raw,
            Decoding::Zstd(decoder) => decoder.get_mut(),
        }
    }
}

/// Download the raw log
///
/// The log is compared with its hash first. If the stored log is missing or damaged, the answer is 500, and
/// uploading the log again replaces it.
#[utoipa::path(
    get, path = "/runs/{id}/log", tag = "logs", security((), ("token" = ["read"])), params(("id" = String, Path)),
    responses((status = 200, body = String, content_type = "text/plain"))
)]
pub(super) async fn download(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (id, sha256) = find(&server, &caller, &path).await?;
    let turn = server.turns.logs.acquire().await;
    if let Err(error) = server.store.check_log(&sha256).await {
        return Err(unread(&server, id, error).await);
    }
    drop(turn);
    let log = match server.store.read_log(&sha256).await {
        Ok(log) => log,
        Err(error) => return Err(unread(&server, id, error).await),
    };
    // As an attachment: no browser should interpret what a cluster wrote.
    let kind = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.log\"")),
    ];
    if accepts(&headers, "zstd") {
        let coding = [(header::CONTENT_ENCODING, "zstd")];
        return Ok((NEVER_KEPT, kind, coding, Body::from_stream(log.pieces)).into_response());
    }
    // A small log needs no more than it contains, even if it is compressed well.
    let window = server.streams.take(STREAMED.min(log.size.saturating_mul(EXPANSION)))?;
    Ok((NEVER_KEPT, kind, stream(log.raw().map_err(Problem::broken)?, window)).into_response())
}

/// A body of this size may be larger than the largest log, because of its frames.
const LARGEST_OVERHEAD: u64 = 1 << 20;

/// The most bytes of a line's text.
const LONGEST: usize = 4096;

/// The most bytes of text in a response; the client then continues from there.
const MOST_TEXT: usize = 1 << 20;

/// The most bytes that one search reads; the client then continues from there.
const MOST_READ: u64 = 1 << 30;

/// Read or search lines of the raw log
///
/// The log is compared with its hash before, unless this server did so since the stored log last changed. Long lines are
/// searched to their end; their `text` is cut, and `is_cut` is then true.
#[utoipa::path(
    get, path = "/runs/{id}/log/lines", tag = "logs", security((), ("token" = ["read"])),
    params(
        ("id" = String, Path),
        ("from" = Option<u64>, Query, minimum = 1, description = "The first line, counted from 1"),
        ("count" = Option<usize>, Query, minimum = 1, description = "The number of lines; 500 by default, at most 2000"),
        ("q" = Option<String>, Query, description = "Return only lines that contain this text, in upper or lower case"),
    ),
    responses((status = 200, body = LogLines))
)]
pub(super) async fn lines(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
    RawQuery(text): RawQuery,
) -> Result<Response, Problem> {
    let (id, sha256) = find(&server, &caller, &path).await?;
    let wanted = query::lines(&text.unwrap_or_default())?;
    let turn = server.turns.logs.acquire().await;
    let log = match server.store.sound_log(&sha256).await {
        Ok(log) => log,
        Err(error) => return Err(unread(&server, id, error).await),
    };
    match log.read(move |raw| some_lines(raw, &wanted)).await {
        Ok(lines) => {
            drop(turn);
            Ok((NEVER_KEPT, held_json(&lines, &server.room)?).into_response())
        }
        Err(error) => {
            let error = server.store.log_error(&sha256, error).await;
            Err(unread(&server, id, error).await)
        }
    }
}

fn some_lines(log: impl Read, wanted: &WantedLines) -> io::Result<LogLines> {
    let mut reader = BufReader::with_capacity(1 << 18, log);
    let (mut line, mut read, mut shown_bytes) = (1, 0, 0);
    let mut lines: Vec<LogLine> = Vec::new();
    let mut text = Vec::new();
    let mut finder = Finder::new(&wanted.text);
    loop {
        text.clear();
        let is_wanted = line >= wanted.from;
        let (length, is_cut) = read_line(&mut reader, &mut text, is_wanted.then_some(&mut finder))?;
        if length == 0 {
            return Ok(LogLines { lines, next: None, total: Some(line - 1) });
        }
        read += length;
        if is_wanted && finder.end_line() {
            let shown = String::from_utf8_lossy(text.trim_ascii_end()).into_owned();
            shown_bytes += shown.len();
            lines.push(LogLine { number: line, text: shown, is_cut });
        }
        line += 1;
        if lines.len() >= wanted.count || shown_bytes > MOST_TEXT || (is_wanted && read > MOST_READ) {
            return Ok(LogLines { lines, next: Some(line), total: None });
        }
    }
}

/// Reads a line. Keeps its beginning as text, and shows all of it to a finder. Returns the number of its bytes, and whether the
/// text was cut.
fn read_line(
    reader: &mut impl BufRead,
    text: &mut Vec<u8>,
    mut finder: Option<&mut Finder<'_>>,
) -> io::Result<(u64, bool)> {
    let (mut length, mut is_cut) = (0, false);
    loop {
        let bytes = reader.fill_buf()?;
        let newline = memchr::memchr(b'\n', bytes);
        let (end, is_whole) = match newline {
            Some(end) => (end + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        let content = &bytes[..newline.unwrap_or(end)];
        let kept = content.len().min(LONGEST.saturating_sub(text.len()));
        text.extend_from_slice(&content[..kept]);
        is_cut |= kept < content.len();
        if let Some(finder) = &mut finder {
            finder.feed(content);
        }
        reader.consume(end);
        length += end as u64;
        if is_whole {
            return Ok((length, is_cut));
        }
    }
}

/// The bytes of a line that are searched at once. They are more than those that are searched again ([`Finder::kept`]).
const SEARCHED: usize = 64 << 10;

/// Finds a text in lines of any length, in upper or lower case.
struct Finder<'a> {
    /// The text, in lower case.
    wanted: &'a str,
    /// The bytes of the line that were not searched yet, after those that may begin the text.
    window: Vec<u8>,
    is_found: bool,
}

impl<'a> Finder<'a> {
    fn new(wanted: &'a str) -> Finder<'a> {
        Finder { wanted, window: Vec::new(), is_found: false }
    }

    /// Takes the next bytes of a line.
    fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_found && !self.wanted.is_empty() {
            let (next, rest) = bytes.split_at(bytes.len().min(SEARCHED));
            self.window.extend_from_slice(next);
            bytes = rest;
            if self.window.len() >= SEARCHED {
                self.look();
                let kept = self.kept();
                self.window.drain(..kept);
            }
        }
    }

    /// Ends a line; returns whether it contains the text.
    fn end_line(&mut self) -> bool {
        self.window.truncate(self.window.trim_ascii_end().len());
        if !self.is_found {
            self.look();
        }
        self.window.clear();
        std::mem::take(&mut self.is_found)
    }

    fn look(&mut self) {
        let text = String::from_utf8_lossy(&self.window);
        self.is_found = text.to_lowercase().contains(self.wanted);
    }

    /// Returns the start of the bytes that are searched again together with the next ones. A character may have three
    /// times as many bytes as in lower case.
    fn kept(&self) -> usize {
        let start = self.window.len().saturating_sub(4 * self.wanted.len() + 8);
        let is_start = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
        // Not within a character.
        start + self.window[start..].iter().take(3).position(is_start).unwrap_or(0)
    }
}

async fn find(server: &Server, caller: &Caller, path: &str) -> Result<(Uuid, LogHash), Problem> {
    let id = id(path)?;
    caller.may_read(&[id])?;
    let sizes = server.store.file_sizes(id).await?;
    let held = server.room.take(sizes.last().map_or(0, |size| size.packed))?;
    let log = server.store.own_log(id).await?;
    drop(held);
    Ok((id, log.ok_or_else(|| no_log(id))?))
}

fn no_log(id: Uuid) -> Problem {
    not_found(&format!("The server does not have the log of run {id}."))
}

/// Returns the problem for a log that could not be read. A log whose run was deleted meanwhile has no fault.
async fn unread(server: &Server, id: Uuid, error: StoreError) -> Problem {
    let is_bad = matches!(error, StoreError::BadLog { .. });
    // A run's row is deleted before its log.
    if is_bad && matches!(server.store.log(id).await, Ok(None)) {
        return no_log(id);
    }
    error.into()
}
