//! Nodes whose jobs were interrupted more often than chance explains.

use serde::Serialize;
use std::collections::BTreeMap;

/// The most nodes of a list that is read.
const MOST_NODES: usize = 100_000;

/// The fewest interrupted jobs of a node that is suspected.
const FEWEST: u64 = 2;

/// How likely it may be that chance explains any of the suspicions.
const CHANCE: f64 = 0.05;

/// A node with more interrupted jobs than chance explains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SuspectNode {
    pub(crate) node: String,
    /// The starts of jobs on the node that were interrupted.
    pub(crate) interrupted: u64,
    /// All starts of jobs on the node that were interrupted or completed.
    pub(crate) starts: u64,
}

/// How many jobs started somewhere, and how many of them were interrupted.
#[derive(Debug, Clone, Copy, Default)]
struct StartCount {
    starts: u64,
    interrupted: u64,
}

impl StartCount {
    fn add(&mut self, is_interrupted: bool) {
        self.starts += 1;
        self.interrupted += u64::from(is_interrupted);
    }
}

/// The starts of jobs by node.
#[derive(Debug, Default)]
pub(crate) struct NodeTally {
    all: StartCount,
    nodes: BTreeMap<String, StartCount>,
}

impl NodeTally {
    /// Adds a start of a job on a list of nodes as Slurm writes it. An unreadable list says nothing.
    pub(crate) fn add(&mut self, nodes: &str, is_interrupted: bool) {
        let Some(nodes) = expand(nodes) else { return };
        self.all.add(is_interrupted);
        for node in nodes {
            self.nodes.entry(node).or_default().add(is_interrupted);
        }
    }

    /// Returns all interrupted starts whose nodes are known.
    pub(crate) fn interrupted(&self) -> u64 {
        self.all.interrupted
    }

    /// Returns the nodes with more interrupted jobs than chance explains, those with the most first.
    pub(crate) fn suspects(&self) -> Vec<SuspectNode> {
        // With many nodes, some are interrupted often by chance.
        let least = CHANCE / self.nodes.len().max(1) as f64;
        let is_suspect = |count: &StartCount| count.interrupted >= FEWEST && self.chance(*count) <= least;
        let suspects = self.nodes.iter().filter(|(_, count)| is_suspect(count));
        let mut suspects: Vec<SuspectNode> = suspects
            .map(|(node, count)| SuspectNode {
                node: node.clone(),
                interrupted: count.interrupted,
                starts: count.starts,
            })
            .collect();
        suspects.sort_by_key(|suspect| std::cmp::Reverse(suspect.interrupted));
        suspects
    }

    /// Returns how likely a node has at least as many interrupted starts, if interruptions don't depend on the node: the tail
    /// of the hypergeometric distribution.
    fn chance(&self, node: StartCount) -> f64 {
        let (all, interrupted) = (self.all.starts, self.all.interrupted);
        let fewest = (node.starts + interrupted).saturating_sub(all);
        let most = node.starts.min(interrupted);
        // The ratio of the probabilities of one more and of this many.
        let ratio = |count: u64| {
            let more = (interrupted - count) as f64 * (node.starts - count) as f64;
            more / ((count + 1) as f64 * (all + count + 1 - interrupted - node.starts) as f64)
        };
        let (mut weight, mut sum, mut tail) = (1.0, 0.0, 0.0);
        for count in fewest..=most {
            sum += weight;
            if count >= node.interrupted {
                tail += weight;
            }
            if count < most {
                weight *= ratio(count);
            }
        }
        let chance: f64 = tail / sum;
        if chance.is_finite() { chance } else { 1.0 }
    }
}

/// Returns the nodes of Slurm's list: `n[1-3,7],login2`. None if it can't be read or has too many.
fn expand(list: &str) -> Option<Vec<String>> {
    let mut nodes = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, char) in list.char_indices() {
        match char {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                expand_item(&list[start..at], &mut nodes)?;
                start = at + 1;
            }
            _ => {}
        }
    }
    expand_item(&list[start..], &mut nodes)?;
    Some(nodes)
}

/// Adds the nodes of an item of a list: `rack[0-1]n[01-16]`.
fn expand_item(item: &str, nodes: &mut Vec<String>) -> Option<()> {
    let Some((before, rest)) = item.split_once('[') else {
        nodes.push(item.to_owned());
        return (!item.is_empty() && !item.contains(']') && nodes.len() <= MOST_NODES).then_some(());
    };
    let (ranges, after) = rest.split_once(']')?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if to < from || to - from >= MOST_NODES {
            return None;
        }
        for number in from..=to {
            expand_item(&format!("{before}{number:0width$}{after}", width = first.len()), nodes)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_read_as_slurm_writes_them() {
        let expanded = |list: &str| expand(list).map(|nodes| nodes.join(" "));
        for (list, nodes) in [
            ("n1", "n1"),
            ("n[1-3,7],login2", "n1 n2 n3 n7 login2"),
            ("gpu[008-011]", "gpu008 gpu009 gpu010 gpu011"),
            ("rack[0-1]n[01-02]", "rack0n01 rack0n02 rack1n01 rack1n02"),
        ] {
            assert_eq!(expanded(list).as_deref(), Some(nodes), "{list}");
        }
        for list in ["", "n[", "n]", "n[1-", "n[x]", "n[3-1]", "n1,,n2", "n[1-999999]", "a[1-999]b[1-999]"] {
            assert_eq!(expanded(list), None, "{list}");
        }
    }

    #[test]
    fn a_node_is_suspected_if_chance_does_not_explain_its_interruptions() {
        let mut tally = NodeTally::default();
        for (nodes, is_interrupted, times) in
            [("n[2-3]", false, 9), ("n[1-2]", false, 1), ("n[1-2]", true, 4)]
        {
            (0..times).for_each(|_| tally.add(nodes, is_interrupted));
        }
        tally.add("n[", true);
        // Four of the four interruptions fall on five of fourteen starts: 10 of 2,002 ways.
        let node = StartCount { starts: 5, interrupted: 4 };
        assert!((tally.chance(node) - 10.0 / 2002.0).abs() < 1e-12, "{}", tally.chance(node));
        // n2 had them all too, but it was part of every job.
        assert_eq!(tally.suspects(), [SuspectNode { node: "n1".into(), interrupted: 4, starts: 5 }]);
        assert_eq!(tally.interrupted(), 4);
    }

    #[test]
    fn a_few_interruptions_accuse_nobody() {
        let mut tally = NodeTally::default();
        assert_eq!(tally.suspects(), []);
        for node in 0..64 {
            tally.add(&format!("n{node}"), node == 7);
        }
        tally.add("n7", true);
        tally.add("n8", true);
        tally.add("n8", false);
        let suspects: Vec<String> = tally.suspects().into_iter().map(|suspect| suspect.node).collect();
        assert_eq!(suspects, [""; 0], "two of two interruptions happen by chance among 64 nodes");
    }
}
