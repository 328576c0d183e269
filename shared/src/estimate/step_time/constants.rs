//! The fitted constants of the step time. Each has a physical meaning and holds for every model.

use crate::catalog::Gpu;
use crate::data_file::{DataError, FromRow, Row, embedded};
use crate::stack::Stack;
use std::sync::LazyLock;

/// Declares each constant once: its field and its name in the data file and the fit.
macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// The fitted constants of the step time.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Constants {
            $($(#[doc = $doc])+ pub $name: f64,)*
            /// Factor on the step time of each software stack, in the order of [`Stack::ALL`].
            pub stacks: [f64; Stack::ALL.len()],
            /// Factor on the speed of GPU types relative to the first of their generation, by id.
            pub gpus: Vec<(String, f64)>,
        }

        impl Constants {
            /// The names of the fields above, as the data file has them.
            const NAMES: &[&str] = &[$(stringify!($name)),*];

            fn place(&mut self, name: &str) -> Option<&mut f64> {
                if let Some(id) = name.strip_prefix("stack ") {
                    let index = Stack::ALL.iter().position(|stack| stack.id() == id)?;
                    return Some(&mut self.stacks[index]);
                }
                if let Some(id) = name.strip_prefix("gpu ") {
                    return self.gpus.iter_mut().find(|(gpu, _)| gpu == id).map(|(_, factor)| factor);
                }
                // A `match` would compare each name by code of its own.
                let place = Constants::NAMES.iter().position(|known| *known == name)?;
                [$(&mut self.$name),*].into_iter().nth(place)
            }

            fn blank() -> Constants {
                Constants { $($name: f64::NAN,)* stacks: [1.0; Stack::ALL.len()], gpus: Vec::new() }
            }
        }
    };
}

constants! {
    /// Share of the BF16 peak that a large matrix multiplication reaches on Ampere.
    gemm_ampere,
    /// Share of the BF16 peak that a large matrix multiplication reaches on Hopper.
    gemm_hopper,
    /// Share of the BF16 peak that a large matrix multiplication reaches on Blackwell.
    gemm_blackwell,
    /// Share of the FP8 peak that a large matrix multiplication reaches on Hopper.
    gemm_fp8_hopper,
    /// Share of the FP8 peak that a large matrix multiplication reaches on Blackwell.
    gemm_fp8_blackwell,
    /// Share of the NVFP4 peak that a large matrix multiplication reaches.
    gemm_nvfp4,
    /// Times that a matrix multiplication moves its operands through memory.
    gemm_traffic,
    /// Share of the theoretical wave-quantization loss that occurs in practice.
    gemm_waves,
    /// Fixed time of a matrix multiplication, s: launch, fill and drain.
    gemm_start_s,
    /// Share of the BF16 peak that fused attention reaches on Ampere.
    attention_ampere,
    /// Share of the BF16 peak that fused attention reaches on Hopper, with kernels made for Hopper.
    attention_hopper,
    /// Share of the BF16 peak that fused attention reaches on Hopper with FlashAttention-2 or Triton.
    attention_hopper_old,
    /// Share of the BF16 peak that fused attention reaches on Blackwell.
    attention_blackwell,
    /// Head width at which fused attention has half its efficiency.
    attention_head,
    /// Passes over the scores of unfused attention.
    attention_scores,
    /// Passes over the residual stream in a block, forward and backward.
    passes_hidden,
    /// Passes over the wide activations of a block, forward and backward.
    passes_wide,
    /// Factor on those passes if norms and activation functions are single PyTorch operations.
    kernels_eager,
    /// Additional passes for casting to FP8.
    passes_fp8,
    /// Additional passes for casting to MXFP8 or block-scaled FP8.
    passes_mxfp8,
    /// Additional passes for casting to NVFP4.
    passes_nvfp4,
    /// Efficiency of grouped expert multiplications relative to single ones, in BF16.
    experts,
    /// Efficiency of grouped expert multiplications relative to single ones, in FP8 and NVFP4.
    experts_narrow,
    /// Factor on that efficiency before the fused grouped path of 26.06.
    experts_before_2606,
    /// Passes over memory that separate casts and activation functions add before 26.06, relative to fused
    /// ones.
    unfused_before_2606,
    /// Passes over the tokens sent to experts that NeMo's releases before 25.09 add on Blackwell.
    passes_before_2509,
    /// Factor on the speed of NeMo 2 on Blackwell before 25.09.
    blackwell_before_2509,
    /// Passes over attention's output per step around the ring of context parallelism.
    passes_ring,
    /// Tokens of the fullest expert rank above its even share, as a fraction.
    imbalance,
    /// Passes over the tokens sent to experts, for sorting and restoring their order.
    passes_routed,
    /// Fixed time of routing per block and micro batch, s.
    route_s,
    /// Additional host time of routing per block and micro batch without CUDA graphs, s.
    route_host_s,
    /// Passes of the Mamba-2 scan over its state.
    passes_scan,
    /// Host time per block, micro batch and pass, s.
    host_s,
    /// Factor on the host time if norms and activation functions are single PyTorch operations.
    host_eager,
    /// Share that each additional tensor-parallel rank adds to the host time.
    host_tp,
    /// Share of the host time that remains with CUDA graphs.
    host_graphed,
    /// Share of NVLink's rate that collectives reach before Blackwell.
    nvlink,
    /// Share of NVLink's rate that collectives reach on Blackwell.
    nvlink_blackwell,
    /// Share of the network's rate that collectives reach.
    network,
    /// Share of NVLink's rate that an all-to-all exchange reaches.
    exchange_nvlink,
    /// Share of the network's rate that an all-to-all exchange reaches.
    exchange_network,
    /// Latency of a collective, s.
    collective_s,
    /// Latency of a step around a ring that crosses the network, s.
    network_step_s,
    /// Share of tensor parallelism's communication that stays exposed with overlap.
    tp_exposed,
    /// Share of context parallelism's communication that stays exposed with overlap.
    cp_exposed,
    /// Share of the experts' exchange that stays exposed with overlap.
    ep_exposed,
    /// Share of the pipeline's transfers that stays exposed with overlap.
    pp_exposed,
    /// Share of data parallelism's communication that stays exposed with overlap.
    dp_exposed,
    /// Share of data parallelism's communication that stays exposed with overlap before 25.04 (NeMo 1).
    dp_exposed_before_2504,
    /// Share of an FSDP layer's communication that computation can never hide.
    fsdp_exposed,
    /// Bytes per parameter that the optimizer moves.
    optimizer_bytes,
    /// Fixed time of a step, s.
    step_s,
    /// Share that each doubling of the GPUs beyond 8 adds to the step time.
    straggling,
}

