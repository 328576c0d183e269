//! The result file: one JSON object, in a version that every later program reads.

use super::RunResult;
use serde::Deserialize;
use thiserror::Error;

/// The version of the file's format. It grows when an older program could no longer read what a newer one writes;
/// a field that an older program may pass over does not change it.
pub const VERSION: u32 = 1;

/// Why a result file can't be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// It is no result file at all.
    #[error("it is no result file: {0}; give a *.result.json as it was saved, or the log itself")]
    NotAResult(#[source] serde_json::Error),
    /// A newer program wrote it.
    #[error("it is of version {0}, and this program reads up to version {VERSION}: use a newer trainplan")]
    Newer(u64),
    /// It is one, but was changed or torn apart.
    #[error("it is a damaged result file: {0}; parse the log again")]
    Damaged(#[source] serde_json::Error),
    /// It is one, but its steps contradict each other.
    #[error("it is a damaged result file: its steps are out of order or incomplete; parse the log again")]
    Steps,
    /// It can't be put into JSON.
    #[error("the result can't be written: {0}")]
    Write(#[source] serde_json::Error),
}

/// The content of a result file.
///
/// # Errors
/// None that is known: a result has nothing that JSON lacks.
pub fn write(run: &RunResult) -> Result<String, FileError> {
    let mut text = serde_json::to_string(run).map_err(FileError::Write)?;
    text.push('\n');
    Ok(text)
}

/// Reads a result file of any version so far. Fields that this program does not know are passed over.
///
/// # Errors
/// It is no result file, of a newer version, or damaged.
pub fn read(bytes: &[u8]) -> Result<RunResult, FileError> {
    // The version first: what a newer file lacks or has more must not be taken for damage.
    #[derive(Deserialize)]
    struct Head {
        version: u64,
    }
    let Head { version } = serde_json::from_slice(bytes).map_err(FileError::NotAResult)?;
    if version > u64::from(VERSION) {
        return Err(FileError::Newer(version));
    }
    let mut run: RunResult = serde_json::from_slice(bytes).map_err(FileError::Damaged)?;
    if run.log.steps.is_sound() { Ok(run) } else { Err(FileError::Steps) }
}
