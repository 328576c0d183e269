//! The file of a probe, as the measuring program writes it.

use crate::catalog::{Catalog, Gpu};
use crate::field::Field;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// What [`Probe::kind`] says.
const KIND: &str = "trainplan-probe";

/// How the name of a file ends.
const ENDING: &str = ".json";

/// The newest form of the file that is read.
const VERSION: u32 = 1;

/// The largest file that is read, in bytes: more than that of 10,000 GPUs.
const LARGEST: usize = 4 << 20;

/// Largest number in a file: no rate, size or time is nearly as large.
const MOST: f64 = 1e18;

/// What a cluster reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The form of the file.
    pub schema_version: u32,
    /// Tells the file from others.
    pub kind: String,
    /// The name of the cluster's profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The GPU type, as the profile names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// When it was measured, RFC 3339.
    pub measured_at: String,
    /// The device's name for itself, such as `NVIDIA H100 80GB HBM3`, or `cpu`.
    pub device: String,
    /// `cuda`, `rocm` or `cpu`.
    pub accelerator: String,
    /// Version of PyTorch.
    pub torch: String,
    /// Version of CUDA.
    pub cuda: Option<String>,
    /// Version of NCCL.
    pub nccl: Option<String>,
    /// What carried the collectives: `nccl` or `gloo`; none for one process.
    pub backend: Option<String>,
    /// Number of nodes.
    pub nodes: u32,
    /// Processes, one per GPU, on each node.
    pub ranks_per_node: u32,
    /// The device's memory.
    pub memory: Option<FreeMemory>,
    /// Matrix multiplications of one GPU.
    pub matmuls: Vec<MatmulRate>,
    /// Fused attention of one GPU.
    pub attention: Vec<AttentionRate>,
    /// Bytes that a copy reads and writes, 10⁹ per second; the median of the GPUs.
    pub memory_gbps: Option<f64>,
    /// Microseconds of the host to launch a kernel; the median of the GPUs.
    pub launch_us: Option<f64>,
    /// Collectives by size.
    pub collectives: Vec<CollectiveRate>,
    /// Every GPU.
    pub ranks: Vec<RankRate>,
    /// What could not be measured.
    pub skipped: Vec<SkippedMeasurement>,
    /// Seconds of the whole probe.
    pub seconds: f64,
}

/// The memory of a device after its start, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FreeMemory {
    /// All of it.
    pub total_bytes: u64,
    /// What PyTorch can allocate; the least of the GPUs.
    pub free_bytes: u64,
}

/// The precision of a matrix multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbePrecision {
    /// BF16.
    Bf16,
    /// FP8.
    Fp8,
}

/// A multiplication of m×k by k×n.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MatmulRate {
    /// Precision of the operands.
    pub precision: ProbePrecision,
    /// Rows of the first matrix.
    pub m: u64,
    /// Columns of the second matrix.
    pub n: u64,
    /// Columns of the first matrix.
    pub k: u64,
    /// Its rate, TFLOPS.
    pub tflops: f64,
}

/// Fused attention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttentionRate {
    /// `forward`, or `forward and backward`.
    pub pass: String,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Heads.
    pub heads: u64,
    /// Elements of a head.
    pub head_size: u64,
    /// Its rate, TFLOPS; the causal mask counts half.
    pub tflops: f64,
}

/// Which GPUs communicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeScope {
    /// Those of a node.
    Node,
    /// One of each node; all such groups at the same time.
    Network,
}

/// A collective at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectiveRate {
    /// `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all` or `point-to-point`.
    pub kind: String,
    /// Which GPUs.
    pub scope: ProbeScope,
    /// Number of GPUs of a group.
    pub ranks: u32,
    /// Bytes per GPU.
    pub bytes: u64,
    /// Seconds of the slowest GPU.
    pub time_s: f64,
    /// Bandwidth as nccl-tests define it ("busbw"), 10⁹ bytes per second.
    pub bus_gbps: f64,
}

/// One GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankRate {
    /// Its node.
    pub host: String,
    /// Its number on the node.
    pub local_rank: u32,
    /// Its best BF16 matrix multiplication, TFLOPS.
    pub bf16_tflops: Option<f64>,
    /// Bytes that a copy reads and writes, 10⁹ per second.
    pub memory_gbps: Option<f64>,
    /// Microseconds of its host to launch a kernel.
    pub launch_us: Option<f64>,
}

/// What could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedMeasurement {
    /// Its name.
    pub measurement: String,
    /// Why.
    pub reason: String,
}

impl Probe {
    /// Returns whether a value of `--cluster-factor` names the file of a probe; otherwise it lists factors.
    pub fn is_file_name(text: &str) -> bool {
        text.ends_with(ENDING)
    }

    /// Returns whether a text is meant as the file of a probe, valid or not.
    pub fn is_meant(text: &str) -> bool {
        text.contains(KIND)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The text is not the file of a probe, is of a newer form, or has numbers that nothing measures.
    pub fn parse(text: &str) -> Result<Probe, Problem> {
        let refuse = |why: String| Problem::new(Field::ClusterFactor, "", why);
        if text.len() > LARGEST {
            return Err(refuse(format!("The file is larger than {} MiB.", LARGEST >> 20)));
        }
        let probe: Probe = serde_json::from_str(text).map_err(|error| {
            refuse(match error.is_eof() {
                true => format!("The file is cut off: {error}."),
                false => format!("The file was not written by trainplan probe, or was changed: {error}."),
            })
        })?;
        if probe.kind != KIND {
            return Err(refuse(format!("The file's kind is \"{}\" instead of \"{KIND}\".", probe.kind)));
        }
        if probe.schema_version > VERSION {
            return Err(refuse(format!(
                "The file has schema version {}, and this Trainplan reads up to {VERSION}. Use a newer Trainplan.",
                probe.schema_version
            )));
        }
        let absurd = probe.numbers().find(|(_, number)| !(0.0..MOST).contains(number));
        match absurd {
            Some((what, number)) => {
                Err(refuse(format!("{what} is {number}. It must be from 0 to {MOST:e}.")))
            }
            None => Ok(probe),
        }
    }

    /// Returns every measured number with its key.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let single = [
            ("memory_gbps", self.memory_gbps),
            ("launch_us", self.launch_us),
            ("seconds", Some(self.seconds)),
        ];
        let collectives = self.collectives.iter();
        let ranks = self.ranks.iter();
        (single.into_iter().filter_map(|(key, number)| Some((key, number?))))
            .chain(self.matmuls.iter().map(|rate| ("tflops of matmuls", rate.tflops)))
            .chain(self.attention.iter().map(|rate| ("tflops of attention", rate.tflops)))
            .chain(collectives.flat_map(|rate| [("time_s", rate.time_s), ("bus_gbps", rate.bus_gbps)]))
            .chain(ranks.flat_map(|rank| {
                [
                    ("bf16_tflops", rank.bf16_tflops),
                    ("memory_gbps", rank.memory_gbps),
                    ("launch_us", rank.launch_us),
                ]
                .into_iter()
                .filter_map(|(key, number)| Some((key, number?)))
            }))
    }

    /// Returns the GPU type: the one that the profile names, or else the one whose id is a word of the device's name and whose
    /// memory is nearest. None if the catalog has no such type.
    pub fn gpu_type<'a>(&self, catalog: &'a Catalog) -> Option<&'a Gpu> {
        if let Some(id) = &self.gpu {
            return catalog.gpu(id).ok();
        }
        let memory_bytes = self.memory.map(|memory| memory.total_bytes as f64);
        Gpu::of_device(catalog.gpus(), &self.device, memory_bytes)
    }
}
