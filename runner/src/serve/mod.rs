//! The web app over HTTP, from the files embedded in this binary, and the results of the store.

mod api;
mod assets;
mod host;
mod problem;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::data::{DataDir, DataDirError};
use crate::store::{Store, StoreError};
use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{from_fn, map_response};
use axum::response::Response;
use axum::routing::get;
use rust_embed::Embed;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

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

/// Serves the web app and the store of a data directory on `addr` (port 0 takes a free one) until SIGINT or SIGTERM,
/// answers what is under way, and returns. The URL goes to stderr as soon as it works.
pub(crate) async fn serve(addr: SocketAddr, data_dir: Option<PathBuf>) -> Result<(), ServeError> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let told_to_end = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let listener = TcpListener::bind(addr).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::AddressInUse(addr),
        _ => ServeError::Listen { addr, source },
    })?;
    let addr = listener.local_addr()?;
    let dir = DataDir::open(data_dir)?;
    let mut router = router::<assets::Dist>(Store::open(&dir).await?);
    if addr.ip().is_loopback() {
        router = router.layer(from_fn(host::only_own));
    } else {
        let path = dir.path().display();
        writeln!(io::stderr(), "note: whoever reaches {addr} can read the results and logs in {path}")?;
    }
    writeln!(io::stderr(), "Trainplan is at http://{addr} (Ctrl-C ends it)")?;
    axum::serve(listener, router).with_graceful_shutdown(told_to_end).await?;
    Ok(())
}

/// Everything the server answers, with the web app taken from `App`.
fn router<App: Embed + 'static>(store: Store) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .nest("/api/v1", api::routes(store))
        .fallback_service(get(assets::respond::<App>))
        .layer(map_response(harden))
}

/// Adds to every response what keeps a browser from doing more with it than the app needs.
async fn harden(mut response: Response) -> Response {
    const POLICY: HeaderValue = HeaderValue::from_static(include_str!("../../../web/csp.txt").trim_ascii());
    // The page itself carries `POLICY` too, for static hosts; this part is not allowed there.
    const FRAMES: HeaderValue = HeaderValue::from_static("frame-ancestors 'none'");
    const OTHERS: [(HeaderName, HeaderValue); 4] = [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ];
    let headers = response.headers_mut();
    headers.append(header::CONTENT_SECURITY_POLICY, POLICY);
    headers.append(header::CONTENT_SECURITY_POLICY, FRAMES);
    headers.extend(OTHERS);
    response
}
