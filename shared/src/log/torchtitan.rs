//! torchtitan: one coloured line per step, counted from 1, without a step time.
//!
//! `step:  1  loss:  8.12345  grad_norm:  1.2345  memory: 50.00GiB(62.00%)  tps: 1,299  tflops: 12.34  mfu: 1.23%`.
//! Tokens per second are per GPU. The memory is the allocator's peak reservation since the previous line. Before the steps, the
//! trainer states its setup, each line once per rank that logs:
//!
//! ```text
//! Building 2-D device mesh with ['dp_shard', 'tp'], [32, 4]
//! CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory
//! Model llama3 8B size: 8,030,261,248 total parameters
//! Swapped to Float8Linear layers with enable_fsdp_float8_all_gather=True
//! Applied selective activation checkpointing to the model
//! Trainer is initialized with local batch size 1, global batch size 8, gradient accumulation steps 1, sequence length 8192, total
//! steps 50 (warmup 20)
//! ```
//!
//! Since the end of 2025, the mesh is `Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1,
//! etp=1`. A run in BF16, and one without recomputation, has no line about them.

use memchr::memmem;
use serde::{Deserialize, Serialize};

use super::hit::Hit;
use super::steps::Step;
use super::text::{excerpt, field, label, number, plain, ungrouped};
use crate::choices::choices;

pub(super) const MARKER: &[u8] = b"memory: ";
pub(super) const BATCH: &[u8] = b"Trainer is initialized with local batch size";

const MODEL: &[u8] = b" total parameters";
const DEVICE: &[u8] = b"CUDA capacity: ";
const MESH: &[u8] = b"device mesh with ";
const APPLIED: &[u8] = b"Applied ";
const SWAPPED: &[u8] = b"Swapped to ";

/// What starts the lines of the setup other than the batch.
pub(super) const SETUP: [&[u8]; 5] = [MODEL, DEVICE, MESH, APPLIED, SWAPPED];

/// The longest name of a model or a device that is kept, in characters.
const LONGEST_NAME: usize = 50;

const GIB: f64 = 1_073_741_824.0;

/// The batch that a log states before its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedBatch {
    /// Sequences in a step.
    pub global_batch_size: u32,
    /// Tokens in a sequence.
    pub seq_len: u32,
    /// Sequences that a data-parallel rank processes at once. A pipeline divides them further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_batch_size: Option<u32>,
}

/// What a log states before its steps, other than the batch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatedSetup {
    /// The family and the size of the model: `llama3 8B`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of the model's parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    /// The name of the GPUs: `NVIDIA H100 80GB HBM3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The memory of a GPU, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<f64>,
    /// The GPUs and the degrees of parallelism.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<StatedMesh>,
    /// What is recomputed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recompute: Option<StatedRecompute>,
    /// The precision of linear layers, unless it is BF16.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub float8: Option<StatedFloat8>,
}

/// The GPUs of a log and their degrees of parallelism.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedMesh {
    /// The number of GPUs.
    pub gpus: u32,
    /// Tensor-parallel ranks.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Context-parallel ranks.
    pub cp: u32,
    /// Expert-parallel ranks; none if the mesh doesn't determine them.
    pub ep: Option<u32>,
    /// Tensor-parallel ranks of an expert, if the log states them.
    pub expert_tp: Option<u32>,
}

choices! {
    /// What a log says of recomputation.
    StatedRecompute {
        /// Some operations, or some layers.
        Selective "selective",
        /// Every layer.
        Full "full",
        /// Something else.
        Other "other",
    }
}

choices! {
    /// What a log says of the precision of its linear layers, with the ids of [`Dtype`](crate::precision::Dtype).
    StatedFloat8 {
        /// FP8, with any scaling.
        Any "fp8",
        /// FP8 with scales of whole tensors.
        Current "fp8-current",
        /// MXFP8.
        Mxfp8 "mxfp8",
    }
}

