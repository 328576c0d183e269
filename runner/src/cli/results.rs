//! `trainplan results`: the runs that are kept here, listed and deleted.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::stored::by_id;
use super::{Failure, note};
use crate::store::{Query, Sort};
use serde::Serialize;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::tables::StoredRunColumn;

/// List the runs that are kept here, and delete them
///
/// It is the store of this machine, or the one that --data-dir or --database-url names: what `trainplan serve` shows there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan results list
  trainplan results list --recipe '*405b*' --limit 20 --format csv
  trainplan results delete 0199a7b2-3c4d

Exit codes: 0 done; 1 the store failed; 2 there is no such run.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List runs, those that ran last first
    List(List),
    /// Delete runs for good: results, scores, and the raw logs that no other run has
    Delete {
        /// The runs, by their ids or the first eight digits
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        format: FormatArg,
    },
}

#[derive(Debug, clap::Args)]
struct List {
    /// Only runs of this recipe; * stands for any text, here and in the next two
    #[arg(long, value_name = "ID")]
    recipe: Option<String>,
    /// Only runs on this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only runs of this campaign
    #[arg(long, value_name = "NAME")]
    campaign: Option<String>,
    /// Only runs with this status: scored, incomplete, invalid, failed, no_data, unreadable
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// The most runs
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// A run that is no more.
#[derive(Debug, Serialize)]
struct Deleted {
    id: String,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Runtime::new()?;
        match self.command {
            Command::List(list) => runtime.block_on(list.run()),
            Command::Delete { ids, store, format } => runtime.block_on(delete(&ids, &store, &format)),
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let store = self.store.existing().await?;
        // Short forms mean what they mean elsewhere.
        let recipe = |text: String| {
            Catalog::embedded().recipe(&text).map(|recipe| recipe.id.to_string()).unwrap_or(text)
        };
        let query = Query {
            recipe: self.recipe.map(recipe),
            cluster: self.cluster,
            campaign: self.campaign,
            status: self.status,
            sort: Sort::NEWEST_RUN,
            limit: Some(self.limit),
            ..Query::default()
        };
        let page = store.list(&query).await?;
        match self.format.choose() {
            Format::Json => output::json(&page.items)?,
            Format::Csv => output::csv_table(&StoredRunColumn::csv(&page.items))?,
            Format::Table => output::text_table(&StoredRunColumn::terminal(&page.items))?,
        }
        if page.next_cursor.is_some() {
            note(&format!("there are more than {}: --limit shows up to 1000, or filter", self.limit));
        }
        Ok(())
    }
}

/// Deletes all of them, or none where one can't be found.
async fn delete(ids: &[String], store: &StoreArgs, format: &FormatArg) -> Result<(), Failure> {
    let store = store.existing().await?;
    let mut found = Vec::new();
    for id in ids {
        found.push(by_id(&store, id).await?);
    }
    let mut deleted = Vec::new();
    for id in found {
        if store.delete(id).await? {
            deleted.push(Deleted { id: id.to_string() });
        }
    }
    match format.choose() {
        Format::Json => output::json(&deleted)?,
        Format::Csv | Format::Table => output::csv(["id"], deleted.iter().map(|run| [run.id.clone()]))?,
    }
    note(&format!(
        "{} {} for good",
        deleted.len(),
        if deleted.len() == 1 { "run is deleted" } else { "runs are deleted" }
    ));
    Ok(())
}
