//! Result files: the uploaded one of each run, and its later scores. They are stored compressed with zstd, and returned only if
//! they have the hash that was stored with them.

use super::blobs::{LogHash, hash_content, hex};
use super::database::Typed;
use super::{Store, StoreError, time, unpack};
use crate::migrations::Engine;
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use sqlx::{Any, Executor};
use std::io;
use trainplan_shared::api::{EventKind, LogFault};
use trainplan_shared::result::{Provenance, RunResult};
use uuid::Uuid;

/// The size of a stored result file, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileSize {
    /// As it is stored.
    pub(crate) packed: usize,
    /// When decompressed.
    pub(crate) raw: usize,
}

/// A result file of a run whose faults are recorded in the run's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultFile {
    /// The uploaded one.
    Upload,
    /// The one of the newest later score.
    Score,
}

impl ResultFile {
    /// Returns the column of the table `runs` that names its fault.
    fn fault_column(self) -> &'static str {
        match self {
            ResultFile::Upload => "result_fault",
            ResultFile::Score => "score_fault",
        }
    }
}

/// A result file as it is stored, with what its run's row says about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredFile {
    /// The hash of an uploaded result's content, or of a score's file. None for scores that older programs stored.
    sha256: Option<String>,
    /// The file, compressed with zstd and unchecked. Empty if it is missing.
    pub(super) packed: Vec<u8>,
    /// The fault that an earlier check recorded.
    known: Option<LogFault>,
    /// The parser version and the time of a score, as the score's row has them.
    scored_by: Typed<Option<i64>>,
    scored_at: Typed<Option<String>>,
}

impl StoredFile {
    /// Compares the uploaded file of a run with its hash and with the run's id; returns what is wrong with it.
    fn upload_fault(&self, id: Uuid) -> Option<FileFault> {
        #[derive(Deserialize)]
        struct OnlyId {
            id: Uuid,
        }
        if self.packed.is_empty() {
            return Some(FileFault { fault: LogFault::Missing, what: "is missing".into() });
        }
        match hash_content(&self.packed[..]) {
            Ok(is) if self.sha256.as_ref() == Some(&is) => {}
            Ok(_) => {
                return Some(FileFault::damaged("is not the file that was uploaded: its SHA-256 differs"));
            }
            Err(error) => return Some(FileFault::damaged(format!("can't be decompressed: {error}"))),
        }
        // The row may have the hash of another run's file, too.
        match parsed::<OnlyId>(&self.packed) {
            Ok(OnlyId { id: is }) if is == id => None,
            Ok(OnlyId { id: is }) => Some(FileFault::damaged(format!("is the result of another run, {is}"))),
            Err(error) => Some(FileFault::damaged(format!("can't be read: {error}"))),
        }
    }

    /// Returns whether a score's file has its hash, if that is known.
    fn is_stored_score(&self) -> bool {
        self.sha256.as_ref().is_none_or(|known| *known == score_hash(&self.packed))
    }

    /// Returns whether a score's row has the parser version and the time that its file states. Otherwise the row is damaged, and a
    /// score with a version or a time to come would never be replaced.
    fn is_at_its_place(&self, parser_version: u32, at: Option<&str>) -> bool {
        let Typed(Some(Some(scored_at))) = &self.scored_at else { return false };
        // Older programs stored the time as the result has it.
        let is_at = *scored_at == stored_time(at) || scored_at == at.unwrap_or_default();
        is_at && self.scored_by == Typed(Some(Some(i64::from(parser_version))))
    }
}

impl From<FileRow> for StoredFile {
    fn from((Typed(sha256), packed, Typed(known), scored_by, scored_at): FileRow) -> StoredFile {
        StoredFile {
            // A hash of the wrong type is that of no file.
            sha256: sha256.unwrap_or_else(|| Some(String::new())),
            packed: packed.unwrap_or_default(),
            known: known.flatten().as_deref().and_then(LogFault::from_id),
            scored_by,
            scored_at,
        }
    }
}

/// What a stored result file says, whether or not it is the uploaded one. Shows whether a run's row is that of another run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileClaims {
    /// The SHA-256 of its content.
    pub(super) sha256: String,
    /// Whether the run's row has that hash.
    pub(super) is_of_row: bool,
    /// The id of its run.
    pub(super) id: Uuid,
    /// The SHA-256 of the log that it was made from.
    log: String,
}

