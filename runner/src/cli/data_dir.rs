//! Where results are kept, for every command that keeps or reads them.

use super::{Failure, note};
use crate::data::DataDir;
use crate::store::{Store, StorePlace};
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
    /// Opens it, and makes it if there is none. That says so where it was named, since the name may be mistyped.
    pub(super) fn open(&self) -> Result<DataDir, Failure> {
        let new = self.data_dir.as_deref().filter(|path| !path.exists());
        let dir = DataDir::open(self.data_dir.clone())?;
        if let Some(path) = new {
            note(&format!("{} is new, and so nothing is kept in it yet", path.display()));
        }
        Ok(dir)
    }

    /// Opens it for a command that only works with what is there.
    pub(super) fn existing(&self) -> Result<DataDir, Failure> {
        Ok(DataDir::existing(self.data_dir.clone())?)
    }
}

/// The flags that name a store: in the data directory unless they say otherwise.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct StoreArgs {
    #[command(flatten)]
    data: DataDirArg,
    /// Keep results in this PostgreSQL instead of the data directory's own database
    #[arg(long, value_name = "postgres://...", env = "TRAINPLAN_DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Keep raw logs there instead of in the data directory: s3://BUCKET/PREFIX (keys and endpoint as AWS_ACCESS_KEY_ID,
    /// AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT, AWS_REGION say), or another folder
    #[arg(long, value_name = "PLACE", env = "TRAINPLAN_STORE")]
    store: Option<String>,
}

impl StoreArgs {
    /// The data directory.
    pub(super) fn dir(&self) -> Result<DataDir, Failure> {
        self.data.open()
    }

    /// Where the store is.
    pub(super) fn place(&self) -> StorePlace {
        StorePlace { database_url: self.database_url.clone(), blobs: self.store.clone() }
    }

    /// Opens the store for a command that only works with what is there.
    pub(super) async fn existing(&self) -> Result<Store, Failure> {
        Ok(Store::open_at(&self.data.existing()?, &self.place()).await?)
    }

    /// Opens the store, and makes it if there is none.
    pub(super) async fn open(&self) -> Result<Store, Failure> {
        Ok(Store::open_at(&self.dir()?, &self.place()).await?)
    }
}
