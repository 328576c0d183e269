//! `trainplan serve`: the embedded web app and the API over HTTP.

mod api;
mod assets;
mod guard;
mod histories;
mod host;
mod judging;
mod limits;
mod linger;
mod listen;
mod meter;
mod pace;
mod problem;
mod quota;
mod rates;
#[cfg(test)]
mod tests;
mod turns;
mod watch;
mod webhooks;

use crate::data::{DataDir, DataDirError};
use crate::store::{Retention, Store, StoreError, StorePlace, secret};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use histories::Histories;
use limits::Room;
use meter::Meter;
use problem::Problem;
use rates::Rates;
use reqwest::Url;
use rust_embed::Embed;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch as flag};
use tracing::Instrument;
use trainplan_shared::api::ServerLimits;
use trainplan_shared::history::Thresholds;
use turns::Turns;
use uuid::Uuid;
use watch::Watch;
use webhooks::Webhooks;

/// The options of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServeOptions {
    /// The place of the store.
    pub(crate) place: StorePlace,
    /// The number of connections to PostgreSQL.
    pub(crate) database_connections: Option<u32>,
    /// Whether reading needs no token; by default only on a loopback address.
    pub(crate) public: Option<bool>,
    /// Whether a proxy in front provides TLS.
    pub(crate) behind_tls: bool,
    /// The addresses of proxies whose headers are trusted.
    pub(crate) trusted_proxies: Vec<IpAddr>,
    /// The header in which a trusted proxy names the person who is logged in.
    pub(crate) login_header: Option<HeaderName>,
    /// The number of days after which results are deleted.
    pub(crate) retain_days: Option<u32>,
    /// The addresses to post alerts to.
    pub(crate) webhooks: Vec<String>,
    /// Whether those may be outside the public internet.
    pub(crate) webhook_allow_private: bool,
    /// The secret that signs alerts.
    pub(crate) webhook_secret: Option<String>,
    /// The server's address for people.
    pub(crate) public_url: Option<Url>,
    /// The thresholds for regressions.
    pub(crate) thresholds: Thresholds,
    /// The limits on requests.
    pub(crate) limits: ServerLimits,
}

/// Why the server did not start or stopped early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// Another program uses the address, most often an earlier `trainplan serve`.
    #[error("{0} is in use by another program. Stop that program, or choose another address with --listen.")]
    AddressInUse(SocketAddr),
    /// The system refused the address.
    #[error("Can't listen on {addr}: {source}.")]
    Listen {
        /// The requested address.
        addr: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No proxy is trusted to send the login header.
    #[error("--login-header requires --trusted-proxy ADDRESS. Without it, anyone could send that header.")]
    NoProxy,
    /// A proxy would make everybody a local reader.
    #[error(
        "--trusted-proxy on a loopback address lets everyone whom the proxy admits read. Pass --behind-tls if the proxy provides \
         TLS, so that reading needs a token; or pass --read public or --read private."
    )]
    ProxyReads,
    /// A webhook or its secret is invalid.
    #[error("{0}")]
    Webhook(String),
    /// The data directory can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The store can't be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Serving or waiting for a signal failed.
    #[error("The server failed: {0}.")]
    Io(#[from] io::Error),
}

/// The server, as requests and background tasks share it.
#[derive(Clone)]
struct Server(Arc<ServerState>);

struct ServerState {
    store: Store,
    options: RequestOptions,
    /// The token that a server on loopback printed when it started.
    owner: Option<String>,
    rates: Rates,
    meter: Meter,
    watch: Watch,
    webhooks: Webhooks,
    /// The memory for bodies, results and answers.
    room: Room,
    /// The memory for what is decompressed while it is sent.
    streams: Room,
    /// Limits how many requests with much work run at a time.
    turns: Turns,
    /// The histories that were read last.
    histories: Histories,
    /// Wakes the judge when a run was received.
    received: Notify,
    /// True when the server shuts down.
    ends: flag::Receiver<bool>,
}

/// The options that requests need, with defaults that depend on the address.
struct RequestOptions {
    is_public: bool,
    behind_tls: bool,
    trusted_proxies: Vec<IpAddr>,
    login_header: Option<HeaderName>,
    thresholds: Thresholds,
    limits: ServerLimits,
}

impl std::ops::Deref for Server {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.0
    }
}

