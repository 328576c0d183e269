//! The time of communication between GPUs.

use super::constants::Constants;
use crate::catalog::Generation;
use crate::cluster_factors::ClusterFactor;
use crate::estimate::Inputs;

/// NVLink and network of a GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links<'a> {
    constants: &'a Constants,
    /// Number of GPUs that NVLink connects.
    domain: u32,
    /// The rate that collectives reach on NVLink, in bytes per second.
    nvlink: f64,
    /// The rate that all-to-all exchanges reach on NVLink, in bytes per second.
    exchange_nvlink: f64,
    /// Seconds of a step around a ring that crosses the network.
    network_step_s: f64,
    /// The network's rate per GPU, in bytes per second, slower by what the user's cluster loses.
    network: f64,
}

impl<'a> Links<'a> {
    pub(super) fn new(inputs: &Inputs<'_>, constants: &'a Constants) -> Links<'a> {
        let (gpu, cluster) = (inputs.gpu, inputs.options.cluster);
        let share = match gpu.generation {
            Generation::Blackwell | Generation::Rubin => constants.nvlink_blackwell,
            Generation::Ampere | Generation::Hopper => constants.nvlink,
        };
        Links {
            constants,
            domain: gpu.nvlink_domain,
            nvlink: gpu.nvlink_gbps * 1e9 * share * cluster.of(ClusterFactor::Nvlink),
            exchange_nvlink: gpu.nvlink_gbps
                * 1e9
                * constants.exchange_nvlink
                * cluster.of(ClusterFactor::Nvlink),
            network_step_s: constants.network_step_s * cluster.of(ClusterFactor::Latency),
            network: gpu.nic_gbit * 1e9 / 8.0 * cluster.of(ClusterFactor::Network),
        }
    }

    /// Returns the seconds of a collective among `members` GPUs whose ranks are `stride` apart, each sending
    /// `bytes`.
    ///
    /// A group within one NVLink domain runs at NVLink's rate. A larger group runs at the network's rate,
    /// where the members in one domain each use their own adapter.
    pub(super) fn collective_s(&self, bytes: f64, members: u32, stride: u32) -> f64 {
        if members <= 1 {
            return 0.0;
        }
        let rounds = libm::log2(f64::from(members)).max(1.0);
        self.constants.collective_s * rounds + bytes / self.collective_rate(members, stride)
    }

    /// Returns the seconds to gather or scatter `bytes` around a ring of neighbours, which is how tensor-parallel ranks share a
    /// sequence.
    pub(super) fn ring_s(&self, bytes: f64, members: u32) -> f64 {
        let crosses = members > self.domain;
        let steps = if crosses { f64::from(members - 1) * self.network_step_s } else { 0.0 };
        self.collective_s(bytes, members, 1) + steps
    }

    /// Returns the seconds until a reduction around a ring of `members` GPUs has started and ended on all of them, twice around
    /// the nodes.
    pub(super) fn ring_start_s(&self, members: u32, stride: u32) -> f64 {
        let together = (self.domain / stride.max(1)).clamp(1, members);
        2.0 * f64::from(members.div_ceil(together)) * self.constants.collective_s
    }

    /// Returns the rate of a collective, in bytes per second.
    fn collective_rate(&self, members: u32, stride: u32) -> f64 {
        if u64::from(members) * u64::from(stride) <= u64::from(self.domain) {
            return self.nvlink;
        }
        let together = (self.domain / stride.max(1)).clamp(1, members);
        self.nvlink.min(self.network * self.constants.network * f64::from(together))
    }

    /// Returns the seconds of an all-to-all exchange among `members` GPUs whose ranks are `stride` apart,
    /// each sending `bytes`. `copies` is the number of experts per token if a token crosses to each domain at
    /// most once.
    pub(super) fn exchange_s(&self, bytes: f64, members: u32, stride: u32, copies: Option<f64>) -> f64 {
        if members <= 1 {
            return 0.0;
        }
        let domain = (self.domain / stride.max(1)).clamp(1, members);
        // The share within the domain uses NVLink while the rest uses the network.
        let mut far = f64::from(members - domain) / f64::from(members - 1);
        if let (Some(copies), true) = (copies, far > 0.0) {
            let domains = f64::from(members) / f64::from(domain);
            let reached =
                domains * (1.0 - libm::pow(1.0 - 1.0 / domains, copies)) * (domains - 1.0) / domains;
            far = far.min(reached / copies);
        }
        let nvlink = bytes * (1.0 - far) / self.exchange_nvlink;
        let network = bytes * far / (self.network * self.constants.exchange_network);
        self.constants.collective_s + nvlink.max(network)
    }

    /// Returns the seconds to send `bytes` to the next of the pipeline stages on `gpus` GPUs. If they are more than an NVLink
    /// domain, the network connects some of the stages, and the slowest transfer sets the pace.
    pub(super) fn send_s(&self, bytes: f64, gpus: u32) -> f64 {
        let rate = if gpus <= self.domain { self.nvlink } else { self.network * self.constants.network };
        self.constants.collective_s + bytes / rate
    }
}
