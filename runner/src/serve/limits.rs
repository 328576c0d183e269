//! Reads bodies of requests within limits of size, memory and time.

use super::problem::Problem;
use crate::store::{FileSize, StoreError, WINDOW_LOG};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::stream::unfold;
use http_body_util::BodyExt;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::convert::Infallible;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trainplan_shared::result::count_parts;

/// The longest pause within a body.
const IDLE: Duration = Duration::from_secs(30);

/// The longest time that a whole body may take, so that slow clients don't block connections. A large body has a
/// second more for each [`SLOWEST`] bytes.
const WHOLE_BODY: Duration = Duration::from_secs(5 * 60);
const SLOWEST: u64 = 64 << 10;

/// A compressed body may have this many times its size when decompressed, and in any case [`FREE`] bytes.
pub(super) const EXPANSION: usize = 256;
const FREE: usize = 4 << 20;

/// The memory that a stored result takes while it is read, as a multiple of its file's size.
const READING: usize = 3;

/// The memory that a received result takes while it is read and compressed, as a multiple of its file's size, without its parts.
const RECEIVING: usize = 2;

/// The memory that each text, list and object takes in addition while a result is read, in bytes. An empty text has two bytes in
/// the file.
const READING_PART: usize = 64;

/// The memory that each number of a list takes while a result is read: that of an `Option<f64>`, in bytes. A digit and its comma
/// have two bytes in the file.
const READING_NUMBER: usize = size_of::<Option<f64>>();

/// The memory for all bodies, results and answers together, in pieces of [`ROOM_PIECE`]: 256 MiB.
const ROOM: usize = 4 << 10;
const ROOM_PIECE: usize = 64 << 10;

/// The memory that requests share. It limits all requests together, so that many large ones can't exceed the
/// machine's memory.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<Semaphore>);

/// Memory that a request holds until this is dropped.
#[derive(Debug)]
pub(super) struct HeldRoom {
    room: Room,
    taken: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new() -> Room {
        Room(Arc::new(Semaphore::new(ROOM)))
    }

    /// Returns the room for content that is decompressed while it is sent. It is separate, because slow readers hold it
    /// for long.
    pub(super) fn of_streams() -> Room {
        Room(Arc::new(Semaphore::new(ROOM / 2)))
    }

    /// Takes room for some bytes.
    ///
    /// # Errors
    /// Other requests hold it: 503.
    pub(super) fn take(&self, bytes: usize) -> Result<HeldRoom, Problem> {
        // Content larger than the whole room may take all of it.
        let pieces = bytes.div_ceil(ROOM_PIECE).clamp(1, ROOM);
        let taken = Arc::clone(&self.0).try_acquire_many_owned(pieces as u32);
        Ok(HeldRoom { room: self.clone(), taken: taken.map_err(|_| no_room())? })
    }

    /// Takes room for reading stored results of these sizes, which stay in memory together.
    pub(super) fn take_for_reading(&self, sizes: &[FileSize]) -> Result<HeldRoom, Problem> {
        self.take(sizes.iter().copied().map(for_reading).fold(0, usize::saturating_add))
    }
}

/// Returns the memory that reading a stored result takes.
fn for_reading(size: FileSize) -> usize {
    size.packed.saturating_add(size.raw.saturating_mul(1 + READING))
}

impl HeldRoom {
    /// Takes more, so that it is room for these bytes in all.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let held = self.taken.num_permits() * ROOM_PIECE;
        if bytes > held && self.taken.num_permits() < ROOM {
            let most = ROOM - self.taken.num_permits();
            self.taken.merge(self.room.take((bytes - held).min(most * ROOM_PIECE))?.taken);
        }
        Ok(())
    }
}

/// Returns a value as a JSON answer, which holds room until it is sent.
pub(super) fn held_json(value: &impl Serialize, room: &Room) -> Result<Response, Problem> {
    held_bytes(serde_json::to_vec(value).map_err(Problem::broken)?.into(), room)
}

