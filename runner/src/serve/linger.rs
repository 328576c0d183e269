//! Reads the rest of a request whose answer is already known, so that the client can read the answer. If a server closes a
//! connection with unread bytes, the connection is reset, and a client that is still sending sees a broken pipe instead of the
//! answer.

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

/// The most bytes that are read and dropped: more than a result may have by default.
const MOST: usize = 64 << 20;

/// The longest time that it may take.
const LONGEST: Duration = Duration::from_secs(10);

/// The longest pause: who sends nothing waits for the answer.
const IDLE: Duration = Duration::from_secs(1);

/// Answers a request, and reads the rest of a body that its handler gave up.
pub(super) async fn read_rest(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    // Who waits for permission sends nothing without it.
    if body.is_end_stream() || parts.headers.contains_key(header::EXPECT) {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let (give, mut given) = oneshot::channel();
    let lent = LentBody { body: Some(body), give: Some(give) };
    let response = next.run(Request::from_parts(parts, Body::new(lent))).await;
    if let Ok(body) = given.try_recv() {
        // The client is slow, or sends more than anyone accepts: its connection is closed.
        let _ = tokio::time::timeout(LONGEST, discard(body)).await;
    }
    response
}

async fn discard(mut body: Body) {
    let mut read = 0;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(IDLE, body.frame()).await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MOST {
            return;
        }
    }
}

/// A body that is returned when its handler drops it.
struct LentBody {
    body: Option<Body>,
    give: Option<oneshot::Sender<Body>>,
}

impl HttpBody for LentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        if let (Some(body), Some(give)) = (self.body.take(), self.give.take()) {
            // If the connection is gone, nobody waits for the answer.
            let _ = give.send(body);
        }
    }
}
