//! Failures in a log, found by fixed words.
//!
//! A line is one event, even if several signatures match: the most specific one counts. Failures of one kind are one
//! entry with a count, because every rank reports a hang several times.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::hit::Hit;
use super::text::{excerpt, label};

/// The most ranks that a failure lists: as many as a store accepts.
const MOST_RANKS: usize = 1000;

/// The most ranks that a failure listed before version 4 of the parser.
const MOST_RANKS_OF_VERSION_3: usize = 64;

/// The most ranges of ranks that a sentence names.
const MOST_RANGES: usize = 16;

/// The most reporting ranks that a sentence names.
const MOST_NAMED: usize = 8;

/// The most characters of the first line that are kept.
const MOST_TEXT: usize = 320;

/// A kind of failure in a log, with its count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The number of lines that report it.
    pub count: u64,
    /// The number of the first of these lines, from 1.
    pub line: u64,
    /// The offset of the signature in the first of these lines, in bytes.
    pub offset: u64,
    /// The offset of the signature in the last of these lines, in bytes.
    pub last_offset: u64,
    /// The ranks that the lines name, at most 1,000.
    pub ranks: BTreeSet<u64>,
    /// The first line, shortened.
    pub text: String,
    /// Whether the log reports it after the last step, when it ended the run or only disturbed the shutdown.
    pub after_last_step: bool,
    /// The name of the file, if it is not the log itself but a file beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl Failure {
    /// Returns a sentence that names the ranks without a report of the timeout, out of `gpus` ranks. The other ranks may have
    /// waited for them. `parser_version` is the version that read the log.
    ///
    /// None if fewer than three in four ranks reported it: then the operation had fewer participants, or the job ended before
    /// the others reported.
    pub(crate) fn silence(&self, gpus: u32, parser_version: u32) -> Option<String> {
        let most = if parser_version < 4 { MOST_RANKS_OF_VERSION_3 } else { MOST_RANKS };
        let is_hang = self.kind == FailureKind::CollectiveTimeout && self.after_last_step;
        if !is_hang || self.ranks.len() >= most {
            return None;
        }
        let silent = self.silent_ranks(gpus.into());
        let count: u64 = silent.iter().map(|range| range.end() - range.start() + 1).sum();
        let mut named: Vec<String> = silent.iter().take(MOST_RANGES).map(in_words).collect();
        if silent.len() > MOST_RANGES {
            named.push("and others".to_owned());
        }
        let (noun, them) = if count == 1 { ("Rank", "it") } else { ("Ranks", "them") };
        (count > 0).then(|| {
            format!(
                "{noun} {} of {gpus} reported no timeout. The others may have waited for {them}: look at {them} first.",
                named.join(", ")
            )
        })
    }

    /// Returns which ranks the lines name, and the host of the first line: `rank 17 on node0003`, `ranks 0–4, 6`, `12 ranks`.
    /// Nothing if neither is known. `others` are all failures of the log, which may have the host of a single rank.
    pub(super) fn reporters(&self, others: &[Self]) -> String {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for rank in self.ranks.iter().copied() {
            match ranges.last_mut() {
                Some(last) if last.end().checked_add(1) == Some(rank) => *last = *last.start()..=rank,
                _ => ranges.push(rank..=rank),
            }
        }
        let numbers = || ranges.iter().map(in_words).collect::<Vec<_>>().join(", ");
        let host = host(&self.text);
        match (self.ranks.len(), self.ranks.first()) {
            (1, Some(rank)) => {
                let host = host.or_else(|| others.iter().find_map(|other| other.host_of(*rank)));
                host.map_or_else(|| format!("rank {rank}"), |host| format!("rank {rank} on {host}"))
            }
            (0, _) => host.map_or_else(String::new, |host| format!("on {host}")),
            (count, _) => {
                let first = host.map_or_else(String::new, |host| format!(", the first on {host}"));
                match count {
                    ..=MOST_NAMED => format!("ranks {}{first}", numbers()),
                    _ => format!("{count} ranks{first}"),
                }
            }
        }
    }

    /// Returns what the first line says about a broken connection: `HCA mlx5_5, peer 10.1.2.7, status 12`. Nothing if it
    /// doesn't say. NCCL prints `NET/IB: Got completion from peer 10.1.2.7<42321> with status=12 opcode=0 [...] hca mlx5_5`.
    pub(super) fn connection(&self) -> String {
        if self.kind != FailureKind::Nccl || !self.text.contains("Got completion") {
            return String::new();
        }
        let word = |opening: &str| {
            let (_, behind) = self.text.split_once(opening)?;
            let may_be_in_word = |sign: char| may_be_in_host(sign) || sign == ':';
            behind.split(|sign: char| !may_be_in_word(sign)).next().filter(|word| !word.is_empty())
        };
        let named = [("HCA", " hca "), ("peer", " from peer "), ("status", " with status=")];
        let named =
            named.into_iter().filter_map(|(what, opening)| Some(format!("{what} {}", word(opening)?)));
        named.collect::<Vec<_>>().join(", ")
    }

    /// Returns what to do about it, as sentences.
    pub(super) fn advice(&self) -> &'static str {
        match self.connection().is_empty() {
            true => self.kind.advice(),
            false => "Check this link and the network to the peer, or exclude both nodes, and run again.",
        }
    }

    /// Returns the host of a rank, if this is srun's report of its end: `srun: error: node0003: task 17: Exited`.
    fn host_of(&self, rank: u64) -> Option<&str> {
        let (host, task) = self.text.strip_prefix(SRUN)?.split_once(": task ")?;
        let (task, _) = task.split_once(':')?;
        (task.parse() == Ok(rank) && is_host(host)).then_some(host)
    }

    /// Returns the ranks from 0 below `world` that the lines don't name, if they name at least three in four of them.
    fn silent_ranks(&self, world: u64) -> Vec<RangeInclusive<u64>> {
        let mut silent = Vec::new();
        let is_of_world = self.ranks.last().is_some_and(|last| *last < world);
        if !is_of_world || 4 * (self.ranks.len() as u64) < 3 * world {
            return silent;
        }
        let mut next = 0;
        for rank in self.ranks.iter().copied().chain([world]) {
            if next < rank {
                silent.push(next..=rank - 1);
            }
            next = rank + 1;
        }
        silent
    }
}

