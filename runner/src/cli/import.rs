//! `trainplan import`: imports saved results into the store.

use super::data_dir::StoreArgs;
use super::output::{self, Format, FormatArg};
use super::{Failure, note};
use crate::store::{BlobError, LogFile, Store, StoreError, read_again};
use jiff::Timestamp;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trainplan_shared::api::{ServerLimits, UploadOutcome};
use trainplan_shared::result::{self, FILE_ENDING, FileError, RunResult};
use uuid::Uuid;

/// Import saved results into the store that `trainplan serve` shows
///
/// From a folder, all *.result.json files are imported, as written by `trainplan parse --save` and `trainplan export`.
/// Beside NAME.result.json, the raw log NAME.log.zst and the score NAME.score.json are imported too. A stored result never
/// changes: importing it again does nothing, and a different result with the same id is rejected.
///
/// Everything intact is imported, even if other files are rejected. If the log beside a result is damaged, too large
/// or belongs to another one, or if its score is not accepted, the result is stored without it. A result of an older
/// version that is no longer accepted is recreated from the log beside it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan parse experiments/ --save results/
  trainplan import results/

Exit codes: 0 everything is stored; 1 a result, a log or a score was rejected (its row says why), or the store failed; 2 invalid arguments.")]
pub(super) struct Args {
    /// Result files or folders of them
    #[arg(value_name = "RESULT", required = true)]
    paths: Vec<PathBuf>,
    /// Maximum size of a raw log, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = ServerLimits::default().max_log_bytes)]
    max_log_bytes: u64,
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
    /// What was rejected, and why.
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// The result was stored.
    New,
    /// The result was stored before.
    Known,
    /// The result was not accepted. It was recomputed from its log and stored.
    Remade,
    /// The run was deleted from the store.
    Deleted,
    /// The store has a different result with the same id.
    Conflict,
    /// The result is stored, but not the raw log beside it.
    BadLog,
    /// The result is stored, but not the score beside it.
    BadScore,
    /// A field of the result is too long, or its value is impossible.
    Invalid,
    /// The store can't take the result.
    Failed,
    /// The file is not a result.
    Unreadable,
}

