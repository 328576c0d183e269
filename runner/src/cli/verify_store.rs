//! `trainplan verify-store`: compares stored results and raw logs with their hashes.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::{Failure, note};
use crate::store::{LogHash, ResultFault, Store, StoreError, time};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use trainplan_shared::api::LogFault;

/// Compare stored results and raw logs with their hashes
///
/// Reads every result and its scores, and reports those that are missing or damaged. Recomputes rows of the list of
/// runs that are lost or disagree with their results. With SQLite, checks the structure of the file first. Then reads
/// every log in full, reports those that are missing or damaged, and marks them for the server. The next upload of
/// such a result or log replaces it. After an interruption, `--skip-checked 1` continues with the logs that were not
/// checked yet. The server can keep running.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan verify-store
  trainplan verify-store --skip-checked 30

Exit codes: 0 everything is intact; 1 a result, a log or the database has a fault (its row says which), or the store failed.")]
pub(super) struct Args {
    /// Skip logs that were found sound in the last DAYS days; results are always checked
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(..=36500))]
    skip_checked: Option<u32>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// Something in the store with a fault.
#[derive(Debug, Serialize)]
struct Row {
    fault: StoreFault,
    /// The log's SHA-256; none for a result.
    sha256: Option<String>,
    /// The id of the run, or the ids of the runs that have this log. Empty if a run has no valid id.
    runs: Vec<String>,
    /// What is wrong with a result.
    detail: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum StoreFault {
    /// The log is missing.
    Missing,
    /// The log is damaged.
    Damaged,
    /// The file of a result or score is missing or damaged.
    DamagedResult,
    /// The row of a run in lists disagreed with its result, and was recomputed.
    WrongRow,
    /// The row of a run was lost or had another id, and was restored.
    LostRow,
    /// The database has a fault that doesn't belong to a run.
    Database,
}

impl StoreFault {
    fn id(self) -> &'static str {
        match self {
            StoreFault::Missing => "missing",
            StoreFault::Damaged => "damaged",
            StoreFault::DamagedResult => "damaged_result",
            StoreFault::WrongRow => "wrong_row",
            StoreFault::LostRow => "lost_row",
            StoreFault::Database => "database",
        }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let days = self.skip_checked.unwrap_or_default();
        let since = time(Timestamp::now() - SignedDuration::from_hours(24 * i64::from(days)));
        let mut checked = Checked::default();
        tokio::runtime::Runtime::new()?.block_on(async {
            let store = self.store.existing().await?;
            check_file(&store, &mut checked).await?;
            let is_damaged = !checked.rows.is_empty();
            match check_contents(&store, &since, &mut checked).await {
                // The rows say why, and what to do.
                Err(Failure::Store(error)) if is_damaged => {
                    note(&format!("the check ended early: {error}"));
                    Ok(())
                }
                done => done,
            }
        })?;
        let Checked { results, logs, skipped, rows } = checked;
        match self.format.choose() {
            Format::Json => output::json(&rows)?,
            Format::Csv => output::csv(HEADER, rows.iter().map(cells))?,
            Format::Table => output::table(HEADER, &[], rows.iter().map(cells))?,
        }
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        note(&format!(
            "checked {results} result{} and {logs} log{}; {} fault{} found",
            plural(results),
            plural(logs),
            rows.len(),
            plural(rows.len())
        ));
        if skipped > 0 && days > 0 {
            let logs = if skipped == 1 { "1 log was".to_owned() } else { format!("{skipped} logs were") };
            let days = if days == 1 { "day".to_owned() } else { format!("{days} days") };
            note(&format!("{logs} checked within the last {days} and skipped"));
        }
        if rows.is_empty() { Ok(()) } else { Err(Failure::StoreFaults(rows.len())) }
    }
}

const HEADER: [&str; 4] = ["fault", "sha256", "runs", "detail"];

fn cells(row: &Row) -> [String; 4] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [row.fault.id().into(), text(&row.sha256), row.runs.join(" "), text(&row.detail)]
}

/// What was checked so far.
#[derive(Debug, Default)]
struct Checked {
    results: usize,
    logs: usize,
    /// The logs that were not checked because an earlier check found them sound.
    skipped: i64,
    rows: Vec<Row>,
}

