//! The lines that NCCL logs with `NCCL_DEBUG=INFO` about its communicators and the network between nodes.
//!
//! Every rank writes lines such as these, in which the id of a communicator is that of `commId`:
//!
//! ```text
//! n1:98:1251 [3] NCCL INFO ncclCommInitRankConfig comm 0x55f0 rank 3 nranks 8 [...] commId 0x5ae7 - Init START
//! n1:98:1251 [3] NCCL INFO Using network IB
//! n1:98:1251 [3] NCCL INFO NVLS multicast support is available on dev 3 (NVLS_NCHANNELS 16)
//! n1:98:1251 [3] NCCL INFO Channel 00/0 : 3[3] -> 8[0] [send] via NET/IB/0/GDRDMA
//! n1:98:1251 [3] NCCL INFO ncclCommInitRankConfig comm 0x55f0 rank 3 nranks 8 [...] commId 0x5ae7 - Init COMPLETE
//! ```
//!
//! NCCL before 2.14 prints neither `commId` nor `Init START`.

use super::failure::is_host;
use super::hit::Hit;
use super::nccl::{CommunicatorCount, Nccl, NcclNetwork, UnfinishedCommunicator};
use super::nccl_calls::NcclCallLines;
use super::text::label;
use crate::sorting::sorted;
use memchr::{memchr, memmem};
use std::collections::BTreeMap;

/// The markers of NCCL's lines.
pub(super) const MARKERS: &[&[u8]] = &[START, COMPLETE, NETWORK, PLUGIN, CONNECTION, NVLS];

const START: &[u8] = b"- Init START";
const COMPLETE: &[u8] = b"- Init COMPLETE";
const NETWORK: &[u8] = b"Using network ";
/// What NCCL prints instead of [`NETWORK`] since 2.27, before the network's name and ` to comm`.
const PLUGIN: &[u8] = b"Assigned NET plugin ";
const CONNECTION: &[u8] = b" via NET/";
const NVLS: &[u8] = b"NVLS multicast support is ";
const COMM_ID: &[u8] = b" commId 0x";

/// The most communicators with ids that are tracked. Later ones are not counted.
const MOST_COMMUNICATORS: usize = 8192;

/// The most ranks, over all communicators, that are remembered while they wait.
const MOST_WAITING: usize = 65_536;

/// The longest name of a host, in bytes, as Linux limits it.
pub(crate) const LONGEST_HOST: usize = 64;

/// The most hosts that are remembered.
const MOST_HOSTS: usize = 8192;

/// The most hosts of an unfinished communicator that are kept.
pub(crate) const MOST_LISTED_HOSTS: usize = 8;

/// The most sizes of communicators that are kept.
pub(crate) const MOST_SIZES: usize = 64;

/// The most unfinished communicators that are kept.
pub(crate) const MOST_UNFINISHED: usize = 8;

/// The most ranks that a list has.
pub(crate) const MOST_LISTED: usize = 1000;

/// The most networks that are kept.
pub(crate) const MOST_NETWORKS: usize = 8;

/// The longest name of a network, in bytes.
const LONGEST_NAME: usize = 40;

/// The most ranks of a communicator. A larger number is damage.
const MOST_RANKS: u64 = 1_000_000;

/// NCCL's lines found so far.
#[derive(Clone, Default)]
pub(super) struct NcclLines {
    /// The communicators that have an id, in the order of their ids.
    known: Vec<Communicator>,
    /// The number of waiting ranks of all communicators.
    waiting: usize,
    hosts: Hosts,
    sizes: Vec<CommunicatorCount>,
    networks: Vec<NcclNetwork>,
    nvls: Option<bool>,
    calls: NcclCallLines,
}

#[derive(Clone, Default)]
struct Communicator {
    id: u64,
    ranks: u32,
    is_initialized: bool,
    /// The ranks that started and did not finish, with the numbers of their hosts.
    waiting: BTreeMap<u32, Option<usize>>,
    /// Whether ranks that started were not remembered.
    has_forgotten: bool,
    /// The offset of the last start in the log.
    last_start: u64,
}

