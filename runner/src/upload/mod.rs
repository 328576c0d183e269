//! Sends results, logs and progress to a results server.
//!
//! Uploading the same twice has no effect on a server, so everything that was, or may have been, interrupted
//! is sent again.

mod log;
mod outbox;
mod progress;
#[cfg(test)]
mod tests;

pub(crate) use log::RawLog;
pub(crate) use outbox::{Outbox, SendUpdate, Sent, send_due, send_stored, settle};
pub(crate) use progress::ProgressReporter;

use crate::secrets::{self, SecretError};
use crate::store::StoreError;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use log::Piece;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url, redirect};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trainplan_shared::api::{LogProgress, ProblemDetails, RunProgress, UploadOutcome, UploadedRun};
use trainplan_shared::campaign::{Secret, Server, Upload};
use trainplan_shared::text::printable;
use uuid::Uuid;

/// The time to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The time to wait for an answer, in addition to the time for the body at the lowest accepted speed.
const ANSWER: Duration = Duration::from_secs(60);
const SLOWEST_BYTES_PER_S: u64 = 64 << 10;

/// The first pause between two attempts; later pauses double.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest pause, even if a server asks for a longer one.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The largest answer in bytes.
const LONGEST_ANSWER: usize = 64 << 10;

/// The compression level of zstd. Higher levels save little and take much longer.
const LEVEL: i32 = 3;

