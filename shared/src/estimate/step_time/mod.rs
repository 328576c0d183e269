//! The step time: the cost of each block, the pipeline schedule, and the communication that computation can't
//! hide.

mod blocks;
mod breakdown;
mod constants;
mod links;
mod parameters;
mod speed;

pub use breakdown::{Breakdown, StepPart, StepPartGroup};
pub use constants::{Constant, Constants};

use super::Inputs;
use super::kinds::PerKind;
use super::memory::offloaded_bytes;
use crate::catalog::Generation;
use crate::cluster_factors::ClusterFactor;
use blocks::{BlockCost, BlockCosts};
use links::Links;
use speed::Speed;

/// Bytes in a MiB.
const MIB: f64 = 1_048_576.0;

impl Breakdown {
    /// Returns the parts of a step's time by `constants`.
    pub fn of(inputs: &Inputs<'_>, constants: &Constants) -> Breakdown {
        MicroBatchCosts::of(inputs, constants).breakdown(inputs)
    }
}

/// The costs of a micro batch in every kind of block. They depend on precision, recomputation, micro batch size, TP, CP,
/// EP and expert TP, and on whether the pipeline is interleaved, but neither on the other degrees nor on the number of
/// GPUs, so a search computes them once for many layouts.
#[derive(Clone, Copy)]
pub(crate) struct MicroBatchCosts<'a> {
    constants: &'a Constants,
    speed: Speed,
    links: Links<'a>,
    boundary_elements: f64,
    layers: LayerCosts,
}