/// The names of hosts, each with a number.
#[derive(Clone, Default)]
struct Hosts {
    /// The names in alphabetical order, with their numbers.
    numbers: Vec<(String, usize)>,
}

impl Hosts {
    /// Returns the number of a host; none if there are too many.
    fn number(&mut self, name: &str) -> Option<usize> {
        let next = self.numbers.len();
        match self.numbers.binary_search_by(|(known, _)| known.as_str().cmp(name)) {
            Ok(place) => Some(self.numbers[place].1),
            Err(place) if next < MOST_HOSTS => {
                self.numbers.insert(place, (name.to_owned(), next));
                Some(next)
            }
            Err(_) => None,
        }
    }

    fn name(&self, number: usize) -> Option<&str> {
        self.numbers.iter().find(|(_, known)| *known == number).map(|(name, _)| name.as_str())
    }
}

impl NcclLines {
    /// Takes in the line of a marker at `offset`.
    pub(super) fn note(&mut self, hit: &Hit, marker: &[u8], offset: u64) {
        if marker == START || marker == COMPLETE {
            self.note_communicator(hit.before(), marker == COMPLETE, offset);
            return;
        }
        // Other programs write about networks, too.
        if !hit.is_whole() || memmem::rfind(hit.before(), b"NCCL").is_none() {
            return;
        }
        let line = hit.after();
        if marker == NVLS {
            if line.starts_with(b"not ") {
                self.nvls = Some(false);
            } else if line.starts_with(b"available") {
                self.nvls.get_or_insert(true);
            }
        } else if marker == CONNECTION {
            // `IB/0/GDRDMA`, `IB/0(3)/GDRDMA(PCI)/Shared` and `Socket/0`.
            let Some(end) = memchr(b'/', line) else { return };
            if let Some(network) = self.network(&line[..end]) {
                network.connections += 1;
                network.direct += u64::from(memmem::find(line, b"/GDRDMA").is_some());
            }
        } else {
            let end = memmem::find(line, b" to comm").unwrap_or(line.len());
            if let Some(network) = self.network(&line[..end]) {
                network.chosen += 1;
            }
        }
    }

    /// Takes in the line of a call.
    pub(super) fn note_call(&mut self, hit: &Hit) {
        self.calls.note(hit);
    }

