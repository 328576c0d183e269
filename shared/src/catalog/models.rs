//! Model architectures.

use crate::architecture::{Architecture, Attention, AttentionKind, Mamba, Mlp, Moe, Window};
use serde::Deserialize;

/// A published model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "Row")]
pub struct Model {
    /// Its name in flags, files and links.
    pub id: String,
    /// Its name as people print it.
    pub title: String,
    /// The family that it belongs to.
    pub family: String,
    /// Its shape.
    pub architecture: Architecture,
    /// The sequence length that it is usually trained at, tokens.
    pub seq_len: u32,
    /// Parameters, billions, as published.
    pub params_b: f64,
    /// Parameters that a token visits, billions, as published.
    pub active_b: f64,
    /// Where the row was read.
    pub source: String,
}

/// A line of models.csv.
#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    title: String,
    family: String,
    layers: u32,
    hidden: u32,
    ffn: u32,
    heads: u32,
    kv_heads: u32,
    head_dim: u32,
    vocab: u32,
    gated: u8,
    tied_embeddings: u8,
    seq_len: u32,
    experts: Option<u32>,
    top_k: Option<u32>,
    moe_ffn: Option<u32>,
    shared_ffn: Option<u32>,
    dense_layers: Option<u32>,
    moe_layers: Option<u32>,
    q_lora: Option<u32>,
    kv_lora: Option<u32>,
    qk_nope: Option<u32>,
    qk_rope: Option<u32>,
    v_head: Option<u32>,
    mtp_layers: Option<u32>,
    mamba_layers: Option<u32>,
    attn_layers: Option<u32>,
    mlp_layers: Option<u32>,
    mamba_heads: Option<u32>,
    mamba_head_dim: Option<u32>,
    mamba_state: Option<u32>,
    mamba_groups: Option<u32>,
    mamba_chunk: Option<u32>,
    moe_latent: Option<u32>,
    window: Option<u32>,
    window_layers: Option<u32>,
    params_b: f64,
    active_b: f64,
    source: String,
}

impl TryFrom<Row> for Model {
    type Error = String;

    fn try_from(row: Row) -> Result<Model, String> {
        let lacks = |column: &str| format!("model {}: column {column} is empty", row.id);
        let gated = row.gated == 1;
        let moe = match row.experts {
            None => None,
            Some(experts) => Some(Moe {
                layers: row.moe_layers.ok_or_else(|| lacks("moe_layers"))?,
                experts,
                top_k: row.top_k.ok_or_else(|| lacks("top_k"))?,
                ffn: row.moe_ffn.ok_or_else(|| lacks("moe_ffn"))?,
                shared_ffn: row.shared_ffn.unwrap_or(0),
                latent: row.moe_latent,
                gated,
            }),
        };
        let mamba = match row.mamba_layers {
            None => None,
            Some(layers) => Some(Mamba {
                layers,
                heads: row.mamba_heads.ok_or_else(|| lacks("mamba_heads"))?,
                head_dim: row.mamba_head_dim.ok_or_else(|| lacks("mamba_head_dim"))?,
                state: row.mamba_state.ok_or_else(|| lacks("mamba_state"))?,
                groups: row.mamba_groups.ok_or_else(|| lacks("mamba_groups"))?,
                chunk: row.mamba_chunk,
            }),
        };
        // In a transformer each layer holds an MLP, dense or routed; a hybrid counts its MLP layers apart.
        let mlp_layers = match (&moe, &mamba) {
            (_, Some(_)) => row.mlp_layers.unwrap_or(0),
            (Some(_), None) => row.dense_layers.unwrap_or(0),
            (None, None) => row.layers,
        };
        let kind = match row.kv_lora {
            None => AttentionKind::Gqa { kv_heads: row.kv_heads, head_dim: row.head_dim },
            Some(kv_lora) => AttentionKind::Mla {
                q_lora: row.q_lora.unwrap_or(0),
                kv_lora,
                qk_nope: row.qk_nope.ok_or_else(|| lacks("qk_nope"))?,
                qk_rope: row.qk_rope.ok_or_else(|| lacks("qk_rope"))?,
                v_head: row.v_head.ok_or_else(|| lacks("v_head"))?,
            },
        };
        let window = row.window.zip(row.window_layers).map(|(tokens, layers)| Window { tokens, layers });
        let architecture = Architecture {
            layers: row.layers,
            hidden: row.hidden,
            vocab: row.vocab,
            tied_embeddings: row.tied_embeddings == 1,
            attention: Attention {
                layers: row.attn_layers.unwrap_or(row.layers),
                heads: row.heads,
                kind,
                window,
            },
            mlp: (mlp_layers > 0).then_some(Mlp { layers: mlp_layers, ffn: row.ffn, gated }),
            moe,
            mamba,
            mtp_layers: row.mtp_layers.unwrap_or(0),
        };
        Ok(Model {
            id: row.id,
            title: row.title,
            family: row.family,
            architecture,
            seq_len: row.seq_len,
            params_b: row.params_b,
            active_b: row.active_b,
            source: row.source,
        })
    }
}
