//! The scenario of a measured run, from the cells of its row.

use super::{machine, published};
use crate::architecture::{Architecture, Attention, AttentionKind, Mlp, Moe};
use crate::batch::Batch;
use crate::catalog::{Catalog, Gpu};
use crate::estimate::Inputs;
use crate::layout::{Degrees, Layout, PipelineSplit};
use crate::options::{Recompute, TrainingOptions};
use crate::precision::{Dtype, Width};
use crate::problem::Problem;
use crate::search::PublishedSplit;
use crate::stack::{Software, Stack};

/// The framework of rows that were measured with a user's own software.
const OWN: &str = "own";

/// The scenario of a measured run.
#[derive(Debug, Clone)]
pub struct MeasuredScenario {
    /// The model's shape.
    pub architecture: Architecture,
    /// GPU type, with the row's network.
    pub gpu: Gpu,
    /// Precision.
    pub dtype: Dtype,
    /// Parallelism.
    pub layout: Layout,
    /// Sequence length and batch sizes.
    pub batch: Batch,
    /// Recomputation, sharding and software.
    pub options: TrainingOptions,
    /// Model and shape; equal for runs of the same architecture.
    pub shape: String,
    /// Everything but the software release; equal for repeated measurements of one mapping.
    pub mapping: String,
}

impl MeasuredScenario {
    /// Returns the inputs of its estimate.
    pub fn inputs(&self) -> Inputs<'_> {
        Inputs {
            architecture: &self.architecture,
            gpu: &self.gpu,
            dtype: self.dtype,
            layout: &self.layout,
            batch: &self.batch,
            options: &self.options,
        }
    }

    pub(super) fn read(
        cell: &dyn Fn(&str) -> String,
        own: Option<Software>,
    ) -> Result<MeasuredScenario, String> {
        if cell("phase") != "pretrain" && !cell("phase").is_empty() {
            return Err(format!("Phase {} is not pre-training.", cell("phase")));
        }
        if cell("use") == "kernel" {
            return Err("The row measures a layer, not a training step.".into());
        }
        if let Some(missing) =
            ["model", "gpu", "precision", "framework"].into_iter().find(|column| cell(column).is_empty())
        {
            return Err(format!("{missing} is missing."));
        }
        let catalog = Catalog::embedded();
        let mut gpu = catalog.gpu(&cell("gpu")).map_err(|problem| problem.to_string())?.clone();
        let dtype = dtype(&cell("precision"), &gpu)?;
        let model = cell("model");
        let architecture = architecture(cell)?;
        let notes = cell("knobs");
        let knob = |name: &str| notes.split(';').any(|knob| knob.trim() == name);
        if let Some(gbit) = network_gbit(&notes, &gpu) {
            gpu.nic_gbit = gbit;
        }

        let software = match &*cell("framework") {
            OWN => own.ok_or("framework is own, but --stack doesn't say which software that is.")?,
            framework => software(framework, &cell("release"))?,
        };
        let software = match knob("DeepEP")
            && software.known().is_some_and(|stack| !stack.is_nvidia_megatron())
        {
            true => software.with("sends_once_per_domain", "yes").map_err(|problem| problem.to_string())?,
            false => software,
        };
        let modules = published::modules(&cell("recompute"));
        let options = TrainingOptions {
            recompute: recomputation(&cell("recompute")),
            modules,
            fsdp: cell("fsdp") == "1",
            reshard: !knob("sharding=SHARD_GRAD_OP"),
            zero_group: match knob("zero0") {
                true => Some(1),
                false => notes.split(';').find_map(|knob| knob.strip_prefix("zero1=")?.parse().ok()),
            },
            sequence_parallel: match () {
                () if knob("no-SP") || knob("no SP") => Some(false),
                // A list of Megatron-LM's arguments names it.
                () if notes.contains("transformer-impl=") => Some(knob("sequence-parallel")),
                () => None,
            },
            overlap: !(knob("vanillaTP") || notes == "compile"),
            token_drop: knob("tokendrop") || knob("moe_token_drop"),
            software,
            gemm_tflops: machine::gemm_tflops(&cell("source")),
            ..TrainingOptions::default()
        };

        let (degrees, seq_len, mbs, gbs) = degrees(cell, &architecture)?;
        // The software decides it, so it is not part of the mapping.
        let split = match software.known() {
            Some(Stack::Nanotron | Stack::Nanotron2024) => PipelineSplit::Weighed,
            _ => degrees.split.clone(),
        };
        let layout = Layout::new(&Degrees { split, ..degrees.clone() }, &architecture)
            .map_err(|problems| join(&problems))?;
        // Without a value, the smallest micro batch is assumed.
        let mbs = mbs.unwrap_or(1);
        let batch = Batch::new(seq_len, mbs, gbs, &layout).map_err(|problems| join(&problems))?;
        let shape = format!(
            "{model} {} {} {} {}",
            architecture.layers, architecture.hidden, architecture.attention.heads, architecture.vocab
        );
        let mapping = format!(
            "{shape} {} {:?} {degrees:?} {seq_len} {mbs} {gbs} {} {}",
            gpu.id,
            dtype.width(),
            options.fsdp,
            options.recompute
        );
        let mut scenario =
            MeasuredScenario { architecture, gpu, dtype, layout, batch, options, shape, mapping };
        // These settings are those of 2026; earlier releases differ in some, even with the same layout.
        if matches!(software.known(), Some(Stack::Bridge2602 | Stack::Bridge2606)) {
            match published::settings(&model, &scenario.inputs()) {
                Some(settings) => settings.apply(&mut scenario.options),
                // Earlier releases had other settings with other layouts.
                None if software.known() == Some(Stack::Bridge2602) => (),
                None => {
                    let options = &scenario.options;
                    scenario.options = options.as_in_recipes(&model, &scenario.gpu.id, scenario.dtype);
                }
            }
        }
        Ok(scenario)
    }
}

