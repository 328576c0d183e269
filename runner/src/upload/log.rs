//! A raw log in pieces, of which no more than one is in memory.

use super::LEVEL;
use crate::store::{LogHash, Store, StoreError, hex};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use zstd::stream::write::Encoder;

/// The raw bytes of a piece, each of which is a request: a cut costs no more.
const PIECE: u64 = 16 << 20;

/// A log that can be read from its beginning, more than once.
pub(crate) struct RawLog {
    source: Source,
    /// Where it is read, and how far that is.
    reading: Option<(Reader, u64)>,
    piece_bytes: u64,
}

enum Source {
    /// A file, as it is or compressed by zstd.
    File(PathBuf),
    /// The store's own.
    Stored(Store, LogHash),
}

type Reader = BufReader<Box<dyn Read + Send>>;

/// A piece of a log.
pub(super) struct Piece {
    /// Its bytes, compressed by zstd.
    pub(super) packed: Bytes,
    /// Whether the log ends with it.
    pub(super) is_last: bool,
}

impl RawLog {
    /// A file's, as it is or compressed by zstd.
    pub(crate) fn of_file(path: &Path) -> RawLog {
        RawLog::of(Source::File(path.to_path_buf()))
    }

    /// The store's.
    pub(crate) fn of_store(store: &Store, log: LogHash) -> RawLog {
        RawLog::of(Source::Stored(store.clone(), log))
    }

    fn of(source: Source) -> RawLog {
        RawLog { source, reading: None, piece_bytes: PIECE }
    }

    /// Of so many raw bytes each.
    #[cfg(test)]
    pub(super) fn in_pieces_of(self, bytes: u64) -> RawLog {
        RawLog { piece_bytes: bytes, ..self }
    }

    /// The SHA-256 of all of it.
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

    /// What follows from there on; nothing where the log is shorter.
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
        Source::File(path) => open_file(path)?,
        Source::Stored(store, log) => {
            let log = store.read_log(log).await.map_err(|error: StoreError| io::Error::other(error))?;
            Box::new(log.raw()?)
        }
    };
    Ok(BufReader::with_capacity(1 << 18, reader))
}

fn open_file(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut file = File::open(path)?;
    let mut begin = Vec::new();
    (&mut file).take(4).read_to_end(&mut begin)?;
    file.rewind()?;
    Ok(if begin == ZSTD { Box::new(zstd::Decoder::new(file)?) } else { Box::new(file) })
}
