//! The local copy of a job's log: compressed, extended as the log grows, and parsed on the way.

use crate::data::make_private;
use crate::journal::{Copied, LogRestart};
use crate::secrets::SHORTEST_HIDDEN;
use crate::store::pack;
use memchr::memmem;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use trainplan_shared::log::Status;
use trainplan_shared::result::{Intake, JobFiles, Report, RunResult, View};
use trainplan_shared::spec::Spec;

/// The copy of a log.
pub(super) struct LogCopy {
    /// How far the copy goes, as the journal has it.
    pub(super) copied: Copied,
    file: PathBuf,
    intake: Intake,
    /// The last bytes of the file that were read, to recognise it.
    last: Vec<u8>,
    /// Whether the copy ends with a line break.
    at_line: bool,
    /// The secrets that are hidden in the copy.
    secrets: Vec<Vec<u8>>,
    /// Where the file ended when its last bytes were left to the next piece, because a secret may begin there.
    held_to: Option<u64>,
}

/// Replaces each byte of a secret in the copy, so that offsets in the log stay the same.
const HIDDEN: u8 = b'*';

/// How a piece of a log relates to the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Continuation {
    /// It starts where the copy ends.
    Extends,
    /// The log starts again, for this reason.
    Restarts(LogRestart),
    /// It was read before the last piece, and is ignored.
    Stale,
}

/// How many bytes are read a second time, to see that the log is still the same file.
const OVERLAP: usize = 64;

/// The progress of training, from the log so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LogProgress {
    /// Number of steps in the log.
    pub(crate) steps: u64,
    /// Mean step time in seconds; before there is a score, that of the last step.
    pub(crate) step_time_s: Option<f64>,
    /// Model FLOPs utilization of the scored steps, as a fraction.
    pub(crate) mfu: Option<f64>,
}

impl LogCopy {
    /// Opens a copy, or starts one. Bytes that the journal does not list are cut off: they were written as
    /// the process was killed, and will be read again. A copy that does not match the journal is started
    /// again from the log.
    pub(super) fn open(folder: &Path, copied: Copied, said: &Spec) -> io::Result<LogCopy> {
        make_private(folder)?;
        let file = folder.join(format!("{}.log.zst", copied.job));
        let stream = File::options().create(true).truncate(false).read(true).write(true).open(&file)?;
        let begin = |copied: Copied| LogCopy {
            intake: Intake::new(&copied.path, said),
            copied,
            file: file.clone(),
            last: Vec::new(),
            at_line: true,
            secrets: Vec::new(),
            held_to: None,
        };
        let mut copy = begin(copied);
        if copy.copied.kept > 0 && stream.metadata()?.len() >= copy.copied.kept {
            stream.set_len(copy.copied.kept)?;
            match copy.read_all(&stream) {
                Ok(()) => return Ok(copy),
                Err(error) => tracing::warn!("{}: {error}. The log is copied again.", file.display()),
            }
        }
        let copied = Copied { inode: 0, offset: 0, kept: 0, ..copy.copied };
        stream.set_len(0)?;
        Ok(begin(copied))
    }

