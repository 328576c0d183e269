//! Accepts connections within limits, and finishes open requests when the server shuts down.

use super::pace::Paced;
use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustix::net::sockopt::{set_socket_send_buffer_size, set_tcp_user_timeout};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// The most open connections; further ones wait.
const CONNECTIONS: usize = 2048;

/// The number of open files reserved for the database, logs and webhooks, however many connections there are.
const RESERVE: u64 = 192;

/// The most bytes of a request's line and headers, and of each buffer of a connection. hyper's own limit of some 400 kB,
/// times [`CONNECTIONS`], is more memory than all requests may share. hyper reads somewhat more before it looks at its limit.
pub(super) const HEAD_BYTES: usize = 128 << 10;

/// The time that a client has to send a request's headers.
const HEADERS: Duration = Duration::from_secs(20);

/// The time after which a client that reads nothing of a response is disconnected.
const UNREAD: Duration = Duration::from_secs(60);

/// The bytes of a response that the system keeps for a client; it takes twice that.
const UNREAD_BYTES: usize = 256 << 10;

/// The time that open requests have when the server shuts down.
const LAST: Duration = Duration::from_secs(20);

/// Raises the limit on open files to the hard limit, because many systems start programs with a low one. Returns
/// how many connections that allows.
fn open_many() -> usize {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!("the limit on open files stays at {:?}: {error}", limit.current);
    }
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let connections =
        usize::try_from(files.saturating_sub(RESERVE)).unwrap_or(CONNECTIONS).clamp(16, CONNECTIONS);
    if connections < CONNECTIONS {
        tracing::warn!(
            "This process may open only {files} files, so it serves at most {connections} connections at a time. Raise \
             the hard limit (ulimit -Hn, LimitNOFILE=)."
        );
    }
    connections
}

/// Serves connections until `end`, then finishes open requests.
pub(super) async fn serve(listener: TcpListener, router: Router, end: impl Future<Output = ()>) {
    let connections = open_many();
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(connections));
    let mut end = std::pin::pin!(end);
    loop {
        let accept = async {
            // The semaphore is never closed.
            let place = Arc::clone(&places).acquire_owned().await.ok();
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            accepted = accept => accepted,
            () = &mut end => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A likely reason is too many open files; some will be closed.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let _ = set_tcp_user_timeout(&stream, UNREAD.as_millis() as u32);
        // What a client does not read occupies memory, of the system too.
        let _ = set_socket_send_buffer_size(&stream, UNREAD_BYTES);
        // Most responses are small: waiting for more data would delay them.
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request: Request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .max_buf_size(HEAD_BYTES)
            .header_read_timeout(HEADERS)
            .serve_connection(TokioIo::new(Paced::new(stream)), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let _place = place;
            // A client that disconnects is not an error.
            if let Err(error) = connection.await {
                tracing::debug!("{peer}: {error}");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(LAST, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests that took longer than {} s were aborted", LAST.as_secs());
    }
}
