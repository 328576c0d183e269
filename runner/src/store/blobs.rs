//! Raw logs, each compressed by zstd and named by what it holds: `ab/<SHA-256 of the raw log>.zst`, in a folder or in a
//! bucket.

use crate::data::make_private;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::prefix::PrefixStore;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig, WriteMultipart};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::AsyncReadExt;
use tokio_util::io::{StreamReader, SyncIoBridge};

/// A draft that nobody has written to for so long was left behind by a program that ended early.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A blob is written in pieces of this many bytes: no S3 takes less than 5 MiB.
pub(super) const PIECE: usize = 8 * 1024 * 1024;

/// Where raw logs are.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// What to call it.
    name: String,
}

/// Why a log can't be kept or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlobError {
    /// It is another log.
    #[error(
        "{name} is not the log that the result was made from: the SHA-256 of what it holds is {is}, and the result names \
         {wanted}"
    )]
    OtherLog {
        /// The file, or what came over the network.
        name: String,
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
    /// The place of the logs can't be reached, or refuses.
    #[error("the logs in {name} can't be written or read: {error}")]
    Objects {
        /// The folder or bucket.
        name: String,
        /// What it said.
        error: object_store::Error,
    },
    /// There is no such place.
    #[error("there is no place for logs at {url}: {what}; give s3://BUCKET/PREFIX, or the path of a folder")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong.
        what: String,
    },
    /// The folder can't be made.
    #[error("cannot make the folder {}: {error}", path.display())]
    Folder {
        /// Where it was to be.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// The SHA-256 of a raw log: what can be no hash has no name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHash(String);

impl LogHash {
    /// Reads a hash that anyone may have written: it becomes part of a path.
    pub(crate) fn parse(text: &str) -> Result<LogHash, BlobError> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(is_digit) {
            Ok(LogHash(text.to_owned()))
        } else {
            Err(BlobError::NoHash(text.to_owned()))
        }
    }

    /// The hash in hexadecimal.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self) -> Key {
        Key::from_iter([&self.0[..2], &format!("{}.zst", self.0)])
    }
}

impl Blobs {
    /// A folder on this machine; makes it if there is none, and clears away what interrupted programs left in it.
    pub(super) fn folder(path: &Path) -> Result<Blobs, BlobError> {
        let failed = |error| BlobError::Folder { path: path.to_path_buf(), error };
        make_private(path).map_err(failed)?;
        clear_drafts(path).map_err(failed)?;
        let name = path.display().to_string();
        match LocalFileSystem::new_with_prefix(path) {
            Ok(local) => Ok(Blobs { objects: Arc::new(local.with_fsync(true)), name }),
            Err(error) => Err(BlobError::Objects { name, error }),
        }
    }

    /// A bucket, by `s3://BUCKET/PREFIX`: its keys and endpoint come from the environment (AWS_ACCESS_KEY_ID and so on).
    pub(super) fn bucket(url: &str) -> Result<Blobs, BlobError> {
        let refuse = |what: String| BlobError::Address { url: url.to_owned(), what };
        let rest = url.strip_prefix("s3://").ok_or_else(|| refuse("it is no s3:// address".into()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(refuse("it names no bucket".into()));
        }
        let prefix = Key::parse(prefix.trim_matches('/')).map_err(|error| refuse(error.to_string()))?;
        crate::tls::ready();
        // Whoever asked is better told soon, and asks again.
        let retry =
            RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(15), ..RetryConfig::default() };
        let bucket = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build();
        let bucket = bucket.map_err(|error| refuse(error.to_string()))?;
        Ok(Blobs { objects: Arc::new(PrefixStore::new(bucket, prefix)), name: url.to_owned() })
    }

