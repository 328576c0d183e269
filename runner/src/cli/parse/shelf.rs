//! Saving results: a file for each, whole or not at all.

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
    #[error("cannot save results in {}: {error}; name another folder with --save", folder.display())]
    Refused {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It can't be put into a file.
    #[error(transparent)]
    Content(#[from] FileError),
}

/// The folder that results are saved in.
#[derive(Debug)]
pub(super) struct Shelf {
    folder: PathBuf,
    saved: Mutex<Saved>,
}

#[derive(Debug, Default)]
struct Saved {
    /// The place of the log that each result came from: of logs that are the same, the first counts.
    places: BTreeMap<String, usize>,
    error: Option<SaveError>,
}

impl Shelf {
    /// Makes the folder if there is none.
    pub(super) fn open(folder: PathBuf) -> Result<Shelf, SaveError> {
        match fs::create_dir_all(&folder) {
            Ok(()) => Ok(Shelf { folder, saved: Mutex::default() }),
            Err(error) => Err(SaveError::Refused { folder, error }),
        }
    }

    /// How many results were saved, or why one was not.
    pub(super) fn close(self) -> Result<usize, SaveError> {
        let saved = self.saved.into_inner().unwrap_or_else(PoisonError::into_inner);
        saved.error.map_or(Ok(saved.places.len()), Err)
    }

    /// Saves what the log at `place` tells. What goes wrong is told in the end, so that the other logs are read.
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

    /// Writes the whole file or none: under another name first.
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
