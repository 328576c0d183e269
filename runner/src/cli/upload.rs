//! `trainplan upload`: results and their logs to a results server.

use super::data_dir::StoreArgs;
use super::import::{could_not_read, files, log_of};
use super::output::{self, Format, FormatArg};
use super::run::block_on;
use super::scenario::ScenarioArgs;
use super::stored::by_id;
use super::{Failure, note, parse};
use crate::journal::{Due, Journal};
use crate::store::Store;
use crate::upload::{RawLog, Remote, Sent, UploadError, goes_open, remote, send_due, send_stored, settle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trainplan_shared::api::UploadOutcome;
use trainplan_shared::campaign::{Server, Upload};
use trainplan_shared::log::Status;
use trainplan_shared::result::{self, FILE_ENDING, Report, RunResult, View};
use uuid::Uuid;

/// Send results to a server, with their raw logs where those are here
///
/// A RESULT is a log, a result file, a folder, or the id of a run that is kept here (`trainplan results list` shows it), or its
/// beginning. Of a folder its result files go, and where it has none, its logs, as `trainplan parse` finds them, but for those that
/// lack steps and were written to within the hour: their runs go on. A result goes in
/// once and never changes: sent again it does nothing, and a log that was cut off goes on where it was. The log of a result file
/// is NAME.log.zst beside NAME.result.json, or the file that it was read from, if that is still there and the same. When a run
/// ran is when its log was last written, as its file says: `cp -p` and `rsync -t` keep that. The server's token is read from the
/// variable TRAINPLAN_TOKEN and from nowhere else; `trainplan token create` makes one where the server is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  trainplan upload experiments/ --to https://results.example
  trainplan upload train.log --recipe llama3.1-70b/h100/fp8/256 --to https://results.example
  trainplan upload results/ --to https://results.example
  trainplan upload 0199a7b2-3c4d --to https://results.example
  trainplan upload a.result.json --log log-acct.pretrain_llama3.1_8b_fp8_8_12345_0.out --to https://results.example
  trainplan upload --pending

Exit codes: 0 every result is on the server; 1 one of them is not (its row says why); 2 wrong use; 5 the server can't be reached.")]
pub(super) struct Args {
    /// Logs, result files, folders of them, or ids of runs that are kept here
    #[arg(value_name = "RESULT", required_unless_present = "pending", conflicts_with = "pending")]
    results: Vec<String>,
    /// The server
    #[arg(
        long,
        value_name = "URL",
        env = "TRAINPLAN_SERVER",
        required_unless_present = "pending",
        value_parser = server
    )]
    to: Option<Server>,
    /// What the campaigns of this machine still have to send, each to its own server
    #[arg(long, conflicts_with_all = ["log", "no_log"])]
    pending: bool,
    /// Give up what is still to be sent, for good; each can still be sent by its id
    #[arg(long, requires = "pending")]
    forget: bool,
    /// The raw log of the one result file, as it is or compressed by zstd
    #[arg(long, value_name = "FILE", conflicts_with = "no_log")]
    log: Option<PathBuf>,
    /// Leave the raw logs here
    #[arg(long)]
    no_log: bool,
    #[command(flatten)]
    scenario: ScenarioArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    format: FormatArg,
}

/// Tries before a server is said to be out of reach: some ten seconds.
const TRIES: u32 = 5;

/// A log that was not written to for so long is one of a run that is over.
const SETTLED: Duration = Duration::from_secs(60 * 60);

/// So long another process may be sending what is due.
const BUSY: Duration = Duration::from_secs(60);

fn server(text: &str) -> Result<Server, String> {
    text.parse().map_err(|invalid: trainplan_shared::campaign::InvalidName| invalid.to_string())
}

