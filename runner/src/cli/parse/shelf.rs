//! Saves results, one file each, as a whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use trainplan_shared::result::{self, FileError, RunResult};

/// Why a result could not be saved.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum SaveError {
    /// The system refused.
    #[error("can't save results in {}: {error}; use another folder for --save", folder.display())]
    Refused {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The result can't be written.
    #[error(transparent)]
    Content(#[from] FileError),
}

/// The folder for saved results.
#[derive(Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    saved: Mutex<Saved>,
}

#[derive(Debug, Default)]
struct Saved {
    /// The index of each result's log. The first of identical logs is saved.
    places: BTreeMap<String, usize>,
    error: Option<SaveError>,
}

impl Shelf {
    /// Creates the folder if it does not exist.
    pub(super) fn open(folder: PathBuf) -> Result<Shelf, SaveError> {
        match fs::create_dir_all(&folder) {
            Ok(()) => Ok(Shelf { folder, saved: Mutex::default() }),
            Err(error) => Err(SaveError::Refused { folder, error }),
        }
    }

    /// Returns the number of saved results, or the first error.
    pub(super) fn close(self) -> Result<usize, SaveError> {
        let saved = self.saved.into_inner().unwrap_or_else(PoisonError::into_inner);
        saved.error.map_or(Ok(saved.places.len()), Err)
    }

    /// Saves the result of the log at `place`. An error is returned at the end, so that the other logs are read.
    pub(super) fn save(&self, place: usize, run: &RunResult) {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let name = run.file_name();
        if saved.places.get(&name).is_some_and(|other| *other < place) {
            return;
        }
        match self.write(&name, run) {
            Ok(()) => {
                saved.places.insert(name, place);
            }
            Err(error) => {
                saved.error.get_or_insert(error);
            }
        }
    }

    /// Writes a temporary file and renames it.
    fn write(&self, name: &str, run: &RunResult) -> Result<(), SaveError> {
        let content = result::write(run)?;
        let (draft, file) =
            (self.folder.join(format!(".{name}.{}", std::process::id())), self.folder.join(name));
        fs::write(&draft, content).and_then(|()| fs::rename(&draft, &file)).map_err(|error| {
            // The error that counts is the first one.
            let _ = fs::remove_file(&draft);
            SaveError::Refused { folder: self.folder.clone(), error }
        })
    }
}
