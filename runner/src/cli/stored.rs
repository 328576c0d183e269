//! Stored runs, for commands that read the store.

use super::Failure;
use super::data_dir::StoreArgs;
use crate::store::{Query, Store};
use tokio::runtime::Runtime;
use trainplan_shared::api::RunSummary;
use trainplan_shared::result::RunResult;
use uuid::Uuid;

/// The fewest digits of an id: fewer soon match several runs.
const SHORTEST: usize = 8;

/// Returns the run with this id, or with the only id that begins or ends with these digits.
pub(super) async fn by_id(store: &Store, text: &str) -> Result<Uuid, Failure> {
    let found = if text.len() < SHORTEST { Vec::new() } else { store.named(text).await? };
    one(&found, text, "stored", "`trainplan results list`")
}

/// Returns the deleted run with this id, or with the only id that begins or ends with these digits.
pub(super) async fn deleted_by_id(store: &Store, text: &str) -> Result<Uuid, Failure> {
    let found = if text.len() < SHORTEST { Vec::new() } else { store.deleted(text).await? };
    one(&found, text, "deleted", "`trainplan upload`")
}

fn one(found: &[Uuid], text: &str, what: &str, source: &str) -> Result<Uuid, Failure> {
    match found {
        [id] => Ok(*id),
        [] => Err(Failure::NoRun(format!(
            "no {what} run has the id {text}; use at least its first or last eight digits, from {source}"
        ))),
        _ => Err(Failure::NoRun(format!("{text} matches several runs; use more digits of the id"))),
    }
}

/// A store that is open for reading.
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

    /// Returns the store's name, for messages.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Returns the summaries of all runs, the newest first.
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

    /// Returns a run's result; none if the run is unknown.
    pub(super) fn result(&self, id: &str) -> Result<Option<RunResult>, Failure> {
        let Ok(id) = id.parse::<Uuid>() else { return Ok(None) };
        Ok(self.runtime.block_on(self.store.get(id))?)
    }
}