/// Returns JSON as an answer, which holds room until it is sent.
pub(super) fn held_bytes(json: Bytes, room: &Room) -> Result<Response, Problem> {
    let held = room.take(json.len())?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_LENGTH, HeaderValue::from(json.len())),
    ];
    Ok((headers, held_body(json, held)).into_response())
}

/// Makes a body of bytes that is sent in pieces, and holds room for them until the last one.
pub(super) fn held_body(bytes: Bytes, held: HeldRoom) -> Body {
    Body::from_stream(unfold((bytes, held), async |(mut rest, held)| {
        let piece = rest.split_to(rest.len().min(ROOM_PIECE));
        (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (rest, held)))
    }))
}

/// Reads a body of at most `most` bytes; returns it with the room that it takes. Only received bytes need room,
/// so slow clients don't block others.
pub(super) async fn read_body(body: Body, most: usize, room: &Room) -> Result<(Vec<u8>, HeldRoom), Problem> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > most {
        return Err(too_large(most as u64));
    }
    // Memory is used once it is written to. A vector that grows is copied, which takes twice its size.
    let mut all = Vec::new();
    all.try_reserve_exact(declared).map_err(|_| no_room())?;
    let mut held = room.take(0)?;
    let mut body = TimedBody::new(body);
    while let Some(piece) = body.next().await? {
        if all.len() + piece.len() > most {
            return Err(too_large(most as u64));
        }
        held.grow(all.len() + piece.len())?;
        all.extend_from_slice(&piece);
    }
    Ok((all, held))
}

/// A body that is read within limits of time.
pub(super) struct TimedBody {
    body: Body,
    begun: Instant,
    received: u64,
}

impl TimedBody {
    pub(super) fn new(body: Body) -> TimedBody {
        TimedBody { body, begun: Instant::now(), received: 0 }
    }

    /// Returns the next bytes; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let whole = WHOLE_BODY + Duration::from_secs(self.received / SLOWEST);
            let left = whole.saturating_sub(self.begun.elapsed()).min(IDLE);
            let frame = tokio::time::timeout(left, self.body.frame()).await.map_err(|_| too_slow())?;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    // Other frames are trailers, which are ignored.
                    if let Ok(data) = frame.into_data() {
                        self.received += data.len() as u64;
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    let detail = format!("The body ended early: {error}. Send it again.");
                    return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
                }
            }
        }
    }
}

