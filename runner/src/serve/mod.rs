//! The web app over HTTP, from the files embedded in this binary, and the results of the store.

mod api;
mod assets;
mod guard;
mod host;
mod judging;
mod limits;
mod listen;
mod meter;
mod problem;
mod quota;
mod rates;
#[cfg(test)]
mod tests;
mod watch;
mod webhooks;

pub(crate) use api::Progress;

use crate::data::{DataDir, DataDirError};
use crate::store::{Place, Store, StoreError, secret};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
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
use tokio::sync::{Notify, Semaphore, watch as flag};
use tracing::Instrument;
use trainplan_shared::api::ServerLimits;
use trainplan_shared::history::Thresholds;
use uuid::Uuid;
use watch::Watch;
use webhooks::Webhooks;

/// How to serve.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Where the store is.
    pub(crate) place: Place,
    /// Whether everyone reads; none: everyone who reaches a server on loopback, and nobody else.
    pub(crate) public: Option<bool>,
    /// Whether a proxy in front speaks TLS with the world.
    pub(crate) behind_tls: bool,
    /// The addresses of proxies whose headers are believed.
    pub(crate) trusted_proxies: Vec<IpAddr>,
    /// The header that names the person who is logged in at a proxy.
    pub(crate) login_header: Option<HeaderName>,
    /// Results received longer ago are deleted.
    pub(crate) retain_days: Option<u32>,
    /// Whom to tell of alerts.
    pub(crate) webhooks: Vec<String>,
    /// Whether those may be in this network.
    pub(crate) webhook_allow_private: bool,
    /// What alerts are signed with.
    pub(crate) webhook_secret: Option<String>,
    /// Where people reach this server.
    pub(crate) public_url: Option<Url>,
    /// From when on a run is a regression.
    pub(crate) thresholds: Thresholds,
    /// What the server takes.
    pub(crate) limits: ServerLimits,
}

/// Why the server did not start, or ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// Another program listens there already, most often an earlier `trainplan serve`.
    #[error("{0} is in use: end the program that listens there, or choose another address with --listen")]
    AddressInUse(SocketAddr),
    /// The system refused the address.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address that was asked for.
        addr: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A header that nobody is believed to have sent.
    #[error("--login-header needs --trusted-proxy ADDRESS: whoever else sends the header is not believed")]
    NoProxy,
    /// An address that can't be told anything.
    #[error("{0}")]
    Webhook(String),
    /// There is no place for the store.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The store can't be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Serving or waiting for a signal failed.
    #[error("the server failed: {0}")]
    Io(#[from] io::Error),
}

/// What requests share.
#[derive(Clone)]
struct Server(Arc<Shared>);

struct Shared {
    store: Store,
    options: Settled,
    /// The token that was printed at the start, of a server on loopback.
    owner: Option<String>,
    rates: Rates,
    meter: Meter,
    watch: Watch,
    webhooks: Webhooks,
    /// What bodies take of the memory.
    room: Semaphore,
    /// What takes time is done by few at once.
    turns: Semaphore,
    /// That a run came in, for whoever judges it.
    came_in: Notify,
    /// True when the server is about to end.
    ends: flag::Receiver<bool>,
}

/// Options, with what follows from the address.
struct Settled {
    is_public: bool,
    behind_tls: bool,
    trusted_proxies: Vec<IpAddr>,
    login_header: Option<HeaderName>,
    thresholds: Thresholds,
    limits: ServerLimits,
}

impl std::ops::Deref for Server {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl Server {
    fn new(
        store: Store,
        options: &Options,
        owner: Option<String>,
        ends: flag::Receiver<bool>,
    ) -> Result<Server, ServeError> {
        let webhooks = Webhooks::new(options);
        Ok(Server(Arc::new(Shared {
            store,
            rates: Rates::new(options.limits.requests_per_minute),
            options: Settled {
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
            room: Semaphore::new(limits::ROOM),
            turns: Semaphore::new(8),
            came_in: Notify::new(),
            ends,
        })))
    }

    /// Says that something happened, to all who watch.
    fn stir(&self) {
        self.watch.stir();
    }
}

/// Serves the web app and a store on `addr` (port 0 takes a free one) until SIGINT or SIGTERM, answers what is under
/// way, and returns. The URL goes to stderr as soon as it works.
pub(crate) async fn serve(addr: SocketAddr, dir: DataDir, options: Options) -> Result<(), ServeError> {
    if options.login_header.is_some() && options.trusted_proxies.is_empty() {
        return Err(ServeError::NoProxy);
    }
    let (end, ends) = flag::channel(false);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(addr).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::AddressInUse(addr),
        _ => ServeError::Listen { addr, source },
    })?;
    let addr = listener.local_addr()?;
    let store = Store::open_at(&dir, &options.place).await?;
    let owner = match addr.ip().is_loopback() && !options.behind_tls {
        true => Some(secret("tp_").map_err(StoreError::from)?),
        false => None,
    };
    let server = Server::new(store, &options, owner, ends)?;
    let mut router = router::<assets::Dist>(&server);
    if server.owner.is_some() {
        router = router.layer(from_fn(host::only_own));
    }
    let told = server.watch.begin(&server.store).await?;
    announce(&server, addr).await?;
    let housekeeping = tokio::spawn(keep_house(server.clone(), options.retain_days));
    let watching = tokio::spawn({
        let server = server.clone();
        async move { server.watch.read(&server.store, told).await }
    });
    let judging = tokio::spawn(judging::judge(server.clone()));
    let telling = tokio::spawn(webhooks::tell(server.clone()));
    let told_to_end = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // Nobody is left that would hear it if this fails.
        let _ = end.send(true);
    };
    listen::serve(listener, router, told_to_end).await;
    housekeeping.abort();
    watching.abort();
    judging.abort();
    telling.abort();
    Ok(())
}

