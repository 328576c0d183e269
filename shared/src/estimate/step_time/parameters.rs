//! Parameters of the fullest rank, by how they are replicated.

use crate::architecture::{Architecture, AttentionKind, Mlp};
use crate::estimate::Inputs;

/// Parameters of a rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RankParameters {
    /// Dense parameters, replicated over data and context parallelism.
    pub(super) dense: f64,
    /// Parameters of routed experts, replicated over fewer ranks.
    pub(super) experts: f64,
}

/// Returns the parameters of the fullest rank. Without a pipeline it holds both embeddings, otherwise one.
pub(super) fn fullest_rank(inputs: &Inputs<'_>) -> RankParameters {
    let (architecture, layout) = (inputs.architecture, inputs.layout);
    let most = layout.stages().iter().copied().max().unwrap_or(architecture.layers);
    let share = f64::from(most) / f64::from(architecture.layers) / f64::from(layout.tp());
    let embedding = f64::from(architecture.vocab) * f64::from(architecture.hidden) / f64::from(layout.tp());
    let tables = if layout.pp() == 1 && !architecture.tied_embeddings { 2.0 } else { 1.0 };
    let experts = architecture.moe.as_ref().map_or(0.0, |moe| {
        let width = f64::from(moe.latent.unwrap_or(architecture.hidden));
        let expert = f64::from(Mlp::projections(moe.gated)) * width * f64::from(moe.ffn);
        expert * f64::from(moe.experts) * f64::from(moe.layers)
    });
    RankParameters {
        dense: outside_experts(architecture) * share + tables * embedding,
        experts: experts * f64::from(most)
            / f64::from(architecture.layers)
            / f64::from(layout.ep() * layout.expert_tp()),
    }
}

/// Returns the parameters of all layers without routed experts and convolutions.
fn outside_experts(architecture: &Architecture) -> f64 {
    let hidden = f64::from(architecture.hidden);
    let attention = &architecture.attention;
    let heads = f64::from(attention.heads);
    let per_attention = match attention.kind {
        AttentionKind::Gqa { kv_heads, head_dim } => {
            hidden * f64::from(head_dim) * (2.0 * heads + 2.0 * f64::from(kv_heads))
        }
        AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
            let (qk, v) = (f64::from(qk_nope + qk_rope), f64::from(v_head));
            let queries = match q_lora {
                0 => hidden * heads * qk,
                rank => f64::from(rank) * (hidden + heads * qk),
            };
            queries
                + hidden * f64::from(kv_lora + qk_rope)
                + f64::from(kv_lora) * heads * (f64::from(qk_nope) + v)
                + heads * v * hidden
        }
    };
    let mlp = architecture.mlp.as_ref().map_or(0.0, |mlp| {
        f64::from(mlp.layers) * f64::from(Mlp::projections(mlp.gated)) * hidden * f64::from(mlp.ffn)
    });
    let moe = architecture.moe.as_ref().map_or(0.0, |moe| {
        let shared = f64::from(Mlp::projections(moe.gated)) * hidden * f64::from(moe.shared_ffn);
        let latent = moe.latent.map_or(0.0, |latent| 2.0 * hidden * f64::from(latent));
        f64::from(moe.layers) * (shared + latent + hidden * f64::from(moe.experts))
    });
    let mamba = architecture.mamba.as_ref().map_or(0.0, |mamba| {
        let inner = f64::from(mamba.heads) * f64::from(mamba.head_dim);
        let wide =
            2.0 * inner + 2.0 * f64::from(mamba.groups) * f64::from(mamba.state) + f64::from(mamba.heads);
        f64::from(mamba.layers) * hidden * (wide + inner)
    });
    f64::from(attention.layers) * per_attention + mlp + moe + mamba
}
