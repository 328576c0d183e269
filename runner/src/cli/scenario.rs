//! The flags that describe a scenario, the same for every command.

use super::{model_file, note};
use trainplan_shared::catalog::Catalog;
use trainplan_shared::field::Field;
use trainplan_shared::problem::Problem;
use trainplan_shared::spec::Spec;

/// Flags that describe a scenario. They are taken as text, so that a mistake in one is answered as in the browser:
/// with what is allowed and the nearest value that works.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Scenario")]
pub(super) struct ScenarioArgs {
    /// Start from a published recipe: MODEL/GPU/DTYPE/GPUS[/strong][@RELEASE]; without a release, the newest one that
    /// published a number for it
    #[arg(long, value_name = "ID")]
    recipe: Option<String>,
    /// Model: a published one, such as llama3.1-70b; the path of a Hugging Face config.json; or your own as text,
    /// own:layers=32,hidden=4096,…
    #[arg(long, value_name = "ID|PATH|own:…")]
    model: Option<String>,
    /// GPU type, such as h100; or your own, as a type and what differs from it: h100:hbm_gb=96,hbm_tbps=2.4
    #[arg(long, value_name = "TYPE")]
    gpu: Option<String>,
    /// GPUs in all; the global batch of a weak-scaling recipe follows
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    gpus: Option<String>,
    /// Precision: bf16, fp8, fp8-current, fp8-delayed, fp8-block, mxfp8, nvfp4
    #[arg(long, value_name = "DTYPE")]
    dtype: Option<String>,
    /// Tensor parallel
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tp: Option<String>,
    /// Pipeline parallel
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pp: Option<String>,
    /// Context parallel
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    cp: Option<String>,
    /// Expert parallel
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    ep: Option<String>,
    /// Tensor parallel inside an expert
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    expert_tp: Option<String>,
    /// Virtual pipeline: chunks of layers per stage
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    vp: Option<String>,
    /// How layers fall on stages: even, counted (embedding and loss count as a layer each), or layers per stage: 7,8,…
    #[arg(long, value_name = "SPLIT")]
    pipeline_split: Option<String>,
    /// Micro batch size, sequences
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    mbs: Option<String>,
    /// Global batch size, sequences
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    gbs: Option<String>,
    /// Tokens of a sequence
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seq_len: Option<String>,
    /// Layers; fewer than the model has makes a proxy
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    layers: Option<String>,
    /// Activations computed again in the backward pass: none, selective, full
    #[arg(long, value_name = "WHICH")]
    recompute: Option<String>,
    /// Shard weights, gradients and optimizer over data parallel (FSDP)
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on")]
    fsdp: Option<String>,
    /// Whether communication hides behind computation [default: on]
    #[arg(long, value_name = "on|off")]
    overlap: Option<String>,
    /// The software that trains, such as nemo-2, megatron-bridge-26.06, torchtitan [default: the recipe's, else the
    /// newest Megatron-Bridge]
    #[arg(long, value_name = "STACK")]
    stack: Option<String>,
    /// What your GPUs reach in a large BF16 matrix multiplication, TFLOPS: scales the estimate to your machine
    #[arg(long, value_name = "TFLOPS", allow_negative_numbers = true)]
    gemm_tflops: Option<String>,
    /// Measured over predicted step time on your cluster, as `trainplan calibrate --cluster` gives it
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    cluster_factor: Option<String>,
    /// How FLOPs are counted: recipe (as its document does), full, causal [default: recipe with one, else full]
    #[arg(long, value_name = "CONVENTION")]
    convention: Option<String>,
}

impl ScenarioArgs {
    /// What was typed, by field. Says which release a short recipe id stands for.
    ///
    /// # Errors
    /// The recipe is not known, or the model's file is none: nothing else can be said then.
    pub(super) fn spec(&self) -> Result<Spec, Problem> {
        let mut spec = Spec::default();
        let flags = [
            (Field::Recipe, &self.recipe),
            (Field::Model, &self.model),
            (Field::Gpu, &self.gpu),
            (Field::Gpus, &self.gpus),
            (Field::Dtype, &self.dtype),
            (Field::Tp, &self.tp),
            (Field::Pp, &self.pp),
            (Field::Cp, &self.cp),
            (Field::Ep, &self.ep),
            (Field::ExpertTp, &self.expert_tp),
            (Field::Vp, &self.vp),
            (Field::PipelineSplit, &self.pipeline_split),
            (Field::Mbs, &self.mbs),
            (Field::Gbs, &self.gbs),
            (Field::SeqLen, &self.seq_len),
            (Field::Layers, &self.layers),
            (Field::Recompute, &self.recompute),
            (Field::Fsdp, &self.fsdp),
            (Field::Overlap, &self.overlap),
            (Field::Stack, &self.stack),
            (Field::GemmTflops, &self.gemm_tflops),
            (Field::ClusterFactor, &self.cluster_factor),
            (Field::Convention, &self.convention),
        ];
        for (field, text) in flags {
            spec.set(field, text.clone().unwrap_or_default());
        }
        if let Some(model) = spec.get(Field::Model).map(model_file::read).transpose()?.flatten() {
            spec.set(Field::Model, model);
        }
        if let Some(short) = spec.get(Field::Recipe).filter(|id| !id.contains('@')) {
            let recipe = Catalog::embedded().recipe(short)?;
            let why = match Catalog::embedded().baseline(&recipe.id) {
                Some(_) => "the newest release that published a number for it",
                None => "the newest release that lists it",
            };
            note(&format!("{short} means {}, {why}", recipe.id));
            let full = recipe.id.to_string();
            spec.set(Field::Recipe, full);
        }
        Ok(spec)
    }
}
