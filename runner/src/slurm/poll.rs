//! A poll: one remote script that asks for the queue, the jobs that left it, and the growth of logs.

use super::state::{Sighting, State, StateSource};
use crate::ssh::Script;
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

/// The questions of a poll. The caller chooses their keys, which are returned with the answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct PollRequest {
    /// Jobs that may have left the queue.
    pub(crate) ask: Vec<String>,
    /// Logs that are not found yet.
    pub(crate) searches: Vec<LogSearch>,
    /// Keys and ids of runs whose jobs write their state into a file of the run's folder.
    pub(crate) states: Vec<(u64, String)>,
    /// Logs that are known.
    pub(crate) tails: Vec<LogTail>,
    /// The most bytes to read of each log.
    pub(crate) cap: u64,
}

/// A log to find.
#[derive(Debug, Clone)]
pub(crate) struct LogSearch {
    pub(crate) key: u64,
    pub(crate) job: String,
    /// Whether its name ends with the job's number and restart count, not just the number.
    pub(crate) counted: bool,
    /// A shell's pattern for its path.
    pub(crate) pattern: String,
}

/// A log to read on.
#[derive(Debug, Clone)]
pub(crate) struct LogTail {
    pub(crate) key: u64,
    /// Whether to read it even if its size seems unchanged: a network file system may know better only after
    /// opening it.
    pub(crate) force: bool,
    pub(crate) inode: u64,
    /// How far it was read.
    pub(crate) offset: u64,
    /// How many bytes before the offset to read again. If they differ, it is another log.
    pub(crate) overlap: u64,
    pub(crate) path: String,
}

/// The answer to a poll.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ClusterView {
    /// The cluster's clock, in seconds since 1970.
    pub(crate) clock: Option<i64>,
    /// The jobs in the queue by number, or squeue's error.
    pub(crate) queue: Option<Result<BTreeMap<String, Sighting>, String>>,
    /// Jobs that slurmctld remembers.
    pub(crate) remembered: BTreeMap<String, Sighting>,
    /// Jobs in the accounting, or sacct's error; none if it was not asked.
    pub(crate) accounting: Option<Result<BTreeMap<String, Sighting>, String>>,
    /// The states that jobs wrote themselves, by key.
    pub(crate) own: Vec<(u64, String)>,
    /// The paths of logs that were found, by key.
    pub(crate) found: Vec<(u64, String)>,
    /// The growth of logs.
    pub(crate) chunks: Vec<LogChunk>,
}

/// A piece of a log.
#[derive(Debug, PartialEq)]
pub(crate) struct LogChunk {
    pub(crate) key: u64,
    pub(crate) inode: u64,
    /// Size of the whole file.
    pub(crate) size: u64,
    /// Offset of the piece in the file; 0 if the file was replaced or truncated.
    pub(crate) from: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Why the answer to a poll can't be read.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum PollError {
    #[error("can't decompress the cluster's answer ({0})")]
    Packed(String),
    #[error("the cluster's answer is incomplete")]
    Cut,
}

impl PollRequest {
    /// Returns the remote script. No log may contain the mark.
    pub(crate) fn script(&self, mark: &str) -> Script {
        let lines = |lines: Vec<String>| lines.join("\n");
        let finds = self.searches.iter().map(|LogSearch { key, job, counted, pattern }| {
            format!("{key} {job} {} {pattern}", if *counted { "counted" } else { "plain" })
        });
        let tail = |tail: &LogTail| {
            let LogTail { key, force, inode, offset, overlap, path } = tail;
            format!("{key} {} {inode} {offset} {overlap} {path}", u8::from(*force))
        };
        let tails = self.tails.iter().map(tail).collect();
        Script::new("poll", include_str!("remote/poll.sh"))
            .set("mark", mark)
            .set("ask", self.ask.join(","))
            .set("finds", lines(finds.collect()))
            .set("states", lines(self.states.iter().map(|(key, run)| format!("{key} {run}")).collect()))
            .set("tails", lines(tails))
            .set("cap", self.cap.to_string())
    }
}