/// Says where the server is, and who may do what.
async fn announce(server: &Server, addr: SocketAddr) -> Result<(), ServeError> {
    let mut out = io::stderr();
    match &server.owner {
        Some(owner) => {
            writeln!(out, "Trainplan is at http://{addr} (Ctrl-C ends it)")?;
            writeln!(out, "to upload, share and delete: http://{addr}/results#token={owner}")?;
        }
        None => {
            writeln!(out, "Trainplan listens on {addr} (Ctrl-C ends it)")?;
            if server.options.is_public {
                writeln!(out, "note: whoever reaches it can read its results and logs")?;
            }
            if !server.store.has_tokens().await? {
                let what = if server.options.is_public { "upload" } else { "read or upload" };
                writeln!(
                    out,
                    "note: there is no token yet, and nobody can {what}: see `trainplan token create --help`"
                )?;
            }
            if !server.options.behind_tls {
                writeln!(
                    out,
                    "note: tokens go over the network as they are: put a proxy with TLS before it, and say --behind-tls"
                )?;
            }
        }
    }
    Ok(())
}

/// What is to be done from time to time. What fails is done the next time.
async fn keep_house(server: Server, retain_days: Option<u32>) {
    const EVERY: Duration = Duration::from_secs(10 * 60);
    // Looking at every log takes a while: at the start, and once a day.
    const SWEEP: usize = 24 * 6;
    for round in (0..SWEEP).cycle() {
        server.rates.forget();
        let done = async {
            server.store.tidy().await?;
            if round == 0 {
                server.store.sweep().await?;
            }
            if let Some(days) = retain_days {
                let deleted = server.store.delete_older(days).await?;
                if deleted > 0 {
                    tracing::info!("{deleted} runs received more than {days} days ago were deleted");
                    server.stir();
                }
            }
            Ok::<_, StoreError>(())
        };
        if let Err(error) = done.await {
            tracing::warn!("the store can't be tidied: {error}");
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Everything the server answers, with the web app taken from `App`.
fn router<App: Embed + 'static>(server: &Server) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(meter::respond))
        .layer(from_fn_with_state(server.clone(), guard::identify));
    Router::new()
        .route("/healthz", get(health))
        .merge(metrics)
        .nest("/api/v1", api::routes(server))
        .fallback_service(get(assets::respond::<App>))
        .layer(from_fn_with_state(server.clone(), harden))
        .layer(from_fn_with_state(server.clone(), meter::count))
        .layer(from_fn(name))
        .with_state(server.clone())
}

/// Whether the server can answer: for whoever sends it requests, or starts it again.
async fn health(State(server): State<Server>) -> Result<&'static str, Problem> {
    let asked = tokio::time::timeout(Duration::from_secs(5), server.store.is_well()).await;
    match asked {
        Ok(well) => Ok(well.map(|()| "ok\n")?),
        Err(_) => Err(Problem::out_of_reach()),
    }
}

/// Gives every request a name, for whoever looks for it in the server's output.
async fn name(request: Request, next: Next) -> Response {
    const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
    // A proxy may have named it.
    let is_name = |text: &&str| {
        (1..=64).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let given = request.headers().get(&REQUEST_ID).and_then(|id| id.to_str().ok()).filter(is_name);
    let id = given.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
    // The path alone: a query may hold what is nobody's business.
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

/// Adds to every response what keeps a browser from doing more with it than the app needs.
async fn harden(State(server): State<Server>, request: Request, next: Next) -> Response {
    const POLICY: HeaderValue = HeaderValue::from_static(include_str!("../../../web/csp.txt").trim_ascii());
    // The page itself carries `POLICY` too, for static hosts; this part is not allowed there.
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
