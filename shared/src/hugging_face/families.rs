//! The rules by which a file's fields define the shape of a transformer. `table` lists the families that follow them.

use super::fields::ConfigFields;
use super::vectors::VectorRule;
use super::{Architecture, ConfigError};
use crate::architecture::{Attention, AttentionKind, LinearAttention, MOST_LAYERS, Mlp, Moe, SlidingWindow};

/// The rules by which a family's fields define its shape.
pub(super) struct Family {
    /// Its values of `model_type`.
    pub(super) types: &'static [&'static str],
    /// Whether its MLPs are gated, whatever their activation.
    pub(super) gated: bool,
    /// Its norms, biases and learned positions.
    pub(super) vectors: VectorRule,
    /// Whether embedding and head share their weights by default.
    pub(super) tied: bool,
    /// Kind of attention, and its number of key-value heads.
    pub(super) attention: KvRule,
    /// Default number of heads.
    pub(super) heads: Option<u32>,
    /// Default width of a head; `None` for hidden width / heads.
    pub(super) head_dim: Option<u32>,
    /// Default vocabulary.
    pub(super) vocab: Option<u32>,
    /// Default FFN width, as a multiple of the hidden width.
    pub(super) ffn_times: Option<u32>,
    pub(super) windows: WindowRule,
    /// Whether most layers have linear attention, and full attention has an output gate.
    pub(super) linear_attention: bool,
    pub(super) experts: ExpertRule,
}

/// How a family defines its number of key-value heads, or another kind of attention.
pub(super) enum KvRule {
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
    /// Mixed with other kinds of blocks, one in each layer: see `hybrid`.
    Hybrid,
    /// Mamba-2, attention and MLPs in each layer: see `mixed`.
    Mixed,
}

/// Which layers have a sliding window without `layer_types`, with the default of `sliding_window`.
pub(super) enum WindowRule {
    None,
    All(Option<u32>),
    /// The layers from `max_window_layers` on, if `use_sliding_window` is true.
    Switched,
    /// All layers but every n-th.
    AllButEvery(u32, u32),
    /// GPT-Neo: the local layers of `attention_layers`, or else every other, with `window_size`.
    Local,
    /// Chunked attention instead of windows.
    Chunks,
}

/// How a family defines its routed experts.
pub(super) enum ExpertRule {
    None,
    /// Every layer is routed; `intermediate_size` is an expert's width.
    Every,
    /// As `Every`, with one shared expert of the same width.
    EveryAndShared,
    /// The layers from `moe_layer_start_index` to `moe_layer_end_index` are routed.
    Ernie,
    /// Every layer is routed, as `ffn_config` says.
    Dbrx,
    /// `mlp_layer_types`, or else `decoder_sparse_step` and `mlp_only_layers`, select routed layers. The value is the default width of
    /// the shared expert, if the family has one.
    Sparse(Option<u32>),
    /// `mlp_layer_types`, or else `first_k_dense_replace` and `moe_layer_freq`, select routed layers. The values are the defaults of the
    /// first routed layer and of the number of shared experts.
    DeepSeek {
        first: u32,
        shared: u32,
    },
    /// `moe_layers` or `interleave_moe_layer_step` select routed layers, each with a shared expert of the
    /// same width.
    Llama4,
    /// An unknown family: the fields that usually define experts, if the file has them.
    ByFields,
}

