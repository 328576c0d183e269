//! GPUs that are slower than the others of a probe.

use super::kinds::ProbeFigureKind;
use super::{Probe, RankRate};
use crate::statistics::quantile;
use crate::units::{percent, readable, readable_range};
use serde::Serialize;
use std::collections::BTreeMap;

/// A GPU that is slower than the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlowGpu {
    /// Its node.
    pub host: String,
    /// Its number on the node.
    pub local_rank: u32,
    /// The figure in which it is slow.
    pub figure: ProbeFigureKind,
    /// Its figure over the median of all GPUs; for times the inverse.
    pub share: f64,
}

/// A node with its slow GPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowNode<'a> {
    /// Its name.
    pub host: &'a str,
    /// Its slow GPUs, once for each figure in which they are slow; the slowest first.
    pub gpus: Vec<&'a SlowGpu>,
}

impl<'a> SlowNode<'a> {
    /// The most nodes that a list for people names.
    pub const SHOWN: usize = 16;

    /// Returns slow GPUs by node, the node of the slowest first. The GPUs come with the slowest first.
    pub(super) fn group(slow: &'a [SlowGpu]) -> Vec<SlowNode<'a>> {
        let mut hosts: BTreeMap<&str, Vec<&SlowGpu>> = BTreeMap::new();
        for gpu in slow {
            hosts.entry(&gpu.host).or_default().push(gpu);
        }
        let mut nodes: Vec<SlowNode<'_>> =
            hosts.into_iter().map(|(host, gpus)| SlowNode { host, gpus }).collect();
        let slowest = |node: &SlowNode<'_>| node.gpus.first().map_or(1.0, |gpu| gpu.share);
        nodes.sort_by(|one, other| slowest(one).total_cmp(&slowest(other)));
        nodes
    }

    /// Returns a sentence: `node-07: GPUs 2, 5 reach 61.2–80.0 % of the median (BF16 matrix multiplication).`
    pub fn in_words(&self) -> String {
        let figures = ProbeFigureKind::ALL.into_iter().filter_map(|figure| {
            let gpus: Vec<&SlowGpu> = self.gpus.iter().copied().filter(|gpu| gpu.figure == figure).collect();
            let (least, most) = (gpus.first()?.share, gpus.last()?.share);
            let share = match percent(least) == percent(most) {
                true => percent(least),
                false => format!("{} %", readable_range((least * 100.0, most * 100.0), readable)),
            };
            let mut numbers: Vec<u32> = gpus.iter().map(|gpu| gpu.local_rank).collect();
            numbers.sort_unstable();
            let who = match &numbers[..] {
                [one] => format!("GPU {one} reaches"),
                several => {
                    let several: Vec<String> = several.iter().map(u32::to_string).collect();
                    format!("GPUs {} reach", several.join(", "))
                }
            };
            Some(format!("{who} {share} of the median ({})", figure.title()))
        });
        format!("{}: {}.", self.host, figures.collect::<Vec<_>>().join("; "))
    }
}

/// A GPU that reaches less than this share of the median is slow. One slow GPU slows every step of a run.
const SLOW: f64 = 0.93;

/// Returns the GPUs that are slower than the others, the slowest first.
pub(super) fn slow_gpus(probe: &Probe) -> Vec<SlowGpu> {
    type RankFigure = fn(&RankRate) -> Option<f64>;
    let kinds: [(ProbeFigureKind, RankFigure); 2] = [
        (ProbeFigureKind::Bf16Matmul, |rank| rank.bf16_tflops),
        (ProbeFigureKind::Memory, |rank| rank.memory_gbps),
    ];
    let mut slow: Vec<SlowGpu> = Vec::new();
    for (figure, of) in kinds {
        let Some(usual) = median(probe.ranks.iter().filter_map(of).collect()) else { continue };
        slow.extend(probe.ranks.iter().filter_map(|rank| {
            let share = of(rank)? / usual;
            (share < SLOW).then(|| SlowGpu {
                host: rank.host.clone(),
                local_rank: rank.local_rank,
                figure,
                share,
            })
        }));
    }
    slow.sort_by(|one, other| one.share.total_cmp(&other.share));
    slow
}

/// Returns the median; none without values.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    (!values.is_empty()).then(|| quantile(&values, 0.5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_gpus_are_grouped_by_node() {
        let slow =
            |host: &str, local_rank, figure, share| SlowGpu { host: host.into(), local_rank, figure, share };
        let all = [
            slow("n7", 5, ProbeFigureKind::Bf16Matmul, 0.612),
            slow("n2", 0, ProbeFigureKind::Bf16Matmul, 0.7),
            slow("n7", 2, ProbeFigureKind::Bf16Matmul, 0.8),
            slow("n7", 5, ProbeFigureKind::Memory, 0.9),
        ];
        let said: Vec<String> = SlowNode::group(&all).iter().map(SlowNode::in_words).collect();
        assert_eq!(
            said,
            [
                "n7: GPUs 2, 5 reach 61.2–80.0 % of the median (BF16 matrix multiplication); GPU 5 reaches 90.0 % of the median \
                 (Memory bandwidth).",
                "n2: GPU 0 reaches 70.0 % of the median (BF16 matrix multiplication).",
            ]
        );
    }
}
