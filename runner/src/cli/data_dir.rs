//! The flags for where results are stored.

use super::{Failure, note};
use crate::data::DataDir;
use crate::store::{Store, StorePlace};
use std::path::PathBuf;

/// The flag that names the data directory.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct DataDirArg {
    /// Folder of the journal, results and logs [default: $TRAINPLAN_DATA_DIR, or
    /// $XDG_DATA_HOME/trainplan, usually ~/.local/share/trainplan]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl DataDirArg {
    /// Opens the data directory, or creates it. A note reports a new one that was named, since the name may be mistyped.
    pub(super) fn open(&self) -> Result<DataDir, Failure> {
        let new = self.data_dir.as_deref().filter(|path| !path.exists());
        let dir = DataDir::open(self.data_dir.clone())?;
        if let Some(path) = new {
            note(&format!("created the new, empty data directory {}", path.display()));
        }
        Ok(dir)
    }

    /// Opens the data directory, which must exist.
    pub(super) fn existing(&self) -> Result<DataDir, Failure> {
        Ok(DataDir::existing(self.data_dir.clone())?)
    }

    /// Returns the data directory; none if it does not exist.
    pub(super) fn find(&self) -> Option<DataDir> {
        DataDir::find(self.data_dir.clone())
    }
}

/// The flags of a store. By default it is in the data directory.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct StoreArgs {
    #[command(flatten)]
    data: DataDirArg,
    /// PostgreSQL database in which the results are stored, instead of the data directory
    #[arg(long, value_name = "postgres://...", env = "TRAINPLAN_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Where the raw logs are stored, instead of the data directory: s3://BUCKET/PREFIX or another folder. S3 is
    /// configured by AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT and AWS_REGION
    #[arg(long, value_name = "PLACE", env = "TRAINPLAN_STORE")]
    store: Option<String>,
}

impl StoreArgs {
    /// Opens the data directory.
    pub(super) fn dir(&self) -> Result<DataDir, Failure> {
        self.data.open()
    }

    /// Where the store is.
    pub(super) fn place(&self) -> StorePlace {
        StorePlace { database_url: self.database_url.clone(), blobs: self.store.clone() }
    }

    /// Opens the store, which must exist.
    pub(super) async fn existing(&self) -> Result<Store, Failure> {
        Ok(Store::open_at(&self.data.existing()?, &self.place()).await?)
    }

    /// Opens the store, or creates it.
    pub(super) async fn open(&self) -> Result<Store, Failure> {
        Ok(Store::open_at(&self.dir()?, &self.place()).await?)
    }
}
