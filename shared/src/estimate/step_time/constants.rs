//! The fitted constants of the step time: few, physical, the same for every model.

use crate::catalog::{DataError, FromRow, Gpu, Row, read};
use crate::options::Stack;
use std::sync::LazyLock;

/// Declares the constants once: the struct, the names by which the data file and the fit know them.
macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// The fitted constants of the step time.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Constants {
            $($(#[doc = $doc])+ pub $name: f64,)*
            /// Factor on the time of each software stack, in the order of [`Stack::ALL`].
            pub stacks: [f64; Stack::ALL.len()],
            /// Factor on the speed of GPU types against the first of their generation, with their ids.
            pub gpus: Vec<(String, f64)>,
        }

        impl Constants {
            fn place(&mut self, name: &str) -> Option<&mut f64> {
                if let Some(id) = name.strip_prefix("stack ") {
                    let index = Stack::ALL.iter().position(|stack| stack.id() == id)?;
                    return Some(&mut self.stacks[index]);
                }
                if let Some(id) = name.strip_prefix("gpu ") {
                    return self.gpus.iter_mut().find(|(gpu, _)| gpu == id).map(|(_, factor)| factor);
                }
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            fn blank() -> Constants {
                Constants { $($name: f64::NAN,)* stacks: [1.0; Stack::ALL.len()], gpus: Vec::new() }
            }
        }
    };
}

constants! {
    /// Share of the BF16 peak that a large matrix multiplication reaches, Ampere.
    gemm_ampere,
    /// The same, Hopper.
    gemm_hopper,
    /// The same, Blackwell.
    gemm_blackwell,
    /// Share of the FP8 peak that a large matrix multiplication reaches, Hopper.
    gemm_fp8_hopper,
    /// The same, Blackwell.
    gemm_fp8_blackwell,
    /// Share of the NVFP4 peak that a large matrix multiplication reaches.
    gemm_nvfp4,
    /// How often a matrix multiplication moves its operands through memory.
    gemm_traffic,
    /// Share of the loss to tiles that do not fill the last wave that really occurs.
    gemm_waves,
    /// Time that a matrix multiplication takes besides its work, s: starting, filling and draining.
    gemm_start_s,
    /// Share of the BF16 peak that fused attention reaches, Ampere.
    attention_ampere,
    /// The same, Hopper, with kernels made for it.
    attention_hopper,
    /// The same, Hopper, with kernels made for Ampere (FlashAttention-2, Triton).
    attention_hopper_old,
    /// The same, Blackwell.
    attention_blackwell,
    /// Head width at which fused attention is at half of its efficiency.
    attention_head,
    /// Passes over the scores of attention that is not fused.
    attention_scores,
    /// Passes over the residual stream in a block, forward and backward.
    passes_hidden,
    /// Passes over the wide activations of a block, forward and backward.
    passes_wide,
    /// Further passes that casting to FP8 takes.
    passes_fp8,
    /// Further passes that casting to MXFP8 or block-scaled FP8 takes.
    passes_mxfp8,
    /// Further passes that casting to NVFP4 takes.
    passes_nvfp4,
    /// Share of the efficiency of one multiplication that the grouped ones of experts keep, in BF16.
    experts,
    /// The same in narrower formats.
    experts_narrow,
    /// What narrower formats keep of that in stacks before the new grouped path (26.06).
    experts_before_2606,
    /// What the old path's separate casts and activation functions add to its passes over memory.
    unfused_before_2606,
    /// What stacks before 25.09 keep of the speed of routed blocks.
    experts_before_2509,
    /// What stacks before 25.09 keep of their speed on Blackwell, which was new then.
    blackwell_before_2509,
    /// Passes over attention's output for each step around the ring of context parallelism.
    passes_ring,
    /// How much the fullest expert's rank has beyond its even share.
    imbalance,
    /// Passes over the tokens that go to experts, sorting them and back.
    passes_routed,
    /// Time that routing takes besides, per block and micro batch, s.
    route_s,
    /// Time of the host to route besides, per block and micro batch, where nothing is captured in graphs, s.
    route_host_s,
    /// Passes over the state that the Mamba-2 scan takes.
    passes_scan,
    /// Time of the host per block, micro batch and pass, s.
    host_s,
    /// What each doubling of tensor parallelism adds to that.
    host_tp,
    /// What CUDA graphs leave of that.
    host_graphed,
    /// Share of NVLink that collectives reach.
    nvlink,
    /// The same, Blackwell.
    nvlink_blackwell,
    /// Share of the network that collectives reach.
    network,
    /// Share of NVLink that an exchange of all with all reaches.
    exchange_nvlink,
    /// Share of the network that an exchange of all with all reaches.
    exchange_network,
    /// Time that a collective takes besides its volume, s.
    collective_s,
    /// Share of tensor parallelism's communication that overlap leaves.
    tp_exposed,
    /// Share of context parallelism's communication that overlap leaves.
    cp_exposed,
    /// Share of the experts' exchange that overlap leaves.
    ep_exposed,
    /// Share of the pipeline's communication that overlap leaves.
    pp_exposed,
    /// Share of gradients' and weights' communication that overlap leaves.
    dp_exposed,
    /// The same in NeMo 1.
    dp_exposed_before_2504,
    /// Share of an FSDP layer's communication that can't hide whatever the computation.
    fsdp_exposed,
    /// Bytes per parameter that the optimizer moves.
    optimizer_bytes,
    /// Time of a step besides, s.
    step_s,
    /// What each doubling of the GPUs beyond a node adds.
    straggling,
}

