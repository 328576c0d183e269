//! Results, logs and progress on their way to a results server.
//!
//! A server takes the same again as nothing new, so whatever was cut off, or may have been, is sent once more.

mod log;
mod outbox;
mod progress;
#[cfg(test)]
mod tests;

pub(crate) use log::RawLog;
pub(crate) use outbox::{News, Outbox, Sent, send_due, send_stored, settle};
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

/// A server that is there takes a connection at once.
const CONNECT: Duration = Duration::from_secs(5);

/// An answer may take so long, and longer where much is sent: a line slower than this is taken for a broken one.
const ANSWER: Duration = Duration::from_secs(60);
const SLOWEST_BYTES_PER_S: u64 = 64 << 10;

/// The first pause before something is tried again; each is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(500);

/// Nobody waits longer because a server asks for it.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// No answer is longer than this.
const LONGEST_ANSWER: usize = 64 << 10;

/// How hard zstd tries: more makes little smaller and takes much longer.
const LEVEL: i32 = 3;

/// Why something is not on the server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// It does not answer, or not now: the same may work later.
    #[error("{to} can't be reached: {why}")]
    Unreachable {
        /// The server.
        to: String,
        /// What went wrong.
        why: String,
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
    /// It does not take anything of us, for now: a token or a quota is in the way.
    #[error("{to} refuses: {why}")]
    Denied {
        /// The server.
        to: String,
        /// What it says.
        why: String,
    },
    /// It has another result under the id.
    #[error("{0}")]
    Conflict(String),
    /// It will never take this.
    #[error("{0}")]
    Refused(String),
    /// The log can't be read here.
    #[error("the log can't be read: {0}")]
    Log(#[from] io::Error),
    /// The result can't be read here.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The token can't be found.
    #[error(transparent)]
    Token(#[from] SecretError),
}

/// A results server, as who may upload; it has a secret, and so nothing prints it.
#[derive(Clone)]
pub(crate) struct Remote {
    client: Client,
    to: String,
    token: String,
    /// How often something is tried that gets no answer.
    tries: u32,
    /// The first pause between two tries.
    pause: Duration,
    /// Counts answers, for whoever wants to know whether there are any.
    beat: Arc<AtomicU64>,
}

/// What is there of a log.
enum There {
    /// It is whole.
    All,
    /// So many of its raw bytes.
    Until(u64),
    /// So many, and not by us alone.
    Others(u64),
}

impl Remote {
    /// The server, with a token for it.
    pub(crate) fn new(to: &Server, token: &str) -> Result<Remote, UploadError> {
        let to = to.as_str().trim_end_matches('/').to_owned();
        crate::tls::ready();
        let mut client = Client::builder()
            .user_agent(concat!("trainplan/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            // A token goes to nobody but the server that it is for.
            .redirect(redirect::Policy::none());
        if !to.starts_with("https://") {
            // Without TLS nobody's certificates are needed.
            client = client.tls_certs_only([]);
        }
        if is_loopback(&to) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| UploadError::Unreachable {
            to: to.clone(),
            why: format!("{}; install ca-certificates, or name others in SSL_CERT_FILE", cause(&error)),
            wait: None,
        })?;
        Ok(Remote { client, to, token: token.to_owned(), tries: 1, pause: PAUSE, beat: Arc::default() })
    }

    /// Tries so often before it gives up.
    pub(crate) fn with_tries(self, tries: u32) -> Remote {
        Remote { tries, ..self }
    }

    /// Lets every answer be counted there.
    fn with_beat(self, beat: &Arc<AtomicU64>) -> Remote {
        Remote { beat: Arc::clone(beat), ..self }
    }

    /// Puts a result: the bytes of its file, compressed by zstd.
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

    /// Puts the raw log of a result that is there: what the server has of it stays, and the rest follows. Whether
    /// anything was sent.
    pub(crate) async fn put_log(&self, id: Uuid, log: &mut RawLog) -> Result<bool, UploadError> {
        let mut patience = self.patience();
        let (mut at, mut furthest, mut sent, mut others) = (None, 0, false, false);
        loop {
            let step = match at {
                None => self.ask(id, sent).await,
                Some(offset) => match log.piece(offset).await {
                    Ok(piece) => {
                        sent = true;
                        self.put_piece(id, offset, piece).await
                    }
                    Err(error) => Err(error.into()),
                },
            };
            match step {
                Ok(There::All) => return Ok(sent),
                Ok(There::Until(offset) | There::Others(offset)) => {
                    others |= matches!(step, Ok(There::Others(_)));
                    if offset > furthest {
                        (furthest, patience) = (offset, self.patience());
                    } else if at.is_some() {
                        patience.in_vain(|| self.no_server())?;
                    }
                    at = Some(offset);
                }
                // The server threw away what it had: of that, not all was ours.
                Err(UploadError::Refused(_)) if others => (at, furthest, others) = (None, 0, false),
                Err(error) => {
                    patience.wait(error).await?;
                    // The server may still be at work on what was cut off, beside what comes now.
                    (at, others) = (None, true);
                }
            }
        }
    }

    /// How much of a log is there; where we sent nothing, it is of others.
    async fn ask(&self, id: Uuid, sent: bool) -> Result<There, UploadError> {
        let response = self.answer(self.request(Method::HEAD, &format!("runs/{id}/log"), 0)).await?;
        match (header(&response, "upload-complete"), offset(&response)) {
            (Some("?1"), _) => Ok(There::All),
            (Some("?0"), Some(offset @ 1..)) if !sent => Ok(There::Others(offset)),
            (Some("?0"), Some(offset)) => Ok(There::Until(offset)),
            _ => Err(self.no_server()),
        }
    }

    async fn put_piece(&self, id: Uuid, offset: u64, piece: Piece) -> Result<There, UploadError> {
        let request = self.request(Method::PUT, &format!("runs/{id}/log"), piece.packed.len() as u64);
        let request = request
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_ENCODING, "zstd")
            .header("upload-offset", offset)
            .header("upload-complete", if piece.is_last { "?1" } else { "?0" })
            .body(piece.packed);
        let response = self.response(request).await?;
        if let (StatusCode::CONFLICT, Some(there)) = (response.status(), self::offset(&response)) {
            return Ok(There::Others(there));
        }
        let arrived: LogProgress = self.read(self.checked(response).await?).await?;
        Ok(if arrived.complete { There::All } else { There::Until(arrived.offset) })
    }

    /// Says where a run is, once.
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

    /// A good answer.
    async fn answer(&self, request: RequestBuilder) -> Result<Response, UploadError> {
        self.checked(self.response(request).await?).await
    }

    /// Any answer.
    async fn response(&self, request: RequestBuilder) -> Result<Response, UploadError> {
        let response = request.send().await.map_err(|error| self.unreachable(cause(&error), None))?;
        self.beat.fetch_add(1, Ordering::Relaxed);
        Ok(response)
    }

    /// The answer, if it is a good one; else what it says.
    async fn checked(&self, response: Response) -> Result<Response, UploadError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let place = header(&response, LOCATION.as_str()).unwrap_or("somewhere else");
            return Err(
                self.denied(format!("it sends us to {place}, and no token follows: give that address"))
            );
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
            _ if status.is_server_error() => self.unreachable(why, wait),
            // Something before the server says that, and may have been set up wrongly.
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED if !is_known => {
                self.denied(format!("{why}: give the server's own address, without the path of a page"))
            }
            _ if !is_known => self.denied(why),
            StatusCode::CONFLICT => UploadError::Conflict(why),
            _ => UploadError::Refused(why),
        })
    }

    /// An answer's body as what it should be.
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

    fn patience(&self) -> Patience {
        Patience::new(self.tries, self.pause)
    }

    fn unreachable(&self, why: String, wait: Option<Duration>) -> UploadError {
        UploadError::Unreachable { to: self.to.clone(), why, wait }
    }

    fn denied(&self, why: String) -> UploadError {
        UploadError::Denied { to: self.to.clone(), why }
    }

    /// Something else answers there; it may be a page to log in at, in front of the server.
    fn no_server(&self) -> UploadError {
        self.denied("what answers there is no Trainplan server".into())
    }
}

