//! GPU types.

use crate::choices::choices;
use crate::data_file::{DataError, FromRow, Row};
use crate::precision::{Dtype, Width};
use crate::words::words;

choices! {
    /// A generation of GPUs: those that share kernels and measured constants, oldest first.
    Generation {
        /// NVIDIA Ampere: no FP8.
        Ampere "ampere" "Ampere",
        /// NVIDIA Hopper: FP8.
        Hopper "hopper" "Hopper",
        /// NVIDIA Blackwell: MXFP8 and NVFP4.
        Blackwell "blackwell" "Blackwell",
        /// NVIDIA Rubin: planned. Nobody has measured one, so its kernels are assumed to reach Blackwell's shares of the peaks.
        Rubin "rubin" "Rubin",
    }
}

impl Generation {
    /// Returns whether its GPUs can't be bought yet, so that nobody has measured one.
    pub fn is_planned(self) -> bool {
        self == Generation::Rubin
    }
}

/// A GPU type; rates are dense and per GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// The id in flags, files and links.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The board and the system.
    pub form: String,
    /// The generation.
    pub generation: Generation,
    /// Datasheet peak in BF16, TFLOPS.
    pub bf16_tflops: f64,
    /// Datasheet peak in FP8, TFLOPS; none before Hopper.
    pub fp8_tflops: Option<f64>,
    /// Datasheet peak in NVFP4, TFLOPS; none before Blackwell.
    pub nvfp4_tflops: Option<f64>,
    /// Memory, 10⁹ bytes.
    pub hbm_gb: f64,
    /// Memory bandwidth, 10¹² bytes per second.
    pub hbm_tbps: f64,
    /// NVLink, 10⁹ bytes per second in one direction.
    pub nvlink_gbps: f64,
    /// Number of GPUs that NVLink connects.
    pub nvlink_domain: u32,
    /// GPUs per Slurm node.
    pub gpus_per_node: u32,
    /// Network, 10⁹ bits per second.
    pub nic_gbit: f64,
    /// Copies between the GPU and CPU memory, 10⁹ bytes per second in one direction.
    pub host_gbps: f64,
    /// Power limit, watts.
    pub tdp_w: f64,
    /// Measured maximum of BF16 matrix multiplication, TFLOPS.
    pub max_gemm_bf16_tflops: Option<f64>,
    /// Measured maximum of FP8 matrix multiplication, TFLOPS.
    pub max_gemm_fp8_tflops: Option<f64>,
    pub(super) recipe_bf16_peak: Option<f64>,
    pub(super) recipe_fp8_peak: Option<f64>,
    pub(super) recipe_nvfp4_peak: Option<f64>,
    pub(super) aliases: String,
}

impl FromRow for Gpu {
    fn from_row(row: &Row<'_>) -> Result<Gpu, DataError> {
        Ok(Gpu {
            // Texts come last, because reading anything after them adds code that drops them.
            generation: generation(row)?,
            bf16_tflops: row.number("bf16_tflops")?,
            fp8_tflops: row.optional_number("fp8_tflops")?,
            nvfp4_tflops: row.optional_number("nvfp4_tflops")?,
            hbm_gb: row.number("hbm_gb")?,
            hbm_tbps: row.number("hbm_tbps")?,
            nvlink_gbps: row.number("nvlink_gbps")?,
            nvlink_domain: row.value("nvlink_domain")?,
            gpus_per_node: row.value("gpus_per_node")?,
            nic_gbit: row.number("nic_gbit")?,
            host_gbps: row.number("host_gbps")?,
            tdp_w: row.number("tdp_w")?,
            max_gemm_bf16_tflops: row.optional_number("max_gemm_bf16_tflops")?,
            max_gemm_fp8_tflops: row.optional_number("max_gemm_fp8_tflops")?,
            recipe_bf16_peak: row.optional_number("recipe_bf16_peak")?,
            recipe_fp8_peak: row.optional_number("recipe_fp8_peak")?,
            recipe_nvfp4_peak: row.optional_number("recipe_nvfp4_peak")?,
            id: row.string("id")?,
            name: row.string("name")?,
            form: row.string("form")?,
            aliases: row.string("aliases")?,
        })
    }
}

