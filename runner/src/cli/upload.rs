//! `trainplan upload`: sends results and logs to a results server.

use super::data_dir::StoreArgs;
use super::import::{could_not_read, files, log_of};
use super::output::{self, Format, FormatArg};
use super::parse::{self, LogFiles, SharedRemark};
use super::run::block_on;
use super::scenario::ScenarioArgs;
use super::stored::by_id;
use super::{Failure, note};
use crate::journal::{Journal, PendingUpload};
use crate::store::Store;
use crate::upload::{RawLog, Remote, Sent, UploadError, remote, send_due, send_stored, settle, unencrypted};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trainplan_shared::api::UploadOutcome;
use trainplan_shared::campaign::{Name, Server, Upload};
use trainplan_shared::log::Status;
use trainplan_shared::result::{self, FILE_ENDING, Report, RunResult, View};
use uuid::Uuid;

/// Upload results and their raw logs to a results server
///
/// RESULT is a log, a result file, a folder, or the id of a stored run (see `trainplan results list`). From a
/// folder, the result files are sent, or the logs if there are no result files. A log is skipped
/// while its run seems to be in progress: it doesn't have all steps yet, and it changed during the last hour.
///
/// Uploading twice has no effect, and interrupted uploads of logs resume. If you upload
/// NAME.result.json, its raw log is sent too. That is NAME.log.zst in the same folder or, if there is none, the
/// log at the path recorded in the result. A log whose SHA-256 differs from the one in the result is not sent. The modification time of a log is
/// taken as the time of its run; `cp -p` and `rsync -t` preserve it.
///
/// Set the server's token in the variable TRAINPLAN_TOKEN. Create one with `trainplan token create` on the
/// server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan upload experiments/ --to https://results.example
  trainplan upload train.log --recipe llama3.1-70b/h100/fp8/256 --to https://results.example
  trainplan upload results/ --to https://results.example
  trainplan upload experiments/ --cluster alpha --to https://results.example
  trainplan upload 0199a7b2-3c4d --to https://results.example
  trainplan upload a.result.json --log log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out --to https://results.example
  trainplan upload --pending

Exit codes: 0 all results are on the server; 1 some are not (see their rows); 2 invalid arguments; 5 the server can't be reached.")]
pub(super) struct Args {
    /// Logs, result files, folders, or ids of stored runs
    #[arg(value_name = "RESULT", required_unless_present = "pending", conflicts_with = "pending")]
    results: Vec<String>,
    /// Address of the server
    #[arg(
        long,
        value_name = "URL",
        env = "TRAINPLAN_SERVER",
        required_unless_present = "pending",
        value_parser = server
    )]
    to: Option<Server>,
    /// Send the results that campaigns on this machine could not send yet, each to its campaign's server
    #[arg(long, conflicts_with_all = ["log", "no_log"])]
    pending: bool,
    /// With --pending: remove the waiting results from the queue, unsent. You can still send each by its id
    #[arg(long, requires = "pending")]
    forget: bool,
    /// Raw log, plain or compressed, to send with the result; requires exactly one RESULT
    #[arg(long, value_name = "FILE", conflicts_with = "no_log")]
    log: Option<PathBuf>,
    /// Don't send raw logs
    #[arg(long)]
    no_log: bool,
    /// Cluster on which the logs ran, such as alpha: their runs join its timelines. Runs of a campaign keep their
    /// own
    #[arg(long, value_name = "NAME", conflicts_with = "pending")]
    cluster: Option<Name>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// The number of attempts before giving up on a server: about ten seconds.
const ATTEMPTS: u32 = 5;

const RESTORE: &str = "To let one be uploaded again, use `trainplan results restore ID` there.";

/// The age at which a log counts as complete.
const SETTLED: Duration = Duration::from_secs(60 * 60);

/// The time to wait while another process is sending.
const BUSY: Duration = Duration::from_secs(60);

fn server(text: &str) -> Result<Server, String> {
    text.parse().map_err(|invalid: trainplan_shared::campaign::InvalidName| invalid.to_string())
}

