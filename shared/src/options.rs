//! What a run may choose besides its layout and its batch: recomputation, sharding, the software that trains.

use crate::choices::choices;

/// What a run may choose besides its layout and its batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Activations that the backward pass computes again.
    pub recompute: Recompute,
    /// Parts of a layer that are computed again besides, where recomputation is selective.
    pub modules: Modules,
    /// Whether weights, gradients and optimizer state are all sharded over the data-parallel ranks (FSDP), rather than
    /// the optimizer state alone.
    pub fsdp: bool,
    /// With FSDP, whether a layer's gathered weights are dropped after the forward pass and gathered again.
    pub reshard: bool,
    /// With a sharded optimizer, over how many data-parallel ranks; none for all.
    pub zero_group: Option<u32>,
    /// Whether tensor parallelism shares the sequence outside of matrix multiplications; none for what the software
    /// does.
    pub sequence_parallel: Option<bool>,
    /// Whether kernels are launched by CUDA graphs; none for what the software does.
    pub cuda_graphs: Option<bool>,
    /// Whether the exchange of tokens between experts hides behind the computation of another micro batch; none for what
    /// the software's recipes do.
    pub expert_overlap: Option<bool>,
    /// Whether tokens beyond an expert's even share are dropped, so that no expert has more than another.
    pub token_drop: bool,
    /// Whether communication hides behind computation where the software can hide it.
    pub overlap: bool,
    /// The software that trains.
    pub stack: Stack,
    /// What the user's GPUs reach in a large BF16 matrix multiplication, TFLOPS; none for what such GPUs usually reach.
    pub gemm_tflops: Option<f64>,
    /// Measured over predicted step time on the user's cluster, as `trainplan calibrate --cluster` gives it; none for 1.
    pub cluster_factor: Option<f64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
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
            stack: Stack::default(),
            gemm_tflops: None,
            cluster_factor: None,
        }
    }
}

impl Options {
    /// Whether the exchange between experts hides behind another micro batch. Recipes of Megatron-Bridge turn that on
    /// where the pipeline is interleaved, which it needs.
    pub fn hides_experts(&self, interleaved: bool) -> bool {
        let bridge = matches!(self.stack, Stack::Bridge25 | Stack::Bridge2602 | Stack::Bridge2606);
        self.overlap && self.expert_overlap.unwrap_or(bridge && interleaved)
    }
}

/// Parts of a layer that Megatron's selective recomputation can name (`--recompute-modules`).
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
        /// The core of attention: scores, softmax and their product with the values. Fused attention recomputes them
        /// in any case, so that this saves no memory where attention is fused, and costs time.
        Selective "selective",
        /// Every layer, from its input.
        Full "full",
    }
}

choices! {
    /// The software that trains, by generation where its speed changed.
    #[derive(Default)]
    Stack of Field::Stack {
        /// Megatron-LM as of SC'21: no fused attention, no sequence parallelism.
        MegatronLm2021 "megatron-lm-2021" "Megatron-LM 2021",
        /// Megatron-LM as of the sequence-parallelism paper: no fused attention.
        MegatronLm2022 "megatron-lm-2022" "Megatron-LM 2022",
        /// Megatron-DeepSpeed with ZeRO-1, 2022 and 2023: no fused attention, no sequence parallelism.
        MegatronDeepSpeed "megatron-deepspeed" "Megatron-DeepSpeed",
        /// NeMo 1 on Megatron-Core as of mid-2024 (24.03, 24.07).
        Nemo24 "nemo-1-24.07" "NeMo 1 (mid-2024)",
        /// NeMo 1 on Megatron-Core, 24.11 to 25.02.
        Nemo1 "nemo-1" "NeMo 1 (24.11 to 25.02)",
        /// NeMo 2 on Megatron-Core, 25.02 to 25.07.
        Nemo2 "nemo-2" "NeMo 2 (2025)",
        /// NVIDIA's MLPerf training submissions.
        MlPerf "nemo-mlperf" "NeMo for MLPerf",
        /// Megatron-LM 0.14 as distributed, without NeMo's tuning.
        MegatronLm014 "megatron-lm-0.14" "Megatron-LM 0.14",
        /// Megatron-Bridge 25.09 and 25.11.
        Bridge25 "megatron-bridge-25.09" "Megatron-Bridge 25.09 to 25.11",
        /// Megatron-Bridge 26.02 and 26.04.
        Bridge2602 "megatron-bridge-26.02" "Megatron-Bridge 26.02 to 26.04",
        /// Megatron-Bridge 26.06 and later, with its new path for grouped matrix multiplication.
        #[default]
        Bridge2606 "megatron-bridge-26.06" "Megatron-Bridge 26.06 and later",
        /// NeMo AutoModel: PyTorch FSDP2 with Transformer Engine.
        AutoModel "automodel" "NeMo AutoModel",
        /// MosaicML Composer with FSDP.
        Composer "composer-fsdp" "Composer, FSDP",
        /// torchtitan: FSDP2 and tensor parallelism, compiled.
        Torchtitan "torchtitan" "torchtitan",
        /// PyTorch FSDP, compiled, as IBM and Meta tuned it.
        PytorchFsdp "pytorch-fsdp" "PyTorch FSDP, compiled",
        /// InternEvo with hierarchical ZeRO.
        InternEvo "internevo" "InternEvo",
        /// Meta's own, for Llama 3.
        Meta "meta-llama3" "Meta's for Llama 3",
    }
}

impl Stack {
    /// Whether attention is fused, so that its scores are never kept in memory.
    pub fn fuses_attention(self) -> bool {
        !matches!(self, Stack::MegatronLm2021 | Stack::MegatronLm2022 | Stack::MegatronDeepSpeed)
    }

    /// Whether tensor parallelism shares the sequence between its ranks outside of the matrix multiplications.
    pub fn shares_sequence(self) -> bool {
        !matches!(self, Stack::MegatronLm2021 | Stack::MegatronDeepSpeed)
    }

    /// Whether its dispatcher sends a token once to each NVLink domain, whatever the experts there (DeepEP, HybridEP).
    pub fn sends_once_per_domain(self) -> bool {
        matches!(self, Stack::Bridge25 | Stack::Bridge2602 | Stack::Bridge2606 | Stack::AutoModel)
    }

    /// Whether its fused attention is made for Hopper (cuDNN, FlashAttention-3) rather than carried over from Ampere.
    pub fn has_hopper_attention(self) -> bool {
        self.is_nvidia_megatron() || matches!(self, Stack::MegatronLm014 | Stack::AutoModel)
    }

    /// Whether it is NVIDIA's own, on Megatron-Core as the recipes run it.
    pub fn is_nvidia_megatron(self) -> bool {
        use Stack::{Bridge25, Bridge2602, Bridge2606, MlPerf, Nemo1, Nemo2, Nemo24};
        matches!(self, Nemo24 | Nemo1 | Nemo2 | MlPerf | Bridge25 | Bridge2602 | Bridge2606)
    }
}