fn generation(row: &Row<'_>) -> Result<Generation, DataError> {
    let text = row.text("generation")?;
    let known = Generation::ALL.into_iter().find(|generation| generation.id() == text);
    known.ok_or_else(|| row.error(words!("unknown generation \"{text}\"")))
}

impl Gpu {
    /// Returns whether somebody may have measured it: it can be bought, and its figures are not the user's.
    pub fn is_measured(&self) -> bool {
        !self.generation.is_planned() && !self.id.contains(':')
    }

    /// Returns whether `name`, in lower case, is its id or an alias.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        self.id == name || self.aliases.split(' ').any(|alias| alias == name && !alias.is_empty())
    }

    /// Returns whether a device of this name, such as `NVIDIA A100-SXM4-80GB`, may be of this type: the first part of the id is a
    /// word of the name. Types that differ only in their memory can't be distinguished. No PCIe card is in the catalog.
    pub fn may_be(&self, device: &str) -> bool {
        let first = self.id.split('-').next().unwrap_or_default();
        let mut words = device.split([' ', '-', '_']);
        words.any(|word| word.eq_ignore_ascii_case(first)) && !device.to_ascii_lowercase().contains("pcie")
    }

    /// Returns the type, of some, that a device with this name may be and whose memory is nearest; none if it may be none of them. If its
    /// memory isn't known, the name may say it: `A100-SXM4-80GB`.
    pub fn of_device<'a>(gpus: &'a [Gpu], device: &str, memory_bytes: Option<f64>) -> Option<&'a Gpu> {
        let name = device.to_ascii_lowercase();
        let in_name = || {
            let gb =
                name.split([' ', '-', '_']).find_map(|word| word.strip_suffix("gb")?.parse::<u32>().ok());
            f64::from(gb.unwrap_or_default()) * 1e9
        };
        let bytes = memory_bytes.unwrap_or_else(in_name);
        let distance = |gpu: &Gpu| (gpu.hbm_gb * 1e9 - bytes).abs();
        let usable = gpus.iter().filter(|gpu| gpu.may_be(&name));
        usable.min_by(|one, other| distance(one).total_cmp(&distance(other)))
    }

    /// Returns the datasheet's dense peak in TFLOPS; none if the GPU does not support the precision.
    pub fn datasheet_tflops(&self, dtype: Dtype) -> Option<f64> {
        match dtype.width() {
            // Scales of 32 values, as in MXFP8, need Blackwell.
            Width::Fp8 if dtype == Dtype::Mxfp8 && self.generation < Generation::Blackwell => None,
            Width::Bf16 => Some(self.bf16_tflops),
            Width::Fp8 => self.fp8_tflops,
            Width::Nvfp4 => self.nvfp4_tflops,
        }
    }

    /// Returns the peak behind the MFU of published recipes on this GPU, in TFLOPS, if known.
    pub fn recipe_tflops(&self, dtype: Dtype) -> Option<f64> {
        match dtype.width() {
            Width::Bf16 => self.recipe_bf16_peak,
            Width::Fp8 => self.recipe_fp8_peak,
            Width::Nvfp4 => self.recipe_nvfp4_peak,
        }
    }

    /// Returns the peak that an MFU on this GPU divides by, in TFLOPS: that of published recipes, so that an MFU compares with theirs, or
    /// else the datasheet's. They differ on GB200, GB300 and B300. Only the document of a recipe may have another one.
    pub fn mfu_tflops(&self, dtype: Dtype) -> f64 {
        self.recipe_tflops(dtype).or(self.datasheet_tflops(dtype)).unwrap_or(self.bf16_tflops)
    }
}
