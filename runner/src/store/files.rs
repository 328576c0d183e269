//! Result files: the uploaded one of each run, and its later scores. They are stored compressed with zstd. An uploaded one is
//! returned only if its content has the hash that was stored with it.

use super::blobs::hash_content;
use super::{Store, StoreError, unpack};
use crate::migrations::Engine;
use serde::Deserialize;
use std::io;
use trainplan_shared::api::{EventKind, LogFault};
use trainplan_shared::result::RunResult;
use uuid::Uuid;

/// The size of a stored result file, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileSize {
    /// As it is stored.
    pub(crate) packed: usize,
    /// When decompressed.
    pub(crate) raw: usize,
}

/// An uploaded result's file after a check.
pub(super) struct CheckedFile {
    /// The file, compressed with zstd, or what is wrong with it.
    pub(super) file: Result<Vec<u8>, FileFault>,
    /// The fault that an earlier check recorded.
    known: Option<String>,
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
type SizeRow = (i64, i64, Option<Vec<u8>>);

/// The hash of an uploaded result, its file and its known fault.
type UploadRow = (String, Option<Vec<u8>>, Option<String>);

/// The most bytes of a zstd frame's header, which states the size of the content.
const FRAME_HEADER: i64 = 18;

impl Store {
    /// Returns an expression as one of the type that holds bytes. What somebody else wrote into an SQLite file may have any
    /// type.
    fn as_bytes(&self, expression: &str) -> String {
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
            // Every stored file is one frame that states its size. Of a damaged one, anything may be expected.
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
        match self.newest_score(id).await? {
            Some(file) => read_score(id, file).await.map(Some),
            None => self.uploaded(id).await,
        }
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
        let Some(Ok(file)) = self.checked_upload(id).await?.map(|checked| checked.file) else {
            return Ok(None);
        };
        match read_apart(id, file).await {
            Err(StoreError::Damaged { .. }) => Ok(None),
            run => run.map(Some),
        }
    }

    /// Returns the result of the newest later score; none if that is damaged or there is none.
    pub(super) async fn sound_score(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        let Some(file) = self.newest_score(id).await? else { return Ok(None) };
        match read_score(id, file).await {
            Err(StoreError::DamagedScore { .. }) => Ok(None),
            run => run.map(Some),
        }
    }

    /// Returns an uploaded result's file, compressed with zstd, after comparing it with its hash. Records what is wrong with
    /// it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the file is missing or is not the uploaded one.
    pub(crate) async fn file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(checked) = self.checked_upload(id).await? else { return Ok(None) };
        self.record_result(id, &checked).await;
        checked.file.map(Some).map_err(|fault| fault.of_run(id))
    }

    /// Returns an uploaded result's file after comparing it with its hash; none if the run is not stored.
    pub(super) async fn checked_upload(&self, id: Uuid) -> Result<Option<CheckedFile>, StoreError> {
        let file = self.as_bytes("results.file");
        let select = format!(
            "SELECT runs.sha256, {file}, runs.result_fault FROM runs \
            LEFT JOIN results ON results.id = runs.id WHERE runs.id = $1"
        );
        let found: Result<Option<UploadRow>, _> =
            sqlx::query_as(&select).bind(id.to_string()).fetch_optional(&self.database.readers).await;
        let Some((sha256, file, known)) = found.map_err(|error| self.failed(error))? else { return Ok(None) };
        let Some(file) = file.filter(|file| !file.is_empty()) else {
            let fault = FileFault { fault: LogFault::Missing, what: "is missing".into() };
            return Ok(Some(CheckedFile { file: Err(fault), known }));
        };
        let check = move || match hash_content(&file[..]) {
            Ok(is) if is == sha256 => Ok(file),
            Ok(_) => Err(FileFault::damaged("is not the file that was uploaded: its SHA-256 differs")),
            Err(error) => Err(FileFault::damaged(format!("can't be decompressed: {error}"))),
        };
        let file = tokio::task::spawn_blocking(check).await;
        let file = file.map_err(|error| StoreError::Interrupted { id, error })?;
        Ok(Some(CheckedFile { file, known }))
    }

    /// Records what a check of an uploaded result found. A failure to do so is only logged.
    pub(super) async fn record_result(&self, id: Uuid, checked: &CheckedFile) {
        let fault = checked.file.as_ref().err().map(|fault| fault.fault.id());
        if checked.known.as_deref() == fault {
            return;
        }
        let recorded = async {
            let mut writing = self.database.write().await?;
            let update = sqlx::query("UPDATE runs SET result_fault = nullif($2, '') WHERE id = $1");
            let update = update.bind(id.to_string()).bind(fault.unwrap_or_default());
            let updated = update.execute(&mut *writing).await.map_err(|error| self.failed(error))?;
            // Lists show the fault. The run may have been deleted meanwhile.
            if updated.rows_affected() > 0 {
                self.change(&mut writing, EventKind::Run, &id.to_string()).await?;
            }
            self.commit(writing).await
        };
        if let Err(error) = recorded.await {
            tracing::warn!("what is wrong with the result {id} could not be recorded: {error}");
        }
    }