impl Server {
    fn new(
        store: Store,
        options: &ServeOptions,
        owner: Option<String>,
        ends: flag::Receiver<bool>,
    ) -> Result<Server, ServeError> {
        let webhooks = Webhooks::new(options);
        Ok(Server(Arc::new(ServerState {
            store,
            rates: Rates::new(options.limits.requests_per_minute),
            options: RequestOptions {
                is_public: options.public.unwrap_or(owner.is_some()),
                behind_tls: options.behind_tls,
                trusted_proxies: options.trusted_proxies.clone(),
                login_header: options.login_header.clone(),
                thresholds: options.thresholds,
                limits: options.limits,
            },
            owner,
            meter: Meter::new(),
            watch: Watch::new(),
            webhooks: webhooks.map_err(ServeError::Webhook)?,
            room: Room::new(),
            streams: Room::of_streams(),
            turns: Turns::new(),
            histories: Histories::new(),
            received: Notify::new(),
            ends,
        })))
    }
}

/// Serves the web app and a store on `addr` until SIGINT or SIGTERM, finishes open requests, and returns.
/// Port 0 takes a free port. Prints the URL to stderr when it works.
pub(crate) async fn serve(addr: SocketAddr, dir: DataDir, options: ServeOptions) -> Result<(), ServeError> {
    if options.login_header.is_some() && options.trusted_proxies.is_empty() {
        return Err(ServeError::NoProxy);
    }
    let is_local = addr.ip().is_loopback() && !options.behind_tls;
    if is_local && options.public.is_none() && !options.trusted_proxies.is_empty() {
        return Err(ServeError::ProxyReads);
    }
    let (end, ends) = flag::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(addr).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::AddressInUse(addr),
        _ => ServeError::Listen { addr, source },
    })?;
    let addr = listener.local_addr()?;
    let mut store = Store::open_at(&dir, &options.place).await?;
    store.open_all_connections(options.database_connections).await?;
    let owner = match is_local {
        true => Some(secret("tp_").map_err(StoreError::from)?),
        false => None,
    };
    let server = Server::new(store, &options, owner, ends)?;
    let mut router = router::<assets::Dist>(&server);
    if server.owner.is_some() {
        router = router.layer(from_fn(host::only_own));
    }
    let seen = server.watch.begin(&server.store).await?;
    announce(&server, addr).await?;
    let cleaning = tokio::spawn(clean_up(server.clone(), options.retain_days));
    let watching = tokio::spawn({
        let server = server.clone();
        async move { server.watch.run(&server.store, seen).await }
    });
    let judging = tokio::spawn(judging::judge(server.clone()));
    let delivering = tokio::spawn(webhooks::run(server.clone()));
    let stopped = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // This fails only when nothing waits for it.
        let _ = end.send(true);
    };
    listen::serve(listener, router, stopped).await;
    cleaning.abort();
    watching.abort();
    judging.abort();
    delivering.abort();
    Ok(())
}

/// Prints the server's address and notes about access.
async fn announce(server: &Server, addr: SocketAddr) -> Result<(), ServeError> {
    let mut out = io::stderr();
    match &server.owner {
        Some(owner) => {
            writeln!(out, "Trainplan is at http://{addr} (Ctrl-C stops it)")?;
            writeln!(out, "To upload, share and delete: http://{addr}/results#token={owner}")?;
        }
        None => {
            writeln!(out, "Trainplan listens on {addr} (Ctrl-C stops it)")?;
            if server.options.is_public {
                writeln!(out, "note: Anyone who can reach this address can read its results and logs.")?;
            }
            if !server.store.has_tokens().await? {
                let what = if server.options.is_public { "upload" } else { "read or upload" };
                writeln!(
                    out,
                    "note: Nobody can {what} yet, because there are no tokens. Create one with `trainplan token create`."
                )?;
            }
            if !server.options.behind_tls {
                writeln!(
                    out,
                    "note: Without TLS, others on the network can read tokens. Use a proxy with TLS and pass --behind-tls."
                )?;
            }
        }
    }
    Ok(())
}

