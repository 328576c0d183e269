//! Families of transformers: the fields that define their shapes, and their defaults.
//!
//! Source of every default: the family's configuration class in Hugging Face `transformers`.

use super::fields::ConfigFields;
use super::{Architecture, ConfigError};
use crate::architecture::{Attention, AttentionKind, MOST_LAYERS, Mlp, Moe, SlidingWindow};

/// The rules by which a family's fields define its shape.
pub(super) struct Family {
    /// Its values of `model_type`.
    types: &'static [&'static str],
    /// Whether its MLPs are gated, whatever their activation.
    gated: bool,
    /// Whether it normalizes queries and keys, or MLA its latents, with weights.
    pub(super) normalizes_qk: bool,
    /// Whether embedding and head share their weights by default.
    pub(super) tied: bool,
    /// Kind of attention, and its number of key-value heads.
    attention: KvRule,
    /// Default number of heads.
    heads: Option<u32>,
    /// Default width of a head; `None` for hidden width / heads.
    head_dim: Option<u32>,
    /// Default vocabulary.
    vocab: Option<u32>,
    /// Default FFN width, as a multiple of the hidden width.
    ffn_times: Option<u32>,
    windows: WindowRule,
    experts: ExpertRule,
}

/// How a family defines its number of key-value heads, or another kind of attention.
enum KvRule {
    /// `num_key_value_heads`, by default the number of heads.
    Heads,
    /// `num_key_value_heads`, by default this number.
    Default(u32),
    /// The number of heads.
    Plain,
    /// Falcon: `num_kv_heads` in its new architecture, otherwise 1 with `multi_query`, otherwise the number
    /// of heads.
    Falcon,
    /// MPT: `kv_n_heads` of `attn_config`.
    Mpt,
    /// Multi-head latent attention.
    Latent,
    /// Mixed with other kinds of blocks: see `hybrid`.
    Hybrid,
}

/// Which layers have a sliding window without `layer_types`, with the default of `sliding_window`.
enum WindowRule {
    None,
    All(Option<u32>),
    /// The layers from `max_window_layers` on, if `use_sliding_window` is true.
    Switched,
    /// All layers but every n-th.
    AllButEvery(u32, u32),
    /// Chunked attention instead of windows.
    Chunks,
}

/// How a family defines its routed experts.
enum ExpertRule {
    None,
    /// Every layer is routed; `intermediate_size` is an expert's width.
    Every,
    /// `decoder_sparse_step` and `mlp_only_layers` select routed layers. The value is the default width of
    /// the shared expert, if the family has one.
    Sparse(Option<u32>),
    /// `first_k_dense_replace` and `moe_layer_freq` select routed layers. The values are the defaults of the
    /// first routed layer and of the number of shared experts.
    DeepSeek {
        first: u32,
        shared: u32,
    },
    /// `moe_layers` or `interleave_moe_layer_step` select routed layers, each with a shared expert of the
    /// same width.
    Llama4,
}

/// Llama, and the base of most other families.
const LLAMA: Family = Family {
    types: &["llama", "granite", "olmo", "internlm2"],
    gated: true,
    normalizes_qk: false,
    tied: false,
    attention: KvRule::Heads,
    heads: None,
    head_dim: None,
    vocab: None,
    ffn_times: None,
    windows: WindowRule::None,
    experts: ExpertRule::None,
};

/// GPT-2: ungated MLPs, tied embeddings, plain attention.
const GPT2: Family = Family {
    types: &["gpt2"],
    gated: false,
    tied: true,
    attention: KvRule::Plain,
    ffn_times: Some(4),
    ..LLAMA
};