    /// Returns the number of results with each fault, as far as checks found them.
    pub(crate) async fn bad_results(&self) -> Result<Vec<(LogFault, i64)>, StoreError> {
        let select =
            "SELECT result_fault, count(*) FROM runs WHERE result_fault IS NOT NULL GROUP BY result_fault";
        self.count_faults(select).await
    }

    /// Returns the count of each fault, from a query for the faults that occur and their counts.
    pub(super) async fn count_faults(&self, select: &str) -> Result<Vec<(LogFault, i64)>, StoreError> {
        let found: Result<Vec<(String, i64)>, _> =
            sqlx::query_as(select).fetch_all(&self.database.readers).await;
        let found = found.map_err(|error| self.failed(error))?;
        let count = |fault: LogFault| {
            let count = found.iter().find(|(id, _)| id == fault.id()).map_or(0, |(_, count)| *count);
            (fault, count)
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
        if let Some(file) = self.newest_score(id).await? {
            return read_score(id, file).await.map(Some);
        }
        match self.checked_upload(id).await?.map(|checked| checked.file) {
            Some(Ok(file)) => read_apart(id, file).await.map(Some),
            Some(Err(fault)) => Err(fault.of_run(id)),
            None => Ok(None),
        }
    }

    /// Returns the result file of the newest later score, compressed with zstd, after decompressing it and comparing its id.
    ///
    /// # Errors
    /// [`StoreError::DamagedScore`] if it is not sound.
    pub(crate) async fn checked_score(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        #[derive(Deserialize)]
        struct OnlyId {
            id: Uuid,
        }
        let Some(file) = self.newest_score(id).await? else { return Ok(None) };
        let check = move || match parsed::<OnlyId>(&file) {
            Ok(OnlyId { id: is }) if is == id => Ok(file),
            Ok(OnlyId { id: is }) => Err(of_other_run(is)),
            Err(error) => Err(error.to_string()),
        };
        let checked = tokio::task::spawn_blocking(check).await;
        let checked = checked.map_err(|error| StoreError::Interrupted { id, error })?;
        checked.map(Some).map_err(|what| StoreError::DamagedScore { id, what })
    }

    /// Returns the SHA-256 of the log that a run's result names. Reads the result as a stream, because it may be
    /// large.
    pub(crate) async fn named_log(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        #[derive(Deserialize)]
        struct OnlySource {
            source: OnlyHash,
        }
        #[derive(Deserialize)]
        struct OnlyHash {
            sha256: String,
        }
        let Some(file) = self.file(id).await? else { return Ok(None) };
        let read = tokio::task::spawn_blocking(move || parsed::<OnlySource>(&file));
        let read = read.await.map_err(io::Error::other).and_then(|read| read);
        let read = read.map_err(|error| StoreError::Damaged { id, what: error.to_string() })?;
        Ok(Some(read.source.sha256))
    }
}

/// Decompresses a result file and reads some of its fields, as a stream.
fn parsed<T: for<'de> Deserialize<'de>>(packed: &[u8]) -> io::Result<T> {
    let raw = io::BufReader::new(zstd::Decoder::with_buffer(packed)?);
    serde_json::from_reader(raw).map_err(io::Error::from)
}

/// Decompresses and reads a result on the blocking pool: a large one takes a while.
pub(super) async fn read_apart(id: Uuid, file: Vec<u8>) -> Result<RunResult, StoreError> {
    match tokio::task::spawn_blocking(move || unpack(id, &file)).await {
        Ok(read) => read,
        // The program ends, or has a fault. That says nothing about the file.
        Err(error) => Err(StoreError::Interrupted { id, error }),
    }
}

/// Decompresses and reads a score's result in the same way.
pub(super) async fn read_score(id: Uuid, file: Vec<u8>) -> Result<RunResult, StoreError> {
    let what = match read_apart(id, file).await {
        Ok(run) if run.id == id => return Ok(run),
        Ok(run) => of_other_run(run.id),
        Err(StoreError::Damaged { what, .. }) => what,
        Err(error) => return Err(error),
    };
    Err(StoreError::DamagedScore { id, what })
}

fn of_other_run(id: Uuid) -> String {
    format!("it belongs to another run, {id}")
}