/// Cleans up the store from time to time. What fails is tried again the next time.
async fn clean_up(server: Server, retain_days: Option<u32>) {
    const EVERY: Duration = Duration::from_secs(10 * 60);
    // Checking every log takes a while: it is done at the start and once a day.
    const SWEEP: usize = 24 * 6;
    for round in (0..SWEEP).cycle() {
        server.rates.forget();
        let done = async {
            server.store.tidy().await?;
            webhooks::forget_removed(&server).await?;
            if round == 0 {
                server.store.sweep().await?;
            }
            if let Some(days) = retain_days {
                report_retention(&server, days, server.store.retain(days).await?);
            }
            Ok::<_, StoreError>(())
        };
        if let Err(error) = done.await {
            tracing::warn!("the store could not be cleaned up: {error}");
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Says what retention did. Deletions are permanent, so they are said without `-v` too.
fn report_retention(server: &Server, days: u32, retention: Retention) {
    match retention {
        Retention::Waiting => {}
        Retention::Begun { until, jumped_from: None } => {
            tracing::warn!("Deletions by --retain-days {days} begin at {until:.0}");
        }
        Retention::Begun { until, jumped_from: Some(seen) } => tracing::warn!(
            "The clock jumped from {seen:.0}, or no server ran since then. --retain-days {days} deletes nothing until \
             {until:.0}. Check the clock, or stop this server before then."
        ),
        Retention::Deleted { before, runs } => {
            for run in &runs {
                tracing::warn!("run {run} was deleted: received before {before:.0} (--retain-days {days})");
            }
            if !runs.is_empty() {
                server.watch.notify();
            }
        }
    }
}

/// Returns all routes, with the web app from `App`.
fn router<App: Embed + 'static>(server: &Server) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(meter::respond))
        .layer(from_fn_with_state(server.clone(), guard::identify));
    Router::new()
        .route("/healthz", get(health))
        .merge(metrics)
        // A nested router does not get this path.
        .route("/api/v1/", any(api::unknown_address))
        .nest("/api/v1", api::routes(server))
        .fallback_service(get(assets::respond::<App>))
        .layer(from_fn(refuse_misspelt_api))
        .layer(from_fn(bound_head))
        .layer(from_fn_with_state(server.clone(), harden))
        .layer(from_fn_with_state(server.clone(), meter::count))
        .layer(from_fn(identify_request))
        .layer(from_fn(linger::read_rest))
        .with_state(server.clone())
}

/// Answers addresses that begin almost like the API's, such as `//api/v1/runs`, with an error that programs can read. They would
/// get a page of the web app otherwise.
async fn refuse_misspelt_api(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_meant = path.split('/').find(|part| !part.is_empty()) == Some("api");
    if is_meant && path != "/api/v1" && !path.starts_with("/api/v1/") {
        return api::unknown_address().await.into_response();
    }
    next.run(request).await
}

/// Refuses requests whose line and headers are too large.
async fn bound_head(request: Request, next: Next) -> Result<Response, Problem> {
    // The separators of a header: ": " and the end of its line.
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let line = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    if line + headers.sum::<usize>() > listen::HEAD_BYTES {
        let most = listen::HEAD_BYTES >> 10;
        let detail = format!(
            "The request's address and headers have more than {most} KiB. Send fewer or shorter ones."
        );
        return Err(Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail));
    }
    Ok(next.run(request).await)
}

/// Answers `/healthz`: whether the store answers.
async fn health(State(server): State<Server>) -> Result<&'static str, Problem> {
    let asked = tokio::time::timeout(Duration::from_secs(5), server.store.is_well()).await;
    match asked {
        Ok(well) => Ok(well.map(|()| "ok\n")?),
        Err(_) => Err(Problem::out_of_reach()),
    }
}

/// Gives every request an id, by which it can be found in the server's output.
async fn identify_request(request: Request, next: Next) -> Response {
    const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
    // A proxy may have sent an id.
    let is_id = |text: &&str| {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let given = request.headers().get(&REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_id);
    let id = given.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    // Without the query, which may contain private names.
    let span = tracing::info_span!("request", id, method = %request.method(), path = request.uri().path());
    let mut response = async {
        let response = next.run(request).await;
        tracing::info!("answered with {}", response.status().as_u16());
        response
    }
    .instrument(span)
    .await;
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Adds the security headers to every response.
async fn harden(State(server): State<Server>, request: Request, next: Next) -> Response {
    const POLICY: HeaderValue = HeaderValue::from_static(include_str!("../../../web/csp.txt").trim_ascii());
    // Pages also contain `POLICY`, for static hosts; browsers ignore this part there.
    const FRAMES: HeaderValue = HeaderValue::from_static("frame-ancestors 'none'");
    const OTHERS: [(HeaderName, HeaderValue); 4] = [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ];
    let mut response = next.run(request).await.into_response();
    let headers = response.headers_mut();
    headers.append(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.append(header::CONTENT_SECURITY_POLICY, FRAMES);
    headers.extend(OTHERS);
    if server.options.behind_tls {
        const YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, YEAR);
    }
    response
}
