//! Training options: recomputation, sharding, overlap and the software.

use crate::architecture::{Architecture, AttentionKind};
use crate::choices::choices;
use crate::cluster_factors::ClusterFactors;
use crate::field::Field;
use crate::layout::Layout;
use crate::message;
use crate::message::Setting;
use crate::precision::Dtype;
use crate::problem::Problem;
use crate::stack::{CudaGraphs, Software, Switches};
use crate::words::words;
use std::fmt;
use std::str::FromStr;

/// The least rate of a large BF16 matrix multiplication, TFLOPS: no GPU of the catalog is that slow.
const LEAST_GEMM_TFLOPS: f64 = 20.0;

/// The options of a training run other than layout and batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingOptions {
    /// Activations that the backward pass recomputes.
    pub recompute: Recompute,
    /// Further parts of a layer that selective recomputation includes.
    pub modules: Modules,
    /// Layers whose saved activations wait in CPU memory for the backward pass (Megatron's `cpu_offloading_num_layers`).
    pub offload_layers: u32,
    /// Whether weights and gradients are sharded over the data-parallel ranks as well as the optimizer (FSDP).
    pub fsdp: bool,
    /// With FSDP, whether a layer's weights are gathered again in the backward pass instead of kept.
    pub reshard: bool,
    /// Data-parallel ranks that share the optimizer; none for all.
    pub zero_group: Option<u32>,
    /// Whether tensor parallelism divides the sequence outside matrix multiplications; none for the software's default.
    pub sequence_parallel: Option<bool>,
    /// What a recipe switches on or off.
    pub switches: Switches,
    /// Whether tokens beyond an expert's even share are dropped.
    pub token_drop: bool,
    /// Whether communication overlaps with computation where the software supports it.
    pub overlap: bool,
    /// The training software.
    pub software: Software,
    /// TFLOPS that the user's GPUs reach in a large BF16 matrix multiplication; none for the usual value.
    pub gemm_tflops: Option<f64>,
    /// How the user's cluster differs from the model (`trainplan calibrate --cluster`).
    pub cluster: ClusterFactors,
}

impl Default for TrainingOptions {
    fn default() -> TrainingOptions {
        TrainingOptions {
            recompute: Recompute::None,
            modules: Modules::default(),
            offload_layers: 0,
            fsdp: false,
            reshard: true,
            zero_group: None,
            sequence_parallel: None,
            switches: Switches::default(),
            token_drop: false,
            overlap: true,
            software: Software::default(),
            gemm_tflops: None,
            cluster: ClusterFactors::default(),
        }
    }
}

impl TrainingOptions {
    /// Returns how memory is saved beyond the degrees of parallelism, in words: `40 layers offloaded`, `FSDP`.
    pub fn memory_savings(&self) -> Vec<String> {
        let offloaded =
            (self.offload_layers > 0).then(|| format!("{} layers offloaded", self.offload_layers));
        offloaded.into_iter().chain(self.fsdp.then(|| "FSDP".to_owned())).collect()
    }

    /// Returns whether tensor parallelism divides the sequence outside matrix multiplications.
    pub fn shares_sequence(&self) -> bool {
        self.sequence_parallel.unwrap_or(self.software.properties().sequence_parallel)
    }

    /// Returns the problem of keeping activations in CPU memory with `pp` pipeline stages, if there is one. The rules are
    /// those of `__post_init__` in Megatron-Core's transformer_config.py.
    pub(crate) fn offload_problem(&self, architecture: &Architecture, pp: u32) -> Option<Problem> {
        let (given, layers) = (self.offload_layers, architecture.layers);
        if given == 0 {
            return None;
        }
        let setting = Setting::new(Field::OffloadLayers, given);
        let message = if given >= layers {
            message![setting, format!(" must be less than the {layers} layers of the model.")]
        } else if pp > 1 {
            message![
                setting,
                " works without pipeline parallelism only. Use ",
                Setting::new(Field::Pp, 1),
                "."
            ]
        } else if self.recompute != Recompute::None || self.modules != Modules::default() {
            message![
                setting,
                " doesn't work with recomputation. Use ",
                Setting::new(Field::Recompute, "none"),
                "."
            ]
        } else {
            return None;
        };
        Some(Problem::new(Field::OffloadLayers, given, message))
    }

    /// Returns the problem of a rate of matrix multiplications in another unit, or above the dense BF16 peak of a GPU type.
    pub(crate) fn gemm_problem(&self, gpu: &str, bf16_tflops: f64) -> Option<Problem> {
        let tflops = self.gemm_tflops.filter(|tflops| !(LEAST_GEMM_TFLOPS..=bf16_tflops).contains(tflops))?;
        let range = words!(
            " must be from {LEAST_GEMM_TFLOPS} to {bf16_tflops} TFLOPS, the dense BF16 peak of the {gpu}, not {tflops}."
        );
        Some(Problem::new(Field::GemmTflops, tflops, message![Field::GemmTflops, range]))
    }

    /// Returns whether CUDA graphs launch the kernels of a model. They need gradients at fixed addresses, which Megatron-FSDP doesn't
    /// keep (Megatron-LM pull request 4663): all recipes with FSDP turn them off.
    pub fn uses_cuda_graphs(&self, architecture: &Architecture) -> bool {
        let by_default = match self.software.properties().cuda_graphs {
            CudaGraphs::All => true,
            CudaGraphs::Dense => architecture.moe.is_none(),
            CudaGraphs::None => false,
        };
        self.switches.graphs.unwrap_or(by_default) && !self.fsdp
    }

