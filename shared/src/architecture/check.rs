//! Checks of an architecture that comes from a user or a file.

use super::{Architecture, Attention, AttentionKind};
use crate::words::words;

/// Far above every model, and low enough that products of two do not overflow.
pub(crate) const MOST_LAYERS: u32 = 10_000;
const MOST_WIDTH: u32 = 1 << 24;
const MOST_VOCAB: u32 = 1 << 28;
const MOST_EXPERTS: u32 = 1 << 16;

impl Architecture {
    /// Checks that sizes are in range, heads form whole groups, a token visits at most all experts, and every layer has
    /// its blocks.
    ///
    /// # Errors
    /// A clause about the model: "has 32 heads, which can't be divided among 5 KV heads".
    pub fn check(&self) -> Result<(), String> {
        within("layers", self.layers, 1, MOST_LAYERS)?;
        within("hidden width", self.hidden, 1, MOST_WIDTH)?;
        within("vocabulary", self.vocab, 1, MOST_VOCAB)?;
        within("MTP layers", self.mtp_layers, 0, MOST_LAYERS)?;
        self.attention.check()?;
        if let Some(mlp) = &self.mlp {
            within("dense MLP layers", mlp.layers, 1, MOST_LAYERS)?;
            within("FFN width", mlp.ffn, 1, MOST_WIDTH)?;
        }
        if let Some(moe) = &self.moe {
            within("routed layers", moe.layers, 1, MOST_LAYERS)?;
            within("experts", moe.experts, 1, MOST_EXPERTS)?;
            within("experts that a token visits", moe.top_k, 1, MOST_EXPERTS)?;
            within("FFN width of an expert", moe.ffn, 1, MOST_WIDTH)?;
            within("FFN width of the shared experts", moe.shared_ffn, 0, MOST_WIDTH)?;
            within("latent width of the experts", moe.latent.unwrap_or(1), 1, MOST_WIDTH)?;
            if moe.top_k > moe.experts {
                return Err(words!("has {} experts, but a token visits {}", moe.experts, moe.top_k));
            }
        }
        if let Some(linear) = &self.linear {
            within("layers of linear attention", linear.layers, 1, MOST_LAYERS)?;
            within("key heads of linear attention", linear.key_heads, 1, MOST_WIDTH)?;
            within("value heads of linear attention", linear.value_heads, 1, MOST_WIDTH)?;
            within("width of a key head of linear attention", linear.key_dim, 1, MOST_WIDTH)?;
            within("width of a value head of linear attention", linear.value_dim, 1, MOST_WIDTH)?;
            if !linear.value_heads.is_multiple_of(linear.key_heads) {
                return Err(words!(
                    "has {} value heads of linear attention, which can't be divided among {} key heads",
                    linear.value_heads,
                    linear.key_heads
                ));
            }
            if self.mamba.is_some() {
                return Err("has linear attention and Mamba layers, which Trainplan can't combine".into());
            }
        }
        if let Some(mamba) = &self.mamba {
            within("Mamba layers", mamba.layers, 1, MOST_LAYERS)?;
            within("Mamba heads", mamba.heads, 1, MOST_WIDTH)?;
            within("width of a Mamba head", mamba.head_dim, 1, MOST_WIDTH)?;
            within("Mamba state", mamba.state, 1, MOST_WIDTH)?;
            within("Mamba groups", mamba.groups, 1, MOST_WIDTH)?;
            within("chunk of the Mamba scan", mamba.chunk.unwrap_or(1), 1, MOST_WIDTH)?;
            if !mamba.heads.is_multiple_of(mamba.groups) {
                return Err(words!(
                    "has {} Mamba heads, which can't be divided among {} groups",
                    mamba.heads,
                    mamba.groups
                ));
            }
        }
        self.check_layers()
    }

