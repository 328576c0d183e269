//! The copy of a job's log: compressed, appended to as the log grows, and read into a result as it comes.

use crate::data::make_private;
use crate::journal::Copied;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use trainplan_shared::log::Status;
use trainplan_shared::result::{Intake, Report, RunResult, View};
use trainplan_shared::spec::Spec;

/// How well pieces are compressed; the store keeps the whole.
const LEVEL: i32 = 3;

/// A log on its way here.
pub(super) struct Copy {
    /// How far it is; what is written down in the journal.
    pub(super) copied: Copied,
    file: PathBuf,
    intake: Intake,
    /// Whether the last byte ended a line.
    at_line: bool,
}

/// What a log tells while it grows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Progress {
    /// Steps that it has.
    pub(crate) steps: u64,
    /// Seconds of the last step.
    pub(crate) step_time_s: Option<f64>,
    /// By the steps that count so far.
    pub(crate) mfu: Option<f64>,
}

impl Copy {
    /// Goes on with a copy, or begins it. What the journal does not know of is cut off: it was written as the process was
    /// killed, and will be read again.
    pub(super) fn open(folder: &Path, copied: Copied, said: &Spec) -> io::Result<Copy> {
        make_private(folder)?;
        let file = folder.join(format!("{}.log.zst", copied.job));
        let mut copy = Copy { intake: Intake::new(&copied.path, said), copied, file, at_line: true };
        let mut stream =
            File::options().create(true).truncate(false).read(true).write(true).open(&copy.file)?;
        if stream.metadata()?.len() < copy.copied.kept {
            let what = format!("{} is shorter than the journal says: it was changed", copy.file.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        stream.set_len(copy.copied.kept)?;
        if copy.copied.kept == 0 {
            return Ok(copy);
        }
        stream.seek(SeekFrom::Start(0))?;
        let mut reader = zstd::Decoder::new(stream)?;
        let mut piece = vec![0; 1 << 16];
        loop {
            let length = reader.read(&mut piece)?;
            if length == 0 {
                return Ok(copy);
            }
            copy.read(&piece[..length]);
        }
    }

    /// The compressed file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Appends a piece, on disk when this returns. What it is the piece of has to be written down besides.
    pub(super) fn append(&mut self, bytes: &[u8], inode: u64, offset: u64) -> io::Result<()> {
        // A log that began anew begins in a line of its own.
        let anew = inode != self.copied.inode || offset < self.copied.offset;
        let gap: &[u8] = if anew && !self.at_line { b"\n" } else { b"" };
        let whole = [gap, bytes].concat();
        if !whole.is_empty() {
            let packed = zstd::encode_all(&whole[..], LEVEL)?;
            let mut file = File::options().write(true).open(&self.file)?;
            file.seek(SeekFrom::Start(self.copied.kept))?;
            file.write_all(&packed)?;
            file.set_len(self.copied.kept + packed.len() as u64)?;
            file.sync_data()?;
            self.copied.kept += packed.len() as u64;
            self.read(&whole);
        }
        self.copied.inode = inode;
        self.copied.offset = offset;
        Ok(())
    }

    fn read(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.at_line = *last == b'\n';
        }
        self.intake.feed(bytes);
    }

    /// What the log tells so far.
    pub(super) fn progress(&self) -> Progress {
        let run = self.intake.so_far();
        let report = Report::of(&run, &View::default());
        Progress {
            steps: report.steps,
            step_time_s: report.step_time_s.map(|stat| stat.mean),
            mfu: report.mfu,
        }
    }

    /// What the log tells.
    pub(super) fn result(&self) -> RunResult {
        self.intake.so_far()
    }
}

/// The names of statuses that are worth keeping.
pub(super) fn is_worth_keeping(status: Status) -> bool {
    !matches!(status, Status::NoData | Status::Unreadable)
}
