//! The store's runs, for commands that read it.

use super::Failure;
use super::data_dir::StoreArgs;
use crate::store::{Query, Store, Summary};
use tokio::runtime::Runtime;
use trainplan_shared::result::RunResult;
use uuid::Uuid;

/// A store, open to read.
pub(super) struct Stored {
    place: String,
    runtime: Runtime,
    store: Store,
}

impl Stored {
    pub(super) fn open(args: &StoreArgs) -> Result<Stored, Failure> {
        let runtime = Runtime::new()?;
        let store = runtime.block_on(args.open())?;
        Ok(Stored { place: store.name().to_owned(), runtime, store })
    }

    /// What to call the store, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Every run, newest first, as summaries.
    pub(super) fn summaries(&self) -> Result<Vec<Summary>, Failure> {
        let mut query = Query { limit: Some(1000), ..Query::default() };
        let mut runs = Vec::new();
        loop {
            let page = self.runtime.block_on(self.store.list(&query))?;
            runs.extend(page.items);
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                return Ok(runs);
            }
        }
    }

    /// A run's result; none if there is no such run.
    pub(super) fn result(&self, id: &str) -> Result<Option<RunResult>, Failure> {
        let Ok(id) = id.parse::<Uuid>() else { return Ok(None) };
        Ok(self.runtime.block_on(self.store.get(id))?)
    }
}