/// Returns the recomputation in a cell: a kind, the names of modules after `selective:`, or a remark after a kind.
fn recomputation(text: &str) -> Recompute {
    let mut words = text.split([':', ',', ' ', '(']);
    match words.next() {
        Some("full") => Recompute::Full,
        // Named modules are separate options, but attention's scores are what this kind recomputes.
        Some("selective") if text.contains(':') && !text.contains("core_attn") => Recompute::None,
        // The source doesn't say whether.
        Some("selective") if text.starts_with("selective or none") => Recompute::None,
        Some("selective") => Recompute::Selective,
        _ => Recompute::None,
    }
}

/// Joins problems into one text.
fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns a column's whole number, if it has one.
fn whole(cell: &dyn Fn(&str) -> String, column: &str) -> Result<Option<u32>, String> {
    match &*cell(column) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| format!("{column} \"{text}\" is not a whole number.")),
    }
}

/// Returns a column's whole number, which must be given.
fn needed(cell: &dyn Fn(&str) -> String, column: &str) -> Result<u32, String> {
    whole(cell, column)?.ok_or_else(|| format!("{column} is missing."))
}

fn dtype(name: &str, gpu: &Gpu) -> Result<Dtype, String> {
    let dtype = match name {
        // Numbers of 16 bits cost the same. Level O2 of mixed precision is what every other software does.
        "BF16" | "bf16" | "FP16" | "FP16 (O2)" | "BF16 (O2)" => Dtype::Bf16,
        "FP8" => Dtype::Fp8,
        "FP8-CS" | "FP8(tensorwise)" => Dtype::Fp8Current,
        "FP8-DS" => Dtype::Fp8Delayed,
        // Scales per row are as fine as scales per block, and cost what those cost.
        "FP8-row" | "FP8-SC" | "FP8(blockwise)" => Dtype::Fp8Block,
        "MXFP8" | "FP8-MX" | "FP8(mxfp8)" => Dtype::Mxfp8,
        "NVFP4" | "FP4" => Dtype::Nvfp4,
        // MLPerf's logs of that round do not say which; systems with NVFP4 used it.
        "FP8-or-NVFP4" if gpu.nvfp4_tflops.is_some() => Dtype::Nvfp4,
        "FP8-or-NVFP4" => Dtype::Fp8Delayed,
        other => other.parse().map_err(|problem: Problem| problem.to_string())?,
    };
    match (gpu.datasheet_tflops(dtype), dtype.width()) {
        (None, Width::Fp8 | Width::Nvfp4) => Err(format!("The {} doesn't support {dtype}.", gpu.name)),
        _ => Ok(dtype),
    }
}

