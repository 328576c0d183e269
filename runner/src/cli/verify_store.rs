//! `trainplan verify-store`: compares stored raw logs with their hashes.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::{Failure, note};
use crate::store::{LogHash, Store, StoreError, time};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use trainplan_shared::api::LogFault;

/// Compare stored raw logs with their hashes
///
/// Reads every log whole, names those that are missing or damaged, and marks them for the server. The next upload of
/// such a log replaces it. An interrupted check continues with the logs that were not checked yet. The server may run
/// meanwhile.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan verify-store
  trainplan verify-store --skip-checked 30

Exit codes: 0 all logs are sound; 1 a log is missing or damaged, or the store failed.")]
pub(super) struct Args {
    /// Skip logs that were found sound in the last DAYS days; 0 checks all logs
    #[arg(long, value_name = "DAYS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=36500))]
    skip_checked: u32,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// A log with a fault.
#[derive(Debug, Serialize)]
struct Row {
    sha256: String,
    fault: LogFault,
    /// The ids of the runs that have this log.
    runs: Vec<String>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let since = time(Timestamp::now() - SignedDuration::from_hours(24 * i64::from(self.skip_checked)));
        let (checked, rows) = tokio::runtime::Runtime::new()?.block_on(async {
            let store = self.store.existing().await?;
            check(&store, &since).await
        })?;
        match self.format.choose() {
            Format::Json => output::json(&rows)?,
            Format::Csv => output::csv(HEADER, rows.iter().map(cells))?,
            Format::Table => output::table(HEADER, &[], rows.iter().map(cells))?,
        }
        let logs = if checked == 1 { "log" } else { "logs" };
        note(&format!("checked {checked} {logs}; {} missing or damaged", rows.len()));
        if rows.is_empty() { Ok(()) } else { Err(Failure::BadLogs(rows.len())) }
    }
}

const HEADER: [&str; 3] = ["fault", "sha256", "runs"];

fn cells(row: &Row) -> [String; 3] {
    [row.fault.id().into(), row.sha256.clone(), row.runs.join(" ")]
}

/// Checks all logs that were not found sound since a time; returns their number, and those with a fault.
async fn check(store: &Store, since: &str) -> Result<(usize, Vec<Row>), Failure> {
    let (mut checked, mut rows) = (0, Vec::new());
    let mut after: Option<LogHash> = None;
    loop {
        let logs = store.logs_to_check(after.as_ref(), since).await?;
        if logs.is_empty() {
            return Ok((checked, rows));
        }
        for log in &logs {
            checked += 1;
            match store.verify_log(log).await {
                Ok(()) => {}
                Err(StoreError::BadLog { sha256, fault }) => {
                    rows.push(Row { sha256, fault, runs: store.runs_of_log(log).await? });
                }
                Err(error) => return Err(error.into()),
            }
        }
        after = logs.last().cloned();
    }
}
