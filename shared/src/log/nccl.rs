//! What NCCL reports with `NCCL_DEBUG=INFO`, in words: its communicators, the network between nodes, and its calls.

use super::failure::in_words;
use super::nccl_calls::NcclCalls;
use crate::units::group_digits;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// NCCL's name of TCP sockets.
const SOCKET: &str = "Socket";

/// An initialization counts as hung if at least one in 64 ranks lacks its closing line. Fewer lines may be
/// missing because they were torn.
const TORN: u64 = 64;

/// The most sizes of communicators that a sentence names.
const NAMED_SIZES: usize = 6;

/// The most ranges of ranks that a sentence names.
const NAMED_RANGES: usize = 16;

/// NCCL's communicators, networks and calls, according to its lines in a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nccl {
    /// How many communicators at least one rank initialized, by size, the smallest first.
    pub communicators: Vec<CommunicatorCount>,
    /// Communicators that were started after the last step and that some ranks did not finish; the largest first, at
    /// most 8.
    pub unfinished: Vec<UnfinishedCommunicator>,
    /// The networks between nodes, in the order of their first lines.
    pub networks: Vec<NcclNetwork>,
    /// Whether the switches can reduce and multicast (NVLink SHARP), on every GPU whose line is in the log.
    pub nvls: Option<bool>,
    /// The calls of one rank; none if the log has no trace (`NCCL_DEBUG_SUBSYS=COLL`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<NcclCalls>,
}

/// The number of communicators of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommunicatorCount {
    /// The size, in ranks.
    pub ranks: u32,
    /// The number of communicators.
    pub count: u64,
}

/// A communicator whose initialization did not end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnfinishedCommunicator {
    /// The size, in ranks.
    pub ranks: u32,
    /// The number of ranks that started and did not finish.
    pub waiting_count: u64,
    /// These ranks, numbered within the communicator, at most 1,000.
    pub waiting: Vec<u32>,
    /// The ranks that never started, at most 1,000. Empty if fewer than three in four ranks did, because the log may
    /// lack their lines.
    pub missing: Vec<u32>,
    /// The hosts on which the missing ranks likely run, judged by the ranks around them; if none is missing, and others finished,
    /// the hosts of the waiting ranks. At most 8.
    pub hosts: Vec<String>,
}

/// A network between nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NcclNetwork {
    /// NCCL's name: `IB`, `Socket`, or that of a plugin, such as `AWS Libfabric`.
    pub name: String,
    /// How often a rank chose it.
    pub chosen: u64,
    /// The number of connections, counted at both ends.
    pub connections: u64,
    /// How many of the connections use GPUDirect RDMA.
    pub direct: u64,
}

impl Nccl {
    /// Returns whether most connections between nodes are TCP sockets. On a single node, NCCL may choose sockets without
    /// using them.
    #[must_use]
    pub fn uses_sockets(&self) -> bool {
        self.main_network().is_some_and(|network| network.name == SOCKET && network.connections > 0)
    }

    /// Returns the network with the most connections. A torn line may have a wrong name, but this is rare.
    pub(crate) fn main_network(&self) -> Option<&NcclNetwork> {
        self.networks.iter().max_by_key(|network| (network.connections, network.chosen))
    }

    /// Returns the communicators, the network, what is wrong with them, and the calls, as sentences. `is_over` leaves out unfinished
    /// communicators, because the run is complete or its score names them.
    pub(crate) fn notes(&self, is_over: bool) -> Vec<String> {
        let mut notes: Vec<String> = self.summary().into_iter().collect();
        let all: u64 = self.networks.iter().map(|network| network.connections).fold(0, u64::saturating_add);
        for network in self.networks.iter().filter(|network| network.connections > 0) {
            if network.name == SOCKET {
                let what = match network.connections == all {
                    true => "the nodes".to_owned(),
                    false => format!("{} of {} connections", count(network.connections), count(all)),
                };
                notes.push(format!(
                    "NCCL uses TCP sockets for {what}, not InfiniBand or another RDMA network: expect slow steps between \
                     nodes. Check NCCL_NET and NCCL_IB_DISABLE, and that the container has the network's devices and \
                     plugin."
                ));
            } else if network.name.starts_with("IB") && network.direct == 0 {
                notes.push(
                    "NCCL doesn't use GPUDirect RDMA, so data between nodes passes through host memory. Check that \
                     nvidia-peermem is loaded or DMA-BUF works, and NCCL_NET_GDR_LEVEL."
                        .to_owned(),
                );
            }
        }
        notes.extend(self.calls.as_ref().map(NcclCalls::sentence));
        let unfinished = self.unfinished.first().filter(|_| !is_over);
        notes.extend(unfinished.map(|unfinished| format!("{}.", unfinished.what())));
        notes
    }

    /// Returns the number of communicators of each size: `16 of 8 ranks, 8 of 32`. Nothing if there are none.
    pub(crate) fn sizes(&self) -> String {
        let words = |(place, size): (usize, &CommunicatorCount)| {
            let noun = if place == 0 { " ranks" } else { "" };
            format!("{} of {}{noun}", count(size.count), count(size.ranks.into()))
        };
        let mut named: Vec<String> =
            self.communicators.iter().enumerate().take(NAMED_SIZES).map(words).collect();
        if self.communicators.len() > NAMED_SIZES {
            named.push("and others".to_owned());
        }
        named.join(", ")
    }