/// The outcome of sending a result.
#[derive(Debug, Serialize)]
struct SentRow {
    /// The argument or file, or the run's name in its campaign.
    result: String,
    /// The result's id, if known.
    id: Option<String>,
    to: String,
    outcome: SendOutcome,
    /// Whether its log was `sent` or `known` to the server; none without a log.
    log: Option<&'static str>,
    /// Why the result is not on the server.
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SendOutcome {
    /// The server stored it.
    New,
    /// The server had it.
    Known,
    /// It was deleted on the server.
    Deleted,
    /// The server has another result under its id.
    Conflict,
    /// The server refused it, or the given log belongs to another result.
    Refused,
    /// It can't be read.
    Unreadable,
    /// A file in a folder that is not a run's log.
    NoRun,
    /// A log in a folder that is still being written.
    Running,
    /// The server does not accept the token.
    Denied,
    /// The server can't be reached.
    Unreachable,
    /// The server answered that it failed.
    Failed,
    /// It was dropped from the queue.
    Forgotten,
}

impl SendOutcome {
    fn id(self) -> &'static str {
        match self {
            SendOutcome::New => "new",
            SendOutcome::Known => "known",
            SendOutcome::Deleted => "deleted",
            SendOutcome::Conflict => "conflict",
            SendOutcome::Refused => "refused",
            SendOutcome::Unreadable => "unreadable",
            SendOutcome::Unreachable => "unreachable",
            SendOutcome::Failed => "failed",
            SendOutcome::NoRun => "no_run",
            SendOutcome::Running => "running",
            SendOutcome::Denied => "denied",
            SendOutcome::Forgotten => "forgotten",
        }
    }

    /// Returns whether the result was deleted on the server, so that it isn't uploaded.
    fn is_skipped(self) -> bool {
        matches!(self, SendOutcome::NoRun | SendOutcome::Running | SendOutcome::Deleted)
    }

    /// Returns whether every result for this server would have the same outcome.
    fn is_of_server(self) -> bool {
        matches!(self, SendOutcome::Unreachable | SendOutcome::Failed | SendOutcome::Denied)
    }
}

/// How many files or results were not tried, by server, because it could not be reached, failed or denied access.
type Untried = BTreeMap<Server, usize>;