/// Checks the structure of an SQLite file.
async fn check_file(store: &Store, checked: &mut Checked) -> Result<(), Failure> {
    let damages = store.damages().await?;
    if !damages.is_empty() {
        checked.rows.push(of_database(format!(
            "SQLite finds damage in its file: {}. To repair the store, write its results into a folder with `trainplan export FOLDER`, \
             and import that folder into a new data directory.",
            damages.join("; ")
        )));
    }
    Ok(())
}

async fn check_contents(store: &Store, since: &str, checked: &mut Checked) -> Result<(), Failure> {
    if store.renumber_changes().await? {
        let what = "The change numbers were impossibly high, and were reset. Nothing can be written once they run out.";
        checked.rows.push(of_database(what.into()));
    }
    check_results(store, checked).await?;
    check_logs(store, since, checked).await
}

fn of_database(detail: String) -> Row {
    Row { fault: StoreFault::Database, sha256: None, runs: Vec::new(), detail: Some(detail) }
}

/// Checks all results.
async fn check_results(store: &Store, checked: &mut Checked) -> Result<(), Failure> {
    let Checked { results, rows, .. } = checked;
    // First, so that restored rows are checked below.
    for id in store.lost_runs().await? {
        match id {
            Some(id) => {
                rows.extend(store.restore_run(&id).await?.map(|(run, fault)| of_result(&run, fault)));
            }
            None => rows.push(Row {
                fault: StoreFault::DamagedResult,
                sha256: None,
                runs: Vec::new(),
                detail: Some("A result's file has no valid id, so no run has it.".into()),
            }),
        }
    }
    for run in store.lost_results().await? {
        let what = "Only scores of the run are stored, without its result. Upload or import the result again, or delete the run.";
        rows.push(of_result(&run, ResultFault::File(what.into())));
    }
    let mut after = String::new();
    loop {
        let runs = store.runs_after(&after).await?;
        let Some(last) = runs.last() else { break };
        for run in &runs {
            *results += 1;
            rows.extend(store.verify_result(run).await?.into_iter().map(|fault| of_result(run, fault)));
        }
        after = last.clone();
    }
    for detail in store.rows_without_id().await? {
        *results += 1;
        rows.push(Row {
            fault: StoreFault::DamagedResult,
            sha256: None,
            runs: Vec::new(),
            detail: Some(detail),
        });
    }
    Ok(())
}

fn of_result(run: &str, fault: ResultFault) -> Row {
    let (fault, detail) = match fault {
        ResultFault::File(what) => (StoreFault::DamagedResult, what),
        ResultFault::Columns(columns) => {
            let detail =
                format!("Disagreed with the result, and was computed again: {}.", columns.join(", "));
            (StoreFault::WrongRow, detail)
        }
        ResultFault::Row(what) => (StoreFault::LostRow, what),
    };
    Row { fault, sha256: None, runs: vec![run.to_owned()], detail: Some(detail) }
}

/// Checks all logs that were not found sound since a time.
async fn check_logs(store: &Store, since: &str, checked: &mut Checked) -> Result<(), Failure> {
    let Checked { logs: count, skipped, rows, .. } = checked;
    // Counted first, because every check below makes another log sound.
    *skipped = store.logs_found_sound(since).await?;
    let mut after: Option<LogHash> = None;
    loop {
        let logs = store.logs_to_check(after.as_ref(), since).await?;
        if logs.is_empty() {
            return Ok(());
        }
        for log in &logs {
            *count += 1;
            match store.verify_log(log).await {
                Ok(()) => {}
                Err(StoreError::BadLog { sha256, fault }) => {
                    let fault = match fault {
                        LogFault::Missing => StoreFault::Missing,
                        LogFault::Damaged => StoreFault::Damaged,
                    };
                    let runs = store.runs_of_log(log).await?;
                    rows.push(Row { fault, sha256: Some(sha256), runs, detail: None });
                }
                Err(error) => return Err(error.into()),
            }
        }
        after = logs.last().cloned();
    }
}