    /// Hides secrets in what is appended from now on.
    pub(super) fn hide<'a>(&mut self, secrets: impl IntoIterator<Item = &'a str>) {
        let secrets = secrets.into_iter().filter(|secret| secret.len() >= SHORTEST_HIDDEN);
        self.secrets = secrets.map(|secret| secret.as_bytes().to_vec()).collect();
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

    /// Returns the path of the compressed file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Returns how many bytes before its end must be read again.
    pub(super) fn overlap(&self) -> u64 {
        self.last.len() as u64
    }

    /// Appends a piece of the file with that inode, read from offset `from`. It is on disk when this returns;
    /// the caller writes the new [`Copied`] to the journal.
    pub(super) fn append(&mut self, bytes: &[u8], inode: u64, from: u64) -> io::Result<Continuation> {
        let overlap = self.overlap();
        let Copied { inode: known, offset, .. } = self.copied;
        let (joins, new) = if known != 0 && inode != known {
            (Continuation::Restarts(LogRestart::Replaced), bytes)
        } else if from + overlap == offset {
            match self.after_last(bytes) {
                Some(new) => (Continuation::Extends, new),
                // Another log in the same file: it is read from its beginning next time.
                None => {
                    self.begin_anew(inode);
                    return Ok(Continuation::Restarts(LogRestart::Truncated));
                }
            }
        } else if from == 0 {
            (Continuation::Restarts(LogRestart::Truncated), bytes)
        } else {
            return Ok(Continuation::Stale);
        };
        if joins != Continuation::Extends {
            self.begin_anew(inode);
        }
        let text = self.without_secrets(new);
        // A log that restarts begins on a new line.
        let gap: &[u8] = if joins != Continuation::Extends && !self.at_line { b"\n" } else { b"" };
        let whole = [gap, &text].concat();
        if !whole.is_empty() {
            let packed = pack(&whole)?;
            let mut file = File::options().write(true).open(&self.file)?;
            file.seek(SeekFrom::Start(self.copied.kept))?;
            file.write_all(&packed)?;
            file.set_len(self.copied.kept + packed.len() as u64)?;
            file.sync_data()?;
            self.copied.kept += packed.len() as u64;
            self.read(&whole);
        }
        self.copied.inode = inode;
        self.copied.offset += text.len() as u64;
        self.trim();
        Ok(joins)
    }

    /// Returns what follows the last bytes of the copy; none if these bytes differ. A hidden byte may have been any byte.
    fn after_last<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (again, new) = bytes.split_at_checked(self.last.len())?;
        let is_same = |(byte, last): (&u8, &u8)| byte == last || *last == HIDDEN;
        again.iter().zip(&self.last).all(is_same).then_some(new)
    }

    /// Returns what to append for the next bytes of the file: the secrets are hidden, and bytes at the end that may begin one
    /// are left to the next piece. If the file does not grow, they are all there is.
    fn without_secrets(&mut self, new: &[u8]) -> Vec<u8> {
        // A secret may begin in what was appended before.
        let before = self.last.len();
        let mut joined = [&self.last[..], new].concat();
        for secret in &self.secrets {
            let places: Vec<usize> = memmem::find_iter(&joined, secret).collect();
            for place in places {
                joined[place..place + secret.len()].fill(HIDDEN);
            }
        }
        let begun = self.begun_secret(&joined);
        let end = self.copied.offset + new.len() as u64;
        let is_held = begun > 0 && !new.is_empty() && self.held_to != Some(end);
        self.held_to = is_held.then_some(end);
        let from = joined.len() - begun.min(new.len());
        if is_held {
            joined.truncate(from);
        } else if begun >= SHORTEST_HIDDEN {
            joined[from..].fill(HIDDEN);
        }
        joined.split_off(before)
    }

    /// Returns how many bytes at the end of a text may be the beginning of a secret.
    fn begun_secret(&self, text: &[u8]) -> usize {
        let begun = |secret: &Vec<u8>| {
            (1..secret.len()).rev().find(|length| text.ends_with(&secret[..*length])).unwrap_or_default()
        };
        self.secrets.iter().map(begun).max().unwrap_or_default()
    }

    fn begin_anew(&mut self, inode: u64) {
        self.last.clear();
        self.held_to = None;
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

    /// Drops bytes that are not from the present file.
    fn trim(&mut self) {
        let of_file = usize::try_from(self.copied.offset).unwrap_or(OVERLAP);
        self.last.drain(..self.last.len().saturating_sub(of_file));
    }

    /// Returns the progress so far.
    pub(super) fn progress(&self) -> LogProgress {
        let run = self.intake.so_far();
        let report = Report::of(&run, &View::default());
        LogProgress {
            steps: report.steps,
            step_time_s: report.step_time_s.map(|stat| stat.mean).or_else(|| {
                let steps = &run.log.steps;
                (0..steps.len()).rev().find_map(|row| steps.step_time_s.get(row))
            }),
            mfu: report.mfu,
        }
    }

    /// Sets what the files beside the log say.
    pub(super) fn take_job(&mut self, job: JobFiles) {
        self.intake = self.intake.clone().with_job(job);
    }

    /// Returns the result of the log so far.
    pub(super) fn result(&self) -> RunResult {
        self.intake.so_far()
    }
}

