//! The weights outside matrix products: norms, biases and learned positions.
//!
//! They add up to 0.1 % of a large model and 1 % of GPT-2. Their FLOPs and their memory are not counted. The small matrices
//! that an architecture lacks are here too: gates of heads and experts, and the indexer of sparse attention.

use super::fields::ConfigFields;
use super::{Architecture, ConfigError};
use crate::architecture::{AttentionKind, Mlp};
use crate::units::group_digits;

/// Which weights of this kind a family has.
pub(super) struct VectorRule {
    pub(super) norm: Norm,
    /// Norms of the hidden width in each layer.
    pub(super) norms: u32,
    /// Norms of the hidden width outside the layers.
    pub(super) outer_norms: u32,
    pub(super) qk_norm: QkNorm,
    /// Biases of queries, keys and values.
    pub(super) qkv_bias: Bias,
    /// Bias of attention's output projection.
    pub(super) out_bias: Bias,
    pub(super) mlp_bias: Bias,
    /// Bias of the head.
    pub(super) head_bias: bool,
    /// Rows that a table of learned positions has beyond the longest sequence; `None` without such a table.
    pub(super) positions: Option<u32>,
    /// Whether each attention head has a learned sink.
    pub(super) sinks: bool,
    /// Whether each attention head has a gate that reads the hidden width.
    pub(super) head_gates: Bias,
    /// Whether an indexer selects the tokens that attention reads, as in DeepSeek-V3.2.
    pub(super) indexer: bool,
    /// Biases of the router and of each expert.
    pub(super) expert_bias: ExpertBias,
}

/// The weights of a norm.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Norm {
    None,
    Weight,
    WeightAndBias,
}

