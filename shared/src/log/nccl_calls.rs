//! The calls that NCCL traces with `NCCL_DEBUG=INFO` and `NCCL_DEBUG_SUBSYS=COLL`, counted by operation and size.
//!
//! Every rank writes a line for each call. `datatype` is a number of `ncclDataType_t`:
//!
//! ```text
//! n1:98:1251 [3] NCCL INFO AllReduce: opCount 2f sendbuff 0x7f recvbuff 0x7f count 1048576 datatype 7 op 0 root 0 comm 0x55 [nranks=8] stream 0x55
//! ```
//!
//! Logs have the lines of one rank, of a node's, or of all, so only the calls of one rank are counted.

use super::hit::Hit;
use super::text::label;
use crate::choices::choices;
use crate::sorting::sorted;
use crate::units::{group_digits, group_three_digits};
use memchr::{memchr, memmem, memrchr};
use serde::{Deserialize, Serialize};

/// What each line of a trace has.
pub(super) const MARKER: &[u8] = b": opCount ";

/// The most kinds of calls that are kept. Calls of further kinds count in the totals only.
pub(crate) const MOST_CALL_KINDS: usize = 64;

/// The kinds of calls that a sentence names.
const NAMED_KINDS: usize = 5;

/// The longest name of a process or a device, in bytes.
const LONGEST_RANK: usize = 100;

/// The most bytes of a call: 16 TiB. A larger number is damage.
const MOST_BYTES: u64 = 1 << 44;

/// The bytes of an element of each `ncclDataType_t`, from `ncclInt8` to `ncclFloat8e5m2`.
const ELEMENT_BYTES: [u64; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];

choices! {
    /// An operation of NCCL, by the name in its trace.
    #[non_exhaustive]
    NcclOperation {
        /// Sums over all ranks, for all ranks.
        AllReduce "AllReduce",
        /// Collects the parts of all ranks, for all ranks.
        AllGather "AllGather",
        /// Sums over all ranks, one part for each.
        ReduceScatter "ReduceScatter",
        /// Sends from one rank to all.
        Broadcast "Broadcast",
        /// Sums over all ranks, for one of them.
        Reduce "Reduce",
        /// Sends a part from every rank to every other one.
        AllToAll "AlltoAll",
        /// Collects the parts of all ranks, for one of them.
        Gather "Gather",
        /// Sends a part from one rank to each.
        Scatter "Scatter",
        /// Sends to another rank.
        Send "Send",
        /// Receives from another rank.
        Recv "Recv",
    }
}

/// The traced calls of one rank: the first whose line is in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NcclCalls {
    /// The number of calls.
    pub count: u64,
    /// The bytes of all calls.
    pub bytes: u64,
    /// The calls by operation and size, most bytes first; at most 64 kinds, so the totals may be larger.
    pub kinds: Vec<NcclCallKind>,
}

/// The calls of one operation with similar sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NcclCallKind {
    /// The operation.
    pub operation: NcclOperation,
    /// The largest size of a call of this kind, in bytes: a power of two. Calls of at most half of it are another
    /// kind. The size is `count` elements, which for AllGather and ReduceScatter are the part of one rank.
    pub up_to_bytes: u64,
    /// The number of calls.
    pub count: u64,
    /// The bytes of these calls.
    pub bytes: u64,
}

impl NcclCalls {
    /// Adds a call.
    fn add(&mut self, operation: NcclOperation, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let up_to_bytes = bytes.next_power_of_two();
        let is_same =
            |kind: &&mut NcclCallKind| kind.operation == operation && kind.up_to_bytes == up_to_bytes;
        if let Some(kind) = self.kinds.iter_mut().find(is_same) {
            kind.count += 1;
            kind.bytes = kind.bytes.saturating_add(bytes);
        } else if self.kinds.len() < MOST_CALL_KINDS {
            self.kinds.push(NcclCallKind { operation, up_to_bytes, count: 1, bytes });
        }
    }

    /// Returns the calls and their largest kinds by bytes as a sentence.
    pub(super) fn sentence(&self) -> String {
        let kind = |kind: &NcclCallKind| {
            format!(
                "{} up to {} ({}, {})",
                kind.operation.title(),
                size(kind.up_to_bytes),
                calls(kind.count),
                size(kind.bytes)
            )
        };
        let mut largest: Vec<String> = self.kinds.iter().take(NAMED_KINDS).map(kind).collect();
        if self.kinds.len() > NAMED_KINDS {
            largest.push("and others".to_owned());
        }
        format!(
            "NCCL's trace of one rank: {} with {}, most in {}.",
            calls(self.count),
            size(self.bytes),
            largest.join(", ")
        )
    }
}