impl FileClaims {
    /// Returns whether the row of the run `id` names a log that is not the run's.
    pub(super) fn disown(&self, id: Uuid, log: &LogHash) -> bool {
        // The hash of another run's file, which is stored for this one, came into the row with the hash of its log.
        if self.id == id { self.log != log.as_str() } else { self.is_of_row }
    }
}

/// Returns the time of a score as the store writes it: as text, times are ordered only in one zone.
pub(super) fn stored_time(scored_at: Option<&str>) -> String {
    let text = scored_at.unwrap_or_default();
    text.parse::<Timestamp>().map_or_else(|_| text.to_owned(), time)
}

/// Returns the hash of a score's file.
pub(super) fn score_hash(packed: &[u8]) -> String {
    hex(&Sha256::digest(packed))
}

/// An uploaded result's file after a check.
pub(super) struct CheckedFile {
    stored: StoredFile,
    /// What is wrong with it.
    fault: Option<FileFault>,
}

impl CheckedFile {
    pub(super) fn is_sound(&self) -> bool {
        self.fault.is_none()
    }

    /// Returns the file, compressed with zstd, or what is wrong with it.
    pub(super) fn into_file(self) -> Result<Vec<u8>, FileFault> {
        match self.fault {
            None => Ok(self.stored.packed),
            Some(fault) => Err(fault),
        }
    }
}

/// What is wrong with a file.
#[derive(Debug)]
pub(super) struct FileFault {
    fault: LogFault,
    /// The rest of a sentence about the file.
    pub(super) what: String,
}

impl FileFault {
    fn damaged(what: impl Into<String>) -> FileFault {
        FileFault { fault: LogFault::Damaged, what: what.into() }
    }

    fn of_run(&self, id: Uuid) -> StoreError {
        StoreError::Damaged { id, what: format!("its file {}", self.what) }
    }
}

/// The parser version, the size as stored and the beginning of a file. In SQLite, the beginning of an empty one is null.
type SizeRow = (Typed<i64>, i64, Option<Vec<u8>>);

/// The hash of a result file, the file and its known fault; the parser version and the time of a score. In SQLite, a file without
/// bytes is null.
type FileRow = (
    Typed<Option<String>>,
    Option<Vec<u8>>,
    Typed<Option<String>>,
    Typed<Option<i64>>,
    Typed<Option<String>>,
);

/// The most bytes of a zstd frame's header, which states the size of the content.
const FRAME_HEADER: i64 = 18;

impl Store {
    /// Returns an expression as one of the type that holds bytes. A value that another program wrote into an SQLite file
    /// may have any type.
    pub(super) fn as_bytes(&self, expression: &str) -> String {
        let blob = match self.database.engine {
            Engine::Sqlite => "BLOB",
            Engine::Postgres => "BYTEA",
        };
        format!("CAST({expression} AS {blob})")
    }

    /// Returns the sizes of a run's files without reading them: of the newest score first, and of the uploaded
    /// result last. Empty if the run is not stored.
    pub(crate) async fn file_sizes(&self, id: Uuid) -> Result<Vec<FileSize>, StoreError> {
        let header = self.as_bytes("substr(file, 1, $2)");
        let select = format!(
            "SELECT parser_version AS version, length(file), {header} FROM scores WHERE id = $1 \
            UNION ALL SELECT -1 AS version, length(file), {header} FROM results WHERE id = $1 \
            ORDER BY version DESC"
        );
        let rows: Result<Vec<SizeRow>, _> = sqlx::query_as(&select)
            .bind(id.to_string())
            .bind(FRAME_HEADER as i32)
            .fetch_all(&self.database.readers)
            .await;
        let size = |(_, packed, header): SizeRow| {
            // Every stored file is one frame that states its size. A damaged file may state any size.
            let raw = zstd::zstd_safe::get_frame_content_size(&header.unwrap_or_default()).ok().flatten();
            let raw = raw.and_then(|raw| usize::try_from(raw).ok()).unwrap_or(usize::MAX);
            FileSize { packed: usize::try_from(packed).unwrap_or(usize::MAX), raw }
        };
        Ok(rows.map_err(|error| self.failed(error))?.into_iter().map(size).collect())
    }