const FAMILIES: &[Family] = &[
    LLAMA,
    Family { types: &["olmo2"], normalizes_qk: true, ..LLAMA },
    Family {
        types: &["mistral"],
        attention: KvRule::Default(8),
        windows: WindowRule::All(Some(4096)),
        ..LLAMA
    },
    Family {
        types: &["mixtral"],
        attention: KvRule::Default(8),
        windows: WindowRule::All(None),
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family { types: &["qwen2"], attention: KvRule::Default(32), windows: WindowRule::Switched, ..LLAMA },
    Family {
        types: &["qwen3"],
        normalizes_qk: true,
        attention: KvRule::Default(32),
        head_dim: Some(128),
        windows: WindowRule::Switched,
        ..LLAMA
    },
    Family {
        types: &["qwen2_moe"],
        attention: KvRule::Default(16),
        windows: WindowRule::Switched,
        experts: ExpertRule::Sparse(Some(5632)),
        ..LLAMA
    },
    Family {
        types: &["qwen3_moe"],
        normalizes_qk: true,
        attention: KvRule::Default(4),
        windows: WindowRule::Switched,
        experts: ExpertRule::Sparse(None),
        ..LLAMA
    },
    Family {
        types: &["deepseek_v2"],
        normalizes_qk: true,
        attention: KvRule::Latent,
        experts: ExpertRule::DeepSeek { first: 0, shared: 0 },
        ..LLAMA
    },
    Family {
        types: &["deepseek_v3", "kimi_k2"],
        normalizes_qk: true,
        attention: KvRule::Latent,
        experts: ExpertRule::DeepSeek { first: 3, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["glm4_moe"],
        attention: KvRule::Default(8),
        experts: ExpertRule::DeepSeek { first: 1, shared: 1 },
        ..LLAMA
    },
    Family {
        types: &["gpt_oss"],
        attention: KvRule::Default(8),
        head_dim: Some(64),
        windows: WindowRule::AllButEvery(2, 128),
        experts: ExpertRule::Every,
        ..LLAMA
    },
    Family {
        types: &["llama4", "llama4_text"],
        attention: KvRule::Default(8),
        head_dim: Some(128),
        windows: WindowRule::Chunks,
        experts: ExpertRule::Llama4,
        ..LLAMA
    },
    Family { types: &["phi3"], windows: WindowRule::All(None), ..LLAMA },
    Family { types: &["olmo3"], normalizes_qk: true, windows: WindowRule::AllButEvery(4, 4096), ..LLAMA },
    Family { types: &["gemma"], tied: true, attention: KvRule::Default(16), head_dim: Some(256), ..LLAMA },
    Family {
        types: &["gemma2"],
        tied: true,
        attention: KvRule::Default(4),
        head_dim: Some(256),
        windows: WindowRule::AllButEvery(2, 4096),
        ..LLAMA
    },
    Family {
        types: &["gemma3", "gemma3_text"],
        normalizes_qk: true,
        tied: true,
        attention: KvRule::Default(4),
        heads: Some(8),
        head_dim: Some(256),
        vocab: Some(262_208),
        windows: WindowRule::AllButEvery(6, 4096),
        ..LLAMA
    },
    Family { types: &["nemotron"], gated: false, ..LLAMA },
    Family { types: &["nemotron_h"], gated: false, attention: KvRule::Hybrid, ..LLAMA },
    GPT2,
    Family { types: &["gpt_neox"], tied: false, ffn_times: None, ..GPT2 },
    Family { types: &["bloom"], ..GPT2 },
    Family { types: &["falcon"], attention: KvRule::Falcon, ..GPT2 },
    Family { types: &["mpt"], attention: KvRule::Mpt, ..GPT2 },
];

/// Returns every known `model_type`, separated by commas.
pub(super) fn known() -> String {
    FAMILIES.iter().flat_map(|family| family.types).copied().collect::<Vec<_>>().join(", ")
}

impl Family {
    pub(super) const LLAMA: &'static Family = &LLAMA;

    /// Returns the family of a `model_type`, if it is known.
    pub(super) fn of(model_type: &str) -> Option<&'static Family> {
        FAMILIES.iter().find(|family| family.types.contains(&model_type))
    }

    pub(super) fn is_hybrid(&self) -> bool {
        matches!(self.attention, KvRule::Hybrid)
    }

    /// Returns the architecture that the fields of a transformer define.
    pub(super) fn architecture(
        &self,
        fields: &mut ConfigFields<'_>,
        tied_embeddings: bool,
    ) -> Result<Architecture, ConfigError> {
        let layers = layers(fields)?;
        let hidden = fields.needed(&["hidden_size", "n_embd", "d_model", "n_embed"])?;
        let heads = fields.or_default(&["num_attention_heads", "n_head", "n_heads"], self.heads)?;
        let attention = Attention {
            layers,
            heads,
            kind: self.attention_kind(fields, hidden, heads)?,
            window: self.window(fields, layers)?,
            sinks: self.types.contains(&"gpt_oss"),
        };
        let moe = self.moe(fields, layers)?;
        let dense = layers - moe.as_ref().map_or(0, |moe| moe.layers.min(layers));
        let ffn = self.ffn(fields, hidden, dense > 0)?;
        Ok(Architecture {
            layers,
            hidden,
            vocab: fields.or_default(&["vocab_size"], self.vocab)?,
            tied_embeddings,
            attention,
            mlp: (dense > 0).then_some(Mlp { layers: dense, ffn, gated: self.gated }),
            moe,
            mamba: None,
            mtp_layers: self.mtp_layers(fields)?,
        })
    }

    fn mtp_layers(&self, fields: &mut ConfigFields<'_>) -> Result<u32, ConfigError> {
        const NAMES: &[&str] = &["num_nextn_predict_layers"];
        match self.experts {
            // `transformers` omits these layers by default, in families that have them.
            ExpertRule::DeepSeek { first: 1.., .. } => fields.or_default(NAMES, Some(0)),
            _ => Ok(fields.whole(NAMES)?.unwrap_or(0)),
        }
    }

    fn attention_kind(
        &self,
        fields: &mut ConfigFields<'_>,
        hidden: u32,
        heads: u32,
    ) -> Result<AttentionKind, ConfigError> {
        const KV_HEADS: &[&str] = &["num_key_value_heads"];
        let kv_heads = match self.attention {
            KvRule::Latent => return latent(fields),
            KvRule::Heads => match fields.whole(KV_HEADS)? {
                Some(kv_heads) => kv_heads,
                None => {
                    let why = fields.default_reason();
                    fields.note(format!("num_key_value_heads assumed: {heads}, as many as heads ({why})."));
                    heads
                }
            },
            // Null means plain attention.
            KvRule::Default(_) if fields.is_null("num_key_value_heads") => heads,
            KvRule::Default(kv_heads) => fields.or_default(KV_HEADS, Some(kv_heads))?,
            KvRule::Plain | KvRule::Hybrid => heads,
            KvRule::Falcon => falcon_kv_heads(fields, heads)?,
            KvRule::Mpt => mpt_kv_heads(fields, heads)?,
        };
        let head_dim = match (fields.whole(&["head_dim"])?, self.head_dim) {
            (Some(width), _) => width,
            (None, Some(_)) if !fields.is_null("head_dim") => {
                fields.or_default(&["head_dim"], self.head_dim)?
            }
            (None, _) if heads > 0 && hidden.is_multiple_of(heads) => {
                // Older families never have another width, so they need no note.
                if matches!(self.attention, KvRule::Heads | KvRule::Default(_)) {
                    let (width, why) = (hidden / heads, fields.default_reason());
                    fields.note(format!("head_dim assumed: {width}, hidden width / heads ({why})."));
                }
                hidden / heads
            }
            (None, _) => {
                let what = format!(
                    "has no head_dim, and {heads} heads can't divide the hidden width of {hidden} evenly"
                );
                return Err(ConfigError::Unsound(what));
            }
        };
        Ok(AttentionKind::Gqa { kv_heads, head_dim })
    }

    fn window(
        &self,
        fields: &mut ConfigFields<'_>,
        layers: u32,
    ) -> Result<Option<SlidingWindow>, ConfigError> {
        const TOKENS: &str = "sliding_window";
        let typed = self.windows_by_type(fields, layers)?;
        let (by_rule, default) = match self.windows {
            WindowRule::None => (0, None),
            WindowRule::All(default) => (layers, default),
            WindowRule::Switched => (switched(fields, layers)?, None),
            WindowRule::AllButEvery(every, default) => {
                let said = fields.whole(&["sliding_window_pattern", "_sliding_window_pattern"])?;
                if said.is_none() && typed.is_none() {
                    let why = fields.default_reason();
                    fields.note(format!(
                        "layer_types assumed: full attention in every {every}th layer, a window in the others ({why})."
                    ));
                }
                (layers - layers / said.unwrap_or(every).max(1), Some(default))
            }
            WindowRule::Chunks => {
                if let Some(chunk) = fields.whole(&["attention_chunk_size"])? {
                    fields.note(format!(
                        "Chunked attention is counted as full attention, which is exact up to {chunk} tokens."
                    ));
                }
                (0, None)
            }
        };
        let windowed = typed.unwrap_or(by_rule);
        if windowed == 0 {
            // In a family without windows, the field stays unread and is listed.
            if !matches!(self.windows, WindowRule::None) {
                fields.whole(&[TOKENS])?;
            }
            return Ok(None);
        }
        if fields.is_null(TOKENS) {
            return Ok(None);
        }
        let tokens = match (fields.whole(&[TOKENS])?, default) {
            (None, None) if typed.is_some() => return Err(fields.missing(&[TOKENS])),
            (None, None) => return Ok(None),
            (None, Some(_)) => fields.or_default(&[TOKENS], default)?,
            (Some(tokens), _) => tokens,
        };
        Ok(Some(SlidingWindow { tokens, layers: windowed }))
    }

    /// Returns the number of layers with a sliding window by `layer_types`, if the file has it.
    fn windows_by_type(
        &self,
        fields: &mut ConfigFields<'_>,
        layers: u32,
    ) -> Result<Option<u32>, ConfigError> {
        const NAME: &str = "layer_types";
        let Some(types) = fields.texts(NAME)? else { return Ok(None) };
        let chunks = matches!(self.windows, WindowRule::Chunks);
        let wrong =
            |found: String, wanted: String| ConfigError::Wrong { field: NAME.to_string(), found, wanted };
        if types.len() != layers as usize {
            let found = format!("a list of {}", types.len());
            return Err(wrong(found, format!("a list with one entry for each of {layers} layers")));
        }
        let other = types.iter().find(|kind| match **kind {
            "full_attention" | "sliding_attention" => false,
            "chunked_attention" => !chunks,
            _ => true,
        });
        match other {
            Some(other) => {
                let found = super::shown_type(other);
                Err(wrong(found, "full_attention or sliding_attention for each layer".to_string()))
            }
            None => Ok(Some(types.iter().filter(|kind| **kind == "sliding_attention").count() as u32)),
        }
    }

    fn ffn(&self, fields: &mut ConfigFields<'_>, hidden: u32, is_needed: bool) -> Result<u32, ConfigError> {
        let names: &[&str] = match self.experts {
            // Here `intermediate_size` is an expert's width.
            ExpertRule::Llama4 => &["intermediate_size_mlp"],
            _ => &["intermediate_size", "n_inner", "ffn_hidden_size"],
        };
        let times = match (self.ffn_times, &self.attention) {
            (Some(default), KvRule::Mpt) => Some(fields.or_default(&["expansion_ratio"], Some(default))?),
            (times, _) => times,
        };
        let default = times.and_then(|times| hidden.checked_mul(times));
        match fields.whole(names)? {
            Some(ffn) => Ok(ffn),
            None if !is_needed => Ok(0),
            // MPT has its own field for it.
            None if matches!(self.attention, KvRule::Mpt) => Ok(default.unwrap_or(0)),
            None => fields.or_default(names, default),
        }
    }

    fn moe(&self, fields: &mut ConfigFields<'_>, layers: u32) -> Result<Option<Moe>, ConfigError> {
        const TOP_K: &[&str] = &["num_experts_per_tok", "experts_per_token", "num_experts_per_token"];
        let (experts, ffn, shared_ffn, routed) = match self.experts {
            ExpertRule::None => return Ok(None),
            ExpertRule::Every => {
                let experts = fields.needed(&["num_local_experts"])?;
                (experts, fields.needed(&["intermediate_size"])?, 0, layers)
            }
            ExpertRule::Sparse(shared) => {
                let experts = fields.needed(&["num_experts"])?;
                let shared_ffn = match shared {
                    Some(_) => fields.or_default(&["shared_expert_intermediate_size"], shared)?,
                    None => 0,
                };
                let routed = if experts == 0 { 0 } else { sparse_layers(fields, layers)? };
                (experts, fields.needed(&["moe_intermediate_size"])?, shared_ffn, routed)
            }
            ExpertRule::DeepSeek { first, shared } => {
                if fields.is_null("n_routed_experts") {
                    return Ok(None);
                }
                let experts = fields.needed(&["n_routed_experts", "num_experts"])?;
                let ffn = fields.needed(&["moe_intermediate_size"])?;
                // Null means none.
                let shared = match fields.is_null("n_shared_experts") {
                    true => 0,
                    false => fields.or_default(&["n_shared_experts", "num_shared_experts"], Some(shared))?,
                };
                (experts, ffn, shared.saturating_mul(ffn), deepseek_layers(fields, layers, first)?)
            }
            ExpertRule::Llama4 => {
                let experts = fields.needed(&["num_local_experts"])?;
                let ffn = fields.needed(&["intermediate_size"])?;
                (experts, ffn, ffn, llama4_layers(fields, layers)?)
            }
        };
        let top_k = fields.needed(TOP_K)?;
        let gated = self.gated;
        Ok((routed > 0).then_some(Moe {
            layers: routed,
            experts,
            top_k,
            ffn,
            shared_ffn,
            latent: None,
            gated,
        }))
    }
}

/// Returns the number of layers, limited so that each can be examined.
fn layers(fields: &mut ConfigFields<'_>) -> Result<u32, ConfigError> {
    let layers = fields.needed(&["num_hidden_layers", "n_layer", "n_layers"])?;
    match layers {
        1..=MOST_LAYERS => Ok(layers),
        _ => Err(ConfigError::Wrong {
            field: "num_hidden_layers".to_string(),
            found: layers.to_string(),
            wanted: format!("a number from 1 to {MOST_LAYERS}"),
        }),
    }
}

fn latent(fields: &mut ConfigFields<'_>) -> Result<AttentionKind, ConfigError> {
    // Null means that queries are not compressed.
    let q_lora =
        if fields.is_null("q_lora_rank") { 0 } else { fields.or_default(&["q_lora_rank"], Some(1536))? };
    // These have no meaning here, but every file has them.
    fields.whole(&["num_key_value_heads"])?;
    fields.whole(&["head_dim"])?;
    fields.whole(&["qk_head_dim"])?;
    Ok(AttentionKind::Mla {
        q_lora,
        kv_lora: fields.or_default(&["kv_lora_rank"], Some(512))?,
        qk_nope: fields.or_default(&["qk_nope_head_dim"], Some(128))?,
        qk_rope: fields.or_default(&["qk_rope_head_dim"], Some(64))?,
        v_head: fields.or_default(&["v_head_dim"], Some(128))?,
    })
}

fn falcon_kv_heads(fields: &mut ConfigFields<'_>, heads: u32) -> Result<u32, ConfigError> {
    let said = fields.whole(&["num_kv_heads", "n_head_kv"])?;
    let multi_query = fields.flag("multi_query")?;
    if fields.flag("new_decoder_architecture")?.unwrap_or(false) {
        return Ok(said.unwrap_or(heads));
    }
    if multi_query.is_none() {
        fields.note(format!("multi_query assumed: true, one KV head ({}).", fields.default_reason()));
    }
    Ok(if multi_query.unwrap_or(true) { 1 } else { heads })
}

fn mpt_kv_heads(fields: &mut ConfigFields<'_>, heads: u32) -> Result<u32, ConfigError> {
    // Other forms of MPT's MLP are not supported.
    if let Some(mut form) = fields.object("ffn_config")?
        && let Some(name) = form.text("ffn_type")?.filter(|name| *name != "mptmlp")
    {
        fields.note_partly_read(format!("ffn_config.ffn_type = {}", super::shown_type(name)));
    }
    let Some(mut attention) = fields.object("attn_config")? else { return Ok(heads) };
    match (attention.whole(&["kv_n_heads"])?, attention.text("attn_type")?) {
        (Some(kv_heads), _) => Ok(kv_heads),
        (None, Some("multiquery_attention")) => Ok(1),
        (None, _) => Ok(heads),
    }
}

/// Returns the number of Qwen's layers with a sliding window.
fn switched(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    let from = fields.whole(&["max_window_layers"])?;
    match fields.flag("use_sliding_window")? {
        Some(true) => {
            let from = match from {
                Some(from) => from,
                None => fields.or_default(&["max_window_layers"], Some(28))?,
            };
            Ok(layers.saturating_sub(from))
        }
        _ => Ok(0),
    }
}

/// Returns the number of Qwen's routed layers.
fn sparse_layers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    let step = fields.or_default(&["decoder_sparse_step"], Some(1))?;
    let dense = fields.wholes("mlp_only_layers")?.unwrap_or_default();
    if step == 0 {
        return Err(zero("decoder_sparse_step"));
    }
    let routes = |layer: &u32| !dense.contains(layer) && (layer + 1).is_multiple_of(step);
    Ok((0..layers).filter(routes).count() as u32)
}

