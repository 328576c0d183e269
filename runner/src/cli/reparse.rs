//! `trainplan reparse`: scores stored logs again with the current version's parser.

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

/// Score stored raw logs again with the current version's parser
///
/// The uploaded result is kept. The new score is stored with the parser's version and used from then on. Scenario
/// flags set the recipe of runs whose log doesn't name it. Runs without a stored log don't change.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan reparse
  trainplan reparse 01a1fecf-58d1
  trainplan reparse 01a1fecf-58d1 --recipe llama3.1-8b/h100/bf16/8@25.04

Exit codes: 0 success; 1 a log could not be read (its row says why); 2 unknown run.")]
pub(super) struct Args {
    /// Ids of runs, or at least their first or last eight digits [default: all runs scored by an older parser]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// The outcome for a run.
#[derive(Debug, Serialize)]
struct Row {
    id: String,
    outcome: ReparseOutcome,
    /// Why it failed, or what contradicts the scenario flags.
    reason: Option<String>,
}

/// What reading a log again changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ReparseOutcome {
    /// The run has a new score.
    Changed,
    /// The new score is the same as the old one.
    Same,
    /// The store has no log of the run.
    NoLog,
    /// The log could not be read.
    Failed,
}

impl ReparseOutcome {
    fn id(self) -> &'static str {
        match self {
            ReparseOutcome::Changed => "changed",
            ReparseOutcome::Same => "same",
            ReparseOutcome::NoLog => "no_log",
            ReparseOutcome::Failed => "failed",
        }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let said = View::of(self.scenario.spec()?, None)?.spec;
        let said = Some(said).filter(|said| *said != Spec::default());
        if said.is_some() && self.ids.is_empty() {
            let why = "scenario flags need the ids of the runs; `trainplan results list` shows them";
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
            "{} of {} runs have a new score by parser {PARSER_VERSION}; {} have no stored log",
            count(ReparseOutcome::Changed),
            rows.len(),
            count(ReparseOutcome::NoLog)
        ));
        match count(ReparseOutcome::Failed) {
            0 => Ok(()),
            failed => Err(Failure::NotStored(failed, rows.len())),
        }
    }
}

const HEADER: [&str; 3] = ["outcome", "id", "reason"];

fn cells(row: &Row) -> [String; 3] {
    [row.outcome.id().into(), row.id.clone(), row.reason.clone().unwrap_or_default()]
}

async fn row(store: &Store, id: Uuid, said: Option<Spec>) -> Row {
    let is_said = said.is_some();
    let (outcome, reason) = match store.reparse(id, said).await {
        Ok(Some(true)) if is_said => {
            (ReparseOutcome::Changed, store.get(id).await.ok().flatten().and_then(|run| doubts(&run)))
        }
        Ok(Some(true)) => (ReparseOutcome::Changed, None),
        Ok(Some(false)) => (ReparseOutcome::Same, None),
        Ok(None) => (ReparseOutcome::NoLog, None),
        Err(error) => (ReparseOutcome::Failed, Some(error.to_string())),
    };
    Row { id: id.to_string(), outcome, reason }
}

/// Returns the remarks on a run's report.
fn doubts(run: &RunResult) -> Option<String> {
    let remarks = parse::remarks(&Report::of(run, &View::default()));
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// Returns the runs scored by an older parser.
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
