//! Raw logs in a folder or a bucket, compressed with zstd and named by their content: `ab/<SHA-256 of the raw
//! log>.zst`.

use crate::data::make_private;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::prefix::PrefixStore;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig, WriteMultipart};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use sqlx::any::{AnyTypeInfo, AnyValueRef};
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::{Any, Database, Decode, Encode, Type};
use std::collections::HashMap;
use std::error::Error as _;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};
use tokio::io::AsyncReadExt;
use tokio_util::io::{ReaderStream, StreamReader, SyncIoBridge};
use trainplan_shared::units::group_digits;
use uuid::Uuid;

/// Incomplete files that have not changed for this long are leftovers of programs that ended early.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The size of the pieces in which a blob is written: S3 requires at least 5 MiB.
pub(super) const PIECE: usize = 8 * 1024 * 1024;

/// The largest zstd window, as a power of two: 8 MiB, which RFC 9659 allows. A decoder needs that much memory.
pub(crate) const WINDOW_LOG: u32 = 23;

/// A file of this size may be larger than its content.
const SMALL: u64 = 64 << 10;

/// The bytes of a file that are read at once.
const READ: usize = 64 << 10;

/// The most logs whose checks are remembered.
const MOST_CHECKED: usize = 10_000;

/// The place of raw logs.
#[derive(Debug, Clone)]
pub(super) struct Blobs {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The folder, unless it is a bucket.
    folder: Option<PathBuf>,
    /// Its name for messages.
    name: String,
    /// The logs whose content was compared with their hash, each with the mark of what was read.
    checked: Arc<Mutex<HashMap<LogHash, String>>>,
}

/// Why a log can't be stored or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BlobError {
    /// It is not the log that the result names.
    #[error(
        "{name} is not the log that the result was made from: its SHA-256 is {is}, and the result names {wanted}. Use the \
         unchanged log."
    )]
    OtherLog {
        /// The file, or the upload.
        name: String,
        /// Its hash.
        is: String,
        /// The hash that the result names.
        wanted: String,
    },
    /// The result names no valid hash.
    #[error(
        "The result's SHA-256 of its log, {0:?}, is not 64 hexadecimal digits. Make the result again from the log."
    )]
    NoHash(String),
    /// The log can't be read.
    #[error("Can't read the log {} as zstd: {error}. Compress it again.", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system or the decoder.
        error: io::Error,
    },
    /// The folder or bucket failed.
    #[error("The logs in {name} can't be read or written: {error}.")]
    Objects {
        /// The folder or bucket.
        name: String,
        /// Its error.
        error: object_store::Error,
    },
    /// Another client completed or discarded the pieces of a log while they were joined.
    #[error(
        "Another client completed or discarded this log meanwhile. Ask how much of it the server has, and continue from there."
    )]
    PiecesGone,
    /// The disk of the logs is full.
    #[error("The disk of the logs in {name} is full. Free some space, and try again.")]
    Full {
        /// The folder.
        name: String,
    },
    /// The address is invalid.
    #[error("Can't store logs at {url}: {what}. Use s3://BUCKET/PREFIX or the path of a folder.")]
    Address {
        /// The address.
        url: String,
        /// What is wrong.
        what: String,
    },
    /// The folder can't be created.
    #[error("Can't create the folder {}: {error}.", path.display())]
    Folder {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// The SHA-256 of a raw log, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LogHash(String);

impl LogHash {
    /// Reads a hash from untrusted text. It becomes a part of a path, so nothing but digits may pass.
    pub(crate) fn parse(text: &str) -> Result<LogHash, BlobError> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(is_digit) {
            Ok(LogHash(text.to_owned()))
        } else {
            Err(BlobError::NoHash(text.to_owned()))
        }
    }

    /// Returns the hash in hexadecimal.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self) -> Key {
        Key::from_iter([&self.0[..2], &format!("{}.zst", self.0)])
    }
}

impl Type<Any> for LogHash {
    fn type_info() -> AnyTypeInfo {
        <str as Type<Any>>::type_info()
    }
}

impl<'q> Encode<'q, Any> for LogHash {
    fn encode_by_ref(
        &self,
        buffer: &mut <Any as Database>::ArgumentBuffer<'q>,
    ) -> Result<IsNull, BoxDynError> {
        <String as Encode<'q, Any>>::encode_by_ref(&self.0, buffer)
    }
}

