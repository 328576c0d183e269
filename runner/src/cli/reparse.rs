//! `trainplan reparse`: stored logs read again by this program's parser.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::scenario::ScenarioArgs;
use super::stored::by_id;
use super::{Failure, note, parse};
use crate::store::{Query, Store};
use serde::Serialize;
use trainplan_shared::log::PARSER_VERSION;
use trainplan_shared::result::{Report, RunResult, View};
use trainplan_shared::spec::Spec;
use uuid::Uuid;

/// Read the stored raw logs again, with this program's parser
///
/// What was uploaded stays as it came; what the newer parser makes of its log is kept beside it, under the parser's version, and counts
/// from then on. So does what a log is a run of, where it went up without that: the flags of a scenario say it. Runs without
/// a raw log stay as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan reparse
  trainplan reparse 01a1fecf-58d1
  trainplan reparse 01a1fecf-58d1 --recipe llama3.1-8b/h100/bf16/8@25.04

Exit codes: 0 done; 1 a log could not be read (its row says why); 2 there is no such run.")]
pub(super) struct Args {
    /// Runs, by their ids or the first eight digits [default: all that an older parser made]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// What became of a run.
#[derive(Debug, Serialize)]
struct Row {
    id: String,
    /// changed, same, no_log or failed.
    outcome: &'static str,
    /// Why it failed, or what does not fit in what was said.
    reason: Option<String>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let said = View::of(self.scenario.spec()?, None)?.spec;
        let said = Some(said).filter(|said| *said != Spec::default());
        if said.is_some() && self.ids.is_empty() {
            let why = "name the runs of which that is true: `trainplan results list` has their ids";
            return Err(Failure::NoRun(why.into()));
        }
        let rows = tokio::runtime::Runtime::new()?.block_on(async {
            let store = self.store.existing().await?;
            let mut ids = Vec::new();
            for id in &self.ids {
                ids.push(by_id(&store, id).await?);
            }
            if self.ids.is_empty() {
                ids = outdated(&store).await?;
            }
            let mut rows = Vec::new();
            for id in ids {
                rows.push(row(&store, id, said.clone()).await);
            }
            Ok::<_, Failure>(rows)
        })?;
        match self.format.choose() {
            Format::Json => output::json(&rows)?,
            Format::Csv => output::csv(HEADER, rows.iter().map(cells))?,
            Format::Table => output::table(HEADER, &[], rows.iter().map(cells))?,
        }
        let count = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
        note(&format!(
            "{} of {} runs have a new score by parser {PARSER_VERSION}; {} have no raw log here",
            count("changed"),
            rows.len(),
            count("no_log")
        ));
        match count("failed") {
            0 => Ok(()),
            failed => Err(Failure::NotStored(failed, rows.len())),
        }
    }
}

const HEADER: [&str; 3] = ["outcome", "id", "reason"];

fn cells(row: &Row) -> [String; 3] {
    [row.outcome.into(), row.id.clone(), row.reason.clone().unwrap_or_default()]
}

async fn row(store: &Store, id: Uuid, said: Option<Spec>) -> Row {
    let is_said = said.is_some();
    let (outcome, reason) = match store.reparse(id, said).await {
        Ok(Some(true)) if is_said => {
            ("changed", store.get(id).await.ok().flatten().and_then(|run| doubts(&run)))
        }
        Ok(Some(true)) => ("changed", None),
        Ok(Some(false)) => ("same", None),
        Ok(None) => ("no_log", None),
        Err(error) => ("failed", Some(error.to_string())),
    };
    Row { id: id.to_string(), outcome, reason }
}

/// What to know of a run beyond its figures.
fn doubts(run: &RunResult) -> Option<String> {
    let remarks = parse::remarks(&Report::of(run, &View::default()));
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// Every run that an older parser made.
async fn outdated(store: &Store) -> Result<Vec<Uuid>, Failure> {
    let mut query = Query { limit: Some(1000), ..Query::default() };
    let mut ids = Vec::new();
    loop {
        let page = store.list(&query).await?;
        let old = page.items.iter().filter(|run| run.parser_version < PARSER_VERSION);
        ids.extend(old.filter_map(|run| run.id.parse::<Uuid>().ok()));
        if !query.advance(&page) {
            return Ok(ids);
        }
    }
}
