//! Log files, plain or compressed. Whatever a file is called, its text is read.
//!
//! A log's hash, and so its id, is that of its text: a log and a compressed copy of it are the same run.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a compressed log may expand. Traces of NCCL, which repeat themselves most, expand a hundred times.
const MOST_EXPANSION: u64 = 1000;

/// How far every compressed file may expand, in bytes.
const LEAST_LIMIT: u64 = 64 << 20;

/// The largest window of a zstd frame, as a power of two: what is in memory while a log is read.
const WINDOW_LOG: u32 = 23;

/// The bytes to ask the system for at a time.
const BUFFER: usize = 256 * 1024;

/// The text of a log.
pub(crate) type LogText = Box<dyn Read + Send>;

/// Opens logs that are read as one, one after the other.
pub(crate) fn open_all(paths: &[PathBuf]) -> io::Result<LogText> {
    let mut all: LogText = Box::new(io::empty());
    for path in paths {
        all = Box::new(all.chain(open(path)?));
    }
    Ok(all)
}

/// Opens a log.
pub(crate) fn open(path: &Path) -> io::Result<LogText> {
    text(File::open(path)?)
}

/// Returns the text of a log. A compressed one is recognized by how it begins.
pub(crate) fn text(file: impl Read + Send + 'static) -> io::Result<LogText> {
    let packed = Arc::new(AtomicU64::new(0));
    let mut file = BufReader::with_capacity(BUFFER, Counted { file, bytes: packed.clone() });
    Ok(match file.fill_buf()? {
        [0x1f, 0x8b, ..] => Box::new(Expanded { text: MultiGzDecoder::new(file), bytes: 0, packed }),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut text = zstd::Decoder::with_buffer(file)?;
            text.window_log_max(WINDOW_LOG)?;
            Box::new(Expanded { text, bytes: 0, packed })
        }
        _ => Box::new(file),
    })
}

/// A file, and how much of it was read.
struct Counted<R> {
    file: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The text of a compressed log. It may not be much longer than a log of that size can be.
struct Expanded<R> {
    text: R,
    bytes: u64,
    packed: Arc<AtomicU64>,
}

impl<R: Read> Read for Expanded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.text.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the compressed file is cut off"),
            kind => io::Error::new(kind, format!("the compressed file is damaged ({error})")),
        })?;
        self.bytes += count as u64;
        let most = (self.packed.load(Ordering::Relaxed) * MOST_EXPANSION).max(LEAST_LIMIT);
        if self.bytes > most {
            let what = format!("it expands more than {MOST_EXPANSION} times, as no log does");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(count)
    }
}