/// Returns whether the result of a log with that status is stored.
pub(super) fn is_worth_keeping(status: Status) -> bool {
    !matches!(status, Status::NoData | Status::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn begin(folder: &Path) -> LogCopy {
        let copied = Copied { job: "7".into(), path: "/x/log_7_.out".into(), inode: 0, offset: 0, kept: 0 };
        LogCopy::open(folder, copied, &Spec::default()).unwrap()
    }

    fn content(copy: &LogCopy) -> Vec<u8> {
        zstd::decode_all(File::open(copy.file()).unwrap()).unwrap_or_default()
    }

    /// Reads a file as a poll does.
    fn poll(copy: &mut LogCopy, file: &[u8], inode: u64, cap: usize) -> Continuation {
        let Copied { inode: known, offset, .. } = copy.copied;
        let anew = inode != known || (file.len() as u64) < offset;
        let from = if anew { 0 } else { (offset - copy.overlap()) as usize };
        let piece = &file[from..];
        copy.append(&piece[..piece.len().min(cap)], inode, from as u64).unwrap()
    }

    #[test]
    fn a_truncated_log_is_noticed_even_if_it_grows_longer_than_before() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = begin(folder.path());
        poll(&mut copy, b"step 1\nstep 2\n", 5, 1000);
        // Another file of the same inode, longer than what was read.
        let anew = b"step 3\nstep 4\nstep 5\n";
        assert_eq!(poll(&mut copy, anew, 5, 1000), Continuation::Restarts(LogRestart::Truncated));
        assert_eq!(poll(&mut copy, anew, 5, 1000), Continuation::Extends);
        assert_eq!(content(&copy), b"step 1\nstep 2\nstep 3\nstep 4\nstep 5\n");
        // Another inode, after half a line.
        poll(&mut copy, b"step 3\nstep 4\nstep 5\nste", 5, 1000);
        assert_eq!(poll(&mut copy, b"step 6\n", 6, 1000), Continuation::Restarts(LogRestart::Replaced));
        assert!(content(&copy).ends_with(b"step 5\nste\nstep 6\n"));
    }

    #[test]
    fn a_damaged_copy_is_started_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = begin(folder.path());
        poll(&mut copy, b"step 1\nstep 2\n", 5, 1000);
        let touches: [fn(&Path); 2] =
            [|file| std::fs::write(file, "x").unwrap(), |file| std::fs::write(file, vec![7; 500]).unwrap()];
        for touch in touches {
            touch(copy.file());
            copy = LogCopy::open(folder.path(), copy.copied.clone(), &Spec::default()).unwrap();
            assert_eq!((copy.copied.offset, copy.copied.kept), (0, 0));
            poll(&mut copy, b"step 1\nstep 2\n", 5, 1000);
            assert_eq!(content(&copy), b"step 1\nstep 2\n");
        }
    }

    const SECRET: &str = "hf_sesame_hf_s";

    /// Returns a log with a secret, and how its copy should read.
    fn with_secret() -> (Vec<u8>, Vec<u8>) {
        let log = |secret: &str| {
            format!("step 1\nHF_TOKEN={secret} x hf_se\n{secret}{secret}\nstep 2 {secret}\nhf_ses")
        };
        (log(SECRET).into_bytes(), log(&"*".repeat(SECRET.len())).into_bytes())
    }

    #[test]
    fn secrets_are_hidden_wherever_a_log_is_cut() {
        let (log, hidden) = with_secret();
        for cut in 0..log.len() {
            let folder = tempfile::tempdir().unwrap();
            let mut copy = begin(folder.path());
            copy.hide([SECRET, "1"]);
            poll(&mut copy, &log[..cut], 5, 1000);
            // The last time, nothing new came.
            for _ in 0..2 {
                assert_eq!(poll(&mut copy, &log, 5, 1000), Continuation::Extends, "{cut}");
            }
            assert_eq!(content(&copy), hidden, "{cut}");
            assert_eq!(copy.copied.offset, log.len() as u64, "{cut}");
            // A process that doesn't know the secret continues the copy.
            let mut other = LogCopy::open(folder.path(), copy.copied.clone(), &Spec::default()).unwrap();
            let longer = [&log[..], b"ame\nstep 3\n"].concat();
            assert_eq!(poll(&mut other, &longer, 5, 1000), Continuation::Extends, "{cut}");
            assert_eq!(content(&other), [&hidden[..], b"ame\nstep 3\n"].concat(), "{cut}");
        }
    }

    #[test]
    fn no_secret_is_whole_in_the_copy_of_a_log_that_pauses_within_it() {
        let (log, _) = with_secret();
        for cut in 0..log.len() {
            let folder = tempfile::tempdir().unwrap();
            let mut copy = begin(folder.path());
            copy.hide([SECRET]);
            for end in [cut, cut, cut, log.len(), log.len()] {
                poll(&mut copy, &log[..end], 5, 1000);
            }
            let content = String::from_utf8(content(&copy)).unwrap();
            assert!(content.len() == log.len() && !content.contains(SECRET), "{cut}: {content}");
            assert!(content.contains("step 1\n") && content.contains("step 2 "), "{cut}: {content}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_copy_equals_the_log_wherever_the_process_is_killed(
            log in proptest::collection::vec(any::<u8>(), 0..600),
            polls in proptest::collection::vec((0usize..600, 65usize..300, any::<bool>()), 1..8),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let mut copy = begin(folder.path());
            let mut length = 0;
            for (grown, cap, killed) in polls {
                length = length.max(grown.min(log.len()));
                let before = copy.copied.clone();
                poll(&mut copy, &log[..length], 5, cap);
                if killed {
                    // The copy has more than the journal lists.
                    copy = LogCopy::open(folder.path(), before, &Spec::default()).unwrap();
                }
            }
            while copy.copied.offset < log.len() as u64 {
                poll(&mut copy, &log, 5, 100);
            }
            let whole = if log.is_empty() { Vec::new() } else { content(&copy) };
            prop_assert_eq!(whole, log);
        }
    }
}