impl ClusterView {
    /// Reads the answer to a poll.
    ///
    /// # Errors
    /// The answer can't be decompressed, or is incomplete. Lines that can't be understood are ignored.
    pub(crate) fn read(answer: &[u8], mark: &str) -> Result<ClusterView, PollError> {
        let mut unpacked = Vec::new();
        let answer = match answer {
            [0x1f, 0x8b, ..] => {
                GzDecoder::new(answer)
                    .read_to_end(&mut unpacked)
                    .map_err(|error| PollError::Packed(error.to_string()))?;
                &unpacked[..]
            }
            _ => answer,
        };
        let mut view = ClusterView::default();
        let mut whole = false;
        for (head, body) in records(answer, mark.as_bytes()) {
            let head = String::from_utf8_lossy(head);
            let mut words = head.split(' ');
            let text = || String::from_utf8_lossy(body);
            match words.next().unwrap_or_default() {
                "clock" => view.clock = words.next().and_then(|seconds| seconds.parse().ok()),
                "squeue" => view.queue = Some(answered(words.next(), &text(), of_squeue)),
                "scontrol" => view.remembered = by_job(&text(), of_scontrol),
                "sacct" => view.accounting = Some(answered(words.next(), &text(), of_sacct)),
                "found" => {
                    let rest = head.strip_prefix("found ").and_then(|rest| rest.split_once(' '));
                    let found = rest.and_then(|(key, path)| Some((key.parse().ok()?, path.to_string())));
                    view.found.extend(found);
                }
                "state" => {
                    let key = words.next().and_then(|key| key.parse().ok());
                    view.own.extend(key.map(|key| (key, text().into_owned())));
                }
                "log" => {
                    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
                    if let [key, inode, size, from] = numbers[..] {
                        view.chunks.push(LogChunk { key, inode, size, from, bytes: body.to_vec() });
                    }
                }
                "end" => whole = true,
                _ => {}
            }
        }
        if whole { Ok(view) } else { Err(PollError::Cut) }
    }

    /// Returns the state of a job, completed by what was known earlier; none if the view does not have it.
    pub(crate) fn sighting(&self, job: &str, earlier: Option<&Sighting>) -> Option<Sighting> {
        let Some(Ok(queue)) = &self.queue else { return None };
        let listed = parts(queue, job);
        let accounted = match &self.accounting {
            Some(Ok(accounting)) => parts(accounting, job),
            _ => None,
        };
        let remembered = parts(&self.remembered, job);
        let seen = match (listed, remembered, accounted) {
            // The queue decides on the state of a job that it lists. The others add how it ended.
            (Some(listed), remembered, accounted) => {
                let more =
                    remembered.or(accounted).filter(|more| more.state.is_over() == listed.state.is_over());
                match more {
                    Some(more) => listed.after(&more),
                    None => listed,
                }
            }
            (None, Some(remembered), accounted) => {
                match accounted.filter(|accounted| accounted.state.is_over()) {
                    Some(accounted) => remembered.after(&accounted),
                    None => remembered,
                }
            }
            // A job that is not in the queue does not run, even if the accounting is late and says so.
            (None, None, Some(accounted)) if accounted.state.is_over() => accounted,
            (None, None, _) => return None,
        };
        Some(match earlier {
            Some(earlier) => seen.after(earlier),
            None => seen,
        })
    }

    /// Returns how a job ended by the state that it wrote itself, in lines `start JOB TIME` and `end JOB TIME
    /// CODE`; none if it did not come to its end.
    pub(crate) fn own(&self, key: u64, job: &str) -> Option<Sighting> {
        let (_, text) = self.own.iter().find(|(own, _)| *own == key)?;
        let of_job = |word: &str| {
            let lines = text.lines().rev().map(|line| line.split(' ').collect::<Vec<_>>());
            lines.into_iter().find(|words| words.first() == Some(&word) && words.get(1) == Some(&job))
        };
        let end = of_job("end")?;
        let code: i32 = end.get(3)?.parse().ok()?;
        let end_of = if code == 0 { super::End::Completed } else { super::End::Failed };
        Some(Sighting {
            exit_code: Some(code),
            started: of_job("start").and_then(|words| time(words.get(2)?)),
            ended: time(end.get(2)?),
            ..Sighting::new(State::Ended(end_of), StateSource::Job)
        })
    }