/// Returns the software of a framework's release.
fn software(framework: &str, release: &str) -> Result<Software, String> {
    let stack = match framework {
        "Megatron-LM 2021" => Stack::MegatronLm2021,
        "Megatron-LM 2022" => Stack::MegatronLm2022,
        "Megatron-DeepSpeed" | "Megatron-DeepSpeed (ZeRO-1)" => Stack::MegatronDeepSpeed,
        "NeMo1/Megatron-Core" | "NeMo/Megatron-Core" if release < "24.09" => Stack::Nemo24,
        "nemo1" | "NeMo1/Megatron-Core" | "NeMo/Megatron-Core" => Stack::Nemo1,
        "NeMo2" if release == "24.11" => Stack::Nemo1,
        "NeMo2" | "nemo2" | "NeMo2/Megatron-Core" => Stack::Nemo2,
        "NeMo MLPerf" => Stack::MlPerf,
        "Megatron-Core/Bridge" if release < "26" => Stack::Bridge25,
        "Megatron-Core/Bridge" if release < "26.06" => Stack::Bridge2602,
        "Megatron-Core/Bridge" | "Megatron-Bridge" | "Megatron-Core dev" => Stack::Bridge2606,
        "Megatron-LM 0.14" | "Megatron-LM CI" => Stack::MegatronLm014,
        "NeMo AutoModel (PyTorch)" => Stack::AutoModel,
        "Composer/FSDP" => Stack::Composer,
        "PyTorch FSDP+compile" => Stack::PytorchFsdp,
        "InternEvo" => Stack::InternEvo,
        "Meta internal" => Stack::Meta,
        "nanotron" if release < "2025" => Stack::Nanotron2024,
        "nanotron" => Stack::Nanotron,
        // The figures of Megatron-LM's Llama example are NeMo's of 2024.
        "Megatron-Core" => Stack::Nemo1,
        "NeMo Automodel (FSDP2 + PP + EP)" => Stack::AutoModel,
        "DeepSpeed 0.11.1 ZeRO-3 (transformers)" | "not stated (PyTorch DDP/FSDP)" => Stack::Pytorch,
        "torchtitan fork (FSDP2 + DeepEP, fused kernels)" | "torchtitan FSDP2" => Stack::Torchtitan,
        // XLA programs: nothing here is measured of them, and compiled FSDP comes nearest.
        "maxtext(jax)" | "paxml(jax)" => Stack::PytorchFsdp,
        other => match software_by_start(other) {
            Some(stack) => stack,
            None => return other.parse().map_err(|problem: Problem| problem.to_string()),
        },
    };
    Ok(stack.into())
}

/// Returns the software of a framework that is named with its version or its distribution.
fn software_by_start(framework: &str) -> Option<Stack> {
    let starts = [
        ("MLPerf submission (", Stack::MlPerf),
        ("Megatron-Bridge ", Stack::Bridge2606),
        ("Megatron-DeepSpeed", Stack::MegatronDeepSpeed),
        // Megatron-Core as distributed, and collections of scripts around it.
        ("Megatron-Core", Stack::MegatronCore),
        ("Megatron-LM 24", Stack::MegatronCore),
        ("FlagScale (Megatron)", Stack::MegatronCore),
        ("ms-swift (Megatron-Core)", Stack::MegatronCore),
        ("PaddlePaddle", Stack::PaddleNlp),
    ];
    starts.into_iter().find(|(start, _)| framework.starts_with(start)).map(|(_, stack)| stack)
}

/// Returns the network rate in a row's notes, in Gbit/s per GPU.
fn network_gbit(knobs: &str, gpu: &Gpu) -> Option<f64> {
    let nodes = f64::from(gpu.gpus_per_node);
    knobs.split(';').find_map(|knob| match knob.trim() {
        "JeanZay OPA 4x100G/node" | "net=4x100G RoCE/node" => Some(400.0 / nodes),
        "net=400Gbps" => Some(400.0 / nodes),
        "net=800Gbps" => Some(800.0 / nodes),
        _ => None,
    })
}

/// Kinds of models that the columns of a row can't describe. Megatron-LM's tests name the kind before a colon.
const OTHER_KINDS: [(&str, &str); 6] = [
    ("t5:", "an encoder and a decoder"),
    ("bert:", "an encoder"),
    ("multimodal-llava:", "vision and language"),
    ("mimo:", "vision and language"),
    ("hybrid:", "Mamba layers"),
    ("nemotron:", "Mamba layers"),
];