    /// Checks that each layer of a transformer has attention and an MLP, and each layer of a hybrid one block.
    fn check_layers(&self) -> Result<(), String> {
        let attention = self.attention.layers;
        let mlp = self.mlp.as_ref().map_or(0, |mlp| mlp.layers);
        let moe = self.moe.as_ref().map_or(0, |moe| moe.layers);
        let linear = self.linear.as_ref().map_or(0, |linear| linear.layers);
        let layers = self.layers;
        match &self.mamba {
            Some(mamba) if attention + mlp + moe + mamba.layers != layers => Err(words!(
                "has {layers} layers, but {attention} of attention, {mlp} of dense MLP, {moe} routed and {} of Mamba",
                mamba.layers
            )),
            None if attention + linear != layers => Err(match &self.linear {
                Some(_) => words!(
                    "has {layers} layers, but {attention} of attention and {linear} of linear attention"
                ),
                None => words!("has {layers} layers, but {attention} of attention and no Mamba layers"),
            }),
            None if mlp + moe != layers => {
                Err(words!("has {layers} layers, but {mlp} of dense MLP and {moe} routed"))
            }
            _ => Ok(()),
        }
    }
}

impl Attention {
    fn check(&self) -> Result<(), String> {
        within("attention layers", self.layers, 1, MOST_LAYERS)?;
        within("attention heads", self.heads, 1, MOST_WIDTH)?;
        match self.kind {
            AttentionKind::Gqa { kv_heads, head_dim } => {
                within("KV heads", kv_heads, 1, MOST_WIDTH)?;
                within("width of a head", head_dim, 1, MOST_WIDTH)?;
                if !self.heads.is_multiple_of(kv_heads) {
                    let heads = self.heads;
                    return Err(words!(
                        "has {heads} heads, which can't be divided among {kv_heads} KV heads"
                    ));
                }
            }
            AttentionKind::Mla { q_lora, kv_lora, qk_nope, qk_rope, v_head } => {
                within("rank of the queries", q_lora, 0, MOST_WIDTH)?;
                within("rank of keys and values", kv_lora, 1, MOST_WIDTH)?;
                within("width of a head's part without position", qk_nope, 1, MOST_WIDTH)?;
                within("width of a head's rotary part", qk_rope, 0, MOST_WIDTH)?;
                within("width of a head's values", v_head, 1, MOST_WIDTH)?;
            }
        }
        if let Some(window) = &self.window {
            within("tokens of the sliding window", window.tokens, 1, u32::MAX)?;
            within("attention layers with a sliding window", window.layers, 1, self.layers)?;
        }
        Ok(())
    }
}

fn within(name: &str, value: u32, least: u32, most: u32) -> Result<(), String> {
    match value {
        _ if value < least => Err(words!("needs {name} of {least} or more, not {value}")),
        _ if value > most => Err(words!("needs {name} of {most} or fewer, not {value}")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    #[test]
    fn every_published_model_can_be() {
        for model in Catalog::embedded().models() {
            assert_eq!(model.architecture.check(), Ok(()), "{}", model.id);
        }
    }

    #[test]
    fn what_can_not_be_says_why() {
        let refused = |id: &str, change: fn(&mut Architecture)| {
            let mut architecture = Catalog::embedded().model(id).unwrap().architecture.clone();
            change(&mut architecture);
            architecture.check().unwrap_err()
        };
        assert_eq!(refused("llama3.1-8b", |it| it.hidden = 0), "needs hidden width of 1 or more, not 0");
        assert_eq!(
            refused("llama3.1-8b", |it| it.attention.heads = 30),
            "has 30 heads, which can't be divided among 8 KV heads"
        );
        assert!(refused("llama3.1-8b", |it| it.layers = 31).contains("31 layers, but 32 of attention"));
        assert!(refused("deepseek-v3", |it| it.mlp = None).contains("0 of dense MLP and 58 routed"));
        let too_few = |it: &mut Architecture| it.moe.iter_mut().for_each(|moe| moe.experts = 1);
        assert!(refused("mixtral-8x7b", too_few).contains("but a token visits 2"));
        assert!(refused("nemotron-h-56b", |it| it.layers = 119).contains("54 of Mamba"));
    }
}
