//! Reading what was found, several files at a time.

use super::shelf::Shelf;
use super::walk::{Found, LogFiles, explain};
use crate::log_file;
use crate::side_by_side;
use jiff::Timestamp;
use jiff::civil::DateTime;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use trainplan_shared::log::{Failure, Parser, Status};
use trainplan_shared::result::{
    self, Intake, JobFiles, LARGEST_SETTINGS_FILE, LogPart, Report, RunResult, SettingValues, SettingsFile,
    UnreadReason, View,
};

/// A log is read in pieces of this many bytes.
const PIECE: usize = 256 * 1024;

/// A report for each, in the same order.
pub(super) fn read_all(found: &[Found], view: &View, shelf: Option<&Shelf>) -> Vec<Report> {
    let places: Vec<(usize, &Found)> = found.iter().enumerate().collect();
    side_by_side::map(&places, |(place, found)| read(*place, found, view, shelf))
}

/// Reads a log or result, and saves the result of a log.
fn read(place: usize, found: &Found, view: &View, shelf: Option<&Shelf>) -> Report {
    match run_of(found, view) {
        Ok(run) => {
            let report = Report::of(&run, view);
            if let (Some(shelf), Some(_), false) = (shelf, &report.id, found.is_saved()) {
                shelf.save(place, &run);
            }
            report
        }
        Err(report) => *report,
    }
}

/// The result of a log or a saved result, or else a row that says why there is none.
pub(super) fn run_of(found: &Found, view: &View) -> Result<RunResult, Box<Report>> {
    let unread = |path: &Path, reason| {
        Box::new(Report::without(&path.to_string_lossy(), Status::Unreadable, Some(reason)))
    };
    match found {
        Found::Nothing { path, reason } => {
            Err(Box::new(Report::without(&path.to_string_lossy(), reason.status(), Some(reason.to_string()))))
        }
        Found::Stdin => log_file::text(io::stdin())
            .and_then(|text| {
                let mut intake = Intake::new("-", &view.spec);
                let hash = hashed(|hasher| feed(&mut intake, text, hasher, |_| {}))?;
                Ok(intake.finish_with(hash))
            })
            .map_err(|error| unread(Path::new("-"), explain(&error))),
        Found::File(log) if found.is_saved() => {
            saved(log.path()).map_err(|reason| unread(log.path(), reason))
        }
        Found::File(log) => intake(log, view).map_err(|error| unread(log.path(), explain(&error))),
    }
}

/// When a file was last written to.
fn written_at(path: &Path) -> Option<String> {
    let modified = fs::metadata(path).and_then(|data| data.modified()).ok()?;
    // Logs of a batch may be written within one second.
    Some(format!("{:.6}", Timestamp::try_from(modified).ok()?))
}

/// Reads a log, joined from the logs of the job's starts, with what the job's other files say.
fn intake(log: &LogFiles, view: &View) -> io::Result<RunResult> {
    let path = log.path();
    let mut intake = Intake::new(path.to_string_lossy(), &view.spec).written_at(written_at(path));
    let mut job = JobFiles::default();
    let mut last = None;
    let hash = hashed(|hasher| {
        for part in &log.parts {
            let text = log_file::open(part)?;
            if log.parts.len() == 1 {
                feed(&mut intake, text, hasher, |_| {})?;
                continue;
            }
            let mut times = LogTimes::default();
            feed(&mut intake, text, hasher, |piece| times.feed(piece))?;
            let span = times.span();
            let idle_s =
                last.zip(span).map(|(last, (first, _))| first.duration_since(last).as_secs_f64().max(0.0));
            last = span.map(|(_, last)| last);
            job.parts.push(LogPart { name: name_of(part), idle_s });
        }
        Ok(())
    })?;
    for batch in &log.batch {
        // Whatever is wrong with it, the log itself was read.
        let mut parser = Parser::new();
        let Ok(text) = log_file::open(batch) else { continue };
        if read_pieces(text, |piece| parser.feed(piece)).is_ok() {
            let failures = parser.finish().failures.into_iter();
            job.failures.extend(failures.map(|failure| Failure { file: Some(name_of(batch)), ..failure }));
        }
    }
    for (file, path) in &log.settings {
        let read = path.as_ref().map_err(|why| *why).and_then(|path| settings_of(*file, path));
        job = job.with(*file, read);
    }
    Ok(intake.with_job(job).finish_with(hash))
}