/// A row of `calibration.csv` without its prior.
struct FittedConstant {
    name: String,
    value: f64,
}

impl FromRow for FittedConstant {
    fn from_row(row: &Row<'_>) -> Result<FittedConstant, DataError> {
        Ok(FittedConstant { name: row.string("name")?, value: row.number("value")? })
    }
}

/// A row of `calibration.csv`: a constant with its prior.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Name of the field in [`Constants`], or `stack ID` or `gpu ID`.
    pub name: String,
    /// Fitted value.
    pub value: f64,
    /// Value expected before any run was measured.
    pub prior: f64,
    /// Standard deviation of the prior's logarithm.
    pub spread: f64,
    /// Unit.
    pub unit: String,
    /// Source of the prior.
    pub source: String,
}

impl FromRow for Constant {
    fn from_row(row: &Row<'_>) -> Result<Constant, DataError> {
        Ok(Constant {
            name: row.string("name")?,
            value: row.number("value")?,
            prior: row.number("prior")?,
            spread: row.number("spread")?,
            unit: row.string("unit")?,
            source: row.string("source")?,
        })
    }
}

impl Constant {
    /// Returns every constant, in the order of the data file.
    pub fn all() -> Vec<Constant> {
        embedded!("calibration.csv")
    }
}

impl Constants {
    /// Returns the embedded constants.
    pub fn embedded() -> &'static Constants {
        static EMBEDDED: LazyLock<Constants> = LazyLock::new(|| {
            let fitted: Vec<FittedConstant> = embedded!("constants.csv");
            Constants::of(fitted.iter().map(|constant| (&*constant.name, constant.value)))
        });
        &EMBEDDED
    }

    /// Returns constants with the names of `all` and these values.
    #[cfg(feature = "calibrate")]
    pub(crate) fn from_values(all: &[Constant], values: &[f64]) -> Constants {
        Constants::of(all.iter().zip(values).map(|(constant, value)| (&*constant.name, *value)))
    }

    fn of<'a>(values: impl Iterator<Item = (&'a str, f64)>) -> Constants {
        let mut constants = Constants::blank();
        for (name, value) in values {
            if let Some(id) = name.strip_prefix("gpu ") {
                constants.gpus.push((id.to_string(), 1.0));
            }
            if let Some(place) = constants.place(name) {
                *place = value;
            }
        }
        constants
    }

    /// Removes a GPU type's own speed, so that it has that of the first type of its generation.
    #[cfg(feature = "calibrate")]
    pub(crate) fn forget_gpu(&mut self, id: &str) {
        self.gpus.retain(|(known, _)| known != id);
    }

    /// Returns the factor on a GPU type's speed; a custom GPU has the factor of its base type.
    pub(super) fn gpu(&self, gpu: &Gpu) -> f64 {
        let id = gpu.id.split(':').next().unwrap_or_default();
        self.gpus.iter().find(|(known, _)| known == id).map_or(1.0, |(_, factor)| *factor)
    }
}