impl<'r> Decode<'r, Any> for LogHash {
    fn decode(value: AnyValueRef<'r>) -> Result<LogHash, BoxDynError> {
        Ok(LogHash::parse(&<String as Decode<'r, Any>>::decode(value)?)?)
    }
}

impl Blobs {
    /// Opens a folder; creates it if needed, and deletes incomplete files of interrupted programs.
    pub(super) fn folder(path: &Path) -> Result<Blobs, BlobError> {
        let failed = |error| BlobError::Folder { path: path.to_path_buf(), error };
        make_private(path).map_err(failed)?;
        clear_drafts(path).map_err(failed)?;
        let name = path.display().to_string();
        match LocalFileSystem::new_with_prefix(path) {
            Ok(local) => {
                let objects = Arc::new(local.with_fsync(true).with_automatic_cleanup(true));
                Ok(Blobs { objects, folder: Some(path.to_path_buf()), name, checked: Arc::default() })
            }
            Err(error) => Err(BlobError::Objects { name, error }),
        }
    }

    /// Opens a bucket, `s3://BUCKET/PREFIX`. Keys and endpoint come from the environment (`AWS_ACCESS_KEY_ID`
    /// and so on).
    pub(super) fn bucket(url: &str) -> Result<Blobs, BlobError> {
        let refuse = |what: String| BlobError::Address { url: url.to_owned(), what };
        let rest = url.strip_prefix("s3://").ok_or_else(|| refuse("it does not begin with s3://".into()))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(refuse("it has no bucket".into()));
        }
        let prefix = Key::parse(prefix.trim_matches('/')).map_err(|error| refuse(error.to_string()))?;
        crate::tls::ready();
        // Few retries, so that clients get an answer and try again.
        let retry =
            RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(15), ..RetryConfig::default() };
        let bucket = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build();
        let bucket = bucket.map_err(|error| refuse(error.to_string()))?;
        let objects = Arc::new(PrefixStore::new(bucket, prefix));
        Ok(Blobs { objects, folder: None, name: url.to_owned(), checked: Arc::default() })
    }

