//! Reading what was found, several files at a time.

use super::super::side_by_side;
use super::shelf::Shelf;
use super::walk::{Found, explain};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use trainplan_shared::log::Status;
use trainplan_shared::result::{self, FILE_ENDING, Intake, Report, RunResult, View};

/// A log is read in pieces of this many bytes.
const PIECE: usize = 256 * 1024;

/// A report for each, in the same order.
pub(super) fn read_all(found: &[Found], view: &View, shelf: Option<&Shelf>) -> Vec<Report> {
    let places: Vec<(usize, &Found)> = found.iter().enumerate().collect();
    side_by_side::map(&places, |(place, found)| read(*place, found, view, shelf))
}

/// Reads one, and saves what a log has to tell.
fn read(place: usize, found: &Found, view: &View, shelf: Option<&Shelf>) -> Report {
    let (path, run) = match found {
        Found::Nothing { path, reason } => {
            return Report::without(&path.to_string_lossy(), reason.status(), Some(reason.to_string()));
        }
        Found::Stdin => ("-".into(), intake("-", io::stdin().lock(), view)),
        Found::File(path) => {
            let shown = path.to_string_lossy();
            if shown.ends_with(FILE_ENDING) {
                return saved(path, view);
            }
            let run = File::open(path).and_then(|file| intake(&shown, file, view));
            (shown, run)
        }
    };
    match run {
        Ok(run) => {
            let report = Report::of(&run, view);
            if let (Some(shelf), Some(_)) = (shelf, &report.id) {
                shelf.save(place, &run);
            }
            report
        }
        Err(error) => Report::without(&path, Status::Unreadable, Some(explain(&error))),
    }
}

fn intake(path: &str, mut log: impl Read, view: &View) -> io::Result<RunResult> {
    let mut intake = Intake::new(path, &view.spec);
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
fn saved(path: &Path, view: &View) -> Report {
    let run = fs::read(path)
        .map_err(|error| explain(&error))
        .and_then(|bytes| result::read(&bytes).map_err(|error| error.to_string()));
    match run {
        Ok(run) => Report::of(&run, view),
        Err(reason) => Report::without(&path.to_string_lossy(), Status::Unreadable, Some(reason)),
    }
}