/// Reads a file beside a log that lists settings of its job. Whatever is wrong with it, the log itself was read.
fn settings_of(file: SettingsFile, path: &Path) -> Result<SettingValues, UnreadReason> {
    let mut bytes = Vec::new();
    let beginning = File::open(path).map(|file| file.take(LARGEST_SETTINGS_FILE as u64 + 1));
    beginning.and_then(|mut file| file.read_to_end(&mut bytes)).map_err(|_| UnreadReason::Unreadable)?;
    file.read(&bytes)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Pieces on their way to the thread that hashes them.
type HashSender = SyncSender<Arc<[u8]>>;

/// How many pieces wait for the thread that hashes them.
const AHEAD: usize = 8;

/// Returns the SHA-256 of all pieces that `read` sends. They are hashed on another thread, because that takes as long as reading
/// them.
fn hashed(read: impl FnOnce(&HashSender) -> io::Result<()>) -> io::Result<[u8; 32]> {
    thread::scope(|scope| {
        let (hasher, pieces) = sync_channel::<Arc<[u8]>>(AHEAD);
        let hash = scope.spawn(move || {
            let mut hash = Sha256::new();
            pieces.iter().for_each(|piece| hash.update(&*piece));
            hash.finalize().into()
        });
        let read = read(&hasher);
        drop(hasher);
        let hash = hash.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        read.map(|()| hash)
    })
}

/// Feeds a log to the intake and the hasher, showing each piece to `seen`.
fn feed(
    intake: &mut Intake,
    text: impl Read,
    hasher: &HashSender,
    mut seen: impl FnMut(&[u8]),
) -> io::Result<()> {
    read_pieces(text, |piece| {
        // It ends only with a panic, which ends the reading too.
        let _ = hasher.send(piece.into());
        intake.feed_hashed_elsewhere(piece);
        seen(piece);
    })
}

fn read_pieces(mut text: impl Read, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        match text.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => take(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The number of bytes at either end of a log that are searched for times.
#[derive(Default)]
struct LogTimes {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl LogTimes {
    /// Far enough to pass the lines without a time that frameworks print first and last.
    const REACH: usize = 256 * 1024;

    fn feed(&mut self, piece: &[u8]) {
        let missing = Self::REACH - self.head.len();
        self.head.extend_from_slice(&piece[..missing.min(piece.len())]);
        let kept = Self::REACH.saturating_sub(piece.len());
        self.tail.drain(..self.tail.len().saturating_sub(kept));
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(Self::REACH)..]);
    }

    /// Returns the first and the last time, as `2025-12-19 10:49:15`, without a time zone.
    fn span(&self) -> Option<(DateTime, DateTime)> {
        let time = |window: &[u8]| -> Option<DateTime> {
            // Reading is slow, and few windows begin with a year.
            (window[0] == b'2' && window[4] == b'-' && window[13] == b':').then_some(())?;
            std::str::from_utf8(window).ok()?.parse().ok()
        };
        let first = self.head.windows(TIME).find_map(time)?;
        let last = self.tail.windows(TIME).rev().find_map(time)?;
        Some((first, last))
    }
}

/// The length of a time.
const TIME: usize = "2025-12-19 10:49:15".len();

/// A result that was saved before.
fn saved(path: &Path) -> Result<RunResult, String> {
    let bytes = fs::read(path).map_err(|error| explain(&error))?;
    result::read(&bytes).map_err(|error| error.to_string())
}