/// Arguments of Megatron-LM that change the architecture in ways that rows have no columns for.
const OTHER_ARGUMENTS: [&str; 3] = ["multi-latent-attention", "mtp-num-layers", "moe-layer-freq"];

/// Returns the architecture of the row's model, with the changes of the row's columns.
fn architecture(cell: &dyn Fn(&str) -> String) -> Result<Architecture, String> {
    let (layers, hidden) = (whole(cell, "layers")?, whole(cell, "hidden")?);
    let (heads, ffn, vocab) = (whole(cell, "heads")?, whole(cell, "ffn")?, whole(cell, "vocab")?);
    let model = cell("model");
    if let Some((_, kind)) = OTHER_KINDS.into_iter().find(|(start, _)| model.starts_with(start)) {
        return Err(format!("The columns can't describe a model with {kind}."));
    }
    let known = Catalog::embedded().model(&model);
    let mut architecture = match (known, layers, hidden, heads) {
        (Ok(model), ..) => model.architecture.clone(),
        (Err(_), Some(layers), Some(hidden), Some(heads)) => unnamed(cell, layers, hidden, heads)?,
        (Err(_), ..) => {
            return Err(format!(
                "The architecture of \"{model}\" is unknown: name a model of the catalog, or fill in the columns layers, \
                 hidden, heads, ffn and vocab."
            ));
        }
    };
    if let Some(layers) = layers {
        architecture = architecture.with_layers(layers).map_err(|problem| problem.to_string())?;
    }
    let own_width = (architecture.attention.heads, architecture.hidden);
    architecture.hidden = hidden.unwrap_or(architecture.hidden);
    architecture.vocab = vocab.unwrap_or(architecture.vocab);
    // A known model keeps the width of its heads, unless the row changes it.
    if let Some(heads) = heads.filter(|heads| (*heads, architecture.hidden) != own_width) {
        architecture.attention.heads = heads;
        if let (AttentionKind::Gqa { kv_heads, head_dim }, Some(hidden)) =
            (&mut architecture.attention.kind, hidden)
        {
            *kv_heads = (*kv_heads).min(heads);
            *head_dim = hidden / heads.max(1);
        }
    }
    if let (Some(ffn), Some(mlp)) = (ffn, &mut architecture.mlp) {
        mlp.ffn = ffn;
    }
    if let Some(moe) = &mut architecture.moe {
        moe.experts = whole(cell, "experts")?.unwrap_or(moe.experts);
        moe.top_k = whole(cell, "topk")?.unwrap_or(moe.top_k);
        moe.ffn = whole(cell, "moe_ffn")?.unwrap_or(moe.ffn);
    }
    for knob in cell("knobs").split(';').map(str::trim) {
        match knob {
            "w/o MTP" => architecture.mtp_layers = 0,
            "w/ MTP" => architecture.mtp_layers = 1,
            "layer-truncated" => truncate(&mut architecture),
            _ => {}
        }
    }
    Ok(architecture)
}

/// Returns the architecture of a model that only the row describes: a GPT, or a Llama where the row counts key and value heads.
/// Names that begin with `gpt`, `opt` or `moe` are those of GPTs, whose MLP is gated if `knobs` says so.
fn unnamed(
    cell: &dyn Fn(&str) -> String,
    layers: u32,
    hidden: u32,
    heads: u32,
) -> Result<Architecture, String> {
    let (model, knobs) = (cell("model"), cell("knobs"));
    let says = |name: &str| {
        knobs.split(';').map(str::trim).any(|knob| knob == name || knob.starts_with(&format!("{name}=")))
    };
    if let Some(argument) = OTHER_ARGUMENTS.into_iter().find(|argument| says(argument)) {
        return Err(format!("The columns can't describe a model with {argument}."));
    }
    let vocab = whole(cell, "vocab")?.ok_or("vocab is missing.")?;
    let kv_heads = whole(cell, "kv_heads")?;
    let is_gpt = ["gpt", "opt", "moe"].iter().any(|start| model.starts_with(start));
    let gated = if is_gpt { says("swiglu") } else { kv_heads.is_some() };
    let tied = match is_gpt {
        true => !says("untie-embeddings-and-output-weights"),
        false => kv_heads.is_none() || knobs.contains("tied embeddings"),
    };
    let ffn = whole(cell, "ffn")?.unwrap_or(4 * hidden);
    let moe = match (whole(cell, "experts")?, whole(cell, "topk")?) {
        (None | Some(0), _) => None,
        (Some(_), None) => return Err("topk is missing.".into()),
        (Some(experts), Some(top_k)) => Some(Moe {
            layers,
            experts,
            top_k,
            ffn: whole(cell, "moe_ffn")?.unwrap_or(ffn),
            shared_ffn: argument(&knobs, "moe-shared-expert-intermediate-size")?.unwrap_or(0),
            gated,
            latent: None,
        }),
    };
    Ok(Architecture {
        layers,
        hidden,
        vocab,
        tied_embeddings: tied,
        attention: Attention {
            layers,
            heads,
            kind: AttentionKind::Gqa {
                kv_heads: kv_heads.unwrap_or(heads),
                head_dim: argument(&knobs, "kv-channels")?.unwrap_or(hidden / heads.max(1)),
            },
            window: None,
            output_gate: false,
            sinks: false,
        },
        linear: None,
        mlp: if moe.is_some() { None } else { Some(Mlp { layers, ffn, gated }) },
        moe,
        mamba: None,
        mtp_layers: 0,
    })
}