/// Returns a range of ranks in words: `3`, `3, 4`, `3–7`.
pub(super) fn in_words(range: &RangeInclusive<u64>) -> String {
    match range.end() - range.start() {
        0 => range.start().to_string(),
        1 => format!("{}, {}", range.start(), range.end()),
        _ => format!("{}–{}", range.start(), range.end()),
    }
}

/// How srun's reports on tasks start.
const SRUN: &str = "srun: error: ";

/// Returns the host that a line names: at its start, as in `node0003: [rank17]: ...`, `17: node0003: ...` and
/// `node0003:3117:3325 [1] NCCL WARN ...`, or after a word that says so, as in `host=node0003`.
fn host(line: &str) -> Option<&str> {
    let (line, is_of_srun) = line.strip_prefix(SRUN).map_or((line, false), |rest| (rest, true));
    let text = match line.split_once(": ") {
        Some((label, text)) if label.bytes().all(|byte| byte.is_ascii_digit()) => text,
        _ => line,
    };
    // Programs start lines with their names, too: `python3: ...`.
    let precedes = |rest: &str| {
        is_of_srun || rest.trim_start().starts_with(|sign: char| sign == '[' || sign.is_ascii_digit())
    };
    let leading = text.split_once(':').filter(|(_, rest)| precedes(rest)).map(|(word, _)| word);
    let stated = ["host ", "host: ", "host=", "hostname: ", "hostname=", " on node "].into_iter();
    let stated = stated.filter_map(|opening| {
        let (_, behind) = line.split_once(opening)?;
        Some(behind.split(|sign: char| !may_be_in_host(sign)).next()?.trim_end_matches('.'))
    });
    leading.into_iter().chain(stated).find(|word| is_host(word))
}

fn may_be_in_host(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_')
}

/// Returns whether a word can be the name of a node: it starts with a letter, has a digit, and is not a device
/// or a rank.
pub(super) fn is_host(word: &str) -> bool {
    let stem = word.trim_end_matches(|sign: char| sign.is_ascii_digit());
    let is_device = ["rank", "gpu", "cuda", "task"].iter().any(|device| stem.eq_ignore_ascii_case(device));
    word.starts_with(|sign: char| sign.is_ascii_alphabetic())
        && word.contains(|sign: char| sign.is_ascii_digit())
        && word.chars().all(may_be_in_host)
        && !is_device
}

