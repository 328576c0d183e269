//! How many weights an architecture has.

use super::{Architecture, Attention, AttentionKind, Mamba, Mlp, Moe};

/// Tokens that a Mamba-2 block's convolution spans, in every published model.
const MAMBA_CONVOLUTION: f64 = 4.0;

impl Architecture {
    /// Weights in all. Norms and biases are left out, which no count of billions shows, and so are layers of
    /// multi-token prediction, as in published counts.
    pub fn parameters(&self) -> f64 {
        self.weights(|moe| moe.experts)
    }

    /// Weights that a token visits: of the routed experts only its own. The embedding counts in full, as published.
    pub fn active_parameters(&self) -> f64 {
        self.weights(|moe| moe.top_k)
    }

    fn weights(&self, experts: impl Fn(&Moe) -> u32) -> f64 {
        let hidden = f64::from(self.hidden);
        let embeddings = if self.tied_embeddings { 1.0 } else { 2.0 } * f64::from(self.vocab) * hidden;
        let attention = f64::from(self.attention.layers) * attention(&self.attention, hidden);
        let mlp = self
            .mlp
            .as_ref()
            .map_or(0.0, |mlp| f64::from(mlp.layers) * projections(mlp.gated) * hidden * f64::from(mlp.ffn));
        let moe = self
            .moe
            .as_ref()
            .map_or(0.0, |moe| f64::from(moe.layers) * routed(moe, f64::from(experts(moe)), hidden));
        let mamba = self.mamba.as_ref().map_or(0.0, |mamba| f64::from(mamba.layers) * scan(mamba, hidden));
        embeddings + attention + mlp + moe + mamba
    }
}

fn projections(gated: bool) -> f64 {
    f64::from(Mlp::projections(gated))
}

/// Queries, keys, values and output of one block.
fn attention(attention: &Attention, hidden: f64) -> f64 {
    let heads = f64::from(attention.heads);
    match attention.kind {
        AttentionKind::Gqa { kv_heads, head_dim } => {
            2.0 * hidden * f64::from(head_dim) * (heads + f64::from(kv_heads))
        }
        AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
            let [q, kv, nope, rope, value] = [q_lora, kv_lora, qk_nope, qk_rope, v_head].map(f64::from);
            let queries = match q_lora {
                0 => hidden * heads * (nope + rope),
                _ => q * (hidden + heads * (nope + rope)),
            };
            queries + kv * (hidden + heads * (nope + value)) + hidden * rope + heads * value * hidden
        }
    }
}

/// Router, latent projections, `experts` of the routed experts and all shared ones of one block.
fn routed(moe: &Moe, experts: f64, hidden: f64) -> f64 {
    let router = hidden * f64::from(moe.experts);
    let (width, latent) = match moe.latent.map(f64::from) {
        Some(latent) => (latent, 2.0 * hidden * latent),
        None => (hidden, 0.0),
    };
    let routed = experts * width * f64::from(moe.ffn);
    let shared = hidden * f64::from(moe.shared_ffn);
    router + latent + projections(moe.gated) * (routed + shared)
}

/// Projections, convolution and the three numbers of each head of one Mamba-2 block.
fn scan(mamba: &Mamba, hidden: f64) -> f64 {
    let [heads, head_dim, state, groups] =
        [mamba.heads, mamba.head_dim, mamba.state, mamba.groups].map(f64::from);
    let inner = heads * head_dim;
    let convolved = inner + 2.0 * groups * state;
    hidden * (inner + convolved + heads) + inner * hidden + MAMBA_CONVOLUTION * convolved + 3.0 * heads
}

#[cfg(test)]
mod tests {
    use crate::catalog::Catalog;

    #[test]
    fn every_published_model_has_as_many_as_published() {
        for model in Catalog::embedded().models() {
            let of = |ours: f64, published: f64| (ours / 1e9 / published - 1.0).abs();
            let all = of(model.architecture.parameters(), model.params_b);
            let active = of(model.architecture.active_parameters(), model.active_b);
            assert!(all < 0.005 && active < 0.005, "{}: {all}, {active}", model.id);
        }
    }
}
