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
    /// The last bytes that were read of the file as it is.
    last: Vec<u8>,
    /// Whether the last byte ended a line.
    at_line: bool,
}

/// What comes with a piece of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    /// It goes on where the copy ends.
    On,
    /// Another file took the log's place.
    Replaced,
    /// The log was cut, and written anew.
    Cut,
    /// It is of a time before the last piece.
    Not,
}

/// Bytes that are read twice, to see that a log is still the same.
const OVERLAP: usize = 64;

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
    /// killed, and will be read again. A copy that is not what the journal says, because somebody touched it, is begun
    /// anew: the log is still where it was.
    pub(super) fn open(folder: &Path, copied: Copied, said: &Spec) -> io::Result<Copy> {
        make_private(folder)?;
        let file = folder.join(format!("{}.log.zst", copied.job));
        let stream = File::options().create(true).truncate(false).read(true).write(true).open(&file)?;
        let begin = |copied: Copied| Copy {
            intake: Intake::new(&copied.path, said),
            copied,
            file: file.clone(),
            last: Vec::new(),
            at_line: true,
        };
        let mut copy = begin(copied);
        if copy.copied.kept > 0 && stream.metadata()?.len() >= copy.copied.kept {
            stream.set_len(copy.copied.kept)?;
            match copy.read_all(&stream) {
                Ok(()) => return Ok(copy),
                Err(error) => tracing::warn!("{}: {error}; the log is copied anew", file.display()),
            }
        }
        let copied = Copied { inode: 0, offset: 0, kept: 0, ..copy.copied };
        stream.set_len(0)?;
        Ok(begin(copied))
    }

    fn read_all(&mut self, stream: &File) -> io::Result<()> {
        let mut reader = zstd::Decoder::new(stream)?;
        let mut piece = vec![0; 1 << 16];
        loop {
            let length = reader.read(&mut piece)?;
            if length == 0 {
                self.trim();
                return Ok(());
            }
            self.read(&piece[..length]);
        }
    }

    /// The compressed file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// How many bytes before its end are to be read once more.
    pub(super) fn overlap(&self) -> u64 {
        self.last.len() as u64
    }

    /// Appends a piece of the file of that inode, read from `from`, on disk when this returns. What it is the piece of has to be
    /// written down besides.
    pub(super) fn append(&mut self, bytes: &[u8], inode: u64, from: u64) -> io::Result<Joins> {
        let overlap = self.overlap();
        let Copied { inode: known, offset, .. } = self.copied;
        let (joins, new) = if known != 0 && inode != known {
            (Joins::Replaced, bytes)
        } else if from + overlap == offset {
            match bytes.strip_prefix(&self.last[..]) {
                Some(new) => (Joins::On, new),
                // It is as long as it was, or longer, but another: it is read from its beginning next time.
                None => {
                    self.begin_anew(inode);
                    return Ok(Joins::Cut);
                }
            }
        } else if from == 0 {
            (Joins::Cut, bytes)
        } else {
            return Ok(Joins::Not);
        };
        if joins != Joins::On {
            self.begin_anew(inode);
        }
        // What begins anew begins in a line of its own.
        let gap: &[u8] = if joins != Joins::On && !self.at_line { b"\n" } else { b"" };
        let whole = [gap, new].concat();
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
        self.copied.offset += new.len() as u64;
        self.trim();
        Ok(joins)
    }

    fn begin_anew(&mut self, inode: u64) {
        self.last.clear();
        self.copied.inode = inode;
        self.copied.offset = 0;
    }

    fn read(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.at_line = *last == b'\n';
        }
        self.last.extend(&bytes[bytes.len().saturating_sub(OVERLAP)..]);
        self.last.drain(..self.last.len().saturating_sub(OVERLAP));
        self.intake.feed(bytes);
    }

    /// Forgets what is not of the file as it is.
    fn trim(&mut self) {
        let of_file = usize::try_from(self.copied.offset).unwrap_or(OVERLAP);
        self.last.drain(..self.last.len().saturating_sub(of_file));
    }

    /// What the log tells so far.
    pub(super) fn progress(&self) -> Progress {
        let run = self.intake.so_far();
        let report = Report::of(&run, &View::default());
        Progress {
            steps: report.steps,
            // Before there is a score, the last step tells about what the others take.
            step_time_s: report.step_time_s.map(|stat| stat.mean).or_else(|| {
                let steps = &run.log.steps;
                (0..steps.len()).rev().find_map(|row| steps.step_time_s.get(row))
            }),
            mfu: report.mfu,
        }
    }

    /// What the log tells.
    pub(super) fn result(&self) -> RunResult {
        self.intake.so_far()
    }
}

