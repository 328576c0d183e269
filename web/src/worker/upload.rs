//! What was dropped, on its way to the server: each result, then its raw log, as the command line sends them.

use super::{files, scope, server};
use crate::message::{Trouble, Uploaded};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use trainplan_shared::result::{RunResult, write};
use web_sys::File;

/// So much of a log is sent at a time: what arrived stays when the connection breaks.
const PIECE: f64 = 8.0 * 1024.0 * 1024.0;

/// What the server says of a result.
#[derive(Deserialize)]
struct Put {
    outcome: String,
    log: Arrived,
}

/// How much of a log it has.
#[derive(Deserialize)]
struct Arrived {
    offset: f64,
    complete: bool,
}

/// Sends everything that is worth keeping. What the server has already stays as it is there.
pub(super) async fn upload() -> Result<Uploaded, Trouble> {
    let mut uploaded = Uploaded::default();
    for (run, log) in files::worth_keeping() {
        match send(&run, log.as_ref()).await {
            Ok(is_new) => {
                let count = if is_new { &mut uploaded.new } else { &mut uploaded.known };
                *count += 1;
                files::note(&run.id.to_string(), true);
            }
            Err(Trouble::Other(why)) => uploaded.refused.push(format!("{}: {why}", run.source.path)),
            Err(trouble @ Trouble::SignIn(_)) => return Err(trouble),
            // Nothing else would arrive either.
            Err(_) => {
                let path = &run.source.path;
                uploaded
                    .refused
                    .push(format!("{path}: the server did not answer; upload again, and it goes on there"));
                break;
            }
        }
    }
    Ok(uploaded)
}

/// Sends one; whether any of it was new to the server.
async fn send(run: &RunResult, log: Option<&File>) -> Result<bool, Trouble> {
    let other = |error: &dyn std::fmt::Display| Trouble::Other(error.to_string());
    let text = write(run).map_err(|error| other(&error))?;
    // The browser's own digest is there on https and localhost only. Its base64 takes a character for each byte.
    let sha256: String = Sha256::digest(text.as_bytes()).iter().map(|byte| char::from(*byte)).collect();
    let sha256 = scope().btoa(&sha256).map_err(|_| other(&"the browser can't write the result's digest"))?;
    let digest = format!("sha-256=:{sha256}:");
    let headers = [("Content-Type", "application/json"), ("Content-Digest", digest.as_str())];
    let path = format!("/runs/{}", run.id);
    let Put { outcome, log: mut there } = server::put(&path, text.as_str().into(), &headers).await?;
    let mut is_new = outcome == "new";
    let Some(log) = log else { return Ok(is_new) };
    let path = format!("{path}/log");
    while !there.complete {
        is_new = true;
        let end = (there.offset + PIECE).min(log.size());
        let piece = log
            .slice_with_f64_and_f64(there.offset, end)
            .map_err(|_| other(&"the browser can't read the log any more"))?;
        let is_last = end >= log.size();
        let offset = there.offset.to_string();
        let complete = if is_last { "?1" } else { "?0" };
        let headers = [("Upload-Offset", offset.as_str()), ("Upload-Complete", complete)];
        let before = there.offset;
        there = server::put(&path, piece.into(), &headers).await?;
        if !there.complete && (is_last || there.offset <= before) {
            return Err(other(&"the server did not take the log: upload it again"));
        }
    }
    Ok(is_new)
}