    /// Returns whether the queue answered.
    pub(crate) fn queue_answered(&self) -> bool {
        matches!(self.queue, Some(Ok(_)))
    }
}

/// Splits an answer into records: the rest of a line that starts with the mark, and the text up to the next
/// mark.
pub(super) fn records<'a>(answer: &'a [u8], mark: &[u8]) -> Vec<(&'a [u8], &'a [u8])> {
    // A mark is at the beginning of a line.
    let begins = |at: &usize| *at == 0 || answer[at - 1] == b'\n';
    let starts: Vec<usize> = memchr::memmem::find_iter(answer, mark).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([answer.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| {
            let record = &answer[start + mark.len()..end];
            let line = record.iter().position(|byte| *byte == b'\n').unwrap_or(record.len());
            let body = record.get(line + 1..).unwrap_or_default();
            // The line break before a mark belongs to the mark.
            (record[..line].trim_ascii(), body.strip_suffix(b"\n").unwrap_or(body))
        })
        .collect()
}

type ReadLine = fn(&str) -> Option<(String, Sighting)>;

fn answered(code: Option<&str>, text: &str, line: ReadLine) -> Result<BTreeMap<String, Sighting>, String> {
    if code == Some("0") { Ok(by_job(text, line)) } else { Err(text.trim().to_string()) }
}

fn by_job(text: &str, line: ReadLine) -> BTreeMap<String, Sighting> {
    text.lines().filter_map(line).collect()
}

/// Returns the state of a job from those of its parts (array tasks or components): one that is not over, else
/// the worst.
fn parts(jobs: &BTreeMap<String, Sighting>, job: &str) -> Option<Sighting> {
    let is_part =
        |id: &str| id.strip_prefix(job).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '+']));
    let rank = |sighting: &Sighting| match &sighting.state {
        State::Running => 101,
        State::Suspended => 100,
        State::Pending => 99,
        State::Ended(end) => *end as u32,
    };
    jobs.iter().filter(|(id, _)| is_part(id)).map(|(_, sighting)| sighting).max_by_key(|s| rank(s)).cloned()
}

/// Reads a time in seconds since 1970, by `SLURM_TIME_FORMAT=%s`; none if it is unknown.
fn time(text: &str) -> Option<i64> {
    text.parse().ok().filter(|seconds| *seconds > 0)
}

fn nodes(text: &str) -> Option<String> {
    let none = ["", "None assigned", "(null)"];
    (!none.contains(&text)).then(|| text.to_string())
}

/// `%A|%i|%T|%r|%V|%S|%e|%N|%k`
fn of_squeue(line: &str) -> Option<(String, Sighting)> {
    let mut cells = line.splitn(9, '|');
    let (_, id, state, reason) = (cells.next()?, cells.next()?, State::of(cells.next()?), cells.next()?);
    let (submitted, started, ended) = (time(cells.next()?), time(cells.next()?), time(cells.next()?));
    let nodes = nodes(cells.next()?);
    // The start time of a waiting job is an estimate.
    let started = started.filter(|_| state != State::Pending);
    let ended = ended.filter(|_| state.is_over());
    let reason = if reason == "None" { String::new() } else { reason.to_string() };
    let exit_code = (state == State::Ended(super::End::Completed)).then_some(0);
    let source = StateSource::Squeue;
    Some((id.to_string(), Sighting { state, source, reason, exit_code, submitted, started, ended, nodes }))
}

/// `JobId=7 JobName=... JobState=FAILED Reason=NonZeroExitCode ... ExitCode=7:0`
fn of_scontrol(line: &str) -> Option<(String, Sighting)> {
    let value = |key: &str| {
        line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default()
    };
    let id = match (value("ArrayJobId"), value("ArrayTaskId")) {
        ("", _) | (_, "") => value("JobId").to_string(),
        (job, task) => format!("{job}_{task}"),
    };
    if id.is_empty() {
        return None;
    }
    let state = State::of(value("JobState"));
    let over = state.is_over();
    let sighting = Sighting {
        source: StateSource::Scontrol,
        reason: Some(value("Reason")).filter(|reason| *reason != "None").unwrap_or_default().to_string(),
        exit_code: exit_code(value("ExitCode")).filter(|_| over),
        submitted: time(value("SubmitTime")),
        started: time(value("StartTime")).filter(|_| state != State::Pending),
        ended: time(value("EndTime")).filter(|_| over),
        nodes: nodes(value("NodeList")),
        state,
    };
    Some((id, sighting))
}