    /// Returns a result, as its newest score has it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::DamagedScore`] if its file is not sound.
    pub(crate) async fn get(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        let Some(stored) = self.newest_score(id).await? else { return self.uploaded(id).await };
        let (run, stored) = apart(id, move || (unpack_score(id, &stored), stored)).await?;
        // Other errors say nothing about the file.
        if matches!(run, Ok(_) | Err(StoreError::DamagedScore { .. })) {
            let fault = run.is_err().then_some(LogFault::Damaged);
            self.record_fault(id, ResultFile::Score, &stored, fault).await;
        }
        run.map(Some)
    }

    /// Returns a result, as it was uploaded.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if its file is not sound.
    pub(super) async fn uploaded(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        match self.file(id).await? {
            Some(file) => read_apart(id, file).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns a result as it was uploaded; none if it is damaged or not stored. Records nothing.
    pub(super) async fn sound_upload(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        let Some(Ok(file)) = self.checked_upload(id).await?.map(CheckedFile::into_file) else {
            return Ok(None);
        };
        match read_apart(id, file).await {
            Err(StoreError::Damaged { .. }) => Ok(None),
            run => run.map(Some),
        }
    }

    /// Returns the result of the newest later score; none if that is damaged or there is none.
    pub(super) async fn sound_score(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        let Some(stored) = self.newest_score(id).await? else { return Ok(None) };
        match read_score(id, stored).await {
            Err(StoreError::DamagedScore { .. }) => Ok(None),
            run => run.map(Some),
        }
    }

    /// Returns an uploaded result's file, compressed with zstd, after comparing it with its hash. Records what is wrong with
    /// it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the file is missing, is not the uploaded one or is that of another run.
    pub(crate) async fn file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(checked) = self.checked_upload(id).await? else { return Ok(None) };
        self.record_result(id, &checked).await;
        checked.into_file().map(Some).map_err(|fault| fault.of_run(id))
    }

    /// Returns a result file of a run, unchecked. None if the run, or its score, is not stored.
    pub(super) async fn stored_file(
        &self,
        reader: impl Executor<'_, Database = Any>,
        id: Uuid,
        which: ResultFile,
    ) -> Result<Option<StoredFile>, StoreError> {
        let (hash, score, table, beginning) = match which {
            ResultFile::Upload => {
                ("runs.sha256", "CAST(NULL AS BIGINT), CAST(NULL AS TEXT)", "LEFT JOIN results", "")
            }
            ResultFile::Score => (
                "scores.sha256",
                "scores.parser_version, scores.scored_at",
                "JOIN scores",
                "ORDER BY scores.parser_version DESC LIMIT 1",
            ),
        };
        let select = format!(
            "SELECT {hash}, {}, {}, {score} FROM runs {table} USING (id) WHERE id = $1 {beginning}",
            self.as_bytes("file"),
            which.fault_column()
        );
        let row: Result<Option<FileRow>, _> =
            sqlx::query_as(&select).bind(id.to_string()).fetch_optional(reader).await;
        Ok(row.map_err(|error| self.failed(error))?.map(StoredFile::from))
    }

    /// Reads what the stored file of a run's uploaded result says. Returns `None` if the file is missing or unreadable.
    pub(super) async fn claims(
        &self,
        reader: impl Executor<'_, Database = Any>,
        id: Uuid,
    ) -> Result<Option<FileClaims>, StoreError> {
        let Some(stored) = self.stored_file(reader, id, ResultFile::Upload).await? else { return Ok(None) };
        let read = move || {
            let is = parsed::<OnlyLog>(&stored.packed).ok()?;
            let sha256 = hash_content(&stored.packed[..]).ok()?;
            let is_of_row = stored.sha256.as_ref() == Some(&sha256);
            Some(FileClaims { sha256, is_of_row, id: is.id, log: is.source.sha256 })
        };
        apart(id, read).await
    }

    /// Returns the result file of the score by a parser version, unchecked.
    pub(super) async fn stored_score(
        &self,
        reader: impl Executor<'_, Database = Any>,
        id: Uuid,
        parser_version: i64,
    ) -> Result<Option<StoredFile>, StoreError> {
        let select = format!(
            "SELECT sha256, {}, CAST(NULL AS TEXT), parser_version, scored_at FROM scores \
            WHERE id = $1 AND parser_version = $2",
            self.as_bytes("file")
        );
        let row: Result<Option<FileRow>, _> =
            sqlx::query_as(&select).bind(id.to_string()).bind(parser_version).fetch_optional(reader).await;
        Ok(row.map_err(|error| self.failed(error))?.map(StoredFile::from))
    }

    /// Returns the result file of the newest later score, unchecked.
    async fn newest_score(&self, id: Uuid) -> Result<Option<StoredFile>, StoreError> {
        self.stored_file(&self.database.readers, id, ResultFile::Score).await
    }

    /// Returns an uploaded result's file after comparing it with its hash and its run's id; none if the run is not stored.
    pub(super) async fn checked_upload(&self, id: Uuid) -> Result<Option<CheckedFile>, StoreError> {
        let stored = self.stored_file(&self.database.readers, id, ResultFile::Upload).await?;
        let Some(stored) = stored else { return Ok(None) };
        apart(id, move || Some(CheckedFile { fault: stored.upload_fault(id), stored })).await
    }

    /// Records what a check of an uploaded result found.
    pub(super) async fn record_result(&self, id: Uuid, checked: &CheckedFile) {
        let fault = checked.fault.as_ref().map(|fault| fault.fault);
        self.record_fault(id, ResultFile::Upload, &checked.stored, fault).await;
    }

    /// Records what a check found in a file, unless another one is stored by now. A failure to do so is only logged.
    async fn record_fault(&self, id: Uuid, which: ResultFile, checked: &StoredFile, fault: Option<LogFault>) {
        if checked.known == fault {
            return;
        }
        let recorded = async {
            let mut writing = self.database.write().await?;
            // Uploads and scores lock the row before they replace a file.
            self.locked_row(&mut writing, id).await?;
            if self.stored_file(&mut *writing, id, which).await?.as_ref() != Some(checked) {
                return Ok(());
            }
            let update = format!("UPDATE runs SET {} = nullif($2, '') WHERE id = $1", which.fault_column());
            let update = sqlx::query(&update).bind(id.to_string()).bind(fault.map_or("", LogFault::id));
            update.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
            // Lists show the fault.
            self.change(&mut writing, EventKind::Run, &id.to_string()).await?;
            self.commit(writing).await
        };
        if let Err(error) = recorded.await {
            tracing::warn!("what is wrong with the result {id} could not be recorded: {error}");
        }
    }

    /// Returns the number of these files with each fault that checks found.
    pub(crate) async fn bad_files(&self, which: ResultFile) -> Result<Vec<(LogFault, i64)>, StoreError> {
        self.count_faults(which.fault_column(), "*").await
    }

    /// Returns how often each fault occurs in a column of the table `runs`. `counted` is what is counted.
    pub(super) async fn count_faults(
        &self,
        column: &str,
        counted: &str,
    ) -> Result<Vec<(LogFault, i64)>, StoreError> {
        let select = format!(
            "SELECT {column}, count({counted}) FROM runs WHERE {column} IS NOT NULL GROUP BY {column}"
        );
        let found: Result<Vec<(Typed<String>, i64)>, _> =
            sqlx::query_as(&select).fetch_all(&self.database.readers).await;
        let found = found.map_err(|error| self.failed(error))?;
        let count = |fault: LogFault| {
            let of_fault = found.iter().find(|(Typed(id), _)| id.as_deref() == Some(fault.id()));
            (fault, of_fault.map_or(0, |(_, count)| *count))
        };
        Ok(LogFault::ALL.iter().copied().map(count).collect())
    }

    /// Returns the result file of the newest score, or else the uploaded one, compressed with zstd. It was decompressed and
    /// checked.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::DamagedScore`] if it is not sound.
    pub(crate) async fn newest_file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        match self.checked_score(id).await? {
            Some(file) => Ok(Some(file)),
            None => self.file(id).await,
        }
    }