/// What became of a result.
#[derive(Debug, Serialize)]
struct Row {
    /// As it was given, or the run's name in its campaign.
    result: String,
    /// Its id, where that is known.
    id: Option<String>,
    to: String,
    outcome: Outcome,
    /// What became of its log: `sent`, or `known` where it was there already; none where none was to be sent.
    log: Option<&'static str>,
    /// Why it is not on the server.
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// It is on the server now.
    New,
    /// It was there already.
    Known,
    /// The server has another result under its id.
    Conflict,
    /// The server does not take it, or it is not sent with a log that is another's.
    Refused,
    /// It can't be read here.
    Unreadable,
    /// It lies in a folder, and holds no run: something else that lay there.
    NoRun,
    /// It lies in a folder, and is still being written.
    Running,
    /// The server lets nobody in with this token.
    Denied,
    /// The server can't be reached.
    Unreachable,
    /// It was to be sent, and no longer is.
    Forgotten,
}

impl Outcome {
    fn id(self) -> &'static str {
        match self {
            Outcome::New => "new",
            Outcome::Known => "known",
            Outcome::Conflict => "conflict",
            Outcome::Refused => "refused",
            Outcome::Unreadable => "unreadable",
            Outcome::Unreachable => "unreachable",
            Outcome::NoRun => "no_run",
            Outcome::Running => "running",
            Outcome::Denied => "denied",
            Outcome::Forgotten => "forgotten",
        }
    }

    /// Whether it was not to be sent at all.
    fn is_passed_over(self) -> bool {
        matches!(self, Outcome::NoRun | Outcome::Running)
    }

    /// Whether it would be the same of every result.
    fn is_of_server(self) -> bool {
        matches!(self, Outcome::Unreachable | Outcome::Denied)
    }
}

