//! The store's runs, for commands that read it.

use super::Failure;
use super::data_dir::StoreArgs;
use crate::store::{Query, Store};
use tokio::runtime::Runtime;
use trainplan_shared::api::RunSummary;
use trainplan_shared::result::RunResult;
use uuid::Uuid;

/// As much of an id as names a run: a few digits would soon name another.
const SHORTEST: usize = 8;

/// The run whose id is this, or begins so.
pub(super) async fn by_id(store: &Store, text: &str) -> Result<Uuid, Failure> {
    let found = if text.len() < SHORTEST { Vec::new() } else { store.named(text).await? };
    match found[..] {
        [id] => Ok(id),
        [] => Err(Failure::NoRun(format!(
            "{text} names no run that is kept here: give eight digits of an id at least; `trainplan results list` has them"
        ))),
        _ => Err(Failure::NoRun(format!("{text} may be several runs: give more of the id"))),
    }
}

/// A store, open to read.
pub(super) struct Stored {
    place: String,
    runtime: Runtime,
    store: Store,
}

impl Stored {
    pub(super) fn open(args: &StoreArgs) -> Result<Stored, Failure> {
        let runtime = Runtime::new()?;
        let store = runtime.block_on(args.existing())?;
        Ok(Stored { place: store.name().to_owned(), runtime, store })
    }

    /// What to call the store, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Every run, newest first, as summaries.
    pub(super) fn summaries(&self) -> Result<Vec<RunSummary>, Failure> {
        let mut query = Query { limit: Some(1000), ..Query::default() };
        let mut runs = Vec::new();
        loop {
            let page = self.runtime.block_on(self.store.list(&query))?;
            let has_more = query.advance(&page);
            runs.extend(page.items);
            if !has_more {
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