    /// Stores a copy of `log`, a file compressed with zstd, after checking its size and its hash; replaces an
    /// earlier one. It is stored completely or not at all.
    pub(super) async fn put(&self, sha256: &LogHash, log: &Path, most: u64) -> Result<(), BlobError> {
        let unread = |error| BlobError::Read { path: log.to_path_buf(), error };
        let path = log.to_path_buf();
        let hashed = tokio::task::spawn_blocking(move || bounded_hash(&path, most)).await;
        let hashed = hashed.map_err(io::Error::other);
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

    /// Begins a blob, which exists only after it is finished.
    pub(super) fn begin<'a>(&'a self, sha256: &LogHash) -> Draft<'a> {
        Draft { blobs: self, key: sha256.key(), first: None, upload: None }
    }

    /// Returns the path of a log in the folder; none in a bucket.
    fn path_of(&self, key: &Key) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(key.as_ref()))
    }

    /// Returns whether the log is stored. What is not a regular file is not a log.
    pub(super) async fn has(&self, sha256: &LogHash) -> Result<bool, BlobError> {
        if let Some(path) = self.path_of(&sha256.key()) {
            return match tokio::fs::metadata(&path).await {
                Ok(found) => Ok(found.is_file()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(self.of_folder(error)),
            };
        }
        match self.objects.head(&sha256.key()).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Returns the log, compressed with zstd; none if it is missing, or if something other than a regular file is in its
    /// place.
    pub(super) async fn read(&self, sha256: &LogHash) -> Result<Option<Log>, BlobError> {
        if let Some(path) = self.path_of(&sha256.key()) {
            let opened = tokio::task::spawn_blocking(move || open_regular(&path)).await;
            let opened = opened.map_err(io::Error::other).and_then(|opened| opened);
            let Some((file, found)) = opened.map_err(|error| self.of_folder(error))? else {
                return Ok(None);
            };
            let size = usize::try_from(found.len()).unwrap_or(usize::MAX);
            let pieces = ReaderStream::with_capacity(tokio::fs::File::from_std(file), READ).boxed();
            return Ok(Some(Log { sha256: sha256.clone(), size, mark: Some(mark(&found)), pieces }));
        }
        let found = match self.objects.get(&sha256.key()).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        };
        let size = usize::try_from(found.meta.size).unwrap_or(usize::MAX);
        let changed = found.meta.last_modified;
        let mark = found.meta.e_tag.as_ref().map(|tag| format!("{tag} {size} {changed}"));
        let pieces = found.into_stream().map_err(io::Error::from).boxed();
        Ok(Some(Log { sha256: sha256.clone(), size, mark, pieces }))
    }

    /// Remembers that a log with this mark was compared with its hash, and is sound.
    pub(super) fn remember(&self, sha256: &LogHash, mark: String) {
        let mut checked = self.checked();
        if checked.len() >= MOST_CHECKED {
            checked.clear();
        }
        checked.insert(sha256.clone(), mark);
    }

    /// Returns whether a log was compared with its hash, and did not change since then.
    pub(super) fn is_checked(&self, log: &Log) -> bool {
        log.mark.is_some() && self.checked().get(&log.sha256) == log.mark.as_ref()
    }

    fn checked(&self) -> MutexGuard<'_, HashMap<LogHash, String>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the log, if it is stored.
    pub(super) async fn remove(&self, sha256: &LogHash) -> Result<(), BlobError> {
        self.clear_place(&sha256.key()).await?;
        match self.objects.delete(&sha256.key()).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Moves a folder away that is in the place of a log: no log could replace it. An empty one is deleted.
    async fn clear_place(&self, key: &Key) -> Result<(), BlobError> {
        let Some(path) = self.path_of(key) else { return Ok(()) };
        let clear = move || {
            if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                return Ok(());
            }
            let aside = path.with_extension(format!("moved-{}", Uuid::now_v7()));
            fs::remove_dir(&path).or_else(|_| {
                tracing::warn!(
                    "{} is a folder where a log should be; it is renamed to {}",
                    path.display(),
                    aside.display()
                );
                fs::rename(&path, &aside)
            })
        };
        let cleared = tokio::task::spawn_blocking(clear).await.map_err(io::Error::other);
        cleared.and_then(|cleared| cleared).map_err(|error| self.of_folder(error))
    }

    /// Returns the logs that are older than a day: by then, a run refers to each that is still needed.
    pub(super) fn settled(&self) -> BoxStream<'_, Result<LogHash, BlobError>> {
        let settled = |meta: ObjectMeta| {
            let age = SystemTime::now().duration_since(meta.last_modified.into());
            let name = meta.location.filename()?.strip_suffix(".zst")?;
            LogHash::parse(name).ok().filter(|_| age.is_ok_and(|age| age > ABANDONED))
        };
        let listed = self.objects.list(None).map_err(|error| self.failed(error));
        listed.try_filter_map(move |meta| std::future::ready(Ok(settled(meta)))).boxed()
    }

    /// Returns the path or address of a log.
    pub(super) fn name_of(&self, sha256: &LogHash) -> String {
        format!("{}/{}", self.name.trim_end_matches('/'), sha256.key())
    }

    /// Returns the error for an error of the folder.
    fn of_folder(&self, error: io::Error) -> BlobError {
        self.failed(object_store::Error::Generic { store: "folder", source: error.into() })
    }

    pub(super) fn failed(&self, error: object_store::Error) -> BlobError {
        let causes = iter::successors(error.source(), |error| (*error).source());
        let is_full = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        };
        if causes.into_iter().filter_map(|error| error.downcast_ref()).any(is_full) {
            return BlobError::Full { name: self.name.clone() };
        }
        BlobError::Objects { name: self.name.clone(), error }
    }
}

/// A raw log, read as a stream and compressed with zstd.
pub(crate) struct Log {
    sha256: LogHash,
    /// The number of its compressed bytes.
    pub(crate) size: usize,
    /// A text that becomes another one when the stored log changes, if there is one.
    pub(super) mark: Option<String>,
    /// Its compressed bytes.
    pub(crate) pieces: BoxStream<'static, io::Result<Bytes>>,
}

impl Log {
    /// Reads the uncompressed log on a thread that may block, with `work`. Reading fails at the log's end if the content does not
    /// have its hash, and at once if nobody waits for the result any more, because a log may take minutes and clients leave.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) async fn read<T: Send + 'static>(
        self,
        work: impl FnOnce(&mut dyn Read) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let waiting = Arc::new(());
        let waited_for = Arc::downgrade(&waiting);
        let read = tokio::task::spawn_blocking(move || work(&mut Awaited { raw: self.raw()?, waited_for }));
        let read = read.await.map_err(io::Error::other).and_then(|read| read);
        drop(waiting);
        read
    }

    /// Returns a reader of the uncompressed log, for a thread that may block. If the content does not have the
    /// log's hash, the reader fails at its end.
    pub(crate) fn raw(self) -> io::Result<impl Read + Send + 'static> {
        let raw = zstd::Decoder::new(SyncIoBridge::new(StreamReader::new(self.pieces)))?;
        Ok(Verified { raw, hash: Sha256::new(), sha256: self.sha256 })
    }
}

