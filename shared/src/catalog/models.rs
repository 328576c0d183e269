//! Models.

use crate::architecture::{
    Architecture, Attention, AttentionKind, LinearAttention, Mamba, Mlp, Moe, SlidingWindow,
};
use crate::data_file::{DataError, FromRow, Row};
use crate::units::rounded_count;
use crate::words::words;
use serde::Serialize;
use std::fmt;

/// A published model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The id in flags, files and links.
    pub id: String,
    /// The name for people.
    pub title: String,
    /// The family.
    pub family: String,
    /// The architecture.
    pub architecture: Architecture,
    /// The usual sequence length in training, in tokens.
    pub seq_len: u32,
    /// Whether attention normalizes its queries and keys, or MLA its latents.
    pub qk_norm: bool,
    /// The base of the rotary embedding; none for 10,000.
    pub rope_base: Option<u32>,
    /// How a mixture of experts chooses its experts; none if that is unknown.
    pub router: Option<Router>,
    /// Parameters, billions, as published.
    pub params_b: f64,
    /// Active parameters per token, billions, as published.
    pub active_b: f64,
}

/// How a mixture of experts chooses the experts of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Router {
    /// How an expert's score is computed.
    pub score: RouterScore,
    /// Groups of experts, and how many of them a token may use; none if it may use all.
    pub groups: Option<[u32; 2]>,
    /// The factor of the chosen experts' scores; none for 1.
    pub scaling: Option<f64>,
    /// Whether a bias, adjusted after each step, balances the experts.
    pub has_bias: bool,
    /// The coefficient of the auxiliary loss over each sequence; none if the model's loss is another one.
    pub sequence_loss: Option<f64>,
}

/// How a router turns scores into weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouterScore {
    /// The sigmoid of each score.
    Sigmoid,
    /// The softmax over all experts, before the choice.
    Softmax,
    /// The softmax over the chosen experts.
    SoftmaxOfChosen,
}

/// Numbers of parameters. As text: `8.03B parameters`, or `235B parameters, 22.1B active` for a mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ParameterCounts {
    /// All parameters.
    pub total: f64,
    /// Those that a token visits.
    pub active: f64,
}

impl fmt::Display for ParameterCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} parameters", rounded_count(self.total))?;
        match self.active < self.total {
            true => write!(f, ", {} active", rounded_count(self.active)),
            false => Ok(()),
        }
    }
}

impl Model {
    /// Returns the parameters of this model, or of a proxy of it, which has another number of layers. The model's own
    /// include norms and biases if it came from a `config.json`; a proxy's do not.
    pub fn parameters_of(&self, architecture: &Architecture) -> ParameterCounts {
        match *architecture == self.architecture {
            true => ParameterCounts {
                // Whole numbers, which the factor would miss by a rounding error.
                total: (self.params_b * 1e9).round(),
                active: (self.active_b * 1e9).round(),
            },
            false => {
                ParameterCounts { total: architecture.parameters(), active: architecture.active_parameters() }
            }
        }
    }
}

impl FromRow for Model {
    fn from_row(row: &Row<'_>) -> Result<Model, DataError> {
        let layers = row.value("layers")?;
        let (moe, mamba, linear) = (moe(row)?, mamba(row)?, linear_attention(row)?);
        // Each layer of a transformer has an MLP, dense or routed. A hybrid lists its MLP layers separately.
        let mlp_layers = match (&moe, &mamba) {
            (_, Some(_)) => row.optional("mlp_layers")?.unwrap_or(0),
            (Some(_), None) => row.optional("dense_layers")?.unwrap_or(0),
            (None, None) => layers,
        };
        let mlp = match mlp_layers {
            0 => None,
            layers => Some(Mlp { layers, ffn: row.value("ffn")?, gated: gated(row)? }),
        };
        let architecture = Architecture {
            layers,
            hidden: row.value("hidden")?,
            vocab: row.value("vocab")?,
            tied_embeddings: row.value::<u8>("tied_embeddings")? == 1,
            attention: attention(
                row,
                layers - linear.as_ref().map_or(0, |linear| linear.layers.min(layers)),
            )?,
            linear,
            mlp,
            moe,
            mamba,
            mtp_layers: row.optional("mtp_layers")?.unwrap_or(0),
        };
        Ok(Model {
            // Texts come last, because reading anything after them adds code that drops them.
            architecture,
            seq_len: row.value("seq_len")?,
            qk_norm: row.optional::<u8>("qk_norm")? == Some(1),
            rope_base: row.optional("rope_base")?.filter(|base| *base > 0),
            router: router(row)?,
            params_b: row.number("params_b")?,
            active_b: row.number("active_b")?,
            id: row.string("id")?,
            title: row.string("title")?,
            family: row.string("family")?,
        })
    }
}

