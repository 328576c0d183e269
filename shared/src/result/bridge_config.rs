//! The configuration that Megatron-Bridge writes beside the log of a run: `configs/ConfigContainer.yaml`.
//!
//! It holds what took effect, after every override. PyYAML writes it as sections with a setting per line, indented by two spaces. A list of
//! plain values follows its key at the same depth:
//!
//! ```text
//! model:
//!   _target_: megatron.bridge.models.llama.llama_provider.Llama31ModelProvider
//!   pipeline_model_parallel_size: 8
//!   recompute_modules:
//!   - core_attn
//!   virtual_pipeline_model_parallel_size: null
//! train:
//!   micro_batch_size: 1
//! ```
//!
//! Only the settings in [`KEYS`] are kept. Nothing else in the file matters, and a setting in another form is not understood.

use crate::field::Field;
use crate::precision::Dtype;
use crate::text::printable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The path of the file from the folder of the log.
pub const BRIDGE_CONFIG: &str = "configs/ConfigContainer.yaml";

/// The largest file that is read, in bytes. One of Megatron-Bridge has about 25 kB.
pub const LARGEST_BRIDGE_CONFIG: usize = 1 << 20;

/// The longest value that is kept, in bytes.
const LONGEST_VALUE: usize = 1024;

/// What PyYAML writes for Python's `None`.
const UNSET: &str = "null";

/// The settings that are kept, in alphabetical order.
const KEYS: [&str; 78] = [
    "comm_overlap.overlap_grad_reduce",
    "comm_overlap.overlap_moe_expert_parallel_comm",
    "comm_overlap.overlap_param_gather",
    "comm_overlap.tp_comm_overlap",
    "dataset.seq_length",
    "dataset.sequence_length",
    "ddp.average_in_collective",
    "ddp.bucket_size",
    "ddp.data_parallel_sharding_strategy",
    "ddp.fp8_param_gather",
    "ddp.grad_reduce_in_fp32",
    "ddp.nccl_ub",
    "ddp.overlap_grad_reduce",
    "ddp.overlap_param_gather",
    "ddp.use_distributed_optimizer",
    "ddp.use_megatron_fsdp",
    "dist.use_megatron_fsdp",
    "dist.use_torch_fsdp2",
    "mixed_precision",
    "mixed_precision.bf16",
    "mixed_precision.fp4",
    "mixed_precision.fp4_recipe",
    "mixed_precision.fp8",
    "mixed_precision.fp8_param_gather",
    "mixed_precision.fp8_recipe",
    "mixed_precision.grad_reduce_in_fp32",
    "model.account_for_embedding_in_pipeline_split",
    "model.account_for_loss_in_pipeline_split",
    "model.bf16",
    "model.context_parallel_size",
    "model.cp_comm_type",
    "model.cpu_offloading",
    "model.cpu_offloading_num_layers",
    "model.cuda_graph_impl",
    "model.cuda_graph_scope",
    "model.expert_model_parallel_size",
    "model.expert_tensor_parallel_size",
    "model.fp16",
    "model.fp4",
    "model.fp4_recipe",
    "model.fp8",
    "model.fp8_recipe",
    "model.gradient_accumulation_fusion",
    "model.hidden_size",
    "model.moe_enable_deepep",
    "model.moe_flex_dispatcher_backend",
    "model.moe_router_force_load_balancing",
    "model.moe_token_dispatcher_type",
    "model.num_layers",
    "model.num_layers_in_first_pipeline_stage",
    "model.num_layers_in_last_pipeline_stage",
    "model.num_moe_experts",
    "model.overlap_moe_expert_parallel_comm",
    "model.overlap_p2p_comm",
    "model.pipeline_model_parallel_size",
    "model.recompute_granularity",
    "model.recompute_method",
    "model.recompute_modules",
    "model.recompute_num_layers",
    "model.seq_length",
    "model.sequence_parallel",
    "model.tensor_model_parallel_size",
    "model.tp_comm_overlap",
    "model.use_te_rng_tracker",
    "model.use_transformer_engine_op_fuser",
    "model.virtual_pipeline_model_parallel_size",
    "model.vocab_size",
    "optimizer.optimizer",
    "optimizer.optimizer_cpu_offload",
    "optimizer.overlap_param_gather",
    "optimizer.overlap_param_gather_with_optimizer_step",
    "optimizer.use_distributed_optimizer",
    "optimizer.use_precision_aware_optimizer",
    "profiling.use_nsys_profiler",
    "train.global_batch_size",
    "train.manual_gc",
    "train.micro_batch_size",
    "train.train_iters",
];

