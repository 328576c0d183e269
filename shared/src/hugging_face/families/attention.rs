//! Attention: its kind, its heads, and which layers have windows or linear attention.

use super::{Family, KvRule, WindowRule, zero};
use crate::architecture::{AttentionKind, LinearAttention, SlidingWindow};
use crate::hugging_face::fields::ConfigFields;
use crate::hugging_face::{ConfigError, shown_type};

impl Family {
    pub(super) fn attention_kind(
        &self,
        fields: &mut ConfigFields<'_>,
        hidden: u32,
        heads: u32,
    ) -> Result<AttentionKind, ConfigError> {
        const KV_HEADS: &[&str] = &["num_key_value_heads"];
        let kv_heads = match self.attention {
            KvRule::Latent => return latent(fields),
            KvRule::Heads | KvRule::Mixed => match fields.whole(KV_HEADS)? {
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
                if matches!(self.attention, KvRule::Heads | KvRule::Mixed | KvRule::Default(_)) {
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

    pub(super) fn window(
        &self,
        fields: &mut ConfigFields<'_>,
        layers: u32,
    ) -> Result<Option<SlidingWindow>, ConfigError> {
        const TOKENS: &str = "sliding_window";
        let typed = self.windows_by_type(fields, layers)?;
        if !matches!(self.windows, WindowRule::None | WindowRule::Switched)
            && fields.flag("use_sliding_window")? == Some(false)
        {
            fields.whole(&[TOKENS])?;
            return Ok(None);
        }
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
                // 0 means that no layer has full attention.
                let full = layers.checked_div(said.unwrap_or(every)).unwrap_or(0);
                (layers - full, Some(default))
            }
            WindowRule::Local => return local(fields, layers),
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
            if typed.is_some() || !matches!(self.windows, WindowRule::None) {
                fields.whole(&[TOKENS])?;
                fields.whole(&["max_window_layers"])?;
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
            "indexed_attention" => !self.vectors.indexer,
            _ => true,
        });
        match other {
            Some(other) => {
                let found = shown_type(other);
                Err(wrong(found, "full_attention or sliding_attention for each layer".to_string()))
            }
            None => Ok(Some(types.iter().filter(|kind| **kind == "sliding_attention").count() as u32)),
        }
    }
}

/// Returns the window of GPT-Neo's local layers.
fn local(fields: &mut ConfigFields<'_>, layers: u32) -> Result<Option<SlidingWindow>, ConfigError> {
    let local = match fields.texts("attention_layers")? {
        Some(kinds) => kinds.iter().filter(|kind| **kind == "local").count().min(layers as usize) as u32,
        None => layers / 2,
    };
    let tokens = fields.or_default(&["window_size"], Some(256))?;
    Ok((local > 0).then_some(SlidingWindow { tokens, layers: local }))
}

/// Returns the blocks of linear attention, by `layer_types` or `full_attention_interval`. The defaults are those of
/// `Qwen3NextConfig`, `Qwen3_5TextConfig` and `Qwen3_5MoeTextConfig`.
pub(super) fn linear_attention(
    fields: &mut ConfigFields<'_>,
    layers: u32,
) -> Result<LinearAttention, ConfigError> {
    const TYPES: &str = "layer_types";
    let interval = fields.whole(&["full_attention_interval"])?;
    let types = fields.texts(TYPES)?;
    let wrong =
        |found: String, wanted: String| ConfigError::Wrong { field: TYPES.to_string(), found, wanted };
    let linear = match (&types, interval) {
        (Some(types), _) if types.len() != layers as usize => {
            let found = format!("a list of {}", types.len());
            return Err(wrong(found, format!("a list with one entry for each of {layers} layers")));
        }
        (Some(types), _) => {
            let is_known = |kind: &&&str| !matches!(**kind, "full_attention" | "linear_attention");
            if let Some(other) = types.iter().find(is_known) {
                let wanted = "full_attention or linear_attention for each layer".to_string();
                return Err(wrong(shown_type(other), wanted));
            }
            types.iter().filter(|kind| **kind == "linear_attention").count() as u32
        }
        (None, Some(0)) => return Err(zero("full_attention_interval")),
        (None, interval) => layers - layers / interval.unwrap_or(4),
    };
    if types.is_none() && interval.is_none() {
        let why = fields.default_reason();
        fields.note(format!(
            "Full attention assumed in every 4th layer, linear attention in the others ({why})."
        ));
    }
    if fields.whole(&["linear_conv_kernel_dim"])?.is_some_and(|tokens| tokens != 4) {
        fields.note_partly_read("linear_conv_kernel_dim (read as 4)".to_string());
    }
    Ok(LinearAttention {
        layers: linear,
        key_heads: fields.or_default(&["linear_num_key_heads"], Some(16))?,
        value_heads: fields.or_default(&["linear_num_value_heads"], Some(32))?,
        key_dim: fields.or_default(&["linear_key_head_dim"], Some(128))?,
        value_dim: fields.or_default(&["linear_value_head_dim"], Some(128))?,
    })
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
    // GPT-BigCode's files have it as well as multi_query.
    fields.whole(&["num_key_value_heads"])?;
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
        fields.note_partly_read(format!("ffn_config.ffn_type = {}", shown_type(name)));
    }
    fields.whole(&["num_key_value_heads"])?;
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