fn calls(count: u64) -> String {
    format!("{} {}", group_digits(count as f64), if count == 1 { "call" } else { "calls" })
}

/// Returns bytes with three significant digits and their unit: `512 B`, `16 MiB`, `1.21 TiB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let place = (bytes.max(1).ilog2() as usize / 10).min(UNITS.len() - 1);
    format!("{} {}", group_three_digits(bytes as f64 / (1_u64 << (10 * place)) as f64), UNITS[place])
}

/// The calls found so far.
#[derive(Clone, Default)]
pub(super) struct NcclCallLines {
    /// The process and the device of the rank whose calls are counted.
    rank: Option<(Vec<u8>, Vec<u8>)>,
    calls: NcclCalls,
}

impl NcclCallLines {
    /// Takes in the line of a call.
    pub(super) fn note(&mut self, hit: &Hit) {
        let Some((process, device, operation)) = caller(hit.before()) else { return };
        let is_other = |(known, on): &(Vec<u8>, Vec<u8>)| known != process || on != device;
        if self.rank.as_ref().is_some_and(is_other) {
            return;
        }
        let operation = NcclOperation::ALL.into_iter().find(|known| known.id().as_bytes() == operation);
        let (Some(operation), Some(bytes)) = (operation, bytes(hit.after())) else { return };
        self.rank.get_or_insert_with(|| (process.to_vec(), device.to_vec()));
        self.calls.add(operation, bytes);
    }

    /// Returns the calls; none if the log has no readable line of one.
    pub(super) fn settle(self) -> Option<NcclCalls> {
        let kinds = sorted(&self.calls.kinds, |one, other| other.bytes.cmp(&one.bytes));
        (self.calls.count > 0).then_some(NcclCalls { kinds, ..self.calls })
    }
}

/// Returns the process, the device and the operation of a call, from the line up to the marker: `n1:98`, `[3]` and
/// `AllReduce` of `n1:98:1251 [3] NCCL INFO AllReduce`. Threads of a process share a rank.
fn caller(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (line, operation) = split_last(line, b' ')?;
    let (line, device) = split_last(line.strip_suffix(b" NCCL INFO")?, b' ')?;
    let thread = split_last(line, b' ').map_or(line, |(_, last)| last);
    let (process, _) = split_last(thread, b':')?;
    let is_name = memchr(b':', process).is_some() && process.len().max(device.len()) <= LONGEST_RANK;
    is_name.then_some((process, device, operation))
}

