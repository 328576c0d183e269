//! Where results are kept, for every command that keeps or reads them.

use super::Failure;
use crate::data::DataDir;
use std::path::PathBuf;

/// The flag that names the data directory.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DataDirArg {
    /// The folder that holds the journal, stored results and logs [default: $TRAINPLAN_DATA_DIR, or trainplan in your data folder
    /// (~/.local/share)]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataDirArg {
    /// Opens it, and makes it if there is none.
    pub(super) fn open(&self) -> Result<DataDir, Failure> {
        Ok(DataDir::open(self.data_dir.clone())?)
    }

    /// The folder that was named, if any.
    pub(super) fn given(self) -> Option<PathBuf> {
        self.data_dir
    }
}
