//! How long a step takes: what each block costs, how the pipeline strings them together, and what can't hide.

mod blocks;
mod constants;
mod links;
mod parameters;
mod speed;

pub use constants::{Constant, Constants};

use super::Inputs;
use crate::options::Stack;
use blocks::{Blocks, Cost};
use serde::Serialize;

/// The seconds of a step, by what the slowest GPU does or waits for in them; they add up to the step time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Breakdown {
    /// Matrix multiplications.
    pub matmul: f64,
    /// The core of attention.
    pub attention: f64,
    /// What memory limits: norms, activation functions, casts, sorting, scans.
    pub memory_bound: f64,
    /// Exposed communication of tensor parallelism.
    pub tensor_parallel: f64,
    /// Exposed communication of context parallelism.
    pub context_parallel: f64,
    /// Exposed exchange between experts.
    pub expert_parallel: f64,
    /// Exposed communication between pipeline stages.
    pub pipeline_parallel: f64,
    /// Exposed communication of gradients and weights.
    pub data_parallel: f64,
    /// Waiting for the pipeline to fill and drain, and for its fullest stage.
    pub bubble: f64,
    /// Waiting for the host to launch kernels.
    pub host: f64,
    /// The optimizer.
    pub optimizer: f64,
    /// What comes with every step, and waiting for the slowest of many GPUs.
    pub other: f64,
}

impl Breakdown {
    /// The step time, s.
    pub fn step_time_s(&self) -> f64 {
        self.parts().iter().map(|(_, seconds)| seconds).sum()
    }

    /// Each part with its name.
    pub fn parts(&self) -> [(&'static str, f64); 12] {
        [
            ("matmul", self.matmul),
            ("attention", self.attention),
            ("memory bound", self.memory_bound),
            ("tensor parallel", self.tensor_parallel),
            ("context parallel", self.context_parallel),
            ("expert parallel", self.expert_parallel),
            ("pipeline parallel", self.pipeline_parallel),
            ("data parallel", self.data_parallel),
            ("bubble", self.bubble),
            ("host", self.host),
            ("optimizer", self.optimizer),
            ("other", self.other),
        ]
    }

    pub(super) fn scaled(self, factor: f64) -> Breakdown {
        Breakdown {
            matmul: self.matmul * factor,
            attention: self.attention * factor,
            memory_bound: self.memory_bound * factor,
            tensor_parallel: self.tensor_parallel * factor,
            context_parallel: self.context_parallel * factor,
            expert_parallel: self.expert_parallel * factor,
            pipeline_parallel: self.pipeline_parallel * factor,
            data_parallel: self.data_parallel * factor,
            bubble: self.bubble * factor,
            host: self.host * factor,
            optimizer: self.optimizer * factor,
            other: self.other * factor,
        }
    }

    /// The seconds of a step, under `constants`.
    pub fn of(inputs: &Inputs<'_>, constants: &Constants) -> Breakdown {
        let (layout, batch, options) = (inputs.layout, inputs.batch, inputs.options);
        let blocks = Blocks::new(inputs, constants);
        let layers = Layers::new(inputs, &blocks);
        let sharding = Sharding::new(inputs, &blocks, constants);

        // The stage that takes longest sets the pace; the others only matter while the pipeline fills and drains.
        let mut slowest = Stage::default();
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
        let handing = if layout.pp() > 1 {
            let bytes = 2.0 * blocks.boundary_elements();
            let stride = layout.gpus() / layout.pp();
            let once = blocks.links.hand_over_s(bytes, stride) * 2.0;
            // Only interleaved schedules leave room to hide it.
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
            pipeline_parallel: handing,
            data_parallel: sharding.per_step_s(slowest.busy_s()) + slowest.gather_s * ga,
            bubble,
            host: slowest.host_s * ga,
            optimizer: sharding.optimizer_s,
            other: constants.step_s,
        };
        let stack = Stack::ALL.iter().position(|stack| *stack == options.stack).unwrap_or(0);
        let new = options.stack == Stack::Nemo2 && inputs.gpu.nvfp4_tflops.is_some();
        let young = if new { 1.0 / constants.blackwell_before_2509 } else { 1.0 };
        let mut parts = parts.scaled(constants.stacks[stack] * young);
        let spread = libm::log2(f64::from(layout.gpus()) / 8.0).max(0.0) * constants.straggling;
        parts.other += parts.step_time_s() * spread;
        parts
    }
}

/// What a stage of the pipeline does for one micro batch.
#[derive(Debug, Clone, Copy, Default)]
struct Stage {
    cost: Cost,
    /// Waiting for the host.
    host_s: f64,
    /// Waiting for weights to be gathered and gradients to be scattered (FSDP).
    gather_s: f64,
}

impl Stage {
    fn busy_s(&self) -> f64 {
        self.cost.device_s() + self.host_s + self.gather_s
    }
}

/// The blocks of the layers.
struct Layers {
    attention: Cost,
    mlp: Cost,
    moe: Cost,
    mamba: Cost,
    head: Cost,
    /// Blocks of each kind in the whole model: attention, MLP, routed, Mamba.
    counts: [f64; 4],
    layers: f64,
    /// A hybrid's kinds are spread evenly; otherwise dense layers come before routed ones.
    hybrid: bool,
    mtp_layers: f64,
}

impl Layers {
    fn new(inputs: &Inputs<'_>, blocks: &Blocks<'_>) -> Layers {
        let architecture = inputs.architecture;
        let none = Cost::default;
        Layers {
            attention: blocks.attention(),
            mlp: architecture.mlp.as_ref().map_or_else(none, |mlp| blocks.mlp(mlp)),
            moe: architecture.moe.as_ref().map_or_else(none, |moe| blocks.moe(moe)),
            mamba: architecture.mamba.as_ref().map_or_else(none, |mamba| blocks.mamba(mamba)),
            head: blocks.head(),
            counts: [
                f64::from(architecture.attention.layers),
                architecture.mlp.as_ref().map_or(0.0, |mlp| f64::from(mlp.layers)),
                architecture.moe.as_ref().map_or(0.0, |moe| f64::from(moe.layers)),
                architecture.mamba.as_ref().map_or(0.0, |mamba| f64::from(mamba.layers)),
            ],
            layers: f64::from(architecture.layers),
            hybrid: architecture.mamba.is_some(),
            mtp_layers: f64::from(architecture.mtp_layers),
        }
    }

