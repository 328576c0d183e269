//! Result files: the uploaded one of each run, and its later scores. They are stored compressed with zstd.

use super::{Store, StoreError, unpack};
use serde::Deserialize;
use std::io;
use trainplan_shared::result::RunResult;
use uuid::Uuid;

/// The size of a stored result file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileSize {
    /// As it is stored.
    pub(crate) packed: usize,
    /// When decompressed.
    pub(crate) raw: usize,
}

/// The most bytes of a zstd frame's header, which states the size of the content.
const FRAME_HEADER: i64 = 18;

impl Store {
    /// Returns the sizes of a run's files without reading them: of the newest score first, and of the uploaded
    /// result last. Empty if the run is not stored.
    pub(crate) async fn file_sizes(&self, id: Uuid) -> Result<Vec<FileSize>, StoreError> {
        let select = "SELECT parser_version AS version, length(file), substr(file, 1, $2) FROM scores WHERE id = $1 \
            UNION ALL SELECT -1 AS version, length(file), substr(file, 1, $2) FROM results WHERE id = $1 \
            ORDER BY version DESC";
        let rows: Result<Vec<(i64, i64, Vec<u8>)>, _> = sqlx::query_as(select)
            .bind(id.to_string())
            .bind(FRAME_HEADER as i32)
            .fetch_all(&self.database.readers)
            .await;
        let size = |(_, packed, header): (i64, i64, Vec<u8>)| {
            // Every stored file is one frame that states its size. Of a damaged one, anything may be expected.
            let raw = zstd::zstd_safe::get_frame_content_size(&header).ok().flatten();
            let raw = raw.and_then(|raw| usize::try_from(raw).ok()).unwrap_or(usize::MAX);
            FileSize { packed: usize::try_from(packed).unwrap_or(usize::MAX), raw }
        };
        Ok(rows.map_err(|error| self.failed(error))?.into_iter().map(size).collect())
    }

    /// Returns a result, as its newest score has it.
    pub(crate) async fn get(&self, id: Uuid) -> Result<Option<RunResult>, StoreError> {
        match self.newest_file(id).await? {
            Some(file) => read_apart(id, file).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns an uploaded result's file, compressed with zstd.
    pub(crate) async fn file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        sqlx::query_scalar("SELECT file FROM results WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.database.readers)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Returns the result file of the newest score, compressed with zstd.
    pub(crate) async fn newest_file(&self, id: Uuid) -> Result<Option<Vec<u8>>, StoreError> {
        match self.newest_score(id).await? {
            Some(file) => Ok(Some(file)),
            None => self.file(id).await,
        }
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
        let read = move || {
            let raw = io::BufReader::new(zstd::Decoder::with_buffer(&file[..])?);
            serde_json::from_reader(raw).map_err(io::Error::from)
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(io::Error::other);
        let read: Result<OnlySource, _> = read.and_then(|read| read);
        let read = read.map_err(|error| StoreError::Damaged { id, what: error.to_string() })?;
        Ok(Some(read.source.sha256))
    }
}

/// Decompresses and reads a result on the blocking pool: a large one takes a while.
pub(super) async fn read_apart(id: Uuid, file: Vec<u8>) -> Result<RunResult, StoreError> {
    let read = tokio::task::spawn_blocking(move || unpack(id, &file)).await;
    read.unwrap_or_else(|error| Err(StoreError::Damaged { id, what: error.to_string() }))
}