/// Norms of queries and keys.
pub(super) enum QkNorm {
    None,
    /// One for the queries and one for the keys, of the width of a head.
    PerHead,
    /// One for all queries and one for all keys.
    Whole,
    /// `PerHead` if this flag is true.
    PerHeadIf(&'static str),
    /// `Whole` if this flag is true.
    WholeIf(&'static str),
}

/// Whether projections have biases.
pub(super) enum Bias {
    Never,
    Always,
    /// If this flag is true; it is false by default.
    If(&'static str),
    /// Unless this flag is false; it is true by default.
    Unless(&'static str),
}

/// The biases of routed layers.
pub(super) enum ExpertBias {
    None,
    /// One number per expert in the router.
    Router,
    /// In the router and in both projections of each expert.
    All,
    /// A gate of the hidden width for the shared expert.
    SharedGate,
}

/// Two norms without biases, and biases where the file says so.
pub(super) const RMS: VectorRule = VectorRule {
    norm: Norm::Weight,
    norms: 2,
    outer_norms: 1,
    qk_norm: QkNorm::None,
    qkv_bias: Bias::If("attention_bias"),
    out_bias: Bias::If("attention_bias"),
    mlp_bias: Bias::If("mlp_bias"),
    head_bias: false,
    positions: None,
    sinks: false,
    head_gates: Bias::Never,
    indexer: false,
    expert_bias: ExpertBias::None,
};

/// Norms and projections with biases.
pub(super) const BIASED: VectorRule = VectorRule {
    norm: Norm::WeightAndBias,
    qkv_bias: Bias::Always,
    out_bias: Bias::Always,
    mlp_bias: Bias::Always,
    ..RMS
};

/// Numbers of weights outside matrix products.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct VectorWeights {
    /// In the whole model.
    pub(super) all: f64,
    /// Those that a token visits.
    pub(super) active: f64,
}

impl Bias {
    fn is_set(&self, fields: &mut ConfigFields<'_>) -> Result<bool, ConfigError> {
        match self {
            Bias::Never => Ok(false),
            Bias::Always => Ok(true),
            Bias::If(flag) => Ok(fields.flag(flag)?.unwrap_or(false)),
            Bias::Unless(flag) => Ok(fields.flag(flag)?.unwrap_or(true)),
        }
    }
}

impl VectorRule {
    /// Returns whether queries and keys are normalized with weights.
    pub(super) fn normalizes_qk(&self, fields: &mut ConfigFields<'_>) -> Result<bool, ConfigError> {
        match self.qk_norm {
            QkNorm::None => Ok(false),
            QkNorm::PerHead | QkNorm::Whole => Ok(true),
            QkNorm::PerHeadIf(flag) | QkNorm::WholeIf(flag) => Ok(fields.flag(flag)?.unwrap_or(false)),
        }
    }

    /// Returns the weights of an architecture that its `parameters` leave out.
    pub(super) fn count(
        &self,
        fields: &mut ConfigFields<'_>,
        architecture: &Architecture,
        layers: u32,
    ) -> Result<VectorWeights, ConfigError> {
        let hidden = f64::from(architecture.hidden);
        let norm = self.norm_weights();
        let mut all = norm * hidden * f64::from(self.norms * layers + self.outer_norms);
        all += self.attention(fields, architecture)?;
        let has_bias = self.mlp_bias.is_set(fields)?;
        if let Some(mlp) = architecture.mlp.as_ref().filter(|_| has_bias) {
            let projections = f64::from(Mlp::projections(mlp.gated) - 1);
            all += f64::from(mlp.layers) * (projections * f64::from(mlp.ffn) + hidden);
        }
        if self.indexer {
            all += indexer(fields, architecture)?;
        }
        if self.head_bias {
            all += f64::from(architecture.vocab);
        }
        if let Some(more) = self.positions {
            let positions = fields.whole(&super::POSITIONS)?.unwrap_or(0);
            all += hidden * (f64::from(positions) + f64::from(more));
        }
        if let Some(mamba) = &architecture.mamba {
            let biased = fields.flag("use_conv_bias")?.or(fields.flag("mamba_conv_bias")?).unwrap_or(true);
            let gated_norm = fields.flag("mamba_rms_norm")?.unwrap_or(true);
            let convolution = if biased { mamba.convolved_width() } else { 0.0 };
            let norm = if gated_norm { mamba.inner_width() } else { 0.0 };
            all += f64::from(mamba.layers) * (convolution + norm);
        }
        if let Some(linear) = &architecture.linear {
            // The norm of a head's output.
            all += f64::from(linear.layers) * f64::from(linear.value_dim);
        }
        let (experts, visited) = self.expert_biases(architecture);
        Ok(VectorWeights { all: all + experts, active: all + visited })
    }

    /// Returns the weights of a norm per number that it scales.
    fn norm_weights(&self) -> f64 {
        match self.norm {
            Norm::None => 0.0,
            Norm::Weight => 1.0,
            Norm::WeightAndBias => 2.0,
        }
    }

    /// Returns the weights of all attention blocks.
    fn attention(
        &self,
        fields: &mut ConfigFields<'_>,
        architecture: &Architecture,
    ) -> Result<f64, ConfigError> {
        let attention = &architecture.attention;
        let heads = f64::from(attention.heads);
        let (qkv_bias, out_bias) = (self.qkv_bias.is_set(fields)?, self.out_bias.is_set(fields)?);
        let head_gates = self.head_gates.is_set(fields)?;
        let normalizes_qk = self.normalizes_qk(fields)?;
        let (inputs, norms) = match attention.kind {
            AttentionKind::Gqa { kv_heads, head_dim } => {
                let (kv_heads, head_dim) = (f64::from(kv_heads), f64::from(head_dim));
                let normed = match self.qk_norm {
                    _ if !normalizes_qk => 0.0,
                    QkNorm::Whole | QkNorm::WholeIf(_) => (heads + kv_heads) * head_dim,
                    _ => 2.0 * head_dim,
                };
                ((heads + 2.0 * kv_heads) * head_dim, self.norm_weights() * normed)
            }
            // Biases are in the first projections, and the latents are normalized.
            AttentionKind::Mla { q_lora, kv_lora, qk_rope, .. } => {
                let latents = f64::from(q_lora) + f64::from(kv_lora);
                (latents + f64::from(qk_rope), latents)
            }
        };
        let hidden = f64::from(architecture.hidden);
        let biases =
            [(qkv_bias, inputs), (out_bias, hidden), (self.sinks, heads), (head_gates, heads * hidden)];
        let biases: f64 = biases.iter().filter(|(has, _)| *has).map(|(_, weights)| weights).sum();
        Ok(f64::from(attention.layers) * (norms + biases))
    }

    /// Returns the biases of all routed layers, and those that a token visits.
    fn expert_biases(&self, architecture: &Architecture) -> (f64, f64) {
        let Some(moe) = &architecture.moe else { return (0.0, 0.0) };
        let (layers, experts, hidden) =
            (f64::from(moe.layers), f64::from(moe.experts), f64::from(architecture.hidden));
        let router = layers * experts;
        match self.expert_bias {
            ExpertBias::None => (0.0, 0.0),
            ExpertBias::Router => (router, router),
            ExpertBias::SharedGate => (layers * hidden, layers * hidden),
            ExpertBias::All => {
                let projections = f64::from(Mlp::projections(moe.gated) - 1);
                let expert = projections * f64::from(moe.ffn) + hidden;
                let of = |experts: f64| router + layers * experts * expert;
                (of(experts), of(f64::from(moe.top_k)))
            }
        }
    }
}

/// Returns the weights of all indexers: projections and a norm, in every layer that does not share another layer's indexer.
fn indexer(fields: &mut ConfigFields<'_>, architecture: &Architecture) -> Result<f64, ConfigError> {
    let AttentionKind::Mla { q_lora, .. } = architecture.attention.kind else { return Ok(0.0) };
    let heads = f64::from(fields.or_default(&["index_n_heads"], Some(64))?);
    let width = f64::from(fields.or_default(&["index_head_dim"], Some(128))?);
    let top_k = fields.or_default(&["index_topk"], Some(2048))?;
    fields.note(format!(
        "Sparse attention is counted as full attention, which is exact up to {} tokens. The FLOPs of the indexer are not \
         counted.",
        group_digits(top_k.into())
    ));
    let layers = match fields.texts("indexer_types")? {
        Some(types) => types.iter().filter(|kind| **kind == "full").count() as f64,
        None => f64::from(architecture.attention.layers),
    };
    let hidden = f64::from(architecture.hidden);
    Ok(layers * (f64::from(q_lora) * heads * width + hidden * (width + heads) + 2.0 * width))
}