impl Family {
    /// Returns the architecture that the fields of a transformer define.
    pub(super) fn architecture(
        &self,
        fields: &mut ConfigFields<'_>,
        tied_embeddings: bool,
    ) -> Result<Architecture, ConfigError> {
        let layers = layers(fields)?;
        let hidden = fields.needed(&["hidden_size", "n_embd", "d_model", "n_embed"])?;
        let heads = fields.or_default(HEADS, self.heads)?;
        note_other_widths(fields, hidden, heads)?;
        let linear = if self.linear_attention { Some(linear_attention(fields, layers)?) } else { None };
        let attention = Attention {
            layers: layers - linear.as_ref().map_or(0, |linear| linear.layers),
            heads,
            kind: self.attention_kind(fields, hidden, heads)?,
            window: if self.linear_attention { None } else { self.window(fields, layers)? },
            output_gate: self.linear_attention && fields.flag("attn_output_gate")?.unwrap_or(true),
            sinks: self.vectors.sinks,
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
            linear: linear.filter(|linear| linear.layers > 0),
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
            _ if self.linear_attention => Ok(fields.whole(&["mtp_num_hidden_layers"])?.unwrap_or(0)),
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

    fn window(
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
                let found = super::shown_type(other);
                Err(wrong(found, "full_attention or sliding_attention for each layer".to_string()))
            }
            None => Ok(Some(types.iter().filter(|kind| **kind == "sliding_attention").count() as u32)),
        }
    }