/// Returns the number of DeepSeek's routed layers.
fn deepseek_layers(fields: &mut ConfigFields<'_>, layers: u32, first: u32) -> Result<u32, ConfigError> {
    const STEP: &str = "moe_layer_freq";
    let first = fields.or_default(&["first_k_dense_replace"], Some(first))?;
    if fields.is_list(STEP) {
        let each = fields.wholes(STEP)?.unwrap_or_default();
        if each.len() != layers as usize {
            return Err(ConfigError::Wrong {
                field: STEP.to_string(),
                found: format!("a list of {}", each.len()),
                wanted: format!("a list with one entry for each of {layers} layers"),
            });
        }
        let routes =
            |layer: &u32| *layer >= first && each.get(*layer as usize).is_some_and(|routes| *routes > 0);
        return Ok((0..layers).filter(routes).count() as u32);
    }
    match fields.whole(&[STEP])?.unwrap_or(1) {
        0 => Err(zero(STEP)),
        step => Ok((0..layers).filter(|layer| *layer >= first && layer.is_multiple_of(step)).count() as u32),
    }
}

/// Returns the number of Llama 4's routed layers.
fn llama4_layers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    const STEP: &str = "interleave_moe_layer_step";
    let step = fields.whole(&[STEP])?;
    if let Some(listed) = fields.wholes("moe_layers")? {
        return Ok((0..layers).filter(|layer| listed.contains(layer)).count() as u32);
    }
    match step {
        Some(0) => Err(zero(STEP)),
        Some(step) => Ok(layers / step),
        None => Ok(layers / fields.or_default(&[STEP], Some(1))?.max(1)),
    }
}

fn zero(field: &str) -> ConfigError {
    ConfigError::Wrong { field: field.to_string(), found: "0".to_string(), wanted: "1 or more".to_string() }
}
