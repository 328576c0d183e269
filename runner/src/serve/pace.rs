//! Disconnects clients that read their responses too slowly: what they don't read occupies memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// The total time that a connection may wait for its client to read. Each [`SLOWEST`] bytes written add a
/// second.
const WAITING: Duration = Duration::from_secs(30);
const SLOWEST: u64 = 64 << 10;

/// A connection whose client must read at a minimum rate. Only time with unread data counts, so a connection may be
/// idle for any time.
#[derive(Debug)]
pub(super) struct Paced<S> {
    stream: S,
    /// The time that it may wait if nothing was written yet.
    free: Duration,
    written: u64,
    /// How long the connection waited so far.
    waited: Duration,
    /// Since when the connection waits, and when it ends.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> Paced<S> {
    pub(super) fn new(stream: S) -> Paced<S> {
        Paced { stream, free: WAITING, written: 0, waited: Duration::ZERO, waiting: None }
    }

    /// Records the outcome of a write.
    fn paced(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            if let Some((since, _)) = self.waiting.take() {
                self.waited += since.elapsed();
            }
            self.written += written.as_ref().map_or(0, |count| *count as u64);
            return Poll::Ready(written);
        }
        let whole = self.free + Duration::from_millis(self.written * 1000 / SLOWEST);
        let left = whole.saturating_sub(self.waited);
        let (_, end) = self.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + left)))
        });
        ready!(end.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.paced(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.paced(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    /// Reads pieces with pauses before them, until the connection ends.
    async fn read(mut client: DuplexStream, piece: usize, pause: Duration) {
        let mut buffer = vec![0; piece];
        loop {
            tokio::time::sleep(pause).await;
            if !client.read(&mut buffer).await.is_ok_and(|count| count > 0) {
                return;
            }
        }
    }

    /// Sends bytes to a client that reads in this way, on a connection that may wait for half a second at first.
    async fn send(bytes: usize, piece: usize, pause: Duration) -> (io::Result<()>, Duration) {
        let (server, client) = duplex(4096);
        let reading = tokio::spawn(read(client, piece, pause));
        let begun = Instant::now();
        let mut server = Paced { free: Duration::from_millis(500), ..Paced::new(server) };
        let sent = server.write_all(&vec![0; bytes]).await;
        reading.abort();
        (sent, begun.elapsed())
    }

    #[tokio::test]
    async fn a_client_that_trickles_is_disconnected() {
        let (sent, after) = send(1 << 20, 100, Duration::from_millis(20)).await;
        assert_eq!(sent.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(after >= Duration::from_millis(500), "{after:?}");
    }

    #[tokio::test]
    async fn a_client_that_reads_faster_than_the_minimum_is_served_for_any_time() {
        let (sent, after) = send(2 << 20, 4096, Duration::from_millis(2)).await;
        assert!(sent.is_ok() && after > Duration::from_secs(1), "{sent:?} {after:?}");
    }

    #[tokio::test]
    async fn the_time_in_which_nothing_is_sent_does_not_count() {
        let (server, mut client) = duplex(4096);
        let mut server = Paced { free: Duration::from_millis(50), ..Paced::new(server) };
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            server.write_all(b"event").await.unwrap();
            client.read_exact(&mut [0; 5]).await.unwrap();
        }
    }
}