impl StatedSetup {
    /// Takes in the line of a marker of [`SETUP`].
    pub(super) fn note(&mut self, hit: &Hit, marker: &[u8]) {
        if marker == MODEL {
            self.note_model(&plain(hit.before()));
            return;
        }
        let record = plain(hit.after());
        if marker == DEVICE {
            self.note_device(&record);
        } else if marker == MESH {
            self.mesh = mesh(&record).or(self.mesh);
        } else if marker == SWAPPED {
            self.float8 = float8(&record).or(self.float8);
        } else if memmem::find(&record, b"activation checkpointing").is_some() {
            self.recompute = Some(match &record {
                mode if mode.starts_with(b"selective") => StatedRecompute::Selective,
                mode if mode.starts_with(b"full") => StatedRecompute::Full,
                _ => StatedRecompute::Other,
            });
        }
    }

    /// Takes in `Model llama3 8B size: 8,030,261,248`.
    fn note_model(&mut self, record: &[u8]) {
        const OPENING: &[u8] = b"Model ";
        const SIZE: &[u8] = b" size: ";
        let Some(at) = memmem::rfind(record, OPENING) else { return };
        let record = &record[at + OPENING.len()..];
        let Some(at) = memmem::find(record, SIZE) else { return };
        let digits = ungrouped(&record[at + SIZE.len()..]);
        if let Some((parameters, _)) = label(&digits) {
            self.model = Some(excerpt(&record[..at], LONGEST_NAME));
            self.parameters = Some(parameters);
        }
    }

    /// Takes in `NVIDIA H100 80GB HBM3 with 79.10GiB memory`.
    fn note_device(&mut self, record: &[u8]) {
        const MEMORY: &[u8] = b" with ";
        let Some(at) = memmem::find(record, MEMORY) else { return };
        self.device = Some(excerpt(&record[..at], LONGEST_NAME));
        let gib = number(&record[at + MEMORY.len()..]).filter(|gib| (1.0..1e6).contains(gib));
        self.device_bytes = gib.map(|gib| gib * GIB);
    }
}

/// Returns the mesh in `['dp_shard', 'tp'], [32, 4]`, or in `parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1, etp=1`.
fn mesh(record: &[u8]) -> Option<StatedMesh> {
    let text = std::str::from_utf8(record).ok()?.trim_end();
    let pairs: Vec<(&str, &str)> = match text.strip_prefix("parallelism: ") {
        Some(list) => list.split(", ").map(|pair| pair.split_once('=')).collect::<Option<_>>()?,
        None => {
            let (names, degrees) = text.strip_prefix('[')?.split_once("], [")?;
            let names = names.split(", ").map(|name| name.trim_matches('\''));
            names.zip(degrees.split_once(']')?.0.split(", ")).collect()
        }
    };
    let mut degrees: Vec<(&str, u32)> = Vec::with_capacity(pairs.len());
    for (name, degree) in pairs {
        degrees.push((name, degree.parse::<u32>().ok().filter(|degree| *degree > 0)?));
    }
    let degree = |name: &str| degrees.iter().find(|(known, _)| *known == name).map(|(_, degree)| *degree);
    // Expert parallelism divides ranks that the other dimensions count.
    let counted = degrees.iter().filter(|(name, _)| !matches!(*name, "ep" | "etp"));
    let gpus = counted.map(|(_, degree)| *degree).try_fold(1_u32, u32::checked_mul)?;
    let [tp, pp, cp] = ["tp", "pp", "cp"].map(|name| degree(name).unwrap_or(1));
    let ep = match (degree("ep"), degree("dp_shard_in_ep")) {
        (None, Some(shards)) => shards.checked_mul(cp).filter(|_| tp == 1),
        (stated, _) => Some(stated.unwrap_or(1)),
    };
    Some(StatedMesh { gpus, tp, pp, cp, ep, expert_tp: degree("etp") })
}