    /// Takes in the start or the end of a rank's initialization.
    fn note_communicator(&mut self, before: &[u8], is_end: bool, offset: u64) {
        let Some(at) = memmem::rfind(before, b"comm 0x") else { return };
        let line = before[at..].trim_ascii_end();
        let (Some(rank), Some(ranks)) = (number(line, b" rank "), number(line, b" nranks ")) else { return };
        if rank >= ranks || ranks > MOST_RANKS {
            return;
        }
        // At most a million, so both fit.
        let (rank, ranks) = (rank as u32, ranks as u32);
        let Some(at) = memmem::rfind(line, COMM_ID) else {
            // Every communicator has a rank 0.
            if is_end && rank == 0 {
                self.count(ranks);
            }
            return;
        };
        let digits = std::str::from_utf8(&line[at + COMM_ID.len()..]).ok();
        let Some(id) = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) else { return };
        let place = match self.known.binary_search_by_key(&id, |known| known.id) {
            Ok(place) => place,
            Err(place) if self.known.len() < MOST_COMMUNICATORS => {
                self.known.insert(place, Communicator { id, ranks, ..Communicator::default() });
                place
            }
            Err(_) => return,
        };
        let known = &mut self.known[place];
        if known.ranks != ranks {
            return;
        }
        if is_end {
            self.waiting -= usize::from(known.waiting.remove(&rank).is_some());
            if !std::mem::replace(&mut known.is_initialized, true) {
                self.count(ranks);
            }
        } else {
            known.last_start = offset;
            if self.waiting < MOST_WAITING {
                let host = host(before).and_then(|host| self.hosts.number(host));
                self.waiting += usize::from(known.waiting.insert(rank, host).is_none());
            } else {
                known.has_forgotten |= !known.waiting.contains_key(&rank);
            }
        }
    }

    /// Counts a communicator of `ranks` ranks.
    fn count(&mut self, ranks: u32) {
        if let Some(size) = self.sizes.iter_mut().find(|size| size.ranks == ranks) {
            size.count += 1;
        } else if self.sizes.len() < MOST_SIZES {
            self.sizes.push(CommunicatorCount { ranks, count: 1 });
        }
    }

    /// Returns the network of this name; none if that is not a name, or if there are too many.
    fn network(&mut self, name: &[u8]) -> Option<&mut NcclNetwork> {
        let name = std::str::from_utf8(name.trim_ascii()).ok()?;
        let may_be_in_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
        if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(may_be_in_name) {
            return None;
        }
        let place = self.networks.iter().position(|network| network.name == name);
        let place = place.unwrap_or(self.networks.len());
        if place == self.networks.len() && place < MOST_NETWORKS {
            self.networks.push(NcclNetwork { name: name.to_owned(), ..NcclNetwork::default() });
        }
        self.networks.get_mut(place)
    }

    /// Returns what the lines say, or none without lines. `last_step` is the offset of the last step.
    pub(super) fn settle(self, last_step: Option<u64>) -> Option<Nccl> {
        let is_open = |known: &&Communicator| {
            !known.waiting.is_empty() && last_step.is_none_or(|step| known.last_start > step)
        };
        let open: Vec<&Communicator> = self.known.iter().filter(is_open).collect();
        let open =
            sorted(&open, |one, other| (other.ranks, one.last_start).cmp(&(one.ranks, other.last_start)));
        let open = open.into_iter().take(MOST_UNFINISHED);
        let unfinished = open.map(|communicator| communicator.unfinished(&self.hosts)).collect();
        let nccl = Nccl {
            communicators: sorted(&self.sizes, |one, other| one.ranks.cmp(&other.ranks)),
            unfinished,
            networks: self.networks,
            nvls: self.nvls,
            calls: self.calls.settle(),
        };
        (nccl != Nccl::default()).then_some(nccl)
    }
}