    /// Returns the result of the newest score, or else the uploaded one, within a transaction that writes: nothing is
    /// recorded.
    pub(super) async fn newest(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        if let Some(stored) = self.newest_score(id).await? {
            return read_score(id, stored).await.map(Some);
        }
        match self.checked_upload(id).await?.map(CheckedFile::into_file) {
            Some(Ok(file)) => read_apart(id, file).await.map(Some),
            Some(Err(fault)) => Err(fault.of_run(id)),
            None => Ok(None),
        }
    }

    /// Returns the result file of the newest later score, compressed with zstd, after decompressing it and comparing its id, its
    /// parser version and its time. Records if it is damaged. That it is sound is not known before it is read whole.
    ///
    /// # Errors
    /// [`StoreError::DamagedScore`] if it is not sound.
    pub(crate) async fn checked_score(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        #[derive(Deserialize)]
        struct OnlyOrigin {
            id: Uuid,
            provenance: Provenance,
        }
        let Some(stored) = self.newest_score(id).await? else { return Ok(None) };
        let check = move || {
            let fault = match parsed::<OnlyOrigin>(&stored.packed) {
                _ if !stored.is_stored_score() => Some(OTHER_SCORE.to_owned()),
                Ok(OnlyOrigin { id: is, provenance }) => misplaced(&stored, id, is, &provenance),
                Err(error) => Some(error.to_string()),
            };
            (fault, stored)
        };
        let (fault, stored) = apart(id, check).await?;
        let Some(what) = fault else { return Ok(Some(stored.packed)) };
        self.record_fault(id, ResultFile::Score, &stored, Some(LogFault::Damaged)).await;
        Err(StoreError::DamagedScore { id, what })
    }