fn gated(row: &Row<'_>) -> Result<bool, DataError> {
    Ok(row.value::<u8>("gated")? == 1)
}

fn attention(row: &Row<'_>, layers: u32) -> Result<Attention, DataError> {
    let kind = match row.optional("kv_lora")? {
        None => AttentionKind::Gqa { kv_heads: row.value("kv_heads")?, head_dim: row.value("head_dim")? },
        Some(kv_lora) => AttentionKind::Mla {
            q_lora: row.optional("q_lora")?.unwrap_or(0),
            kv_lora,
            qk_nope: row.value("qk_nope")?,
            qk_rope: row.value("qk_rope")?,
            v_head: row.value("v_head")?,
        },
    };
    let window = row.optional("window")?.zip(row.optional("window_layers")?);
    Ok(Attention {
        layers: row.optional("attn_layers")?.unwrap_or(layers),
        heads: row.value("heads")?,
        kind,
        window: window.map(|(tokens, layers)| SlidingWindow { tokens, layers }),
        output_gate: row.optional::<u8>("attn_gate")? == Some(1),
        sinks: row.optional::<u8>("sinks")? == Some(1),
    })
}

fn linear_attention(row: &Row<'_>) -> Result<Option<LinearAttention>, DataError> {
    let Some(layers) = row.optional("linear_layers")? else { return Ok(None) };
    Ok(Some(LinearAttention {
        layers,
        key_heads: row.value("linear_key_heads")?,
        value_heads: row.value("linear_value_heads")?,
        key_dim: row.value("linear_key_dim")?,
        value_dim: row.value("linear_value_dim")?,
    }))
}

fn moe(row: &Row<'_>) -> Result<Option<Moe>, DataError> {
    let Some(experts) = row.optional("experts")? else { return Ok(None) };
    Ok(Some(Moe {
        layers: row.value("moe_layers")?,
        experts,
        top_k: row.value("top_k")?,
        ffn: row.value("moe_ffn")?,
        shared_ffn: row.optional("shared_ffn")?.unwrap_or(0),
        latent: row.optional("moe_latent")?,
        gated: gated(row)?,
    }))
}

fn router(row: &Row<'_>) -> Result<Option<Router>, DataError> {
    let score = match row.text("router_score")? {
        "" => return Ok(None),
        "sigmoid" => RouterScore::Sigmoid,
        "softmax" => RouterScore::Softmax,
        "softmax-chosen" => RouterScore::SoftmaxOfChosen,
        other => return Err(row.error(words!("\"{other}\" in the column router_score is unknown"))),
    };
    let groups = row.optional("router_groups")?.zip(row.optional("router_group_top_k")?);
    Ok(Some(Router {
        score,
        groups: groups.map(<[u32; 2]>::from),
        scaling: row.optional_number("router_scaling")?,
        has_bias: row.optional::<u8>("router_bias")? == Some(1),
        sequence_loss: row.optional_number("router_seq_aux")?,
    }))
}

fn mamba(row: &Row<'_>) -> Result<Option<Mamba>, DataError> {
    let Some(layers) = row.optional("mamba_layers")? else { return Ok(None) };
    Ok(Some(Mamba {
        layers,
        heads: row.value("mamba_heads")?,
        head_dim: row.value("mamba_head_dim")?,
        state: row.value("mamba_state")?,
        groups: row.value("mamba_groups")?,
        chunk: row.optional("mamba_chunk")?,
    }))
}
