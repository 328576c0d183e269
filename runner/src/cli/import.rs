//! `trainplan import`: imports saved results into the store.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::{Failure, note};
use crate::store::{BlobError, Store, StoreError};
use jiff::Timestamp;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trainplan_shared::api::{ServerLimits, UploadOutcome};
use trainplan_shared::result::{self, FILE_ENDING, FileError, RunResult};

/// Import saved results into the store that `trainplan serve` shows
///
/// From a folder, all *.result.json files are imported, as written by `trainplan parse --save` and `trainplan export`.
/// Beside NAME.result.json, the raw log NAME.log.zst and the score NAME.score.json are imported too. A stored result never
/// changes: importing it again does nothing, and a different result with the same id is rejected. If the log beside a
/// result is damaged or belongs to another one, the result is stored without it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan parse experiments/ --save results/
  trainplan import results/

Exit codes: 0 everything is stored; 1 a result or a log was rejected (its row says why); 2 invalid arguments.")]
pub(super) struct Args {
    /// Result files or folders of them
    #[arg(value_name = "RESULT", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// The outcome of importing a file.
#[derive(Debug, Serialize)]
struct Row {
    path: String,
    /// The result's id, if the file could be read.
    id: Option<String>,
    outcome: Outcome,
    /// Why it was rejected.
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// The result was stored.
    New,
    /// The result was stored before.
    Known,
    /// The store has a different result with the same id.
    Conflict,
    /// The result is stored, but the raw log beside it is not the result's log.
    BadLog,
    /// A field of the result is too long, or its value is impossible.
    Invalid,
    /// The file is not a result.
    Unreadable,
}

impl Outcome {
    fn id(self) -> &'static str {
        match self {
            Outcome::New => "new",
            Outcome::Known => "known",
            Outcome::Conflict => "conflict",
            Outcome::BadLog => "bad_log",
            Outcome::Invalid => "invalid",
            Outcome::Unreadable => "unreadable",
        }
    }
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let paths = all_files(&self.paths)?;
        let rows = tokio::runtime::Runtime::new()?.block_on(async {
            let store = self.store.open().await?;
            let mut rows = Vec::new();
            for path in paths {
                rows.push(import(&store, &path).await?);
            }
            Ok::<_, Failure>(rows)
        })?;
        match self.format.choose() {
            Format::Json => output::json(&rows)?,
            Format::Csv => output::csv(HEADER, rows.iter().map(cells))?,
            Format::Table => output::table(HEADER, &[], rows.iter().map(cells))?,
        }
        let is_stored = |row: &&Row| matches!(row.outcome, Outcome::New | Outcome::Known | Outcome::BadLog);
        let stored = rows.iter().filter(is_stored).count();
        note(&format!("{stored} of {} results are in the store", rows.len()));
        match rows.iter().filter(|row| row.reason.is_some()).count() {
            0 => Ok(()),
            rejected => Err(Failure::NotStored(rejected, rows.len())),
        }
    }
}

const HEADER: [&str; 4] = ["outcome", "id", "path", "reason"];

fn cells(row: &Row) -> [String; 4] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [row.outcome.id().into(), text(&row.id), row.path.clone(), text(&row.reason)]
}

/// Returns the result files of all paths.
///
/// # Errors
/// A folder has no result.
fn all_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let found = files(path);
        if found.is_empty() {
            return Err(Failure::NoRun(format!(
                "no *{FILE_ENDING} in {0}; `trainplan parse {0} --save RESULTS` makes them from logs",
                path.display()
            )));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Returns the path itself, or the results in a folder. A folder that can't be listed is returned itself, so that reading
/// it reports why.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_path_buf()] };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(FILE_ENDING));
    files.sort_unstable();
    files
}