/// Settings of Megatron-Bridge's configuration with their values as written, such as `model.seq_length`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BridgeConfig(BTreeMap<String, String>);

/// Why the configuration beside a log says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnreadConfig {
    /// The file can't be read.
    Unreadable,
    /// It is larger than [`LARGEST_BRIDGE_CONFIG`].
    TooLarge,
    /// It has none of the settings that are kept, so it isn't one that Megatron-Bridge wrote.
    Other,
}

impl UnreadConfig {
    /// Returns the reason as a sentence.
    pub(super) fn sentence(self) -> String {
        let why = match self {
            UnreadConfig::Unreadable => "it can't be read",
            UnreadConfig::TooLarge => "it is larger than 1 MiB",
            UnreadConfig::Other => "it has none of the settings that Megatron-Bridge writes",
        };
        format!("{BRIDGE_CONFIG} beside the log is ignored: {why}.")
    }
}

impl BridgeConfig {
    /// Reads the file.
    ///
    /// # Errors
    /// It is too large, or has none of the settings that are kept.
    pub fn read(bytes: &[u8]) -> Result<BridgeConfig, UnreadConfig> {
        if bytes.len() > LARGEST_BRIDGE_CONFIG {
            return Err(UnreadConfig::TooLarge);
        }
        let text = String::from_utf8_lossy(bytes);
        let mut config = BridgeConfig::default();
        let mut section = "";
        // The key of the list whose items may follow.
        let mut list: Option<String> = None;
        for line in text.lines() {
            let rest = line.trim_start_matches(' ');
            match (line.len() - rest.len(), rest.strip_prefix("- "), rest.split_once(':')) {
                (2, Some(item), _) => {
                    if let Some(key) = &list {
                        config.push(key, scalar(item));
                    }
                }
                (0, None, Some((key, value))) => {
                    (section, list) = (key, None);
                    config.keep(key, value);
                }
                (2, None, Some((key, value))) => {
                    let path = format!("{section}.{key}");
                    config.keep(&path, value);
                    list = value.trim().is_empty().then_some(path);
                }
                // What lies deeper belongs to a value that is not kept.
                _ => {}
            }
        }
        if config.is_empty() { Err(UnreadConfig::Other) } else { Ok(config) }
    }

    /// Keeps a value if it is that of a known key. The value of a section or a list is on other lines.
    fn keep(&mut self, path: &str, value: &str) {
        let value = scalar(value);
        if !value.is_empty() && value.len() <= LONGEST_VALUE && KEYS.contains(&path) {
            self.0.insert(path.to_owned(), printable(value));
        }
    }

    /// Adds a plain value to a list if its key is known. A list of lists or of tables isn't kept.
    fn push(&mut self, path: &str, value: &str) {
        if value.starts_with("- ") || value.contains(": ") || !KEYS.contains(&path) {
            return;
        }
        let list = self.0.entry(path.to_owned()).or_default();
        if list.len() + value.len() <= LONGEST_VALUE {
            let separator = if list.is_empty() { "" } else { ", " };
            *list += &format!("{separator}{}", printable(value));
        }
    }