/// A constant as its data file gives it.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its fitted value.
    pub value: f64,
    /// What is believed of it before any measurement of a run.
    pub prior: f64,
    /// How far it may be from that: the standard deviation of its logarithm.
    pub spread: f64,
    /// Unit.
    pub unit: String,
    /// Where the belief comes from.
    pub source: String,
}

impl FromRow for Constant {
    fn from_row(row: &Row<'_>) -> Result<Constant, DataError> {
        Ok(Constant {
            name: row.string("name")?,
            value: row.value("value")?,
            prior: row.value("prior")?,
            spread: row.value("spread")?,
            unit: row.string("unit")?,
            source: row.string("source")?,
        })
    }
}

impl Constant {
    /// Every constant, in the order of the data file.
    pub fn all() -> Vec<Constant> {
        #[expect(
            clippy::expect_used,
            reason = "the file is fixed when this is built, and every test reads it"
        )]
        read("calibration.csv", include_str!("../../../data/calibration.csv"))
            .expect("the constants are well formed")
    }
}

impl Constants {
    /// The constants that this program carries.
    pub fn embedded() -> &'static Constants {
        static EMBEDDED: LazyLock<Constants> = LazyLock::new(|| {
            let all = Constant::all();
            Constants::from_values(&all, &all.iter().map(|constant| constant.value).collect::<Vec<_>>())
        });
        &EMBEDDED
    }

    /// Constants of the names of `all` with other values.
    #[doc(hidden)]
    pub fn verbatim(all: &[Constant], values: &[f64]) -> Constants {
        Constants::from_values(all, values)
    }

    pub(crate) fn from_values(all: &[Constant], values: &[f64]) -> Constants {
        let mut constants = Constants::blank();
        for (constant, value) in all.iter().zip(values) {
            if let Some(id) = constant.name.strip_prefix("gpu ") {
                constants.gpus.push((id.to_string(), 1.0));
            }
            if let Some(place) = constants.place(&constant.name) {
                *place = *value;
            }
        }
        constants
    }

    /// The factor on a GPU type's speed; an own GPU has that of the one it is based on.
    pub(super) fn gpu(&self, gpu: &Gpu) -> f64 {
        let id = gpu.id.split(':').next().unwrap_or_default();
        self.gpus.iter().find(|(known, _)| known == id).map_or(1.0, |(_, factor)| *factor)
    }
}
