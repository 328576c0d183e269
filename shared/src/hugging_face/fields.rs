//! The fields of a file. They record which fields were read, so that the others can be listed.

use super::ConfigError;
use crate::units::group_digits;
use serde_json::{Map, Value};

/// Fields without influence on a model's shape: training, numerics, positions, tokens, biases.
const WITHOUT_INFLUENCE: &[&str] = &[
    "activation",
    "activation_function",
    "afn",
    "alibi",
    "apply_residual_connection_post_layernorm",
    "architectures",
    "attention_multiplier",
    "attention_softmax_in_fp32",
    "attention_types",
    "attn_config",
    "attn_impl",
    "attn_implementation",
    "attn_logit_softcapping",
    "attn_scale",
    "attn_temperature_tuning",
    "audio_chunk_size",
    "audio_merge_size",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bias",
    "cache_implementation",
    "chunk_size_feed_forward",
    "clip_qkv",
    "conv_kernel",
    "dim_model_base",
    "diversity_penalty",
    "do_layer_norm_before",
    "do_sample",
    "early_stopping",
    "embedding_fraction",
    "embedding_initializer_range",
    "embedding_multiplier",
    "enable_moe_fp32_combine",
    "encoder_no_repeat_ngram_size",
    "ep_size",
    "expand",
    "expert_selection_fn",
    "exponential_decay_length_penalty",
    "final_logit_softcapping",
    "finetuning_task",
    "floor_scale",
    "for_llm_compressor",
    "gradient_checkpointing",
    "hidden_act",
    "hidden_activation",
    "id2label",
    "image_seq_length",
    "image_size",
    "init_config",
    "init_device",
    "init_std",
    "input_jitter_noise",
    "is_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "layer_norm_elementwise_affine",
    "layer_norm_type",
    "layer_rope_theta",
    "layerdrop",
    "learned_pos_emb",
    "length_penalty",
    "logit_scale",
    "logits_scaling",
    "mamba_hidden_act",
    "mamba_norm_before_gate",
    "masked_softmax_fusion",
    "max_length",
    "max_new_tokens",
    "min_length",
    "mlp_hidden_act",
    "model_type",
    "moe_apply_router_weight_on_input",
    "moe_norm_min",
    "moe_routed_scaling_factor",
    "moe_router_logit_softcapping",
    "moe_shared_expert_overlap",
    "n_group",
    "name",
    "no_bias",
    "no_repeat_ngram_size",
    "no_rope_layer_interval",
    "no_rope_layers",
    "norm_topk_prob",
    "norm_type",
    "num_beam_groups",
    "num_beams",
    "num_channels",
    "num_ln_in_parallel_attn",
    "num_logits_to_keep",
    "num_return_sequences",
    "offset_alibi",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "parallel_attn",
    "partial_rotary_factor",
    "patch_size",
    "position_embedding_type",
    "prefix",
    "prefix_dense_sliding_window_pattern",
    "pretraining_tp",
    "problem_type",
    "projector_hidden_act",
    "pruned_heads",
    "qk_layernorm",
    "quantization_config",
    "query_pre_attn_scalar",
    "remove_invalid_values",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "residual_multiplier",
    "return_dict",
    "return_dict_in_generate",
    "rope_interleave",
    "rope_theta",
    "rotary",
    "rotary_dim",
    "rotary_emb_base",
    "rotary_pct",
    "route_scale",
    "routed_scaling_factor",
    "scale_attention_softmax_in_fp32",
    "scale_attn_by_inverse_layer_idx",
    "scale_attn_weights",
    "scale_depth",
    "scale_emb",
    "scale_embedding",
    "scoring_func",
    "seq_aux",
    "seq_length",
    "shared_expert_combination_strategy",
    "slow_but_exact",
    "suppress_tokens",
    "swiglu_alpha",
    "swiglu_limit",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "tokenizer_name",
    "top_k",
    "top_p",
    "topk_group",
    "topk_method",
    "torchscript",
    "training_dtype",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_bidirectional_attention",
    "use_cache",
    "use_mamba_kernels",
    "use_mrope",
    "use_parallel_residual",
    "use_post_norm",
    "use_qk_norm",
    "verbose",
    "z_loss_coefficient",
];

/// Fields without influence if they are false.
const WITHOUT_INFLUENCE_IF_FALSE: &[&str] =
    &["add_cross_attention", "is_encoder_decoder", "use_sliding_window"];