/// Why an upload failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// The server does not answer, or is busy: it may work later.
    #[error("{to} can't be reached: {why}")]
    Unreachable {
        /// The server.
        to: String,
        /// The reason.
        why: String,
        /// The pause that the server asks for.
        wait: Option<Duration>,
    },
    /// The server answered that it failed: it may work later.
    #[error("{to} failed: {why}")]
    Failed {
        /// The server.
        to: String,
        /// The server's reason.
        why: String,
        /// The pause that the server asks for.
        wait: Option<Duration>,
    },
    /// The server accepts nothing with this token at the moment.
    #[error("{to} refuses the upload: {why}")]
    Denied {
        /// The server.
        to: String,
        /// The server's reason.
        why: String,
    },
    /// The server has another result under the id.
    #[error("{0}")]
    Conflict(String),
    /// The run was deleted on the server.
    #[error("{0}")]
    Deleted(String),
    /// The server will never accept this.
    #[error("{0}")]
    Refused(String),
    /// The log can't be read.
    #[error("Can't read the log: {0}.")]
    Log(#[from] io::Error),
    /// The result can't be read from the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The token can't be found.
    #[error(transparent)]
    Token(#[from] SecretError),
}

impl UploadError {
    /// Returns whether the same upload would always fail in this way.
    fn is_final(&self) -> bool {
        matches!(self, UploadError::Conflict(_) | UploadError::Deleted(_) | UploadError::Refused(_))
    }
}

/// A results server with a token for it. It has no Debug, because it contains the secret.
#[derive(Clone)]
pub(crate) struct Remote {
    client: Client,
    to: String,
    token: String,
    /// The number of attempts before a server is given up.
    attempts: u32,
    /// The first pause between two attempts.
    pause: Duration,
    /// Counts answers, so that a silent server is noticed.
    answers: Arc<AtomicU64>,
}

/// How much of a log the server has.
enum ServerLog {
    /// All of it.
    Complete,
    /// This many raw bytes.
    Partial(u64),
    /// This many raw bytes; another client or an interrupted request sent some of them.
    Foreign(u64),
}

impl Remote {
    /// Returns a client of a server.
    pub(crate) fn new(to: &Server, token: &str) -> Result<Remote, UploadError> {
        let to = to.as_str().trim_end_matches('/').to_owned();
        crate::tls::ready();
        let mut client = Client::builder()
            .user_agent(concat!("trainplan/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            // A redirect would send the token to another server.
            .redirect(redirect::Policy::none());
        if !to.starts_with("https://") {
            // Without TLS, the system's certificates are not needed.
            client = client.tls_certs_only([]);
        }
        if is_loopback(&to) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| UploadError::Unreachable {
            to: to.clone(),
            why: format!("{}. Install ca-certificates, or set SSL_CERT_FILE", cause(&error)),
            wait: None,
        })?;
        Ok(Remote { client, to, token: token.to_owned(), attempts: 1, pause: PAUSE, answers: Arc::default() })
    }

    /// Returns a client that makes this many attempts.
    pub(crate) fn with_attempts(self, attempts: u32) -> Remote {
        Remote { attempts, ..self }
    }

    /// Returns a client that counts answers there.
    fn counting(self, answers: &Arc<AtomicU64>) -> Remote {
        Remote { answers: Arc::clone(answers), ..self }
    }

    /// Uploads a result: its file, compressed with zstd.
    pub(crate) async fn put_result(&self, id: Uuid, packed: Bytes) -> Result<UploadOutcome, UploadError> {
        let digest = format!("sha-256=:{}:", BASE64_STANDARD.encode(Sha256::digest(&packed)));
        let mut patience = self.patience();
        loop {
            let request = self.request(Method::PUT, &format!("runs/{id}"), packed.len() as u64);
            let request = request
                .header(CONTENT_TYPE, "application/json")
                .header(CONTENT_ENCODING, "zstd")
                .header("content-digest", &digest)
                .body(packed.clone());
            let answered = match self.answer(request).await {
                Ok(response) => self.read::<UploadedRun>(response).await,
                Err(error) => Err(error),
            };
            match answered {
                Ok(uploaded) => return Ok(uploaded.outcome),
                Err(error) => patience.wait(error).await?,
            }
        }
    }

    /// Uploads the raw log of an uploaded result, from where the server's part ends. Returns whether anything
    /// was sent.
    pub(crate) async fn put_log(&self, id: Uuid, log: &mut RawLog) -> Result<bool, UploadError> {
        let mut patience = self.patience();
        let (mut at, mut furthest, mut sent, mut foreign) = (None, 0, false, false);
        loop {
            let step = match at {
                None => self.log_state(id, sent).await,
                Some(offset) => match log.piece(offset).await {
                    Ok(piece) => {
                        sent = true;
                        self.put_piece(id, offset, piece).await
                    }
                    Err(error) => Err(error.into()),
                },
            };
            match step {
                Ok(ServerLog::Complete) => return Ok(sent),
                Ok(ServerLog::Partial(offset) | ServerLog::Foreign(offset)) => {
                    foreign |= matches!(step, Ok(ServerLog::Foreign(_)));
                    if offset > furthest {
                        (furthest, patience) = (offset, self.patience());
                    } else if at.is_some() {
                        patience.no_progress(|| self.no_server())?;
                    }
                    at = Some(offset);
                }
                // The server discarded a log that contained foreign bytes: send it again.
                Err(UploadError::Refused(_)) if foreign => (at, furthest, foreign) = (None, 0, false),
                Err(error) => {
                    patience.wait(error).await?;
                    // The server may still store bytes of the interrupted request.
                    (at, foreign) = (None, true);
                }
            }
        }
    }

    /// Asks how much of a log the server has. If this call sent nothing, it is foreign.
    async fn log_state(&self, id: Uuid, sent: bool) -> Result<ServerLog, UploadError> {
        let response = self.answer(self.request(Method::HEAD, &format!("runs/{id}/log"), 0)).await?;
        match (header(&response, "upload-complete"), offset(&response)) {
            (Some("?1"), _) => Ok(ServerLog::Complete),
            (Some("?0"), Some(offset @ 1..)) if !sent => Ok(ServerLog::Foreign(offset)),
            (Some("?0"), Some(offset)) => Ok(ServerLog::Partial(offset)),
            _ => Err(self.no_server()),
        }
    }

    async fn put_piece(&self, id: Uuid, offset: u64, piece: Piece) -> Result<ServerLog, UploadError> {
        let request = self.request(Method::PUT, &format!("runs/{id}/log"), piece.packed.len() as u64);
        let request = request
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_ENCODING, "zstd")
            .header("upload-offset", offset)
            .header("upload-complete", if piece.is_last { "?1" } else { "?0" })
            .body(piece.packed);
        let response = self.response(request).await?;
        if let (StatusCode::CONFLICT, Some(there)) = (response.status(), self::offset(&response)) {
            return Ok(ServerLog::Foreign(there));
        }
        let arrived: LogProgress = self.read(self.checked(response).await?).await?;
        Ok(if arrived.complete { ServerLog::Complete } else { ServerLog::Partial(arrived.offset) })
    }

    /// Reports the progress of a run, in one attempt.
    pub(crate) async fn post_progress(&self, id: Uuid, progress: &RunProgress) -> Result<(), UploadError> {
        let body = serde_json::to_vec(progress).map_err(|error| UploadError::Refused(error.to_string()))?;
        let request = self.request(Method::POST, &format!("runs/{id}/progress"), body.len() as u64);
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        self.answer(request.timeout(CONNECT)).await.map(drop)
    }

    fn request(&self, method: Method, path: &str, bytes: u64) -> RequestBuilder {
        let timeout = ANSWER + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S);
        let request = self.client.request(method, format!("{}/api/v1/{path}", self.to));
        request.bearer_auth(&self.token).timeout(timeout)
    }

    /// Sends a request; returns a successful answer.
    async fn answer(&self, request: RequestBuilder) -> Result<Response, UploadError> {
        self.checked(self.response(request).await?).await
    }

    /// Sends a request; returns any answer.
    async fn response(&self, request: RequestBuilder) -> Result<Response, UploadError> {
        let response = request.send().await.map_err(|error| self.unreachable(cause(&error), None))?;
        self.answers.fetch_add(1, Ordering::Relaxed);
        Ok(response)
    }

    /// Returns the answer if it is successful, otherwise the error that it contains.
    async fn checked(&self, response: Response) -> Result<Response, UploadError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let place = header(&response, LOCATION.as_str()).unwrap_or("somewhere else");
            return Err(self.denied(format!("it redirects to {place}. Use that address")));
        }
        let wait = header(&response, RETRY_AFTER.as_str()).and_then(|seconds| seconds.parse().ok());
        let wait = wait.map(Duration::from_secs);
        let body = self.body(response).await.unwrap_or_default();
        let problem = serde_json::from_slice::<ProblemDetails>(&body);
        let is_known = problem.is_ok();
        let why =
            problem.map_or_else(|_| format!("it answers {status}"), |problem| shortened(&problem.detail));
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.denied(why),
            StatusCode::TOO_MANY_REQUESTS if wait.is_none() => self.denied(why),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => self.unreachable(why, wait),
            // A proxy answers these while it can't reach the server, and the server 503 while it is busy.
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                self.unreachable(why, wait)
            }
            _ if status.is_server_error() => UploadError::Failed { to: self.to.clone(), why, wait },
            // The answer is not from a Trainplan server, but perhaps from a proxy in front of one.
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED if !is_known => {
                self.denied(format!("{why}. Use the server's address, without the path of a page"))
            }
            _ if !is_known => self.denied(why),
            StatusCode::CONFLICT => UploadError::Conflict(why),
            StatusCode::GONE => UploadError::Deleted(why),
            _ => UploadError::Refused(why),
        })
    }

    /// Reads an answer's JSON.
    async fn read<T: for<'de> Deserialize<'de>>(&self, response: Response) -> Result<T, UploadError> {
        let body = self.body(response).await?;
        serde_json::from_slice(&body).map_err(|_| self.no_server())
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, UploadError> {
        let mut body = Vec::new();
        let cut = |error| self.unreachable(cause(&error), None);
        while let Some(piece) = response.chunk().await.map_err(cut)? {
            body.extend_from_slice(&piece);
            if body.len() > LONGEST_ANSWER {
                return Err(self.no_server());
            }
        }
        Ok(body)
    }

    fn patience(&self) -> Retries {
        Retries::new(self.attempts, self.pause)
    }

    fn unreachable(&self, why: String, wait: Option<Duration>) -> UploadError {
        UploadError::Unreachable { to: self.to.clone(), why, wait }
    }

    fn denied(&self, why: String) -> UploadError {
        UploadError::Denied { to: self.to.clone(), why }
    }

    /// Another program answered, perhaps the login page of a proxy.
    fn no_server(&self) -> UploadError {
        self.denied("it is not a Trainplan server. Check the address".into())
    }
}