/// Returns whether a body is compressed with zstd, the only accepted coding.
pub(super) fn is_compressed(headers: &HeaderMap) -> Result<bool, Problem> {
    let codings: Vec<&str> = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .map(|value| value.to_str().unwrap_or("?").trim())
        .filter(|coding| !matches!(*coding, "" | "identity"))
        .collect();
    match codings[..] {
        [] => Ok(false),
        ["zstd"] => Ok(true),
        _ => {
            let detail = "The body has an unknown Content-Encoding. Send it uncompressed or with zstd.";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// Refuses a compressed body of an operation whose bodies are always small.
pub(super) fn refuse_compressed(headers: &HeaderMap) -> Result<(), Problem> {
    match is_compressed(headers) {
        Ok(false) => Ok(()),
        Ok(true) | Err(_) => {
            let detail = "This operation does not accept a Content-Encoding. Send the body uncompressed.";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// Decompresses a zstd body of at most `most` bytes when decompressed, and takes room for it.
pub(super) fn decompress(packed: &[u8], most: usize, held: &mut HeldRoom) -> Result<Vec<u8>, Problem> {
    let torn = |error| Problem::new(StatusCode::BAD_REQUEST, format!("The body is not valid zstd: {error}."));
    let mut decoder = zstd::Decoder::new(packed).map_err(torn)?;
    decoder.window_log_max(WINDOW_LOG).map_err(torn)?;
    let expanded = packed.len().saturating_mul(EXPANSION).max(FREE);
    let bound = most.min(expanded);
    let mut all = Vec::new();
    let mut piece = vec![0; ROOM_PIECE];
    loop {
        let count = decoder.read(&mut piece).map_err(torn)?;
        if count == 0 {
            return Ok(all);
        }
        if all.len() + count > bound {
            return Err(if bound == most { too_large(most as u64) } else { too_dense(packed.len(), bound) });
        }
        held.grow(packed.len() + all.len() + count)?;
        all.extend_from_slice(&piece[..count]);
    }
}

/// Takes the room for reading a received result beside the stored ones of its id.
///
/// # Errors
/// Other requests hold the room: 503. The result has more texts, lists, objects or numbers than any that is accepted: 422.
pub(super) fn grow_for_reading(held: &mut HeldRoom, file: &[u8], stored: &[FileSize]) -> Result<(), Problem> {
    let parts = count_parts(file).map_err(StoreError::from)?;
    // While a list grows, its numbers are copied into one of twice the size.
    let numbers = (parts.commas + parts.longest_row) * READING_NUMBER;
    let reading =
        file.len().saturating_mul(RECEIVING) + parts.text_bytes + parts.values * READING_PART + numbers;
    held.grow(stored.iter().copied().map(for_reading).fold(reading, usize::saturating_add))
}

fn no_room() -> Problem {
    let detail = "The server is processing too many large requests. Try again in a few seconds.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(header::RETRY_AFTER, 5)
}

fn too_dense(packed: usize, bound: usize) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "The body decompresses from {packed} bytes to more than {bound}: at most {EXPANSION} times its size is \
             accepted. Send it uncompressed."
        ),
    )
}

/// Compares a body with the hash that was sent with it (RFC 9530).
pub(super) fn check_digest(headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
    const HOW: &str = "Send Content-Digest: sha-256=:BASE64: with the hash of the body's bytes (RFC 9530).";
    let refuse = |what: &str| Problem::new(StatusCode::BAD_REQUEST, format!("{what} {HOW}"));
    let header =
        headers.get("content-digest").ok_or_else(|| refuse("The header Content-Digest is missing."))?;
    let digest = header.to_str().unwrap_or_default().split(',').find_map(|item| {
        let value = item.trim().strip_prefix("sha-256=:")?.strip_suffix(':')?;
        BASE64_STANDARD.decode(value).ok()
    });
    let digest = digest.ok_or_else(|| refuse("The header Content-Digest has no valid sha-256."))?;
    if digest.as_slice() != Sha256::digest(body).as_slice() {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "The body does not match its Content-Digest. Send it again.",
        ));
    }
    Ok(())
}

pub(super) fn too_large(most: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("The body is too large: the server accepts at most {most} bytes (GET /api/v1/limits)."),
    )
}

fn too_slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "The body took too long to arrive. Send it again, or use a faster connection.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the memory that is reserved for a result with these columns, in bytes.
    fn reserved(columns: &[(&str, usize)]) -> usize {
        let column =
            |(figure, steps): &(&str, usize)| format!("[{}null]", format!("{figure},").repeat(steps - 1));
        let file = columns.iter().map(column).collect::<Vec<_>>().join(",");
        let mut held = Room::new().take(0).unwrap();
        grow_for_reading(&mut held, file.as_bytes(), &[]).unwrap();
        held.taken.num_permits() * ROOM_PIECE
    }

    #[test]
    fn the_memory_of_long_lists_of_numbers_is_reserved() {
        let columns = [("0", 400_000); 10];
        let numbers: usize = columns.iter().map(|(_, steps)| steps).sum();
        let reserved = reserved(&columns);
        assert!(reserved >= numbers * (size_of::<Option<f64>>() + "0,".len()), "{reserved} bytes");
    }

    #[test]
    fn a_run_of_500_000_steps_leaves_room_for_others() {
        let figures = [
            "500000",
            "12.345",
            "2.345678",
            "0.987654",
            "712.3",
            "12345.6",
            "0.41230000000000006",
            "72567521280.512",
            "72567521280.512",
            "512000000.0",
            "1024.0",
        ];
        let reserved = reserved(&figures.map(|figure| (figure, 500_000)));
        assert!(reserved < ROOM * ROOM_PIECE * 9 / 10, "{reserved} bytes");
    }
}