const PREFIXES_WITHOUT_INFLUENCE: &[&str] =
    &["_", "initializer_", "mamba_ssm_cache", "mm_", "rope_", "router_", "summary_", "task_", "time_step_"];

const SUFFIXES_WITHOUT_INFLUENCE: &[&str] = &[
    "_bias",
    "_coef",
    "_coeff",
    "_dtype",
    "_eps",
    "_multiplier",
    "_multipliers",
    "_epsilon",
    "_pdrop",
    "_dropout",
    "_dropout_prob",
    "_token_id",
    "_token_ids",
    "_token_index",
    "_tokens_per_image",
    "dropout",
    "dtype",
    "router_logits",
];

/// Fields that are listed as not understood; a file with more is not of a known kind.
const MOST_LISTED: usize = 20;

/// The fields of one object in a file.
pub(super) struct ConfigFields<'a> {
    map: &'a Map<String, Value>,
    /// The file's `model_type`, for messages.
    pub(super) family: String,
    /// Whether that family is known.
    pub(super) is_known: bool,
    /// Assumptions for missing fields.
    pub(super) notes: Vec<String>,
    read: Vec<&'static str>,
    /// Fields that were read but only partly understood.
    partly_read: Vec<String>,
}

impl<'a> ConfigFields<'a> {
    pub(super) fn of(map: &'a Map<String, Value>) -> ConfigFields<'a> {
        ConfigFields {
            map,
            family: String::new(),
            is_known: true,
            notes: Vec::new(),
            read: Vec::new(),
            partly_read: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(super) fn note_partly_read(&mut self, field: String) {
        self.partly_read.push(field);
    }

    /// Returns the source of a default, for notes.
    pub(super) fn default_reason(&self) -> String {
        match self.is_known {
            true => format!("default of {}", self.family),
            false => "Llama's default".to_string(),
        }
    }

    /// Whether the field is present and null.
    pub(super) fn is_null(&mut self, name: &'static str) -> bool {
        let is = self.map.get(name).is_some_and(Value::is_null);
        if is {
            self.read.push(name);
        }
        is
    }

    /// Returns the field's value, if it is present and not null.
    fn value(&mut self, name: &'static str) -> Option<&'a Value> {
        self.read.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn wrong(name: &str, found: &Value, wanted: impl Into<String>) -> ConfigError {
        ConfigError::Wrong { field: name.to_string(), found: shown(found), wanted: wanted.into() }
    }

    /// Returns the whole number of the first of `names` that is present; the others must be equal.
    pub(super) fn whole(&mut self, names: &[&'static str]) -> Result<Option<u32>, ConfigError> {
        let mut found = None;
        for name in names {
            let Some(value) = self.value(name) else { continue };
            let number = as_whole(value)
                .ok_or_else(|| Self::wrong(name, value, "a whole number up to 4,294,967,295"))?;
            match found {
                Some((first, other)) if other != number => {
                    return Err(Self::wrong(name, value, format!("{other}, like {first}")));
                }
                _ => found = found.or(Some((*name, number))),
            }
        }
        Ok(found.map(|(_, number)| number))
    }

    /// Returns a whole number that is required.
    pub(super) fn needed(&mut self, names: &[&'static str]) -> Result<u32, ConfigError> {
        self.whole(names)?.ok_or_else(|| self.missing(names))
    }

    pub(super) fn missing(&self, names: &[&'static str]) -> ConfigError {
        let family = if self.family.is_empty() { "unknown" } else { &self.family };
        ConfigError::Missing { field: names.join(" or "), family: family.to_string() }
    }

    /// Returns a whole number, or else the family's default with a note.
    ///
    /// # Errors
    /// The field is missing and there is no default, or its value is invalid.
    pub(super) fn or_default(
        &mut self,
        names: &[&'static str],
        default: Option<u32>,
    ) -> Result<u32, ConfigError> {
        match (self.whole(names)?, default) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => {
                let name = names.first().copied().unwrap_or_default();
                self.note(format!("{name} assumed: {default} ({}).", self.default_reason()));
                Ok(default)
            }
            (None, None) => Err(self.missing(names)),
        }
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<Option<bool>, ConfigError> {
        let value = self.value(name);
        value
            .map(|value| value.as_bool().ok_or_else(|| Self::wrong(name, value, "true or false")))
            .transpose()
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<&'a str>, ConfigError> {
        let value = self.value(name);
        value.map(|value| value.as_str().ok_or_else(|| Self::wrong(name, value, "text"))).transpose()
    }

    /// Returns a list of texts.
    pub(super) fn texts(&mut self, name: &'static str) -> Result<Option<Vec<&'a str>>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let texts = value.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
        texts.ok_or_else(|| Self::wrong(name, value, "a list of texts")).map(Some)
    }

    /// Returns a list of whole numbers.
    pub(super) fn wholes(&mut self, name: &'static str) -> Result<Option<Vec<u32>>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let numbers = value.as_array().and_then(|list| list.iter().map(as_whole).collect());
        numbers.ok_or_else(|| Self::wrong(name, value, "a list of whole numbers")).map(Some)
    }

    /// Whether the file has the field with a value, which stays unread.
    pub(super) fn names(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Whether the field is a list rather than one value for all layers.
    pub(super) fn is_list(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(Value::is_array)
    }

    /// Returns the index of a field's layer; -1 and a missing field mean the last of `layers`.
    pub(super) fn last_layer(&mut self, name: &'static str, layers: u32) -> Result<u32, ConfigError> {
        match self.value(name) {
            Some(value) if value.as_i64() == Some(-1) => Ok(layers.saturating_sub(1)),
            _ => Ok(self.whole(&[name])?.unwrap_or(layers.saturating_sub(1))),
        }
    }

    /// Whether the field is present and not null.
    pub(super) fn has(&mut self, name: &'static str) -> bool {
        self.value(name).is_some()
    }

    /// Returns the fields of a nested object.
    pub(super) fn object(&mut self, name: &'static str) -> Result<Option<ConfigFields<'a>>, ConfigError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let map = value.as_object().ok_or_else(|| Self::wrong(name, value, "an object"))?;
        Ok(Some(ConfigFields {
            family: self.family.clone(),
            is_known: self.is_known,
            ..ConfigFields::of(map)
        }))
    }

    /// Returns the fields that were not read and may influence the model's shape. Only the first ones are listed; the
    /// last entry says how many others there are.
    pub(super) fn left_over(&self) -> Vec<String> {
        let unread = || {
            self.map.iter().filter(|(name, value)| {
                !value.is_null() && !self.read.contains(&name.as_str()) && has_influence(name, value)
            })
        };
        let others = unread().count().saturating_sub(MOST_LISTED);
        let listed = unread().take(MOST_LISTED).map(|(name, value)| {
            let name: String = name.chars().flat_map(char::escape_debug).take(LONGEST_SHOWN).collect();
            format!("{name} = {}", shown(value))
        });
        let others = (others > 0).then(|| format!("{} other fields", group_digits(others as f64)));
        self.partly_read.iter().cloned().chain(listed).chain(others).collect()
    }
}

fn has_influence(name: &str, value: &Value) -> bool {
    if WITHOUT_INFLUENCE_IF_FALSE.contains(&name) && value == &Value::Bool(false) {
        return false;
    }
    let starts = PREFIXES_WITHOUT_INFLUENCE.iter().any(|prefix| name.starts_with(prefix));
    let ends = SUFFIXES_WITHOUT_INFLUENCE.iter().any(|suffix| name.ends_with(suffix));
    !starts && !ends && !WITHOUT_INFLUENCE.contains(&name)
}

/// Returns a whole number, also from Python's form 4.0.
fn as_whole(value: &Value) -> Option<u32> {
    match (value.as_u64(), value.as_f64()) {
        (Some(number), _) => u32::try_from(number).ok(),
        (None, Some(number)) => {
            let in_range = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number);
            in_range.then_some(number as u32)
        }
        _ => None,
    }
}

/// Characters of a value that a message shows at most.
const LONGEST_SHOWN: usize = 60;

/// Formats a value for a message, shortened.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(_) => "an object".to_string(),
        Value::String(text) if text.chars().count() > LONGEST_SHOWN => {
            format!(
                "\"{}…\"",
                text.chars().flat_map(char::escape_debug).take(LONGEST_SHOWN).collect::<String>()
            )
        }
        Value::String(text) => format!("\"{}\"", text.escape_debug()),
        other => other.to_string(),
    }
}
