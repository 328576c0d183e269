//! What the server takes, and how it reads what is sent: never more than that, and never waiting for ever.

use super::problem::Problem;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Who sends nothing for so long is gone.
const IDLE: Duration = Duration::from_secs(30);

/// Who sends less than this, over and over, keeps a connection from others.
const WHOLE_BODY: Duration = Duration::from_secs(5 * 60);

/// What zstd may need to remember: a frame that wants more is refused.
pub(super) const WINDOW_LOG: u32 = 27;

/// How many bytes of bodies are in memory at once, in pieces of [`ROOM_PIECE`]: 1 GiB.
pub(super) const ROOM: usize = 16 << 10;
const ROOM_PIECE: usize = 64 << 10;

/// A whole body of at most so many bytes, and the room that it takes. Only what has come takes any: who is slow takes none
/// from others.
pub(super) async fn whole(
    body: Body,
    most: usize,
    room: &Semaphore,
) -> Result<(Vec<u8>, SemaphorePermit<'_>), Problem> {
    let no_room = |_| {
        let detail = "the server has no room for more uploads at once: try again in a while";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        problem.with(header::RETRY_AFTER, HeaderValue::from(5))
    };
    let read = async {
        let mut all = Vec::new();
        let mut taken = room.try_acquire().map_err(no_room)?;
        let mut body = body;
        while let Some(piece) = next(&mut body).await? {
            if all.len() + piece.len() > most {
                return Err(too_large(most as u64));
            }
            while taken.num_permits() * ROOM_PIECE < all.len() + piece.len() {
                taken.merge(room.try_acquire().map_err(no_room)?);
            }
            all.extend_from_slice(&piece);
        }
        Ok((all, taken))
    };
    tokio::time::timeout(WHOLE_BODY, read).await.unwrap_or_else(|_| Err(too_slow()))
}

/// The next bytes of a body; none at its end.
pub(super) async fn next(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    loop {
        let frame = tokio::time::timeout(IDLE, body.frame()).await.map_err(|_| too_slow())?;
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => {
                // What is no data are trailers, and nobody reads them.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => {
                let detail = format!("the body broke off: {error}");
                return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
            }
        }
    }
}

/// Whether a body is compressed by zstd, the only coding that is taken.
pub(super) fn is_packed(headers: &HeaderMap) -> Result<bool, Problem> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or_default().trim()) {
        None | Some("" | "identity") => Ok(false),
        Some("zstd") => Ok(true),
        Some(_) => {
            let detail = "send the body as it is, or with `Content-Encoding: zstd`";
            Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail))
        }
    }
}

/// What a body compressed by zstd holds: at most so many bytes, however well they were compressed.
pub(super) fn unpacked(packed: &[u8], most: usize) -> Result<Vec<u8>, Problem> {
    let torn =
        |error| Problem::new(StatusCode::BAD_REQUEST, format!("the body can't be read as zstd: {error}"));
    let mut decoder = zstd::Decoder::new(packed).map_err(torn)?;
    decoder.window_log_max(WINDOW_LOG).map_err(torn)?;
    let mut all = Vec::new();
    decoder.take(most as u64 + 1).read_to_end(&mut all).map_err(torn)?;
    if all.len() > most {
        return Err(too_large(most as u64));
    }
    Ok(all)
}

/// Holds a body to the hash that was sent with it (RFC 9530).
pub(super) fn check_digest(headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
    const HOW: &str = "send `Content-Digest: sha-256=:BASE64:` over the bytes of the body (RFC 9530)";
    let refuse = |what: &str| Problem::new(StatusCode::BAD_REQUEST, format!("{what}: {HOW}"));
    let header = headers.get("content-digest").ok_or_else(|| refuse("the body has no hash"))?;
    let digest = header.to_str().unwrap_or_default().split(',').find_map(|item| {
        let value = item.trim().strip_prefix("sha-256=:")?.strip_suffix(':')?;
        BASE64_STANDARD.decode(value).ok()
    });
    let digest = digest.ok_or_else(|| refuse("the body's hash can't be read"))?;
    if digest.as_slice() != Sha256::digest(body).as_slice() {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "the body is not the one that was hashed: send it again",
        ));
    }
    Ok(())
}

pub(super) fn too_large(most: u64) -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("this server takes at most {most} bytes of it: see /api/v1/limits"),
    )
}

fn too_slow() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long to come")
}
