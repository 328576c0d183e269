//! The text of a dropped log, plain or compressed, read piece by piece.
//!
//! The browser decompresses: all browsers know gzip, and some know zstd. As on the command line, a log and a compressed copy of
//! it have the same text, and so the same id.

use super::scope;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::js_sys::{Array, Function, Reflect, Uint8Array};
use web_sys::{Blob, ReadableStream, ReadableStreamDefaultReader, ReadableWritablePair, Response};

/// The bytes that are read at a time: enough to be fast, few enough for frequent progress.
const CHUNK: f64 = 4.0 * 1024.0 * 1024.0;

/// How often a compressed log may expand, as on the command line.
const MOST_EXPANSION: f64 = 1000.0;

/// How far every compressed file may expand, in bytes.
const LEAST_LIMIT: f64 = 64.0 * 1024.0 * 1024.0;

/// How a log is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// Returns the compression of a file that begins like this.
    fn of(start: &[u8]) -> Option<Compression> {
        match start {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Returns the decompressed stream of a file.
    fn open(self, blob: &Blob) -> Result<ReadableStream, String> {
        let (format, name) = match self {
            Compression::Gzip => ("gzip", "gzip"),
            Compression::Zstd => ("zstd", "Zstandard"),
        };
        let known = Reflect::get(scope().as_ref(), &"DecompressionStream".into())
            .and_then(JsCast::dyn_into::<Function>)
            .and_then(|class| Reflect::construct(&class, &Array::of1(&format.into())));
        let stream = known.map_err(|_| {
            format!("This browser can't read logs that are compressed with {name}. Decompress the log first.")
        })?;
        // A decompression stream is such a pair.
        Ok(blob.stream().pipe_through(stream.unchecked_ref::<ReadableWritablePair>()))
    }
}

/// The text of a log, from its first byte to its last.
pub(super) struct LogText {
    blob: Blob,
    /// The bytes of the file that are read.
    done: f64,
    unpacked: Option<Unpacked>,
}

/// The text of a compressed log.
struct Unpacked {
    reader: ReadableStreamDefaultReader,
    bytes: f64,
}

impl LogText {
    /// Opens a log. A compressed one is recognized by how it begins.
    pub(super) async fn open(blob: &Blob) -> Result<LogText, String> {
        let unpacked = match Compression::of(&slice(blob, 0.0, 4.0).await?) {
            Some(compression) => {
                let reader = ReadableStreamDefaultReader::new(&compression.open(blob)?);
                Some(Unpacked { reader: reader.map_err(|error| broken(&error))?, bytes: 0.0 })
            }
            None => None,
        };
        Ok(LogText { blob: blob.clone(), done: 0.0, unpacked })
    }

    /// Returns how many bytes of the file are read; of a compressed one, by a guess of its expansion.
    pub(super) fn done(&self) -> f64 {
        const EXPANSION: f64 = 10.0;
        match &self.unpacked {
            Some(unpacked) => (unpacked.bytes / EXPANSION).min(self.blob.size()),
            None => self.done,
        }
    }

    /// Returns the next bytes; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let size = self.blob.size();
        let Some(unpacked) = &mut self.unpacked else {
            let piece = slice(&self.blob, self.done, (self.done + CHUNK).min(size)).await?;
            self.done += piece.len() as f64;
            return Ok((!piece.is_empty()).then_some(piece));
        };
        let read = JsFuture::from(unpacked.reader.read()).await;
        let read = read.map_err(|_| "The compressed file is damaged or cut off.".to_string())?;
        let is_done = Reflect::get(&read, &"done".into()).is_ok_and(|done| done.is_truthy());
        let piece = Reflect::get(&read, &"value".into()).ok().filter(|_| !is_done);
        let piece = piece.map(|piece| piece.unchecked_into::<Uint8Array>().to_vec());
        unpacked.bytes += piece.as_ref().map_or(0, Vec::len) as f64;
        if unpacked.bytes > (size * MOST_EXPANSION).max(LEAST_LIMIT) {
            return Err(format!(
                "The compressed file expands more than {MOST_EXPANSION} times, as no log does."
            ));
        }
        Ok(piece)
    }
}

/// Returns the text of a log as a blob, for its upload. A plain log is returned unchanged.
pub(super) async fn unpacked(blob: &Blob) -> Result<Blob, String> {
    let Some(compression) = Compression::of(&slice(blob, 0.0, 4.0).await?) else { return Ok(blob.clone()) };
    let text = Response::new_with_opt_readable_stream(Some(&compression.open(blob)?));
    let text = text.and_then(|response| response.blob()).map_err(|error| broken(&error))?;
    let text =
        JsFuture::from(text).await.map_err(|_| "The compressed file is damaged or cut off.".to_string())?;
    Ok(text.unchecked_into())
}

/// Returns bytes of a file.
pub(super) async fn slice(blob: &Blob, from: f64, to: f64) -> Result<Vec<u8>, String> {
    let piece = blob.slice_with_f64_and_f64(from, to).map_err(|error| broken(&error))?;
    let bytes = JsFuture::from(piece.array_buffer()).await.map_err(|error| broken(&error))?;
    Ok(Uint8Array::new(&bytes).to_vec())
}

fn broken(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    let message =
        message.unwrap_or_else(|| "it may have been moved, or you may lack permission to read it".into());
    format!("the browser could not read it: {message}")
}