    /// Keeps a copy of `log`, a file compressed by zstd, under the hash of what it holds. It is there whole or not at all.
    pub(super) async fn keep(&self, sha256: &LogHash, log: &Path) -> Result<(), BlobError> {
        if self.has(sha256).await? {
            return Ok(());
        }
        let unread = |error| BlobError::Read { path: log.to_path_buf(), error };
        let path = log.to_path_buf();
        let hashed = tokio::task::spawn_blocking(move || hash(&path)).await.map_err(io::Error::other);
        let is = hashed.and_then(|hash| hash).map_err(unread)?;
        if is != sha256.0 {
            let (name, wanted) = (log.display().to_string(), sha256.0.clone());
            return Err(BlobError::OtherLog { name, is, wanted });
        }
        let mut file = tokio::fs::File::open(log).await.map_err(unread)?;
        let mut blob = self.begin(sha256);
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            if (&mut file).take(PIECE as u64).read_to_end(&mut piece).await.map_err(unread)? == 0 {
                break;
            }
            blob.write(piece.into()).await?;
        }
        blob.finish().await
    }

    /// Begins to write a blob that is there only when it is finished.
    pub(super) fn begin<'a>(&'a self, sha256: &LogHash) -> Draft<'a> {
        Draft { blobs: self, key: sha256.key(), first: None, upload: None }
    }

    /// Whether the log is here.
    pub(super) async fn has(&self, sha256: &LogHash) -> Result<bool, BlobError> {
        match self.objects.head(&sha256.key()).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The log, compressed by zstd.
    pub(super) async fn read(&self, sha256: &LogHash) -> Result<Log, BlobError> {
        let found = self.objects.get(&sha256.key()).await.map_err(|error| self.failed(error))?;
        Ok(Log { pieces: found.into_stream().map_err(io::Error::from).boxed() })
    }

    /// Removes the log, if it is there.
    pub(super) async fn remove(&self, sha256: &LogHash) -> Result<(), BlobError> {
        match self.objects.delete(&sha256.key()).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// The logs that came more than a day ago: whatever was to name them does by now.
    pub(super) fn settled(&self) -> BoxStream<'_, Result<LogHash, BlobError>> {
        let settled = |meta: ObjectMeta| {
            let age = SystemTime::now().duration_since(meta.last_modified.into());
            let name = meta.location.filename()?.strip_suffix(".zst")?;
            LogHash::parse(name).ok().filter(|_| age.is_ok_and(|age| age > ABANDONED))
        };
        let listed = self.objects.list(None).map_err(|error| self.failed(error));
        listed.try_filter_map(move |meta| std::future::ready(Ok(settled(meta)))).boxed()
    }

    /// What to call a log: the path of its file, or its address.
    pub(super) fn name_of(&self, sha256: &LogHash) -> String {
        format!("{}/{}", self.name.trim_end_matches('/'), sha256.key())
    }

    pub(super) fn failed(&self, error: object_store::Error) -> BlobError {
        BlobError::Objects { name: self.name.clone(), error }
    }
}

/// A raw log, compressed by zstd, as it is read.
pub(crate) struct Log {
    /// Its bytes.
    pub(crate) pieces: BoxStream<'static, io::Result<Bytes>>,
}

impl Log {
    /// The log as it was before it was compressed, for a thread that may wait.
    pub(crate) fn raw(self) -> io::Result<impl Read + Send + 'static> {
        zstd::Decoder::new(SyncIoBridge::new(StreamReader::new(self.pieces)))
    }
}

/// A blob on its way. One that is dropped was never there.
pub(super) struct Draft<'a> {
    blobs: &'a Blobs,
    key: Key,
    /// What is small is put in one go.
    first: Option<Bytes>,
    upload: Option<WriteMultipart>,
}

impl Draft<'_> {
    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), BlobError> {
        if self.first.is_none() && self.upload.is_none() {
            self.first = Some(bytes);
            return Ok(());
        }
        let failed = |error| self.blobs.failed(error);
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => {
                let upload = self.blobs.objects.put_multipart(&self.key).await.map_err(failed)?;
                WriteMultipart::new_with_chunk_size(upload, PIECE)
            }
        };
        // Whatever is on its way is in memory.
        upload.wait_for_capacity(2).await.map_err(failed)?;
        if let Some(first) = self.first.take() {
            upload.put(first);
        }
        upload.put(bytes);
        self.upload = Some(upload);
        Ok(())
    }

    pub(super) async fn finish(mut self) -> Result<(), BlobError> {
        let finished = match self.upload.take() {
            Some(upload) => upload.finish().await,
            None => {
                let all = self.first.take().unwrap_or_default();
                self.blobs.objects.put(&self.key, all.into()).await
            }
        };
        finished.map(|_| ()).map_err(|error| self.blobs.failed(error))
    }

    /// Gives it up.
    pub(super) async fn drop(mut self) {
        if let Some(upload) = self.upload.take() {
            // A bucket clears away what is abandoned, by its own rules.
            let _ = upload.abort().await;
        }
    }
}

/// Files that are being written have `#` and a number behind their names.
fn clear_drafts(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            clear_drafts(&path)?;
            continue;
        }
        let age = entry.metadata().and_then(|data| data.modified()).map(|time| time.elapsed());
        let is_draft = entry.file_name().to_string_lossy().contains('#');
        if is_draft && matches!(age, Ok(Ok(age)) if age > ABANDONED) {
            // Another program may have cleared it away meanwhile.
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// The SHA-256 of what a compressed file holds.
fn hash(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut zstd::Decoder::new(File::open(path)?)?, &mut Hasher(&mut hash))?;
    Ok(hex(&hash.finalize()))
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
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