/// Imports a file. Only an error that ends the whole command is returned as an error.
async fn import(store: &Store, path: &Path) -> Result<Row, StoreError> {
    let row = |id: Option<&RunResult>, outcome, reason| Row {
        path: path.to_string_lossy().into_owned(),
        id: id.map(|run| run.id.to_string()),
        outcome,
        reason,
    };
    let both = || {
        let (run, file) = read(path)?;
        let score = beside(path, SCORE_ENDING).map(|score| score_of(&run, &score)).transpose()?;
        Ok((run, file, score))
    };
    let (run, file, score) = match both() {
        Ok(both) => both,
        Err(reason) => return Ok(row(None, Outcome::Unreadable, Some(reason))),
    };
    let log = log_of(path);
    let put = async {
        let (put, bad_log) = match store.put_imported(&run, &file, log.as_deref()).await {
            Err(StoreError::Blob(
                error @ (BlobError::OtherLog { .. } | BlobError::NoHash(_) | BlobError::Read { .. }),
            )) => (store.put_imported(&run, &file, None).await?, Some(error.to_string())),
            put => (put?, None),
        };
        if let Some(score) = score {
            store.put_score(&score).await?;
        }
        Ok((put, bad_log))
    };
    match put.await {
        Ok((_, Some(why))) => {
            let reason = format!("The result is stored without its log. {why}");
            Ok(row(Some(&run), Outcome::BadLog, Some(reason)))
        }
        Ok((UploadOutcome::New, None)) => Ok(row(Some(&run), Outcome::New, None)),
        Ok((UploadOutcome::Known, None)) => Ok(row(Some(&run), Outcome::Known, None)),
        Err(error @ StoreError::Invalid(_)) => Ok(row(Some(&run), Outcome::Invalid, Some(error.to_string()))),
        Err(error @ StoreError::Conflict { .. }) => {
            Ok(row(Some(&run), Outcome::Conflict, Some(error.to_string())))
        }
        Err(error) => Err(error),
    }
}

/// Returns the result in a file, and the file's bytes.
fn read(path: &Path) -> Result<(RunResult, Vec<u8>), String> {
    let bytes = bounded(path).map_err(|error| could_not_read(&error))?;
    Ok((result::read(&bytes).map_err(|error| no_result(path, &error))?, bytes))
}

/// Reads a file that is not larger than the server accepts. Pipes and devices are refused: they may have no end.
fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let most = ServerLimits::default().max_result_bytes;
    // Opening a pipe waits for a writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Returns the score in a file, if it belongs to the run.
fn score_of(run: &RunResult, path: &Path) -> Result<RunResult, String> {
    let (score, _) = read(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let is_time = |at: &String| at.parse::<Timestamp>().is_ok();
    match (score.id == run.id, score.provenance.scored_at.as_ref().is_some_and(is_time)) {
        (true, true) => Ok(score),
        (false, _) => Err(format!("{} belongs to another run, {}; move it away", path.display(), score.id)),
        (_, false) => Err(format!("{} has no valid time of its score; move it away", path.display())),
    }
}

/// Returns why a file is not a result, and how to make one from a log.
fn no_result(path: &Path, error: &FileError) -> String {
    match error {
        FileError::NotAResult(_) => {
            format!(
                "not a result file; `trainplan parse {} --save RESULTS` makes one from a log",
                path.display()
            )
        }
        error => error.to_string(),
    }
}

/// The ending of a file with a later score of a run.
pub(super) const SCORE_ENDING: &str = ".score.json";

/// Returns the raw log beside a result file: NAME.log.zst beside NAME.result.json.
pub(super) fn log_of(path: &Path) -> Option<PathBuf> {
    beside(path, ".log.zst")
}

/// Returns the file beside a result file with the same name and another ending, if it exists and is a regular file.
fn beside(path: &Path, ending: &str) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(FILE_ENDING)?;
    Some(path.with_file_name(format!("{name}{ending}"))).filter(|beside| beside.is_file())
}

pub(super) fn could_not_read(error: &io::Error) -> String {
    format!("can't be read: {error}; use a result file or a folder of them")
}
