//! The result file: one JSON object, in a version that every later program reads.

use super::RunResult;
use serde::Deserialize;
use thiserror::Error;

/// The version of the file format. It increases when older programs can't read newer files. A field that they may
/// ignore does not change it.
pub const VERSION: u32 = 1;

/// Why a result file can't be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// It is not a result file.
    #[error("not a result file: {0}; use a saved *.result.json or the log itself")]
    NotAResult(#[source] serde_json::Error),
    /// A newer program wrote it.
    #[error("it has version {0}, and this program reads versions up to {VERSION}; update trainplan")]
    Newer(u64),
    /// No program wrote it.
    #[error("it has version 0, and the first version is 1; parse the log again")]
    VersionZero,
    /// It is incomplete, or was changed.
    #[error("the result file is damaged: {0}; parse the log again")]
    Damaged(#[source] serde_json::Error),
    /// Its steps contradict each other.
    #[error("the result file is damaged: its steps are out of order or incomplete; parse the log again")]
    Steps,
    /// It can't be written as JSON.
    #[error("the result can't be written: {0}")]
    Write(#[source] serde_json::Error),
}

/// Returns the content of a result file.
///
/// # Errors
/// Returns the serializer's error. No result is known that causes one.
pub fn write(run: &RunResult) -> Result<String, FileError> {
    let mut text = serde_json::to_string(run).map_err(FileError::Write)?;
    text.push('\n');
    Ok(text)
}

/// Reads a result file of any version so far, and ignores unknown fields.
///
/// # Errors
/// The file is not a result file, has a newer version, or is damaged.
pub fn read(bytes: &[u8]) -> Result<RunResult, FileError> {
    // Read the version first, so that a newer file is not reported as damaged.
    #[derive(Deserialize)]
    struct FileHeader {
        version: u64,
    }
    let FileHeader { version } = serde_json::from_slice(bytes).map_err(FileError::NotAResult)?;
    if version > u64::from(VERSION) {
        return Err(FileError::Newer(version));
    }
    if version == 0 {
        return Err(FileError::VersionZero);
    }
    let mut run: RunResult = serde_json::from_slice(bytes).map_err(FileError::Damaged)?;
    if run.log.steps.is_sound() { Ok(run) } else { Err(FileError::Steps) }
}
