//! The web app over HTTP, from the files embedded in this binary.

mod assets;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::net::SocketAddr;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::map_response;
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
    /// Serving or waiting for a signal failed.
    #[error("the server failed: {0}")]
    Io(#[from] io::Error),
}

/// Serves the web app on `addr` (port 0 takes a free one) until SIGINT or SIGTERM, answers what is under way, and
/// returns. The URL goes to stderr as soon as it works.
pub(crate) async fn serve(addr: SocketAddr) -> Result<(), ServeError> {
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
    writeln!(io::stderr(), "Trainplan is at http://{} (Ctrl-C ends it)", listener.local_addr()?)?;
    axum::serve(listener, router::<assets::Dist>()).with_graceful_shutdown(told_to_end).await?;
    Ok(())
}

/// Everything the server answers, with the web app taken from `App`.
fn router<App: Embed + 'static>() -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
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
