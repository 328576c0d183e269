//! The flag that says where the program keeps what it keeps.

use super::Failure;
use crate::data::DataDir;
use std::path::PathBuf;

/// Where journal, store and logs are.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DataDirArg {
    /// Where journal, results and logs are kept [default: TRAINPLAN_DATA_DIR, else ~/.local/share/trainplan]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataDirArg {
    /// Opens the directory.
    pub(super) fn open(&self) -> Result<DataDir, Failure> {
        Ok(DataDir::open(self.data_dir.clone())?)
    }
}
