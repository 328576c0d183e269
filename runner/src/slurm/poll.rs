//! One look at everything: the queue, what became of jobs that left it, and what logs have grown by.

use super::state::{Sighting, Source, State};
use crate::ssh::Script;
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::io::Read;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    /// Jobs of which the queue may no longer know.
    pub(crate) ask: Vec<String>,
    /// Logs that are not found yet.
    pub(crate) finds: Vec<Find>,
    /// Jobs that nobody may know any more: a key, and the run whose folder holds their own file.
    pub(crate) states: Vec<(u64, String)>,
    /// Logs that are known.
    pub(crate) tails: Vec<Tail>,
    /// How many bytes of each log at most.
    pub(crate) cap: u64,
}

/// A log that is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Find {
    pub(crate) key: u64,
    pub(crate) job: String,
    /// Whether its name ends with the count of the job's restarts, behind the job's number.
    pub(crate) counted: bool,
    /// Of its path, as a shell reads it.
    pub(crate) pattern: String,
}

/// How far a log is read.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    pub(crate) key: u64,
    /// Whether it is read even if its size is said to be the same: on a network file system only opening a file tells.
    pub(crate) force: bool,
    pub(crate) inode: u64,
    pub(crate) offset: u64,
    /// How many bytes before that are read once more: if they are others now, it is another log.
    pub(crate) overlap: u64,
    pub(crate) path: String,
}

/// What was seen.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct View {
    /// The cluster's clock, in seconds since 1970.
    pub(crate) clock: Option<i64>,
    /// The queue's jobs by number, or why it did not answer.
    pub(crate) queue: Option<Result<BTreeMap<String, Sighting>, String>>,
    /// Jobs that slurmctld remembers.
    pub(crate) remembered: BTreeMap<String, Sighting>,
    /// Jobs in the accounting, or why it did not answer; none if it was not asked.
    pub(crate) accounting: Option<Result<BTreeMap<String, Sighting>, String>>,
    /// What jobs wrote of themselves, by key.
    pub(crate) own: Vec<(u64, String)>,
    /// Logs that were found, by key.
    pub(crate) found: Vec<(u64, String)>,
    /// What logs grew by.
    pub(crate) chunks: Vec<Chunk>,
}

/// A piece of a log.
#[derive(Debug, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) key: u64,
    pub(crate) inode: u64,
    /// Of the whole file, when it was looked at.
    pub(crate) size: u64,
    /// Where the piece begins; 0 where the file is another one or was cut.
    pub(crate) from: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Why an answer can't be read.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// It can't be unpacked.
    #[error("the cluster's answer can't be unpacked: {0}")]
    Packed(String),
    /// It ends in the middle.
    #[error("the cluster's answer has no end")]
    Cut,
}

impl Look {
    /// The script that looks. `mark` is a word that no log holds.
    pub(crate) fn script(&self, mark: &str) -> Script {
        let lines = |lines: Vec<String>| lines.join("\n");
        let finds = self.finds.iter().map(|Find { key, job, counted, pattern }| {
            format!("{key} {job} {} {pattern}", if *counted { "counted" } else { "plain" })
        });
        let tail = |tail: &Tail| {
            let Tail { key, force, inode, offset, overlap, path } = tail;
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

impl View {
    /// Reads an answer.
    ///
    /// # Errors
    /// It is packed badly or cut off. What programs of the cluster say is read as far as it can be.
    pub(crate) fn read(answer: &[u8], mark: &str) -> Result<View, Unreadable> {
        let mut unpacked = Vec::new();
        let answer = match answer {
            [0x1f, 0x8b, ..] => {
                GzDecoder::new(answer)
                    .read_to_end(&mut unpacked)
                    .map_err(|error| Unreadable::Packed(error.to_string()))?;
                &unpacked[..]
            }
            _ => answer,
        };
        let mut view = View::default();
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
                        view.chunks.push(Chunk { key, inode, size, from, bytes: body.to_vec() });
                    }
                }
                "end" => whole = true,
                _ => {}
            }
        }
        if whole { Ok(view) } else { Err(Unreadable::Cut) }
    }

    /// What this says of a job of which `earlier` was the last that was known; none if it says nothing.
    pub(crate) fn sighting(&self, job: &str, earlier: Option<&Sighting>) -> Option<Sighting> {
        let Some(Ok(queue)) = &self.queue else { return None };
        let listed = parts(queue, job);
        let told = match &self.accounting {
            Some(Ok(accounting)) => parts(accounting, job),
            _ => None,
        };
        let remembered = parts(&self.remembered, job);
        let seen = match (listed, remembered, told) {
            // The queue knows best of what it holds; the others add how it ended.
            (Some(listed), remembered, told) => {
                let more = remembered.or(told).filter(|more| more.state.is_over() == listed.state.is_over());
                match more {
                    Some(more) => listed.after(&more),
                    None => listed,
                }
            }
            (None, Some(remembered), told) => match told.filter(|told| told.state.is_over()) {
                Some(told) => remembered.after(&told),
                None => remembered,
            },
            // Out of the queue it is no longer running, whatever a late accounting says.
            (None, None, Some(told)) if told.state.is_over() => told,
            (None, None, _) => return None,
        };
        Some(match earlier {
            Some(earlier) => seen.after(earlier),
            None => seen,
        })
    }

    /// What a job that the queue answers without wrote of itself, in lines `start JOB TIME` and `end JOB TIME CODE`: how it
    /// ended, if it came so far.
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
            ..Sighting::new(State::Ended(end_of), Source::Job)
        })
    }

    /// Whether the queue answered.
    pub(crate) fn queue_answered(&self) -> bool {
        matches!(self.queue, Some(Ok(_)))
    }
}