/// The kinds of failure. Causes come before their consequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// A GPU ran out of memory.
    OutOfMemory,
    /// A node ran out of memory and the system killed a process.
    HostOutOfMemory,
    /// The job did not request GPUs.
    NoGpus,
    /// Hugging Face rejected too many downloads at once.
    RateLimited,
    /// A file system is full.
    DiskFull,
    /// The overlap of tensor-parallel communication hung.
    UserBuffers,
    /// The exchange of tokens between experts hung.
    DeepEp,
    /// CUDA reported an error.
    Cuda,
    /// NCCL failed.
    Nccl,
    /// A collective did not finish in time.
    CollectiveTimeout,
    /// Slurm's time limit ended the job.
    TimeLimit,
    /// A node failed.
    NodeFailure,
    /// A more important job took the nodes.
    Preempted,
    /// A process crashed.
    Crash,
    /// The program reported an error.
    Exception,
    /// The job was cancelled.
    Cancelled,
    /// A task of the job ended with an error.
    TaskExit,
}

/// The signatures and their kinds, the most specific first. A line with a `None` signature is harmless.
pub(super) const SIGNATURES: &[(&[u8], Option<FailureKind>)] = &[
    (b"pip's dependency resolver", None),
    (b"destroy_process_group() was not called", None),
    (b"CUDA out of memory", Some(FailureKind::OutOfMemory)),
    (b"OutOfMemoryError", Some(FailureKind::OutOfMemory)),
    (b"CUDA error: out of memory", Some(FailureKind::OutOfMemory)),
    (b"oom_kill event", Some(FailureKind::HostOutOfMemory)),
    (b"oom-kill event", Some(FailureKind::HostOutOfMemory)),
    (b": Out Of Memory", Some(FailureKind::HostOutOfMemory)),
    (b"Cannot find GPU specification", Some(FailureKind::NoGpus)),
    (b"without GPU resources", Some(FailureKind::NoGpus)),
    (b"GPUs not found", Some(FailureKind::NoGpus)),
    (b"Too Many Requests", Some(FailureKind::RateLimited)),
    (b"HTTP 429", Some(FailureKind::RateLimited)),
    (b"No space left on device", Some(FailureKind::DiskFull)),
    (b"Disk quota exceeded", Some(FailureKind::DiskFull)),
    (b"expecting 1 got 0", Some(FailureKind::UserBuffers)),
    (b"DeepEP timeout", Some(FailureKind::DeepEp)),
    (b"DeepEP error: timeout", Some(FailureKind::DeepEp)),
    (b"Watchdog caught collective operation timeout", Some(FailureKind::CollectiveTimeout)),
    (b"failure detected by watchdog", Some(FailureKind::CollectiveTimeout)),
    (b"CUDA error: ", Some(FailureKind::Cuda)),
    (b"Got completion from peer", Some(FailureKind::Nccl)),
    (b"NCCL error", Some(FailureKind::Nccl)),
    (b"DUE TO TIME LIMIT", Some(FailureKind::TimeLimit)),
    (b"DUE TO NODE FAILURE", Some(FailureKind::NodeFailure)),
    (b"DUE TO PREEMPTION", Some(FailureKind::Preempted)),
    (b" CANCELLED AT ", Some(FailureKind::Cancelled)),
    (b"Segmentation fault", Some(FailureKind::Crash)),
    (b"(core dumped)", Some(FailureKind::Crash)),
    (b"srun: error: ", Some(FailureKind::TaskExit)),
    (b"Error: ", Some(FailureKind::Exception)),
];

impl FailureKind {
    /// Returns whether a hang can end in this: the other ranks give up, or somebody ends the job.
    pub(super) const fn can_follow_a_hang(self) -> bool {
        matches!(self, Self::CollectiveTimeout | Self::TimeLimit | Self::Cancelled | Self::TaskExit)
    }