    /// Returns whether no settings are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the settings with their values as written, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Returns a value; none if it is absent or unset.
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|value| *value != UNSET)
    }

    /// Returns a number above 0.
    fn count(&self, key: &str) -> Option<u32> {
        self.text(key)?.parse().ok().filter(|count| *count > 0)
    }

    /// Returns the number of a field of the layout or the batch. The data may be cut to other lengths than the model allows.
    pub(super) fn number(&self, field: Field) -> Option<u32> {
        let of_experts = |key| self.text("model.num_moe_experts").and_then(|_| self.count(key));
        match field {
            Field::Tp => self.count("model.tensor_model_parallel_size"),
            Field::Pp => self.count("model.pipeline_model_parallel_size"),
            Field::Cp => self.count("model.context_parallel_size"),
            Field::Vp => {
                let key = "model.virtual_pipeline_model_parallel_size";
                self.count(key).or_else(|| self.0.get(key).map(|_| 1))
            }
            Field::Ep => of_experts("model.expert_model_parallel_size"),
            Field::ExpertTp => of_experts("model.expert_tensor_parallel_size"),
            Field::Mbs => self.count("train.micro_batch_size"),
            Field::Gbs => self.count("train.global_batch_size"),
            Field::SeqLen => ["dataset.sequence_length", "dataset.seq_length", "model.seq_length"]
                .into_iter()
                .find_map(|key| self.count(key)),
            _ => None,
        }
    }

    /// Returns the precision.
    pub(super) fn dtype(&self) -> Option<Dtype> {
        let of = |key: &str| {
            let sections = ["model", "mixed_precision"];
            sections.into_iter().find_map(|section| self.text(&format!("{section}.{key}")))
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
}

/// Returns a plain value without white space and quotes around it.
fn scalar(value: &str) -> &str {
    let value = value.trim();
    let quoted = ['\'', '"'].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    fn config() -> BridgeConfig {
        BridgeConfig::read(CONFIG.as_bytes()).unwrap()
    }

    #[test]
    fn the_keys_are_sorted_and_unique() {
        assert!(KEYS.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn the_layout_the_batch_and_the_precision_are_read() {
        let config = config();
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
            assert_eq!(config.number(field), number, "{field:?}");
        }
        assert_eq!(config.dtype(), Some(Dtype::Fp8Current));
        assert_eq!(config.text("mixed_precision"), Some("bf16_with_fp8_current_scaling_mixed"));
        assert_eq!(config.text("model.recompute_modules"), Some("core_attn, moe_act"));
        assert_eq!(config.text("model.cuda_graph_scope"), None);
        assert!(config.iter().all(|(key, _)| KEYS.contains(&key)));
        assert!(config.iter().any(|(key, value)| (key, value) == ("model.fp4", "null")));
    }

    #[test]
    fn the_precision_follows_from_the_formats() {
        for (from, to, dtype) in [
            ("fp4: null", "fp4: e2m1", Some(Dtype::Nvfp4)),
            ("tensorwise", "mxfp8", Some(Dtype::Mxfp8)),
            ("tensorwise", "of_2027", Some(Dtype::Fp8)),
            ("fp8: 'hybrid'", "fp8: null", Some(Dtype::Bf16)),
        ] {
            let text = CONFIG.replace(from, to);
            assert_eq!(BridgeConfig::read(text.as_bytes()).unwrap().dtype(), dtype, "{to}");
        }
        let neither = CONFIG.replace("fp8: 'hybrid'", "fp8: null").replace("bf16: true", "bf16: false");
        assert_eq!(BridgeConfig::read(neither.as_bytes()).unwrap().dtype(), None);
    }

    #[test]
    fn other_files_are_refused() {
        for other in ["", "model:", "model:\n\tseq_length: 4", "{\"model\": 1}", "- a\n- b: 1"] {
            assert_eq!(BridgeConfig::read(other.as_bytes()), Err(UnreadConfig::Other), "{other}");
        }
        let large = CONFIG.to_owned() + &"#".repeat(LARGEST_BRIDGE_CONFIG);
        assert_eq!(BridgeConfig::read(large.as_bytes()), Err(UnreadConfig::TooLarge));
        assert!(UnreadConfig::TooLarge.sentence().contains("larger than 1 MiB"));
        let long = CONFIG.replace("hybrid", &"h".repeat(LONGEST_VALUE + 1));
        assert_eq!(BridgeConfig::read(long.as_bytes()).unwrap().text("model.fp8"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(
            words in prop::collection::vec(prop::sample::select(&[
                "model", "train", "  ", " ", ":", ": ", "\n", "- ", "seq_length", "recompute_modules", "8192", "null", "'",
                "\"", "é", "\t", "\r", "mixed_precision", "x",
            ][..]), 0..80),
        ) {
            if let Ok(config) = BridgeConfig::read(words.concat().as_bytes()) {
                prop_assert!(config.iter().all(|(key, value)| KEYS.contains(&key) && !value.is_empty()));
                let json = serde_json::to_string(&config).unwrap();
                prop_assert_eq!(serde_json::from_str::<BridgeConfig>(&json).unwrap(), config);
            }
        }
    }
}