/// Returns the value of an argument of Megatron-LM among a row's knobs.
fn argument(knobs: &str, name: &str) -> Result<Option<u32>, String> {
    let value = knobs.split(';').find_map(|knob| knob.trim().strip_prefix(name)?.strip_prefix('='));
    value
        .map(|value| value.parse().map_err(|_| format!("{name} \"{value}\" is not a whole number.")))
        .transpose()
}

/// Applies SimuMax's truncation of a mixture of experts: one leading dense layer in every model, and no
/// multi-token prediction (its `run_pretrain_deepseekv2.sh`: `MOE_LAYER_FREQ`).
fn truncate(architecture: &mut Architecture) {
    if let (Some(mlp), Some(moe)) = (&mut architecture.mlp, &mut architecture.moe) {
        moe.layers += mlp.layers - 1;
        mlp.layers = 1;
    }
    architecture.mtp_layers = 0;
}

/// Returns the degrees of parallelism, sequence length, micro and global batch size.
fn degrees(
    cell: &dyn Fn(&str) -> String,
    architecture: &Architecture,
) -> Result<(Degrees, u32, Option<u32>, u32), String> {
    let one = |column: &str| whole(cell, column).map(|value| value.unwrap_or(1).max(1));
    let (tp, pp, cp) = (needed(cell, "tp")?, needed(cell, "pp")?, needed(cell, "cp")?);
    let (ep, vp, gpus) = (one("ep")?, one("vp")?, needed(cell, "gpus")?);
    let (layers, chunks) = (architecture.layers, pp.saturating_mul(vp).max(1));
    // Megatron-Bridge's own runs have the splits of its recipes. Where only newer recipes list one, the runs were even.
    let is_bridge = cell("framework").contains("Bridge");
    let published = is_bridge.then(|| PublishedSplit::of_all(&cell("model"), layers, pp, vp)).flatten();
    let split = match (published, layers % chunks) {
        (Some(published), _) => published.clone(),
        (None, 0) => PipelineSplit::Even,
        (None, _) if (layers + 2) % chunks == 0 => PipelineSplit::Counted,
        // Other recipes define their own split, which leaves room for the head on the last stage.
        (None, _) if pp > 1 && layers.div_ceil(pp) * (pp - 1) < layers => {
            let full = layers.div_ceil(pp);
            let mut stages = vec![full; pp as usize - 1];
            stages.push(layers - full * (pp - 1));
            PipelineSplit::Explicit(stages)
        }
        (None, _) => PipelineSplit::Even,
    };
    // Without a pipeline there is nothing to interleave.
    let vp = if pp == 1 { 1 } else { vp };
    let told = argument(&cell("knobs"), "expert-tensor-parallel-size")?;
    let expert_tp = match (whole(cell, "expert_tp")?, told) {
        (Some(degree), _) => degree.max(1),
        (None, _) if architecture.moe.is_none() => 1,
        (None, Some(degree)) => degree.max(1),
        // Megatron-LM divides experts like the rest by default. The recipes set it to 1.
        (None, None) if cell("framework") == "Megatron-LM CI" => tp,
        (None, None) => 1,
    };
    let degrees = Degrees { gpus, tp, pp, cp, ep, expert_tp, vp, split };
    Ok((degrees, needed(cell, "seq_len")?, whole(cell, "mbs")?, needed(cell, "gbs")?))
}