impl Outcome {
    fn id(self) -> &'static str {
        match self {
            Outcome::New => "new",
            Outcome::Known => "known",
            Outcome::Remade => "remade",
            Outcome::Deleted => "deleted",
            Outcome::Conflict => "conflict",
            Outcome::BadLog => "bad_log",
            Outcome::BadScore => "bad_score",
            Outcome::Invalid => "invalid",
            Outcome::Failed => "failed",
            Outcome::Unreadable => "unreadable",
        }
    }

    /// Returns whether the result is in the store.
    fn is_stored(self) -> bool {
        self.is_complete() || matches!(self, Outcome::BadLog | Outcome::BadScore)
    }

    /// Returns whether the store has everything that was to be imported.
    fn is_complete(self) -> bool {
        matches!(self, Outcome::New | Outcome::Known | Outcome::Remade)
    }

    /// Returns whether something was rejected. Deleted runs don't count, because they were left out on
    /// purpose.
    fn is_rejected(self) -> bool {
        !self.is_complete() && self != Outcome::Deleted
    }
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let paths = all_files(&self.paths)?;
        let (rows, broken) = tokio::runtime::Runtime::new()?.block_on(async {
            let store = self.store.open().await?;
            let mut rows = Vec::new();
            for path in &paths {
                match import(&store, path, self.max_log_bytes).await {
                    Ok(row) => rows.push(row),
                    // The rows so far are reported all the same.
                    Err(error) => return Ok((rows, Some(error))),
                }
            }
            Ok::<_, Failure>((rows, None))
        })?;
        match self.format.choose() {
            Format::Json => output::json(&rows)?,
            Format::Csv => output::csv(HEADER, rows.iter().map(cells))?,
            Format::Table => output::table(HEADER, &[], rows.iter().map(cells))?,
        }
        let stored = rows.iter().filter(|row| row.outcome.is_stored()).count();
        note(&format!("{stored} of {} results are in the store", paths.len()));
        if let Some(error) = broken {
            return Err(error.into());
        }
        match rows.iter().filter(|row| row.outcome.is_rejected()).count() {
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

/// Imports a file with the files beside it. Returns only errors that would also affect every other file.
async fn import(store: &Store, path: &Path, most: u64) -> Result<Row, StoreError> {
    let row = |id: Option<Uuid>, outcome, reason| Row {
        path: path.to_string_lossy().into_owned(),
        id: id.map(|id| id.to_string()),
        outcome,
        reason,
    };
    let (run, file) = match read(path) {
        Ok(read) => read,
        Err(reason) => return Ok(row(None, Outcome::Unreadable, Some(reason))),
    };
    let beside_log = beside(path, LOG_ENDING);
    let log = beside_log.as_deref().filter(|path| path.is_file()).map(|path| LogFile { path, most });
    let (mut outcome, mut reasons) = match put(store, &run, &file, log).await {
        Ok(put) => put,
        Err(error) if is_of_every_file(&error) => return Err(error),
        Err(error @ StoreError::Deleted { id, .. }) => {
            let reason = format!("{error} To import it, use `trainplan results restore {id}` before.");
            return Ok(row(Some(id), Outcome::Deleted, Some(reason)));
        }
        Err(error) => return Ok(row(Some(run.id), rejected(&error), Some(error.to_string()))),
    };
    if let (Some(odd), None) = (&beside_log, log) {
        let why = format!("{} is not a regular file. Put the log in its place.", odd.display());
        outcome = Outcome::BadLog;
        reasons.push(without_log(store, &run, &why).await?);
    }
    if let Some(score) = beside(path, SCORE_ENDING)
        && let Err(why) = put_score(store, &run, &score).await?
    {
        if outcome != Outcome::BadLog {
            outcome = Outcome::BadScore;
        }
        reasons.push(format!("The result is stored without its later score. {why}"));
    }
    Ok(row(Some(run.id), outcome, Some(reasons.join(" ")).filter(|reasons| !reasons.is_empty())))
}

/// Stores a result and its log, or as much of them as is accepted. Returns what was rejected, as sentences.
async fn put(
    store: &Store,
    run: &RunResult,
    file: &[u8],
    log: Option<LogFile<'_>>,
) -> Result<(Outcome, Vec<String>), StoreError> {
    let stored = |outcome| match outcome {
        UploadOutcome::New => Outcome::New,
        UploadOutcome::Known => Outcome::Known,
    };
    match store.put_imported(run, file, log).await {
        Ok(outcome) => Ok((stored(outcome), Vec::new())),
        Err(StoreError::Blob(
            error @ (BlobError::OtherLog { .. } | BlobError::NoHash(_) | BlobError::Read { .. }),
        )) => {
            store.put_imported(run, file, None).await?;
            Ok((Outcome::BadLog, vec![without_log(store, run, &error.to_string()).await?]))
        }
        // An older version of this program accepted it.
        Err(StoreError::Invalid(_)) if store.has_file(run.id, file).await? => {
            Ok((Outcome::Known, Vec::new()))
        }
        Err(StoreError::Invalid(invalid)) => {
            let remade = log.and_then(|log| remake(run, log));
            let Some(remade) = remade else { return Err(StoreError::Invalid(invalid)) };
            let file = result::write(&remade)?;
            match store.put_imported(&remade, file.as_bytes(), log).await {
                Ok(UploadOutcome::New) => Ok((
                    Outcome::Remade,
                    vec![format!("The result was recreated from its log, because {invalid}")],
                )),
                Ok(UploadOutcome::Known) => Ok((Outcome::Known, Vec::new())),
                // It is not the result's log.
                Err(StoreError::Blob(BlobError::OtherLog { .. } | BlobError::Read { .. })) => {
                    Err(StoreError::Invalid(invalid))
                }
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// Says that the log beside a result is not stored, and why. The store may have that log from another run.
async fn without_log(store: &Store, run: &RunResult, why: &str) -> Result<String, StoreError> {
    Ok(match store.has_log(run.id).await? {
        true => {
            format!("The store already has the result's log, but the log beside the result is bad. {why}")
        }
        false => format!("The result is stored without its log. {why}"),
    })
}

/// Makes a result again from its log; none if the log can't be read or the new result is not accepted either.
fn remake(run: &RunResult, log: LogFile<'_>) -> Option<RunResult> {
    let raw = zstd::Decoder::new(File::open(log.path).ok()?).ok()?;
    // A log that is cut here has another hash, so it is not stored.
    let remade = read_again(run, &run.identity.scenario, raw.take(log.most)).ok()?;
    result::admit(&remade).is_ok().then_some(remade)
}

/// Stores the score in a file; returns why it is not accepted.
async fn put_score(store: &Store, run: &RunResult, path: &Path) -> Result<Result<(), String>, StoreError> {
    let score = match score_of(run, path) {
        Ok(score) => score,
        Err(why) => return Ok(Err(why)),
    };
    match store.put_score(&score).await {
        Ok(_) => Ok(Ok(())),
        Err(error) if is_of_every_file(&error) => Err(error),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Returns whether an error would meet every file, such as a full disk.
fn is_of_every_file(error: &StoreError) -> bool {
    use StoreError::{Address, Blob, Emptied, Full, Gone, Locked, Newer, ReadOnly, Refused};
    match error {
        Blob(error) => {
            !matches!(error, BlobError::OtherLog { .. } | BlobError::NoHash(_) | BlobError::Read { .. })
        }
        error => {
            matches!(
                error,
                Newer { .. }
                    | Locked { .. }
                    | Full { .. }
                    | ReadOnly { .. }
                    | Emptied { .. }
                    | Gone { .. }
                    | Refused { .. }
                    | Address { .. }
            )
        }
    }
}

fn rejected(error: &StoreError) -> Outcome {
    match error {
        StoreError::Invalid(_) => Outcome::Invalid,
        StoreError::Conflict { .. } => Outcome::Conflict,
        _ => Outcome::Failed,
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
    let (score, _) = read(path).map_err(|why| format!("{}: {why}.", path.display()))?;
    let is_time = |at: &String| at.parse::<Timestamp>().is_ok();
    match (score.id == run.id, score.provenance.scored_at.as_ref().is_some_and(is_time)) {
        (true, true) => Ok(score),
        (false, _) => Err(format!("{} belongs to another run, {}. Move it away.", path.display(), score.id)),
        (_, false) => Err(format!("{} has no valid time of its score. Move it away.", path.display())),
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

/// The ending of the raw log beside a result file.
const LOG_ENDING: &str = ".log.zst";

/// Returns the raw log beside a result file, if it is a regular file: NAME.log.zst beside NAME.result.json.
pub(super) fn log_of(path: &Path) -> Option<PathBuf> {
    beside(path, LOG_ENDING).filter(|log| log.is_file())
}

/// Returns the path beside a result file with the same name and another ending, if something exists there: a file, or a pipe
/// or folder in its place.
fn beside(path: &Path, ending: &str) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(FILE_ENDING)?;
    let beside = path.with_file_name(format!("{name}{ending}"));
    Some(beside).filter(|beside| fs::symlink_metadata(beside).is_ok())
}

pub(super) fn could_not_read(error: &io::Error) -> String {
    format!("can't be read: {error}; use a result file or a folder of them")
}