/// Whether a log of that status tells something.
pub(super) fn is_worth_keeping(status: Status) -> bool {
    !matches!(status, Status::NoData | Status::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn begin(folder: &Path) -> Copy {
        let copied = Copied { job: "7".into(), path: "/x/log_7_.out".into(), inode: 0, offset: 0, kept: 0 };
        Copy::open(folder, copied, &Spec::default()).unwrap()
    }

    fn content(copy: &Copy) -> Vec<u8> {
        zstd::decode_all(File::open(copy.file()).unwrap()).unwrap_or_default()
    }

    /// A look at a file, as the cluster answers it.
    fn look(copy: &mut Copy, file: &[u8], inode: u64, cap: usize) -> Joins {
        let Copied { inode: known, offset, .. } = copy.copied;
        let anew = inode != known || (file.len() as u64) < offset;
        let from = if anew { 0 } else { (offset - copy.overlap()) as usize };
        let piece = &file[from..];
        copy.append(&piece[..piece.len().min(cap)], inode, from as u64).unwrap()
    }

    #[test]
    fn a_log_that_is_cut_and_grows_beyond_what_was_read_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = begin(folder.path());
        look(&mut copy, b"step 1\nstep 2\n", 5, 1000);
        // Another file of the same inode, longer than what was read.
        let anew = b"step 3\nstep 4\nstep 5\n";
        assert_eq!(look(&mut copy, anew, 5, 1000), Joins::Cut);
        assert_eq!(look(&mut copy, anew, 5, 1000), Joins::On);
        assert_eq!(content(&copy), b"step 1\nstep 2\nstep 3\nstep 4\nstep 5\n");
        // Another inode, after half a line.
        look(&mut copy, b"step 3\nstep 4\nstep 5\nste", 5, 1000);
        assert_eq!(look(&mut copy, b"step 6\n", 6, 1000), Joins::Replaced);
        assert!(content(&copy).ends_with(b"step 5\nste\nstep 6\n"));
    }

    #[test]
    fn a_copy_that_somebody_touched_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = begin(folder.path());
        look(&mut copy, b"step 1\nstep 2\n", 5, 1000);
        let touches: [fn(&Path); 2] =
            [|file| std::fs::write(file, "x").unwrap(), |file| std::fs::write(file, vec![7; 500]).unwrap()];
        for touch in touches {
            touch(copy.file());
            copy = Copy::open(folder.path(), copy.copied.clone(), &Spec::default()).unwrap();
            assert_eq!((copy.copied.offset, copy.copied.kept), (0, 0));
            look(&mut copy, b"step 1\nstep 2\n", 5, 1000);
            assert_eq!(content(&copy), b"step 1\nstep 2\n");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn a_copy_is_the_log_however_it_is_read_and_wherever_the_process_is_killed(
            log in proptest::collection::vec(any::<u8>(), 0..600),
            looks in proptest::collection::vec((0usize..600, 65usize..300, any::<bool>()), 1..8),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut copy = begin(folder.path());
            let mut length = 0;
            for (grown, cap, killed) in looks {
                length = length.max(grown.min(log.len()));
                let before = copy.copied.clone();
                look(&mut copy, &log[..length], 5, cap);
                if killed {
                    // The copy has more than the journal knows of.
                    copy = Copy::open(folder.path(), before, &Spec::default()).unwrap();
                }
            }
            while copy.copied.offset < log.len() as u64 {
                look(&mut copy, &log, 5, 100);
            }
            let whole = if log.is_empty() { Vec::new() } else { content(&copy) };
            prop_assert_eq!(whole, log);
        }
    }
}