/// Returns what is before and after the last `separator`.
fn split_last(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = memrchr(separator, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the bytes of a call, from the rest of its line.
fn bytes(rest: &[u8]) -> Option<u64> {
    const COUNT: &[u8] = b" count ";
    let at = memmem::find(rest, COUNT)?;
    let (elements, rest) = label(&rest[at + COUNT.len()..])?;
    let (datatype, rest) = label(rest.strip_prefix(b" datatype ")?)?;
    let element = ELEMENT_BYTES.get(usize::try_from(datatype).ok()?)?;
    // A torn number has no blank behind it. The product fits: `label` reads at most 15 digits.
    Some(elements * element).filter(|bytes| rest.starts_with(b" ") && *bytes <= MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Log, Parser, parse};
    use proptest::prelude::*;

    fn line(thread: &str, operation: &str, count: u64, datatype: u32) -> String {
        format!(
            "{thread} NCCL INFO {operation}: opCount 2f sendbuff 0x7ffb4713c200 recvbuff 0x7ffb4713c200 count {count} \
             datatype {datatype} op 0 root 0 comm 0x55556b100660 [nranks=8] stream 0x5555630c58b0\n"
        )
    }

    fn calls(log: &str) -> Option<NcclCalls> {
        parse(log.as_bytes()).nccl.and_then(|nccl| nccl.calls)
    }

    const RANK: &str = "n1:98:1251 [3]";

    #[test]
    fn calls_of_the_first_rank_are_counted_by_operation_and_size() {
        let log = line(RANK, "AllReduce", 1 << 20, 7)
            // Another thread of the same process.
            + &line("3: n1:98:1300 [3]", "AllReduce", (1 << 20) - 1, 7)
            + &line("n1:99:1251 [4]", "AllReduce", 1 << 20, 7)
            + &line("n2:98:1251 [3]", "AllReduce", 1 << 20, 7)
            + &line(RANK, "AllReduce", (1 << 20) + 1, 7)
            + &line(RANK, "ReduceScatter", 1 << 30, 9);
        let kind =
            |operation, up_to_bytes, count, bytes| NcclCallKind { operation, up_to_bytes, count, bytes };
        let calls = calls(&log).unwrap();
        assert_eq!(
            calls.kinds,
            [
                kind(NcclOperation::ReduceScatter, 1 << 31, 1, 1 << 31),
                kind(NcclOperation::AllReduce, 1 << 22, 2, (1 << 23) - 4),
                kind(NcclOperation::AllReduce, 1 << 23, 1, (1 << 22) + 4),
            ]
        );
        assert_eq!((calls.count, calls.bytes), (4, (1 << 31) + (3 << 22)));
        assert_eq!(
            calls.sentence(),
            "NCCL's trace of one rank: 4 calls with 2.01 GiB, most in ReduceScatter up to 2 GiB (1 call, 2 GiB), AllReduce \
             up to 4 MiB (2 calls, 8 MiB), AllReduce up to 8 MiB (1 call, 4 MiB)."
        );
    }

    #[test]
    fn every_operation_has_the_name_of_the_trace() {
        for operation in NcclOperation::ALL {
            let calls = calls(&line(RANK, operation.id(), 3, 8)).unwrap();
            assert_eq!(
                (calls.kinds[0].operation, calls.kinds[0].up_to_bytes, calls.bytes),
                (operation, 32, 24)
            );
        }
    }

    #[test]
    fn only_the_largest_kinds_are_named() {
        let log: String = (0..8).map(|power| line(RANK, "Send", 1 << (2 * power), 0)).collect();
        let sentence = calls(&log).unwrap().sentence();
        assert!(sentence.contains("most in Send up to 16 KiB (1 call, 16 KiB), "), "{sentence}");
        assert!(sentence.ends_with("Send up to 64 B (1 call, 64 B), and others."), "{sentence}");
    }

    #[test]
    fn damage_is_not_counted() {
        let whole = line(RANK, "AllReduce", 1024, 7);
        for log in [
            line("[3]", "AllReduce", 1024, 7),
            line("98 [3]", "AllReduce", 1024, 7),
            line(&format!("n1:{}:7 [3]", "9".repeat(LONGEST_RANK)), "AllReduce", 1024, 7),
            line(RANK, "AllGatherAll", 1024, 7),
            line(RANK, "AllReduce", 1024, 12),
            line(RANK, "AllReduce", (1 << 42) + 1, 7),
            whole.replace("count 1024", "count 10n2:98"),
            whole.replace("datatype 7", "datatype 7x"),
            whole[..whole.find(" op ").unwrap()].to_owned(),
            "AllReduce: opCount 2f count 1 datatype 7 op 0\n".to_owned(),
        ] {
            assert_eq!(calls(&log), None, "{log}");
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter_and_totals_have_all_kinds(
            lines in prop::collection::vec((0..3_u32, 0..NcclOperation::ALL.len(), 0..44_u32, 0..14_u32), 0..200),
            size in 1..400_usize,
        ) {
            let of = |(rank, operation, power, datatype): &(u32, usize, u32, u32)| {
                let thread = format!("n{rank}:98:{power} [3]");
                line(&thread, NcclOperation::ALL[*operation].id(), 1 << power, *datatype)
            };
            let text: String = lines.iter().map(of).collect();
            let mut parser = Parser::new();
            text.as_bytes().chunks(size).for_each(|chunk| parser.feed(chunk));
            let (whole, pieces): (Log, Log) = (parse(text.as_bytes()), parser.finish());
            prop_assert_eq!(&whole.nccl, &pieces.nccl);
            let calls = calls(&text).unwrap_or_default();
            let count: u64 = calls.kinds.iter().map(|kind| kind.count).sum();
            let bytes: u64 = calls.kinds.iter().map(|kind| kind.bytes).sum();
            prop_assert!(calls.kinds.len() <= MOST_CALL_KINDS);
            prop_assert!(count <= calls.count && bytes <= calls.bytes);
            if calls.kinds.len() < MOST_CALL_KINDS {
                prop_assert_eq!((count, bytes), (calls.count, calls.bytes));
            }
        }
    }
}