/// The clients of all servers that were used.
#[derive(Default)]
struct Remotes {
    known: BTreeMap<(Server, Secret), Remote>,
    answers: Arc<AtomicU64>,
}

impl Remotes {
    async fn get(&mut self, upload: &Upload) -> Result<Remote, UploadError> {
        let key = (upload.to.clone(), upload.token.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let remote = remote(upload).await?.counting(&self.answers);
        self.known.insert(key, remote.clone());
        Ok(remote)
    }

    /// Drops a client, so that its token is read again: it may have changed.
    fn forget(&mut self, upload: &Upload) {
        self.known.remove(&(upload.to.clone(), upload.token.clone()));
    }
}

/// Returns a client of an upload's server, with its token.
pub(crate) async fn remote(upload: &Upload) -> Result<Remote, UploadError> {
    let token = secrets::find(&token_of(&upload.to), &upload.token).await?;
    Remote::new(&upload.to, &token)
}

/// Returns the name of a server's token, for messages.
pub(crate) fn token_of(server: &Server) -> String {
    format!("the token for {server}")
}

/// Retries with growing, random pauses.
struct Retries {
    left: u32,
    pause: Duration,
    without_progress: u32,
}

impl Retries {
    fn new(attempts: u32, pause: Duration) -> Retries {
        Retries { left: attempts, pause, without_progress: 0 }
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The given error, if waiting does not help or all attempts are used up.
    async fn wait(&mut self, error: UploadError) -> Result<(), UploadError> {
        let (UploadError::Unreachable { wait, .. } | UploadError::Failed { wait, .. }) = &error else {
            return Err(error);
        };
        let pause = wait.unwrap_or(self.pause);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || pause > LONGEST_WAIT {
            return Err(error);
        }
        tokio::time::sleep(jittered(pause)).await;
        self.pause = (self.pause * 2).min(LONGEST_WAIT);
        Ok(())
    }

    /// Counts an answer without progress; fails after a few.
    fn no_progress(&mut self, error: impl FnOnce() -> UploadError) -> Result<(), UploadError> {
        const MOST: u32 = 5;
        self.without_progress += 1;
        if self.without_progress > MOST { Err(error()) } else { Ok(()) }
    }
}

/// Returns a pause that is up to 30 % longer, at random, so that clients don't retry at the same time.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + 0.3 * fastrand::f64())
}

/// Returns a server's text for a terminal, shortened.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 500;
    printable(text).chars().take(LONGEST).collect()
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

fn offset(response: &Response) -> Option<u64> {
    header(response, "upload-offset")?.parse().ok()
}

/// Returns the innermost cause of an error, without the address, which messages already have, or which may be secret.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer in time".into();
    }
    let mut source = error.source();
    while let Some(next) = source.and_then(|error| error.source()) {
        source = Some(next);
    }
    let why = source.map_or_else(|| error.to_string(), ToString::to_string);
    // How rustls reports an answer that is not TLS.
    match why.contains("InvalidContentType") {
        true => "this port does not use TLS. Try http:// instead of https://".into(),
        false => why,
    }
}

/// Returns a warning if the token would be sent without encryption.
pub(crate) fn unencrypted(server: &Server) -> Option<String> {
    let is_unencrypted = !server.as_str().starts_with("https://") && !is_loopback(server.as_str());
    is_unencrypted
        .then(|| format!("The token is sent to {server} without encryption. Use https:// to protect it."))
}

/// Returns whether an address is a loopback address.
fn is_loopback(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|host: IpAddr| host.is_loopback())
}
