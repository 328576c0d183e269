//! Reads bodies of requests within limits of size, memory and time.

use super::problem::Problem;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use trainplan_shared::result::{LONGEST_NAME, LONGEST_PATH, LONGEST_SCENARIO};

/// The longest pause within a body.
const IDLE: Duration = Duration::from_secs(30);

/// The longest time that a whole body may take, so that slow clients don't block connections. A large body has a
/// second more for each [`SLOWEST`] bytes.
const WHOLE_BODY: Duration = Duration::from_secs(5 * 60);
const SLOWEST: u64 = 64 << 10;

/// The largest zstd window, as a power of two: frames with larger ones are refused.
pub(super) const WINDOW_LOG: u32 = 27;

/// The memory for all bodies together, in pieces of [`ROOM_PIECE`]: 1 GiB.
pub(super) const ROOM: usize = 16 << 10;
const ROOM_PIECE: usize = 64 << 10;

/// Returns the most bytes of a query parameter's value.
pub(super) fn longest_value(name: &str) -> usize {
    match name {
        "line" => LONGEST_SCENARIO,
        "recipe" | "cluster" | "campaign" | "status" | "sort" | "since" | "until" | "cursor" | "window"
        | "convention" => LONGEST_NAME,
        _ => LONGEST_PATH,
    }
}

/// Reads a body of at most `most` bytes; returns it with a permit for its memory. Only received bytes need a
/// permit, so slow clients don't block others.
pub(super) async fn read_body(
    body: Body,
    most: usize,
    room: &Semaphore,
) -> Result<(Vec<u8>, SemaphorePermit<'_>), Problem> {
    let no_room = |_| {
        let detail = "The server is receiving too many uploads. Try again in a few seconds.";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        problem.with(header::RETRY_AFTER, 5)
    };
    let mut all = Vec::new();
    let mut taken = room.try_acquire().map_err(no_room)?;
    let mut body = TimedBody::new(body);
    while let Some(piece) = body.next().await? {
        if all.len() + piece.len() > most {
            return Err(too_large(most as u64));
        }
        while taken.num_permits() * ROOM_PIECE < all.len() + piece.len() {
            taken.merge(room.try_acquire().map_err(no_room)?);
        }
        all.extend_from_slice(&piece);
    }
    Ok((all, taken))
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
    match headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or_default().trim()) {
        None | Some("" | "identity") => Ok(false),
        Some("zstd") => Ok(true),
        Some(_) => {
            let detail = "The body has an unknown Content-Encoding. Send it uncompressed or with zstd.";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// Decompresses a zstd body of at most `most` bytes when decompressed.
pub(super) fn decompress(packed: &[u8], most: usize) -> Result<Vec<u8>, Problem> {
    let torn = |error| Problem::new(StatusCode::BAD_REQUEST, format!("The body is not valid zstd: {error}."));
    let mut decoder = zstd::Decoder::new(packed).map_err(torn)?;
    decoder.window_log_max(WINDOW_LOG).map_err(torn)?;
    let mut all = Vec::new();
    decoder.take(most as u64 + 1).read_to_end(&mut all).map_err(torn)?;
    if all.len() > most {
        return Err(too_large(most as u64));
    }
    Ok(all)
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
