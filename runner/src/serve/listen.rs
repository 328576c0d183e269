//! Connections: many at once but not any number, none that only waits, and none cut off when the server ends.

use axum::Router;
use axum::extract::ConnectInfo;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// Who connects beyond that waits.
const CONNECTIONS: usize = 2048;

/// Who does not say what they want for so long is gone.
const HEADERS: Duration = Duration::from_secs(20);

/// Who takes nothing of an answer for so long is gone too.
const UNREAD: Duration = Duration::from_secs(60);

/// How long what is under way may take when the server ends.
const LAST: Duration = Duration::from_secs(20);

/// Lets this process have as many connections and files open as it may: many systems start programs with few.
fn open_many() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::warn!("no more files can be open at once than {:?}: {error}", limit.current);
    }
}

/// Answers connections until `end`, then what is under way.
pub(super) async fn serve(listener: TcpListener, router: Router, end: impl Future<Output = ()>) {
    open_many();
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
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
                // Too many open files, for one: some will be closed.
                tracing::warn!("a connection can't be taken: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Who takes nothing of an answer for so long is gone.
        let _ = set_tcp_user_timeout(&stream, UNREAD.as_millis() as u32);
        // Answers are small; who waits for more to send makes every one late.
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let mut request: Request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            let _place = place;
            // Whoever went away is no error of ours.
            if let Err(error) = connection.await {
                tracing::debug!("{peer}: {error}");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(LAST, graceful.shutdown()).await.is_err() {
        tracing::warn!("what took longer than {} s is cut off", LAST.as_secs());
    }
}