impl<'a> MicroBatchCosts<'a> {
    pub(crate) fn of(inputs: &Inputs<'_>, constants: &'a Constants) -> MicroBatchCosts<'a> {
        let blocks = BlockCosts::new(inputs, constants);
        MicroBatchCosts {
            constants,
            speed: blocks.speed,
            links: Links::new(inputs, constants),
            boundary_elements: blocks.boundary_elements(),
            layers: LayerCosts::new(inputs, &blocks),
        }
    }

    /// Returns the costs with the experts of `inputs`, which otherwise equal those of its own inputs.
    pub(crate) fn with_experts_of(&self, inputs: &Inputs<'_>) -> MicroBatchCosts<'a> {
        let Some(moe) = &inputs.architecture.moe else { return *self };
        let moe = BlockCosts::at(self.speed, inputs, self.constants).moe(moe);
        MicroBatchCosts { layers: LayerCosts { moe, ..self.layers }, ..*self }
    }

    /// Returns a lower bound of the costs with any division of the experts. `inputs`, which otherwise equal those of its own, do not
    /// divide them: then experts exchange nothing and each token is copied the fewest times. The remaining products are as many in
    /// every division.
    pub(crate) fn with_least_experts(&self, inputs: &Inputs<'_>) -> MicroBatchCosts<'a> {
        MicroBatchCosts { speed: self.speed.of_largest_gemms(), ..*self }.with_experts_of(inputs)
    }

    /// Returns the seconds of the GPUs for a micro batch in the whole model, without waiting for the host.
    pub(crate) fn device_s(&self) -> f64 {
        self.layers.stage(0, self.layers.layers as u32, true).device_s()
    }

    /// Returns the parts of the step's time.
    pub(crate) fn breakdown(&self, inputs: &Inputs<'_>) -> Breakdown {
        let MicroBatchCosts { constants, ref layers, .. } = *self;
        let (layout, batch, options) = (inputs.layout, inputs.batch, inputs.options);
        let sharding = Sharding::new(inputs, self);

        // The slowest stage sets the pace; the others only matter while the pipeline fills and drains.
        let mut slowest = StageTime::default();
        let mut all_s = 0.0;
        let last = layout.pp() - 1;
        let mut first_layer = 0;
        for (index, stage_layers) in layout.stages().iter().enumerate() {
            let stage = sharding.stage(layers.stage(first_layer, *stage_layers, index as u32 == last));
            first_layer += stage_layers;
            all_s += stage.busy_s();
            if stage.busy_s() > slowest.busy_s() {
                slowest = stage;
            }
        }
        let (ga, vp) = (f64::from(batch.ga()), f64::from(layout.vp()));
        let bubble = (all_s - slowest.busy_s()) / vp;
        let transfers = if layout.pp() > 1 {
            let bytes = 2.0 * self.boundary_elements;
            let once = self.links.send_s(bytes, layout.gpus()) * 2.0;
            // Only interleaved schedules can overlap the transfer with computation.
            let exposed = if options.overlap && layout.vp() > 1 { constants.pp_exposed } else { 1.0 };
            once * (ga * vp * exposed + f64::from(last))
        } else {
            0.0
        };
        let cost = slowest.cost * ga;
        let parts = Breakdown {
            matmul: cost.matmul,
            attention: cost.attention,
            memory_bound: cost.memory,
            tensor_parallel: cost.tp,
            context_parallel: cost.cp,
            expert_parallel: cost.ep,
            pipeline_parallel: transfers,
            data_parallel: sharding.per_step_s(slowest.busy_s()) + slowest.gather_s * ga,
            bubble,
            host: (slowest.host_s + offload_s(inputs, slowest.busy_s())) * ga,
            optimizer: sharding.optimizer_s,
            other: constants.step_s * options.cluster.of(ClusterFactor::Fixed),
            straggling: 0.0,
        };
        let mut parts = parts.scaled(software_factor(inputs, constants));
        parts.straggling = parts.step_time_s() * straggling(layout.gpus(), constants);
        parts
    }

    /// Returns a lower bound of the step time on one GPU per sequence of the global batch, in any pipeline. On n GPUs it
    /// is n times smaller, and [`straggling`] adds to it.
    ///
    /// The slowest stage takes at least the mean of all stages, and every other part of the step takes at least 0.
    /// `inputs` may have any layout with the same TP and CP, and any batch with the same micro batch size.
    pub(crate) fn least_s_per_sequence(&self, inputs: &Inputs<'_>) -> f64 {
        let share = f64::from(inputs.layout.tp() * inputs.layout.cp()) / f64::from(inputs.batch.mbs());
        // Less than rounding could add.
        let floor = 1.0 - 1e-9;
        self.device_s() * share * software_factor(inputs, self.constants) * floor
    }
}

/// Returns the seconds per micro batch that copies of activations to CPU memory and back take longer than the computation of
/// `busy_s` which they overlap with: a third of it is the forward pass, and the rest the backward pass.
fn offload_s(inputs: &Inputs<'_>, busy_s: f64) -> f64 {
    if inputs.options.offload_layers == 0 {
        return 0.0;
    }
    let copy_s = offloaded_bytes(inputs) / (inputs.gpu.host_gbps * 1e9);
    [1.0, 2.0].into_iter().map(|thirds| (copy_s - busy_s * thirds / 3.0).max(0.0)).sum()
}

/// Returns the factor of the software's generation; for a user's own software, that of its base. Generations that train a model alike have
/// one factor: measurements of one correct predictions for the other.
fn software_factor(inputs: &Inputs<'_>, constants: &Constants) -> f64 {
    let options = inputs.options;
    let is_early =
        options.software.properties().early_blackwell && inputs.gpu.generation == Generation::Blackwell;
    let early = if is_early { 1.0 / constants.blackwell_before_2509 } else { 1.0 };
    let software = options.software.base().trained_like(inputs.architecture.moe.is_some());
    constants.stacks[software as usize] * early
}

/// Returns the share that waiting for the slowest of many GPUs adds.
pub(crate) fn straggling(gpus: u32, constants: &Constants) -> f64 {
    libm::log2(f64::from(gpus) / 8.0).max(0.0) * constants.straggling
}

/// Seconds of a pipeline stage per micro batch.
#[derive(Debug, Clone, Copy, Default)]
struct StageTime {
    cost: BlockCost,
    /// Waiting for the host to launch kernels.
    host_s: f64,
    /// Waiting for FSDP to gather weights and scatter gradients.
    gather_s: f64,
}

impl StageTime {
    fn busy_s(&self) -> f64 {
        self.cost.device_s() + self.host_s + self.gather_s
    }
}

/// The cost of one block of each kind, and how many blocks of each kind the model has.
#[derive(Clone, Copy)]
struct LayerCosts {
    attention: BlockCost,
    /// The mean of full and linear attention over the layers of a transformer.
    mixer: BlockCost,
    mlp: BlockCost,
    moe: BlockCost,
    mamba: BlockCost,
    head: BlockCost,
    /// Blocks of each kind in the whole model.
    counts: PerKind<f64>,
    layers: f64,
    /// Whether the kinds are spread evenly (hybrids); otherwise dense layers come before routed ones.
    hybrid: bool,
    mtp_layers: f64,
}

impl LayerCosts {
    fn new(inputs: &Inputs<'_>, blocks: &BlockCosts<'_>) -> LayerCosts {
        let architecture = inputs.architecture;
        let none = BlockCost::default;
        let counts = PerKind::counts(architecture);
        let attention = blocks.attention();
        let mixer = architecture.linear.as_ref().map_or(attention, |linear| {
            let share = counts.linear / (counts.attention + counts.linear);
            attention * (1.0 - share) + blocks.linear_attention(linear) * share
        });
        LayerCosts {
            attention,
            mixer,
            mlp: architecture.mlp.as_ref().map_or_else(none, |mlp| blocks.mlp(mlp)),
            moe: architecture.moe.as_ref().map_or_else(none, |moe| blocks.moe(moe)),
            mamba: architecture.mamba.as_ref().map_or_else(none, |mamba| blocks.mamba(mamba)),
            head: blocks.head(),
            counts,
            layers: f64::from(architecture.layers),
            hybrid: architecture.mamba.is_some(),
            mtp_layers: f64::from(architecture.mtp_layers),
        }
    }

    /// Returns the cost of a stage of `layers` layers, starting with layer `first`.
    fn stage(&self, first: u32, layers: u32, last: bool) -> BlockCost {
        let (first, layers) = (f64::from(first), f64::from(layers));
        let mut cost = if self.hybrid {
            let share = layers / self.layers;
            self.attention * (self.counts.attention * share)
                + self.mlp * (self.counts.mlp * share)
                + self.moe * (self.counts.moe * share)
                + self.mamba * (self.counts.mamba * share)
        } else {
            let dense = (self.counts.mlp - first).clamp(0.0, layers);
            self.mixer * layers + self.mlp * dense + self.moe * (layers - dense)
        };
        if last {
            cost = cost + self.head * (1.0 + self.mtp_layers);
            let routed = if self.counts.moe > 0.0 { self.moe } else { self.mlp };
            cost = cost + (self.attention + routed) * self.mtp_layers;
        }
        cost
    }
}

/// The cost of sharding weights, gradients and optimizer state over data-parallel ranks.
struct Sharding<'a> {
    constants: &'a Constants,
    fsdp: bool,
    /// Seconds to gather and scatter all of a rank's parameters once: per step, or per micro batch with FSDP.
    exchange_s: f64,
    overlaps: bool,
    exposed: f64,
    optimizer_s: f64,
}

