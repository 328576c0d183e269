//! The software that a script runs: what was planned, without what Megatron-LM's flags can't turn on.

use super::support::{
    Dispatcher, NARROW_GRADIENT, NARROW_OPTIMIZER, can_hide_experts, can_overlap_tp, graph_obstacle,
};
use crate::estimate::{Breakdown, Constants, Inputs, MemoryEstimate};
use crate::launch::options::LaunchOptions;
use crate::launch::plan::NEGLIGIBLE;
use crate::scenario::Scenario;
use crate::stack::{CudaGraphs, ExpertKernels, Software, Stack, StackProperties, WeightStorage};

/// The software that a script with Megatron-LM runs, and how its runs differ from the planned ones.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptSoftware {
    /// The software of the script. Planned with this software, the script is the same.
    pub software: Software,
    /// Step time as a multiple of the planned one, by the physical model alone.
    pub slowdown: f64,
    /// Bytes that the fullest GPU needs beyond the plan; negative if it needs fewer.
    pub more_bytes: f64,
    planned: Software,
}

impl ScriptSoftware {
    /// Returns the software that the script of a scenario runs.
    pub fn of(scenario: &Scenario, options: &LaunchOptions) -> ScriptSoftware {
        let planned = scenario.options.software;
        let software = software(scenario, options);
        if software == planned {
            return ScriptSoftware { software, slowdown: 1.0, more_bytes: 0.0, planned };
        }
        let modelled = |software: Software| {
            let options = scenario.options.with_software(software);
            let inputs = Inputs { options: &options, ..scenario.inputs() };
            let step_s = Breakdown::of(&inputs, Constants::embedded()).step_time_s();
            (step_s, MemoryEstimate::of(&inputs).total_bytes())
        };
        let ((planned_s, planned_bytes), (step_s, bytes)) = (modelled(planned), modelled(software));
        ScriptSoftware { software, slowdown: step_s / planned_s, more_bytes: bytes - planned_bytes, planned }
    }

    /// Returns whether steps take noticeably longer or shorter than planned.
    pub fn changes_speed(&self) -> bool {
        (self.slowdown - 1.0).abs() >= NEGLIGIBLE
    }

    /// Returns whether an estimate for the planned software misleads about the script.
    pub fn differs(&self) -> bool {
        self.is_other() || self.changes_speed() || self.more_bytes != 0.0
    }

    /// Returns whether the planned software is not built on Megatron-Core, so that the script has little in common with it.
    pub fn is_other(&self) -> bool {
        self.software.base() != self.planned.base()
    }

    /// Returns what the planned software does and the script doesn't, as nouns.
    pub fn lacks(&self) -> Vec<&'static str> {
        let (planned, own) = (self.planned.properties(), self.software.properties());
        [
            (planned.cuda_graphs != own.cuda_graphs, "CUDA graphs"),
            (planned.overlaps_tp && !own.overlaps_tp, "overlapping the communication of tensor parallelism"),
            (planned.experts != own.experts, "fused kernels for experts"),
            (
                planned.sends_once_per_domain && !own.sends_once_per_domain,
                "sending tokens once per NVLink domain",
            ),
            (planned.hides_experts && !own.hides_experts, "hiding the exchange between experts"),
        ]
        .into_iter()
        .filter_map(|(lacks, what)| lacks.then_some(what))
        .collect()
    }
}

/// Returns the software that the script of a scenario runs. Only properties that matter for the scenario change.
pub(super) fn software(scenario: &Scenario, options: &LaunchOptions) -> Software {
    let per_node = options.gpus_per_node.unwrap_or(scenario.gpu.gpus_per_node).max(1);
    let (planned, layout) = (scenario.options.software, &scenario.layout);
    let wanted = planned.properties();
    // For software without Megatron-Core, flags can turn on nothing else.
    let base = if wanted.transformer_engine { planned.base() } else { Stack::MegatronLm014 };
    let mut own = match wanted.transformer_engine {
        true => *wanted,
        false => StackProperties {
            overlaps_tp: wanted.overlaps_tp,
            overlaps_dp: wanted.overlaps_dp,
            ..*base.properties()
        },
    };
    if layout.tp() > 1 && !can_overlap_tp(scenario, per_node) {
        own.overlaps_tp = false;
    }
    if scenario.architecture.moe.is_some() {
        if own.experts == ExpertKernels::Fused {
            own.experts = ExpertKernels::Separate;
        }
        if layout.ep() > 1 {
            own.sends_once_per_domain &= Dispatcher::of(scenario, per_node).is_some();
            // Without an interleaved pipeline, only recipes of the model turn it on.
            let may_hide = layout.vp() > 1 || scenario.options.hides_experts(layout);
            own.hides_experts &= !may_hide || can_hide_experts(scenario);
        }
    }
    let is_graphed =
        scenario.options.with_software(Software::new(base, own)).uses_cuda_graphs(&scenario.architecture);
    if is_graphed && graph_obstacle(scenario, options, &own).is_some() {
        own.cuda_graphs = CudaGraphs::None;
    }
    if own.weights != WeightStorage::Alone {
        own.weights = WeightStorage::Beside;
    }
    own.gradient_bytes = if own.gradient_bytes <= NARROW_GRADIENT { NARROW_GRADIENT } else { 4.0 };
    own.optimizer_bytes = if own.optimizer_bytes <= NARROW_OPTIMIZER { NARROW_OPTIMIZER } else { 12.0 };
    own.narrow_optimizer_bytes = 12.0;
    Software::new(base, own)
}