/// Returns the precision in `Float8Linear layers with enable_fsdp_float8_all_gather=True` or `MXLinear layers`. Only scales of whole
/// tensors allow that option.
fn float8(record: &[u8]) -> Option<StatedFloat8> {
    match record {
        layers if layers.starts_with(b"MX") => Some(StatedFloat8::Mxfp8),
        layers if !layers.starts_with(b"Float8") => None,
        layers if memmem::find(layers, b"all_gather=True").is_some() => Some(StatedFloat8::Current),
        _ => Some(StatedFloat8::Any),
    }
}

/// Returns the batch in the trainer's line.
pub(super) fn batch(hit: &Hit) -> Option<StatedBatch> {
    let record = plain(hit.after());
    let whole = |key: &[u8]| {
        let at = memmem::find(&record, key)?;
        let (number, _) = label(&record[at + key.len()..])?;
        u32::try_from(number).ok().filter(|number| *number > 0)
    };
    // The marker ends with the name of the local one.
    let local = label(&record).and_then(|(number, _)| u32::try_from(number).ok());
    Some(StatedBatch {
        global_batch_size: whole(b"global batch size")?,
        seq_len: whole(b"sequence length")?,
        local_batch_size: local.filter(|number| *number > 0),
    })
}

/// Returns the training step of a line. A validation line has no MFU and is left out.
pub(super) fn step(hit: &Hit) -> Option<Step> {
    // "memory: " is common in other output, so the cheap check comes first.
    let figure = hit.after();
    let unit = figure.iter().position(|byte| !matches!(byte, b' ' | b'.' | b'0'..=b'9'))?;
    if !figure[unit..].starts_with(b"GiB(") {
        return None;
    }
    let record = ungrouped(&plain(hit.since(b"step:")?));
    let (label, record) = label(&record)?;
    memmem::find(record, b"mfu:")?;
    Some(Step {
        label,
        loss: field(record, b"loss"),
        grad_norm: field(record, b"grad_norm"),
        tflops_per_gpu: field(record, b"tflops"),
        tokens_per_s_per_gpu: Some(field(record, b"tps")?),
        mfu: field(record, b"mfu").map(|percent| percent / 100.0),
        memory_peak_bytes: field(record, b"memory").map(|gib| gib * GIB),
        ..Step::default()
    })
}

#[cfg(test)]
mod tests {
    use super::{StatedBatch, StatedFloat8, StatedMesh, StatedRecompute, StatedSetup};
    use crate::log::{Format, parse};

    #[test]
    fn a_coloured_line_with_grouped_digits() {
        let log = parse(
            b"[rank0]:[titan] 2025-12-01 10:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.1235  \
              \x1b[38;2;180;60;0mgrad_norm:  1.2345  \x1b[36mmemory: 50.00GiB(62.00%)  \x1b[34mtps: 1,299  \
              \x1b[36mtflops: 1,012.34  \x1b[35mmfu: 1.23%\x1b[39m\n",
        );
        assert_eq!(log.format, Some(Format::Torchtitan));
        assert_eq!(log.steps.label, [10]);
        assert_eq!(log.steps.step_time_s.get(0), None);
        assert_eq!(log.steps.loss.get(0), Some(8.1235));
        assert_eq!(log.steps.grad_norm.get(0), Some(1.2345));
        assert_eq!(log.steps.tokens_per_s_per_gpu.get(0), Some(1299.0));
        assert_eq!(log.steps.tflops_per_gpu.get(0), Some(1012.34));
        assert_eq!(log.steps.mfu.get(0), Some(1.23 / 100.0));
        assert_eq!(log.steps.memory_peak_bytes.get(0), Some(50.0 * super::GIB));
    }