/// Something to send.
enum UploadItem {
    File {
        log: LogFiles,
        /// Whether the user named the file, not only its folder.
        is_named: bool,
    },
    Stored {
        name: String,
        id: Uuid,
        store: Store,
    },
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let (rows, untried) = block_on(async {
            match self.to.clone().filter(|_| !self.pending) {
                Some(to) => self.send(to).await,
                None => self.send_pending().await,
            }
        })?;
        match self.format.choose() {
            Format::Json => output::json(&rows)?,
            Format::Csv => output::csv(HEADER, rows.iter().map(cells))?,
            Format::Table => output::table(HEADER, &[], rows.iter().map(cells))?,
        }
        let there = rows.iter().filter(|row| row.reason.is_none()).count();
        let wanted = rows.iter().filter(|row| !row.outcome.is_skipped()).count();
        match rows.iter().filter(|row| row.outcome == SendOutcome::Running).count() {
            0 => {}
            1 => note("Skipped 1 log whose run seems to continue."),
            waiting => note(&format!("Skipped {waiting} logs whose runs seem to continue.")),
        }
        match rows.iter().filter(|row| row.outcome == SendOutcome::Deleted).count() {
            0 => {}
            1 => note(&format!("Skipped 1 run that was deleted on the server. {RESTORE}")),
            deleted => note(&format!("Skipped {deleted} runs that were deleted on the server. {RESTORE}")),
        }
        let new = rows.iter().filter(|row| row.outcome == SendOutcome::New).count();
        match wanted {
            0 => note("Nothing to send."),
            all if self.forget => note(&format!("Dropped {all} results from the queue.")),
            all => note(&format!("{there} of {all} results are on the server, {new} of them new.")),
        }
        for (server, more) in untried {
            let left = match more {
                1 => "1 more file or result was not sent".to_owned(),
                more => format!("{more} more files or results were not sent"),
            };
            note(&format!("The server {server} was not tried again: {left}."));
        }
        if let Some(row) = rows.iter().find(|row| row.outcome == SendOutcome::Unreachable) {
            return Err(Failure::OutOfReach(row.reason.clone().unwrap_or_default()));
        }
        match wanted - there {
            0 => Ok(()),
            missing => Err(Failure::NotUploaded(missing, wanted)),
        }
    }

    /// Sends the results in the arguments, until the server can't be reached, fails or denies access. Returns a row for each that was
    /// tried, and the number of the others.
    async fn send(&self, to: Server) -> Result<(Vec<SentRow>, Untried), Failure> {
        let view = View::of(self.scenario.spec()?, None)?;
        let items = self.items().await?;
        if self.log.is_some() && !matches!(items[..], [UploadItem::File { .. }]) {
            return Err(Failure::Refused("--log requires exactly one result file."));
        }
        if self.cluster.is_some() && items.iter().any(|item| matches!(item, UploadItem::Stored { .. })) {
            return Err(Failure::Refused(
                "--cluster works with logs and result files, not with stored runs.",
            ));
        }
        if let Some(warning) = unencrypted(&to) {
            note(&warning);
        }
        let upload = Upload::to(to);
        let remote = remote(&upload).await.map_err(failed)?.with_attempts(ATTEMPTS);
        let (mut rows, mut remarks) = (Vec::<SentRow>::new(), Vec::new());
        for item in &items {
            let name = match item {
                UploadItem::File { log, .. } => log.path().display().to_string(),
                UploadItem::Stored { name, .. } => name.clone(),
            };
            let (id, outcome, log, reason) = match item {
                UploadItem::Stored { id, store, .. } => {
                    let sent = send_stored(&remote, store, *id, !self.no_log).await;
                    outcome(Some(*id), sent)
                }
                UploadItem::File { log, is_named } => {
                    self.send_file(&remote, log, *is_named, &view, &mut remarks).await
                }
            };
            rows.push(SentRow { result: name, id, to: upload.to.to_string(), outcome, log, reason });
            if outcome.is_of_server() {
                break;
            }
        }
        for remark in SharedRemark::merged(&remarks) {
            note(&remark.line(remarks.len()));
        }
        let untried = Some(items.len() - rows.len()).filter(|untried| *untried > 0);
        let untried = untried.map(|untried| (upload.to, untried));
        Ok((rows, untried.into_iter().collect()))
    }

    /// Returns what to send: existing paths, otherwise stored runs.
    async fn items(&self) -> Result<Vec<UploadItem>, Failure> {
        let mut items = Vec::new();
        let mut store = None;
        for given in &self.results {
            let path = Path::new(given);
            if path.exists() {
                let found = match files(path) {
                    results if results.is_empty() => parse::logs(path)?,
                    results => results.into_iter().map(LogFiles::single).collect(),
                };
                let is_named = !path.is_dir();
                items.extend(found.into_iter().map(|log| UploadItem::File { log, is_named }));
                continue;
            }
            let store = match &store {
                Some(store) => store,
                None => store.insert(self.store.existing().await?),
            };
            let id = by_id(store, given).await.map_err(|failure| match failure {
                Failure::NoRun(why) => Failure::NoRun(format!("No file {given} found. {why}")),
                failure => failure,
            })?;
            items.push(UploadItem::Stored { name: given.clone(), id, store: store.clone() });
        }
        Ok(items)
    }

    /// Sends a result, or the result of a log. Adds the remarks on a new one.
    async fn send_file(
        &self,
        remote: &Remote,
        files: &LogFiles,
        is_named: bool,
        view: &View,
        remarks: &mut Vec<(String, Vec<String>)>,
    ) -> SendReport {
        let path = files.path();
        let unreadable = |why| (None, SendOutcome::Unreadable, None, Some(why));
        let (mut bytes, mut run) = match read(files, view) {
            Ok(read) => read,
            Err(ReadFailure::NoRun(why)) if !is_named => return (None, SendOutcome::NoRun, None, Some(why)),
            Err(ReadFailure::NoRun(why) | ReadFailure::Broken(why)) => return unreadable(why),
        };
        if let Some(cluster) = &self.cluster
            && run.carried.is_none()
        {
            run.source.cluster = Some(cluster.to_string());
            bytes = match result::write(&run) {
                Ok(file) => file.into_bytes(),
                Err(error) => return unreadable(error.to_string()),
            };
        }
        let report = Report::of(&run, view);
        if let Some(why) = still_written(path, report.status).filter(|_| !is_named) {
            return (Some(run.id.to_string()), SendOutcome::Running, None, Some(why));
        }
        let packed = match zstd::bulk::compress(&bytes, 3) {
            Ok(packed) => packed,
            Err(error) => return unreadable(could_not_read(&error)),
        };
        let mut log = self.log.as_deref().map(RawLog::of_file);
        if log.is_none() && !self.no_log {
            log = self.found_log(path, &run).await;
        }
        if let (Some(log), Some(path)) = (&log, &self.log) {
            // Check before uploading gigabytes.
            let why = match log.sha256().await {
                Ok(sha256) if sha256 == run.source.sha256 => None,
                Ok(_) => Some(format!("{} is not the log that the result was made from.", path.display())),
                Err(error) => Some(format!("Can't read {}: {error}.", path.display())),
            };
            if why.is_some() {
                return (Some(run.id.to_string()), SendOutcome::Refused, None, why);
            }
        }
        let sent = async {
            let put = remote.put_result(run.id, packed.into()).await?;
            let log = match &mut log {
                Some(log) => Some(remote.put_log(run.id, log).await?),
                None => None,
            };
            Ok(Sent { put, log })
        };
        let sent = sent.await;
        // The recipe of a known run may have been corrected on the server.
        if let Ok(Sent { put: UploadOutcome::New, .. }) = sent {
            remarks.push((path.display().to_string(), parse::remarks(&report)));
        }
        outcome(Some(run.id), sent)
    }

    /// Finds the log of a result file: beside it, as `export` writes it, or the file that it was made from,
    /// if unchanged.
    async fn found_log(&self, path: &Path, run: &RunResult) -> Option<RawLog> {
        let source = Path::new(&run.source.path);
        let parts: Vec<PathBuf> = match run.job.parts.as_slice() {
            [] => vec![source.into()],
            parts => parts.iter().map(|part| source.with_file_name(&part.name)).collect(),
        };
        let source = Some(parts).filter(|parts| parts.iter().all(|part| part.is_file()));
        for log in log_of(path).into_iter().map(|log| vec![log]).chain(source) {
            let log = RawLog::of_files(log);
            if log.sha256().await.is_ok_and(|sha256| sha256 == run.source.sha256) {
                return Some(log);
            }
        }
        None
    }

    /// Sends the results that campaigns could not send yet, to each server until it can't be reached or fails. Returns a row for each that
    /// was tried, and the number of the others.
    async fn send_pending(&self) -> Result<(Vec<SentRow>, Untried), Failure> {
        let data = self.store.dir()?;
        let (journal, store) = (Journal::open(&data).await?, Store::open(&data).await?);
        let begun = std::time::Instant::now();
        let _lock = loop {
            match journal.lock_outbox()? {
                Some(lock) => break lock,
                None if begun.elapsed() < BUSY => tokio::time::sleep(Duration::from_millis(500)).await,
                None => {
                    return Err(Failure::Refused(
                        "Another trainplan is sending results. Try again when it is done; `trainplan jobs list` shows it.",
                    ));
                }
            }
        };
        let mut silent: BTreeSet<Server> = BTreeSet::new();
        let (mut rows, mut untried) = (Vec::new(), Untried::new());
        for due in journal.due().await? {
            let to = &due.upload.to;
            let (id, outcome, log, reason) = if self.forget {
                let sent = Err(UploadError::Refused("Dropped from the queue.".into()));
                settle(&journal, &due, &sent).await?;
                (Some(due.run.clone()), SendOutcome::Forgotten, None, None)
            } else if silent.contains(to) {
                *untried.entry(to.clone()).or_default() += 1;
                continue;
            } else {
                let sent = send_one(&store, &due).await;
                settle(&journal, &due, &sent).await?;
                outcome(Uuid::parse_str(&due.run).ok(), sent)
            };
            // A campaign may have its own token, so a denied one says nothing about the others.
            if matches!(outcome, SendOutcome::Unreachable | SendOutcome::Failed) {
                silent.insert(to.clone());
            }
            let result = format!("{}/{}", due.campaign, due.title);
            rows.push(SentRow { result, id, to: to.to_string(), outcome, log, reason });
        }
        Ok((rows, untried))
    }
}

