//! A raw log, read in pieces so that only one is in memory.

use super::LEVEL;
use crate::log_file;
use crate::store::{LogHash, Store, StoreError, hex};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use zstd::stream::write::Encoder;

/// The raw bytes of a piece. Each piece is one request, the most that a broken connection costs.
const PIECE: u64 = 16 << 20;

/// A raw log that can be read more than once.
pub(crate) struct RawLog {
    source: Source,
    /// The open reader, and its position.
    reading: Option<(Reader, u64)>,
    piece_bytes: u64,
}

enum Source {
    /// Files, plain or compressed, which are one log, one after the other.
    Files(Vec<PathBuf>),
    /// A log of the store.
    Stored(Store, LogHash),
}

type Reader = BufReader<Box<dyn Read + Send>>;

/// A piece of a log.
pub(super) struct Piece {
    /// Its bytes, compressed with zstd.
    pub(super) packed: Bytes,
    /// Whether it is the last piece.
    pub(super) is_last: bool,
}

impl RawLog {
    /// Returns the log in a file, plain or compressed.
    pub(crate) fn of_file(path: &Path) -> RawLog {
        RawLog::of_files(vec![path.to_path_buf()])
    }

    /// Returns the log in files, one after the other.
    pub(crate) fn of_files(paths: Vec<PathBuf>) -> RawLog {
        RawLog::of(Source::Files(paths))
    }

    /// Returns a log of the store.
    pub(crate) fn of_store(store: &Store, log: LogHash) -> RawLog {
        RawLog::of(Source::Stored(store.clone(), log))
    }

    fn of(source: Source) -> RawLog {
        RawLog { source, reading: None, piece_bytes: PIECE }
    }

    /// Returns the log with pieces of this many raw bytes.
    #[cfg(test)]
    pub(super) fn in_pieces_of(self, bytes: u64) -> RawLog {
        RawLog { piece_bytes: bytes, ..self }
    }

    /// Returns the log's SHA-256.
    pub(crate) async fn sha256(&self) -> io::Result<String> {
        let mut reader = open(&self.source).await?;
        let hashed = tokio::task::spawn_blocking(move || {
            let mut hash = Sha256::new();
            loop {
                let bytes = reader.fill_buf()?;
                if bytes.is_empty() {
                    return Ok(hex(&hash.finalize()));
                }
                hash.update(bytes);
                let length = bytes.len();
                reader.consume(length);
            }
        });
        hashed.await.map_err(io::Error::other)?
    }

    /// Returns the piece at an offset; it is empty if the log is shorter.
    pub(super) async fn piece(&mut self, offset: u64) -> io::Result<Piece> {
        let (mut reader, mut at) = match self.reading.take() {
            Some((reader, at)) if at <= offset => (reader, at),
            _ => (open(&self.source).await?, 0),
        };
        let most = self.piece_bytes;
        let read = tokio::task::spawn_blocking(move || {
            at += io::copy(&mut (&mut reader).take(offset - at), &mut io::sink())?;
            let mut packed = Encoder::new(Vec::new(), LEVEL)?;
            at += io::copy(&mut (&mut reader).take(most), &mut packed)?;
            packed.flush()?;
            let is_last = reader.fill_buf()?.is_empty();
            Ok::<_, io::Error>((reader, at, Piece { packed: packed.finish()?.into(), is_last }))
        });
        let (reader, at, piece) = read.await.map_err(io::Error::other)??;
        self.reading = Some((reader, at));
        Ok(piece)
    }
}

async fn open(source: &Source) -> io::Result<Reader> {
    let reader: Box<dyn Read + Send> = match source {
        Source::Files(paths) => log_file::open_all(paths)?,
        Source::Stored(store, log) => {
            let log = store.read_log(log).await.map_err(|error: StoreError| io::Error::other(error))?;
            Box::new(log.raw()?)
        }
    };
    Ok(BufReader::with_capacity(1 << 18, reader))
}
