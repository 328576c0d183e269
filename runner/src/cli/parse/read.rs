//! Reading what was found, several files at a time.

use super::super::side_by_side;
use super::shelf::Shelf;
use super::walk::{Found, explain};
use jiff::Timestamp;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use trainplan_shared::log::Status;
use trainplan_shared::result::{self, Intake, Report, RunResult, View};

/// A log is read in pieces of this many bytes.
const PIECE: usize = 256 * 1024;

/// A report for each, in the same order.
pub(super) fn read_all(found: &[Found], view: &View, shelf: Option<&Shelf>) -> Vec<Report> {
    let places: Vec<(usize, &Found)> = found.iter().enumerate().collect();
    side_by_side::map(&places, |(place, found)| read(*place, found, view, shelf))
}

/// Reads one, and saves what a log has to tell.
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

/// What a log tells, or a saved result; else the row that says why there is nothing.
pub(super) fn run_of(found: &Found, view: &View) -> Result<RunResult, Box<Report>> {
    let unread = |path: &Path, reason| {
        Box::new(Report::without(&path.to_string_lossy(), Status::Unreadable, Some(reason)))
    };
    match found {
        Found::Nothing { path, reason } => {
            Err(Box::new(Report::without(&path.to_string_lossy(), reason.status(), Some(reason.to_string()))))
        }
        Found::Stdin => intake("-", None, io::stdin().lock(), view)
            .map_err(|error| unread(Path::new("-"), explain(&error))),
        Found::File(path) if found.is_saved() => saved(path).map_err(|reason| unread(path, reason)),
        Found::File(path) => File::open(path)
            .and_then(|file| intake(&path.to_string_lossy(), written_at(&file), file, view))
            .map_err(|error| unread(path, explain(&error))),
    }
}

/// When a file was last written to.
fn written_at(file: &File) -> Option<String> {
    let modified = file.metadata().and_then(|data| data.modified()).ok()?;
    // Logs of a batch may be written within one second.
    Some(format!("{:.6}", Timestamp::try_from(modified).ok()?))
}

fn intake(path: &str, written_at: Option<String>, mut log: impl Read, view: &View) -> io::Result<RunResult> {
    let mut intake = Intake::new(path, &view.spec).written_at(written_at);
    let mut piece = vec![0; PIECE];
    loop {
        match log.read(&mut piece) {
            Ok(0) => return Ok(intake.finish()),
            Ok(count) => intake.feed(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A result that was saved before.
fn saved(path: &Path) -> Result<RunResult, String> {
    let bytes = fs::read(path).map_err(|error| explain(&error))?;
    result::read(&bytes).map_err(|error| error.to_string())
}