/// Why a file has no result.
enum ReadFailure {
    /// It is not a log of a run.
    NoRun(String),
    /// It can't be read.
    Broken(String),
}

/// Reads a result file, or makes one of a log; returns the result and its file.
fn read(log: &LogFiles, view: &View) -> Result<(Vec<u8>, RunResult), ReadFailure> {
    let path = log.path();
    let broken = |why| ReadFailure::Broken(why);
    if path.to_string_lossy().ends_with(FILE_ENDING) {
        let bytes = fs::read(path).map_err(|error| broken(could_not_read(&error)))?;
        let run = result::read(&bytes).map_err(|error| broken(error.to_string()))?;
        return Ok((bytes, run));
    }
    let report = |report: &Report| report.reason.clone().unwrap_or_else(|| "It contains no run.".into());
    match parse::log(log, view) {
        Ok(run) => {
            let file = result::write(&run).map_err(|error| broken(error.to_string()))?;
            Ok((file.into_bytes(), run))
        }
        Err(told) if told.status == Status::NoData => Err(ReadFailure::NoRun(report(&told))),
        Err(told) => Err(broken(report(&told))),
    }
}

/// Returns why a log seems to be incomplete, if it does. Sent now and again later, it would become two runs.
fn still_written(path: &Path, status: Status) -> Option<String> {
    let is_log = !path.to_string_lossy().ends_with(FILE_ENDING);
    let age = fs::metadata(path).and_then(|log| log.modified()).ok()?.elapsed().unwrap_or_default();
    let is_running = is_log && age < SETTLED && status == Status::Incomplete;
    is_running.then(|| {
        let minutes = age.as_secs() / 60;
        format!("Its run seems to continue: steps are missing, and it was written {minutes} minutes ago. To send it now, name the file.")
    })
}