impl Communicator {
    fn unfinished(&self, hosts: &Hosts) -> UnfinishedCommunicator {
        let count = self.waiting.len();
        let mut missing = Vec::new();
        // If a rank finished, all others started.
        if !self.is_initialized && !self.has_forgotten && 4 * count >= 3 * self.ranks as usize {
            let is_missing = |rank: &u32| !self.waiting.contains_key(rank);
            missing.extend((0..self.ranks).filter(is_missing).take(MOST_LISTED));
        }
        let suspects =
            if self.is_initialized { self.hosts_of_waiting() } else { self.likely_hosts(&missing) };
        let mut names: Vec<String> = Vec::new();
        for name in suspects.into_iter().flatten().filter_map(|host| hosts.name(host)) {
            if names.len() < MOST_LISTED_HOSTS && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        UnfinishedCommunicator {
            ranks: self.ranks,
            waiting_count: count as u64,
            waiting: self.waiting.keys().copied().take(MOST_LISTED).collect(),
            missing,
            hosts: names,
        }
    }

    fn hosts_of_waiting(&self) -> Vec<Option<usize>> {
        self.waiting.values().copied().take(MOST_LISTED).collect()
    }

    /// Returns the hosts of missing ranks where the ranks around them reveal these. Nodes have consecutive ranks, equally many on
    /// each: between two hosts, a missing rank belongs to the one with fewer ranks than others.
    fn likely_hosts(&self, missing: &[u32]) -> Vec<Option<usize>> {
        let mut counts = BTreeMap::new();
        for host in self.waiting.values().flatten() {
            *counts.entry(*host).or_insert(0_u32) += 1;
        }
        let full = counts.values().copied().max().unwrap_or_default();
        let likely = |rank: &u32| {
            let below = self.waiting.range(..*rank).next_back().and_then(|(_, host)| *host);
            let above = self.waiting.range(*rank..).next().and_then(|(_, host)| *host);
            let is_short = |host: &usize| counts.get(host).is_some_and(|count| *count < full);
            match (below, above) {
                (Some(one), Some(other)) if one == other => Some(one),
                _ => match (below.filter(is_short), above.filter(is_short)) {
                    (Some(_), Some(_)) => None,
                    (one, other) => one.or(other),
                },
            }
        };
        missing.iter().map(likely).collect()
    }
}

/// Returns the host that wrote a line: `n1` of `n1:983:1261 [3] NCCL INFO`.
fn host(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(&line[..memmem::rfind(line, b" NCCL INFO")?]).ok()?;
    let (process, _) = line.rsplit_once(" [")?;
    let process = process.rsplit(' ').next()?;
    let (host, _) = process.split_once(':')?;
    (host.len() <= LONGEST_HOST && is_host(host)).then_some(host)
}

/// Returns the whole number behind `key`.
fn number(line: &[u8], key: &[u8]) -> Option<u64> {
    let at = memmem::find(line, key)?;
    label(&line[at + key.len()..]).map(|(value, _)| value)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::log::{Log, Parser, parse};
    use proptest::prelude::*;

    fn init(id: u64, rank: u32, ranks: u32, phase: &str) -> String {
        format!(
            "n{}:983:1261 [{}] NCCL INFO ncclCommInitRankConfig comm 0x55f01c18e490 rank {rank} nranks {ranks} cudaDev {} \
             nvmlDev 3 busId 59000 commId 0x{id:x} - Init {phase}\n",
            rank / 8,
            rank % 8,
            rank % 8
        )
    }

    fn initialized(id: u64, ranks: u32) -> String {
        let lines = |phase| (0..ranks).map(move |rank| init(id, rank, ranks, phase)).collect::<String>();
        lines("START") + &lines("COMPLETE")
    }

    pub(in super::super) fn connections(network: &str, number: usize) -> String {
        format!("n1:98:1251 [3] NCCL INFO Channel 00/0 : 3[3] -> 8[0] [send] via NET/{network}\n")
            .repeat(number)
    }

    pub(in super::super) fn nccl(log: &str) -> Nccl {
        parse(log.as_bytes()).nccl.unwrap_or_default()
    }

    const STEP: &str = "Training epoch 0, iteration 0/49 | train_step_timing in s: 12.39 |\n";

    #[test]
    fn communicators_are_counted_by_size() {
        let log = (0..16).map(|id| initialized(0x5ae7_7eb5_ea4e_c1ee + id, 8)).collect::<String>()
            + &(0..8).map(|id| initialized(id, 32)).collect::<String>()
            + "n1:98:1251 [3] NCCL INFO Using network IB\n"
            + "n1:98:1251 [3] NCCL INFO NVLS multicast support is available on dev 3 (NVLS_NCHANNELS 16)\n"
            + &connections("IB/0/GDRDMA", 3)
            + &connections("IB/1(3)/GDRDMA(PCI)/Shared", 1);
        let nccl = nccl(&log);
        let count = |ranks, count| CommunicatorCount { ranks, count };
        assert_eq!(nccl.communicators, [count(8, 16), count(32, 8)]);
        assert_eq!((nccl.unfinished.len(), nccl.uses_sockets()), (0, false));
        assert_eq!(
            nccl.notes(true),
            [
                "NCCL: 24 communicators (16 of 8 ranks, 8 of 32); network: IB with GPUDirect RDMA; NVLS available."
            ]
        );
    }

    #[test]
    fn a_rank_that_never_starts_is_named() {
        let log: String = (0..8).filter(|rank| *rank != 5).map(|rank| init(7, rank, 8, "START")).collect();
        let found = nccl(&log);
        assert_eq!(found.unfinished[0].missing, [5]);
        let told = "NCCL initialization didn't finish: rank 5 (likely on n0) of a communicator of 8 ranks never started.";
        assert_eq!(found.notes(false), [told]);
        assert!(found.notes(true).is_empty());
        // A step after the start shows that the run went on.
        assert_eq!(parse((log.clone() + STEP).as_bytes()).nccl, None);
        assert_eq!(nccl(&(STEP.to_owned() + &log)).unfinished.len(), 1);
    }

    #[test]
    fn ranks_that_do_not_finish_are_named() {
        let ends: String = (0..6).map(|rank| init(7, rank, 8, "COMPLETE")).collect();
        let log = (0..8).map(|rank| init(7, rank, 8, "START")).collect::<String>() + &ends;
        let notes = nccl(&log).notes(false);
        let told = "NCCL initialization didn't finish: ranks 6, 7 (on n0) of a communicator of 8 ranks started but didn't finish.";
        assert_eq!(notes[1], told);
    }

    #[test]
    fn the_hosts_of_missing_ranks_follow_from_the_ranks_around_them() {
        let hosts = |missing: &[u32]| {
            let started = (0..32).filter(|rank| !missing.contains(rank));
            let log: String = started.map(|rank| init(7, rank, 32, "START")).collect();
            nccl(&log).unfinished[0].hosts.join(" ")
        };
        assert_eq!(hosts(&[13]), "n1");
        assert_eq!(hosts(&[8]), "n1");
        assert_eq!(hosts(&[15]), "n1");
        assert_eq!(hosts(&[31]), "n3");
        assert_eq!(hosts(&[3, 21]), "n0 n2");
        // Each of the two hosts may lack it, or the node is not known at all.
        assert_eq!(hosts(&[3, 8, 13]), "n0 n1");
        assert_eq!(hosts(&[8, 9, 10, 11, 12, 13, 14, 15]), "");
        assert_eq!(host(b"5: n1:98:1251 [3] NCCL INFO comm"), Some("n1"));
        assert_eq!(host(b"localhost:98:1251 [3] NCCL INFO comm"), None);
        assert_eq!(host(b"NCCL INFO comm"), None);
    }

    #[test]
    fn a_few_torn_lines_are_no_hang() {
        let hang = |unfinished: u32| {
            let ends: String = (unfinished..128).map(|rank| init(7, rank, 128, "COMPLETE")).collect();
            let log = (0..128).map(|rank| init(7, rank, 128, "START")).collect::<String>() + &ends;
            parse(log.as_bytes()).hang().is_some()
        };
        assert_eq!([1, 2, 128].map(hang), [false, true, true]);
    }

    #[test]
    fn damage_is_not_counted() {
        for line in [
            "NCCL INFO comm 0x7f rank 8 nranks 8 commId 0x1 - Init COMPLETE\n",
            "NCCL INFO comm 0x7f rank 0 nranks 8 commId 0xzz - Init COMPLETE\n",
            "NCCL INFO comm 0x7f rank 0 nranks 99999999 commId 0x1 - Init COMPLETE\n",
            "- Init COMPLETE\n",
            "NCCL INFO Channel 00/0 : 3[3] -> 8[0] [send] via NET/I",
            "NCCL INFO Using network \x1b[0m\n",
            "NCCL INFO NVLS multicast support is maybe\n",
        ] {
            assert_eq!(parse(line.as_bytes()).nccl, None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            lines in prop::collection::vec((0..7_usize, 0..3_u64, 0..8_u32), 0..60), size in 1..400_usize,
        ) {
            let line = |(kind, id, rank): &(usize, u64, u32)| match kind {
                0 | 1 => init(*id, *rank, 8, "START"),
                2 => init(*id, *rank, 8, "COMPLETE"),
                3 => connections("IB/0/GDRDMA", 1),
                4 => connections("Socket/0", 1),
                5 => "n1:98:1251 [3] NCCL INFO Using network IB\n".to_owned(),
                _ => STEP.to_owned(),
            };
            let text: String = lines.iter().map(line).collect();
            let mut parser = Parser::new();
            text.as_bytes().chunks(size).for_each(|chunk| parser.feed(chunk));
            let (whole, pieces): (Log, Log) = (parse(text.as_bytes()), parser.finish());
            prop_assert_eq!(whole.nccl, pieces.nccl);
        }
    }
}