/// `JobID|State|ExitCode|Submit|Start|End|NodeList`
fn of_sacct(line: &str) -> Option<(String, Sighting)> {
    let cells: Vec<&str> = line.split('|').collect();
    let [id, state, code, submitted, started, ended, on] = cells[..] else { return None };
    let state = State::of(state);
    let over = state.is_over();
    let sighting = Sighting {
        source: StateSource::Sacct,
        reason: String::new(),
        exit_code: exit_code(code).filter(|_| over),
        submitted: time(submitted),
        started: time(started),
        ended: time(ended).filter(|_| over),
        nodes: nodes(on),
        state,
    };
    Some((id.to_string(), sighting))
}

/// Reads CODE:SIGNAL. As in a shell, signal 9 gives 137.
fn exit_code(text: &str) -> Option<i32> {
    let (code, signal) = text.split_once(':')?;
    match (code.parse().ok()?, signal.parse().ok()?) {
        (0, 0) => Some(0),
        (0, signal) => Some(128 + signal),
        (code, _) => Some(code),
    }
}

#[cfg(test)]
mod tests {
    use super::super::End;
    use super::*;
    use proptest::prelude::*;

    const MARK: &str = "2f1e0d";

    fn view(text: &str) -> ClusterView {
        ClusterView::read(format!("{text}\n{MARK} end\n").as_bytes(), MARK).unwrap()
    }

    #[test]
    fn the_queue_wins_over_the_accounting() {
        let view = view(&format!(
            "{MARK} clock 1700000100\n{MARK} squeue \
             0\n7|7|RUNNING|None|1700000000|1700000010|1700003610|n[1-2]|tok\n\
             {MARK} sacct 0\n7|PENDING|0:0|1700000000|Unknown|Unknown|None assigned"
        ));
        let seen = view.sighting("7", None).unwrap();
        assert_eq!((seen.state, seen.started, seen.ended), (State::Running, Some(1_700_000_010), None));
        assert_eq!(seen.nodes.as_deref(), Some("n[1-2]"));
        assert_eq!(view.sighting("70", None), None);
    }

    #[test]
    fn jobs_that_left_the_queue_are_found_in_slurmctld_or_the_accounting() {
        let gone = format!("{MARK} squeue 0\n");
        let by_sacct = view(&format!(
            "{gone}\n{MARK} sacct 0\n7|CANCELLED by 1000|0:15|1700000000|1700000010|1700000020|n1"
        ));
        let seen = by_sacct.sighting("7", None).unwrap();
        assert_eq!((seen.state, seen.exit_code), (State::Ended(End::Cancelled), Some(143)));
        let by_scontrol = view(&format!(
            "{gone}\n{MARK} scontrol 0\nJobId=7 JobName=a b JobState=FAILED Reason=NonZeroExitCode \
             ExitCode=7:0 \
             EndTime=1700000020 NodeList=n1\n{MARK} sacct 1\nSlurm accounting storage is disabled"
        ));
        let seen = by_scontrol.sighting("7", None).unwrap();
        assert_eq!((seen.state, seen.exit_code), (State::Ended(End::Failed), Some(7)));
        // The accounting is late: the job's state is unknown.
        let late = view(&format!("{gone}\n{MARK} sacct 0\n7|RUNNING|0:0|1700000000|1700000010|Unknown|n1"));
        assert_eq!(late.sighting("7", None), None);
        // squeue failed.
        let mute =
            view(&format!("{MARK} squeue 1\nslurm_load_jobs error: Unable to contact slurm controller"));
        assert!(!mute.queue_answered());
        assert_eq!(mute.sighting("7", None), None);
    }