    /// Returns the communicators, the network and NVLS in one sentence; none if all are unknown.
    fn summary(&self) -> Option<String> {
        let mut parts = Vec::new();
        let total: u64 = self.communicators.iter().map(|size| size.count).fold(0, u64::saturating_add);
        match self.communicators.as_slice() {
            [] => {}
            [one] => parts.push(format!(
                "{} {} of {} ranks",
                count(total),
                if total == 1 { "communicator" } else { "communicators" },
                count(one.ranks.into())
            )),
            _ => parts.push(format!("{} communicators ({})", count(total), self.sizes())),
        }
        parts.extend(self.main_network().map(|network| format!("network: {}", network.words())));
        parts.extend(
            self.nvls.map(|nvls| if nvls { "NVLS available" } else { "NVLS not available" }.to_owned()),
        );
        (!parts.is_empty()).then(|| format!("NCCL: {}.", parts.join("; ")))
    }
}

impl NcclNetwork {
    /// Returns its name for people.
    pub(crate) fn title(&self) -> &str {
        if self.name == SOCKET { "TCP sockets" } else { &self.name }
    }

    /// Returns the network as part of a sentence: `IB with GPUDirect RDMA`.
    fn words(&self) -> String {
        let (name, Self { connections, direct, .. }) = (self.title(), self);
        match (*connections, *direct) {
            _ if self.name == SOCKET => name.to_owned(),
            (0, _) => name.to_owned(),
            (_, 0) => format!("{name} without GPUDirect RDMA"),
            (all, some) if some < all => {
                format!("{name} with GPUDirect RDMA on {} of {} connections", count(some), count(all))
            }
            _ => format!("{name} with GPUDirect RDMA"),
        }
    }
}

impl UnfinishedCommunicator {
    /// Returns whether its initialization hung. A few missing lines don't count, because lines may be
    /// damaged.
    pub(super) fn is_hang(&self) -> bool {
        !self.missing.is_empty() || self.waiting_count.saturating_mul(TORN) >= self.ranks.into()
    }

    /// Returns which ranks didn't start or finish, and where they likely run, as a sentence without its full stop.
    pub(super) fn what(&self) -> String {
        let (ranks, did, on) = match self.missing.as_slice() {
            [] => (&self.waiting, "started but didn't finish", "on"),
            _ => (&self.missing, "never started", "likely on"),
        };
        let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
        let hosts = match self.hosts.as_slice() {
            [] => String::new(),
            hosts => format!(" ({on} {})", hosts.join(", ")),
        };
        format!(
            "NCCL initialization didn't finish: {noun} {}{hosts} of a communicator of {} ranks {did}",
            words(ranks),
            count(self.ranks.into())
        )
    }

    /// Returns what to do about it, as a sentence.
    pub(super) fn advice(&self) -> &'static str {
        match self.missing.as_slice() {
            [] => "Check the network between the nodes (NCCL_SOCKET_IFNAME, NCCL_IB_HCA), and run again.",
            [_] => "Check its node and that node's network, exclude the node, and run again.",
            _ => "Check their nodes and network, exclude the nodes, and run again.",
        }
    }
}

fn count(number: u64) -> String {
    group_digits(number as f64)
}

/// Returns ascending ranks in words: `0–4, 6`.
fn words(ranks: &[u32]) -> String {
    let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
    for rank in ranks.iter().map(|rank| u64::from(*rank)) {
        match ranges.last_mut() {
            Some(last) if last.end() + 1 == rank => *last = *last.start()..=rank,
            _ => ranges.push(rank..=rank),
        }
    }
    let mut named: Vec<String> = ranges.iter().take(NAMED_RANGES).map(in_words).collect();
    if ranges.len() > NAMED_RANGES {
        named.push("and others".to_owned());
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use crate::log::nccl_lines::tests::{connections, nccl};

    #[test]
    fn older_lines_without_an_id_count_by_rank_0() {
        let line = |rank: u32| {
            format!(
                "n1:42:97 [{rank}] NCCL INFO comm 0x7f2b rank {rank} nranks 2 cudaDev {rank} busId 18000 - Init COMPLETE\n"
            )
        };
        let nccl = nccl(&[line(1), line(0), line(0), line(1)].concat());
        assert_eq!(nccl.notes(true), ["NCCL: 2 communicators of 2 ranks."]);
    }

    #[test]
    fn sockets_alarm_if_they_connect_nodes() {
        let chosen = "n1:98:1251 [3] NCCL INFO Using network Socket\n";
        let chosen_only = nccl(chosen);
        assert!(!chosen_only.uses_sockets());
        assert_eq!(chosen_only.notes(true), ["NCCL: network: TCP sockets."]);

        let used = nccl(&(chosen.to_owned() + &connections("Socket/0", 4)));
        assert!(used.uses_sockets());
        let notes = used.notes(true);
        assert!(notes[1].starts_with("NCCL uses TCP sockets for the nodes, not InfiniBand"), "{notes:?}");

        let mixed = nccl(&(connections("IB/0/GDRDMA", 6) + &connections("Socket/0", 2)));
        let notes = mixed.notes(true);
        assert!(notes[0].contains("network: IB with GPUDirect RDMA."), "{notes:?}");
        assert!(notes[1].contains("for 2 of 8 connections"), "{notes:?}");
    }

    #[test]
    fn infiniband_without_gpudirect_is_noted_and_plugins_have_names() {
        let notes = nccl(&connections("IB/0", 2)).notes(true);
        assert!(notes[0].contains("IB without GPUDirect RDMA"), "{notes:?}");
        assert!(notes[1].contains("passes through host memory"), "{notes:?}");
        let plugin = nccl("n1:9:12 [0] NCCL INFO Assigned NET plugin AWS Libfabric to comm\n");
        assert_eq!(plugin.notes(true), ["NCCL: network: AWS Libfabric."]);
    }
}
