//! What the files beside a log state about its scenario.

use super::{JobSettings, SettingValues, SettingsFile};
use crate::field::Field;
use crate::precision::Dtype;

/// What PyYAML writes for Python's `None`.
const UNSET: &str = "null";

impl SettingValues {
    /// Returns a value; none if it is absent or unset.
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| *value != UNSET)
    }

    /// Returns a number above 0.
    fn count(&self, name: &str) -> Option<u32> {
        self.text(name)?.parse().ok().filter(|count| *count > 0)
    }
}

impl JobSettings {
    /// Returns the number of GPUs, or one of the layout or the batch, as a file states it.
    pub(in crate::result) fn number(&self, file: SettingsFile, field: Field) -> Option<u32> {
        match (file, field) {
            (SettingsFile::BridgeConfig, field) => number(&self.bridge_config, field),
            (SettingsFile::LlmbConfig, Field::Gpus) => self.llmb_config.count("model_info.scale"),
            _ => None,
        }
    }

    /// Returns the precision, as a file states it.
    pub(in crate::result) fn dtype(&self, file: SettingsFile) -> Option<Dtype> {
        match file {
            SettingsFile::BridgeConfig => dtype(&self.bridge_config),
            SettingsFile::LlmbConfig => self.launched("dtype")?.parse().ok(),
            SettingsFile::Environment => None,
        }
    }

    /// Returns what llmb-run launched: the `model_name`, the `model_size` or the `gpu_type`, as written.
    pub(in crate::result) fn launched(&self, key: &str) -> Option<&str> {
        self.llmb_config.text(&format!("model_info.{key}"))
    }

    /// Returns the container image that llmb-run launched, without its registry, such as `nemo:26.04.01`. None if it launched another
    /// number of images, or one without a tag.
    #[must_use]
    pub fn container(&self) -> Option<&str> {
        let image = self.llmb_config.text("container_info.images").filter(|images| !images.contains(", "))?;
        let name = image.rsplit(['/', '#']).next()?;
        // Reports show it without escaping it.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
        (name.contains(':') && name.bytes().all(is_plain)).then_some(name)
    }

    /// Returns the name of the release whose llmb-run launched the job.
    pub(in crate::result) fn release(&self) -> Option<&str> {
        self.llmb_config.text("workload_info.gsw_version")
    }
}

/// Returns the number of a field of the layout or the batch. The data may be cut to other lengths than the model allows.
fn number(config: &SettingValues, field: Field) -> Option<u32> {
    let of_experts = |name| config.text("model.num_moe_experts").and_then(|_| config.count(name));
    match field {
        Field::Tp => config.count("model.tensor_model_parallel_size"),
        Field::Pp => config.count("model.pipeline_model_parallel_size"),
        Field::Cp => config.count("model.context_parallel_size"),
        Field::Vp => {
            let name = "model.virtual_pipeline_model_parallel_size";
            config.count(name).or_else(|| config.get(name).map(|_| 1))
        }
        Field::Ep => of_experts("model.expert_model_parallel_size"),
        Field::ExpertTp => of_experts("model.expert_tensor_parallel_size"),
        Field::Mbs => config.count("train.micro_batch_size"),
        Field::Gbs => config.count("train.global_batch_size"),
        Field::SeqLen => ["dataset.sequence_length", "dataset.seq_length", "model.seq_length"]
            .into_iter()
            .find_map(|name| config.count(name)),
        _ => None,
    }
}