/// The records of an answer: what stands in a line behind the mark, and what follows until the next.
fn records<'a>(answer: &'a [u8], mark: &[u8]) -> Vec<(&'a [u8], &'a [u8])> {
    // A mark begins its line.
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
            // The line's end before the next mark is the mark's.
            (record[..line].trim_ascii(), body.strip_suffix(b"\n").unwrap_or(body))
        })
        .collect()
}

type Line = fn(&str) -> Option<(String, Sighting)>;

fn answered(code: Option<&str>, text: &str, line: Line) -> Result<BTreeMap<String, Sighting>, String> {
    if code == Some("0") { Ok(by_job(text, line)) } else { Err(text.trim().to_string()) }
}

fn by_job(text: &str, line: Line) -> BTreeMap<String, Sighting> {
    text.lines().filter_map(line).collect()
}

/// All that is said of a job, of whose parts, array elements or components, there may be several: one that is not over
/// speaks for it, and else the worst.
fn parts(jobs: &BTreeMap<String, Sighting>, job: &str) -> Option<Sighting> {
    let is_part =
        |id: &str| id.strip_prefix(job).is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '+']));
    let rank = |sighting: &Sighting| match &sighting.state {
        State::Running => 100,
        State::Pending => 99,
        State::Ended(end) => *end as u32,
    };
    jobs.iter().filter(|(id, _)| is_part(id)).map(|(_, sighting)| sighting).max_by_key(|s| rank(s)).cloned()
}

/// A time in seconds since 1970, as SLURM_TIME_FORMAT asks for; what is unknown or not yet is none.
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
    // Of a job that waits these are guesses.
    let started = started.filter(|_| state != State::Pending);
    let ended = ended.filter(|_| state.is_over());
    let reason = if reason == "None" { String::new() } else { reason.to_string() };
    let exit_code = (state == State::Ended(super::End::Completed)).then_some(0);
    let source = Source::Squeue;
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
        source: Source::Scontrol,
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
        source: Source::Sacct,
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

