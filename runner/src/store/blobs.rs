//! Raw logs, each compressed in a file that is named by what it holds: `ab/<SHA-256 of the raw log>.zst`.

use crate::data::make_private;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

/// A draft that nobody has written to for so long was left behind by a program that ended early.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The folder of raw logs.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    folder: PathBuf,
}

/// Why a log can't be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlobError {
    /// It is another log.
    #[error(
        "{} is not the log that the result was made from: the SHA-256 of what it holds is {is}, and the result names \
         {wanted}",
        path.display()
    )]
    OtherLog {
        /// The file.
        path: PathBuf,
        /// The hash that it has.
        is: String,
        /// The hash that it should have.
        wanted: String,
    },
    /// What the result names can't be a hash.
    #[error("the result names {0:?} as its log's SHA-256, which is not 64 hexadecimal digits")]
    NoHash(String),
    /// The log can't be read.
    #[error("cannot read the log {} as zstd: {error}; compress it again", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or the decoder said.
        error: io::Error,
    },
    /// The file can't be written.
    #[error("cannot keep a log in {}: {error}", path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl Blobs {
    /// Opens the folder, makes it if there is none, and clears away what interrupted programs left in it.
    pub(super) fn open(folder: PathBuf) -> io::Result<Blobs> {
        let blobs = Blobs { folder };
        make_private(&blobs.drafts())?;
        for draft in fs::read_dir(blobs.drafts())?.flatten() {
            let age = draft.metadata().and_then(|data| data.modified()).map(|time| time.elapsed());
            if let Ok(Ok(age)) = age
                && age > ABANDONED
            {
                // Another program may have cleared it away meanwhile.
                let _ = fs::remove_file(draft.path());
            }
        }
        Ok(blobs)
    }

    /// Where the log with this hash is, or would be.
    pub(super) fn path(&self, sha256: &str) -> PathBuf {
        let shelf = sha256.get(..2).unwrap_or_default();
        self.folder.join(shelf).join(format!("{sha256}.zst"))
    }

    /// Keeps a copy of `log`, a compressed file, under the hash of what it holds. It is there whole, on the disk, or
    /// not at all.
    pub(super) fn keep(&self, sha256: &str, log: &Path) -> Result<(), BlobError> {
        // It comes from a file that anyone may have written, and becomes a path.
        if sha256.len() != 64 || !sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(BlobError::NoHash(sha256.to_owned()));
        }
        let path = self.path(sha256);
        if path.exists() {
            return Ok(());
        }
        let draft = self.drafts().join(Uuid::now_v7().to_string());
        let kept = copy(log, &draft, sha256).and_then(|()| {
            place(&draft, &path).map_err(|error| BlobError::Write { path: self.folder.clone(), error })
        });
        if kept.is_err() {
            // The error that counts is the first one.
            let _ = fs::remove_file(&draft);
        }
        kept
    }

    fn drafts(&self) -> PathBuf {
        self.folder.join("drafts")
    }
}

/// Copies a compressed log onto the disk, and reads the copy to be sure that it is whole and the right one.
fn copy(log: &Path, draft: &Path, wanted: &str) -> Result<(), BlobError> {
    let unwritten = |error| BlobError::Write { path: draft.to_path_buf(), error };
    let unread = |error| BlobError::Read { path: log.to_path_buf(), error };
    let mut source = File::open(log).map_err(unread)?;
    let mut copy = File::create_new(draft).map_err(unwritten)?;
    io::copy(&mut source, &mut copy).and_then(|_| copy.sync_all()).map_err(unwritten)?;
    let mut hash = Sha256::new();
    let mut raw = File::open(draft).and_then(zstd::Decoder::new).map_err(unread)?;
    io::copy(&mut raw, &mut Hasher(&mut hash)).map_err(unread)?;
    let is = hex(&hash.finalize());
    if is == wanted {
        return Ok(());
    }
    Err(BlobError::OtherLog { path: log.to_path_buf(), is, wanted: wanted.to_owned() })
}

/// Gives a finished file its name, for good: the folders are on the disk as well when this returns.
fn place(draft: &Path, path: &Path) -> io::Result<()> {
    let shelf = path.parent().unwrap_or(Path::new(""));
    make_private(shelf)?;
    fs::rename(draft, path)?;
    File::open(shelf)?.sync_all()?;
    shelf.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Takes bytes into a hash.
struct Hasher<'a>(&'a mut Sha256);

impl io::Write for Hasher<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