    #[test]
    fn a_job_has_the_state_of_its_parts() {
        let view = view(&format!(
            "{MARK} squeue 0\n8|7_1|COMPLETED|None|1|1|1|n1|t\n9|7_2|FAILED|NonZeroExitCode|1|1|1|n1|t\n11|11+0|RUNNING|None|1|1|1|n1|t"
        ));
        assert_eq!(view.sighting("7", None).unwrap().state, State::Ended(End::Failed));
        assert_eq!(view.sighting("11", None).unwrap().state, State::Running);
    }

    #[test]
    fn an_incomplete_answer_is_an_error() {
        let cut = format!("{MARK} squeue 0\n7|7|RUNNING");
        assert_eq!(ClusterView::read(cut.as_bytes(), MARK), Err(PollError::Cut));
        assert!(matches!(ClusterView::read(&[0x1f, 0x8b, 8, 0], MARK), Err(PollError::Packed(_))));
    }

    #[test]
    fn a_jobs_own_state_is_read() {
        let view = view(&format!(
            "{MARK} squeue 0\n\n{MARK} state 3\nstart 7 1700000000\nend 7 1700000050 9\nstart 70 1700000060"
        ));
        let own = view.own(3, "7").unwrap();
        assert_eq!(
            (own.state, own.source, own.exit_code),
            (State::Ended(End::Failed), StateSource::Job, Some(9))
        );
        assert_eq!((own.started, own.ended), (Some(1_700_000_000), Some(1_700_000_050)));
        assert_eq!(view.own(3, "70"), None, "no line for its end");
        assert_eq!(view.own(4, "7"), None);
    }

    /// Runs the script's search for logs in real shells.
    fn found(files: &[&str], job: &str, counted: bool) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        let script = include_str!("remote/poll.sh");
        let script = &script[..script.find("read_tails()").unwrap()];
        let form = if counted { "counted" } else { "plain" };
        let text = format!("finds='5 {job} {form} ./log*.out'\n{script}\nfind_logs\n");
        let outputs = ["sh", "bash"].map(|shell| {
            let mut command = std::process::Command::new(shell);
            String::from_utf8(command.args(["-c", &text]).current_dir(&folder).output().unwrap().stdout)
                .unwrap()
        });
        assert_eq!(outputs[0], outputs[1]);
        outputs[0].lines().map(|line| line.strip_prefix("5 ./").unwrap().to_string()).collect()
    }

    #[test]
    fn the_log_of_a_job_is_found_by_its_number_alone() {
        let counted =
            ["log-a.b_70b_fp8_64_16_0.out", "log-a.b_70b_fp8_64_64_0.out", "log-a.b_70b_fp8_64_64_1.out"];
        assert_eq!(found(&counted, "64", true), counted[1..]);
        assert_eq!(found(&counted, "16", true), counted[..1]);
        assert_eq!(found(&counted, "1", true), [""; 0]);
        let plain =
            ["log-nemo_nemotron4_340b_256_256.out", "log-nemo_nemotron4_340b_256_25.out", "log-7-of.out"];
        assert_eq!(found(&plain, "256", false), plain[..1]);
        assert_eq!(found(&plain, "7", false), plain[2..]);
        assert_eq!(found(&plain, "340", false), [""; 0]);
    }

    proptest! {
        #[test]
        fn logs_of_any_bytes_are_read_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut answer = format!("{MARK} clock 1\n\n{MARK} log 3 77 1000 600\n").into_bytes();
            answer.extend(&bytes);
            answer.extend(format!("\n{MARK} log 4 78 0 0\n\n{MARK} end\n").bytes());
            let view = ClusterView::read(&answer, MARK).unwrap();
            prop_assert_eq!(view.chunks.len(), 2);
            prop_assert_eq!(&view.chunks[0], &LogChunk { key: 3, inode: 77, size: 1000, from: 600, bytes });
            prop_assert!(view.chunks[1].bytes.is_empty());
        }

        #[test]
        fn reading_an_answer_never_panics(answer in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = ClusterView::read(&answer, MARK);
            let mut marked = format!("{MARK} squeue 0\n").into_bytes();
            marked.extend(&answer);
            let _ = ClusterView::read(&marked, MARK);
        }
    }
}