    /// Returns the SHA-256 of the log that a run's result names. Reads the result as a stream, because it may be
    /// large.
    pub(crate) async fn named_log(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        let Some(file) = self.file(id).await? else { return Ok(None) };
        let read = apart(id, move || parsed::<OnlyLog>(&file)).await?;
        let read = read.map_err(|error| StoreError::Damaged { id, what: error.to_string() })?;
        Ok(Some(read.source.sha256))
    }
}

/// The fields of a result that name its run and its log.
#[derive(Deserialize)]
struct OnlyLog {
    id: Uuid,
    source: OnlyHash,
}

#[derive(Deserialize)]
struct OnlyHash {
    sha256: String,
}

/// Decompresses a result file and reads some of its fields, as a stream.
fn parsed<T: for<'de> Deserialize<'de>>(packed: &[u8]) -> io::Result<T> {
    let raw = io::BufReader::new(zstd::Decoder::with_buffer(packed)?);
    serde_json::from_reader(raw).map_err(io::Error::from)
}

/// Does work with a run's file on the blocking pool: a large one takes a while.
pub(super) async fn apart<T: Send + 'static>(
    id: Uuid,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StoreError> {
    // It fails if the program ends, or has a fault. That says nothing about the file.
    tokio::task::spawn_blocking(work).await.map_err(|error| StoreError::Interrupted { id, error })
}

/// Decompresses and reads a result.
pub(super) async fn read_apart(id: Uuid, file: Vec<u8>) -> Result<RunResult, StoreError> {
    apart(id, move || unpack(id, &file)).await?
}

/// Decompresses and reads a score's result.
pub(super) async fn read_score(id: Uuid, stored: StoredFile) -> Result<RunResult, StoreError> {
    apart(id, move || unpack_score(id, &stored)).await?
}

fn unpack_score(id: Uuid, stored: &StoredFile) -> Result<RunResult, StoreError> {
    let what = match unpack(id, &stored.packed) {
        _ if !stored.is_stored_score() => OTHER_SCORE.to_owned(),
        Ok(run) => match misplaced(stored, id, run.id, &run.provenance) {
            None => return Ok(run),
            Some(what) => what,
        },
        Err(StoreError::Damaged { what, .. }) => what,
        Err(error) => return Err(error),
    };
    Err(StoreError::DamagedScore { id, what })
}

/// Returns what is wrong with a score of the run `id` whose file is about the run `is`.
fn misplaced(stored: &StoredFile, id: Uuid, is: Uuid, provenance: &Provenance) -> Option<String> {
    if is != id {
        return Some(format!("it belongs to another run, {is}"));
    }
    let is_at_its_place = stored.is_at_its_place(provenance.parser_version, provenance.scored_at.as_deref());
    (!is_at_its_place).then(|| "it belongs to another parser or time".to_owned())
}

/// What is wrong with a score's file without its hash.
const OTHER_SCORE: &str = "it is not the file that was stored: its SHA-256 differs";
