//! Training options: recomputation, sharding, overlap and the software.

use crate::architecture::Architecture;
use crate::choices::choices;
use crate::cluster_factors::ClusterFactors;
use crate::stack::{CudaGraphs, Software};

/// The options of a training run other than layout and batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingOptions {
    /// Activations that the backward pass recomputes.
    pub recompute: Recompute,
    /// Further parts of a layer that selective recomputation includes.
    pub modules: Modules,
    /// Whether weights and gradients are sharded over the data-parallel ranks as well as the optimizer (FSDP).
    pub fsdp: bool,
    /// With FSDP, whether a layer's weights are gathered again in the backward pass instead of kept.
    pub reshard: bool,
    /// Data-parallel ranks that share the optimizer; none for all.
    pub zero_group: Option<u32>,
    /// Whether tensor parallelism divides the sequence outside matrix multiplications; none for the software's default.
    pub sequence_parallel: Option<bool>,
    /// Whether CUDA graphs launch the kernels; none for the software's default.
    pub cuda_graphs: Option<bool>,
    /// Whether the exchange of tokens between experts overlaps with another micro batch; none for the default of the
    /// software's recipes.
    pub expert_overlap: Option<bool>,
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
            fsdp: false,
            reshard: true,
            zero_group: None,
            sequence_parallel: None,
            cuda_graphs: None,
            expert_overlap: None,
            token_drop: false,
            overlap: true,
            software: Software::default(),
            gemm_tflops: None,
            cluster: ClusterFactors::default(),
        }
    }
}

impl TrainingOptions {
    /// Returns whether tensor parallelism divides the sequence outside matrix multiplications.
    pub fn shares_sequence(&self) -> bool {
        self.sequence_parallel.unwrap_or(self.software.properties().sequence_parallel)
    }

    /// Returns whether CUDA graphs launch the kernels of a model.
    pub fn uses_cuda_graphs(&self, architecture: &Architecture) -> bool {
        self.cuda_graphs.unwrap_or(match self.software.properties().cuda_graphs {
            CudaGraphs::All => true,
            CudaGraphs::Dense => architecture.moe.is_none(),
            CudaGraphs::None => false,
        })
    }

    /// Returns whether the exchange between experts overlaps with another micro batch. This needs an interleaved
    /// pipeline, for which recipes of Megatron-Bridge turn it on.
    pub fn hides_experts(&self, interleaved: bool) -> bool {
        self.overlap && self.expert_overlap.unwrap_or(self.software.properties().hides_experts && interleaved)
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