    /// Returns what happened, as a clause after a colon.
    #[must_use]
    pub fn what(self) -> &'static str {
        match self {
            Self::OutOfMemory => "a GPU ran out of memory",
            Self::HostOutOfMemory => "a node ran out of memory",
            Self::NoGpus => "the job got no GPUs from Slurm",
            Self::RateLimited => "Hugging Face rejected too many downloads at once",
            Self::DiskFull => "a file system is full",
            Self::UserBuffers => "the overlap of tensor-parallel communication hung",
            Self::DeepEp => "the exchange between experts hung",
            Self::Cuda => "a GPU reported an error",
            Self::Nccl => "NCCL reported an error",
            Self::CollectiveTimeout => "a collective operation timed out",
            Self::TimeLimit => "the job hit its time limit",
            Self::NodeFailure => "a node failed",
            Self::Preempted => "the job was preempted",
            Self::Crash => "a process crashed",
            Self::Exception => "the program reported an error",
            Self::Cancelled => "the job was cancelled",
            Self::TaskExit => "a task ended with an error",
        }
    }

    /// Returns what to do about it, as sentences.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::OutOfMemory => {
                "Lower the memory that a GPU needs: a smaller micro batch, higher TP, PP or CP, recomputation, FSDP or \
                 more GPUs."
            }
            Self::HostOutOfMemory => {
                "Request all memory of the nodes from Slurm (--mem=0), or use fewer data workers."
            }
            Self::NoGpus => "Set the GPUs per node (SBATCH_GPUS_PER_NODE or --gres).",
            Self::RateLimited => "Wait, or download the tokenizer before the job and set HF_HUB_OFFLINE=1.",
            Self::DiskFull => "Free space for checkpoints and logs, and run again.",
            Self::UserBuffers => "Look for a hung GPU, or run again without tensor-parallel overlap.",
            Self::DeepEp | Self::CollectiveTimeout => {
                "Find the missing or hung rank, exclude its node, and run again."
            }
            Self::Cuda => "Exclude the node of the first rank that reports it, and run again.",
            Self::Nccl => "Check the network and the first rank that reports it, and run again.",
            Self::TimeLimit => "Request more time, and run again.",
            Self::NodeFailure => "Exclude the node, and run again.",
            Self::Preempted | Self::Cancelled => "Submit it again.",
            Self::Crash | Self::Exception | Self::TaskExit => "Read the log from this line on.",
        }
    }
}

/// The failures of a log while it is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures {
    /// One for each kind, in the order in which they came.
    pub(super) noted: Vec<Failure>,
    pub(super) harmless: u64,
    /// The line that was looked at last: a line counts once.
    line: u64,
}

impl Failures {
    /// Takes in the line of a hit at `offset`, the `line`th of the log.
    pub(super) fn note(&mut self, hit: &Hit, line: u64, offset: u64) {
        if self.line == line {
            return;
        }
        self.line = line;
        let text = hit.line();
        let told = SIGNATURES.iter().find_map(|(words, kind)| Some((memmem::find(text, words)?, *kind)));
        let Some((at, Some(kind))) = told else {
            self.harmless += 1;
            return;
        };
        if !self.noted.iter().any(|known| known.kind == kind) {
            self.noted.push(Failure {
                kind,
                count: 0,
                line,
                offset,
                last_offset: offset,
                ranks: BTreeSet::new(),
                // A long line is shown from shortly before the words.
                text: excerpt(&text[at.saturating_sub(MOST_TEXT / 2)..], MOST_TEXT),
                after_last_step: false,
                file: None,
            });
        }
        for known in self.noted.iter_mut().filter(|known| known.kind == kind) {
            known.count += 1;
            known.last_offset = offset;
            if known.ranks.len() < MOST_RANKS {
                known.ranks.extend(rank(text));
            }
        }
    }
}