async fn send_one(store: &Store, due: &PendingUpload) -> Result<Sent, UploadError> {
    let remote = remote(&due.upload).await?.with_attempts(ATTEMPTS);
    send_due(&remote, store, due).await
}

/// The id, the outcome, the log's outcome and the reason, for a [`SentRow`].
type SendReport = (Option<String>, SendOutcome, Option<&'static str>, Option<String>);

fn outcome(id: Option<Uuid>, sent: Result<Sent, UploadError>) -> SendReport {
    let id = id.map(|id| id.to_string());
    let (outcome, log, reason) = match sent {
        Ok(Sent { put, log }) => {
            let outcome = if put == UploadOutcome::New { SendOutcome::New } else { SendOutcome::Known };
            (outcome, log.map(|sent| if sent { "sent" } else { "known" }), None)
        }
        Err(error) => {
            let outcome = match &error {
                UploadError::Unreachable { .. } => SendOutcome::Unreachable,
                UploadError::Failed { .. } => SendOutcome::Failed,
                UploadError::Conflict(_) => SendOutcome::Conflict,
                UploadError::Deleted(_) => SendOutcome::Deleted,
                UploadError::Denied { .. } => SendOutcome::Denied,
                UploadError::Refused(_) | UploadError::Token(_) => SendOutcome::Refused,
                UploadError::Log(_) | UploadError::Store(_) => SendOutcome::Unreadable,
            };
            (outcome, None, Some(error.to_string()))
        }
    };
    (id, outcome, log, reason)
}

/// Returns the failure of the whole command.
fn failed(error: UploadError) -> Failure {
    match error {
        UploadError::Token(error) => Failure::Secret(error),
        error => Failure::OutOfReach(error.to_string()),
    }
}

const HEADER: [&str; 6] = ["outcome", "id", "log", "result", "to", "reason"];

fn cells(row: &SentRow) -> [String; 6] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        row.outcome.id().into(),
        text(&row.id),
        row.log.unwrap_or_default().into(),
        row.result.clone(),
        row.to.clone(),
        text(&row.reason),
    ]
}