/// `7:0` is code 7; `0:9` was ended by signal 9, which a shell calls 137.
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

    fn view(text: &str) -> View {
        View::read(format!("{text}\n{MARK} end\n").as_bytes(), MARK).unwrap()
    }

    #[test]
    fn the_queue_speaks_before_the_accounting() {
        let view = view(&format!(
            "{MARK} clock 1700000100\n{MARK} squeue 0\n7|7|RUNNING|None|1700000000|1700000010|1700003610|n[1-2]|tok\n\
             {MARK} sacct 0\n7|PENDING|0:0|1700000000|Unknown|Unknown|None assigned"
        ));
        let seen = view.sighting("7", None).unwrap();
        assert_eq!((seen.state, seen.started, seen.ended), (State::Running, Some(1_700_000_010), None));
        assert_eq!(seen.nodes.as_deref(), Some("n[1-2]"));
        assert_eq!(view.sighting("70", None), None);
    }

    #[test]
    fn what_left_the_queue_is_told_by_whoever_remembers_it() {
        let gone = format!("{MARK} squeue 0\n");
        let by_sacct = view(&format!(
            "{gone}\n{MARK} sacct 0\n7|CANCELLED by 1000|0:15|1700000000|1700000010|1700000020|n1"
        ));
        let seen = by_sacct.sighting("7", None).unwrap();
        assert_eq!((seen.state, seen.exit_code), (State::Ended(End::Cancelled), Some(143)));
        let by_scontrol = view(&format!(
            "{gone}\n{MARK} scontrol 0\nJobId=7 JobName=a b JobState=FAILED Reason=NonZeroExitCode ExitCode=7:0 \
             EndTime=1700000020 NodeList=n1\n{MARK} sacct 1\nSlurm accounting storage is disabled"
        ));
        let seen = by_scontrol.sighting("7", None).unwrap();
        assert_eq!((seen.state, seen.exit_code), (State::Ended(End::Failed), Some(7)));
        // The accounting lags: that is no end, and no other state either.
        let late = view(&format!("{gone}\n{MARK} sacct 0\n7|RUNNING|0:0|1700000000|1700000010|Unknown|n1"));
        assert_eq!(late.sighting("7", None), None);
        // A queue that does not answer says nothing.
        let mute =
            view(&format!("{MARK} squeue 1\nslurm_load_jobs error: Unable to contact slurm controller"));
        assert!(!mute.queue_answered());
        assert_eq!(mute.sighting("7", None), None);
    }

    #[test]
    fn parts_of_a_job_speak_for_it() {
        let view = view(&format!(
            "{MARK} squeue 0\n8|7_1|COMPLETED|None|1|1|1|n1|t\n9|7_2|FAILED|NonZeroExitCode|1|1|1|n1|t\n11|11+0|RUNNING|None|1|1|1|n1|t"
        ));
        assert_eq!(view.sighting("7", None).unwrap().state, State::Ended(End::Failed));
        assert_eq!(view.sighting("11", None).unwrap().state, State::Running);
    }

    #[test]
    fn a_cut_answer_is_refused() {
        let cut = format!("{MARK} squeue 0\n7|7|RUNNING");
        assert_eq!(View::read(cut.as_bytes(), MARK), Err(Unreadable::Cut));
        assert!(matches!(View::read(&[0x1f, 0x8b, 8, 0], MARK), Err(Unreadable::Packed(_))));
    }

    #[test]
    fn a_job_tells_of_itself_where_nobody_else_does() {
        let view = view(&format!(
            "{MARK} squeue 0\n\n{MARK} state 3\nstart 7 1700000000\nend 7 1700000050 9\nstart 70 1700000060"
        ));
        let own = view.own(3, "7").unwrap();
        assert_eq!((own.state, own.source, own.exit_code), (State::Ended(End::Failed), Source::Job, Some(9)));
        assert_eq!((own.started, own.ended), (Some(1_700_000_000), Some(1_700_000_050)));
        assert_eq!(view.own(3, "70"), None, "it has not ended");
        assert_eq!(view.own(4, "7"), None);
    }

    /// What the script finds of files, by real shells.
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
    fn a_job_has_its_own_log_whatever_other_numbers_names_have() {
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
        fn any_bytes_of_a_log_come_as_they_are(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut answer = format!("{MARK} clock 1\n\n{MARK} log 3 77 1000 600\n").into_bytes();
            answer.extend(&bytes);
            answer.extend(format!("\n{MARK} log 4 78 0 0\n\n{MARK} end\n").bytes());
            let view = View::read(&answer, MARK).unwrap();
            prop_assert_eq!(view.chunks.len(), 2);
            prop_assert_eq!(&view.chunks[0], &Chunk { key: 3, inode: 77, size: 1000, from: 600, bytes });
            prop_assert!(view.chunks[1].bytes.is_empty());
        }

        #[test]
        fn no_answer_makes_it_panic(answer in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = View::read(&answer, MARK);
            let mut marked = format!("{MARK} squeue 0\n").into_bytes();
            marked.extend(&answer);
            let _ = View::read(&marked, MARK);
        }
    }
}
