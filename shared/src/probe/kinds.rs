//! What a probe measures, and what a machine in good order reaches.

use super::ProbeScope;
use crate::catalog::{Generation, Gpu};
use crate::choices::choices;
use crate::cluster_factors::ClusterFactor;
use crate::data_file::{DataError, FromRow, Row, embedded};
use std::sync::LazyLock;

choices! {
    /// What a probe measures.
    ProbeFigureKind {
        /// BF16 matrix multiplication, TFLOPS; the median of the GPUs.
        Bf16Matmul "bf16-matmul" "BF16 matrix multiplication",
        /// FP8 matrix multiplication, TFLOPS.
        Fp8Matmul "fp8-matmul" "FP8 matrix multiplication",
        /// Fused attention, forward and backward, TFLOPS.
        Attention "attention" "Attention, forward and backward",
        /// Memory bandwidth, GB/s.
        Memory "memory" "Memory bandwidth",
        /// Host time for a launch, µs.
        Launch "launch" "Kernel launch",
        /// All-reduce of the GPUs of a node, GB/s.
        Nvlink "nvlink" "All-reduce in a node",
        /// All-gather of the GPUs of a node, GB/s.
        NvlinkGather "nvlink-all-gather" "All-gather in a node",
        /// Reduce-scatter of the GPUs of a node, GB/s.
        NvlinkScatter "nvlink-reduce-scatter" "Reduce-scatter in a node",
        /// All-to-all of the GPUs of a node, GB/s.
        NvlinkExchange "nvlink-exchange" "All-to-all in a node",
        /// Exchange of pairs of GPUs of a node, GB/s in one direction.
        NvlinkPair "nvlink-point-to-point" "Point to point in a node",
        /// All-reduce between nodes, GB/s per GPU.
        Network "network" "All-reduce between nodes, per GPU",
        /// All-gather between nodes, GB/s per GPU.
        NetworkGather "network-all-gather" "All-gather between nodes, per GPU",
        /// Reduce-scatter between nodes, GB/s per GPU.
        NetworkScatter "network-reduce-scatter" "Reduce-scatter between nodes, per GPU",
        /// All-to-all between nodes, GB/s per GPU.
        NetworkExchange "network-exchange" "All-to-all between nodes, per GPU",
        /// Exchange of pairs of GPUs of two nodes, GB/s per GPU in one direction.
        NetworkPair "network-point-to-point" "Point to point between nodes, per GPU",
        /// Latency of a step between nodes, µs.
        Latency "latency" "Latency between nodes",
    }
}

impl ProbeFigureKind {
    /// Returns the unit.
    pub const fn unit(self) -> &'static str {
        match self {
            ProbeFigureKind::Bf16Matmul | ProbeFigureKind::Fp8Matmul | ProbeFigureKind::Attention => "TFLOPS",
            ProbeFigureKind::Launch | ProbeFigureKind::Latency => "µs",
            _ => "GB/s",
        }
    }

    /// Returns the collective whose bandwidth this is, as [`super::CollectiveRate`] names it, and which GPUs communicate; none
    /// for other figures.
    pub(super) const fn collective(self) -> Option<(&'static str, ProbeScope)> {
        match self {
            ProbeFigureKind::Nvlink => Some(("all-reduce", ProbeScope::Node)),
            ProbeFigureKind::NvlinkGather => Some(("all-gather", ProbeScope::Node)),
            ProbeFigureKind::NvlinkScatter => Some(("reduce-scatter", ProbeScope::Node)),
            ProbeFigureKind::NvlinkExchange => Some(("all-to-all", ProbeScope::Node)),
            ProbeFigureKind::NvlinkPair => Some(("point-to-point", ProbeScope::Node)),
            ProbeFigureKind::Network => Some(("all-reduce", ProbeScope::Network)),
            ProbeFigureKind::NetworkGather => Some(("all-gather", ProbeScope::Network)),
            ProbeFigureKind::NetworkScatter => Some(("reduce-scatter", ProbeScope::Network)),
            ProbeFigureKind::NetworkExchange => Some(("all-to-all", ProbeScope::Network)),
            ProbeFigureKind::NetworkPair => Some(("point-to-point", ProbeScope::Network)),
            ProbeFigureKind::Bf16Matmul
            | ProbeFigureKind::Fp8Matmul
            | ProbeFigureKind::Attention
            | ProbeFigureKind::Memory
            | ProbeFigureKind::Launch
            | ProbeFigureKind::Latency => None,
        }
    }

    /// Whether it is measured between nodes.
    pub(super) fn crosses_nodes(self) -> bool {
        self == ProbeFigureKind::Latency || matches!(self.collective(), Some((_, ProbeScope::Network)))
    }

    /// Whether a small figure is good.
    pub const fn is_time(self) -> bool {
        matches!(self, ProbeFigureKind::Launch | ProbeFigureKind::Latency)
    }

    /// Returns the factor that the figure decides; none if it is only compared or shown.
    pub const fn factor(self) -> Option<ClusterFactor> {
        match self {
            ProbeFigureKind::Bf16Matmul => Some(ClusterFactor::Matmul),
            ProbeFigureKind::Fp8Matmul => Some(ClusterFactor::Fp8),
            ProbeFigureKind::Memory => Some(ClusterFactor::Memory),
            ProbeFigureKind::Launch => Some(ClusterFactor::Host),
            ProbeFigureKind::Nvlink => Some(ClusterFactor::Nvlink),
            ProbeFigureKind::Network => Some(ClusterFactor::Network),
            ProbeFigureKind::Latency => Some(ClusterFactor::Latency),
            _ => None,
        }
    }

    /// Returns the datasheet's figure that the limit is a share of; 1 for times.
    pub(super) fn datasheet(self, gpu: &Gpu) -> Option<f64> {
        match self {
            ProbeFigureKind::Bf16Matmul | ProbeFigureKind::Attention => Some(gpu.bf16_tflops),
            ProbeFigureKind::Fp8Matmul => gpu.fp8_tflops,
            ProbeFigureKind::Memory => Some(gpu.hbm_tbps * 1e3),
            ProbeFigureKind::Launch | ProbeFigureKind::Latency => Some(1.0),
            _ => self.collective().map(|(_, scope)| match scope {
                ProbeScope::Node => gpu.nvlink_gbps,
                ProbeScope::Network => gpu.nic_gbit / 8.0,
            }),
        }
    }

    /// Returns what a machine of this GPU type in good order reaches, in the figure's unit; none if that is unknown.
    pub fn limit(self, gpu: &Gpu) -> Option<f64> {
        static LIMITS: LazyLock<Vec<Limit>> = LazyLock::new(|| embedded!("probe.csv"));
        let generation = gpu.generation;
        let found =
            LIMITS.iter().find(|limit| limit.figure == self.id() && limit.generation == generation.id())?;
        Some(found.limit * self.datasheet(gpu)?)
    }
}

/// A row of `data/probe.csv`.
struct Limit {
    figure: String,
    generation: String,
    limit: f64,
}

impl FromRow for Limit {
    fn from_row(row: &Row<'_>) -> Result<Limit, DataError> {
        let known = |text: &str| ProbeFigureKind::ALL.iter().any(|kind| kind.id() == text);
        let figure = row.string("figure")?;
        let generation = row.string("generation")?;
        if !known(&figure) || !Generation::ALL.iter().any(|known| known.id() == generation) {
            return Err(row.error(format!("unknown figure \"{figure}\" or generation \"{generation}\"")));
        }
        Ok(Limit { figure, generation, limit: row.number("limit")? })
    }
}