/// Something to send.
enum Item {
    File {
        path: PathBuf,
        /// Whether it was named itself, and not only a folder that it lies in.
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
        let rows = block_on(async {
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
        let wanted = rows.iter().filter(|row| !row.outcome.is_passed_over()).count();
        match rows.iter().filter(|row| row.outcome == Outcome::Running).count() {
            0 => {}
            1 => note("1 log waits: its run seems to go on"),
            waiting => note(&format!("{waiting} logs wait: their runs seem to go on")),
        }
        let new = rows.iter().filter(|row| row.outcome == Outcome::New).count();
        match wanted {
            0 => note("there is nothing to send"),
            all if self.forget => note(&format!("{all} results are no longer to be sent")),
            all => note(&format!("{there} of {all} results are on the server, {new} of them new")),
        }
        if let Some(row) = rows.iter().find(|row| row.outcome == Outcome::Unreachable) {
            return Err(Failure::OutOfReach(row.reason.clone().unwrap_or_default()));
        }
        match wanted - there {
            0 => Ok(()),
            missing => Err(Failure::NotUploaded(missing, wanted)),
        }
    }

    /// Sends what was named.
    async fn send(&self, to: Server) -> Result<Vec<Row>, Failure> {
        let view = View::of(self.scenario.spec()?, None)?;
        let items = self.items().await?;
        if self.log.is_some() && !matches!(items[..], [Item::File { .. }]) {
            return Err(Failure::Refused("--log is the log of one result file: name that file alone"));
        }
        if let Some(warning) = goes_open(&to) {
            note(&warning);
        }
        let upload = Upload::to(to);
        let remote = remote(&upload).await.map_err(failed)?.with_tries(TRIES);
        let mut rows: Vec<Row> = Vec::new();
        for item in &items {
            let (name, id) = match item {
                Item::File { path, .. } => (path.display().to_string(), None),
                Item::Stored { name, id, .. } => (name.clone(), Some(*id)),
            };
            // A server that was tried long enough, or lets nobody in, is not tried again for every result.
            let closed = rows.last().filter(|row| row.outcome.is_of_server());
            let row = match (closed, item) {
                (Some(row), _) => (id.map(|id| id.to_string()), row.outcome, None, row.reason.clone()),
                (None, Item::Stored { id, store, .. }) => {
                    let sent = send_stored(&remote, store, *id, !self.no_log).await;
                    outcome(Some(*id), sent)
                }
                (None, Item::File { path, is_named }) => {
                    self.send_file(&remote, path, *is_named, &view).await
                }
            };
            let (id, outcome, log, reason) = row;
            rows.push(Row { result: name, id, to: upload.to.to_string(), outcome, log, reason });
        }
        Ok(rows)
    }

    /// What was named: paths first, else runs that are kept here.
    async fn items(&self) -> Result<Vec<Item>, Failure> {
        let mut items = Vec::new();
        let mut store = None;
        for given in &self.results {
            let path = Path::new(given);
            if path.exists() {
                let found = match files(path) {
                    results if results.is_empty() => parse::logs(path)?,
                    results => results,
                };
                let is_named = !path.is_dir();
                items.extend(found.into_iter().map(|path| Item::File { path, is_named }));
                continue;
            }
            let store = match &store {
                Some(store) => store,
                None => store.insert(self.store.existing().await?),
            };
            let id = by_id(store, given).await.map_err(|failure| match failure {
                Failure::NoRun(why) => Failure::NoRun(format!("there is no file {given}, and {why}")),
                failure => failure,
            })?;
            items.push(Item::Stored { name: given.clone(), id, store: store.clone() });
        }
        Ok(items)
    }

    async fn send_file(&self, remote: &Remote, path: &Path, is_named: bool, view: &View) -> Became {
        let unreadable = |why| (None, Outcome::Unreadable, None, Some(why));
        let (bytes, run) = match read(path, view) {
            Ok(read) => read,
            Err(NotRead::NoRun(why)) if !is_named => return (None, Outcome::NoRun, None, Some(why)),
            Err(NotRead::NoRun(why) | NotRead::Broken(why)) => return unreadable(why),
        };
        let report = Report::of(&run, view);
        if let Some(why) = still_written(path, report.status).filter(|_| !is_named) {
            return (Some(run.id.to_string()), Outcome::Running, None, Some(why));
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
            // Better seen now than after gigabytes.
            let why = match log.sha256().await {
                Ok(sha256) if sha256 == run.source.sha256 => None,
                Ok(_) => Some(format!("{} is not the log that the result was made from", path.display())),
                Err(error) => Some(format!("{} can't be read: {error}", path.display())),
            };
            if why.is_some() {
                return (Some(run.id.to_string()), Outcome::Refused, None, why);
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
        // What was there already may have been put right there.
        if let Ok(Sent { put: UploadOutcome::New, .. }) = sent {
            for remark in parse::remarks(&report) {
                note(&format!("{}: {remark}", path.display()));
            }
        }
        outcome(Some(run.id), sent)
    }

    /// The raw log that a result file does not name on the command line: beside it, as `export` writes it, or where it was when
    /// it was read, if that is still the same.
    async fn found_log(&self, path: &Path, run: &RunResult) -> Option<RawLog> {
        let source = Some(PathBuf::from(&run.source.path)).filter(|source| source.is_file());
        for log in log_of(path).into_iter().chain(source) {
            let log = RawLog::of_file(&log);
            if log.sha256().await.is_ok_and(|sha256| sha256 == run.source.sha256) {
                return Some(log);
            }
        }
        None
    }

    /// Sends what campaigns still have to send.
    async fn send_pending(&self) -> Result<Vec<Row>, Failure> {
        let data = self.store.dir()?;
        let (journal, store) = (Journal::open(&data).await?, Store::open(&data).await?);
        let begun = std::time::Instant::now();
        let _lock = loop {
            match journal.lock_outbox()? {
                Some(lock) => break lock,
                None if begun.elapsed() < BUSY => tokio::time::sleep(Duration::from_millis(500)).await,
                None => {
                    return Err(Failure::Refused(
                        "another trainplan is sending: see `trainplan jobs list`, and try again later",
                    ));
                }
            }
        };
        // A server that was tried long enough is not tried again for every result.
        let mut silent: BTreeMap<Server, String> = BTreeMap::new();
        let mut rows = Vec::new();
        for due in journal.due().await? {
            let to = &due.upload.to;
            let (id, outcome, log, reason) = match silent.get(to) {
                _ if self.forget => {
                    let sent = Err(UploadError::Refused("it was given up".into()));
                    settle(&journal, &due, &sent).await?;
                    (Some(due.run.clone()), Outcome::Forgotten, None, None)
                }
                Some(why) => (Some(due.run.clone()), Outcome::Unreachable, None, Some(why.clone())),
                None => {
                    let sent = send_one(&store, &due).await;
                    settle(&journal, &due, &sent).await?;
                    if let Err(error @ UploadError::Unreachable { .. }) = &sent {
                        silent.insert(to.clone(), error.to_string());
                    }
                    outcome(Uuid::parse_str(&due.run).ok(), sent)
                }
            };
            let result = format!("{}/{}", due.campaign, due.title);
            rows.push(Row { result, id, to: to.to_string(), outcome, log, reason });
        }
        Ok(rows)
    }
}

/// Why a file gives no result.
enum NotRead {
    /// It is no log of a run.
    NoRun(String),
    /// It can't be read.
    Broken(String),
}

/// What a file tells, and the result file that says so: its own bytes, or those that we make of a log.
fn read(path: &Path, view: &View) -> Result<(Vec<u8>, RunResult), NotRead> {
    let broken = |why| NotRead::Broken(why);
    if path.to_string_lossy().ends_with(FILE_ENDING) {
        let bytes = fs::read(path).map_err(|error| broken(could_not_read(&error)))?;
        let run = result::read(&bytes).map_err(|error| broken(error.to_string()))?;
        return Ok((bytes, run));
    }
    let report = |report: &Report| report.reason.clone().unwrap_or_else(|| "it holds no run".into());
    match parse::log(path, view) {
        Ok(run) => {
            let file = result::write(&run).map_err(|error| broken(error.to_string()))?;
            Ok((file.into_bytes(), run))
        }
        Err(told) if told.status == Status::NoData => Err(NotRead::NoRun(report(&told))),
        Err(told) => Err(broken(report(&told))),
    }
}

/// Why a log may be one of a run that is not over. Sent now and again when it is whole, it would be two runs.
fn still_written(path: &Path, status: Status) -> Option<String> {
    let is_log = !path.to_string_lossy().ends_with(FILE_ENDING);
    let age = fs::metadata(path).and_then(|log| log.modified()).ok()?.elapsed().unwrap_or_default();
    let is_running = is_log && age < SETTLED && status == Status::Incomplete;
    is_running.then(|| {
        let minutes = age.as_secs() / 60;
        format!("its run seems to go on: steps are missing, and it was written {minutes} minutes ago; name it itself to send it as it is")
    })
}

async fn send_one(store: &Store, due: &Due) -> Result<Sent, UploadError> {
    let remote = remote(&due.upload).await?.with_tries(TRIES);
    send_due(&remote, store, due).await
}

/// What became of a result: its id, the word, the log's word, and why.
type Became = (Option<String>, Outcome, Option<&'static str>, Option<String>);

fn outcome(id: Option<Uuid>, sent: Result<Sent, UploadError>) -> Became {
    let id = id.map(|id| id.to_string());
    let (outcome, log, reason) = match sent {
        Ok(Sent { put, log }) => {
            let outcome = if put == UploadOutcome::New { Outcome::New } else { Outcome::Known };
            (outcome, log.map(|sent| if sent { "sent" } else { "known" }), None)
        }
        Err(error) => {
            let outcome = match &error {
                UploadError::Unreachable { .. } => Outcome::Unreachable,
                UploadError::Conflict(_) => Outcome::Conflict,
                UploadError::Denied { .. } => Outcome::Denied,
                UploadError::Refused(_) | UploadError::Token(_) => Outcome::Refused,
                UploadError::Log(_) | UploadError::Store(_) => Outcome::Unreadable,
            };
            (outcome, None, Some(error.to_string()))
        }
    };
    (id, outcome, log, reason)
}

/// That nothing can be sent at all.
fn failed(error: UploadError) -> Failure {
    match error {
        UploadError::Token(error) => Failure::Secret(error),
        error => Failure::OutOfReach(error.to_string()),
    }
}

const HEADER: [&str; 6] = ["outcome", "id", "log", "result", "to", "reason"];

fn cells(row: &Row) -> [String; 6] {
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