/// Returns the precision.
fn dtype(config: &SettingValues) -> Option<Dtype> {
    let of = |key: &str| {
        let sections = ["model", "mixed_precision"];
        sections.into_iter().find_map(|section| config.text(&format!("{section}.{key}")))
    };
    if of("fp4").is_some_and(|format| format != "false") {
        return Some(Dtype::Nvfp4);
    }
    if of("fp8").is_some_and(|format| format != "false") {
        return Some(match of("fp8_recipe") {
            Some("delayed") => Dtype::Fp8Delayed,
            Some("tensorwise") => Dtype::Fp8Current,
            Some("blockwise") => Dtype::Fp8Block,
            Some("mxfp8") => Dtype::Mxfp8,
            _ => Dtype::Fp8,
        });
    }
    (of("bf16") == Some("true")).then_some(Dtype::Bf16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the form of Megatron-Bridge.
    const CONFIG: &str = "\
_target_: megatron.bridge.training.config.ConfigContainer
comm_overlap: null
dataset:
  _target_: megatron.bridge.training.config.GPTDatasetConfig
  sequence_length: 8192
  split_matrix:
  - - 0
    - 0.5
  tokenizer:
    model:
      tensor_model_parallel_size: 64
ddp:
  data_parallel_sharding_strategy: optim_grads_params
  overlap_grad_reduce: true
mixed_precision: bf16_with_fp8_current_scaling_mixed
model:
  _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider
  bf16: true
  context_parallel_size: 2
  cuda_graph_scope: ''
  embedding_init_method:
    _args_: []
    seq_length: 1
  expert_model_parallel_size: 4
  fp4: null
  fp8: 'hybrid'
  fp8_recipe: tensorwise
  num_moe_experts: null
  pipeline_model_parallel_size: 8
  recompute_modules:
  - core_attn
  - \"moe_act\"
  seq_length: 131072
  tensor_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: null
optimizer:
  lr: 0.0003
  optimizer: adam
train:
  global_batch_size: 512
  micro_batch_size: 1
";

    /// In the form of llmb-run, which PyYAML writes in block style, too.
    const LAUNCHED: &str = "\
job_info:
  job_id: 3530909
  launcher_type: megatron_bridge
  launch_time: '2026-11-28T10:30:45.123456'
  experiment_id: null
workload_info:
  framework: megatron_bridge
  gsw_version: 26.06.01
  fw_version: 26.04.01
  synthetic_dataset: true
model_info:
  model_name: llama3.1
  model_size: 70b
  dtype: fp8
  scale: 256
  gpu_type: h100
cluster_info:
  cluster_name: alpha
  gpus_per_node: 8
  slurm_account: me
container_info:
  images:
  - nvcr.io#nvidia/nemo:26.04.01
job_config:
  profile_enabled: false
  env_overrides:
    NCCL_ALGO: Ring
    HF_TOKEN: hf_sesame
    CONFIG_OVERRIDES: model.recompute_granularity=selective train.manual_gc=true
      train.manual_gc_interval=100
  model_overrides: {}
";

    fn with(file: SettingsFile, text: &str) -> JobSettings {
        JobSettings::default().with(file, file.read(text.as_bytes()).unwrap())
    }

    #[test]
    fn what_llmb_run_launched_is_read() {
        let job = with(SettingsFile::LlmbConfig, LAUNCHED);
        assert_eq!(job.number(SettingsFile::LlmbConfig, Field::Gpus), Some(256));
        assert_eq!(job.number(SettingsFile::LlmbConfig, Field::Gbs), None);
        assert_eq!(job.dtype(SettingsFile::LlmbConfig), Some(Dtype::Fp8));
        assert_eq!((job.launched("gpu_type"), job.launched("model_size")), (Some("h100"), Some("70b")));
        assert_eq!(job.release(), Some("26.06.01"));
        let launched = &job.llmb_config;
        assert_eq!(launched.get("container_info.images"), Some("nvcr.io#nvidia/nemo:26.04.01"));
        assert_eq!(job.container(), Some("nemo:26.04.01"));
        assert_eq!(launched.get("job_config.env_overrides.NCCL_ALGO"), Some("Ring"));
        assert_eq!(
            launched.get("job_config.env_overrides.CONFIG_OVERRIDES"),
            Some("model.recompute_granularity=selective train.manual_gc=true train.manual_gc_interval=100")
        );
        let text = serde_json::to_string(&job).unwrap();
        assert!(!text.contains("sesame") && !text.contains("slurm_account"), "{text}");
    }

    #[test]
    fn an_image_without_a_single_tag_is_not_named() {
        for images in [
            "nvidia+nemo+26.04.01.sqsh",
            "nvcr.io#nvidia/nemo@sha256:0",
            "nvcr.io#nvidia/nemo:1|<b>",
            "alpha#nemo:1\n  - alpha#nemo:2",
        ] {
            let text = LAUNCHED.replace("nvcr.io#nvidia/nemo:26.04.01", images);
            assert_eq!(with(SettingsFile::LlmbConfig, &text).container(), None, "{images}");
        }
    }

    #[test]
    fn the_layout_the_batch_and_the_precision_are_read() {
        let job = with(SettingsFile::BridgeConfig, CONFIG);
        for (field, number) in [
            (Field::Tp, Some(4)),
            (Field::Pp, Some(8)),
            (Field::Cp, Some(2)),
            (Field::Vp, Some(1)),
            // The model has no experts.
            (Field::Ep, None),
            (Field::ExpertTp, None),
            (Field::Mbs, Some(1)),
            (Field::Gbs, Some(512)),
            // The model allows longer sequences than the data have.
            (Field::SeqLen, Some(8192)),
            (Field::Gpus, None),
        ] {
            assert_eq!(job.number(SettingsFile::BridgeConfig, field), number, "{field:?}");
        }
        assert_eq!(job.dtype(SettingsFile::BridgeConfig), Some(Dtype::Fp8Current));
        let config = &job.bridge_config;
        assert_eq!(config.get("mixed_precision"), Some("bf16_with_fp8_current_scaling_mixed"));
        assert_eq!(config.get("model.recompute_modules"), Some("core_attn, moe_act"));
        assert_eq!((config.get("model.cuda_graph_scope"), config.get("optimizer.lr")), (None, None));
        assert_eq!((config.get("model.fp4"), config.text("model.fp4")), (Some("null"), None));
    }

    #[test]
    fn the_precision_follows_from_the_formats() {
        let dtype = |text: &str| with(SettingsFile::BridgeConfig, text).dtype(SettingsFile::BridgeConfig);
        for (from, to, expected) in [
            ("fp4: null", "fp4: e2m1", Some(Dtype::Nvfp4)),
            ("tensorwise", "mxfp8", Some(Dtype::Mxfp8)),
            ("tensorwise", "of_2027", Some(Dtype::Fp8)),
            ("fp8: 'hybrid'", "fp8: null", Some(Dtype::Bf16)),
        ] {
            assert_eq!(dtype(&CONFIG.replace(from, to)), expected, "{to}");
        }
        let neither = CONFIG.replace("fp8: 'hybrid'", "fp8: null").replace("bf16: true", "bf16: false");
        assert_eq!(dtype(&neither), None);
    }
}
