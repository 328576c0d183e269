//! The data directory: journal, store and blobs, in one place.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that holds what the program keeps between its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataDir(PathBuf);

/// Why there is no data directory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    /// Nothing says where it would be.
    #[error("there is no HOME to keep data in: say where by --data-dir or TRAINPLAN_DATA_DIR")]
    Nowhere,
    /// It was named, and is not there.
    #[error("there is no folder {}: name the one that `trainplan serve` or `trainplan run` keeps its data in", .0.display())]
    Missing(PathBuf),
    /// It can't be made.
    #[error("cannot make the data directory {}: {error}; name another by --data-dir or TRAINPLAN_DATA_DIR", path.display())]
    Make {
        /// Where it was to be.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl DataDir {
    /// Opens the directory, and makes it, for its owner alone, if there is none: as given, else as TRAINPLAN_DATA_DIR
    /// says, else where XDG has it.
    pub(crate) fn open(given: Option<PathBuf>) -> Result<DataDir, DataDirError> {
        let path = given.or_else(set).or_else(usual).ok_or(DataDirError::Nowhere)?;
        make_private(&path).map_err(|error| DataDirError::Make { path: path.clone(), error })?;
        Ok(DataDir(path))
    }

    /// Opens the directory for a command that only works with what is there. One that was named and is not there is a mistake.
    pub(crate) fn existing(given: Option<PathBuf>) -> Result<DataDir, DataDirError> {
        match given.or_else(set) {
            Some(named) if !named.exists() => Err(DataDirError::Missing(named)),
            named => DataDir::open(named),
        }
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

fn set() -> Option<PathBuf> {
    env::var_os("TRAINPLAN_DATA_DIR").filter(|path| !path.is_empty()).map(PathBuf::from)
}

fn usual() -> Option<PathBuf> {
    let set = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_DATA_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("trainplan"))
}

/// Makes a directory, with those above it, that nobody else may look into; one that is there stays as it is.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