impl<'a> Sharding<'a> {
    fn new(inputs: &Inputs<'_>, costs: &MicroBatchCosts<'a>) -> Sharding<'a> {
        let constants = costs.constants;
        let (layout, options) = (inputs.layout, inputs.options);
        let parameters = parameters::fullest_rank(inputs);
        let replicas = layout.dp() * layout.cp();
        let expert_replicas =
            (layout.gpus() / layout.pp()).checked_div(layout.ep() * layout.expert_tp()).unwrap_or(1).max(1);
        let software = options.software.properties();
        let gradient = software.exchanged_gradient_bytes;
        let exchange = |count: f64, members: u32, stride: u32, bytes: f64| {
            if count == 0.0 || members <= 1 {
                return 0.0;
            }
            let share = f64::from(members - 1) / f64::from(members);
            let buckets = software.bucket_mib.map_or(0.0, |mib| count * gradient / (mib * MIB));
            costs.links.collective_s(count * bytes * share, members, stride)
                + buckets * costs.links.ring_start_s(members, stride)
        };
        // Gradients out, and BF16 weights back. FSDP gathers weights twice, or once if it keeps them. Ranks that share no
        // optimizer state exchange gradients both ways.
        let bytes = match (options.fsdp, options.reshard, options.zero_group) {
            (true, true, _) => gradient + 4.0,
            (false, _, Some(1)) => 2.0 * gradient,
            (true, false, _) | (false, ..) => gradient + 2.0,
        };
        let exchange_s = exchange(parameters.dense, replicas, layout.tp(), bytes)
            + exchange(parameters.experts, expert_replicas, layout.ep() * layout.expert_tp(), bytes);
        let sharded = match software.shares_optimizer_step {
            false => 1,
            true => options.zero_group.unwrap_or(replicas).min(replicas),
        };
        let state = parameters.dense / f64::from(sharded)
            + parameters.experts / f64::from(if sharded == 1 { 1 } else { expert_replicas });
        Sharding {
            constants,
            // With a pipeline, weights stay gathered for the whole step.
            fsdp: options.fsdp && layout.pp() == 1,
            exchange_s,
            overlaps: options.overlap && software.overlaps_dp,
            exposed: match software.early_dp {
                true => constants.dp_exposed_before_2504,
                false => constants.dp_exposed,
            },
            optimizer_s: costs.speed.memory_s(state * constants.optimizer_bytes),
        }
    }

    /// Adds the waits for the host and, with FSDP, for weights to a stage's cost.
    fn stage(&self, cost: BlockCost) -> StageTime {
        let device = cost.device_s();
        let host_s = overlapped_s(device, cost.host) - device;
        let gather_s = if self.fsdp {
            let busy = device + host_s;
            let hidden =
                if self.overlaps { overlapped_s(busy, self.exchange_s) - busy } else { self.exchange_s };
            hidden + self.exchange_s * self.constants.fsdp_exposed
        } else {
            0.0
        };
        StageTime { cost, host_s, gather_s }
    }

    /// Returns the exposed seconds of a step's exchange, which overlaps with one micro batch of `busy_s`.
    fn per_step_s(&self, busy_s: f64) -> f64 {
        if self.fsdp {
            return 0.0;
        }
        if !self.overlaps {
            return self.exchange_s;
        }
        let exposed = self.exchange_s * self.exposed;
        exposed + (self.exchange_s - exposed - busy_s).max(0.0)
    }
}

/// Returns the seconds of two activities that overlap and synchronize now and then: slightly more than the
/// longer.
fn overlapped_s(a: f64, b: f64) -> f64 {
    let (long, short) = if a > b { (a, b) } else { (b, a) };
    if long == 0.0 {
        return 0.0;
    }
    let square = (short / long) * (short / long);
    long * (1.0 + square * square).sqrt().sqrt()
}
