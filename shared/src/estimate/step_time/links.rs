//! How fast a group of GPUs exchanges data.

use super::constants::Constants;
use crate::catalog::Gpu;

/// The links of a GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links<'a> {
    gpu: &'a Gpu,
    constants: &'a Constants,
}

impl<'a> Links<'a> {
    pub(super) fn new(gpu: &'a Gpu, constants: &'a Constants) -> Links<'a> {
        Links { gpu, constants }
    }

    /// Seconds of a collective among `members` GPUs that stand `stride` apart, when each sends `bytes`.
    ///
    /// A group that fits the NVLink domain runs at NVLink's rate. A wider one waits for the network, to which its
    /// members in one domain each bring their own adapter.
    pub(super) fn collective_s(&self, bytes: f64, members: u32, stride: u32) -> f64 {
        if members <= 1 {
            return 0.0;
        }
        let rounds = libm::log2(f64::from(members)).max(1.0);
        self.constants.collective_s * rounds + bytes / self.collective_rate(members, stride)
    }

    /// Bytes per second of a collective.
    fn collective_rate(&self, members: u32, stride: u32) -> f64 {
        let nvlink = self.nvlink();
        if u64::from(members) * u64::from(stride) <= u64::from(self.gpu.nvlink_domain) {
            return nvlink;
        }
        let together = (self.gpu.nvlink_domain / stride.max(1)).clamp(1, members);
        nvlink.min(self.network() * self.constants.network * f64::from(together))
    }

    /// Seconds of an exchange of all with all among `members` GPUs that stand `stride` apart, when each sends `bytes`
    /// to the others, with `copies` of each token where a token goes to each domain once at most.
    pub(super) fn exchange_s(&self, bytes: f64, members: u32, stride: u32, copies: Option<f64>) -> f64 {
        if members <= 1 {
            return 0.0;
        }
        let domain = (self.gpu.nvlink_domain / stride.max(1)).clamp(1, members);
        // Of what a GPU sends, the share within its domain goes by NVLink while the rest goes by the network.
        let mut far = f64::from(members - domain) / f64::from(members - 1);
        if let (Some(copies), true) = (copies, far > 0.0) {
            let domains = f64::from(members) / f64::from(domain);
            let reached =
                domains * (1.0 - libm::pow(1.0 - 1.0 / domains, copies)) * (domains - 1.0) / domains;
            far = far.min(reached / copies);
        }
        let nvlink = bytes * (1.0 - far) / (self.gpu.nvlink_gbps * 1e9 * self.constants.exchange_nvlink);
        let network = bytes * far / (self.network() * self.constants.exchange_network);
        self.constants.collective_s + nvlink.max(network)
    }

    /// Seconds to hand `bytes` to a GPU that stands `stride` away.
    pub(super) fn hand_over_s(&self, bytes: f64, stride: u32) -> f64 {
        let rate = if stride < self.gpu.nvlink_domain {
            self.nvlink()
        } else {
            self.network() * self.constants.network
        };
        self.constants.collective_s + bytes / rate
    }

    /// What collectives reach on NVLink, bytes per second.
    fn nvlink(&self) -> f64 {
        let share = match self.gpu.nvfp4_tflops {
            Some(_) => self.constants.nvlink_blackwell,
            None => self.constants.nvlink,
        };
        self.gpu.nvlink_gbps * 1e9 * share
    }

    /// The network's rate per GPU, bytes per second.
    fn network(&self) -> f64 {
        self.gpu.nic_gbit * 1e9 / 8.0
    }
}
