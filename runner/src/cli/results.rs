//! `trainplan results`: lists, deletes and restores stored runs.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::stored::{by_id, deleted_by_id};
use super::{Failure, note};
use crate::store::{Query, Sort};
use serde::Serialize;
use std::collections::BTreeSet;
use trainplan_shared::api::RunSummary;
use trainplan_shared::catalog::Catalog;
use trainplan_shared::tables::StoredRunColumn;

/// List, delete and restore stored runs
///
/// Uses the store that `trainplan serve` shows: by default this machine's, or the one given by --data-dir or
/// --database-url.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan results list
  trainplan results list --recipe '*405b*' --limit 20 --format csv
  trainplan results delete 0199a7b2-3c4d
  trainplan results restore 0199a7b2-3c4d

Exit codes: 0 success; 1 the store failed; 2 unknown run.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: ResultsCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ResultsCommand {
    /// List runs, newest first
    List(List),
    /// Delete runs permanently: results, scores, and raw logs that no other run shares. Uploads don't bring them back
    Delete {
        /// Ids of runs, or at least their first or last eight digits
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        format: FormatArg,
    },
    /// Let deleted runs be uploaded and imported again. This does not bring back what was deleted
    Restore {
        /// Ids of deleted runs, or at least their first or last eight digits
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
    /// Only runs of this recipe; * matches any text, also in --cluster and --campaign
    #[arg(long, value_name = "ID")]
    recipe: Option<String>,
    /// Only runs on this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only runs of this campaign
    #[arg(long, value_name = "NAME")]
    campaign: Option<String>,
    /// Only runs with this status: scored, incomplete, invalid, implausible, failed, cancelled, no_data, unreadable
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// A listed run in JSON.
#[derive(Debug, Serialize)]
struct ListedRun<'a> {
    #[serde(flatten)]
    run: &'a RunSummary,
    /// The name of the software that ran; null if parts of the scenario are unknown.
    software: Option<String>,
}

/// A run that was deleted or restored.
#[derive(Debug, Serialize)]
struct ChangedRun {
    id: String,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let runtime = tokio::runtime::Runtime::new()?;
        match self.command {
            ResultsCommand::List(list) => runtime.block_on(list.run()),
            ResultsCommand::Delete { ids, store, format } => runtime.block_on(delete(&ids, &store, &format)),
            ResultsCommand::Restore { ids, store, format } => {
                runtime.block_on(restore(&ids, &store, &format))
            }
        }
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let store = self.store.existing().await?;
        // Expand short forms of recipe ids, as elsewhere.
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
            Format::Json => {
                let listed = page.items.iter().map(|run| ListedRun { run, software: run.software() });
                output::json(&listed.collect::<Vec<_>>())?;
            }
            Format::Csv => output::csv_table(&StoredRunColumn::csv(&page.items))?,
            Format::Table => {
                output::text_table(StoredRunColumn::terminal_table(&for_terminal(&page.items)))?;
            }
        }
        if page.next_cursor.is_some() {
            note(&format!(
                "more than {} runs match; use a filter or a larger --limit (up to 1000)",
                self.limit
            ));
        }
        Ok(())
    }
}

/// Returns runs with file names instead of paths, and with the shortest unique prefixes of their ids, of at least two groups of
/// digits. Commands also take these prefixes.
fn for_terminal(runs: &[RunSummary]) -> Vec<RunSummary> {
    let beginning = |run: &RunSummary, length: usize| run.id.chars().take(length).collect::<String>();
    let differ = |length: &usize| {
        let all: BTreeSet<String> = runs.iter().map(|run| beginning(run, *length)).collect();
        all.len() == runs.len()
    };
    let length = [13, 18, 23].into_iter().find(differ).unwrap_or(usize::MAX);
    let name = |run: &RunSummary| run.path.rsplit('/').next().unwrap_or_default().to_owned();
    let shown = |run: &RunSummary| RunSummary { id: beginning(run, length), path: name(run), ..run.clone() };
    runs.iter().map(shown).collect()
}

/// Deletes all given runs, or none if one is unknown.
async fn delete(ids: &[String], store: &StoreArgs, format: &FormatArg) -> Result<(), Failure> {
    let store = store.existing().await?;
    let mut found = Vec::new();
    for id in ids {
        found.push(match (by_id(&store, id).await, id.parse()) {
            // Its row is lost, so it is not listed.
            (Err(Failure::NoRun(_)), Ok(id)) if store.has_remains(id).await? => id,
            (known, _) => known?,
        });
    }
    let mut deleted = Vec::new();
    for id in found {
        if store.delete(id).await? {
            deleted.push(ChangedRun { id: id.to_string() });
        }
    }
    print(&deleted, format)?;
    note(&format!("{} deleted permanently", counted(deleted.len())));
    Ok(())
}

/// Lets all given runs be stored again, or none if one is unknown.
async fn restore(ids: &[String], store: &StoreArgs, format: &FormatArg) -> Result<(), Failure> {
    let store = store.existing().await?;
    let mut found = Vec::new();
    for id in ids {
        found.push(deleted_by_id(&store, id).await?);
    }
    let mut restored = Vec::new();
    for id in found {
        if store.restore(id).await? {
            restored.push(ChangedRun { id: id.to_string() });
        }
    }
    print(&restored, format)?;
    note(&format!("{} can be uploaded and imported again", counted(restored.len())));
    Ok(())
}

fn print(runs: &[ChangedRun], format: &FormatArg) -> Result<(), Failure> {
    match format.choose() {
        Format::Json => output::json(&runs)?,
        Format::Csv | Format::Table => output::csv(["id"], runs.iter().map(|run| [run.id.clone()]))?,
    }
    Ok(())
}

fn counted(runs: usize) -> String {
    if runs == 1 { "1 run".into() } else { format!("{runs} runs") }
}