    pub(super) fn ffn(
        &self,
        fields: &mut ConfigFields<'_>,
        hidden: u32,
        is_needed: bool,
    ) -> Result<u32, ConfigError> {
        let names: &[&str] = match self.experts {
            // Here `intermediate_size` is an expert's width.
            ExpertRule::Llama4 => &["intermediate_size_mlp"],
            // Without experts, Granite has its shared MLP only.
            ExpertRule::Every
                if matches!(self.attention, KvRule::Mixed) && fields.has("shared_intermediate_size") =>
            {
                &["shared_intermediate_size"]
            }
            _ => &["intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", "dff"],
        };
        let times = match (self.ffn_times, &self.attention) {
            (Some(default), KvRule::Mpt) => Some(fields.or_default(&["expansion_ratio"], Some(default))?),
            (times, _) => fields.whole(&["intermediate_multiple_size"])?.or(times),
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

    pub(super) fn moe(&self, fields: &mut ConfigFields<'_>, layers: u32) -> Result<Option<Moe>, ConfigError> {
        let (experts, ffn, shared_ffn, routed) = match self.experts {
            ExpertRule::None => return Ok(None),
            ExpertRule::Every | ExpertRule::EveryAndShared => {
                let experts = fields.needed(EXPERTS)?;
                let ffn = fields.needed(&["intermediate_size"])?;
                let shared_ffn = match self.experts {
                    ExpertRule::EveryAndShared => ffn,
                    _ => shared_width(fields, ffn)?,
                };
                let routed = routed_by_type(fields, layers)?.unwrap_or(layers);
                (experts, ffn, shared_ffn, if experts == 0 { 0 } else { routed })
            }
            ExpertRule::Sparse(shared) => {
                let experts = fields.needed(&["num_experts", "num_local_experts"])?;
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
            ExpertRule::Ernie => {
                let experts = fields.needed(EXPERTS)?;
                let ffn = fields.needed(&["moe_intermediate_size"])?;
                (experts, ffn, shared_width(fields, ffn)?, ernie_layers(fields, layers)?)
            }
            ExpertRule::ByFields => match by_fields(fields, layers)? {
                Some(experts) => experts,
                None => return Ok(None),
            },
            ExpertRule::Dbrx => return dbrx(fields, layers, self.gated),
            ExpertRule::Llama4 => {
                let experts = fields.needed(&["num_local_experts"])?;
                let ffn = fields.needed(&["intermediate_size"])?;
                (experts, ffn, ffn, llama4_layers(fields, layers)?)
            }
        };
        if routed == 0 {
            fields.whole(TOP_K)?;
            return Ok(None);
        }
        let top_k = fields.needed(TOP_K)?;
        Ok(Some(Moe { layers: routed, experts, top_k, ffn, shared_ffn, latent: None, gated: self.gated }))
    }
}

const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"];
const EXPERTS: &[&str] = &["num_local_experts", "num_experts", "moe_num_experts"];
/// Every name that known families have for the number of routed experts.
const EXPERT_COUNTS: [&str; 4] = ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"];
/// Names of the width of a routed expert that mean nothing else.
const EXPERT_WIDTHS: [&str; 3] = ["moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size"];
const TOP_K: &[&str] =
    &["num_experts_per_tok", "experts_per_token", "num_experts_per_token", "moe_topk", "moe_k"];

/// Returns the experts, their width, the width of the shared experts and the routed layers of an unknown family; none if the file has
/// no experts. Every choice among the meanings that known families give to a field is noted.
fn by_fields(
    fields: &mut ConfigFields<'_>,
    layers: u32,
) -> Result<Option<(u32, u32, u32, u32)>, ConfigError> {
    let Some(experts) = fields.whole(&EXPERT_COUNTS)?.filter(|experts| *experts > 0) else { return Ok(None) };
    let ffn = match fields.whole(&EXPERT_WIDTHS)? {
        Some(ffn) => ffn,
        None => {
            let ffn = fields.needed(&["intermediate_size"])?;
            fields.note(format!("Width of an expert assumed: {ffn}, the intermediate_size (as in Mixtral)."));
            ffn
        }
    };
    let width = fields.whole(&["shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"])?;
    let number = fields.whole(&["n_shared_experts"])?;
    let by_number = shared_width(fields, ffn)?;
    let shared_ffn = match (width, number) {
        (Some(width), _) => width,
        (None, Some(number)) => number.saturating_mul(ffn),
        (None, None) => by_number,
    };
    if shared_ffn == 0 {
        fields.note("No shared experts assumed (the file has no field for them, or 0).".to_string());
    }
    let routed = if fields.names("first_k_dense_replace") || fields.names("moe_layer_freq") {
        deepseek_layers(fields, layers, 0)?
    } else {
        let selects = ["mlp_layer_types", "decoder_sparse_step", "mlp_only_layers"];
        if !selects.iter().any(|name| fields.names(name)) {
            fields.note(format!(
                "Experts assumed in every one of the {layers} layers (no field says otherwise)."
            ));
        }
        sparse_layers(fields, layers)?
    };
    Ok(Some((experts, ffn, shared_ffn, routed)))
}

/// Returns the width of the shared experts, given as a width or as a number of experts of width `ffn`.
fn shared_width(fields: &mut ConfigFields<'_>, ffn: u32) -> Result<u32, ConfigError> {
    let width = fields.whole(&["shared_intermediate_size"])?;
    let experts = fields.whole(&["moe_num_shared_experts", "num_shared_experts"])?.unwrap_or(0);
    Ok(width.unwrap_or(experts.saturating_mul(ffn)))
}

/// Returns the number of routed layers by `mlp_layer_types`, if the file has it.
fn routed_by_type(fields: &mut ConfigFields<'_>, layers: u32) -> Result<Option<u32>, ConfigError> {
    const NAME: &str = "mlp_layer_types";
    let Some(types) = fields.texts(NAME)? else { return Ok(None) };
    let wrong = |found, wanted| Err(ConfigError::Wrong { field: NAME.to_string(), found, wanted });
    if types.len() != layers as usize {
        let found = format!("a list of {}", types.len());
        return wrong(found, format!("a list with one entry for each of {layers} layers"));
    }
    match types.iter().find(|kind| !matches!(**kind, "dense" | "sparse")) {
        Some(other) => wrong(super::shown_type(other), "dense or sparse for each layer".to_string()),
        None => Ok(Some(types.iter().filter(|kind| **kind == "sparse").count() as u32)),
    }
}

/// Returns the number of Ernie's routed layers.
fn ernie_layers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    const STEP: &str = "moe_layer_interval";
    let first = fields.or_default(&["moe_layer_start_index"], Some(1))?;
    // -1 means the last layer.
    let last = fields.last_layer("moe_layer_end_index", layers)?;
    match fields.or_default(&[STEP], Some(1))? {
        0 => Err(zero(STEP)),
        step => {
            let routes = |layer: &u32| (first..=last).contains(layer) && (layer + 1).is_multiple_of(step);
            Ok((0..layers).filter(routes).count() as u32)
        }
    }
}

/// Returns the routed layers that DBRX's `ffn_config` describes.
fn dbrx(fields: &mut ConfigFields<'_>, layers: u32, gated: bool) -> Result<Option<Moe>, ConfigError> {
    let Some(mut moe) = fields.object("ffn_config")? else { return Err(fields.missing(&["ffn_config"])) };
    Ok(Some(Moe {
        layers,
        experts: moe.or_default(&["moe_num_experts"], Some(4))?,
        top_k: moe.or_default(&["moe_top_k"], Some(1))?,
        ffn: moe.or_default(&["ffn_hidden_size"], Some(3584))?,
        shared_ffn: 0,
        latent: None,
        gated,
    }))
}

/// Notes widths that an architecture has only once: OPT's embedding and Laguna's heads may have others.
fn note_other_widths(fields: &mut ConfigFields<'_>, hidden: u32, heads: u32) -> Result<(), ConfigError> {
    if let Some(width) = fields.whole(&["word_embed_proj_dim"])?.filter(|width| *width != hidden) {
        fields.note_partly_read(format!("word_embed_proj_dim = {width} (read as {hidden})"));
    }
    let by_layer = fields.wholes("num_attention_heads_per_layer")?.unwrap_or_default();
    if by_layer.iter().any(|number| *number != heads) {
        fields.note_partly_read(format!("num_attention_heads_per_layer (read as {heads} in every layer)"));
    }
    Ok(())
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

/// Returns the number of layers, limited so that each can be examined.
pub(super) fn layers(fields: &mut ConfigFields<'_>) -> Result<u32, ConfigError> {
    let layers = fields.needed(&["num_hidden_layers", "n_layer", "n_layers", "num_layers"])?;
    match layers {
        1..=MOST_LAYERS => Ok(layers),
        _ => Err(ConfigError::Wrong {
            field: "num_hidden_layers".to_string(),
            found: layers.to_string(),
            wanted: format!("a number from 1 to {MOST_LAYERS}"),
        }),
    }
}

/// Returns the blocks of linear attention, by `layer_types` or `full_attention_interval`. The defaults are those of
/// `Qwen3NextConfig`, `Qwen3_5TextConfig` and `Qwen3_5MoeTextConfig`.
fn linear_attention(fields: &mut ConfigFields<'_>, layers: u32) -> Result<LinearAttention, ConfigError> {
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
                return Err(wrong(super::shown_type(other), wanted));
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
        fields.note_partly_read(format!("ffn_config.ffn_type = {}", super::shown_type(name)));
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

/// Returns the number of Qwen's routed layers.
fn sparse_layers(fields: &mut ConfigFields<'_>, layers: u32) -> Result<u32, ConfigError> {
    let step = fields.whole(&["decoder_sparse_step"])?.unwrap_or(1);
    let dense = fields.wholes("mlp_only_layers")?.unwrap_or_default();
    if let Some(routed) = routed_by_type(fields, layers)? {
        return Ok(routed);
    }
    if step == 0 {
        return Err(zero("decoder_sparse_step"));
    }
    let routes = |layer: &u32| !dense.contains(layer) && (layer + 1).is_multiple_of(step);
    Ok((0..layers).filter(routes).count() as u32)
}

/// Returns the number of DeepSeek's routed layers.
fn deepseek_layers(fields: &mut ConfigFields<'_>, layers: u32, first: u32) -> Result<u32, ConfigError> {
    const STEP: &str = "moe_layer_freq";
    if let Some(routed) = routed_by_type(fields, layers)? {
        fields.whole(&["first_k_dense_replace"])?;
        return Ok(routed);
    }
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