/// A reader that fails once nobody waits for the result any more.
struct Awaited<R> {
    raw: R,
    waited_for: Weak<()>,
}

impl<R: Read> Read for Awaited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.waited_for.strong_count() {
            0 => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "nobody waits for it")),
            _ => self.raw.read(buffer),
        }
    }
}

/// A reader that compares the hash of what it read when it reaches the end.
struct Verified<R> {
    raw: R,
    hash: Sha256,
    sha256: LogHash,
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.hash.update(&buffer[..count]);
        if count == 0 && !buffer.is_empty() && hex(&self.hash.clone().finalize()) != self.sha256.0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its content is not the uploaded log"));
        }
        Ok(count)
    }
}

/// A blob that is being written.
pub(super) struct Draft<'a> {
    blobs: &'a Blobs,
    key: Key,
    /// The first piece: a blob of one piece is written in one request.
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
        // Pieces that are being sent occupy memory.
        upload.wait_for_capacity(2).await.map_err(failed)?;
        if let Some(first) = self.first.take() {
            upload.put(first);
        }
        upload.put(bytes);
        self.upload = Some(upload);
        Ok(())
    }

    pub(super) async fn finish(mut self) -> Result<(), BlobError> {
        self.blobs.clear_place(&self.key).await?;
        let finished = match self.upload.take() {
            Some(upload) => upload.finish().await,
            None => {
                let all = self.first.take().unwrap_or_default();
                self.blobs.objects.put(&self.key, all.into()).await
            }
        };
        finished.map(|_| ()).map_err(|error| self.blobs.failed(error))
    }

    /// Discards what was written.
    pub(super) async fn drop(mut self) {
        if let Some(upload) = self.upload.take() {
            // If this fails, the bucket deletes abandoned uploads by its own rules.
            let _ = upload.abort().await;
        }
    }
}

/// Opens a regular file. Returns none if there is none, or something else, such as a pipe.
fn open_regular(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    // Without this flag, opening a pipe waits for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // Sockets can't be opened.
        Err(error) if error == Errno::NOENT || error == Errno::NXIO => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    Ok(found.is_file().then_some((file, found)))
}

/// Returns a text that becomes another one when a file is written to or replaced.
fn mark(file: &Metadata) -> String {
    let [written, changed] = [(file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec())]
        .map(|(seconds, nanoseconds)| format!("{seconds}.{nanoseconds}"));
    format!("{} {} {} {written} {changed}", file.dev(), file.ino(), file.size())
}

/// Deletes old incomplete files, whose names end in `#` and a number.
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
            // Another program may have deleted it meanwhile.
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Returns the SHA-256 of a compressed file's content.
pub(super) fn hash(path: &Path) -> io::Result<String> {
    hash_content(File::open(path)?)
}

/// Returns the SHA-256 of what compressed bytes contain.
pub(super) fn hash_content(packed: impl Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut zstd::Decoder::new(packed)?, &mut Hasher(&mut hash))?;
    Ok(hex(&hash.finalize()))
}

/// Returns the SHA-256 of a compressed file's content.
///
/// # Errors
/// The file or its content has more than `most` bytes, or reading it needs more memory than the server spends.
fn bounded_hash(path: &Path, most: u64) -> io::Result<String> {
    let file = File::open(path)?;
    let mut decoder = zstd::Decoder::new(&file)?;
    decoder.window_log_max(WINDOW_LOG)?;
    let mut hash = Sha256::new();
    let count = io::copy(&mut decoder.take(most.saturating_add(1)), &mut Hasher(&mut hash))?;
    // Frames without content make the file larger than what it contains.
    if count > most || file.metadata()?.len() > most.max(SMALL) {
        return Err(io::Error::other(format!("it has more than {} bytes", group_digits(most as f64))));
    }
    Ok(hex(&hash.finalize()))
}

/// Writes bytes into a hash.
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

/// Returns bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
