//! The data directory, which holds the journal, the store and logs.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// The directory of the program's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataDir(PathBuf);

/// Why the data directory can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DataDirError {
    /// Neither a flag nor the environment names it.
    #[error("HOME is not set. Name the data directory with --data-dir or TRAINPLAN_DATA_DIR.")]
    Nowhere,
    /// The named directory does not exist.
    #[error("The data directory {} does not exist. Name the one that `trainplan serve` or `trainplan run` \
             uses.", .0.display())]
    Missing(PathBuf),
    #[error(
        "Can't create the data directory {}: {error}. Name another one with --data-dir or \
         TRAINPLAN_DATA_DIR.",
        path.display()
    )]
    Make { path: PathBuf, error: io::Error },
}

impl DataDir {
    /// Opens the directory: the given one, else TRAINPLAN_DATA_DIR, else the one by XDG. Creates it if
    /// needed, readable by its owner only.
    pub(crate) fn open(given: Option<PathBuf>) -> Result<DataDir, DataDirError> {
        let path = given.or_else(set).or_else(usual).ok_or(DataDirError::Nowhere)?;
        make_private(&path).map_err(|error| DataDirError::Make { path: path.clone(), error })?;
        Ok(DataDir(path))
    }

    /// Opens the directory for a command that needs existing data. It is an error if the named one does not
    /// exist.
    pub(crate) fn existing(given: Option<PathBuf>) -> Result<DataDir, DataDirError> {
        match given.or_else(set) {
            Some(named) if !named.exists() => Err(DataDirError::Missing(named)),
            named => DataDir::open(named),
        }
    }

    /// Returns the directory that [`DataDir::open`] opens; none if it does not exist.
    pub(crate) fn find(given: Option<PathBuf>) -> Option<DataDir> {
        given.or_else(set).or_else(usual).filter(|path| path.exists()).map(DataDir)
    }

    /// Returns the path.
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

/// Creates a directory that only its owner can read, with its parents. An existing one stays unchanged.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}
