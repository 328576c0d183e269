//! The rules by which a file's fields define the shape of a transformer. `table` lists the families that follow them.

mod attention;
mod experts;

use super::fields::ConfigFields;
use super::vectors::VectorRule;
use super::{Architecture, ConfigError};
use crate::architecture::{Attention, MOST_LAYERS, Mlp};
use attention::linear_attention;

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
}

const HEADS: &[&str] = &["num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"];

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

fn zero(field: &str) -> ConfigError {
    ConfigError::Wrong { field: field.to_string(), found: "0".to_string(), wanted: "1 or more".to_string() }
}
