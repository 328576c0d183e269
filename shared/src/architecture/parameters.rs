//! How many weights an architecture has.

use super::{Architecture, Attention, AttentionKind, LinearAttention, Mamba, Mlp, Moe};

/// Tokens that the convolution of a Mamba-2 or linear-attention block spans, in every published model.
pub(crate) const CONVOLUTION: f64 = 4.0;

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
        let routed = self
            .moe
            .as_ref()
            .map_or(0.0, |moe| f64::from(moe.layers) * f64::from(experts(moe)) * moe.expert_weights(hidden));
        let mamba =
            self.mamba.as_ref().map_or(0.0, |mamba| f64::from(mamba.layers) * mamba.convolution_weights());
        let linear = self
            .linear
            .as_ref()
            .map_or(0.0, |linear| f64::from(linear.layers) * linear.convolution_weights());
        embeddings + self.projection_weights() + routed + (mamba + linear)
    }

    /// Returns the weights of all matrices in the layers without routed experts.
    pub(crate) fn projection_weights(&self) -> f64 {
        let hidden = f64::from(self.hidden);
        let attention = f64::from(self.attention.layers) * self.attention.weights(hidden);
        let mlp = self.mlp.as_ref().map_or(0.0, |mlp| f64::from(mlp.layers) * mlp.weights(hidden));
        let moe = self.moe.as_ref().map_or(0.0, |moe| f64::from(moe.layers) * moe.shared_weights(hidden));
        let mamba = self
            .mamba
            .as_ref()
            .map_or(0.0, |mamba| f64::from(mamba.layers) * mamba.projection_weights(hidden));
        let linear = self
            .linear
            .as_ref()
            .map_or(0.0, |linear| f64::from(linear.layers) * linear.projection_weights(hidden));
        attention + mlp + moe + mamba + linear
    }
}

impl Attention {
    /// Returns the weights of queries, keys, values, output and the output's gate in one block.
    pub(crate) fn weights(&self, hidden: f64) -> f64 {
        let heads = f64::from(self.heads);
        hidden * self.gate_width()
            + match self.kind {
                AttentionKind::Gqa { kv_heads, head_dim } => {
                    2.0 * hidden * f64::from(head_dim) * (heads + f64::from(kv_heads))
                }
                AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
                    let [q, kv, nope, rope, value] =
                        [q_lora, kv_lora, qk_nope, qk_rope, v_head].map(f64::from);
                    let queries = match q_lora {
                        0 => hidden * heads * (nope + rope),
                        _ => q * (hidden + heads * (nope + rope)),
                    };
                    queries + kv * (hidden + heads * (nope + value)) + hidden * rope + heads * value * hidden
                }
            }
    }

    /// Returns the width of the output's gate; 0 without one.
    pub(crate) fn gate_width(&self) -> f64 {
        let head = match self.kind {
            AttentionKind::Gqa { head_dim, .. } => head_dim,
            AttentionKind::Mla { v_head, .. } => v_head,
        };
        if self.output_gate { f64::from(self.heads) * f64::from(head) } else { 0.0 }
    }
}

impl LinearAttention {
    /// Returns the width of all queries, or of all keys.
    pub(crate) fn key_width(&self) -> f64 {
        f64::from(self.key_heads) * f64::from(self.key_dim)
    }

    /// Returns the width of all values.
    pub(crate) fn value_width(&self) -> f64 {
        f64::from(self.value_heads) * f64::from(self.value_dim)
    }

    /// Returns the width of queries and keys after each key head was repeated for its value heads.
    pub(crate) fn repeated_key_width(&self) -> f64 {
        f64::from(self.value_heads) * f64::from(self.key_dim)
    }

    /// Returns the width of the convolution in one block: queries, keys and values.
    pub(crate) fn convolved_width(&self) -> f64 {
        2.0 * self.key_width() + self.value_width()
    }

    /// Returns the width of the first projection: queries, keys, values, the output's gate, and two numbers for each value head.
    pub(crate) fn projected_width(&self) -> f64 {
        self.convolved_width() + self.value_width() + 2.0 * f64::from(self.value_heads)
    }

    /// Returns the weights of the two projections of one block.
    fn projection_weights(&self, hidden: f64) -> f64 {
        hidden * (self.projected_width() + self.value_width())
    }

    /// Returns the weights of the convolution of one block, and the two numbers of each value head.
    fn convolution_weights(&self) -> f64 {
        CONVOLUTION * self.convolved_width() + 2.0 * f64::from(self.value_heads)
    }
}

impl Mlp {
    /// Returns the weights of one block.
    fn weights(&self, hidden: f64) -> f64 {
        f64::from(Mlp::projections(self.gated)) * hidden * f64::from(self.ffn)
    }
}

impl Moe {
    /// Returns the weights of one routed expert.
    pub(crate) fn expert_weights(&self, hidden: f64) -> f64 {
        let width = self.latent.map_or(hidden, f64::from);
        f64::from(Mlp::projections(self.gated)) * width * f64::from(self.ffn)
    }

    /// Returns the weights of router, latent projections and shared experts in one block.
    fn shared_weights(&self, hidden: f64) -> f64 {
        let latent = self.latent.map_or(0.0, |latent| 2.0 * hidden * f64::from(latent));
        let shared = f64::from(Mlp::projections(self.gated)) * hidden * f64::from(self.shared_ffn);
        hidden * f64::from(self.experts) + latent + shared
    }
}

impl Mamba {
    /// Returns the width between the projections of one block.
    pub(crate) fn inner_width(&self) -> f64 {
        f64::from(self.heads) * f64::from(self.head_dim)
    }

    /// Returns the width of the convolution in one block.
    pub(crate) fn convolved_width(&self) -> f64 {
        self.inner_width() + 2.0 * f64::from(self.groups) * f64::from(self.state)
    }

    /// Returns the weights of the two projections of one block.
    fn projection_weights(&self, hidden: f64) -> f64 {
        let inner = self.inner_width();
        hidden * (inner + self.convolved_width() + f64::from(self.heads)) + inner * hidden
    }

    /// Returns the weights of the convolution of one block, and the three numbers of each head.
    fn convolution_weights(&self) -> f64 {
        CONVOLUTION * self.convolved_width() + 3.0 * f64::from(self.heads)
    }
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