    /// What the stage of `layers` layers from `first` on costs.
    fn stage(&self, first: u32, layers: u32, last: bool) -> Cost {
        let (first, layers) = (f64::from(first), f64::from(layers));
        let mut cost = if self.hybrid {
            let share = layers / self.layers;
            self.attention * (self.counts[0] * share)
                + self.mlp * (self.counts[1] * share)
                + self.moe * (self.counts[2] * share)
                + self.mamba * (self.counts[3] * share)
        } else {
            let dense = (self.counts[1] - first).clamp(0.0, layers);
            self.attention * layers + self.mlp * dense + self.moe * (layers - dense)
        };
        if last {
            cost = cost + self.head * (1.0 + self.mtp_layers);
            let routed = if self.counts[2] > 0.0 { self.moe } else { self.mlp };
            cost = cost + (self.attention + routed) * self.mtp_layers;
        }
        cost
    }
}

/// How weights, gradients and optimizer state are shared out, and what keeping them in step costs.
struct Sharding<'a> {
    constants: &'a Constants,
    fsdp: bool,
    /// Seconds to gather and scatter once, all of a rank's parameters: per step, or per micro batch with FSDP.
    exchange_s: f64,
    overlaps: bool,
    exposed: f64,
    optimizer_s: f64,
}

impl<'a> Sharding<'a> {
    fn new(inputs: &Inputs<'_>, blocks: &Blocks<'_>, constants: &'a Constants) -> Sharding<'a> {
        let (layout, options) = (inputs.layout, inputs.options);
        let parameters = parameters::fullest_rank(inputs);
        let replicas = layout.dp() * layout.cp();
        let expert_replicas =
            (layout.gpus() / layout.pp()).checked_div(layout.ep() * layout.expert_tp()).unwrap_or(1).max(1);
        let exchange = |count: f64, members: u32, stride: u32, bytes: f64| {
            let share = f64::from(members - 1) / f64::from(members);
            if count == 0.0 { 0.0 } else { blocks.links.collective_s(count * bytes * share, members, stride) }
        };
        // Gradients there and weights back, in BF16. FSDP gathers twice, once if it keeps what it gathered.
        let bytes = match (options.fsdp, options.reshard) {
            (true, true) => 6.0,
            (true, false) | (false, _) => 4.0,
        };
        let exchange_s = exchange(parameters.dense, replicas, layout.tp(), bytes)
            + exchange(parameters.experts, expert_replicas, layout.ep() * layout.expert_tp(), bytes);
        let sharded = match options.stack {
            Stack::MegatronLm2021 | Stack::MegatronLm2022 => 1,
            _ => options.zero_group.unwrap_or(replicas).min(replicas),
        };
        let state = parameters.dense / f64::from(sharded)
            + parameters.experts / f64::from(if sharded == 1 { 1 } else { expert_replicas });
        Sharding {
            constants,
            // Through a pipeline, weights stay gathered for the whole step.
            fsdp: options.fsdp && layout.pp() == 1,
            exchange_s,
            overlaps: options.overlap
                && !matches!(
                    options.stack,
                    Stack::MegatronLm2021
                        | Stack::MegatronLm2022
                        | Stack::MegatronDeepSpeed
                        | Stack::MegatronLm014
                ),
            exposed: match options.stack {
                Stack::Nemo24 | Stack::Nemo1 => constants.dp_exposed_before_2504,
                _ => constants.dp_exposed,
            },
            optimizer_s: blocks.speed.memory_s(state * constants.optimizer_bytes),
        }
    }

    /// A stage that waits for its host and, with FSDP, for its weights.
    fn stage(&self, cost: Cost) -> Stage {
        let device = cost.device_s();
        let host_s = beside(device, cost.host) - device;
        let gather_s = if self.fsdp {
            let busy = device + host_s;
            let hidden = if self.overlaps { beside(busy, self.exchange_s) - busy } else { self.exchange_s };
            hidden + self.exchange_s * self.constants.fsdp_exposed
        } else {
            0.0
        };
        Stage { cost, host_s, gather_s }
    }

    /// Exposed seconds of a step's exchange, where one micro batch of `busy_s` can hide it.
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

/// Seconds of two things that run beside each other and meet now and then: somewhat more than the longer.
fn beside(a: f64, b: f64) -> f64 {
    let (long, short) = if a > b { (a, b) } else { (b, a) };
    if long == 0.0 {
        return 0.0;
    }
    let square = (short / long) * (short / long);
    long * libm::sqrt(libm::sqrt(1.0 + square * square))
}