/// The rank that a line comes from: `[rank368]:...`, `[Rank 368] ...`, or srun's `368: ...`.
fn rank(line: &[u8]) -> Option<u64> {
    let bracketed = [&b"[rank"[..], b"[Rank "]
        .iter()
        .find_map(|opening| memmem::find(line, opening).and_then(|at| label(&line[at + opening.len()..])));
    let labelled = || label(line).filter(|(_, rest)| rest.starts_with(b": "));
    bracketed.or_else(labelled).map(|(rank, _)| rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::parse;

    /// The lines of the 25.12 document's troubleshooting section.
    const HANG: &[u8] = b"[rank368]:[E808 04:21:41.160918398 ProcessGroupNCCL.cpp:655] [Rank 368] Watchdog caught \
        collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, \
        Timeout(ms)=600000) ran for 600001 milliseconds before timing out.\n\
        [rank368]:[E808 04:21:41.161005534 ProcessGroupNCCL.cpp:2299] [PG ID 0 PG GUID 0(default_pg) Rank 368] \
        failure detected by watchdog at work sequence id: 5 PG status: last enqueued work: 5, last completed work: 4\n";

    #[test]
    fn a_hang_is_one_failure_however_often_it_is_told() {
        let other = String::from_utf8_lossy(HANG).replace("368", "12");
        let log = parse(&[b"hello\n", HANG, other.as_bytes()].concat());
        let [hang] = log.failures.as_slice() else { panic!("{:?}", log.failures) };
        assert_eq!((hang.kind, hang.count, hang.line), (FailureKind::CollectiveTimeout, 4, 2));
        assert_eq!(hang.ranks, BTreeSet::from([12, 368]));
        assert!(hang.text.starts_with("[rank368]:[E808"));
        assert!(hang.after_last_step);
    }

    #[test]
    fn the_reporting_ranks_and_their_host_are_named() {
        let told = |text: &str| {
            let log = parse(text.as_bytes());
            log.failures[0].reporters(&log.failures)
        };
        let hang = String::from_utf8_lossy(HANG);
        let of = |rank: u64| hang.replace("368", &rank.to_string());
        assert_eq!(told(&hang), "rank 368");
        assert_eq!(told(&of(17).replace("[rank17]:[", "node0003: [rank17]:[")), "rank 17 on node0003");
        assert_eq!(told(&of(17).replace("[rank17]:[", "17: node0003: [rank17]:[")), "rank 17 on node0003");
        let exit = |task: &str| format!("srun: error: node0003: {task}: Exited with exit code 1\n");
        assert_eq!(told(&(of(17) + &exit("task 17"))), "rank 17 on node0003");
        assert_eq!(told(&(of(17) + &exit("task 18"))), "rank 17");
        assert_eq!(told(&(of(17) + &exit("tasks 16-23"))), "rank 17");
        assert_eq!(told(&exit("task 17")), "on node0003");
        assert_eq!(
            told("node0003:3117:3325 [1] NCCL WARN NCCL error: remote process exited\n"),
            "on node0003"
        );
        let all = |ranks: &[u64]| ranks.iter().map(|rank| of(*rank)).collect::<String>();
        assert_eq!(told(&all(&[6, 0, 1, 2, 3, 4])), "ranks 0–4, 6");
        assert_eq!(told(&format!("node0003: {}", all(&[3, 9]))), "ranks 3, 9, the first on node0003");
        assert_eq!(told(&all(&[0, 2, 4, 6, 8, 10, 12, 14, 16])), "9 ranks");
        assert_eq!(told("[rank0]: ValueError: bad\n"), "rank 0");
        for (line, named) in [
            ("RuntimeError: timed out (host=node0003.cluster, rank 17)", Some("node0003.cluster")),
            ("Error: lost contact with worker on node gpu-12.", Some("gpu-12")),
            ("python3: Error: bad", None),
            ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED ***", None),
            ("rank17: Error: bad", None),
            ("cuda0: Error: bad", None),
            ("Error: out of memory on H100", None),
            ("", None),
        ] {
            assert_eq!(host(line), named, "{line}");
        }
    }

    #[test]
    fn a_broken_connection_of_nccl_has_its_host_hca_and_peer() {
        let completion = "NET/IB: Got completion from peer 10.1.2.7<42321> with status=12 opcode=0 len=0 vendor err 129 \
                          (Recv) hca mlx5_5";
        let error =
            "[rank21]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2251\n";
        let of = |lines: &str| {
            let log = parse(lines.as_bytes());
            let failure = log.failures[0].clone();
            (failure.kind, failure.reporters(&log.failures), failure.connection(), failure.advice())
        };
        let warning = format!("node003:77123:77901 [5] transport/net_ib.cc:1295 NCCL WARN {completion}\n");
        let link = "HCA mlx5_5, peer 10.1.2.7, status 12".to_owned();
        let advice = "Check this link and the network to the peer, or exclude both nodes, and run again.";
        let named = (FailureKind::Nccl, "rank 21 on node003".to_owned(), link.clone(), advice);
        assert_eq!(of(&(warning + error)), named);
        let unnamed = (FailureKind::Nccl, "rank 21".to_owned(), link, advice);
        assert_eq!(of(&format!("[rank21]: {completion}\n{error}")), unnamed);
        // Without such a line, and with a torn one.
        let (_, _, none, usual) = of(error);
        assert_eq!((none.as_str(), usual), ("", FailureKind::Nccl.advice()));
        assert_eq!(of("NET/IB: Got completion from peer <").2, "");
    }

    #[test]
    fn the_ranks_that_reported_no_timeout_are_named() {
        let told = |ranks: &[u64], gpus: u32, version: u32| {
            let lines =
                ranks.iter().map(|rank| String::from_utf8_lossy(HANG).replace("368", &rank.to_string()));
            let log = parse(lines.collect::<String>().as_bytes());
            log.failures[0].silence(gpus, version)
        };
        assert_eq!(
            told(&[0, 1, 2, 3, 4, 6, 7], 8, 4).as_deref(),
            Some("Rank 5 of 8 reported no timeout. The others may have waited for it: look at it first.")
        );
        let several = told(&[2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15], 16, 4).unwrap();
        assert!(several.starts_with("Ranks 0, 1, 6, 7 of 16 reported no timeout."), "{several}");
        let most: Vec<u64> = (0..100).filter(|rank| rank % 4 != 1).collect();
        assert!(told(&most, 100, 4).unwrap().contains("61, and others of 100 "));
        // All of them, few of them, or ranks that the job does not have.
        for (ranks, gpus) in [(&[0, 1][..], 2), (&[1, 2, 3, 4, 5][..], 8), (&[0, 1, 2, 9][..], 4)] {
            assert_eq!(told(ranks, gpus, 4), None, "{ranks:?}");
        }
        // Version 3 listed at most 64 ranks.
        let many: Vec<u64> = (0..64).collect();
        assert!(told(&many, 65, 4).is_some_and(|told| told.starts_with("Rank 64 of 65")));
        assert_eq!(told(&many, 65, 3), None);
    }

    #[test]
    fn the_most_specific_words_of_a_line_count() {
        let kinds =
            |text: &str| parse(text.as_bytes()).failures.iter().map(|one| one.kind).collect::<Vec<_>>();
        for (line, kind) in [
            ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", FailureKind::OutOfMemory),
            ("RuntimeError: CUDA error: an illegal memory access", FailureKind::Cuda),
            (
                "HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co",
                FailureKind::RateLimited,
            ),
            ("userbuffers.cu: [3] Reducescatter: SM 1 expecting 1 got 0", FailureKind::UserBuffers),
            ("DeepEP timeout check failed: rank = 3", FailureKind::DeepEp),
            (
                "slurmstepd: error: *** STEP 123.0 ON n1 CANCELLED AT 2025-01-01T00:00:00 DUE TO TIME LIMIT ***",
                FailureKind::TimeLimit,
            ),
            (
                "slurmstepd: error: *** JOB 123 ON n1 CANCELLED AT 2025-01-01T00:00:00 ***",
                FailureKind::Cancelled,
            ),
            ("sbatch: error: Cannot submit to this partition without GPU resources", FailureKind::NoGpus),
            ("srun: error: n1: task 3: Exited with exit code 1", FailureKind::TaskExit),
            ("[rank0]: ValueError: bad", FailureKind::Exception),
        ] {
            assert_eq!(kinds(line), [kind], "{line}");
        }
    }

    #[test]
    fn the_installers_complaint_is_harmless() {
        let log = parse(
            b"ERROR: pip's dependency resolver does not currently take into account all the packages that are \
              installed. tritonclient 2.51.0 requires urllib3>=2.0.7, but you have urllib3 1.26.20\n",
        );
        assert!(log.failures.is_empty());
        assert_eq!(log.harmless, 1);
    }

    #[test]
    fn ranks_are_read_from_brackets_and_from_sruns_labels() {
        assert_eq!(rank(b"[rank7]: x"), Some(7));
        assert_eq!(rank(b" 12: x"), Some(12));
        assert_eq!(rank(b"12 x"), None);
    }
}