/// The servers that were spoken to, with their tokens.
#[derive(Default)]
struct Remotes {
    known: BTreeMap<(Server, Secret), Remote>,
    beat: Arc<AtomicU64>,
}

impl Remotes {
    async fn get(&mut self, upload: &Upload) -> Result<Remote, UploadError> {
        let key = (upload.to.clone(), upload.token.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let remote = remote(upload).await?.with_beat(&self.beat);
        self.known.insert(key, remote.clone());
        Ok(remote)
    }

    /// Lets its token be looked for anew: there may be another one.
    fn forget(&mut self, upload: &Upload) {
        self.known.remove(&(upload.to.clone(), upload.token.clone()));
    }
}

/// The server of an upload, with the token that is found for it.
pub(crate) async fn remote(upload: &Upload) -> Result<Remote, UploadError> {
    let token = secrets::find(&token_of(&upload.to), &upload.token).await?;
    Remote::new(&upload.to, &token)
}

/// What a server's token is called.
pub(crate) fn token_of(server: &Server) -> String {
    format!("the token for {server}")
}

/// Tries again, later and later, and never all at the same time.
struct Patience {
    left: u32,
    pause: Duration,
    vain: u32,
}

impl Patience {
    fn new(tries: u32, pause: Duration) -> Patience {
        Patience { left: tries, pause, vain: 0 }
    }

    /// Waits before the next try.
    ///
    /// # Errors
    /// The error, where waiting does not help or was enough.
    async fn wait(&mut self, error: UploadError) -> Result<(), UploadError> {
        let UploadError::Unreachable { wait, .. } = &error else { return Err(error) };
        let pause = wait.unwrap_or(self.pause);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || pause > LONGEST_WAIT {
            return Err(error);
        }
        tokio::time::sleep(jittered(pause)).await;
        self.pause = (self.pause * 2).min(LONGEST_WAIT);
        Ok(())
    }

    /// Goes on after an answer that brought us nowhere, a few times.
    fn in_vain(&mut self, error: impl FnOnce() -> UploadError) -> Result<(), UploadError> {
        const MOST: u32 = 5;
        self.vain += 1;
        if self.vain > MOST { Err(error()) } else { Ok(()) }
    }
}

/// A pause that no two processes make alike; never shorter.
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

/// What is behind an error, without the address, which the reader knows.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer in time".into();
    }
    let mut source = error.source();
    while let Some(next) = source.and_then(|error| error.source()) {
        source = Some(next);
    }
    let why = source.map_or_else(|| error.to_string(), ToString::to_string);
    // What TLS calls an answer that is none of its own.
    match why.contains("InvalidContentType") {
        true => "it speaks no TLS at this port: is its address http://?".into(),
        false => why,
    }
}

/// That a token would be read by whoever listens on the way.
pub(crate) fn goes_open(server: &Server) -> Option<String> {
    let is_open = !server.as_str().starts_with("https://") && !is_loopback(server.as_str());
    is_open.then(|| {
        format!("the token goes to {server} as it is, for everybody on the way to read: https:// hides it")
    })
}

/// Whether an address is this machine's own.
fn is_loopback(address: &str) -> bool {
    let Ok(url) = Url::parse(address) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|host: IpAddr| host.is_loopback())
}