    #[test]
    fn the_trainer_states_its_batch() {
        let batch = |line: &str| {
            let step =
                "step: 1  loss:  8.1  memory: 50.00GiB(62.00%)  tps: 1,299  tflops: 12.34  mfu: 1.23%\n";
            parse(format!("{line}\n{step}").as_bytes()).batch
        };
        let stated = "[titan] INFO - Trainer is initialized with local batch size 1, global batch size 8, gradient \
                      accumulation steps 1, sequence length 8192, total steps 50 (warmup 20)";
        let whole = StatedBatch { global_batch_size: 8, seq_len: 8192, local_batch_size: Some(1) };
        assert_eq!(batch(stated), Some(whole));
        for torn in
            [&stated[..stated.len() - 40], &stated.replace("size 8", "size 0"), "Trainer is initialized"]
        {
            assert_eq!(batch(torn), None, "{torn}");
        }
    }

    fn setup(lines: &str) -> Option<StatedSetup> {
        let step = "step: 1  loss:  8.1  memory: 50.00GiB(62.00%)  tps: 1,299  tflops: 12.34  mfu: 1.23%\n";
        parse(format!("{lines}\n{step}").as_bytes()).setup
    }

    #[test]
    fn the_trainer_states_its_setup() {
        let stated = setup(
            "[rank0]:[titan] 2025-12-01 10:00:00,123 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [32, 4]\n\
             [titan] CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory\n\
             Model \x1b[34mllama3 8B \x1b[31msize: 8,030,261,248 total parameters\x1b[39m\n\
             Swapped to Float8Linear layers with enable_fsdp_float8_all_gather=True\n\
             Applied selective activation checkpointing to the model\nApplied FSDP to the model",
        );
        let mesh = StatedMesh { gpus: 128, tp: 4, pp: 1, cp: 1, ep: Some(1), expert_tp: None };
        let expected = StatedSetup {
            model: Some("llama3 8B".into()),
            parameters: Some(8_030_261_248),
            device: Some("NVIDIA H100 80GB HBM3".into()),
            device_bytes: Some(79.1 * super::GIB),
            mesh: Some(mesh),
            recompute: Some(StatedRecompute::Selective),
            float8: Some(StatedFloat8::Current),
        };
        assert_eq!(stated, Some(expected));
        assert_eq!(setup("Applied a patch\nSwapped to disk\nMemory: 8 total parameters"), None);
    }

    #[test]
    fn a_mesh_is_a_list_of_dimensions_or_of_degrees() {
        let mesh = |text: &str| setup(&format!("Building device mesh with {text}"))?.mesh;
        let of = |gpus, ep| Some(StatedMesh { gpus, tp: 1, pp: 1, cp: 1, ep, expert_tp: None });
        assert_eq!(mesh("['dp_shard'], [128]"), of(128, Some(1)));
        assert_eq!(mesh("['dp_shard_mod_ep', 'dp_shard_in_ep'], [8, 16]"), of(128, Some(16)));
        let tensor = mesh("['dp_shard_mod_ep', 'dp_shard_in_ep', 'tp'], [8, 16, 2]");
        assert_eq!(tensor.map(|mesh| (mesh.gpus, mesh.tp, mesh.ep)), Some((256, 2, None)));
        let newer = "parallelism: pp=2, dp_replicate=1, dp_shard=8, cp=2, tp=4, ep=8, etp=1";
        let expected = StatedMesh { gpus: 128, tp: 4, pp: 2, cp: 2, ep: Some(8), expert_tp: Some(1) };
        assert_eq!(mesh(newer), Some(expected));
        for torn in ["['dp_shard'], [0]", "['dp_shard'], [", "parallelism: pp", "['dp'], [4294967295x]", "[]"]
        {
            assert_eq!(mesh(torn), None, "{torn}");
        }
    }

    #[test]
    fn validation_and_chatter_are_no_steps() {
        let log = parse(
            b"validate step: 10  loss:  8.1235  memory: 50.00GiB(62.00%)  tps: 1,299\n\
              step: 3 host memory: 12 MB\nstep: 4 memory: \n",
        );
        assert!(log.steps.label.is_empty());
    }
}