    /// Returns whether a token is sent once to each NVLink domain for all experts there.
    pub fn sends_once_per_domain(&self) -> bool {
        self.switches.sent_once.unwrap_or(self.software.properties().sends_once_per_domain)
    }

    /// Returns whether tensor parallelism's communication overlaps with computation.
    pub fn overlaps_tp(&self) -> bool {
        self.overlap && self.switches.hidden_tp.unwrap_or(self.software.properties().overlaps_tp)
    }

    /// Returns whether the exchange between experts overlaps with another micro batch. This needs an interleaved pipeline or none, and
    /// no full recomputation (Megatron-Bridge's comm_overlap.py).
    pub fn hides_experts(&self, layout: &Layout) -> bool {
        let interleaved = layout.vp() > 1;
        let is_possible = (interleaved || layout.pp() == 1) && self.recompute != Recompute::Full;
        let by_default = self.software.properties().hides_experts && interleaved;
        self.overlap && is_possible && self.switches.hidden_experts.unwrap_or(by_default)
    }

    /// Returns these options with other software, without what it can't do.
    #[must_use]
    pub fn with_software(&self, software: Software) -> TrainingOptions {
        TrainingOptions { software, switches: self.switches.within(software.properties()), ..*self }
    }

    /// Returns these options with what the recipes of its software switch on or off for a model, a GPU type and a precision.
    #[must_use]
    pub fn as_in_recipes(&self, model: &str, gpu: &str, dtype: Dtype) -> TrainingOptions {
        let switches = self.software.known().map(|stack| Switches::of_recipes(stack, model, gpu, dtype));
        TrainingOptions { switches: switches.unwrap_or_default(), ..*self }
    }
}

/// Parts of a layer that Megatron's selective recomputation can include (`--recompute-modules`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modules {
    /// The dense MLP.
    pub mlp: bool,
    /// The projections of multi-head latent attention up from their ranks.
    pub mla_up_proj: bool,
    /// The norms.
    pub layernorm: bool,
    /// The activation function of the experts.
    pub moe_act: bool,
    /// The shared experts.
    pub shared_experts: bool,
    /// The routed MLP as a whole.
    pub moe: bool,
}

impl Modules {
    /// Megatron's names of the parts.
    pub const NAMES: [&str; 6] = ["mlp", "mla_up_proj", "layernorm", "moe_act", "shared_experts", "moe"];

    /// Returns the names of the parts that are recomputed.
    pub fn names(&self) -> Vec<&'static str> {
        let Modules { mlp, mla_up_proj, layernorm, moe_act, shared_experts, moe } = *self;
        let on = [mlp, mla_up_proj, layernorm, moe_act, shared_experts, moe];
        Self::NAMES.into_iter().zip(on).filter_map(|(name, on)| on.then_some(name)).collect()
    }

    /// Returns the problem of recomputing these parts of a model, if there is one.
    pub(crate) fn problem(&self, architecture: &Architecture, recompute: Recompute) -> Option<Problem> {
        let lacks_experts = architecture.moe.is_none();
        let lacks_shared = architecture.moe.as_ref().is_none_or(|moe| moe.shared_ffn == 0);
        let lacks_latent = !matches!(architecture.attention.kind, AttentionKind::Mla { .. });
        let refuse = |given: &str, why: &str| {
            let message = message![Setting::new(Field::RecomputeModules, given), format!(" {why}.")];
            Some(Problem::new(Field::RecomputeModules, given, message))
        };
        let faults = [
            (
                self.mlp && architecture.mlp.is_none(),
                "mlp",
                "needs layers with a dense MLP, and the model has none",
            ),
            (self.mla_up_proj && lacks_latent, "mla_up_proj", "needs multi-head latent attention"),
            (self.moe_act && lacks_experts, "moe_act", "needs a mixture of experts"),
            (self.shared_experts && lacks_shared, "shared_experts", "needs shared experts"),
            (self.moe && lacks_experts, "moe", "needs a mixture of experts"),
        ];
        if let Some((_, name, why)) = faults.into_iter().find(|(is_fault, ..)| *is_fault) {
            return refuse(name, why);
        }
        if *self != Modules::default() && recompute == Recompute::Full {
            return refuse(
                &self.to_string(),
                "has no effect, because full recomputation includes every part",
            );
        }
        None
    }
}

impl fmt::Display for Modules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.names() {
            [] => f.write_str("none"),
            names => f.write_str(&names.join(",")),
        }
    }
}

impl FromStr for Modules {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Modules, Problem> {
        let mut modules = Modules::default();
        for name in text.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty() && *name != "none") {
            let on = match name.to_ascii_lowercase().as_str() {
                "mlp" => &mut modules.mlp,
                "mla_up_proj" => &mut modules.mla_up_proj,
                "layernorm" => &mut modules.layernorm,
                "moe_act" => &mut modules.moe_act,
                "shared_experts" => &mut modules.shared_experts,
                "moe" => &mut modules.moe,
                _ => return Err(Problem::unknown(Field::RecomputeModules, name, Self::NAMES)),
            };
            *on = true;
        }
        Ok(modules)
    }
}

choices! {
    /// The activations that the backward pass recomputes instead of storing them.
    #[derive(Default)]
    Recompute of Field::Recompute {
        /// Nothing.
        #[default]
        None "none",
        /// The core of attention: scores, softmax and their product with the values. Fused attention always recomputes
        /// them, so this costs time and saves no memory there.
        Selective "selective",
        /// Every layer, from its input.
        Full "full",
    }
}
