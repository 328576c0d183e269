//! Uploads dropped files: each result, then its raw log, as the command line does.

use super::files::{DroppedLog, KeptRun};
use super::{files, post, runs, scope, server};
use crate::message::results::ForPage;
use crate::message::{RequestError, UploadProgress, UploadSummary};
use sha2::{Digest, Sha256};
use trainplan_shared::api::{LogProgress, UploadOutcome, UploadedRun};
use trainplan_shared::result::{RunResult, write};
use trainplan_shared::spec::Spec;
use wasm_bindgen_futures::JsFuture;
use web_sys::Blob;
use web_sys::js_sys::Promise;

/// The size of a piece of a log, in bytes. Pieces that arrived are kept if the connection is lost.
const PIECE: f64 = 4.0 * 1024.0 * 1024.0;

/// The pauses before retries after a lost connection, in milliseconds.
const PAUSES: [i32; 3] = [1_000, 2_000, 4_000];

/// Uploads every result with steps under the scenario that the user set, and shows which ones the server has. Corrects results
/// that the server has under another scenario, if the user may.
pub(super) async fn upload() -> Result<UploadSummary, RequestError> {
    let uploaded = send_all().await;
    files::show();
    uploaded
}

async fn send_all() -> Result<UploadSummary, RequestError> {
    let mut uploaded = UploadSummary::default();
    let kept = files::worth_keeping();
    let size = |log: &Option<DroppedLog>| log.as_ref().map_or(0.0, DroppedLog::size);
    let bytes = kept.iter().map(|one| size(&one.log)).sum();
    let mut progress = UploadMeter { file: 0, files: kept.len(), bytes, before: 0.0, there: 0.0 };
    for KeptRun { run, said, log, is_of_campaign } in kept {
        progress.file += 1;
        progress.tell(0.0);
        if is_of_campaign {
            uploaded.known += 1;
            progress.before += size(&log);
            continue;
        }
        let mut sent = send(&run, log.as_ref(), &mut progress).await;
        let mut is_corrected = false;
        // The server has the run, but not as a run of what the user set.
        if matches!(sent, Err(RequestError::Other(_))) && said != Spec::default() {
            let id = run.id.to_string();
            if runs::summary(&id).await.is_ok() {
                is_corrected = true;
                sent = runs::rescore(&id, &said).await.map(|()| false).map_err(|error| match error {
                    RequestError::Other(why) => {
                        RequestError::Other(format!("on the server it has another recipe. {why}"))
                    }
                    other => other,
                });
            }
        }
        match sent {
            Ok(is_new) => {
                let count = match (is_new, is_corrected) {
                    (true, _) => &mut uploaded.new,
                    (_, true) => &mut uploaded.corrected,
                    _ => &mut uploaded.known,
                };
                *count += 1;
                // Without a scenario, a run belongs to no time line.
                if (is_new || is_corrected)
                    && let Err(problems) = run.identity.scenario.scenario()
                {
                    uploaded.without_scenario.push(run.source.path.clone());
                    for problem in problems {
                        let label = problem.field.label();
                        if !uploaded.lacking.iter().any(|known| known == label) {
                            uploaded.lacking.push(label.to_string());
                        }
                    }
                }
                files::note(&run.id.to_string(), true);
            }
            Err(RequestError::Other(why)) => uploaded.refused.push(format!("{}: {why}", run.source.path)),
            Err(trouble @ RequestError::SignIn(_)) => return Err(trouble),
            // Nothing else would arrive either.
            Err(_) => {
                let path = &run.source.path;
                uploaded
                    .refused
                    .push(format!("{path}: the server did not answer. Upload again to continue."));
                break;
            }
        }
        progress.before += size(&log);
    }
    Ok(uploaded)
}

/// The progress of an upload.
struct UploadMeter {
    /// The number of the current file, from 1, and of all files.
    file: usize,
    files: usize,
    /// The bytes of all logs, of the finished ones, and of the current one that arrived.
    bytes: f64,
    before: f64,
    there: f64,
}

impl UploadMeter {
    /// Reports how many bytes of the current log arrived.
    fn tell(&mut self, there: f64) {
        self.there = there;
        self.post(false);
    }

    fn post(&self, is_broken: bool) {
        // Only logs count, because results are tiny in comparison.
        let percent = ((self.before + self.there) / self.bytes.max(1.0) * 100.0).min(100.0);
        let UploadMeter { file, files, .. } = *self;
        post(&ForPage::UploadProgress(UploadProgress { file, files, percent: percent as u32, is_broken }));
    }
}

/// Uploads a result and its log, and returns whether any of it was new. Retries after a lost connection, until nothing
/// more arrives.
async fn send(
    run: &RunResult,
    log: Option<&DroppedLog>,
    progress: &mut UploadMeter,
) -> Result<bool, RequestError> {
    let log = match log {
        Some(log) => Some(log.text().await.map_err(RequestError::Other)?),
        None => None,
    };
    let mut is_new = false;
    let mut pauses = PAUSES.iter();
    loop {
        let before = progress.there;
        match send_rest(run, log.as_ref(), progress, &mut is_new).await {
            Err(RequestError::NoNetwork) => {
                if progress.there > before {
                    pauses = PAUSES.iter();
                }
                let pause = pauses.next().ok_or(RequestError::NoNetwork)?;
                progress.post(true);
                wait(*pause).await;
            }
            sent => return sent.map(|()| is_new),
        }
    }
}

/// Uploads what the server lacks, until the connection is lost.
async fn send_rest(
    run: &RunResult,
    log: Option<&Blob>,
    progress: &mut UploadMeter,
    is_new: &mut bool,
) -> Result<(), RequestError> {
    let other = |error: &dyn std::fmt::Display| RequestError::Other(error.to_string());
    let text = write(run).map_err(|error| other(&error))?;
    // The browser's own digest is there on https and localhost only. Its base64 takes a character for each byte.
    let sha256: String = Sha256::digest(text.as_bytes()).iter().map(|byte| char::from(*byte)).collect();
    let sha256 =
        scope().btoa(&sha256).map_err(|_| other(&"The browser couldn't compute the result's digest."))?;
    let digest = format!("sha-256=:{sha256}:");
    let headers = [("Content-Type", "application/json"), ("Content-Digest", digest.as_str())];
    let path = format!("/runs/{}", run.id);
    let uploaded: UploadedRun = server::put(&path, text.as_str().into(), &headers).await?;
    *is_new |= uploaded.outcome == UploadOutcome::New;
    let Some(log) = log else { return Ok(()) };
    let path = format!("{path}/log");
    let mut there = uploaded.log.progress;
    while !there.complete {
        *is_new = true;
        let begin = there.offset as f64;
        progress.tell(begin);
        let end = (begin + PIECE).min(log.size());
        let piece = log
            .slice_with_f64_and_f64(begin, end)
            .map_err(|_| other(&"The browser can no longer read the log."))?;
        let is_last = end >= log.size();
        let offset = there.offset.to_string();
        let complete = if is_last { "?1" } else { "?0" };
        let headers = [("Upload-Offset", offset.as_str()), ("Upload-Complete", complete)];
        let before = there.offset;
        there = server::put::<LogProgress>(&path, piece.into(), &headers).await?;
        if !there.complete && (is_last || there.offset <= before) {
            return Err(other(&"The server did not accept the log. Upload it again."));
        }
    }
    Ok(())
}

async fn wait(milliseconds: i32) {
    let passed = Promise::new(&mut |resolve, _| {
        let _ = scope().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, milliseconds);
    });
    let _ = JsFuture::from(passed).await;
}
